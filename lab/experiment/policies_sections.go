package experiment

import (
	"fmt"
	"time"
)

const policiesIntro = `**Question.** A crawler with a fixed number of connections has two choices whenever one is free: to which server to
connect, and which of that server's URLs to ask for. Cao, Jiang and Singh ("crawl capability") compare four policies: first-in, first-out for both;
servers by pages a second (performance); by their best URL (quality); by quality a second (capability). Are the policies here worth what theirs are?

**How.** The crawler's own core (step, tick, frontier, estimators) runs on a virtual clock against a made-up campus like the paper's: %s pages on
%s servers with %s to %s pages each (Zipf's law), 24%% of which serve 1 request per connection, 66%% a hundred, the rest something between. There are
%d connections, at most one per server, no delays besides, and one partition. The paper gives no times, so they are ours: a server has a round trip time
(log-normal, median 10 ms; three make a connection, two close it) and a time to reply (log-normal, median 300 ms for a server of mean size, sigma 2, at most 5 s; each
page half to one and a half of it). Large servers are faster in proportion, so that they do not take longer for all of their pages
than small ones, and none takes longer alone than two thirds of a second for each of the mean number of pages: what happens without these two
conditions is a section below. Connections are busy for %.0f s each if all are always in use; the slowest server alone takes %.0f s.
In-links follow the power law measured on the web (exponent 2.1). At the beginning the crawl knows each server's root, and it asks each for its robots.txt.

**Time** is, as in the paper, a share of that of a whole crawl: here always breadth-first's, until its last page. The *omniscient* order knows all pages with their
qualities and times, needs no robots.txt, and whenever a connection is free goes where some pages bring most quality a second, and for just these. It is greedy, and a bound in practice only.
A policy's *area* is that under its curve up to the end of breadth-first, as a share of what it would be if all had come at once.`

// at is a share of the time of the set.
func (s *policySet) at(share float64) time.Duration { return time.Duration(share * float64(s.whole())) }

// plot draws the curves of a quality, or of quality per page.
func (s *policySet) plot(name, title, y string, quality []float64, perPage bool, extra ...*policyTrial) Plot {
	p := Plot{Name: name, Title: title, X: "time (share of breadth-first's)", Y: y}
	add := func(t *policyTrial, color int, dashed bool) {
		xs, ys := t.curve(quality, s.whole())
		if perPage {
			_, pages := t.curve(s.trials[0].pages, s.whole())
			kept := 0
			for i := range ys {
				if pages[i] > 0 {
					xs[kept], ys[kept] = xs[i], ys[i]/pages[i]
					kept++
				}
			}
			xs, ys = xs[:kept], ys[:kept]
		}
		p.Series = append(p.Series, Series{Name: t.policy, X: xs, Y: ys, Color: color, Dashed: dashed})
	}
	for i, t := range s.trials {
		add(t, i, false)
	}
	for _, t := range extra {
		add(t, 6, true)
	}
	return p
}

// timeColumns are the shares of time that tables have columns for.
var timeColumns = []float64{0.1, 0.2, 0.3, 1. / 3, 0.5, 0.7}

func timeHeads() (heads []string) {
	for _, f := range timeColumns {
		heads = append(heads, fmt.Sprintf("at %.2g", f))
	}
	return heads
}

// row is a table's row of a trial: shares of quality, area, the same of breadth-first's and of best's, end.
func (s *policySet) row(t, best *policyTrial, quality []float64) []any {
	var cells []any
	for _, f := range timeColumns {
		cells = append(cells, t.share(quality, s.at(f)))
	}
	area := t.area(quality, s.whole())
	return append(cells, area, area/s.trials[0].area(quality, s.whole()), area/best.area(quality, s.whole()), t.end.Seconds())
}

var areaHeads = []string{"area", "of breadth-first's", "of the omniscient's", "end, s"}

func pagesSection(c *campus, s *policySet, fastest *policyTrial) Section {
	bf, perf := s.find("breadth-first"), s.find("performance")
	ratio := perf.share(c.pages, s.at(0.5)) / bf.share(c.pages, s.at(0.5))
	possible := fastest.share(c.pages, s.at(0.5)) / bf.share(c.pages, s.at(0.5))
	sec := Section{
		Title: "Pages",
		Text: fmt.Sprintf(`The paper reports that performance has 50%% more pages than breadth-first at half time; here it is %.0f%% more, and %.0f%% would be possible
for who knows all from the beginning. Quality and capability go by PageRank in this table.`, 100*(ratio-1), 100*(possible-1)),
	}
	tab := Table{Name: "pages", Caption: "Share of the pages by time", Columns: append(append([]string{"policy"}, timeHeads()...), areaHeads...)}
	for _, t := range append(append([]*policyTrial{}, s.trials...), fastest) {
		tab.Rows = append(tab.Rows, append([]any{t.policy}, s.row(t, fastest, c.pages)...))
	}
	sec.Tables = []Table{tab}
	sec.Plots = []Plot{s.plot("pages", "Pages", "share of the pages", c.pages, false, fastest)}
	sec.Checks = []Check{{What: "performance has 1.5 times breadth-first's pages at half time", OK: ratio >= 1.5}}
	return sec
}

func rankSection(s *policySet) Section {
	caps, quality := s.find("capability").share(s.quality, s.at(0.3)), s.find("quality").share(s.quality, s.at(0.3))
	sec := s.section("pagerank", fmt.Sprintf(`A page's quality is its PageRank, computed over all links beforehand and known for each URL that was found. The paper:
capability and quality have more than 80%% of the total in less than 30%% of the time, and capability is the best of the four. Here, at 30%% of the time, capability has %.0f%% and
quality has %.0f%%: the best page of all is on some server, and it is asked for though that server is slow.`, 100*caps, 100*quality))
	sec.Checks = []Check{
		{What: "capability has 80% of the quality in 30% of the time", OK: caps >= 0.8},
		{What: "capability's area is the largest of the four", OK: s.capabilityIsBest()},
	}
	return sec
}

func zipfSection(s, known *policySet, draws int) Section {
	third, half := s.find("capability").share(s.quality, s.at(1./3)), s.find("capability").share(s.quality, s.at(0.5))
	sec := s.section("zipf", fmt.Sprintf(`Qualities are drawn from Zipf's law (exponent 1), each independent of its server and of links; all figures are means over %d draws. The paper:
capability has 60%% of the total at a third of the time and 80%% at half of it, and is the best of the four. Here it has %.0f%% and %.0f%%. If all URLs are known from the beginning
it has %.0f%% and %.0f%%: a page cannot be chosen for its quality before a link to it was read, and if quality has nothing to do with links, whoever reads most pages finds
most good ones. So performance is close to capability here.`, draws, 100*third, 100*half,
		100*known.find("capability").share(known.quality, known.at(1./3)), 100*known.find("capability").share(known.quality, known.at(0.5))))
	sec.Checks = []Check{
		{What: "capability has 60% of the quality in a third of the time", OK: third >= 0.6},
		{What: "capability has 80% of the quality in half of the time", OK: half >= 0.8},
		{What: "capability's area is the largest of the four", OK: s.capabilityIsBest()},
		{What: "capability's area is the largest of the four if all URLs are known", OK: known.capabilityIsBest()},
	}
	return sec
}

func (s *policySet) section(name, text string) Section {
	tab := Table{Name: name, Caption: "Share of all quality by time", Columns: append(append([]string{"policy"}, timeHeads()...), areaHeads...)}
	for _, t := range append(append([]*policyTrial{}, s.trials...), s.best) {
		tab.Rows = append(tab.Rows, append([]any{t.policy}, s.row(t, s.best, s.quality)...))
	}
	return Section{Title: "Quality by " + s.title, Text: text, Tables: []Table{tab}, Plots: []Plot{
		s.plot(name, "Quality by "+s.title, "share of all quality", s.quality, false, s.best),
		s.plot(name+"-efficiency", "Efficiency by "+s.title, "quality per page, by the mean page's", s.quality, true),
	}}
}

// capabilityIsBest reports whether no other policy has as large an area.
func (s *policySet) capabilityIsBest() bool {
	for _, t := range s.trials[:3] {
		if t.area(s.quality, s.whole()) >= s.find("capability").area(s.quality, s.whole()) {
			return false
		}
	}
	return true
}

// compactTable has a row for each policy and kind of quality.
func compactTable(name, caption string, st *policySetting) Table {
	tab := Table{Name: name, Caption: caption, Columns: []string{
		"policy", "pages at half", "PageRank at 0.3", "PageRank at half", "Zipf at 0.33", "Zipf at half", "area of PageRank", "area of Zipf", "end, s",
	}}
	for i, p := range thePolicies {
		a, b := st.rank.trials[i], st.zipf.trials[i]
		rank, zipf := st.rank.quality, st.zipf.quality
		tab.Rows = append(tab.Rows, []any{
			p, a.share(a.pages, st.rank.at(0.5)), a.share(rank, st.rank.at(0.3)), a.share(rank, st.rank.at(0.5)),
			b.share(zipf, st.zipf.at(1./3)), b.share(zipf, st.zipf.at(0.5)), a.area(rank, st.rank.whole()), b.area(zipf, st.zipf.whole()), a.end.Seconds(),
		})
	}
	return tab
}

func knownSection(st *policySetting) Section {
	return Section{
		Title: "If all URLs are known from the beginning",
		Text: `The same, but the crawl begins with all URLs instead of the roots: what is left is the order alone. That pages have to be found costs next to nothing by
PageRank, whose best pages are linked most and thus found first; it costs a lot where quality is independent of links, as by Zipf's law: a page cannot be chosen for its
quality before some link to it was read.`,
		Tables: []Table{compactTable("known", "All URLs known", st)},
	}
}

func onlineSection(s *policySet, trials []*policyTrial) Section {
	sec := Section{
		Title: "What an operator really gets",
		Text: `Nobody knows PageRank before the crawl. These are the sources of quality that a crawl can be begun with, by how much PageRank the pages have that they
bring: the depth of a URL, the number of links to it that were found, and OPIC, which hands a page's quality on to what it links to.`,
	}
	tab := Table{Name: "sources", Caption: "Share of all PageRank by time", Columns: append(append([]string{"policy", "source"}, timeHeads()...), areaHeads...)}
	row := func(t *policyTrial, source string) {
		tab.Rows = append(tab.Rows, append([]any{t.policy, source}, s.row(t, s.best, s.quality)...))
	}
	for _, t := range s.trials[:2] {
		row(t, "none")
	}
	for _, t := range trials {
		row(t, t.source)
	}
	for _, t := range s.trials[2:] {
		row(t, "PageRank, known")
	}
	sec.Tables = []Table{tab}
	plot := Plot{Name: "sources", Title: "Capability by source", X: "time (share of breadth-first's)", Y: "share of all PageRank"}
	color := 0
	for _, t := range append(append([]*policyTrial{s.find("breadth-first")}, trials...), s.find("capability")) {
		if t.policy == "quality" {
			continue
		}
		name := t.source
		switch t.source {
		case "":
			name = t.policy
		case s.title:
			name = "PageRank, known"
		}
		x, y := t.curve(s.quality, s.whole())
		plot.Series = append(plot.Series, Series{Name: name, X: x, Y: y, Color: color})
		color++
	}
	sec.Plots = []Plot{plot}
	return sec
}

func otherSection(all []*otherCampus) Section {
	tab := Table{Name: "others", Caption: "Other servers", Columns: []string{
		"servers", "slowest alone", "breadth-first's pages at half", "performance, times that", "omniscient, times that", "performance's PageRank at 0.3", "quality's", "capability's",
	}}
	for _, o := range all {
		c, s := o.set.trials[0].campus, o.set
		bf := s.find("breadth-first").share(c.pages, s.at(0.5))
		row := []any{
			o.name, c.longest.Seconds() / s.whole().Seconds(), bf, s.find("performance").share(c.pages, s.at(0.5)) / bf, o.fastest.share(c.pages, s.at(0.5)) / bf,
		}
		for _, p := range thePolicies[1:] {
			row = append(row, s.find(p).share(c.rank, s.at(0.3)))
		}
		tab.Rows = append(tab.Rows, row)
	}
	return Section{
		Title: "How much is owed to the times",
		Text: `The times of the servers are this experiment's, and were chosen so that breadth-first keeps its connections busy nearly to the end and that servers differ enough: both are needed
for one and a half times as many pages at half time. Here are other draws. How much performance gains is bounded by how much the servers differ, as the column of the
omniscient order shows; performance gets most of what is to be had each time. (The slowest server's own time is a share of breadth-first's.)`,
		Tables: []Table{tab},
	}
}

func tailSection(c *campus, st *policySetting, connections int) Section {
	s := st.rank
	bf := s.find("breadth-first")
	return Section{
		Title: "With a long tail",
		Text: fmt.Sprintf(`The same with times that do not depend on a server's size, and with no bound to them. Then the slowest server alone takes %.0f s, where all
work divided by the connections is %.0f s: whatever the order, a crawl ends when that server does, and for most of the time few connections are in use. At half of that
time breadth-first has %.0f%% of the pages already, so that nothing can have half as many more, and at a tenth of it %.0f%%, where performance has %.0f%%.
Shares of time say little about such a crawl; one request at a time to each server is what bounds it.`,
			c.longest.Seconds(), c.work.Seconds()/float64(connections), 100*bf.share(c.pages, s.at(0.5)), 100*bf.share(c.pages, s.at(0.1)),
			100*s.find("performance").share(c.pages, s.at(0.1))),
		Tables: []Table{compactTable("tail", "Unbounded times", st)},
	}
}

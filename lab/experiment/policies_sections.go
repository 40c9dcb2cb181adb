package experiment

import (
	"fmt"
	"time"
)

const policiesIntro = `**Question.** Whenever a connection is free, a crawler chooses a server and one of its URLs. Cao, Jiang and Singh ("crawl capability") compare four policies: first-in, first-out for both;
servers by pages per second (performance); by their best URL (quality); by quality per second (capability). Do the policies here perform as theirs do?

**How.** The crawler's own core (step, coordinator, frontier, estimators) runs on a virtual clock against a generated campus like the paper's: %s pages on
%s servers with %s to %s pages each (Zipf's law). 24%% of the servers serve 1 request per connection, 66%% a hundred, the others something between. There are
%d connections, at most one per server, no other delays, and one partition. The paper gives no times, so we chose them. A server has a round trip time
(log-normal, median 10 ms; three make a connection, two close it) and a response time (log-normal, median 300 ms for a server of mean size, sigma 2, at most 5 s; each
page takes half to one and a half of it). Large servers are proportionally faster, so that they need no more time for all of their pages
than small ones. No server alone needs more than two thirds of a second for each of the mean number of pages. A section below shows the results without these two
conditions. If all connections are always in use, each is busy for %.0f s; the slowest server alone takes %.0f s.
In-links follow the power law measured on the web (exponent 2.1). The crawl starts with each server's root, and requests robots.txt from each.

**Time** is, as in the paper, a share of the time of a whole crawl: here breadth-first's, until its last page. The *omniscient* order knows all pages with their
qualities and times, and needs no robots.txt. Whenever a connection is free, it chooses the server and the pages with the most quality per second. It is greedy, so it is only a practical bound.
A policy's *area* is the area under its curve up to the end of breadth-first, as a share of the area if all pages had come at once.`

// at returns the time that is a share of the set's time.
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

// timeColumns lists the shares of time in the columns of tables.
var timeColumns = []float64{0.1, 0.2, 0.3, 1. / 3, 0.5, 0.7}

func timeHeads() (heads []string) {
	for _, f := range timeColumns {
		heads = append(heads, fmt.Sprintf("at %.2g", f))
	}
	return heads
}

// row returns the table row of a trial: shares of quality, area, area relative to breadth-first and to best, end.
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
		Title: "Pages", Breaks: "the rank of a host by *performance* ignores the time (`internal/schedule/policy.go`).",
		Text: fmt.Sprintf(`The paper reports that performance has 50%% more pages than breadth-first at half time; here it has %.0f%% more. The omniscient order has %.0f%% more.
In this table quality and capability use PageRank.`, 100*(ratio-1), 100*(possible-1)),
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
	sec := s.section("pagerank", fmt.Sprintf(`A page's quality is its PageRank, computed over all links in advance and known for each URL that is found. In the paper,
capability and quality have more than 80%% of the total in less than 30%% of the time, and capability is the best of the four. Here, at 30%% of the time, capability has %.0f%% and
quality has %.0f%%: it requests the best page even if its server is slow.`, 100*caps, 100*quality))
	sec.Breaks = "*capability* takes the lowest host first (`internal/schedule/policy.go`)."
	sec.Checks = []Check{
		{What: "capability has 80% of the quality in 30% of the time", OK: caps >= 0.8},
		{What: "capability's area is the largest of the four", OK: s.capabilityIsBest()},
	}
	return sec
}

func zipfSection(s, known *policySet, draws int) Section {
	third, half := s.find("capability").share(s.quality, s.at(1./3)), s.find("capability").share(s.quality, s.at(0.5))
	sec := s.section("zipf", fmt.Sprintf(`Qualities are drawn from Zipf's law (exponent 1), independent of servers and links; all figures are means over %d draws. In the paper,
capability has 60%% of the total at a third of the time and 80%% at half of it, and is the best of the four. Here it has %.0f%% and %.0f%%. If all URLs are known from the start,
it has %.0f%% and %.0f%%. A page cannot be chosen for its quality before a link to it is read. If quality is independent of links, the policy that reads most pages finds
most good ones, so performance is close to capability here.`, draws, 100*third, 100*half,
		100*known.find("capability").share(known.quality, known.at(1./3)), 100*known.find("capability").share(known.quality, known.at(0.5))))
	sec.Breaks = "*capability* takes the lowest host first (`internal/schedule/policy.go`)."
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

// capabilityIsBest reports whether no other policy has a larger area.
func (s *policySet) capabilityIsBest() bool {
	for _, t := range s.trials[:3] {
		if t.area(s.quality, s.whole()) >= s.find("capability").area(s.quality, s.whole()) {
			return false
		}
	}
	return true
}

// compactTable returns a table with a row for each policy and kind of quality.
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
		Text: `The same, but the crawl starts with all URLs instead of the roots, so only the order matters. With PageRank, having to find the pages costs almost nothing,
because the best pages have most links and are found first. It costs much if quality is independent of links, as with Zipf's law, because a page cannot be chosen for its
quality before a link to it is read.`,
		Tables: []Table{compactTable("known", "All URLs known", st)},
	}
}

func onlineSection(s *policySet, trials []*policyTrial) Section {
	sec := Section{
		Title: "What an operator gets without PageRank",
		Text: `Nobody knows PageRank before the crawl. The table compares the sources of quality that a crawl can use by the PageRank of the pages that they
fetch: the depth of a URL, the number of found links to it, and OPIC, which passes a page's quality on to the pages it links to.`,
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
		Title: "Influence of the server times",
		Text: `The times of the servers are this experiment's own. They were chosen so that breadth-first keeps its connections busy nearly to the end, and so that servers differ enough. Both are needed
for one and a half times as many pages at half time. The table shows other draws. The differences between servers bound the gain of performance, as the column of the
omniscient order shows; performance reaches most of the possible gain each time. (The slowest server's own time is a share of breadth-first's.)`,
		Tables: []Table{tab},
	}
}

func tailSection(c *campus, st *policySetting, connections int) Section {
	s := st.rank
	bf := s.find("breadth-first")
	return Section{
		Title: "With a long tail",
		Text: fmt.Sprintf(`The same with unbounded times that do not depend on a server's size. Then the slowest server alone takes %.0f s, while all
work divided by the connections takes %.0f s. In any order the crawl ends when that server is finished, and for most of the time few connections are in use. At half of that
time breadth-first already has %.0f%% of the pages, so no policy can have half as many more. At a tenth of it breadth-first has %.0f%%, and performance %.0f%%.
Shares of time say little about such a crawl: the limit of one request at a time to each server bounds it.`,
			c.longest.Seconds(), c.work.Seconds()/float64(connections), 100*bf.share(c.pages, s.at(0.5)), 100*bf.share(c.pages, s.at(0.1)),
			100*s.find("performance").share(c.pages, s.at(0.1))),
		Tables: []Table{compactTable("tail", "Unbounded times", st)},
	}
}

package experiment

import (
	"fmt"
	"math"
)

// freshScale is the size of the measurements of freshness.
type freshScale struct {
	seed    uint64
	pages   int
	hosts   int
	rounds  int       // revisits per page that the budget allows
	budgets []float64 // hours between two revisits of each page

	corePages, coreRounds int // of the crawls by the crawler's core
}

func freshScaleOf(o Options) freshScale {
	s := freshScale{seed: o.Seed, pages: o.Pages, rounds: 50, budgets: []float64{48, 336}, corePages: 2_000, coreRounds: 30}
	if s.pages == 0 {
		s.pages = 10_000
	}
	if o.Quick {
		s.rounds, s.corePages, s.coreRounds = 24, 400, 10
		if o.Pages == 0 {
			s.pages = 2_000
		}
	}
	s.hosts = max(20, s.pages/66)
	return s
}

// enough is the expected share of the optimum.
const enough = 0.97

// freshness measures how well stored copies match their pages, if revisits follow internal/schedule/change.go.
func freshness(o Options) (*Report, error) { return freshScaleOf(o).run(o.Quick, o.logger()) }

func (s freshScale) run(quick bool, log func(string, ...any)) (*Report, error) {
	p := newLivePages(s.seed, s.pages, s.hosts)
	rates, err := ratesSection(s, p, log)
	if err != nil {
		return nil, err
	}
	hints, err := hintsSection(s, p, log)
	if err != nil {
		return nil, err
	}
	slow, err := slowSection(s, p, log)
	if err != nil {
		return nil, err
	}
	core, err := coreSection(s, log)
	if err != nil {
		return nil, err
	}
	return &Report{
		Name: "freshness", Title: "How fresh revisits keep copies", Seed: s.seed, Pages: s.pages, Quick: quick,
		Intro:    fmt.Sprintf(freshIntro, grouped(len(p.pages)), grouped(p.hosts), medianHours, hostSigma, pageSigma, weightZipf),
		Sections: []Section{rates, hints, slow, core},
	}, nil
}

const freshIntro = `**Question.** A crawl may revisit a number of pages per hour. Which pages should it choose to keep its copies as fresh as possible, if
nothing is known in advance about how often a page changes?

**How.** Freshness is the share of time in which the stored copy equals the page, averaged over the pages by their weight. Pages change
as Poisson processes. Azar, Horvitz, Lubetzky, Peres and Shahaf ("Tractable near-optimal policies for crawling", PNAS 2018) give the
optimum for revisits at random times if all rates are known; fixed intervals can do slightly better (Cho and Garcia-Molina,
"Effective Page Refresh Policies for Web Crawlers", TODS 2003). Here rates are estimated: each page has a gamma distribution, which each revisit narrows.
A page is revisited when the worth of a revisit, averaged over that distribution, reaches a threshold. All pages share the threshold, and only the number of revisits steers it.

The model: %s pages on %s hosts. Rates are log-normal. The median is one change in %g hours; hosts deviate from it with a sigma of %g, and pages
from their hosts with %g. No page changes more often than twice an hour. The i-th page of a host weighs i^-%g times as much as the first. At the start
all copies are fresh and nothing is known of any page. "Learnt" is the second half of the time.`

// modelTrial is one run of the model.
type modelTrial struct {
	rule
	perPage float64 // hours between two revisits of each page that the budget allows
	*modelRun
}

// runModels runs several trials concurrently.
func (s freshScale) runModels(p *livePages, trials []*modelTrial, log func(string, ...any)) error {
	var jobs []func() error
	for _, t := range trials {
		jobs = append(jobs, func() error {
			t.modelRun = p.run(s.seed, t.rule, float64(len(p.pages))/t.perPage, t.perPage*float64(s.rounds), t.perPage)
			log("%s, each page every %g h by the budget: freshness %.3f", t.rule.name, t.perPage, t.learnt())
			return nil
		})
	}
	return parallel(jobs)
}

// spent returns the used part of the budget in the second half.
func (m *modelRun) spent() float64 { return m.perHour() / m.budget }

// curve returns the freshness over time, by bin.
func (c *copies) curve(name string, color int) Series {
	s := Series{Name: name, Color: color}
	for i, f := range c.freshness {
		s.X, s.Y = append(s.X, float64(i+1)), append(s.Y, f)
	}
	return s
}

// level returns a horizontal line.
func level(name string, color, until int, y float64) Series {
	return Series{Name: name, Color: color, Dashed: true, X: []float64{1, float64(until)}, Y: []float64{y, y}}
}

func ratesSection(s freshScale, p *livePages, log func(string, ...any)) (Section, error) {
	sec := Section{Title: "Known, estimated and unused rates", Text: ratesText}
	tab := Table{
		Name: "rates", Caption: "Freshness by rule",
		Columns: []string{"hours a revisit", "rule", "first tenth", "learnt", "of the optimum", "of fixed intervals", "of the budget"},
	}
	sum := 0.0
	for _, page := range p.pages {
		sum += page.Rate
	}
	for _, hours := range s.budgets {
		perHour := float64(len(p.pages)) / hours
		trials := []*modelTrial{
			{rule: rule{name: "by worth, believed"}, perPage: hours},
			{rule: rule{name: "by worth, known", known: true}, perPage: hours},
			{rule: rule{name: "alike", interval: func(int) float64 { return hours }}, perPage: hours},
			{rule: rule{name: "by rate, known", interval: func(i int) float64 { return sum / p.pages[i].Rate / perHour }}, perPage: hours},
		}
		if err := s.runModels(p, trials, log); err != nil {
			return sec, err
		}
		_, best := optimum(p.pages, perHour)
		_, fixed := fixedOptimum(p.pages, perHour)
		tab.Rows = append(tab.Rows, []any{hours, "optimum, revisits at random times", nil, best, 1.0, best / fixed, nil})
		tab.Rows = append(tab.Rows, []any{hours, "optimum, fixed intervals", nil, fixed, fixed / best, 1.0, nil})
		plot := Plot{
			Name: fmt.Sprintf("rates-%g", hours), Title: fmt.Sprintf("Freshness with a budget of one revisit per page in %g hours", hours),
			X: "revisits of each page, by the budget", Y: "freshness",
		}
		for color, t := range trials {
			tab.Rows = append(tab.Rows, []any{hours, t.rule.name, mean(t.freshness[:s.rounds/10]), t.learnt(), t.learnt() / best, t.learnt() / fixed, t.spent()})
			plot.Series = append(plot.Series, t.curve(t.rule.name, color))
		}
		plot.Series = append(plot.Series, level("optimum, random", 6, s.rounds, best), level("optimum, fixed", 5, s.rounds, fixed))
		sec.Plots = append(sec.Plots, plot)
		ours := trials[0]
		sec.Checks = append(sec.Checks,
			Check{fmt.Sprintf("%g hours a revisit: with estimated rates, at least %g of the optimum at known rates", hours, enough), ours.learnt() >= enough*best},
			Check{fmt.Sprintf("%g hours a revisit: also of the optimum at fixed intervals", hours), ours.learnt() >= enough*fixed},
			Check{fmt.Sprintf("%g hours a revisit: more than with equal intervals, and than in proportion to changes", hours),
				ours.learnt() > max(trials[2].learnt(), trials[3].learnt())},
			Check{fmt.Sprintf("%g hours a revisit: within 2%% of the budget", hours), math.Abs(ours.spent()-1) <= 0.02},
		)
	}
	sec.Breaks = "a belief learns nothing from revisits (`schedule.LearnChange`); the threshold stays as it begins (`schedule.SteerThreshold`)."
	sec.Tables = []Table{tab}
	return sec, nil
}

const ratesText = `Equal intervals for all pages are a good rule, and revisits in proportion to changes a bad one, as Cho and Garcia-Molina found: they waste revisits on pages
that soon change again. The rule by worth leaves the fastest pages alone. It uses fixed intervals, so it can exceed the
optimum of Azar and others, who draw times at random. The stricter measure is the optimum at fixed intervals of any length. (Our intervals are at most 90 days, so that
no page is forgotten; this costs a little if revisits are few.) The cost of learning the rates is the difference
between the curves for estimated and known rates. Freshness falls at first because all copies start fresh.`

func hintsSection(s freshScale, p *livePages, log func(string, ...any)) (Section, error) {
	hours := s.budgets[0]
	perHour := float64(len(p.pages)) / hours
	sec := Section{Title: "What sitemaps say", Text: fmt.Sprintf(hintsText, hours, grouped(p.hosts), hours/2)}
	maps := func(recall, alarms float64) *sitemaps {
		return &sitemaps{every: hours / 2, recall: func(int) float64 { return recall }, alarms: func(int) float64 { return alarms }}
	}
	trials := []*modelTrial{
		{rule: rule{name: "all true", sitemaps: maps(1, 0)}},
		{rule: rule{name: "mostly true", sitemaps: maps(0.8, 0.25)}},
		{rule: rule{name: "half false", sitemaps: maps(0.5, 1)}},
		{rule: rule{name: "only false", sitemaps: maps(0, 10)}},
		{rule: rule{name: "mixed", sitemaps: &sitemaps{
			every:  hours / 2,
			recall: func(h int) float64 { return []float64{0.95, 0.5, 0}[h%3] },
			alarms: func(h int) float64 { return []float64{0.05, 1, 10}[h%3] },
		}}},
		{rule: rule{name: "not read"}},
	}
	for _, t := range trials {
		t.perPage = hours
	}
	if err := s.runModels(p, trials, log); err != nil {
		return sec, err
	}
	_, best := optimum(p.pages, perHour)
	tab := Table{Name: "hints", Caption: "Freshness by what sitemaps say", Columns: []string{"sitemaps", "first tenth", "learnt", "of the optimum without", "of the budget"}}
	plot := Plot{Name: "hints", Title: "Freshness by what sitemaps say", X: "revisits of each page, by the budget", Y: "freshness"}
	for color, t := range trials {
		tab.Rows = append(tab.Rows, []any{t.rule.name, mean(t.freshness[:s.rounds/10]), t.learnt(), t.learnt() / best, t.spent()})
		plot.Series = append(plot.Series, t.curve(t.rule.name, color))
	}
	plot.Series = append(plot.Series, level("optimum without", 6, s.rounds, best))
	none := trials[len(trials)-1].learnt()
	sec.Breaks = "a page that a sitemap does not announce counts as announced (`schedule.Trust.Next`)."
	sec.Checks = []Check{
		{"true sitemaps: a third less of the time in which copies are stale", 1-trials[0].learnt() <= (1-none)*2/3},
		{"mostly true sitemaps: better than without", trials[1].learnt() > none},
		{"sitemaps that only lie: not more than 0.03 worse than without, including the reads of sitemaps", trials[3].learnt() >= none-0.03},
		{"mixed: better than without", trials[4].learnt() > none},
	}
	sec.Tables, sec.Plots = []Table{tab}, []Plot{plot}
	return sec, nil
}

const hintsText = `The same with a budget of one revisit per page in %g hours. Each of the %s hosts has a sitemap that says when its pages changed. The crawl
reads it every %g hours, which counts as a revisit. A sitemap announces part of the changes, and some changes that did not happen. How reliable a host
is must be learnt: each revisit shows whether the announcement was true. An announcement counts as additional or reduced elapsed time, by which a
revisit becomes as likely to find a change (Busa-Fekete and others, "A Scalable Crawling Algorithm Utilizing Noisy Change-Indicating Signals", WWW
2025). In "mixed", a third of the hosts each have mostly true, half false and only false sitemaps.`

func slowSection(s freshScale, p *livePages, log func(string, ...any)) (Section, error) {
	hours := s.budgets[0]
	perHour := float64(len(p.pages)) / hours
	largest := float64(p.first[1]) / hours // revisits per hour at the largest host, if all pages are alike
	_, best := optimum(p.pages, perHour)
	tab := Table{
		Name: "pace", Caption: "Freshness by pace",
		Columns: []string{"revisits an hour a host allows", "hosts that have more", "learnt", "of the optimum without pace", "of the budget"},
	}
	var trials []*modelTrial
	for _, share := range []float64{0, 1, 0.5, 0.2} { // of the largest host's revisits
		t := &modelTrial{perPage: hours}
		if share > 0 {
			t.pace = 1 / (share * largest)
		}
		t.rule.name = fmt.Sprintf("a host every %.2g h", t.pace)
		trials = append(trials, t)
	}
	if err := s.runModels(p, trials, log); err != nil {
		return Section{}, err
	}
	for _, t := range trials {
		row := []any{"any number", 0, t.learnt(), t.learnt() / best, t.spent()}
		if t.pace > 0 {
			bound := 0
			for h := range p.hosts {
				if float64(p.first[h+1]-p.first[h])/hours >= 1/t.pace {
					bound++
				}
			}
			row[0], row[1] = 1/t.pace, bound
		}
		tab.Rows = append(tab.Rows, row)
	}
	return Section{
		Title: "Hosts that allow few revisits",
		Text: fmt.Sprintf(`The same without sitemaps, with hosts that limit the revisits per hour. By the budget the largest host would get %.3g. Other hosts get the revisits
that a host does not allow: the threshold falls until the budget is used.`, largest),
		Tables: []Table{tab},
		Breaks: "the threshold stays as it begins (`schedule.SteerThreshold`).",
		Checks: []Check{
			{"a pace as of the budget's share of the largest host: at least 0.97 of the optimum without one", trials[1].learnt() >= enough*best},
			{"a fifth of that: the budget is still used, within 3%", math.Abs(trials[3].spent()-1) <= 0.03},
		},
	}, nil
}

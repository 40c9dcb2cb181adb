package experiment

import (
	"fmt"
	"math"
	"slices"
)

// find returns the trial of a setting.
func find(trials []*trial, s setting, n int, start float64) *trial {
	i := slices.IndexFunc(trials, func(t *trial) bool { return t.setting == s && t.n == n && t.start == start })
	if i < 0 {
		return nil
	}
	return trials[i]
}

// numbersOf returns the numbers of partitions of trials, ascending.
func numbersOf(trials []*trial, least int) (out []int) {
	for _, t := range trials {
		if t.n >= least {
			out = append(out, t.n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (t *trial) variances() (out []float64) {
	for _, h := range t.hours {
		out = append(out, variance(h))
	}
	return out
}

// rate returns pages per second.
func (t *trial) rate() float64 { return float64(t.Pages) / t.Virtual.Seconds() }

// balanceSection reports on the paper's Table 2.
func balanceSection(s scale, trials []*trial, polite setting) Section {
	sec := Section{
		Title: "Balance", Breaks: "the planner never moves a slot (`internal/crawl/plan.go`).",
		Text: fmt.Sprintf(balanceText, polite.delay, (&trial{setting: polite}).time(s), starts[0], starts[1], plansPerRun, plansPerRun/hours),
	}
	ends := Table{
		Name: "balance", Caption: "Variance of the shares of an hour's pages",
		Columns: []string{"partitions", "planning", "hour 1", "paper", "hour 10", "paper", "worst hour", "slots moved"},
	}
	all := Table{Name: "balance-hours", Caption: "The same by hour", Columns: []string{"partitions", "planning"}}
	for h := range hours {
		all.Columns = append(all.Columns, fmt.Sprint(h+1))
	}
	for _, n := range numbersOf(trials, 2) {
		paper := paperVariance[n]
		plot := Plot{
			Name: fmt.Sprintf("balance-%d", n), Title: fmt.Sprintf("Variance of the shares of %d partitions", n), X: "hour", Y: "variance", LogY: true,
			Series: []Series{{Name: "paper (ends only)", Dashed: true, X: []float64{1, hours}, Y: paper[:], Color: 6}},
		}
		for color, start := range append([]float64{0}, starts...) {
			t := find(trials, polite, n, start)
			planning := "none"
			if start > 0 {
				planning = fmt.Sprintf("above %g", start)
			}
			v := t.variances()
			first, last, worst := v[0], v[len(v)-1], slices.Max(v)
			ends.Rows = append(ends.Rows, []any{n, planning, first, paper[0], last, paper[1], worst, len(t.Pauses)})
			row := []any{n, planning}
			series := Series{Name: planning, Color: color}
			for h, x := range v {
				row = append(row, x)
				series.X, series.Y = append(series.X, float64(h+1)), append(series.Y, x)
			}
			all.Rows = append(all.Rows, row)
			plot.Series = append(plot.Series, series)
			if start > 0 {
				c := Check{
					What: fmt.Sprintf("%d partitions, planning %s: at most the paper's variance in hour 1, in hour %d, and its larger one in all hours", n, planning, hours),
					OK:   first <= paper[0] && last <= paper[1] && worst <= max(paper[0], paper[1]),
				}
				if n == 2 && start == starts[0] {
					off := 100 * math.Sqrt(last)
					c.What = fmt.Sprintf("%d partitions, planning %s: at most the paper's variance in hour 1, but not in hour %d, whose shares of %.1f and %.1f %% are too even to move hosts for by default",
						n, planning, hours, 50-off, 50+off)
					c.OK = first <= paper[0] && last > paper[1] && worst <= max(paper[0], paper[1])
				}
				sec.Checks = append(sec.Checks, c)
			}
		}
		sec.Plots = append(sec.Plots, plot)
	}
	sec.Tables = []Table{ends, all}
	return sec
}

const balanceText = `Connections are plentiful and each host gets one request every %[1]v, so the number of unfinished hosts bounds a partition. This is the
usual case for a polite crawler, and the harder one for balance: with few connections and no delay, each partition is as fast as its connections,
whatever it owns. The crawl runs for %[2]v. An "hour" is a tenth of it.

The crawler's own planner moves slots, as in any crawl with --elastic: it counts the URLs of each slot that may be requested in the next ten
minutes, and moves slots when the fullest partition has more than %[3]g times the mean, which is its default (--imbalance); here it also
runs with %[4]g. It may plan %[5]d times in a crawl: %[6]d times an "hour", or every ten minutes of a real one.

Without a planner, chance decides how even a crawl is. A host stays in its partition, so the variance does not fall over the hours as the
paper's does.`

// speedSection reports on the paper's Table 3.
func speedSection(s scale, trials []*trial, latency setting) Section {
	sec := Section{
		Title: "Speed-up", Breaks: "the first map gives the last partition twice as many slots as others (`partition.NewMap`).",
		Text: fmt.Sprintf(`Pages per second relative to one partition, in a crawl of the same web without a delay between requests. Each partition has %d connections, so
latency bounds it, as in the paper. The crawl runs until about %g%% of the web is fetched; half the partitions take twice as long.

`+"`make speedup`"+` measures the same with worker processes that share a PostgreSQL server on one machine; [workers](../howto/workers.md) has the
results.`, s.connections, 100*crawledPart),
	}
	tab := Table{Name: "speedup", Caption: "Speed-up over one partition", Columns: []string{"partitions", "pages", "virtual time", "pages a second", "speed-up", "by partition", "paper", "by controller"}}
	ours, ideal := map[int]float64{}, map[int]float64{}
	one := find(trials, latency, 1, 0)
	for _, n := range numbersOf(trials, 1) {
		t := find(trials, latency, n, 0)
		up := t.rate() / one.rate()
		ours[n], ideal[n] = up, float64(n)
		row := []any{n, t.Pages, t.Virtual.String(), t.rate(), up, up / float64(n), nil, nil}
		if p, ok := paperSpeedUp[n]; ok {
			row[6], row[7] = p, p/float64(n)
		}
		tab.Rows = append(tab.Rows, row)
		if n > 1 {
			sec.Checks = append(sec.Checks, Check{What: fmt.Sprintf("%d partitions: at least %g times as fast", n, efficientEnough*float64(n)), OK: up >= efficientEnough*float64(n)})
		}
	}
	sec.Tables = []Table{tab}
	sec.Plots = []Plot{{
		Name: "speedup", Title: "Speed-up over one partition", X: "partitions", Y: "speed-up", LogX: true,
		Series: []Series{pairs("one to one", 6, true, ideal), pairs("Orbweaver", 0, false, ours), pairs("WebGather 2.0", 1, false, paperSpeedUp)},
	}}
	return sec
}

// trafficSection reports on the mail between partitions.
func trafficSection(trials []*trial, latency setting) Section {
	sec := Section{
		Title: "Traffic between partitions", Breaks: "mail is not compressed (`blobschema/wire.AppendCompressed`).",
		Text: fmt.Sprintf(`Mail between partitions in the crawls of the speed-up: compressed batches of URLs. Each partition that finds a URL sends it once, as long as
its filter remembers the URL. The paper states at most %d bytes per URL, and at most %d bytes more for each host's address, which
goes to all partitions. Here one partition owns a host, so no addresses are sent.`, paperURLBytes, paperHostBytes),
	}
	tab := Table{
		Name: "traffic", Caption: "Mail between partitions",
		Columns: []string{"partitions", "pages", "messages per 1,000 pages", "URLs per page", "bytes per page", "bytes per URL", "of text", "paper"},
	}
	for _, n := range numbersOf(trials, 2) {
		t := find(trials, latency, n, 0)
		m, pages, urls := t.Mail, float64(t.Pages), float64(max(1, t.Mail.URLs))
		perURL := float64(m.Bytes) / urls
		tab.Rows = append(tab.Rows, []any{
			n, t.Pages, 1000 * float64(m.Messages) / pages, float64(m.URLs) / pages, float64(m.Bytes) / pages, perURL, float64(m.Text) / urls, paperURLBytes,
		})
		sec.Checks = append(sec.Checks, Check{
			What: fmt.Sprintf("%d partitions: at most %d bytes for a URL, and half of its text", n, paperURLBytes),
			OK:   perURL <= float64(paperURLBytes) && perURL <= float64(m.Text)/urls/2,
		})
	}
	sec.Tables = []Table{tab}
	return sec
}

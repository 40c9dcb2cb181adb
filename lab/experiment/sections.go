package experiment

import (
	"fmt"
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
func balanceSection(s scale, trials []*trial, latency, polite setting) Section {
	sec := Section{
		Title: "Balance",
		Text:  fmt.Sprintf(balanceText, s.connections, 100*crawledPart, polite.delay, (&trial{setting: polite}).time(s), starts[0], starts[1], plansPerRun, plansPerRun/hours),
	}
	ends := Table{
		Name: "balance", Caption: "Variance of the shares of an hour's pages",
		Columns: []string{"partitions", "bound by", "planning", "hour 1", "paper", "hour 10", "paper", "worst hour", "slots moved"},
	}
	all := Table{Name: "balance-hours", Caption: "The same by hour", Columns: []string{"partitions", "bound by", "planning"}}
	for h := range hours {
		all.Columns = append(all.Columns, fmt.Sprint(h+1))
	}
	for _, n := range numbersOf(trials, 2) {
		paper := paperVariance[n]
		plot := Plot{
			Name: fmt.Sprintf("balance-%d", n), Title: fmt.Sprintf("Variance of the shares of %d partitions", n), X: "hour", Y: "variance", LogY: true,
			Series: []Series{{Name: "paper (ends only)", Dashed: true, X: []float64{1, hours}, Y: paper[:], Color: 6}},
		}
		for color, c := range []struct {
			setting
			by, planning string
			start        float64
		}{
			{latency, "latency", "none", 0},
			{latency, "latency", fmt.Sprintf("above %g", starts[0]), starts[0]},
			{polite, "politeness", "none", 0},
			{polite, "politeness", fmt.Sprintf("above %g", starts[0]), starts[0]},
			{polite, "politeness", fmt.Sprintf("above %g", starts[1]), starts[1]},
		} {
			t := find(trials, c.setting, n, c.start)
			if t == nil {
				continue
			}
			v := t.variances()
			worst := slices.Max(v)
			ends.Rows = append(ends.Rows, []any{n, c.by, c.planning, v[0], paper[0], v[len(v)-1], paper[1], worst, t.moves})
			row := []any{n, c.by, c.planning}
			series := Series{Name: c.by + ", " + c.planning, Color: color}
			for h, x := range v {
				row = append(row, x)
				series.X, series.Y = append(series.X, float64(h+1)), append(series.Y, x)
			}
			all.Rows = append(all.Rows, row)
			plot.Series = append(plot.Series, series)
			if c.start != starts[0] && (c.start > 0) == (c.by == "politeness") {
				sec.Checks = append(sec.Checks, Check{
					What: fmt.Sprintf("%d partitions, bound by %s, planning %s: at most the paper's variance in hour 1, in hour %d, and its larger one in all hours",
						n, c.by, c.planning, hours),
					OK: v[0] <= paper[0] && v[len(v)-1] <= paper[1] && worst <= max(paper[0], paper[1]),
				})
			}
		}
		sec.Plots = append(sec.Plots, plot)
	}
	sec.Tables = []Table{ends, all}
	return sec
}

const balanceText = `Two crawls of the same web are measured. In the first, each partition has %[1]d connections and there is no delay between requests, so
latency bounds a partition, as in the paper. It runs until about %[2]g%% of the web is fetched; half the partitions take twice as long.
In the second, connections are plentiful and each host gets one request every %[3]v. Then the number of unfinished hosts bounds a partition.
This is the harder case for balance, and the usual one for a polite crawler. It runs for %[4]v. An "hour" is a tenth of a crawl.

The planner counts the pages of each slot, and moves slots when the fullest partition has more than %[5]g times the mean, which is its
default; an eager planner starts at %[6]g. It runs %[7]d times in a crawl: %[8]d times an "hour", or every ten minutes of a real one.
In the latency-bound crawl only the largest number of partitions has a planner, because fewer gain nothing before the end.

Without a planner, chance decides how even a politeness-bound crawl is. A host stays in its partition, so the variance does not fall over
the hours as the paper's does; with two partitions it exceeds the paper's in hour 10. The eager planner corrects that; the default one ignores so small a difference.`

// speedSection reports on the paper's Table 3.
func speedSection(trials []*trial, latency setting) Section {
	sec := Section{
		Title: "Speed-up",
		Text: `Pages per second relative to one partition, in the latency-bound crawl above. Each partition has the same number of connections, whatever
the number of partitions.

` + "`make speedup`" + ` measures the same with worker processes that share a PostgreSQL server on one machine; [workers](../howto/workers.md) has the
results.`,
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
		Title: "Traffic between partitions",
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
		sec.Checks = append(sec.Checks, Check{What: fmt.Sprintf("%d partitions: at most %d bytes for a URL", n, paperURLBytes), OK: perURL <= float64(paperURLBytes)})
	}
	sec.Tables = []Table{tab}
	return sec
}

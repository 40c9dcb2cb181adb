package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/orbweaver/orbweaver/internal/ledger"
)

// report is the result of a run of this program.
type report struct {
	CPUs   int           `json:"cpus"`
	Rounds int           `json:"rounds"`
	Quick  bool          `json:"quick"` // the webs are too small for the targets
	Prices string        `json:"price_list"`
	Trials []trialReport `json:"trials"`
}

// trialReport is the result of a trial.
type trialReport struct {
	Web         string       `json:"web"`
	About       string       `json:"about"`
	Hosts       int          `json:"hosts"`
	Pages       int          `json:"pages"`
	LeastByWait float64      `json:"least_seconds_by_latency,omitempty"` // over one connection per host
	Sides       []sideReport `json:"sides"`
}

// sideReport is the result of one side. Only crawls have the fields below Results.
type sideReport struct {
	Name    string    `json:"name"`
	Median  figures   `json:"median"` // of each figure on its own
	Rounds  []figures `json:"rounds"`
	Results []result  `json:"results,omitempty"`

	Partitions int          `json:"partitions,omitempty"`
	PerPage    *calls       `json:"per_page,omitempty"`
	Cost       *ledger.Bill `json:"dollars_per_million_pages,omitempty"`
}

// calls counts the calls that cost money, per page.
type calls struct {
	Queue    float64 `json:"queue_requests"`
	Puts     float64 `json:"blob_puts"`
	Gets     float64 `json:"blob_gets"`
	KVWrites float64 `json:"kv_write_units"`
	KVReads  float64 `json:"kv_read_units"`
}

// result is a figure with its target.
type result struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Bound  bound   `json:"bound"`
	Target float64 `json:"target"`
	OK     bool    `json:"ok"`
}

// measured holds the measurements by name, in order of rounds.
type measured map[string][]figures

// newReport sums up the measurements of all trials.
func newReport(s *settings, all []trial, made measured) (*report, error) {
	prices, err := ledger.DefaultPrices()
	if err != nil {
		return nil, err
	}
	r := &report{CPUs: runtime.GOMAXPROCS(0), Rounds: s.rounds, Quick: s.quick, Prices: prices.Name + ", " + prices.Date}
	for _, t := range all {
		one := trialReport{
			Web: t.name, About: t.about, Hosts: t.web.Hosts, Pages: made[t.sides[0].Name][0].Pages,
			LeastByWait: leastTime(t.web).Seconds(),
		}
		for _, side := range t.sides {
			one.Sides = append(one.Sides, side.report(made, t.sides[side.base].Name, &prices))
		}
		r.Trials = append(r.Trials, one)
	}
	return r, nil
}

// report sums up the rounds of a side beside those of its base and of the other program.
func (s *side) report(made measured, base string, prices *ledger.Prices) sideReport {
	rounds := made[s.Name]
	r := sideReport{Name: s.Name, Median: medians(rounds), Rounds: rounds, Partitions: s.Partitions}
	for _, t := range s.targets {
		r.Results = append(r.Results, t.judge(rounds, made[base]))
	}
	if s.before != "" {
		for _, t := range sinceBefore {
			r.Results = append(r.Results, t.judge(rounds, made[s.before]))
		}
	}
	if s.Role == roleCrawl {
		m := &r.Median
		n, c := float64(m.Pages), &m.Calls
		r.PerPage = &calls{
			Queue: float64(c.QueueRequests) / n, Puts: float64(c.BlobPuts) / n, Gets: float64(c.BlobGets) / n,
			KVWrites: float64(c.KVWriteUnits) / n, KVReads: float64(c.KVReadUnits) / n,
		}
		bill := prices.PerMillion(*c, int64(m.Pages), m.CPUSeconds)
		r.Cost = &bill
	}
	return r
}

// judge compares the rounds of a side, each with the same round of its base, with the target.
func (t *target) judge(rounds, base []figures) result {
	var all []float64
	for i := range rounds {
		all = append(all, t.of(&rounds[i], &base[i]))
	}
	r := result{Name: t.name, Value: median(all), Bound: t.bound, Target: t.value}
	switch t.bound {
	case atLeast:
		r.OK = r.Value >= t.value
	case atMost:
		r.OK = r.Value <= t.value
	}
	return r
}

// medians returns the median of each figure.
func medians(rounds []figures) figures {
	float := func(of func(*figures) float64) float64 {
		var all []float64
		for i := range rounds {
			all = append(all, of(&rounds[i]))
		}
		return median(all)
	}
	whole := func(of func(*figures) int64) int64 {
		return int64(float(func(f *figures) float64 { return float64(of(f)) }))
	}
	return figures{
		Pages:          rounds[0].Pages,
		Seconds:        float(func(f *figures) float64 { return f.Seconds }),
		PagesPerSecond: float(func(f *figures) float64 { return f.PagesPerSecond }),
		CPUSeconds:     float(func(f *figures) float64 { return f.CPUSeconds }),
		CPUPer1000:     float(func(f *figures) float64 { return f.CPUPer1000 }),
		PeakBytes:      whole(func(f *figures) int64 { return f.PeakBytes }),
		WARCBytes:      whole(func(f *figures) int64 { return f.WARCBytes }),
		StoredBytes:    whole(func(f *figures) int64 { return f.StoredBytes }),
		Tail:           float(func(f *figures) float64 { return f.Tail }),
		Connections:    whole(func(f *figures) int64 { return f.Connections }),
		Steadiness:     float(func(f *figures) float64 { return f.Steadiness }),
		FsckSeconds:    float(func(f *figures) float64 { return f.FsckSeconds }),
		Commits:        int(whole(func(f *figures) int64 { return int64(f.Commits) })),
		Calls: ledger.Counts{
			QueueRequests: whole(func(f *figures) int64 { return f.Calls.QueueRequests }),
			KVReadUnits:   whole(func(f *figures) int64 { return f.Calls.KVReadUnits }),
			KVWriteUnits:  whole(func(f *figures) int64 { return f.Calls.KVWriteUnits }),
			BlobPuts:      whole(func(f *figures) int64 { return f.Calls.BlobPuts }),
			BlobGets:      whole(func(f *figures) int64 { return f.Calls.BlobGets }),
			BlobPutBytes:  whole(func(f *figures) int64 { return f.Calls.BlobPutBytes }),
			BlobGetBytes:  whole(func(f *figures) int64 { return f.Calls.BlobGetBytes }),
			Functions:     whole(func(f *figures) int64 { return f.Calls.Functions }),
		},
		Server: served{
			Pages: rounds[0].Server.Pages, Robots: int(whole(func(f *figures) int64 { return int64(f.Server.Robots) })),
			CPUSeconds: float(func(f *figures) float64 { return f.Server.CPUSeconds }),
		},
	}
}

// median returns the median of at least one value.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func (r *report) writeJSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(r)
}

// writeText prints a table for each trial and the number of reached targets.
func (r *report) writeText(w io.Writer) error {
	fmt.Fprintf(w, "medians over rounds: %d; CPUs, shared with the server: %d; prices: %s\n", r.Rounds, r.CPUs, r.Prices)
	if r.Quick {
		fmt.Fprintln(w, "quick: the webs are too small for the targets")
	}
	reached, all := 0, 0
	for i := range r.Trials {
		t := &r.Trials[i]
		fmt.Fprintf(w, "\n%s: %s; %d hosts, %d pages", t.Web, t.About, t.Hosts, t.Pages)
		if t.LeastByWait > 0 {
			fmt.Fprintf(w, "; by latency no faster than in %.1f s", t.LeastByWait)
		}
		fmt.Fprint(w, "\n\n")
		if err := t.writeTable(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
		ok, n := t.writeResults(w)
		reached, all = reached+ok, all+n
	}
	_, err := fmt.Fprintf(w, "\ntargets: %d ok, %d missed\n", reached, all-reached)
	return err
}

// writeTable prints a column per side.
func (t *trialReport) writeTable(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, cell func(*sideReport) string) {
		cells := []string{name}
		for i := range t.Sides {
			cells = append(cells, cell(&t.Sides[i]))
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t")+"\t")
	}
	row("", func(s *sideReport) string { return s.Name })
	row("pages/s", func(s *sideReport) string { return fmt.Sprintf("%.0f", s.Median.PagesPerSecond) })
	row("least to most", func(s *sideReport) string { return s.spread() })
	row("seconds", func(s *sideReport) string { return fmt.Sprintf("%.1f", s.Median.Seconds) })
	row("CPU s per 1,000 pages", func(s *sideReport) string { return fmt.Sprintf("%.2f", s.Median.CPUPer1000) })
	row("of the server", func(s *sideReport) string {
		return fmt.Sprintf("%.2f", s.Median.Server.CPUSeconds*1000/float64(t.Pages))
	})
	row("peak RSS MiB", func(s *sideReport) string { return mebibytes(s.Median.PeakBytes) })
	row("WARC MiB", func(s *sideReport) string { return mebibytes(s.Median.WARCBytes) })
	row("all stored MiB", func(s *sideReport) string { return mebibytes(s.Median.StoredBytes) })
	crawls := func(name, format string, value func(*sideReport) float64) {
		row(name, func(s *sideReport) string {
			if s.Partitions == 0 {
				return ""
			}
			return fmt.Sprintf(format, value(s))
		})
	}
	crawls("s from last request to end", "%.2f", func(s *sideReport) float64 { return s.Median.Tail })
	crawls("connections", "%.0f", func(s *sideReport) float64 { return float64(s.Median.Connections) })
	crawls("commits", "%.0f", func(s *sideReport) float64 { return float64(s.Median.Commits) })
	crawls("queue requests per page", "%.4f", func(s *sideReport) float64 { return s.PerPage.Queue })
	crawls("blob puts per page", "%.4f", func(s *sideReport) float64 { return s.PerPage.Puts })
	crawls("blob gets per page", "%.4f", func(s *sideReport) float64 { return s.PerPage.Gets })
	crawls("KV write units per page", "%.4f", func(s *sideReport) float64 { return s.PerPage.KVWrites })
	crawls("KV read units per page", "%.4f", func(s *sideReport) float64 { return s.PerPage.KVReads })
	crawls("$ per million pages", "%.3f", func(s *sideReport) float64 { return s.Cost.Total })
	crawls("queue", "%.4f", func(s *sideReport) float64 { return s.Cost.Queue })
	crawls("KV", "%.4f", func(s *sideReport) float64 { return s.Cost.KV })
	crawls("blob", "%.4f", func(s *sideReport) float64 { return s.Cost.Blob })
	crawls("CPU and calls", "%.3f", func(s *sideReport) float64 { return s.Cost.Functions })
	return tw.Flush()
}

// writeResults prints each figure that has a target, and counts them.
func (t *trialReport) writeResults(w io.Writer) (reached, all int) {
	for i := range t.Sides {
		s := &t.Sides[i]
		for _, x := range s.Results {
			if x.Bound == "" {
				fmt.Fprintf(w, "%-13s %-34s %.4f\n", s.Name, x.Name, x.Value)
				continue
			}
			word := "missed"
			if x.OK {
				word = "ok"
				reached++
			}
			all++
			fmt.Fprintf(w, "%-13s %-34s %.4f  %-8s %-6g %s\n", s.Name, x.Name, x.Value, x.Bound, x.Target, word)
		}
	}
	return reached, all
}

// spread returns the range of the rounds.
func (s *sideReport) spread() string {
	least, most := s.Rounds[0].PagesPerSecond, s.Rounds[0].PagesPerSecond
	for _, f := range s.Rounds {
		least, most = min(least, f.PagesPerSecond), max(most, f.PagesPerSecond)
	}
	return fmt.Sprintf("%.0f–%.0f", least, most)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.0f", float64(n)/(1<<20)) }

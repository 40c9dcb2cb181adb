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

// report is what a run of this program gives.
type report struct {
	Web    string `json:"web"`
	Hosts  int    `json:"hosts"`
	Pages  int    `json:"pages"`
	CPUs   int    `json:"cpus"`
	Rounds int    `json:"rounds"`
	Prices string `json:"price_list"`
	Sides  []side `json:"sides"` // the loader, then the crawls
}

// side is one of the programs measured. Crawls alone have what is below Rounds.
type side struct {
	Name   string    `json:"name"`
	Median figures   `json:"median"` // of each figure by itself
	Rounds []figures `json:"rounds"`

	Partitions int          `json:"partitions,omitempty"`
	PerPage    *perPage     `json:"per_page,omitempty"`
	Cost       *ledger.Bill `json:"dollars_per_million_pages,omitempty"`
	Results    []result     `json:"results,omitempty"`
}

// perPage are the calls that cost money, per page.
type perPage struct {
	Queue    float64 `json:"queue_requests"`
	Puts     float64 `json:"blob_puts"`
	Gets     float64 `json:"blob_gets"`
	KVWrites float64 `json:"kv_write_units"`
	KVReads  float64 `json:"kv_read_units"`
}

// result is a figure of a crawl, with its target if it has one.
type result struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Bound  bound   `json:"bound,omitempty"`
	Target float64 `json:"target,omitempty"`
	OK     bool    `json:"ok"`
}

// bound says on which side of its target a figure is to be.
type bound string

const (
	atLeast bound = "at least"
	atMost  bound = "at most"
)

// The targets.
const (
	targetSpeed    = 0.7   // pages per second, of the loader's
	targetCPU      = 1.4   // CPU per page, of the loader's
	targetQueue    = 0.005 // per page, as are the next
	targetPuts     = 0.003
	targetKVWrites = 0.005
)

// newReport sums up rounds[i], the measurements of sides[i]; the loader is the first side.
func newReport(s *settings, sides []job, rounds [][]figures) (*report, error) {
	prices, err := ledger.DefaultPrices()
	if err != nil {
		return nil, err
	}
	r := &report{
		Web: s.name, Hosts: s.web.Hosts, Pages: rounds[0][0].Pages, CPUs: runtime.GOMAXPROCS(0), Rounds: s.rounds,
		Prices: prices.Name + ", " + prices.Date,
	}
	for i, j := range sides {
		one := side{Name: j.name(), Partitions: j.Partitions, Rounds: rounds[i], Median: medians(rounds[i])}
		if j.Role == roleCrawl {
			one.judge(rounds[0], &prices)
		}
		r.Sides = append(r.Sides, one)
	}
	return r, nil
}

// judge fills in what a crawl's figures come to beside the loader's of the same rounds.
func (s *side) judge(loader []figures, prices *ledger.Prices) {
	m := &s.Median
	n := float64(m.Pages)
	c := &m.Calls
	s.PerPage = &perPage{
		Queue: float64(c.QueueRequests) / n, Puts: float64(c.BlobPuts) / n, Gets: float64(c.BlobGets) / n,
		KVWrites: float64(c.KVWriteUnits) / n, KVReads: float64(c.KVReadUnits) / n,
	}
	bill := prices.PerMillion(*c, int64(m.Pages), m.CPUSeconds)
	s.Cost = &bill
	ratio := func(of func(*figures) float64) float64 {
		var all []float64
		for i := range s.Rounds {
			all = append(all, of(&s.Rounds[i])/of(&loader[i]))
		}
		return median(all)
	}
	s.Results = []result{
		target("pages/s, of the loader's", ratio(func(f *figures) float64 { return f.PagesPerSecond }), atLeast, targetSpeed),
		target("CPU per page, of the loader's", ratio(func(f *figures) float64 { return f.CPUSeconds }), atMost, targetCPU),
		target("queue requests per page", s.PerPage.Queue, atMost, targetQueue),
		target("blob puts per page", s.PerPage.Puts, atMost, targetPuts),
		target("KV write units per page", s.PerPage.KVWrites, atMost, targetKVWrites),
	}
}

func target(name string, value float64, b bound, t float64) result {
	r := result{Name: name, Value: value, Bound: b, Target: t}
	switch b {
	case atLeast:
		r.OK = value >= t
	case atMost:
		r.OK = value <= t
	}
	return r
}

// medians takes the median of each figure.
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

// median is the middle one, or the mean of the two in the middle. There is at least one.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func (r *report) writeJSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(r)
}

// writeText prints a table with a column per side.
func (r *report) writeText(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d hosts, %d pages; medians over rounds: %d; CPUs, shared with the server: %d\n\n", r.Web, r.Hosts, r.Pages, r.Rounds, r.CPUs)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, cell func(*side) string) {
		cells := []string{name}
		for i := range r.Sides {
			cells = append(cells, cell(&r.Sides[i]))
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t")+"\t")
	}
	row("", func(s *side) string { return s.Name })
	row("pages/s", func(s *side) string { return fmt.Sprintf("%.0f", s.Median.PagesPerSecond) })
	row("least to most", func(s *side) string { return s.spread() })
	row("CPU s per 1,000 pages", func(s *side) string { return fmt.Sprintf("%.2f", s.Median.CPUPer1000) })
	row("the server's", func(s *side) string {
		return fmt.Sprintf("%.2f", s.Median.Server.CPUSeconds*1000/float64(r.Pages))
	})
	row("peak RSS MiB", func(s *side) string { return mebibytes(s.Median.PeakBytes) })
	row("WARC MiB", func(s *side) string { return mebibytes(s.Median.WARCBytes) })
	row("all stored MiB", func(s *side) string { return mebibytes(s.Median.StoredBytes) })
	crawls := func(name, format string, value func(*side) float64) {
		row(name, func(s *side) string {
			if s.Partitions == 0 {
				return ""
			}
			return fmt.Sprintf(format, value(s))
		})
	}
	crawls("s from last request to end", "%.2f", func(s *side) float64 { return s.Median.Tail })
	crawls("commits", "%.0f", func(s *side) float64 { return float64(s.Median.Commits) })
	crawls("blob gets per page", "%.4f", func(s *side) float64 { return s.PerPage.Gets })
	crawls("KV read units per page", "%.4f", func(s *side) float64 { return s.PerPage.KVReads })
	crawls("$ per million pages", "%.3f", func(s *side) float64 { return s.Cost.Total })
	crawls("queue", "%.4f", func(s *side) float64 { return s.Cost.Queue })
	crawls("KV", "%.4f", func(s *side) float64 { return s.Cost.KV })
	crawls("blob", "%.4f", func(s *side) float64 { return s.Cost.Blob })
	crawls("CPU and calls", "%.3f", func(s *side) float64 { return s.Cost.Functions })
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	r.writeResults(w)
	_, err := fmt.Fprintf(w, "\nprices: %s\n", r.Prices)
	return err
}

// writeResults prints each crawl's figures beside their targets.
func (r *report) writeResults(w io.Writer) {
	for i := range r.Sides {
		s := &r.Sides[i]
		for _, x := range s.Results {
			word := "MISS"
			if x.OK {
				word = "ok"
			}
			fmt.Fprintf(w, "%-9s %-30s %.4f  %-8s %-6g %s\n", s.Name, x.Name, x.Value, x.Bound, x.Target, word)
		}
	}
}

// spread says how far apart the rounds are.
func (s *side) spread() string {
	least, most := s.Rounds[0].PagesPerSecond, s.Rounds[0].PagesPerSecond
	for _, f := range s.Rounds {
		least, most = min(least, f.PagesPerSecond), max(most, f.PagesPerSecond)
	}
	return fmt.Sprintf("%.0f–%.0f", least, most)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.0f", float64(n)/(1<<20)) }

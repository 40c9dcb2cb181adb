package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// A report is what all phases gave.
type report struct {
	Docs   string   `json:"docs"`
	Files  int      `json:"files"` // copied, linked to or not
	URLs   int      `json:"urls"`  // reached by links
	Phases []*phase `json:"phases"`
	OK     bool     `json:"ok"`
}

// A phase is one run of the crawler and what was found of it.
type phase struct {
	Name           string      `json:"name"`
	Pages          int         `json:"pages"` // URLs asked for
	Seconds        float64     `json:"seconds"`
	PagesPerSecond float64     `json:"pages_per_second"`
	Requests       int         `json:"requests"` // by the server's log, robots.txt included
	Statuses       map[int]int `json:"statuses"` // of them
	Received       int64       `json:"received_bytes"`
	Sent           int64       `json:"sent_bytes"`   // by the server's log
	Stored         int64       `json:"stored_bytes"` // in WARC files
	Checks         []check     `json:"checks"`
}

func (p *phase) wrong() (n int) {
	for i := range p.Checks {
		n += len(p.Checks[i].Wrong)
	}
	return n
}

// maxWrong is how much of what is wrong is told of a check.
const maxWrong = 20

// write tells what was found.
func (p *phase) write(w io.Writer) {
	for i := range p.Checks {
		c := &p.Checks[i]
		fmt.Fprintf(w, "  %-9s %s\n", c.Name, c.Fact)
		for n, what := range c.Wrong {
			if n == maxWrong {
				fmt.Fprintf(w, "    WRONG and %d more\n", len(c.Wrong)-n)
				break
			}
			fmt.Fprintf(w, "    WRONG %s\n", what)
		}
	}
}

func (r *report) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// writeText prints a table of the phases.
func (r *report) writeText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "phase\tpages\tseconds\tpages/s\trequests\t200\t304\tothers\treceived\tstored\t")
	for _, p := range r.Phases {
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.0f\t%d\t%d\t%d\t%d\t%s\t%s\t\n", p.Name, p.Pages, p.Seconds, p.PagesPerSecond, p.Requests,
			p.Statuses[200], p.Statuses[304], p.Requests-p.Statuses[200]-p.Statuses[304], size(p.Received), size(p.Stored))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, p := range r.Phases[1:] {
		if first := r.Phases[0]; first.Stored > 0 {
			fmt.Fprintf(out, "%s stored %.2f %% of what the first crawl did\n", p.Name, 100*float64(p.Stored)/float64(first.Stored))
		}
	}
	_, err := fmt.Fprintln(out, map[bool]string{true: "all is as it should be", false: "this is not as it should be"}[r.OK])
	return err
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

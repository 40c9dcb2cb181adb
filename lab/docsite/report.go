package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// A report is what all phases gave.
type report struct {
	Docs   string     `json:"docs"`
	Files  int        `json:"files"` // copied, linked to or not
	URLs   int        `json:"urls"`  // reached by links
	Phases []*phase   `json:"phases"`
	Search *searching `json:"search"`
	OK     bool       `json:"ok"`
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

// faults counts what is wrong.
func faults(checks []check) (n int) {
	for i := range checks {
		n += len(checks[i].Wrong)
	}
	return n
}

// maxWrong is how much of what is wrong is told of a check.
const maxWrong = 20

// writeChecks tells what was found, and verbose what was not, though not that it is wrong.
func writeChecks(w io.Writer, checks []check, verbose bool) {
	for i := range checks {
		c := &checks[i]
		fmt.Fprintf(w, "  %-9s %s\n", c.Name, c.Fact)
		for n, what := range c.Wrong {
			if n == maxWrong {
				fmt.Fprintf(w, "    WRONG and %d more\n", len(c.Wrong)-n)
				break
			}
			fmt.Fprintf(w, "    WRONG %s\n", what)
		}
		if verbose {
			for _, what := range c.missed {
				fmt.Fprintf(w, "    missed: %s\n", what)
			}
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
	if r.Search != nil {
		if err := r.Search.writeText(out); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, map[bool]string{true: "all is as it should be", false: "this is not as it should be"}[r.OK])
	return err
}

// writeText prints a table of what was looked for, by language.
func (x *searching) writeText(out io.Writer) error {
	fmt.Fprintf(out, "\n%d documents indexed and ranked in %.1f s, %s; asked in %.1f s\n", x.Documents, x.Indexing, size(x.Bytes), x.Seconds)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "language\tpages\ttitles\tfirst\tin ten\tMRR\tas phrases\tfirst\town words\tfound alone\tphrases\tfound\t")
	for _, f := range x.Sought {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%.3f\t%d\t%s\t%d\t%s\t%d\t%s\t\n", f.Group, f.Pages, f.Titles.Asked, percent(f.Titles.First, f.Titles.Asked), percent(f.Titles.Ten, f.Titles.Asked), f.Titles.mrr(),
			f.Quoted.Asked, percent(f.Quoted.First, f.Quoted.Asked), f.Words.Asked, percent(f.Words.First, f.Words.Asked), f.Phrases.Asked, percent(f.Phrases.Found, f.Phrases.Asked))
	}
	return w.Flush()
}

func percent(some, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*float64(some)/float64(n))
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

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/ledger"
)

// summary is what a run ends with. Totals are of the whole crawl, the figures of the
// second group of this run.
type summary struct {
	Crawl   string            `json:"crawl"`
	Data    string            `json:"data"`
	Archive string            `json:"archive,omitempty"` // folder of WARC files; empty if it is not kept
	Index   string            `json:"index,omitempty"`   // CDXJ file of all pages
	End     engine.End        `json:"end"`
	Reason  string            `json:"reason"` // in words
	Status  exit              `json:"status"`
	Totals  blobschema.Totals `json:"totals"`
	Resume  string            `json:"resume,omitempty"` // the command that goes on

	Pages          int64         `json:"run_pages"`
	Seconds        float64       `json:"run_seconds"`
	PagesPerSecond float64       `json:"run_pages_per_second"`
	CPUSeconds     float64       `json:"run_cpu_seconds"` // of this process, on this machine
	Calls          ledger.Counts `json:"run_calls"`
	Cost           ledger.Bill   `json:"cost_per_million_pages"` // dollars, at the price list's prices
	Prices         string        `json:"price_list"`

	Seeds     []seedOutcome    `json:"seeds,omitempty"`     // what came of them, where nothing could be fetched
	Requested []requestOutcome `json:"requested,omitempty"` // what came of what recrawl was given
	idle      bool             // there was nothing to do
}

// seedOutcome is what came of a seed.
type seedOutcome struct {
	URL     string             `json:"url"`
	Outcome blobschema.Outcome `json:"outcome"`
	Status  uint16             `json:"status,omitempty"`
	Detail  string             `json:"detail,omitempty"`
}

func (s *seedOutcome) String() string {
	t := s.URL + ": " + s.Outcome.String()
	if s.Status != 0 {
		t += fmt.Sprintf(" %d", s.Status)
	}
	if s.Detail != "" {
		t += " (" + s.Detail + ")"
	}
	return t
}

// measure fills in what this run did and cost.
func (s *summary) measure(calls ledger.Counts, pages int64, took, cpu time.Duration) error {
	prices, err := ledger.DefaultPrices()
	if err != nil {
		return err
	}
	s.Pages, s.Seconds, s.CPUSeconds, s.Calls = pages, took.Seconds(), cpu.Seconds(), calls
	if s.Seconds > 0 {
		s.PagesPerSecond = float64(pages) / s.Seconds
	}
	s.Cost = prices.PerMillion(calls, pages, s.CPUSeconds)
	s.Prices = fmt.Sprintf("%s, %s", prices.Name, prices.Date)
	return nil
}

// fewPages is how many pages a run needs at least for its cost to mean something.
const fewPages = 1000

// text is the summary for people.
func (s *summary) text() string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-11s%s\n", name, fmt.Sprintf(format, args...))
	}
	t := &s.Totals
	fmt.Fprintf(&b, "%s\n", s.Reason)
	s.requested(&b)
	if s.idle {
		row("go on", "%s", s.Resume)
		row("read it", "%s", exportCommand(s.Data))
		return b.String()
	}
	if s.Requested != nil { // what was asked for on purpose does not count as pages of the run
		row("pages", "%s; this run took %s", count(t.Pages), span(s.Seconds))
	} else {
		row("pages", "%s; this run %s in %s, %.1f/s", count(t.Pages), count(s.Pages), span(s.Seconds), s.PagesPerSecond)
	}
	row("outcomes", "%s", or(kinds(t.Outcomes), "none"))
	row("hosts", "%s; together they were left alone for %s out of politeness", count(t.Hosts), span(float64(t.WaitMillis)/1000))
	row("duplicates", "%s to URLs known already; %s out of scope", plural(t.Duplicates, "link"), count(t.OutOfScope))
	if left := leftOut(&blobschema.Totals{Trapped: t.Trapped, Capped: t.Capped}); left != "" {
		row("left out", "%s", left)
	}
	if t.Revisits > 0 {
		row("revisits", "%s whose payload was stored already", plural(t.Revisits, "answer"))
	}
	row("bytes", "%s received, %s stored; %s", size(t.Bytes), size(t.Stored), plural(t.Retries, "retried request"))
	if waiting := t.Pending + t.Unexamined + t.Held; waiting > 0 {
		row("left", "%s", plural(waiting, "URL"))
	}
	c := &s.Calls
	row("calls", "queue %s · KV %s read and %s write units · blob %s puts and %s gets",
		count(c.QueueRequests), count(c.KVReadUnits), count(c.KVWriteUnits), count(c.BlobPuts), count(c.BlobGets))
	s.cost(row)
	if s.Archive != "" {
		row("archive", "%s", s.Archive)
		row("read it", "%s", exportCommand(s.Data))
	}
	if s.Index != "" {
		row("index", "%s", s.Index)
	}
	if s.Resume != "" {
		row("go on", "%s", s.Resume)
	}
	return b.String()
}

func (s *summary) cost(row func(name, format string, args ...any)) {
	if s.Pages == 0 {
		return
	}
	c := &s.Cost
	row("cost", "%s per million pages at %s", dollars(c.Total), s.Prices)
	row("", "queue %s · KV %s · blob %s · functions %s (%.3g ms of this machine's CPU a page)",
		dollars(c.Queue), dollars(c.KV), dollars(c.Blob), dollars(c.Functions), s.CPUSeconds*1000/float64(s.Pages))
	note := ""
	if s.Pages < fewPages {
		note = "; of few pages, so mostly the price of beginning"
	}
	row("", "keeping them: %s a month on top%s", dollars(c.Retention), note)
}

func dollars(v float64) string {
	if v >= 100 {
		return "$" + count(int64(v+0.5))
	}
	return fmt.Sprintf("$%.2f", v)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// exportCommand is how to read the archive of a folder.
func exportCommand(dir string) string {
	cmd := "orbweaver export --format warc --out DIR"
	if dir != defaultData {
		cmd += " --data " + shellQuote(dir)
	}
	return cmd
}

// objectFile is where an object is: the bucket keeps each as a file of its name.
func objectFile(dir, name string) string {
	return filepath.Join(dir, "blobs", filepath.FromSlash(name))
}

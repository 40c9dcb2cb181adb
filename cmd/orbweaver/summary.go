package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/service"
)

// summary is what a run ends with. Totals are of the whole crawl, the figures of the
// second group of this run.
type summary struct {
	Crawl   string            `json:"crawl"`
	Data    string            `json:"data,omitempty"`
	Cloud   string            `json:"platform,omitempty"`
	Archive string            `json:"archive,omitempty"` // folder of WARC files; empty if there is none, or it is not kept
	Index   string            `json:"index,omitempty"`   // CDXJ file of all pages
	Search  *indexReport      `json:"search,omitempty"`  // what of it is searchable
	End     service.End       `json:"end"`
	Reason  string            `json:"reason"` // in words
	Status  exit              `json:"status"`
	Totals  blobschema.Totals `json:"totals"`
	Resume  string            `json:"resume,omitempty"` // the command that goes on

	Pages          int64         `json:"run_pages"`
	Seconds        float64       `json:"run_seconds"`
	PagesPerSecond float64       `json:"run_pages_per_second"`
	CPUSeconds     float64       `json:"run_cpu_seconds"` // of this process, on this machine
	Calls          ledger.Counts `json:"run_calls"`
	Cost           ledger.Bill   `json:"cost_per_million_pages"` // of pages fetched, each time they were; dollars, at the price list's prices
	Prices         string        `json:"price_list"`

	Seeds     []seedOutcome     `json:"seeds,omitempty"`     // what came of them, where nothing could be fetched
	Requested []requestOutcome  `json:"requested,omitempty"` // what came of what recrawl was given
	Results   map[string]int64  `json:"results,omitempty"`   // of those, how many have changed, are gone, and so on
	Latency   *latency          `json:"latency,omitempty"`   // of what was requested, in a cloud
	idle      bool              // there was nothing to do
	perRun    []string          // flags of this run that going on needs again
	perNew    []string          // those that another crawl needs again
	costs     bool              // show the costs of a crawl in a folder
	before    blobschema.Totals // when Calls were first counted: zero in a cloud
	place     *place            // nil for the folder Data
}

// at is where the crawl is.
func (s *summary) at() *place {
	if s.place != nil {
		return s.place
	}
	return folderPlace(s.Data)
}

// conclude says how a crawl ended that was not interrupted.
func (s *summary) conclude(limit int64) {
	t, pages := &s.Totals, plural(s.Totals.Pages, "page")
	s.Resume = s.at().command("crawl", s.perRun...)
	switch {
	case s.End == service.Halted:
		s.Status = exitStopped
		s.Reason = fmt.Sprintf("Stopped by 'orbweaver stop', with %s.", pages)
	case s.End == service.Limited:
		s.Reason = fmt.Sprintf("The limit of --max-pages %d is reached: %s.", limit, pages)
		more := fmt.Sprintf("--max-pages=%d", 2*limit)
		s.Resume = s.at().command("crawl", append([]string{more}, s.perRun...)...)
	case t.DeadMail > 0:
		s.Status, s.Resume = exitDeadLetters, ""
		s.Reason = fmt.Sprintf("Finished, but %s between partitions could not be read: %s. See '%s'.",
			plural(t.DeadMail, "message"), pages, s.at().command("dlq list"))
	case t.Pages == 0:
		s.Status, s.Resume = exitNothing, ""
		s.Reason = "Finished: nothing could be fetched."
	default:
		s.Resume = ""
		s.Reason = fmt.Sprintf("Finished: nothing is left to do, %s.", pages)
	}
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

// measure fills in what this run did. before are the totals when it began.
func (s *summary) measure(before *blobschema.Totals, took time.Duration) {
	s.Pages, s.Seconds = s.Totals.Pages-before.Pages, took.Seconds()
	if s.Seconds > 0 {
		s.PagesPerSecond = float64(s.Pages) / s.Seconds
	}
}

// price fills in calls and their cost.
func (s *summary) price(calls ledger.Counts, cpu time.Duration) error {
	prices, err := ledger.DefaultPrices()
	if err != nil {
		return err
	}
	s.Calls, s.CPUSeconds = calls, cpu.Seconds()
	s.Cost = prices.PerMillion(calls, s.fetched(), s.CPUSeconds)
	s.Prices = fmt.Sprintf("%s, %s", prices.Name, prices.Date)
	return nil
}

// fetched counts the pages that Calls brought, each time they did.
func (s *summary) fetched() int64 { return captures(&s.Totals) - captures(&s.before) }

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
		switch {
		case s.Status == exitNothing:
			row("try again", "%s", s.Resume)
		case s.End == service.Finished:
			row("more URLs", "%s", s.Resume)
			row("refetch", "%s", s.at().command("recrawl", append(s.perRun, "URL...")...))
			row("start over", "%s", s.at().command("crawl", append(s.perNew, "--new", "URL...")...))
		default:
			row("go on", "%s", s.Resume)
		}
		if s.Archive != "" {
			row("read it", "%s", exportCommand(s.at()))
		}
		return b.String()
	}
	if s.place != nil && s.Requested == nil {
		row("pages", "%s; %s of them in the %s that it was followed", count(t.Pages), count(s.Pages), span(s.Seconds))
	} else if s.Requested != nil { // what was asked for on purpose does not count as pages of the run
		row("pages", "%s; this run took %s", count(t.Pages), span(s.Seconds))
	} else {
		row("pages", "%s; this run %s in %s, %.1f/s", count(t.Pages), count(s.Pages), span(s.Seconds), s.PagesPerSecond)
	}
	if n := recrawled(t); n > 0 {
		row("recrawled", "%s", plural(n, "further answer"))
	}
	row("outcomes", "%s", or(kinds(t.Outcomes), "none"))
	row("hosts", "%s%s", count(t.Hosts), s.politeness())
	row("duplicates", "%s to URLs known already; %s out of scope", plural(t.Duplicates, "link"), count(t.OutOfScope))
	if left := leftOut(&blobschema.Totals{Trapped: t.Trapped, Capped: t.Capped}); left != "" {
		row("left out", "%s", left)
	}
	if t.Again > 0 {
		row("looks", "%s at pages that may have changed; %s had", count(t.Again), count(t.Changed))
	}
	if t.Revisits > 0 {
		row("revisits", "%s whose payload was stored already", plural(t.Revisits, "answer"))
	}
	row("bytes", "%s received, %s stored; %s", size(t.Bytes), size(t.Stored), plural(t.Retries, "retried request"))
	if t.Connections > 0 {
		row("connected", "%s, for %.1f pages each", plural(t.Connections, "time"), float64(t.Pages)/float64(t.Connections))
	}
	if waiting := t.Pending + t.Unexamined + t.Held; waiting > 0 {
		row("left", "%s", plural(waiting, "URL"))
	}
	if s.Latency != nil {
		row("latency", "%s", s.Latency)
	}
	if s.place != nil || s.costs {
		s.bill(row)
	}
	if s.Archive != "" {
		row("archive", "%s", s.Archive)
		row("read it", "%s", exportCommand(s.at()))
	}
	if s.Index != "" {
		row("captures", "%s", s.Index)
	}
	if s.Search != nil {
		s.Search.rows(row)
		row("search it", "%s", s.at().command("search", "some words"))
	}
	if s.Resume != "" {
		row("go on", "%s", s.Resume)
	}
	return b.String()
}

// politeness says how many hosts, on average of the run, had URLs but were not yet due for a request.
// Nobody knows it of a cloud, which may have been idle for any time.
func (s *summary) politeness() string {
	waited := float64(s.Totals.WaitMillis-s.before.WaitMillis) / 1000
	if s.place != nil || s.Seconds <= 0 || waited < s.Seconds/20 {
		return ""
	}
	return fmt.Sprintf("; on average %.1f of them waited out of politeness", waited/s.Seconds)
}

// bill shows the calls and what they cost.
func (s *summary) bill(row func(name, format string, args ...any)) {
	n, c := &s.Calls, &s.Cost
	row("calls", "queue %s · KV %s read and %s write units · blob %s puts and %s gets",
		count(n.QueueRequests), count(n.KVReadUnits), count(n.KVWriteUnits), count(n.BlobPuts), count(n.BlobGets))
	if s.fetched() <= 0 {
		return
	}
	row("cost", "%s per million pages fetched at %s", dollars(c.Total), s.Prices)
	if s.place != nil {
		row("", "queue %s · KV %s · blob %s · functions %s (%s, %.4g GB-seconds)",
			dollars(c.Queue), dollars(c.KV), dollars(c.Blob), dollars(c.Functions), plural(n.Functions, "call"), gbSeconds(n))
		row("", "%s", notInCalls)
	} else { // what the functions would cost that this process was instead
		row("", "queue %s · KV %s · blob %s · functions %s (%.3g ms of this machine's CPU a page)",
			dollars(c.Queue), dollars(c.KV), dollars(c.Blob), dollars(c.Functions), s.CPUSeconds*1000/float64(s.fetched()))
	}
	note := ""
	if s.fetched() < fewPages {
		note = "; of few pages, so mostly the price of beginning"
	}
	row("", "keeping them: %s a month on top%s", dollars(c.Retention), note)
}

// notInCalls says what the calls that records tell of leave out.
const notInCalls = "as told by its records: without crashed steps, ticks of an idle crawl, polls that start functions, searches, and what commands read"

func gbSeconds(c *ledger.Counts) float64 { return float64(c.FunctionMBMillis) / 1024 / 1000 }

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

// exportCommand is how to read the archive at a place.
func exportCommand(p *place) string {
	return quotedWords(append([]string{"orbweaver", "export", "--format", "warc", "--out", "DIR"}, p.flags()...))
}

// objectFile is where an object is: the bucket keeps each as a file of its name.
func objectFile(dir, name string) string {
	return filepath.Join(dir, naming.ObjectsFolder, filepath.FromSlash(name))
}

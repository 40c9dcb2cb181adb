package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/service"
)

// summary ends a run. Totals are of the whole crawl; the figures of the second group are of this run,
// in a deployment of the whole crawl.
type summary struct {
	where
	Archive string            `json:"archive,omitempty"` // folder of WARC files
	Index   string            `json:"index,omitempty"`   // CDXJ file of all pages
	Search  *indexReport      `json:"search,omitempty"`
	End     service.End       `json:"end"`
	Reason  string            `json:"reason"` // in words
	Status  exit              `json:"status"`
	Totals  blobschema.Totals `json:"totals"`
	Resume  string            `json:"resume,omitempty"` // the command that goes on

	Pages          int64         `json:"run_pages"`
	Seconds        float64       `json:"run_seconds"`
	PagesPerSecond float64       `json:"run_pages_per_second"`
	CPUSeconds     float64       `json:"run_cpu_seconds"` // of this process
	Calls          ledger.Counts `json:"run_calls"`
	Cost           ledger.Bill   `json:"cost_per_million_pages"` // of fetches, in dollars at the price list's prices
	Prices         string        `json:"price_list"`

	Seeds     []seedOutcome    `json:"seeds,omitempty"`     // if nothing could be fetched
	Requested []requestOutcome `json:"requested,omitempty"` // of a recrawl
	Results   map[string]int64 `json:"results,omitempty"`   // of those: how many have changed, are gone, and so on
	Latency   *latency         `json:"latency,omitempty"`   // of those, in a deployment
	idle      bool             // there was nothing to do
	perRun    []string         // flags of this run that the next one needs again
	perNew    []string         // flags that a new crawl needs again
	costs     bool             // show the cost of a run in a folder
	before    blobschema.Totals
}

// conclude says how a crawl ended that was not interrupted.
func (s *summary) conclude(limit int64) {
	t, pages := &s.Totals, plural(s.Totals.Pages, "page")
	switch {
	case s.End == service.Halted:
		s.Status, s.Resume = exitStopped, s.at.command("crawl", s.perRun...)
		s.Reason = fmt.Sprintf("Stopped by 'orbweaver stop', with %s.", pages)
	case s.End == service.Limited:
		s.Reason = fmt.Sprintf("The limit of --max-pages %d is reached: %s.", limit, pages)
		s.Resume = s.at.command("crawl", append([]string{fmt.Sprintf("--max-pages=%d", 2*limit)}, s.perRun...)...)
	case t.DeadMail > 0:
		s.Status = exitDeadLetters
		s.Reason = fmt.Sprintf("Finished, but %s between partitions could not be read: %s. See '%s'.",
			plural(t.DeadMail, "message"), pages, s.at.command("dlq list"))
	case t.Pages == 0:
		s.Status, s.Reason = exitNothing, "Finished: nothing could be fetched."
	default:
		s.Reason = fmt.Sprintf("Finished: nothing is left to do, %s.", pages)
	}
}

// measure fills in what this run did since it began with the totals before.
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

// fetched counts the pages that Calls fetched.
func (s *summary) fetched() int64 { return captures(&s.Totals) - captures(&s.before) }

// fewPages is how many pages a run needs at least for its cost to mean something.
const fewPages = 1000

// text is the summary for people.
func (s *summary) text() string {
	out := &output{indent: "  ", width: len("  duplicates ")}
	out.line("%s", s.Reason)
	s.printRequested(out)
	if s.idle {
		s.whatNext(out)
		out.flush()
		return out.String()
	}
	t := &s.Totals
	took := span(s.Seconds)
	switch {
	case s.Requested != nil: // what was requested is not a page of the run
		out.row("pages", "%s; this run took %s", count(t.Pages), took)
	case s.at.inCloud():
		out.row("pages", "%s; %s of them in the %s that it was followed", count(t.Pages), count(s.Pages), took)
	default:
		out.row("pages", "%s; this run %s in %s, %.1f/s", count(t.Pages), count(s.Pages), took, s.PagesPerSecond)
	}
	out.row("outcomes", "%s", cmp.Or(kinds(t.Outcomes), "none"))
	out.row("hosts", "%s%s", count(t.Hosts), s.politeness())
	out.row("duplicates", "%s to URLs known already; %s out of scope", plural(t.Duplicates, "link"), count(t.OutOfScope))
	out.leftOut(0, t)
	out.refetches(t)
	out.row("bytes", "%s received, %s stored; %s", size(t.Bytes), size(t.Stored), plural(t.Retries, "retried request"))
	if t.Connections > 0 {
		out.row("connected", "%s, for %.1f pages each", plural(t.Connections, "time"), float64(t.Pages)/float64(t.Connections))
	}
	if waiting := t.Pending + t.Unexamined + t.Held; waiting > 0 {
		out.row("left", "%s", plural(waiting, "URL"))
	}
	if s.Latency != nil {
		out.row("latency", "%s", s.Latency)
	}
	if s.at.inCloud() || s.costs {
		s.bill(out)
	}
	s.archive(out)
	out.rowIf(s.Index != "", "captures", "%s", s.Index)
	if s.Search != nil {
		s.Search.print(out)
		out.row("search it", "%s", s.at.command("search", "some words"))
	}
	out.rowIf(s.Resume != "", "go on", "%s", s.Resume)
	out.flush()
	return out.String()
}

// whatNext says what can be done with a crawl that had nothing to do.
func (s *summary) whatNext(out *output) {
	switch {
	case s.Status == exitNothing:
		out.row("try again", "%s", s.Resume)
	case s.End == service.Finished:
		out.row("more URLs", "%s", s.Resume)
		out.row("refetch", "%s", s.at.command("recrawl", append(s.perRun, "URL...")...))
		out.row("start over", "%s", s.at.command("crawl", append(s.perNew, "--new", "URL...")...))
	default:
		out.row("go on", "%s", s.Resume)
	}
	s.archive(out)
}

// archive says where the pages are.
func (s *summary) archive(out *output) {
	if s.Archive == "" {
		return
	}
	out.rowIf(!s.idle, "archive", "%s", s.Archive)
	out.row("read it", "%s", s.at.command("export --format warc --out DIR"))
}

// politeness says how many hosts, on average of the run, had URLs but were not yet due for a request.
// Of a deployment, which may have been idle for any time, it is unknown.
func (s *summary) politeness() string {
	waited := float64(s.Totals.WaitMillis-s.before.WaitMillis) / 1000
	if s.at.inCloud() || s.Seconds <= 0 || waited < s.Seconds/20 {
		return ""
	}
	return fmt.Sprintf("; on average %.1f of them waited out of politeness", waited/s.Seconds)
}

// bill shows the calls and their cost.
func (s *summary) bill(out *output) {
	n, c := &s.Calls, &s.Cost
	out.calls("calls", n)
	if s.fetched() <= 0 {
		return
	}
	functions := fmt.Sprintf("%.3g ms of this machine's CPU a page", s.CPUSeconds*1000/float64(s.fetched())) // what functions would cost
	if s.at.inCloud() {
		functions = fmt.Sprintf("%s, %.4g GB-seconds", plural(n.Functions, "call"), gbSeconds(n))
	}
	out.row("cost", "%s per million pages fetched at %s", dollars(c.Total), s.Prices)
	out.row("", "queue %s · KV %s · blob %s · functions %s (%s)",
		dollars(c.Queue), dollars(c.KV), dollars(c.Blob), dollars(c.Functions), functions)
	out.rowIf(s.at.inCloud(), "", "%s", notInCalls)
	note := ""
	if s.fetched() < fewPages {
		note = "; of few pages, so mostly the price of beginning"
	}
	out.row("", "keeping them: %s a month on top%s", dollars(c.Retention), note)
}

// objectFile is the file of an object in a folder.
func objectFile(dir, name string) string {
	return filepath.Join(dir, naming.ObjectsFolder, filepath.FromSlash(name))
}

package main

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
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
	Resume  string            `json:"resume,omitempty"` // the command that resumes the crawl

	Pages          int64         `json:"run_pages"`
	Seconds        float64       `json:"run_seconds"`
	PagesPerSecond float64       `json:"run_pages_per_second"`
	CPUSeconds     float64       `json:"run_cpu_seconds"` // of this process
	Calls          ledger.Counts `json:"run_calls"`
	Cost           ledger.Bill   `json:"cost_per_million_pages"` // of fetches, in dollars at the price list's prices
	Prices         string        `json:"price_list"`

	Seeds     []urlOutcome     `json:"seeds,omitempty"`     // if nothing could be fetched
	Requested []requestOutcome `json:"requested,omitempty"` // of a recrawl
	Results   map[string]int64 `json:"results,omitempty"`   // of those: how many have changed, are gone, and so on
	idle      bool             // there was nothing to do
	allowed   []netip.Prefix   // networks that a new crawl has to be given again
	before    blobschema.Totals
}

// conclude says how a crawl ended that was not interrupted.
func (s *summary) conclude(limit int64) {
	t, pages := &s.Totals, plural(s.Totals.Pages, "page")
	switch {
	case s.End == service.Halted:
		s.Status, s.Resume = exitStopped, s.at.command("crawl")
		s.Reason = fmt.Sprintf("Stopped by 'orbweaver stop', with %s.", pages)
	case s.End == service.Limited:
		s.Reason = fmt.Sprintf("The limit of --max-pages %d is reached: %s.", limit, pages)
		s.Resume = s.at.command("crawl", fmt.Sprintf("--max-pages=%d", 2*limit))
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
func (s *summary) price(prices ledger.Prices, calls ledger.Counts, cpu time.Duration) {
	s.Calls, s.CPUSeconds = calls, cpu.Seconds()
	s.Cost = prices.PerMillion(calls, s.Fetched(), s.CPUSeconds)
	s.Prices = fmt.Sprintf("%s, %s", prices.Name, prices.Date)
}

// Revisited counts the captures that Totals.Pages leaves out.
func (s *summary) Revisited() int64 { return recrawled(&s.Totals) }

// Idle reports that there was nothing to do.
func (s *summary) Idle() bool { return s.idle }

// Left counts the URLs that are still to be fetched.
func (s *summary) Left() int64 { return s.Totals.Pending + s.Totals.Unexamined + s.Totals.Buffered }

// PerConnection is the number of pages of a connection.
func (s *summary) PerConnection() float64 {
	return float64(s.Totals.Pages) / float64(s.Totals.Connections)
}

// StartOver is the command line of a new crawl in place of this one.
func (s *summary) StartOver() string {
	var flags []string
	for _, p := range s.allowed {
		flags = append(flags, "--allow-net="+p.String())
	}
	return s.Command("crawl", append(flags, "--new", "URL...")...)
}

// Waited is how many hosts, on average of the run, had URLs but were not yet due for a request; 0 for
// few. Of a deployment, which may have been idle for any time, it is unknown.
func (s *summary) Waited() float64 {
	waited := float64(s.Totals.WaitMillis-s.before.WaitMillis) / 1000
	if s.Deployed() || s.Seconds <= 0 || waited < s.Seconds/20 {
		return 0
	}
	return waited / s.Seconds
}

// Fetched counts the pages that the calls paid for.
func (s *summary) Fetched() int64 { return captures(&s.Totals) - captures(&s.before) }

// Few reports that the run had too few pages for its cost to mean something.
func (s *summary) Few() bool { return s.Fetched() < 1000 }

// GBSeconds is the memory of functions times their duration.
func (s *summary) GBSeconds() float64 { return gbSeconds(&s.Calls) }

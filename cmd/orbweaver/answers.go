package main

import (
	"cmp"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
)

// answers collects what the steps of this process report of each URL: the last ones for the live view, and all of them for
// --verbose. It is safe for concurrent use.
type answers struct {
	verbose bool

	mu     sync.Mutex
	last   []urlAnswer // at most lastShown
	failed string      // the last request without an answer
	all    []urlAnswer // since the last call of take; empty without --verbose
}

// lastShown is how many URLs the live view shows.
const lastShown = 4

// urlAnswer is the answer of a URL, or why it is refused.
type urlAnswer struct {
	URL     string             `json:"url"`
	Outcome blobschema.Outcome `json:"outcome"`
	Status  uint16             `json:"status,omitempty"`
	Bytes   int64              `json:"bytes"` // received
	Seconds float64            `json:"seconds"`
	Why     string             `json:"why,omitempty"` // why there is no page
	Again   bool               `json:"again,omitempty"`
}

// String is a line for people: status or outcome, bytes, time and URL, and why there is no page.
func (a *urlAnswer) String() string {
	status := a.Outcome.String()
	if a.Status != 0 {
		status = strconv.Itoa(int(a.Status))
	}
	line := fmt.Sprintf("%-11s %8s %7s  %s", status, size(a.Bytes), millis(time.Duration(a.Seconds*float64(time.Second))), a.URL)
	if a.Why != "" {
		line += ": " + a.Why
	}
	if a.Again {
		line += " (retried later)"
	}
	return printable(line)
}

// add takes the report of a step.
func (as *answers) add(w crawl.Watched) {
	p := w.Page
	a := urlAnswer{
		URL: p.URL, Outcome: p.Outcome, Status: p.Status, Bytes: w.Bytes, Seconds: w.Took.Seconds(),
		Why: cmp.Or(p.Detail, reasons[p.Outcome]), Again: w.Again,
	}
	if p.Redirect != "" {
		a.Why = "redirects to " + p.Redirect
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	if a.Status == 0 && w.Took > 0 {
		as.failed = a.String()
	}
	as.last = append(as.last[max(0, len(as.last)-lastShown+1):], a)
	if as.verbose {
		as.all = append(as.all, a)
	}
}

// reasons are why URLs with these outcomes are refused, where their records give no detail.
var reasons = map[blobschema.Outcome]string{
	blobschema.OutcomeRobots:     "robots.txt forbids it",
	blobschema.OutcomeRobotsGone: "robots.txt could not be fetched",
}

// take adds the lines of the last URLs to the live view, and returns all reports since the last call.
func (as *answers) take(to *pulse) (all []urlAnswer) {
	as.mu.Lock()
	defer as.mu.Unlock()
	for i := range as.last {
		to.Now = append(to.Now, as.last[i].String())
	}
	to.Failed = as.failed
	all, as.all = as.all, nil
	return all
}

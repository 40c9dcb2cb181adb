package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/service"
)

// figures are the progress of a running crawl: totals since it was created, rates of this run.
type figures struct {
	Seconds        float64          `json:"seconds"`             // since this run began
	Pages          int64            `json:"pages"`               // fetched, each counted once
	Recrawled      int64            `json:"recrawled,omitempty"` // further answers, of recrawls and revisits
	PagesPerSecond float64          `json:"pages_per_second"`    // smoothed
	HostsActive    int              `json:"hosts_active"`        // with a request under way; unknown in a cloud
	Paused         bool             `json:"paused,omitempty"`
	Waiting        string           `json:"waiting,omitempty"`            // why nothing happens, in words
	AtWork         *int             `json:"partitions_at_work,omitempty"` // in a cloud
	Requested      int              `json:"requested,omitempty"`          // URLs that recrawl waits for, and how many have an outcome
	Answered       int              `json:"answered,omitempty"`
	HostsKnown     int64            `json:"hosts_known"`
	Queue          int64            `json:"queue"` // URLs known and not settled
	Bytes          int64            `json:"bytes"` // received
	Outcomes       map[string]int64 `json:"outcomes,omitempty"`
	Retries        int64            `json:"retries"`         // requests that failed and are retried later
	Limit          string           `json:"limit,omitempty"` // the flag whose limit comes first
	SecondsLeft    float64          `json:"seconds_left,omitempty"`

	pulse `json:"-"`
	Title string `json:"-"`
	Most  int64  `json:"-"` // pages, by --max-pages; 0 for no limit
}

// pulse is what happens now, for the live view.
type pulse struct {
	Graph  string   // pages in each part of the last minute; "" for no page
	Peak   float64  // pages per second in the best part
	Now    []string // the URLs that were answered or refused last
	Failed string   // the last request without an answer; "" for none
}

// progress returns the templates of a crawl's progress.
func (f *figures) progress() (block, line string, seconds float64, key string) {
	return "crawl-block", "crawl-line", f.Seconds, ""
}

// Errors counts the requests that got no page.
func (f *figures) Errors() string {
	good := []string{blobschema.OutcomeOK.String(), blobschema.OutcomeUnchanged.String(), blobschema.OutcomeRedirect.String()}
	return dots(kinds(f.Outcomes, good...), some(f.Retries, "", "retried"))
}

// Rate is the number of pages, and how many there are a second.
func (f *figures) Rate() string {
	s := count(f.Pages)
	if f.Most > 0 {
		s += " of " + count(f.Most)
	}
	return s + fmt.Sprintf(" · %.1f/s", f.PagesPerSecond)
}

// Full reports whether the page limit is reached.
func (f *figures) Full() bool { return f.Most > 0 && f.Pages >= f.Most }

// Drained is the time in seconds after which the queue is empty at the present rate; 0 if it is unknown or short.
func (f *figures) Drained() float64 {
	left := float64(f.Queue) / f.PagesPerSecond
	if f.Full() || f.Limit != "" || f.Waiting != "" || f.PagesPerSecond <= 0 || left < 1 {
		return 0
	}
	return left
}

// The time constants of the smoothed rate. In a cloud pages become visible with their commits, many at a
// time.
const (
	rateMemory      = 5 * time.Second
	cloudRateMemory = 90 * time.Second
)

// farAhead is the longest time left that is shown, in seconds: a year.
const farAhead = 365 * 24 * 3600

// meter derives figures from snapshots. It belongs to one goroutine.
type meter struct {
	start    time.Time
	deadline time.Time // of --max-time; zero for none
	before   blobschema.Totals
	memory   time.Duration

	last         time.Time
	news         time.Time // when a page came last
	pages        int64     // at last
	done, passed float64   // pages and seconds, weighted by age
	graph        graph
}

// graph counts pages in parts of the last minute. A part is used again for each later minute.
type graph struct {
	pages [20]int64
	part  int64 // number of the last part since the beginning
}

// add adds pages that came until a time since the beginning.
func (g *graph) add(at time.Duration, pages int64) {
	n := int64(len(g.pages))
	part := int64(at / (time.Minute / time.Duration(n)))
	for g.part = max(g.part, part-n); g.part < part; {
		g.part++
		g.pages[g.part%n] = 0
	}
	g.pages[g.part%n] += pages
}

// draw returns one character a part, the oldest first, and the pages per second of the best part. A part without a page
// is a space. Without any page the line is empty.
func (g *graph) draw() (line string, peak float64) {
	most, n := slices.Max(g.pages[:]), int64(len(g.pages))
	if most == 0 {
		return "", 0
	}
	blocks := []rune(" ▁▂▃▄▅▆▇█")
	var b strings.Builder
	for i := max(g.part-n+1, 0); i <= g.part; i++ {
		b.WriteRune(blocks[(g.pages[i%n]*int64(len(blocks)-1)+most-1)/most])
	}
	return b.String(), float64(most*n) / 60
}

// newMeter returns a meter for a run that begins with the totals of earlier ones.
func newMeter(start time.Time, maxTime time.Duration, before blobschema.Totals) *meter {
	m := &meter{start: start, last: start, news: start, before: before, memory: rateMemory, pages: captures(&before)}
	if maxTime > 0 {
		m.deadline = start.Add(maxTime)
	}
	return m
}

// read returns the figures of a snapshot. Both sums of the rate decay alike, so the rate is right from the
// first second on.
func (m *meter) read(now time.Time, s *service.Snapshot) figures {
	t := &s.Totals
	if captures(t) < captures(&m.before) {
		t = &m.before // steps that are still reading their state know of nothing
	}
	pages := captures(t)
	if dt := now.Sub(m.last).Seconds(); dt > 0 {
		w := math.Exp(-dt / m.memory.Seconds())
		m.done = m.done*w + float64(max(pages-m.pages, 0))
		m.graph.add(now.Sub(m.start), max(pages-m.pages, 0))
		m.passed = m.passed*w + dt
		if pages > m.pages {
			m.news = now
		}
		m.last, m.pages = now, pages
	}
	f := figures{
		Seconds: now.Sub(m.start).Seconds(), Pages: t.Pages, Recrawled: recrawled(t), HostsActive: s.Active, HostsKnown: t.Hosts,
		Queue: t.Pending + t.Unexamined, Bytes: t.Bytes, Outcomes: t.Outcomes, Retries: t.Retries,
	}
	if m.passed > 0 {
		f.PagesPerSecond = m.done / m.passed
	}
	f.Graph, f.Peak = m.graph.draw()
	f.Peak = max(f.Peak, f.PagesPerSecond) // of a part that is not over
	more := int64(-1)
	if limit := s.Crawl.Settings.MaxPages; limit > 0 {
		f.Most = limit
		more = max(limit-t.Pages, 0)
	}
	m.limit(&f, now, more)
	f.Waiting = m.waiting(now, s)
	return f
}

// quiet is the time without progress after which the view shows the reason.
const quiet = 2 * time.Second

// waiting returns the reason why no page arrives; "" while pages arrive.
func (m *meter) waiting(now time.Time, s *service.Snapshot) string {
	r := &s.Rest
	left := r.Until.Sub(now)
	switch {
	case now.Sub(m.news) < quiet:
		return ""
	case s.Active > 0:
		return fmt.Sprintf("waiting for %s", plural(s.Active, "answer"))
	case r.Keys == 0 || left <= 0:
		return ""
	}
	silent := "do not answer"
	if r.Silent == 1 {
		silent = "does not answer"
	}
	why := []string{
		some(r.Silent, "host", silent), some(r.Failed, "host", "failed or asked for a pause"),
		some(r.Keys-r.Silent-r.Failed, "host", "may not be requested sooner"),
	}
	why = slices.DeleteFunc(why, func(s string) bool { return s == "" })
	return fmt.Sprintf("waiting %s: %s", span(left.Seconds()), strings.Join(why, ", "))
}

// captures counts the pages that were fetched, including revisited pages, which do not count against the
// limit, and unchanged ones.
func captures(t *blobschema.Totals) int64 {
	return t.Outcomes[blobschema.OutcomeOK.String()] + t.Outcomes[blobschema.OutcomeUnchanged.String()]
}

// recrawled counts the captures that Totals.Pages leaves out: those of requests by recrawl, and of revisits.
func recrawled(t *blobschema.Totals) int64 { return max(captures(t)-t.Pages-t.Requisites, 0) }

// limit finds the limit that will be reached first. more is the number of pages that --max-pages
// leaves, or -1 without that limit.
func (m *meter) limit(f *figures, now time.Time, more int64) {
	if !m.deadline.IsZero() {
		f.Limit, f.SecondsLeft = "max-time", max(m.deadline.Sub(now).Seconds(), 0)
	}
	// In an outage the rate falls to 0. Then the mean of this run predicts the time left.
	rate := f.PagesPerSecond
	if f.Seconds > 0 {
		rate = max(rate, float64(m.pages-captures(&m.before))/f.Seconds)
	}
	if left := float64(more) / rate; more > 0 && left < farAhead && (f.Limit == "" || left < f.SecondsLeft) {
		f.Limit, f.SecondsLeft = "max-pages", left
	}
}

package frontier

import (
	"container/heap"
	"fmt"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/page"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Bounds on robots.txt (RFC 9309).
const (
	robotsLifetime = 24 * time.Hour // section 2.4
	robotsHops     = 5              // section 2.3.1.2
)

// Task is one request to make. It ends with Done.
type Task struct {
	Request page.Request
	Flags   blobschema.QueuedFlags
	host    *host
	item    *item // nil for a robots.txt
	scheme  int
}

// IsZero reports whether t is no task.
func (t Task) IsZero() bool { return t.host == nil }

// Host is the politeness key the task belongs to.
func (t Task) Host() string { return t.host.name }

// Fingerprint is that of the URL, 0 for a robots.txt.
func (t Task) Fingerprint() uint64 {
	if t.item == nil {
		return 0
	}
	return t.item.fp
}

// Refusal is a URL that was settled without a request, or given up with its host.
type Refusal struct {
	URL        weburl.URL
	Generation uint32
	Depth      uint16
	Attempts   uint8
	Outcome    blobschema.Outcome
	Detail     string
}

// Refusals returns what was refused since the last call.
func (f *Frontier) Refusals() []Refusal {
	r := f.refusals
	f.refusals = nil
	return r
}

// Next returns the best request that may be made now, if there is one. The host is
// busy until Done.
func (f *Frontier) Next(now time.Time) (Task, bool) {
	for len(f.timers) > 0 && !f.timers[0].at.After(now) {
		h := heap.Pop(&f.timers).(*host)
		f.counts.WaitMillis += now.Sub(h.since).Milliseconds()
		h.place = idle
		f.settleHost(h, now)
	}
	for len(f.ready) > 0 {
		h := heap.Pop(&f.ready).(*host)
		h.place = idle
		if t, ok := f.take(h, now); ok {
			h.place = busy
			h.slot.asked++
			f.counts.Asked++
			return t, true
		}
		f.settleHost(h, now)
	}
	return Task{}, false
}

// NextAt is when Next may have something that it has not now; zero when only a
// new URL or the end of a task can change that.
func (f *Frontier) NextAt() time.Time {
	if len(f.timers) == 0 {
		return time.Time{}
	}
	return f.timers[0].at
}

// settleHost puts a host that is not busy into the queue it belongs in.
func (f *Frontier) settleHost(h *host, now time.Time) {
	switch h.place {
	case busy, ready:
		return // ready hosts keep their turn
	case waiting:
		heap.Remove(&f.timers, h.index)
		h.place = idle
	}
	h.promote(now)
	if h.pending() == 0 {
		return
	}
	f.turn++
	h.turn = f.turn
	if at := h.readyAt(); at.After(now) {
		h.place, h.at, h.since = waiting, at, now
		heap.Push(&f.timers, h)
		return
	}
	h.place = ready
	h.rank = f.cfg.Policy.HostRank(h.view())
	heap.Push(&f.ready, h)
}

// take makes the next task of a host that stands ready. URLs that robots.txt
// forbids are settled on the way; false means nothing is left to ask now.
func (f *Frontier) take(h *host, now time.Time) (Task, bool) {
	h.promote(now)
	if h.pace.ReadyAt().After(now) {
		return Task{}, false
	}
	for len(h.queue) > 0 {
		it := h.queue[0]
		scheme := schemeIndex(it.url)
		rb := &h.robots[scheme]
		if rb.retry.After(now) {
			return Task{}, false
		}
		if rb.rules == nil || !rb.until.After(now) {
			return f.robotsTask(h, it.url, scheme, now)
		}
		heap.Pop(&h.queue)
		if ok, rule := rb.rules.Allowed(it.url.RequestURI()); !ok {
			f.refuse(it, refusalFor(rb.rules), reason(rb.rules, rule))
			continue
		}
		it.asked = true
		h.pace.Start(now, f.delay(h, scheme))
		f.touchHost(h)
		return Task{
			Request: page.Request{URL: it.url, Host: h.name, Depth: it.depth, Generation: it.gen, Attempt: it.attempts},
			Flags:   it.flags, host: h, item: it, scheme: scheme,
		}, true
	}
	return Task{}, false
}

// reason says in words why robots.txt refuses a URL.
func reason(r *polite.Robots, rule polite.Rule) string {
	if rule.Line > 0 {
		return fmt.Sprintf("robots.txt line %d: %s", rule.Line, rule.Text)
	}
	return r.Reason()
}

func refusalFor(r *polite.Robots) blobschema.Outcome {
	if r.Unreachable() {
		return blobschema.OutcomeRobotsGone
	}
	return blobschema.OutcomeRobots
}

func (f *Frontier) refuse(it *item, o blobschema.Outcome, detail string) {
	f.refusals = append(f.refusals, Refusal{URL: it.url, Generation: it.gen, Depth: it.depth, Attempts: it.attempts, Outcome: o, Detail: detail})
	f.settle(it, blobschema.Refused)
}

// delay is the pace of a host: the larger of what is configured and what its
// robots.txt asks for.
func (f *Frontier) delay(h *host, scheme int) time.Duration {
	return polite.EffectiveDelay(f.cfg.Delay, h.robots[scheme].rules)
}

func (f *Frontier) robotsTask(h *host, u weburl.URL, scheme int, now time.Time) (Task, bool) {
	rb := &h.robots[scheme]
	target := rb.next
	if target.IsZero() {
		var err error
		if target, err = u.Resolve("/robots.txt"); err != nil { // cannot be: u is canonical
			rb.rules, rb.until = polite.DenyAll("robots.txt has no URL"), now.Add(robotsLifetime)
			return Task{}, false
		}
	}
	h.pace.Start(now, f.delay(h, scheme))
	f.touchHost(h)
	return Task{
		Request: page.Request{URL: target, Host: h.name, Robots: true, Attempt: rb.attempts},
		host:    h, scheme: scheme,
	}, true
}

// Verdict says what Done made of an outcome.
type Verdict uint8

// The verdicts.
const (
	Final Verdict = iota // the URL is settled; keep the page record
	Again                // it will be tried again; keep nothing
)

// Done ends a task with its outcome. A URL is settled, or queued again when the
// failure may pass and attempts are left.
func (f *Frontier) Done(now time.Time, t Task, o *page.Outcome) Verdict {
	h := t.host
	h.place = idle
	h.slot.asked--
	f.counts.Asked--
	f.observe(h, t, o, now)
	var v Verdict
	if t.item == nil {
		v = f.robotsDone(now, t, o)
	} else {
		v = f.urlDone(now, t.item, o)
	}
	free := h.free
	h.free = false
	if !o.Started.IsZero() && !free {
		// The executor may have begun later than it was asked to, and a robots.txt may
		// just have asked for a slower pace.
		h.pace.Floor(o.Started, f.delay(h, t.scheme))
	}
	switch {
	case o.Page.Outcome.Answered():
		h.silent = 0
	case t.item != nil && t.Request.Attempt == 0 && polite.Silent(o.Page.Outcome):
		if h.silent++; f.cfg.Retry.GivenUp(h.silent) {
			f.giveUp(h, o)
		}
	}
	f.touchHost(h)
	f.settleHost(h, now)
	return v
}

func (f *Frontier) observe(h *host, t Task, o *page.Outcome, now time.Time) {
	h.pace.Done(now, o.Page.Outcome, o.Page.Status, o.RetryAfter, f.cfg.Retry.Backoff)
	h.requests++
	if !o.Page.Outcome.Answered() {
		h.failures++
	}
	if o.Response > 0 {
		h.pace.ObserveResponse(o.Response)
	}
	if !o.Reused && o.Connect > 0 {
		h.pace.ObserveConnection(o.Connect)
		h.served = 0
	}
	h.served++
	h.connected = o.Response > 0 && !o.Closed
	if o.Closed {
		h.pace.ObserveClosed(h.served)
	}
	if !h.connected || float64(h.served) >= h.visit() {
		h.served, h.connected = 0, false // its visit is over: the next host's turn
	}
}

func (f *Frontier) urlDone(now time.Time, it *item, o *page.Outcome) Verdict {
	it.asked = false
	again, after := false, time.Duration(0)
	switch {
	case o.Page.Outcome == blobschema.OutcomeAborted:
		again = true // ours, not the host's: it does not count as an attempt
	case o.Temporary:
		it.attempts++
		again, after = f.cfg.Retry.Next(o.Page.Outcome, o.Page.Status, it.attempts)
	}
	if again {
		if after > 0 {
			it.notBefore = now.Add(after).UnixMilli()
		}
		f.touch(it)
		it.host.push(it, now)
		return Again
	}
	o.Page.Attempts = it.attempts
	state := blobschema.Refused
	if o.Page.Outcome.Answered() {
		state = blobschema.Fetched
	}
	f.settle(it, state)
	return Final
}

func (f *Frontier) robotsDone(now time.Time, t Task, o *page.Outcome) Verdict {
	rb := &t.host.robots[t.scheme]
	out, status := o.Page.Outcome, int(o.Page.Status)
	if out == blobschema.OutcomeAborted {
		return Again
	}
	if out == blobschema.OutcomeRedirect && rb.hops < robotsHops {
		if next, err := weburl.Parse(o.Page.Redirect); err == nil {
			rb.next, rb.hops = next, rb.hops+1
			return Final
		}
	}
	var rules *polite.Robots
	switch {
	case out.Answered():
		rules = polite.ForStatus(status, o.Body, f.cfg.Token)
	default:
		rules = polite.DenyAll(strings.TrimSuffix("robots.txt: "+out.String()+": "+o.Page.Detail, ": "))
	}
	if rules.Unreachable() && o.Temporary {
		rb.attempts++
		if again, after := f.cfg.Retry.Next(out, o.Page.Status, rb.attempts); again {
			rb.retry = now.Add(after)
			return Again
		}
	}
	*rb = robots{rules: rules, until: now.Add(robotsLifetime)}
	h := t.host
	if rules.Unreachable() {
		f.refuseAll(h, blobschema.OutcomeRobotsGone, rules.Reason(), func(it *item) bool { return schemeIndex(it.url) == t.scheme })
	}
	if _, slower := rules.CrawlDelay(); !slower && !o.Started.IsZero() {
		// Once a day a host is asked for two things at once: its rules, and a page. A host that
		// asks for a pace has it from its robots.txt on.
		h.pace.Next = o.Started
		t.host.free = true
	}
	return Final
}

// giveUp refuses all that is pending of a host that has stopped answering.
func (f *Frontier) giveUp(h *host, o *page.Outcome) {
	f.refuseAll(h, o.Page.Outcome, "the host stopped answering", func(*item) bool { return true })
	h.silent = 0
}

// refuseAll refuses those of a host's waiting URLs that a test picks.
func (f *Frontier) refuseAll(h *host, o blobschema.Outcome, detail string, picks func(*item) bool) {
	for _, q := range []*itemHeap{&h.queue, &h.later} {
		kept := (*q)[:0]
		for _, it := range *q {
			if picks(it) {
				f.refuse(it, o, detail)
			} else {
				kept = append(kept, it)
			}
		}
		clear((*q)[len(kept):])
		*q = kept
	}
	heap.Init(&h.queue)
	heap.Init(laterView{&h.later})
}

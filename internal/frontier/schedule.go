package frontier

import (
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/page"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Task is one request to make. It ends with Done.
type Task struct {
	Request page.Request
	Flags   blobschema.QueuedFlags
	former  blobschema.Origin
	lane    *lane
	item    uint32
	fp      uint64 // 0: not for an item
	page    bool   // for an item
	urgent  bool   // asked for on purpose
	rank    uint32 // of the item
}

// IsZero reports whether t is no task.
func (t Task) IsZero() bool { return t.lane == nil }

// Host is the unit the task belongs to.
func (t Task) Host() string { return t.lane.site.unit.key }

// Fingerprint is that of the URL, 0 for a robots.txt or a name to be resolved.
func (t Task) Fingerprint() uint64 { return t.fp }

// Rank is that of the URL, 0 for what is none.
func (t Task) Rank() uint32 { return t.rank }

// Former is where the page record of the URL's generation before is; zero for none.
func (t Task) Former() blobschema.Origin { return t.former }

// Urgent reports whether the task is for a URL that was asked for on purpose.
func (t Task) Urgent() bool { return t.urgent }

// Refusal is a URL that was settled without a request, or given up with its site.
type Refusal struct {
	URL        weburl.URL
	Generation uint32
	Depth      uint16
	Attempts   uint8
	Outcome    blobschema.Outcome
	Detail     string
	Former     blobschema.Origin // as Task.Former
}

// Refusals returns what was refused since the last call.
func (f *Frontier) Refusals() []Refusal {
	r := f.refusals
	f.refusals = nil
	return r
}

// Next returns the best request that may be made now, if there is one. The unit is
// busy until Done. With urgentOnly it is one that a URL asked for on purpose needs.
func (f *Frontier) Next(now time.Time, urgentOnly bool) (Task, bool) {
	for len(f.timers) > 0 && !f.timers[0].at.After(now) {
		u := heap.Pop(&f.timers).(*unit)
		f.counts.WaitMillis += now.Sub(u.since).Milliseconds()
		u.place = idle
		f.settleUnit(u, now)
	}
	if urgentOnly {
		f.awaitUrgent(now)
	}
	for len(f.ready) > 0 && (f.ready[0].urgent || !urgentOnly) {
		u := heap.Pop(&f.ready).(*unit)
		u.place = idle
		if t, ok := f.take(u, now, urgentOnly); ok {
			u.place = busy
			f.virtual = max(f.virtual, u.start)
			u.slot.asked++
			f.counts.Asked++
			return t, true
		}
		f.settleUnit(u, now)
	}
	return Task{}, false
}

// awaitUrgent looks at the ready units that have no urgent URL to ask for now, but perhaps
// one to be tried again: nobody takes them while only urgent ones are taken. Until the
// first is due such a unit waits.
func (f *Frontier) awaitUrgent(now time.Time) {
	if f.counts.Urgent == 0 {
		return
	}
	var hidden []*unit
	for _, u := range f.ready {
		if !u.urgent && u.slot.urgent > 0 && len(u.blocked)+len(u.later) > 0 {
			hidden = append(hidden, u)
		}
	}
	for _, u := range hidden {
		if f.settleUnit(u, now); u.urgent {
			continue
		}
		if at := u.nextTry(); !at.IsZero() {
			heap.Remove(&f.ready, u.index)
			u.place, u.at, u.since = waiting, at, now
			heap.Push(&f.timers, u)
		}
	}
}

// NextAt is when Next may have something that it has not now; zero when only a
// new URL or the end of a task can change that.
func (f *Frontier) NextAt() time.Time {
	if len(f.timers) == 0 {
		return time.Time{}
	}
	return f.timers[0].at
}

// take makes the next task of a unit that stood ready. URLs that robots.txt
// forbids are settled on the way; false means nothing is left to ask now.
func (f *Frontier) take(u *unit, now time.Time, urgentOnly bool) (Task, bool) {
	u.promote(now)
	if u.readyAt().After(now) {
		return Task{}, false
	}
	s := u.slot
	for len(u.lanes) > 0 {
		l := u.lanes[0]
		i := l.queue[0]
		it := &s.items[i]
		if urgentOnly && it.rank != 0 {
			return Task{}, false
		}
		url := s.url(it)
		if f.cfg.Resolve && !u.placed {
			return f.resolveTask(u, l, url), true
		}
		if l.rules == nil || !l.until.After(now) {
			return f.robotsTask(l, url, now)
		}
		l.pop()
		u.enlist(l, now)
		if ok, rule := l.rules.Allowed(url.RequestURI()); !ok {
			f.refuse(s, i, url, refusalFor(l.rules), reason(l.rules, rule))
			continue
		}
		it.bits |= isAsked
		u.pace.Start(now, f.delay(l))
		f.touchUnit(u)
		return Task{
			Request: page.Request{
				URL: url, Host: u.key, Addr: u.addr, Depth: it.depth, Generation: it.gen, Attempt: it.attempts,
				Sitemap: it.flags&blobschema.FlagSitemap != 0,
			},
			Flags: it.flags, former: s.rareOf(i).former, lane: l, item: i, fp: it.fp, page: true, urgent: it.rank == 0, rank: it.rank,
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

// refuse settles an item that is in no queue any more.
func (f *Frontier) refuse(s *slot, i uint32, url weburl.URL, o blobschema.Outcome, detail string) {
	it := &s.items[i]
	f.refusals = append(f.refusals, Refusal{
		URL: url, Generation: it.gen, Depth: it.depth, Attempts: it.attempts, Outcome: o, Detail: detail, Former: s.rareOf(i).former,
	})
	u := s.lanes[it.lane].site.unit
	f.settle(s, i, blobschema.Refused)
	u.observed = true // its figures have changed, though it was not asked
	f.touchUnit(u)
}

// delay is the pace behind a request to a site: the larger of what is configured and
// what its robots.txt asks for.
func (f *Frontier) delay(l *lane) time.Duration { return polite.EffectiveDelay(f.cfg.Delay, l.rules) }

// Verdict says what Done made of an outcome.
type Verdict uint8

// The verdicts.
const (
	Final Verdict = iota // the URL is settled; keep the page record
	Again                // it will be tried again; keep nothing
)

// Done ends a task with its outcome. A URL is settled, or queued again when the
// failure may pass and attempts are left. There is no page record of a name that was
// to be resolved, whatever the verdict: see Placements and Refusals.
func (f *Frontier) Done(now time.Time, t Task, o *page.Outcome) Verdict {
	l := t.lane
	st, u := l.site, l.site.unit
	u.slot.asked--
	f.counts.Asked--
	defer func() {
		u.place = idle // not before: what is added meanwhile must not give it a turn
		f.settleUnit(u, now)
	}()
	if t.Request.Resolve {
		return f.resolved(now, t, o)
	}
	f.observe(u, o, now)
	var v Verdict
	if t.page {
		v = f.urlDone(now, t, o)
	} else {
		v = f.robotsDone(now, t, o)
	}
	free := u.free
	u.free = false
	if !o.Started.IsZero() && !free {
		// The executor may have begun later than it was asked to, and a robots.txt may
		// just have asked for a slower pace.
		u.pace.Floor(o.Started, f.delay(l))
	}
	switch {
	case o.Page.Outcome.Answered():
		st.silent = 0
	case t.page && t.Request.Attempt == 0 && polite.Silent(o.Page.Outcome):
		if st.silent++; f.cfg.Retry.GivenUp(st.silent) {
			f.giveUp(st, o)
		}
		f.touchSite(st)
	}
	f.touchUnit(u)
	return v
}

func (f *Frontier) observe(u *unit, o *page.Outcome, now time.Time) {
	u.observed = true
	u.pace.Done(now, o.Page.Outcome, o.Page.Status, o.RetryAfter, f.cfg.Retry.Backoff)
	u.requests++
	if !o.Page.Outcome.Answered() {
		u.failures++
	}
	if o.Response > 0 {
		u.pace.ObserveResponse(o.Response)
	}
	if !o.Reused && o.Connect > 0 {
		u.pace.ObserveConnection(o.Connect)
		u.served = 0
	}
	u.served++
	u.connected = o.Response > 0 && !o.Closed
	if o.Closed {
		u.pace.ObserveClosed(u.served)
	}
	if !u.connected || float64(u.served) >= u.visit() {
		u.served, u.connected = 0, false // its visit is over: the next unit's turn
	}
}

func (f *Frontier) urlDone(now time.Time, t Task, o *page.Outcome) Verdict {
	st := t.lane.site
	u, s := st.unit, st.unit.slot
	it := &s.items[t.item]
	again, after := false, time.Duration(0)
	switch {
	case o.Page.Outcome == blobschema.OutcomeAborted:
		again = true // ours, not the host's: it does not count as an attempt
	case o.Temporary:
		it.attempts++
		again, after = f.cfg.Retry.Next(o.Page.Outcome, o.Page.Status, it.attempts)
	}
	w, wished := s.wishes[t.item]
	if again {
		it.bits &^= isAsked
		delete(s.wishes, t.item)
		if wished {
			f.grant(s, t.item, w)
		}
		s.setRare(t.item, func(r *rare) {
			r.notBefore = 0
			if after > 0 {
				r.notBefore = now.Add(after).UnixMilli()
			}
		})
		f.touch(s, t.item)
		u.add(t.item, now)
		return Again
	}
	o.Page.Attempts = it.attempts
	state := blobschema.Refused
	if o.Page.Outcome.Answered() {
		state = blobschema.Fetched
	}
	f.settle(s, t.item, state)
	if wished {
		q := blobschema.Queued{Host: u.key, Rank: w.rank, Generation: w.gen, Depth: w.depth, Flags: w.flags}
		f.add(now, s, u, t.Request.URL, t.fp, &q, fromOutside)
	}
	return Final
}

// grant gives an item whose request brought nothing what is wished for it. The next
// generation need not be another one if nobody knows of it yet: there is nothing to
// tell from.
func (f *Frontier) grant(s *slot, i uint32, w wish) {
	it := &s.items[i]
	f.countUrgent(s, it.rank, -1)
	if w.firm {
		it.gen, it.depth, it.attempts, it.flags, it.rank = w.gen, w.depth, 0, w.flags, w.rank
	} else {
		it.rank, it.depth, it.flags = min(it.rank, w.rank), min(it.depth, w.depth), it.flags|w.flags
	}
	f.countUrgent(s, it.rank, 1)
}

// giveUp refuses all that is pending of a site that has stopped answering.
func (f *Frontier) giveUp(st *site, o *page.Outcome) {
	for i := range st.lanes {
		f.refuseAll(&st.lanes[i], o.Page.Outcome, "the host stopped answering")
	}
	st.silent = 0
}

// refuseAll refuses all that waits in a lane, or belongs there later.
func (f *Frontier) refuseAll(l *lane, o blobschema.Outcome, detail string) {
	s := l.site.unit.slot
	for _, i := range f.empty(l) {
		f.refuse(s, i, s.url(&s.items[i]), o, detail)
	}
}

// empty takes all items of a lane out of their queues, best first.
func (f *Frontier) empty(l *lane) []uint32 {
	if !l.listed {
		return nil
	}
	u := l.site.unit
	s := u.slot
	u.delist(l)
	items := l.queue
	l.queue = nil
	u.later = slices.DeleteFunc(u.later, func(d delayed) bool {
		if s.items[d.item].lane != l.number {
			return false
		}
		items = append(items, d.item)
		return true
	})
	heap.Init(&u.later)
	slices.SortFunc(items, func(a, b uint32) int {
		if s.less(a, b) {
			return -1
		}
		return 1
	})
	return items
}

package frontier

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Task is one request to make. It ends with Done.
type Task struct {
	Request actor.Request
	Flags   blobschema.QueuedFlags
	Topic   uint8             // of the URL, or of that which a robots.txt is asked for
	Change  blobschema.Change // what is known of how often the URL changes
	former  blobschema.Origin
	lane    *lane
	item    uint32
	fp      uint64 // 0: not for an item
	page    bool   // for an item
	urgent  bool   // asked for on purpose
	rank    uint32 // of the item
	look    bool
	hint    hint
}

// Host is the unit the task belongs to.
func (t Task) Host() string { return t.lane.door.site.unit.key }

// Fingerprint is that of the URL, 0 for a robots.txt or a name to be resolved.
func (t Task) Fingerprint() uint64 { return t.fp }

// FlagsOf returns the flags that the URL of a task under way has by now: mail may have told more since it began.
func (f *Frontier) FlagsOf(t Task) blobschema.QueuedFlags {
	if t.page {
		return t.lane.part.items[t.item].flags
	}
	return t.Flags
}

// Rank is that of the URL, 0 for what is none.
func (t Task) Rank() uint32 { return t.rank }

// Former is where the page record of the URL's generation before is; zero for none.
func (t Task) Former() blobschema.Origin { return t.former }

// Urgent reports whether the task is for a URL that was asked for on purpose.
func (t Task) Urgent() bool { return t.urgent }

// Look reports whether the task is for a URL that was settled with an answer, and may have
// changed since.
func (t Task) Look() bool { return t.look }

// Refusal is a URL that was settled without a request, or given up with its site.
type Refusal struct {
	URL        weburl.URL
	Generation uint32
	Depth      uint16
	Attempts   uint8
	Outcome    blobschema.Outcome
	Detail     string
	Former     blobschema.Origin // as Task.Former
	Topic      uint8
}

// Refusals returns what was refused since the last call.
func (f *Frontier) Refusals() []Refusal {
	r := f.refusals
	f.refusals = nil
	return r
}

// Next returns the best request that may be made now, if there is one. The unit is
// busy until Done, or, if it allows several requests at once, until Begun. With urgentOnly it is
// one that a URL needs that is asked for on purpose, or waits for a look.
func (f *Frontier) Next(now time.Time, urgentOnly bool) (Task, bool) {
	f.seen = now
	for len(f.timers) > 0 && !f.timers[0].at.After(now) {
		u := heap.Pop(&f.timers).(*unit)
		f.counts.WaitMillis += now.Sub(u.since).Milliseconds()
		u.place = idle
		f.pauses[u.pause]--
		f.settleUnit(u, now)
	}
	if urgentOnly {
		f.awaitUrgent(now)
	}
	for {
		st := f.ready.next(now, urgentOnly)
		if st == nil {
			return Task{}, false
		}
		u := st.unit
		f.unqueue(u)
		if t, ok := f.take(st, now, urgentOnly); ok {
			f.ready.revisit = st.urgent == looked
			f.virtual = max(f.virtual, u.start)
			t.lane.part.asked++
			f.counts.Asked++
			u.asked++
			u.place, u.starting = busy, t.lane
			return t, true
		}
		f.settleUnit(u, now)
	}
}

// Begun says that the request of a task starts now: from now on its unit may be asked for
// something else too, if it allows that. Before, nobody could say when its pace would.
func (f *Frontier) Begun(now time.Time, t Task) {
	d := t.lane.door
	u := d.site.unit
	if u.starting != t.lane || u.allowed == 1 {
		return
	}
	u.starting = nil
	u.pace.Floor(now, f.delay(d))
	if u.asked < u.allowed {
		u.place = idle
		f.settleUnit(u, now)
	}
}

// awaitUrgent looks at the ready units that have no urgent URL to ask for now, but perhaps
// one to be tried again: nobody takes them while only urgent ones are taken. Until the
// first is due such a unit waits.
func (f *Frontier) awaitUrgent(now time.Time) {
	if f.counts.Urgent == 0 && !f.cfg.Looks {
		return
	}
	var hidden []*unit
	for _, h := range f.ready.heaps {
		for _, st := range h {
			if u := st.unit; len(u.blocked)+len(u.later) > 0 && !u.hasUrgent() && (f.cfg.Looks || u.slot.hasUrgent()) {
				hidden = append(hidden, u)
			}
		}
	}
	for _, u := range hidden {
		if u.place != ready { // it has several stands
			continue
		}
		u.looked = false // what is found has no turn now
		if f.settleUnit(u, now); u.hasUrgent() || u.place != ready {
			continue
		}
		if at := u.nextTry(); !at.IsZero() {
			f.unqueue(u)
			f.await(u, at, now)
		}
	}
}

// hasUrgent reports whether any part of the slot has URLs that are asked for on purpose.
func (s *slot) hasUrgent() bool {
	for p := range s.parts {
		if p.urgent > 0 {
			return true
		}
	}
	return false
}

// hasUrgent reports whether a URL that may be asked for is asked for on purpose, or waits for a look.
func (u *unit) hasUrgent() bool {
	return slices.ContainsFunc(u.stands, func(st *stand) bool { return st.urgency() != found })
}

// NextAt is when Next may have something that it has not now; zero when only a
// new URL or the end of a task can change that.
func (f *Frontier) NextAt() time.Time {
	if len(f.timers) == 0 {
		return time.Time{}
	}
	return f.timers[0].at
}

// take makes the next task of a stand that stood ready. URLs that robots.txt
// forbids are settled on the way; false means nothing is left to ask now.
func (f *Frontier) take(st *stand, now time.Time, urgentOnly bool) (Task, bool) {
	u := st.unit
	u.promote(now)
	if u.readyAt().After(now) {
		return Task{}, false
	}
	for len(st.lanes) > 0 {
		l := st.lanes[0]
		p, d, i := l.part, l.door, l.queue[0]
		it := &p.items[i]
		if urgentOnly && l.stand.urgency() == found {
			return Task{}, false
		}
		if !urgentOnly && u.looked && f.isLook(it) && it.attempts == 0 && u.hasFound() && f.standBack(l, now) {
			continue
		}
		if !urgentOnly && it.attempts > 0 && !f.isLook(it) && f.yield(l, now) {
			continue
		}
		url := p.url(it)
		if f.cfg.Resolve && !u.placed {
			return f.resolveTask(u, l, url), true
		}
		if d.rules == nil || !d.until.After(now) {
			return f.robotsTask(l, url, now)
		}
		l.pop()
		if ok, rule := d.rules.Allowed(url.RequestURI()); !ok {
			u.enlist(l, now)
			f.refuse(p, i, url, d.rules.Refusal(), reason(d.rules, rule))
			continue
		}
		l.asked = true
		u.delist(l)
		u.looked = f.isLook(it)
		it.bits |= isAsked
		u.pace.Start(now, f.delay(d))
		f.touchUnit(u)
		var next time.Time
		if u.waits() || len(l.queue) > 0 {
			next = u.pace.ReadyAt()
		}
		return Task{
			Request: actor.Request{
				URL: url, Host: u.key, Addr: u.addr, Next: next, Depth: it.depth, Generation: it.gen, Attempt: it.attempts,
				Sitemap: it.flags&blobschema.FlagSitemap != 0,
			},
			Flags: it.flags, Topic: l.topic, Change: p.rareOf(i).change,
			former: p.rareOf(i).former, lane: l, item: i, fp: it.fp, page: true, urgent: it.rank == 0, rank: it.rank,
			look: f.isLook(it), hint: p.rareOf(i).hint,
		}, true
	}
	return Task{}, false
}

// yield makes the URL at the top of a lane, which has failed before, wait for two delays if its host has
// not answered since the last failure, and has other URLs: the next one tells whether the host fails, or single pages.
func (f *Frontier) yield(l *lane, now time.Time) bool {
	u := l.door.site.unit
	if u.pace.Failures == 0 || !u.hasUntried() {
		return false
	}
	u.putBack(l, now, max(2*u.delay, 2*u.pace.Delay, time.Millisecond))
	return true
}

// reason says in words why robots.txt refuses a URL.
func reason(r *polite.Robots, rule polite.Rule) string {
	if rule.Line > 0 {
		return fmt.Sprintf("robots.txt line %d: %s", rule.Line, rule.Text)
	}
	return r.Reason()
}

// refuse settles an item that is in no queue any more.
func (f *Frontier) refuse(p *part, i uint32, url weburl.URL, o blobschema.Outcome, detail string) {
	it := &p.items[i]
	l := p.lanes[it.lane]
	f.refusals = append(f.refusals, Refusal{
		URL: url, Generation: it.gen, Depth: it.depth, Attempts: it.attempts, Outcome: o, Detail: detail, Former: p.rareOf(i).former,
		Topic: l.topic,
	})
	u := l.door.site.unit
	f.settle(p, i, blobschema.Refused)
	u.observed = true // its figures have changed, though it was not asked
	f.touchUnit(u)
}

// delay is the pace behind a request to a site: the larger of what is configured and
// what its robots.txt asks for.
func (f *Frontier) delay(d *door) time.Duration {
	return polite.EffectiveDelay(d.site.unit.delay, d.rules)
}

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
func (f *Frontier) Done(now time.Time, t Task, o *actor.Outcome) Verdict {
	l, d := t.lane, t.lane.door
	st, u := d.site, d.site.unit
	f.seen = now
	l.part.asked--
	u.asked--
	f.counts.Asked--
	if u.starting == l {
		u.starting = nil
	}
	f.unqueue(u)
	u.place = busy // not before the end: what is added meanwhile must not give it a turn
	defer func() {
		if u.starting == nil {
			u.place = idle
			f.settleUnit(u, now)
		}
	}()
	if t.Request.Resolve {
		return f.resolved(now, t, o)
	}
	f.observe(u, t, o, now)
	var v Verdict
	if t.page {
		l.asked = false
		u.enlist(l, now)
		v = f.urlDone(now, t, o)
	} else {
		v = f.robotsDone(now, t, o)
	}
	free := u.free
	u.free = false
	if !o.Started.IsZero() && !free {
		// The executor may have begun later than it was asked to, and a robots.txt may
		// just have asked for a slower pace.
		u.pace.Floor(o.Started, f.delay(d))
	}
	switch {
	case o.Page.Outcome.Answered():
		st.silent = 0
	case t.page && t.Request.Attempt == 0 && polite.Silent(o.Page.Outcome) && o.Page.Status == 0: // not one whose body is slow
		if st.silent++; f.cfg.Retry.GivenUp(st.silent) {
			f.giveUp(now, st, o)
		}
		f.touchSite(st)
	}
	f.touchUnit(u)
	return v
}

func (f *Frontier) observe(u *unit, t Task, o *actor.Outcome, now time.Time) {
	u.observed, u.silent = true, polite.Silent(o.Page.Outcome)
	end := polite.End{Outcome: o.Page.Outcome, Status: o.Page.Status, RetryAfter: o.RetryAfter}
	if t.page {
		end.Attempt = t.Request.Attempt
	}
	u.pace.Done(now, end, f.cfg.Retry.Backoff)
	u.requests++
	if !o.Page.Outcome.Answered() {
		u.failures++
	}
	if o.Response > 0 {
		u.pace.ObserveResponse(o.Response)
		u.pace.ObserveProtocol(o.HTTP2)
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
	if !u.connected || float64(u.served) >= u.visit()*float64(u.allowed) {
		u.served, u.connected = 0, false // its visit is over: the next unit's turn
	}
}

func (f *Frontier) urlDone(now time.Time, t Task, o *actor.Outcome) Verdict {
	u, p := t.lane.door.site.unit, t.lane.part
	it := &p.items[t.item]
	again, after := false, time.Duration(0)
	switch {
	case o.Page.Outcome == blobschema.OutcomeAborted:
		again = true // ours, not the host's: it does not count as an attempt
	case o.Temporary:
		it.attempts++
		again, after = f.cfg.Retry.Next(o.Page.Outcome, o.Page.Status, it.attempts)
	}
	w, wished := p.wishes[t.item]
	if again {
		it.bits &^= isAsked
		delete(p.wishes, t.item)
		if wished {
			f.grant(p, t.item, w)
		}
		p.setRare(t.item, func(r *rare) {
			r.notBefore = 0
			if after > 0 {
				r.notBefore = now.Add(after).UnixMilli()
			}
		})
		f.touch(p, t.item)
		u.add(p, t.item, now)
		return Again
	}
	o.Page.Attempts = it.attempts
	state := blobschema.Refused
	if o.Page.Outcome.Answered() {
		state = blobschema.Fetched
	}
	was := *it
	f.settle(p, t.item, state)
	switch {
	case wished:
		q := blobschema.Queued{Host: u.key, Rank: w.rank, Generation: w.gen, Depth: w.depth, Flags: w.flags, Topic: w.topic, Change: t.Change}
		f.add(now, p, u, t.Request.URL, t.fp, &q, fromOutside)
	case f.cfg.Looks:
		f.lookAgain(now, t, o, was)
	}
	return Final
}

// grant gives an item whose request brought nothing what is wished for it. The next
// generation need not be another one if nobody knows of it yet: there is nothing to
// tell from.
func (f *Frontier) grant(p *part, i uint32, w wish) {
	it := &p.items[i]
	f.countUrgent(p, it.rank, -1)
	f.countLooks(p, it.rank, -1)
	if w.firm {
		it.gen, it.depth, it.attempts, it.flags, it.rank = w.gen, w.depth, 0, w.flags, w.rank
		f.setLane(p, it, f.relaned(p, it, w.topic))
	} else {
		it.rank, it.depth, it.flags = min(it.rank, w.rank), min(it.depth, w.depth), it.flags|w.flags
		f.setLane(p, it, f.relaned(p, it, min(it.topic, w.topic)))
	}
	f.countUrgent(p, it.rank, 1)
	f.countLooks(p, it.rank, 1)
}

// giveUp refuses all that is pending of a site that has stopped answering.
func (f *Frontier) giveUp(now time.Time, st *site, o *actor.Outcome) {
	for i := range st.doors {
		f.refuseAll(f.postpone(now, f.empty(&st.doors[i])), o.Page.Outcome, "the host stopped answering")
	}
	st.silent = 0
}

// refuseAll refuses items that are in no queue any more.
func (f *Frontier) refuseAll(items []spot, o blobschema.Outcome, detail string) {
	for _, w := range items {
		f.refuse(w.part, w.item, w.part.url(&w.part.items[w.item]), o, detail)
	}
}

// spot is where an item is.
type spot struct {
	part *part
	item uint32
}

func sortSpots(list []spot) {
	slices.SortFunc(list, func(a, b spot) int {
		x, y := &a.part.items[a.item], &b.part.items[b.item]
		return cmp.Or(cmp.Compare(x.rank, y.rank), cmp.Compare(x.seq, y.seq))
	})
}

// empty takes all items behind a door out of their queues, best first.
func (f *Frontier) empty(d *door) []spot {
	if len(d.lanes) == 0 {
		return nil
	}
	u := d.site.unit
	var items []spot
	for _, l := range d.lanes {
		u.delist(l)
		for _, i := range l.queue {
			items = append(items, spot{l.part, i})
		}
		l.queue = nil
	}
	u.later = slices.DeleteFunc(u.later, func(w delayed) bool {
		if w.part.lanes[w.part.items[w.item].lane].door != d {
			return false
		}
		items = append(items, spot{w.part, w.item})
		return true
	})
	u.later.init()
	sortSpots(items)
	return items
}

// emptyUnit takes all items of a unit out of their queues, best first.
func (f *Frontier) emptyUnit(u *unit) (items []spot) {
	for st := range u.sites {
		for i := range st.doors {
			items = append(items, f.empty(&st.doors[i])...)
		}
	}
	sortSpots(items)
	return items
}

// settleUnit puts a unit that is not busy into the queue it belongs in.
func (f *Frontier) settleUnit(u *unit, now time.Time) {
	if u.place == busy || u.slot.filling { // all units of a slot are settled when a part of it is loaded
		return
	}
	u.promote(now)
	if len(f.frozen) > 0 && f.frozen[u.slot.id] {
		return
	}
	switch u.place {
	case ready: // it keeps its turn
		if u.open() {
			f.stand(u)
			return
		}
		f.unqueue(u)
	case waiting:
		if u.waits() && u.at.Equal(u.readyAt()) && u.at.After(now) {
			return
		}
		f.unqueue(u)
	}
	if !u.waits() {
		return
	}
	f.turn++
	u.turn = f.turn
	if at := u.readyAt(); at.After(now) {
		f.await(u, at, now)
		return
	}
	if u.connected && u.requests == 1 && f.outranked(u) {
		u.served, u.connected = 0, false
	}
	if !u.connected { // else its visit goes on: the turn is the same
		u.start = u.domain.nextTurn(f.virtual)
	}
	u.place = ready
	f.stand(u)
}

// rank asks the policy what a visit to a stand, which has URLs, is worth now.
func (f *Frontier) rank(st *stand) {
	u := st.unit
	f.viewed[0] = st
	f.view = HostView{Pending: u.pending, Allowed: u.allowed, Pace: &u.pace, stands: f.viewed[:]}
	st.rank = f.cfg.Policy.HostRank(&f.view)
	st.ranked, st.top = u.pending, st.best()
}

// outranked reports whether a unit whose first answer is here is worth less than another one
// that is ready. Only that answer tells how long it takes; later ones change little, and
// are no reason to leave an open connection.
func (f *Frontier) outranked(u *unit) bool {
	for _, st := range u.stands {
		if len(st.lanes) == 0 {
			continue
		}
		f.rank(st)
		if q := *f.ready.heap(st); len(q) > 0 && q[0].rank > st.rank {
			return true
		}
	}
	return false
}

// stand puts the stands of a ready unit into the queues of their topics, and takes out those
// that have nothing to ask for.
func (f *Frontier) stand(u *unit) {
	for _, st := range u.stands {
		urgent := st.urgency()
		if st.urgent != urgent {
			f.ready.remove(st)
			st.urgent = urgent
		}
		queue := f.ready.heap(st)
		switch {
		case len(st.lanes) == 0:
			f.ready.remove(st)
		case st.index < 0:
			if !u.connected || st.ranked == 0 { // else its visit goes on
				f.rank(st)
			}
			heap.Push(queue, st)
		case u.pending > st.ranked+st.ranked/4 || st.best() < st.top: // a visit is worth more than it was
			f.rank(st)
			heap.Fix(queue, st.index)
		}
	}
}

// unqueue takes a unit out of the queue it is in, if any.
func (f *Frontier) unqueue(u *unit) {
	switch u.place {
	case waiting:
		heap.Remove(&f.timers, u.index)
		f.pauses[u.pause]--
	case ready:
		for _, st := range u.stands {
			f.ready.remove(st)
		}
	default:
		return
	}
	u.place = idle
}

// await puts an idle unit into the timers.
func (f *Frontier) await(u *unit, at, now time.Time) {
	u.place, u.at, u.since = waiting, at, now
	switch {
	case !u.pace.BackoffUntil.After(now):
		u.pause = paced
	case u.silent:
		u.pause = unanswered
	default:
		u.pause = backedOff
	}
	f.pauses[u.pause]++
	heap.Push(&f.timers, u)
}

// pause says why a unit is in the timers.
type pause uint8

const (
	paced      pause = iota // by its pace, or until a URL of it may be tried again
	backedOff               // it failed, or asked for a pause
	unanswered              // it did not answer the last request
	pauseKinds
)

// Rest is what the units wait for whose URLs may not be requested yet.
type Rest struct {
	Until  time.Time // when the first may be; zero if none waits
	Units  int       // that wait
	Failed int       // of them, those that failed or asked for a pause
	Silent int       // of them, those that did not answer
}

// Rest returns what is waited for, as of the last call that changed it.
func (f *Frontier) Rest() Rest {
	return Rest{Until: f.NextAt(), Units: len(f.timers), Failed: f.pauses[backedOff], Silent: f.pauses[unanswered]}
}

// Add adds what the units of another frontier wait for.
func (r *Rest) Add(o *Rest) {
	if o.Units > 0 && (r.Until.IsZero() || o.Until.Before(r.Until)) {
		r.Until = o.Until
	}
	r.Units, r.Failed, r.Silent = r.Units+o.Units, r.Failed+o.Failed, r.Silent+o.Silent
}

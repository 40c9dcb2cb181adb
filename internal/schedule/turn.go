package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/polite"
)

// Task is one request to make. It ends with Answered and Close.
type Task struct {
	Request actor.Request
	Flags   blobschema.QueuedFlags
	Topic   uint8             // of the URL, or of the one that needs the robots.txt
	Change  blobschema.Change // what is known of how often the URL changes
	former  blobschema.Origin
	lane    *lane
	item    uint32
	fp      uint64 // 0: not for an item
	page    bool   // for an item
	urgent  bool   // requested on purpose
	rank    uint32 // of the item
	revisit bool
	hint    hint
}

// Key is the politeness key of the request.
func (t *Task) Key() *Key { return t.lane.stand.key }

// Pool returns the pool of the URL.
func (t *Task) Pool() *Pool { return t.lane.pool }

// Host is the name of the politeness key.
func (t *Task) Host() string { return t.lane.origin.site.key.name }

// Fingerprint is that of the URL, 0 for a robots.txt or a name to resolve.
func (t *Task) Fingerprint() uint64 { return t.fp }

// FlagsNow returns the flags that the URL of a task under way has now: mail may have added some since it began.
func (t *Task) FlagsNow() blobschema.QueuedFlags {
	if t.page {
		return t.lane.pool.items[t.item].flags
	}
	return t.Flags
}

// Rank is that of the URL, 0 if the task is for none.
func (t *Task) Rank() uint32 { return t.rank }

// Former is where the page record of the URL's previous generation is; zero for none.
func (t *Task) Former() blobschema.Origin { return t.former }

// Urgent reports whether the task is for a URL that was requested on purpose.
func (t *Task) Urgent() bool { return t.urgent }

// Revisit reports whether the task is for a URL that was settled with an answer, and may have
// changed since.
func (t *Task) Revisit() bool { return t.revisit }

// Next returns the best request that may be made now, if there is one. Its key is
// busy until Close, or, if it allows several requests at once, until Begun. With urgentOnly it is
// one for a URL that is requested on purpose or due for a revisit.
func (s *Schedule) Next(now time.Time, urgentOnly bool) (Task, bool) {
	s.seen = now
	for len(s.timers) > 0 && !s.timers[0].at.After(now) {
		k := s.timers.pop()
		s.counts.WaitMillis += now.Sub(k.since).Milliseconds()
		k.place = idle
		s.pauses[k.pause]--
		s.enqueue(k, now)
	}
	if urgentOnly {
		s.awaitUrgent(now)
	}
	for {
		st := s.ready.next(now, urgentOnly)
		if st == nil {
			return Task{}, false
		}
		k := st.key
		s.dequeue(k)
		if t, ok := s.take(st, now, urgentOnly); ok {
			s.ready.revisit = st.urgent == revisit
			s.virtual = max(s.virtual, k.start)
			t.lane.pool.asked++
			s.counts.Asked++
			k.asked++
			k.place, k.starting = busy, t.lane
			return t, true
		}
		s.enqueue(k, now)
	}
}

// Begun says that the request of a task starts now. From now on its key may get another
// request, if it allows several at once; before, the time of that request was unknown.
func (s *Schedule) Begun(now time.Time, t Task) {
	d := t.lane.origin
	k := d.site.key
	if k.starting != t.lane || k.allowed == 1 {
		return
	}
	k.starting = nil
	k.pace.Floor(now, d.delay())
	if k.asked < k.allowed {
		k.place = idle
		s.enqueue(k, now)
	}
}

// awaitUrgent moves ready keys that have no urgent URL now, but perhaps one that waits for a
// time, to the timers until the first is due. Nobody takes them while only urgent URLs are taken.
func (s *Schedule) awaitUrgent(now time.Time) {
	if s.counts.Urgent == 0 && !s.cfg.Revisits {
		return
	}
	var hidden []*Key
	for _, h := range s.ready.heaps {
		for _, st := range h {
			if k := st.key; len(k.blocked)+len(k.later) > 0 && !k.hasUrgent() && (s.cfg.Revisits || k.group.urgent > 0) {
				hidden = append(hidden, k)
			}
		}
	}
	for _, k := range hidden {
		if k.place != ready { // it has several stands
			continue
		}
		k.revisited = false // new URLs have no turn now
		if s.enqueue(k, now); k.hasUrgent() || k.place != ready {
			continue
		}
		if at := k.nextTry(); !at.IsZero() {
			s.dequeue(k)
			s.await(k, at, now)
		}
	}
}

// hasUrgent reports whether a URL that may be requested is so on purpose, or due for a revisit.
func (k *Key) hasUrgent() bool {
	return slices.ContainsFunc(k.stands, func(st *stand) bool { return st.urgency() != found })
}

// NextAt is when Next may have something that it has not now; zero when only a
// new URL or the end of a task can change that.
func (s *Schedule) NextAt() time.Time {
	if len(s.timers) == 0 {
		return time.Time{}
	}
	return s.timers[0].at
}

// take makes the next task of a stand that was ready. It ends URLs that robots.txt
// forbids; false means that nothing is left to request now.
func (s *Schedule) take(st *stand, now time.Time, urgentOnly bool) (Task, bool) {
	k := st.key
	k.promote(now)
	if k.readyAt().After(now) {
		return Task{}, false
	}
	for len(st.lanes) > 0 {
		l := st.lanes[0]
		p, d, i := l.pool, l.origin, l.queue[0]
		it := &p.items[i]
		if urgentOnly && l.stand.urgency() == found {
			return Task{}, false
		}
		if !urgentOnly && k.revisited && k.isRevisit(it) && it.attempts == 0 && k.hasFound() && l.standBack(now) {
			continue
		}
		if !urgentOnly && it.attempts > 0 && !k.isRevisit(it) && l.yield(now) {
			continue
		}
		url := p.url(it)
		if s.cfg.Resolve && !k.placed {
			// The URLs stay in their queues.
			return Task{Request: actor.Request{URL: url, Host: k.name, Resolve: true, Attempt: k.resolves}, lane: l}, true
		}
		if d.rules == nil || !d.until.After(now) {
			return s.robotsTask(l, url, now)
		}
		l.pop()
		if ok, rule := d.rules.Allowed(url.RequestURI()); !ok {
			l.enlist(now)
			s.refuse(spot{p, i}, d.rules.Refusal(), reason(d.rules, rule))
			continue
		}
		l.asked = true
		l.delist()
		k.revisited = k.isRevisit(it)
		it.bits |= isAsked
		k.pace.Start(now, d.delay())
		s.touchKey(k)
		var next time.Time
		if k.waits() || len(l.queue) > 0 {
			next = k.pace.ReadyAt()
		}
		return Task{
			Request: actor.Request{
				URL: url, Host: k.name, Addr: k.addr, Next: next, Depth: it.depth, Generation: it.gen, Attempt: it.attempts,
				Sitemap: it.flags&blobschema.FlagSitemap != 0,
			},
			Flags: it.flags, Topic: l.topic, Change: p.rareOf(i).change,
			former: p.rareOf(i).former, lane: l, item: i, fp: it.fp, page: true, urgent: it.rank == 0, rank: it.rank,
			revisit: k.isRevisit(it), hint: p.rareOf(i).hint,
		}, true
	}
	return Task{}, false
}

// yield delays the best URL of a lane, which has failed before, by two delays if its key has
// not answered since the last failure and has other URLs. The next one tells whether the host fails, or single pages.
func (l *lane) yield(now time.Time) bool {
	k := l.stand.key
	if k.pace.Failures == 0 || !k.hasUntried() {
		return false
	}
	l.putBack(now, max(2*k.delay, 2*k.pace.Delay, time.Millisecond))
	return true
}

// reason says in words why robots.txt refuses a URL.
func reason(r *polite.Robots, rule polite.Rule) string {
	if rule.Line > 0 {
		return fmt.Sprintf("robots.txt line %d: %s", rule.Line, rule.Text)
	}
	return r.Reason()
}

// enqueue puts a key that is not busy into the queue it belongs in.
func (s *Schedule) enqueue(k *Key, now time.Time) {
	if k.place == busy || k.group.Filling { // Filled does it for all keys
		return
	}
	k.promote(now)
	if k.group.Frozen {
		return
	}
	switch k.place {
	case ready: // it keeps its turn
		if k.open() {
			s.stand(k)
			return
		}
		s.dequeue(k)
	case waiting:
		if k.waits() && k.at.Equal(k.readyAt()) && k.at.After(now) {
			return
		}
		s.dequeue(k)
	}
	if !k.waits() {
		return
	}
	s.turn++
	k.turn = s.turn
	if at := k.readyAt(); at.After(now) {
		s.await(k, at, now)
		return
	}
	if k.connected && k.requests == 1 && s.outranked(k) {
		k.served, k.connected = 0, false
	}
	if !k.connected { // else its visit goes on: the turn is the same
		k.start = k.domain.nextTurn(s.virtual)
	}
	k.place = ready
	s.stand(k)
}

// rank sets what a visit to a stand, which has URLs, is worth now by the policy.
func (s *Schedule) rank(st *stand) {
	k := st.key
	s.viewed[0] = st
	s.view = HostView{Pending: k.pending, Allowed: k.allowed, Pace: &k.pace, stands: s.viewed[:]}
	st.rank = s.cfg.Policy.HostRank(&s.view)
	st.ranked, st.top = k.pending, st.best()
}

// outranked reports whether a key that has answered once is worth less than another one
// that is ready. The first answer tells how long an answer takes; later ones change little, and
// are no reason to leave an open connection.
func (s *Schedule) outranked(k *Key) bool {
	for _, st := range k.stands {
		if len(st.lanes) == 0 {
			continue
		}
		s.rank(st)
		if q := *s.ready.heap(st); len(q) > 0 && q[0].rank > st.rank {
			return true
		}
	}
	return false
}

// stand puts the stands of a ready key into the queues of their topics, and takes out those
// that have no URL.
func (s *Schedule) stand(k *Key) {
	for _, st := range k.stands {
		urgent := st.urgency()
		if st.urgent != urgent {
			s.ready.remove(st)
			st.urgent = urgent
		}
		queue := s.ready.heap(st)
		switch {
		case len(st.lanes) == 0:
			s.ready.remove(st)
		case st.index < 0:
			if !k.connected || st.ranked == 0 { // else its visit goes on
				s.rank(st)
			}
			queue.push(st)
		case k.pending > st.ranked+st.ranked/4 || st.best() < st.top: // a visit is worth more than it was
			s.rank(st)
			queue.fix(st.index)
		}
	}
}

// dequeue takes a key out of the queue it is in, if any.
func (s *Schedule) dequeue(k *Key) {
	switch k.place {
	case waiting:
		s.timers.remove(k.index)
		s.pauses[k.pause]--
	case ready:
		for _, st := range k.stands {
			s.ready.remove(st)
		}
	default:
		return
	}
	k.place = idle
}

// await puts an idle key into the timers.
func (s *Schedule) await(k *Key, at, now time.Time) {
	k.place, k.at, k.since = waiting, at, now
	switch {
	case !k.pace.BackoffUntil.After(now):
		k.pause = paced
	case k.silent:
		k.pause = unanswered
	default:
		k.pause = backedOff
	}
	s.pauses[k.pause]++
	s.timers.push(k)
}

// pause says why a key is in the timers.
type pause uint8

const (
	paced      pause = iota // by its pace, or until the time of one of its URLs
	backedOff               // it failed, or asked for a pause
	unanswered              // it did not answer the last request
	pauseKinds
)

// Rest describes the keys whose URLs may not be requested yet.
type Rest struct {
	Until  time.Time // when the first may be; zero if none waits
	Units  int       // that wait
	Failed int       // of them, those that failed or asked for a pause
	Silent int       // of them, those that did not answer
}

// Rest describes the keys that wait, as of the last call that changed it.
func (s *Schedule) Rest() Rest {
	return Rest{Until: s.NextAt(), Units: len(s.timers), Failed: s.pauses[backedOff], Silent: s.pauses[unanswered]}
}

// Add adds the keys of another schedule.
func (r *Rest) Add(o *Rest) {
	if o.Units > 0 && (r.Until.IsZero() || o.Until.Before(r.Until)) {
		r.Until = o.Until
	}
	r.Units, r.Failed, r.Silent = r.Units+o.Units, r.Failed+o.Failed, r.Silent+o.Silent
}

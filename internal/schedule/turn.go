package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/polite"
)

// Task is one request to send. It ends with Answered and Close.
type Task struct {
	Request  actor.Request
	Flags    blobschema.QueuedFlags
	Topic    uint8             // of the URL, or of the URL that needs the robots.txt
	Change   blobschema.Change // belief about how often the URL changes
	previous blobschema.RecordRef
	lane     *lane
	item     uint32
	fp       uint64 // of the item; 0 if the task is for a robots.txt or a name
	page     bool   // the task is for an item
	urgent   bool   // somebody requested the URL, or it is a requisite
	rank     uint32 // of the item
	revisit  bool
	hint     hint
}

// Key returns the politeness key of the request.
func (t *Task) Key() *Key { return t.lane.topicQueue.key }

// Pool returns the pool of the URL.
func (t *Task) Pool() *Pool { return t.lane.pool }

// KeyName returns the name of the politeness key.
func (t *Task) KeyName() string { return t.lane.origin.site.key.name }

// Fingerprint returns the fingerprint of the URL; 0 for a robots.txt or a name to resolve.
func (t *Task) Fingerprint() uint64 { return t.fp }

// FlagsNow returns the present flags of the URL of a task under way: mail may have added some since it began.
func (t *Task) FlagsNow() blobschema.QueuedFlags {
	if t.page {
		return t.lane.pool.items[t.item].allFlags()
	}
	return t.Flags
}

// Rank returns the rank of the URL; 0 if the task is not for a URL.
func (t *Task) Rank() uint32 { return t.rank }

// Previous returns the reference to the page record of the URL's previous generation; zero for none.
func (t *Task) Previous() blobschema.RecordRef { return t.previous }

// Urgent reports whether somebody requested the URL of the task, or pages need it.
func (t *Task) Urgent() bool { return t.urgent }

// Revisit reports whether the task is a revisit: the URL had an answer, which may have changed.
func (t *Task) Revisit() bool { return t.revisit }

// Next returns the best request that is allowed now, if there is one. Its key is busy until Close,
// or until Begun if it allows several requests at once. With urgentOnly, Next returns only requests
// for urgent URLs, which somebody requested or pages need, and due revisits.
func (s *Schedule) Next(now time.Time, urgentOnly bool) (Task, bool) {
	s.seen = now
	s.tally.counts.WaitMillis += s.queues.wake(now)
	if urgentOnly && (s.tally.counts.Urgent > 0 || s.cfg.Revisits) {
		s.queues.awaitUrgent(now, s.cfg.Revisits)
	}
	for {
		st := s.queues.ready.next(now, urgentOnly)
		if st == nil {
			return Task{}, false
		}
		k := st.key
		s.queues.dequeue(k)
		if t, ok := s.take(st, now, urgentOnly); ok {
			s.queues.ready.revisit = st.urgent == revisit
			s.queues.virtual = max(s.queues.virtual, k.start)
			t.lane.pool.inFlight++
			s.tally.counts.InFlight++
			k.inFlight++
			k.state, k.starting = busy, t.lane
			return t, true
		}
		s.queues.enqueue(k, now)
	}
}

// Begun records that the request of a task starts now. From now on its key may get another request,
// if it allows several at once. Before, it may not, because the time of this request was unknown.
func (s *Schedule) Begun(now time.Time, t Task) {
	d := t.lane.origin
	k := d.site.key
	if k.starting != t.lane || k.allowed == 1 {
		return
	}
	k.starting = nil
	k.pace.Floor(now, d.delay())
	if k.inFlight < k.allowed {
		k.state = idle
		s.queues.enqueue(k, now)
	}
}

// hasUrgent reports whether a URL that may be requested now is urgent or a due revisit.
func (k *Key) hasUrgent() bool {
	return slices.ContainsFunc(k.topicQueues, func(st *topicQueue) bool { return st.urgency() != found })
}

// NextAt returns when time alone makes another request possible; zero if only a new URL or the end
// of a task can.
func (s *Schedule) NextAt() time.Time {
	if len(s.queues.timers) == 0 {
		return time.Time{}
	}
	return s.queues.timers[0].at
}

// take returns the next task of a topic queue that was ready. It refuses URLs that robots.txt
// disallows. It returns false if nothing is left to request now.
func (s *Schedule) take(st *topicQueue, now time.Time, urgentOnly bool) (Task, bool) {
	k := st.key
	k.promote(now)
	if k.readyAt().After(now) {
		return Task{}, false
	}
	for len(st.lanes) > 0 {
		l := st.lanes[0]
		p, d, i := l.pool, l.origin, l.queue[0]
		it := &p.items[i]
		if urgentOnly && l.topicQueue.urgency() == found {
			return Task{}, false
		}
		if !urgentOnly && k.revisited && k.isRevisit(it) && it.attempts == 0 && k.hasAny(func(it *item) bool { return !k.isRevisit(it) }) {
			l.deferRevisit(now)
			continue
		}
		if !urgentOnly && it.attempts > 0 && !k.isRevisit(it) && l.yield(now) {
			continue
		}
		url := p.url(it)
		if s.cfg.Resolve && !k.placed {
			// The name must be resolved first; the URLs stay in their queues.
			return Task{Request: actor.Request{URL: url, Key: k.name, Resolve: true, Attempt: k.resolves}, lane: l}, true
		}
		if d.Rules == nil || !d.Until.After(now) {
			return s.robotsTask(l, url, now)
		}
		l.pop()
		if ok, rule := d.Rules.Allowed(url.RequestURI()); !ok {
			l.enlist(now)
			s.refuse(spot{p, i}, d.Rules.Refusal(), reason(d.Rules, rule))
			continue
		}
		l.inFlight = true
		l.delist()
		k.revisited = k.isRevisit(it)
		it.bits |= isInFlight
		k.pace.Start(now, d.delay())
		s.changes.key(k)
		var next time.Time
		if k.waits() || len(l.queue) > 0 {
			next = k.pace.ReadyAt()
		}
		return Task{
			Request: actor.Request{
				URL: url, Key: k.name, Addr: k.addr, Next: next, Depth: it.depth, Generation: it.gen, Attempt: it.attempts,
				Sitemap: it.allFlags()&blobschema.FlagSitemap != 0,
			},
			Flags: it.allFlags(), Topic: l.topic, Change: p.rareOf(i).change,
			previous: p.rareOf(i).previous, lane: l, item: i, fp: it.fp, page: true, urgent: it.urgent(), rank: it.rank,
			revisit: k.isRevisit(it), hint: p.rareOf(i).hint,
		}, true
	}
	return Task{}, false
}

// yield delays the URL at the top of a lane, which failed before, by two delays. It does so if the key has
// failed since its last answer and has URLs that were not tried yet: their requests show whether the whole
// host fails or only some of its pages. It reports whether it delayed the URL.
func (l *lane) yield(now time.Time) bool {
	k := l.topicQueue.key
	if k.pace.Failures == 0 || !k.hasAny(func(it *item) bool { return it.attempts == 0 }) {
		return false
	}
	l.putBack(now, max(2*k.delay, 2*k.pace.Delay, time.Millisecond))
	return true
}

// reason returns the reason in words why robots.txt disallows a URL.
func reason(r *polite.Robots, rule polite.Rule) string {
	if rule.Line > 0 {
		return fmt.Sprintf("robots.txt line %d: %s", rule.Line, rule.Text)
	}
	return r.Reason()
}

// pause is the reason why a key is in the timers.
type pause uint8

const (
	paced      pause = iota // its pace, or the time of one of its URLs
	backedOff               // it failed, or demanded a pause
	unanswered              // it did not answer the last request
	pauseKinds
)

// Rest counts the keys whose URLs may not be requested yet.
type Rest struct {
	Until  time.Time // when the first key may get a request; zero if none waits
	Keys   int       // keys that wait
	Failed int       // of these, keys that failed or demanded a pause
	Silent int       // of these, keys that did not answer
}

// Rest returns the figures of the keys that wait, as of the last change.
func (s *Schedule) Rest() Rest {
	return Rest{Until: s.NextAt(), Keys: len(s.queues.timers), Failed: s.queues.pauses[backedOff], Silent: s.queues.pauses[unanswered]}
}

// Add adds the keys of another schedule.
func (r *Rest) Add(o *Rest) {
	if o.Keys > 0 && (r.Until.IsZero() || o.Until.Before(r.Until)) {
		r.Until = o.Until
	}
	r.Keys, r.Failed, r.Silent = r.Keys+o.Keys, r.Failed+o.Failed, r.Silent+o.Silent
}

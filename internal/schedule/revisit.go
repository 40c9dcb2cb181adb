package schedule

import (
	"math/bits"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// A revisit is a request for a URL that was settled with an answer, because the page may have
// changed. In a crawl with revisits (Config.Revisits) such a URL is pending again at once, in its
// next generation. It is due when the worth of the revisit reaches the threshold: see change.go.

// revisitRank is the rank of revisits. Requested URLs have a lower one. In a crawl with revisits, new URLs
// have a higher one.
const revisitRank = 1

// afterFailure is the least wait after a revisit that got no answer or a server error, and after
// a host is given up: its revisits are delayed, not refused.
const afterFailure = 24 * time.Hour

// goneAfter is the least time between revisits of a page with a client error (404, 410 and others).
const goneAfter = 7 * 24 * time.Hour

// ReplanAt is the factor by which the threshold must fall before waiting revisits are planned again.
const ReplanAt = 1.5

// revisits plans when pages are requested again.
type revisits struct {
	partition partition.ID
	threshold float64 // see SetThreshold
	planned   float64 // highest threshold that waiting revisits are planned with, to within ReplanAt
}

// SetThreshold sets the worth from which a settled URL is revisited, in the unit of
// [Interval]; before the first call it is Config.Threshold. If it has fallen by ReplanAt, replan
// is true: the caller must call Replan with the previous threshold for each pool, now or after the
// pool is loaded.
func (s *Schedule) SetThreshold(threshold float64) (previous float64, replan bool) {
	previous = s.revisits.planned
	s.revisits.threshold = threshold
	if threshold*ReplanAt > previous {
		s.revisits.planned = max(previous, threshold) // early revisits are counted, and steered against
		return previous, false
	}
	s.revisits.planned = threshold
	return previous, s.cfg.Revisits
}

// Threshold returns the threshold that revisits are planned with.
func (s *Schedule) Threshold() float64 { return s.revisits.planned }

// Replan brings forward the revisits of a pool that were planned with a higher threshold. Revisits
// that wait longer than that threshold explains have another reason, and stay.
func (s *Schedule) Replan(now time.Time, p *Pool, was float64) {
	for i := range uint32(len(p.items)) {
		it := &p.items[i]
		if it.length == 0 || !p.waitsForRevisit(i) {
			continue
		}
		k, r := p.lanes[it.lane].origin.site.key, p.rareOf(i)
		change := k.believed(r.change)
		old, wait := Interval(change, was), Interval(change, s.revisits.threshold)
		planned := time.UnixMilli(r.notBefore)
		visited := visitedAt(now, it.fp, &r, old)
		if planned.Sub(visited) > old+old/grid+soon {
			continue
		}
		if r.change == (blobschema.Change{}) {
			wait = firstOf(it.fp, wait)
		}
		if at := s.revisits.at(visited, max(wait, ShortestInterval)); at.Before(planned.Add(-soon)) {
			s.reschedule(now, p, i, at, revisitRank)
		}
	}
}

// visitedAt returns the last visit of a URL that waits for a revisit, given the planned interval. The
// time is not stored: after a load it is derived from the time of the revisit.
func visitedAt(now time.Time, fp uint64, r *rare, interval time.Duration) time.Time {
	if r.visited != 0 {
		return time.UnixMilli(r.visited)
	}
	if r.change == (blobschema.Change{}) {
		interval = firstOf(fp, interval)
	}
	if at := time.UnixMilli(r.notBefore).Add(-max(interval, ShortestInterval)); at.Before(now) {
		return at
	}
	return now // revisits come at round times, a little late
}

// firstOf returns the wait before the first revisit of a URL: a part of the interval that depends on
// the fingerprint. Otherwise URLs that were found together would be revisited together forever.
func firstOf(fp uint64, interval time.Duration) time.Duration {
	return time.Duration(float64(interval) * float64(uint32(fp)) / (1 << 32))
}

// isRevisit reports whether a pending URL waits for a revisit, and for nothing else.
func (k *Key) isRevisit(it *item) bool { return k.revisits && it.gen > 0 && it.rank == revisitRank }

// Rank returns the rank of a URL in this crawl: it keeps new URLs above revisitRank.
func (s *Schedule) Rank(generation, rank uint32) uint32 {
	if s.cfg.Revisits && generation == 0 && rank > 0 {
		return max(rank, revisitRank+1)
	}
	return rank
}

// grid is the least number of times within an interval at which revisits begin.
const grid = 16

// putOff delays a due revisit; it returns false if the revisit may run now. Revisits run one by one,
// at half the key's pace at most, and no two in a row while the key has other URLs. So new URLs are
// requested too.
func (k *Key) putOff(d delayed, now time.Time) bool {
	if it := d.it(); !k.isRevisit(it) || it.attempts > 0 {
		return false
	}
	pause := k.revisitPause()
	inLine := d.pool.rareOf(d.item).inLine
	if turn := !k.revisited || !k.open(); turn && !k.awaitsRevisit() && (inLine || !k.revisitHold.After(now)) {
		if !inLine {
			k.revisitHold = now.Add(pause)
		}
		d.pool.setRare(d.item, func(r *rare) { r.inLine = false })
		return false
	}
	if least := now.Add(pause); k.revisitHold.Before(least) {
		k.revisitHold = least
	}
	d.at = k.revisitHold.UnixMilli()
	d.pool.setRare(d.item, func(r *rare) { r.notBefore, r.inLine = d.at, true })
	k.later.push(d)
	k.revisitHold = k.revisitHold.Add(pause)
	return true
}

// awaitsRevisit reports whether a due revisit is in a queue already.
func (k *Key) awaitsRevisit() bool {
	return slices.ContainsFunc(k.topicQueues, func(st *topicQueue) bool { return st.urgency() == revisit })
}

// deferRevisit delays the revisit at the top of a lane by one pause of revisits, because new URLs, which were
// not in memory when it took its place, have their turn.
func (l *lane) deferRevisit(now time.Time) {
	l.pool.setRare(l.queue[0], func(r *rare) { r.inLine = true })
	l.putBack(now, l.topicQueue.key.revisitPause())
}

// revisitPause is the least time between two revisits. It is not zero, even without a delay between requests: slow
// answers can make more revisits due than the key can serve, and new URLs must have their turns among them.
func (k *Key) revisitPause() time.Duration { return max(2*k.delay, 2*k.pace.Delay, time.Millisecond) }

// believed returns the estimate of how often a URL changes: its own, or that of its key.
func (k *Key) believed(change blobschema.Change) blobschema.Change {
	if change == (blobschema.Change{}) {
		return PriorChange(k.changes)
	}
	return change
}

// Changed reports whether a page changed between two answers, the earlier one first.
func Changed(was, is *blobschema.Page) bool {
	kind := func(p *blobschema.Page) blobschema.Outcome {
		if p.Outcome == blobschema.OutcomeUnchanged {
			return blobschema.OutcomeOK
		}
		return p.Outcome
	}
	switch {
	case is.Outcome == blobschema.OutcomeUnchanged:
		return false
	case kind(was) != kind(is):
		return true
	case is.Outcome == blobschema.OutcomeRedirect:
		return was.Redirect != is.Redirect
	case is.Outcome == blobschema.OutcomeOK:
		return was.Digest != is.Digest
	}
	return was.Status != is.Status
}

// hint is the statement of a sitemap about a page since its last visit.
type hint uint8

const (
	hintNone    hint = iota // no sitemap was read
	hintSame                // listed, as not changed
	hintChanged             // listed, as changed since then
)

// Hint takes the time of the last modification that a sitemap of the URL's own host states. It moves
// the next revisit, by as much as the host's statements have been right before. A URL that does not
// wait for a revisit stays as it is.
func (s *Schedule) Hint(now time.Time, p *Pool, i uint32, modified time.Time) {
	r := p.rareOf(i)
	if !p.waitsForRevisit(i) || r.notBefore <= now.UnixMilli() || r.hint == hintChanged {
		return
	}
	it := &p.items[i]
	k := p.lanes[it.lane].topicQueue.key
	change := k.believed(r.change)
	visited := visitedAt(now, it.fp, &r, Interval(change, s.revisits.threshold))
	r.hint = hintSame
	if modified.After(visited) {
		r.hint = hintChanged
	}
	p.setRare(i, func(x *rare) { x.hint = r.hint })
	wait := k.trust.Next(change, now.Sub(visited).Hours(), r.hint == hintChanged, s.revisits.threshold)
	at := now.Add(wait)
	if wait > 0 {
		at = s.revisits.at(now, wait)
	}
	if r.hint == hintChanged && at.UnixMilli() > r.notBefore {
		return // the first revisit comes anywhere in its interval: a stated change does not delay it
	}
	s.reschedule(now, p, i, at, revisitRank)
}

// soon is the least difference for which the time of a revisit is changed.
const soon = time.Minute

// reschedule moves a waiting revisit to another time. [blobschema.Join] keeps the later time of two
// entries of one generation, so an earlier time needs the next generation.
func (s *Schedule) reschedule(now time.Time, p *Pool, i uint32, at time.Time, rank uint32) {
	it, was := &p.items[i], p.rareOf(i).notBefore
	ms := at.UnixMilli()
	if rank == it.rank && ms >= was-soon.Milliseconds() && ms <= was+soon.Milliseconds() {
		return
	}
	k := p.lanes[it.lane].origin.site.key
	k.later.remove(int(it.pos))
	if ms < was || rank < it.rank {
		it.gen++
	}
	s.tally.count(p, it, -1)
	it.rank = rank
	s.tally.count(p, it, 1)
	p.setNotBefore(i, ms)
	s.changes.item(p, i)
	k.add(p, i, now)
	s.queues.enqueue(k, now)
}

// postpone puts revisits among items that are in no queue back with a delay, so that they are not
// refused, and returns the other items.
func (s *Schedule) postpone(now time.Time, items []spot) (others []spot) {
	if !s.cfg.Revisits {
		return items
	}
	for _, w := range items {
		it := w.it()
		if !w.pool.lanes[it.lane].topicQueue.key.isRevisit(it) {
			others = append(others, w)
			continue
		}
		w.pool.setRare(w.item, func(r *rare) { r.notBefore = max(r.notBefore, now.Add(afterFailure).UnixMilli()) })
		s.changes.item(w.pool, w.item)
		w.pool.lanes[it.lane].origin.site.key.add(w.pool, w.item, now)
	}
	return others
}

// waitsForRevisit reports whether an item waits for the time of its revisit, and for nothing else.
func (p *Pool) waitsForRevisit(i uint32) bool {
	it := &p.items[i]
	return p.lanes[it.lane].topicQueue.key.isRevisit(it) && it.bits&isInFlight == 0 && it.attempts == 0 && p.rareOf(i).notBefore != 0
}

// Visited notes that a URL that is pending again with next was answered now.
func (p *Pool) Visited(i uint32, next *blobschema.Queued, now time.Time) {
	if next.Rank == revisitRank {
		p.setRare(i, func(r *rare) { r.visited = now.UnixMilli() })
	}
}

// at returns the time of a revisit after a wait. The revisits of a partition come together, at times
// that are 2^n minutes apart: then one step and one commit cover many of them, and few commits with
// previous answers are read. Other partitions have other times.
func (r *revisits) at(now time.Time, wait time.Duration) time.Time {
	minutes := int64(wait / (grid * time.Minute))
	if minutes == 0 {
		return now.Add(wait)
	}
	step := int64(time.Minute/time.Millisecond) << (bits.Len64(uint64(minutes)) - 1)
	phase := int64(uint64(r.partition)*0x9e3779b97f4a7c15>>32) % step
	at := now.Add(wait).UnixMilli() - phase
	return time.UnixMilli((at+step-1)/step*step + phase)
}

// nextVisit returns the next generation of a URL that ended just now, or nil if the URL is not
// revisited. was is its previous entry.
func (r *revisits) nextVisit(now time.Time, t *Task, o *actor.Outcome, was *blobschema.Queued) *blobschema.Queued {
	answered := o.Page.Outcome.Answered()
	if !answered && !t.revisit {
		return nil // refused, as in crawls without revisits
	}
	k := t.Key()
	change := k.learn(t, o)
	wait := Interval(k.believed(change), r.threshold)
	switch {
	case !answered, o.Page.Outcome == blobschema.OutcomeServerError:
		wait = max(wait, afterFailure)
	case o.Page.Outcome == blobschema.OutcomeClientError:
		wait = max(wait, goneAfter)
	case t.previous == (blobschema.RecordRef{}):
		wait = firstOf(t.fp, wait)
	}
	return &blobschema.Queued{
		Key: k.name, Rank: revisitRank, Generation: was.Generation + 1, Depth: was.Depth, Flags: was.Flags, Topic: was.Topic,
		NotBefore: r.at(now, max(wait, ShortestInterval)).UnixMilli(), Change: change,
	}
}

// learn updates the estimates of a URL and its key from a revisit.
func (k *Key) learn(t *Task, o *actor.Outcome) blobschema.Change {
	previous := t.Request.Previous
	if previous == nil || !o.Page.Outcome.Answered() {
		return t.Change
	}
	l := Revisit{Hours: o.Page.Time.Sub(previous.Time).Hours(), Changed: Changed(previous, &o.Page), Hinted: t.hint == hintChanged}
	if t.hint != hintNone {
		k.trust = k.trust.Learn(l.Hinted, l.Changed)
	}
	k.changes = LearnChange(k.changes, l)
	return LearnChange(k.believed(t.Change), l)
}

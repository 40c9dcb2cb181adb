package schedule

import (
	"math/bits"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/fresh"
	"github.com/orbweaver/orbweaver/partition"
)

// A look is a request for a URL that was settled with an answer, because the page may have
// changed. Where the crawl wants looks (Config.Looks) such a URL is pending again at once, in its next
// generation, but not before the look is worth the threshold: see package fresh.

// revisitRank is the rank of looks: after what is asked for on purpose, before what is found, whose rank
// is higher in a crawl that wants looks.
const revisitRank = 1

// afterFailure is the least time to wait where a look got no answer, or a server's error, or a host is
// given up: its pages are not refused for that.
const afterFailure = 24 * time.Hour

// goneAfter is the least time between looks at what is not there (404, 410 and others).
const goneAfter = 7 * 24 * time.Hour

// ReplanAt is by what factor the threshold must fall for the looks that wait to be planned anew.
const ReplanAt = 1.5

// revisits plans when pages are requested again.
type revisits struct {
	partition partition.ID
	threshold float64 // see SetThreshold
	planned   float64 // highest threshold that waiting revisits are planned with, to within ReplanAt
}

// SetThreshold says from which worth on a settled URL is revisited, in the unit of
// [fresh.Interval]; before the first call it is Config.Threshold. If it has fallen by much, waiting
// revisits must be planned again: replan is true, and Replan is to be called with the previous
// threshold for each pool, now or when it is in memory.
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

// Threshold is the one that looks are planned with.
func (s *Schedule) Threshold() float64 { return s.revisits.planned }

// replan has the looks of a part come sooner that were planned with a higher threshold. Those that wait
// longer than that explains have another reason, and stay.
func (s *Schedule) Replan(now time.Time, p *Pool, was float64) {
	for i := range uint32(len(p.items)) {
		it := &p.items[i]
		if it.length == 0 || !p.waitsForRevisit(i) {
			continue
		}
		k, r := p.lanes[it.lane].origin.site.key, p.rareOf(i)
		change := k.believed(r.change)
		old, wait := fresh.Interval(change, 1, was), fresh.Interval(change, 1, s.revisits.threshold)
		planned := time.UnixMilli(r.notBefore)
		visited := visitedAt(now, it.fp, &r, old)
		if planned.Sub(visited) > old+old/grid+soon {
			continue
		}
		if r.change == (blobschema.Change{}) {
			wait = firstOf(it.fp, wait)
		}
		if at := s.revisits.at(visited, max(wait, fresh.Shortest)); at.Before(planned.Add(-soon)) {
			s.reschedule(now, p, i, at, revisitRank)
		}
	}
}

// visitedAt is when a URL whose look waits was looked at last, given the interval that was planned. It
// is not stored: then it follows from when the look comes.
func visitedAt(now time.Time, fp uint64, r *rare, interval time.Duration) time.Time {
	if r.visited != 0 {
		return time.UnixMilli(r.visited)
	}
	if r.change == (blobschema.Change{}) {
		interval = firstOf(fp, interval)
	}
	if at := time.UnixMilli(r.notBefore).Add(-max(interval, fresh.Shortest)); at.Before(now) {
		return at
	}
	return now // looks come at round times, a little late
}

// firstOf is when the first look at a URL comes in the first of its intervals: somewhere, for else what was
// found together is looked at together for ever, and nothing before.
func firstOf(fp uint64, interval time.Duration) time.Duration {
	return time.Duration(float64(interval) * float64(uint32(fp)) / (1 << 32))
}

// isRevisit reports whether a pending URL waits for a revisit, and for nothing else.
func (k *Key) isRevisit(it *item) bool { return k.revisits && it.gen > 0 && it.rank == revisitRank }

// Rank returns the rank of a URL of a generation in this crawl: new URLs have none of revisits.
func (s *Schedule) Rank(generation, rank uint32) uint32 {
	if s.cfg.Revisits && generation == 0 && rank > 0 {
		return max(rank, revisitRank+1)
	}
	return rank
}

// grid is how many times in an interval looks begin, at least.
const grid = 16

// putOff has a look that is due stand in line, and reports false if it is its turn: looks come at half
// the unit's pace at most, one by one, and not after another while anything else may be asked for. So what is
// found is asked for too.
func (k *Key) putOff(d delayed, now time.Time) bool {
	if it := d.it(); !k.isRevisit(it) || it.attempts > 0 {
		return false
	}
	pause := 2 * max(k.delay, k.pace.Delay)
	inLine := d.pool.rareOf(d.item).inLine
	if turn := !k.revisited || !k.open(); turn && !k.awaitsRevisit() && (inLine || !k.revisitHold.After(now)) {
		if !inLine {
			k.revisitHold = now.Add(pause)
		}
		d.pool.setRare(d.item, func(r *rare) { r.inLine = false })
		return false
	}
	if pause <= 0 {
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

// awaitsRevisit reports whether a look may be asked for already.
func (k *Key) awaitsRevisit() bool {
	return slices.ContainsFunc(k.stands, func(st *stand) bool { return st.urgency() == revisit })
}

// hasFound reports whether something that was found may be asked for.
func (k *Key) hasFound() bool {
	return k.hasAny(func(it *item) bool { return !k.isRevisit(it) })
}

// standBack delays the revisit at the top of a lane by one pause of revisits, because new URLs, which were
// not in memory when it took its place, have their turn. It returns false where there is no pause.
func (l *lane) standBack(now time.Time) bool {
	k := l.stand.key
	pause := 2 * max(k.delay, k.pace.Delay)
	if pause <= 0 {
		return false
	}
	l.pool.setRare(l.queue[0], func(r *rare) { r.inLine = true })
	l.putBack(now, pause)
	return true
}

// believed is what is believed of how often a URL changes.
func (k *Key) believed(change blobschema.Change) blobschema.Change {
	if change == (blobschema.Change{}) {
		return fresh.Prior(k.changes)
	}
	return change
}

// Changed reports whether two answers of a URL, the earlier one first, are of a page that has changed in
// between.
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

// hint is what a sitemap said of a page since it was looked at last.
type hint uint8

const (
	hintNone    hint = iota // it was not read
	hintSame                // listed, as not changed
	hintChanged             // listed, as changed since then
)

// Hint takes what a sitemap of a URL's own host says that was read just now: when its page was last modified. The next look
// comes sooner or later for that, as far as the host's word has turned out true. A URL that does not wait for a look, or
// whose part is not loaded, is left as it is.
func (s *Schedule) Hint(now time.Time, p *Pool, i uint32, modified time.Time) {
	r := p.rareOf(i)
	if !p.waitsForRevisit(i) || r.notBefore <= now.UnixMilli() || r.hint == hintChanged {
		return
	}
	it := &p.items[i]
	k := p.lanes[it.lane].stand.key
	change := k.believed(r.change)
	visited := visitedAt(now, it.fp, &r, fresh.Interval(change, 1, s.revisits.threshold))
	r.hint = hintSame
	if modified.After(visited) {
		r.hint = hintChanged
	}
	p.setRare(i, func(x *rare) { x.hint = r.hint })
	wait := k.trust.Next(change, now.Sub(visited).Hours(), r.hint == hintChanged, 1, s.revisits.threshold)
	at := now.Add(wait)
	if wait > 0 {
		at = s.revisits.at(now, wait)
	}
	if r.hint == hintChanged && at.UnixMilli() > r.notBefore {
		return // the first look comes anywhere in its interval: word of a change does not put it off
	}
	s.reschedule(now, p, i, at, revisitRank)
}

// soon is how much sooner a look must be for a change of plan.
const soon = time.Minute

// reschedule has a look that waits come at another time. Of two entries of a generation the one that waits longer is
// joined (see [blobschema.Join]), so a sooner time is that of another generation.
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
	s.tally.rank(p, it.rank, -1)
	it.rank = rank
	s.tally.rank(p, it.rank, 1)
	p.setNotBefore(i, ms)
	s.changes.item(p, i)
	k.add(p, i, now)
	s.queues.enqueue(k, now)
}

// postpone keeps the looks among items that are in no queue any more from being refused: it puts them
// back, and returns the others.
func (s *Schedule) postpone(now time.Time, items []spot) (others []spot) {
	if !s.cfg.Revisits {
		return items
	}
	for _, w := range items {
		it := w.it()
		if !w.pool.lanes[it.lane].stand.key.isRevisit(it) {
			others = append(others, w)
			continue
		}
		w.pool.setRare(w.item, func(r *rare) { r.notBefore = max(r.notBefore, now.Add(afterFailure).UnixMilli()) })
		s.changes.item(w.pool, w.item)
		w.pool.lanes[it.lane].origin.site.key.add(w.pool, w.item, now)
	}
	return others
}

// waitsForRevisit reports whether an item is not due, and for no other reason.
func (p *Pool) waitsForRevisit(i uint32) bool {
	it := &p.items[i]
	return p.lanes[it.lane].stand.key.isRevisit(it) && it.bits&isAsked == 0 && it.attempts == 0 && p.rareOf(i).notBefore != 0
}

// Visited says that a URL, which is pending again with next, was answered now.
func (p *Pool) Visited(i uint32, next *blobschema.Queued, now time.Time) {
	if next.Rank == revisitRank {
		p.setRare(i, func(r *rare) { r.visited = now.UnixMilli() })
	}
}

// at is when a look comes that is to be after wait. A partition's looks come together at times that are minutes apart, a
// power of two of them, so that many of them are one step, one commit, and few reads of
// commits with former answers. Other partitions have other times.
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

// nextVisit returns the next generation of a URL that ended just now, nil if it is not to be
// revisited. was is its previous entry.
func (r *revisits) nextVisit(now time.Time, t *Task, o *actor.Outcome, was *blobschema.Queued) *blobschema.Queued {
	answered := o.Page.Outcome.Answered()
	if !answered && !t.revisit {
		return nil // refused, as in crawls without revisits
	}
	k := t.Key()
	change := k.learn(t, o)
	wait := fresh.Interval(k.believed(change), 1, r.threshold)
	switch {
	case !answered, o.Page.Outcome == blobschema.OutcomeServerError:
		wait = max(wait, afterFailure)
	case o.Page.Outcome == blobschema.OutcomeClientError:
		wait = max(wait, goneAfter)
	case t.former == (blobschema.Origin{}):
		wait = firstOf(t.fp, wait)
	}
	return &blobschema.Queued{
		Host: k.name, Rank: revisitRank, Generation: was.Generation + 1, Depth: was.Depth, Flags: was.Flags, Topic: was.Topic,
		NotBefore: r.at(now, max(wait, fresh.Shortest)).UnixMilli(), Change: change,
	}
}

// learn takes what a look has shown of a URL, and of its unit.
func (k *Key) learn(t *Task, o *actor.Outcome) blobschema.Change {
	former := t.Request.Former
	if former == nil || !o.Page.Outcome.Answered() {
		return t.Change
	}
	l := fresh.Look{Hours: o.Page.Time.Sub(former.Time).Hours(), Changed: Changed(former, &o.Page), Hinted: t.hint == hintChanged}
	if t.hint != hintNone {
		k.trust = k.trust.Learn(l.Hinted, l.Changed)
	}
	k.changes = fresh.Learn(k.changes, l)
	return fresh.Learn(k.believed(t.Change), l)
}

package frontier

import (
	"container/heap"
	"math/bits"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/fresh"
)

// A look is a request for a URL that was settled with an answer, because the page may have
// changed. Where the crawl wants looks (Config.Looks) such a URL is pending again at once, in its next
// generation, but not before the look is worth the threshold: see package fresh.

// lookRank is the rank of looks: after what is asked for on purpose, before what is found, whose rank
// is higher in a crawl that wants looks.
const lookRank = 1

// lookAfterFailure is the least time to wait where a look got no answer, or a server's error, or a host is
// given up: its pages are not refused for that.
const lookAfterFailure = 24 * time.Hour

// goneAfter is the least time between looks at what is not there (404, 410 and others).
const goneAfter = 7 * 24 * time.Hour

// ReplanAt is by what factor the threshold must fall for the looks that wait to be planned anew.
const ReplanAt = 1.5

// SetThreshold says from which worth on a settled URL is looked at again, in the unit of
// [fresh.Interval]; before the first call it is Config.Threshold.
// If it has fallen by much, looks that wait come sooner: those of parts in memory from now on, others when they are
// loaded, which Wanted asks for.
func (f *Frontier) SetThreshold(now time.Time, threshold float64) {
	was := f.planned
	f.threshold = threshold
	if threshold*ReplanAt > was {
		f.planned = max(was, threshold) // who comes too soon is counted, and steered against
		return
	}
	f.planned = threshold
	if !f.cfg.Looks {
		return
	}
	for _, id := range f.sortedSlots() {
		s := f.slots[id]
		for p := range s.parts {
			if p.loaded {
				f.replan(now, p, was)
			} else if p.npending > 0 && p.replan == 0 {
				p.replan = was
			}
		}
	}
}

// Threshold is the one that looks are planned with.
func (f *Frontier) Threshold() float64 { return f.planned }

// replan has the looks of a part come sooner that were planned with a higher threshold. Those that wait
// longer than that explains have another reason, and stay.
func (f *Frontier) replan(now time.Time, p *part, was float64) {
	for i := range uint32(len(p.items)) {
		it := &p.items[i]
		if it.length == 0 || !f.waitsForLook(p, i) {
			continue
		}
		u, r := p.lanes[it.lane].door.site.unit, p.rareOf(i)
		change := f.believed(u, r.change)
		old, wait := fresh.Interval(change, 1, was), fresh.Interval(change, 1, f.threshold)
		planned := time.UnixMilli(r.notBefore)
		looked := lookedAt(now, it.fp, &r, old)
		if planned.Sub(looked) > old+old/grid+soon {
			continue
		}
		if r.change == (blobschema.Change{}) {
			wait = firstOf(it.fp, wait)
		}
		if at := f.lookAt(looked, max(wait, fresh.Shortest)); at.Before(planned.Add(-soon)) {
			f.reschedule(now, p, i, at, lookRank)
		}
	}
}

// lookedAt is when a URL whose look waits was looked at last, given the interval that was planned. It
// is not stored: then it follows from when the look comes.
func lookedAt(now time.Time, fp uint64, r *rare, interval time.Duration) time.Time {
	if r.looked != 0 {
		return time.UnixMilli(r.looked)
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

// isLook reports whether a pending URL waits for a look, and for nothing else.
func (f *Frontier) isLook(it *item) bool { return f.cfg.Looks && isLook(it) }

// waitsForLook reports whether an item is not due, and for no other reason.
func (f *Frontier) waitsForLook(p *part, i uint32) bool {
	it := &p.items[i]
	return f.isLook(it) && it.bits&isAsked == 0 && it.attempts == 0 && p.rareOf(i).notBefore != 0
}

// countLooks counts a pending URL of a rank: in a crawl with looks only they have lookRank.
func (f *Frontier) countLooks(p *part, rank uint32, n int) {
	if f.cfg.Looks && rank == lookRank {
		p.looks += n
		f.counts.Looks += int64(n)
	}
}

func isLook(it *item) bool { return it.gen > 0 && it.rank == lookRank }

// lookAgain makes a URL that was settled just now pending, if it is to be looked at again. was is
// its item before.
func (f *Frontier) lookAgain(now time.Time, t Task, o *actor.Outcome, was item) {
	answered := o.Page.Outcome.Answered()
	if !answered && !t.look {
		return // refused, as where no looks are wanted
	}
	p, u := t.lane.part, t.lane.door.site.unit
	change := f.learn(u, t, o)
	wait := fresh.Interval(f.believed(u, change), 1, f.threshold)
	switch {
	case !answered, o.Page.Outcome == blobschema.OutcomeServerError:
		wait = max(wait, lookAfterFailure)
	case o.Page.Outcome == blobschema.OutcomeClientError:
		wait = max(wait, goneAfter)
	case t.former == (blobschema.Origin{}):
		wait = firstOf(t.fp, wait)
	}
	q := blobschema.Queued{
		Host: u.key, Rank: lookRank, Generation: was.gen + 1, Depth: was.depth, Flags: was.flags, Topic: was.topic,
		NotBefore: f.lookAt(now, max(wait, fresh.Shortest)).UnixMilli(), Change: change,
	}
	f.add(now, p, u, t.Request.URL, t.fp, &q, fromOutside)
	if i, k := p.find(t.fp); k == inItems {
		p.setRare(i, func(r *rare) { r.looked = now.UnixMilli() })
	}
}

// grid is how many times in an interval looks begin, at least.
const grid = 16

// lookAt is when a look comes that is to be after wait. A partition's looks come together at times that are minutes apart, a
// power of two of them, so that many of them are one step, one commit, and few reads of
// commits with former answers. Other partitions have other times.
func (f *Frontier) lookAt(now time.Time, wait time.Duration) time.Time {
	minutes := int64(wait / (grid * time.Minute))
	if minutes == 0 {
		return now.Add(wait)
	}
	step := int64(time.Minute/time.Millisecond) << (bits.Len64(uint64(minutes)) - 1)
	phase := int64(uint64(f.cfg.Partition)*0x9e3779b97f4a7c15>>32) % step
	at := now.Add(wait).UnixMilli() - phase
	return time.UnixMilli((at+step-1)/step*step + phase)
}

// putOff has a look that is due stand in line, and reports false if it is its turn: looks come at half
// the unit's pace at most, one by one, and not after another while anything else may be asked for. So what is
// found is asked for too.
func (u *unit) putOff(d delayed, now time.Time) bool {
	if it := &d.part.items[d.item]; !u.looks || !isLook(it) || it.attempts > 0 {
		return false
	}
	pause := 2 * max(u.delay, u.pace.Delay)
	inLine := d.part.rareOf(d.item).inLine
	if turn := !u.looked || !u.open(); turn && !u.awaitsLook() && (inLine || !u.lookHold.After(now)) {
		if !inLine {
			u.lookHold = now.Add(pause)
		}
		d.part.setRare(d.item, func(r *rare) { r.inLine = false })
		return false
	}
	if pause <= 0 {
		return false
	}
	if least := now.Add(pause); u.lookHold.Before(least) {
		u.lookHold = least
	}
	d.at = u.lookHold.UnixMilli()
	d.part.setRare(d.item, func(r *rare) { r.notBefore, r.inLine = d.at, true })
	heap.Push(&u.later, d)
	u.lookHold = u.lookHold.Add(pause)
	return true
}

// awaitsLook reports whether a look may be asked for already.
func (u *unit) awaitsLook() bool {
	return slices.ContainsFunc(u.stands, func(st *stand) bool { return st.urgency() == looked })
}

// hasFound reports whether something that was found may be asked for.
func (u *unit) hasFound() bool {
	return u.hasAny(func(it *item) bool { return !isLook(it) })
}

// standBack has the look at the top of a lane wait for one pause of looks, since what was found has its turn:
// it was not in memory yet when the look took its place. It reports false where there is no pause.
func (f *Frontier) standBack(l *lane, now time.Time) bool {
	u, p := l.door.site.unit, l.part
	pause := 2 * max(u.delay, u.pace.Delay)
	if pause <= 0 {
		return false
	}
	p.setRare(l.queue[0], func(r *rare) { r.inLine = true })
	u.putBack(l, now, pause)
	return true
}

// believed is what is believed of how often a URL changes.
func (f *Frontier) believed(u *unit, change blobschema.Change) blobschema.Change {
	if change == (blobschema.Change{}) {
		return fresh.Prior(u.changes)
	}
	return change
}

// learn takes what a look has shown of a URL, and of its unit.
func (f *Frontier) learn(u *unit, t Task, o *actor.Outcome) blobschema.Change {
	former := t.Request.Former
	if former == nil || !o.Page.Outcome.Answered() {
		return t.Change
	}
	l := fresh.Look{Hours: o.Page.Time.Sub(former.Time).Hours(), Changed: Changed(former, &o.Page), Hinted: t.hint == hintChanged}
	if t.hint != hintNone {
		u.trust = u.trust.Learn(l.Hinted, l.Changed)
	}
	u.changes = fresh.Learn(u.changes, l)
	f.touchUnit(u)
	return fresh.Learn(f.believed(u, t.Change), l)
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
func (f *Frontier) Hint(now time.Time, host string, fp uint64, modified time.Time) {
	u := f.units[host]
	if u == nil || !f.cfg.Looks {
		return
	}
	p := u.slot.of(fp)
	if !p.loaded || p.full {
		return
	}
	i, k := p.find(fp)
	if k != inItems {
		return
	}
	r := p.rareOf(i)
	if !f.waitsForLook(p, i) || r.notBefore <= now.UnixMilli() || r.hint == hintChanged {
		return
	}
	change := f.believed(u, r.change)
	looked := lookedAt(now, fp, &r, fresh.Interval(change, 1, f.threshold))
	r.hint = hintSame
	if modified.After(looked) {
		r.hint = hintChanged
	}
	p.setRare(i, func(x *rare) { x.hint = r.hint })
	wait := u.trust.Next(change, now.Sub(looked).Hours(), r.hint == hintChanged, 1, f.threshold)
	at := now.Add(wait)
	if wait > 0 {
		at = f.lookAt(now, wait)
	}
	if r.hint == hintChanged && at.UnixMilli() > r.notBefore {
		return // the first look comes anywhere in its interval: word of a change does not put it off
	}
	f.reschedule(now, p, i, at, lookRank)
}

// soon is how much sooner a look must be for a change of plan.
const soon = time.Minute

// reschedule has a look that waits come at another time. Of two entries of a generation the one that waits longer is
// joined (see [blobschema.Join]), so a sooner time is that of another generation.
func (f *Frontier) reschedule(now time.Time, p *part, i uint32, at time.Time, rank uint32) {
	it, was := &p.items[i], p.rareOf(i).notBefore
	ms := at.UnixMilli()
	if rank == it.rank && ms >= was-soon.Milliseconds() && ms <= was+soon.Milliseconds() {
		return
	}
	u := p.lanes[it.lane].door.site.unit
	heap.Remove(&u.later, int(it.pos))
	if ms < was || rank < it.rank {
		it.gen++
	}
	f.countUrgent(p, it.rank, -1)
	f.countLooks(p, it.rank, -1)
	it.rank = rank
	f.countUrgent(p, it.rank, 1)
	f.countLooks(p, it.rank, 1)
	p.setRare(i, func(r *rare) { r.notBefore = ms })
	f.touch(p, i)
	u.add(p, i, now)
	f.settleUnit(u, now)
}

// postpone keeps the looks among items that are in no queue any more from being refused: it puts them
// back, and returns the others.
func (f *Frontier) postpone(now time.Time, items []spot) (others []spot) {
	if !f.cfg.Looks {
		return items
	}
	for _, w := range items {
		it := &w.part.items[w.item]
		if !f.isLook(it) {
			others = append(others, w)
			continue
		}
		w.part.setRare(w.item, func(r *rare) { r.notBefore = max(r.notBefore, now.Add(lookAfterFailure).UnixMilli()) })
		f.touch(w.part, w.item)
		w.part.lanes[it.lane].door.site.unit.add(w.part, w.item, now)
	}
	return others
}

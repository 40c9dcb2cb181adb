package crawl

import (
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// A step that begins and ends costs as much as one that waits for some seconds. So
// where steps send wakes themselves, a wake waits until there is enough to do for it, or
// until it has waited long enough. Seeds and requests are woken for at once: by the
// tick, and by intake.
const (
	wakeURLs    = 200              // due URLs, or URLs mailed, that are worth a wake
	wakeWait    = time.Minute      // how long the first of fewer waits for others
	maxDelay    = 15 * time.Minute // what queues can delay; beyond, the tick wakes
	youngCommit = 5 * time.Second  // between two commits, and two mails, of a young crawl
	wakeSlip    = 5 * time.Second  // a wake this near is as good as another one now
	// maxWorkless steps in a row without work end the chain of wakes that a partition sends itself: a defect must not run
	// functions for ever. The coordinator, which runs once a minute, goes on waking the partition.
	maxWorkless = 4
)

// lastHead is the head that releases the lease. wake says that a wake is to be sent for
// the time it names.
func (s *Step) lastHead() (h blobschema.Head, wake bool) {
	h = s.head
	h.Owner = ""
	h.Published = s.st.man.Seq
	if len(s.unsent) > 0 {
		h.Published = slices.Min(s.unsent) - 1
	}
	s.tell(&h)
	h.LooksDue = s.looksDue()
	if h.Workless++; worked(&s.taken, &h) {
		h.Workless = 0
	}
	if !s.cfg.SendsWakes {
		return h, false
	}
	now := s.Now().Wall
	if !s.timeUp {
		h.Due = worthwhile(s.here(s.st.man.Slots), now, h.Due)
	}
	at := h.Due
	if !h.LooksDue.IsZero() {
		at = h.LooksDue
	}
	if at.Before(now) {
		at = now
	}
	switch {
	case h.Due.IsZero() || s.halted || s.asksNothing() || h.Workless >= maxWorkless:
		return h, false
	case at.Sub(now) > maxDelay:
		return h, false // the tick wakes it
	case h.WakeAt.After(now) && !h.WakeAt.After(at.Add(wakeSlip)):
		return h, false // one is on its way
	}
	h.WakeAt = at.UTC()
	return h, true
}

// worked reports whether the step between two heads did any work: fetched URLs or counted failed attempts, applied mail,
// examined new URLs, or followed a new map or an order.
func worked(from, to *blobschema.Head) bool {
	was, is := &from.Totals, &to.Totals
	return settled(is) > settled(was) || is.Retries > was.Retries || is.Robots > was.Robots || is.Unexamined < was.Unexamined ||
		to.Applied > from.Applied || to.Epoch > from.Epoch || to.Wish > from.Wish
}

// worthwhile is when enough of a partition is due for a step: as many slots as make a
// wake worth it, or all that are due soon after the first. Of slots, since it must be
// known of those that are not in memory too.
func worthwhile(slots []blobschema.SlotSummary, now, first time.Time) time.Time {
	if first.IsZero() {
		return first
	}
	if first.Before(now) {
		first = now
	}
	last := first.Add(wakeWait).UnixMilli()
	var due []int64
	for _, sum := range slots {
		switch {
		case sum.Unexamined > 0 || sum.Urgent > 0 && sum.Due > 0 && sum.Due <= now.UnixMilli():
			return first // not known what waits there; or somebody waits for it
		case sum.Due > 0 && sum.Due <= last:
			due = append(due, sum.Due)
		}
	}
	if len(due) == 0 {
		return first
	}
	slices.Sort(due)
	at := time.UnixMilli(due[min(len(due), wakeURLs)-1]).UTC()
	if at.Before(first) {
		return first
	}
	return at
}

// sendWake wakes a partition after a delay. It may fail: then the tick does it.
func (s *Step) sendWake(t *actor.Task, delay time.Duration, ps ...partition.ID) {
	for some := range slices.Chunk(ps, 10) {
		var bodies [][]byte
		for _, p := range some {
			bodies = append(bodies, blobschema.EncodeWake(s.cfg.Crawl.ID, p))
		}
		_, _ = t.Do(actor.Send{Queue: naming.WakesQueue, Bodies: bodies, Delay: delay})
	}
}

// wakeMailed wakes the partitions that were mailed much and have no step at work. For
// the others the tick is soon enough.
func (s *Step) wakeMailed(t *actor.Task) {
	if !s.cfg.SendsWakes || s.paused || s.halted {
		return
	}
	now := s.Now().Wall
	var ps []partition.ID
	for p := range partition.ID(s.partitions()) {
		if s.mailed[p] >= wakeURLs && !now.Before(s.awake[p]) {
			ps = append(ps, p)
			s.mailed[p] = 0
		}
	}
	if len(ps) == 0 {
		return
	}
	keys := make([]string, len(ps))
	for i, p := range ps {
		keys[i] = naming.HeadKey(s.cfg.Crawl.ID, p)
	}
	recs, err := t.Records(keys...)
	if err != nil {
		return
	}
	var asleep []partition.ID
	for i, p := range ps {
		h, err := actor.DecodeFound[blobschema.Head](recs[i], "head")
		if err != nil {
			continue // whoever works on it will say so
		}
		switch {
		case h.Owner != "" && now.Before(h.LeaseUntil):
			s.awake[p] = h.LeaseUntil
		case h.WakeAt.After(now) && h.WakeAt.Before(now.Add(wakeSlip)):
		default:
			s.awake[p] = now.Add(wakeWait)
			asleep = append(asleep, p)
		}
	}
	s.sendWake(t, 0, asleep...)
}

// commitEvery is the longest time that work stays uncommitted. A young crawl commits more
// often where nobody tells which partitions starve, so that it spreads, and shows. In a folder commits
// cost no money, and somebody may kill a process that has just begun: its first commit comes after a second, and
// of a later kill no more than half of its work is to be done again.
func (s *Step) commitEvery(now time.Time) time.Duration {
	switch {
	case s.cfg.Exclusive:
		return min(s.cfg.CommitEvery, max(time.Second, s.lastCommit.Sub(s.Begun())/2))
	case !s.cfg.SendsWakes:
		return s.cfg.CommitEvery
	}
	return min(s.cfg.CommitEvery, max(youngCommit, now.Sub(s.cfg.Crawl.Created)/4))
}

// mailEvery is how long links for others are held. Where nobody tells which partitions
// starve, a young crawl mails more often, so that it spreads.
func (s *Step) mailEvery(now time.Time) time.Duration {
	if !s.cfg.SendsWakes {
		return s.cfg.MailEvery
	}
	return min(s.cfg.MailEvery, max(youngCommit, now.Sub(s.cfg.Crawl.Created)/4))
}

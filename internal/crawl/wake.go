package crawl

import (
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
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
	h = s.lease.head
	h.Owner = ""
	h.Published = s.outbox.published(s.st.man.Seq)
	s.lease.spent(&h)
	h.LooksDue = s.looksDue()
	if h.Workless++; worked(&s.lease.taken, &h) {
		h.Workless = 0
	}
	if !s.cfg.SendsWakes {
		return h, false
	}
	now := s.Now().Wall
	if s.cfg.Deadline == 0 || s.Age() < s.cfg.Deadline {
		h.Due = worthwhile(s.st.here(s.st.man.Slots), now, h.Due)
	}
	at := h.Due
	if !h.LooksDue.IsZero() {
		at = h.LooksDue
	}
	if at.Before(now) {
		at = now
	}
	switch {
	case h.Due.IsZero() || s.orders.halted || s.asksNothing() || h.Workless >= maxWorkless:
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

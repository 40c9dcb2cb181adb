package crawl

import (
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Where coordinator runs are minutes apart, steps send wakes themselves. Starting and ending a step costs as much as
// waiting for some seconds, so a wake is delayed until enough URLs are due or the first of them has waited long enough.
// Seeds and requests from outside are woken for at once, by the coordinator and by intake.
const (
	wakeURLs    = 200              // due URLs, or mailed URLs, that justify a wake
	wakeWait    = time.Minute      // longest time that the first of fewer URLs waits for others
	maxDelay    = 15 * time.Minute // longest delay of a queue message (SQS); the coordinator wakes for later times
	youngCommit = 5 * time.Second  // least time between two commits, or two mails, of a young crawl
	wakeSlip    = 5 * time.Second  // a pending wake this close to the wanted time replaces another one
	// maxWorkless is the number of successive steps without work after which a partition stops waking itself, so that a
	// defect cannot run functions forever. The coordinator, which runs once a minute, still wakes the partition.
	maxWorkless = 4
)

// lastHead returns the head that releases the lease. wake reports whether a wake must be sent for the time it names.
func (s *Step) lastHead() (h blobschema.Head, wake bool) {
	h = s.lease.head
	h.Owner = ""
	h.Published = s.outbox.published(s.st.man.Seq)
	h.Calls = s.lease.spent()
	h.RevisitsDue = s.revisitsDue()
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
	if !h.RevisitsDue.IsZero() {
		at = h.RevisitsDue
	}
	if at.Before(now) {
		at = now
	}
	switch {
	case h.Due.IsZero() || s.orders.halted || s.asksNothing() || h.Workless >= maxWorkless:
		return h, false
	case at.Sub(now) > maxDelay:
		return h, false // too far away: the coordinator wakes it
	case h.WakeAt.After(now) && !h.WakeAt.After(at.Add(wakeSlip)):
		return h, false // a wake is on its way already
	}
	h.WakeAt = at.UTC()
	return h, true
}

// worked reports whether the step between two heads did any work: fetched URLs or counted failed attempts, applied mail,
// examined new URLs, or followed a new map or an order.
func worked(from, to *blobschema.Head) bool {
	was, is := &from.Totals, &to.Totals
	return settled(is) > settled(was) || is.Retries > was.Retries || is.Robots > was.Robots || is.Unexamined < was.Unexamined ||
		to.Applied > from.Applied || to.Epoch > from.Epoch || to.Desired > from.Desired
}

// worthwhile returns when enough of a partition is due to justify a step: wakeURLs slots, or all slots that are due within
// wakeWait of the first. It counts slots because slots that are not in memory have only a summary.
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
			return first // the due time is unknown, or a requester waits
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

package crawl

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// looks reports whether settled URLs are looked at again, so that the crawl never finishes.
func looks(set *blobschema.Settings) bool { return set.RecrawlPerHour > 0 }

// obeyThreshold tells the frontier from which worth on a look is taken, if a tick has said so.
func (st *state) obeyThreshold(threshold float64) {
	if !looks(&st.cfg.Crawl.Settings) || threshold <= 0 {
		return
	}
	st.wish.Threshold = threshold
	st.f.SetThreshold(st.lease.Clock(), threshold)
	if stale(&st.lease.head, threshold) { // the head must say that it is obeyed
		st.batch.applied = true
	}
}

// stale reports whether a partition's looks are planned with a threshold so much higher than the one wanted
// that its step should plan them anew.
func stale(h *blobschema.Head, wanted float64) bool {
	return wanted > 0 && h.Totals.Pending > 0 && h.Threshold >= schedule.ReplanAt*wanted
}

// countLook takes note of how a look ended.
func (st *state) countLook(t schedule.Task, p *blobschema.Page) {
	if !t.Revisit() {
		return
	}
	st.totals.Again++
	if p.Change == blobschema.PageChanged {
		st.totals.Changed++
	}
}

// hint hands on what a sitemap says of a page of its own host that waits for a look: what others say of it is not
// believed. It reports false where the crawl wants no looks.
func (st *state) hint(t schedule.Task, found *actor.Link, l frontier.Link) bool {
	if !looks(&st.cfg.Crawl.Settings) {
		return false
	}
	if found.Kind == actor.LinkListed && found.Modified > 0 && l.URL.Host() == t.Request.URL.Host() && st.owner(l.Slot) == st.cfg.Partition {
		st.f.Hint(st.lease.Clock(), l.Key, l.Fingerprint, time.Unix(found.Modified, 0))
	}
	return true
}

// looksAtLeast is how often a partition is seen to whose looks are all that may be asked for: those of
// parts that are not in memory may be due at any time.
const looksAtLeast = 10 * time.Minute

// looksDue is when a step should see to looks again, if there is nothing else that it may ask for: what was found
// is due as well, but over the limit on pages. Else it is zero.
func (s *Step) looksDue() time.Time {
	if !looks(&s.cfg.Crawl.Settings) || !s.budget.exhausted || !s.limited() || s.st.f.Counts().Urgent > 0 {
		return time.Time{}
	}
	latest := s.Clock().Add(looksAtLeast).UTC()
	if next := s.next(); !next.IsZero() && next.Before(latest) {
		return next.UTC()
	}
	return latest
}

// limitLooks does after a commit what steps without looks do when they end, for one with looks
// may never end: it gives back what it was granted and has no use for, and has it asked again
// whether others did so.
func (s *Step) limitLooks(t *actor.Task) error {
	if set := &s.cfg.Crawl.Settings; !looks(set) || set.MaxPages == 0 {
		return nil
	}
	s.budget.exhausted = false
	if n := s.st.f.Counts(); n.Pending > n.Looks || n.Unexamined > 0 || s.budget.granted <= s.st.totals.Pages {
		return nil
	}
	return s.budget.giveBack(t, &s.st.totals.Pages)
}

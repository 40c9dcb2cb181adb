package crawl

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// revisits reports whether settled URLs are revisited. Such a crawl never finishes.
func revisits(set *blobschema.Settings) bool { return set.RecrawlPerHour > 0 }

// obeyThreshold sets the worth from which on a revisit is made, if the coordinator has set one.
func (st *state) obeyThreshold(threshold float64) {
	if !revisits(&st.cfg.Crawl.Settings) || threshold <= 0 {
		return
	}
	st.desired.Threshold = threshold
	st.f.SetThreshold(st.lease.Clock(), threshold)
	if stale(&st.lease.head, threshold) { // the head must report that it is obeyed
		st.batch.applied = true
	}
}

// stale reports whether a partition planned its revisits with a threshold so much higher than the wanted one that its step
// should plan them again.
func stale(h *blobschema.Head, wanted float64) bool {
	return wanted > 0 && h.Totals.Pending > 0 && h.Threshold >= schedule.ReplanAt*wanted
}

// countRevisit counts a revisit and its result.
func (st *state) countRevisit(t schedule.Task, p *blobschema.Page) {
	if !t.Revisit() {
		return
	}
	st.totals.Again++
	if p.Change == blobschema.PageChanged {
		st.totals.Changed++
	}
}

// hint passes what a sitemap says of a page on to the frontier, if that page is on the same host and waits for a revisit.
// Sitemaps are not trusted about other hosts. It returns false if the crawl has no revisits.
func (st *state) hint(t schedule.Task, found *actor.Link, l frontier.Link) bool {
	if !revisits(&st.cfg.Crawl.Settings) {
		return false
	}
	if found.Kind == actor.LinkListed && found.Modified > 0 && l.URL.Host() == t.Request.URL.Host() && st.owner(l.Slot) == st.cfg.Partition {
		st.f.Hint(st.lease.Clock(), l.Key, l.Fingerprint, time.Unix(found.Modified, 0))
	}
	return true
}

// maxRevisitPause is the longest time between two steps of a partition that may only revisit: revisits in parts that are not
// in memory may be due at any time.
const maxRevisitPause = 10 * time.Minute

// revisitsDue returns when a partition that may only revisit needs its next step; otherwise zero. The head's Due does not
// tell, because it includes new URLs beyond the page limit.
func (s *Step) revisitsDue() time.Time {
	if !revisits(&s.cfg.Crawl.Settings) || !s.budget.exhausted || !s.limited() || s.st.f.Counts().Urgent > 0 {
		return time.Time{}
	}
	latest := s.Clock().Add(maxRevisitPause).UTC()
	if next := s.next(); !next.IsZero() && next.Before(latest) {
		return next.UTC()
	}
	return latest
}

// limitRevisits returns the grants that a step with revisits does not need, and lets it ask again for grants that others have
// returned. Other steps do both when they end, but a step with revisits may run forever.
func (s *Step) limitRevisits(t *actor.Task) error {
	if set := &s.cfg.Crawl.Settings; !revisits(set) || set.MaxPages == 0 {
		return nil
	}
	s.budget.exhausted = false
	if n := s.st.f.Counts(); n.Pending > n.Revisits || n.Unexamined > 0 || s.budget.granted <= s.st.totals.Pages {
		return nil
	}
	return s.budget.giveBack(t, &s.st.totals.Pages)
}

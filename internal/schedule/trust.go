package schedule

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Trust counts how often a host's sitemaps were right. It counts revisits by the hint that a sitemap gave since
// the previous fetch, and by their result. The zero value means that nothing is known.
type Trust struct {
	_ struct{} `cbor:",toarray"`

	SaidChanged, SaidSame     float32 // revisits of pages with a hint
	SilentChanged, SilentSame float32 // revisits of pages without a hint
}

// maxTrust is the number of revisits that a Trust remembers.
const maxTrust = 256

// Prior belief about a host: sitemaps announce eight of ten changes, and one of ten pages
// that have not changed.
const (
	priorRecall, priorAlarm = 0.8, 0.1
	priorTrust              = 2 // weight of the prior, in revisits
)

// Learn returns the trust after a revisit. said reports whether a sitemap had announced a change of the page.
func (t Trust) Learn(said, changed bool) Trust {
	if t.SaidChanged+t.SaidSame+t.SilentChanged+t.SilentSame >= maxTrust {
		t.SaidChanged, t.SaidSame, t.SilentChanged, t.SilentSame = t.SaidChanged/2, t.SaidSame/2, t.SilentChanged/2, t.SilentSame/2
	}
	switch {
	case said && changed:
		t.SaidChanged++
	case said:
		t.SaidSame++
	case changed:
		t.SilentChanged++
	default:
		t.SilentSame++
	}
	return t
}

// share returns the share of a in a + b, mixed with the prior.
func share(a, b float32, prior float64) float64 {
	return (float64(a) + float64(priorTrust*prior)) / (float64(a) + float64(b) + priorTrust)
}

// recall returns the share of changes that are announced, and alarm the share of unchanged pages for which a change
// is announced.
func (t Trust) recall() float64 { return share(t.SaidChanged, t.SilentChanged, priorRecall) }
func (t Trust) alarm() float64  { return share(t.SaidSame, t.SilentSame, priorAlarm) }

// gap converts a hint into time. hours after the previous fetch the host's sitemap was read and, if said is set, announced a
// change. The result is the number of hours without a hint after which the page would be equally likely to have
// changed. It replaces the hours in the worth of a revisit: see [Trust.Next].
func (t Trust) gap(c blobschema.Change, hours float64, said bool) float64 {
	b := of(c)
	hours = clamp(hours, leastGap, mostGap)
	r, a := t.recall(), t.alarm()
	if !said {
		r, a = 1-r, 1-a
	}
	fresh := 1 - b.stale(hours)
	fresh = float64(fresh*a) / (float64(fresh*a) + float64((1-fresh)*r))
	return b.gap(fresh)
}

// gap returns the number of hours after which a page is unchanged with probability fresh. It is the inverse of stale.
func (b belief) gap(fresh float64) float64 {
	if !(fresh > 0) {
		return mostGap
	}
	return min(mostGap, b.hours*expm1(min(log1p((1-fresh)/fresh)/b.shape, 700)))
}

// Next returns how long to wait with the next revisit of a page, hours after the previous fetch, when its
// host's sitemap was read and, if said is set, announced a change. 0 means to revisit now. The threshold
// is that of [Interval].
func (t Trust) Next(c blobschema.Change, hours float64, said bool, threshold float64) time.Duration {
	gap := t.gap(c, hours, said)
	after := Interval(c, threshold)
	if after == LongestInterval { // the worth may never reach the threshold, and a hint does not change that
		gap = hours
	}
	return max(0, after-duration(gap))
}

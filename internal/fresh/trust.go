package fresh

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Trust is how often a host's sitemaps told the truth: looks by what they had said of the page since
// the look before, and by what the look showed. The zero value is nothing known.
type Trust struct {
	_ struct{} `cbor:",toarray"`

	SaidChanged, SaidSame     float32 // of those that were said to have changed
	SilentChanged, SilentSame float32 // of those of which nothing was said
}

// maxTrust is how many looks are remembered: as of beliefs.
const maxTrust = 256

// What is believed of a host without looks: of ten changes eight are announced, and of ten pages
// that have not changed, one is.
const (
	priorRecall, priorAlarm = 0.8, 0.1
	priorTrust              = 2 // looks that this is worth
)

// Learn is the trust after a look at a page of which the host's sitemaps had said that it changed, or
// nothing.
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

// share is a of a and b, and of what is believed beforehand.
func share(a, b float32, prior float64) float64 {
	return (float64(a) + float64(priorTrust*prior)) / (float64(a) + float64(b) + priorTrust)
}

// recall is how many of the changes are announced, alarm of how many unchanged pages a change
// is.
func (t Trust) recall() float64 { return share(t.SaidChanged, t.SilentChanged, priorRecall) }
func (t Trust) alarm() float64  { return share(t.SaidSame, t.SilentSame, priorAlarm) }

// gap is after how many hours without a hint a page would be as likely to have changed as it is now, so
// many hours after the last look, when its host's sitemap was read and said that it has
// changed, or nothing. It takes the place of the hours in the worth of a look: see [Trust.Next].
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

// gap is after how many hours a page is unchanged with a probability: stale turned round.
func (b belief) gap(fresh float64) float64 {
	if !(fresh > 0) {
		return mostGap
	}
	return min(mostGap, b.hours*expm1(min(log1p((1-fresh)/fresh)/b.shape, 700)))
}

// Next is how long to wait with a look at a page, so many hours after the last one, when its
// host's sitemap was read and said that it has changed, or nothing; 0: not at all. weight and
// threshold as for [Interval].
func (t Trust) Next(c blobschema.Change, hours float64, said bool, weight, threshold float64) time.Duration {
	gap := t.gap(c, hours, said)
	after := Interval(c, weight, threshold)
	if after == Longest { // no look may be worth it: then a hint makes none so
		gap = hours
	}
	return max(0, after-duration(gap))
}

package schedule

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// This file estimates how often a page changes and how much a revisit of it is worth. It compares the worth
// with a threshold, so that all revisits together keep to a budget.
//
// It models the changes of a page as a Poisson process of unknown rate. The belief about the rate is a
// gamma distribution, [blobschema.Change], which [LearnChange] updates after each revisit. The worth of a revisit
// h hours after the previous one is its gain in freshness, the share of time in which the stored
// copy equals the page. A page is revisited when the worth
// reaches a threshold that all pages share: [Interval]. Thus no queue of all pages by worth is needed, only one number
// for all partitions. [SteerThreshold] raises it after too many revisits and lowers it after too few.
// [Trust] weighs the hints of a host's sitemaps by how often they were right.
//
// Sources: J. Cho, H. Garcia-Molina, "Effective Page Refresh Policies for Web Crawlers" (TODS
// 2003): fixed intervals; C. Olston, S. Pandey, "Recrawl Scheduling Based on Information
// Longevity" (WWW 2008): the threshold; R. Busa-Fekete and others, "A Scalable Crawling Algorithm Utilizing Noisy
// Change-Indicating Signals" (WWW 2025): a steered threshold, and hints as time that has passed. New here: the worth is
// the mean over the belief, not the worth at the mean rate.
//
// No result depends on the processor: products are rounded before they are added, and number.go has its own
// exponentials.

// Bounds of intervals.
const (
	ShortestInterval = time.Minute         // least time between two revisits of a page
	LongestInterval  = 90 * 24 * time.Hour // every page is revisited after this time
)

// Prior belief about an unknown page: the mean is one change in ten days, and
// rates far from that are likely. (Cho and Garcia-Molina, "The Evolution of the Web and
// Implications for an Incremental Crawler", VLDB 2000: a quarter of the pages changed daily, another quarter
// not within four months.)
const (
	priorShape = 0.5
	priorHours = 120
)

// Bounds of a belief. A value out of bounds is replaced by the bound.
const (
	leastShape, mostShape = 1.0 / 16, 1 << 12
	leastHours, mostHours = 1.0 / 256, 1 << 20
	leastGap, mostGap     = 1.0 / 3600, 24 * 3650 // hours between two fetches
)

// memory is the number of revisits that a belief remembers: each one replaces a part of the earlier
// ones. Thus a belief follows a page whose rate of change changes.
const memory = 64

// unlikely is the probability below which an observation casts doubt on the belief: the belief
// fades in proportion. The tails of gamma distributions are thin, but real rates span
// five powers of ten.
const unlikely = 1.0 / 32

// Revisit is the result of a revisit.
type Revisit struct {
	Hours   float64 // since the previous fetch
	Changed bool
	// Hinted: a sitemap said that the page had changed, and this caused the revisit. It follows soon after the
	// change, whereas other revisits come anywhere between two changes.
	Hinted bool
}

// belief is a Change within bounds: a gamma distribution of a rate of change per hour.
type belief struct{ shape, hours float64 }

// of returns the belief that c stores, or the prior if c is empty.
func of(c blobschema.Change) belief {
	if !(c.Shape > 0 && c.Hours > 0) {
		return belief{priorShape, priorHours}
	}
	return belief{clamp(float64(c.Shape), leastShape, mostShape), clamp(float64(c.Hours), leastHours, mostHours)}
}

func (b belief) change() blobschema.Change {
	return blobschema.Change{
		Shape: float32(clamp(b.shape, leastShape, mostShape)), Hours: float32(clamp(b.hours, leastHours, mostHours)),
	}
}

// clamp returns x within lo and hi. It returns lo for NaN.
func clamp(x, lo, hi float64) float64 {
	if !(x > lo) {
		return lo
	}
	return min(x, hi)
}

// PriorChange returns the belief about a page that was never revisited. host is the belief about all pages of its host, as if they were
// one page. The result has the same mean rate but a much larger variance.
func PriorChange(host blobschema.Change) blobschema.Change {
	b := of(host)
	return belief{priorShape, priorShape / b.shape * b.hours}.change()
}

// LearnChange returns the belief after a revisit, by Bayes' rule. The likelihood of no change in h hours is
// e^-rh, of at least one change 1 - e^-rh, and of a change just now re^-rh. After the second case the result is not a gamma
// distribution; LearnChange uses the gamma distribution with the same mean and variance. Before the update the
// belief fades, a little if the result was expected and much if it was unlikely.
func LearnChange(c blobschema.Change, l Revisit) blobschema.Change {
	l.Hours = clamp(l.Hours, leastGap, mostGap)
	b := of(c)
	if c != (blobschema.Change{}) {
		b = b.times(1 - 1/float64(memory))
	}
	if p := b.stale(l.Hours); l.Changed && p < unlikely {
		b = b.times(p / unlikely)
	}
	return b.learn(l).change()
}

// times weakens a belief: the mean stays, and the variance grows by 1/keep.
func (b belief) times(keep float64) belief {
	keep = max(keep, leastShape/b.shape)
	return belief{b.shape * keep, b.hours * keep}
}

func (b belief) learn(l Revisit) belief {
	switch {
	case !l.Changed:
		return belief{b.shape, b.hours + l.Hours}
	case l.Hinted:
		return belief{b.shape + 1, b.hours + l.Hours}
	}
	return b.changed(l.Hours)
}

// changed returns b after a revisit that found a change in gap hours. With L(k) = 1 - (1+h/hours)^-k
// the moments are E[r] = shape/hours L(shape+1)/L(shape), and E[r²] = shape(shape+1)/hours² L(shape+2)/L(shape).
func (b belief) changed(gap float64) belief {
	log := log1p(gap / b.hours)
	some := func(k float64) float64 { return -expm1(-float64(k * log)) }
	first := b.shape * some(b.shape+1) / some(b.shape) // in units of 1/hours
	second := b.shape * (b.shape + 1) * some(b.shape+2) / some(b.shape)
	variance := second - float64(first*first)
	if !(variance > 0) {
		return b
	}
	return belief{float64(first*first) / variance, float64(first/variance) * b.hours}
}

// stale returns the probability that a page changed within gap hours.
func (b belief) stale(gap float64) float64 {
	return -expm1(-float64(b.shape * log1p(gap/b.hours)))
}

// worth returns the gain in freshness, in hours, of a revisit gap hours after the previous fetch of a
// page of weight 1. At a known rate r it is 1/r (1 - (1+rh) e^-rh), the derivative of
// freshness by the number of revisits. worth is the mean of that over the belief. It grows with
// the hours, without limit if the shape of the belief is 1 or less.
func (b belief) worth(gap float64) float64 {
	t := gap / b.hours
	log := log1p(t)
	k := b.shape - 1
	// (1 - (1+t)^-k) / k; its limit at k = 0 is the logarithm of 1+t.
	power, sum := exp(-float64(k*log)), log
	if k > 1e-6 || k < -1e-6 {
		sum = -expm1(-float64(k*log)) / k
	}
	return max(0, b.hours*(sum-float64(t/(1+t)*power)))
}

// steps is the number of bisections of an interval. 14 give a precision of a thousandth.
const steps = 14

// Interval returns the time after which the worth of a revisit reaches the threshold, between ShortestInterval and
// LongestInterval. If the worth never reaches it, the result is LongestInterval. A threshold of 0 or less gives
// ShortestInterval. The threshold of a page that matters w times as much as others is theirs divided by w.
func Interval(c blobschema.Change, threshold float64) time.Duration {
	b, lo, hi := of(c), ShortestInterval.Hours(), LongestInterval.Hours()
	reaches := func(gap float64) bool { return b.worth(gap) >= threshold }
	switch {
	case reaches(lo):
		return ShortestInterval
	case !reaches(hi):
		return LongestInterval
	}
	return duration(bisect(lo, hi, steps, reaches))
}

// bisect returns approximately the least x between lo and hi, both above 0, for which a monotone f is true.
func bisect(lo, hi float64, steps int, f func(x float64) bool) float64 {
	for range steps {
		switch mid := sqrt(lo * hi); {
		case mid <= lo || mid >= hi: // no float64 lies between them
			return mid
		case f(mid):
			hi = mid
		default:
			lo = mid
		}
	}
	return sqrt(lo * hi)
}

func duration(hours float64) time.Duration {
	return min(max(time.Duration(hours*float64(time.Hour)), ShortestInterval), LongestInterval)
}

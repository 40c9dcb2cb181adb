package fresh

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Bounds of intervals.
const (
	Shortest = time.Minute         // no page is looked at more often
	Longest  = 90 * 24 * time.Hour // no page is forgotten, whatever is believed of it
)

// What is believed of a page of which nothing is known: the mean is one change in ten days, and
// rates far from that are likely. (Cho and Garcia-Molina, "The Evolution of the Web and
// Implications for an Incremental Crawler", VLDB 2000: a quarter of pages changed daily, as many
// not in four months.)
const (
	priorShape = 0.5
	priorHours = 120
)

// Bounds of what is kept. Shapes and hours out of them are taken for the next bound.
const (
	leastShape, mostShape = 1.0 / 16, 1 << 12
	leastHours, mostHours = 1.0 / 256, 1 << 20
	leastGap, mostGap     = 1.0 / 3600, 24 * 3650 // hours between two looks
)

// memory is how many looks a belief consists of: each takes the place of a part of those
// before. Pages that begin to change, or cease to, are noticed so.
const memory = 64

// unlikely is the probability below which what a look shows puts the belief itself in doubt: it
// fades in proportion. For the tails of gamma distributions are thin, and real rates lie within
// five powers of ten.
const unlikely = 1.0 / 32

// Look is what asking for a page once more has shown.
type Look struct {
	Hours   float64 // since the look before
	Changed bool
	// Hinted: something said that the page had changed, and the look was taken for that. It comes soon after a
	// change, where others come anywhere between two.
	Hinted bool
}

// belief is a Change within bounds: a gamma distribution of a rate.
type belief struct{ shape, hours float64 }

// of is what c says; nothing known is the prior.
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

// clamp makes NaN lo.
func clamp(x, lo, hi float64) float64 {
	if !(x > lo) {
		return lo
	}
	return min(x, hi)
}

// Prior is what is believed of a page that was never looked at again, given what the host's
// pages showed as if they were one: a rate like theirs, but far from sure.
func Prior(host blobschema.Change) blobschema.Change {
	b := of(host)
	return belief{priorShape, priorShape / b.shape * b.hours}.change()
}

// Learn is what is believed after a look, by Bayes' rule: of no change in h hours the
// likelihood is e^-rh, of some 1 - e^-rh, and of one just now re^-rh. The second leads out of the gamma
// distributions; the one with the same mean and variance takes its place. Before that the
// belief fades a little, or much if the look is a surprise.
func Learn(c blobschema.Change, l Look) blobschema.Change {
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

// times makes a belief weaker: the mean stays, and the variance grows.
func (b belief) times(keep float64) belief {
	keep = max(keep, leastShape/b.shape)
	return belief{b.shape * keep, b.hours * keep}
}

func (b belief) learn(l Look) belief {
	switch {
	case !l.Changed:
		return belief{b.shape, b.hours + l.Hours}
	case l.Hinted:
		return belief{b.shape + 1, b.hours + l.Hours}
	}
	return b.changed(l.Hours)
}

// changed is b after a look that saw a change in so many hours. With L(k) = 1 - (1+h/hours)^-k
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

// stale is the probability that a page changed in so many hours.
func (b belief) stale(gap float64) float64 {
	return -expm1(-float64(b.shape * log1p(gap/b.hours)))
}

// worth is what a look adds to freshness if it comes so many hours after the last, in hours, to a
// page of the usual weight 1. At a known rate r it is 1/r (1 - (1+rh) e^-rh), the derivative of
// freshness by the number of looks; this is the mean of that over what is believed. It grows with
// the hours, without end where the belief's shape is 1 or less.
func (b belief) worth(gap float64) float64 {
	t := gap / b.hours
	log := log1p(t)
	k := b.shape - 1
	// (1 - (1+t)^-k) / k, which is the logarithm of 1+t at k = 0.
	power, sum := exp(-float64(k*log)), log
	if k > 1e-6 || k < -1e-6 {
		sum = -expm1(-float64(k*log)) / k
	}
	return max(0, b.hours*(sum-float64(t/(1+t)*power)))
}

// steps halve the logarithm of an interval's bounds: to within a thousandth.
const steps = 14

// Interval is how long after a look the next one is worth the threshold: between Shortest and
// Longest, which it is too where no look is ever worth that. weight is how much the page matters; 1 is usual. A threshold of
// 0 or less makes it Shortest.
func Interval(c blobschema.Change, weight, threshold float64) time.Duration {
	b, lo, hi := of(c), Shortest.Hours(), Longest.Hours()
	reaches := func(gap float64) bool { return weight*b.worth(gap) >= threshold }
	switch {
	case reaches(lo):
		return Shortest
	case !reaches(hi):
		return Longest
	}
	return duration(bisect(lo, hi, steps, reaches))
}

// bisect is about the least x between lo and hi, both above 0, at which a monotone f is true.
func bisect(lo, hi float64, steps int, f func(x float64) bool) float64 {
	for range steps {
		switch mid := sqrt(lo * hi); {
		case mid <= lo || mid >= hi: // there is no number between them
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
	return min(max(time.Duration(hours*float64(time.Hour)), Shortest), Longest)
}

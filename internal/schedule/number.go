package schedule

import "math"

// Exponentials with the same result on every processor. Those of package math are in assembly on some processors and
// may differ in the last digit. The conversions prevent the compiler from fusing products with sums.

const (
	ln2High = 0x1.62e42feep-01 // the product with a small integer is exact
	ln2Low  = 0x1.a39ef35793c76p-33
	terms   = 13 // number of terms of series: 0.35^13 / 13! is below 1e-16
)

// split returns k and r with x = k ln 2 + r and |r| <= 0.35.
func split(x float64) (k int, r float64) {
	n := math.Round(x / math.Ln2)
	return int(n), (x - float64(n*ln2High)) - float64(n*ln2Low)
}

// series returns e^r - 1 for |r| <= 0.35.
func series(r float64) float64 {
	sum := 0.0
	for i := terms; i > 0; i-- {
		sum = float64(r*(1+sum)) / float64(i)
	}
	return sum
}

// exp returns e^x, or 0 for very small x. The result is finite for x <= 700.
func exp(x float64) float64 {
	if x < -740 {
		return 0
	}
	k, r := split(min(x, 700))
	return math.Ldexp(1+series(r), k)
}

// expm1 returns e^x - 1, exact near 0.
func expm1(x float64) float64 {
	if x > -0.3 && x < 0.3 {
		return series(x)
	}
	return exp(x) - 1
}

// log1p returns the logarithm of 1+x, exact near 0. x must be finite and not negative.
func log1p(x float64) float64 {
	if x < 0.4 {
		return atanh2(x / (2 + x))
	}
	m, k := math.Frexp(1 + x)
	if m < math.Sqrt2/2 {
		m, k = 2*m, k-1
	}
	return float64(float64(k)*ln2High) + (float64(float64(k)*ln2Low) + atanh2((m-1)/(m+1)))
}

// atanh2 returns 2 atanh s for |s| <= 0.18.
func atanh2(s float64) float64 {
	sq, sum := float64(s*s), 0.0
	for i := 2*terms - 3; i > 0; i -= 2 {
		sum = float64(sq*sum) + 1/float64(i)
	}
	return 2 * float64(s*sum)
}

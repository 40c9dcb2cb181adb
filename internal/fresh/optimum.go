package fresh

import "math"

// Page is a page whose rate of changes is known: for reports and tests.
type Page struct {
	Rate   float64 // changes an hour, above 0
	Weight float64 // how much it matters, above 0
}

// search is how many halvings find a threshold among all that may be.
const search = 120

// Optimum is the best that perHour looks an hour can do at times that are drawn at random: the
// rate of looks at each page, and the freshness of all, the mean by weight. Pages that change too
// often have none. (Azar and others, 2018: with weights m and rates d of changes, those of looks are max(0, sqrt(m
// d / threshold) - d), and freshness is the sum of m r / (r + d).)
func Optimum(pages []Page, perHour float64) (rates []float64, freshness float64) {
	return optimum(pages, perHour,
		func(p Page, threshold float64) float64 {
			return max(0, math.Sqrt(p.Weight*p.Rate/threshold)-p.Rate)
		},
		func(p Page, rate float64) float64 { return rate / (rate + p.Rate) })
}

// FixedOptimum is the best that perHour looks an hour can do at fixed intervals: more than
// Optimum, for they come at better times. (Cho and Garcia-Molina, 2003: freshness at intervals t is
// (1 - e^-dt) / dt.) Intervals are not bounded as those of [Interval] are.
func FixedOptimum(pages []Page, perHour float64) (rates []float64, freshness float64) {
	return optimum(pages, perHour,
		func(p Page, threshold float64) float64 {
			// Weight/d (1 - (1+x) e^-x) = threshold, of x = dt.
			want := threshold * p.Rate / p.Weight
			if want >= 1 {
				return 0
			}
			x := bisect(1e-12, 800, 60, func(x float64) bool { return -expm1(-x)-float64(x*exp(-x)) >= want })
			return p.Rate / x
		},
		func(p Page, rate float64) float64 {
			if rate == 0 {
				return 0
			}
			x := p.Rate / rate
			return -expm1(-x) / x
		})
}

// optimum finds the threshold at which all rates together are perHour.
func optimum(pages []Page, perHour float64, rateAt, freshAt func(Page, float64) float64) (rates []float64, freshness float64) {
	rates = make([]float64, len(pages))
	if len(pages) == 0 || !(perHour > 0) {
		return rates, 0
	}
	threshold := bisect(1e-15, 1e15, search, func(threshold float64) bool {
		sum := 0.0
		for _, p := range pages {
			sum += rateAt(p, threshold)
		}
		return sum <= perHour
	})
	weights := 0.0
	for i, p := range pages {
		rates[i] = rateAt(p, threshold)
		freshness += float64(p.Weight * freshAt(p, rates[i]))
		weights += p.Weight
	}
	return rates, freshness / weights
}

package experiment

import "math"

// changing is a page whose rate of changes is known.
type changing struct {
	Rate   float64 // changes per hour, above 0
	Weight float64 // importance, above 0
}

// halvings is enough to find a threshold among all relevant positive numbers.
const halvings = 120

// optimum returns the best result of perHour revisits per hour at random times: the rate of revisits of each page, and the
// mean freshness of all pages by weight. Pages that change too often are never revisited. (Azar and others,
// 2018: with weights m and rates d of changes, the rates of revisits are max(0, sqrt(m d / threshold) - d), and
// freshness is the sum of m r / (r + d).)
func optimum(pages []changing, perHour float64) (rates []float64, freshness float64) {
	return optimize(pages, perHour,
		func(p changing, threshold float64) float64 {
			return max(0, math.Sqrt(p.Weight*p.Rate/threshold)-p.Rate)
		},
		func(p changing, rate float64) float64 { return rate / (rate + p.Rate) })
}

// fixedOptimum returns the best result of perHour revisits per hour at fixed intervals, which is better than
// optimum. (Cho and Garcia-Molina, 2003: freshness at intervals t is (1 - e^-dt) / dt.) The intervals are not
// bounded, unlike those of schedule.Interval.
func fixedOptimum(pages []changing, perHour float64) (rates []float64, freshness float64) {
	return optimize(pages, perHour,
		func(p changing, threshold float64) float64 {
			// Weight/d (1 - (1+x) e^-x) = threshold, where x = dt.
			want := threshold * p.Rate / p.Weight
			if want >= 1 {
				return 0
			}
			x := bisect(1e-12, 800, 60, func(x float64) bool { return -math.Expm1(-x)-x*math.Exp(-x) >= want })
			return p.Rate / x
		},
		func(p changing, rate float64) float64 {
			if rate == 0 {
				return 0
			}
			x := p.Rate / rate
			return -math.Expm1(-x) / x
		})
}

// optimize finds the threshold at which the sum of all rates is perHour.
func optimize(pages []changing, perHour float64, rateAt, freshAt func(changing, float64) float64) (rates []float64, freshness float64) {
	rates = make([]float64, len(pages))
	if len(pages) == 0 || !(perHour > 0) {
		return rates, 0
	}
	threshold := bisect(1e-15, 1e15, halvings, func(threshold float64) bool {
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

// bisect returns the least x between low and high, on a logarithmic scale, at which reached holds.
func bisect(low, high float64, steps int, reached func(float64) bool) float64 {
	for range steps {
		middle := math.Sqrt(low * high)
		if reached(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

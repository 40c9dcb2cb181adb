package experiment

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestOptimum(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	pages := make([]changing, 300)
	for i := range pages {
		pages[i] = changing{Rate: math.Exp(2 * r.NormFloat64()), Weight: 0.5 + r.Float64()}
	}
	sum := func(rates []float64) (s float64) {
		for _, x := range rates {
			s += x
		}
		return s
	}
	poisson, best := optimum(pages, 150)
	fixed, bestFixed := fixedOptimum(pages, 150)
	near("budget", sum(poisson), 150)
	near("budget of fixed intervals", sum(fixed), 150)
	if !(bestFixed > best && best > 0.2) {
		t.Errorf("freshness %v, at fixed intervals %v", best, bestFixed)
	}
	// No nearby rates are better.
	value := func(rates []float64) (v float64) {
		for i, p := range pages {
			v += p.Weight * rates[i] / (rates[i] + p.Rate)
		}
		return v
	}
	top := value(poisson)
	for range 2000 {
		a, b := r.IntN(len(pages)), r.IntN(len(pages))
		if a == b {
			continue
		}
		by := min(poisson[a], 0.01)
		poisson[a], poisson[b] = poisson[a]-by, poisson[b]+by
		if v := value(poisson); v > top+1e-9 {
			t.Fatalf("moving %v of page %d to %d makes %v of %v", by, a, b, v, top)
		}
		poisson[a], poisson[b] = poisson[a]+by, poisson[b]-by
	}
	// By hand: two pages with equal rates have half each.
	rates, f := optimum([]changing{{1, 1}, {1, 1}}, 2)
	near("half", rates[0], 1)
	near("freshness", f, 0.5)
	if _, f := fixedOptimum([]changing{{1, 1}, {1, 1}}, 2); math.Abs(f-(1-math.Exp(-1))) > 1e-9 {
		t.Errorf("freshness at fixed intervals %v", f)
	}
	if rates, f := optimum(nil, 1); len(rates) != 0 || f != 0 {
		t.Error("no pages")
	}
}

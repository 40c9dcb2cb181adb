package schedule

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// rateOf returns the mean of the believed rate, in changes per hour.
func rateOf(c blobschema.Change) float64 {
	b := of(c)
	return b.shape / b.hours
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within*max(math.Abs(want), 1e-300)) {
		t.Errorf("%s: %v, want %v within %g", what, got, want, within)
	}
}

func TestNumbers(t *testing.T) {
	for x := -745.0; x < 701; x += 0.37 {
		if x > -700 && x < 700 {
			near(t, "exp", exp(x), math.Exp(x), 1e-14)
		}
		near(t, "expm1", expm1(x/100), math.Expm1(x/100), 1e-14)
	}
	for x := 1e-12; x < 1e300; x *= 1.7 {
		near(t, "log1p", log1p(x), math.Log1p(x), 1e-14)
		near(t, "expm1", expm1(-x), math.Expm1(-x), 1e-14)
	}
	for what, got := range map[string]float64{"exp": exp(-1e300), "expm1": expm1(0), "log1p": log1p(0), "series": series(0)} {
		if got != 0 {
			t.Errorf("%s is %v, want 0", what, got)
		}
	}
	if v := exp(1e300); math.IsInf(v, 0) || v < 1e300 {
		t.Errorf("exp of a large value is %v", v)
	}
}

// bayes applies Bayes' rule on a grid of rates, without assuming a family of distributions.
func bayes(b belief, likelihood func(rate float64) float64) (mean, variance float64) {
	var sum, first, second float64
	for x := -40.0; x < 12; x += 0.001 { // of the logarithm of rate times hours
		r := math.Exp(x) / b.hours
		w := likelihood(r) * math.Exp(b.shape*x-math.Exp(x))
		sum, first, second = sum+w, first+w*r, second+w*r*r
	}
	mean = first / sum
	return mean, second/sum - mean*mean
}

// TestLearnIsBayes compares one revisit with Bayes' rule on a grid.
func TestLearnIsBayes(t *testing.T) {
	for _, b := range []belief{{0.5, 120}, {1, 1}, {7.5, 3}, {40, 4000}} {
		for _, gap := range []float64{0.02, 1, 24, 700} {
			for _, l := range []struct {
				Revisit
				likelihood func(r float64) float64
			}{
				{Revisit{Hours: gap}, func(r float64) float64 { return math.Exp(-r * gap) }},
				{Revisit{Hours: gap, Changed: true}, func(r float64) float64 { return -math.Expm1(-r * gap) }},
				{Revisit{Hours: gap, Changed: true, Hinted: true}, func(r float64) float64 { return r * math.Exp(-r*gap) }},
			} {
				got := b.learn(l.Revisit)
				mean, variance := bayes(b, l.likelihood)
				near(t, "mean", got.shape/got.hours, mean, 1e-4)
				near(t, "variance", got.shape/got.hours/got.hours, variance, 1e-3)
			}
		}
	}
}

// TestLearnFindsRates checks that many revisits find the known rates of pages.
func TestLearnFindsRates(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, rate := range []float64{1.0 / 2000, 1.0 / 100, 1, 20} {
		for _, times := range []float64{0.3, 1, 2} { // changes between two revisits
			sum := 0.0
			const pages = 60
			for range pages {
				var c blobschema.Change
				for range 150 {
					gap := times / rate * (0.5 + r.Float64())
					c = LearnChange(c, Revisit{Hours: gap, Changed: r.Float64() < -math.Expm1(-rate*gap)})
				}
				sum += rateOf(c)
			}
			near(t, "rate", sum/pages, rate, 0.2)
		}
	}
}

// TestHintedRevisitsAreNotBiased checks that revisits right after each change do not bias the estimate.
func TestHintedRevisitsAreNotBiased(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	sum := 0.0
	for range 100 {
		var c blobschema.Change
		for range 200 {
			c = LearnChange(c, Revisit{Hours: r.ExpFloat64() * 10, Changed: true, Hinted: true})
		}
		sum += rateOf(c)
	}
	near(t, "rate", sum/100, 0.1, 0.05)
}

// TestBeliefsFollow checks that estimates follow pages whose rate changes after years.
func TestBeliefsFollow(t *testing.T) {
	var c blobschema.Change
	for range 200 {
		c = LearnChange(c, Revisit{Hours: 500})
	}
	if r := rateOf(c); r > 1.0/20_000 {
		t.Errorf("after 11 years without a change its rate is %v", r)
	}
	for range 12 {
		c = LearnChange(c, Revisit{Hours: 24, Changed: true})
	}
	if r := rateOf(c); r < 1.0/5000 {
		t.Errorf("after twelve changes its rate is %v", r)
	}
	for range 400 {
		c = LearnChange(c, Revisit{Hours: 24, Changed: true})
	}
	if r := rateOf(c); r < 1.0/48 {
		t.Errorf("after a year of changes its rate is %v", r)
	}
	for range 200 {
		c = LearnChange(c, Revisit{Hours: 500})
	}
	if r := rateOf(c); r > 1.0/10_000 {
		t.Errorf("after 11 more years without a change its rate is %v", r)
	}
}

// worthOn computes Worth by integration.
func worthOn(b belief, gap float64) float64 {
	var sum, all float64
	for x := -60.0; x < 12; x += 0.001 {
		r := math.Exp(x) / b.hours
		w := math.Exp(b.shape*x - math.Exp(x))
		all += w
		sum += w * (-math.Expm1(-r*gap) - r*gap*math.Exp(-r*gap)) / r
	}
	return sum / all
}

func TestWorth(t *testing.T) {
	for _, b := range []belief{{0.5, 120}, {1, 100}, {1.000001, 100}, {3, 2}, {64, 640}} {
		last := 0.0
		for _, gap := range []float64{0.05, 1, 30, 2000} {
			got := 2 * of(b.change()).worth(gap)
			near(t, "worth", got, 2*worthOn(of(b.change()), gap), 1e-4)
			if !(got > last) {
				t.Errorf("%+v: the worth after %v h is %v, before it was %v", b, gap, got, last)
			}
			last = got
		}
	}
	// For a known rate it equals the formula.
	for _, gap := range []float64{0.1, 1, 10} {
		near(t, "worth at a known rate", of(blobschema.Change{Shape: 4000, Hours: 8000}).worth(gap), 2*(1-(1+gap/2)*math.Exp(-gap/2)), 2e-3)
	}
}

func TestInterval(t *testing.T) {
	for _, c := range []blobschema.Change{{}, {Shape: 0.25, Hours: 1}, {Shape: 3, Hours: 500}, {Shape: 100, Hours: 1e5}} {
		last := LongestInterval
		for threshold := 1e5; threshold > 1e-8; threshold /= 3 {
			got := Interval(c, threshold)
			if got > last || got < ShortestInterval {
				t.Errorf("%+v: the interval at %v is %v, at more it is %v", c, threshold, got, last)
			}
			if last = got; got > ShortestInterval && got < LongestInterval {
				near(t, "worth after the interval", of(c).worth(got.Hours()), threshold, 0.01)
			}
		}
		if last != ShortestInterval {
			t.Errorf("%+v: the interval at a threshold of nearly 0 is %v", c, last)
		}
	}
	still, often := blobschema.Change{Shape: 1, Hours: 1e5}, blobschema.Change{Shape: 3000, Hours: 300}
	if got := Interval(often, 5); got != LongestInterval {
		t.Errorf("a page that changes every six minutes is revisited after %v", got)
	}
	if a, b := Interval(still, 5), Interval(still, 5.0/9); b >= a {
		t.Errorf("a more important page is revisited after %v, another page after %v", b, a)
	}
}

// TestHostile checks that results are within bounds for any stored values and counts.
func TestHostile(t *testing.T) {
	odd := []float64{0, math.Copysign(0, -1), 1e-320, 1e-30, 1, 1e30, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), -1}
	for _, a := range odd {
		for _, b := range odd {
			c := blobschema.Change{Shape: float32(a), Hours: float32(b)}
			for _, x := range odd {
				checkAll(t, c, x, 1, 1)
				checkAll(t, c, 1, x, 1)
				checkAll(t, c, 1, 1, x)
			}
		}
	}
}

func FuzzFresh(f *testing.F) {
	f.Add(float32(0), float32(0), 1.0, 1.0, 1.0)
	f.Add(float32(1), float32(1e-30), 1e30, 1e-3, 1e-9)
	f.Fuzz(func(t *testing.T, shape, hours float32, gap, weight, threshold float64) {
		checkAll(t, blobschema.Change{Shape: shape, Hours: hours}, gap, weight, threshold)
	})
}

func checkAll(t *testing.T, c blobschema.Change, gap, weight, threshold float64) {
	t.Helper()
	for _, l := range []Revisit{{gap, false, false}, {gap, true, false}, {gap, true, true}, {gap, false, true}} {
		got := LearnChange(c, l)
		if !(got.Shape >= leastShape && got.Shape <= mostShape && got.Hours >= leastHours && got.Hours <= mostHours) {
			t.Fatalf("%+v after %+v is %+v", c, l, got)
		}
		if p := PriorChange(got); !(p.Shape >= leastShape && p.Hours >= leastHours && p.Hours <= mostHours) {
			t.Fatalf("%+v predicts %+v", got, p)
		}
		if i := Interval(got, threshold/weight); i < ShortestInterval || i > LongestInterval {
			t.Fatalf("interval %v", i)
		}
		if w := of(got).worth(clamp(gap, 0, mostGap)); !(w >= 0) || math.IsInf(w, 0) {
			t.Fatalf("%+v is worth %v after %v h", got, w, gap)
		}
	}
	trust := Trust{SaidChanged: float32(threshold), SilentSame: float32(weight)}
	for _, said := range []bool{false, true} {
		if n := (Trust{SaidSame: 3}).Next(c, gap, said, threshold/weight); n < 0 || n > LongestInterval {
			t.Fatalf("the next revisit is after %v", n)
		}
		if g := trust.gap(c, gap, said); !(g >= 0 && g <= mostGap) && trust.SaidChanged >= 0 && trust.SilentSame >= 0 {
			t.Fatalf("%+v: gap %v", trust, g)
		}
	}
	for _, v := range []float64{SteerThreshold(threshold, gap, weight), SteerThreshold(gap, weight, threshold), FirstThreshold(gap, weight)} {
		if !(v >= leastThreshold && v <= mostThreshold) {
			t.Fatalf("threshold %v", v)
		}
	}
}

// TestSteer checks that pages with unknown rates are revisited as often as wanted, from any first threshold, without
// oscillation.
func TestSteer(t *testing.T) {
	for _, factor := range []float64{1, 10, 0.1} {
		r := rand.New(rand.NewPCG(3, 4))
		const pages, perHour = 2000, 40 // one revisit of each page in 50 hours
		beliefs := make([]blobschema.Change, pages)
		due := make([]float64, pages)
		threshold := factor * FirstThreshold(pages, perHour)
		for i := range beliefs {
			beliefs[i] = blobschema.Change{Shape: 8, Hours: float32(8 * 240 * math.Exp(1.5*r.NormFloat64()))}
			due[i] = r.Float64() * Interval(beliefs[i], threshold).Hours()
		}
		var byWeek []float64
		week := 0.0
		for hour := 1; hour <= 20*168; hour++ {
			revisits := 0.0
			for i := range due {
				for due[i] < float64(hour) {
					due[i] += Interval(beliefs[i], threshold).Hours()
					revisits++
				}
			}
			threshold = SteerThreshold(threshold, pages, revisits-perHour)
			if week += revisits / perHour / 168; hour%168 == 0 {
				byWeek, week = append(byWeek, week), 0
			}
		}
		for i, w := range byWeek[6:] {
			if math.Abs(w-1) > 0.05 {
				t.Errorf("first threshold times %g: in week %d there are %.2f of the wanted revisits: %.2f", factor, i+7, w, byWeek)
				break
			}
		}
	}
	a := SteerThreshold(SteerThreshold(3, 1000, 20), 1000, -50)
	near(t, "two answers", SteerThreshold(3, 1000, -30), a, 1e-12)
}

func TestFirst(t *testing.T) {
	threshold := FirstThreshold(10_000, 100)
	if got := Interval(blobschema.Change{}, threshold); got < 99*time.Hour || got > 101*time.Hour {
		t.Errorf("10,000 pages at 100 an hour: each after %v", got)
	}
}

func TestTrust(t *testing.T) {
	learn := func(t Trust, n int, said, changed bool) Trust {
		for range n {
			t = t.Learn(said, changed)
		}
		return t
	}
	truth := learn(learn(Trust{}, 50, true, true), 50, false, false)
	lies := learn(learn(Trust{}, 50, true, false), 50, false, true)
	noise := learn(learn(learn(learn(Trust{}, 30, true, false), 30, false, false), 30, true, true), 30, false, true)
	c, threshold := blobschema.Change{Shape: 4, Hours: 400}, 5.0
	plain := Interval(c, threshold)
	for _, x := range []struct {
		what     string
		trust    Trust
		said     bool
		least    time.Duration
		most     time.Duration
		gapLeast float64
		gapMost  float64
	}{
		{"true: changed", truth, true, 0, 0, 200, mostGap},
		{"true: nothing", truth, false, plain - time.Hour, plain, 0, 1},
		{"new host: changed", Trust{}, true, 0, 0, 20, mostGap},
		{"useless: changed", noise, true, plain - 11*time.Hour, plain - 9*time.Hour, 9, 11},
		{"useless: nothing", noise, false, plain - 11*time.Hour, plain - 9*time.Hour, 9, 11},
		{"lies: changed", lies, true, plain - 2*time.Hour, plain, 0, 2},
	} {
		if got := x.trust.Next(c, 10, x.said, threshold); got < x.least || got > x.most {
			t.Errorf("%s: the next revisit is after %v, want %v to %v (%v without)", x.what, got, x.least, x.most, plain)
		}
		if got := x.trust.gap(c, 10, x.said); got < x.gapLeast || got > x.gapMost {
			t.Errorf("%s: gap %v, want %v to %v", x.what, got, x.gapLeast, x.gapMost)
		}
	}
	often := blobschema.Change{Shape: 3000, Hours: 300}
	if got := truth.Next(often, 10, true, 5); got < LongestInterval-11*time.Hour {
		t.Errorf("a page that changes too often to be worth a revisit is revisited %v after a hint", got)
	}
	if old := learn(truth, 2000, true, false); old.alarm() < 0.5 {
		t.Errorf("after 2,000 false alarms the estimated share of unchanged pages listed as changed is %.2f", old.alarm())
	}
}

func BenchmarkInterval(b *testing.B) {
	c := blobschema.Change{Shape: 3, Hours: 500}
	for b.Loop() {
		Interval(c, 5)
	}
}

func BenchmarkLearn(b *testing.B) {
	c := blobschema.Change{Shape: 3, Hours: 500}
	for b.Loop() {
		LearnChange(c, Revisit{Hours: 20, Changed: true})
	}
}

package experiment

import (
	"math"
	"slices"
	"testing"

	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

func TestSpreadOf(t *testing.T) {
	for _, c := range []struct {
		counts []int
		want   spread
	}{
		{[]int{0, 0}, spread{0, 0}}, {[]int{7}, spread{0, 1}}, {[]int{5, 5, 5}, spread{0, 1}}, {[]int{1, 3}, spread{0.5, 1.5}},
		{[]int{8, 0, 0, 0}, spread{math.Sqrt(3), 4}},
	} {
		if got := spreadOf(c.counts); math.Abs(got.deviation-c.want.deviation) > 1e-12 || got.fullest != c.want.fullest {
			t.Errorf("%v: got %v, want %v", c.counts, got, c.want)
		}
	}
}

// TestURLKinds checks that the URLs are canonical and different, because otherwise their hashes would not be those of a crawl.
func TestURLKinds(t *testing.T) {
	web, err := simweb.New(simweb.Config{Seed: 1, Hosts: 1, Names: true, Pages: simweb.Pages{Min: 5_000}})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range urlKinds(web) {
		seen := map[string]bool{}
		for i := range 5_000 {
			s := k.url(i)
			if u, err := weburl.Parse(s); err != nil || u.String() != s || seen[s] {
				t.Fatalf("%s: %s is %s (%v), seen before: %v", k.name, s, u, err, seen[s])
			}
			seen[s] = true
		}
	}
}

// TestQueueAssignment runs the experiment on a small portal. The report is complete, and the checks that do not depend on
// size hold.
func TestQueueAssignment(t *testing.T) {
	small(t, "queue-assignment", queueAssignment, nil)
}

// small runs an experiment in seconds. Checks of the large sections may fail.
func small(t *testing.T, name string, run func(Options) (*Report, error), large []string) {
	t.Helper()
	r, err := run(Options{Seed: 2, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	checkReport(t, dir, name)
	for _, s := range r.Sections {
		for _, c := range s.Checks {
			if !c.OK && !slices.Contains(large, s.Title) {
				t.Errorf("%s: %s", s.Title, c.What)
			}
		}
	}
}

func TestLate(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{4}, 4}, {[]float64{9, 1, 3}, 2}, {[]float64{9, 9, 1, 3}, 2}} {
		if got := late(c.values); got != c.want {
			t.Errorf("%v: got %v, want %v", c.values, got, c.want)
		}
	}
}

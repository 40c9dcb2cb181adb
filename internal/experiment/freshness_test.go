package experiment

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFreshness runs the experiment on few pages, twice: what comes of it is the same, and all
// that it is to show holds.
func TestFreshness(t *testing.T) {
	var first string
	for range 2 {
		r, err := freshness(Options{Seed: 1, Quick: true, Pages: 1_000})
		if err != nil {
			t.Fatal(err)
		}
		doc := r.Markdown()
		if first == "" {
			first = doc
			for _, f := range r.Failed() {
				if !strings.Contains(f, "at fixed intervals") && !strings.Contains(f, "still used") { // these are of long times
					t.Error(f)
				}
			}
			for _, bad := range []string{"%!", "NaN", "<nil>"} {
				if strings.Contains(doc, bad) {
					t.Errorf("the document has %q", bad)
				}
			}
		}
		if d := cmp.Diff(first, doc); d != "" {
			t.Errorf("-first +second:\n%s", d)
		}
	}
}

// TestModelKnowsItsFreshness: pages alike at equal intervals, whose freshness is known.
func TestModelKnowsItsFreshness(t *testing.T) {
	p := newLivePages(1, 3_000, 10)
	for i := range p.pages {
		p.pages[i].Rate = 1.0 / 24
	}
	m := p.run(1, rule{interval: func(int) float64 { return 24 }}, float64(len(p.pages))/24, 24*30, 24)
	if want := 1 - math.Exp(-1); math.Abs(m.learnt()-want) > 0.01 {
		t.Errorf("freshness %.3f, want %.3f", m.learnt(), want)
	}
	if math.Abs(m.spent()-1) > 0.01 {
		t.Errorf("%.3f of the budget", m.spent())
	}
}

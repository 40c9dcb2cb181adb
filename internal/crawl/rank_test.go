package crawl

import (
	"testing"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// TestWhichRanks checks that a crawl uses the ranks of hosts that it was created with, else those computed last, if there
// are any, and that an unknown policy is an error.
func TestWhichRanks(t *testing.T) {
	byRanks := func(s *scene) {
		s.crawl.Settings.Policy, s.crawl.Settings.Quality = "quality", schedule.HostRank
	}
	for _, k := range []struct {
		name string
		set  func(s *scene)
		best string // the better of hosts a and b; "": neither
		ok   bool
	}{
		{"none", byRanks, "", true},
		{"given", func(s *scene) { byRanks(s); s.crawl.Settings.HostRanks = "a is good" }, "a", true},
		{"computed", func(s *scene) { byRanks(s); s.desired.HostRanks = "b is good" }, "b", true},
		{"given, and computed", func(s *scene) {
			byRanks(s)
			s.crawl.Settings.HostRanks, s.desired.HostRanks = "a is good", "b is good"
		}, "a", true},
		{"computed, and gone", func(s *scene) { byRanks(s); s.desired.HostRanks = "no more" }, "", true},
		{"given, and gone", func(s *scene) { byRanks(s); s.crawl.Settings.HostRanks = "no more" }, "", false},
		{"computed, and not gone by", func(s *scene) { s.desired.HostRanks = "b is good" }, "", true},
		{"an unknown policy", func(s *scene) { s.crawl.Settings.Policy = "at will" }, "", false},
		{"a policy of the process", func(s *scene) {
			byRanks(s)
			s.crawl.Settings.HostRanks = "a is good"
			s.cfg.Policy, _ = schedule.NewPolicy("breadth-first", schedule.Quality{})
		}, "", true},
	} {
		t.Run(k.name, func(t *testing.T) {
			w, s := newScene(t)
			w.Objects["a is good"], w.Objects["b is good"] = []byte("a.example\t8\n"), []byte("b.example\t8\n")
			k.set(s)
			s.write(w)
			delete(w.Table, naming.HeadKey(s.crawl.ID, 0)) // like a crawl that has just begun
			w.web = site(t, "nobody.example", 0, nil)
			var warm *Warm
			for range 2 { // a cold step, and a warm one
				step, err := NewStep(StepConfig{Crawl: s.crawl, Process: "p", Policy: s.cfg.Policy}, warm)
				if err == nil {
					_, err = w.run(step)
				}
				if (err == nil) != k.ok {
					t.Fatalf("the step ends with %v", err)
				}
				if err != nil {
					return
				}
				a := step.st.rank(urls(t, "https://a.example/")[0], schedule.Candidate{Depth: 1})
				b := step.st.rank(urls(t, "https://b.example/")[0], schedule.Candidate{Depth: 1})
				got := ""
				switch {
				case a < b:
					got = "a"
				case b < a:
					got = "b"
				}
				if got != k.best {
					t.Errorf("the best host is %q, not %q", got, k.best)
				}
				warm = step.Warm()
			}
		})
	}
}

// TestCashOfOneLink checks that a page with one followed link, or none, gives it all its quality.
func TestCashOfOneLink(t *testing.T) {
	p, err := schedule.PolicyByName("capability", "opic")
	if err != nil {
		t.Fatal(err)
	}
	s := &state{policy: p}
	for _, links := range [][]actor.Link{nil, {{}}, {{NoFollow: true}}} {
		if got := s.cash(schedule.Task{}, links); got != 1 {
			t.Errorf("of %d links each brings %g", len(links), got)
		}
	}
}

package frontier

import (
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/internal/schedule"
)

// TestRanksOfReadyKeys checks that the rank of a ready politeness key rises when it gets more URLs or a better one.
func TestRanksOfReadyKeys(t *testing.T) {
	r := newRig(t, Config{Policy: policyNamed(t, "performance")})
	r.add(1, "https://a.example/1")
	r.add(1, "https://b.example/1", "https://b.example/2")
	r.add(1, "https://a.example/2", "https://a.example/3", "https://a.example/4")
	r.mustNext("https://a.example/robots.txt")
	r.check()

	r = newRig(t, Config{Policy: policyNamed(t, "quality")})
	r.add(3, "https://a.example/1")
	r.add(2, "https://b.example/1")
	r.add(3, "https://c.example/1")
	r.add(1, "https://c.example/2")
	r.mustNext("https://c.example/robots.txt")
	r.mustNext("https://b.example/robots.txt")
	r.check()
}

// TestFirstAnswer checks that the first answer of a politeness key ends its visit if it shows that another key ranks
// higher. Otherwise, and if keys only take turns, the visit continues.
func TestFirstAnswer(t *testing.T) {
	robots := func(host string) string { return "https://" + host + ".example/robots.txt" }
	for _, c := range []struct {
		name   string
		policy schedule.Policy
		took   time.Duration
		want   string
	}{
		{"slow", policyNamed(t, "performance"), time.Second, robots("b")},
		{"fast", policyNamed(t, "performance"), 10 * time.Millisecond, "https://a.example/1"},
		{"turns", policyNamed(t, "breadth-first"), time.Second, "https://a.example/1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Config{Policy: c.policy})
			r.add(1, "https://a.example/1", "https://b.example/1")
			task := r.mustNext(robots("a"))
			r.now = r.now.Add(c.took)
			r.f.Done(r.now, task, answer{keep: true}.reply(task, r.now.Add(-c.took), c.took))
			r.mustNext(c.want)
		})
	}
}

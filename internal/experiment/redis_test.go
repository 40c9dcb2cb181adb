package experiment

import (
	"path/filepath"
	"testing"
)

// TestRedisEngine runs the experiment at its smallest: what it writes is whole, and what does not depend on
// the speed of a machine holds.
func TestRedisEngine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	r, err := redisEngine(Options{Seed: 2, Quick: true, Pages: LeastPages})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	checkReport(t, dir, "redis-engine")
	for _, s := range r.Sections {
		for _, c := range s.Checks {
			if !c.OK {
				t.Errorf("%s: %s", s.Title, c.What)
			}
		}
	}
}

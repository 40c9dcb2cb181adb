package experiment

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestRedisEngine runs the experiment at its smallest size. The report is complete, and the checks that depend neither on the
// speed of the machine nor on size hold.
func TestRedisEngine(t *testing.T) {
	s := redisScale{
		seed: 2, workers: []int{1, 2}, times: 1, faster: 240, indexed: 100, sites: 150, small: 150, docs: 200, items: 15, queries: 10,
	}
	r, err := s.run(true, func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	checkReport(t, dir, "redis-engine")
	checks := 0
	for _, sec := range r.Sections {
		for _, c := range sec.Checks {
			if sec.Title == "Index" || strings.Contains(c.What, "one process") || strings.Contains(c.What, "median") ||
				strings.Contains(c.What, "faster than one") || strings.Contains(c.What, "pages a second") {
				continue // these checks need large collections or an idle machine
			}
			checks++
			if !c.OK {
				t.Errorf("%s: %s", sec.Title, c.What)
			}
		}
	}
	if checks < 10 {
		t.Errorf("%d checks", checks)
	}
}

package main

import "testing"

// TestClaims changes one figure of a table at a time and counts the claims that it refutes.
func TestClaims(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(own, other *sight)
		refuted int
	}{
		"nothing":           {func(_, _ *sight) {}, 0},
		"a page is missing": {func(own, _ *sight) { own.found-- }, 1},
		"another URL":       {func(own, _ *sight) { own.other++ }, 1},
		"against robots":    {func(own, _ *sight) { own.denied++ }, 1},
		"twice":             {func(own, _ *sight) { own.twice++ }, 1},
		"slower":            {func(_, other *sight) { other.seconds = 1 }, 1},
		"more CPU":          {func(_, other *sight) { other.cpu = 1 }, 1},
		"faster, no WARC":   {func(_, other *sight) { other.seconds, other.warc = 1, false }, 0},
	} {
		own := sight{peer: peers[0], expected: 100, found: 100, seconds: 2, cpu: 2}
		other := sight{peer: peer{name: "other", warc: true}, expected: 100, found: 100, seconds: 3, cpu: 3}
		c.change(&own, &other)
		r := report{tables: []table{{web: web{race: true}, sights: []sight{own, other}}}}
		if _, refuted := r.text(); refuted != c.refuted {
			t.Errorf("%s: %d claims are refuted, not %d", name, refuted, c.refuted)
		}
	}
}

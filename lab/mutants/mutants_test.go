package main

import (
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSample tries the mutants of a small package.
func TestSample(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mutants.json")
	var out strings.Builder
	args := []string{"-root", ".", "-packages", "testdata/sample", "-json", file, "-list"}
	if err := run(t.Context(), append(args, "-least", "60"), &out, io.Discard); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var results []result
	if err := json.Unmarshal(b, &results); err != nil || len(results) != 1 {
		t.Fatal(results, err)
	}
	r := results[0]
	const dropped = 1 + 4 // the continue, and a mutant in one line with a condition of a named type
	if r.Dropped != dropped || len(r.LeftOut) > 0 || r.Made != r.Killed+r.Survived+r.Missed || r.Made != len(r.Mutants) {
		t.Errorf("made %d, dropped %d, killed %d, survived %d, not reached %d, left out %v", r.Made, r.Dropped, r.Killed, r.Survived, r.Missed, r.LeftOut)
	}
	fates := map[string]fate{}
	operators := map[string]bool{}
	for _, m := range r.Mutants {
		fates[m.Change] = m.Fate
		operators[m.Operator] = true
		if m.File != "testdata/sample/sample.go" || (m.Fate == killed) != (m.By != "") || (m.Fate == notReached) != (len(m.Reach) == 0) {
			t.Errorf("%+v", m)
		}
	}
	for change, want := range map[string]fate{
		"i > most → i >= most":                            survived, // the one that must survive
		"i > most → true":                                 killed,
		"n < 0 && !negative → n < 0 || !negative":         "", // a named type
		"total += n → total -= n":                         killed,
		"without total += n":                              killed,
		"n / 4 * 4 → n / 4 / 4":                           killed,
		"n++ → n--":                                       killed,
		"continue → break":                                "", // does not compile
		"break → continue":                                survived,
		"return n: n → zero":                              killed,
		"c.n&0 → c.n | 0":                                 killed,
		"return sum(append(numbers, numbers...)) → zeros": killed,
		"len(table) == most → len(table) != most":         notReached,
	} {
		if fates[change] != want {
			t.Errorf("%s: %q, want %q", change, fates[change], want)
		}
	}
	for _, change := range []string{"i+1 → i - 1", "c.n + 1 → c.n - 1"} { // in a message, and in a String method
		if got, ok := fates[change]; ok {
			t.Errorf("%s: %s", change, got)
		}
	}
	if len(operators) != 10 {
		t.Errorf("operators %v", slices.Sorted(maps.Keys(operators)))
	}
	if err := run(t.Context(), append(args, "-only", "testdata/sample/sample.go:67"), &out, io.Discard); err == nil || !strings.Contains(err.Error(), "testdata/sample") {
		t.Errorf("two surviving mutants: %v", err)
	}
}

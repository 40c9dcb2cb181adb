package main

import (
	"go/parser"
	"go/token"
	"testing"
)

const root = "../../.."

// TestPlantsFit says when code has moved under a plant.
func TestPlantsFit(t *testing.T) {
	names := map[string]bool{}
	for i := range plants {
		p := &plants[i]
		if names[p.Name] || p.Bug == "" || p.Promise == "" || len(p.Edits) == 0 {
			t.Errorf("plant %q is not whole, or not the only one of its name", p.Name)
		}
		names[p.Name] = true
		files, err := p.apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		for name, text := range files {
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.AllErrors); err != nil {
				t.Errorf("plant %q: %v", p.Name, err)
			}
		}
	}
	if len(plants) < 12 {
		t.Errorf("there are %d plants", len(plants))
	}
}

func TestApplyRefuses(t *testing.T) {
	const file = "internal/simulate/plants/plant.go"
	for name, e := range map[string]edit{
		"no such text": {file, "no such " + "text", ""},
		"twice":        {file, "apply", ""},
		"no such file": {"internal/simulate/plants/none.go", "a", "b"},
	} {
		p := plant{Name: name, Edits: []edit{e}}
		if _, err := p.apply(root); err == nil {
			t.Errorf("%s: applied", name)
		}
	}
	p := plant{Edits: []edit{{file, "type plant struct", "type a struct"}, {file, "type a struct", "type b struct"}}}
	if _, err := p.apply(root); err != nil {
		t.Errorf("an edit of what another has put there: %v", err)
	}
}

func TestCheckOf(t *testing.T) {
	for text, want := range map[string]string{
		"I5 broken: mail 1 from 0 to 1 is acknowledged":        "I5",
		"fsck I7 broken: 2 violations:\n  {…}":                 "fsck I7",
		"truth broken: the result differs":                     "truth",
		"panic broken: runtime error: x\ngoroutine":            "panic",
		"a step fails: partition 3 at 5m1s: get x: no object":  "a step fails",
		"sim/p00001/commits/1: no such object":                 "sim/p/commits/",
		"something without any mark":                           "something without any mark",
		"in two lines: the\nmark is in the first broken: here": "in two lines",
	} {
		if got := checkOf(text); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

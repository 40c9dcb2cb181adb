package main

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"

	simulation "github.com/orbweaver/orbweaver/internal/simulate"
)

const root = "../.."

// TestPlantsFit fails if the text of a plant no longer occurs in the core.
func TestPlantsFit(t *testing.T) {
	names := map[string]bool{}
	for i := range plants {
		p := &plants[i]
		if names[p.Name] || strings.HasPrefix(p.Name, control) || p.Bug == "" || p.Promise == "" || len(p.Edits) == 0 {
			t.Errorf("plant %q is incomplete, or its name is not unique", p.Name)
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

// TestProofHasThePlants checks that docs/proof.md has a row for each plant.
func TestProofHasThePlants(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/proof.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range plants {
		if row := plants[i].cells(); !strings.Contains(string(text), "\n"+row) {
			t.Errorf("docs/proof.md has no row\n%s\n'make plants ARGS=-markdown' writes it", row)
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	const file = "lab/plants/plant.go"
	for name, e := range map[string]edit{
		"no such text": {file, "no such " + "text", ""},
		"twice":        {file, "apply", ""},
		"no such file": {"lab/plants/none.go", "a", "b"},
	} {
		p := plant{Name: name, Edits: []edit{e}}
		if _, err := p.apply(root); err == nil {
			t.Errorf("%s: applied", name)
		}
	}
	p := plant{Edits: []edit{{file, "type plant struct", "type a struct"}, {file, "type a struct", "type b struct"}}}
	if _, err := p.apply(root); err != nil {
		t.Errorf("an edit of text that another edit inserted: %v", err)
	}
}

func TestCheckOf(t *testing.T) {
	for want, err := range map[string]error{
		"I5":           &simulation.Broken{Promise: "I5", What: "mail is acknowledged"},
		"fsck I7":      fmt.Errorf("seed 1: %w", &simulation.Broken{Promise: "fsck I7"}),
		"a step fails": errors.New("a step fails: partition 3 at 5m1s: get x: no object"),
		"two lines":    errors.New("two lines\nof text: here"),
	} {
		if got := checkOf(err); got != want {
			t.Errorf("%v: %q, not %q", err, got, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	none, bug, missed, escaped := finding{Name: control}, finding{Name: "a", Found: 1}, finding{Name: "b"}, finding{Name: "c", Escapes: "why"}
	broken := finding{Name: control, Found: 1}
	for _, c := range []struct {
		found []finding
		ok    bool
	}{
		{[]finding{none, bug, escaped}, true}, {[]finding{none, bug, missed}, false}, {[]finding{broken, bug}, false},
	} {
		if err := verdict(c.found); (err == nil) != c.ok {
			t.Errorf("%v: %v", c.found, err)
		}
	}
}

package internal_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// maxDoc is the most lines that `go doc` may print for a package: a screen.
const maxDoc = 60

// longDoc lists the packages for which it prints more, with the reason.
var longDoc = map[string]string{
	"blobschema":     "the vocabulary of all that is stored: its records belong together",
	"internal/crawl": "the core: its package doc says how to read 60 files",
}

// TestPackagesAreToldOnAScreen checks that every package has a package doc that fits on a screen.
func TestPackagesAreToldOnAScreen(t *testing.T) {
	packages := map[string]bool{}
	for _, name := range files(t) {
		if !strings.HasSuffix(name, "_test.go") {
			packages[path.Dir(name)] = true
		}
	}
	for dir := range packages {
		p := documented(t, dir)
		if !strings.HasPrefix(p.Doc, "Package "+p.Name+" ") && (p.Name != "main" || p.Doc == "") {
			t.Errorf("%s has no package doc", dir)
		}
		n := screen(p)
		if n > maxDoc && longDoc[dir] == "" {
			t.Errorf("go doc prints %d lines of %s: say less of the package, more at its types", n, dir)
		}
		if n <= maxDoc && longDoc[dir] != "" {
			t.Errorf("the output of go doc for %s is no longer long: remove it from the list", dir)
		}
	}
	if len(packages) < 50 {
		t.Errorf("only %d packages found", len(packages))
	}
	for dir := range longDoc {
		if !packages[dir] {
			t.Errorf("there is no %s: take it off the list", dir)
		}
	}
}

// documented returns the documentation of the package in a folder.
func documented(t *testing.T, dir string) *doc.Package {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	p, err := doc.NewFromFiles(set, parsed, "example.org/"+dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// screen returns the number of lines that `go doc` prints for a package: its name, the package doc between two
// empty lines, and a line for each group of constants or variables, function and type.
func screen(p *doc.Package) int {
	n := strings.Count(string(p.Text(p.Doc)), "\n")
	if p.Name == "main" {
		return n // go doc shows nothing else of a program
	}
	n += 3 + len(p.Consts) + len(p.Vars) + len(p.Funcs)
	for _, typ := range p.Types {
		n += 1 + len(typ.Consts) + len(typ.Vars) + len(typ.Funcs)
	}
	return n
}

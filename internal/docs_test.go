package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reference is a `file:name` in a document. A file without a folder is in internal/crawl.
var reference = regexp.MustCompile("`([a-z_/]+\\.go)(?::([A-Za-z.]+))?`")

// TestDocsNameWhatIsThere keeps the documents from naming code that is gone.
func TestDocsNameWhatIsThere(t *testing.T) {
	found := 0
	for _, pattern := range []string{"../README.md", "../docs/*.md", "../docs/adr/*.md"} {
		docs, err := filepath.Glob(pattern)
		if err != nil || len(docs) == 0 {
			t.Fatalf("%s: no document (%v)", pattern, err)
		}
		for _, doc := range docs {
			text, err := os.ReadFile(doc)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range reference.FindAllStringSubmatch(string(text), -1) {
				found++
				if problem := resolve(m[1], m[2]); problem != "" {
					t.Errorf("%s names %s: %s", doc, m[0], problem)
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d references found: the pattern misses them", found)
	}
	if resolve("step.go", "Step.fetch") != "" || resolve("step.go", "Step.nothingOfTheKind") == "" || resolve("none.go", "") == "" {
		t.Error("references are not resolved")
	}
}

// resolve says what is wrong with a reference, "" if nothing is.
func resolve(file, name string) string {
	if !strings.Contains(file, "/") {
		file = "internal/crawl/" + file
	}
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", filepath.FromSlash(file)), nil, parser.SkipObjectResolution)
	if err != nil {
		return err.Error()
	}
	name = name[strings.LastIndex(name, ".")+1:]
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == name {
				return ""
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok && ts.Name.Name == name {
					return ""
				}
			}
		}
	}
	if name == "" {
		return ""
	}
	return "there is no such function or type"
}

// TestReadmeHasTheExitStatuses compares the README's table with the one in the code.
func TestReadmeHasTheExitStatuses(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("../cmd/orbweaver/exit.go")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(readme), "`", "")
	meanings := regexp.MustCompile(`(?m)^\texit[A-Za-z]+: +"(.*)",$`).FindAllStringSubmatch(string(code), -1)
	if len(meanings) < 8 {
		t.Fatalf("only %d exit statuses found", len(meanings))
	}
	for status, m := range meanings {
		if row := fmt.Sprintf("| %d | %s |", status, m[1]); !strings.Contains(text, row) {
			t.Errorf("the README lacks %q", row)
		}
	}
}

package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reference is a `file:name` in a document. A file without a folder is at the root or in internal/crawl.
var reference = regexp.MustCompile("`([a-z_/]+\\.go)(?::([A-Za-z.]+))?`")

// TestDocsNameWhatIsThere checks that the code that documents name exists.
func TestDocsNameWhatIsThere(t *testing.T) {
	found := 0
	for doc, text := range documents(t) {
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			found++
			if problem := resolve(m[1], m[2]); problem != "" {
				t.Errorf("%s names %s: %s", doc, m[0], problem)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d references found: the pattern misses them", found)
	}
	if resolve("fetch.go", "Step.fetch") != "" || resolve("step.go", "Step.nothingOfTheKind") == "" || resolve("none.go", "") == "" {
		t.Error("references are not resolved")
	}
}

// documents returns the texts of all documents, by path from the root, with slashes.
func documents(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case filepath.Ext(name) == ".md":
			text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(name)))
			docs[name] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) < 40 {
		t.Fatalf("only %d documents found", len(docs))
	}
	return docs
}

// resolve returns what is wrong with a reference, or "".
func resolve(file, name string) string {
	if _, err := os.Stat(filepath.Join("..", file)); err != nil && !strings.Contains(file, "/") {
		file = "internal/crawl/" + file
	}
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", filepath.FromSlash(file)), nil, parser.SkipObjectResolution)
	if err != nil {
		return err.Error()
	}
	if name == "" || slices.Contains(declared(f), name) {
		return ""
	}
	for _, d := range declared(f) {
		if strings.HasSuffix(d, "."+name) {
			return ""
		}
	}
	return "there is no such name"
}

// declared returns the names that a file declares: Func, Type, Type.Method, Type.Field, Const.
func declared(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, receiver(d)+d.Name.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				names = append(names, specified(s)...)
			}
		}
	}
	return names
}

// receiver returns "Type." for a method, "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name + "."
	}
	return ""
}

func specified(s ast.Spec) (names []string) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, id := range s.Names {
			names = append(names, id.Name)
		}
	case *ast.TypeSpec:
		names = append(names, s.Name.Name)
		var members *ast.FieldList
		switch typ := s.Type.(type) {
		case *ast.StructType:
			members = typ.Fields
		case *ast.InterfaceType:
			members = typ.Methods
		default:
			return names
		}
		for _, field := range members.List {
			for _, id := range field.Names {
				names = append(names, s.Name.Name+"."+id.Name)
			}
		}
	}
	return names
}

// TestGlossaryIsInTheCode resolves the names in the glossary's column "in code": pkg.Name, a Type.Member of
// some package, a member after another as in `Head.Owner`, `LeaseUntil`, a package, or a file.
func TestGlossaryIsInTheCode(t *testing.T) {
	named := map[string]bool{}
	for _, files := range sources(t) {
		for _, f := range files {
			named[f.ast.Name.Name], named[f.name] = true, true
			for _, d := range declared(f.ast) {
				named[f.ast.Name.Name+"."+d] = true
				if strings.Contains(d, ".") {
					named[d] = true
				}
			}
		}
	}
	words := 0
	for line := range strings.Lines(documents(t)["docs/glossary.md"]) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| word") {
			continue
		}
		words++
		before := ""
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1) {
			if reference.MatchString(m[0]) {
				continue // TestDocsNameWhatIsThere checks it
			}
			if !named[m[1]] && !named[before+"."+m[1]] {
				t.Errorf("%s is %s in the glossary, which is not in the code", strings.TrimPrefix(cells[0], "| "), m[1])
			}
			before, _, _ = strings.Cut(m[1], ".")
		}
	}
	if words < 50 {
		t.Errorf("only %d words found in the glossary", words)
	}
}

// TestLinksLeadSomewhere checks that each relative link of the documents leads to a file, and to a heading if
// it names one.
func TestLinksLeadSomewhere(t *testing.T) {
	docs := documents(t)
	anchors := map[string][]string{}
	for doc, text := range docs {
		anchors[doc] = headings(text)
	}
	found := 0
	for doc, text := range docs {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			found++
			to, heading, _ := strings.Cut(m[1], "#")
			target := doc
			if to != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(doc), to))
			}
			if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(target))); err != nil {
				t.Errorf("%s: the link %s leads nowhere", doc, m[1])
			}
			if heading != "" && !slices.Contains(anchors[target], heading) {
				t.Errorf("%s: %s has no such heading", doc, m[1])
			}
		}
	}
	if found < 150 {
		t.Errorf("only %d links found: the pattern misses them", found)
	}
}

// headings returns the anchors of a document's headings, as web sites derive them.
func headings(text string) (anchors []string) {
	inBlock := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			inBlock = !inBlock
		}
		if title := strings.TrimLeft(line, "#"); !inBlock && title != line {
			title = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			anchors = append(anchors, strings.ReplaceAll(title, " ", "-"))
		}
	}
	return anchors
}

// TestDocsMake checks that each target and variable of make that a document names exists.
func TestDocsMake(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):.*?## (.*)`).FindAllStringSubmatch(string(makefile), -1) {
		targets[m[1]] = m[2]
	}
	variable := regexp.MustCompile(`(?m)^(?:[A-Z_]+ *\?=|NAME =|export .*)`).FindAllString(string(makefile), -1)
	for doc, text := range documents(t) {
		for _, m := range regexp.MustCompile("(?m)(?:`|^|&& |[A-Z]=\\S+ )make ([^`\\n]*)").FindAllStringSubmatch(text, -1) {
			line, _, _ := strings.Cut(m[1], "#")
			line, _, _ = strings.Cut(line, "|")
			words := strings.Fields(regexp.MustCompile(`'[^']*'|"[^"]*"`).ReplaceAllString(line, ""))
			if len(words) == 0 || targets[words[0]] == "" {
				t.Errorf("%s: there is no `make %s`", doc, line)
				continue
			}
			for _, w := range words[1:] {
				name, _, ok := strings.Cut(w, "=")
				if ok && !slices.ContainsFunc(variable, func(v string) bool { return slices.Contains(strings.Fields(v), name) }) {
					t.Errorf("%s: make knows no variable %s", doc, name)
				}
			}
		}
	}
	if len(targets) < 20 {
		t.Errorf("only the targets %v found", slices.Sorted(maps.Keys(targets)))
	}
}

// goTest matches a `go test` in a document, with its package and arguments; goRun matches a program of the
// module with its flags.
var (
	goTest = regexp.MustCompile("`go test\\s+(\\./[a-z/]+)([^`]*)`")
	goRun  = regexp.MustCompile("(?m)(?:`|^)(?:go run \\./|bin/)(localstack|[a-z]+/[a-z/]+)([^`\\n#]*)")
)

// TestDocsGoCommands checks that the packages, tests and flags exist in the `go test` and `go run` commands of
// documents.
func TestDocsGoCommands(t *testing.T) {
	found := 0
	for doc, text := range documents(t) {
		for _, m := range goTest.FindAllStringSubmatch(text, -1) {
			found++
			code := codeIn(m[1])
			if code == "" {
				t.Errorf("%s: %s: there is no such package", doc, m[0])
			}
			for _, run := range regexp.MustCompile(`-(run|bench) '?\^?([A-Za-z.]+)`).FindAllStringSubmatch(m[2], -1) {
				kind := map[string]string{"run": "Test", "bench": "Benchmark"}[run[1]]
				if strings.EqualFold(run[2], "xx") || strings.EqualFold(run[2], "xxx") || run[2] == "." {
					continue
				}
				if !regexp.MustCompile(`func ` + kind + `\w*` + strings.TrimPrefix(run[2], kind)).MatchString(code) {
					t.Errorf("%s: %s: nothing is run", doc, m[0])
				}
			}
		}
		for _, m := range goRun.FindAllStringSubmatch(text, -1) {
			found++
			code := codeIn("./" + m[1])
			for _, name := range regexp.MustCompile(` -([a-z]+)`).FindAllStringSubmatch(m[2], -1) {
				if !strings.Contains(code, `"`+name[1]+`"`) {
					t.Errorf("%s: %s: there is no flag -%s", doc, m[0], name[1])
				}
			}
			if code == "" {
				t.Errorf("%s: %s: there is no such program", doc, m[0])
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d commands found: the pattern misses them", found)
	}
}

// codeIn returns all Go code of a package with its tests, or "".
func codeIn(dir string) string {
	names, _ := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*.go"))
	var b strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return ""
		}
		b.Write(text)
	}
	return b.String()
}

package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Most lines of a function and of a file.
const (
	maxFunction = 80 // a table of data or a text counts as one line
	maxFile     = 700
)

// long lists the functions that may be longer, by package and name, with the reason.
var long = map[string]string{
	"internal/hostile.http2Cases": "a table, whose rows are functions",
	"internal/view.moves.phases":  "a table, whose rows are functions",
}

// TestNothingIsLong bounds the length of functions and files, including tests.
func TestNothingIsLong(t *testing.T) {
	found := map[string]bool{}
	for _, name := range files(t) {
		src, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		lines, functions, err := measure(name, src)
		if err != nil {
			t.Fatal(err)
		}
		if lines > maxFile {
			t.Errorf("%s has %d lines", name, lines)
		}
		for function, n := range functions {
			function = path.Dir(name) + "." + function
			found[function] = true
			if n > maxFunction && long[function] == "" {
				t.Errorf("%s in %s has %d lines: split it, or say why not", function, name, n)
			}
			if n <= maxFunction && long[function] != "" {
				t.Errorf("%s is no longer long: take it off the list", function)
			}
		}
	}
	for function := range long {
		if !found[function] {
			t.Errorf("there is no %s: take it off the list", function)
		}
	}
}

// Most methods of a type of the core packages, and most fields of the step.
const (
	maxMethods    = 60
	maxStepFields = 20
)

// TestTypesAreMadeOfParts bounds the size of types, so that a reader can keep one in mind.
func TestTypesAreMadeOfParts(t *testing.T) {
	core := map[string]bool{"internal/crawl": true, "internal/frontier": true, "internal/schedule": true}
	methods, stepFields := map[string]int{}, 0
	for _, name := range files(t) {
		if !core[path.Dir(name)] || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", filepath.FromSlash(name)), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch d := n.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					methods[path.Dir(name)+"."+strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*")]++
				}
			case *ast.TypeSpec:
				if s, ok := d.Type.(*ast.StructType); ok && path.Dir(name)+"."+d.Name.Name == "internal/crawl.Step" {
					for _, field := range s.Fields.List {
						stepFields += max(1, len(field.Names))
					}
				}
			}
			return true
		})
	}
	for name, n := range methods {
		if n > maxMethods {
			t.Errorf("%s has %d methods: give some of them a type of their own", name, n)
		}
	}
	if stepFields == 0 || stepFields > maxStepFields {
		t.Errorf("internal/crawl.Step has %d fields", stepFields)
	}
	for _, name := range []string{"internal/crawl.Step", "internal/frontier.Frontier", "internal/schedule.Schedule"} {
		if methods[name] == 0 {
			t.Errorf("no method of %s was found", name)
		}
	}
}

// measure counts the lines of a file and of its functions.
func measure(name string, src []byte) (lines int, functions map[string]int, err error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
	if err != nil {
		return 0, nil, err
	}
	length := func(n ast.Node) int { return set.Position(n.End()).Line - set.Position(n.Pos()).Line + 1 }
	functions = map[string]int{}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		n := length(fn)
		ast.Inspect(fn, func(x ast.Node) bool {
			switch lit := x.(type) {
			case *ast.BasicLit:
				n -= length(lit) - 1
			case *ast.CompositeLit:
				if isData(lit) {
					n -= length(lit) - 1
					return false
				}
			}
			return true
		})
		called := fn.Name.Name
		if fn.Recv != nil {
			called = types.ExprString(fn.Recv.List[0].Type) + "." + called
		}
		functions[strings.TrimPrefix(called, "*")] = n
	}
	return set.File(f.Pos()).LineCount(), functions, nil
}

// isData reports whether a literal contains no function.
func isData(lit *ast.CompositeLit) bool {
	data := true
	ast.Inspect(lit, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			data = false
		}
		return data
	})
	return data
}

// TestLinesAreCounted checks that measure counts lines.
func TestLinesAreCounted(t *testing.T) {
	src := strings.ReplaceAll(`package p

func (t *T) f() {
	_ = []int{
		1,
		2,
	}
	_ = '
'
	_ = []func(){
		func() {},
	}
}
`, "'", "`")
	lines, functions, err := measure("f.go", []byte(src))
	if n := functions["T.f"]; err != nil || lines != 13 || n != 7 {
		t.Errorf("%d lines, %d of T.f, %v", lines, n, err)
	}
}

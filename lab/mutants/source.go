package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// schema is a file that is added to a package, with the functions that its mutants call.
//
//go:embed schema.go.txt
var schema string

// listed is the output of `go list` for a package.
type listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles                       []string
}

// source is a package whose mutants are made.
type source struct {
	listed
	path    string // path within the module
	exports map[string]listed
	files   *token.FileSet
	types   *types.Package
	info    types.Info
	texts   map[string][]byte // by full path
	sites   []*site
	count   int // number of mutants
}

// list returns the output of `go list` for a package and everything that it imports, by import path. last is the package
// itself.
func list(ctx context.Context, root, path string) (all map[string]listed, last listed, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Name,Export,GoFiles", "./"+path)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, last, fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	all = map[string]listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		last = listed{}
		if err := d.Decode(&last); err != nil {
			return nil, last, fmt.Errorf("go list: %w", err)
		}
		all[last.ImportPath] = last
	}
	return all, last, nil
}

// load reads a package and finds its sites.
func load(ctx context.Context, root, path string) (*source, error) {
	all, l, err := list(ctx, root, path)
	if err != nil {
		return nil, err
	}
	p := &source{listed: l, path: path, exports: all, texts: map[string][]byte{}}
	for _, name := range l.GoFiles {
		name = filepath.Join(l.Dir, name)
		if p.texts[name], err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	parsed, errs := p.check(p.texts)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	for _, f := range parsed {
		w := walker{p: p, name: p.files.Position(f.Pos()).Filename, file: p.files.File(f.Pos()), imports: map[string]string{}}
		w.text = p.texts[w.name]
		for _, imp := range f.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return nil, err
			}
			w.imports[path] = cmp.Or(all[path].Name, filepath.Base(path))
			if imp.Name != nil {
				w.imports[path] = imp.Name.Name
			}
		}
		w.walk(f)
		p.sites = append(p.sites, w.sites...)
	}
	return p, nil
}

// check parses files and checks their types; it returns type errors.
func (p *source) check(texts map[string][]byte) (parsed []*ast.File, errs []error) {
	p.files = token.NewFileSet()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		f, err := parser.ParseFile(p.files, name, texts[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, []error{err}
		}
		parsed = append(parsed, f)
	}
	conf := types.Config{
		Importer: importer.ForCompiler(p.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(p.exports[path].Export) }),
		Error:    func(err error) { errs = append(errs, err) },
	}
	p.info = types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	p.types, _ = conf.Check(p.ImportPath, p.files, parsed, &p.info) // its error is the first of errs
	return parsed, errs
}

// choose leaves out mutants that are not requested. It then selects a sample by the hashes of positions.
func (p *source) choose(o options) error {
	var all []*mutant
	before := map[string]*mutant{}
	if o.again != "" {
		b, err := os.ReadFile(o.again)
		if err != nil {
			return err
		}
		var results []*result
		if err := json.Unmarshal(b, &results); err != nil {
			return err
		}
		for _, r := range results {
			for _, m := range r.Mutants {
				before[m.place()+m.Operator+m.Change] = m
			}
		}
	}
	for _, s := range p.sites {
		for _, m := range s.mutants {
			old := before[m.place()+m.Operator+m.Change]
			m.out = o.only != "" && o.only != m.File && !strings.HasPrefix(m.place(), o.only+":") || o.again != "" && old == nil
			if old != nil && old.Fate == killed {
				m.Fate, m.By = killed, old.By
			}
			if !m.out {
				all = append(all, m)
			}
		}
	}
	if o.sample == 0 || len(all) <= o.sample {
		return nil
	}
	hash := func(m *mutant) uint64 {
		h := fnv.New64a()
		fmt.Fprint(h, o.seed, m.place(), m.Operator, m.Change)
		return h.Sum64()
	}
	slices.SortFunc(all, func(a, b *mutant) int { return cmp.Compare(hash(a), hash(b)) })
	for _, m := range all[o.sample:] {
		m.out = true
	}
	return nil
}

// write writes the package with all mutants, and returns an overlay that replaces the package by it. Sites that do not compile
// are left out.
func (p *source) write(folder string) (overlay map[string]string, err error) {
	helper := filepath.Join(p.Dir, "mutants_schema.go")
	for {
		texts := map[string][]byte{}
		for name, text := range p.texts {
			texts[name] = p.rewrite(name, text)
		}
		text := strings.ReplaceAll(strings.ReplaceAll(schema, "PACKAGE", p.Name), "COUNT", strconv.Itoa(max(p.count, 1)))
		texts[helper] = []byte(text)
		_, errs := p.check(texts)
		if len(errs) == 0 {
			overlay = map[string]string{}
			for name, text := range texts {
				overlay[name] = filepath.Join(folder, filepath.Base(name))
				if err := os.WriteFile(overlay[name], text, 0o600); err != nil {
					return nil, err
				}
			}
			return overlay, nil
		}
		if err := p.drop(errs); err != nil {
			return nil, err
		}
	}
}

// drop leaves out sites with errors. If a function lacks a return at its end, a mutant leaves its loop.
func (p *source) drop(errs []error) error {
	progress := false
	for _, err := range errs {
		var te types.Error
		if !errors.As(err, &te) {
			return err
		}
		at := p.files.Position(te.Pos)
		for _, s := range p.sites {
			hit := slices.Contains(s.lines, at.Line)
			if te.Msg == "missing return" {
				hit = s.mutants[0].Operator == "branch" && s.end == at.Line
			}
			if s.file == at.Filename && hit && !s.left {
				s.left, progress = true, true
			}
		}
	}
	if !progress {
		return errs[0]
	}
	return nil
}

// rewrite makes the edits of all sites of a file.
func (p *source) rewrite(name string, text []byte) []byte {
	var edits []edit
	for _, s := range p.sites {
		if s.file == name && !s.left && slices.ContainsFunc(s.mutants, func(m *mutant) bool { return !m.out }) {
			edits = append(edits, s.edits...)
		}
	}
	slices.SortStableFunc(edits, edit.compare)
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, text[at:e.offset]...), e.text...)
		at = e.offset + e.instead
	}
	return append(out, text[at:]...)
}

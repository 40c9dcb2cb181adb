package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A site is a place in a source that can be changed in one or more ways. Each way is a mutant; the mutants of a site have
// consecutive numbers.
type site struct {
	mutants []*mutant
	edits   []edit
	file    string // full path
	lines   []int  // of the edits
	end     int    // last line of its function
	left    bool   // left out, because it does not compile
}

// edit is a text that is inserted into a source, or replaces some bytes.
type edit struct {
	offset  int
	instead int    // number of replaced bytes
	closes  bool   // it closes an earlier edit, so it comes before edits that begin here
	order   int    // order at one offset: an outer edit opens first and closes last
	text    string // a single line, so that line numbers stay the same
}

// binary maps operators to the functions of the schema that replace them, and to the mutants of these.
var binary = map[token.Token]struct {
	call    string
	instead token.Token
}{
	token.ADD:     {"mutantAdd", token.SUB},
	token.SUB:     {"mutantSubtract", token.ADD},
	token.MUL:     {"mutantMultiply", token.QUO},
	token.QUO:     {"mutantDivide", token.MUL},
	token.REM:     {"mutantRemainder", token.MUL},
	token.AND:     {"mutantBitAnd", token.OR},
	token.OR:      {"mutantBitOr", token.AND},
	token.XOR:     {"mutantBitXor", token.OR},
	token.AND_NOT: {"mutantBitClear", token.AND},
	token.SHL:     {"mutantLeft", token.SHR},
	token.SHR:     {"mutantRight", token.SHL},
}

// assigned maps the operators of assignments to the plain operators.
var assigned = map[token.Token]token.Token{
	token.ADD_ASSIGN: token.ADD, token.SUB_ASSIGN: token.SUB, token.MUL_ASSIGN: token.MUL, token.QUO_ASSIGN: token.QUO,
	token.REM_ASSIGN: token.REM, token.AND_ASSIGN: token.AND, token.OR_ASSIGN: token.OR, token.XOR_ASSIGN: token.XOR,
	token.AND_NOT_ASSIGN: token.AND_NOT, token.SHL_ASSIGN: token.SHL, token.SHR_ASSIGN: token.SHR,
}

// walker finds the sites of one file.
type walker struct {
	p         *source
	name      string // full name of the file
	text      []byte
	file      *token.File
	imports   map[string]string // path to name
	sites     []*site
	results   []string // result types of the current function, as written
	end       int      // its last line
	inside    bool     // in a function
	condition ast.Expr // of an if, which is forced instead of negated
}

// walk visits a file's functions and variables.
func (w *walker) walk(f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body == nil || d.Recv != nil && slices.Contains([]string{"String", "GoString", "Error"}, d.Name.Name) {
				continue
			}
			w.function(d.Type, d.Body)
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				w.each(d)
			}
		}
	}
}

// function walks a body of a function type.
func (w *walker) function(t *ast.FuncType, body *ast.BlockStmt) {
	results, end, inside := w.results, w.end, w.inside
	w.results, w.end, w.inside = nil, w.file.Line(body.Rbrace), true
	if t.Results != nil {
		for _, field := range t.Results.List {
			for range max(1, len(field.Names)) {
				w.results = append(w.results, w.source(field.Type))
			}
		}
	}
	w.list(body.List)
	w.each(body)
	w.results, w.end, w.inside = results, end, inside
}

// each visits the children of a node.
func (w *walker) each(n ast.Node) {
	ast.Inspect(n, func(m ast.Node) bool {
		if m == nil || m == n {
			return true
		}
		return w.visit(m)
	})
}

// visit makes the sites of a node, and reports whether to visit its children.
func (w *walker) visit(n ast.Node) bool {
	if e, ok := n.(ast.Expr); ok {
		if tv := w.p.info.Types[e]; tv.IsType() {
			return false
		} else if tv.Value != nil {
			w.constant(e, tv)
			return false
		}
	}
	switch n := n.(type) {
	case *ast.FuncLit:
		w.function(n.Type, n.Body)
		return false
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.BlockStmt:
		w.list(n.List)
	case *ast.CommClause:
		w.list(n.Body)
	case *ast.CaseClause:
		w.list(n.Body)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					w.force(e)
				}
			}
		}
	case *ast.IfStmt:
		w.condition = n.Cond
		w.force(n.Cond)
	case *ast.BinaryExpr:
		w.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT && n != w.condition {
			w.negate(n, "!", w.source(n)+" → "+w.source(n.X))
		}
	case *ast.CallExpr:
		return w.call(n)
	case *ast.CompositeLit:
		return w.literal(n)
	case *ast.ReturnStmt:
		w.returns(n)
	}
	return true
}

// list makes the sites of consecutive statements.
func (w *walker) list(stmts []ast.Stmt) {
	for _, s := range stmts {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok && w.callee(call) != "panic" {
				w.remove(s)
			}
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE && !blank(s.Lhs) {
				w.remove(s)
			}
			op := binary[assigned[s.Tok]]
			if op.call != "" && !isString(w.p.info.TypeOf(s.Lhs[0])) {
				w.exchange(s, "assign", w.source(s.Lhs[0])+" "+op.instead.String()+"= "+w.source(s.Rhs[0]))
			}
		case *ast.IncDecStmt:
			w.exchange(s, "increment", w.source(s.X)+map[token.Token]string{token.INC: "--", token.DEC: "++"}[s.Tok])
		case *ast.DeferStmt:
			w.remove(s)
		case *ast.BranchStmt:
			instead, ok := map[token.Token]token.Token{token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK}[s.Tok]
			if !ok {
				continue
			}
			text := instead.String()
			if s.Label != nil {
				text += " " + s.Label.Name
			}
			w.add("branch", s, []string{w.source(s) + " → " + text}, func(id int) []edit {
				return []edit{w.before(s, "if mutantOn(%d) { %s }; ", id, text)}
			})
		}
	}
}

// remove makes a site that removes a statement.
func (w *walker) remove(s ast.Stmt) {
	w.add("remove", s, []string{"without " + w.source(s)}, func(id int) []edit {
		return []edit{w.before(s, "if !mutantOn(%d) { ", id), w.after(s, " }")}
	})
}

// exchange makes a site that replaces a statement.
func (w *walker) exchange(s ast.Stmt, operator, instead string) {
	if strings.Contains(instead, "\n") {
		return
	}
	w.add(operator, s, []string{w.source(s) + " → " + instead}, func(id int) []edit {
		return []edit{w.before(s, "if mutantOn(%d) { %s } else { ", id, instead), w.after(s, " }")}
	})
}

// force makes a site that makes a condition true or false.
func (w *walker) force(e ast.Expr) {
	if tv := w.p.info.Types[e]; tv.Value != nil || !isBool(tv.Type) {
		return
	}
	w.add("condition", e, []string{w.source(e) + " → true", w.source(e) + " → false"}, func(id int) []edit {
		return []edit{w.before(e, "mutantIf(%d, ", id), w.after(e, ")")}
	})
}

// negate makes a site that negates a condition.
func (w *walker) negate(e ast.Expr, operator, change string) {
	if !isBool(w.p.info.TypeOf(e)) {
		return
	}
	w.add(operator, e, []string{change}, func(id int) []edit {
		return []edit{w.before(e, "(("), w.after(e, ") != mutantOn(%d))", id)}
	})
}

func (w *walker) binary(e *ast.BinaryExpr) {
	x, y := w.source(e.X), w.source(e.Y)
	to := func(op token.Token) string { return w.source(e) + " → " + x + " " + op.String() + " " + y }
	swap := func(text string) edit {
		return edit{offset: w.file.Offset(e.OpPos), instead: len(e.Op.String()), closes: true, order: len(w.sites), text: text}
	}
	ordered := func(call string, boundary, negated token.Token) {
		w.add("compare", e, []string{to(boundary), to(negated)}, func(id int) []edit {
			return []edit{w.before(e, "%s(%d, ", call, id), swap(","), w.after(e, ")")}
		})
	}
	switch e.Op {
	case token.LSS:
		ordered("mutantLess", token.LEQ, token.GEQ)
	case token.LEQ:
		ordered("mutantLessEqual", token.LSS, token.GTR)
	case token.GTR:
		ordered("mutantGreater", token.GEQ, token.LEQ)
	case token.GEQ:
		ordered("mutantGreaterEqual", token.GTR, token.LSS)
	case token.EQL, token.NEQ:
		if e != w.condition {
			w.negate(e, "compare", to(map[token.Token]token.Token{token.EQL: token.NEQ, token.NEQ: token.EQL}[e.Op]))
		}
	case token.LAND, token.LOR: // De Morgan: each is the negation of the other with negated operands
		if !isBool(w.p.info.TypeOf(e.X)) || !isBool(w.p.info.TypeOf(e.Y)) {
			return
		}
		w.add("logic", e, []string{to(map[token.Token]token.Token{token.LAND: token.LOR, token.LOR: token.LAND}[e.Op])}, func(id int) []edit {
			on := fmt.Sprintf(") != mutantOn(%d)", id)
			return []edit{w.before(e, "(((("), w.after(e.X, "%s)", on), w.before(e.Y, "(("), w.after(e, "%s)%s)", on, on)}
		})
	default:
		op := binary[e.Op]
		left := w.p.info.Types[e.X]
		if op.call == "" || isString(w.p.info.TypeOf(e)) {
			return
		}
		convert, end := "", ""
		if left.Value != nil { // a constant gets its type from its context, which a call would hide
			convert, end = w.typeName(w.p.info.TypeOf(e))+"(", ")"
		}
		w.add("arithmetic", e, []string{to(op.instead)}, func(id int) []edit {
			return []edit{w.before(e, "%s(%d, %s", op.call, id, convert), swap(end + ","), w.after(e, ")")}
		})
	}
}

// constant makes a site that changes an integer by one. It skips expressions and named constants, whose bounds are changed
// by comparisons.
func (w *walker) constant(e ast.Expr, tv types.TypeAndValue) {
	lit := e
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.SUB {
		lit = u.X
	}
	if b, ok := lit.(*ast.BasicLit); !ok || b.Kind != token.INT {
		return
	}
	basic, ok := tv.Type.Underlying().(*types.Basic)
	if !ok || basic.Info()&types.IsNumeric == 0 || basic.Info()&(types.IsComplex|types.IsUntyped) != 0 {
		return
	}
	changes := make([]string, 0, 2)
	for _, by := range []int64{1, -1} {
		n := constant.BinaryOp(tv.Value, token.ADD, constant.MakeInt64(by))
		if basic.Info()&types.IsUnsigned != 0 && constant.Sign(n) < 0 {
			continue
		}
		changes = append(changes, w.source(e)+" → "+n.ExactString())
	}
	call := "mutantConstant"
	if len(changes) == 1 {
		call = "mutantRaised"
	}
	w.add("constant", e, changes, func(id int) []edit {
		return []edit{w.before(e, "%s[%s](%d, ", call, w.typeName(tv.Type), id), w.after(e, ")")}
	})
}

// call reports whether to change the arguments of a call; messages and capacities are not changed.
func (w *walker) call(n *ast.CallExpr) bool {
	name := w.callee(n)
	switch {
	case name == "panic", name == "fmt.Errorf", name == "errors.New", strings.HasPrefix(name, "log.") || strings.HasPrefix(name, "slog."):
		return false
	case name == "make":
		keep := 1
		if _, ok := w.p.info.TypeOf(n).Underlying().(*types.Slice); ok {
			keep = 2
		}
		for _, arg := range n.Args[1:min(keep, len(n.Args))] {
			w.each(&ast.ParenExpr{X: arg})
		}
		return false
	}
	return true
}

func (w *walker) callee(n *ast.CallExpr) string {
	switch f := n.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
	}
	return ""
}

// literal walks the elements of a composite literal. It skips keys, which must be constants in an array, and numbers in a
// table of the package, which are data.
func (w *walker) literal(n *ast.CompositeLit) bool {
	_, isStruct := w.p.info.TypeOf(n).Underlying().(*types.Struct)
	for _, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if _, isMap := w.p.info.TypeOf(n).Underlying().(*types.Map); isMap && w.inside {
				w.each(&ast.ParenExpr{X: kv.Key})
			}
			e = kv.Value
		}
		if w.inside || isStruct || w.p.info.Types[e].Value == nil {
			w.each(&ast.ParenExpr{X: e})
		}
	}
	return false
}

// returns makes sites that make each result zero. If one call returns several, all become zero without the call.
func (w *walker) returns(n *ast.ReturnStmt) {
	if len(n.Results) != len(w.results) {
		if len(n.Results) == 1 {
			zeros := make([]string, len(w.results))
			for i, t := range w.results {
				zeros[i] = "*new(" + t + ")"
			}
			w.add("return", n, []string{w.source(n) + " → zeros"}, func(id int) []edit {
				return []edit{w.before(n, "if mutantOn(%d) { return %s }; ", id, strings.Join(zeros, ", "))}
			})
		}
		return
	}
	for i, e := range n.Results {
		tv := w.p.info.Types[e]
		lit, isLit := e.(*ast.CompositeLit)
		if tv.IsNil() || tv.Value != nil && isZero(tv.Value) || isLit && len(lit.Elts) == 0 || strings.Contains(w.results[i], "\n") {
			continue
		}
		w.add("return", e, []string{w.source(n) + ": " + w.source(e) + " → zero"}, func(id int) []edit {
			return []edit{w.before(e, "mutantZero[%s](%d, ", w.results[i], id), w.after(e, ")")}
		})
	}
}

// add adds a site for a node.
func (w *walker) add(operator string, n ast.Node, changes []string, edits func(id int) []edit) {
	s := &site{file: w.name, edits: edits(w.p.count), end: w.end}
	at := w.p.files.Position(n.Pos())
	for _, c := range changes {
		s.mutants = append(s.mutants, &mutant{
			id: w.p.count, File: path.Join(w.p.path, filepath.Base(w.name)), Line: at.Line, Column: at.Column, Operator: operator, Change: shorten(c),
		})
		w.p.count++
	}
	for _, e := range s.edits {
		s.lines = append(s.lines, w.file.Line(w.file.Pos(e.offset)))
	}
	w.sites = append(w.sites, s)
}

func (w *walker) before(n ast.Node, format string, args ...any) edit {
	return edit{offset: w.file.Offset(n.Pos()), order: len(w.sites), text: fmt.Sprintf(format, args...)}
}

func (w *walker) after(n ast.Node, format string, args ...any) edit {
	return edit{offset: w.file.Offset(n.End()), closes: true, order: len(w.sites), text: fmt.Sprintf(format, args...)}
}

// source returns the text of a node.
func (w *walker) source(n ast.Node) string {
	return string(w.text[w.file.Offset(n.Pos()):w.file.Offset(n.End())])
}

// typeName returns the name of a type in the file.
func (w *walker) typeName(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p.Path() == w.p.types.Path() {
			return ""
		}
		return cmp.Or(w.imports[p.Path()], p.Name())
	})
}

// compare orders edits by offset; those that close come before those that open.
func (e edit) compare(f edit) int {
	if c := cmp.Compare(e.offset, f.offset); c != 0 {
		return c
	}
	if e.closes != f.closes {
		if e.closes {
			return -1
		}
		return 1
	}
	if e.closes {
		return cmp.Compare(f.order, e.order)
	}
	return cmp.Compare(e.order, f.order)
}

func blank(lhs []ast.Expr) bool {
	return !slices.ContainsFunc(lhs, func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return !ok || id.Name != "_"
	})
}

func isBool(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Info()&types.IsBoolean != 0
}

func isString(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

func isZero(v constant.Value) bool {
	switch v.Kind() {
	case constant.Bool:
		return !constant.BoolVal(v)
	case constant.String:
		return constant.StringVal(v) == ""
	case constant.Int, constant.Float:
		return constant.Sign(v) == 0
	}
	return false
}

// shorten makes one line of limited length of a text.
func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 160 {
		s = strings.ToValidUTF8(s[:157], "") + "..."
	}
	return s
}

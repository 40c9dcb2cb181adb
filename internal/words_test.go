package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// banned lists words and phrases that readers stumble over, each with a replacement.
var banned = map[string]string{
	"anew":                 "again",
	"appetite":             "demand",
	"asked for on purpose": "requested",
	"for ever":             "forever",
	"goes on with":         "continues, resumes",
	"in vain":              "without success",
	"refetch":              "revisit",
	"by whoever":           "name who acts",
	"for else":             "otherwise",
	"gone on with":         "resumed",
	"lest":                 "so that … not",
	"stint":                "session",
	"that which":           "the one that",
	"thereof":              "of it",
	"this often":           "the number",
	"till":                 "until",
	"whereby":              "by which",
}

// TestPlainWords rejects banned words in documents, help, Terraform, comments and messages. It leaves out
// decisions and experiments, which are not rewritten.
func TestPlainWords(t *testing.T) {
	var phrases []string
	for phrase := range banned {
		phrases = append(phrases, regexp.QuoteMeta(phrase))
	}
	pattern := regexp.MustCompile(`(?i)\b(` + strings.Join(phrases, "|") + `)\b`)
	check := func(name, text string) {
		for _, phrase := range pattern.FindAllString(text, -1) {
			t.Errorf("%s says %q: write %q instead", name, phrase, banned[strings.ToLower(phrase)])
		}
	}
	for name, text := range documents(t) {
		if !strings.HasPrefix(name, "docs/adr/") && !strings.HasPrefix(name, "docs/experiments/") {
			check(name, text)
		}
	}
	for _, glob := range []string{"../cmd/orbweaver/help/*", "../cmd/orbweaver/text/*", "../infra/*/*/*.tf"} {
		names, err := filepath.Glob(glob)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no file (%v)", glob, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			check(name, string(text))
		}
	}
	for _, name := range files(t) {
		if name == "internal/words_test.go" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", filepath.FromSlash(name)), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range f.Comments {
			check(name, group.Text())
		}
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "lab/") {
			continue // their strings are data as often as messages
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				check(name, lit.Value)
			}
			return true
		})
	}
}

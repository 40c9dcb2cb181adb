package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orbweaver/orbweaver/internal/weburl"
)

// TestDocsCommands parses each command line of the documents, and of the examples that help
// shows, with the real commands: their names, flags, values and number of arguments.
func TestDocsCommands(t *testing.T) {
	t.Setenv(platformVariable, "")
	texts := map[string]string{}
	for _, pattern := range []string{"README.md", "*/README.md", "docs/*.md", "docs/*/*.md"} {
		names, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no document (%v)", pattern, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(name) != "commands.md" { // the help; its examples are checked below
				texts[name] = codeOf(string(b))
			}
		}
	}
	each(root(), func(cmd *cobra.Command) { texts[cmd.CommandPath()+" --help"] = cmd.Example })
	found := 0
	for name, text := range texts {
		for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
			for _, args := range invocations(line) {
				found++
				if err := parses(args); err != nil {
					t.Errorf("%s: orbweaver %s: %v", name, strings.Join(args, " "), err)
				}
			}
		}
	}
	if found < 150 {
		t.Errorf("only %d command lines found: the pattern misses them", found)
	}
	for _, wrong := range []string{"crawl --no-such-flag", "crwal", "status more", "crawl --max-depth=deep", "recrawl --elastic 2..4", "crawl --recrawl 500/h https://example.org/"} {
		if parses(strings.Fields(wrong)) == nil {
			t.Errorf("orbweaver %s: taken for right", wrong)
		}
	}
}

// TestDocsFlags checks that each flag that a document names alone exists in some command.
func TestDocsFlags(t *testing.T) {
	known := map[string]bool{"help": true, "version": true}
	each(root(), func(cmd *cobra.Command) { cmd.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true }) })
	for _, foreign := range []string{"aws-sigv4", "user", "endpoint-url"} { // of curl and aws
		known[foreign] = true
	}
	names, err := filepath.Glob(filepath.FromSlash("../../docs/*.md"))
	guides, err2 := filepath.Glob(filepath.FromSlash("../../docs/howto/*.md"))
	if err := errors.Join(err, err2); err != nil || len(names) == 0 || len(guides) == 0 {
		t.Fatalf("no documents (%v)", err)
	}
	for _, name := range append(append(names, guides...), filepath.FromSlash("../../README.md")) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`--([a-z-]+)").FindAllStringSubmatch(string(b), -1) {
			if !known[m[1]] {
				t.Errorf("%s: no command has --%s", name, m[1])
			}
		}
	}
}

// TestEstimatesInDocs compares each price in docs/costs.md with the output of the command beside it.
func TestEstimatesInDocs(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash("../../docs/costs.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| .* \\| (.*) \\| `bin/orbweaver (estimate[^`]*)`(?:; without)? \\|$").FindAllStringSubmatch(string(page), -1)
	for _, row := range rows {
		var out bytes.Buffer
		cmd := root()
		cmd.SetOut(&out)
		if status := execute(t.Context(), cmd, strings.Fields(row[2])); status != exitOK {
			t.Fatalf("%s: status %d", row[2], status)
		}
		printed := map[string]bool{}
		for _, number := range regexp.MustCompile(`\d+\.\d{2,4}`).FindAllString(out.String(), -1) {
			v, err := strconv.ParseFloat(number, 64)
			if err != nil {
				t.Fatal(err)
			}
			printed[fmt.Sprintf("$%.2f", v)] = true
		}
		figure, _, _ := strings.Cut(row[1], ";") // another command prints the rest
		if !printed[figure] {
			t.Errorf("docs/costs.md says %s, and orbweaver %s does not", row[1], row[2])
		}
	}
	if len(rows) < 7 {
		t.Errorf("only %d estimates found", len(rows))
	}
}

// each visits a command and its subcommands.
func each(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		each(sub, visit)
	}
}

// codeOf returns the code of a document: its blocks and its spans, one per line.
func codeOf(text string) string {
	var b strings.Builder
	inBlock := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "```"):
			inBlock = !inBlock
		case inBlock:
			b.WriteString(line)
		default:
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1) {
				b.WriteString(strings.ReplaceAll(m[1], `\|`, "|") + "\n")
			}
		}
	}
	return b.String()
}

var (
	word = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)
	name = regexp.MustCompile(`^(?:.*/)?orbweaver$`)
)

// invocations returns the arguments of each call of orbweaver in a line of shell. It omits placeholders such as "…", "..."
// and "[URL...]", and replaces N by a number.
func invocations(line string) (calls [][]string) {
	if before, _, ok := strings.Cut(line, " #"); ok {
		line = before
	}
	line = strings.NewReplacer(" && ", " ; ", " | ", " ; ", "$(", " ; ").Replace(line)
	for _, part := range strings.Split(line, " ; ") {
		words := word.FindAllString(part, -1)
		for len(words) > 0 && (strings.Contains(words[0], "=") || strings.HasPrefix(words[0], "ExecStart")) {
			words = words[1:]
		}
		if len(words) < 2 || !name.MatchString(words[0]) {
			continue
		}
		var args []string
		for _, w := range words[1:] {
			w = strings.Trim(w, `'"`)
			if w == "&" || strings.HasPrefix(w, ">") || strings.HasPrefix(w, "<") {
				break
			}
			switch {
			case w == "N":
				args = append(args, "1")
			case w != "…" && w != "..." && !strings.HasPrefix(w, "["):
				args = append(args, w)
			}
		}
		if len(args) > 0 && args[0] != "=" {
			calls = append(calls, args)
		}
	}
	return calls
}

// parses returns the error that the commands find in arguments before they run.
func parses(args []string) error {
	cmd := root()
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.InitDefaultHelpCmd()
	found, rest, err := cmd.Find(args)
	if err != nil {
		return err
	}
	found.InitDefaultHelpFlag()
	found.InitDefaultVersionFlag()
	if err := found.ParseFlags(rest); err != nil {
		return err
	}
	if found == cmd {
		return noSuchCommand(cmd, found.Flags().Args())
	}
	if name := found.Name(); name == "crawl" || name == "recrawl" {
		for _, arg := range found.Flags().Args() {
			if _, err := weburl.Parse(arg); err != nil && arg != "URL" {
				return err
			}
		}
	}
	return found.ValidateArgs(found.Flags().Args())
}

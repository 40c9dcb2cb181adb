package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/dustin/go-humanize"
)

// texts holds all reports for people: the folder text has one template file per command.
//
// A line that holds only one control action writes nothing. If a line is one block of if, with or range, its
// newline belongs to the block. The lines of tables begin with a tab; see [align]. Every value passes through [show].
// Reports are parsed at their first use, so that the first request of a crawl does not wait for them.
var texts = sync.OnceValue(parseTexts)

//go:embed text/*.tmpl
var textFiles embed.FS

var (
	controlLine = regexp.MustCompile(`^\{\{(?:if|else|end|range|with|define|template)\b[^{}]*\}\}\n$`)
	keyword     = regexp.MustCompile(`\{\{(if|with|range|end)\b[^{}]*\}\}`)
)

func parseTexts() *template.Template {
	all := template.New("").Funcs(template.FuncMap{
		"show": show, "count": count, "plural": plural, "size": size, "span": span, "at": at, "when": when, "ahead": ahead, "kinds": kinds,
		"percent": percent, "dollars": dollars, "figure": figure, "millis": millis, "some": some, "dots": dots, "join": strings.Join,
	})
	files, err := textFiles.ReadDir("text")
	if err != nil {
		panic("orbweaver: " + err.Error()) // embedded: unreachable
	}
	for _, f := range files {
		source, err := textFiles.ReadFile("text/" + f.Name())
		if err != nil {
			panic("orbweaver: " + err.Error()) // likewise
		}
		var b strings.Builder
		for line := range strings.Lines(string(source)) {
			if controlLine.MatchString(line) {
				line = strings.TrimSpace(line)
			}
			b.WriteString(takeNewline(line))
		}
		template.Must(all.New(strings.TrimSuffix(f.Name(), ".tmpl")).Parse(b.String()))
	}
	for _, t := range all.Templates() {
		if t.Tree != nil {
			showAll(t.Root)
		}
	}
	return all
}

// takeNewline moves the newline of a line into the block, if the line is one block.
func takeNewline(line string) string {
	depth := 0
	for _, at := range keyword.FindAllStringSubmatchIndex(line, -1) {
		if depth == 0 && at[0] > 0 {
			break // the block is not the whole line
		}
		if line[at[2]:at[3]] != "end" {
			depth++
		} else if depth--; depth == 0 && line[at[0]:] == "{{end}}\n" {
			return line[:at[0]] + "\n{{end}}"
		}
	}
	return line
}

// showAll appends the function show to every pipeline that writes, as html/template does with its escapers.
func showAll(n parse.Node) {
	branches := func(b *parse.BranchNode) {
		showAll(b.List)
		if b.ElseList != nil {
			showAll(b.ElseList)
		}
	}
	switch n := n.(type) {
	case *parse.ListNode:
		for _, c := range n.Nodes {
			showAll(c)
		}
	case *parse.IfNode:
		branches(&n.BranchNode)
	case *parse.RangeNode:
		branches(&n.BranchNode)
	case *parse.WithNode:
		branches(&n.BranchNode)
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 {
			n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{
				NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{parse.NewIdentifier("show").SetPos(n.Pos)},
			})
		}
	}
}

// safe is text that show does not change.
type safe string

// show writes a value of a template: integers with commas, times in UTC, and text without control
// characters, so that a server cannot move the cursor.
func show(v any) any {
	switch v := v.(type) {
	case safe:
		return v
	case int, int64, uint64:
		return count(v)
	case time.Time:
		return at(v)
	}
	return printable(fmt.Sprint(v))
}

// text executes a template.
func text(name string, data any) string {
	var b strings.Builder
	if err := texts().ExecuteTemplate(&b, name, data); err != nil {
		return fmt.Sprintf("cannot write %s: %v\n", name, err) // a wrong template: tests execute each one
	}
	return align(b.String())
}

// align aligns tables to the right. A tab ends a cell; what follows the last tab of a line stays as it is.
func align(text string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', tabwriter.AlignRight)
	_, _ = io.WriteString(w, strings.ReplaceAll("\n"+text, "\n\t", "\n")[1:]) // into memory: it cannot fail
	_ = w.Flush()                                                             // likewise
	return b.String()
}

// report writes a report by a template, or as JSON.
func (f *reading) report(w io.Writer, name string, r any) error {
	if f.json {
		return writeJSON(w, r)
	}
	_, err := io.WriteString(w, text(name, r))
	return err
}

// plural writes a number and its noun: "1 page", "2 pages".
func plural(n any, noun string) string {
	number := count(n)
	if number != "1" {
		noun += "s"
	}
	return number + " " + noun
}

// count writes an integer with a comma every three digits.
func count(n any) string {
	v := reflect.Indirect(reflect.ValueOf(n))
	if v.CanUint() {
		return humanize.Comma(int64(v.Uint()))
	}
	return humanize.Comma(v.Int())
}

// size writes bytes with about three digits.
func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// span writes a number of seconds as people say it.
func span(seconds float64) string {
	d := time.Duration(min(seconds, 1e9) * float64(time.Second)) // 32 years: more would overflow
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 1000*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return count(int64(d.Hours()/24)) + " days"
}

// millis writes a short time; "-" if it is unknown.
func millis(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < 10*time.Second:
		return count(d.Round(time.Millisecond).Milliseconds()) + " ms"
	}
	return span(d.Seconds())
}

func percent(share float64) string { return fmt.Sprintf("%.3g%%", 100*share) }

func dollars(v float64) string {
	if v >= 100 {
		return "$" + count(int64(v+0.5))
	}
	return fmt.Sprintf("$%.2f", v)
}

// figure writes a number with its significant digits.
func figure(v float64) string {
	if v >= 100 || v == float64(int64(v)) {
		return count(int64(v + 0.5))
	}
	return fmt.Sprintf("%.3g", v)
}

// timeLayout is how times are written.
const timeLayout = "2006-01-02 15:04:05 UTC"

// at writes a time, and how far ahead it is.
func at(t time.Time) string {
	s := t.UTC().Format(timeLayout)
	if time.Until(t) > 0 {
		s += " (" + when(t) + ")"
	}
	return s
}

// when writes a time relative to now.
func when(t time.Time) string {
	switch d := time.Until(t); {
	case t.IsZero():
		return "-"
	case d <= 0:
		return "now"
	default:
		return "in " + span(d.Seconds())
	}
}

// ahead writes the earliest time of something to come.
func ahead(t time.Time) string {
	if !t.After(time.Now()) {
		return "at once"
	}
	return at(t)
}

// kinds lists numbers by name, the largest first, except some names.
func kinds(numbers map[string]int64, without ...string) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(numbers)), func(k string) bool {
		return numbers[k] == 0 || slices.Contains(without, k)
	})
	slices.SortStableFunc(names, func(a, b string) int { return int(numbers[b] - numbers[a]) })
	for i, k := range names {
		names[i] = k + " " + count(numbers[k])
	}
	return strings.Join(names, " · ")
}

// dots lists what is not empty: "3 links out of scope · 2 links into a trap".
func dots(list ...string) string {
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), " · ")
}

// some writes a number with its noun, if there is one, and the rest; "" for the number 0.
func some(n any, noun, rest string) string {
	switch number := count(n); {
	case number == "0":
		return ""
	case noun == "":
		return number + " " + rest
	default:
		return plural(n, noun) + " " + rest
	}
}

// printable replaces control characters, with which a server could move the cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, s)
}

// writeJSON writes a value as indented JSON.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// warn writes a line that is not output.
func warn(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "orbweaver: "+format+"\n", args...)
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
)

// plural writes a number and its noun: "1 page", "2 pages".
func plural[T integer](n T, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return count(n) + " " + noun
}

// count writes a number with a comma every three digits.
func count[T integer](n T) string { return humanize.Comma(int64(n)) }

type integer interface {
	~int | ~int64 | ~uint16 | ~uint32 | ~uint64
}

// size writes bytes with about three digits.
func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// span writes a time as people say it.
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

func percent(share float64) string { return fmt.Sprintf("%.3g%%", 100*share) }

func dollars(v float64) string {
	if v >= 100 {
		return "$" + count(int64(v+0.5))
	}
	return fmt.Sprintf("$%.2f", v)
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

// kinds lists numbers by name, the largest first, without some names.
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

// parts lists what is not zero: "3 links out of scope · 2 links into a trap".
func parts(list ...string) string {
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), " · ")
}

// some is a text with a number, or "" for none.
func some(n int64, text string) string {
	if n == 0 {
		return ""
	}
	return text
}

// printable keeps what a server sent from moving the cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, s)
}

// output collects what a command writes for people: rows of names and values, tables and lines.
type output struct {
	strings.Builder
	rows   *tabwriter.Writer // of the rows since the last table or line; nil for none
	indent string            // before the names of rows
	width  int               // least width of the names, with the indent; 0 for two spaces after the longest
}

// row adds a name and a value; the values of consecutive rows are aligned.
func (o *output) row(name, format string, args ...any) {
	if o.rows == nil {
		padding := 2
		if o.width > 0 {
			padding = 1
		}
		o.rows = tabwriter.NewWriter(&o.Builder, o.width, 8, padding, ' ', 0)
	}
	fmt.Fprintf(o.rows, "%s%s\t%s\n", o.indent, name, printable(fmt.Sprintf(format, args...)))
}

// rowIf adds a row if there is something to say.
func (o *output) rowIf(is bool, name, format string, args ...any) {
	if is {
		o.row(name, format, args...)
	}
}

// line adds a line. The text may have several.
func (o *output) line(format string, args ...any) {
	o.flush()
	fmt.Fprintf(o, format+"\n", args...)
}

// The kinds of tables.
type tableKind uint8

const (
	numbers  tableKind = iota // all cells are aligned to the right
	nameLast                  // except those of the last column
	words                     // all cells are aligned to the left
)

// table adds a table: a heading, whose cells are separated by "|", and lines.
func (o *output) table(kind tableKind, heading string, lines [][]any) {
	o.flush()
	flags := tabwriter.AlignRight
	if kind == words {
		flags = 0
	}
	w := tabwriter.NewWriter(&o.Builder, 0, 8, 2, ' ', flags)
	write := func(cells []string) {
		last := len(cells) - 1
		switch kind {
		case numbers:
			fmt.Fprintf(w, "%s\t\n", strings.Join(cells, "\t"))
		case nameLast: // an unaligned cell ends its line
			fmt.Fprintf(w, "%s\t  %s\n", strings.Join(cells[:last], "\t"), cells[last])
		case words:
			fmt.Fprintln(w, strings.Join(cells, "\t"))
		}
	}
	write(strings.Split(heading, "|"))
	for _, cells := range lines {
		texts := make([]string, len(cells))
		for i, c := range cells {
			switch c := c.(type) {
			case int:
				texts[i] = count(c)
			case int64:
				texts[i] = count(c)
			case uint64:
				texts[i] = count(c)
			default:
				texts[i] = printable(fmt.Sprint(c))
			}
		}
		write(texts)
	}
	w.Flush() // into memory: it cannot fail
}

func (o *output) flush() {
	if o.rows != nil {
		o.rows.Flush() // into memory: it cannot fail
		o.rows = nil
	}
}

// to writes all rows and lines with one call.
func (o *output) to(w io.Writer) error {
	o.flush()
	_, err := io.WriteString(w, o.String())
	return err
}

// writeJSON writes a value for a program, and for people who look at it.
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

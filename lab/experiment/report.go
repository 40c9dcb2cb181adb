package experiment

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Table is a table with one cell per row and column. Cells are strings, ints and float64s; nil is an empty cell.
type Table struct {
	Name    string   `json:"name"` // suffix of its file name, after the name of the report
	Caption string   `json:"caption"`
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

// CSV writes the table with a header line and exact numbers.
func (t *Table) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	line := make([]string, len(t.Columns))
	if err := c.Write(t.Columns); err != nil {
		return err
	}
	for _, row := range t.Rows {
		for i, cell := range row {
			line[i] = exact(cell)
		}
		if err := c.Write(line); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// exact returns a cell with all digits.
func exact(cell any) string {
	switch v := cell.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(cell)
}

// short returns a cell with three significant digits.
func short(cell any) string {
	switch v := cell.(type) {
	case nil:
		return ""
	case float64:
		if v != 0 && (v < 1e-3 && v > -1e-3) {
			return strconv.FormatFloat(v, 'e', 1, 64)
		}
		v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64) // makes 1.00 of 0.9999, not 1.000
		digits := 0
		for limit := 100.0; digits < 6 && v < limit && v > -limit && v != 0; limit /= 10 {
			digits++
		}
		return strconv.FormatFloat(v, 'f', digits, 64)
	case int:
		return grouped(v)
	}
	return fmt.Sprint(cell)
}

// grouped returns a number with commas between thousands.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (t *Table) markdown(b *strings.Builder) {
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	rule := make([]string, len(t.Columns))
	for i := range rule {
		rule[i] = "---:"
	}
	line(t.Columns)
	line(rule)
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = short(c)
		}
		line(cells)
	}
}

// Markdown returns the report as a document; its plots are separate files.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", r.Title, r.Intro)
	fmt.Fprintf(&b, "Made by `%s`, which writes this page, its plots, and every table as CSV.\n", r.command())
	for _, s := range r.Sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", s.Title, s.Text)
		for _, t := range s.Tables {
			fmt.Fprintf(&b, "\n%s ([CSV](%s)):\n\n", t.Caption, r.file(t.Name, "csv"))
			t.markdown(&b)
		}
		for _, p := range s.Plots {
			fmt.Fprintf(&b, "\n![%s](%s)\n", p.Title, r.file(p.Name, "svg"))
		}
		if len(s.Checks) > 0 {
			b.WriteByte('\n')
		}
		for _, c := range s.Checks {
			verdict := "holds"
			if !c.OK {
				verdict = "**does not hold**"
			}
			fmt.Fprintf(&b, "- %s: %s\n", c.What, verdict)
		}
		if s.Breaks != "" {
			fmt.Fprintf(&b, "\nChanges that were tried and make checks fail: %s\n", s.Breaks)
		}
	}
	return b.String()
}

// command returns the command that makes the report.
func (r *Report) command() string {
	flags := fmt.Sprintf("-seed %d -pages %d", r.Seed, r.Pages)
	if r.Quick {
		flags += " -quick"
	}
	return fmt.Sprintf("make experiments EXPERIMENTS=%s ARGS='%s'", r.Name, flags)
}

func (r *Report) file(name, ending string) string { return r.Name + "-" + name + "." + ending }

// Write writes the report into a folder, which it creates: NAME.md, and NAME-… for each table and plot. It replaces existing
// files.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	put := func(name string, data []byte) error { return os.WriteFile(filepath.Join(dir, name), data, 0o644) }
	for _, s := range r.Sections {
		for _, t := range s.Tables {
			var b bytes.Buffer
			if err := t.CSV(&b); err != nil {
				return err
			}
			if err := put(r.file(t.Name, "csv"), b.Bytes()); err != nil {
				return err
			}
		}
		for _, p := range s.Plots {
			svg, err := p.SVG()
			if err != nil {
				return fmt.Errorf("plot %s: %w", p.Name, err)
			}
			if err := put(r.file(p.Name, "svg"), svg); err != nil {
				return err
			}
		}
	}
	return put(r.Name+".md", []byte(r.Markdown()))
}

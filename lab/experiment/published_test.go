package experiment

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestPublishedTables compares the tables of the published reports with their CSV files, cell by cell, so that neither is
// edited by hand.
func TestPublishedTables(t *testing.T) {
	folder := filepath.Join("..", "..", "docs", "experiments")
	tables := 0
	for _, e := range All() {
		doc, err := os.ReadFile(filepath.Join(folder, e.Name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)\(\[CSV\]\(([a-z0-9-]+\.csv)\)\)[^|]*\n\n((?:\|.*\n)+)`).FindAllStringSubmatch(string(doc), -1) {
			tables++
			f, err := os.Open(filepath.Join(folder, m[1]))
			if err != nil {
				t.Fatal(err)
			}
			rows, err := csv.NewReader(f).ReadAll()
			if err != nil {
				t.Fatalf("%s: %v", m[1], err)
			}
			_ = f.Close()
			sameTable(t, m[1], rows, strings.Split(strings.TrimSpace(m[2]), "\n"))
		}
		if n := strings.Count(string(doc), "([CSV]("); n == 0 || n != strings.Count(string(doc), ".csv)") {
			t.Errorf("%s.md: %d tables with a file", e.Name, n)
		}
	}
	if want, _ := filepath.Glob(filepath.Join(folder, "*.csv")); tables != len(want) || tables < 20 {
		t.Errorf("%d tables compared, of %d files", tables, len(want))
	}
}

// sameTable compares the rows of a file with the lines of a document, which have a rule after the first.
func sameTable(t *testing.T, name string, rows [][]string, lines []string) {
	t.Helper()
	if len(lines) != len(rows)+1 {
		t.Errorf("%s: %d rows, and %d lines in the document", name, len(rows), len(lines))
		return
	}
	for i, row := range rows {
		line := lines[min(i, 1)*(i+1)]
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | ")
		if len(cells) != len(row) {
			t.Errorf("%s: row %d has %d cells, the document's line %d:\n%s", name, i, len(row), len(cells), line)
			continue
		}
		for j, cell := range row {
			if got := strings.TrimSpace(cells[j]); !sameCell(cell, got) {
				t.Errorf("%s: row %d, %s: %s is %q in the document", name, i, rows[0][j], cell, got)
			}
		}
	}
}

// sameCell compares an exact cell with a rounded one.
func sameCell(exact, shown string) bool {
	if exact == shown {
		return true
	}
	if n, err := strconv.Atoi(exact); err == nil && short(n) == shown {
		return true
	}
	v, err := strconv.ParseFloat(exact, 64)
	return err == nil && short(v) == shown
}

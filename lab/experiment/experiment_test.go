package experiment

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/partition"
)

// TestWebgather runs the experiment twice on a small web. The reports are equal and complete, and the checks that do not
// depend on size hold.
func TestWebgather(t *testing.T) {
	var dirs []string
	lines := 0
	for range 2 {
		dir := filepath.Join(t.TempDir(), "out")
		r, err := webgather(Options{Seed: 2, Quick: true, Pages: 2_500, Log: func(string) { lines++ }})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Write(dir); err != nil {
			t.Fatal(err)
		}
		if dirs = append(dirs, dir); len(dirs) > 1 {
			continue
		}
		for _, s := range r.Sections {
			for _, c := range s.Checks {
				if !c.OK && (s.Title != "Balance" && s.Title != "Speed-up") { // these checks need large webs
					t.Errorf("%s: %s", s.Title, c.What)
				}
			}
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	}
	if lines == 0 {
		t.Error("not a word of what is done")
	}
	checkReport(t, dirs[0], "webgather")
	for _, name := range names(t, dirs[0]) {
		a, errA := os.ReadFile(filepath.Join(dirs[0], name))
		b, errB := os.ReadFile(filepath.Join(dirs[1], name))
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if d := cmp.Diff(string(a), string(b)); d != "" {
			t.Errorf("%s (-first +second):\n%s", name, d)
		}
	}
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// checkReport checks that the files that the document names exist and can be read.
func checkReport(t *testing.T, dir, name string) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join(dir, name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	all := names(t, dir)
	if len(all) < 5 {
		t.Errorf("only %v", all)
	}
	for _, name := range all {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		switch filepath.Ext(name) {
		case ".csv":
			if rows, err := csv.NewReader(f).ReadAll(); err != nil || len(rows) < 2 {
				t.Errorf("%s: %d rows, %v", name, len(rows), err)
			}
		case ".svg":
			wellFormed(t, name, f)
		case ".md":
			continue
		}
		if !strings.Contains(string(doc), "("+name+")") {
			t.Errorf("the document does not name %s", name)
		}
	}
	for _, bad := range []string{"%!", "NaN", "<nil>"} {
		if strings.Contains(string(doc), bad) {
			t.Errorf("the document has %q", bad)
		}
	}
}

func wellFormed(t *testing.T, name string, r io.Reader) {
	t.Helper()
	d := xml.NewDecoder(r)
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
	}
}

func TestVariance(t *testing.T) {
	for _, c := range []struct {
		pages []int
		want  float64
	}{
		{[]int{0, 0}, 0}, {[]int{7}, 0}, {[]int{5, 5}, 0}, {[]int{1, 3}, 0.0625}, {[]int{4, 0, 0, 0}, 0.1875},
	} {
		if got := variance(c.pages); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: got %v, want %v", c.pages, got, c.want)
		}
	}
}

// TestJump checks the properties that the paper proves: shares are even, a key moves only to the newest partition, and one in
// n does.
func TestJump(t *testing.T) {
	const keys = 20_000
	for n := 1; n <= 20; n++ {
		counts, moved := make([]int, n+1), 0
		for k := range uint64(keys) {
			key := k * 0x9e3779b97f4a7c15
			before, after := jump(key, n), jump(key, n+1)
			if before < 0 || before >= n || after != before && after != n {
				t.Fatalf("key %#x: %d of %d, then %d", key, before, n, after)
			}
			if counts[after]++; after != before {
				moved++
			}
		}
		share := float64(keys) / float64(n+1)
		if off := math.Abs(float64(moved) - share); off > 6*math.Sqrt(share) {
			t.Errorf("%d to %d: %d keys move, of %d", n, n+1, moved, keys)
		}
		for p, c := range counts {
			if off := math.Abs(float64(c) - share); off > 6*math.Sqrt(share) {
				t.Errorf("%d of %d has %d keys of %d", p, n+1, c, keys)
			}
		}
	}
}

// TestAssigners checks that each way gives every host one of the n owners, from few to many and back.
func TestAssigners(t *testing.T) {
	hash, err := partition.NewHash([16]byte{1}, 256)
	if err != nil {
		t.Fatal(err)
	}
	var hosts []string
	var hashes []uint64
	for i := range 300 {
		hosts = append(hosts, "h"+grouped(i)+".example")
		hashes = append(hashes, hash.Fingerprint(hosts[i]))
	}
	for _, w := range assigners(hash, hosts) {
		var owners []int
		for _, n := range []int{1, 2, 3, 7, 6, 1} {
			next := w.assign(hashes, n, owners)
			if len(next) != len(hosts) || slices.Min(next) < 0 || slices.Max(next) >= n {
				t.Errorf("%s: owners of %d hosts are %d to %d of %d", w.name, len(next), slices.Min(next), slices.Max(next), n)
			}
			seen := map[int]bool{}
			for _, o := range next {
				seen[o] = true
			}
			if len(seen) != n {
				t.Errorf("%s: %d of %d partitions own a host", w.name, len(seen), n)
			}
			owners = next
		}
	}
}

func TestCells(t *testing.T) {
	for _, c := range []struct {
		cell         any
		short, exact string
	}{
		{nil, "", ""},
		{0.0, "0", "0"},
		{0.00001654321, "1.7e-05", "1.654321e-05"},
		{0.0012345, "0.00123", "0.0012345"},
		{0.123456, "0.123", "0.123456"},
		{1.23456, "1.23", "1.23456"},
		{0.9996, "1.00", "0.9996"},
		{15.4, "15.4", "15.4"},
		{123.456, "123", "123.456"},
		{-1.5, "-1.50", "-1.5"},
		{0, "0", "0"},
		{999, "999", "999"},
		{761129, "761,129", "761129"},
		{-1234, "-1,234", "-1234"},
		{"x", "x", "x"},
	} {
		if got := short(c.cell); got != c.short {
			t.Errorf("%v: short %q, want %q", c.cell, got, c.short)
		}
		if got := exact(c.cell); got != c.exact {
			t.Errorf("%v: exact %q, want %q", c.cell, got, c.exact)
		}
	}
}

// drawn returns the SVG of a plot, which must be well-formed XML.
func drawn(t *testing.T, p Plot) string {
	t.Helper()
	svg, err := p.SVG()
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, p.Title, bytes.NewReader(svg))
	return string(svg)
}

func TestPlot(t *testing.T) {
	for _, p := range []Plot{
		{},
		{Title: "a < b & c", X: "x", Y: "y", Series: []Series{{Name: "<s>", X: []float64{1}, Y: []float64{1}}}},
		{LogX: true, LogY: true},
		{LogX: true, LogY: true, Series: []Series{{X: []float64{1, 2, 0, 4, 8}, Y: []float64{0.1, 0, 1, math.NaN(), math.Inf(1)}}}},
		{Series: []Series{{X: []float64{0, 1e9}, Y: []float64{-1e-9, 1e12}}, {X: []float64{1, 2, 3}, Y: []float64{1}}}},
		{LogY: true, Series: []Series{{X: []float64{1, 2}, Y: []float64{0.01, 0.01}}}},
	} {
		svg := drawn(t, p)
		for _, bad := range []string{"NaN", "Inf", "<s>"} {
			if strings.Contains(svg, bad) {
				t.Errorf("%+v: %q in\n%s", p, bad, svg)
			}
		}
		if drawn(t, p) != svg {
			t.Errorf("%+v: the second drawing differs", p)
		}
	}
}

// TestPlotLines checks that a line goes straight through its points, with a dot at each, and that
// one that only repeats published figures is dashed.
func TestPlotLines(t *testing.T) {
	p := Plot{Series: []Series{
		{Name: "measured", X: []float64{0, 5, 10}, Y: []float64{0, 1, 2}},
		{Name: "published", X: []float64{0, 10}, Y: []float64{0, 2}, Dashed: true, Color: 1},
	}}
	svg := drawn(t, p)
	m := regexp.MustCompile(`d="M([\d.]+),([\d.]+)L([\d.]+),([\d.]+)L([\d.]+),([\d.]+)"[^>]*#0072B2`).FindStringSubmatch(svg)
	if m == nil {
		t.Fatalf("no line of three points in\n%s", svg)
	}
	var at [6]float64
	for i := range at {
		at[i], _ = strconv.ParseFloat(m[i+1], 64)
	}
	if math.Abs(at[0]+at[4]-2*at[2]) > 0.05 || math.Abs(at[1]+at[5]-2*at[3]) > 0.05 || at[4]-at[0] < 200 || at[5]-at[1] < 150 {
		t.Errorf("the line goes through %v", at)
	}
	if n := strings.Count(svg, "fill:#0072B2"); n != 3 {
		t.Errorf("%d dots on a line of three points", n)
	}
	if n := strings.Count(svg, "stroke-dasharray"); n != 2 { // the line, and its part of the legend
		t.Errorf("%d dashed paths, want 2", n)
	}
	for _, name := range []string{"measured", "published"} {
		if !strings.Contains(svg, ">"+name+"<") {
			t.Errorf("no %q in the legend", name)
		}
	}
}

// TestLogTicks checks that a logarithmic axis has a tick at each power of its base.
func TestLogTicks(t *testing.T) {
	svg := drawn(t, Plot{LogX: true, LogY: true, Series: []Series{{X: []float64{1, 16}, Y: []float64{0.00003, 0.002}}}})
	for _, tick := range []string{"1", "2", "4", "8", "16", "1e-05", "0.0001", "0.001", "0.01"} {
		if !strings.Contains(svg, ">"+tick+"<") {
			t.Errorf("no tick %s in\n%s", tick, svg)
		}
	}
}

// TestPlotSize checks that a plot of long lines stays small enough for the repository.
func TestPlotSize(t *testing.T) {
	var p Plot
	for range 7 {
		var s Series
		for x := range 250 {
			s.X, s.Y = append(s.X, float64(x)/3), append(s.Y, math.Sqrt(float64(x)))
		}
		p.Series = append(p.Series, s)
	}
	if n := len(drawn(t, p)); n > 60<<10 {
		t.Errorf("%d bytes", n)
	}
}

func TestParallel(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	done := make([]bool, 20)
	var jobs []func() error
	for i := range done {
		jobs = append(jobs, func() error {
			done[i] = true
			switch i {
			case 3:
				return first
			case 5:
				return second
			}
			return nil
		})
	}
	if err := parallel(jobs); !errors.Is(err, first) {
		t.Errorf("got %v", err)
	}
	if slices.Contains(done, false) {
		t.Errorf("done: %v", done)
	}
}

package experiment

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/partition"
)

// TestWebgather runs the experiment on a small web, twice: what it writes is the same, and
// whole; and what does not depend on size holds.
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
				if !c.OK && (s.Title != "Balance" && s.Title != "Speed-up") { // these are of large webs
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

// checkReport sees that what the document names is there, and can be read.
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

// TestJump holds the hash to what its paper proves: shares are even, a key moves only to the
// newest partition, and one in n does.
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

// TestAssigners: each way gives every host one of the n owners, from few to many and back.
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

func TestPlot(t *testing.T) {
	for _, p := range []Plot{
		{},
		{Title: "a < b & c", X: "x", Y: "y", Series: []Series{{Name: "<s>", X: []float64{1}, Y: []float64{1}}}},
		{LogX: true, LogY: true, Series: []Series{{X: []float64{1, 2, 0, 4, 8}, Y: []float64{0.1, 0, 1, math.NaN(), math.Inf(1)}}}},
		{Series: []Series{{X: []float64{0, 1e9}, Y: []float64{-1e-9, 1e12}}, {X: []float64{1, 2, 3}, Y: []float64{1}}}},
		{LogY: true, Series: []Series{{X: []float64{1, 2}, Y: []float64{0.01, 0.01}}}},
	} {
		svg := string(p.SVG())
		wellFormed(t, p.Title, strings.NewReader(svg))
		for _, bad := range []string{"NaN", "Inf", "<s>"} {
			if strings.Contains(svg, bad) {
				t.Errorf("%+v: %q in\n%s", p, bad, svg)
			}
		}
	}
	p := Plot{Series: []Series{{X: []float64{0, 5, 10}, Y: []float64{0, 1, 2}}}}
	if svg := string(p.SVG()); !strings.Contains(svg, `M70 350L300 193L530 36`) { // corner to corner
		t.Errorf("the line is not where it should be:\n%s", svg)
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		values []float64
		log    float64
		want   []float64
	}{
		{[]float64{0, 10}, 0, []float64{0, 2, 4, 6, 8, 10}},
		{[]float64{1, 17}, 0, []float64{0, 5, 10, 15, 20}},
		{nil, 0, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{[]float64{1, 16}, 2, []float64{1, 2, 4, 8, 16}},
		{[]float64{0.00003, 0.002}, 10, []float64{1e-5, 1e-4, 1e-3, 1e-2}},
		{[]float64{-1, 0}, 10, []float64{1, 10}},
	} {
		got := newAxis(c.values, c.log, 0, 100).ticks
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }) {
			t.Errorf("%v: got %v, want %v", c.values, got, c.want)
		}
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

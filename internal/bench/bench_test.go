package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/internal/simweb"
)

// TestMain makes the test binary do what the program does when it starts itself again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childFlag {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestQuick makes a whole run. That every page is fetched exactly once is checked by each
// measurement itself, and that those checks can fail by the tests below.
func TestQuick(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	profiles := filepath.Join(t.TempDir(), "profiles")
	var out, progress bytes.Buffer
	err := run(t.Context(), []string{"-quick", "-json", "-cpuprofile", profiles}, &out, &progress)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	const hosts, pages = 16, 1600
	if r.Hosts != hosts || r.Pages != pages || r.Rounds != 1 {
		t.Errorf("%d hosts, %d pages, %d rounds", r.Hosts, r.Pages, r.Rounds)
	}
	var names []string
	for i := range r.Sides {
		s := &r.Sides[i]
		names = append(names, s.Name)
		f := s.Rounds[0]
		if f.Pages != pages || f.Server.Pages != pages || f.Server.Repeats != 0 || f.Server.Elsewhere != 0 {
			t.Errorf("%s: %d pages; the server saw %+v", s.Name, f.Pages, f.Server)
		}
		if f.PagesPerSecond <= 0 || f.CPUPer1000 <= 0 || f.WARCBytes < pages*1000 || f.StoredBytes < f.WARCBytes || f.Server.CPUSeconds <= 0 {
			t.Errorf("%s: %+v", s.Name, f)
		}
		checkCrawl(t, s)
	}
	if d := cmp.Diff([]string{"loader", "crawl@4"}, names); d != "" {
		t.Error(d)
	}
	for _, name := range []string{"loader", "crawl@4"} {
		for _, kind := range []string{".cpu.pprof", ".allocs.pprof"} {
			if info, err := os.Stat(filepath.Join(profiles, name+kind)); err != nil || info.Size() == 0 {
				t.Errorf("profile %s%s: %v", name, kind, err)
			}
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if !strings.Contains(progress.String(), "round 1/1  crawl@4") {
		t.Errorf("progress: %s", &progress)
	}
	var text strings.Builder
	if err := r.writeText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pages/s", "peak RSS", "$ per million pages", "queue requests per page", "at most  0.005"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &text)
		}
	}
}

// checkCrawl looks at what only crawls have.
func checkCrawl(t *testing.T, s *side) {
	t.Helper()
	if s.Partitions == 0 {
		if s.PerPage != nil || s.Results != nil {
			t.Errorf("the loader has %+v, %+v", s.PerPage, s.Results)
		}
		return
	}
	f := s.Rounds[0]
	if f.Server.Robots != 16 || f.Commits < s.Partitions || f.Calls.BlobPuts < int64(f.Commits) || f.Calls.KVWriteUnits == 0 || f.Calls.QueueRequests == 0 {
		t.Errorf("%s: %+v", s.Name, f)
	}
	if s.Cost.Total <= 0 || len(s.Results) != 5 {
		t.Errorf("%s: %+v, %+v", s.Name, s.Cost, s.Results)
	}
	for _, r := range s.Results {
		if r.Value <= 0 || math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
			t.Errorf("%s: %+v", s.Name, r)
		}
	}
}

func TestCheck(t *testing.T) {
	good := figures{Pages: 10, Server: served{Pages: 10, Robots: 2}}
	for _, c := range []struct {
		name string
		harm func(*figures)
		ok   bool
	}{
		{"as it should be", func(*figures) {}, true},
		{"a page not asked for", func(f *figures) { f.Server.Pages-- }, false},
		{"a page asked for twice", func(f *figures) { f.Server.Repeats++ }, false},
		{"robots.txt asked for twice", func(f *figures) { f.Server.Robots++ }, false},
		{"what is no page", func(f *figures) { f.Server.Elsewhere++ }, false},
	} {
		f := good
		c.harm(&f)
		if err := f.check(2); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestServedCounts(t *testing.T) {
	web := small(t)
	got := served{}
	got.count(web, map[string]int{
		web.URL(0, 0): 1, web.URL(0, 1): 3, web.URL(1, 1): 1,
		"http://" + web.Host(0).Authority + "/robots.txt": 2,
		"http://" + web.Host(1).Authority + "/nothing":    5,
	})
	if d := cmp.Diff(served{Pages: 3, Repeats: 2, Robots: 2, Elsewhere: 5}, got); d != "" {
		t.Error(d)
	}
}

func TestCompare(t *testing.T) {
	web := small(t)
	all := map[string]simweb.Got{}
	for url, e := range web.Truth(simweb.Scope{SkipDigests: true}).Pages {
		all[url] = simweb.Got{Outcome: e.Outcome, Status: e.Status}
	}
	v := visible{pages: all}
	if err := v.compare(web, len(all)); err != nil {
		t.Error(err)
	}
	if err := v.compare(web, len(all)-1); err == nil {
		t.Error("a wrong count passes")
	}
	v.twice = []string{web.URL(0, 0)}
	if err := v.compare(web, len(all)); err == nil {
		t.Error("a page visible twice passes")
	}
	v.twice = nil
	delete(all, web.URL(1, 1))
	if err := v.compare(web, web.Pages()); err == nil {
		t.Error("a missing page passes")
	}
}

func small(t *testing.T) *simweb.Web {
	t.Helper()
	web, err := simweb.New(simweb.Config{Hosts: 2, Pages: simweb.Pages{Min: 3}})
	if err != nil {
		t.Fatal(err)
	}
	return web
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args string
		want settings
		ok   bool
	}{
		{"", settings{web: simweb.W1(), name: "W1", rounds: 3, partitions: []int{4}}, true},
		{"-rounds 1 -json -partitions 1,2", settings{web: simweb.W1(), name: "W1", rounds: 1, partitions: []int{1, 2}, json: true}, true},
		{"-rounds 0", settings{}, false},
		{"-partitions 1,,2", settings{}, false},
		{"-partitions 0", settings{}, false},
		{"-partitions x", settings{}, false},
		{"-what", settings{}, false},
		{"now", settings{}, false},
	} {
		got, err := parse(strings.Fields(c.args), io.Discard)
		if (err == nil) != c.ok {
			t.Errorf("%q: %v", c.args, err)
		}
		if d := cmp.Diff(c.want, got, cmp.AllowUnexported(settings{})); c.ok && d != "" {
			t.Errorf("%q: %s", c.args, d)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 4}, 4},
		{[]float64{8, 1, 4, 6}, 5},
	} {
		if got := median(c.in); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.in, got, c.want)
		}
	}
}

// TestJudge pins what the ratios are of: rounds side by side, not medians by themselves.
func TestJudge(t *testing.T) {
	round := func(speed, cpu float64) figures {
		return figures{Pages: 100, PagesPerSecond: speed, CPUSeconds: cpu}
	}
	loader := []figures{round(10, 1), round(100, 1), round(20, 1)}
	s := side{Rounds: []figures{round(9, 2), round(50, 1), round(14, 1.3)}}
	r, err := newReport(&settings{}, []job{{Role: roleLoader}, {Role: roleCrawl, Partitions: 4}}, [][]figures{loader, s.Rounds})
	if err != nil {
		t.Fatal(err)
	}
	got := r.Sides[1].Results[:2]
	want := []result{
		{Name: got[0].Name, Value: 0.7, Bound: atLeast, Target: 0.7, OK: true},
		{Name: got[1].Name, Value: 1.3, Bound: atMost, Target: 1.4, OK: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, c := range []struct {
		r  result
		ok bool
	}{
		{target("", 0.69, atLeast, 0.7), false},
		{target("", 0.7, atLeast, 0.7), true},
		{target("", 0.7, atMost, 0.7), true},
		{target("", 0.71, atMost, 0.7), false},
	} {
		if c.r.OK != c.ok {
			t.Errorf("%+v", c.r)
		}
	}
}

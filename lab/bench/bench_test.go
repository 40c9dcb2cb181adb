package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// TestQuick makes a whole run. Each measurement checks that every page is fetched exactly once; the tests below check that
// these checks can fail.
func TestQuick(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	profiles := filepath.Join(t.TempDir(), "profiles")
	var out, progress bytes.Buffer
	err := run(t.Context(), []string{"-quick", "-json", "-web", strings.Join(webNames, ","), "-cpuprofile", profiles}, &out, &progress)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range r.Trials {
		tr := &r.Trials[i]
		if tr.Hosts != 16 || r.Rounds != 1 || (tr.LeastByWait > 0) != (tr.Web == "W2") {
			t.Errorf("%+v", tr)
		}
		for i := range tr.Sides {
			names = append(names, tr.Sides[i].Name)
			checkSide(t, &tr.Sides[i], tr.Pages)
		}
	}
	if d := cmp.Diff([]string{
		"W1-loader", "W1-crawl@4", "W1G-loader", "W1G-crawl@4", "plain-loader", "plain-crawl@4", "W2-oracle", "W2-crawl@4",
		"W1T-loader", "W1T-crawl@4", "W1P-crawl@2", "W1P-crawl@128", "W1R-crawl@4", "W1R+requisites-crawl@4", "million-crawl@4",
	}, names); d != "" {
		t.Fatal(d)
	}
	first := func(trial, side int) figures { return r.Trials[trial].Sides[side].Rounds[0] }
	// The pages are random words, which gzip makes three times smaller.
	for i, side := range []string{"loader", "crawl"} {
		if plain, zipped := first(2, i).WARCBytes, first(0, i).WARCBytes; plain < 2*zipped || plain < 1600*8<<10 {
			t.Errorf("%s: %d bytes of plain WARCs, %d compressed", side, plain, zipped)
		}
	}
	for _, name := range names {
		for _, kind := range []string{".cpu.pprof", ".allocs.pprof"} {
			if info, err := os.Stat(filepath.Join(profiles, name+kind)); err != nil || info.Size() == 0 {
				t.Errorf("profile %s%s: %v", name, kind, err)
			}
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if !strings.Contains(progress.String(), "round 1/1  W1-crawl@4") {
		t.Errorf("progress: %s", &progress)
	}
	var text strings.Builder
	if err := r.writeText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"W1: ", "W1G: ", "plain: ", "W2: ", "W1T: ", "W1P: ", "W1R: ", "million: ", "pages/s", "peak RSS", "$ per million pages", "queue requests per page", "at most  0.005",
		"at least 0.85", "at least 0.92", "at least 0.95", "by latency no faster than", "too small for the targets", "targets: ",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &text)
		}
	}
}

// TestAgainst compares this program with itself.
func TestAgainst(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-quick", "-web", "W2", "-against", os.Args[0]}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"W2-oracle", "W2-before@4", "W2-crawl@4", "pages/s, of before's", "CPU per page, of before's", "targets: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
}

// TestStages makes a small crawl and cuts its profiles into stages.
func TestStages(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-quick", "-web", "W1", "-stages"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(out.String()) {
		if words := strings.Fields(line); len(words) > 4 {
			n := len(words) - 4
			rows[strings.Join(words[:n], " ")] = words[n:]
		}
	}
	for _, name := range []string{"all", "WARC records", "parse, links", "ask and read"} {
		// Of some 40 samples of the CPU, a stage that takes a tenth of the time may get none.
		if row := rows[name]; len(row) == 0 || row[0] == "0.0" && (name == "all" || name == "WARC records") || row[2] == "0.0" {
			t.Errorf("%s: %v", name, row)
		}
	}
	if rest := rows["the rest"]; len(rest) == 0 || len(rest[2]) > len("9.9") && !raced {
		t.Errorf("the rest, with the objects that a page allocates in third place: %v", rest)
	}
	if t.Failed() {
		t.Log(&out)
	}
}

func TestReadCalls(t *testing.T) {
	const raw = `PeriodType: cpu nanoseconds
Samples:
samples/count cpu/nanoseconds
          1   10000000: 1 2 
          3   30000000: 2 
Locations
     1: 0x47b499 M=1 runtime.memmove /go/src/runtime/memmove.s:1:0 s=0
             bytes.Clone /go/src/bytes/bytes.go:2:0 s=1
     2: 0x47b844 M=1 main.main /main.go:3:0 s=2
Mappings
1: 0x400000/0x1488000/0x0 /tmp/program build [FN]
`
	var got []string
	err := readCalls(strings.NewReader(raw), func(values []int64, call []string) {
		got = append(got, fmt.Sprint(values, call))
	})
	if d := cmp.Diff([]string{"[1 10000000] [runtime.memmove bytes.Clone main.main]", "[3 30000000] [main.main]"}, got); d != "" || err != nil {
		t.Error(d, err)
	}
	if err := readCalls(strings.NewReader("Samples:\nmany: 1\n"), func([]int64, []string) {}); err == nil {
		t.Error("a sample without values passes")
	}
}

func TestStageOf(t *testing.T) {
	for _, c := range []struct {
		call []string // within this module if they begin with a dot
		want string
	}{
		{[]string{"runtime.memmove", "github.com/klauspost/compress/flate.(*compressor).fillBlock", ".blobschema/warc.(*Encoder).Append", ".internal/fetch.Assemble"}, "WARC records"},
		{[]string{"crypto/sha1.blockAVX2", ".blobschema/warc.(*Encoder).Append"}, "digests"},
		{[]string{"github.com/klauspost/compress/zstd.(*Encoder).EncodeAll", ".blobschema.EncodeCommit", ".internal/crawl.numberMail"}, "commits, runs"},
		{[]string{".internal/weburl.resolve", ".internal/extract.Links", ".internal/fetch.Assemble"}, "parse, links"},
		{[]string{"syscall.Read", "net.(*conn).Read", ".internal/fetch.(*conn).Read", "net/http.(*persistConn).readLoop"}, "ask and read"},
		{[]string{"runtime.copystack", "runtime.newstack", ".internal/fetch.Assemble"}, "goroutines"},
		{[]string{"runtime.main", "main.main"}, ""},
	} {
		for i, f := range c.call {
			if path, ok := strings.CutPrefix(f, "."); ok {
				c.call[i] = own + path
			}
		}
		got := ""
		if i := stageOf(c.call); i < len(stages) {
			got = stages[i].name
		}
		if got != c.want {
			t.Errorf("%q is in %q, want %q", c.call, got, c.want)
		}
	}
}

// checkSide checks the only round of a side.
func checkSide(t *testing.T, s *sideReport, pages int) {
	t.Helper()
	f := s.Rounds[0]
	sheets := 0
	if strings.Contains(s.Name, "requisites") { // the test web has 16 hosts
		sheets = 16
	}
	if f.Pages != pages+sheets || f.Server.Pages != pages || f.Server.Repeats != 0 || f.Server.Elsewhere != sheets {
		t.Errorf("%s: %d pages of %d; the server saw %+v", s.Name, f.Pages, pages, f.Server)
	}
	if f.PagesPerSecond <= 0 || f.CPUPer1000 <= 0 || f.WARCBytes < int64(pages)*1000 || f.StoredBytes < f.WARCBytes || f.Server.CPUSeconds <= 0 {
		t.Errorf("%s: %+v", s.Name, f)
	}
	for _, r := range s.Results {
		if r.Value <= 0 || math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
			t.Errorf("%s: %+v", s.Name, r)
		}
	}
	if s.Partitions == 0 {
		if s.PerPage != nil || s.Cost != nil {
			t.Errorf("%s has %+v, %+v", s.Name, s.PerPage, s.Cost)
		}
		return
	}
	if f.Server.Robots != 16 || f.Commits < 1 || f.Calls.BlobPuts < int64(f.Commits) || f.Calls.KVWriteUnits == 0 || f.Calls.QueueRequests == 0 || s.Cost.Total <= 0 {
		t.Errorf("%s: %+v, %+v", s.Name, f, s.Cost)
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
		{"a page not requested", func(f *figures) { f.Server.Pages-- }, false},
		{"a page requested twice", func(f *figures) { f.Server.Repeats++ }, false},
		{"robots.txt requested twice", func(f *figures) { f.Server.Robots++ }, false},
		{"another URL", func(f *figures) { f.Server.Elsewhere++ }, false},
	} {
		f := good
		c.harm(&f)
		if err := f.check(2, 0); (err == nil) != c.ok {
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
	if err := v.compare(web, simweb.Scope{SkipDigests: true}, len(all)); err != nil {
		t.Error(err)
	}
	if err := v.compare(web, simweb.Scope{SkipDigests: true}, len(all)-1); err == nil {
		t.Error("a wrong count passes")
	}
	v.twice = []string{web.URL(0, 0)}
	if err := v.compare(web, simweb.Scope{SkipDigests: true}, len(all)); err == nil {
		t.Error("a page visible twice passes")
	}
	v.twice = nil
	delete(all, web.URL(1, 1))
	if err := v.compare(web, simweb.Scope{SkipDigests: true}, web.Pages()); err == nil {
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
		{"", settings{webs: webNames[:7], rounds: 5, partitions: []int{4}}, true},
		{"-rounds 1 -json -partitions 1,2", settings{webs: webNames[:7], rounds: 1, partitions: []int{1, 2}, json: true}, true},
		{"-web W2,plain -quick", settings{webs: []string{"W2", "plain"}, quick: true, rounds: 1, partitions: []int{4}}, true},
		{"-web W1 -against before", settings{webs: []string{"W1"}, rounds: 5, partitions: []int{4}, against: "before"}, true},
		{"-web W1 -stages", settings{webs: []string{"W1"}, rounds: 1, partitions: []int{4}, stages: true}, true},
		{"-web W3", settings{}, false},
		{"-web W1,", settings{}, false},
		{"-partitions 2,2", settings{}, false},
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

// TestReport checks that ratios compare rounds side by side, not medians, and each crawl with its own base.
func TestReport(t *testing.T) {
	round := func(speed, cpu float64) figures {
		return figures{Pages: 100, PagesPerSecond: speed, CPUPer1000: cpu / 10, Seconds: 100 / speed}
	}
	s := settings{webs: []string{"W1", "W1G"}, rounds: 3, partitions: []int{2, 4}}
	r, err := newReport(&s, trials(&s), measured{
		"W1-loader":   {round(10, 1), round(100, 1), round(20, 1)},
		"W1-crawl@2":  {round(9, 2), round(50, 1), round(14, 1.3)},
		"W1-crawl@4":  {round(2, 2), round(2, 2), round(2, 2)},
		"W1G-loader":  {round(10, 1), round(10, 1), round(10, 1)},
		"W1G-crawl@2": {round(18, 1), round(8, 1), round(7, 1)},
		"W1G-crawl@4": {round(6, 1), round(6, 1), round(6, 1)},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Concat(r.Trials[0].Sides[1].Results[:2], r.Trials[1].Sides[1].Results, r.Trials[1].Sides[2].Results)
	want := []result{
		{Name: "pages/s, of the loader's", Value: 0.7, Bound: atLeast, Target: 0.7, OK: true},
		{Name: "CPU ms per page", Value: 0.13, Bound: atMost, Target: 0.3, OK: true},
		{Name: "pages/s, of the loader's", Value: 0.8, Bound: atLeast, Target: 0.7, OK: true},
		{Name: "pages/s, of the loader's", Value: 0.6, Bound: atLeast, Target: 0.7},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		value float64
		bound bound
		ok    bool
	}{
		{0.69, atLeast, false},
		{0.7, atLeast, true},
		{0.7, atMost, true},
		{0.71, atMost, false},
	} {
		x := target{of: func(*figures, *figures) float64 { return c.value }, bound: c.bound, value: 0.7}
		if got := x.judge(make([]figures, 2), make([]figures, 2)); got.OK != c.ok {
			t.Errorf("%+v", got)
		}
	}
}

// TestTrials checks the bases of all comparisons, and that W2 is bound by latency.
func TestTrials(t *testing.T) {
	s, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var got, beside []string
	for _, tr := range trials(&s) {
		for _, side := range tr.sides {
			base := tr.sides[side.base].Name
			if side.Web.Hosts != tr.web.Hosts || len(side.targets) == 0 && side.Role == roleCrawl && side.Name != base {
				t.Errorf("%s: %+v", tr.name, side)
			}
			got = append(got, side.Name+" by "+base)
		}
	}
	if d := cmp.Diff([]string{
		"W1-loader by W1-loader", "W1-crawl@4 by W1-loader",
		"W1G-loader by W1G-loader", "W1G-crawl@4 by W1G-loader",
		"plain-loader by plain-loader", "plain-crawl@4 by plain-loader",
		"W2-oracle by W2-oracle", "W2-crawl@4 by W2-oracle",
		"W1T-loader by W1T-loader", "W1T-crawl@4 by W1T-loader",
		"W1P-crawl@2 by W1P-crawl@2", "W1P-crawl@128 by W1P-crawl@2", "W1R-crawl@4 by W1R-crawl@4", "W1R+requisites-crawl@4 by W1R-crawl@4",
	}, got); d != "" {
		t.Error(d)
	}
	s.against = "before"
	for _, tr := range trials(&s) {
		for _, side := range tr.sides {
			beside = append(beside, side.Name+" by "+tr.sides[side.base].Name)
			if before := strings.Contains(side.Name, "-before@"); before != (side.program == "before") || before && len(side.targets) > 0 || before != (side.before == "") && side.Role == roleCrawl {
				t.Errorf("%s: %+v", tr.name, side)
			}
		}
	}
	if d := cmp.Diff([]string{
		"W1-loader by W1-loader", "W1-before@4 by W1-loader", "W1-crawl@4 by W1-loader",
		"W1G-loader by W1G-loader", "W1G-before@4 by W1G-loader", "W1G-crawl@4 by W1G-loader",
		"plain-loader by plain-loader", "plain-before@4 by plain-loader", "plain-crawl@4 by plain-loader",
		"W2-oracle by W2-oracle", "W2-before@4 by W2-oracle", "W2-crawl@4 by W2-oracle",
		"W1T-loader by W1T-loader", "W1T-before@4 by W1T-loader", "W1T-crawl@4 by W1T-loader",
		"W1P-before@2 by W1P-crawl@2", "W1P-crawl@2 by W1P-crawl@2", "W1P-before@128 by W1P-crawl@2", "W1P-crawl@128 by W1P-crawl@2",
		"W1R-before@4 by W1R-crawl@4", "W1R-crawl@4 by W1R-crawl@4", "W1R+requisites-before@4 by W1R-crawl@4", "W1R+requisites-crawl@4 by W1R-crawl@4",
	}, beside); d != "" {
		t.Error(d)
	}
	if least := leastTime(webW2()); least < 11*time.Second || least > 12*time.Second {
		t.Errorf("the latencies of W2 leave %v", least)
	}
	if least := leastTime(webW1()); least != 0 {
		t.Errorf("the latencies of W1 leave %v", least)
	}
}

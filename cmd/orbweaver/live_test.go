package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/service"
)

// paper is a terminal that understands only the output of the live view.
type paper struct {
	t      *testing.T
	width  int
	rows   [][]rune
	row    int
	col    int
	writes int
}

var sequence = regexp.MustCompile(`^\x1b\[(\d*)([AKJ])`)

func (p *paper) Write(b []byte) (int, error) {
	p.writes++
	for s := string(b); s != ""; {
		if m := sequence.FindStringSubmatch(s); m != nil {
			p.control(m[2], m[1])
			s = s[len(m[0]):]
			continue
		}
		r := []rune(s)[0]
		s = s[len(string(r)):]
		switch r {
		case '\r':
			p.col = 0
		case '\n':
			p.row, p.col = p.row+1, 0
		case '\x1b':
			p.t.Fatalf("unknown sequence %q", s)
		default:
			p.put(r)
		}
	}
	return len(b), nil
}

func (p *paper) put(r rune) {
	if p.col == p.width {
		p.row, p.col = p.row+1, 0
	}
	for len(p.rows) <= p.row {
		p.rows = append(p.rows, nil)
	}
	for len(p.rows[p.row]) <= p.col {
		p.rows[p.row] = append(p.rows[p.row], ' ')
	}
	p.rows[p.row][p.col] = r
	p.col++
}

func (p *paper) control(op, arg string) {
	switch op {
	case "A":
		n, err := strconv.Atoi(arg)
		if err != nil || n > p.row {
			p.t.Fatalf("up by %q from row %d", arg, p.row)
		}
		p.row -= n
	case "K", "J":
		if p.row < len(p.rows) {
			p.rows[p.row] = p.rows[p.row][:min(p.col, len(p.rows[p.row]))]
		}
		if op == "J" && p.row+1 < len(p.rows) {
			p.rows = p.rows[:p.row+1]
		}
	}
}

// resize breaks long rows as terminals do.
func (p *paper) resize(width int) {
	var rows [][]rune
	at := p.row
	for i, r := range p.rows {
		if i == p.row {
			at = len(rows)
		}
		for len(r) > width {
			rows, r = append(rows, r[:width]), r[width:]
		}
		rows = append(rows, r)
	}
	if p.row >= len(p.rows) {
		at = len(rows) + p.row - len(p.rows)
	}
	p.width, p.rows, p.row = width, rows, at
}

func (p *paper) text() []string {
	var out []string
	for _, r := range p.rows {
		out = append(out, strings.TrimRight(string(r), " "))
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

func TestScreen(t *testing.T) {
	p := &paper{t: t, width: 20}
	height := 10
	s := &screen{out: p, size: func() (int, int) { return p.width, height }}
	expect := func(what string, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, p.text()); d != "" {
			t.Errorf("%s: %s", what, d)
		}
	}
	fmt.Fprintln(s, "begins")
	s.show([]string{"one", "two", "three"})
	expect("first", "begins", "one", "two", "three")
	s.show([]string{"1", "two, which is far too long for it"})
	expect("shorter and cut", "begins", "1", "two, which is far …")
	fmt.Fprintln(s, "warning")
	expect("warned", "begins", "warning")
	s.show([]string{"aaaaaaaaaaaaaaaaaaa", "b"})
	expect("back", "begins", "warning", "aaaaaaaaaaaaaaaaaaa", "b")
	p.resize(8)
	s.show([]string{"aaaaaaaaaaaaaaaaaaa", "b"})
	expect("narrower", "begins", "warning", "aaaaaa…", "b")
	height = 2
	s.show([]string{"x", "y", "z"})
	expect("low", "begins", "warning", "x")
	writes := p.writes
	s.show(nil)
	expect("gone", "begins", "warning")
	if p.writes != writes+1 {
		t.Errorf("%d writes for one change: it flickers", p.writes-writes)
	}
}

// blockOf and lineOf format figures for a terminal and for a log.
func blockOf(f shown) []string {
	block, _, _, _ := f.progress()
	return strings.Split(strings.TrimSuffix(text(block, f), "\n"), "\n")
}

func lineOf(f shown) string {
	_, line, _, _ := f.progress()
	return strings.TrimSuffix(text(line, f), "\n")
}

func TestFrame(t *testing.T) {
	f := &figures{
		Title: "orbweaver c", Seconds: 75, Pages: 12345, PagesPerSecond: 99.96, HostsActive: 12, HostsKnown: 130, Queue: 1234567, Bytes: 3 << 30,
		Outcomes: map[string]int64{"ok": 12345, "unchanged": 38, "redirect": 9, "timeout": 2, "robots": 30}, Retries: 4, Limit: "max-pages", SecondsLeft: 3700,
		Most: 400_000, pulse: pulse{Graph: "▁▃█", Peak: 101},
	}
	var seen answers
	seen.add(crawl.Watched{Page: &blobschema.Page{URL: "http://a.example/", Outcome: blobschema.OutcomeOK, Status: 200}, Bytes: 12 << 10, Took: 45 * time.Millisecond})
	seen.add(crawl.Watched{Page: &blobschema.Page{URL: "http://a.example/x", Outcome: blobschema.OutcomeRobots}})
	seen.add(crawl.Watched{Page: &blobschema.Page{URL: "http://b.example/", Outcome: blobschema.OutcomeTimeout}, Took: time.Second, Again: true})
	seen.take(&f.pulse)
	want := []string{
		"orbweaver c · 75 s",
		"  pages  12,345 of 400,000 · 100.0/s  ▁▃█                   last minute, up to 101/s",
		"  queue  1,234,567 URLs",
		"  hosts  130 known · 12 requests under way · 3.0 GiB received",
		"  errors robots 30 · timeout 2 · 4 retried",
		"  left   61 min 40 s to --max-pages",
		"  failed timeout          0 B 1,000 ms  http://b.example/ (retried later)",
		"  now    200           12 KiB   45 ms  http://a.example/",
		"         robots           0 B       -  http://a.example/x: robots.txt forbids it",
		"         timeout          0 B 1,000 ms  http://b.example/ (retried later)",
	}
	if d := cmp.Diff(want, blockOf(f)); d != "" {
		t.Error(d)
	}
	if got, want := lineOf(f), "75 s: 12,345 pages (100.0/s), 12 of 130 hosts, queue 1,234,567, 3.0 GiB received, "+
		"errors: robots 30 · timeout 2 · 4 retried, 61 min 40 s left to --max-pages"; got != want {
		t.Error(cmp.Diff(want, got))
	}
	f = &figures{Pages: 42, Most: 42}
	if got := lineOf(f) + "\n" + strings.Join(blockOf(f), "\n"); strings.Count(got, "--max-pages is reached") != 2 {
		t.Error(got)
	}
	f = &figures{Pages: 42, Recrawled: 2}
	if got := lineOf(f) + "\n" + strings.Join(blockOf(f), "\n"); !strings.Contains(got, ", 2 recrawled") || !strings.Contains(got, "\n  again  2 recrawled") {
		t.Error(got)
	}
	if got := blockOf(&figures{}); len(got) != 4 {
		t.Errorf("a frame of nothing: %q", got)
	}
}

// TestGraph checks that the graph moves with time, and forgets figures older than a minute.
func TestGraph(t *testing.T) {
	var g graph
	for _, c := range []struct {
		at    time.Duration
		pages int64
		want  string
		peak  float64
	}{
		{0, 3, "█", 1}, {time.Second, 3, "█", 2}, {4 * time.Second, 1, "█▂", 2}, {10 * time.Second, 60, "▁▁ █", 20},
		{68 * time.Second, 0, "█" + strings.Repeat(" ", 19), 20}, {time.Hour, 6, strings.Repeat(" ", 19) + "█", 2},
	} {
		g.add(c.at, c.pages)
		if got, peak := g.draw(); got != c.want || peak != c.peak {
			t.Errorf("at %s: %q, up to %v", c.at, got, peak)
		}
	}
}

func TestMeter(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fetched := func(n int64) blobschema.Totals {
		return blobschema.Totals{Pages: n, Hosts: 7, Outcomes: map[string]int64{"ok": n - 30, "unchanged": 30, "redirect": 5}}
	}
	m := newMeter(at, time.Minute, fetched(100))
	snap := &service.Snapshot{}
	f := m.read(at.Add(time.Second), snap)
	if f.Pages != 100 || f.HostsKnown != 7 || f.PagesPerSecond != 0 || f.Limit != "max-time" || f.SecondsLeft != 59 {
		t.Errorf("while nothing is known: %+v", f)
	}
	// A steady rate is shown exactly, at once and for all intervals.
	m = newMeter(at, 0, fetched(100))
	snap.Crawl.Settings.MaxPages = 1100
	for _, s := range []int64{1, 2, 4, 5, 10, 60} {
		snap.Totals = fetched(100 + 10*s)
		f = m.read(at.Add(time.Duration(s)*time.Second), snap)
		if f.PagesPerSecond < 9.999 || f.PagesPerSecond > 10.001 {
			t.Errorf("after %d s: %v pages/s", s, f.PagesPerSecond)
		}
	}
	if f.Limit != "max-pages" || f.SecondsLeft < 39.9 || f.SecondsLeft > 40.1 {
		t.Errorf("%s in %v s", f.Limit, f.SecondsLeft)
	}
	// Without new pages the rate falls to about a third in rateMemory.
	for now := at.Add(60 * time.Second); now.Before(at.Add(120 * time.Second)); now = now.Add(refresh) {
		snap.Totals = fetched(snap.Totals.Pages + 2)
		m.read(now, snap)
	}
	pause := at.Add(120 * time.Second)
	for ; pause.Before(at.Add(120*time.Second + rateMemory)); pause = pause.Add(refresh) {
		f = m.read(pause, snap)
	}
	if f.PagesPerSecond < 3 || f.PagesPerSecond > 4.5 {
		t.Errorf("after a pause: %v pages/s", f.PagesPerSecond)
	}
	// A page that is fetched again is one page in the total, and two in the rate.
	again := &service.Snapshot{Progress: crawl.Progress{Totals: blobschema.Totals{Pages: 42, Outcomes: map[string]int64{"ok": 44, "unchanged": 8}}}}
	of := newMeter(at, 0, blobschema.Totals{Pages: 42, Outcomes: map[string]int64{"ok": 42}})
	if f := of.read(at.Add(time.Second), again); f.Pages != 42 || f.Recrawled != 10 || f.PagesPerSecond < 9.999 {
		t.Errorf("recrawled: %+v", f)
	}
	// The same time twice changes nothing, and of two limits the first counts.
	m.deadline = m.last.Add(time.Second)
	snap.Crawl.Settings.MaxPages = 1e6
	if g := m.read(m.last, snap); g.PagesPerSecond != f.PagesPerSecond || g.Limit != "max-time" || g.SecondsLeft != 1 {
		t.Errorf("%+v", g)
	}
}

// TestMeterInOutage: during an outage the time left stays bounded, and the view shows the reason.
func TestMeterInOutage(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := newMeter(at, 0, blobschema.Totals{})
	snap := &service.Snapshot{Progress: crawl.Progress{Active: 1}}
	snap.Crawl.Settings.MaxPages = 1000
	snap.Totals.Outcomes = map[string]int64{"ok": 100}
	if f := m.read(at.Add(10*time.Second), snap); f.Waiting != "" || f.SecondsLeft < 99 || f.SecondsLeft > 101 {
		t.Errorf("while pages come: %+v", f)
	}
	f := m.read(at.Add(1000*time.Second), snap)
	if f.Limit != "max-pages" || f.SecondsLeft < 9_999 || f.SecondsLeft > 10_001 || f.Waiting != "waiting for 1 answer" {
		t.Errorf("after a quarter of an hour: %+v", f)
	}
	f = m.read(at.Add(1e7*time.Second), snap) // 1 page in 28 hours
	if f.Limit != "" || f.SecondsLeft != 0 {
		t.Errorf("after four months: %+v", f)
	}
	now := at.Add(1e7*time.Second + time.Second)
	for want, r := range map[string]schedule.Rest{
		"":                                     {},
		"waiting 44 s: 1 host does not answer": {Keys: 1, Silent: 1},
		"waiting 44 s: 2 hosts do not answer, 1 host failed or asked for a pause":                   {Keys: 3, Silent: 2, Failed: 1},
		"waiting 44 s: 1 host failed or asked for a pause, 1,000 hosts may not be requested sooner": {Keys: 1001, Failed: 1},
	} {
		if r.Keys > 0 {
			r.Until = now.Add(44 * time.Second)
		}
		f := m.read(now, &service.Snapshot{Progress: crawl.Progress{Rest: r}})
		if f.Waiting != want {
			t.Errorf("%+v: %q, want %q", r, f.Waiting, want)
		}
		if lines := blockOf(&f); want != "" && lines[len(lines)-1] != "  "+want {
			t.Errorf("the frame is %q", lines)
		}
		if !strings.HasSuffix(lineOf(&f), want) {
			t.Errorf("the line is %q", lineOf(&f))
		}
	}
	if got := span(1e12); got != "11,574 days" {
		t.Errorf("a very long time is %q", got)
	}
}

func TestWords(t *testing.T) {
	for want, got := range map[string]string{
		"0": count(0), "999": count(999), "1,000": count(1000), "-1,234,567": count(-1234567), "-123": count(-123),
		"1 page": plural(1, "page"), "0 pages": plural(0, "page"),
		"1023 B": size(1023), "1.0 KiB": size(1024), "10 KiB": size(10 << 10), "1.5 MiB": size(3 << 19), "2.0 PiB": size(1 << 51),
		"0.1 s": span(0.14), "12 s": span(12.3), "2 min 05 s": span(125), "3 h 25 min": span(12300), "50 days": span(50 * 86400),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTellsOfACloud checks that the figures of a crawl in a cloud omit those that only the crawling process knows.
func TestTellsOfACloud(t *testing.T) {
	n := 3
	f := &figures{Seconds: 7, Pages: 1200, HostsKnown: 40, Queue: 5, AtWork: &n, Paused: true, Requested: 4, Answered: 1}
	for name, text := range map[string]string{"frame": strings.Join(blockOf(f), "\n"), "line": lineOf(f)} {
		for _, want := range []string{"1,200", "40", "3 partitions", "paused", "1 of 4 URLs"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
		if strings.Contains(text, "0 active") || strings.Contains(text, "0 of 40") {
			t.Errorf("%s tells of hosts being asked:\n%s", name, text)
		}
	}
	here := &figures{Pages: 1, HostsKnown: 2}
	if text := lineOf(here) + strings.Join(blockOf(here), ""); strings.Contains(text, "partition") || strings.Contains(text, "paused") {
		t.Error(text)
	}
}

package ui

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/view"
)

func TestTable(t *testing.T) {
	var values []int
	for i := range 250 {
		values = append(values, i*7%250)
	}
	columns := []column[int]{
		{Name: "the number", Num: func(n int) float64 { return float64(n) }},
		{Name: "text", Text: func(n int) string { return fmt.Sprint(n) }},
		{Name: "fixed", Fixed: true, Text: func(int) string { return "" }},
	}
	for query, want := range map[string]string{
		"":                              "0 100",
		"t=-the-number":                 "249 100",
		"t=text&t.from=1":               "1 100",
		"t=the-number&t.from=240":       "240 10",
		"t=-the-number&t.from=99999999": " 0",
		"t.from=-1":                     "0 100",
		"t=fixed":                       "0 100",
		"t=nothing":                     "0 100",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		table := newTable(q, "t", "", "", slices.Clone(values), columns)
		first := ""
		if len(table.Rows) > 0 {
			first = table.Rows[0][0].Text
		}
		if got := fmt.Sprint(first, " ", len(table.Rows)); got != want || table.All != 250 {
			t.Errorf("%s: %s, want %s of %d", query, got, want, table.All)
		}
	}
	q := url.Values{"t": {"-the-number"}, "t.from": {"100"}, "host": {"a&b"}}
	table := newTable(q, "t", "", "", values, columns)
	if h := table.Columns; h[0].Link != "?host=a%26b&t=the-number" || h[0].Sorted != "descending" || h[1].Link != "?host=a%26b&t=text" || h[2].Link != "" ||
		table.Previous != "?host=a%26b&t=-the-number&t.from=0" || table.Next != "?host=a%26b&t=-the-number&t.from=200" {
		t.Errorf("%+v", table)
	}
}

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb\x00c\u202ed\u2066e\u200ff":           "a b c d e f",
		"Größe 绿茶":                                 "Größe 绿茶",
		strings.Repeat("x", 400):                   strings.Repeat("x", maxLine-1) + "…",
		"\xff" + strings.Repeat("ä", maxLine) + "": " " + strings.Repeat("ä", maxLine-2) + "…",
	} {
		if got := line(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestKnownHost(t *testing.T) {
	s := &Server{Options: Options{Host: "crawler.example"}}
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:80": true, "127.0.0.1:8099": true, "[::1]:8099": true, "192.0.2.7": true, "Crawler.Example:1": true,
		"": false, "evil.example": false, "localhost.evil.example": false, "127.0.0.1.evil.example:8099": false, "localhost.": false, "a:b:c": false,
	} {
		if got := s.known(host); got != want {
			t.Errorf("%q: %t", host, got)
		}
	}
}

// TestHealth checks the first line of the first page.
func TestHealth(t *testing.T) {
	now := time.Now()
	running := func(change func(*figures)) *figures {
		f := &figures{Status: &view.Status{State: view.Running}, Points: []point{{Time: now.Add(-100 * time.Second)}}}
		f.Totals = blobschema.Totals{Pages: 1000, Pending: 10, Outcomes: map[string]int64{"ok": 1000, "client-error": 300}}
		change(f)
		return f
	}
	for want, f := range map[string]*figures{
		"good Running: 10 pages a second, over 100 s. []": running(func(*figures) {}),
		"warn Running: 10 pages a second, over 100 s. [43% of the last 2,300 requests failed: see the hosts.]": running(func(f *figures) {
			f.Totals.Outcomes["dns"] = 1000
		}),
		"warn Running: 0 pages a second, over 100 s. [No URL was settled for 100 s: hosts make the crawl wait.]": running(func(f *figures) {
			f.Points[0].Totals = f.Totals
		}),
		"warn Paused: nothing new is requested. []":                    running(func(f *figures) { f.Desired.Pause = true }),
		"warn Stopped: 10 URLs are left, and nothing is requested. []": running(func(f *figures) { f.State = view.Stopped }),
		"good Finished: nothing is left to fetch. []":                  running(func(f *figures) { f.State = view.Finished }),
		"bad Finished: nothing is left to fetch. [2 messages could not be read: see 'orbweaver dlq list'.]": running(func(f *figures) {
			f.State, f.DeadRequests = view.Finished, 2
		}),
	} {
		h := f.health(now)
		if got := fmt.Sprint(h.Class, " ", h.Verdict, " ", h.Warnings); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

func TestDraw(t *testing.T) {
	start := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	var points []point
	var times []time.Time
	for i := range 11 {
		times = append(times, start.Add(time.Duration(i)*time.Second))
		points = append(points, point{Time: times[i], Totals: blobschema.Totals{Pages: int64(20 * i)}})
	}
	pages := func(p *point) float64 { return float64(p.Totals.Pages) }
	for _, v := range rates(points, pages) {
		if v != 20 {
			t.Errorf("rates: %v", rates(points, pages))
			break
		}
	}
	c := draw("Pages", times, whole, series{"pages", levels(points, pages)})
	if c.Top != "200" || c.Now != "200" || c.From != "08:00:00" || c.Length != "10 s" || !strings.HasPrefix(c.Lines[0].Points, "0.0,120.0 60.0,108.0 ") || !strings.HasSuffix(c.Lines[0].Points, " 600.0,0.0") {
		t.Errorf("%+v", c)
	}
	if draw("one", times[:1], whole, series{"pages", []float64{1}}) != nil || draw("none", times[:2], whole, series{"pages", []float64{0, 0}}).Top != "1" {
		t.Error("too few points, or no values")
	}
}

// FuzzShow checks that a stored answer is served only under media types that do nothing.
func FuzzShow(f *testing.F) {
	for _, head := range []string{
		"Content-Type: text/html; charset=utf-8", "Content-Type: text/html; charset=\"a\r\nX: y\"", "Content-Type: image/svg+xml", "Content-Type: text/javascript",
		"Content-Type: application/pdf", "Content-Type: image/png\r\nContent-Encoding: gzip", "Content-Encoding: br", "Content-Type: TEXT/HTML;;",
	} {
		f.Add([]byte("HTTP/1.1 200 OK\r\n"+head+"\r\n\r\n"), []byte("body"))
	}
	f.Fuzz(func(t *testing.T, header, body []byte) {
		kind, shown, err := show(&warc.Record{Type: warc.TypeResponse, Header: header, Body: body})
		if err != nil {
			return
		}
		media, _, _ := strings.Cut(kind, ";")
		if !slices.Contains([]string{"text/html", "text/plain", "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"}, media) || strings.ContainsAny(kind, "\r\n") || len(shown) > maxShown {
			t.Errorf("%q, %d bytes", kind, len(shown))
		}
	})
}

// TestReportFile checks that the file refers to nothing and that its policy fits its style and script.
func TestReportFile(t *testing.T) {
	var b bytes.Buffer
	r := &view.LinkReport{Crawl: "c"}
	r.Broken.All, r.Broken.First = 1, []view.BrokenLink{{URL: "javascript:alert(1)", Outcome: "dns", Pages: 2}}
	if err := WriteReport(&b, "d", r); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{"<style>" + style + "</style>", "<script>" + script + "</script>", "javascript:alert(1)</td>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the file has no %.40q", want)
		}
	}
	for _, bad := range []string{"href=\"/", "src=", "href=\"javascript"} {
		if strings.Contains(text, bad) {
			t.Errorf("the file has %q", bad)
		}
	}
}

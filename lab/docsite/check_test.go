package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
)

const base = "http://127.0.0.1:8080"

// wrong is what a check found, as one text.
func wrong(c check) string { return strings.Join(c.Wrong, "\n") }

func TestCheckPages(t *testing.T) {
	wants := map[string]want{
		"/a b":  {status: 200, storing: anew},
		"/gone": {status: 404},
		"/dir":  {status: 301},
		"/old":  {status: 304, storing: revisit},
	}
	ok := func() []blobschema.Page {
		return []blobschema.Page{
			{URL: base + "/robots.txt", Robots: true},
			{URL: base + "/old"},
			{URL: base + "/a%20b", Generation: 1, Status: 200, Outcome: blobschema.OutcomeOK},
			{URL: base + "/gone", Generation: 1, Status: 404, Outcome: blobschema.OutcomeClientError},
			{URL: base + "/dir", Generation: 1, Status: 301, Outcome: blobschema.OutcomeRedirect},
			{URL: base + "/old", Generation: 1, Status: 304, Outcome: blobschema.OutcomeUnchanged, Original: &blobschema.Original{}},
		}
	}
	for _, c := range []struct {
		name   string
		change func([]blobschema.Page) []blobschema.Page
		want   string
	}{
		{"nothing", func(p []blobschema.Page) []blobschema.Page { return p }, ""},
		{"one missing", func(p []blobschema.Page) []blobschema.Page { return p[:5] }, "/old has no page record"},
		{"one more", func(p []blobschema.Page) []blobschema.Page {
			return append(p, blobschema.Page{URL: base + "/x", Generation: 1, Status: 200, Outcome: blobschema.OutcomeOK})
		}, "/x: no link leads there"},
		{"one twice", func(p []blobschema.Page) []blobschema.Page { return append(p, p[2]) }, "/a%20b: no link leads there, or it has two"},
		{"a generation on", func(p []blobschema.Page) []blobschema.Page { p[2].Generation = 2; return p }, "generation 2, not 1"},
		{"an older one gone", func(p []blobschema.Page) []blobschema.Page { return slices.Delete(p, 1, 2) }, "1 are missing"},
		{"another status", func(p []blobschema.Page) []blobschema.Page { p[3].Status = 410; return p }, "/gone: client-error with status 410"},
		{"another outcome", func(p []blobschema.Page) []blobschema.Page { p[2].Outcome = blobschema.OutcomeCut; return p }, "/a%20b: cut"},
		{"cut", func(p []blobschema.Page) []blobschema.Page { p[2].Truncated = "length"; return p }, "is cut: length"},
		{"stored twice", func(p []blobschema.Page) []blobschema.Page { p[5].Original = nil; return p }, "/old: the record is a revisit, or is none"},
		{"not stored", func(p []blobschema.Page) []blobschema.Page { p[2].Original = &blobschema.Original{}; return p }, "/a%20b: the record is a revisit"},
	} {
		got := wrong(checkPages(c.change(ok()), 1, 1, wants))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCheckRequests(t *testing.T) {
	wants := map[string]want{"/a b": {status: 304}, "/c": {status: 200}}
	ok := func() []request {
		return []request{
			{Method: "GET", URI: "/robots.txt", Status: 404},
			{Method: "GET", URI: "/a%20b", Status: 304, IfNoneMatch: `"1"`},
			{Method: "GET", URI: "/c", Status: 200, IfModifiedSince: "Mon, 02 Jan 2006 15:04:05 GMT"},
		}
	}
	for _, c := range []struct {
		name   string
		change func([]request) []request
		want   string
	}{
		{"nothing", func(r []request) []request { return r }, ""},
		{"no robots.txt", func(r []request) []request { return r[1:] }, ""},
		{"robots.txt twice", func(r []request) []request { return append(r, r[0]) }, "robots.txt was asked for 2 times"},
		{"one missing", func(r []request) []request { return r[:2] }, "/c was asked for 0 times"},
		{"one twice", func(r []request) []request { return append(r, r[2]) }, "/c was asked for 2 times"},
		{"another", func(r []request) []request { return append(r, request{Method: "GET", URI: "/d", Status: 404}) }, `"/d" was asked for`},
		{"a HEAD", func(r []request) []request { r[2].Method = "HEAD"; return r }, `HEAD "/c"`},
		{"no request", func(r []request) []request { return append(r, request{Status: 400}) }, `status 400`},
		{"another status", func(r []request) []request { r[1].Status = 200; return r }, "/a%20b was answered with status 200, not 304"},
		{"no condition", func(r []request) []request { r[2].IfModifiedSince = ""; return r }, "/c was asked for with"},
	} {
		got := wrong(checkRequests(c.change(ok()), wants, true))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
	if got := wrong(checkRequests(ok(), wants, false)); !strings.Contains(got, "If-None-Match") {
		t.Errorf("conditional requests of a first crawl: %q", got)
	}
}

// TestCheckBytes writes an archive, and reads back what was changed about it.
func TestCheckBytes(t *testing.T) {
	const text = "<title>payload</title>"
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "a.html")
	write(t, dir, map[string]string{"a.html": text})
	wants := map[string]want{"/a.html": {status: 304, file: file}}

	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	build := func() (*archive, []blobschema.Page) {
		digest := "sha1:AAAA"
		response := capture{status: 200, payload: sha256.Sum256([]byte(text)), Record: warc.Record{
			Type: warc.TypeResponse, TargetURI: base + "/a.html", Date: when, Length: 99, PayloadDigest: digest}}
		reference := capture{status: 304, Record: warc.Record{
			Type: warc.TypeRevisit, TargetURI: base + "/a.html", Date: when.Add(time.Hour), Length: 44, PayloadDigest: digest,
			RefersToTargetURI: base + "/a.html", RefersToDate: when}}
		a := &archive{captures: map[place]*capture{{"w.warc.gz", 7}: &response, {"v.warc.gz", 8}: &reference}}
		return a, []blobschema.Page{
			{URL: base + "/a.html", Status: 200, Digest: digest, WARC: "c/warc/w.warc.gz", Offset: 7, Length: 99},
			{URL: base + "/a.html", Generation: 1, Status: 304, Digest: digest, WARC: "c/warc/v.warc.gz", Offset: 8, Length: 44,
				Original: &blobschema.Original{URL: base + "/a.html", Time: when, WARC: "c/warc/w.warc.gz", Offset: 7, Length: 99}},
			{URL: base + "/refused", Outcome: blobschema.OutcomeRobots},
		}
	}
	for _, c := range []struct {
		name   string
		change func(a *archive, response, reference *capture, pages []blobschema.Page)
		want   string
	}{
		{"nothing", func(*archive, *capture, *capture, []blobschema.Page) {}, ""},
		{"another payload", func(_ *archive, r, _ *capture, _ []blobschema.Page) { r.payload[0]++ }, "the payload is not the file"},
		{"elsewhere", func(_ *archive, _, _ *capture, p []blobschema.Page) { p[1].Offset++ }, "no record is where"},
		{"another URL", func(_ *archive, r, _ *capture, _ []blobschema.Page) { r.TargetURI = base + "/b" }, "/b, status 200"},
		{"a response twice", func(_ *archive, _, r *capture, _ []blobschema.Page) { r.Type = warc.TypeResponse }, "names an original"},
		{"an original unsaid", func(_ *archive, _, _ *capture, p []blobschema.Page) { p[1].Original = nil }, "names no original"},
		{"an original gone", func(_ *archive, _, _ *capture, p []blobschema.Page) { p[1].Original.Offset = 8 }, "no response record is where its original"},
		{"a reference to another URL", func(_ *archive, _, r *capture, _ []blobschema.Page) { r.RefersToTargetURI = base }, "by its revisit record of"},
		{"a reference to another time", func(_ *archive, _, r *capture, _ []blobschema.Page) { r.RefersToDate = r.Date }, "its original has the date"},
		{"another digest", func(_ *archive, r, _ *capture, p []blobschema.Page) {
			r.PayloadDigest, p[0].Digest = "sha1:B", "sha1:B"
		}, "that of its original"},
		{"an answer nobody names", func(a *archive, r, _ *capture, _ []blobschema.Page) { a.captures[place{"x", 0}] = r }, "the archive has 3 answers"},
	} {
		a, pages := build()
		c.change(a, a.captures[place{"w.warc.gz", 7}], a.captures[place{"v.warc.gz", 8}], pages)
		found, err := checkBytes(a, pages, 1, wants)
		if err != nil {
			t.Fatal(err)
		}
		if got := wrong(found); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}

func TestNewCapture(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte("text"))
	_ = z.Close()
	for _, c := range []struct {
		header string
		body   []byte
		ok     bool
	}{
		{"HTTP/1.1 200 OK\r\n\r\n", []byte("text"), true},
		{"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", zipped.Bytes(), true},
		{"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", zipped.Bytes()[:12], false},
		{"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", []byte("text"), false},
		{"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n", []byte("text"), false},
		{"no header", []byte("text"), false},
	} {
		got, err := newCapture(&warc.Record{Type: warc.TypeResponse, Header: []byte(c.header), Body: c.body})
		if (err == nil) != c.ok || c.ok && got.payload != sha256.Sum256([]byte("text")) {
			t.Errorf("%q: %+v, %v", c.header, got, err)
		}
	}
}

func TestCheckSummary(t *testing.T) {
	pages := []blobschema.Page{{URL: base + "/a"}, {URL: base + "/robots.txt", Robots: true}}
	wants := map[string]want{"/a": {status: 304}}
	ok := func() *summary {
		s := &summary{Totals: blobschema.Totals{Stored: 10, Outcomes: map[string]int64{"ok": 1}}}
		s.Requested = append(s.Requested, struct {
			URL    string `json:"url"`
			Result string `json:"result"`
		}{base + "/a", "unchanged"})
		return s
	}
	for name, c := range map[string]struct {
		change   func(*summary)
		received int64
		want     string
	}{
		"nothing":        {func(*summary) {}, 7, ""},
		"stopped":        {func(s *summary) { s.Status, s.Reason = 3, "Stopped" }, 7, "it did not finish: Stopped"},
		"URLs waiting":   {func(s *summary) { s.Totals.Pending = 1 }, 7, "it did not finish"},
		"fewer outcomes": {func(s *summary) { s.Totals.Outcomes = nil }, 7, "counts 0 outcomes"},
		"more bytes":     {func(s *summary) { s.Totals.Stored++ }, 7, "11 bytes are stored"},
		"a URL untold":   {func(s *summary) { s.Requested = nil }, 7, "it tells of 0 URLs"},
		"another result": {func(s *summary) { s.Requested[0].Result = "changed" }, 7, `it says "changed"`},
		"fewer bytes":    {func(*summary) {}, 6, "6 bytes were received"},
	} {
		s := ok()
		c.change(s)
		got := wrong(checkSummary(s, &archive{bytes: 10}, pages, wants, &phase{Received: c.received, Sent: 7}))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	docs, bin := t.TempDir(), filepath.Join(t.TempDir(), "orbweaver")
	write(t, docs, map[string]string{"index.html": ""})
	if err := os.WriteFile(bin, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-docs", docs, "-binary", bin}, ""},
		{[]string{"-docs", docs, "-binary", bin + "x"}, "make build"},
		{[]string{"-docs", docs + "x", "-binary", bin}, "apt-get install linux-doc"},
		{[]string{"-docs", docs, "-binary", bin, "-partitions", "-1"}, "-partitions is -1"},
		{[]string{"-docs", docs, "-binary", bin, "more"}, `"more"`},
		{[]string{"-nothing"}, "-nothing"},
	} {
		_, err := parse(c.args, &bytes.Buffer{})
		if _, isUse := err.(wrongUse); (err == nil) != (c.want == "") || err != nil && (!isUse || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}

// TestCheckWarcio tells a program that finds something from one that cannot be run.
func TestCheckWarcio(t *testing.T) {
	fake := filepath.Join(t.TempDir(), "warcio")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\ntest \"$*\" = 'check good.warc.gz' || { echo digest failed; exit 1; }\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "windows" {
		t.Skip("it needs a shell")
	}
	if c, err := checkWarcio(t.Context(), fake, &archive{files: []string{"good.warc.gz"}}); err != nil || wrong(c) != "" {
		t.Errorf("%v, %v", c, err)
	}
	if c, err := checkWarcio(t.Context(), fake, &archive{files: []string{"bad.warc.gz"}}); err != nil || !strings.Contains(wrong(c), "digest failed") {
		t.Errorf("%v, %v", c, err)
	}
	if c, err := checkWarcio(t.Context(), fake+"x", &archive{}); err == nil {
		t.Errorf("a program that is not there gives %v", c)
	}
}

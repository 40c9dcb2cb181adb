package main

import (
	"bytes"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/orbweaver/orbweaver/blobschema"
)

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		got, want table
		wrong     int
	}{
		{table{"a": "1"}, table{"a": "1"}, 0},
		{table{"a": "1"}, table{"a": "2"}, 1},
		{table{"a": "1"}, table{}, 1},
		{table{}, table{"a": ""}, 1},
	} {
		var out bytes.Buffer
		tr := trial{out: &out}
		tr.compare("things", c.got, c.want)
		if tr.wrong != c.wrong || tr.compared != 1 || strings.Contains(out.String(), "DIFFER") != (c.wrong > 0) {
			t.Errorf("%v and %v: %d wrong, %s", c.got, c.want, tr.wrong, &out)
		}
	}
}

// TestComparePages plants one error at a time into page records.
func TestComparePages(t *testing.T) {
	const base = "http://127.0.0.1:8080"
	wants := map[string]want{"/a b": {status: 304, kind: "revisit"}, "/gone": {status: 404}}
	for _, c := range []struct {
		name   string
		change func(p []stored) []stored
		wrong  int
	}{
		{"nothing", func(p []stored) []stored { return p }, 0},
		{"one missing", func(p []stored) []stored { return p[:1] }, 1},
		{"one more", func(p []stored) []stored {
			return append(p, stored{Page: blobschema.Page{URL: base + "/x", Generation: 1}})
		}, 1},
		{"one twice", func(p []stored) []stored { return append(p, p[1]) }, 1},
		{"another generation", func(p []stored) []stored { p[0].Generation = 0; return p }, 1},
		{"another status", func(p []stored) []stored { p[1].Status = 410; return p }, 1},
		{"another outcome", func(p []stored) []stored { p[0].Outcome = blobschema.OutcomeCut; return p }, 1},
		{"cut", func(p []stored) []stored { p[0].Truncated = "length"; return p }, 1},
		{"another payload", func(p []stored) []stored { p[0].sum[0]++; return p }, 1},
		{"no payload", func(p []stored) []stored { p[0].WARC = ""; return p }, 1},
		{"a response instead", func(p []stored) []stored { p[0].Original = nil; return p }, 1},
	} {
		pages := c.change([]stored{
			{Page: blobschema.Page{URL: base + "/a%20b", Generation: 1, Status: 304, Outcome: blobschema.OutcomeUnchanged, WARC: "warc/v", Original: &blobschema.Original{}}},
			{Page: blobschema.Page{URL: base + "/gone", Generation: 1, Status: 404, Outcome: blobschema.OutcomeClientError}},
		})
		tr := trial{out: new(bytes.Buffer), site: &site{pages: map[string]*page{"/a b": {status: 200, file: "a b"}, "/gone": {status: 404}}}}
		tr.comparePages(pages, 1, wants)
		if tr.wrong != c.wrong {
			t.Errorf("%s: %s", c.name, tr.out)
		}
	}
}

func TestLinks(t *testing.T) {
	self, _ := url.Parse("http://127.0.0.1:8080/a/page.html")
	for _, c := range []struct{ doc, want string }{
		{`<a href=b.html></a><area href="/c?q#f"><A HREF='../d'>`, "/a/b.html /c?q /d"},
		{`<a name=x>`, ""},
		{`<a href="">`, "/a/page.html"},
		{`<iframe src=f1></iframe><img src=no><script src=no></script>`, "/a/f1"},
		{`<link rel=next href=1><link rel="icon prev" href=2><link rel=canonical href=3><link rel=stylesheet href=no>`, "/a/1 /a/2 /a/3"},
		{`<meta http-equiv=Refresh content="0; url='there'"><meta http-equiv=refresh content=5>`, "/a/there"},
		{`<!-- <a href=no> --><script>"<a href=no>"</script><style><a href=no></style><title><a href=no></title>`, ""},
		{`<noscript><iframe src=yes></iframe></noscript>`, "/a/yes"},
		{`<a rel="external nofollow" href=no></a><a rel=external href=yes>`, "/a/yes"},
		{"<a href=' a\nb.html\t'>", "/a/ab.html"},
		{`<a href="%zz"></a><a href="http://[">`, ""},
	} {
		doc, err := html.ParseWithOptions(strings.NewReader(c.doc), html.ParseOptionEnableScripting(false))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range links(doc, self) {
			got = append(got, u.RequestURI())
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s\ngives %s\nwant  %s", c.doc, got, c.want)
		}
	}
}

// TestRanks compares the series with plain rounds, on a graph with pages without links.
func TestRanks(t *testing.T) {
	g := graph{"a": {"b", "c"}, "b": {"c"}, "c": {"a"}, "d": {"c", "e"}, "e": nil}
	const d = 0.85
	x := map[string]float64{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}
	for range 300 {
		next := map[string]float64{}
		for k := range g {
			next[k] += 1 - d + d*x["e"]/float64(len(g))
			for _, to := range g[k] {
				next[to] += d * x[k] / float64(len(g[k]))
			}
		}
		x = next
	}
	for k, got := range g.ranks(d) {
		if math.Abs(got-x[k]) > 1e-6 {
			t.Errorf("%s has %g, not %g", k, got, x[k])
		}
	}
}

// documentation writes a small documentation with features of real ones.
func documentation(t *testing.T) string {
	const pages = 18
	root := t.TempDir()
	files := map[string]string{
		"index.html": `<!DOCTYPE html><title>Contents — Docs</title><link rel=stylesheet href=style.css><link rel=next href=page0.html>
			<a href="guide">guide</a> <a href=notes.txt>notes</a> <a href=gone.html>gone</a> <a href="empty/">empty</a>
			<a href="page0.html?highlight=x">found</a> <a href="a%20name%20with%20%C3%BC.html#top">odd</a> <a href=old.html>old</a>
			<a href="http://elsewhere.test/">elsewhere</a>`,
		"guide/index.html":   `<a href="../index.html">up</a> <a href="part.xhtml">part</a> <noscript><iframe src=toc.html></iframe></noscript>`,
		"guide/part.xhtml":   `<html xmlns="http://www.w3.org/1999/xhtml"><a href="../logo.svg">logo</a></html>`,
		"guide/toc.html":     `<a href=../page9.html>last</a>`,
		"a name with ü.html": `<a href=/>home</a>`,
		"old.html":           `<meta http-equiv=refresh content="0; url=page1.html">`,
		"notes.txt":          strings.Repeat("plain text ", 1000),
		"logo.svg":           `<svg xmlns="http://www.w3.org/2000/svg"/>`,
		"robots.txt":         "User-agent: *\nDisallow: /\n",
		"unlinked.html":      `no link leads here`,
		"empty/.keep":        ``,
	}
	for i := range pages {
		word := strings.Repeat(string(rune('c'+i)), 9)
		files[fmt.Sprintf("page%d.html", i)] = fmt.Sprintf(`<title>Number %d — Docs</title><h1>A page</h1><p>This page alone has the %s.<p><a href=page%d.html>next</a>%s`,
			i, word, (i+1)%pages, strings.Repeat("<p>much the same", i*10))
	}
	past := time.Date(2020, 2, 2, 2, 2, 2, 0, time.UTC)
	for name, text := range files {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, past, past); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestRun makes a whole run on a small documentation, with the crawler as it is.
func TestRun(t *testing.T) {
	if _, err := newServer(""); err != nil || testing.Short() {
		t.Skip("it needs nginx, and builds the crawler: ", err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	bin := filepath.Join(t.TempDir(), "orbweaver")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/orbweaver")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var out bytes.Buffer
	if err := run(t.Context(), documentation(t), bin, func(d *trial) error { return d.run(t.Context()) }, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"crawl: 31 pages", "recrawl: 28 pages", "17 titles: 17 first", "none differs"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

package extract

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/internal/weburl"
)

func TestSitemap(t *testing.T) {
	const head = `<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`
	for _, tt := range []struct {
		name, body string
		want       []string
	}{
		{"url", head + `<url><loc>http://example.com/a</loc><lastmod>2024-02-29</lastmod><changefreq>daily</changefreq><priority>0.8</priority></url></urlset>`,
			[]string{"listed http://example.com/a +3 2024-02-29T00:00:00"}},
		{"index", `<sitemapindex><sitemap><loc>http://example.com/1.xml.gz</loc><lastmod>2024-01-01T10:00:00+02:00</lastmod></sitemap><sitemap><loc>/2.xml</loc></sitemap></sitemapindex>`,
			[]string{"sitemap http://example.com/1.xml.gz 2024-01-01T08:00:00", "sitemap http://example.com/2.xml"}},
		{"namespaces and prefixes of any kind", `<s:urlset xmlns:s="nonesuch"><s:url><s:loc>http://example.com/a</s:loc></s:url></s:urlset>`, []string{"listed http://example.com/a"}},
		{"no declaration, upper case", `<URLSET><URL><LOC>http://example.com/a</LOC></URL></URLSET>`, []string{"listed http://example.com/a"}},
		{"prologue", "\ufeff \n<?xml version='1.0'?><?xml-stylesheet href='x.xsl'?><!-- <urlset> --><!DOCTYPE urlset [<!ENTITY a \"]>\"> <!-- don't --> ]> <urlset><url><loc>http://example.com/a</loc></url>",
			[]string{"listed http://example.com/a"}},
		{"white space, sections, comments, references", head + "<url><loc>\n  <![CDATA[http://example.com/?a=1&b=2]]>\n</loc></url><url><loc>http://example.com/<!-- x -->?a=1&amp;b=&#x32;&#51;</loc></url>",
			[]string{"listed http://example.com/?a=1&b=2", "listed http://example.com/?a=1&b=23"}},
		{"stray ampersands", head + "<url><loc>http://example.com/?a=1&copy=2&b;c&notit;</loc></url>", []string{"listed http://example.com/?a=1&copy=2&b;c&notit;"}},
		{"lastmod and priority before loc", head + `<url><priority>0.1</priority><lastmod>2024</lastmod><loc>/a</loc></url><url><loc>/b</loc></url>`,
			[]string{"listed http://example.com/a -4 2024-01-01T00:00:00", "listed http://example.com/b"}},
		{"priority out of bounds", head + `<url><loc>/a</loc><priority>7</priority></url><url><loc>/b</loc><priority>-1</priority></url><url><loc>/c</loc><priority>high</priority></url>`,
			[]string{"listed http://example.com/a +5", "listed http://example.com/b -5", "listed http://example.com/c"}},
		{"extensions", head + `<url><loc>/a</loc><image:image><image:loc>/i</image:loc></image:image><video:video><video:player_loc>/v</video:player_loc><video:url>/w</video:url></video:video><news:news><loc>/n</loc></news:news></url>`,
			[]string{"listed http://example.com/a"}},
		{"extension before loc", head + `<url><image:image><image:loc>/i</image:loc></image:image><loc>/a</loc></url>`, []string{"listed http://example.com/a"}},
		{"translations", head + `<url><loc>/a</loc><xhtml:link rel="alternate" hreflang="de" href="/de?x=1&amp;y=2"/><xhtml:link rel='stylesheet' href='/s'/><xhtml:link rel=alternate href=/fr /></url>` +
			`<url><loc>/fr</loc><priority>1.0</priority></url>`,
			[]string{"listed http://example.com/a", "rel http://example.com/de?x=1&y=2", "listed http://example.com/fr +5"}},
		{"duplicates", head + `<url><loc>/a</loc></url><url><loc>/dir/../a#b</loc><priority>0.6</priority></url>`, []string{"listed http://example.com/a +1"}},
		{"self, other schemes, nothing", head + `<url><loc>` + selfURL + `</loc></url><url><loc>ftp://example.com/</loc></url><url><loc/></url><url><loc> </loc></url><url></url><url/>`, nil},
		{"two locs", head + `<url><loc>/a</loc><loc>/b</loc></url>`, []string{"listed http://example.com/a"}},
		{"loc outside of url", head + `<loc>/a</loc>`, nil},
		{"tags never closed", head + `<url><lastmod>2024<url><loc>/a</loc><url><loc>/b</loc>`, []string{"listed http://example.com/a", "listed http://example.com/b"}},
		{"mark never closed", head + `<url x="1><loc>/a</loc></url>`, []string{"listed http://example.com/a"}},
		{"cut in a loc", head + `<url><loc>/a</loc></url><url><loc>/abc`, []string{"listed http://example.com/a"}},
		{"cut in an end tag", head + `<url><loc>/a</loc></url><url><loc>/abc</lo`, []string{"listed http://example.com/a"}},
		{"cut behind a loc", head + `<url><loc>/a</loc><lastmod>2024</lastmod>`, []string{"listed http://example.com/a 2024-01-01T00:00:00"}},
		{"brackets in text", head + `<url><loc>/a< b</loc></url>`, []string{"listed http://example.com/a%3C%20b"}},
		{"declaration not closed as it should be", `<?xml version="1.0"><urlset><url><loc>/a</loc>`, []string{"listed http://example.com/a"}},
		{"a million levels", head + strings.Repeat("<x>", 1_000_000) + `<url><loc>/a</loc>`, []string{"listed http://example.com/a"}},
		{"entities are not expanded", `<!DOCTYPE urlset [<!ENTITY a "http://example.com/"><!ENTITY b "&a;&a;&a;">]><urlset><url><loc>/x&b;</loc></url>`,
			[]string{"listed http://example.com/x&b;"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Links([]byte(tt.body), "text/xml", mustParse(t, selfURL), Options{})
			if diff := cmp.Diff(tt.want, showAll(r.Links)); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(r, Links([]byte(tt.body), "", mustParse(t, selfURL), Options{Sitemap: true}), compareURLs); diff != "" {
				t.Errorf("as a known sitemap (-as XML +so):\n%s", diff)
			}
		})
	}
}

// TestForms checks that the form of a body depends on its type, its bytes, and whether it is known to be a sitemap. An
// application/xml document with HTML, not XHTML, has no form.
func TestForms(t *testing.T) {
	const (
		urlset = `<?xml version="1.0"?><urlset><url><loc>http://example.com/a</loc></url></urlset>`
		rss    = `<rss><channel><item><link>http://example.com/a</link></item></channel></rss>`
		lines  = "http://example.com/a\n"
		xhtml  = `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><script/><a href="/a"/></html>`
		html   = `<!doctype html><a href=/a>`
	)
	for _, tt := range []struct {
		contentType, path, body string
		want                    string // kind of the link; "" if there is no link
		known                   string // the same if it is known to be a sitemap
		wanted                  bool   // by its first bytes
		certain                 bool   // by its type
	}{
		{"application/xml", "/", urlset, "listed", "listed", true, true},
		{"Text/XML; charset=utf-8", "/", urlset, "listed", "listed", true, true},
		{"application/rss+xml", "/", urlset, "listed", "listed", true, true},
		{"", "/", urlset, "listed", "listed", true, false},
		{"application/octet-stream", "/", urlset, "listed", "listed", true, false},
		{"text/html", "/", urlset, "listed", "listed", true, true},
		{"text/plain", "/", urlset, "", "listed", false, false},
		{"image/png", "/", urlset, "", "listed", false, false},
		{"application/gzip", "/", urlset, "", "listed", true, false},
		{"application/rss+xml", "/", rss, "entry", "entry", true, true},
		{"text/html", "/", rss, "entry", "entry", true, true},
		{"", "/", rss, "entry", "entry", true, false},
		{"text/plain", "/", rss, "", "entry", false, false},
		{"text/plain", "/", lines, "", "listed", false, false},
		{"text/plain", "/", "# all\n" + lines, "", "listed", false, false},
		{"text/html", "/", lines, "", "listed", true, true},
		{"", "/", " \n" + lines, "", "listed", false, false},
		{"application/xml", "/", xhtml, "anchor", "anchor", true, true},
		{"", "/", xhtml, "anchor", "anchor", true, false},
		{"application/xml", "/", html, "", "", true, true},
		{"text/html", "/", html, "anchor", "anchor", true, true},
		{"application/xml", "/", "<svg><a href='/a'/></svg>", "", "", true, true},
		{"application/gzip", "/", zipped(urlset), "", "listed", true, false},
		{"application/gzip", "/sitemap.xml.gz", zipped(urlset), "listed", "listed", true, false},
		{"application/x-gzip", "/sitemap.xml.gz", zipped(urlset), "listed", "listed", true, false},
		{"application/x-gzip", "/sitemap.xml.gz", urlset, "listed", "listed", true, false}, // already decoded by fetch
		{"text/xml", "/sitemap.xml.gz", zipped(urlset), "listed", "listed", true, true},
		{"", "/sitemap.xml.gz", zipped(urlset), "listed", "listed", true, false},
		{"application/gzip", "/sitemap.xml.gz", zipped(zipped(urlset)), "", "", true, false},
		{"application/gzip", "/sitemap.txt.gz", zipped(lines), "", "listed", true, false},
		{"application/gzip", "/sitemap.xml.gz", zipped(urlset)[:len(zipped(urlset))-8], "listed", "listed", true, false}, // its trailer is missing
		{"application/gzip", "/sitemap.xml.gz", "\x1f\x8b\x08", "", "", true, false},
	} {
		self := mustParse(t, "http://example.com"+tt.path)
		for _, known := range []bool{false, true} {
			want := tt.want
			if known {
				want = tt.known
			}
			if want != "" {
				want += " http://example.com/a"
			}
			r := Links([]byte(tt.body), tt.contentType, self, Options{Sitemap: known})
			if got := strings.Join(showAll(r.Links), ", "); got != want {
				t.Errorf("%q, %q, %.30q, known %v: %q, want %q", tt.contentType, tt.path, tt.body, known, got, want)
			}
		}
		head := []byte(tt.body)[:min(len(tt.body), 512)]
		if got := Wanted(tt.contentType, head, Options{}); got != tt.wanted {
			t.Errorf("Wanted(%q, %.30q) = %v", tt.contentType, head, got)
		}
		if got := Wanted(tt.contentType, nil, Options{}); got != tt.certain {
			t.Errorf("Wanted(%q) = %v", tt.contentType, got)
		}
		if !Wanted(tt.contentType, nil, Options{Sitemap: true}) {
			t.Errorf("Wanted(%q), known: false", tt.contentType)
		}
	}
}

func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.String()
}

func TestTextSitemap(t *testing.T) {
	body := "\ufeffhttp://example.com/a\r\n  HTTPS://example.com/b#x \n\nnot a URL\n/relative\nftp://example.com/c\n" +
		"http://example.com/" + strings.Repeat("x", 2*maxValue) + "\rhttp://example.com/d\nhttp://example.com/é\nhttp://example.com/a"
	r := Links([]byte(body), "text/plain", mustParse(t, selfURL), Options{Sitemap: true})
	want := []string{"listed http://example.com/a", "listed https://example.com/b", "listed http://example.com/%C3%A9"}
	if diff := cmp.Diff(want, showAll(r.Links)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

func TestTextSitemapCharset(t *testing.T) {
	r := Links([]byte("http://example.com/\xe9\nhttp://example.com/b\n"), "text/plain; charset=iso-8859-1", mustParse(t, selfURL), Options{Sitemap: true})
	if diff := cmp.Diff([]string{"listed http://example.com/%C3%A9", "listed http://example.com/b"}, showAll(r.Links)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

// TestSitemapCutOff checks that the last entry counts even if its end is missing.
func TestSitemapCutOff(t *testing.T) {
	r := Links([]byte("<urlset><url><loc>/a</loc><lastmod>2024-01-01</lastmod>"), "text/xml", mustParse(t, selfURL), Options{Sitemap: true})
	if len(r.Links) != 1 || r.Links[0].Modified != 1_704_067_200 {
		t.Errorf("%+v", r.Links)
	}
}

func TestListedBounds(t *testing.T) {
	self := mustParse(t, selfURL)
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for _, tt := range []struct {
		name, body string
		links      int
	}{
		{"all entries", "<urlset>" + many(MaxListed, "<url><loc>/%d</loc></url>"), MaxListed},
		{"too many entries", "<urlset>" + many(MaxListed+5, "<url><loc>/%d</loc></url>") + "<url><loc>/7</loc></url>", MaxListed},
		{"too many lines", many(MaxListed+5, "http://example.com/%d\n"), MaxListed},
		{"too many items", "<rss>" + many(MaxLinks+5, "<item><link>/%d</link></item>"), MaxLinks},
		{"too many bytes", "<urlset>" + many(3000, "<url><loc>http://example.com/%07981d</loc></url>"), maxListed / weburl.MaxLen},
		{"a very long loc", "<urlset><url><loc>/" + strings.Repeat("x", 1<<20) + "</loc></url><url><loc>/a</loc></url>", 1},
		{"a loc too long for a URL", "<urlset><url><loc>/" + strings.Repeat("x", weburl.MaxLen) + "</loc></url><url><loc>/a</loc></url>", 1},
		{"a long loc in pieces", "<urlset><url><loc>/" + strings.Repeat("x<!-- -->", 10_000) + "</loc></url><url><loc>/a</loc></url>", 1},
		{"a long translation", "<urlset><url><link rel=alternate href=/" + strings.Repeat("x", 1<<20) + "></url><url><loc>/a</loc></url>", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Links([]byte(tt.body), "text/xml", self, Options{Sitemap: true})
			if len(r.Links) != tt.links {
				t.Errorf("%d links, want %d", len(r.Links), tt.links)
			}
		})
	}
}

// TestZipBomb checks that the size of a gzip file bounds the decompressed size.
func TestZipBomb(t *testing.T) {
	bomb := []byte(zipped("<urlset>" + strings.Repeat(" ", 8<<20) + "<url><loc>/a</loc></url>"))
	got, _ := unzip(bomb, "", mustParse(t, selfURL), true)
	if len(got) != DecodedLimit(len(bomb), MaxDecoded) || len(got) > 2<<20 {
		t.Errorf("%d bytes gave %d", len(bomb), len(got))
	}
	small := []byte(zipped("<urlset>" + strings.Repeat(" ", 1<<19) + "<url><loc>/a</loc></url>"))
	if r := Links(small, "", mustParse(t, selfURL), Options{Sitemap: true}); len(r.Links) != 1 {
		t.Errorf("%d links", len(r.Links))
	}
}

func TestParseDatetime(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"2024", "2024-01-01T00:00:00Z"},
		{"2024-07", "2024-07-01T00:00:00Z"},
		{"2024-07-16", "2024-07-16T00:00:00Z"},
		{"2024-07-16T19:20Z", "2024-07-16T19:20:00Z"},
		{"2024-07-16T19:20+01:00", "2024-07-16T18:20:00Z"},
		{"2024-07-16T19:20:30-05:30", "2024-07-17T00:50:30Z"},
		{"2024-07-16T19:20:30.45+0100", "2024-07-16T18:20:30Z"},
		{"2024-07-16T19:20:30", "2024-07-16T19:20:30Z"},
		{"2024-07-16 19:20:30", "2024-07-16T19:20:30Z"},
		{"2024-07-16t19:20:30z", "2024-07-16T19:20:30Z"},
		{"2024-07-16+02:00", "2024-07-15T22:00:00Z"},
		{"2024-07-16T23:59:59+23:59", "2024-07-16T00:00:59Z"},
		{"2024-02-29", "2024-02-29T00:00:00Z"},
		{"9999-12-31", "9999-12-31T00:00:00Z"},
		{"1970-01-01T00:00:01Z", "1970-01-01T00:00:01Z"},
		{in: ""}, {in: "0"}, {in: "24"}, {in: "2024-"}, {in: "2024-7-1"}, {in: "2024-13-01"}, {in: "2024-00-01"}, {in: "2023-02-29"},
		{in: "2024-01-01T"}, {in: "2024-01-01T10"}, {in: "2024-01-01T10Z"}, {in: "2024-01-01T25:00Z"}, {in: "2024-01-01T10:60Z"}, {in: "2024-01-01T10:00:60Z"},
		{in: "2024-01-01T10:00+1"}, {in: "2024-01-01T10:00+25:00"}, {in: "2024-01-01T10:00+10:61"}, {in: "2024-01-01T10:00*01:00"}, {in: "2024-01-01T10:00Zz"}, {in: "2024Z"}, {in: "2024-01Z"},
		{in: "1969-12-31"}, {in: "0000-01-01"}, {in: "Mon, 01 Jan 2024 00:00:00 GMT"}, {in: "+024-01-01"}, {in: "2024-01-01T10:00:00." + strings.Repeat("0", 100)},
	} {
		want := int64(0)
		if tt.want != "" {
			u, err := time.Parse(time.RFC3339, tt.want)
			if err != nil {
				t.Fatal(err)
			}
			want = u.Unix()
		}
		if got := parseDatetime(tt.in); got != want {
			t.Errorf("parseDatetime(%q) = %d, want %d", tt.in, got, want)
		}
	}
}

func TestParsePriority(t *testing.T) {
	for in, want := range map[string]int8{
		"0.5": 0, "0.0": -5, "1.0": 5, "1": 5, "0.8": 3, ".3": -2, "0.85": 4, "0.84": 3, "-0.1": -5, "2": 5, "1e300": 5, "Inf": 5,
		"": 0, "NaN": 0, "x": 0, "0,8": 0, "1e400": 0, strings.Repeat("0", 100): 0,
	} {
		if got := parsePriority(in); got != want {
			t.Errorf("parsePriority(%q) = %d, want %d", in, got, want)
		}
	}
}

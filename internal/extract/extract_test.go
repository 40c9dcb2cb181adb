package extract

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

const selfURL = "http://example.com/dir/page.html?x=1"

func mustParse(tb testing.TB, s string) weburl.URL {
	tb.Helper()
	u, err := weburl.Parse(s)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}

// show returns a link as "kind URL", then "!" if it must not be followed, then the anchor text in quotes and the values
// from a sitemap, if any.
func show(l actor.Link) string {
	s := l.Kind.String() + " " + l.URL.String()
	if l.NoFollow {
		s += " !"
	}
	if l.Anchor != "" {
		s += fmt.Sprintf(" %q", l.Anchor)
	}
	if l.Priority != 0 {
		s += fmt.Sprintf(" %+d", l.Priority)
	}
	if l.Modified != 0 {
		s += time.Unix(l.Modified, 0).UTC().Format(" 2006-01-02T15:04:05")
	}
	return s
}

func showAll(links []actor.Link) []string {
	var out []string
	for _, l := range links {
		out = append(out, show(l))
	}
	return out
}

// HTML reads a body with a content type of HTML.
func HTML(body []byte, contentType string, self weburl.URL, opt Options) Result {
	return readHTML(body, contentType, self, opt, strings.EqualFold(essence(contentType), typeXHTML))
}

func TestLinks(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       []string
	}{
		// Elements.
		{"a", `<a href="one.html">One</a>`, []string{`anchor http://example.com/dir/one.html "One"`}},
		{"a unquoted, upper case", `<A HREF=/one>One</A>`, []string{`anchor http://example.com/one "One"`}},
		{"a without href", `<a name=x>x</a><a>y</a>`, nil},
		{"area", `<map><area shape=rect coords=1,2 href="?y=2">text</map>`, []string{`anchor http://example.com/dir/page.html?y=2`}},
		{"frame, iframe", `<frameset><frame src=f1></frameset><iframe src=f2></iframe>`,
			[]string{`frame http://example.com/dir/f1`, `frame http://example.com/dir/f2`}},
		{"href of frame, src of a", `<frame href=f1><a src=f2>`, nil},
		{"names that only begin alike", `<abbr href=1><article href=2><address href=3><linkx rel=next href=4><iframes src=5>`, nil},
		{"images, scripts, forms, objects, media", `<img src=i><script src=s></script><form action=f><object data=o></object><video src=v>`, nil},
		{"end tag with href", `</a href=x>`, nil},

		// Link relations.
		{"canonical, next, prev", `<link rel=canonical href=c><link rel="next nofollow" href=n><link rel=PREV href=p><link rel=previous href=q>`,
			[]string{"rel http://example.com/dir/c", "rel http://example.com/dir/n !", "rel http://example.com/dir/p", "rel http://example.com/dir/q"}},
		{"alternate", `<link rel=alternate hreflang=de href=/de><link rel=alternate type="text/html; charset=utf-8" href=/h>` +
			`<link rel=alternate type=application/pdf href=/p><link rel="alternate stylesheet" href=/s>` +
			`<link rel=alternate type=application/json+oembed href=/o>`,
			[]string{"rel http://example.com/de", "rel http://example.com/h"}},
		{"feeds", `<link rel=alternate type=application/rss+xml href=/r><link rel=Alternate type=Application/Atom+XML href=/a>` +
			`<link rel=alternate type=application/feed+json href=/j>`,
			[]string{"feed http://example.com/r", "feed http://example.com/a", "feed http://example.com/j"}},
		{"no pages", `<link rel=stylesheet href=1><link rel="shortcut icon" href=2><link rel=preload href=3><link rel=dns-prefetch href=//4><link href=5><link rel="" href=6>`, nil},

		// Meta refresh.
		{"refresh", `<meta http-equiv=refresh content="0; url=/r">`, []string{"refresh http://example.com/r"}},
		{"refresh of this page", `<meta http-equiv=refresh content="30">`, nil},
		{"other pragma", `<meta http-equiv=content-type content="0; url=/r">`, nil},

		// Resolution.
		{"base", `<a href=1>1</a><base href="/b/"><a href=2>2</a><base href=/c/>`,
			[]string{`anchor http://example.com/b/1 "1"`, `anchor http://example.com/b/2 "2"`}},
		{"base without href does not count", `<base target=_top><base href=//other.example/><a href=1>`, []string{"anchor http://other.example/1"}},
		{"base with an empty href counts", `<base href><base href=//other.example/><a href=1>`, []string{"anchor http://example.com/dir/1"}},
		{"base with another scheme", `<base href="data:text/html,x"><a href=1>`, []string{"anchor http://example.com/dir/1"}},
		{"fragment under another base", `<base href=/b/><a href=#top>`, []string{"anchor http://example.com/b/"}},
		{"character references", `<a href="?a=1&amp;b=2&copy=3&#x2F;">`, []string{"anchor http://example.com/dir/page.html?a=1&b=2&copy=3/"}},
		{"white space in href", "<a href=' \n o\tn\ne '>", []string{"anchor http://example.com/dir/one"}},
		{"absolute, other host", `<a href="HTTPS://Other.Example:443/a/../b">`, []string{"anchor https://other.example/b"}},
		{"scheme relative", `<a href="//other.example/b">`, []string{"anchor http://other.example/b"}},
		{"colon without a scheme", `<a href="./a:b"><a href="?q=c:d"><a href="/e:f">`,
			[]string{"anchor http://example.com/dir/a:b", "anchor http://example.com/dir/page.html?q=c:d", "anchor http://example.com/e:f"}},
		{"other schemes", `<a href="javascript:void(0)"><a href="mailto:a@b"><a href=" DATA:text/html,x"><a href="tel:1"><a href="ftp://x/"><a href="java` + "\n" + `script:1"><iframe src="about:blank">`, nil},
		{"no URL at all", `<a href="http://[::x]/"><a href="http://">`, nil},

		// Self and duplicates.
		{"self", `<a href="">1</a><a href="#a">2</a><a href="page.html?x=1#b">3</a><link rel=canonical href="http://example.com/dir/page.html?x=1">`, nil},
		{"duplicate as written", `<a href=1#a>A</a><a href=1#b>B</a>`, []string{`anchor http://example.com/dir/1 "A"`}},
		{"duplicate as resolved", `<a href=/dir/1>A</a><a href=./1>B</a>`, []string{`anchor http://example.com/dir/1 "A"`}},
		{"first anchor text that is not empty", `<a href=1><img></a><a href=1> </a><a href=./1>B</a><a href=1>A</a>`, []string{`anchor http://example.com/dir/1 "A"`}},
		{"anchor text of a duplicate as resolved", `<a href=1><img></a><a href=./1>B</a>`, []string{`anchor http://example.com/dir/1 "B"`}},
		{"kind of the first", `<link rel=next href=1><a href=1>A</a>`, []string{`rel http://example.com/dir/1 "A"`}},
		{"order", `<a href=2><a href=1><a href=3><a href=1>`, []string{"anchor http://example.com/dir/2", "anchor http://example.com/dir/1", "anchor http://example.com/dir/3"}},

		// nofollow.
		{"nofollow", `<a rel="external NoFollow" href=1><a rel=ugc href=2><a rel=sponsored href=3><a rel=nofollower href=4>`,
			[]string{"anchor http://example.com/dir/1 !", "anchor http://example.com/dir/2", "anchor http://example.com/dir/3", "anchor http://example.com/dir/4"}},
		{"follow wins, later", `<a rel=nofollow href=1><a href=1><a rel=nofollow href=2><a href=./2>`, []string{"anchor http://example.com/dir/1", "anchor http://example.com/dir/2"}},
		{"follow wins, earlier", `<a href=1><a rel=nofollow href=1><a rel=nofollow href=./1>`, []string{"anchor http://example.com/dir/1"}},
		{"nofollow for the page", `<a href=1><meta name=robots content=nofollow>`, []string{"anchor http://example.com/dir/1 !"}},

		// Text and other content.
		{"script, style, comment, textarea, title, xmp", `<title><a href=1></title><script>"<a href=2>"</script><style><a href=3></style>` +
			`<!-- <a href=4> --><textarea><a href=5></textarea><xmp><a href=6></xmp><noembed><a href=7></noembed><a href=8>`, []string{"anchor http://example.com/dir/8"}},
		{"long scripts", `<script>` + strings.Repeat(`"<a href=1>";`, 100) + `</SCRIPT ><a href=2><script>` + strings.Repeat("</scripts>", 100) + `</script><a href=3>`,
			[]string{"anchor http://example.com/dir/2", "anchor http://example.com/dir/3"}},
		{"long script in a comment in a script", `<script><!-- ` + strings.Repeat("x", 600) + `<script></script><a href=1>--></script><a href=2>`, []string{"anchor http://example.com/dir/2"}},
		{"script never closed", `<a href=1><script><a href=2>` + strings.Repeat("x", 1000), []string{"anchor http://example.com/dir/1"}},
		{"plaintext", `<a href=1><plaintext><a href=2></plaintext><a href=3>`, []string{"anchor http://example.com/dir/1"}},
		{"noscript", `<noscript><a href=1>One</a><meta http-equiv=refresh content="0;url=2"></noscript>`,
			[]string{`anchor http://example.com/dir/1 "One"`, "refresh http://example.com/dir/2"}},
		{"template", `<template><a href=1><template></template><a href=2></template><a href=3></template><a href=4>`,
			[]string{"anchor http://example.com/dir/3", "anchor http://example.com/dir/4"}},
		{"template that is a shadow root", `<template shadowrootmode=open><a href=1></template><a href=2>`, []string{"anchor http://example.com/dir/1", "anchor http://example.com/dir/2"}},
		{"base, meta and title in a template", `<template><base href=/b/><meta name=robots content=nofollow><meta http-equiv=refresh content="0;url=9"></template><a href=1>`, []string{"anchor http://example.com/dir/1"}},
		{"iframe content", `<iframe src=1><a href=2></iframe>`, []string{"frame http://example.com/dir/1"}},

		// Anchor texts.
		{"folded", "<a href=1>\n One&nbsp;\t <b>two</b>,<i> th</i>ree \x00 </a>", []string{`anchor http://example.com/dir/1 "One two, three"`}},
		{"references and UTF-8", `<a href=1>caf&eacute; &lt;&#8364;&gt; naïve</a>`, []string{`anchor http://example.com/dir/1 "café <€> naïve"`}},
		{"not UTF-8", "<meta charset=utf-8><a href=1>a\xffb</a>", []string{"anchor http://example.com/dir/1 \"a\ufffdb\""}},
		{"ends where the next begins", `<a href=1>One<a href=2>Two<a name=x>Three</a>Four`, []string{`anchor http://example.com/dir/1 "One"`, `anchor http://example.com/dir/2 "Two"`}},
		{"without script, style and iframe text", `<a href=1>One<script>x</script><style>y</style><iframe>z</iframe> end</a>`, []string{`anchor http://example.com/dir/1 "One end"`}},
		{"cut at 100 bytes, whole characters", `<a href=1>` + strings.Repeat("é", 60) + `</a><a href=2>x` + strings.Repeat("é", 60) + `</a>`,
			[]string{`anchor http://example.com/dir/1 "` + strings.Repeat("é", 50) + `"`, `anchor http://example.com/dir/2 "x` + strings.Repeat("é", 49) + `"`}},
		{"in pieces, cut at 100 bytes", `<a href=1>` + strings.Repeat("<b>word</b> ", 60) + `</a>`,
			[]string{`anchor http://example.com/dir/1 "` + strings.TrimSpace(strings.Repeat("word ", 20)) + `"`}},

		// Cut off and malformed.
		{"cut in a tag", `<a href=1>One</a><a href="2`, []string{`anchor http://example.com/dir/1 "One"`}},
		{"cut in a text", `<a href=1>One`, []string{`anchor http://example.com/dir/1 "One"`}},
		{"first of two hrefs", `<a href=1 HREF=2>`, []string{"anchor http://example.com/dir/1"}},
		{"text that looks like markup", `< a href=1><a/href=2/><1><>< <a href=3><<a href=4>`,
			[]string{`anchor http://example.com/dir/2/ "<1><><"`, `anchor http://example.com/dir/3 "<"`, "anchor http://example.com/dir/4"}},
		{"long tag, then raw text", `<title data-x="` + strings.Repeat("x", 600) + `"><a href=1></title><textarea x="` + strings.Repeat("x", 600) + `"><a href=2></textarea><a href=3>`,
			[]string{"anchor http://example.com/dir/3"}},
		{"long tag, then short raw text", `<style x="` + strings.Repeat("x", longTag) + `">a</style><iframe srcdoc="` + strings.Repeat("x", longTag) + `"></iframe>` +
			`<script x="` + strings.Repeat("x", longTag) + `"><!-- <script></script><a href=2>--></script><a href=1>`, []string{"anchor http://example.com/dir/1"}},
		{"long tag of a link", `<a data-x="` + strings.Repeat("x", 600) + `" href=1>One</a>`, []string{`anchor http://example.com/dir/1 "One"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := HTML([]byte(tt.body), "text/html", mustParse(t, selfURL), Options{})
			if diff := cmp.Diff(tt.want, showAll(r.Links)); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPastMaxToken places each kind of token across the bound, with links after it.
func TestPastMaxToken(t *testing.T) {
	fill := strings.Repeat("x", maxToken+1000)
	for _, tt := range []struct{ name, body string }{
		{"start tag", `<a href=2 title="` + fill + `"><a href=1>`},
		{"start tag with markup in it", `<p title="` + fill + `">` + `<a href=1>`},
		{"end tag", `</p ` + fill + `><a href=1>`},
		{"tag name", `<` + fill + `><a href=1>`},
		{"text", fill + `<a href=1>`},
		{"comment", `<!--` + fill + `><a href=2>` + fill + `--><a href=1>`},
		{"comment that ends at the bound", `<!--` + fill[:maxToken-6] + `--><a href=1>`},
		{"comment that ends behind the bound", `<!--` + fill[:maxToken-5] + `--><a href=1>`},
		{"declaration", `<!x` + fill + `><a href=1>`},
		{"instruction", `<?php ` + fill + `><a href=1>`},
		{"script", `<script>` + fill + `<a href=2>` + fill + `</script><a href=1>`},
		{"script in a comment", `<script><!-- <script>` + fill + `<a href=2>` + `</script><a href=1>`},
		{"textarea", `<textarea>` + fill + `<a href=2>` + fill + `</textarea><a href=1>`},
		{"title", `<title>` + fill + `<a href=2>` + fill + `</title><a href=1>`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := HTML([]byte(tt.body), "text/html", mustParse(t, selfURL), Options{})
			if diff := cmp.Diff([]string{"anchor http://example.com/dir/1"}, showAll(r.Links)); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
		})
	}
	// The bound falls anywhere in a tag, or in the end tag of raw text.
	for n := maxToken - 12; n <= maxToken+2; n++ {
		for _, body := range []string{
			fill[:n] + `<a href=1>`,
			`<textarea>` + fill[:n] + `</textarea><a href=1>`,
			`<!--` + fill[:n] + `--><a href=1>`,
		} {
			r := HTML([]byte(body), "text/html", mustParse(t, selfURL), Options{})
			if len(r.Links) != 1 {
				t.Errorf("%.12s…, %d bytes: links %v", body, n, showAll(r.Links))
			}
		}
	}
}

func TestBounds(t *testing.T) {
	self := mustParse(t, selfURL)
	many := func(n int, format string) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return []byte(b.String())
	}
	for _, tt := range []struct {
		name  string
		body  []byte
		links int
	}{
		{"all links", many(MaxLinks, "<a href=%d>x</a>"), MaxLinks},
		{"too many links", many(MaxLinks+5, "<a href=%d>x</a>"), MaxLinks},
		{"too many links, the last ones repeated", append(many(MaxLinks+5, "<a href=%d>x</a>"), "<a href=7><a href=8>"...), MaxLinks},
		{"a very long href", []byte("<a href=" + strings.Repeat("x", maxHref+1) + "><a href=1>"), 1},
		{"an href too long for a URL", []byte("<a href=" + strings.Repeat("x", weburl.MaxLen) + "><a href=1>"), 1},
		{"a long fragment", []byte("<a href=2#" + strings.Repeat("x", maxHref+1) + "><a href=1>"), 2},
		{"short hrefs of a long base", []byte("<base href=/" + strings.Repeat("x", weburl.MaxLen-100) + "/>" + string(many(1000, "<a href=%d>"))), maxLinked / (weburl.MaxLen - 75)},
		{"too many bytes of hrefs", many(1100, "<a href=%01024d>"), maxHrefs / 1024},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := HTML(tt.body, "text/html", self, Options{})
			if len(r.Links) != tt.links {
				t.Errorf("%d links, want %d", len(r.Links), tt.links)
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	for _, tt := range []struct {
		name, body        string
		noIndex, noFollow bool
	}{
		{"robots", "<META NAME=Robots CONTENT='NoIndex, follow'>", true, false},
		{"robots none", "<meta name=robots content=none>", true, true},
		{"by token", "<meta name=ORBweaver content=nofollow>", false, true},
		{"by another token", "<meta name=otherbot content=nofollow>", false, false},
		{"the stricter wins", "<meta name=robots content=noindex><meta name=orbweaver content='index,nofollow'>", true, true},
		{"no name", "<meta content=none><meta name='' content=none>", false, false},
		{"in the body", "<body><p><meta name=robots content=noindex>", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := HTML([]byte(tt.body), "text/html", mustParse(t, selfURL), Options{Token: "Orbweaver"})
			if r.NoIndex != tt.noIndex || r.NoFollow != tt.noFollow {
				t.Errorf("noindex %v, nofollow %v; want %v, %v", r.NoIndex, r.NoFollow, tt.noIndex, tt.noFollow)
			}
		})
	}
	if r := HTML([]byte("<meta name='' content=none>"), "", mustParse(t, selfURL), Options{}); r.NoIndex || r.NoFollow {
		t.Error("an empty token names somebody")
	}
}

func TestXHTML(t *testing.T) {
	const body = `<title/><script src="s"/><iframe src="f"/><a href="1">One</a><template/><svg/><![CDATA[<a href="2">]]><a href="3">`
	self := mustParse(t, selfURL)
	want := []string{"frame http://example.com/dir/f", `anchor http://example.com/dir/1 "One"`, "anchor http://example.com/dir/3"}
	if diff := cmp.Diff(want, showAll(HTML([]byte(body), "Application/XHTML+XML; charset=utf-8", self, Options{}).Links)); diff != "" {
		t.Errorf("as XHTML (-want +got):\n%s", diff)
	}
	if r := HTML([]byte(body), "text/html", self, Options{}); len(r.Links) != 0 {
		t.Errorf("as HTML, where the title never ends: %v", showAll(r.Links))
	}
}

func TestRefresh(t *testing.T) {
	for _, tt := range []struct{ content, want string }{
		{"0;url=/a", "/a"},
		{"0; URL = '/a' x", "/a"},
		{`5, url="/a`, "/a"},
		{" 1.5 url=/a", "/a"},
		{".;url=/a", "/a"},
		{"0;/a", "/a"},
		{"0 /a", "/a"},
		{"0;'/a'b", "/a"},
		{"0;urls=/a", "urls=/a"},
		{"0;url", "url"},
		{"0;url=", ""},
		{"0;", ""},
		{"0", ""},
		{"", ""},
		{";url=/a", ""},
		{"url=/a", ""},
		{"0x;url=/a", ""},
		{"-1;url=/a", ""},
	} {
		if got := string(refresh([]byte(tt.content))); got != tt.want {
			t.Errorf("refresh(%q) = %q, want %q", tt.content, got, tt.want)
		}
	}
}

func TestByContentType(t *testing.T) {
	self := mustParse(t, selfURL)
	const body = "<html><a href=1>"
	for _, tt := range []struct {
		contentType, body, sniffed string
		links                      int
	}{
		{"text/html", body, "text/html", 1},
		{"Text/HTML;charset=x", body, "text/html", 1},
		{"application/xhtml+xml", body, "application/xhtml+xml", 1},
		{"", body, "text/html", 1},
		{"application/octet-stream", body, "text/html", 1},
		{" ; charset=utf-8", "\ufeff\r\n <!DocType HTML><a href=1>", "text/html", 1},
		{"", "<!-- --><a href=1>", "text/html", 1},
		{"", "<a href=1>", "text/html", 1},
		{"", "<abbr><a href=1>", "", 0},
		{"", "<html", "", 0},
		{"", "", "", 0},
		{"", strings.Repeat(" ", 600) + body, "", 0},
		{"application/octet-stream", "\x7fELF" + body, "application/octet-stream", 0},
		{"text/plain", body, "text/plain", 0},
		{"application/pdf", body, "application/pdf", 0},
	} {
		if got := sniff(tt.contentType, []byte(tt.body)); got != tt.sniffed {
			t.Errorf("sniff(%q, %.20q) = %q, want %q", tt.contentType, tt.body, got, tt.sniffed)
		}
		if r := Links([]byte(tt.body), tt.contentType, self, Options{}); len(r.Links) != tt.links {
			t.Errorf("Links(%.20q, %q) = %v", tt.body, tt.contentType, showAll(r.Links))
		}
	}
}

// TestNothing checks that the zero URL and an empty body are valid input.
func TestNothing(t *testing.T) {
	r := HTML(nil, "", weburl.URL{}, Options{})
	if diff := cmp.Diff([]string(nil), showAll(r.Links)); diff != "" {
		t.Error(diff)
	}
	r = HTML([]byte("<base href=x><a href=1><a href=http://example.com>"), "", weburl.URL{}, Options{})
	if diff := cmp.Diff([]string{"anchor http://example.com/"}, showAll(r.Links)); diff != "" {
		t.Error(diff)
	}
}

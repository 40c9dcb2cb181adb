package extract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFeed(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       []string
	}{
		{"RSS 2.0", `<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>T</title><link>http://example.com/</link>` +
			`<atom:link href="http://example.com/feed.xml" rel="self" type="application/rss+xml"/>` +
			`<item><title>One &amp;amp; two</title><link>http://example.com/1</link><guid>http://example.com/?p=1</guid></item>` +
			`<item><link>/2</link><title>Two</title></item></channel></rss>`,
			[]string{"rel http://example.com/", `entry http://example.com/1 "One & two"`, `entry http://example.com/2 "Two"`}},
		{"RSS 1.0", `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel rdf:about="http://example.com/rdf"><title>T</title>` +
			`<link>http://example.com/</link><image rdf:resource="http://example.com/i.png"/><items><rdf:Seq><rdf:li rdf:resource="http://example.com/0"/></rdf:Seq></items></channel>` +
			`<image rdf:about="http://example.com/i.png"><title>T</title><url>http://example.com/i.png</url><link>http://example.com/img</link></image>` +
			`<item rdf:about="http://example.com/0"><title>One</title><link>http://example.com/1</link></item><item rdf:about="http://example.com/2"><title>Two</title></item>` +
			`<textinput><title>Search</title><link>http://example.com/search</link></textinput></rdf:RDF>`,
			[]string{"rel http://example.com/", `entry http://example.com/1 "One"`, `entry http://example.com/2 "Two"`}},
		{"Atom", `<feed xmlns="http://www.w3.org/2005/Atom"><title type="text">T</title><link href="http://example.com/"/><link rel="self" href="/atom.xml"/>` +
			`<link rel="next" href="?page=2"/><link rel="hub" href="//hub.example/"/><link rel="alternate" type="application/rss+xml" href="/rss"/>` +
			`<entry><title type="html">&lt;b&gt;One&lt;/b&gt;</title><link rel="edit" href="/edit/1"/><link href="/1"/><link rel="enclosure" href="/1.mp3"/><link rel="replies" type="application/atom+xml" href="/1/replies"/>` +
			`<id>tag:example.com,2024:1</id><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><a href="/x"/><link rel="next" href="/y"/><title>No</title></div></content></entry>` +
			`<entry><source><title>Other</title><link href="//other.example/"/></source><link rel="alternate" type="text/html" href="/2"/><title>Two</title></entry></feed>`,
			[]string{"rel http://example.com/", "rel http://example.com/dir/page.html?page=2", "feed http://example.com/rss",
				`entry http://example.com/1 "<b>One</b>"`, `entry http://example.com/2 "Two"`}},
		{"prefixes", `<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:entry><media:title>No</media:title><a:title>One</a:title><a:link href="/1"/></a:entry></a:feed>`,
			[]string{`entry http://example.com/1 "One"`}},
		{"bases", `<feed xml:base="http://other.example/a/"><link href="b"/><entry xml:base="c/"><link href="d"/><link xml:base="/e/" href="f"/></entry><entry xml:base="ftp:x"><link href="g"/></entry></feed>`,
			[]string{"rel http://other.example/a/b", "entry http://other.example/a/c/d", "entry http://other.example/e/f", "entry http://other.example/a/g"}},
		{"base of RSS", `<rss xml:base="/x/"><channel xml:base="y/"><item><link>z</link></item>`, []string{"entry http://example.com/x/y/z"}},
		{"permanent links", `<rss><item><guid>http://example.com/1</guid></item><item><guid isPermaLink="true"> http://example.com/2 </guid></item><item><guid isPermaLink="false">http://example.com/3</guid></item>` +
			`<item><guid>4</guid></item><item><guid>http://example.com/5</guid><link>ftp://example.com/</link></item></rss>`,
			[]string{"entry http://example.com/1", "entry http://example.com/2", "entry http://example.com/5"}},
		{"sections and white space", "<rss><item><title>\n<![CDATA[One &#8217; ]]> two </title><link>\n<![CDATA[http://example.com/?a&b]]></link></item>",
			[]string{"entry http://example.com/?a&b \"One ’ two\""}},
		{"undeclared entities", `<rss><item><title>Caf&eacute;&nbsp;&bogus; &</title><link>/1?a&b=&eacute;</link></item>`, []string{`entry http://example.com/1?a&b=%C3%A9 "Café &bogus; &"`}},
		{"markup in a title", `<feed><entry><title type="xhtml"><div>One <b>two</b></div></title><link href="/1"/></entry></feed>`, []string{`entry http://example.com/1 "One two"`}},
		{"titles of other things", `<rss><channel><title>T</title><image><title>I</title><link>/i</link><url>/i.png</url></image><item><media:content><media:title>M</media:title></media:content><link>/1</link><itunes:title>I</itunes:title></item>`,
			[]string{"entry http://example.com/1"}},
		{"markup in a description", `<rss><channel><description><p><link>/no</link><title>x</title></description><item><description><a><link>/no</link></a></description><link>/1</link><title>One</title></item><item><description><p><link>/no</link></item><item><link>/2</link></item>`,
			[]string{`entry http://example.com/1 "One"`, "entry http://example.com/2"}},
		{"link of the feed is an entry", `<rss><channel><link>/</link><item><title>One</title><link>/</link></item><item><link>/</link><title>Two</title></item>`, []string{`entry http://example.com/ "One"`}},
		{"follow-up of RSS", `<rss><channel><atom:link rel="next" href="/2"/><atom10:link rel="prev" href="/0"/><item><atom:link rel="alternate" href="/i"/></item>`,
			[]string{"rel http://example.com/2", "rel http://example.com/0", "entry http://example.com/i"}},
		{"no follow-up of the title", `<rss><channel><item><title>One</title><link>/1</link></item><title>T</title><item><link>/2</link></item>`, []string{`entry http://example.com/1 "One"`, "entry http://example.com/2"}},
		{"self, other schemes, nothing", `<rss><channel><link>` + selfURL + `</link><item><link/></item><item><link></link></item><item/><item><link>mailto:a@b</link></item><item><link href="">x</link></item>`, nil},
		{"cut in a link", `<rss><item><link>/1</link></item><item><link>/2`, []string{"entry http://example.com/1"}},
		{"cut behind a link", `<rss><item><title>One</title><link>/1</link><desc`, []string{`entry http://example.com/1 "One"`}},
		{"long title", `<rss><item><title>` + strings.Repeat("é", 6000) + `</title><link>/1</link></item>`, []string{`entry http://example.com/1 "` + strings.Repeat("é", 50) + `"`}},
		{"title in pieces", `<rss><item><title>` + strings.Repeat("word <![CDATA[x]]>&amp;", 6000) + `</title><link>/1</link></item>`,
			[]string{`entry http://example.com/1 "` + strings.Repeat("word x&", 15)[:100] + `"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Links([]byte(tt.body), "application/rss+xml", mustParse(t, selfURL), Options{})
			if diff := cmp.Diff(tt.want, showAll(r.Links)); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
		})
	}
}

// TestXMLCharset checks that the links of a feed are found, whatever charset it declares.
func TestXMLCharset(t *testing.T) {
	const rest = `<rss><channel><item><title>%</title><link>http://example.com/a</link></item></channel></rss>`
	with := func(declaration, title string) string { return declaration + strings.Replace(rest, "%", title, 1) }
	wide := func(s string, little bool) string {
		var b strings.Builder
		for _, r := range s { // of the Basic Multilingual Plane
			if little {
				b.Write([]byte{byte(r), byte(r >> 8)})
			} else {
				b.Write([]byte{byte(r >> 8), byte(r)})
			}
		}
		return b.String()
	}
	for _, tt := range []struct{ name, contentType, body, want, title string }{
		{"nothing said, UTF-8", "", with("", "é"), "utf-8", "é"},
		{"nothing said, not UTF-8", "", with("", "\xe9"), "windows-1252", "é"},
		{"declaration", "", with(`<?xml version="1.0" encoding="ISO-8859-2"?>`, "\xb1"), "iso-8859-2", "ą"},
		{"declaration, otherwise quoted", "", with(` <?xml version='1.0' encoding = 'koi8-r' standalone='yes'?>`, "\xc1"), "koi8-r", "а"},
		{"declaration of latin1 for UTF-8", "", with(`<?xml version="1.0" encoding="iso-8859-1"?>`, "é"), "utf-8", "é"},
		{"declaration of UTF-16 for UTF-8", "", with(`<?xml version="1.0" encoding="utf-16"?>`, "é"), "utf-8", "é"},
		{"header of UTF-16 for UTF-8", "; charset=utf-16", with("", "é"), "utf-8", "é"},
		{"header before declaration", "; charset=koi8-r", with(`<?xml version="1.0" encoding="UTF-8"?>`, "\xc1"), "koi8-r", "а"},
		{"wrong header", "; charset=gbk", with("", "é"), "gbk", "茅"},
		{"declaration of UTF-8 for another", "", with(`<?xml version="1.0" encoding="UTF-8"?>`, "\xe9"), "utf-8", "\ufffd"},
		{"unknown", "; charset=x", with(`<?xml version="1.0" encoding="nonesuch"?>`, "é"), "utf-8", "é"},
		{"mark", "; charset=koi8-r", with("\ufeff", "é"), "utf-8", "é"},
		{"UTF-16 by mark", "", wide(with("\ufeff", "é"), true), "utf-16le", "é"},
		{"UTF-16 by its brackets", "", wide(with(`<?xml version="1.0" encoding="UTF-16"?>`, "é"), true), "utf-16le", "é"},
		{"UTF-16, the other way", "", wide(with("", "é"), false), "utf-16be", "é"},
		{"ISO-2022-JP", "", with(`<?xml version="1.0" encoding="iso-2022-jp"?>`, "\x1b$BF|\x1b(B"), "iso-2022-jp", "日"},
		{"unsafe", "", with(`<?xml version="1.0" encoding="hz-gb-2312"?>`, "\x80"), "replacement", "\ufffd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Links([]byte(tt.body), "application/xml"+tt.contentType, mustParse(t, selfURL), Options{})
			want := []string{`entry http://example.com/a "` + tt.title + `"`}
			name := detect([]byte(tt.body), "application/xml"+tt.contentType, true).name
			if diff := cmp.Diff(want, showAll(r.Links)); diff != "" || name != tt.want {
				t.Errorf("charset %s, want %s; links (-want +got):\n%s", name, tt.want, diff)
			}
		})
	}
}

package extract

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// hostileXML would be slow or large if a part of the scanner were not linear.
type hostileXML struct {
	name string
	make func(n int) string
}

// hostileMarkup is hostile after the first tag of any document.
var hostileMarkup = []hostileXML{
	{"levels", func(n int) string { return strings.Repeat("<a>", n/3) }},
	{"end tags", func(n int) string { return strings.Repeat("</a>", n/4) }},
	{"open brackets", func(n int) string { return strings.Repeat("<", n) }},
	{"open tags", func(n int) string { return strings.Repeat("<a ", n/3) }},
	{"open quotes", func(n int) string { return strings.Repeat(`<a b="`, n/6) }},
	{"other open quotes", func(n int) string { return strings.Repeat(`<a b='"`, n/7) }},
	{"open comments", func(n int) string { return strings.Repeat("<!--", n/4) }},
	{"open sections", func(n int) string { return strings.Repeat("<![CDATA[", n/9) }},
	{"open instructions", func(n int) string { return strings.Repeat("<?", n/2) }},
	{"open declarations", func(n int) string { return strings.Repeat(`<!DOCTYPE a [<!ENTITY b "`, n/25) }},
	{"brackets of declarations", func(n int) string { return "<!" + strings.Repeat("[<!--", n/5) }},
	{"closed sections", func(n int) string { return strings.Repeat("<![CDATA[]]>", n/12) }},
	{"text", func(n int) string { return strings.Repeat("x", n) }},
	{"one name", func(n int) string { return "<" + strings.Repeat("x", n) + ">" }},
	{"one prefix", func(n int) string { return "<" + strings.Repeat(":", n) + ">" }},
	{"attributes", func(n int) string { return "<link " + attributeBomb(n) + ">" }},
	{"attributes without names", func(n int) string { return "<link " + strings.Repeat("=", n) + ">" }},
	{"laughs", func(n int) string {
		return `<!DOCTYPE a [<!ENTITY a "` + strings.Repeat("ha", 50) + `">` + strings.Repeat(`<!ENTITY a "&a;&a;&a;&a;">`, n/27) + "]>" + strings.Repeat("&a;", 10)
	}},
}

var hostileSitemaps = behind("<urlset><url>", append([]hostileXML{
	{"locs", func(n int) string { return strings.Repeat("<loc>", n/5) }},
	{"one loc", func(n int) string { return "<loc>/" + strings.Repeat("x", n) + "</loc>" }},
	{"one loc in pieces", func(n int) string { return "<loc>/" + strings.Repeat("x<a>", n/4) + "</loc>" }},
	{"one loc of white space", func(n int) string { return "<loc>/" + strings.Repeat(" <a>", n/4) + "</loc>" }},
	{"entries", func(n int) string { return strings.Repeat("<url>", n/5) }},
	{"references", func(n int) string { return "<loc>" + strings.Repeat("&", n) + "</loc>" }},
	{"references in pieces", func(n int) string { return "<loc>" + strings.Repeat("</loc><loc>&nGt;&#x", n/18) + "</loc>" }},
	{"translations", func(n int) string { return strings.Repeat("<link rel=alternate href=1>", n/27) }},
	{"distinct locs that are dear to parse", func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "<url><loc>http://u:p@h/%d%s</loc>", i, strings.Repeat(`%zz\`, 900))
			fmt.Fprintf(&b, "<url><loc>http://%s%d/</loc>", strings.Repeat("a@", 2000), i)
		}
		return b.String()
	}},
}, hostileMarkup...))

var hostileFeeds = behind("<rss><item>", append([]hostileXML{
	{"items", func(n int) string { return strings.Repeat("<item>", n/6) }},
	{"bases", func(n int) string { return strings.Repeat("<item xml:base=a/>", n/18) }},
	{"a base that grows", func(n int) string { return "</item>" + strings.Repeat("<channel xml:base=aa/a>", n/23) }},
	{"titles", func(n int) string { return strings.Repeat("<title>&amp;amp;</title>", n/24) }},
	{"open descriptions", func(n int) string { return strings.Repeat("<description>", n/13) }},
	{"one title in pieces", func(n int) string { return "<title>" + strings.Repeat(" &amp;<a>", n/9) + "</title>" }},
	{"atom links", func(n int) string { return strings.Repeat("<link href=a/>", n/14) }},
}, hostileMarkup...))

// behind prepends the same head to all.
func behind(head string, list []hostileXML) []hostileXML {
	out := make([]hostileXML, len(list))
	for i, h := range list {
		out[i] = hostileXML{h.name, func(n int) string { return head + h.make(n) }}
	}
	return out
}

// TestMemoryXML checks that nesting and huge tokens take no additional memory. It counts all allocations, which bound the
// memory in use at any time.
func TestMemoryXML(t *testing.T) {
	self := mustParse(t, selfURL)
	for _, h := range []struct{ name, body string }{
		{"levels of a sitemap", "<urlset>" + strings.Repeat("<a>", 1<<20)},
		{"levels of a feed", "<rss>" + strings.Repeat("<a>", 1<<20)},
		{"descriptions", "<rss>" + strings.Repeat("<description>", 1<<18)},
		{"one tag", "<urlset><url><link rel=alternate href='" + strings.Repeat("x", 4<<20) + "'>"},
		{"one text", "<urlset><url><loc>" + strings.Repeat("&amp;", 1<<20)},
		{"one text in pieces", "<urlset><url><loc>" + strings.Repeat("x<a>", 1<<20)},
		{"entities", "<!DOCTYPE a [" + strings.Repeat(`<!ENTITY a "&a;&a;&a;&a;">`, 1<<17) + "]><rss>"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		Links([]byte(h.body), "text/xml; charset=utf-8", self, Options{})
		runtime.ReadMemStats(&after)
		// The call copies the body. A token above the limit takes two tokenizers, whose buffers double.
		if got := after.TotalAlloc - before.TotalAlloc - uint64(len(h.body)); got > 10*maxToken {
			t.Errorf("%s: %d bytes allocated", h.name, got)
		}
	}
}

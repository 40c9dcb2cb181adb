package extract

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// longScript is the length in bytes from which a search skips a script faster than a tokenizer.
const longScript = 512

var hostileBytes = flag.Int("hostile", 512<<10, "size of the hostile inputs, in bytes")

// hostile inputs would be slow or large if a part of the scanner were not linear.
var hostile = []struct {
	name        string
	contentType string
	make        func(n int) string
}{
	{"nested", "", func(n int) string { return strings.Repeat("<div>", n/5) }},
	{"nested anchors", "", func(n int) string { return strings.Repeat("<a href=1>", n/10) }},
	{"nested templates and drawings", "", func(n int) string { return strings.Repeat("<template><svg>", n/15) }},
	{"closed, never opened", "", func(n int) string { return strings.Repeat("</a></svg></template>", n/21) }},
	{"one tag, one value", "", func(n int) string { return `<a href="` + strings.Repeat("x", n) }},
	{"one tag, one name", "", func(n int) string { return "<" + strings.Repeat("x", n) }},
	{"one tag, many attributes", "", func(n int) string { return "<a " + attributeBomb(n) + ">" }},
	{"one tag, one attribute repeated", "", func(n int) string { return "<a " + strings.Repeat("a ", n/2) + ">" }},
	{"many attributes, then small tags", "", func(n int) string { return "<a " + attributeBomb(n/4) + ">" + strings.Repeat("<b a>", n*3/4/5) }},
	{"attributes below longTag, then small tags", "", func(n int) string {
		return "<a " + attributeBomb(longTag-5) + ">" + strings.Repeat("<b a>", n/5)
	}},
	{"attributes below maxToken, then small tags", "", func(n int) string {
		return "<a " + attributeBomb(maxToken-5) + ">" + strings.Repeat("<b a>", n/5)
	}},
	{"tags above longTag", "", func(n int) string { return strings.Repeat("<b x="+strings.Repeat("x", longTag)+">", n/longTag) }},
	{"open brackets", "", func(n int) string { return strings.Repeat("<", n) }},
	{"open tags", "", func(n int) string { return strings.Repeat("<a ", n/3) }},
	{"open end tags", "", func(n int) string { return strings.Repeat("</", n/2) }},
	{"open quotes", "", func(n int) string { return strings.Repeat(`<a href="`, n/9) }},
	{"open comments", "", func(n int) string { return strings.Repeat("<!--", n/4) }},
	{"open declarations", "", func(n int) string { return strings.Repeat("<!", n/2) }},
	{"open scripts", "", func(n int) string { return strings.Repeat("<script>", n/8) }},
	{"open comments in scripts", "", func(n int) string { return strings.Repeat("<script><!--", n/12) }},
	{"scripts that begin a comment", "", func(n int) string { return strings.Repeat("<script><!--</script>", n/21) }},
	{"scripts of ends that are none", "", func(n int) string { return "<script>" + strings.Repeat("</scrip", n/7) }},
	{"scripts stepped over", "", func(n int) string {
		return strings.Repeat("<script>"+strings.Repeat("x", longScript)+"</script>", n/(longScript+17))
	}},
	{"irregular tokens", "", func(n int) string { return strings.Repeat("</><!----!>", n/11) }},
	{"irregular attributes", "", func(n int) string { return strings.Repeat("<a href=&x>", n/11) }},
	{"open titles", "", func(n int) string { return strings.Repeat("<title>", n/7) }},
	{"text", "", func(n int) string { return "<a href=1>" + strings.Repeat(" ", n) }},
	{"brackets in text", "", func(n int) string { return strings.Repeat("<1", n/2) }},
	{"character references", "", func(n int) string {
		return "<a href=1><title>" + strings.Repeat("&a", n/4) + "</title>" + strings.Repeat("&a<b>", n/10)
	}},
	{"character references in hrefs", "", func(n int) string { return strings.Repeat("<a href=&nGt;&nGt;&nGt;>", n/24) }},
	{"sections", "application/xhtml+xml", func(n int) string { return strings.Repeat("<![CDATA[", n/9) }},
	{"hrefs to convert", "text/html; charset=gbk", func(n int) string { return strings.Repeat("<a href=\xb0\xa1>", n/11) }},
	{"white space to convert", "text/html; charset=windows-1252", func(n int) string { return "<a href=1>" + strings.Repeat("\xa0<b>", n/4) }},
	{"UTF-16", "text/html; charset=utf-16le", func(n int) string { return strings.Repeat("<\x00a\x00 \x00", n/6) }},
	{"shifts", "text/html; charset=iso-2022-jp", func(n int) string { return strings.Repeat("\x1b$B\x1b(B", n/6) }},
	{"styles", "", func(n int) string { return strings.Repeat("<p style='x:url(1'>", n/19) }},
	{"open styles", "", func(n int) string { return strings.Repeat("<style>@import '", n/16) }},
	{"images of one image", "", func(n int) string { return "<img srcset='" + strings.Repeat("1 ((,", n/5) }},
	{"open URLs of CSS", "text/css", func(n int) string { return strings.Repeat("url(", n/4) }},
	{"open strings of CSS", "text/css", func(n int) string { return strings.Repeat("@import \"", n/9) }},
	{"open comments of CSS", "text/css", func(n int) string { return strings.Repeat("/*", n/2) }},
	{"escapes of CSS", "text/css", func(n int) string { return "url(" + strings.Repeat("\\", n) }},
	{"names of CSS", "text/css", func(n int) string { return strings.Repeat("@import ", n/8) }},
	{"distinct URLs of CSS", "text/css", func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "url(%d)", i)
		}
		return b.String()
	}},
	{"distinct hrefs", "", func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "<a href=%d>", i)
		}
		return b.String()
	}},
	{"distinct hrefs that are dear to parse", "", func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, "<a href='http://u:p@h/%d%s'>", i, strings.Repeat(`%zz\`, 900))
			fmt.Fprintf(&b, "<a href='http://%s%d/'>", strings.Repeat("a@", 2000), i)
		}
		return b.String()
	}},
}

// attributeBomb returns distinct attribute names.
func attributeBomb(n int) string {
	b := make([]byte, 0, n)
	for i := 0; len(b) < n-5; i++ {
		for j := i; ; j /= 26 {
			b = append(b, byte('a'+j%26))
			if j < 26 {
				break
			}
		}
		b = append(b, ' ')
	}
	return string(b)
}

// TestMemory checks that a huge token of any kind takes only a few buffers. It counts all allocations, which bound the
// memory in use at any time.
func TestMemory(t *testing.T) {
	self := mustParse(t, selfURL)
	fill := strings.Repeat("x", 4<<20)
	for _, head := range []string{"", `<a href="`, "<", "<a ", "</a ", "<!--", "<!", "<script>", "<script><!--<script>", "<textarea>", "<title>", "<plaintext>", "<a href=1>"} {
		body := []byte(head + fill)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		HTML(body, "text/html; charset=utf-8", self, Options{})
		runtime.ReadMemStats(&after)
		// Text outside elements is read in pieces, so count per piece.
		pieces := uint64(len(body)/maxToken + 1)
		if got := after.TotalAlloc - before.TotalAlloc; got > pieces*6*maxToken {
			t.Errorf("%q and 4 MB: %d bytes allocated", head, got)
		}
	}
}

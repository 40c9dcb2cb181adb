package text

import (
	"fmt"
	"strings"
	"testing"
)

// madePage returns a page with about 5 KB of text in 15 KB of HTML: a menu, paragraphs with links, a side bar, a script.
func madePage() []byte {
	var b strings.Builder
	b.WriteString(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>How a crawler waits</title><meta name="description" content="On politeness">`)
	b.WriteString("<script>" + strings.Repeat("var a = window.dataLayer || [];\n", 60) + "</script></head><body>\n<header class=\"site-header\"><nav><ul class=\"menu\">\n")
	for i := range 25 {
		fmt.Fprintf(&b, `<li class="menu-item menu-item-%d"><a href="/section/%d/index.html" class="menu-link">Section %d</a></li>`+"\n", i, i, i)
	}
	b.WriteString("</ul></nav></header>\n<main id=\"content\"><article class=\"post\"><h1>How a crawler waits</h1>\n")
	words := strings.Fields(para + " Nothing is always on; messages wake functions, queues hold what waits, and each page is stored once, whoever asked for it first or again.")
	n := 0
	for i := range 14 {
		fmt.Fprintf(&b, "<h2 id=\"s%d\">Part %d</h2>\n<p class=\"text\">", i, i)
		for j := range 62 {
			n = (n*31 + 7 + j) % 10007
			switch w := words[n%len(words)]; {
			case j%20 == 9:
				fmt.Fprintf(&b, `<a href="/page/%d.html" title="More">%s</a> `, n, w)
			case j%15 == 4:
				fmt.Fprintf(&b, `<em>%s</em> `, w)
			default:
				b.WriteString(w + " ")
			}
		}
		b.WriteString("</p>\n")
	}
	b.WriteString("</article></main>\n<div class=\"sidebar\"><ul>\n")
	for i := range 20 {
		fmt.Fprintf(&b, `<li><a href="/other/%d.html"><span class="icon"></span> Another page %d</a></li>`+"\n", i, i)
	}
	b.WriteString("</ul></div><footer><p>Made by somebody. All rights reserved.</p></footer></body></html>\n")
	return []byte(b.String())
}

func BenchmarkExtract(b *testing.B) {
	page := madePage()
	d, _ := Extract("text/html", page, "")
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		Extract("text/html", page, "")
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
	b.ReportMetric(float64(len(d.Body)), "textbytes")
}

// BenchmarkMarkup measures the reading alone, without language and SimHash.
func BenchmarkMarkup(b *testing.B) {
	page := madePage()
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		p := newPage(page, typeHTML)
		p.readMarkup()
		p.document()
	}
}

func BenchmarkLanguage(b *testing.B) {
	d, _ := Extract("text/html", madePage(), "")
	for b.Loop() {
		language(d.Title, d.Body, "")
	}
}

func BenchmarkSimHash(b *testing.B) {
	d, _ := Extract("text/html", madePage(), "")
	b.SetBytes(int64(len(d.Body)))
	for b.Loop() {
		simHash(d.Body)
	}
}

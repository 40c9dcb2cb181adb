package extract

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// articlePage returns a page of about 30 KB with 50 links, most of them relative, like that of a small news site or a
// forum. It includes inline scripts of scriptBytes.
func articlePage(scriptBytes int) []byte {
	var b strings.Builder
	b.WriteString(`<!DOCTYPE html>
<html lang="en" class="no-js">
<head>
<meta charset="utf-8">
<title>A day at the weaver&rsquo;s loom — The Web Gazette</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="What a day at the loom teaches about patience, knots and the weather.">
<meta property="og:title" content="A day at the weaver's loom">
<link rel="stylesheet" href="/assets/site.css?v=31">
<link rel="canonical" href="https://gazette.example.org/2024/loom">
<link rel="alternate" type="application/rss+xml" href="/feed.xml" title="Feed">
`)
	b.WriteString("<script>" + strings.Repeat("window.q=window.q||[];function f(a,b){return a<b?1:2};\n", scriptBytes/56) + "</script>\n</head>\n<body>\n<nav><ul>\n")
	for i := range 20 {
		fmt.Fprintf(&b, `<li class="menu-item menu-item-%d"><a class="menu-link" href="/section/%d/" title="Section %d">Section %d</a></li>`+"\n", i, i, i, i)
	}
	b.WriteString("</ul></nav>\n<main>\n")
	for i := 0; b.Len() < 29_000; i++ {
		fmt.Fprintf(&b, `<div class="post" id="post-%d"><h2 class="title">On knots, part %d</h2>`+"\n", i, i)
		if i < 16 {
			fmt.Fprintf(&b, `<p>There is a <a href="../%d/knot.html?from=list&amp;n=%d#top">knot</a> for every purpose, and <em>no two</em> weavers agree on `, i, i)
		} else {
			b.WriteString(`<p>There is a knot for every purpose, and <em>no two</em> weavers agree on `)
		}
		b.WriteString(strings.Repeat("which of them is the one to begin with when the thread is thin and the day is long; ", 4))
		fmt.Fprintf(&b, `<img src="/img/%d.jpg" alt="knot %d" width="320" height="200" loading="lazy"></p></div>`+"\n", i, i)
	}
	b.WriteString("</main><footer>\n")
	for i := range 10 {
		fmt.Fprintf(&b, `<a href="https://partner%d.example.net/about" rel="noopener" target="_blank">Partner %d</a>`+"\n", i, i)
	}
	b.WriteString(`<a href="mailto:desk@gazette.example.org">Mail</a> <a href="#top">Top</a></footer></body></html>`)
	return []byte(b.String())
}

var benchmarkPages = []struct {
	name string
	body []byte
}{
	{"plain", articlePage(0)},
	{"scripts=20%", articlePage(6000)},
}

func BenchmarkHTML(b *testing.B) {
	self := mustParse(b, "https://gazette.example.org/2024/loom/")
	for _, contentType := range []string{"text/html", "text/html; charset=utf-8"} {
		for _, p := range benchmarkPages {
			b.Run(p.name+"/"+contentType[len("text/html"):], func(b *testing.B) {
				b.SetBytes(int64(len(p.body)))
				b.ReportAllocs()
				for b.Loop() {
					if r := HTML(p.body, contentType, self, Options{Token: "orbweaver"}); len(r.Links) != 48 {
						b.Fatalf("%d links", len(r.Links))
					}
				}
			})
		}
	}
}

// BenchmarkIrregular reads a page with the tokenizer only.
func BenchmarkIrregular(b *testing.B) {
	self := mustParse(b, "https://gazette.example.org/2024/loom/")
	for _, p := range benchmarkPages {
		b.Run(p.name, func(b *testing.B) {
			b.SetBytes(int64(len(p.body)))
			b.ReportAllocs()
			for b.Loop() {
				d := newDocument(self, Options{Token: "orbweaver"})
				d.irregular = maxIrregular + 1
				if r := d.html(p.body, "text/html", false); len(r.Links) != 48 {
					b.Fatalf("%d links", len(r.Links))
				}
				d.release()
			}
		})
	}
}

func BenchmarkTokenizerOnly(b *testing.B) {
	for _, p := range benchmarkPages {
		b.Run(p.name, func(b *testing.B) {
			b.SetBytes(int64(len(p.body)))
			b.ReportAllocs()
			for b.Loop() {
				z := html.NewTokenizer(bytes.NewReader(p.body))
				for z.Next() != html.ErrorToken {
				}
			}
		})
	}
}

// fullSitemap returns a sitemap of the largest permitted size, about 9 MB.
func fullSitemap() []byte {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
`)
	for i := range MaxListed {
		fmt.Fprintf(&b, `<url>
  <loc>https://gazette.example.org/%d/%02d/on-knots-part-%d.html?from=map&amp;n=%d</loc>
  <lastmod>20%02d-%02d-%02dT10:00:00+02:00</lastmod>
  <changefreq>weekly</changefreq>
  <priority>0.%d</priority>
</url>
`, 1990+i%30, i%12, i, i, i%24, 1+i%12, 1+i%28, i%10)
	}
	b.WriteString("</urlset>\n")
	return []byte(b.String())
}

func BenchmarkSitemap(b *testing.B) {
	self := mustParse(b, "https://gazette.example.org/sitemap.xml")
	body := fullSitemap()
	b.Run("links", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if r := Links(body, "application/xml", self, Options{}); len(r.Links) != MaxListed {
				b.Fatalf("%d links", len(r.Links))
			}
		}
	})
	b.Run("scanner only", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			var s xmlScanner
			for s.open(body, true); s.next() != html.ErrorToken; {
			}
		}
	})
	b.Run("encoding/xml only", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			d := xml.NewDecoder(bytes.NewReader(body))
			d.Strict = false
			for {
				if _, err := d.RawToken(); err != nil {
					break
				}
			}
		}
	})
}

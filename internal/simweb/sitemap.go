package simweb

import (
	"bytes"
	"strings"
	"time"
)

// Paths of sitemaps. An index names the last two.
const (
	sitemapURI       = "/sitemap.xml"
	sitemapFirstURI  = "/sitemap-1.xml"
	sitemapSecondURI = "/sitemap-2.xml.gz"
)

// sitemap says what a host has at sitemapURI.
type sitemap uint8

const (
	sitemapNone sitemap = iota
	sitemapFile
	sitemapIndex
)

// names reports whether a robots.txt of that kind can name a sitemap.
func (k robotsKind) names() bool { return k.rules() || k == robotsNone || k == robotsAllowAll }

// IsSitemap reports whether url is that of a sitemap. They are not in a [Truth].
func IsSitemap(url string) bool {
	return strings.HasSuffix(url, sitemapURI) || strings.HasSuffix(url, sitemapFirstURI) || strings.HasSuffix(url, sitemapSecondURI)
}

// listed returns the pages in a host's sitemap, ascending: those that no page links, and some others.
func (w *Web) listed(h int) []int32 {
	x := &w.hosts[h]
	if x.sitemap == sitemapNone {
		return nil
	}
	var pages []int32
	for p := range x.pages {
		switch k := x.kinds[p]; {
		case k == unlinked, k == plain && p%4 == 0:
			pages = append(pages, int32(p))
		}
	}
	return pages
}

// sitemapAnswer answers for a host's sitemaps.
func (w *Web) sitemapAnswer(h int, uri string) (Response, bool) {
	what := w.hosts[h].sitemap
	if what == sitemapNone || !strings.HasPrefix(uri, "/sitemap") {
		return Response{}, false
	}
	const mime = "application/xml"
	pages := w.listed(h)
	half := len(pages) / 2
	switch {
	case what == sitemapFile && uri == sitemapURI:
		return textResponse(200, mime, w.sitemapText(h, pages)), true
	case what == sitemapIndex && uri == sitemapURI:
		return textResponse(200, mime, w.sitemapIndexText(h)), true
	case what == sitemapIndex && uri == sitemapFirstURI:
		return textResponse(200, mime, w.sitemapText(h, pages[:half])), true
	case what == sitemapIndex && uri == sitemapSecondURI:
		return textResponse(200, "application/gzip", zip(w.sitemapText(h, pages[half:]))), true
	}
	return Response{}, false
}

const (
	xmlHead   = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	sitemapNS = " xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n"
)

// sitemapText writes a sitemap by https://www.sitemaps.org/protocol.html. It also lists the root of another
// host, which the protocol does not allow.
func (w *Web) sitemapText(h int, pages []int32) []byte {
	b := []byte(xmlHead + "<urlset" + sitemapNS)
	for _, p := range pages {
		start := len(b)
		b = w.appendURL(append(b, "<url><loc>"...), h, int(p))
		b = append(escapeFrom(b, start), "</loc><lastmod>"...)
		b = append(w.modified(h, int(p), w.version(h, int(p))).AppendFormat(b, time.RFC3339), "</lastmod></url>\n"...)
	}
	b = w.appendURL(append(b, "<url><loc>"...), w.foreign(h), 0)
	return append(b, "</loc></url>\n</urlset>\n"...)
}

// foreign returns the host whose root the sitemap of host h also lists.
func (w *Web) foreign(h int) int { return (h + 1) % len(w.hosts) }

func (w *Web) sitemapIndexText(h int) []byte {
	var b bytes.Buffer
	b.WriteString(xmlHead + "<sitemapindex" + sitemapNS)
	for _, uri := range [...]string{sitemapFirstURI, sitemapSecondURI} {
		b.WriteString("<sitemap><loc>" + w.scheme() + w.authority[h] + uri + "</loc></sitemap>\n")
	}
	b.WriteString("</sitemapindex>\n")
	return b.Bytes()
}

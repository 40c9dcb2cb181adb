// Package extract turns the bytes of a document into its links and the little that
// is kept of it besides: robots directives. It sits inside
// the fetch effect, after the body was read and before the record is packed;
// what it returns goes to the step as actor.Link.
//
// [Links] is the one way from bytes to links: it tells pages from sitemaps and
// feeds and reads each as what it is. [Wanted] says whether a body is worth its
// while, and [LinkHeader] reads the links beside the body. All are pure functions
// of their arguments, may be called from several goroutines at once and keep no
// reference to the body.
//
// Invariants:
//
//  1. Total: any bytes give a Result. There are no errors and no panics.
//  2. Links are canonical (I1), free of duplicates, in order of first appearance,
//     at most [MaxLinks] or, of a sitemap, [MaxListed], and never the document itself.
//  3. Time is linear in the body. Memory is bounded by the number of links and the
//     bounds beside it, plus one converted copy of the body if its charset does not
//     contain ASCII (UTF-16, ISO-2022-JP), plus one inflated copy if it is a sitemap
//     that was gzip. Nesting costs nothing: no tree and no stack is kept.
//
// A page is read as a browser with scripting disabled reads it: the content of
// noscript counts, that of script, style, textarea, title, comments and inert
// templates does not. The price of having no tree is that rules which need one
// (foster parenting, foreign content) are not applied. Tokens are those of
// golang.org/x/net/html; all but the odd ones are read without it, with the same
// outcome (FuzzHTML, TestRegular) in a third of the time.
//
// Sitemaps and feeds are read with the same tokenizer, because many are not
// well-formed XML. On well-formed documents the tokens equal those of encoding/xml
// (FuzzXML); docs/adr/0044-xml-by-the-html-tokenizer.md has the figures on damaged
// ones. Elements are known by their local names, since namespaces are often wrong.
// Entities that a document declares are never expanded.
//
// It does not decide what to follow, does not read headers other than Content-Type
// and Link, and looks neither into scripts nor into forms, nor into the markup that
// feeds quote.
package extract

import (
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// MaxLinks is the largest number of links that one page or feed gives.
const MaxLinks = 10_000

// MaxListed is the largest number of links that one sitemap gives: as many as one
// may list (https://www.sitemaps.org/protocol.html).
const MaxListed = 50_000

// Further bounds on one document, in bytes.
const (
	maxHref      = 2 * weburl.MaxLen // one href, without its fragment: no longer one gives a URL
	maxHrefs     = 1 << 20           // all distinct hrefs together
	maxLinked    = 4 << 20           // all URLs of a page together: short hrefs make long URLs of a long base
	maxAnchor    = 100               // actor.Link.Anchor
	maxText      = 4 << 10           // source text looked at for a piece of an anchor
	maxConverted = 2 * MaxLinks      // tags whose attributes are converted from another charset
	maxToken     = 64 << 10          // one tag; longer ones are passed over
	longTag      = 1 << 10           // a tag longer than this ends the life of its tokenizer, see scanner
	maxValue     = 2 * maxHref       // source text of one element or attribute of XML
	maxListed    = 16 << 20          // all URLs of a sitemap or feed together
)

// Result is what a page says of itself and where it points.
type Result struct {
	Links    []actor.Link
	NoIndex  bool // meta robots: the page is not to be indexed
	NoFollow bool // meta robots: no link is to be followed; every Link says so too
}

// Options are what a crawl wants of its documents. The zero value reads pages, and
// sitemaps and feeds that say they are.
type Options struct {
	// Token is the crawler's product token: <meta name=token> is obeyed beside
	// <meta name=robots>, and where they differ the stricter wins. Empty names nobody.
	Token string
	// Srcset takes the images of a page too, by src and srcset of img and source.
	Srcset bool
	// Sitemap says that the URL is known to be a sitemap: robots.txt or another
	// sitemap named it. Then it may be gzip or plain text, and of any content type.
	Sitemap bool
}

// Links extracts from a body of any content type, of which the bytes have the last
// word, see [Wanted]. What is no page, sitemap or feed gives an empty Result.
// contentType is the value of the header and may be empty; self is the document's
// own URL.
//
// A sitemap (https://www.sitemaps.org/protocol.html) gives actor.LinkListed or, an
// index, actor.LinkSitemap, with Priority and Modified; and the translations of its
// pages as actor.LinkRel. It may be gzip if its URL is known to be one or ends in
// .xml.gz. What it lists is given whatever its host: whom to believe is the crawl's
// to say.
//
// A feed of RSS or Atom gives its items as actor.LinkEntry with their titles as
// anchors, what else it links to (its site, next and previous pages) as
// actor.LinkRel, other feeds as actor.LinkFeed.
func Links(body []byte, contentType string, self weburl.URL, opt Options) Result {
	body, contentType = unzip(body, contentType, self, opt.Sitemap)
	mime := sniff(contentType, body)
	if opt.Sitemap || mime == typeXML {
		l := newListing(body, contentType, self)
		switch f := rootForm(xmlRoot(l.body)); {
		case f == formSitemap:
			return readSitemap(l)
		case f == formFeed:
			return readFeed(l)
		case f == formXHTML && mime == typeXML:
			mime = typeXHTML
		case f == noForm && opt.Sitemap && (mime == typeText || absolute(trimSpace(l.body))):
			return readLines(l)
		}
	}
	switch mime {
	case typeHTML, typeXHTML:
		return readHTML(body, contentType, self, opt, mime == typeXHTML)
	}
	return Result{}
}

// readHTML extracts from an HTML or XHTML body, whole or cut off anywhere.
//
// contentType is the value of the header, of which the charset counts; xml is whether
// it says XHTML. self is the page's own URL.
//
// Links come from a and area (href), frame and iframe (src), link (rel canonical,
// next, prev; alternate if it has no type or one of HTML or of a feed), meta
// refresh, and with Options.Srcset img and source (src, srcset). All are resolved
// against the first base element with an href, also those before it (HTML Living
// Standard, 2.4.3 document base URLs). Where several references lead to one URL,
// the link has the kind of the first, the first anchor text that is not empty, and
// is followed if any of them may be. rel=nofollow stops following; rel=ugc and
// rel=sponsored qualify a link and do not.
func readHTML(body []byte, contentType string, self weburl.URL, opt Options, xml bool) Result {
	d := newDocument(self, opt)
	defer d.release()
	return d.html(body, contentType, xml)
}

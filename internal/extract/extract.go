// Package extract finds the links and the robots directives of a document. The fetch
// effect calls it after it has read the body and before it packs the record; the step
// receives the links as actor.Link.
//
// [Links] tells pages, sitemaps and feeds apart and reads each of them. [Wanted] reports
// whether a body can have links, and [AddLinkHeader] reads the links of the header. All
// are pure functions of their arguments, safe for concurrent use, and keep no reference
// to the body.
//
// Invariants:
//
//  1. Total: any bytes give a Result. There are no errors and no panics.
//  2. Links are canonical (I1), free of duplicates, in order of first appearance,
//     at most [MaxLinks] and [MaxRequisites] ([MaxListed] of a sitemap), and never the document itself.
//  3. Time is linear in the body. Memory is bounded by the limits in this file, plus
//     one converted copy of the body if its charset does not contain ASCII (UTF-16,
//     ISO-2022-JP), plus one decompressed copy of a sitemap in gzip. Nesting costs
//     nothing: there is no tree and no stack.
//
// Pages are read as in a browser with scripting disabled: the content of noscript
// counts, that of script, style, textarea, title, comments and inert templates does
// not. Rules that need a tree (foster parenting, foreign content) do not apply. The
// tokens are those of golang.org/x/net/html. Regular tokens are read without it, with
// the same result (FuzzHTML, TestRegular) in a third of the time.
//
// Sitemaps and feeds are read with the same tokenizer, because many are not
// well-formed XML. On well-formed documents the tokens equal those of encoding/xml
// (FuzzXML); docs/adr/0045-xml-by-the-html-tokenizer.md has the figures on damaged
// ones. Elements are known by their local names, since namespaces are often wrong.
// Entities that a document declares are never expanded.
//
// [Decoder] undoes the content codings of bodies, for the callers of Links too.
//
// The package does not decide which links to follow, reads no headers except
// Content-Type, Content-Encoding and Link, and ignores the content of scripts, forms, and the markup inside feeds.
package extract

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// MaxLinks bounds the links of one page or feed.
const MaxLinks = 10_000

// MaxRequisites bounds the requisites of one page or style sheet, beside its links.
const MaxRequisites = 2000

// MaxListed bounds the links of one sitemap, as its protocol does
// (https://www.sitemaps.org/protocol.html).
const MaxListed = 50_000

// Further bounds on one document, in bytes.
const (
	maxHref      = 2 * weburl.MaxLen // one href, without its fragment; a longer one is not a URL
	maxHrefs     = 1 << 20           // all distinct hrefs together
	maxLinked    = 4 << 20           // all URLs of a page together; a long base makes short hrefs long
	maxAnchor    = 100               // actor.Link.Anchor
	maxText      = 4 << 10           // source text of a piece of an anchor
	maxConverted = 2 * MaxLinks      // tags whose attributes are converted from another charset
	maxToken     = 64 << 10          // one tag; longer tags are skipped
	longTag      = 1 << 10           // a tag longer than this ends the life of its tokenizer, see scanner
	maxValue     = 2 * maxHref       // source text of one element or attribute of XML
	maxListed    = 16 << 20          // all URLs of a sitemap or feed together

	maxTitle       = 300     // blobschema.Meta.Title and H1
	maxDescription = 500     // blobschema.Meta.Description
	maxLang        = 35      // a language tag (RFC 5646 section 4.4.1)
	maxAlternates  = 50      // number of blobschema.Meta.Hreflang
	maxTranslated  = 8 << 10 // all URLs of them together
	MaxDirectives  = 200     // Result.Directives
)

// Result is what a document says about itself, and its links.
type Result struct {
	Links      []actor.Link
	NoIndex    bool            // meta robots forbids to index the page
	NoFollow   bool            // meta robots forbids to follow any link; every Link says so too
	Meta       blobschema.Meta // of a page
	Directives string          // content of meta robots, of a page; several are joined by ", "
}

// Options are the settings of a crawl. The zero value reads pages, and recognizable sitemaps and feeds.
type Options struct {
	// Token is the crawler's product token. <meta name=TOKEN> counts like <meta name=robots>; if they differ,
	// the stricter one wins.
	Token string
	// Requisites adds what a page or a style sheet needs to be displayed.
	Requisites bool
	// Sitemap says that robots.txt or another sitemap named the URL as a sitemap. The body may then be gzip or
	// plain text, with any content type.
	Sitemap bool
}

// Links extracts the links of a body of any content type. The bytes count more than the type, see [Wanted].
// The Result is empty if the body is not a page, sitemap or feed. contentType is the value of the header and
// may be empty; self is the document's own URL.
//
// The links of a sitemap (https://www.sitemaps.org/protocol.html) are actor.LinkListed, or actor.LinkSitemap in
// an index, with Priority and Modified; translations of its pages are actor.LinkRel. A sitemap may be gzip if
// Options.Sitemap is set or its URL ends in .xml.gz. The links may be on any host: the crawl decides which to
// trust.
//
// The items of an RSS or Atom feed are actor.LinkEntry with their titles as anchors. Its other links (site, next
// and previous page) are actor.LinkRel, and other feeds are actor.LinkFeed.
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
	case typeCSS:
		return readCSS(body, self, opt)
	}
	return Result{}
}

// readHTML extracts the links of an HTML or XHTML body, which may be cut off anywhere. Only the charset of
// contentType counts; xml says that the page is XHTML.
//
// Links come from a and area (href), frame and iframe (src), link (rel canonical,
// next, prev; alternate if it has no type or one of HTML or of a feed), meta
// refresh; requisites come from the elements and properties in requisites.go. All are resolved
// against the first base element with an href, also those before it (HTML Living
// Standard, 2.4.3 document base URLs). If several references lead to one URL, the link
// has the kind of the first that is no requisite, the first anchor text that is not empty, and NoFollow only if
// all of them have it, requisites aside. rel=nofollow sets NoFollow; rel=ugc and rel=sponsored do not.
func readHTML(body []byte, contentType string, self weburl.URL, opt Options, xml bool) Result {
	d := newDocument(self, opt)
	defer d.release()
	return d.html(body, contentType, xml)
}

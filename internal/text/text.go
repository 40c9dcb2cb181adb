// Package text turns the bytes of a page into what is searched of it: title,
// headings, and the main text without navigation, and what is told beside: language,
// a description, when it was published, and a hash that near-duplicates share. It
// stands between stored pages and internal/token, in the index step.
//
// [Extract] is a pure function of its arguments, may be called from several goroutines
// at once and keeps no reference to the body. Any bytes give a [Document] or none; time
// is linear in their number, and what is looked at is bounded by [MaxHTML]. No tree is
// built: the tokens of golang.org/x/net/html are read once into blocks of text, and boxes around
// them, as many as there are tags; nesting beyond 256 is not followed.
//
// What is left out of a page is told by its own words (nav, footer, class="sidebar") and by
// the share of links in a box, never where that would take most of the running text:
// leaving out too much is worse than too little. If less than a quarter of the
// visible text would be left, nothing is left out but what the elements say, such as nav
// and footer.
package text

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/orbweaver/orbweaver/internal/extract"
)

// Bounds, in bytes.
const (
	MaxHTML        = 4 << 20  // of a body: the rest is not read
	MaxText        = 1 << 20  // Document.Body
	maxTitle       = 1 << 10  // Document.Title
	maxHeadings    = 64 << 10 // Document.Headings
	maxAside       = 64 << 10 // Document.Aside
	maxDescription = 2 << 10  // Document.Description
)

// Document is what is searchable of a page. All text is valid UTF-8, with white space
// folded, no longer than the bounds above.
type Document struct {
	Title       string    // of the title element, or else of og:title, or the first heading
	Headings    string    // of h1 to h6, one a line
	Body        string    // main text without boilerplate, paragraphs one a line, headings among them
	Aside       string    // link-rich parts of the text that Body lacks, such as see-also lists and footnotes
	Description string    // meta description or og:description, may be empty
	Lang        string    // ISO 639-1 code, "" if unknown
	SimHash     uint64    // of the words of Body by threes; near-duplicates differ in few bits; 0 for an empty body
	NoIndex     bool      // meta robots says noindex or none, to all or to the token given
	Published   time.Time // as the page says, in UTC; zero if it does not
}

// Options are what the index wants of documents.
type Options struct {
	// Token is the crawler's product token: <meta name=token> is obeyed beside <meta name=robots>.
	Token string
}

// Extract returns what is searchable of a decoded body. contentType is the value of the
// header with its charset parameter; it may be empty or wrong, for the bytes have
// the last word. url is the page's address: plain text is Markdown if it ends in .md.
//
// ok is false for what is not text or has none to search: images, PDF, scripts and style
// sheets, JSON, sitemaps, binary that claims to be text, and types that are unknown. HTML, XHTML, other XML, Markdown and
// plain text give a document, which may be empty.
func Extract(contentType string, body []byte, url string) (doc Document, ok bool) {
	return Options{}.extract(contentType, body, url)
}

// extract is [Extract] with options.
func (o Options) extract(contentType string, body []byte, url string) (doc Document, ok bool) {
	body = body[:min(len(body), MaxHTML)]
	if magic(body) {
		return doc, false
	}
	mime := extract.Media(contentType, body)
	if (mime == typeText || mime == "") && markdownURL(url) {
		mime = typeMarkdown
	}
	read := reader(mime)
	if read == nil {
		return doc, false
	}
	body = extract.UTF8(body, contentType, mime != typeHTML)
	if binary(body) {
		return doc, false
	}
	p := newPage(body, mime, o.Token)
	defer p.release()
	read(p)
	doc = p.document()
	doc.SimHash = simHash(doc.Body)
	doc.Lang = language(doc.Title, doc.Body, p.lang)
	return doc, true
}

const (
	typeHTML     = "text/html"
	typeXHTML    = "application/xhtml+xml"
	typeSitemap  = "application/x-sitemap+xml"
	typeText     = "text/plain"
	typeMarkdown = "text/markdown"
)

// reader returns what reads bodies of a media type, nil if nothing does.
func reader(mime string) func(*page) {
	switch {
	case mime == typeSitemap:
		return nil
	case mime == typeHTML || extract.XML(mime):
		return (*page).readMarkup
	case mime == typeMarkdown || mime == "text/x-markdown":
		return (*page).readMarkdown
	case mime == "" || mime == typeText:
		return (*page).readText
	case mime == "text/css" || mime == "text/javascript" || mime == "text/ecmascript" || mime == "text/calendar" || mime == "text/vcard":
		return nil
	case strings.HasPrefix(mime, "text/"):
		return (*page).readText
	}
	return nil
}

// markdownURL reports whether the path of an address says that it is Markdown: servers
// seldom do.
func markdownURL(url string) bool {
	url, _, _ = strings.Cut(url, "?")
	return strings.HasSuffix(url, ".md") || strings.HasSuffix(url, ".markdown")
}

// magic reports whether a body begins as a file of another kind does, whatever it
// claims to be.
func magic(body []byte) bool {
	for _, m := range [...]string{
		"%PDF-", "PK\x03\x04", "\x1f\x8b", "\x89PNG", "GIF8", "\xff\xd8\xff", "RIFF", "Rar!", "7z\xbc\xaf", "BZh", "\xfd7zXZ",
		"\x7fELF", "OggS", "ID3", "\x00\x00\x01\x00", "wOFF", "wOF2", "\xd0\xcf\x11\xe0", "%!PS", "\x00asm",
	} {
		if bytes.HasPrefix(body, []byte(m)) {
			return true
		}
	}
	return false
}

// binary reports whether more than one in twenty of the first characters, and more than
// three, are none that text has.
func binary(body []byte) bool {
	const looked = 4 << 10
	head := body[:min(len(body), looked)]
	all, bad := 0, 0
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if n == 1 && r == utf8.RuneError && len(head) < utf8.UTFMax {
			break // cut here, not damaged
		}
		head = head[n:]
		all++
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f' && r != 0x1b || r == 0x7f || r == utf8.RuneError {
			bad++
		}
	}
	return bad > 3+all/20
}

// Package text extracts the searchable text of a page: title, headings and the main text without
// navigation. It also finds the language, the description, the date of publication, and a hash that near-duplicates
// share. The index step calls it on stored pages and passes its result to internal/token.
//
// [Extract] is a pure function. Any bytes give a [Document] or none. Time is linear in their number, and [MaxHTML] bounds
// the bytes that are read. The package builds no tree: it reads the tokens of golang.org/x/net/html once into blocks
// of text and the boxes around them, as flat slices (markup.go). Then it decides which of them are main text (choose.go).
//
// Element names, words in class and id, and the share of links decide what to leave out, but never most of the running
// text: lost text cannot be found, while boilerplate only ranks low. A rule that would leave less than a third of the
// text is not applied to the page. docs/adr/0030-text-and-tokens.md compares the result with libraries.
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
	MaxHTML        = 4 << 20  // of a body; the rest is not read
	MaxText        = 1 << 20  // Document.Body
	maxTitle       = 1 << 10  // Document.Title
	maxHeadings    = 64 << 10 // Document.Headings
	maxAside       = 64 << 10 // Document.Aside
	maxDescription = 2 << 10  // Document.Description
)

// Document is the searchable content of a page. All text is valid UTF-8 with folded white space.
type Document struct {
	Title       string    // the title element, otherwise og:title or the first heading
	Headings    string    // h1 to h6, one a line
	Body        string    // main text without boilerplate, one paragraph a line, with its headings
	Aside       string    // link-rich parts of the text that Body lacks, such as see-also lists and footnotes
	Description string    // meta description or og:description, may be empty
	Lang        string    // ISO 639-1 code, "" if unknown
	SimHash     uint64    // of the three-word sequences of Body; 0 for an empty body
	Published   time.Time // as the page says, in UTC; zero if it does not
}

// Extract returns the searchable content of a decoded body. contentType is the value of the header; it may be empty or wrong,
// because the bytes decide. url is the page's address: plain text is Markdown if the address ends in .md.
//
// ok is false if there is no text to search: images, PDF, scripts, style sheets, JSON, sitemaps, unknown types, and
// binary data whatever its declared type. HTML, other XML, Markdown and plain text give a document, which may be empty.
func Extract(contentType string, body []byte, url string) (doc Document, ok bool) {
	p, read := openPage(contentType, body, url)
	if p == nil {
		return doc, false
	}
	read(p)
	doc = p.document()
	doc.SimHash = simHash(doc.Body)
	doc.Lang = language(doc.Title, doc.Body, p.lang)
	return doc, true
}

// openPage returns a page that is not read yet, and its reader; nil if there is no text to read.
func openPage(contentType string, body []byte, url string) (*page, func(*page)) {
	body = body[:min(len(body), MaxHTML)]
	mime := extract.Media(contentType, body)
	if (mime == typeText || mime == "") && markdownURL(url) {
		mime = typeMarkdown
	}
	read := reader(mime)
	if read == nil {
		return nil, nil
	}
	text := extract.UTF8(body, contentType, mime != typeHTML)
	if binary(body, text) {
		return nil, nil
	}
	return newPage(text, mime), read
}

const (
	typeHTML     = "text/html"
	typeXHTML    = "application/xhtml+xml"
	typeSitemap  = "application/x-sitemap+xml"
	typeText     = "text/plain"
	typeMarkdown = "text/markdown"
)

// reader returns the reader for bodies of a media type, or nil.
func reader(mime string) func(*page) {
	switch mime {
	case typeSitemap, "text/css", "text/javascript", "text/ecmascript", "text/calendar", "text/vcard":
		return nil
	case typeMarkdown, "text/x-markdown":
		return (*page).readMarkdown
	case typeHTML:
		return (*page).readMarkup
	}
	switch {
	case extract.XML(mime):
		return (*page).readMarkup
	case mime == "" || strings.HasPrefix(mime, "text/"):
		return (*page).readText
	}
	return nil
}

// markdownURL reports whether an address names a Markdown file; servers seldom declare the type.
func markdownURL(url string) bool {
	url, _, _ = strings.Cut(url, "?")
	return strings.HasSuffix(url, ".md") || strings.HasSuffix(url, ".markdown")
}

// binary reports whether a body is not text: it begins like PDF or PostScript, or of its first characters more than three,
// and more than one in twenty, do not occur in text.
func binary(body, decoded []byte) bool {
	if bytes.HasPrefix(body, []byte("%PDF-")) || bytes.HasPrefix(body, []byte("%!PS")) {
		return true
	}
	const looked = 4 << 10
	all, bad := 0, 0
	for head := decoded[:min(len(decoded), looked)]; len(head) > 0; all++ {
		r, n := utf8.DecodeRune(head)
		if n == 1 && r == utf8.RuneError && len(head) < utf8.UTFMax {
			break // the last character is cut off
		}
		head = head[n:]
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f' && r != 0x1b || r == 0x7f || r == utf8.RuneError {
			bad++
		}
	}
	return bad > 3+all/20
}

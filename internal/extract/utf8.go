package extract

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Media returns the effective media type of a body, in lower case and without
// parameters. This is the type of the Content-Type header unless that says nothing or the body is
// XML whose first element says more. It is application/xhtml+xml for XHTML,
// application/x-sitemap+xml for sitemaps, and application/xml for other XML, including feeds. It
// is empty if neither header nor body decides.
func Media(contentType string, body []byte) string {
	mime := sniff(contentType, body)
	if mime == typeXML {
		switch rootForm(xmlRoot(body[:min(len(body), maxProlog)])) {
		case formXHTML:
			return typeXHTML
		case formSitemap:
			return typeSitemap
		}
	}
	return mime
}

const (
	typeSitemap = "application/x-sitemap+xml"
	maxProlog   = 16 << 10 // bytes in which the first element must begin
)

// UTF8 returns a document in UTF-8 without a byte order mark. It finds the charset as
// browsers do; if xml is set, it applies the rules for XML and plain text. Bytes that cannot be
// decoded become U+FFFD. The result may share memory with the body.
func UTF8(body []byte, contentType string, xml bool) []byte {
	body, t := decoded(body, contentType, xml)
	switch {
	case t.foreign(body):
		return t.decode(body)
	case utf8.Valid(body):
		return body
	}
	return bytes.ToValidUTF8(body, []byte("\ufffd"))
}

// XML reports whether a media type is one of XML, as [Media] returns them.
func XML(mime string) bool {
	return mime == typeXML || mime == typeXHTML || strings.HasPrefix(mime, "application/") && strings.HasSuffix(mime, "+xml")
}

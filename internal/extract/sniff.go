package extract

import (
	"bytes"
	"strings"
)

// sniffed is the number of bytes that suffice to recognise a body.
const sniffed = 512

const (
	typeHTML  = "text/html"
	typeXHTML = "application/xhtml+xml"
	typeXML   = "application/xml"
	typeText  = "text/plain"
	typeCSS   = "text/css"
)

// Wanted reports whether [Links] may find links in a body, so that it must be read
// whole. head is the beginning of the body without its content coding: 512 bytes
// suffice, and it may be empty if the content type decides.
// If Wanted is true for an empty head, it is true for any head.
func Wanted(contentType string, head []byte, opt Options) bool {
	if opt.Sitemap {
		return true
	}
	switch mime := sniff(contentType, head); mime {
	case typeHTML, typeXHTML, typeXML:
		return true
	case typeCSS:
		return opt.Requisites
	default:
		// Links decompresses the body if its URL may be a sitemap.
		return (gzipType(mime) || saysNothing(mime)) && gzipped(head) || gzipType(mime) && sniff("", head) == typeXML
	}
}

// sniff returns the effective media type of a body: in most cases the type and
// subtype of the Content-Type header in lower case, without parameters. All types of
// XML except XHTML are application/xml. If the header is missing or says nothing,
// a body that begins as HTML does is text/html, and one that begins as XML does is
// application/xml. So is a sitemap or feed that claims to be text/html (for feeds,
// MIME Sniffing Standard, section 7.3).
func sniff(contentType string, body []byte) string {
	mime := strings.ToLower(essence(contentType))
	head := body[:min(len(body), sniffed)]
	switch {
	case mime == "text/xml" || mime == "application/rss+xml" || mime == "application/atom+xml" || mime == "application/rdf+xml":
		return typeXML
	case mime == typeHTML || saysNothing(mime):
		if f := rootForm(xmlRoot(head)); f == formSitemap || f == formFeed {
			return typeXML
		}
	}
	switch {
	case !saysNothing(mime):
		return mime
	case looksXML(head):
		return typeXML
	case looksHTML(head):
		return typeHTML
	}
	return mime
}

// saysNothing reports whether a media type, in lower case, is that of arbitrary bytes or one
// of the unknown types of the MIME Sniffing Standard.
func saysNothing(mime string) bool {
	switch mime {
	case "", "application/octet-stream", "unknown/unknown", "application/unknown", "*/*":
		return true
	}
	return false
}

// gzipType reports whether a media type, in lower case, is that of gzip.
func gzipType(mime string) bool {
	return mime == "application/gzip" || mime == "application/x-gzip"
}

// essence cuts the parameters off a media type.
func essence(contentType string) string {
	mime, _, _ := strings.Cut(contentType, ";")
	return strings.Trim(mime, " \t\r\n")
}

// looksHTML matches the HTML patterns of the MIME Sniffing Standard, section 7.1:
// one of these, followed by a space or a closing bracket, after white space.
func looksHTML(body []byte) bool {
	b := trimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	for _, tag := range [...]string{
		"<!doctype html", "<html", "<head", "<script", "<iframe", "<h1", "<div", "<font",
		"<table", "<a", "<style", "<title", "<b", "<body", "<br", "<p", "<!--",
	} {
		if len(b) > len(tag) && (b[len(tag)] == ' ' || b[len(tag)] == '>') && equalFold(b[:len(tag)], tag) {
			return true
		}
	}
	return false
}

// looksXML reports whether a body begins with an XML declaration.
func looksXML(body []byte) bool {
	b := trimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	return bytes.HasPrefix(b, []byte("<?xml")) && len(b) > len("<?xml") && space(b[len("<?xml")])
}

// absolute reports whether a reference is an absolute web URL.
func absolute(ref []byte) bool {
	const http, https = "http://", "https://"
	return len(ref) > len(http) && equalFold(ref[:len(http)], http) || len(ref) > len(https) && equalFold(ref[:len(https)], https)
}

// A form is the kind of an XML document.
type form uint8

const (
	noForm form = iota
	formSitemap
	formFeed
	formXHTML
)

// rootForm returns the form of a document whose first element has a local name.
func rootForm(root []byte) form {
	for _, r := range [...]struct {
		name string
		form form
	}{
		{"urlset", formSitemap}, {"sitemapindex", formSitemap},
		{"rss", formFeed}, {"rdf", formFeed}, {"feed", formFeed},
		{"html", formXHTML},
	} {
		if equalFold(root, r.name) {
			return r.form
		}
	}
	return noForm
}

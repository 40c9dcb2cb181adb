package extract

import (
	"bytes"
	"strings"
)

const (
	typeHTML  = "text/html"
	typeXHTML = "application/xhtml+xml"
)

// Wanted reports whether a body is worth having whole because [Links] may find
// something in it. head is how it begins, decoded: 512 bytes tell, and none will do
// where the content type does. sitemap is Options.Sitemap.
func Wanted(contentType string, head []byte, sitemap bool) bool {
	switch sniff(contentType, head) {
	case typeHTML, typeXHTML:
		return true
	}
	return sitemap
}

// sniff returns the media type to treat a body as: the type and subtype of the
// Content-Type header in lower case, without parameters. If the header is missing
// or says nothing (application/octet-stream and the unknown types of the MIME
// Sniffing Standard), text/html is returned for a body that begins as HTML does,
// and what the header says, perhaps the empty string, for any other.
func sniff(contentType string, body []byte) string {
	mime := strings.ToLower(essence(contentType))
	switch mime {
	case "", "application/octet-stream", "unknown/unknown", "application/unknown", "*/*":
		if looksHTML(body) {
			return typeHTML
		}
	}
	return mime
}

// essence cuts the parameters off a media type.
func essence(contentType string) string {
	mime, _, _ := strings.Cut(contentType, ";")
	return strings.Trim(mime, " \t\r\n")
}

// looksHTML matches the HTML patterns of the MIME Sniffing Standard, section 7.1:
// one of these, followed by a space or a closing bracket, after white space.
func looksHTML(body []byte) bool {
	b := body[:min(len(body), 512)]
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	b = bytes.TrimLeft(b, "\t\n\f\r ")
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

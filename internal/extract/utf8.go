package extract

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Media returns the media type to treat a body as, in lower case and without
// parameters: that of the Content-Type header, unless it says nothing, or a sitemap or
// feed claims to be a page. It is empty where neither header nor body tells.
func Media(contentType string, body []byte) string { return sniff(contentType, body) }

// UTF8 returns a document in UTF-8 and without a byte order mark: the charset is found as
// browsers do, as that of XML and plain text if xml is set, see [HTML]. What cannot be
// decoded becomes U+FFFD. The result may share memory with the body.
func UTF8(body []byte, contentType string, xml bool) []byte {
	var cs detected
	if xml {
		cs = detectXML(body, contentType)
	} else {
		cs = detect(body, contentType)
	}
	body = body[cs.bom:]
	dec := decoder{enc: cs.enc}
	switch {
	case cs.wide || dec.foreign(body):
		return dec.decode(body)
	case utf8.Valid(body):
		return body
	}
	return bytes.ToValidUTF8(body, []byte("\ufffd"))
}

// XML reports whether a media type is one of XML.
func XML(mime string) bool {
	return mime == typeXML || mime == typeXHTML || strings.HasPrefix(mime, "application/") && strings.HasSuffix(mime, "+xml")
}

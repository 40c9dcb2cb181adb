package extract

import (
	"bytes"
	"strings"

	"github.com/orbweaver/orbweaver/internal/inflate"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// unzip inflates a body that is a gzip file, which is not to be mistaken for a
// content coding: sitemaps are kept as sitemap.xml.gz, and that is what servers
// send. It is done only to what its URL says is a sitemap. The content type then
// speaks of the file and not of what is in it, unless it is one of XML.
func unzip(body []byte, contentType string, self weburl.URL, sitemap bool) ([]byte, string) {
	if !sitemap && !strings.HasSuffix(self.Path(), ".xml.gz") {
		return body, contentType
	}
	if gzipType(strings.ToLower(essence(contentType))) {
		contentType = ""
	}
	if gzipped(body) {
		body = gunzip(body)
	}
	return body, contentType
}

// gzipped reports whether a body begins as a gzip file does (RFC 1952 section 2.3).
func gzipped(body []byte) bool { return bytes.HasPrefix(body, []byte("\x1f\x8b\x08")) }

// gunzip returns what is in a gzip file: of one that is broken, or too large inside,
// what comes before.
func gunzip(body []byte) []byte {
	limit := min(maxUnzipped, max(alwaysFine, maxRatio*len(body)))
	var d inflate.Decoder
	out, _ := d.Gzip(make([]byte, 0, min(limit, 8*len(body))), body, limit) // broken, or too large: see above
	return out
}

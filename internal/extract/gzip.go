package extract

import (
	"bytes"
	"strings"

	"github.com/orbweaver/orbweaver/internal/weburl"
)

// unzip decompresses a body that is a gzip file. This is not a content coding: many sites store
// sitemap.xml.gz and serve the file as it is. unzip considers only URLs of sitemaps. It drops the
// content type if that describes the gzip file and not the file inside.
func unzip(body []byte, contentType string, self weburl.URL, sitemap bool) ([]byte, string) {
	if !sitemap && !strings.HasSuffix(self.Path(), ".xml.gz") {
		return body, contentType
	}
	if gzipType(strings.ToLower(essence(contentType))) {
		contentType = ""
	}
	if gzipped(body) {
		var d Decoder
		d.Open(body, "gzip")
		body = d.UpTo(DecodedLimit(len(body), MaxDecoded))
	}
	return body, contentType
}

// gzipped reports whether a body begins as a gzip file does (RFC 1952 section 2.3).
func gzipped(body []byte) bool { return bytes.HasPrefix(body, []byte("\x1f\x8b\x08")) }

package warc

import (
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// InfoFields describes the crawl at the start of a WARC file (section 6.2).
// Empty fields are left out.
type InfoFields struct {
	Software  string       // name and version of the crawler
	Operator  string       // whom to write to
	Hostname  string       // machine that wrote the file
	UserAgent string       // User-Agent header sent with each request
	IsPartOf  string       // the crawl's id
	Robots    RobotsPolicy // empty: RobotsObey
}

// RobotsPolicy is the "robots" field of a warcinfo record (section 6.2).
type RobotsPolicy string

// The policies: classic means the exclusion standard of 1994; obey is what
// crawlers write that follow its successors, such as RFC 9309.
const (
	RobotsObey    RobotsPolicy = "obey"
	RobotsClassic RobotsPolicy = "classic"
)

// Info returns the record that a WARC file begins with. Filename is the
// file's name without folders. Control characters in fields become spaces.
func Info(date time.Time, filename string, f InfoFields) *Record {
	if f.Robots == "" {
		f.Robots = RobotsObey
	}
	var b []byte
	for _, field := range [...]HeaderField{
		{"software", f.Software},
		{"format", "WARC File Format 1.1"},
		{"conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"},
		{"robots", string(f.Robots)},
		{"http-header-user-agent", f.UserAgent},
		{"operator", f.Operator},
		{"hostname", f.Hostname},
		{"isPartOf", f.IsPartOf},
	} {
		if field.Value != "" {
			b = appendHTTPField(b, field.Name, strings.ToValidUTF8(field.Value, "\ufffd"))
		}
	}
	return &Record{Type: TypeInfo, Date: date, Filename: filename, ContentType: "application/warc-fields", Body: b}
}

// Revisit returns the record of a capture whose payload is that of an earlier one,
// of, and is not stored again (section 6.7). Profile is ProfileNotModified for an answer
// that says so itself, or ProfileIdenticalPayload for one whose payload has the same
// digest. Digest is that of the payload; ip is the server's address or empty; head is the
// answer's start line and fields, with the blank line that ends them, or nil: replay shows the
// header of a revisit where it has one, and that of a 304 shows nothing. The caller may set
// ConcurrentTo.
//
// An identical payload that is left out is marked as truncated, which section 6.7.2
// demands. Refers-To is not given: it would need the original's block, and target and date
// name the original as well.
func Revisit(date time.Time, target, ip, profile, digest string, of blobschema.Original, head []byte) Record {
	r := Record{
		Type: TypeRevisit, Date: date, TargetURI: target, IPAddress: ip, Profile: profile, PayloadDigest: digest,
		RefersToTargetURI: of.URL, RefersToDate: of.Time, Header: head,
	}
	if profile == ProfileIdenticalPayload {
		r.Truncated = TruncatedLength
	}
	return r
}

package warc

import (
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Bounds of one record, which both writer and reader check.
const (
	MaxHeader     = 64 << 10 // bytes of the record header, its blank line included
	MaxBlock      = 64 << 20 // bytes of the block (Header and Body)
	MaxHTTPHeader = 1 << 20  // bytes of Record.Header
)

// Type is the type of a record (WARC 1.1 section 5.5). A reader skips unknown
// types.
type Type string

// The types that a crawl writes; sections 6.2 to 6.7 define them.
const (
	TypeInfo     Type = "warcinfo"
	TypeResponse Type = "response"
	TypeRequest  Type = "request"
	TypeRevisit  Type = "revisit"
)

// Values of Record.Truncated (section 5.15).
const (
	TruncatedLength = "length" // longer than the configured bound
	TruncatedTime   = "time"   // took longer than the configured bound
)

// Values of Record.Profile, for revisit records (section 6.7).
const (
	ProfileIdenticalPayload = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	ProfileNotModified      = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
)

// Record is one record of a WARC file. Its block is Header followed by Body, or by Chunks if Body was received in
// chunks. They are separate to save a copy, and to make
// Body the payload. The zero value of a field means that it is absent.
//
// URIs and record ids are without angle brackets.
type Record struct {
	Type              Type
	Date              time.Time // start of the capture, shared by all records of one capture (5.4); written in UTC, to the microsecond
	TargetURI         string    // RFC 3986 (5.14)
	ContentType       string    // of the block (5.6); empty with a Header: application/http with the msgtype of the record
	IPAddress         string    // of the server (5.10)
	ConcurrentTo      string    // id of another record of the same capture (5.7)
	RefersToTargetURI string    // revisit only (5.12)
	RefersToDate      time.Time // revisit only (5.13)
	Truncated         string    // why Body is incomplete (5.15); see TruncatedLength
	Profile           string    // revisit only, and mandatory there (5.18)
	Protocol          string    // of the capture, "h2" for HTTP/2, whose Header is written in the form of HTTP/1.1; empty: as Header says
	PayloadDigest     string    // of the payload (5.9); empty: Append computes it where a payload is defined
	Filename          string    // warcinfo only: name of the file (5.17)

	Header []byte // HTTP start line and fields with the blank line that ends them, or nil
	Body   []byte // without transfer coding
	Chunks []byte // Body in the chunked transfer coding (RFC 9112 section 7.1), if it was received so, else nil
	Packed bool   // Body is already compressed, so Append stores it as is; not set by the reader

	// The reader sets the other fields. Append ignores them.
	ID          string // 5.2
	BlockDigest string // 5.8
	Offset      int64  // of the record, or of its gzip member, in the input; bytes
	Length      int64  // bytes of the record or its member, as stored
}

// InfoFields describes the crawl at the start of a WARC file (section 6.2).
// Empty fields are left out.
type InfoFields struct {
	Software  string // name and version of the crawler
	UserAgent string // User-Agent header sent with each request
	IsPartOf  string // id of the crawl
}

// Info returns the record that a WARC file begins with. Filename is the
// file's name without folders. Control characters in fields become spaces.
func Info(date time.Time, filename string, f InfoFields) *Record {
	var b []byte
	for _, field := range [...]HeaderField{
		{"software", f.Software},
		{"format", "WARC File Format 1.1"},
		{"conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"},
		{"robots", "obey"}, // the value for crawlers that follow RFC 9309
		{"http-header-user-agent", f.UserAgent},
		{"isPartOf", f.IsPartOf},
	} {
		if field.Value != "" {
			b = appendHTTPField(b, field.Name, strings.ToValidUTF8(field.Value, "\ufffd"))
		}
	}
	return &Record{Type: TypeInfo, Date: date, Filename: filename, ContentType: "application/warc-fields", Body: b}
}

// Revisit returns the record of a capture whose payload equals that of the earlier capture
// of and is not stored again (section 6.7). Profile is ProfileNotModified for a 304,
// or ProfileIdenticalPayload for an answer whose payload has the same
// digest. Digest is the payload's digest; ip is the server's address or empty; head is the
// answer's start line and fields, with the blank line that ends them, or nil. Replay tools
// show head if there is one; pass nil for a 304, for which a browser shows nothing. The caller may
// set ConcurrentTo.
//
// A record without its identical payload is marked as truncated, as section 6.7.2
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

// stored returns the part of r's block behind Header.
func (r *Record) stored() []byte {
	if r.Chunks != nil {
		return r.Chunks
	}
	return r.Body
}

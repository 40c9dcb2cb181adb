// Package weburl holds canonical web URLs and the keys derived from them. It
// imports no other package of this module: links, seeds, redirects and stored
// addresses all become a [URL] here, once, and the others compare, hash and
// print what comes out.
//
// # What canonical means
//
// A canonical URL is the serialisation of the WHATWG URL standard
// (https://url.spec.whatwg.org/, sections 4.4 and 4.5), for http and https only,
// narrowed to one spelling where RFC 3986 (section 6.2.2) calls several
// equivalent, and to what that RFC allows (it is written as WARC-Target-URI):
//
//   - leading and trailing C0 controls and spaces are trimmed, tabs and newlines
//     are removed, backslashes before the query count as slashes;
//   - the fragment and the credentials are dropped;
//   - the host is lower case, percent-decoded, IDNA-mapped (UTS #46,
//     non-transitional) to punycode, without a final dot. IPv4 in any of its
//     historical forms is a dotted quad, IPv6 is in brackets and compressed
//     (RFC 5952, but an embedded IPv4 address stays hexadecimal). See [Host];
//   - a default port is dropped, others are decimal without leading zeros;
//   - dot segments ("." and "..", also percent-encoded) are removed; other
//     segments, empty ones too, are kept as they are;
//   - an empty path is "/", and a "?" with nothing behind it is dropped (WHATWG
//     keeps it; servers that care are not known, and lookup keys drop it too);
//   - path and query are UTF-8, percent-encoded: hexadecimal digits in upper
//     case, the unreserved A-Z a-z 0-9 - . _ ~ (RFC 3986 section 2.3) never
//     encoded, every other encoded byte left so, every raw byte that RFC 3986
//     does not allow there encoded (also | ^ [ ] { } and quotation marks, which
//     WHATWG leaves raw in places), and a "%" without two hexadecimal digits
//     behind it is "%25". Bytes that are not UTF-8 are encoded one by one.
//
// It is at most [MaxLen] bytes. The text is plain printable ASCII.
//
// # Invariants
//
// I1: a canonical URL canonicalises to itself, byte for byte; so does the result
// of [URL.Resolve]. I2, in part: the host key of a URL depends on nothing but
// its text. (The tables of IDNA and of public suffixes come with this binary.)
//
// # What it does not do
//
// It fetches and resolves nothing, judges no scope, removes no session ids or
// tracking parameters from URLs (only [URL.Key], a lookup key, does), and reads
// no encoding but UTF-8: the query of a page in another encoding is the caller's
// to transcode.
//
// All functions are pure and safe for concurrent use.
package weburl

import "errors"

// MaxLen is the longest canonical URL, in bytes: what RFC 9110 section 4.1 asks all to support at least.
const MaxLen = 8000

// maxRef bounds, in bytes, a reference without its fragment. A canonical URL can
// be shorter than its source, by dot segments or credentials, but not by much in
// good faith.
const maxRef = 2 * MaxLen

// The reasons why there is no URL. Errors of this package match one of them with
// errors.Is.
var (
	// ErrScheme: a scheme other than http and https.
	ErrScheme = errors.New("scheme is not http or https")
	// ErrHost: no host, or one that is neither a DNS name nor an IP address, or a bad port.
	ErrHost = errors.New("bad host or port")
	// ErrTooLong: the reference or its canonical form is too long.
	ErrTooLong = errors.New("url too long")
	// ErrSyntax: anything else, such as a relative reference without a base.
	ErrSyntax = errors.New("bad url syntax")
)

// URL is a canonical absolute http or https URL. It is comparable: two URLs are
// the same if and only if they are ==. The zero value is no URL; its accessors
// return "".
type URL struct {
	s                           string
	hostStart, hostEnd, pathEnd uint16 // the authority, and where the query (with its "?") begins
}

// Parse returns the canonical form of an absolute URL. The result shares no
// memory with raw.
//
// A reference is cut at its delimiters and written once, escaped on the way, into one
// buffer: one allocation unless the host has to be converted, and time linear in its
// length. There is no other way to a URL.
func Parse(raw string) (URL, error) { return resolve(URL{}, raw) }

// Resolve returns the canonical URL that ref, absolute or relative, means in a
// document at u (WHATWG section 4.4 with u as the base). The result shares no
// memory with ref. If u is zero, ref must be absolute.
func (u URL) Resolve(ref string) (URL, error) { return resolve(u, ref) }

// String returns the canonical text, or "" for the zero URL.
func (u URL) String() string { return u.s }

// IsZero reports whether u is no URL.
func (u URL) IsZero() bool { return u.s == "" }

// Scheme returns "http" or "https".
func (u URL) Scheme() string {
	if u.s == "" {
		return ""
	}
	return u.s[:u.hostStart-uint16(len("://"))]
}

// Host returns the authority: the politeness key.
func (u URL) Host() Host { return Host(u.s[u.hostStart:u.hostEnd]) }

// Path returns the path: "/" or longer.
func (u URL) Path() string { return u.s[u.hostEnd:u.pathEnd] }

// RequestURI returns the path and, if there is one, "?" and the query: the
// request target of HTTP in origin form (RFC 9112 section 3.2.1), and what
// robots.txt rules are matched against.
func (u URL) RequestURI() string { return u.s[u.hostEnd:] }

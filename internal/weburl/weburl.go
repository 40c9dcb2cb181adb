// Package weburl defines canonical web URLs and the keys derived from them. Links, seeds,
// redirects and stored addresses all become a [URL] here. Other packages compare, hash and
// print these URLs. This package imports no other package of this module.
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
//   - an empty path is "/", and a "?" with nothing after it is dropped (WHATWG
//     keeps it; no known server distinguishes the two, and lookup keys drop it too);
//   - path and query are UTF-8, percent-encoded: hexadecimal digits in upper
//     case, the unreserved A-Z a-z 0-9 - . _ ~ (RFC 3986 section 2.3) never
//     encoded, every other encoded byte left encoded, every raw byte that RFC 3986
//     does not allow there encoded (also | ^ [ ] { } and quotation marks, which
//     WHATWG leaves raw in places), and a "%" without two hexadecimal digits
//     after it is "%25". Bytes that are not UTF-8 are encoded one by one.
//
// A canonical URL is printable ASCII and at most [MaxLen] bytes long.
//
// # Invariants
//
// I1: a canonical URL canonicalises to itself, byte for byte; so does the result
// of [URL.Resolve]. I2, in part: the host key of a URL depends only on
// its text. (The tables of IDNA and of public suffixes are part of the binary.)
//
// # What it does not do
//
// The package fetches nothing, resolves no names and decides no scope. It does not remove session ids or
// tracking parameters from URLs (only [URL.Key], a lookup key, does). It reads
// UTF-8 only: the caller transcodes the query of a page in another encoding.
//
// All functions are pure and safe for concurrent use.
package weburl

import "errors"

// MaxLen bounds a canonical URL, in bytes. RFC 9110 section 4.1 recommends to support at least this length.
const MaxLen = 8000

// maxRef bounds a reference without its fragment, in bytes. Dot segments or credentials can make
// a reference longer than its canonical URL, but rarely by much.
const maxRef = 2 * MaxLen

// Reasons why a reference is not a URL. All errors of this package wrap one of them.
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

// URL is a canonical absolute http or https URL. Two URLs are
// the same if and only if they compare equal with ==. The zero value is not a URL; its accessors
// return "".
type URL struct {
	s                           string
	hostStart, hostEnd, pathEnd uint16 // the authority, and where the query (with its "?") begins
}

// Parse returns the canonical form of an absolute URL. The result shares no
// memory with raw.
//
// Parse cuts a reference at its delimiters and writes it once, escaped, into one
// buffer. It allocates once unless the host has to be converted, and takes time linear in the
// length.
func Parse(raw string) (URL, error) { return resolve(URL{}, raw) }

// Resolve returns the canonical URL of an absolute or relative reference in a
// document at u (WHATWG section 4.4 with u as the base). The result shares no
// memory with ref. If u is zero, ref must be absolute.
func (u URL) Resolve(ref string) (URL, error) { return resolve(u, ref) }

// String returns the canonical text, or "" for the zero URL.
func (u URL) String() string { return u.s }

// IsZero reports whether u is the zero value.
func (u URL) IsZero() bool { return u.s == "" }

// Scheme returns "http" or "https".
func (u URL) Scheme() string {
	if u.s == "" {
		return ""
	}
	return u.s[:u.hostStart-uint16(len("://"))]
}

// Host returns the authority without credentials.
func (u URL) Host() Host { return Host(u.s[u.hostStart:u.hostEnd]) }

// Path returns the path: "/" or longer.
func (u URL) Path() string { return u.s[u.hostEnd:u.pathEnd] }

// RequestURI returns the path and, if there is one, "?" and the query. It is the
// request target of HTTP in origin form (RFC 9112 section 3.2.1). Rules of
// robots.txt are matched against it.
func (u URL) RequestURI() string { return u.s[u.hostEnd:] }

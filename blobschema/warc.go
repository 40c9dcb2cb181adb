package blobschema

import (
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/flate"
)

// Bounds of one record, kept by writer and reader alike, so that nothing is
// written that a default reader would refuse.
const (
	MaxWARCHeader = 64 << 10 // bytes of the record header, its blank line included
	MaxWARCBlock  = 64 << 20 // bytes of the block (Header and Body)
	MaxHTTPHeader = 1 << 20  // bytes of WARCRecord.Header
)

// WARCType is the kind of a record (WARC 1.1 section 5.5). A reader skips types
// it does not know.
type WARCType string

// The types that are written here; sections 6.2 to 6.7 define them.
const (
	WARCTypeInfo     WARCType = "warcinfo"
	WARCTypeResponse WARCType = "response"
	WARCTypeResource WARCType = "resource"
	WARCTypeRequest  WARCType = "request"
	WARCTypeMetadata WARCType = "metadata"
	WARCTypeRevisit  WARCType = "revisit"
)

// Values of WARCRecord.Truncated (section 5.15).
const (
	TruncatedLength      = "length"      // longer than the configured bound
	TruncatedTime        = "time"        // took longer than the configured bound
	TruncatedDisconnect  = "disconnect"  // the connection ended within the body
	TruncatedUnspecified = "unspecified" // any other reason
)

// Values of WARCRecord.Profile, for revisit records (section 6.7).
const (
	ProfileIdenticalPayload = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	ProfileNotModified      = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
)

// WARCRecord is one record of a WARC file. Its block is Header followed by Body;
// keeping the two apart saves the copy that joining them would need, and makes
// Body the payload. The zero value of a field means that it is absent.
//
// URIs and record ids are without angle brackets.
type WARCRecord struct {
	Type              WARCType
	Date              time.Time // start of the capture, shared by all records of one capture (5.4); written in UTC, to the microsecond
	TargetURI         string    // RFC 3986 (5.14); see EscapeURI
	ContentType       string    // of the block (5.6); empty with a Header: application/http with the fitting msgtype
	IPAddress         string    // of the server (5.10)
	ConcurrentTo      string    // id of another record of the same capture (5.7)
	WarcinfoID        string    // id of the warcinfo record (5.16)
	RefersTo          string    // id of the record described or revisited (5.11)
	RefersToTargetURI string    // revisit only (5.12)
	RefersToDate      time.Time // revisit only (5.13)
	Truncated         string    // why Body is not whole (5.15); see TruncatedLength
	Profile           string    // revisit only, and mandatory there (5.18)
	PayloadDigest     string    // of the payload (5.9); empty: Append computes it where a payload is defined
	PayloadType       string    // media type found by looking at the payload (5.19)
	Filename          string    // warcinfo only: name of the file (5.17)

	Header []byte // HTTP start line and fields with the blank line that ends them, or nil
	Body   []byte
	Packed bool // Body is compressed already: store it as it is, see Append; not set by the reader

	// The rest is set by the reader. Append ignores it.
	ID          string // 5.2
	BlockDigest string // 5.8
	Offset      int64  // of the record, or of its gzip member, in the input; bytes
	Length      int64  // bytes of the record or its member, as stored
}

// Compression says how records are packed.
type Compression uint8

// The ways of packing. Each gzip record is a member of its own, so that it can be
// read alone (WARC 1.1 annex D.2).
const (
	GzipFast Compression = iota // gzip level 1, or as small and in less time where a record is short: the default
	Gzip6                       // gzip level 6: smaller, for what is kept long
	None                        // plain text, readable with an editor
)

// ErrWARCField is wrapped by all errors of Append: a value of the record may not
// be written, because it is malformed or not allowed with the record's type.
var ErrWARCField = errors.New("unfit WARC field")

// WARCEncoder turns records into bytes. It holds about 0.8 MiB of tables and
// buffers, whatever it encodes, and starts no goroutine. It may be used again
// and again, but by one goroutine at a time.
type WARCEncoder struct {
	deflate *flate.Writer  // nil: plain
	short   *shortDeflater // for what is short; nil: deflate serves that too
	sink    warcSink
	block   hash.Hash
	sum     [sha1.Size]byte
	head    []byte
}

// warcSink collects what the compressor writes, straight into the caller's slice.
type warcSink struct{ b []byte }

func (s *warcSink) Write(p []byte) (int, error) {
	s.b = append(s.b, p...)
	return len(p), nil
}

// NewWARCEncoder returns an encoder. An unknown compression means GzipFast.
func NewWARCEncoder(c Compression) *WARCEncoder {
	e := &WARCEncoder{block: sha1.New()}
	level := flate.BestSpeed
	switch c {
	case None:
		return e
	case Gzip6:
		level = 6
	}
	if level == flate.BestSpeed {
		e.short = newShortDeflater()
	}
	e.deflate, _ = flate.NewWriter(&e.sink, level) // fails only for levels out of range
	return e
}

var (
	warcEnd         = []byte("\r\n\r\n") // two line ends follow every block (section 4)
	warcDigestText  = base32.StdEncoding
	warcHTTPRequest = "application/http;msgtype=request"
	warcHTTPAnswer  = "application/http;msgtype=response"

	// The header of a gzip member (RFC 1952 section 2.3): deflate, no flags, no time, of
	// the system "unknown", so that it says nothing of when or where it was made.
	gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}
)

const (
	maxStored = 1<<16 - 1 // bytes of a stored DEFLATE block (RFC 1951 section 3.2.4)

	// What a shortDeflater is given at most: heads that its window spans, with bodies of
	// such a length that it matters little which they are. It makes HTML of 2 KiB no
	// larger than level 1 does, but Cyrillic text by a fifth; at 512 bytes by a seventh.
	maxShort     = shortWindow
	maxShortBody = 512
)

// Append appends r as one record (one gzip member, unless plain) to dst, and
// returns the extended slice and the record's id, "urn:uuid:…". The bytes added
// are the record's stored length; r is not kept or changed.
//
// The Body of a Packed record is stored within the member as it is, at no more cost than
// its checksum: deflating what is compressed takes as long as deflating text and gains
// nothing. All readers of gzip read it; no digest or id depends on it.
//
// The id is derived from type, date, target and block, so that encoding a capture
// again gives the same bytes. A request written first hands its id to the
// response's ConcurrentTo, or the other way round; either is enough (5.7).
//
// On an error, which wraps ErrWARCField, dst comes back as it was.
func (e *WARCEncoder) Append(dst []byte, r *WARCRecord) (out []byte, id string, err error) {
	if err := warcCheck(r); err != nil {
		return dst, "", fmt.Errorf("encode %q record: %w", string(r.Type), err)
	}
	e.block.Reset()
	e.block.Write(r.Header)
	e.block.Write(r.Body)
	e.block.Sum(e.sum[:0])
	id = e.id(r)
	e.appendHead(r, id)
	if len(e.head) > MaxWARCHeader {
		return dst, "", fmt.Errorf("encode %q record: %w: header of %d bytes", string(r.Type), ErrWARCField, len(e.head))
	}
	if e.deflate == nil {
		dst = append(dst, e.head...)
		dst = append(dst, r.Header...)
		dst = append(dst, r.Body...)
		return append(dst, warcEnd...), id, nil
	}
	out, err = e.appendMember(dst, r)
	if err != nil {
		return dst, "", fmt.Errorf("encode %q record: %w", string(r.Type), err)
	}
	return out, id, nil
}

// appendMember appends e.head and r's block as one gzip member. The framing is written
// here, since a gzip writer offers no way to store a part.
func (e *WARCEncoder) appendMember(dst []byte, r *WARCRecord) (out []byte, err error) {
	parts := [...][]byte{e.head, r.Header, r.Body, warcEnd}
	var sum, size uint32 // CRC-32 and length modulo 2^32 of what is packed
	for _, part := range parts {
		sum = crc32.Update(sum, crc32.IEEETable, part)
		size += uint32(len(part))
	}
	deflated := parts[:]
	stored := r.Packed && len(r.Body) > 0
	if stored {
		deflated = parts[:2]
	}
	dst = append(dst, gzipHeader...)
	if e.isShort(r, stored) {
		for _, part := range deflated[1:] {
			e.head = append(e.head, part...)
		}
		out = e.short.append(dst, e.head, !stored)
	} else if out, err = e.appendDeflated(dst, deflated, !stored); err != nil {
		return nil, err
	}
	if stored {
		out = slices.Grow(out, len(r.Body)+5*(len(r.Body)/maxStored+2)+len(warcEnd)+8)
		out = appendStored(out, r.Body, 0)
		out = appendStored(out, warcEnd, 1)
	}
	out = binary.LittleEndian.AppendUint32(out, sum)
	return binary.LittleEndian.AppendUint32(out, size), nil
}

// isShort reports whether what of r is to be deflated is for e.short.
func (e *WARCEncoder) isShort(r *WARCRecord, stored bool) bool {
	return e.short != nil && len(e.head)+len(r.Header) <= maxShort && (stored || len(r.Body) <= maxShortBody)
}

// appendDeflated appends parts, deflated, as shortDeflater.append does.
func (e *WARCEncoder) appendDeflated(dst []byte, parts [][]byte, last bool) (out []byte, err error) {
	e.sink.b = dst
	e.deflate.Reset(&e.sink)
	defer func() { e.sink.b = nil }() // keep no reference to the caller's memory
	for _, part := range parts {
		if _, err := e.deflate.Write(part); err != nil {
			return nil, err
		}
	}
	if last {
		err = e.deflate.Close()
	} else {
		err = e.deflate.Flush() // ends on a whole byte
	}
	return e.sink.b, err
}

// appendStored appends b as stored DEFLATE blocks. Final is 1 if the stream ends with b,
// which is then one block, else 0.
func appendStored(dst, b []byte, final byte) []byte {
	for block := range slices.Chunk(b, maxStored) {
		n := uint16(len(block))
		dst = append(dst, final, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
		dst = append(dst, block...)
	}
	return dst
}

// id derives a version 8 UUID (RFC 9562 section 5.8) from what identifies a
// capture. Every part but the last has a fixed length or ends in a line end that
// cannot occur within it, so no two captures have the same text.
func (e *WARCEncoder) id(r *WARCRecord) string {
	e.head = append(e.head[:0], r.Type...)
	e.head = append(e.head, '\n')
	e.head = warcAppendDate(e.head, r.Date)
	e.head = append(e.head, '\n')
	e.head = append(e.head, e.sum[:]...)
	e.head = append(e.head, r.TargetURI...)
	u := sha1.Sum(e.head)
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	var text [45]byte
	b := append(text[:0], "urn:uuid:"...)
	for i, part := range [...][]byte{u[0:4], u[4:6], u[6:8], u[8:10], u[10:16]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return string(b)
}

// appendHead builds the record header in e.head. All values have passed warcCheck.
func (e *WARCEncoder) appendHead(r *WARCRecord, id string) {
	b := append(e.head[:0], "WARC/1.1\r\nWARC-Type: "...)
	b = append(b, r.Type...)
	b = append(b, "\r\nWARC-Record-ID: <"...)
	b = append(b, id...)
	b = append(b, ">\r\nWARC-Date: "...)
	b = warcAppendDate(b, r.Date)
	b = append(b, "\r\n"...)
	b = warcAppendField(b, "WARC-Target-URI", r.TargetURI)
	if a, err := netip.ParseAddr(r.IPAddress); r.IPAddress != "" && err == nil {
		b = append(b, "WARC-IP-Address: "...)
		b = append(a.Unmap().AppendTo(b), "\r\n"...)
	}
	b = warcAppendID(b, "WARC-Concurrent-To", r.ConcurrentTo)
	b = warcAppendID(b, "WARC-Warcinfo-ID", r.WarcinfoID)
	b = warcAppendID(b, "WARC-Refers-To", r.RefersTo)
	b = warcAppendField(b, "WARC-Refers-To-Target-URI", r.RefersToTargetURI)
	if !r.RefersToDate.IsZero() {
		b = append(b, "WARC-Refers-To-Date: "...)
		b = append(warcAppendDate(b, r.RefersToDate), "\r\n"...)
	}
	b = warcAppendField(b, "WARC-Profile", r.Profile)
	b = warcAppendField(b, "WARC-Truncated", r.Truncated)
	b = warcAppendField(b, "WARC-Filename", r.Filename)
	b = warcAppendField(b, "WARC-Identified-Payload-Type", r.PayloadType)
	b = append(b, "WARC-Block-Digest: sha1:"...)
	b = append(warcDigestText.AppendEncode(b, e.sum[:]), "\r\n"...)
	b = e.appendPayloadDigest(b, r)
	b = warcAppendField(b, "Content-Type", warcContentType(r))
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(len(r.Header)+len(r.Body)), 10)
	e.head = append(b, "\r\n\r\n"...)
}

// appendPayloadDigest appends the payload's digest: the one given, or else the
// one of Body if the record has a payload (section 5.9). A request without a body
// gets none: it would say the same in every record.
func (e *WARCEncoder) appendPayloadDigest(b []byte, r *WARCRecord) []byte {
	if r.PayloadDigest != "" {
		return warcAppendField(b, "WARC-Payload-Digest", r.PayloadDigest)
	}
	sum := e.sum
	switch {
	case r.Type == WARCTypeRequest && len(r.Body) > 0, r.Type == WARCTypeResponse, r.Type == WARCTypeResource:
		if len(r.Header) > 0 { // else the block is the payload: hashed already
			sum = sha1.Sum(r.Body)
		}
	default: // a revisit's payload is elsewhere; warcinfo and metadata have none
		return b
	}
	b = append(b, "WARC-Payload-Digest: sha1:"...)
	return append(warcDigestText.AppendEncode(b, sum[:]), "\r\n"...)
}

// PayloadDigest returns the SHA-1 of body as WARC and CDX write it: "sha1:" and
// 32 characters of base 32. A caller that needs it before encoding passes it on
// in WARCRecord.PayloadDigest, and body is hashed once less.
func PayloadDigest(body []byte) string {
	sum := sha1.Sum(body)
	var text [5 + 32]byte
	return string(warcDigestText.AppendEncode(append(text[:0], "sha1:"...), sum[:]))
}

func warcAppendField(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, name...)
	b = append(b, ": "...)
	b = append(b, value...)
	return append(b, "\r\n"...)
}

func warcAppendID(b []byte, name, id string) []byte {
	if id == "" {
		return b
	}
	b = append(b, name...)
	b = append(b, ": <"...)
	b = append(b, id...)
	return append(b, ">\r\n"...)
}

// warcAppendDate writes t in UTC (section 5.4): to the second if it has no
// fraction, else with six digits, which older readers take for microseconds
// however many there are.
func warcAppendDate(b []byte, t time.Time) []byte {
	t = t.UTC()
	if t.Nanosecond() < int(time.Microsecond) {
		return t.AppendFormat(b, "2006-01-02T15:04:05Z")
	}
	return t.AppendFormat(b, "2006-01-02T15:04:05.000000Z")
}

func warcContentType(r *WARCRecord) string {
	switch {
	case r.ContentType != "" || len(r.Header) == 0:
		return r.ContentType
	case r.Type == WARCTypeRequest:
		return warcHTTPRequest
	}
	return warcHTTPAnswer
}

// warcIsHTTP reports whether blocks of this type and media type are HTTP messages.
func warcIsHTTP(t WARCType, contentType string) bool {
	const media = "application/http"
	if t != WARCTypeResponse && t != WARCTypeRequest && t != WARCTypeRevisit {
		return false
	}
	if len(contentType) < len(media) || !strings.EqualFold(contentType[:len(media)], media) {
		return false
	}
	rest := strings.TrimLeft(contentType[len(media):], " \t")
	return rest == "" || rest[0] == ';'
}

// warcCheck refuses what section 5 does not allow in a record of this type, and
// any value that could end its line or be read as something else.
func warcCheck(r *WARCRecord) error {
	const (
		info = 1 << iota
		response
		resource
		request
		metadata
		revisit
	)
	var t int
	switch r.Type {
	case WARCTypeInfo:
		t = info
	case WARCTypeResponse:
		t = response
	case WARCTypeResource:
		t = resource
	case WARCTypeRequest:
		t = request
	case WARCTypeMetadata:
		t = metadata
	case WARCTypeRevisit:
		t = revisit
	default:
		return fmt.Errorf("%w: WARC-Type %q", ErrWARCField, string(r.Type))
	}
	const captures = response | resource | request | metadata | revisit
	for _, f := range [...]struct {
		name, value      string
		allowed, missing int // types that may have it; types that must
		check            func(string) error
	}{
		{"WARC-Target-URI", r.TargetURI, captures, response | resource | request | revisit, warcCheckURI},
		{"WARC-IP-Address", r.IPAddress, captures, 0, warcCheckIP},
		{"WARC-Concurrent-To", r.ConcurrentTo, captures, 0, warcCheckURI},
		{"WARC-Warcinfo-ID", r.WarcinfoID, captures, 0, warcCheckURI},
		{"WARC-Refers-To", r.RefersTo, metadata | revisit, 0, warcCheckURI},
		{"WARC-Refers-To-Target-URI", r.RefersToTargetURI, revisit, 0, warcCheckURI},
		{"WARC-Profile", r.Profile, revisit, revisit, warcCheckURI},
		{"WARC-Truncated", r.Truncated, info | captures, 0, warcCheckToken},
		{"WARC-Filename", r.Filename, info, 0, warcCheckText},
		{"WARC-Identified-Payload-Type", r.PayloadType, response | resource | request | revisit, 0, warcCheckText},
		{"WARC-Payload-Digest", r.PayloadDigest, response | resource | request | revisit, 0, warcCheckDigest},
		{"Content-Type", r.ContentType, info | captures, 0, warcCheckText},
	} {
		if f.value == "" {
			if f.missing&t != 0 {
				return fmt.Errorf("%w: no %s", ErrWARCField, f.name)
			}
			continue
		}
		if f.allowed&t == 0 {
			return fmt.Errorf("%w: %s does not belong here", ErrWARCField, f.name)
		}
		if err := f.check(f.value); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrWARCField, f.name, err)
		}
	}
	if y := r.Date.UTC().Year(); r.Date.IsZero() || y < 1 || y > 9999 {
		return fmt.Errorf("%w: WARC-Date is absent or out of range", ErrWARCField)
	}
	if y := r.RefersToDate.UTC().Year(); !r.RefersToDate.IsZero() && (t != revisit || y < 1 || y > 9999) {
		return fmt.Errorf("%w: WARC-Refers-To-Date is out of range or does not belong here", ErrWARCField)
	}
	if r.Profile == ProfileIdenticalPayload && r.PayloadDigest == "" {
		return fmt.Errorf("%w: no WARC-Payload-Digest", ErrWARCField) // mandatory by 6.7.2
	}
	return warcCheckBlock(r)
}

// warcCheckBlock keeps Header and Body where a reader will find them again: the
// first blank line of an HTTP block is the end of Header.
func warcCheckBlock(r *WARCRecord) error {
	if n := len(r.Header) + len(r.Body); n > MaxWARCBlock {
		return fmt.Errorf("%w: block of %d bytes", ErrWARCField, n)
	}
	switch isHTTP := warcIsHTTP(r.Type, warcContentType(r)); {
	case len(r.Header) > MaxHTTPHeader:
		return fmt.Errorf("%w: Header of %d bytes", ErrWARCField, len(r.Header))
	case len(r.Header) > 0 && !isHTTP:
		return fmt.Errorf("%w: Header in a record that is not HTTP", ErrWARCField)
	case len(r.Header) > 0 && warcHeadEnd(r.Header) != len(r.Header):
		return fmt.Errorf("%w: Header does not end at its first blank line", ErrWARCField)
	case len(r.Header) == 0 && len(r.Body) > 0 && isHTTP:
		return fmt.Errorf("%w: HTTP record without Header", ErrWARCField)
	}
	return nil
}

func warcCheckText(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%q is not UTF-8", warcClip(s))
	}
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] == 0x7f {
			return fmt.Errorf("control character in %q", warcClip(s))
		}
	}
	return nil
}

func warcCheckToken(s string) error {
	for i := 0; i < len(s); i++ {
		if !warcIsToken(s[i]) {
			return fmt.Errorf("%q is not a token", warcClip(s))
		}
	}
	return nil
}

// warcCheckDigest wants algorithm:value. '=' and '/', which the grammar forgot,
// occur in padded base 32 and in base 64.
func warcCheckDigest(s string) error {
	algorithm, value, _ := strings.Cut(s, ":")
	if algorithm == "" || value == "" || warcCheckToken(algorithm) != nil {
		return fmt.Errorf("%q is not a labelled digest", warcClip(s))
	}
	for i := 0; i < len(value); i++ {
		if c := value[i]; !warcIsToken(c) && c != '=' && c != '/' {
			return fmt.Errorf("%q is not a labelled digest", warcClip(s))
		}
	}
	return nil
}

func warcCheckIP(s string) error {
	if a, err := netip.ParseAddr(s); err != nil || a.Zone() != "" {
		return fmt.Errorf("%q is not an address", warcClip(s))
	}
	return nil
}

// warcIsToken reports whether c may be in a token (RFC 9110 section 5.6.2).
func warcIsToken(c byte) bool {
	return warcIsAlnum(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

func warcIsAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// warcClip keeps error texts short whatever a record holds.
func warcClip(s string) string { return s[:min(len(s), 80)] }

// warcCheckURI accepts what the URI rule of RFC 3986 (appendix A) accepts, except
// address literals of future versions, which nothing uses.
func warcCheckURI(s string) error {
	scheme, rest, ok := strings.Cut(s, ":")
	ok = ok && scheme != "" && !('0' <= scheme[0] && scheme[0] <= '9')
	for i := 0; ok && i < len(scheme); i++ {
		c := scheme[i]
		ok = warcIsAlnum(c) || i > 0 && (c == '+' || c == '-' || c == '.')
	}
	if ok && strings.HasPrefix(rest, "//") {
		end := strings.IndexAny(rest[2:], "/?#")
		if end < 0 {
			end = len(rest) - 2
		}
		ok = warcIsAuthority(rest[2 : 2+end])
		rest = rest[2+end:]
	}
	if ok {
		before, fragment, _ := strings.Cut(rest, "#")
		ok = warcURIChars(before, ":@/?") && warcURIChars(fragment, ":@/?")
	}
	if !ok {
		return fmt.Errorf("%q is not a URI", warcClip(s))
	}
	return nil
}

// warcIsAuthority checks [ userinfo "@" ] host [ ":" port ] (RFC 3986 section 3.2).
func warcIsAuthority(s string) bool {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		if !warcURIChars(s[:i], ":") {
			return false
		}
		s = s[i+1:]
	}
	if literal, after, ok := strings.Cut(s, "]"); ok {
		a, err := netip.ParseAddr(strings.TrimPrefix(literal, "["))
		if !strings.HasPrefix(literal, "[") || err != nil || !a.Is6() || a.Zone() != "" {
			return false
		}
		s = after
		if s != "" && s[0] != ':' {
			return false
		}
	}
	name, port, _ := strings.Cut(s, ":")
	return warcURIChars(name, "") && strings.Trim(port, "0123456789") == ""
}

// warcURIChars reports whether s holds only unreserved characters, sub-delims,
// escapes and those in extra.
func warcURIChars(s, extra string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case warcIsAlnum(c):
		case c == '%':
			if !warcIsEscape(s[i:]) {
				return false
			}
		case strings.IndexByte("-._~!$&'()*+,;=", c) < 0 && strings.IndexByte(extra, c) < 0:
			return false
		}
	}
	return true
}

// warcIsEscape reports whether s begins with a percent-encoded byte.
func warcIsEscape(s string) bool {
	isHex := func(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }
	return len(s) > 2 && s[0] == '%' && isHex(s[1]) && isHex(s[2])
}

// EscapeURI returns url with every byte that RFC 3986 does not allow where it
// stands percent-encoded. Canonical URLs of the web need it: the WHATWG standard
// keeps '|', '[', '{', '^', a lone '%' and others in a path or query. A URL that
// is fine comes back as it is, without a copy. Hosts and schemes are not mended.
func EscapeURI(url string) string {
	start := 0 // what is before it is not touched: scheme and authority
	if i := strings.Index(url, "://"); i >= 0 {
		start = i + 3
		if j := strings.IndexAny(url[start:], "/?#"); j >= 0 {
			start += j
		} else {
			start = len(url)
		}
	}
	fragment := start + strings.IndexByte(url[start:], '#')
	var b []byte
	from := 0
	for i := start; i < len(url); i++ {
		c := url[i]
		if warcIsAlnum(c) || strings.IndexByte("-._~!$&'()*+,;=:@/?", c) >= 0 ||
			c == '%' && warcIsEscape(url[i:]) || c == '#' && i == fragment {
			continue
		}
		b = append(b, url[from:i]...)
		b = append(b, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
		from = i + 1
	}
	if from == 0 {
		return url
	}
	return string(append(b, url[from:]...))
}

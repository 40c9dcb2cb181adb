package warc

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
	MaxHeader     = 64 << 10 // bytes of the record header, its blank line included
	MaxBlock      = 64 << 20 // bytes of the block (Header and Body)
	MaxHTTPHeader = 1 << 20  // bytes of Record.Header
)

// Type is the kind of a record (WARC 1.1 section 5.5). A reader skips types
// it does not know.
type Type string

// The types that are written here; sections 6.2 to 6.7 define them.
const (
	TypeInfo     Type = "warcinfo"
	TypeResponse Type = "response"
	TypeResource Type = "resource"
	TypeRequest  Type = "request"
	TypeMetadata Type = "metadata"
	TypeRevisit  Type = "revisit"
)

// Values of Record.Truncated (section 5.15).
const (
	TruncatedLength      = "length"      // longer than the configured bound
	TruncatedTime        = "time"        // took longer than the configured bound
	TruncatedDisconnect  = "disconnect"  // the connection ended within the body
	TruncatedUnspecified = "unspecified" // any other reason
)

// Values of Record.Profile, for revisit records (section 6.7).
const (
	ProfileIdenticalPayload = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	ProfileNotModified      = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
)

// Record is one record of a WARC file. Its block is Header followed by Body;
// keeping the two apart saves the copy that joining them would need, and makes
// Body the payload. The zero value of a field means that it is absent.
//
// URIs and record ids are without angle brackets.
type Record struct {
	Type              Type
	Date              time.Time // start of the capture, shared by all records of one capture (5.4); written in UTC, to the microsecond
	TargetURI         string    // RFC 3986 (5.14)
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

// ErrField is wrapped by all errors of Append: a value of the record may not
// be written, because it is malformed or not allowed with the record's type.
var ErrField = errors.New("unfit WARC field")

// Encoder turns records into bytes. It holds about 0.8 MiB of tables and
// buffers, whatever it encodes, and starts no goroutine. It may be used again
// and again, but by one goroutine at a time.
type Encoder struct {
	deflate *flate.Writer  // nil: plain
	short   *shortDeflater // for what is short; nil: deflate serves that too
	sink    sink
	block   hash.Hash
	sum     [sha1.Size]byte
	head    []byte
}

// sink collects what the compressor writes, straight into the caller's slice.
type sink struct{ b []byte }

func (s *sink) Write(p []byte) (int, error) {
	s.b = append(s.b, p...)
	return len(p), nil
}

// NewEncoder returns an encoder. An unknown compression means GzipFast.
func NewEncoder(c Compression) *Encoder {
	e := &Encoder{block: sha1.New()}
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
	recordEnd   = []byte("\r\n\r\n") // two line ends follow every block (section 4)
	digestText  = base32.StdEncoding
	httpRequest = "application/http;msgtype=request"
	httpAnswer  = "application/http;msgtype=response"

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
// On an error, which wraps ErrField, dst comes back as it was.
func (e *Encoder) Append(dst []byte, r *Record) (out []byte, id string, err error) {
	if err := checkRecord(r); err != nil {
		return dst, "", fmt.Errorf("encode %q record: %w", string(r.Type), err)
	}
	e.block.Reset()
	e.block.Write(r.Header)
	e.block.Write(r.Body)
	e.block.Sum(e.sum[:0])
	id = e.id(r)
	e.appendHead(r, id)
	if len(e.head) > MaxHeader {
		return dst, "", fmt.Errorf("encode %q record: %w: header of %d bytes", string(r.Type), ErrField, len(e.head))
	}
	if e.deflate == nil {
		dst = append(dst, e.head...)
		dst = append(dst, r.Header...)
		dst = append(dst, r.Body...)
		return append(dst, recordEnd...), id, nil
	}
	out, err = e.appendMember(dst, r)
	if err != nil {
		return dst, "", fmt.Errorf("encode %q record: %w", string(r.Type), err)
	}
	return out, id, nil
}

// appendMember appends e.head and r's block as one gzip member. The framing is written
// here, since a gzip writer offers no way to store a part.
func (e *Encoder) appendMember(dst []byte, r *Record) (out []byte, err error) {
	parts := [...][]byte{e.head, r.Header, r.Body, recordEnd}
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
		out = slices.Grow(out, len(r.Body)+5*(len(r.Body)/maxStored+2)+len(recordEnd)+8)
		out = appendStored(out, r.Body, 0)
		out = appendStored(out, recordEnd, 1)
	}
	out = binary.LittleEndian.AppendUint32(out, sum)
	return binary.LittleEndian.AppendUint32(out, size), nil
}

// isShort reports whether what of r is to be deflated is for e.short.
func (e *Encoder) isShort(r *Record, stored bool) bool {
	return e.short != nil && len(e.head)+len(r.Header) <= maxShort && (stored || len(r.Body) <= maxShortBody)
}

// appendDeflated appends parts, deflated, as shortDeflater.append does.
func (e *Encoder) appendDeflated(dst []byte, parts [][]byte, last bool) (out []byte, err error) {
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

// appendStored appends b as stored DEFLATE blocks. final is 1 if b is one block that ends the stream, and 0 otherwise.
func appendStored(dst, b []byte, final byte) []byte {
	for block := range slices.Chunk(b, maxStored) {
		n := uint16(len(block))
		dst = binary.LittleEndian.AppendUint16(append(dst, final), n)
		dst = binary.LittleEndian.AppendUint16(dst, ^n)
		dst = append(dst, block...)
	}
	return dst
}

// id derives a version 8 UUID (RFC 9562 section 5.8) from what identifies a
// capture. Every part but the last has a fixed length or ends in a line end that
// cannot occur within it, so no two captures have the same text.
func (e *Encoder) id(r *Record) string {
	e.head = append(e.head[:0], r.Type...)
	e.head = append(e.head, '\n')
	e.head = appendDate(e.head, r.Date)
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

// appendHead builds the record header in e.head. All values have passed checkRecord.
func (e *Encoder) appendHead(r *Record, id string) {
	b := append(e.head[:0], "WARC/1.1\r\nWARC-Type: "...)
	b = append(b, r.Type...)
	b = append(b, "\r\nWARC-Record-ID: <"...)
	b = append(b, id...)
	b = append(b, ">\r\nWARC-Date: "...)
	b = appendDate(b, r.Date)
	b = append(b, "\r\n"...)
	b = appendField(b, "WARC-Target-URI", r.TargetURI)
	if a, err := netip.ParseAddr(r.IPAddress); r.IPAddress != "" && err == nil {
		b = append(b, "WARC-IP-Address: "...)
		b = append(a.Unmap().AppendTo(b), "\r\n"...)
	}
	b = appendID(b, "WARC-Concurrent-To", r.ConcurrentTo)
	b = appendID(b, "WARC-Warcinfo-ID", r.WarcinfoID)
	b = appendID(b, "WARC-Refers-To", r.RefersTo)
	b = appendField(b, "WARC-Refers-To-Target-URI", r.RefersToTargetURI)
	if !r.RefersToDate.IsZero() {
		b = append(b, "WARC-Refers-To-Date: "...)
		b = append(appendDate(b, r.RefersToDate), "\r\n"...)
	}
	b = appendField(b, "WARC-Profile", r.Profile)
	b = appendField(b, "WARC-Truncated", r.Truncated)
	b = appendField(b, "WARC-Filename", r.Filename)
	b = appendField(b, "WARC-Identified-Payload-Type", r.PayloadType)
	b = append(b, "WARC-Block-Digest: sha1:"...)
	b = append(digestText.AppendEncode(b, e.sum[:]), "\r\n"...)
	b = e.appendPayloadDigest(b, r)
	b = appendField(b, "Content-Type", contentType(r))
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(len(r.Header)+len(r.Body)), 10)
	e.head = append(b, "\r\n\r\n"...)
}

// appendPayloadDigest appends the payload's digest: the one given, or else the
// one of Body if the record has a payload (section 5.9). A request without a body
// gets none: it would say the same in every record.
func (e *Encoder) appendPayloadDigest(b []byte, r *Record) []byte {
	if r.PayloadDigest != "" {
		return appendField(b, "WARC-Payload-Digest", r.PayloadDigest)
	}
	sum := e.sum
	switch {
	case r.Type == TypeRequest && len(r.Body) > 0, r.Type == TypeResponse, r.Type == TypeResource:
		if len(r.Header) > 0 { // else the block is the payload: hashed already
			sum = sha1.Sum(r.Body)
		}
	default: // a revisit's payload is elsewhere; warcinfo and metadata have none
		return b
	}
	b = append(b, "WARC-Payload-Digest: sha1:"...)
	return append(digestText.AppendEncode(b, sum[:]), "\r\n"...)
}

// PayloadDigest returns the SHA-1 of body as WARC and CDX write it: "sha1:" and
// 32 characters of base 32. A caller that needs it before encoding passes it on
// in Record.PayloadDigest, and body is hashed once less.
func PayloadDigest(body []byte) string {
	sum := sha1.Sum(body)
	var text [5 + 32]byte
	return string(digestText.AppendEncode(append(text[:0], "sha1:"...), sum[:]))
}

func appendField(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, name...)
	b = append(b, ": "...)
	b = append(b, value...)
	return append(b, "\r\n"...)
}

func appendID(b []byte, name, id string) []byte {
	if id == "" {
		return b
	}
	b = append(b, name...)
	b = append(b, ": <"...)
	b = append(b, id...)
	return append(b, ">\r\n"...)
}

// appendDate writes t in UTC (section 5.4): to the second if it has no
// fraction, else with six digits, which older readers take for microseconds
// however many there are.
func appendDate(b []byte, t time.Time) []byte {
	t = t.UTC()
	if t.Nanosecond() < int(time.Microsecond) {
		return t.AppendFormat(b, "2006-01-02T15:04:05Z")
	}
	return t.AppendFormat(b, "2006-01-02T15:04:05.000000Z")
}

func contentType(r *Record) string {
	switch {
	case r.ContentType != "" || len(r.Header) == 0:
		return r.ContentType
	case r.Type == TypeRequest:
		return httpRequest
	}
	return httpAnswer
}

// isHTTP reports whether blocks of this type and media type are HTTP messages.
func isHTTP(t Type, contentType string) bool {
	const media = "application/http"
	if t != TypeResponse && t != TypeRequest && t != TypeRevisit {
		return false
	}
	if len(contentType) < len(media) || !strings.EqualFold(contentType[:len(media)], media) {
		return false
	}
	rest := strings.TrimLeft(contentType[len(media):], " \t")
	return rest == "" || rest[0] == ';'
}

// checkRecord refuses what section 5 does not allow in a record of this type, and
// any value that could end its line or be read as something else.
func checkRecord(r *Record) error {
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
	case TypeInfo:
		t = info
	case TypeResponse:
		t = response
	case TypeResource:
		t = resource
	case TypeRequest:
		t = request
	case TypeMetadata:
		t = metadata
	case TypeRevisit:
		t = revisit
	default:
		return fmt.Errorf("%w: WARC-Type %q", ErrField, string(r.Type))
	}
	const captures = response | resource | request | metadata | revisit
	for _, f := range [...]struct {
		name, value      string
		allowed, missing int // types that may have it; types that must
		check            func(string) error
	}{
		{"WARC-Target-URI", r.TargetURI, captures, response | resource | request | revisit, checkURI},
		{"WARC-IP-Address", r.IPAddress, captures, 0, checkIP},
		{"WARC-Concurrent-To", r.ConcurrentTo, captures, 0, checkURI},
		{"WARC-Warcinfo-ID", r.WarcinfoID, captures, 0, checkURI},
		{"WARC-Refers-To", r.RefersTo, metadata | revisit, 0, checkURI},
		{"WARC-Refers-To-Target-URI", r.RefersToTargetURI, revisit, 0, checkURI},
		{"WARC-Profile", r.Profile, revisit, revisit, checkURI},
		{"WARC-Truncated", r.Truncated, info | captures, 0, checkToken},
		{"WARC-Filename", r.Filename, info, 0, checkText},
		{"WARC-Identified-Payload-Type", r.PayloadType, response | resource | request | revisit, 0, checkText},
		{"WARC-Payload-Digest", r.PayloadDigest, response | resource | request | revisit, 0, checkDigest},
		{"Content-Type", r.ContentType, info | captures, 0, checkText},
	} {
		if f.value == "" {
			if f.missing&t != 0 {
				return fmt.Errorf("%w: no %s", ErrField, f.name)
			}
			continue
		}
		if f.allowed&t == 0 {
			return fmt.Errorf("%w: %s does not belong here", ErrField, f.name)
		}
		if err := f.check(f.value); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrField, f.name, err)
		}
	}
	if y := r.Date.UTC().Year(); r.Date.IsZero() || y < 1 || y > 9999 {
		return fmt.Errorf("%w: WARC-Date is absent or out of range", ErrField)
	}
	if y := r.RefersToDate.UTC().Year(); !r.RefersToDate.IsZero() && (t != revisit || y < 1 || y > 9999) {
		return fmt.Errorf("%w: WARC-Refers-To-Date is out of range or does not belong here", ErrField)
	}
	if r.Profile == ProfileIdenticalPayload && r.PayloadDigest == "" {
		return fmt.Errorf("%w: no WARC-Payload-Digest", ErrField) // mandatory by 6.7.2
	}
	return checkBlock(r)
}

// checkBlock keeps Header and Body where a reader will find them again: the
// first blank line of an HTTP block is the end of Header.
func checkBlock(r *Record) error {
	if n := len(r.Header) + len(r.Body); n > MaxBlock {
		return fmt.Errorf("%w: block of %d bytes", ErrField, n)
	}
	switch isHTTP := isHTTP(r.Type, contentType(r)); {
	case len(r.Header) > MaxHTTPHeader:
		return fmt.Errorf("%w: Header of %d bytes", ErrField, len(r.Header))
	case len(r.Header) > 0 && !isHTTP:
		return fmt.Errorf("%w: Header in a record that is not HTTP", ErrField)
	case len(r.Header) > 0 && headEnd(r.Header) != len(r.Header):
		return fmt.Errorf("%w: Header does not end at its first blank line", ErrField)
	case len(r.Header) == 0 && len(r.Body) > 0 && isHTTP:
		return fmt.Errorf("%w: HTTP record without Header", ErrField)
	}
	return nil
}

func checkText(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%q is not UTF-8", clip(s))
	}
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] == 0x7f {
			return fmt.Errorf("control character in %q", clip(s))
		}
	}
	return nil
}

func checkToken(s string) error {
	for i := 0; i < len(s); i++ {
		if !isToken(s[i]) {
			return fmt.Errorf("%q is not a token", clip(s))
		}
	}
	return nil
}

// checkDigest wants algorithm:value. '=' and '/', which the grammar forgot,
// occur in padded base 32 and in base 64.
func checkDigest(s string) error {
	algorithm, value, _ := strings.Cut(s, ":")
	if algorithm == "" || value == "" || checkToken(algorithm) != nil {
		return fmt.Errorf("%q is not a labelled digest", clip(s))
	}
	for i := 0; i < len(value); i++ {
		if c := value[i]; !isToken(c) && c != '=' && c != '/' {
			return fmt.Errorf("%q is not a labelled digest", clip(s))
		}
	}
	return nil
}

func checkIP(s string) error {
	if a, err := netip.ParseAddr(s); err != nil || a.Zone() != "" {
		return fmt.Errorf("%q is not an address", clip(s))
	}
	return nil
}

// isToken reports whether c may be in a token (RFC 9110 section 5.6.2).
func isToken(c byte) bool {
	return isAlnum(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// clip keeps error texts short whatever a record holds.
func clip(s string) string { return s[:min(len(s), 80)] }

// checkURI accepts what the URI rule of RFC 3986 (appendix A) accepts, except
// address literals of future versions, which nothing uses.
func checkURI(s string) error {
	scheme, rest, ok := strings.Cut(s, ":")
	ok = ok && scheme != "" && !('0' <= scheme[0] && scheme[0] <= '9')
	for i := 0; ok && i < len(scheme); i++ {
		c := scheme[i]
		ok = isAlnum(c) || i > 0 && (c == '+' || c == '-' || c == '.')
	}
	if ok && strings.HasPrefix(rest, "//") {
		end := strings.IndexAny(rest[2:], "/?#")
		if end < 0 {
			end = len(rest) - 2
		}
		ok = isAuthority(rest[2 : 2+end])
		rest = rest[2+end:]
	}
	if ok {
		before, fragment, _ := strings.Cut(rest, "#")
		ok = uriChars(before, ":@/?") && uriChars(fragment, ":@/?")
	}
	if !ok {
		return fmt.Errorf("%q is not a URI", clip(s))
	}
	return nil
}

// isAuthority checks [ userinfo "@" ] host [ ":" port ] (RFC 3986 section 3.2).
func isAuthority(s string) bool {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		if !uriChars(s[:i], ":") {
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
	return uriChars(name, "") && strings.Trim(port, "0123456789") == ""
}

// uriChars reports whether s holds only unreserved characters, sub-delims,
// escapes and those in extra.
func uriChars(s, extra string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isAlnum(c):
		case c == '%':
			if !isEscape(s[i:]) {
				return false
			}
		case strings.IndexByte("-._~!$&'()*+,;=", c) < 0 && strings.IndexByte(extra, c) < 0:
			return false
		}
	}
	return true
}

// isEscape reports whether s begins with a percent-encoded byte.
func isEscape(s string) bool {
	isHex := func(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }
	return len(s) > 2 && s[0] == '%' && isHex(s[1]) && isHex(s[2])
}

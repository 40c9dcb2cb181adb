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

	"github.com/klauspost/compress/flate"
)

// Compression selects how records are stored.
type Compression uint8

// The compressions. Each gzip record is a member of its own, so that a reader can
// read it alone (WARC 1.1 annex D.2).
const (
	GzipFast Compression = iota // gzip level 1: the default
	None                        // plain text, readable with an editor
)

// ErrField is wrapped by all errors of Append: a value of the record may not
// be written, because it is malformed or not allowed with the record's type.
var ErrField = errors.New("unfit WARC field")

// Encoder turns records into bytes. It holds about 0.8 MiB of tables and
// buffers and starts no goroutine. It can be used again and again, but by one
// goroutine at a time.
type Encoder struct {
	deflate *flate.Writer // nil: plain
	sink    sink
	sha1    hash.Hash
	payload []byte          // digest of the payload as text, or empty
	sum     [sha1.Size]byte // digest of the block or of the payload, see digests
	head    []byte
}

// sink collects what the compressor writes, straight into the caller's slice.
type sink struct{ b []byte }

func (s *sink) Write(p []byte) (int, error) {
	s.b = append(s.b, p...)
	return len(p), nil
}

// NewEncoder returns an encoder.
func NewEncoder(c Compression) *Encoder {
	e := &Encoder{sha1: sha1.New()}
	if c != None {
		e.deflate, _ = flate.NewWriter(&e.sink, flate.BestSpeed) // fails only for levels out of range
	}
	return e
}

var (
	recordEnd   = []byte("\r\n\r\n") // two line ends follow every block (section 4)
	digestText  = base32.StdEncoding
	httpRequest = "application/http;msgtype=request"
	httpAnswer  = "application/http;msgtype=response"

	// gzipHeader is the header of a gzip member (RFC 1952 section 2.3): deflate, no flags, no
	// time and the system "unknown", so that it does not say when or where it was made.
	gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}
)

// maxStored is the largest stored DEFLATE block (RFC 1951 section 3.2.4), in bytes.
const maxStored = 1<<16 - 1

// Append appends r as one record (one gzip member, unless plain) to dst, and
// returns the extended slice and the record's id, "urn:uuid:…". The bytes added
// are the record's stored length; r is not kept or changed.
//
// The member stores the Body of a Packed record without compression: deflating compressed bytes takes as long as
// deflating text and gains nothing. All readers of gzip read it; no digest or id depends on it.
//
// A record has one digest of its body. If a payload digest covers the body, there is no block digest,
// which is optional (5.8): it would cost a second pass over the body and add only the HTTP header.
//
// The id is derived from type, date, target and block, so that a capture encoded
// again has the same bytes. The id of the request goes into the response's
// ConcurrentTo, or the other way round; one of them is enough (5.7).
//
// An error wraps ErrField; then out is dst, unchanged.
func (e *Encoder) Append(dst []byte, r *Record) (out []byte, id string, err error) {
	if err := checkRecord(r); err != nil {
		return dst, "", fmt.Errorf("encode %q record: %w", string(r.Type), err)
	}
	covered := e.digests(r)
	id = e.id(r)
	e.appendHead(r, id, covered)
	if len(e.head) > MaxHeader {
		return dst, "", fmt.Errorf("encode %q record: %w: header of %d bytes", string(r.Type), ErrField, len(e.head))
	}
	if e.deflate == nil {
		dst = append(dst, e.head...)
		dst = append(dst, r.Header...)
		dst = append(dst, r.stored()...)
		return append(dst, recordEnd...), id, nil
	}
	out, err = e.appendMember(dst, r)
	if err != nil {
		return dst, "", fmt.Errorf("encode %q record: %w", string(r.Type), err)
	}
	return out, id, nil
}

// appendMember appends e.head and r's block as one gzip member. It writes the framing
// itself, since a gzip writer offers no way to store a part.
func (e *Encoder) appendMember(dst []byte, r *Record) (out []byte, err error) {
	e.head = append(e.head, r.Header...)
	body := r.stored()
	var sum, size uint32 // CRC-32 and length modulo 2^32 of all parts
	for _, part := range [...][]byte{e.head, body, recordEnd} {
		sum = crc32.Update(sum, crc32.IEEETable, part)
		size += uint32(len(part))
	}
	out = append(dst, gzipHeader...)
	switch {
	case len(body) == 0:
		e.head = append(e.head, recordEnd...)
		out, err = e.appendDeflated(out, 1, e.head)
	case r.Packed:
		out, err = e.appendDeflated(out, 0, e.head)
		out = slices.Grow(out, len(body)+5*(len(body)/maxStored+2)+len(recordEnd)+8)
		out = appendStored(out, body, 0)
		out = appendStored(out, recordEnd, 1)
	default:
		out, err = e.appendDeflated(out, 1, e.head, body, recordEnd)
	}
	if err != nil {
		return nil, err
	}
	out = binary.LittleEndian.AppendUint32(out, sum)
	return binary.LittleEndian.AppendUint32(out, size), nil
}

// appendDeflated appends parts, deflated. final is 1 if they end the stream, and 0 if stored blocks follow.
func (e *Encoder) appendDeflated(dst []byte, final byte, parts ...[]byte) ([]byte, error) {
	if len(parts) == 1 {
		if out, ok := heads.append(dst, parts[0], final); ok {
			return out, nil
		}
	}
	e.sink.b = dst
	e.deflate.Reset(&e.sink)
	defer func() { e.sink.b = nil }() // keep no reference to the caller's memory
	for _, part := range parts {
		if _, err := e.deflate.Write(part); err != nil {
			return nil, err
		}
	}
	end := e.deflate.Close
	if final == 0 {
		end = e.deflate.Flush // it ends on a whole byte
	}
	err := end()
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

// id derives a version 8 UUID (RFC 9562 section 5.8) from the identity of a
// capture. Every part except the last has a fixed length or ends in a line end that
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

// appendHead builds the record header in e.head. All values have passed checkRecord. covered says that the payload's
// digest covers the body.
func (e *Encoder) appendHead(r *Record, id string, covered bool) {
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
	if r.ConcurrentTo != "" {
		b = append(b, "WARC-Concurrent-To: <"...)
		b = append(append(b, r.ConcurrentTo...), ">\r\n"...)
	}
	b = appendField(b, "WARC-Protocol", r.Protocol)
	b = appendField(b, "WARC-Refers-To-Target-URI", r.RefersToTargetURI)
	if !r.RefersToDate.IsZero() {
		b = append(b, "WARC-Refers-To-Date: "...)
		b = append(appendDate(b, r.RefersToDate), "\r\n"...)
	}
	b = appendField(b, "WARC-Profile", r.Profile)
	b = appendField(b, "WARC-Truncated", r.Truncated)
	b = appendField(b, "WARC-Filename", r.Filename)
	if !covered {
		b = append(b, "WARC-Block-Digest: sha1:"...)
		b = append(digestText.AppendEncode(b, e.sum[:]), "\r\n"...)
	}
	b = appendField(b, "WARC-Payload-Digest", e.payload)
	b = appendField(b, "Content-Type", contentType(r))
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(len(r.Header)+len(r.stored())), 10)
	e.head = append(b, "\r\n\r\n"...)
}

// digests sets e.payload to the payload's digest (section 5.9), given or computed, and returns whether it covers the body
// of r. It sets e.sum to the digest of the block or, if the body is covered, of the Header and the payload's digest.
//
// A request has no body, a revisit's payload is elsewhere, and warcinfo has none. A response in chunks has no payload
// digest: by the standard it would cover the body without chunks, but warcio and others compute it with them and would
// report damage.
func (e *Encoder) digests(r *Record) (covered bool) {
	covered = r.Type == TypeResponse && r.Chunks == nil
	e.payload = e.payload[:0]
	switch {
	case r.Chunks != nil:
	case r.PayloadDigest != "" || !covered:
		e.payload = append(e.payload, r.PayloadDigest...)
	default:
		e.payload = appendPayloadDigest(e.payload, r.Body)
	}
	e.sha1.Reset()
	e.sha1.Write(r.Header)
	if covered {
		e.sha1.Write(e.payload)
	} else {
		e.sha1.Write(r.stored())
	}
	e.sha1.Sum(e.sum[:0])
	return covered
}

// PayloadDigest returns the SHA-1 of body in the form of WARC and CDX: "sha1:" and
// 32 characters of base 32. A caller that needs it before encoding passes it
// in Record.PayloadDigest, which saves one hash of the body.
func PayloadDigest(body []byte) string {
	var text [5 + 32]byte
	return string(appendPayloadDigest(text[:0], body))
}

func appendPayloadDigest(dst, body []byte) []byte {
	sum := sha1.Sum(body)
	return digestText.AppendEncode(append(dst, "sha1:"...), sum[:])
}

func appendField[T string | []byte](b []byte, name string, value T) []byte {
	if len(value) == 0 {
		return b
	}
	b = append(b, name...)
	b = append(b, ": "...)
	b = append(b, value...)
	return append(b, "\r\n"...)
}

// appendDate appends t in UTC (section 5.4): to the second if it has no
// fraction, and otherwise with six digits, because older readers read any number of digits as
// microseconds.
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

package warc

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

var (
	// ErrDamaged is wrapped by the reader's errors about the input: it is not WARC, cut short, changed since it was
	// written, or over a bound. Errors of the underlying reader do not wrap it.
	ErrDamaged = errors.New("damaged WARC record")
	// ErrDigest is wrapped by the errors of Verify.
	ErrDigest = errors.New("WARC digest does not match")
)

// Reader reads a WARC file record by record, gzip members and plain records
// alike (WARC 1.1 section 4, annex D.2). It buffers one record at a time: its memory is
// bounded by MaxBlock, and grows only with the bytes that it
// has read. It may be used by one goroutine at a time.
type Reader struct {
	base  int64 // offset at which src begins
	src   memberSource
	in    *bufio.Reader // over src
	gz    *gzip.Reader  // over in; nil before the first member
	text  *bufio.Reader // over gz
	head  []byte
	read  []HeaderField // fields of head
	body  []byte        // scratch: a body without its chunks
	block []byte
	rec   Record
	err   error
}

// memberSource counts the bytes read, and keeps the error of the source, because decoders
// replace it by their own.
type memberSource struct {
	r   io.Reader
	n   int64
	err error
}

func (s *memberSource) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// NewReader returns a reader of the WARC file r. It reads ahead.
func NewReader(r io.Reader) *Reader { return newReader(r, 64<<10) }

func newReader(r io.Reader, bufferBytes int) *Reader {
	w := &Reader{src: memberSource{r: r}}
	w.in = bufio.NewReaderSize(&w.src, bufferBytes)
	return w
}

// Next returns the next record, or io.EOF after the last one. The record and its
// bytes are valid until the next call; its strings stay valid. An error is final: WARC has
// no mark to resume at, but ReadAt can still read the records that an index
// names. Records of unknown type are returned like others.
func (w *Reader) Next() (*Record, error) {
	if w.err != nil {
		return nil, w.err
	}
	start := w.offset()
	magic, err := w.in.Peek(2)
	if len(magic) == 0 && err == io.EOF {
		w.err = io.EOF
		return nil, w.err
	}
	w.rec = Record{Offset: start}
	if err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		err = w.member()
	} else if err == nil || err == io.EOF {
		err = w.record(w.in)
	}
	if err != nil {
		w.err = w.failure(start, err)
		return nil, w.err
	}
	w.rec.Length = w.offset() - start
	return &w.rec, nil
}

// offset returns the offset of the next byte to read.
func (w *Reader) offset() int64 { return w.base + w.src.n - int64(w.in.Buffered()) }

// failure adds the offset to an error, and ErrDamaged unless the source has failed.
func (w *Reader) failure(start int64, err error) error {
	if w.src.err != nil {
		return fmt.Errorf("read WARC record at %d: %w", start, w.src.err)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read WARC record at %d: %w: %w", start, ErrDamaged, err)
}

// member reads a gzip member that holds one record. It reads past the record, because the gzip
// reader compares the checksum only at the end of the member.
func (w *Reader) member() error {
	if w.gz == nil {
		w.gz = new(gzip.Reader)
		w.text = bufio.NewReader(nil)
	}
	if err := w.gz.Reset(w.in); err != nil {
		return err
	}
	w.gz.Multistream(false)
	w.text.Reset(w.gz)
	if err := w.record(w.text); err != nil {
		return err
	}
	switch _, err := w.text.ReadByte(); err {
	case io.EOF:
		return nil
	case nil:
		return errors.New("gzip member holds more than one record")
	default:
		return err
	}
}

// record reads header, block and the two line ends after it into w.rec.
func (w *Reader) record(in *bufio.Reader) error {
	if err := w.readHead(in); err != nil {
		return err
	}
	size, err := w.parseHead()
	if err != nil {
		return err
	}
	if size > MaxBlock {
		return fmt.Errorf("block of %d bytes is over the bound of %d", size, MaxBlock)
	}
	if err := w.readBlock(in, int(size)); err != nil {
		return err
	}
	var end [4]byte
	switch _, err := io.ReadFull(in, end[:]); {
	case err == io.EOF && in == w.in: // the last plain record; indexes exclude its line ends
	case err != nil:
		return err
	case string(end[:]) != string(recordEnd):
		return errors.New("block is not followed by two line ends: Content-Length is wrong")
	}
	w.rec.Body = w.block
	if isHTTP(w.rec.Type, w.rec.ContentType) {
		if n := HeadEnd(w.block[:min(len(w.block), MaxHTTPHeader)], 0); n >= 0 {
			w.rec.Header, w.rec.Body = w.block[:n:n], w.block[n:]
		}
	}
	if w.rec.Type == TypeResponse && saysChunked(w.rec.Header) {
		body, err := Dechunk(w.body[:0], w.rec.Body)
		if w.body = body; err == nil || len(body) > 0 { // otherwise another program has stored the body without chunks
			w.rec.Body, w.rec.Chunks = body, w.rec.Body
			if w.rec.PayloadDigest == "" {
				w.rec.PayloadDigest = PayloadDigest(body)
			}
		}
	}
	return nil
}

// saysChunked reports whether an HTTP header names the chunked transfer coding.
func saysChunked(header []byte) bool {
	for line := range bytes.Lines(header) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if ok && bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			return bytes.EqualFold(bytes.TrimSpace(value), []byte("chunked"))
		}
	}
	return false
}

// readHead reads up to the first blank line.
func (w *Reader) readHead(in *bufio.Reader) error {
	w.head = w.head[:0]
	for line := 0; ; {
		part, err := in.ReadSlice('\n')
		w.head = append(w.head, part...)
		if len(w.head) > MaxHeader {
			return fmt.Errorf("header of more than %d bytes", MaxHeader)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			return err
		}
		if n := len(w.head) - line; n == 1 || n == 2 && w.head[line] == '\r' {
			return nil
		}
		line = len(w.head)
	}
}

// readBlock reads n bytes. The buffer doubles with the bytes read, so that a large
// Content-Length with few bytes after it needs little memory.
func (w *Reader) readBlock(in *bufio.Reader, n int) error {
	w.block = w.block[:0]
	for len(w.block) < n {
		have := len(w.block)
		if have == cap(w.block) {
			w.block = slices.Grow(w.block, min(n-have, max(have, 64<<10)))
		}
		m, err := io.ReadFull(in, w.block[have:min(cap(w.block), n)])
		w.block = w.block[:have+m]
		if err != nil {
			return err
		}
	}
	return nil
}

// parseHead parses w.head, a record header (section 4), into w.rec and returns the length of the
// block. Values lose their angle brackets; unknown fields are ignored (5.1).
func (w *Reader) parseHead() (size int64, err error) {
	r := &w.rec
	version, rest, _ := strings.Cut(string(w.head), "\n")
	if v := strings.TrimSuffix(version, "\r"); v != "WARC/1.1" && v != "WARC/1.0" {
		return 0, fmt.Errorf("first line %q", clip(v))
	}
	if w.read, err = parseFields(rest, w.read[:0]); err != nil {
		return 0, err
	}
	var kind, date, length, refersToDate string
	fields := [...]struct {
		name string
		to   *string
	}{
		{"WARC-Type", &kind},
		{"WARC-Record-ID", &r.ID},
		{"WARC-Date", &date},
		{"Content-Length", &length},
		{"Content-Type", &r.ContentType},
		{"WARC-Target-URI", &r.TargetURI},
		{"WARC-Concurrent-To", &r.ConcurrentTo},
		{"WARC-Block-Digest", &r.BlockDigest},
		{"WARC-Payload-Digest", &r.PayloadDigest},
		{"WARC-IP-Address", &r.IPAddress},
		{"WARC-Refers-To-Target-URI", &r.RefersToTargetURI},
		{"WARC-Refers-To-Date", &refersToDate},
		{"WARC-Truncated", &r.Truncated},
		{"WARC-Filename", &r.Filename},
		{"WARC-Profile", &r.Profile},
		{"WARC-Protocol", &r.Protocol},
	}
	for _, got := range w.read {
		for _, f := range fields {
			if len(got.Name) != len(f.name) || !strings.EqualFold(got.Name, f.name) {
				continue
			}
			if *f.to != "" && f.to != &r.ConcurrentTo { // only ConcurrentTo may be repeated (5.7); the first is kept
				return 0, fmt.Errorf("field %s occurs twice", f.name)
			}
			if *f.to == "" {
				*f.to = unbracket(got.Value)
			}
		}
	}
	r.Type = Type(kind)
	n, err := strconv.ParseUint(length, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("Content-Length %q", clip(length))
	}
	if kind == "" || r.ID == "" {
		return 0, errors.New("no WARC-Type or no WARC-Record-ID")
	}
	if r.Date, err = parseDate(date); err != nil {
		return 0, fmt.Errorf("WARC-Date %q", clip(date))
	}
	if refersToDate != "" {
		if r.RefersToDate, err = parseDate(refersToDate); err != nil {
			return 0, fmt.Errorf("WARC-Refers-To-Date %q", clip(refersToDate))
		}
	}
	return int64(n), nil
}

// unbracket removes the brackets around ids (5.2), and those of WARC 1.0
// around all URIs.
func unbracket(value string) string {
	if len(value) >= 2 && value[0] == '<' && value[len(value)-1] == '>' {
		return value[1 : len(value)-1]
	}
	return value
}

func hasControl(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return true
		}
	}
	return false
}

// parseDate accepts all granularities of section 5.4.
func parseDate(s string) (t time.Time, err error) {
	for _, layout := range [...]string{time.RFC3339, "2006-01-02T15:04Z07:00", time.DateOnly, "2006-01", "2006"} {
		if t, err = time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return t, err
}

// ReadAt reads the one record, compressed or plain, that fills the length
// bytes of src at offset, as an index entry gives them. The caller owns the
// record. Errors are those of Reader.Next; anything other than exactly one record
// is damage.
func ReadAt(src io.ReaderAt, offset, length int64) (*Record, error) {
	if offset < 0 || length <= 0 {
		return nil, fmt.Errorf("read WARC record at %d: %w: length %d", offset, ErrDamaged, length)
	}
	w := newReader(io.NewSectionReader(src, offset, length), int(min(length, 64<<10)))
	w.base = offset
	r, err := w.Next()
	switch {
	case err == io.EOF: // there is nothing at offset
		return nil, w.failure(offset, err)
	case err != nil:
		return nil, err
	case r.Length != length:
		return nil, w.failure(offset, fmt.Errorf("it has %d bytes, not %d", r.Length, length))
	}
	return r, nil
}

// Verify recomputes the digests of a record: of the block (5.8), and of the payload (5.9)
// unless that is elsewhere, as for a revisit. It computes SHA-1 in base 32, as Append does. A
// record without a digest, or with another kind of digest, is not verified, which is an error too.
func (r *Record) Verify() error {
	payload := r.PayloadDigest
	if r.Type == TypeRevisit {
		payload = ""
	}
	if r.BlockDigest == "" && payload == "" {
		return fmt.Errorf("verify %s: %w: the record has no digest", r.ID, ErrDigest)
	}
	if err := verifyDigest(r.BlockDigest, r.Header, r.stored()); err != nil {
		return fmt.Errorf("verify block of %s: %w", r.ID, err)
	}
	if err := verifyDigest(payload, r.Body); err != nil {
		return fmt.Errorf("verify payload of %s: %w", r.ID, err)
	}
	return nil
}

// verifyDigest compares a labelled digest, if there is one, with that of the parts.
func verifyDigest(digest string, parts ...[]byte) error {
	label, value, _ := strings.Cut(digest, ":")
	if digest == "" {
		return nil
	}
	if !strings.EqualFold(label, "sha1") {
		return fmt.Errorf("%w: unknown algorithm %q", ErrDigest, clip(label))
	}
	h := sha1.New()
	for _, p := range parts {
		h.Write(p)
	}
	if got := digestText.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, value) {
		return fmt.Errorf("%w: recorded %s, computed %s", ErrDigest, clip(digest), got)
	}
	return nil
}

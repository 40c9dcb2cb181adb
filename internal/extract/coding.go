package extract

import (
	"bytes"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Bounds on decoded sizes. HTML deflates to a tenth, tables of numbers to a fiftieth. DEFLATE can
// reach a thousandth and the newer codings far less, but only bombs do.
const (
	MaxDecoded    = 64 << 20  // bytes, upper bound for every body
	maxPerBody    = 4         // decoded bytes per byte of the longest allowed body
	maxRatio      = 128       // decoded bytes per byte received
	alwaysDecoded = 1 << 20   // bytes, allowed at any ratio
	firstDecoded  = 256 << 10 // bytes of the first buffer
	KeptBuffer    = 4 << 20   // bytes; a larger buffer is not kept for the next body

	// maxWindow is how far back, in bytes, a zstd frame may refer. RFC 9659 section 3 allows
	// no more in a content coding. A brotli window has at most 16 MiB (RFC 7932 section 9.1).
	maxWindow = 8 << 20

	// maxBrotli bounds the bytes of a body that are decoded as brotli. A stream of tiny
	// meta-blocks costs up to a microsecond a byte, ten times the worst case of the others.
	maxBrotli = 4 << 20
)

// AcceptedCodings lists the codings that [Decoder] decodes, in the syntax of Accept-Encoding.
const AcceptedCodings = "gzip, br, zstd"

// DecodedLimit returns the limit on the decoded size of a body of n bytes, if bodies have at most maxBody bytes.
func DecodedLimit(n int, maxBody int64) int {
	return int(min(MaxDecoded, maxPerBody*maxBody, max(alwaysDecoded, maxRatio*int64(n))))
}

// Coding returns the content coding that the values of Content-Encoding name, in lower case, or "" for none.
// It returns several codings joined by commas; [Decoder] decodes no such coding.
func Coding(values []string) string {
	if len(values) == 0 {
		return ""
	}
	coding := strings.ToLower(strings.Trim(strings.Join(values, ","), " \t"))
	if coding == "identity" {
		return ""
	}
	return coding
}

// Decoder undoes the content coding (RFC 9110 section 8.4) of one body after another, in one goroutine: gzip,
// brotli and zstd. Every call has a limit, so a decompression bomb costs no more than the limit. The zero value is
// ready for use.
// It creates the reader of a coding when the coding first occurs, and reuses it: gzip takes
// about 50 KiB, the others up to 8 MiB.
type Decoder struct {
	gzip   *gzip.Reader
	brotli *brotli.Reader
	zstd   *zstd.Decoder

	source bytes.Reader // the input of stream
	stream io.Reader    // the reader of the body's coding; nil after its end
	plain  []byte       // the body itself, if it has no coding
	out    []byte       // the bytes decoded so far
}

// Open begins a body. It invalidates the result of UpTo for the previous body.
//
// A body that is declared as gzip but does not begin like gzip is plain, as in browsers. A body in
// an unknown coding, or in several codings, decodes to nothing.
func (d *Decoder) Open(body []byte, coding string) {
	d.Close()
	switch coding {
	case "":
		d.plain = body
	case "gzip", "x-gzip":
		if !bytes.HasPrefix(body, []byte("\x1f\x8b")) {
			d.plain = body
			return
		}
		if d.gzip == nil {
			d.gzip = new(gzip.Reader)
		}
		d.source.Reset(body)
		if d.gzip.Reset(&d.source) == nil {
			d.stream = d.gzip
		}
	case "br":
		if d.brotli == nil {
			d.brotli = new(brotli.Reader)
		}
		d.source.Reset(body[:min(len(body), maxBrotli)])
		if d.brotli.Reset(&d.source) == nil {
			d.stream = d.brotli
		}
		if wideBrotli(body) {
			d.brotli = nil // its window is too large to keep
		}
	case "zstd":
		if d.zstd == nil {
			// NewReader fails only for invalid options. A concurrency of 1 starts no goroutine.
			d.zstd, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(MaxDecoded))
		}
		d.source.Reset(body)
		if d.zstd.Reset(&d.source) == nil {
			d.stream = d.zstd
		}
	}
}

// wideBrotli reports whether a stream declares a window above 4 MiB in its first bits
// (RFC 7932 section 9.1). Few servers send such streams.
func wideBrotli(body []byte) bool {
	return len(body) > 0 && body[0]&1 == 1 && body[0]>>1&7 >= 6
}

// UpTo returns the decoded body, at most limit bytes of it. A later call may pass a higher limit.
// The result is valid until the next call of any method, and may be a part of the body itself.
//
// If the body is damaged or cut off, UpTo returns the bytes before the damage: their links are real.
func (d *Decoder) UpTo(limit int) []byte {
	if d.plain != nil {
		return d.plain[:min(len(d.plain), limit)]
	}
	if d.stream != nil && d.out == nil {
		d.out = make([]byte, 0, firstDecoded)
	}
	for d.stream != nil && len(d.out) < limit {
		if len(d.out) == cap(d.out) {
			d.out = append(make([]byte, 0, min(2*cap(d.out), limit)), d.out...)
		}
		n, err := d.stream.Read(d.out[len(d.out):min(cap(d.out), limit)])
		d.out = d.out[:len(d.out)+n]
		if err != nil {
			d.stream = nil
		}
	}
	return d.out[:min(len(d.out), limit)]
}

// Close releases the body, and an unusually large buffer.
func (d *Decoder) Close() {
	if d.zstd != nil {
		_ = d.zstd.Reset(nil) // releases the body; the error says that there is no input
	}
	d.source.Reset(nil)
	d.stream, d.plain, d.out = nil, nil, d.out[:0]
	if cap(d.out) > KeptBuffer {
		d.out = nil
	}
}

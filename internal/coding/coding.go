// Package coding undoes the content codings of HTTP bodies (RFC 9110 section 8.4): gzip, brotli and
// zstd, as far as a bound says, so that no bomb takes more than that. It does no I/O.
package coding

import (
	"bytes"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/orbweaver/orbweaver/internal/inflate"
)

// Bounds of what a content coding may blow up to. HTML deflates to a tenth, tables of numbers to
// a fiftieth; DEFLATE can reach a thousandth and the newer codings much less, which only bombs do.
const (
	MaxDecoded    = 64 << 20 // bytes, whatever else
	maxPerBody    = 4        // times the longest body
	maxRatio      = 128      // decoded bytes per byte received
	alwaysDecoded = 1 << 20  // bytes, whatever the ratio
	firstDecoded  = 256 << 10
	KeptBuffer    = 4 << 20 // larger buffers are not kept for the next answer

	// maxWindow is how far back, in bytes, a zstd frame may refer: what RFC 9659 section 3
	// allows as a content coding. A brotli window has at most 16 MiB (RFC 7932 section 9.1).
	maxWindow = 8 << 20

	// maxBrotli is how much of a body is decoded as brotli, in bytes received. A stream of tiny
	// meta-blocks costs up to a microsecond a byte, ten times what the others can be made to.
	maxBrotli = 4 << 20
)

// Accepted lists the codings that [Decoder] undoes, as Accept-Encoding does.
const Accepted = "gzip, br, zstd"

// Limit returns how far a body of n bytes may be decoded, where bodies have at most maxBody.
func Limit(n int, maxBody int64) int {
	return int(min(MaxDecoded, maxPerBody*maxBody, max(alwaysDecoded, maxRatio*int64(n))))
}

// Of returns the content coding that the values of Content-Encoding name, in lower case, "" for none.
// Several are joined by commas, and then no coding that is undone here.
func Of(values []string) string {
	if len(values) == 0 {
		return ""
	}
	coding := strings.ToLower(strings.Trim(strings.Join(values, ","), " \t"))
	if coding == "identity" {
		return ""
	}
	return coding
}

// Decoder undoes the content coding of one body after another. The zero value is ready for use, by
// one goroutine. Its tables and windows are
// made when a coding first occurs, and kept: for gzip 24 KiB, for the others up to 8 MiB.
type Decoder struct {
	gzip   *inflate.Decoder
	brotli *brotli.Reader
	zstd   *zstd.Decoder

	source  bytes.Reader // of what stream reads
	stream  io.Reader    // brotli or zstd, until it ended
	deflate []byte       // the body itself if it is gzip, until all of it was decoded
	plain   []byte       // the body itself, if it has no coding
	out     []byte       // what was decoded so far
}

// Open begins with a body; what UpTo gave of the one before is no longer valid.
//
// One that says gzip but is not is taken as plain, as browsers do; one of a coding that was
// not asked for, or of several, gives nothing.
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
			d.gzip = new(inflate.Decoder)
		}
		d.deflate = body
	case "br":
		if d.brotli == nil {
			d.brotli = new(brotli.Reader)
		}
		d.source.Reset(body[:min(len(body), maxBrotli)])
		if d.brotli.Reset(&d.source) == nil {
			d.stream = d.brotli
		}
		if wideBrotli(body) {
			d.brotli = nil // used once, not kept
		}
	case "zstd":
		if d.zstd == nil {
			// It fails only for options out of range. With a concurrency of 1 it starts no goroutine.
			d.zstd, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(MaxDecoded))
		}
		d.source.Reset(body)
		if d.zstd.Reset(&d.source) == nil {
			d.stream = d.zstd
		}
	}
}

// wideBrotli reports whether a stream declares a window above 4 MiB, as servers seldom do, by
// the bits it begins with (RFC 7932 section 9.1).
func wideBrotli(body []byte) bool {
	return len(body) > 0 && body[0]&1 == 1 && body[0]>>1&7 >= 6
}

// UpTo returns the body without its content coding, at most limit bytes, and may be called
// again for more. The result is valid until the next call, and may be the body itself.
//
// A body that cannot be decoded to its end gives what came before: the links on it are real.
func (d *Decoder) UpTo(limit int) []byte {
	if d.plain != nil {
		return d.plain[:min(len(d.plain), limit)]
	}
	if (d.stream != nil || d.deflate != nil) && d.out == nil {
		d.out = make([]byte, 0, firstDecoded)
	}
	if d.deflate != nil && len(d.out) < limit {
		var err error // From the beginning again: what was wanted before are a few bytes, if any.
		if d.out, err = d.gzip.Gzip(d.out[:0], d.deflate, limit); err != inflate.ErrLimit {
			d.deflate = nil
		}
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

// Close lets go of the body, and of a buffer that only a large one needed.
func (d *Decoder) Close() {
	if d.zstd != nil {
		_ = d.zstd.Reset(nil) // fails for there being nothing to read, and lets go of the body
	}
	d.source.Reset(nil)
	d.stream, d.deflate, d.plain, d.out = nil, nil, nil, d.out[:0]
	if cap(d.out) > KeptBuffer {
		d.out = nil
	}
}

// Kept is the size of the buffer that is kept for the next body.
func (d *Decoder) Kept() int { return cap(d.out) }

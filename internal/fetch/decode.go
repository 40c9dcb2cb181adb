package fetch

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
	maxDecoded    = 64 << 20 // bytes, whatever else
	maxPerBody    = 4        // times Config.MaxBody
	maxRatio      = 128      // decoded bytes per byte received
	alwaysDecoded = 1 << 20  // bytes, whatever the ratio
	sniffed       = 512      // bytes that tell what a body is
	firstDecoded  = 256 << 10
	keptBuffer    = 4 << 20 // larger buffers are not kept for the next answer

	// maxWindow is how far back, in bytes, a zstd frame may refer: what RFC 9659 section 3
	// allows as a content coding. A brotli window has at most 16 MiB (RFC 7932 section 9.1).
	maxWindow = 8 << 20

	// maxBrotli is how much of a body is decoded as brotli, in bytes received. A stream of tiny
	// meta-blocks costs up to a microsecond a byte, ten times what the others can be made to.
	maxBrotli = 4 << 20
)

// acceptEncoding lists the codings that decoder undoes.
const acceptEncoding = "gzip, br, zstd"

// decoder undoes the content coding of one body after another. Its tables and windows are
// made when a coding first occurs, and kept: for gzip 24 KiB, for the others up to 8 MiB.
type decoder struct {
	gzip   *inflate.Decoder
	brotli *brotli.Reader
	zstd   *zstd.Decoder

	source  bytes.Reader // of what stream reads
	stream  io.Reader    // brotli or zstd, until it ended
	deflate []byte       // the body itself if it is gzip, until all of it was decoded
	plain   []byte       // the body itself, if it has no coding
	out     []byte       // what was decoded so far
}

// decodedLimit returns how far a body of n bytes may be decoded.
func (s *Scratch) decodedLimit(n int) int {
	return int(min(maxDecoded, maxPerBody*s.maxBody, max(alwaysDecoded, maxRatio*int64(n))))
}

// coding returns the content coding of the answer in lower case, "" for none. Several are
// joined by commas, and then no coding that is undone here.
func (r *Response) coding() string {
	values := r.fields("Content-Encoding")
	if len(values) == 0 {
		return ""
	}
	coding := strings.ToLower(strings.Trim(strings.Join(values, ","), " \t"))
	if coding == "identity" {
		return ""
	}
	return coding
}

// open begins with a body; what upTo gave of the one before is no longer valid.
//
// One that says gzip but is not is taken as plain, as browsers do; one of a coding that was
// not asked for, or of several, gives nothing.
func (d *decoder) open(body []byte, coding string) {
	d.close()
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
				zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxDecoded))
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

// upTo returns the body without its content coding, at most limit bytes, and may be called
// again for more. The result is valid until the next call, and may be the body itself.
//
// A body that cannot be decoded to its end gives what came before: the links on it are real.
func (d *decoder) upTo(limit int) []byte {
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

// close lets go of the body, and of a buffer that only a large one needed.
func (d *decoder) close() {
	if d.zstd != nil {
		_ = d.zstd.Reset(nil) // fails for there being nothing to read, and lets go of the body
	}
	d.source.Reset(nil)
	d.stream, d.deflate, d.plain, d.out = nil, nil, nil, d.out[:0]
	if cap(d.out) > keptBuffer {
		d.out = nil
	}
}

// packedPrefixes are how formats begin whose bytes are compressed; '?' stands for any byte.
// Not PDF, of which much is text.
var packedPrefixes = [...]string{
	"\x1f\x8b", "\x28\xb5\x2f\xfd", "BZh", "\xfd7zXZ\x00", "PK\x03\x04", "7z\xbc\xaf\x27\x1c", "Rar!", // gzip, zstd, bzip2, xz, zip, 7z, rar
	"\xff\xd8\xff", "\x89PNG", "GIF8", "RIFF????WEBP", // JPEG, PNG, GIF, WebP
	"????ftyp", "\x1a\x45\xdf\xa3", "OggS", "ID3", "\xff\xfb", "fLaC", // MP4 and AVIF, Matroska and WebM, Ogg, MP3, FLAC
	"wOFF", "wOF2", // fonts
}

// packed reports whether a body is compressed already, so that deflating it again would cost
// as much as for text and gain nothing. Its first bytes tell, not its type or name, which
// servers get wrong: text that is stored as it came is a loss for ever. Only codings without
// such bytes are believed. Who forges either has his own page stored larger, no more.
func packed(body []byte, coding string) bool {
	switch coding {
	case "", "gzip", "x-gzip", "zstd":
	default:
		return true
	}
	for _, p := range packedPrefixes {
		if hasPattern(body, p) {
			return true
		}
	}
	return false
}

func hasPattern(b []byte, pattern string) bool {
	if len(b) < len(pattern) {
		return false
	}
	for i := range len(pattern) {
		if pattern[i] != '?' && pattern[i] != b[i] {
			return false
		}
	}
	return true
}

package warc

import (
	"errors"
	"strings"
)

// Bounds on the framing of a body in chunks, in bytes.
const (
	maxChunkLine = 4 << 10  // a chunk size with its extensions
	maxTrailer   = 4 << 10  // all trailer fields
	maxExcess    = 16 << 10 // framing beyond 16 bytes per chunk and twice the body
)

// Errors of [Dechunker.Append].
var (
	errChunk     = errors.New("malformed chunked encoding")
	errChunkLine = errors.New("chunk header line too long")
	errChunkSize = errors.New("chunk length too large")
	errExcess    = errors.New("chunked encoding contains too much non-data")
	errTrailer   = errors.New("suspiciously long trailer")
)

// Dechunker undoes the chunked transfer coding (RFC 9112 section 7.1) of bytes as they come. The zero value begins a body.
type Dechunker struct {
	state  chunkState
	left   uint64 // bytes of the chunk that are still to come
	line   int    // bytes of the line so far
	excess int64  // bytes of framing beyond what is usual
	digits bool
	size   uint64
	lines  [2]byte // last bytes of the trailer
}

type chunkState uint8

const (
	inSize chunkState = iota
	inExtension
	sizeEnds // LF is next
	inData
	dataEnds   // CR is next
	dataEnding // LF is next
	inTrailer
	chunksEnd
)

// Append appends the body in b to dst, until that has most bytes. It returns how many bytes of b it took: fewer than len(b) if dst
// is full, or if the last chunk and its trailer have ended, which Done reports.
func (d *Dechunker) Append(dst, b []byte, most int) (_ []byte, n int, err error) {
	for n < len(b) && d.state != chunksEnd && len(dst) < most {
		if d.state == inData {
			m := int(min(d.left, uint64(len(b)-n), uint64(most-len(dst))))
			dst = append(dst, b[n:n+m]...)
			n += m
			if d.left -= uint64(m); d.left == 0 {
				d.state = dataEnds
			}
			continue
		}
		if err := d.frame(b[n]); err != nil {
			return dst, n, err
		}
		n++
	}
	return dst, n, nil
}

// Done reports whether the last chunk and its trailer have ended.
func (d *Dechunker) Done() bool { return d.state == chunksEnd }

// frame takes one byte of the framing.
func (d *Dechunker) frame(c byte) error {
	switch d.state {
	case inSize, inExtension, sizeEnds:
		return d.sizeLine(c)
	case dataEnds, dataEnding:
		if want := "\r\n"[d.state-dataEnds]; c != want {
			return errChunk
		}
		if d.state++; d.state == inTrailer {
			d.state = inSize
		}
	case inTrailer:
		if d.line++; d.line > maxTrailer {
			return errTrailer
		}
		// An empty line ends it: CR LF at the beginning, or after a line.
		if c == '\n' && (d.line == 2 && d.lines[1] == '\r' || d.line > 2 && d.lines == [2]byte{'\n', '\r'}) {
			d.state = chunksEnd
		}
		d.lines = [2]byte{d.lines[1], c}
	}
	return nil
}

// sizeLine takes one byte of the line before a chunk.
func (d *Dechunker) sizeLine(c byte) error {
	if d.line++; d.line > maxChunkLine {
		return errChunkLine
	}
	digit := strings.IndexByte("0123456789abcdef", c|0x20)
	switch {
	case d.state == sizeEnds:
		if c != '\n' {
			return errChunk
		}
		return d.begin()
	case c == '\r':
		d.state = sizeEnds
	case c == '\n':
		return errChunk
	case d.state == inExtension:
	case c == ';', c == ' ', c == '\t':
		d.state = inExtension
	case digit < 0 || c < '0':
		return errChunk
	case d.line > 16:
		return errChunkSize
	default:
		d.size, d.digits = d.size<<4|uint64(digit), true
	}
	return nil
}

// begin begins a chunk, or the trailer.
func (d *Dechunker) begin() error {
	if !d.digits {
		return errChunk
	}
	// Single bytes may be streamed in chunks of their own, but extensions must not outweigh the body.
	d.excess = max(0, d.excess+int64(d.line)+2-16-2*int64(min(d.size, 1<<40)))
	if d.excess > maxExcess {
		return errExcess
	}
	d.left, d.state = d.size, inData
	if d.size == 0 {
		d.state, d.lines = inTrailer, [2]byte{}
	}
	d.line, d.size, d.digits = 0, 0, false
	return nil
}

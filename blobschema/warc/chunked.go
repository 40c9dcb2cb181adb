package warc

import (
	"errors"
	"strings"
)

// Bounds on the framing of a body in chunks, in bytes.
const (
	maxChunkLine = 4 << 10  // a chunk size with its extensions
	maxTrailer   = 4 << 10  // all trailer fields
	maxExcess    = 16 << 10 // framing in excess of 16 bytes per chunk and twice the body
)

// Errors of [Dechunker.Next].
var (
	errChunk     = errors.New("malformed chunked encoding")
	errChunkLine = errors.New("chunk header line too long")
	errChunkSize = errors.New("chunk length too large")
	errExcess    = errors.New("chunked encoding contains too much non-data")
	errTrailer   = errors.New("suspiciously long trailer")
)

// Dechunker decodes the chunked transfer coding (RFC 9112 section 7.1) of a body that arrives in pieces. The zero value begins
// a body.
type Dechunker struct {
	state  chunkState
	left   uint64  // bytes missing from the current chunk
	line   int     // bytes of the current line, or of the trailer
	excess int64   // bytes of framing in excess of the allowance, see maxExcess
	digits bool    // the current size line has a digit
	size   uint64  // chunk size parsed so far
	lines  [2]byte // last two bytes of the trailer
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

// Next consumes the framing at the beginning of b, and the piece of the body after it: at most most bytes. It returns the
// piece, which is a part of b, and the number of bytes consumed: fewer than len(b) if there is a piece, after an error, or
// after the end of the trailer, which Done reports.
func (d *Dechunker) Next(b []byte, most int64) (piece []byte, n int, err error) {
	for n < len(b) && d.state != chunksEnd {
		if d.state == inData {
			m := min(d.left, uint64(len(b)-n), uint64(most))
			if d.left -= m; d.left == 0 {
				d.state = dataEnds
			}
			return b[n : n+int(m)], n + int(m), nil
		}
		if err := d.frame(b[n]); err != nil {
			return nil, n, err
		}
		n++
	}
	return nil, n, nil
}

// Dechunk appends to dst the body that is in chunks in b, which may end early.
func Dechunk(dst, b []byte) ([]byte, error) {
	for d := (Dechunker{}); len(b) > 0 && !d.Done(); {
		piece, n, err := d.Next(b, int64(len(b)))
		if err != nil {
			return dst, err
		}
		dst, b = append(dst, piece...), b[n:]
	}
	return dst, nil
}

// Done reports whether the last chunk and its trailer have ended.
func (d *Dechunker) Done() bool { return d.state == chunksEnd }

// frame consumes one byte of the framing.
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
		// An empty line ends the trailer: CR LF at its beginning or after a line.
		if c == '\n' && (d.line == 2 && d.lines[1] == '\r' || d.line > 2 && d.lines == [2]byte{'\n', '\r'}) {
			d.state = chunksEnd
		}
		d.lines = [2]byte{d.lines[1], c}
	}
	return nil
}

// sizeLine consumes one byte of the line before a chunk.
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

// begin begins a chunk or, after a size of 0, the trailer.
func (d *Dechunker) begin() error {
	if !d.digits {
		return errChunk
	}
	// A server may stream single bytes in chunks of their own, but extensions must not outweigh the body.
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

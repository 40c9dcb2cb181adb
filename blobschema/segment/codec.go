package segment

import (
	"encoding/binary"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// piece is a range of bytes that is read and checked as a whole. It is compressed if that makes it shorter.
type piece struct {
	off, length int64
	raw         int64 // bytes, inflated; equal to length if it is not compressed
	sum         uint32
}

// appendPiece appends raw as a piece. Its offset is that in dst.
func appendPiece(dst, raw []byte) ([]byte, piece) {
	at := len(dst)
	dst = wire.AppendCompressed(dst, raw)
	if len(dst)-at >= len(raw) {
		dst = append(dst[:at], raw...)
	}
	return dst, piece{int64(at), int64(len(dst) - at), int64(len(raw)), wire.Checksum(dst[at:])}
}

// append appends the description of a piece without its offset. Offsets follow from the lengths, so that no two
// pieces can overlap.
func (p piece) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.length))
	dst = binary.AppendUvarint(dst, uint64(p.raw))
	return binary.LittleEndian.AppendUint32(dst, p.sum)
}

// readPiece reads the result of append, for a piece that begins at *off and ends by end.
func readPiece(c *wire.Cursor, off *int64, end, limit int64) piece {
	p := piece{off: *off}
	p.length = int64(c.Uvarint(uint64(max(end-*off, 0))))
	p.raw = int64(c.Uvarint(uint64(limit)))
	p.sum = c.Uint32()
	if p.raw < p.length {
		c.Fail("piece of %d bytes for %d", p.length, p.raw)
	}
	*off += p.length
	return p
}

// open checks the bytes of a piece and inflates them, into buf if it is large enough.
func (p piece) open(b, buf []byte) ([]byte, error) {
	if int64(len(b)) != p.length {
		return nil, wire.Damaged("%d bytes, not %d", len(b), p.length)
	}
	if wire.Checksum(b) != p.sum {
		return nil, wire.Damaged("checksum")
	}
	if p.raw == p.length {
		return b, nil
	}
	return wire.Decompress(buf, b, int(p.raw))
}

// read reads and opens a piece.
func (p piece) read(src Source, buf []byte) ([]byte, error) {
	b, err := src(p.off, p.length)
	if err != nil {
		return nil, err
	}
	return p.open(b, buf)
}

// appendShared appends s as the number of bytes that it shares with before, and the rest.
func appendShared(dst []byte, before, s string) []byte {
	n := 0
	for n < len(s) && n < len(before) && s[n] == before[n] {
		n++
	}
	return wire.AppendPrefixed(binary.AppendUvarint(dst, uint64(n)), s[n:])
}

// readShared returns the string of appendShared. buf is the previous string.
func readShared(c *wire.Cursor, buf []byte, limit int) []byte {
	n := c.Uvarint(uint64(len(buf)))
	return append(buf[:n], c.Prefixed(uint64(max(limit-int(n), 0)))...)
}

// appendPlanes appends numbers of width bytes, first the lowest byte of each, then the next bytes: high bytes are
// mostly equal, and compress well.
func appendPlanes[T uint32 | uint64](dst []byte, width int, values []T) []byte {
	dst = slices.Grow(dst, width*len(values))
	for shift := 0; shift < 8*width; shift += 8 {
		for _, v := range values {
			dst = append(dst, byte(v>>shift))
		}
	}
	return dst
}

// planes decodes the result of appendPlanes: len(raw) is width times the number of values.
func planes[T uint32 | uint64](raw []byte, width int) []T {
	out := make([]T, len(raw)/width)
	for p := range width {
		for i, b := range raw[p*len(out) : (p+1)*len(out)] {
			out[i] |= T(b) << (8 * p)
		}
	}
	return out
}

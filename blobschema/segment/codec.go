package segment

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", blobschema.ErrDamaged, fmt.Sprintf(format, args...))
}

// A piece is what is read and checked by itself: compressed, if that helps.
type piece struct {
	off, length int64
	raw         int64 // bytes, inflated; equal to length if it is not compressed
	sum         uint32
}

// appendPiece appends raw as a piece; its offset is that in dst.
func appendPiece(dst, raw []byte) ([]byte, piece) {
	at := len(dst)
	dst = blobschema.AppendCompressed(dst, raw)
	if len(dst)-at >= len(raw) {
		dst = append(dst[:at], raw...)
	}
	return dst, piece{int64(at), int64(len(dst) - at), int64(len(raw)), blobschema.Checksum(dst[at:])}
}

// append appends what tells a piece, but for its offset: these add up, so that no two
// pieces can overlap.
func (p piece) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.length))
	dst = binary.AppendUvarint(dst, uint64(p.raw))
	return binary.LittleEndian.AppendUint32(dst, p.sum)
}

// piece reads what append wrote of a piece that begins at *off and ends by end.
func (c *cursor) piece(off *int64, end, limit int64) piece {
	p := piece{off: *off}
	p.length = int64(c.uvarint(uint64(max(end-*off, 0))))
	p.raw = int64(c.uvarint(uint64(limit)))
	p.sum = c.uint32()
	if p.raw < p.length {
		c.fail("piece of %d bytes for %d", p.length, p.raw)
	}
	*off += p.length
	return p
}

// open checks the bytes of a piece and inflates them, into buf if it is large enough.
func (p piece) open(b, buf []byte) ([]byte, error) {
	if int64(len(b)) != p.length {
		return nil, damaged("%d bytes where %d were asked for", len(b), p.length)
	}
	if blobschema.Checksum(b) != p.sum {
		return nil, damaged("checksum")
	}
	if p.raw == p.length {
		return b, nil
	}
	return blobschema.Decompress(buf, b, int(p.raw))
}

// read reads and opens a piece.
func (p piece) read(src Source, buf []byte) ([]byte, error) {
	b, err := src(p.off, p.length)
	if err != nil {
		return nil, err
	}
	return p.open(b, buf)
}

// cursor reads hostile bytes. Its first failure sticks: what is read after it is zero
// and empty, so a decoder may look at err once, before it trusts anything.
type cursor struct {
	b   []byte
	err error
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = damaged(format, args...)
	}
	c.b = nil
}

// uvarint reads a number of at most limit.
func (c *cursor) uvarint(limit uint64) uint64 {
	if len(c.b) > 0 && c.b[0] < 0x80 && uint64(c.b[0]) <= limit {
		v := uint64(c.b[0])
		c.b = c.b[1:]
		return v
	}
	v, n := binary.Uvarint(c.b)
	if n <= 0 || v > limit {
		c.fail("number cut short or above %d", limit)
		return 0
	}
	c.b = c.b[n:]
	return v
}

// take reads n bytes, which stay part of the input.
func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.fail("%d bytes promised, %d left", n, len(c.b))
		return nil
	}
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) prefixed(limit uint64) []byte { return c.take(c.uvarint(limit)) }

func (c *cursor) uint32() uint32 {
	if b := c.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) uint64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// end is the verdict on everything read: an error too if bytes are left.
func (c *cursor) end() error {
	if c.err == nil && len(c.b) > 0 {
		c.fail("%d bytes too many", len(c.b))
	}
	return c.err
}

// column reads n numbers of at most limit.
func (c *cursor) column(n int, limit uint64, set func(i int, v uint64)) {
	for i := 0; i < n && c.err == nil; i++ {
		set(i, c.uvarint(limit))
	}
}

func appendColumn(dst []byte, n int, at func(i int) uint64) []byte {
	for i := range n {
		dst = binary.AppendUvarint(dst, at(i))
	}
	return dst
}

func appendPrefixed[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// appendShared appends s as the number of bytes it shares with the one before and the
// rest.
func appendShared(dst []byte, before, s string) []byte {
	n := 0
	for n < len(s) && n < len(before) && s[n] == before[n] {
		n++
	}
	return appendPrefixed(binary.AppendUvarint(dst, uint64(n)), s[n:])
}

// shared turns buf, the string before, into the one that appendShared wrote.
func (c *cursor) shared(buf []byte, limit int) []byte {
	n := c.uvarint(uint64(len(buf)))
	return append(buf[:n], c.prefixed(uint64(max(limit-int(n), 0)))...)
}

// appendPlanes appends numbers of width bytes, the lowest byte of all first, then the
// next: high bytes are mostly equal, and compress to nothing.
func appendPlanes[T uint32 | uint64](dst []byte, width int, values []T) []byte {
	dst = slices.Grow(dst, width*len(values))
	for shift := 0; shift < 8*width; shift += 8 {
		for _, v := range values {
			dst = append(dst, byte(v>>shift))
		}
	}
	return dst
}

// planes undoes appendPlanes: len(raw) is width times the numbers.
func planes[T uint32 | uint64](raw []byte, width int) []T {
	out := make([]T, len(raw)/width)
	for p := range width {
		for i, b := range raw[p*len(out) : (p+1)*len(out)] {
			out[i] |= T(b) << (8 * p)
		}
	}
	return out
}

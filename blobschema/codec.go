package blobschema

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/fxamacker/cbor/v2"
	"github.com/klauspost/compress/zstd"
)

// What a decoder of this package says of bytes it cannot take. Callers branch on
// them: damage is worth another read or a dead letter, an unknown version is not.
var (
	ErrDamaged = errors.New("damaged data")
	ErrVersion = errors.New("unknown format version")
)

// Bounds of one entry. Writers check them, so that readers may insist on them.
const (
	maxURL      = 4 << 10   // bytes of a URL; weburl keeps to half of it
	maxHost     = 512       // bytes of a host key
	maxHostData = 1 << 20   // bytes of HostState.Data
	maxAnchor   = 1 << 10   // bytes of a link's text
	maxSection  = 256 << 20 // bytes of a section, inflated
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// The coders are reused for their tables, hundreds of kilobytes each. With a
// concurrency of one, EncodeAll and DecodeAll start no goroutine. The window is
// small because what is compressed is: blocks of 64 KiB, sections of a few MiB.
var (
	zstdEncoders = sync.Pool{New: func() any {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault),
			zstd.WithWindowSize(512<<10), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // the options are constants
		}
		return e
	}}
	zstdDecoders = sync.Pool{New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(maxSection), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			panic(err) // the options are constants
		}
		return d
	}}
)

func appendZstd(dst, raw []byte) []byte {
	e := zstdEncoders.Get().(*zstd.Encoder)
	defer zstdEncoders.Put(e)
	return e.EncodeAll(raw, dst)
}

// maxRatio bounds what a frame may claim to hold, before anything is allocated.
// The format's own best is a run of 128 KiB in 4 bytes.
const maxRatio = 1 << 15

// inflate decodes a frame of exactly n bytes into buf, which grows if need be.
func inflate(buf, frame []byte, n int) ([]byte, error) {
	if n > len(frame)*maxRatio {
		return nil, damaged("%d bytes cannot come from %d", n, len(frame))
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	d := zstdDecoders.Get().(*zstd.Decoder)
	defer zstdDecoders.Put(d)
	raw, err := d.DecodeAll(frame, buf[:0:n])
	if err != nil {
		return nil, damaged("zstd: %v", err)
	}
	if len(raw) != n {
		return nil, damaged("%d bytes where %d were promised", len(raw), n)
	}
	return raw, nil
}

// appendPacked appends raw compressed, its length before it.
func appendPacked(dst, raw []byte) []byte {
	return appendZstd(binary.AppendUvarint(dst, uint64(len(raw))), raw)
}

// unpack undoes appendPacked for at most limit bytes.
func unpack(b []byte, limit uint64) ([]byte, error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > limit {
		return nil, damaged("length of compressed bytes")
	}
	return inflate(nil, b[k:], int(n))
}

// The CBOR modes are immutable and safe for concurrent use. Encoding is the core
// deterministic one of RFC 8949 section 4.2.1, times as RFC 3339 text.
var cborEnc, cborDec = cborModes()

func cborModes() (cbor.UserBufferEncMode, cbor.DecMode) {
	opts := cbor.CoreDetEncOptions()
	opts.Time = cbor.TimeRFC3339Nano
	enc, err := opts.UserBufferEncMode()
	if err != nil {
		panic(err) // the options are constants
	}
	dec, err := cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		MaxNestedLevels:  8,
		MaxArrayElements: 1 << 20,
		MaxMapPairs:      1 << 16,
		// A stray byte in one text must not make a whole commit unreadable.
		UTF8: cbor.UTF8DecodeInvalid,
	}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return enc, dec
}

// cursor reads hostile bytes. Its first failure sticks: what is read after it is
// zero and empty, so a decoder may look at err once, before it trusts anything.
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

// prefixed reads bytes behind their length, which is at most limit.
func (c *cursor) prefixed(limit uint64) []byte { return c.take(c.uvarint(limit)) }

// count reads the number of things that follow and take at least size bytes each,
// so that what is allocated for them is in proportion to the input.
func (c *cursor) count(size int) int {
	n := c.uvarint(uint64(len(c.b) / size))
	return int(min(n, uint64(len(c.b)/size)))
}

func (c *cursor) uint32() uint32 {
	b := c.take(4)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

func (c *cursor) uint64() uint64 {
	b := c.take(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// end is the verdict on everything read: an error too if bytes are left.
func (c *cursor) end() error {
	if c.err == nil && len(c.b) > 0 {
		c.fail("%d bytes too many", len(c.b))
	}
	return c.err
}

func appendPrefixed[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// A column holds one number of each of n entries. Columns compress better than
// rows, and most of ours are constant, which costs three bytes and no time.
const (
	columnConstant = 0
	columnValues   = 1
)

func appendColumn(dst []byte, n int, at func(i int) uint64) []byte {
	if n == 0 {
		return dst
	}
	first, i := at(0), 1
	for i < n && at(i) == first {
		i++
	}
	if i == n {
		return binary.AppendUvarint(append(dst, columnConstant), first)
	}
	return appendValues(append(dst, columnValues), n, at)
}

// appendValues writes every value. It is for the one column of a list that makes
// each entry cost at least a byte, without which a few bytes could claim millions.
func appendValues(dst []byte, n int, at func(i int) uint64) []byte {
	for i := range n {
		dst = binary.AppendUvarint(dst, at(i))
	}
	return dst
}

// column reads what appendColumn wrote; no value may be above limit.
func (c *cursor) column(n int, limit uint64, set func(i int, v uint64)) {
	if n == 0 || c.err != nil {
		return
	}
	switch kind := c.uvarint(columnValues); {
	case c.err != nil:
	case kind == columnValues:
		c.values(n, limit, set)
	default:
		v := c.uvarint(limit)
		for i := range n {
			set(i, v)
		}
	}
}

func (c *cursor) values(n int, limit uint64, set func(i int, v uint64)) {
	for i := 0; i < n && c.err == nil; i++ {
		set(i, c.uvarint(limit))
	}
}

package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// The errors of decoders. Callers distinguish them: after damage they read again or
// write a dead letter, after an unknown version they stop.
var (
	ErrDamaged = errors.New("damaged data")
	ErrVersion = errors.New("unknown format version")
)

// Bounds of one entry. Writers check them, so that readers can demand them.
const (
	MaxURL     = 8 << 10   // bytes of a URL; weburl.MaxLen is less
	MaxHost    = 512       // bytes of a host key
	MaxSection = 256 << 20 // bytes of a section, inflated
)

// Damaged returns an error that wraps [ErrDamaged].
func Damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of b.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// The coders are reused because their tables have hundreds of kilobytes. With a
// concurrency of one, EncodeAll and DecodeAll start no goroutine. The window is
// small because the inputs are small: blocks of 64 KiB, sections of a few MiB.
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
			zstd.WithDecoderMaxMemory(MaxSection), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			panic(err) // the options are constants
		}
		return d
	}}
)

// AppendCompressed appends raw as one zstd frame. Equal bytes give equal frames. Safe for
// concurrent use.
func AppendCompressed(dst, raw []byte) []byte {
	e := zstdEncoders.Get().(*zstd.Encoder)
	defer zstdEncoders.Put(e)
	return e.EncodeAll(raw, dst)
}

// maxRatio bounds the declared size of a frame's content per byte of the frame. The best ratio
// of the format is a run of 128 KiB in 4 bytes.
const maxRatio = 1 << 15

// Decompress decodes a frame of exactly n bytes into buf, which grows if necessary. The caller
// bounds n. Decompress refuses an n above maxRatio before it allocates.
// Errors wrap [ErrDamaged].
func Decompress(buf, frame []byte, n int) ([]byte, error) {
	if n > len(frame)*maxRatio {
		return nil, Damaged("%d bytes cannot come from %d", n, len(frame))
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	d := zstdDecoders.Get().(*zstd.Decoder)
	defer zstdDecoders.Put(d)
	raw, err := d.DecodeAll(frame, buf[:0:n])
	if err != nil {
		return nil, Damaged("zstd: %v", err)
	}
	if len(raw) != n {
		return nil, Damaged("%d bytes where %d were promised", len(raw), n)
	}
	return raw, nil
}

// AppendPacked appends the length of raw, and raw compressed.
func AppendPacked(dst, raw []byte) []byte {
	return AppendCompressed(binary.AppendUvarint(dst, uint64(len(raw))), raw)
}

// Unpack returns the argument of AppendPacked, of at most limit bytes.
func Unpack(b []byte, limit uint64) ([]byte, error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > limit {
		return nil, Damaged("length of compressed bytes")
	}
	return Decompress(nil, b[k:], int(n))
}

// Cursor reads hostile bytes. It keeps its first failure: later reads return
// zeros and empty values, so a decoder may check Err once, before it uses any value.
type Cursor struct {
	Rest []byte // still to be read
	Err  error  // the first failure
}

// Fail records a failure, unless there was one before.
func (c *Cursor) Fail(format string, args ...any) {
	if c.Err == nil {
		c.Err = Damaged(format, args...)
	}
	c.Rest = nil
}

// Uvarint reads a number of at most limit.
func (c *Cursor) Uvarint(limit uint64) uint64 {
	if len(c.Rest) > 0 && c.Rest[0] < 0x80 && uint64(c.Rest[0]) <= limit {
		v := uint64(c.Rest[0])
		c.Rest = c.Rest[1:]
		return v
	}
	v, n := binary.Uvarint(c.Rest)
	if n <= 0 || v > limit {
		c.Fail("number cut short or above %d", limit)
		return 0
	}
	c.Rest = c.Rest[n:]
	return v
}

// Take returns the next n bytes, a part of the input.
func (c *Cursor) Take(n uint64) []byte {
	if n > uint64(len(c.Rest)) {
		c.Fail("%d bytes promised, %d left", n, len(c.Rest))
		return nil
	}
	b := c.Rest[:n:n]
	c.Rest = c.Rest[n:]
	return b
}

// Prefixed reads bytes after their length, which is at most limit.
func (c *Cursor) Prefixed(limit uint64) []byte { return c.Take(c.Uvarint(limit)) }

// Count reads the number of the items that follow, which take at least size bytes each. The
// memory for them is thus proportional to the input.
func (c *Cursor) Count(size int) int {
	n := c.Uvarint(math.MaxUint64)
	if most := uint64(len(c.Rest) / size); n > most {
		c.Fail("number of %d, %d bytes left", n, len(c.Rest))
		return 0
	}
	return int(n)
}

// Uint32 reads four bytes, the lowest first.
func (c *Cursor) Uint32() uint32 {
	b := c.Take(4)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

// Uint64 reads eight bytes, the lowest first.
func (c *Cursor) Uint64() uint64 {
	b := c.Take(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// End returns the first failure. Bytes that are left are a failure too.
func (c *Cursor) End() error {
	if c.Err == nil && len(c.Rest) > 0 {
		c.Fail("%d bytes too many", len(c.Rest))
	}
	return c.Err
}

// AppendPrefixed appends the length of s, and s.
func AppendPrefixed[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// AppendTexts appends the number of some texts, their lengths, and the texts.
func AppendTexts(dst []byte, n int, at func(i int) string) []byte {
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = AppendValues(dst, n, func(i int) uint64 { return uint64(len(at(i))) })
	for i := range n {
		dst = append(dst, at(i)...)
	}
	return dst
}

// Texts reads the texts of AppendTexts, as parts of one string; longest bounds a text, in bytes.
func (c *Cursor) Texts(longest uint64) []string {
	texts := make([]string, c.Count(1))
	lengths, total := make([]int, len(texts)), 0
	c.Values(len(texts), longest, func(i int, v uint64) { lengths[i] = int(v); total += int(v) })
	all := string(c.Take(uint64(total)))
	if c.Err != nil {
		return nil
	}
	for i, n := range lengths {
		texts[i], all = all[:n], all[n:]
	}
	return texts
}

// A column holds one number of each of n entries. Columns compress better than
// rows. Most columns are constant, which takes three bytes and no time.
const (
	columnConstant = 0
	columnValues   = 1
)

// AppendColumn appends a column.
func AppendColumn(dst []byte, n int, at func(i int) uint64) []byte {
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
	return AppendValues(append(dst, columnValues), n, at)
}

// AppendValues appends every value. One column of each list uses it, so that
// an entry takes at least a byte: otherwise a few bytes could declare millions.
func AppendValues(dst []byte, n int, at func(i int) uint64) []byte {
	for i := range n {
		dst = binary.AppendUvarint(dst, at(i))
	}
	return dst
}

// Column reads a column of AppendColumn; no value may exceed limit.
func (c *Cursor) Column(n int, limit uint64, set func(i int, v uint64)) {
	if n == 0 || c.Err != nil {
		return
	}
	switch kind := c.Uvarint(columnValues); {
	case c.Err != nil:
	case kind == columnValues:
		c.Values(n, limit, set)
	default:
		v := c.Uvarint(limit)
		for i := range n {
			set(i, v)
		}
	}
}

// Values reads n numbers of AppendValues; no value may exceed limit.
func (c *Cursor) Values(n int, limit uint64, set func(i int, v uint64)) {
	for i := 0; i < n && c.Err == nil; i++ {
		set(i, c.Uvarint(limit))
	}
}

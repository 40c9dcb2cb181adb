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

// What a decoder of this package says of bytes it cannot take. Callers branch on
// them: damage is worth another read or a dead letter, an unknown version is not.
var (
	ErrDamaged = errors.New("damaged data")
	ErrVersion = errors.New("unknown format version")
)

// Bounds of one entry. Writers check them, so that readers may insist on them.
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

// Checksum is the CRC-32C of b, as under every piece of what is stored.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

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

// maxRatio bounds what a frame may claim to hold, before anything is allocated.
// The format's own best is a run of 128 KiB in 4 bytes.
const maxRatio = 1 << 15

// Decompress decodes a frame of exactly n bytes into buf, which grows if need be. The caller
// bounds n; what no frame of this length can hold is refused before anything is allocated.
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

// AppendPacked appends raw compressed, its length before it.
func AppendPacked(dst, raw []byte) []byte {
	return AppendCompressed(binary.AppendUvarint(dst, uint64(len(raw))), raw)
}

// Unpack undoes AppendPacked for at most limit bytes.
func Unpack(b []byte, limit uint64) ([]byte, error) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > limit {
		return nil, Damaged("length of compressed bytes")
	}
	return Decompress(nil, b[k:], int(n))
}

// Cursor reads hostile bytes. Its first failure sticks: what is read after it is
// zero and empty, so a decoder may look at err once, before it trusts anything.
type Cursor struct {
	Rest []byte // still to be read
	Err  error  // the first failure
}

func (c *Cursor) Fail(format string, args ...any) {
	if c.Err == nil {
		c.Err = Damaged(format, args...)
	}
	c.Rest = nil
}

// uvarint reads a number of at most limit.
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

// take reads n bytes, which stay part of the input.
func (c *Cursor) Take(n uint64) []byte {
	if n > uint64(len(c.Rest)) {
		c.Fail("%d bytes promised, %d left", n, len(c.Rest))
		return nil
	}
	b := c.Rest[:n:n]
	c.Rest = c.Rest[n:]
	return b
}

// prefixed reads bytes behind their length, which is at most limit.
func (c *Cursor) Prefixed(limit uint64) []byte { return c.Take(c.Uvarint(limit)) }

// Count reads the number of things that follow and take at least size bytes each,
// so that what is allocated for them is in proportion to the input.
func (c *Cursor) Count(size int) int {
	n := c.Uvarint(math.MaxUint64)
	if most := uint64(len(c.Rest) / size); n > most {
		c.Fail("number of %d, %d bytes left", n, len(c.Rest))
		return 0
	}
	return int(n)
}

func (c *Cursor) Uint32() uint32 {
	b := c.Take(4)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

func (c *Cursor) Uint64() uint64 {
	b := c.Take(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// End is the verdict on everything read: an error too if bytes are left.
func (c *Cursor) End() error {
	if c.Err == nil && len(c.Rest) > 0 {
		c.Fail("%d bytes too many", len(c.Rest))
	}
	return c.Err
}

func AppendPrefixed[T string | []byte](dst []byte, s T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// AppendTexts writes the number of some texts, their lengths, and them.
func AppendTexts(dst []byte, n int, at func(i int) string) []byte {
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = AppendValues(dst, n, func(i int) uint64 { return uint64(len(at(i))) })
	for i := range n {
		dst = append(dst, at(i)...)
	}
	return dst
}

// Texts reads what AppendTexts wrote, as parts of one string; longest is that of a text, in bytes.
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
// rows, and most of ours are constant, which costs three bytes and no time.
const (
	columnConstant = 0
	columnValues   = 1
)

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

// AppendValues writes every value. It is for the one column of a list that makes
// each entry cost at least a byte, without which a few bytes could claim millions.
func AppendValues(dst []byte, n int, at func(i int) uint64) []byte {
	for i := range n {
		dst = binary.AppendUvarint(dst, at(i))
	}
	return dst
}

// column reads what AppendColumn wrote; no value may be above limit.
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

func (c *Cursor) Values(n int, limit uint64, set func(i int, v uint64)) {
	for i := 0; i < n && c.Err == nil; i++ {
		set(i, c.Uvarint(limit))
	}
}

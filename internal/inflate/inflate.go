// Package inflate decodes gzip (RFC 1952) and the DEFLATE within it (RFC 1951) from one slice
// of bytes into another. Bodies are received whole and wanted whole: without a stream there is
// no window to copy out of, no call per byte, and no state to keep between two reads.
//
// It does what compress/gzip does in half the time or less: the same bytes come out, before an
// error too, and the same input is an error. Fuzz tests hold it to that. One difference is meant:
// of input that ends too early, the last few symbols come out as well.
//
// What it is given is hostile. Time is linear in input and output together, and memory is the
// output, which is bounded, and a Decoder's tables.
package inflate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"slices"
)

// ErrLimit says that there was more to come than the caller wanted.
var ErrLimit = errors.New("inflate: more than the limit")

var (
	errHeader   = errors.New("inflate: no gzip header")
	errCorrupt  = errors.New("inflate: corrupt data")
	errChecksum = errors.New("inflate: wrong checksum or size")
)

// A Decoder holds tables, 24 KiB, that are worth using again. Its zero value is ready. What it
// decoded before never shows. Only one goroutine may use it at a time.
type Decoder struct {
	src  []byte
	at   int    // of the next byte to go into bits
	bits uint64 // the next bits, the first one lowest
	n    uint   // how many of them count; those above are 0, or what will be put there again

	dst   []byte // as long as its capacity
	end   int    // of what was written
	begin int    // where the member began: no match goes further back
	limit int    // where to stop

	fixed bool // the tables are those of fixed codes
	lit   [litSize]entry
	dist  [distSize]entry
}

// Gzip appends to dst what the members of a gzip file hold, at most limit bytes, and returns
// the extended slice; as with append, its capacity beyond that is overwritten.
//
// With an error it returns all that came before. That is [ErrLimit] if there is more than
// limit bytes, io.ErrUnexpectedEOF if src ends too early, and others for what is not gzip, does
// not fit its checksum, or is followed by something else. An empty src ends too early.
func (d *Decoder) Gzip(dst, src []byte, limit int) ([]byte, error) {
	d.open(dst, src, limit)
	err := io.ErrUnexpectedEOF
	for more := len(src) > 0; more; {
		if err = d.member(); err != nil {
			break
		}
		more = d.at < len(d.src)
	}
	return d.close(), err
}

func (d *Decoder) open(dst, src []byte, limit int) {
	d.src, d.at, d.bits, d.n = src, 0, 0, 0
	d.begin, d.end = len(dst), len(dst)
	d.limit = len(dst) + min(max(limit, 0), math.MaxInt-len(dst)-slack)
	d.dst = dst[:cap(dst)]
}

// close lets go of all slices and returns what was written.
func (d *Decoder) close() []byte {
	out := d.dst[:d.end]
	d.src, d.dst = nil, nil
	return out
}

// The flags of a member's header (RFC 1952 section 2.3.1). Whether it is text, and flags that
// are reserved, tell nothing of what follows.
const (
	flagHeaderCRC = 1 << 1
	flagExtra     = 1 << 2
	flagName      = 1 << 3
	flagComment   = 1 << 4
)

// maxName is the longest file name or comment in a header, with its NUL, in bytes: that of
// compress/gzip. No name of a file is longer.
const maxName = 512

// member decodes one member: its header, its data, and the checksum and size of these.
func (d *Decoder) member() error {
	if err := d.header(); err != nil {
		return err
	}
	d.begin = d.end
	if err := d.deflate(); err != nil {
		return err
	}
	d.align()
	trailer := d.src[d.at:]
	if len(trailer) < 8 {
		return io.ErrUnexpectedEOF
	}
	d.at += 8
	data := d.dst[d.begin:d.end]
	if binary.LittleEndian.Uint32(trailer) != crc32.ChecksumIEEE(data) || binary.LittleEndian.Uint32(trailer[4:]) != uint32(len(data)) {
		return errChecksum
	}
	return nil
}

// header steps over the header of a member.
func (d *Decoder) header() error {
	all := d.src[d.at:]
	if len(all) < 10 {
		return io.ErrUnexpectedEOF
	}
	if all[0] != 0x1f || all[1] != 0x8b || all[2] != 8 {
		return errHeader
	}
	flags, rest := all[3], all[10:]
	if flags&flagExtra != 0 {
		if len(rest) < 2 {
			return io.ErrUnexpectedEOF
		}
		n := 2 + int(binary.LittleEndian.Uint16(rest))
		if len(rest) < n {
			return io.ErrUnexpectedEOF
		}
		rest = rest[n:]
	}
	for _, flag := range [...]byte{flagName, flagComment} {
		if flags&flag == 0 {
			continue
		}
		n := bytes.IndexByte(rest[:min(len(rest), maxName)], 0)
		switch {
		case n >= 0:
			rest = rest[n+1:]
		case len(rest) < maxName:
			return io.ErrUnexpectedEOF
		default:
			return errHeader
		}
	}
	if flags&flagHeaderCRC != 0 {
		if len(rest) < 2 {
			return io.ErrUnexpectedEOF
		}
		if binary.LittleEndian.Uint16(rest) != uint16(crc32.ChecksumIEEE(all[:len(all)-len(rest)])) {
			return errHeader
		}
		rest = rest[2:]
	}
	d.at = len(d.src) - len(rest)
	return nil
}

// deflate decodes the blocks of a DEFLATE stream (RFC 1951 section 3.2.3), and leaves the bits
// behind it where they are.
func (d *Decoder) deflate() error {
	for final := false; !final; {
		head, err := d.take(3)
		if err != nil {
			return err
		}
		final = head&1 != 0
		switch head >> 1 {
		case 0:
			err = d.stored()
		case 1:
			d.fixedCodes()
			err = d.symbols()
		case 2:
			if err = d.dynamicCodes(); err == nil {
				err = d.symbols()
			}
		default:
			err = errCorrupt
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stored copies a block that is not compressed (section 3.2.4), or as much of it as there is.
func (d *Decoder) stored() error {
	d.align()
	rest := d.src[d.at:]
	if len(rest) < 4 {
		return io.ErrUnexpectedEOF
	}
	n := int(binary.LittleEndian.Uint16(rest))
	if binary.LittleEndian.Uint16(rest[2:]) != ^uint16(n) {
		return errCorrupt
	}
	data := rest[4:]
	data = data[:min(n, len(data))]
	fits := data[:min(len(data), d.limit-d.end)]
	d.room(len(fits))
	d.end += copy(d.dst[d.end:], fits)
	d.at += 4 + len(data)
	switch {
	case len(fits) < len(data):
		return ErrLimit
	case len(data) < n:
		return io.ErrUnexpectedEOF
	}
	return nil
}

// symbols decodes the literals and matches of a block (section 3.2.3) to its end.
func (d *Decoder) symbols() error {
	for {
		if over, err := d.run(); over || err != nil {
			return err
		}
		d.room(slack)
		if over, err := d.symbol(); over || err != nil {
			return err
		}
	}
}

// symbol decodes one literal, match, or end of a block, which it reports, near the end of the
// input or of the room for the output.
func (d *Decoder) symbol() (over bool, err error) {
	d.refill()
	e := d.lit[d.bits&litMask]
	if e.isLink() {
		e = d.lit[e.value()+int(d.bits>>litBits)&(litSub-1)]
	}
	bits, err := d.consume(e)
	switch {
	case err != nil:
		return false, err
	case e.isEnd():
		return true, nil
	case d.end == d.limit && e.isLiteral():
		return false, ErrLimit
	case e.isLiteral():
		d.dst[d.end] = byte(e.value())
		d.end++
		return false, nil
	}
	length := e.value() + e.extra(bits)

	d.refill()
	e = d.dist[d.bits&distMask]
	if e.isLink() {
		e = d.dist[e.value()+int(d.bits>>distBits)&(distSub-1)]
	}
	if bits, err = d.consume(e); err != nil {
		return false, err
	}
	dist := e.value() + e.extra(bits)
	if dist > d.end-d.begin {
		return false, errCorrupt
	}
	for ; length > 0; length-- {
		if d.end == d.limit {
			return false, ErrLimit
		}
		d.dst[d.end] = d.dst[d.end-dist]
		d.end++
	}
	return false, nil
}

// consume takes the bits of a symbol and returns them as they were.
func (d *Decoder) consume(e entry) (uint64, error) {
	if e.isBad() {
		return 0, errCorrupt
	}
	if e.size() > d.n {
		return 0, io.ErrUnexpectedEOF
	}
	bits := d.bits
	d.bits >>= e.size()
	d.n -= e.size()
	return bits, nil
}

// slack is more than run writes beyond where it last looked: two literals, a match of 258
// bytes, and up to 24 that its copying writes too much.
const slack = 320

// margin is how many bytes run reads beyond where it last looked: it refills twice.
const margin = 16

// run decodes as symbol does, again and again while there are slack bytes of room and margin
// bytes of input, so that nothing else need be looked at. It may write beyond the limit.
func (d *Decoder) run() (over bool, err error) {
	src, dst := d.src, d.dst
	bits, n, at, end := d.bits, d.n, d.at, d.end
	lit, dist := &d.lit, &d.dist
	begin := d.begin
	lastAt := len(src) - margin
	lastEnd := min(len(dst)-slack, d.limit)

	for at <= lastAt && end <= lastEnd {
		bits |= binary.LittleEndian.Uint64(src[at:]) << (n & 63)
		at += int((63 - n) >> 3)
		n |= 56

		e := lit[bits&litMask]
		if e.isLiteral() { // three of them leave 23 bits
			dst[end] = byte(e >> 16)
			end++
			bits >>= e & 63
			n -= uint(e & 63)
			e = lit[bits&litMask]
			if e.isLiteral() {
				dst[end] = byte(e >> 16)
				end++
				bits >>= e & 63
				n -= uint(e & 63)
				e = lit[bits&litMask]
				if e.isLiteral() {
					dst[end] = byte(e >> 16)
					end++
					bits >>= e & 63
					n -= uint(e & 63)
					continue
				}
			}
		}
		if e&special != 0 {
			if e.isLink() {
				e = lit[int(e>>16)+int(bits>>litBits)&(litSub-1)]
			}
			if e.isLiteral() {
				dst[end] = byte(e >> 16)
				end++
				bits >>= e & 63
				n -= uint(e & 63)
				continue
			}
			if e&special != 0 {
				over = e.isEnd()
				if !over {
					err = errCorrupt
				}
				bits >>= e & 63
				n -= uint(e & 63)
				break
			}
		}
		length := int(e>>16) + int(bits&(1<<(e&63)-1)>>(e>>8&15))
		bits >>= e & 63
		n -= uint(e & 63)

		bits |= binary.LittleEndian.Uint64(src[at:]) << (n & 63)
		at += int((63 - n) >> 3)
		n |= 56

		e = dist[bits&distMask]
		if e&special != 0 {
			if e.isLink() {
				e = dist[int(e>>16)+int(bits>>distBits)&(distSub-1)]
			}
			if e&special != 0 {
				err = errCorrupt
				break
			}
		}
		back := int(e>>16) + int(bits&(1<<(e&63)-1)>>(e>>8&15))
		bits >>= e & 63
		n -= uint(e & 63)
		from := end - back
		if from < begin {
			err = errCorrupt
			break
		}
		to := end
		end += length
		if back < 8 { // each time what is copied repeats once more, until it fills eight bytes
			for back < 8 {
				binary.LittleEndian.PutUint64(dst[to:to+8], binary.LittleEndian.Uint64(dst[from:from+8]))
				to += back
				back *= 2
			}
		} else { // most matches have at most 16 bytes, and nothing to decide then
			binary.LittleEndian.PutUint64(dst[to:to+8], binary.LittleEndian.Uint64(dst[from:from+8]))
			binary.LittleEndian.PutUint64(dst[to+8:to+16], binary.LittleEndian.Uint64(dst[from+8:from+16]))
			to += 16
			from += 16
		}
		for to < end {
			binary.LittleEndian.PutUint64(dst[to:to+8], binary.LittleEndian.Uint64(dst[from:from+8]))
			to += 8
			from += 8
		}
	}
	d.bits, d.n, d.at, d.end = bits, n, at, end
	if end > d.limit {
		d.end = d.limit
		return false, ErrLimit
	}
	return over, err
}

// room makes room for n more bytes, or for all that the limit allows. It doubles what there is.
func (d *Decoder) room(n int) {
	if len(d.dst)-d.end >= min(n, d.limit-d.end) {
		return
	}
	want := max(n, d.end, 2*len(d.src))
	want = min(want, d.limit-d.end+slack)
	d.dst = slices.Grow(d.dst[:d.end], want)
	d.dst = d.dst[:cap(d.dst)]
}

// take returns the next n bits, at most 56.
func (d *Decoder) take(n uint) (uint, error) {
	if d.n < n {
		d.refill()
		if d.n < n {
			return 0, io.ErrUnexpectedEOF
		}
	}
	v := uint(d.bits & (1<<n - 1))
	d.bits >>= n
	d.n -= n
	return v, nil
}

// refill has at least 56 bits counting, or all that are left.
func (d *Decoder) refill() {
	if d.at <= len(d.src)-8 {
		d.bits |= binary.LittleEndian.Uint64(d.src[d.at:]) << d.n
		d.at += int((63 - d.n) >> 3)
		d.n |= 56
		return
	}
	for d.n < 56 && d.at < len(d.src) {
		d.bits |= uint64(d.src[d.at]) << d.n
		d.at++
		d.n += 8
	}
}

// align drops what is left of a byte, and gives back whole ones.
func (d *Decoder) align() {
	d.at -= int(d.n / 8)
	d.bits, d.n = 0, 0
}

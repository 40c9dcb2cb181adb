package segment

import (
	"encoding/binary"
	"math/bits"
)

// group is the number of values that are packed, and skipped, together.
const group = 128

// appendGroup packs numbers with the bit width that gives the shortest result. The higher bits of the few larger numbers
// follow as exceptions (patched frame of reference: Zukowski et al., Super-Scalar RAM-CPU Cache Compression, 2006):
//
//	width in bits, bytes of exceptions, the low bits, per exception: index, high bits
func appendGroup(dst []byte, v *[group]uint32) []byte {
	width, exceptions := packWidth(v)
	dst = append(dst, byte(width), byte(exceptions))
	var acc uint64
	var n int
	mask := uint64(1)<<width - 1
	for _, x := range v {
		acc |= uint64(x) & mask << n
		if n += width; n >= 32 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(acc))
			acc >>= 32
			n -= 32
		}
	}
	if exceptions > 0 {
		for i, x := range v {
			if high := uint64(x) >> width; high > 0 {
				dst = binary.AppendUvarint(append(dst, byte(i)), high)
			}
		}
	}
	return dst
}

// packWidth returns the best width, and the bytes of its exceptions.
func packWidth(v *[group]uint32) (width, exceptions int) {
	var lengths [33]int
	most := 0
	for _, x := range v {
		n := bits.Len32(x)
		lengths[n]++
		most = max(most, n)
	}
	width = most
	size := group / 8 * most
	for w := most - 1; w >= 0; w-- {
		over := 0
		for n := w + 1; n <= most; n++ {
			over += lengths[n] * (1 + (n-w+6)/7)
		}
		if over > 255 {
			break
		}
		if s := group/8*w + over; s < size {
			width, exceptions, size = w, over, s
		}
	}
	return width, exceptions
}

// unpackGroup decodes a group at the start of b and returns what follows it; nil if it is damaged.
func unpackGroup(v *[group]uint32, b []byte) []byte {
	size := groupSize(b)
	if size == 0 {
		return nil
	}
	width, end := int(b[0]), 2+group/8*int(b[0])
	packed, tail := b[2:], b[end:size]
	if len(packed) < end+8 { // a load of 8 bytes may reach beyond the end
		var padded [group/8*32 + 8]byte
		copy(padded[:], b[2:end])
		packed = padded[:]
	}
	mask := uint64(1)<<width - 1
	for i := range v {
		at := i * width
		v[i] = uint32(binary.LittleEndian.Uint64(packed[at>>3:]) >> (at & 7) & mask)
	}
	for len(tail) > 0 {
		high, n := binary.Uvarint(tail[1:])
		if n <= 0 || tail[0] >= group || high>>(32-width) > 0 {
			return nil
		}
		v[tail[0]] |= uint32(high) << width
		tail = tail[1+n:]
	}
	return b[size:len(b):len(b)]
}

// groupSize returns the size of the group at the start of b, 0 if it is damaged.
func groupSize(b []byte) int {
	if len(b) < 2 || b[0] > 32 {
		return 0
	}
	size := 2 + group/8*int(b[0]) + int(b[1])
	if size > len(b) {
		return 0
	}
	return size
}

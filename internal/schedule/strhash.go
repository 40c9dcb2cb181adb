package schedule

import (
	"math/bits"

	"github.com/orbweaver/orbweaver/blobschema"
)

// HashString returns the hash of s that by names, as it was published; 0 if by names none. The hashes have no
// key, so a site can choose URLs with equal hashes. Package partition has the keyed hash for identities and slots.
//
// The lowest four bits of ELF come from the last byte alone: modulo 2, 4, 8 or 16, all strings with the same
// ending are equal. The multiplier of SDBM, 65,599, is -1 modulo 64: modulo a power of two up to 64, the hash is
// the difference of two sums of bytes.
func HashString(by blobschema.QueueBy, s string) (h uint32) {
	for i := range len(s) {
		switch c := uint32(s[i]); by {
		case blobschema.QueueByBKDR: // Kernighan and Ritchie, The C Programming Language, section 6.6, with 131 in place of 31
			h = h*131 + c
		case blobschema.QueueByELF: // System V Application Binary Interface, figure 5-13; 28 bits
			h = h<<4 + c
			high := h & 0xf000_0000
			h = (h ^ high>>24) &^ high
		case blobschema.QueueBySDBM: // the sdbm database library (Yigit, 1989)
			h = c + h<<6 + h<<16 - h
		}
	}
	return h
}

// Reduce maps a hash to 0 … k-1 by all of its bits: multiplicative hashing (Knuth, The Art of Computer
// Programming, volume 3, section 6.4). k is at least 1. The published way, the hash modulo k, is even only if k
// and the hash have no common weakness, see HashString.
func Reduce(h uint32, k int) int {
	const fraction = 0x9e37_79b9_7f4a_7c15 // 2 to the power of 64 divided by the golden ratio, made odd
	q, _ := bits.Mul64(uint64(h)*fraction, uint64(k))
	return int(q)
}

package frontier

import "math/bits"

// BKDR is the hash of Kernighan and Ritchie (The C Programming Language, 2nd edition, 1988,
// section 6.6) with the multiplier 131 in place of 31, on 32 bits.
func BKDR(s string) uint32 {
	var h uint32
	for i := range len(s) {
		h = h*131 + uint32(s[i])
	}
	return h
}

// ELF is the hash of symbol names in object files (System V Application Binary Interface,
// 4th edition, figure 5-13), a form of P. J. Weinberger's. It has 28 bits.
//
// The lowest four come from the last byte alone, so that modulo 2, 4, 8 or 16 all
// strings with the same ending are equal.
func ELF(s string) uint32 {
	var h uint32
	for i := range len(s) {
		h = h<<4 + uint32(s[i])
		high := h & 0xf000_0000
		h = (h ^ high>>24) &^ high
	}
	return h
}

// SDBM is the hash of the sdbm database library (Yigit, 1989): multiplication by 65,599, on
// 32 bits.
//
// 65,599 is -1 modulo 64, so that modulo 64, or any power of two below, the hash is the
// difference of two sums of bytes.
func SDBM(s string) uint32 {
	var h uint32
	for i := range len(s) {
		h = uint32(s[i]) + h<<6 + h<<16 - h
	}
	return h
}

// fraction is 2 to the power of 64 divided by the golden ratio, made odd.
const fraction = 0x9e37_79b9_7f4a_7c15

// Reduce maps a hash to 0 … k-1, k being 1 or more, by all of its bits: multiplicative
// hashing (Knuth, The Art of Computer Programming, volume 3, section 6.4). The published
// way, the hash modulo k, is as good only where k and the hash have nothing in common:
// see ELF and SDBM.
func Reduce(h uint32, k int) int {
	q, _ := bits.Mul64(uint64(h)*fraction, uint64(k))
	return int(q)
}

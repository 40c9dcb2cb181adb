package schedule

import "math"

// A quality is stored as a rank: 8 bits of the exponent and 13 of the mantissa of its floating-point form
// (IEEE 754), counted downwards. This is about a logarithm, but exact and the same on every
// machine. Ranks are below 2^21, so a varint of three bytes holds them. Neighbours differ by at most
// 1/8192 of their quality.
const (
	mantissaBits = 13
	leastExp     = -190 // a quality below 2^leastExp counts as 2^leastExp
	mostExp      = 65   // a quality from 2^mostExp on counts as the greatest one below it
	leastBits    = (1023 + leastExp) << mantissaBits
	mostRank     = (mostExp - leastExp) << mantissaBits
)

// rankOf returns the rank of a quality; 1 is the rank of the greatest. A quality that is not a number or
// not above 0 has the rank of the least.
func rankOf(quality float64) uint32 {
	const half = 1 << (51 - mantissaBits)
	switch {
	case !(quality > 0):
		return mostRank
	case quality >= 1<<mostExp:
		return 1
	}
	bits := (math.Float64bits(quality) + half) >> (52 - mantissaBits)
	return uint32(mostRank - min(max(bits, leastBits)-leastBits, mostRank-1))
}

// qualityOf undoes rankOf.
func qualityOf(rank uint32) float64 {
	bits := uint64(mostRank-min(max(rank, 1), mostRank)) + leastBits
	return math.Float64frombits(bits << (52 - mantissaBits))
}

package schedule

import "math"

// A quality is stored as a rank. It is what is left of a floating-point number (IEEE 754) without its
// sign, 8 bits of exponent and 13 of the mantissa, counted downwards: about a logarithm, exact and the
// same on every machine, without one being computed. Ranks have less than 2^21, so that three bytes of a
// varint hold them, and neighbours differ by 1/8192 of their quality at most.
const (
	mantissaBits = 13
	leastExp     = -190 // qualities below 2^leastExp count as that
	mostExp      = 65   // from 2^mostExp on they count as the greatest below it
	leastBits    = (1023 + leastExp) << mantissaBits
	mostRank     = (mostExp - leastExp) << mantissaBits
)

// rankOf is the rank of a quality: 1 is that of the greatest. What is no number, or not above 0,
// has the rank of the least.
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

package text

import "unicode"

const firstAlone = 0x2E80 // the first character of scripts without spaces

// simHash hashes a text so that texts which share most of their three-word sequences have hashes that differ in few
// bits (Charikar, "Similarity estimation techniques from rounding algorithms", 2002). Words are runs of letters and
// digits; case does not count. A character of Han or Kana is a word. The hash of a text without words is 0.
func simHash(text string) uint64 {
	var votes [64]int // how often each bit was set, minus how often it was not
	vote := func(h uint64) {
		for i := range votes {
			votes[i] += int(h>>i&1)*2 - 1
		}
	}
	var one, two, h uint64 = 0, 0, hashSeed // the last two words, and the current one
	words := 0
	word := func(h uint64) {
		if words++; words >= 3 {
			vote(mix(one*3 + two*5 + h*7))
		}
		one, two = two, h
	}
	for _, r := range text + " " {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) {
			if r < firstAlone || !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) {
				h = (h ^ uint64(unicode.ToLower(r))) * hashPrime
				continue
			}
		} else {
			r = 0
		}
		if h != hashSeed {
			word(h)
			h = hashSeed
		}
		if r != 0 {
			word(mix(uint64(r)))
		}
	}
	if 0 < words && words < 3 {
		vote(mix(one*5 + two*7))
	}
	h = 0
	for i, n := range votes {
		if n > 0 {
			h |= 1 << i
		}
	}
	return h
}

// Constants of FNV-1a.
const (
	hashSeed  = 14695981039346656037
	hashPrime = 1099511628211
)

// mix spreads a number over all bits (the finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

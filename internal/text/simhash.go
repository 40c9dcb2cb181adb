package text

import (
	"unicode"
	"unicode/utf8"
)

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
	end := func() {
		if h != hashSeed {
			word(h)
		}
		h = hashSeed
	}
	for _, r := range text {
		switch c := lower(r); {
		case c == 0:
			end()
		case alone(c):
			end()
			word(mix(uint64(c)))
		default:
			h = (h ^ uint64(c)) * hashPrime
		}
	}
	end()
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

// lower returns a letter or digit in lower case, and 0 for all other characters.
func lower(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
		return r
	case 'A' <= r && r <= 'Z':
		return r | 0x20
	case r >= utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)):
		return unicode.ToLower(r)
	}
	return 0
}

// alone reports whether a letter is of a script without spaces.
func alone(r rune) bool {
	return r >= 0x2E80 && (r < 0xAC00 || r >= 0x20000) && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// mix spreads a number over all bits (the finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

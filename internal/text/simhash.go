package text

import (
	"unicode"
	"unicode/utf8"
)

// simHash hashes a text so that texts which share most of their words in threes have
// hashes that differ in few bits (Charikar, "Similarity estimation techniques from
// rounding algorithms", 2002). Words are runs of letters and digits, whatever their
// case; a character of Han or Kana is a word. It is 0 for a text without words.
func simHash(text string) uint64 {
	var v votes
	var one, two uint64 // the words before
	words := 0
	word := func(h uint64) {
		words++
		if words >= 3 {
			v.add(mix(one*3 + two*5 + h*7))
		}
		one, two = two, h
	}
	h := uint64(hashSeed)
	for i := 0; i < len(text); {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[i:])
		}
		i += n
		switch c := lower(r); {
		case c == 0:
			if h != hashSeed {
				word(h)
			}
			h = hashSeed
		case alone(c):
			if h != hashSeed {
				word(h)
			}
			word(mix(uint64(c)))
			h = hashSeed
		default:
			h = (h ^ uint64(c)) * hashPrime
		}
	}
	if h != hashSeed {
		word(h)
	}
	if 0 < words && words < 3 {
		v.add(mix(one*5 + two*7))
	}
	return v.hash()
}

// Those of FNV-1a.
const (
	hashSeed  = 14695981039346656037
	hashPrime = 1099511628211
)

// lower returns a letter or digit in lower case, 0 for all else.
func lower(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
		return r
	case 'A' <= r && r <= 'Z':
		return r | 0x20
	case r < utf8.RuneSelf:
		return 0
	case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
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

// votes count, for each of 64 bits, how often it was set. Up to 255 hashes are counted
// eight bits at a time, in lanes of a byte.
type votes struct {
	lanes [8]uint64 // bit 8*j+i is in byte i of lanes[j]
	inner int       // hashes in lanes
	sums  [64]int
	all   int
}

func (v *votes) add(h uint64) {
	for j := range v.lanes {
		v.lanes[j] += spread[byte(h>>(8*j))]
	}
	if v.inner++; v.inner == 255 {
		v.settle()
	}
}

func (v *votes) settle() {
	for j, lane := range v.lanes {
		for i := range 8 {
			v.sums[8*j+i] += int(byte(lane >> (8 * i)))
		}
		v.lanes[j] = 0
	}
	v.all += v.inner
	v.inner = 0
}

// hash has the bits that most hashes have.
func (v *votes) hash() (h uint64) {
	v.settle()
	for i, n := range v.sums {
		if 2*n > v.all {
			h |= 1 << i
		}
	}
	return h
}

// spread has bit i of its index in byte i.
var spread = func() (t [256]uint64) {
	for b := range t {
		for i := range 8 {
			t[b] |= uint64(b>>i&1) << (8 * i)
		}
	}
	return t
}()

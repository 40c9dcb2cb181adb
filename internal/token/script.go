package token

import (
	"unicode"
	"unicode/utf8"
)

// A script is a way of cutting a stretch of text into terms.
type script uint8

const (
	none     script = iota // separates words
	spaced                 // words have spaces between them
	han                    // words of a dictionary, or pairs
	hiragana               // pairs, as for the next two
	katakana
	unspaced // Thai and similar scripts
	hangul   // words, and pairs
	mark     // belongs to the character before it
)

// unspacedScripts are written without spaces; the package has no dictionary for them.
var unspacedScripts = []*unicode.RangeTable{unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// scriptOf returns the script of a character; none for punctuation and symbols.
func scriptOf(r rune) script {
	switch {
	case r < utf8.RuneSelf:
		if letterOrDigit(byte(r)) {
			return spaced
		}
		return none
	case r < 0x0E00: // Latin to Telugu and Sinhala: all with spaces
		return lettered(r)
	case r >= 0x4E00 && r <= 0x9FFF:
		return han
	case r >= 0xAC00 && r <= 0xD7A3:
		return hangul
	case r >= 0x3041 && r <= 0x3096:
		return hiragana
	case r >= 0x30A1 && r <= 0x30FA || r == 0x30FC || r >= 0x31F0 && r <= 0x31FF || r >= 0xFF66 && r <= 0xFF9F:
		return katakana
	case r == utf8.RuneError:
		return none
	}
	s := lettered(r)
	if s != spaced {
		return s
	}
	switch {
	case unicode.Is(unicode.Han, r):
		return han
	case unicode.Is(unicode.Hangul, r):
		return hangul
	case unicode.Is(unicode.Hiragana, r):
		return hiragana
	case unicode.Is(unicode.Katakana, r):
		return katakana
	case r < 0x1800 && unicode.In(r, unspacedScripts...) || r >= 0xA9E0 && r <= 0xAA7F && unicode.Is(unicode.Myanmar, r):
		return unspaced
	}
	return spaced
}

// lettered reports whether a character is a letter, digit or mark.
func lettered(r rune) script {
	switch {
	case unicode.IsLetter(r) || unicode.IsNumber(r) && !fraction(r):
		return spaced
	case unicode.IsMark(r) || r == zeroWidthJoiner || r == zeroWidthNonJoiner:
		return mark
	}
	return none
}

// fraction reports whether r is a fraction such as ½, which normalizes to several digits and a bar.
func fraction(r rune) bool {
	return r >= '¼' && r <= '¾' || r >= '⅐' && r <= '⅟' || r == '↉'
}

// Joiners occur within words of Persian and of Indic scripts, and have no meaning for search.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

func letterOrDigit(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || digit(c)
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

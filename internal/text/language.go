package text

import (
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/abadojack/whatlanggo"
)

// Bounds on what is looked at to tell a language.
const (
	maxSample   = 2 << 10 // bytes of text, for scripts and common words
	maxTrigrams = 512     // bytes, for whatlanggo, which is slow
	minLetters  = 12      // of a script, to tell anything
	minCommon   = 3       // common words of a language, to believe it
)

// language tells the language of a page: an ISO 639-1 code, or "". Scripts of one
// language decide. Else the common words in the text do, if they are of one language more
// than of any other. Where they do not tell, what the page says of itself is believed, if it
// is a language of the script; and if it says nothing, trigrams have the last word.
func language(title, body, told string) string {
	sample := body[:min(len(body), maxSample)]
	if len(sample) < maxSample/8 {
		sample = title + "\n" + sample
	}
	told = code(told)
	s := countScripts(sample)
	family, only := s.most()
	if only != "" {
		return only
	}
	if family == none {
		return ""
	}
	if lang := common(sample, family); lang != "" {
		return lang
	}
	if familyOf(told) == family {
		return told
	}
	info := whatlanggo.Detect(strings.ToValidUTF8(sample[:min(len(sample), maxTrigrams)], ""))
	if lang := code(info.Lang.Iso6391()); info.IsReliable() && familyOf(lang) == family {
		return lang
	}
	return ""
}

// code returns the ISO 639-1 code that a language tag begins with, or "".
func code(tag string) string {
	tag = strings.ToLower(strings.TrimSpace(tag))
	if i := strings.IndexAny(tag, "-_,; "); i >= 0 {
		tag = tag[:i]
	}
	if len(tag) != 2 || tag[0] < 'a' || tag[0] > 'z' || tag[1] < 'a' || tag[1] > 'z' {
		return ""
	}
	if tag == "nb" || tag == "nn" {
		return "no"
	}
	return tag
}

// A family is a script that several languages share.
type family uint8

const (
	none family = iota
	latin
	cyrillic
	arabic
	devanagari
	families
)

// familyOf returns the script of a language: that of Latin if it is none of the others.
func familyOf(lang string) family {
	switch lang {
	case "":
		return none
	case "ru", "uk", "bg", "sr", "mk", "be", "kk", "ky", "mn", "tg":
		return cyrillic
	case "ar", "fa", "ur", "ps", "sd", "ug", "ku":
		return arabic
	case "hi", "mr", "ne", "sa":
		return devanagari
	}
	return latin
}

// sole are the scripts that one language is mostly written in.
var sole = []struct {
	table *unicode.RangeTable
	lang  string
}{
	{unicode.Greek, "el"}, {unicode.Hebrew, "he"}, {unicode.Thai, "th"}, {unicode.Hangul, "ko"}, {unicode.Georgian, "ka"},
	{unicode.Armenian, "hy"}, {unicode.Bengali, "bn"}, {unicode.Tamil, "ta"}, {unicode.Telugu, "te"}, {unicode.Gujarati, "gu"},
	{unicode.Kannada, "kn"}, {unicode.Malayalam, "ml"}, {unicode.Gurmukhi, "pa"}, {unicode.Sinhala, "si"}, {unicode.Khmer, "km"},
	{unicode.Lao, "lo"}, {unicode.Myanmar, "my"}, {unicode.Ethiopic, "am"},
}

// scripts counts letters.
type scripts struct {
	families  [families]int
	han, kana int
	sole      [32]int // by index of sole
}

func countScripts(s string) (c scripts) {
	for i := 0; i < len(s); {
		b := s[i]
		if b < utf8.RuneSelf {
			if 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' {
				c.families[latin]++
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		c.add(r)
	}
	return c
}

func (c *scripts) add(r rune) {
	switch {
	case !unicode.IsLetter(r):
	case r < 0x370:
		c.families[latin]++
	case r >= 0x400 && r < 0x530:
		c.families[cyrillic]++
	case r >= 0x600 && r < 0x780:
		c.families[arabic]++
	case r >= 0x900 && r < 0x980:
		c.families[devanagari]++
	case r >= 0x3040 && r < 0x3100:
		c.kana++
	case unicode.Is(unicode.Han, r):
		c.han++
	default:
		for i, s := range sole {
			if unicode.Is(s.table, r) {
				c.sole[i]++
				return
			}
		}
	}
}

// most returns the script of most of the text, and the language that alone is
// written in it. A character of Han says as much as three letters, a syllable of Hangul is two or three.
func (c *scripts) most() (f family, only string) {
	best := minLetters - 1
	for i, n := range c.families {
		if n > best {
			best, f = n, family(i)
		}
	}
	for i, s := range sole {
		n := c.sole[i]
		if s.table == unicode.Hangul {
			n *= 2
		}
		if n > best {
			best, f, only = n, none, s.lang
		}
	}
	if n := 3 * (c.han + c.kana); n > best {
		f, only = none, "zh"
		if c.kana*20 > c.han { // a Chinese text has hardly any
			only = "ja"
		}
	}
	return f, only
}

// common returns the language whose common words the text has most of: a third more
// than of the next.
func common(sample string, f family) string {
	var counts [len(commonWords)]int
	word := make([]byte, 0, 16)
	for w := range strings.FieldsFuncSeq(sample, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if len(w) > 12 {
			continue
		}
		word = append(word[:0], w...)
		for i, c := range word {
			if 'A' <= c && c <= 'Z' {
				word[i] = c | 0x20
			}
		}
		for set := wordLanguages[string(word)]; set != 0; set &= set - 1 {
			counts[bits.TrailingZeros64(set)]++
		}
	}
	best, next := -1, 0
	for i, n := range counts {
		switch {
		case familyOf(commonWords[i].lang) != f:
		case best < 0 || n > counts[best]:
			if best >= 0 {
				next = counts[best]
			}
			best = i
		case n > next:
			next = n
		}
	}
	if best >= 0 && counts[best] >= minCommon && counts[best]*3 >= next*4 {
		return commonWords[best].lang
	}
	return ""
}

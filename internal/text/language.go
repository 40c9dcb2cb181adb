package text

import (
	_ "embed"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxSample  = 2 << 10 // bytes of text that are examined
	minLetters = 12      // in the sample, to guess anything
	minCommon  = 3       // least common words to choose a language
)

// language returns the ISO 639-1 code of a page's language, or "" if it is unknown. A script that one language is mostly
// written in decides; otherwise common words do. If they do not decide, the page's own claim counts, if it fits
// the script; it does not come first, because templates often claim a wrong language.
func language(title, body, claim string) string {
	sample := body[:min(len(body), maxSample)]
	if len(sample) < maxSample/8 {
		sample = title + "\n" + sample
	}
	script, only := mainScript(sample)
	if script == nil || only != "" {
		return only
	}
	if lang := commonLanguage(sample); lang != "" {
		return lang
	}
	if claim = code(claim); claim != "" && scriptOf(claim) == script {
		return claim
	}
	return ""
}

// code returns the ISO 639-1 code that a language tag begins with, or "".
func code(tag string) string {
	tag = strings.ToLower(strings.TrimSpace(tag))
	if i := strings.IndexAny(tag, "-_,; "); i >= 0 {
		tag = tag[:i]
	}
	switch {
	case tag == "nb" || tag == "nn":
		return "no"
	case len(tag) != 2 || tag[0] < 'a' || tag[0] > 'z' || tag[1] < 'a' || tag[1] > 'z':
		return ""
	}
	return tag
}

// scripts lists scripts, with the language of each script that is mostly used for one language.
var scripts = [...]struct {
	table  *unicode.RangeTable
	lang   string
	weight int // of a character; one of Han counts as three letters
}{
	{unicode.Latin, "", 1}, {unicode.Cyrillic, "", 1}, {unicode.Arabic, "", 1}, {unicode.Devanagari, "", 1},
	{unicode.Han, "zh", 3}, {unicode.Hiragana, "ja", 3}, {unicode.Katakana, "ja", 3}, {unicode.Hangul, "ko", 2},
	{unicode.Greek, "el", 1}, {unicode.Hebrew, "he", 1}, {unicode.Thai, "th", 1}, {unicode.Georgian, "ka", 1},
	{unicode.Armenian, "hy", 1}, {unicode.Bengali, "bn", 1}, {unicode.Tamil, "ta", 1}, {unicode.Telugu, "te", 1},
	{unicode.Gujarati, "gu", 1}, {unicode.Kannada, "kn", 1}, {unicode.Malayalam, "ml", 1}, {unicode.Gurmukhi, "pa", 1},
	{unicode.Sinhala, "si", 1}, {unicode.Khmer, "km", 1}, {unicode.Lao, "lo", 1}, {unicode.Myanmar, "my", 1},
	{unicode.Ethiopic, "am", 1},
}

const han, hiragana, katakana = 4, 5, 6 // of scripts

// mainScript returns the script of most of a text, and its language if there is only one; nil if the text is too short.
func mainScript(s string) (table *unicode.RangeTable, lang string) {
	var counts [len(scripts)]int
	last := 0 // most characters have the same script as the previous one
	for _, r := range s {
		if r < utf8.RuneSelf {
			if 'a' <= r|0x20 && r|0x20 <= 'z' {
				counts[0]++
			}
			continue
		}
		if !unicode.IsLetter(r) {
			continue
		}
		for n := range len(scripts) {
			if i := (last + n) % len(scripts); unicode.Is(scripts[i].table, r) {
				counts[i] += scripts[i].weight
				last = i
				break
			}
		}
	}
	if kana := counts[hiragana] + counts[katakana]; kana*20 > counts[han] { // Chinese text has hardly any Kana
		counts[hiragana] += counts[katakana] + counts[han]
		counts[han] = 0
	} else {
		counts[han] += kana
	}
	best := minLetters - 1
	for i, n := range counts {
		if n > best {
			best, table, lang = n, scripts[i].table, scripts[i].lang
		}
	}
	return table, lang
}

// commonWords lists, for languages that share their script, words that are frequent in the language and rare in most of
// the others: one language a line, after its code.
//
//go:embed commonwords.txt
var commonWords string

// wordLanguages are the codes in commonWords; languagesOf has a bit for each language of a word.
var wordLanguages, languagesOf = func() (codes []string, of map[string]uint64) {
	of = map[string]uint64{}
	for line := range strings.Lines(commonWords) {
		words := strings.Fields(line)
		for _, w := range words[1:] {
			of[w] |= 1 << len(codes)
		}
		codes = append(codes, words[0])
	}
	return codes, of
}()

// commonLanguage returns the language with the most common words in a text, at least a third more than the next one, or
// "".
func commonLanguage(sample string) string {
	var counts [64]int
	for w := range strings.FieldsFuncSeq(strings.ToLower(sample), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
		for set := languagesOf[w]; set != 0; set &= set - 1 {
			counts[bits.TrailingZeros64(set)]++
		}
	}
	n := slices.Max(counts[:])
	best := slices.Index(counts[:], n)
	counts[best] = 0
	if n >= minCommon && n*3 >= slices.Max(counts[:])*4 {
		return wordLanguages[best]
	}
	return ""
}

// scriptOf returns the script of a language: that of its common words, or Latin if it has none.
func scriptOf(lang string) *unicode.RangeTable {
	for i, l := range wordLanguages {
		if l == lang {
			words := strings.Fields(strings.Split(commonWords, "\n")[i])
			table, _ := mainScript(strings.Join(words[1:], " "))
			return table
		}
	}
	return unicode.Latin
}

package token

import (
	"strings"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"
)

// A language is one of the languages with different terms.
type language uint8

const (
	unknown language = iota // or without a stemmer
	japanese
	firstStemmed // an index into stemmers
)

// stemmers are the algorithms of Snowball (https://snowballstem.org/algorithms/), by
// ISO 639-1 code.
var stemmers = [...]struct {
	code string
	stem func(*snowballstem.Env) bool
}{
	{"ar", arabic.Stem}, {"da", danish.Stem}, {"de", german.Stem}, {"en", english.Stem}, {"es", spanish.Stem},
	{"fi", finnish.Stem}, {"fr", french.Stem}, {"ga", irish.Stem}, {"hu", hungarian.Stem}, {"it", italian.Stem},
	{"nl", dutch.Stem}, {"no", norwegian.Stem}, {"pt", portuguese.Stem}, {"ro", romanian.Stem}, {"ru", russian.Stem},
	{"sv", swedish.Stem}, {"ta", tamil.Stem}, {"tr", turkish.Stem},
}

const languages = int(firstStemmed) + len(stemmers)

// parseLanguage parses a language tag; only its first part counts.
func parseLanguage(tag string) language {
	code, _, _ := strings.Cut(tag, "-")
	switch code = strings.ToLower(code); code {
	case "ja":
		return japanese
	case "nb", "nn":
		code = "no"
	}
	for i, s := range stemmers {
		if s.code == code {
			return firstStemmed + language(i)
		}
	}
	return unknown
}

// Langs is a set of languages with a stemmer.
type Langs uint32

// LangOf returns the set of the language of a tag. It is empty if the language has no stemmer.
func LangOf(tag string) Langs {
	if l := parseLanguage(tag); l >= firstStemmed {
		return 1 << l
	}
	return 0
}

// stem returns the stem of a word, or the word if the stem would be empty. A word with a digit is its own
// stem: some algorithms would turn 2011 into 201.
func (l language) stem(word string) string {
	if l < firstStemmed || len(word) <= 2 || strings.ContainsAny(word, "0123456789") {
		return word
	}
	env := snowballstem.NewEnv(word)
	stemmers[l-firstStemmed].stem(env)
	if s := env.Current(); s != "" {
		return s
	}
	return word
}

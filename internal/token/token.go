// Package token turns text into the terms of the inverted index, and the words of a
// query into the terms to look for. It stands between internal/text and
// blobschema/segment, and in front of internal/search.
//
// Text is cut into words wherever it has anything but letters and digits: "net.ipv4.tcp_rmem" is four terms in a row, and
// so is "don't" two; a possessive s is left out, and numbers keep their points
// ("2.5"). What is left is made alike: compatibility forms (NFKC), case, and the marks
// over Latin, Greek and most Cyrillic letters, so that "Schöne" and "schone" are one term.
// "C++" and "C#" stay whole.
//
// If the document is in a language that has stems (Snowball) and a word is not its own stem, the
// word gives a second term at the same position: the stem, with segment.FormMark. In an English document
// "point" and "points" have the same stem; the French verb "pointer" does not matter there.
//
// What is written without spaces is cut otherwise:
//
//   - Han, unless the document is Japanese, into words of a dictionary, by the most
//     probable path; words in a longer word are terms too. Characters that make up
//     no word are terms each, and by twos.
//   - Han in Japanese documents into characters, and by twos.
//   - Kana, Thai, Lao, Khmer and Burmese by twos (of what a reader sees as one
//     character); one that is alone is a term.
//   - Hangul words are terms, and so are their syllables by twos: particles follow a
//     noun without a space.
//
// Positions count words, and of what is written without spaces, and of Hangul,
// characters. So terms overlap where they do in the text, and a phrase matches
// however the text around it was cut.
//
// [Query] finds what [Append] made of a document: it gives for each word the terms that it may have,
// and the languages of the documents where it has them (TestQueryFindsWhatAppendMade). All are pure functions, and
// may be called from several goroutines at once; a bounded memory of words seen
// before makes them fast and never shows.
package token

import (
	"sync"
	"unicode/utf8"
)

// maxTerm is the largest length of a term, in bytes. What is longer is cut.
const maxTerm = 64

// Version is the version of the terms. A text may have other terms in another version, so an index only takes
// queries of its own version. Version 1 had stems instead of words.
const Version = 2

// A Token is a term at its place in a text.
type Token struct {
	Term string // valid UTF-8, 1 to maxTerm bytes; a stem ends with segment.FormMark

	// Position counts from 0. Positions of tokens never fall; those of terms that overlap
	// may be equal.
	Position int32

	Start, End int32 // what it was made of: bytes of the text, Start < End
}

// Append appends the tokens of a text to dst. lang is the language of the document, an
// ISO 639-1 code that may have a region ("en-GB"); of an unknown language words are
// not stemmed. Invalid UTF-8 separates words. A text may be up to 2 GiB long.
func Append(dst []Token, text, lang string) []Token {
	a := analyzers.Get().(*analyzer)
	defer a.release()
	a.open(text, lang, dst)
	for a.next() {
		a.emit()
	}
	return a.out
}

// analyzers keeps the scratch memory of finished analyzers, and the terms of words that they have met.
var analyzers = sync.Pool{New: func() any { return newAnalyzer() }}

// Bounds on what an analyzer remembers, and on what it looks at.
const (
	maxKnown      = 1 << 14 // words remembered for a language
	maxRemembered = 48      // bytes of those
	maxWord       = 256     // bytes of a word that are looked at
	maxRun        = 1 << 10 // characters of a run that is cut as one
)

// cutRunes returns s cut at a character to at most n bytes.
func cutRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

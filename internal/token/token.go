// Package token turns text into the terms of the inverted index, and the words of a
// query into the terms to search for. It stands between internal/text and
// blobschema/segment, and in front of internal/search.
//
// Text is cut into words at every character that is not a letter or digit: "net.ipv4.tcp_rmem" is four
// consecutive terms, and "don't" is two. A possessive s is dropped, and numbers keep their points ("2.5").
// Words are normalized: compatibility forms (NFKC), case, and the marks on Latin, Greek and most Cyrillic
// letters, so that "Schöne" and "schone" are one term. "C++" and "C#" stay whole.
//
// If the document is in a language that has stems (Snowball) and a word is not its own stem, the word gives a
// second term at the same position: the stem, with segment.FormMark. In an English document "point" and
// "points" have the same stem.
//
// Text without spaces is cut in other ways:
//
//   - Han, unless the document is Japanese, into words of a dictionary, by the most
//     probable path; words inside a longer word are terms too. Characters outside
//     of words are terms, and so are their pairs.
//   - Han in Japanese documents: characters and pairs of characters.
//   - Kana, Thai, Lao, Khmer and Burmese: pairs of characters as a reader sees
//     them; a single character is a term.
//   - Hangul: words and pairs of their syllables, because particles follow a
//     noun without a space.
//
// Positions count words; in text without spaces and in Hangul they count
// characters. Terms overlap as they do in the text, so a phrase matches
// however the text around it was cut.
//
// [Query] finds the terms that [Append] makes of a document: it returns for each word the terms that it may have,
// and the languages of the documents in which it has them (TestQueryFindsWhatAppendMade). All functions are pure and
// safe for concurrent use. A bounded cache of known words makes them fast and does not change results.
package token

import (
	"strings"
	"sync"
)

// maxTerm bounds a term, in bytes. A longer one is cut.
const maxTerm = 64

// Version is the version of the terms. A text may have other terms in another version, so an index only takes
// queries of its own version. Version 1 had stems instead of words.
const Version = 2

// A Token is a term at its place in a text.
type Token struct {
	Term string // valid UTF-8, 1 to maxTerm bytes; a stem ends with segment.FormMark

	// Position counts from 0. Positions never decrease; overlapping terms may have equal ones.
	Position int32

	Start, End int32 // source: bytes [Start, End) of the text, Start < End
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

// analyzers keeps the scratch memory of finished analyzers, and the terms of known words.
var analyzers = sync.Pool{New: func() any { return newAnalyzer() }}

// Bounds of an analyzer.
const (
	maxKnown      = 1 << 14 // remembered words per language
	maxRemembered = 48      // bytes of a remembered word
	maxWord       = 256     // bytes of a word; the rest is ignored
	maxRun        = 1 << 10 // characters of a run; a longer one is cut into several
)

// cutRunes returns s cut at a character to at most n bytes.
func cutRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

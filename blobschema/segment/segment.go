package segment

import (
	"cmp"
	"time"

	"github.com/orbweaver/orbweaver/partition"
)

// Field is a part of a document. Terms of different fields have different lists.
type Field uint8

const (
	Title Field = iota
	Headings
	Body
	Anchor // texts of links to the document
	URL
	Aside // parts beside the main text that are mostly links or notes
	NumFields
)

// String returns the name of the field in queries and output.
func (f Field) String() string {
	if f >= NumFields {
		return "unknown"
	}
	return [NumFields]string{"title", "headings", "body", "anchor", "url", "aside"}[f]
}

// Bounds of a document. Documents beyond the first three are refused. Longer titles and texts are cut. Longer and
// empty terms are left out, so no query finds them.
const (
	MaxURL      = 8 << 10 // bytes
	MaxHost     = 512     // bytes
	MaxLang     = 32      // bytes
	MaxTitle    = 1 << 10 // bytes
	MaxText     = 1 << 20 // bytes
	MaxTerm     = 128     // bytes
	MaxPosition = 1<<30 - 1
	MaxTokens   = 1 << 24 // of all fields of a document

	// FormMark ends a term that is another form of a word of the document, such as its stem. Such terms have lists
	// as words have; [Summary].Lengths, [Columns.Length] and [Reader.Terms] leave them out.
	FormMark = "\x01"
)

// ID identifies a document.
type ID struct {
	Slot        partition.Slot
	Fingerprint uint64
}

// Compare orders documents by slot and fingerprint.
func (x ID) Compare(y ID) int {
	return cmp.Or(cmp.Compare(x.Slot, y.Slot), cmp.Compare(x.Fingerprint, y.Fingerprint))
}

// Document is a stored document without its terms.
type Document struct {
	URL         string // canonical
	Host        string // the site: weburl.Host as text
	Fingerprint uint64 // of the URL
	Slot        partition.Slot
	Generation  uint32
	Time        time.Time // when its payload was fetched; kept in whole seconds, UTC
	Published   time.Time // zero if unknown; in whole seconds, UTC
	Lang        string    // "" if unknown
	SimHash     uint64
	Title       string
	Text        string // for snippets; only Reader.Text returns it
	BodyBytes   int64  // of the body as it was fetched
}

// TermPosition is a token: a term and its position in the field, from 0. Several terms may have one position.
type TermPosition struct {
	Term     string
	Position int32
}

// Summary describes a whole segment.
type Summary struct {
	Documents   int
	Terms       int              // distinct terms, counted once for all fields
	Bytes       int64            // of the object
	TextBytes   int64            // of all Document.Text
	BodyBytes   int64            // of all Document.BodyBytes
	Lengths     [NumFields]int64 // words of all documents, by field
	Langs       []LangCount      // by language, sorted; documents without one are not counted
	First, Last partition.Slot   // of the first and the last document
}

// LangCount is the number of documents in a language.
type LangCount struct {
	Lang      string
	Documents int
}

// Source reads a range of a segment's object: exactly length bytes from off on. Nobody may change them. A call of this
// package reads nothing twice and keeps nothing. A source may cache, and may read more than requested: neighbouring
// ranges are used together.
type Source func(off, length int64) ([]byte, error)

// TermInfo is the entry of a term in the dictionary, for one field.
type TermInfo struct {
	Documents   int   // number of documents with the term in the field
	Occurrences int64 // in all of them

	list list
}

// Input is a segment to merge without the documents in Deleted (nil: none).
type Input struct {
	Reader  *Reader
	Deleted *Set
}

// Output is a segment that a builder or a merge made.
type Output struct {
	Data    []byte
	Summary Summary
}

package segment

import (
	"time"

	"github.com/orbweaver/orbweaver/partition"
)

// Field is a part of a document whose terms are told apart.
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

// String is the field's name in queries and in what is printed.
func (f Field) String() string {
	if f >= NumFields {
		return "unknown"
	}
	return [NumFields]string{"title", "headings", "body", "anchor", "url", "aside"}[f]
}

// Bounds of a document. What is above the first three is refused or, of title and
// text, cut; terms that are longer, or empty, are left out: no query finds them.
const (
	MaxURL      = 8 << 10 // bytes
	MaxHost     = 512     // bytes
	MaxLang     = 32      // bytes
	MaxTitle    = 1 << 10 // bytes
	MaxText     = 1 << 20 // bytes
	MaxTerm     = 128     // bytes
	MaxPosition = 1<<30 - 1
	MaxTokens   = 1 << 24 // of all fields of a document

	// FormMark ends a term that is not a word of the document but another form of one, such as its
	// stem. Such terms have lists as words have; [Summary].Lengths, [Columns.Length] and
	// [Reader.Terms] leave them out.
	FormMark = "\x01"
)

// Document is what is stored of a document beside its terms. Its identity is
// (Slot, Fingerprint).
type Document struct {
	URL         string // canonical
	Host        string // the site: weburl.Host as text
	Fingerprint uint64 // of the URL
	Slot        partition.Slot
	Generation  uint32
	Time        time.Time // when its payload was fetched; kept in whole seconds, UTC
	Published   time.Time // zero if unknown; in whole seconds, UTC
	Lang        string    // zero if unknown
	SimHash     uint64
	Title       string
	Text        string // for snippets; Reader.Document leaves it out, see Reader.Text
	BodyBytes   int64  // of the body as it was fetched
}

// TermPosition is a token: a term and where it stands in its field, from 0 on. Several
// may stand at one position.
type TermPosition struct {
	Term     string
	Position int32
}

// Summary is what is known of a whole segment.
type Summary struct {
	Documents   int
	Terms       int              // distinct terms, whatever their field
	Bytes       int64            // of the object
	TextBytes   int64            // of all Document.Text
	BodyBytes   int64            // of all Document.BodyBytes
	Lengths     [NumFields]int64 // tokens of all documents, without forms
	Langs       []LangCount      // by language, sorted; documents without one are not counted
	First, Last partition.Slot   // of the first and the last document
}

// LangCount is the number of documents in a language.
type LangCount struct {
	Lang      string
	Documents int
}

// Source reads a range of a segment's object: exactly length bytes from off on, which
// nobody changes any more. The package asks for nothing twice in one call, and keeps
// nothing; a source that caches serves it best, and may read more than is asked for:
// what is used together lies together. Callers close over their context.
type Source func(off, length int64) ([]byte, error)

// Column names the columns of the document table to load, as a set.
type Column uint16

const (
	Lengths      Column = 1 << iota // one byte a document and field
	Langs                           // one
	Slots                           // four
	Times                           // four
	Published                       // four
	Fingerprints                    // eight
	SimHashes                       // eight
	Generations                     // four
	AllColumns   Column = 1<<iota - 1
)

// TermInfo is what the dictionary says of a term in one field.
type TermInfo struct {
	Term        string
	Field       Field
	Documents   int   // that have the term in the field
	Occurrences int64 // in all of them

	list list
}

// Input is a segment to be merged, less the documents in Deleted (nil: none).
type Input struct {
	Reader  *Reader
	Deleted *Set
}

// Output is a segment that a builder or a merge made.
type Output struct {
	Data    []byte
	Summary Summary
}

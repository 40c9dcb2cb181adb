package segment

import "github.com/orbweaver/orbweaver/partition"

type list struct{ off, postings, positions int64 }

// Builder makes a segment of documents, in memory. It is for one goroutine.
type Builder struct{}

// NewBuilder returns a builder of no documents.
func NewBuilder() *Builder { panic("to come") }

// Add takes a document and the tokens of its fields, in any order of documents. It keeps
// the strings of doc, not those of fields. Of two documents with one identity the one of the higher
// generation stays, then the one of the later time. An error says what is out of bounds; then nothing was added.
func (b *Builder) Add(doc Document, fields [NumFields][]TermPosition) error { panic("to come") }

// Size is about how many bytes of memory the builder holds.
func (b *Builder) Size() int { panic("to come") }

// Len is how many documents were added.
func (b *Builder) Len() int { panic("to come") }

// Finish returns the segment. The same documents give the same bytes, in whatever order they were added.
// The builder is of no use afterwards.
func (b *Builder) Finish() ([]byte, Summary, error) { panic("to come") }

// Reader reads a segment. It is immutable, and safe for concurrent use if its source is.
type Reader struct{}

// Open reads the tail of a segment of size bytes: one range, two of a large one.
// Errors wrap blobschema.ErrDamaged or ErrVersion, or are the source's.
func Open(src Source, size int64) (*Reader, error) { panic("to come") }

// With returns a reader of the same segment by another source: that of another
// query, with its own context.
func (r *Reader) With(src Source) *Reader { panic("to come") }

// Documents is how many there are: they are numbered 0 to Documents()-1.
func (r *Reader) Documents() int { panic("to come") }

// Summary is what Finish or Merge said of the segment.
func (r *Reader) Summary() Summary { panic("to come") }

// Document returns what is stored of a document, but for its text. One range is read.
func (r *Reader) Document(doc uint32) (Document, error) { panic("to come") }

// Text returns Document.Text. Two ranges are read, the first that of Document.
func (r *Reader) Text(doc uint32) (string, error) { panic("to come") }

// Columns loads columns of the document table, those that lie together as one range.
// The caller keeps it as long as it searches the segment.
func (r *Reader) Columns(want Column) (*Columns, error) { panic("to come") }

// Columns are columns of the document table in memory, immutable. A method whose
// column was not loaded panics, as for a document that is not there.
type Columns struct{}

// Length is how many tokens a field of the document has: exact below 32, above it by at most a 32nd less.
func (c *Columns) Length(f Field, doc uint32) int { panic("to come") }

// Lang is Document.Lang.
func (c *Columns) Lang(doc uint32) string { panic("to come") }

// Slot is Document.Slot.
func (c *Columns) Slot(doc uint32) partition.Slot { panic("to come") }

// Time is Document.Time in Unix seconds, 0 if it is zero.
func (c *Columns) Time(doc uint32) int64 { panic("to come") }

// Published is Document.Published in Unix seconds, 0 if unknown.
func (c *Columns) Published(doc uint32) int64 { panic("to come") }

// Fingerprint is Document.Fingerprint.
func (c *Columns) Fingerprint(doc uint32) uint64 { panic("to come") }

// SimHash is Document.SimHash.
func (c *Columns) SimHash(doc uint32) uint64 { panic("to come") }

// Generation is Document.Generation.
func (c *Columns) Generation(doc uint32) uint32 { panic("to come") }

// Find returns the document of an identity. It needs Slots and Fingerprints.
func (c *Columns) Find(fingerprint uint64, slot partition.Slot) (doc uint32, ok bool) {
	panic("to come")
}

// Site returns the documents of a host, first to end-1: none if both are equal. At most two ranges are read.
func (r *Reader) Site(host string, slot partition.Slot) (first, end uint32, err error) {
	panic("to come")
}

// Domain returns the documents of a name and all names below it that are of the slot.
// They are all that there are if the crawl's unit is the registrable domain and
// domain is one, or lies below one.
func (r *Reader) Domain(domain string, slot partition.Slot) (first, end uint32, err error) {
	panic("to come")
}

// Term looks a term up in one field; Documents is 0 if it is not there. One range is read.
func (r *Reader) Term(f Field, term string) (TermInfo, bool, error) { panic("to come") }

// Lookup looks a term up in all fields, in one read; of a field that does not have it Documents is 0.
func (r *Reader) Lookup(term string) ([NumFields]TermInfo, error) { panic("to come") }

// Terms returns the first terms of a field that begin with prefix, in order, at most limit.
func (r *Reader) Terms(f Field, prefix string, limit int) ([]TermInfo, error) { panic("to come") }

// Postings reads the list of a term, with its positions if they are asked for: one range, at most two;
// none for a short list, which is in the dictionary.
func (r *Reader) Postings(info TermInfo, withPositions bool) (*Postings, error) { panic("to come") }

// Postings goes through the documents of a term in order. It begins before the first.
// It is for one goroutine.
type Postings struct{}

// Next goes to the next document, false at the end.
func (p *Postings) Next() bool { panic("to come") }

// Advance goes to the first document from to on, false if there is none. It never goes back.
func (p *Postings) Advance(to uint32) bool { panic("to come") }

// Doc is the document.
func (p *Postings) Doc() uint32 { panic("to come") }

// Freq is how often the document has the term in the field, at least 1.
func (p *Postings) Freq() int { panic("to come") }

// Positions appends where, ascending.
func (p *Postings) Positions(buf []int32) []int32 { panic("to come") }

// Err is why Next or Advance returned false, if it was not the end.
func (p *Postings) Err() error { panic("to come") }

// Merge makes segments of segments, in the order of documents. Deleted documents are left out; of several with one identity the one of the
// highest generation stays, then the one of the latest time, then that of the last input. An output ends where a slot ends.
// Memory is that of the outputs and of the longest list.
func Merge(inputs []Input, limits Limits) ([]Output, error) { panic("to come") }

// Set is a set of documents of a segment, such as those deleted since. The zero
// value is empty; nil is an empty one for reading.
type Set struct{}

// Add puts a document into the set.
func (s *Set) Add(doc uint32) { panic("to come") }

// Has reports whether it is there.
func (s *Set) Has(doc uint32) bool { panic("to come") }

// Len is how many there are.
func (s *Set) Len() int { panic("to come") }

// AppendTo appends the set as bytes under a checksum: about two a document.
func (s *Set) AppendTo(dst []byte) []byte { panic("to come") }

// DecodeSet reads what AppendTo wrote, for a segment of the given number of documents.
func DecodeSet(data []byte, documents int) (*Set, error) { panic("to come") }

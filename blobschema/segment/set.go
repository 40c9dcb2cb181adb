package segment

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// Set is a set of documents of a segment, such as those that newer versions have replaced. The
// zero value is empty; so is nil, to which nothing can be added. It is safe for concurrent reading.
type Set struct {
	words []uint64
	n     int
}

// Add adds a document. A set takes a bit for each number up to its highest document.
func (s *Set) Add(doc uint32) {
	i := int(doc / 64)
	if i >= len(s.words) {
		s.words = append(s.words, make([]uint64, i+1-len(s.words))...)
	}
	if bit := uint64(1) << (doc % 64); s.words[i]&bit == 0 {
		s.words[i] |= bit
		s.n++
	}
}

// Has reports whether a document is in the set.
func (s *Set) Has(doc uint32) bool {
	return s != nil && int(doc/64) < len(s.words) && s.words[doc/64]>>(doc%64)&1 != 0
}

// Len returns the number of documents in the set.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return s.n
}

// AppendTo encodes the set: one or two bytes for each document, and a checksum. Equal sets have equal bytes.
func (s *Set) AppendTo(dst []byte) []byte {
	b := binary.AppendUvarint(nil, uint64(s.Len()))
	if s != nil {
		next := 0
		for i, w := range s.words {
			for ; w != 0; w &= w - 1 {
				doc := 64*i + bits.TrailingZeros64(w)
				b = binary.AppendUvarint(b, uint64(doc-next))
				next = doc + 1
			}
		}
	}
	return appendChecked(dst, b)
}

// DecodeSet decodes the result of AppendTo for a segment with the given number of documents. Empty data is an empty set.
// An error wraps wire.ErrDamaged.
func DecodeSet(data []byte, documents int) (*Set, error) {
	if len(data) == 0 {
		return &Set{}, nil
	}
	b, err := checked(data)
	if err != nil {
		return nil, readError("deleted documents", err)
	}
	c := &wire.Cursor{Rest: b}
	s := &Set{}
	next := uint64(0)
	for range c.Uvarint(uint64(min(documents, len(b)))) {
		if next += c.Uvarint(1 << 32); next >= uint64(documents) {
			c.Fail("document %d of %d", next, documents)
		}
		if c.Err != nil {
			break
		}
		if s.words == nil {
			s.words = slices.Grow(s.words, (documents+63)/64)
		}
		s.Add(uint32(next))
		next++
	}
	if err := c.End(); err != nil {
		return nil, readError("deleted documents", err)
	}
	return s, nil
}

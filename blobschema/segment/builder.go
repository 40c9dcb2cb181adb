package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/partition"
)

// ErrDocument reports a document that cannot be stored.
var ErrDocument = errors.New("unfit document")

// Builder makes a segment of documents, in memory. It is for one goroutine.
//
// Until Finish a token takes about three bytes: the number of its term and the difference
// of its position to the previous one. Finish needs finishToken more for each.
type Builder struct {
	docs    []building
	added   map[ID]bool
	terms   map[string]uint32
	names   []string            // of terms, by number
	counts  [][NumFields]uint32 // tokens of each term
	scratch []byte
	size    int
}

// building is a document that was added.
type building struct {
	stored
	tokens []byte // by field: their number, then for each the term and the difference of positions (zigzag)
}

// Estimated memory of a document and of a term in addition to their text, and of a token in Finish; in bytes.
const (
	docOverhead  = 512
	termOverhead = 112
	finishToken  = 8
)

// NewBuilder returns a builder without documents.
func NewBuilder() *Builder {
	return &Builder{added: map[ID]bool{}, terms: map[string]uint32{}}
}

// Add adds a document and the tokens of its fields, preferably in order of positions. It keeps the strings of doc, but
// not those of the terms. The error wraps ErrDocument; then nothing was added. A builder accepts one document per slot
// and fingerprint.
func (b *Builder) Add(doc Document, fields [NumFields][]TermPosition) error {
	if err := check(&doc, &fields); err != nil {
		return err
	}
	id := ID{doc.Slot, doc.Fingerprint}
	switch {
	case b.added[id]:
		return fmt.Errorf("%w: the segment has one of fingerprint %x", ErrDocument, doc.Fingerprint)
	case len(b.docs) >= maxDocuments:
		return fmt.Errorf("%w: %d others in the segment", ErrDocument, len(b.docs))
	}
	doc.Title, doc.Text = cut(doc.Title, MaxTitle), cut(doc.Text, MaxText)
	d := building{stored: stored{Document: doc, host: hostKey(doc.Host)}}
	b.encode(&d, &fields)
	b.size += docOverhead + len(d.tokens) + len(d.Text) + len(d.Title) + len(d.URL) + len(d.Host)
	b.added[id] = true
	b.docs = append(b.docs, d)
	return nil
}

func check(doc *Document, fields *[NumFields][]TermPosition) error {
	switch {
	case len(doc.URL) > MaxURL || len(doc.Host) > MaxHost || len(doc.Lang) > MaxLang:
		return fmt.Errorf("%w: URL of %d bytes, host of %d, language of %d", ErrDocument, len(doc.URL), len(doc.Host), len(doc.Lang))
	case doc.Slot >= partition.MaxSlots:
		return fmt.Errorf("%w: slot %d", ErrDocument, doc.Slot)
	case doc.BodyBytes < 0:
		return fmt.Errorf("%w: body of %d bytes", ErrDocument, doc.BodyBytes)
	}
	n := 0
	for f := range fields {
		n += len(fields[f])
		for i := range fields[f] {
			if p := fields[f][i].Position; p < 0 || p > MaxPosition {
				return fmt.Errorf("%w: position %d", ErrDocument, p)
			}
		}
	}
	if n > MaxTokens {
		return fmt.Errorf("%w: %d tokens", ErrDocument, n)
	}
	return nil
}

// cut shortens s to n bytes of whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// encode turns the tokens of a document into bytes, and counts them.
func (b *Builder) encode(d *building, fields *[NumFields][]TermPosition) {
	out := b.scratch[:0]
	for f := range fields {
		n, words := 0, 0
		for i := range fields[f] {
			term := fields[f][i].Term
			if len(term) > 0 && len(term) <= MaxTerm {
				n++
				if !strings.HasSuffix(term, FormMark) {
					words++
				}
			}
		}
		d.lengths[f] = packLength(words)
		b.size += finishToken * n
		out = binary.AppendUvarint(out, uint64(n))
		before := int32(0)
		for i := range fields[f] {
			t := &fields[f][i]
			if len(t.Term) == 0 || len(t.Term) > MaxTerm {
				continue
			}
			id, ok := b.terms[t.Term]
			if !ok {
				id = b.term(strings.Clone(t.Term))
			}
			b.counts[id][f]++
			out = binary.AppendUvarint(out, uint64(id))
			out = binary.AppendVarint(out, int64(t.Position-before))
			before = t.Position
		}
	}
	b.scratch = out
	d.tokens = slices.Clone(out)
}

func (b *Builder) term(name string) uint32 {
	id := uint32(len(b.names))
	b.terms[name] = id
	b.names = append(b.names, name)
	b.counts = append(b.counts, [NumFields]uint32{})
	b.size += len(name) + termOverhead
	return id
}

// Size returns the approximate memory of the builder, in bytes, including what Finish needs.
func (b *Builder) Size() int { return b.size }

// Documents returns the number of documents added.
func (b *Builder) Documents() int { return len(b.docs) }

// Finish returns the segment. The same documents make the same bytes, whatever the order in which
// they were added. The builder must not be used after it.
func (b *Builder) Finish() Output {
	slices.SortFunc(b.docs, func(x, y building) int { return x.compare(&y.stored) })
	w := newWriter()
	for i := range b.docs {
		w.add(&b.docs[i].stored)
		b.docs[i].Text = ""
	}
	// Sort the tokens of all documents by term and field, by counting.
	ends := make([][NumFields]uint32, len(b.names))
	end := uint32(0)
	for t := range b.counts {
		for f, n := range b.counts[t] {
			ends[t][f] = end
			end += n
		}
	}
	tokens := make([]uint64, end)
	for doc := range b.docs {
		scatter(uint64(doc), b.docs[doc].tokens, tokens, ends)
	}
	// Write the terms in order of their names.
	order := make([]uint32, len(b.names))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(x, y uint32) int { return strings.Compare(b.names[x], b.names[y]) })
	var lists [NumFields][]uint64
	for _, t := range order {
		for f, n := range b.counts[t] {
			if lists[f] = tokens[ends[t][f]-n : ends[t][f]]; !slices.IsSorted(lists[f]) {
				slices.Sort(lists[f]) // the positions of a document were not in order
			}
		}
		w.dict.add(b.names[t], &lists)
	}
	*b = Builder{}
	return w.finish()
}

// scatter appends each token of a document, as document and position, to the tokens of its term and field.
func scatter(doc uint64, b []byte, tokens []uint64, ends [][NumFields]uint32) {
	for f := range NumFields {
		n, k := binary.Uvarint(b)
		b = b[k:]
		position := int32(0)
		for range n {
			term, k := binary.Uvarint(b)
			b = b[k:]
			diff, k := binary.Varint(b)
			b = b[k:]
			position += int32(diff)
			end := &ends[term][f]
			tokens[*end] = doc<<32 | uint64(position)
			*end++
		}
	}
}

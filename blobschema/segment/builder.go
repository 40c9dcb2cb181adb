package segment

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/orbweaver/orbweaver/partition"
)

// ErrDocument is what Add says of a document that cannot be stored.
var ErrDocument = errors.New("unfit document")

// Builder makes a segment of documents, in memory. It is for one goroutine.
//
// A token takes some three bytes until the end: the number of its term and the
// difference of its position. Finish sorts them by term, as many at once as fit 32 MiB.
type Builder struct {
	docs    []building
	byID    map[identity]int
	terms   map[string]uint32
	names   []string
	counts  [][NumFields]uint32 // tokens of each term
	scratch []byte
	size    int
}

type identity struct {
	slot        partition.Slot
	fingerprint uint64
}

// building is a document that was added.
type building struct {
	stored
	tokens []byte // per field: their number, of each: term, difference of positions (zigzag)
}

// What a document, and a term, take beside their bytes.
const (
	docOverhead  = 512
	termOverhead = 112
	batchTokens  = 4 << 20 // sorted at once, eight bytes each
	batchTerms   = 1 << 20 // of them, twenty bytes each
)

// NewBuilder returns a builder of no documents.
func NewBuilder() *Builder {
	return &Builder{byID: map[identity]int{}, terms: map[string]uint32{}}
}

// Add takes a document and the tokens of its fields, best in order of positions. It
// keeps the strings of doc, but none of the terms'. Of documents of one identity that
// of the highest generation stays, among those the latest. An error wraps ErrDocument,
// and nothing was added.
func (b *Builder) Add(doc Document, fields [NumFields][]TermPosition) error {
	if err := check(&doc, &fields); err != nil {
		return err
	}
	doc.Title, doc.Text = cut(doc.Title, MaxTitle), cut(doc.Text, MaxText)
	d := building{stored: stored{Document: doc, host: hostKey(doc.Host)}}
	id := identity{doc.Slot, doc.Fingerprint}
	at, again := b.byID[id]
	if again && !d.replaces(&b.docs[at]) {
		return nil
	}
	if !again && len(b.docs) >= maxDocuments {
		return fmt.Errorf("%w: %d others in the segment", ErrDocument, len(b.docs))
	}
	b.encode(&d, &fields)
	if again {
		b.size += d.size() - b.docs[at].size()
		b.docs[at] = d
		return nil
	}
	b.size += d.size()
	b.byID[id] = len(b.docs)
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
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func (d *building) size() int {
	return docOverhead + len(d.tokens) + len(d.Text) + len(d.Title) + len(d.URL) + len(d.Host)
}

// replaces reports whether d takes the place of e, which has its identity. What is of
// the same generation and time is compared so that the order of adding does not show.
func (d *building) replaces(e *building) bool {
	return cmp.Or(cmp.Compare(d.Generation, e.Generation), d.Time.Compare(e.Time), cmp.Compare(d.SimHash, e.SimHash),
		strings.Compare(d.Title, e.Title), strings.Compare(d.Text, e.Text)) > 0
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
			diff := t.Position - before
			before = t.Position
			out = binary.AppendUvarint(out, uint64(id))
			out = binary.AppendUvarint(out, uint64(uint32(diff<<1^diff>>31)))
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

// Size is about how many bytes of memory the builder holds. Finish takes some 100 MiB
// and the segment itself beside them.
func (b *Builder) Size() int { return b.size }

// Documents is how many were added, each identity once.
func (b *Builder) Documents() int { return len(b.docs) }

// Finish returns the segment. The same documents make the same bytes, in whatever order
// they were added. The builder is of no use any more.
func (b *Builder) Finish() ([]byte, Summary) {
	slices.SortFunc(b.docs, func(x, y building) int { return x.compare(&y.stored) })
	w := newWriter()
	for i := range b.docs {
		w.add(&b.docs[i].stored)
		b.docs[i].Text = ""
	}
	order := inNameOrder(b.names)
	s := &sorter{b: b, w: w, at: make([]uint32, len(order))}
	for len(order) > 0 {
		n, tokens := 0, 0
		for n < min(len(order), batchTerms) && (n == 0 || tokens < batchTokens) {
			for _, k := range b.counts[order[n]] {
				tokens += int(k)
			}
			n++
		}
		s.batch(order[:n], tokens)
		order = order[n:]
	}
	data, summary := w.finish()
	*b = Builder{}
	return data, summary
}

// inNameOrder returns the numbers of the names, sorted by these. The first bytes of a
// name beside its number spare most looks at the name itself.
func inNameOrder(names []string) []uint32 {
	type key struct {
		start uint64
		id    uint32
	}
	keys := make([]key, len(names))
	for i, name := range names {
		var start [8]byte
		copy(start[:], name)
		keys[i] = key{binary.BigEndian.Uint64(start[:]), uint32(i)}
	}
	slices.SortFunc(keys, func(x, y key) int {
		if x.start != y.start {
			return cmp.Compare(x.start, y.start)
		}
		return strings.Compare(names[x.id], names[y.id])
	})
	order := make([]uint32, len(keys))
	for i, k := range keys {
		order[i] = k.id
	}
	return order
}

// sorter sorts tokens by term and field. A token is its document and position.
type sorter struct {
	b      *Builder
	w      *writer
	at     []uint32 // by term: its place in the batch plus one, or 0
	tokens []uint64
	ends   [][NumFields]uint32 // by place in the batch: of the tokens that are there
	lists  [NumFields]rawList
}

// batch writes some terms, which have so many tokens at most.
func (s *sorter) batch(terms []uint32, tokens int) {
	s.tokens = slices.Grow(s.tokens[:0], tokens)[:tokens]
	s.ends = slices.Grow(s.ends[:0], len(terms))[:len(terms)]
	clear(s.at)
	end := uint32(0)
	for i, t := range terms {
		s.at[t] = uint32(i + 1)
		for f, n := range s.b.counts[t] {
			s.ends[i][f] = end
			end += n
		}
	}
	for doc := range s.b.docs {
		s.scatter(doc)
	}
	end = 0
	for i, t := range terms {
		found := false
		for f, n := range s.b.counts[t] {
			s.lists[f].reset()
			s.lists[f].fill(s.tokens[end:s.ends[i][f]])
			end += n // some may be of documents that were replaced
			found = found || len(s.lists[f].docs) > 0
		}
		if found {
			s.w.dict.add(s.b.names[t], &s.lists)
		}
	}
}

// scatter puts the tokens of a document that are in the batch where their terms are.
func (s *sorter) scatter(doc int) {
	b := s.b.docs[doc].tokens
	for f := range NumFields {
		n, k := binary.Uvarint(b)
		b = b[k:]
		position := int32(0)
		for range n {
			id, k := binary.Uvarint(b)
			b = b[k:]
			diff, k := binary.Uvarint(b)
			b = b[k:]
			position += int32(uint32(diff)>>1) ^ -int32(diff&1)
			if at := s.at[id]; at > 0 {
				end := &s.ends[at-1][f]
				s.tokens[*end] = uint64(doc)<<32 | uint64(position)
				*end++
			}
		}
	}
}

// fill makes a list of tokens in order of documents.
func (l *rawList) fill(tokens []uint64) {
	if !slices.IsSorted(tokens) { // positions were not in order
		slices.Sort(tokens)
	}
	for _, t := range tokens {
		doc := uint32(t >> 32)
		if n := len(l.docs); n == 0 || l.docs[n-1] != doc {
			l.docs = append(l.docs, doc)
			l.freqs = append(l.freqs, 0)
		}
		l.freqs[len(l.freqs)-1]++
		l.positions = append(l.positions, uint32(t))
	}
}

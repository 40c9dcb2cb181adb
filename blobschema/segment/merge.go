package segment

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// Merge merges segments. It leaves out the deleted documents of each input. Of documents with one slot and fingerprint
// it keeps the one with the highest generation, then the latest, then that of the first input. Outputs are in order; a
// new one begins with the next slot after about maxBytes (0: no limit), or within a slot at the largest number of
// documents. Without documents there is no output. Merge reads the inputs piece by piece, so they should be in memory.
// It needs further memory for the outputs, the longest list, and about forty bytes for each document.
func Merge(inputs []Input, maxBytes int64) ([]Output, error) {
	m := &merge{maxBytes: maxBytes}
	for i, in := range inputs {
		from, err := newMergeInput(in)
		if err != nil {
			return nil, fmt.Errorf("merge segment %d of %d: %w", i+1, len(inputs), err)
		}
		m.inputs = append(m.inputs, from)
	}
	if err := m.run(); err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	var out []Output
	for _, w := range m.writers {
		out = append(out, w.finish())
	}
	return out, nil
}

// merge is the state of a merge. New numbers of documents continue from one output to the next.
type merge struct {
	maxBytes int64
	inputs   []*mergeInput
	writers  []*writer
	next     uint32                              // new number of the next document
	bytes    float64                             // estimated size of the last output
	visit    func(doc uint32, d *Document) error // called for each document, unless nil
}

// run writes all documents and terms.
func (m *merge) run() error {
	if err := m.documents(); err != nil {
		return err
	}
	return m.terms()
}

// mergeInput is a segment that is read in order.
type mergeInput struct {
	*Reader
	deleted *Set
	columns *Columns
	share   float64 // bytes of the object per document

	doc     int     // the current one
	now     *stored // nil at the end
	before  stored  // the one before it, if begun
	begun   bool
	decoder docsDecoder
	block   []stored
	text    piece // text to which raw belongs
	raw     []byte
	renamed []uint32 // new numbers; noDocument for documents left out

	dictBlock int
	dict      *dictCursor // nil at the end
	list      Postings
	buf       []int32 // positions
}

func newMergeInput(in Input) (*mergeInput, error) {
	r := in.Reader
	columns, err := r.Columns()
	if err != nil {
		return nil, err
	}
	m := &mergeInput{Reader: r, deleted: in.Deleted, columns: columns, doc: -1, dictBlock: -1}
	m.renamed = make([]uint32, r.Documents())
	m.share = float64(r.size) / float64(max(1, r.Documents()))
	if err := m.nextDocument(); err != nil {
		return nil, err
	}
	return m, m.nextTerm()
}

// nextDocument advances to the next document that is not deleted.
func (m *mergeInput) nextDocument() error {
	if m.now != nil {
		m.before, m.begun = *m.now, true
	}
	m.now = nil
	for m.doc++; m.doc < len(m.renamed); m.doc++ {
		if m.doc%docsBlock == 0 {
			var err error
			if m.block, err = m.docs(&m.decoder, m.doc/docsBlock); err != nil {
				return readError("documents", err)
			}
		}
		m.renamed[m.doc] = noDocument
		if !m.deleted.Has(uint32(m.doc)) {
			break
		}
	}
	if m.doc >= len(m.renamed) {
		return nil
	}
	m.now = &m.block[m.doc%docsBlock]
	if m.begun && m.before.compare(m.now) >= 0 {
		return readError("documents", wire.Damaged("order of documents"))
	}
	for f := range m.now.lengths {
		m.now.lengths[f] = m.columns.lengths[f][m.doc]
	}
	return nil
}

// loadText reads the text of the current document.
func (m *mergeInput) loadText() error {
	t := &m.now.text
	if t.from == t.to {
		return nil
	}
	if m.text != t.piece {
		raw, err := t.piece.read(m.src, nil)
		if err != nil {
			return readError("text", err)
		}
		m.text, m.raw = t.piece, raw
	}
	m.now.Text = string(m.raw[t.from:t.to])
	return nil
}

// documents writes all documents.
func (m *merge) documents() error {
	for active := slices.Clone(m.inputs); ; {
		active = slices.DeleteFunc(active, func(in *mergeInput) bool { return in.now == nil })
		if len(active) == 0 {
			return nil
		}
		best := slices.MinFunc(active, func(a, b *mergeInput) int {
			return cmp.Or(a.now.compare(b.now), b.now.version(a.now))
		})
		if err := m.document(best); err != nil {
			return err
		}
		// The best one moves last, because the others are compared with it.
		same := slices.DeleteFunc(slices.Clone(active), func(in *mergeInput) bool { return in == best || in.now.compare(best.now) != 0 })
		for _, in := range append(same, best) {
			if err := in.nextDocument(); err != nil {
				return err
			}
		}
	}
}

// document writes the current document of an input.
func (m *merge) document(in *mergeInput) error {
	if err := in.loadText(); err != nil {
		return err
	}
	if m.visit != nil {
		if err := m.visit(uint32(in.doc), &in.now.Document); err != nil {
			return err
		}
	}
	if m.full(in.now) {
		w := newWriter()
		w.dict.first, m.bytes = m.next, 0
		m.writers = append(m.writers, w)
	}
	m.writers[len(m.writers)-1].add(in.now)
	m.bytes += in.share
	in.renamed[in.doc] = m.next
	m.next++
	return nil
}

// full reports whether a document begins another output.
func (m *merge) full(s *stored) bool {
	if len(m.writers) == 0 {
		return true
	}
	sum := &m.writers[len(m.writers)-1].summary
	if sum.Last == s.Slot {
		return sum.Documents >= maxDocuments // only this bound splits a slot
	}
	return m.maxBytes > 0 && m.bytes >= float64(m.maxBytes)
}

// nextTerm advances to the next term of the dictionary.
func (m *mergeInput) nextTerm() error {
	for m.dict == nil || !m.dict.next() {
		if m.dict != nil && m.dict.c.Err != nil {
			return readError("dictionary", m.dict.c.Err)
		}
		if m.dictBlock++; m.dictBlock >= len(m.x.dict) {
			m.dict = nil
			return nil
		}
		ref := &m.x.dict[m.dictBlock]
		raw, err := ref.piece.read(m.src, nil)
		if err != nil {
			return readError("dictionary", err)
		}
		m.dict = ref.open(raw, m.x.summary.Documents)
	}
	return nil
}

// terms writes all terms.
func (m *merge) terms() error {
	var before []byte
	var lists [NumFields][]uint64
	for active := slices.Clone(m.inputs); ; {
		active = slices.DeleteFunc(active, func(in *mergeInput) bool { return in.dict == nil })
		if len(active) == 0 {
			return nil
		}
		// Collect the tokens of the least term of all inputs.
		least := slices.MinFunc(active, func(a, b *mergeInput) int { return bytes.Compare(a.dict.term, b.dict.term) })
		term := bytes.Clone(least.dict.term)
		if bytes.Compare(term, before) <= 0 {
			return readError("dictionary", wire.Damaged("order of terms"))
		}
		before = term
		for f := range lists {
			lists[f] = lists[f][:0]
		}
		for _, in := range active {
			if !bytes.Equal(in.dict.term, term) {
				continue
			}
			for f := range lists {
				var err error
				if lists[f], err = in.appendTokens(lists[f], &in.dict.infos[f]); err != nil {
					return readError("postings", err)
				}
			}
			if err := in.nextTerm(); err != nil {
				return err
			}
		}
		// Write them to the outputs, whose documents are ranges of the new numbers.
		for f := range lists {
			slices.Sort(lists[f])
		}
		m.write(string(term), lists)
	}
}

// write writes the tokens of a term to the outputs that have their documents.
func (m *merge) write(term string, lists [NumFields][]uint64) {
	for _, w := range m.writers {
		var own [NumFields][]uint64
		some := false
		for f, list := range lists {
			n, _ := slices.BinarySearch(list, uint64(w.dict.first+uint32(w.summary.Documents))<<32)
			own[f], lists[f] = list[:n], list[n:]
			some = some || n > 0
		}
		if some {
			w.dict.add(term, &own)
		}
	}
}

// appendTokens appends the tokens of a list, with the new numbers of documents; see listEncoder.split. It leaves out
// documents without a new number. It checks the list against the dictionary.
func (m *mergeInput) appendTokens(dst []uint64, info *TermInfo) ([]uint64, error) {
	if info.Documents == 0 {
		return dst, nil
	}
	list := &m.list
	if err := m.postings(list, info, true); err != nil {
		return nil, err
	}
	documents, occurrences := 0, int64(0)
	for ; list.Next(); documents++ {
		occurrences += int64(list.Freq())
		doc := m.renamed[list.Doc()]
		if doc == noDocument {
			continue
		}
		m.buf = list.Positions(m.buf[:0])
		for _, p := range m.buf {
			dst = append(dst, uint64(doc)<<32|uint64(p))
		}
	}
	if err := list.Err(); err != nil {
		return nil, err
	}
	if documents != info.Documents || occurrences != info.Occurrences {
		return nil, wire.Damaged("%d documents and %d occurrences, not %d and %d", documents, occurrences, info.Documents, info.Occurrences)
	}
	return dst, nil
}

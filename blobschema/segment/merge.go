package segment

import (
	"bytes"
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// Merge merges segments. It leaves out the deleted documents of each input. Of the others with one slot and
// fingerprint the highest generation stays, then the latest, then that of the first input. Outputs are in order
// and share no slot; a new one begins with the next slot after about maxBytes (0: no limit). Without documents
// there is no output. Merge reads the inputs piece by piece, so they should be in memory. It needs further memory for
// the outputs, the longest list, and about forty bytes for each document.
func Merge(inputs []Input, maxBytes int64) ([]Output, error) {
	m := &merge{maxBytes: maxBytes}
	for i, in := range inputs {
		from, err := newMergeInput(in)
		if err != nil {
			return nil, fmt.Errorf("merge segment %d of %d: %w", i+1, len(inputs), err)
		}
		m.inputs = append(m.inputs, from)
	}
	if err := m.documents(); err != nil {
		return nil, fmt.Errorf("merge documents: %w", err)
	}
	if err := m.terms(); err != nil {
		return nil, fmt.Errorf("merge terms: %w", err)
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
	firsts   []uint32 // new number of each output's first document
	next     uint32   // new number of the next document
	bytes    float64  // estimated size of the last output
	lists    [][NumFields]rawList
	buf      []int32
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
	text    piece // that raw is of
	raw     []byte
	renamed []uint32 // new numbers, noDocument for those left out

	dictBlock int
	dict      *dictCursor // nil at the end
	list      Postings
	to        uint32 // new number of the list's current document
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

// nextDocument goes to the next document that is not deleted.
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
		raw, err := t.piece.read(m.src, m.raw[:0])
		if err != nil {
			return readError("text", err)
		}
		m.text = t.piece
		if m.raw = raw; t.piece.raw == t.piece.length {
			m.raw = bytes.Clone(raw) // what was read is not ours to write to
		}
	}
	m.now.Text = string(m.raw[t.from:t.to])
	return nil
}

// documents writes all documents.
func (m *merge) documents() error {
	for {
		var best *mergeInput
		for _, in := range m.inputs {
			if in.now == nil {
				continue
			}
			if best == nil {
				best = in
			} else if c := in.now.compare(best.now); c < 0 || c == 0 && in.now.newer(best.now) {
				best = in
			}
		}
		if best == nil {
			return nil
		}
		if err := m.document(best); err != nil {
			return err
		}
		for _, in := range m.inputs { // the best one moves last, because the others are compared with it
			if in != best && in.now != nil && in.now.compare(best.now) == 0 {
				if err := in.nextDocument(); err != nil {
					return err
				}
			}
		}
		if err := best.nextDocument(); err != nil {
			return err
		}
	}
}

// document writes the current document of an input.
func (m *merge) document(in *mergeInput) error {
	if err := in.loadText(); err != nil {
		return err
	}
	if m.full(in.now) {
		m.writers = append(m.writers, newWriter())
		m.firsts = append(m.firsts, m.next)
		m.bytes = 0
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
		return sum.Documents >= maxDocuments // otherwise a slot stays whole
	}
	return m.maxBytes > 0 && m.bytes >= float64(m.maxBytes)
}

// nextTerm goes to the next term of the dictionary.
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
	m.lists = make([][NumFields]rawList, len(m.writers))
	var term []byte
	for first := true; ; first = false {
		var least []byte
		for _, in := range m.inputs {
			if in.dict != nil && (least == nil || bytes.Compare(in.dict.term, least) < 0) {
				least = in.dict.term
			}
		}
		if least == nil {
			return nil
		}
		if !first && bytes.Compare(least, term) <= 0 {
			return wire.Damaged("order of terms")
		}
		term = append(term[:0], least...)
		if err := m.term(term); err != nil {
			return err
		}
	}
}

// term writes a term with its lists, and moves all inputs to their next term.
func (m *merge) term(term []byte) error {
	var with []*mergeInput
	for _, in := range m.inputs {
		if in.dict != nil && bytes.Equal(in.dict.term, term) {
			with = append(with, in)
		}
	}
	for o := range m.lists {
		for f := range NumFields {
			m.lists[o][f].reset()
		}
	}
	for f := range NumFields {
		if err := m.field(f, with); err != nil {
			return readError("postings", err)
		}
	}
	for o := range m.lists {
		for f := range NumFields {
			if len(m.lists[o][f].docs) > 0 {
				m.writers[o].dict.add(string(term), &m.lists[o])
				break
			}
		}
	}
	for _, in := range with {
		if err := in.nextTerm(); err != nil {
			return err
		}
	}
	return nil
}

// field joins the lists of the inputs in one field.
func (m *merge) field(f Field, inputs []*mergeInput) error {
	var active []*mergeInput
	for _, in := range inputs {
		info := &in.dict.infos[f]
		if info.Documents == 0 {
			continue
		}
		if err := in.postings(&in.list, info, true); err != nil {
			return err
		}
		more, err := in.nextPosting()
		if err != nil {
			return err
		}
		if more {
			active = append(active, in)
		}
	}
	o := 0
	for len(active) > 0 {
		at := 0
		for i, in := range active {
			if in.to < active[at].to {
				at = i
			}
		}
		in := active[at]
		for o+1 < len(m.firsts) && m.firsts[o+1] <= in.to {
			o++
		}
		if err := m.posting(&m.lists[o][f], in, m.firsts[o]); err != nil {
			return err
		}
		more, err := in.nextPosting()
		if err != nil {
			return err
		}
		if !more {
			active = append(active[:at], active[at+1:]...)
		}
	}
	return nil
}

// posting appends the current posting of an input. first is the new number of the output's first document.
func (m *merge) posting(l *rawList, in *mergeInput, first uint32) error {
	m.buf = in.list.Positions(m.buf[:0])
	if err := in.list.Err(); err != nil {
		return err
	}
	l.docs = append(l.docs, in.to-first)
	l.freqs = append(l.freqs, uint32(len(m.buf)))
	for _, p := range m.buf {
		l.positions = append(l.positions, uint32(p))
	}
	return nil
}

// nextPosting goes to the next posting of a document that was not left out.
func (m *mergeInput) nextPosting() (bool, error) {
	for m.list.Next() {
		if m.to = m.renamed[m.list.Doc()]; m.to != noDocument {
			return true, nil
		}
	}
	return false, m.list.Err()
}

package segment

import (
	"bytes"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// Check reads all of a segment, piece by piece, so its source should be in memory. It checks that the parts are intact and consistent: checksums,
// the order of documents and of terms, the document table, every list with its positions, and the summary. It
// calls visit, unless that is nil, for each document, with its text; d is valid until visit returns. Errors wrap
// wire.ErrDamaged, or are those of the source or of visit.
func (r *Reader) Check(visit func(doc uint32, d *Document) error) error {
	if b, err := r.read(0, int64(header)); err != nil {
		return readError("header", err)
	} else if string(b) != magic+string(rune(version)) {
		return readError("header", wire.Damaged("it begins with %q", b))
	}
	columns, err := r.Columns()
	if err != nil {
		return err
	}
	in, err := newMergeInput(Input{Reader: r})
	if err != nil {
		return err
	}
	if err := in.checkDocuments(&r.x.summary, columns, visit); err != nil {
		return err
	}
	return in.checkTerms(&r.x.summary)
}

// checkDocuments reads all documents in order.
func (m *mergeInput) checkDocuments(want *Summary, columns *Columns, visit func(uint32, *Document) error) error {
	got := Summary{First: want.First, Last: want.Last}
	for m.now != nil {
		if err := m.loadText(); err != nil {
			return err
		}
		d, doc := &m.now.Document, uint32(m.doc)
		if !columns.agree(doc, d) {
			return readError("documents", wire.Damaged("document %d is not what the table says", doc))
		}
		if got.Documents++; got.Documents == 1 && d.Slot != want.First {
			return readError("documents", wire.Damaged("the first is of slot %d, not %d", d.Slot, want.First))
		}
		got.Last = d.Slot
		got.TextBytes += int64(len(d.Text))
		got.BodyBytes += d.BodyBytes
		if visit != nil {
			if err := visit(doc, d); err != nil {
				return err
			}
		}
		m.now.Text = ""
		if err := m.nextDocument(); err != nil {
			return err
		}
	}
	if !slices.Equal(columns.count(), want.Langs) {
		return readError("documents", wire.Damaged("languages are not those of the table"))
	}
	if got.Documents != want.Documents || got.Last != want.Last || got.TextBytes != want.TextBytes || got.BodyBytes != want.BodyBytes {
		return readError("documents", wire.Damaged("%d of %d bytes, the last of slot %d", got.Documents, got.TextBytes, got.Last))
	}
	return nil
}

// agree reports whether the table has the same values for a document.
func (c *Columns) agree(doc uint32, d *Document) bool {
	lang := c.Lang(doc)
	return c.Slot(doc) == d.Slot && c.Fingerprint(doc) == d.Fingerprint && c.Generation(doc) == d.Generation && c.SimHash(doc) == d.SimHash &&
		c.Time(doc) == int64(unixColumn(d.Time)) && c.Published(doc) == int64(unixColumn(d.Published)) &&
		(lang == d.Lang || lang == "" && len(c.langs) > maxLangs)
}

// checkTerms reads all terms and their lists in order.
func (m *mergeInput) checkTerms(want *Summary) error {
	var got Summary
	var term []byte
	for ; m.dict != nil; got.Terms++ {
		if got.Terms > 0 && bytes.Compare(m.dict.term, term) <= 0 {
			return readError("dictionary", wire.Damaged("order of terms"))
		}
		term = append(term[:0], m.dict.term...)
		for f := range NumFields {
			n, err := m.checkList(&m.dict.infos[f])
			if err != nil {
				return readError("postings of "+string(term), err)
			}
			if !bytes.HasSuffix(term, []byte(FormMark)) {
				got.Lengths[f] += n
			}
		}
		if err := m.nextTerm(); err != nil {
			return err
		}
	}
	if got.Terms != want.Terms || got.Lengths != want.Lengths {
		return readError("dictionary", wire.Damaged("%d terms, tokens %d; not %d, %d", got.Terms, got.Lengths, want.Terms, want.Lengths))
	}
	return nil
}

// checkList reads the list of a term and returns how often the term occurs.
func (m *mergeInput) checkList(info *TermInfo) (occurrences int64, err error) {
	if info.Documents == 0 {
		return 0, nil
	}
	list := &m.list
	if err := m.postings(list, info, true); err != nil {
		return 0, err
	}
	n := 0
	buf := make([]int32, 0, group)
	for before := uint32(0); list.Next(); before = list.Doc() {
		if int(list.Doc()) >= len(m.renamed) || n > 0 && list.Doc() <= before {
			return 0, wire.Damaged("document %d after %d", list.Doc(), before)
		}
		n++
		buf = list.Positions(buf[:0])
		if list.Err() == nil && len(buf) != list.Freq() {
			return 0, wire.Damaged("%d positions, frequency %d", len(buf), list.Freq())
		}
		occurrences += int64(len(buf))
	}
	if err := list.Err(); err != nil {
		return 0, err
	}
	if n != info.Documents || occurrences != info.Occurrences {
		return 0, wire.Damaged("%d documents and %d occurrences, not %d and %d", n, occurrences, info.Documents, info.Occurrences)
	}
	return occurrences, nil
}

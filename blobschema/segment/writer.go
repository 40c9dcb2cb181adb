package segment

import "encoding/binary"

// writer writes a segment: all documents in order, then all terms in order.
type writer struct {
	docs    docsWriter
	columns Columns
	dict    dictWriter
	summary Summary
}

func newWriter() *writer {
	w := &writer{columns: Columns{langs: []string{""}}}
	w.docs.data = append(append(w.docs.data, magic...), version)
	return w
}

func (w *writer) add(s *stored) {
	sum := &w.summary
	if sum.Documents == 0 {
		sum.First = s.Slot
	}
	sum.Last = s.Slot
	sum.Documents++
	sum.TextBytes += int64(len(s.Text))
	sum.BodyBytes += s.BodyBytes
	w.columns.add(s)
	w.docs.add(*s)
}

// total returns the summary of everything added. The size of the object is not known yet.
func (w *writer) total() Summary {
	sum := w.summary
	sum.Terms, sum.Lengths, sum.Langs = w.dict.terms, w.dict.tokens, w.columns.count()
	return sum
}

// finish returns the object.
func (w *writer) finish() Output {
	w.docs.flush()
	w.dict.flush()
	x := &index{summary: w.total(), docs: w.docs.refs, dict: w.dict.refs}
	out := w.docs.data
	lists := int64(len(w.dict.lists))
	out = append(out, w.dict.lists...)
	w.dict.lists = nil
	out = append(out, w.dict.dict...)
	out, x.columns = w.columns.append(out)
	out = seal(out, x.append(nil, lists))
	x.summary.Bytes = int64(len(out))
	return Output{out, x.summary}
}

// seal appends an index and the tail that locates it.
func seal(out, index []byte) []byte {
	out, p := appendPiece(out, index)
	tail := binary.LittleEndian.AppendUint32(nil, uint32(p.raw))
	tail = binary.LittleEndian.AppendUint32(tail, uint32(p.length))
	tail = binary.LittleEndian.AppendUint32(tail, indexSum(out[p.off:], tail))
	return append(append(append(out, tail...), version), magicEnd...)
}

package segment

import (
	"reflect"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// Check reads all of a segment, piece by piece, so its source should be in memory. It checks that the parts are intact
// and consistent: checksums, the order of documents and of terms, the document table, every list with its positions, and
// the summary. It calls visit, unless that is nil, for each document, with its text; d is valid until visit returns.
// Errors wrap wire.ErrDamaged, or are those of the source or of visit.
//
// A merge reads everything, so Check merges the segment with nothing, and compares the counts. It does not compare the
// bytes: another version of the compressor may write others.
func (r *Reader) Check(visit func(doc uint32, d *Document) error) error {
	if b, err := r.read(0, int64(header)); err != nil {
		return readError("header", err)
	} else if string(b) != magic+string(rune(version)) {
		return readError("header", wire.Damaged("it begins with %q", b))
	}
	in, err := newMergeInput(Input{Reader: r})
	if err != nil {
		return err
	}
	m := &merge{inputs: []*mergeInput{in}, visit: visit}
	if err := m.run(); err != nil {
		return err
	}
	w := newWriter()
	if len(m.writers) > 0 {
		w = m.writers[0]
	}
	if !reflect.DeepEqual(&w.columns, in.columns) {
		return readError("documents", wire.Damaged("the document table has other values"))
	}
	got, want := w.total(), r.x.summary
	if got.Bytes = want.Bytes; !reflect.DeepEqual(got, want) {
		return readError("summary", wire.Damaged("%+v, not %+v", want, got))
	}
	return nil
}

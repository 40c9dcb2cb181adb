package fsck

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// RangeStore is a [Store] that reads ranges of objects, as checks of few WARC objects do
// with segments.
type RangeStore interface {
	ObjectRange(ctx context.Context, name string, offset, length int64) ([]byte, error)
}

// readSegments reads segments, and returns their current documents, sorted.
func (x *index) readSegments(refs []blobschema.SegmentRef, anchors bool) (docs []document) {
	for i := range refs {
		current, err := x.readSegment(&refs[i], anchors)
		if errors.Is(err, wire.ErrVersion) {
			err = fmt.Errorf("%w; 'orbweaver index' makes an index again that another version of orbweaver has made", err)
		}
		if err != nil && x.ctx.Err() == nil {
			x.damaged(refs[i].Object, "%v", err)
		}
		for _, d := range current {
			d.in = uint32(i)
			docs = append(docs, d)
		}
	}
	slices.SortFunc(docs, document.compare)
	return docs
}

// readSegment checks a segment and returns its current documents. It reads all of it or,
// where few WARC objects are read, mostly what tells the documents apart.
func (x *index) readSegment(ref *blobschema.SegmentRef, anchors bool) (current []document, err error) {
	x.name(ref.Object, x.head.Manifest)
	whole := x.opt.WARCs == allWARCs || x.index.Segments%sampleEvery == 0
	x.index.Segments++
	src := x.openSegment(ref, whole)
	if src == nil {
		return nil, nil
	}
	r, err := segment.Open(src, ref.Bytes)
	if err != nil {
		return nil, err
	}
	if whole {
		x.index.Read++
		if err := r.Check(func(_ uint32, d *segment.Document) error { return x.visit(ref, d, anchors) }); err != nil {
			return nil, err
		}
	}
	cols, err := r.Columns(segment.Slots | segment.Times | segment.Fingerprints | segment.Generations)
	if err != nil {
		return nil, err
	}
	gone := x.gone(ref, r.Documents())
	x.checkSummary(ref, r.Summary())
	for doc := range uint32(r.Documents()) {
		d := document{fp: cols.Fingerprint(doc), slot: cols.Slot(doc), gen: cols.Generation(doc), unix: uint32(cols.Time(doc))}
		if d.slot < ref.First || d.slot > ref.Last || doc > 0 && d.slot < cols.Slot(doc-1) || int(d.slot) >= x.pmap.Slots() {
			x.violate(ref.Object, "document %d is of slot %d, in a segment from %d to %d", doc, d.slot, ref.First, ref.Last)
		}
		if !gone.Has(doc) {
			current = append(current, d)
		}
	}
	return current, nil
}

// openSegment returns a reader of a segment: whole, or in ranges where little of it is
// needed. It returns nil, and has reported why, if there is none.
func (x *index) openSegment(ref *blobschema.SegmentRef, whole bool) segment.Source {
	p, number, err := naming.ParseIndex(ref.Object)
	if err != nil || p != x.p.id || number > x.man.Number {
		x.damaged(x.head.Manifest, "it names %s, which is no segment of it", ref.Object)
	}
	if ranges, ok := x.store.(RangeStore); ok && !whole && x.listed[ref.Object] {
		return func(offset, length int64) ([]byte, error) {
			x.reads.Objects++
			x.reads.Bytes += length
			return ranges.ObjectRange(x.ctx, ref.Object, offset, length)
		}
	}
	data, ok := x.object(ref.Object, x.head.Manifest)
	if !ok {
		return nil
	}
	if int64(len(data)) != ref.Bytes {
		x.damaged(ref.Object, "it has %d bytes, and by its manifest %d", len(data), ref.Bytes)
		return nil
	}
	if name := naming.Segment(x.id, p, number, data); name != ref.Object {
		x.damaged(ref.Object, "by its content its name should be %s", name)
	}
	return func(offset, length int64) ([]byte, error) { return piece(data, offset, length) }
}

// gone returns the documents of a segment that are current no more.
func (x *index) gone(ref *blobschema.SegmentRef, documents int) *segment.Set {
	if len(ref.Deleted) == 0 && ref.Gone == 0 {
		return nil
	}
	set, err := segment.DecodeSet(ref.Deleted, documents)
	if err != nil {
		x.damaged(x.head.Manifest, "deleted documents of %s: %v", ref.Object, err)
		return nil
	}
	x.must(set.Len() == int(ref.Gone), x.head.Manifest, "%d documents of %s are deleted, and it says %d", set.Len(), ref.Object, ref.Gone)
	return set
}

// checkSummary compares what a segment and its manifest say of it.
func (x *index) checkSummary(ref *blobschema.SegmentRef, sum segment.Summary) {
	same := slices.EqualFunc(ref.Lengths, sum.Lengths[:], func(a uint64, b int64) bool { return a == uint64(b) })
	x.must(same && sum.Documents == int(ref.Documents) && sum.First == ref.First && sum.Last == ref.Last, x.head.Manifest,
		"%s has %d documents of slots %d to %d, tokens %d; it says %d of %d to %d, %d",
		ref.Object, sum.Documents, sum.First, sum.Last, sum.Lengths, ref.Documents, ref.First, ref.Last, ref.Lengths)
}

// visit checks what a document says of its page, and shows its URL and slot.
func (x *index) visit(ref *blobschema.SegmentRef, d *segment.Document, anchors bool) error {
	f := &located{object: ref.Object, what: "document of", name: d.Host, unit: x.unitOf(d.Host), slot: d.Slot}
	if anchors {
		f.what = "texts of links to"
		x.must(d.URL == "", ref.Object, "a document, of texts of links, is of %s", d.URL)
	} else {
		a := x.address(d.URL)
		x.show(&urls{ref.Object, []address{a}})
		x.must(a.err != nil || a.fp == d.Fingerprint && string(a.url.Host()) == d.Host, ref.Object,
			"%s of host %s has the fingerprint %016x, and should have %016x", d.URL, d.Host, d.Fingerprint, a.fp)
	}
	x.show(f)
	return nil
}

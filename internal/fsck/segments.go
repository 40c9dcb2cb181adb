package fsck

import (
	"errors"
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// segmentChecker checks a segment.
type segmentChecker struct {
	*indexChecker
	ref     *blobschema.SegmentRef
	anchors bool // it has the texts of links
}

// check checks a segment and yields its current documents. All of it is read, or, where few WARC
// objects are, mostly what tells the documents apart.
func (s *segmentChecker) check(current func(document)) error {
	c, ref := s.c, s.ref
	c.name(ref.Object, s.head.Manifest)
	c.checked["I6"]++
	deep := c.opt.WARCs == allWARCs || c.index.Segments%sampleEvery == 0
	c.index.Segments++
	src, err := s.open(deep)
	if src == nil {
		return err
	}
	fault := func(err error) error {
		if ctxErr := c.ctx.Err(); ctxErr != nil {
			return ctxErr
		}
		if errors.Is(err, wire.ErrVersion) {
			err = fmt.Errorf("%w; 'orbweaver index' makes an index again that another version of orbweaver has made", err)
		}
		c.violate("I6", ref.Object, "%v", err)
		return nil
	}
	r, err := segment.Open(src, ref.Bytes)
	if err != nil {
		return fault(err)
	}
	if deep {
		c.index.Read++
		if err := r.Check(s.visit); err != nil {
			return fault(err)
		}
	}
	cols, err := r.Columns(segment.Slots | segment.Times | segment.Fingerprints | segment.Generations)
	if err != nil {
		return fault(err)
	}
	gone := s.gone(r.Documents())
	s.summary(r)
	for doc := range uint32(r.Documents()) {
		d := document{fp: cols.Fingerprint(doc), slot: cols.Slot(doc), gen: cols.Generation(doc), unix: uint32(cols.Time(doc))}
		if d.slot < ref.First || d.slot > ref.Last || doc > 0 && d.slot < cols.Slot(doc-1) || int(d.slot) >= c.pmap.Slots() {
			c.violate("I11", ref.Object, "document %d is of slot %d, in a segment from %d to %d", doc, d.slot, ref.First, ref.Last)
		}
		if !gone.Has(doc) {
			current(d)
		}
	}
	return nil
}

// open returns what reads a segment: whole, or in ranges where little of it is needed. It returns nil,
// and the violation is reported, if there is none.
func (s *segmentChecker) open(whole bool) (segment.Source, error) {
	c, ref := s.c, s.ref
	p, number, err := naming.ParseIndex(ref.Object)
	if err != nil || p != s.h.id || number > s.man.Number {
		c.violate("I6", s.head.Manifest, "it names %s, which is no segment of it", ref.Object)
	}
	if !whole && c.listed[ref.Object] {
		return func(offset, length int64) ([]byte, error) {
			c.read.Objects++
			c.read.Bytes += length
			return c.store.Store.Object(c.ctx, ref.Object, offset, length)
		}, nil
	}
	data, err := c.object(ref.Object, s.head.Manifest)
	if data == nil {
		return nil, err
	}
	if int64(len(data)) != ref.Bytes {
		c.violate("I6", ref.Object, "it has %d bytes, and by its manifest %d", len(data), ref.Bytes)
		return nil, nil
	}
	if name := naming.Segment(c.id, p, number, data); name != ref.Object {
		c.violate("I6", ref.Object, "by its content its name should be %s", name)
	}
	return segment.Source(pieceOf(data)), nil
}

// gone are the documents that are current no more.
func (s *segmentChecker) gone(documents int) *segment.Set {
	if len(s.ref.Deleted) == 0 && s.ref.Gone == 0 {
		return nil
	}
	set, err := segment.DecodeSet(s.ref.Deleted, documents)
	if err != nil {
		s.c.violate("I6", s.head.Manifest, "deleted documents of %s: %v", s.ref.Object, err)
		return nil
	}
	if set.Len() != int(s.ref.Gone) {
		s.c.violate("I11", s.head.Manifest, "%d documents of %s are deleted, and it says %d", set.Len(), s.ref.Object, s.ref.Gone)
	}
	return set
}

// summary compares what a segment and its manifest say of it.
func (s *segmentChecker) summary(r *segment.Reader) {
	sum, ref := r.Summary(), s.ref
	same := sum.Documents == int(ref.Documents) && sum.First == ref.First && sum.Last == ref.Last && len(ref.Lengths) == len(sum.Lengths)
	for f := 0; same && f < len(sum.Lengths); f++ {
		same = ref.Lengths[f] == uint64(sum.Lengths[f])
	}
	if !same {
		s.c.violate("I11", s.head.Manifest, "%s has %d documents of slots %d to %d, tokens %d; it says %d of %d to %d, %d", ref.Object,
			sum.Documents, sum.First, sum.Last, sum.Lengths, ref.Documents, ref.First, ref.Last, ref.Lengths)
	}
}

// visit checks that what a document says of its page agrees.
func (s *segmentChecker) visit(doc uint32, d *segment.Document) error {
	c := s.c
	host := d.Host
	if s.anchors {
		if d.URL != "" {
			c.violate("I11", s.ref.Object, "document %d, of texts of links, is of %s", doc, d.URL)
		}
	} else {
		u, ok := c.canonical(d.URL, s.ref.Object)
		if !ok {
			return nil
		}
		if fp := c.hash.Fingerprint(d.URL); fp != d.Fingerprint || string(u.Host()) != d.Host {
			c.violate("I11", s.ref.Object, "%s of host %s has the fingerprint %016x, and should have %016x", d.URL, d.Host, d.Fingerprint, fp)
		}
		host = string(u.Host())
	}
	c.checked["I2"]++
	unit, _ := c.unit(weburl.Host(host))
	if slot := c.hash.Slot(unit); slot != d.Slot {
		c.violate("I2", s.ref.Object, "document %d, of host %s, has slot %d, and belongs to %d", doc, host, d.Slot, slot)
	}
	return nil
}

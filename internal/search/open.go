package search

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// This file reads the parts of a segment that a query needs besides lists: the index at its end, columns of its
// documents, and page ranks. All are kept in the cache, which may drop them between two queries.

// bad adds the name of a segment to an error.
func bad(s *seg, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("segment %s: %w", s.ref.Object, err)
}

// open opens a segment for a query.
func (r *reader) open(ctx context.Context, s *seg) (*segment.Reader, error) {
	src := r.source(ctx, s.ref.Object, s.ref.Bytes)
	opened, err := cached(ctx, r.cache, key{s.ref.Object, kindReader, 0, 0}, func() (*segment.Reader, int64, error) {
		o, err := segment.Open(src, s.ref.Bytes)
		if err == nil && o.Documents() != int(s.ref.Documents) {
			err = fmt.Errorf("%w: %d documents, not %d", wire.ErrDamaged, o.Documents(), s.ref.Documents)
		}
		return o, 4<<10 + s.ref.Bytes/256, err // mostly the index of its blocks
	})
	if err != nil {
		return nil, bad(s, err)
	}
	return opened.With(src), nil
}

// columns loads the document table without the blocks of the cache, because it is cached as a whole. It reads all
// columns as one range: nearly every query needs them all, and a second read costs more than the bytes in
// between.
func (r *reader) columns(ctx context.Context, s *seg) (*segment.Columns, error) {
	return cached(ctx, r.cache, key{s.ref.Object, kindColumns, 0, 0}, func() (*segment.Columns, int64, error) {
		o, err := r.open(ctx, s)
		if err != nil {
			return nil, 0, err
		}
		c, err := o.With(func(off, length int64) ([]byte, error) { return r.direct(ctx, s.ref.Object, off, length) }).Columns()
		if err != nil {
			return nil, 0, bad(s, err)
		}
		return c, c.Bytes(), nil
	})
}

// target is a document that an anchor text belongs to.
type target struct {
	seg int32 // index in targets.segments; -1: not found
	doc uint32
}

// targets are the documents that the texts of an anchor segment belong to.
type targets struct {
	segments []*seg
	of       []target // by document of the anchor segment
}

// targets finds the documents of an anchor segment: among those of its partition or, once slots have moved, among
// all.
func (r *reader) targets(ctx context.Context, snap *snapshot, a *seg) (*targets, error) {
	parts, name := []*part{a.part}, fmt.Sprintf("%s %d", a.ref.Object, a.part.head.Number)
	if snap.moved {
		parts, name = snap.parts, fmt.Sprintf("%s of %d", a.ref.Object, snap.number)
	}
	var t targets
	for _, p := range parts {
		t.segments = append(t.segments, p.segments...)
	}
	of, err := cached(ctx, r.cache, key{name, kindTargets, 0, 0}, func() ([]target, int64, error) {
		of, err := r.findTargets(ctx, snap, a, t.segments)
		return of, int64(8 * len(of)), err
	})
	t.of = of
	return &t, err
}

func (r *reader) findTargets(ctx context.Context, snap *snapshot, a *seg, in []*seg) ([]target, error) {
	cols := make([]*segment.Columns, len(in)+1)
	err := parallel(parallelReads, append(in[:len(in):len(in)], a), func(i int, s *seg) (err error) {
		cols[i], err = r.columns(ctx, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	// Collect the documents of the anchor segment by ID, and their slots.
	of := make([]target, a.ref.Documents)
	by, slots := make(map[segment.ID]int, len(of)), map[partition.Slot]bool{}
	for doc := range of {
		id := cols[len(in)].ID(uint32(doc))
		of[doc].seg, by[id], slots[id.Slot] = -1, doc, true
	}
	// Find them in the other segments.
	for i, s := range in {
		gone := snap.gone(s)
		for doc := uint32(0); doc < s.ref.Documents; doc++ {
			if slot := cols[i].Slot(doc); !slots[slot] { // skip slots without anchor texts: with many partitions most are
				doc = max(doc, s.firstOf(cols[i], slot+1)-1)
				continue
			}
			if a, ok := by[cols[i].ID(doc)]; ok && !gone(doc) {
				of[a] = target{int32(i), doc}
			}
		}
	}
	return of, nil
}

// hide returns the outdated documents of moved slots. Of the versions of a document, the one with the highest generation
// stays, then the one with the latest time, then that of the last partition. A partition may also have removed the
// document. hide reads columns of all segments.
func (ix *Index) hide(ctx context.Context, snap *snapshot) (map[*seg]*segment.Set, error) {
	r := &reader{ix.store, ix.cache, &reads{}}
	tables := map[*seg]*segment.Columns{}
	// Find the slots of which several partitions have documents or removed documents.
	in := map[partition.Slot]partition.ID{}
	several := map[partition.Slot]bool{}
	note := func(slot partition.Slot, p *part) {
		if other, ok := in[slot]; ok && other != p.head.Partition {
			several[slot] = true
		}
		in[slot] = p.head.Partition
	}
	for _, p := range snap.parts {
		for _, s := range p.segments {
			cols, err := r.columns(ctx, s)
			if err != nil {
				return nil, err
			}
			tables[s] = cols
			for doc := range s.ref.Documents {
				if doc == 0 || cols.Slot(doc) != cols.Slot(doc-1) {
					note(cols.Slot(doc), p)
				}
			}
		}
		for _, d := range p.removed {
			note(d.Slot, p)
		}
	}
	hidden := map[*seg]*segment.Set{}
	for slot := range several { // one at a time, because a slot may have many documents
		hideIn(slot, snap.parts, tables, hidden)
	}
	return hidden, nil
}

// version is a version of a document.
type version struct {
	seg        *seg
	doc        uint32
	generation uint32
	time       int64
}

// hideIn adds the documents of a slot that do not count to hidden.
func hideIn(slot partition.Slot, parts []*part, tables map[*seg]*segment.Columns, hidden map[*seg]*segment.Set) {
	hide := func(v version) {
		if hidden[v.seg] == nil {
			hidden[v.seg] = &segment.Set{}
		}
		hidden[v.seg].Add(v.doc)
	}
	type removal struct {
		by         *part
		generation uint32
	}
	// Collect the documents that partitions have removed from the slot.
	removed, best := map[uint64][]removal{}, map[uint64]version{} // by fingerprint
	for _, p := range parts {
		first, _ := slices.BinarySearchFunc(p.removed, slot, func(d blobschema.RemovedDocument, slot partition.Slot) int { return cmp.Compare(d.Slot, slot) })
		for _, d := range p.removed[first:] {
			if d.Slot != slot {
				break
			}
			removed[d.Fingerprint] = append(removed[d.Fingerprint], removal{p, d.Generation})
		}
	}
	// Of the versions that no other partition has removed since, hide all but the best.
	for _, p := range parts {
		for _, s := range p.segments {
			cols := tables[s]
			for doc := s.firstOf(cols, slot); doc < s.ref.Documents && cols.Slot(doc) == slot; doc++ {
				if s.deleted.Has(doc) {
					continue
				}
				v, fp := version{s, doc, cols.Generation(doc), cols.Time(doc)}, cols.Fingerprint(doc)
				other, ok := best[fp]
				switch {
				case slices.ContainsFunc(removed[fp], func(r removal) bool { return r.by != p && r.generation >= v.generation }),
					ok && cmp.Or(cmp.Compare(v.generation, other.generation), cmp.Compare(v.time, other.time)) < 0:
					hide(v)
					continue
				case ok:
					hide(other)
				}
				best[fp] = v
			}
		}
	}
}

// firstOf returns the first document of a slot, or of a later one.
func (s *seg) firstOf(cols *segment.Columns, slot partition.Slot) uint32 {
	return uint32(sort.Search(int(s.ref.Documents), func(i int) bool { return cols.Slot(uint32(i)) >= slot }))
}

// ranks returns the page ranks of a segment's documents, times the number of pages, so that the mean is 1; 0 if
// unknown. It returns nil if there are none. The ranks of a slot are in one table, which may be that of another
// partition once slots have moved.
func (r *reader) ranks(ctx context.Context, snap *snapshot, s *seg) ([]float32, error) {
	names := []string{snap.tables[s.part.head.Partition]}
	if snap.moved {
		for _, p := range snap.parts {
			if p != s.part {
				names = append(names, snap.tables[p.head.Partition])
			}
		}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
	if len(names) == 0 {
		return nil, nil
	}
	k := key{s.ref.Object + " " + strings.Join(names, " "), kindRanks, 0, 0}
	return cached(ctx, r.cache, k, func() ([]float32, int64, error) {
		cols, err := r.columns(ctx, s)
		if err != nil {
			return nil, 0, err
		}
		tables := make([]*ranks.Table, len(names)) // loaded on demand
		out := make([]float32, s.ref.Documents)
		home := -1 // the table of the current slot; -1: not known yet
		for doc := range s.ref.Documents {
			if doc > 0 && cols.Slot(doc) != cols.Slot(doc-1) {
				home = -1
			}
			for i := max(home, 0); i < len(names) && (home < 0 || i == home); i++ {
				if tables[i] == nil {
					if tables[i], err = r.table(ctx, names[i]); err != nil {
						return nil, 0, err
					}
				}
				if rank, ok := tables[i].Rank(cols.Fingerprint(doc)); ok {
					out[doc], home = float32(rank*float64(tables[i].Nodes())), i
				}
			}
		}
		return out, int64(4 * len(out)), nil
	})
}

func (r *reader) table(ctx context.Context, name string) (*ranks.Table, error) {
	return cached(ctx, r.cache, key{name, kindTable, 0, 0}, func() (*ranks.Table, int64, error) {
		data, err := r.direct(ctx, name, 0, -1)
		if err != nil {
			return nil, 0, err
		}
		t, err := ranks.DecodeTable(data)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return t, int64(len(data)), err
	})
}

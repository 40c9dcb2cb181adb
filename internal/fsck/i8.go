package fsck

import (
	"cmp"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
)

// i8 checks that each URL is visible once per generation: it has one visible page record
// at most, none while that generation is pending, and one address. The filter of a run
// knows all its URLs: one that it denies would be fetched twice.
func i8(v *judge, fact any) {
	switch f := fact.(type) {
	case *block:
		for i := range f.Settled {
			v.filtered(f, f.Settled[i].Fingerprint)
		}
		for i := range f.Queued {
			v.filtered(f, f.urls[i].fp)
		}
	case *page:
		if f.home != nil {
			v.keepVisible(f)
		}
	case end:
		v.onceEach()
	}
}

func (v *judge) filtered(f *block, fp uint64) {
	if !f.ix.MayContain(fp) {
		v.violate(f.object, "the filter of the run denies %016x, which is in it", fp)
	}
}

// visible is a page record of one generation of a URL.
type visible struct {
	fp  uint64
	gen uint32
	in  blobschema.RecordRef
}

func (a visible) compare(b visible) int {
	return cmp.Or(cmp.Compare(a.fp, b.fp), cmp.Compare(a.gen, b.gen), a.in.Compare(b.in))
}

// keepVisible keeps a page record, and checks that its generation is not pending.
func (v *judge) keepVisible(pg *page) {
	if v.Checked++; pg.outside() || pg.home.broken {
		return
	}
	v.visible = append(v.visible, visible{pg.fp, pg.Generation, pg.in.record()})
	if e := pg.known; e != nil && e.state == blobschema.Pending && e.gen == pg.Generation {
		v.violate(pg.in.name, "%s has a page record and is pending still: it will be requested again", pg.URL)
	}
}

// onceEach checks that no generation of a URL has two page records, and that no two slots know a URL.
func (v *judge) onceEach() {
	slices.SortFunc(v.visible, visible.compare)
	for i, r := range v.visible {
		if last := v.visible[max(0, i-1)]; i > 0 && last.fp == r.fp && last.gen == r.gen {
			v.violate(v.commitAt(r.in), "the URL %016x has another page record of generation %d, in commit %d of partition %d",
				r.fp, r.gen, last.in.Seq, last.in.Partition)
		}
	}
	all := v.allKnown()
	for i := 1; i < len(all) && !v.anyBroken(); i++ {
		if all[i] == all[i-1] {
			v.violate(v.id, "the URL %016x is known in two slots", all[i])
		}
	}
}

// allKnown returns the fingerprints of the URLs that are known in any slot, sorted.
func (c *checker) allKnown() (all []uint64) {
	for _, p := range c.parts {
		for _, e := range p.state {
			if e.state != blobschema.Forwarded {
				all = append(all, e.fp)
			}
		}
	}
	slices.Sort(all)
	return all
}

package fsck

import (
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
)

// i8 checks that each URL is visible once per generation: it has one visible page record
// at most, none while that generation is pending, and one address. The filter of a run
// knows all its URLs: one that it denies would be fetched twice.
func i8(v *judge, fact any) {
	switch f := fact.(type) {
	case *block:
		for i := range f.settled {
			v.filtered(f, f.settled[i].Fingerprint)
		}
		for i := range f.queued {
			v.filtered(f, f.urls[i].fp)
		}
	case *group:
		for _, p := range f.parts {
			v.Checked += int64(len(p.records))
			if f.broken {
				continue
			}
			for state, records := range p.urls() {
				v.visibleOnce(p, state, records)
			}
		}
	case end:
		if v.byIP() && !v.anyBroken() {
			v.oneAddress()
		}
	}
}

func (v *judge) filtered(f *block, fp uint64) {
	if !f.ix.MayContain(fp) {
		v.violate(f.object, "the filter of the run denies %016x, which is in it", fp)
	}
}

// visibleOnce checks the page records of a URL.
func (v *judge) visibleOnce(p *part, state []entry, records []settled) {
	for i, r := range records {
		if i > 0 && records[i-1].gen == r.gen && !records[i-1].scope && !r.scope {
			o := records[i-1].origin
			v.violate(v.recordAt(r),
				"%s has another page record of generation %d, in commit %d of partition %d", v.urlBy(r), r.gen, o.Seq, o.Partition)
		}
	}
	var home *entry
	for i := range state {
		e := &state[i]
		switch {
		case e.state == blobschema.Forwarded:
			continue
		case home != nil:
			v.violate(v.where(p), "the URL %016x is in slot %d and in slot %d", e.fp, home.slot, e.slot)
			continue
		}
		home = e
		for _, r := range records {
			if e.state == blobschema.Pending && r.gen == e.gen && !r.scope {
				v.violate(v.recordAt(r), "%s has a page record and is pending still: it will be requested again", v.urlBy(r))
			}
		}
	}
}

// oneAddress checks, in a crawl by IP, that no URL is known at two addresses.
func (v *judge) oneAddress() {
	all := v.allKnown()
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			v.violate(v.id, "the URL %016x is known to the slots of two addresses", all[i])
		}
	}
}

// allKnown returns the fingerprints of all URLs known to any partition, sorted.
func (c *checker) allKnown() (all []uint64) {
	for _, p := range c.parts {
		all = append(all, p.known...)
	}
	slices.Sort(all)
	return all
}

package fsck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// i6 checks that stored objects have not changed. Objects agree with their names and with the
// objects that name them, and runs are in order. WARC records have their digests and agree
// with the page records. The original of every revisit is a response in the same commit or
// an earlier one. The pass itself reports objects that cannot be read.
func i6(v *judge, fact any) {
	switch f := fact.(type) {
	case *part:
		v.headAsManifest(f)
	case moment:
		for _, r := range [][2]string{{naming.CrawlKey(v.id), v.crawl.Settings.HostRanks}, {naming.DesiredKey(v.id), v.desired.HostRanks}} {
			if by, name := r[0], r[1]; name != "" && v.name(name, by) {
				v.exists(name, by)
			}
		}
	case *batch:
		v.batchAsNamed(f)
	case *block:
		v.inOrder(f)
	case *commit:
		n := len(f.m.Runs)
		v.must(f.delta == nil || n > 0 && f.m.Runs[n-1].Object == f.name, f.name, "it holds a run that its manifest does not name")
		for i, w := range f.m.WARCs {
			if len(f.warcs[i]) > 0 {
				v.report.WARCsBad++
				v.report.WARCsRead--
			}
			for _, what := range f.warcs[i] {
				v.violate(w, "%s", what)
			}
		}
		v.ofItsPages(f)
	case *page:
		v.must(f.Outcome.Answered() == (f.WARC != ""), f.in.name, "the outcome of %s is %s, its WARC object %q", f.URL, f.Outcome, f.WARC)
		v.keepCapture(f.in, f.Page)
	case *letter:
		v.must(f.err == nil, f.name, "mail %d to partition %d: %v", f.number, f.to, f.err)
		v.must(!f.buffered || int(f.to) < len(v.parts), f.name, "it holds links for partition %d", f.to)
	case end:
		v.originals()
	}
}

// headAsManifest compares the fields that a head copies from its manifest.
func (v *judge) headAsManifest(p *part) {
	h, m, key := &p.head, p.man, naming.HeadKey(v.id, p.id)
	if m != nil {
		v.must(h.Epoch == m.Epoch && h.Desired == m.Desired && slices.Equal(h.Scope, m.NewScope), key,
			"epoch %d, desired state %d and new hosts %q are not the manifest's %d, %d and %q", h.Epoch, h.Desired, h.Scope, m.Epoch, m.Desired, m.NewScope)
	} else if p.damage != nil {
		if _, ok := v.object(h.Commit, key); ok {
			v.violate(h.Commit, "%v", p.damage)
		}
	}
}

// batchAsNamed compares the content of seeds or requests with the name and number.
func (v *judge) batchAsNamed(f *batch) {
	if f.content == nil {
		return // reported
	}
	if f.seeds > 0 {
		v.must(f.number == uint64(f.seeds) && naming.Seeds(v.id, f.content) == f.object, f.object,
			"it holds batch %d of seeds, and is named as batch %d", f.number, f.seeds)
	} else {
		v.must(f.number == f.mail.Request && naming.Request(v.id, f.content) == f.object, f.object,
			"it holds request %016x and is named as %016x", f.number, f.mail.Request)
	}
}

// inOrder checks the order of a run. A merged run has one entry of each URL, others one of
// each of its generations: a URL may settle twice between two commits.
func (v *judge) inOrder(f *block) {
	for i, s := range f.settled {
		l := &f.settled[max(0, i-1)]
		n := cmp.Or(cmp.Compare(l.Slot, s.Slot), cmp.Compare(l.Fingerprint, s.Fingerprint))
		if n > 0 || n == 0 && i > 0 && (f.merged || l.Generation >= s.Generation) {
			v.violate(f.object, "the run is not sorted, or has a URL twice: settled %016x of slot %d", s.Fingerprint, s.Slot)
		}
	}
	for i, q := range f.queued {
		l := &f.queued[max(0, i-1)]
		if cmp.Or(cmp.Compare(l.Slot, q.Slot), cmp.Compare(l.Key, q.Key), cmp.Compare(l.Rank, q.Rank), cmp.Compare(l.URL, q.URL)) > 0 {
			v.violate(f.object, "the run is not sorted: pending %s", q.URL)
		}
	}
	for i, h := range f.keys {
		l := &f.keys[max(0, i-1)]
		n := cmp.Or(cmp.Compare(l.Slot, h.Slot), cmp.Compare(l.Key, h.Key))
		v.must(n < 0 || n == 0 && i == 0, f.object, "the run is not sorted, or has a host twice: %s", h.Key)
	}
}

// ofItsPages checks that links are of pages of the same commit.
func (v *judge) ofItsPages(f *commit) {
	slots := make(map[uint64]partition.Slot, len(f.pages))
	for i := range f.pages {
		if pg := &f.pages[i]; pg.home != nil {
			slots[pg.fp] = pg.slot
		}
	}
	for _, l := range f.links {
		slot, ok := slots[l.Source]
		v.must(ok && slot == l.Slot, f.name, "links of a page %016x of slot %d, of which it has no record", l.Source, l.Slot)
	}
}

// claim is the reference of a page record to the response with its payload: an earlier one, in a
// revisit, or of its own. Hashes take few bytes.
type claim struct {
	fp uint64               // of the URL of the page
	of uint64               // hash of the expected response
	by blobschema.RecordRef // the commit with the page record
}

// keepCapture notes a revisit and, if its partition has any, a response that revisits may refer to.
func (v *judge) keepCapture(f *commit, pg *blobschema.Page) {
	switch o := pg.Original; {
	case o != nil && pg.WARC == "":
		v.violate(f.name, "%s is a revisit, and has no WARC object", pg.URL)
	case o != nil:
		v.report.Revisits++
		at, cl := v.claimOf(f, o, pg)
		v.claims[at] = append(v.claims[at], cl)
	case pg.Outcome == blobschema.OutcomeUnchanged:
		v.violate(f.name, "%s is unchanged, and since what is not said", pg.URL)
	case pg.WARC != "" && (v.atlas.anyMoved || f.man.Totals.Revisits > 0):
		own := pg.Payload()
		at, cl := v.claimOf(f, &own, pg)
		v.captures[at] = append(v.captures[at], cl)
	}
}

// claimOf returns a hash of the place of a response, and the claim about it.
func (v *judge) claimOf(f *commit, o *blobschema.Original, pg *blobschema.Page) (at uint64, cl claim) {
	of := fmt.Sprintf("%s %d %d %s %d", o.URL, o.Time.UnixMicro(), o.Length, pg.Digest, pg.BodyBytes)
	return v.hash.Fingerprint(fmt.Sprintf("%s %d", o.WARC, o.Offset)), claim{v.hash.Fingerprint(pg.URL), v.hash.Fingerprint(of), f.record()}
}

// originals looks the claims of revisits up among the responses of the same partitions. The
// partition that had the slot before has commits of its own number.
func (v *judge) originals() {
	for _, at := range slices.Sorted(maps.Keys(v.claims)) {
		for _, cl := range v.claims[at] {
			where, by := v.commitOf(cl.by.Partition, uint64(cl.by.Seq)), cl.by.Partition
			if len(v.captures[at]) == 0 && !v.parts[by].broken { // otherwise the response may be in an unreadable commit
				v.violate(where, "%016x is a revisit of a response that has no page record", cl.fp)
			}
			for _, own := range v.captures[at] {
				if own.by.Partition == by && own.by.Seq > cl.by.Seq {
					v.violate(where, "%016x is said to be a revisit of a response in commit %d of partition %d", cl.fp, own.by.Seq, by)
				} else if own.of != cl.of {
					v.violate(where, "%016x is a revisit, and does not say of its original what commit %d of partition %d does",
						cl.fp, own.by.Seq, own.by.Partition)
				}
			}
		}
	}
}

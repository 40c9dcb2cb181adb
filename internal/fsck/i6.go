package fsck

import (
	"cmp"
	"fmt"

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
		for _, r := range [][2]string{{naming.CrawlKey(v.id), v.crawl.Settings.HostRanks}, {naming.CrawlKey(v.id), v.crawl.Settings.KnownHosts}, {naming.DesiredKey(v.id), v.desired.HostRanks}} {
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

// headAsManifest compares the fields that a head copies or sums up from its manifest.
func (v *judge) headAsManifest(p *part) {
	h, m, key := &p.head, p.man, naming.HeadKey(v.id, p.id)
	if p.damage != nil {
		if _, ok := v.object(h.Commit, key); ok {
			v.violate(h.Commit, "%v", p.damage)
		}
	}
	if m.Seq == 0 {
		return
	}
	sent, applied, gives := map[partition.ID]uint64{}, uint64(0), map[partition.ID]partition.Epoch{}
	for to, n := range h.Sent {
		if n > 0 {
			sent[partition.ID(to)] = n
		}
	}
	for _, marks := range m.Applied {
		applied += marks.Low + uint64(len(marks.Above))
	}
	for _, g := range m.Given {
		gives[g.To] = max(gives[g.To], g.Epoch)
	}
	v.same(key, "epoch", h.Epoch, m.Epoch)
	v.same(key, "desired state", h.Desired, m.Desired)
	v.same(key, "new hosts of the scope", h.Scope, m.NewScope)
	v.same(key, "totals", h.Totals, m.Totals)
	v.same(key, "counts of domains", h.Domains, m.Domains)
	v.same(key, "mail sent, by partition", sent, m.Sent)
	v.same(key, "number of applied mails", h.Applied, applied)
	v.same(key, "last applied request", h.Requests, m.Applied[partition.Requests].Low)
	v.same(key, "epochs of hand-overs, by partition", h.Gives, gives)
}

// batchAsNamed compares the content of seeds or requests with the name and number.
func (v *judge) batchAsNamed(f *batch) {
	if f.content == nil {
		return // reported
	}
	number, name := f.mail.Request, naming.Request(v.id, f.content)
	if f.seeds > 0 {
		number, name = uint64(f.seeds), naming.Seeds(v.id, f.content)
	}
	v.same(f.object, "number and name", []any{f.number, f.object}, []any{number, name})
}

// inOrder checks the order of a run. A merged run has one entry of each URL, others one of
// each of its generations: a URL may settle twice between two commits.
func (v *judge) inOrder(f *block) {
	for i, s := range f.Settled {
		l := &f.Settled[max(0, i-1)]
		n := cmp.Or(cmp.Compare(l.Slot, s.Slot), cmp.Compare(l.Fingerprint, s.Fingerprint))
		if n > 0 || n == 0 && i > 0 && (f.merged || l.Generation >= s.Generation) {
			v.violate(f.object, "the run is not sorted, or has a URL twice: settled %016x of slot %d", s.Fingerprint, s.Slot)
		}
	}
	for i, q := range f.Queued {
		l := &f.Queued[max(0, i-1)]
		if cmp.Or(cmp.Compare(l.Slot, q.Slot), cmp.Compare(l.Key, q.Key), cmp.Compare(l.Rank, q.Rank), cmp.Compare(l.URL, q.URL)) > 0 {
			v.violate(f.object, "the run is not sorted: pending %s", q.URL)
		}
	}
	for i, h := range f.Keys {
		l := &f.Keys[max(0, i-1)]
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
		v.must(ok && slot == l.Slot, f.name, "it has links of the page %016x of slot %d, but no record of that page", l.Source, l.Slot)
	}
}

// claim is what a page record says of the response with its payload: an earlier one, if it is a
// revisit, or its own. Hashes take few bytes.
type claim struct {
	at, of uint64               // hashes of the place of the response, and of its content
	fp     uint64               // of the URL of the page
	by     blobschema.RecordRef // the commit with the page record
}

// keepCapture notes a revisit and, if its partition has any, a response that revisits may refer to.
func (v *judge) keepCapture(f *commit, pg *blobschema.Page) {
	switch o := pg.Original; {
	case o != nil && pg.WARC == "":
		v.violate(f.name, "%s is a revisit, and has no WARC object", pg.URL)
	case o != nil:
		v.report.Revisits++
		v.claims = append(v.claims, v.claimOf(f, o, pg))
	case pg.Outcome == blobschema.OutcomeUnchanged:
		v.violate(f.name, "%s is unchanged, and since what is not said", pg.URL)
	case pg.WARC != "" && (v.atlas.anyMoved || f.man.Totals.Revisits > 0):
		own := pg.Payload()
		cl := v.claimOf(f, &own, pg)
		v.captures[cl.at] = cl
	}
}

// claimOf returns what a page record says of a response.
func (v *judge) claimOf(f *commit, o *blobschema.Original, pg *blobschema.Page) claim {
	at, of := fmt.Sprintf("%s %d", o.WARC, o.Offset), fmt.Sprintf("%s %d %d %s %d", o.URL, o.Time.UnixMicro(), o.Length, pg.Digest, pg.BodyBytes)
	return claim{v.hash.Fingerprint(at), v.hash.Fingerprint(of), v.hash.Fingerprint(pg.URL), f.record()}
}

// originals looks the claims of revisits up among the responses of the same partitions. The
// partition that had the slot before has commits of its own number.
func (v *judge) originals() {
	for _, cl := range v.claims {
		own, found := v.captures[cl.at]
		where, by, of := v.commitAt(cl.by), cl.by, own.by
		switch {
		case !found && v.parts[by.Partition].broken: // the response may be in an unreadable commit
		case !found:
			v.violate(where, "%016x is a revisit of a response that has no page record", cl.fp)
		case of.Partition == by.Partition && of.Seq > by.Seq:
			v.violate(where, "%016x is a revisit of a response in the later commit %d of partition %d", cl.fp, of.Seq, of.Partition)
		case own.of != cl.of:
			v.violate(where, "%016x is a revisit and disagrees about its original with commit %d of partition %d", cl.fp, of.Seq, of.Partition)
		}
	}
}

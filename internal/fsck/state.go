package fsck

import (
	"cmp"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// entry is what the state says of a URL.
type entry struct {
	fp     uint64
	slot   partition.Slot
	gen    uint32
	origin blobschema.Origin // of its page record; of a pending URL, that of the generation before
	state  blobschema.State
}

// compare orders entries by URL. A URL has more than one slot only if it was forwarded.
func (a entry) compare(b entry) int {
	return cmp.Or(cmp.Compare(a.fp, b.fp), cmp.Compare(a.slot, b.slot))
}

// beats reports whether a wins over b when runs are merged: the rule of
// blobschema.Join, written a second time.
func (a entry) beats(b entry) bool {
	return cmp.Or(cmp.Compare(a.gen, b.gen), cmp.Compare(a.state, b.state), a.origin.Compare(b.origin)) > 0
}

// checkState reads the runs that the manifest names and joins them.
func (c *checker) checkState(h *history) error {
	for _, ref := range h.man.Runs {
		c.checkRunName(h, ref)
		data, err := c.object(ref.Object, h.head.Commit)
		if err != nil {
			return err
		}
		if data == nil || ref.Offset < 0 || ref.Length < 0 || ref.Offset > int64(len(data)) || ref.Length > int64(len(data))-ref.Offset {
			h.broken = true
			if data != nil {
				c.violate("I6", ref.Object, "the run at %d of %d bytes lies outside its %d bytes", ref.Offset, ref.Length, len(data))
			}
			continue
		}
		if !c.readRun(h, data[ref.Offset:ref.Offset+ref.Length], ref, true, func(e entry) { h.state = append(h.state, e) }) {
			h.broken = true
		}
	}
	h.join()
	h.known = make([]uint64, 0, len(h.state))
	h.slots = map[partition.Slot]*slotCount{}
	for _, e := range h.state { // sorted already
		if e.state == blobschema.Forwarded {
			h.forwarded = append(h.forwarded, e.fp)
			h.totals.Forwarded += int64(e.gen) + 1
		} else {
			h.known = append(h.known, e.fp)
		}
		n := h.slots[e.slot]
		if n == nil {
			n = &slotCount{}
			h.slots[e.slot] = n
		}
		n.known++
		if e.state == blobschema.Pending {
			n.pending++
			c.report.Pending++
		}
	}
	c.report.URLs += int64(len(h.known))
	c.report.Forwarded += int64(len(h.forwarded))
	return nil
}

type slotCount struct{ known, pending int64 }

// join keeps the highest entry of each URL and slot, sorted.
func (h *history) join() {
	slices.SortFunc(h.state, func(a, b entry) int {
		if n := a.compare(b); n != 0 {
			return n
		}
		switch {
		case a.beats(b):
			return -1
		case b.beats(a):
			return 1
		}
		return 0
	})
	h.state = slices.CompactFunc(h.state, func(a, b entry) bool { return a.compare(b) == 0 })
}

// checkRunName checks that a run is in a visible commit of the partition, or a
// merged run made before the manifest.
func (c *checker) checkRunName(h *history, ref blobschema.RunRef) {
	m := h.man
	if p, seq, fence, err := blobschema.ParseCommitName(ref.Object); err == nil {
		if p != h.id || ref.Tier != 0 || seq > m.Seq || seq < m.Seq && ref.Object != c.commitAt(h.part, seq) || seq == m.Seq && fence != m.Fence ||
			!strings.HasPrefix(ref.Object, c.id+"/") {
			c.violate("I4", h.head.Commit, "it names a run in %s, which is no visible commit of it", ref.Object)
		}
		return
	}
	p, seq, fence, tier, err := blobschema.ParseRunName(ref.Object)
	if err != nil || p != h.id || seq > m.Seq || fence > m.Fence || tier != ref.Tier || !strings.HasPrefix(ref.Object, c.id+"/") {
		c.violate("I4", h.head.Commit, "it names a run %s of tier %d, which is none of it", ref.Object, ref.Tier)
	}
	if !c.name(ref.Object, h.head.Commit) {
		c.violate("I4", h.head.Commit, "it names the run %s, which is named already", ref.Object)
	}
}

// readRun decodes a run block by block, and reports whether all of it could be read.
// deep says that its entries are to be checked too.
func (c *checker) readRun(h *history, data []byte, ref blobschema.RunRef, deep bool, each func(entry)) bool {
	if ref.Index < 0 || ref.Index > int64(len(data)) {
		c.violate("I6", ref.Object, "the index of a run of %d bytes is at %d", len(data), ref.Index)
		return false
	}
	ix, err := blobschema.OpenRun(data[ref.Index:], ref)
	if err != nil {
		c.violate("I6", ref.Object, "%v", err)
		return false
	}
	rc := runChecker{c: c, h: h, ix: ix, where: ref.Object, deep: deep, merged: ref.Tier > 0, each: each}
	var run blobschema.Run
	for _, b := range ix.Blocks(0, partition.MaxSlots-1) {
		run.Seen, run.Queued, run.Hosts = run.Seen[:0], run.Queued[:0], run.Hosts[:0]
		if err := blobschema.DecodeBlock(data[b.Offset:b.Offset+b.Length], b, &run, 0, partition.MaxSlots-1); err != nil {
			c.violate("I6", ref.Object, "block at %d: %v", b.Offset, err)
			return false
		}
		for i := range run.Seen {
			rc.seen(run.Seen[i])
		}
		for i := range run.Queued {
			rc.queued(&run.Queued[i])
		}
		for i := range run.Hosts {
			rc.host(&run.Hosts[i])
		}
	}
	return true
}

// runChecker checks the entries of one run: sorted, in slots of their hosts, in
// slots of the partition, and known to the filter.
type runChecker struct {
	c     *checker
	h     *history
	ix    *blobschema.RunIndex
	where string
	deep  bool
	// merged runs have one entry of each URL; others one of each of its generations.
	merged bool
	each   func(entry)

	lastSeen   blobschema.Seen
	lastQueued blobschema.Queued
	lastHost   blobschema.HostState
	counts     [3]int
}

func (rc *runChecker) seen(s blobschema.Seen) {
	if rc.deep {
		l := &rc.lastSeen
		order := cmp.Or(cmp.Compare(l.Slot, s.Slot), cmp.Compare(l.Fingerprint, s.Fingerprint))
		if order == 0 && !rc.merged { // what was asked for again and settled again before a commit
			order = cmp.Compare(l.Generation, s.Generation)
		}
		if rc.counts[0] > 0 && order >= 0 {
			rc.c.violate("I6", rc.where, "the run is not sorted, or has a URL twice: settled %016x of slot %d", s.Fingerprint, s.Slot)
		}
		rc.counts[0]++
		*l = s
		rc.own(s.Slot, "a settled URL")
		rc.filter(s.Fingerprint)
		if s.State == blobschema.Forwarded && !rc.c.byIP() {
			rc.c.violate("I7", rc.where, "the URL %016x of slot %d was forwarded, in a crawl that is not by IP", s.Fingerprint, s.Slot)
		}
	}
	rc.each(entry{fp: s.Fingerprint, slot: s.Slot, gen: s.Generation, state: s.State, origin: s.Origin})
}

func (rc *runChecker) queued(q *blobschema.Queued) {
	fp := rc.c.hash.Fingerprint(q.URL)
	if rc.deep {
		l := &rc.lastQueued
		if rc.counts[1] > 0 && cmp.Or(cmp.Compare(l.Slot, q.Slot), cmp.Compare(l.Host, q.Host), cmp.Compare(l.Rank, q.Rank), cmp.Compare(l.URL, q.URL)) > 0 {
			rc.c.violate("I6", rc.where, "the run is not sorted: pending %s", q.URL)
		}
		rc.counts[1]++
		*l = *q
		if u, ok := rc.c.canonical(q.URL, rc.where); ok {
			unit := rc.c.placeOf(u, q, rc.where)
			if slot := rc.c.hash.Slot(unit); unit != q.Host || slot != q.Slot {
				rc.c.violate("I2", rc.where, "pending %s has host %s and slot %d, and belongs to %s, slot %d", q.URL, q.Host, q.Slot, unit, slot)
			}
		}
		rc.own(q.Slot, q.URL)
		rc.filter(fp)
	}
	rc.each(entry{fp: fp, slot: q.Slot, gen: q.Generation, state: blobschema.Pending, origin: q.Former})
}

func (rc *runChecker) host(s *blobschema.HostState) {
	if !rc.deep {
		return
	}
	l := &rc.lastHost
	if rc.counts[2] > 0 && cmp.Or(cmp.Compare(l.Slot, s.Slot), cmp.Compare(l.Host, s.Host)) >= 0 {
		rc.c.violate("I6", rc.where, "the run is not sorted, or has a host twice: %s", s.Host)
	}
	rc.counts[2]++
	*l = *s
	unit, err := rc.c.checkUnitName(s.Host)
	if err != nil {
		rc.c.violate("I1", rc.where, "stored host %q: %v", s.Host, err)
	}
	if slot := rc.c.hash.Slot(unit); slot != s.Slot {
		rc.c.violate("I2", rc.where, "host %s has slot %d, and belongs to %d", s.Host, s.Slot, slot)
	}
	rc.own(s.Slot, s.Host)
}

// own checks that a slot is one of the partition's.
func (rc *runChecker) own(s partition.Slot, what string) {
	if owner, ok := rc.c.owner(s); !ok || owner != rc.h.id {
		rc.c.violate("I3", rc.where, "%s is of slot %d, which is not partition %d's", what, s, rc.h.id)
	}
}

// filter checks that the run's filter knows a URL: it would be asked for twice.
func (rc *runChecker) filter(fp uint64) {
	if !rc.ix.MayContain(fp) {
		rc.c.violate("I8", rc.where, "the filter of the run denies %016x, which is in it", fp)
	}
}

// checkDelta checks that what a commit added to the state is still in it, however
// runs were merged since.
func (c *checker) checkDelta(h *history, name string, r *blobschema.CommitReader, m *blobschema.Manifest) {
	data, err := r.Run()
	if err != nil {
		h.broken = true
		c.violate("I6", name, "%v", err)
		return
	}
	if data == nil {
		return
	}
	if n := len(m.Runs); n == 0 || m.Runs[n-1].Object != name {
		c.violate("I6", name, "it holds a run that its manifest does not name")
		return
	}
	named := func(ref blobschema.RunRef) bool { return ref.Object == name }
	if h.broken || slices.ContainsFunc(h.man.Runs, named) {
		return // it is part of the state as it is
	}
	c.readRun(h, data, m.Runs[len(m.Runs)-1], false, func(e entry) {
		i, ok := slices.BinarySearchFunc(h.state, e, entry.compare)
		if !ok || e.beats(h.state[i]) {
			c.violate("I7", name, "the URL %016x of slot %d is %s, generation %d; merging lost that", e.fp, e.slot, e.state, e.gen)
		}
	})
}

// checkSlots compares the summaries of slots, and the totals over them, with the
// runs. Entries appended to a slot that was not loaded are counted apart, and
// some of them may be known already.
func (c *checker) checkSlots(h *history) {
	where := h.head.Commit
	var known, pending, unexamined int64
	last := int64(-1)
	for _, s := range h.man.Slots {
		if int64(s.Slot) <= last {
			c.violate("I6", where, "the summaries of slots are not sorted: %d after %d", s.Slot, last)
		}
		last = int64(s.Slot)
		if owner, ok := c.owner(s.Slot); !ok || owner != h.id {
			c.violate("I3", where, "it has a summary of slot %d, which is not partition %d's", s.Slot, h.id)
		}
		n := h.slots[s.Slot]
		if n == nil {
			n = &slotCount{}
		}
		delete(h.slots, s.Slot)
		k, p, u := int64(s.Known), int64(s.Pending), int64(s.Unexamined)
		known, pending, unexamined = known+k, pending+p, unexamined+u
		if n.known < k || n.known > k+u || n.pending < p || n.pending > p+u {
			c.violate("I7", where, "slot %d has %d known URLs, %d of them pending; its summary says %d and %d, and %d to examine", s.Slot, n.known, n.pending, k, p, u)
		}
		if p > 0 && s.Due == 0 {
			c.violate("I7", where, "slot %d has %d pending URLs and no time to ask for them", s.Slot, p)
		}
	}
	var left []partition.Slot
	for s := range h.slots {
		left = append(left, s)
	}
	slices.Sort(left)
	for _, s := range left {
		c.violate("I7", where, "slot %d has %d known URLs and no summary", s, h.slots[s].known)
	}
	t := &h.man.Totals
	if t.Known != known || t.Pending != pending || t.Unexamined != unexamined {
		c.violate("I7", where, "its totals say %d known, %d pending and %d to examine, its slots %d, %d and %d", t.Known, t.Pending, t.Unexamined, known, pending, unexamined)
	}
}

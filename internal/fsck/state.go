package fsck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
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

// checkState reads the runs that the manifest names, and those of hand-overs that nobody
// has taken, and gives what they say to the homes of the slots.
func (c *checker) checkState(h *history) error {
	h.slots = map[partition.Slot]*slotCount{}
	if h.man == nil {
		return nil
	}
	takes := make([]bool, c.pmap.Slots())
	for s := range takes {
		if !c.inScope(partition.Slot(s)) && !c.walks(h.part) {
			continue
		}
		takes[s] = h.holding.Holds(partition.Slot(s)) || c.awaits(h.part, partition.Slot(s))
	}
	own, err := c.readRuns(h, h.man.Runs, takes)
	if err != nil {
		return err
	}
	c.settle(own, h.slots)
	for i := range h.man.Given {
		if err := c.readGiven(h, &h.man.Given[i]); err != nil {
			return err
		}
	}
	return nil
}

// readGiven reads the runs of a hand-over. What it has of slots that were taken is stale,
// but has to be whole as long as it is named.
func (c *checker) readGiven(h *history, g *blobschema.Handover) error {
	takes := make([]bool, c.pmap.Slots())
	for _, s := range g.Slots {
		if at, ok := c.atlas.handed[s]; ok && (c.inScope(s) || c.walks(h.part)) {
			takes[s] = at.Handover == g
		}
	}
	state, err := c.readRuns(h, g.Runs, takes)
	if err != nil {
		return err
	}
	slots := map[partition.Slot]*slotCount{}
	c.settle(state, slots)
	if h.broken {
		return nil
	}
	for _, sum := range c.whole(h.head.Commit, g.State) {
		if int(sum.Slot) < len(takes) && takes[sum.Slot] {
			c.checkSummary(h.head.Commit, sum, slots[sum.Slot])
			delete(slots, sum.Slot)
		}
	}
	c.checkNoSummary(h.head.Commit, slots)
	return nil
}

// readRuns reads runs and joins what they say of some slots. A run in which nothing is of
// them is only checked.
func (c *checker) readRuns(h *history, refs []blobschema.RunRef, takes []bool) (state []entry, err error) {
	named := map[runAt]bool{}
	for _, ref := range refs {
		at := runAt{ref.Object, ref.Offset}
		c.checkRunName(h, ref, named[at])
		named[at] = true
		if !c.wants(ref.First, ref.Last, takes) {
			continue
		}
		read, err := c.runOf(ref, h.head.Commit)
		if err != nil {
			return nil, err
		}
		deep := !c.decoded[at]
		c.decoded[at] = true
		if read == nil || !c.readRun(read, ref, deep, takes, func(e entry) {
			if int(e.slot) < len(takes) && takes[e.slot] {
				state = append(state, e)
			}
		}) {
			h.broken = true
		}
	}
	return join(state), nil
}

// settle counts joined entries by slot, and gives them to the homes of their slots.
func (c *checker) settle(state []entry, slots map[partition.Slot]*slotCount) {
	for _, e := range state {
		n := slots[e.slot]
		if n == nil {
			n = &slotCount{}
			slots[e.slot] = n
		}
		n.known++
		if e.state == blobschema.Pending {
			n.pending++
		}
		if c.inScope(e.slot) {
			home := c.homeOf(e.slot)
			home.state = append(home.state, e)
		}
	}
}

// joinState joins what several partitions told of the slots at home in one.
func (c *checker) joinState(p *part) {
	if c.atlas.anyMoved {
		p.state = join(p.state)
	}
	p.known = make([]uint64, 0, len(p.state))
	for _, e := range p.state { // sorted already
		if e.state == blobschema.Forwarded {
			p.forwarded = append(p.forwarded, e.fp)
			p.sentOn += int64(e.gen) + 1
		} else {
			p.known = append(p.known, e.fp)
		}
		if e.state == blobschema.Pending {
			c.report.Pending++
		}
	}
	c.report.URLs += int64(len(p.known))
	c.report.Forwarded += int64(len(p.forwarded))
}

type slotCount struct{ known, pending int64 }

// runAt is where a run is stored.
type runAt struct {
	object string
	offset int64
}

// join keeps the highest entry of each URL and slot, sorted.
func join(state []entry) []entry {
	slices.SortFunc(state, func(a, b entry) int {
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
	return slices.CompactFunc(state, func(a, b entry) bool { return a.compare(b) == 0 })
}

// checkRunName checks that a run is in a visible commit of a partition, or a merged run made
// before the manifest: of the partition itself, or of one that slots may have come from.
// again says that the manifest has named it already.
func (c *checker) checkRunName(h *history, ref blobschema.RunRef, again bool) {
	c.checked["I4"]++
	of, seq, fence, ok := c.makerOf(h, ref)
	isCommit := ok && ref.Object == naming.Commit(c.id, of.id, seq, fence)
	switch {
	case ok && isCommit && (of.man == nil || seq > of.man.Seq || ref.Object != commitAt(of, seq)):
		c.violate("I4", h.head.Commit, "it names a run in %s, which is no visible commit of it", ref.Object)
	case !ok || of.man == nil || seq > of.man.Seq || fence > of.man.Fence:
		c.violate("I4", h.head.Commit, "it names a run %s of tier %d, which is none of it", ref.Object, ref.Tier)
	case !isCommit && again && len(h.man.Moved) == 0: // what comes back with a slot may be there still
		c.violate("I4", h.head.Commit, "it names the run %s, which is named already", ref.Object)
	}
	if !isCommit {
		c.name(ref.Object, h.head.Commit)
	}
}

// makerOf returns the partition and commit that made a run; ok is false if its name is none
// that the manifest may have.
func (c *checker) makerOf(h *history, ref blobschema.RunRef) (of *part, seq, fence uint64, ok bool) {
	var tier uint8
	p, seq, fence, err := naming.ParseCommit(ref.Object)
	if err != nil {
		p, seq, fence, tier, err = naming.ParseRun(ref.Object)
	}
	if err != nil || tier != ref.Tier || int(p) >= len(c.parts) || p != h.id && len(h.man.Moved) == 0 || !strings.HasPrefix(ref.Object, c.id+"/") {
		return h.part, 0, 0, false
	}
	return c.parts[p], seq, fence, true
}

// piece reads a piece of a run.
type piece func(offset, length int64) ([]byte, error)

// runOf returns what reads a run: whole, or in pieces where little of it is needed. It
// returns nil, and the violation is reported, if there is no such run.
func (c *checker) runOf(ref blobschema.RunRef, where string) (piece, error) {
	if c.only != nil {
		if !c.listed[ref.Object] {
			c.violate("I6", ref.Object, "the object does not exist; %s names it", where)
			return nil, nil
		}
		return func(offset, length int64) ([]byte, error) {
			if length == 0 {
				return nil, nil
			}
			c.read.Objects++
			c.read.Bytes += length
			return c.store.Store.Object(c.ctx, ref.Object, ref.Offset+offset, length)
		}, nil
	}
	data, err := c.object(ref.Object, where)
	if data == nil {
		return nil, err
	}
	if ref.Offset < 0 || ref.Length < 0 || ref.Offset > int64(len(data)) || ref.Length > int64(len(data))-ref.Offset {
		c.violate("I6", ref.Object, "the run at %d of %d bytes lies outside its %d bytes", ref.Offset, ref.Length, len(data))
		return nil, nil
	}
	return pieceOf(data[ref.Offset : ref.Offset+ref.Length]), nil
}

// pieceOf reads a run that is in memory. OpenRun checks that what its index names is there.
func pieceOf(run []byte) piece {
	return func(offset, length int64) ([]byte, error) {
		if offset < 0 || length < 0 || offset > int64(len(run)) || length > int64(len(run))-offset {
			return nil, fmt.Errorf("%d bytes at %d of a run of %d", length, offset, len(run))
		}
		return run[offset : offset+length], nil
	}
}

// readRun decodes a run block by block, as far as it is asked for, and reports whether all
// of that could be read. deep says that its entries are to be checked too.
func (c *checker) readRun(read piece, ref blobschema.RunRef, deep bool, takes []bool, each func(entry)) bool {
	index, err := read(ref.Index, ref.Length-ref.Index)
	if err != nil {
		c.violate("I6", ref.Object, "the index of a run: %v", err)
		return false
	}
	ix, err := blobschema.OpenRun(index, ref)
	if err != nil {
		c.violate("I6", ref.Object, "%v", err)
		return false
	}
	of, _, _, err := naming.ParseCommit(ref.Object)
	if err != nil {
		of, _, _, _, _ = naming.ParseRun(ref.Object) // what is neither was reported
	}
	rc := runChecker{c: c, of: of, ix: ix, where: ref.Object, deep: deep, merged: ref.Tier > 0, each: each}
	var run blobschema.Run
	for _, b := range ix.Blocks(0, partition.MaxSlots-1) {
		if !c.wants(b.First, b.Last, takes) {
			continue
		}
		run.Settled, run.Queued, run.Hosts = run.Settled[:0], run.Queued[:0], run.Hosts[:0]
		data, err := read(b.Offset, b.Length)
		if err == nil {
			err = blobschema.DecodeBlock(data, b, &run, 0, partition.MaxSlots-1)
		}
		if err != nil {
			c.violate("I6", ref.Object, "block at %d: %v", b.Offset, err)
			return false
		}
		for i := range run.Settled {
			rc.seen(run.Settled[i])
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
// slots of the partition that made it, and known to the filter.
type runChecker struct {
	c     *checker
	of    partition.ID
	ix    *blobschema.RunIndex
	where string
	deep  bool
	// merged runs have one entry of each URL; others one of each of its generations.
	merged bool
	each   func(entry)

	lastSeen   blobschema.Settled
	lastQueued blobschema.Queued
	lastHost   blobschema.HostState
	counts     [3]int
}

func (rc *runChecker) seen(s blobschema.Settled) {
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
			rc.c.checked["I2"]++
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
	rc.c.checked["I1"]++
	rc.c.checked["I2"]++
	unit, err := rc.c.checkUnitName(s.Host)
	if err != nil {
		rc.c.violate("I1", rc.where, "stored host %q: %v", s.Host, err)
	}
	if slot := rc.c.hash.Slot(unit); slot != s.Slot {
		rc.c.violate("I2", rc.where, "host %s has slot %d, and belongs to %d", s.Host, s.Slot, slot)
	}
	rc.own(s.Slot, s.Host)
}

// own checks that a slot is one of the partition's, or was.
func (rc *runChecker) own(s partition.Slot, what string) {
	rc.c.checked["I3"]++
	if !rc.c.had(rc.of, s) {
		rc.c.violate("I3", rc.where, "%s is of slot %d, which is not partition %d's", what, s, rc.of)
	}
}

// filter checks that the run's filter knows a URL: it would be asked for twice.
func (rc *runChecker) filter(fp uint64) {
	if !rc.ix.MayContain(fp) {
		rc.c.violate("I8", rc.where, "the filter of the run denies %016x, which is in it", fp)
	}
}

// checkDelta checks that what a commit added to the state is still in it, however
// runs were merged and slots moved since.
func (c *checker) checkDelta(h *history, name string, r *blobschema.CommitReader, m *blobschema.Manifest) {
	data, err := r.Run()
	if err != nil {
		c.unreadable(h, name, err)
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
	if h.broken || !c.atlas.anyMoved && slices.ContainsFunc(h.man.Runs, named) {
		return // it is part of the state as it is
	}
	c.readRun(pieceOf(data), m.Runs[len(m.Runs)-1], false, nil, func(e entry) {
		if !c.had(h.id, e.slot) || !c.inScope(e.slot) {
			return // reported already, or not asked for
		}
		home := c.homeOf(e.slot)
		i, ok := slices.BinarySearchFunc(home.state, e, entry.compare)
		if !home.broken && (!ok || e.beats(home.state[i])) {
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
	for _, s := range c.whole(where, h.man.Slots) {
		k, p, u := int64(s.Known), int64(s.Pending), int64(s.Unexamined)
		known, pending, unexamined = known+k, pending+p, unexamined+u
		n := h.slots[s.Slot]
		delete(h.slots, s.Slot)
		switch {
		case int(s.Slot) < c.pmap.Slots() && h.holding.Holds(s.Slot):
			c.checkSummary(where, s, n)
		case !c.awaits(h.part, s.Slot):
			c.violate("I3", where, "it has a summary of slot %d, which is not partition %d's", s.Slot, h.id)
		case k > 0 || p > 0:
			c.violate("I7", where, "slot %d is still to come, and its summary says %d known URLs, %d of them pending", s.Slot, k, p)
		}
	}
	for s := range h.slots {
		if !h.holding.Holds(s) {
			delete(h.slots, s) // what it awaits may have been its own once
		}
	}
	c.checkNoSummary(where, h.slots)
	t := &h.man.Totals
	if t.Known != known || t.Pending != pending || t.Unexamined != unexamined {
		c.violate("I7", where, "its totals say %d known, %d pending and %d to examine, its slots %d, %d and %d", t.Known, t.Pending, t.Unexamined, known, pending, unexamined)
	}
}

// whole are the summaries of slots that may be in parts.
func (c *checker) whole(where string, parts []blobschema.SlotSummary) []blobschema.SlotSummary {
	slots, err := blobschema.WholeSlots(parts)
	if err != nil {
		c.violate("I6", where, "%v", err)
	}
	return slots
}

// checkSummary compares the summary of a slot with what the runs say.
func (c *checker) checkSummary(where string, s blobschema.SlotSummary, n *slotCount) {
	if n == nil {
		n = &slotCount{}
	}
	k, p, u := int64(s.Known), int64(s.Pending), int64(s.Unexamined)
	if n.known < k || n.known > k+u || n.pending < p || n.pending > p+u {
		c.violate("I7", where, "slot %d has %d known URLs, %d of them pending; its summary says %d and %d, and %d to examine", s.Slot, n.known, n.pending, k, p, u)
	}
	if p > 0 && s.Due == 0 {
		c.violate("I7", where, "slot %d has %d pending URLs and no time to ask for them", s.Slot, p)
	}
}

// checkNoSummary reports slots in runs that have no summary.
func (c *checker) checkNoSummary(where string, slots map[partition.Slot]*slotCount) {
	for _, s := range slices.Sorted(maps.Keys(slots)) {
		c.violate("I7", where, "slot %d has %d known URLs and no summary", s, slots[s].known)
	}
}

package fsck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// entry is what the state says of a URL.
type entry struct {
	fp     uint64
	record blobschema.RecordRef // of its page record; of a pending URL, that of the generation before
	gen    uint32
	slot   uint16 // a partition.Slot
	state  blobschema.State

	settled bool // a page record of its generation has settled it
	named   bool // its origin has a page record of it
}

// compare orders entries by URL. A URL has more than one slot only if it was forwarded.
func (a entry) compare(b entry) int {
	return cmp.Or(cmp.Compare(a.fp, b.fp), cmp.Compare(a.slot, b.slot))
}

// version orders entries of one URL and slot. The highest one remains when runs are merged: this is the rule of
// blobschema.Join, written a second time.
func (a entry) version(b entry) int {
	return cmp.Or(cmp.Compare(a.gen, b.gen), cmp.Compare(a.state, b.state), a.record.Compare(b.record))
}

// join keeps the highest entry of each URL and slot, sorted.
func join(state []entry) []entry {
	slices.SortFunc(state, func(a, b entry) int { return cmp.Or(a.compare(b), b.version(a)) })
	return slices.CompactFunc(state, func(a, b entry) bool { return a.compare(b) == 0 })
}

// counts are the summaries of slots in a manifest or hand-over, with counts of its runs.
type counts struct {
	*part
	sums   []blobschema.SlotSummary
	counts map[partition.Slot]slotCount
	of     []bool // slots that are compared
}

type slotCount struct{ known, pending int64 }

// runAt is where a run is stored.
type runAt struct {
	object string
	offset int64
}

// readState reads the runs of manifests, and those of hand-overs that were not taken, and gives
// their entries to the homes of the slots.
func (c *checker) readState() {
	n := c.pmap.Slots()
	for i, p := range c.parts {
		c.progress("state", i)
		takes, holds := make([]bool, n), make([]bool, n)
		for s := range partition.Slot(n) {
			holds[s] = p.holding.Holds(s)
			takes[s] = holds[s] || c.awaits(p, s)
		}
		c.distribute(c.readRuns(p, p.man.Runs, takes), &counts{part: p, sums: p.sums, of: holds})
		for i := range p.man.Given {
			g := &p.man.Given[i]
			// Of slots that were taken it is out of date, but whole as long as it is named.
			takes := make([]bool, n)
			for _, s := range g.Slots {
				if at := c.atlas.handed[s]; at != nil {
					takes[s] = at.Handover == g
				}
			}
			state := c.readRuns(p, g.Runs, takes)
			c.distribute(state, &counts{part: p, sums: c.whole(p, g.State), of: takes})
		}
	}
	for _, p := range c.parts {
		p.sortState()
		for _, e := range p.state {
			switch e.state {
			case blobschema.Forwarded:
				c.report.Forwarded++
				continue
			case blobschema.Pending:
				c.report.Pending++
			}
			c.report.URLs++
		}
	}
}

// whole returns the summaries of slots, which may be in parts.
func (c *checker) whole(p *part, parts []blobschema.SlotSummary) []blobschema.SlotSummary {
	sums, err := blobschema.WholeSlots(parts)
	if err != nil {
		c.damaged(p.head.Commit, "%v", err)
	}
	return sums
}

// distribute counts joined entries by slot, and gives them to the homes of their slots.
func (c *checker) distribute(state []entry, f *counts) {
	f.counts = map[partition.Slot]slotCount{}
	for _, e := range state {
		slot := partition.Slot(e.slot)
		if f.of[slot] {
			n := f.counts[slot]
			if n.known++; e.state == blobschema.Pending {
				n.pending++
			}
			f.counts[slot] = n
		}
		home := c.homeOf(slot)
		home.state = append(home.state, e)
	}
	c.show(f)
}

// readRuns reads runs, and joins their entries of the slots in takes. It shows all blocks of a
// run once.
func (c *checker) readRuns(p *part, refs []blobschema.RunRef, takes []bool) (state []entry) {
	named := map[runAt]bool{}
	for _, ref := range refs {
		at := runAt{ref.Object, ref.Offset}
		c.show(&runName{p, ref, named[at]})
		named[at] = true
		data, ok := c.object(ref.Object, p.head.Commit)
		if !ok {
			p.broken = true
			continue
		}
		shown := c.decoded[at]
		c.decoded[at] = true
		data, err := piece(data, ref.Offset, ref.Length)
		if err == nil {
			err = c.readRun(data, ref, !shown, func(e entry, slot partition.Slot) {
				if int(slot) < len(takes) && takes[slot] {
					state = append(state, e)
				}
			})
		}
		if err != nil {
			p.broken = true
			c.damaged(ref.Object, "%v", err)
		}
	}
	return join(state)
}

// readRun decodes a run block by block, and shows the blocks if asked to.
func (c *checker) readRun(data []byte, ref blobschema.RunRef, show bool, each func(entry, partition.Slot)) error {
	index, err := piece(data, ref.Index, int64(len(data))-ref.Index)
	if err != nil {
		return fmt.Errorf("the index of a run: %w", err)
	}
	ix, err := blobschema.OpenRun(index, ref)
	if err != nil {
		return err
	}
	of, _, _, err := naming.ParseCommit(ref.Object)
	if err != nil {
		of, _, _, _, _ = naming.ParseRun(ref.Object) // another name was reported
	}
	var entries blobschema.Run
	for _, b := range ix.Blocks(0, partition.MaxSlots-1) {
		// The last entries of the block before stay, for the order of the run.
		entries.Settled, entries.Queued, entries.Keys = lastOf(entries.Settled), lastOf(entries.Queued), lastOf(entries.Keys)
		settled, queues := len(entries.Settled), len(entries.Queued)
		raw, err := piece(data, b.Offset, b.Length)
		if err == nil {
			err = blobschema.DecodeBlock(raw, b, &entries, 0, partition.MaxSlots-1)
		}
		if err != nil {
			return fmt.Errorf("block at %d: %w", b.Offset, err)
		}
		for _, s := range entries.Settled[settled:] {
			each(entry{fp: s.Fingerprint, slot: uint16(s.Slot), gen: s.Generation, state: s.State, record: s.Record}, s.Slot)
		}
		for _, q := range entries.Queued[queues:] {
			each(entry{fp: c.hash.Fingerprint(q.URL), slot: uint16(q.Slot), gen: q.Generation, state: blobschema.Pending, record: q.Previous}, q.Slot)
		}
		if show {
			f := &block{ref.Object, of, ix, ref.Tier > 0, &entries, c.locateAll(entries.Queued)}
			c.show(f)
			c.show(&urls{f.object, f.urls})
			for _, h := range entries.Keys {
				key, _, _ := strings.Cut(h.Key, " ")
				c.show(&located{object: f.object, what: "stored host", name: h.Key, key: key, slot: h.Slot, err: c.checkKeyName(h.Key)})
			}
		}
	}
	return nil
}

// lastOf keeps the last entry of a list.
func lastOf[T any](list []T) []T { return slices.Clone(list[max(0, len(list)-1):]) }

// piece is a part of some bytes.
func piece(b []byte, offset, length int64) ([]byte, error) {
	if offset < 0 || length < 0 || offset > int64(len(b)) || length > int64(len(b))-offset {
		return nil, fmt.Errorf("%d bytes at %d lie outside its %d bytes", length, offset, len(b))
	}
	return b[offset : offset+length], nil
}

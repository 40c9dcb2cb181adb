package fsck

import (
	"cmp"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// fullSlot is how many URLs a slot holds before the text of pending ones may be too much
// for a frontier, which then leaves out more whatever the caps.
const fullSlot = 1 << 20

// leaveOut reports whether a cap may be why a partition does not know a URL of a slot
// that it was told of, and takes note of it. Which host and domain the URL has nobody
// knows any more: so it takes what must hold besides, a slot or partition with as
// many URLs as the cap allows, and a partition that has counted what it left out.
func (c *checker) leaveOut(p *part, slot partition.Slot, fp uint64) bool {
	s := &c.crawl.Settings
	if p.man == nil || p.man.Totals.Capped == 0 {
		return false
	}
	n := p.knownIn(slot)
	full := n >= fullSlot || s.MaxHostURLs > 0 && n >= s.MaxHostURLs ||
		s.MaxDomainURLs > 0 && (c.domainsCapped || p.man.Totals.Known+p.man.Totals.Unexamined >= s.MaxDomainURLs)
	if !full {
		return false
	}
	if len(p.leftOut) == cap(p.leftOut) {
		p.compact()
		p.leftOut = slices.Grow(p.leftOut, len(p.leftOut)+1)
	}
	p.leftOut = append(p.leftOut, fp)
	return true
}

// compact keeps one of each URL left out: pages of a trap link to the same ones.
func (p *part) compact() {
	slices.Sort(p.leftOut)
	p.leftOut = slices.Compact(p.leftOut)
}

// knownIn is the number of URLs known in a slot, by its summary.
func (p *part) knownIn(slot partition.Slot) int64 {
	i, ok := slices.BinarySearchFunc(p.man.Slots, slot, func(s blobschema.SlotSummary, slot partition.Slot) int { return cmp.Compare(s.Slot, slot) })
	if !ok {
		return 0
	}
	return int64(p.man.Slots[i].Known) + int64(p.man.Slots[i].Unexamined)
}

// checkLeftOut checks that no more URLs are unknown than partitions say they left out.
func (c *checker) checkLeftOut() {
	for _, p := range c.parts {
		if p.man == nil {
			continue
		}
		p.compact()
		t := &p.man.Totals
		c.report.Capped += t.Capped
		if n := int64(len(p.leftOut)); n > t.Capped {
			c.violate("I7", p.head.Commit, "%d URLs that it was told of are not known, and it has left out %d", n, t.Capped)
		}
	}
}

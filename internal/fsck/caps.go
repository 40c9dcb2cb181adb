package fsck

import (
	"cmp"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// fullSlot is how many URLs a slot holds before the text of pending ones may be too much
// for a frontier, which then leaves out more whatever the caps.
const fullSlot = 1 << 18

// leaveOut reports whether a cap may be why the home of a slot does not know a URL that it
// was told of, and takes note of it. Which host and domain the URL has nobody
// knows any more: so it takes what must hold besides, a slot or partition with as
// many URLs as the cap allows, and a partition that has counted what it left out.
func (c *checker) leaveOut(p *part, slot partition.Slot, fp uint64) bool {
	s := &c.crawl.Settings
	n := c.knownIn(p, slot)
	inSlot := n >= fullSlot || s.MaxHostURLs > 0 && n >= s.MaxHostURLs/2 // the half that URLs from sitemaps may use
	full := false
	for _, q := range c.parts {
		if q.man == nil || q.man.Totals.Capped == 0 || !c.had(q.id, slot) {
			continue
		}
		t := &q.man.Totals
		full = full || inSlot || s.MaxDomainURLs > 0 && (c.domainsCapped || c.atlas.anyMoved || t.Known+t.Unexamined >= s.MaxDomainURLs/2)
	}
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

// knownIn is the number of URLs known in a slot, by its summary: of a slot that is handed
// over, by that of the hand-over.
func (c *checker) knownIn(p *part, slot partition.Slot) int64 {
	var sums []blobschema.SlotSummary
	if h, ok := c.atlas.handed[slot]; ok {
		sums = h.State
	} else if p.man != nil {
		sums = p.man.Slots
	}
	first, _ := slices.BinarySearchFunc(sums, slot, func(s blobschema.SlotSummary, slot partition.Slot) int { return cmp.Compare(s.Slot, slot) })
	n := int64(0)
	for ; first < len(sums) && sums[first].Slot == slot; first++ {
		n += int64(sums[first].Known) + int64(sums[first].Unexamined)
	}
	return n
}

// checkLeftOut checks that no more URLs are unknown than partitions say they left out:
// together, where slots have moved.
func (c *checker) checkLeftOut() {
	unknown := int64(0)
	for _, p := range c.parts {
		p.compact()
		n, capped := int64(len(p.leftOut)), int64(0)
		if p.man != nil {
			capped = p.man.Totals.Capped
		}
		c.report.Capped += capped
		unknown += n
		if n > capped && !c.atlas.anyMoved {
			c.violate("I7", c.where(p), "%d URLs that it was told of are not known, and it has left out %d", n, capped)
		}
	}
	if c.atlas.anyMoved && unknown > c.report.Capped {
		c.violate("I7", c.id, "%d URLs that partitions were told of are not known, and they have left out %d", unknown, c.report.Capped)
	}
}

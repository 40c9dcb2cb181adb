package fsck

import (
	"fmt"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// A check of some slots, or of one partition, reads the state of the slots, and the commits
// in which their pages are said to be; of a partition also all its own commits. It reads
// no other, and says in its report what therefore it does not know.

// openScope takes up what is asked for.
func (c *checker) openScope() error {
	opt := &c.opt
	if opt.Slots == nil && opt.Partition == nil {
		return nil
	}
	c.only = make([]bool, c.pmap.Slots())
	for _, s := range opt.Slots {
		if int(s) >= len(c.only) {
			return fmt.Errorf("%w: slot %d, of %d", ErrScope, s, len(c.only))
		}
		c.only[s] = true
	}
	if p := opt.Partition; p != nil {
		if int(*p) >= len(c.parts) {
			return fmt.Errorf("%w: partition %d, of %d", ErrScope, *p, len(c.parts))
		}
		for s, home := range c.atlas.home {
			c.only[s] = c.only[s] || home == *p
		}
	}
	c.report.NotChecked = []string{
		"objects that nothing names",
		"pages of these slots that no state names, in commits of other partitions",
		"whether originals of revisits are there",
		"what was given and taken of slots before",
	}
	if c.indexed {
		c.report.NotChecked = append(c.report.NotChecked, "the index of partitions of which not all commits are read, and ranks")
	}
	if c.still() {
		c.report.NotChecked = append(c.report.NotChecked, "links and mail to these slots in commits that hold none of their pages")
	} else {
		c.report.NotChecked = append(c.report.NotChecked, "links, mail, seeds and requests to these slots: some are on their way")
	}
	if c.byIP() {
		c.report.NotChecked = append(c.report.NotChecked, "whether what was forwarded is known at an address")
	}
	return nil
}

// inScope reports whether a slot is asked for.
func (c *checker) inScope(s partition.Slot) bool {
	return c.only == nil || int(s) < len(c.only) && c.only[s]
}

// walks reports whether all commits of a partition are read.
func (c *checker) walks(p *part) bool {
	return c.only == nil || c.opt.Partition != nil && *c.opt.Partition == p.id
}

// wants reports whether any slot of a range is asked for: all are where nothing is left out.
func (c *checker) wants(first, last partition.Slot, takes []bool) bool {
	if c.only == nil || takes == nil || first > last {
		return true
	}
	n := partition.Slot(len(takes))
	return first >= n || slices.Contains(takes[first:min(last+1, n)], true)
}

// still reports whether nothing is on its way: all mail is applied.
func (c *checker) still() bool {
	for _, p := range c.parts {
		if expected(c, p) > p.head.Applied || p.head.Totals.Held > 0 {
			return false
		}
	}
	return true
}

// expected is how much mail a partition is to apply.
func expected(c *checker, p *part) uint64 {
	n := c.requests.Sent[p.id]
	if int(p.id) < c.crawl.Partitions {
		n += uint64(len(c.crawl.SeedBatches))
	}
	for _, q := range c.parts {
		if int(p.id) < len(q.head.Sent) {
			n += q.head.Sent[p.id]
		}
	}
	return n
}

// checkSome is the check of what is asked for.
func (c *checker) checkSome() error {
	all := make([]*history, len(c.parts))
	for i, p := range c.parts {
		c.progress("state", i)
		all[i] = &history{part: p}
		if err := c.checkState(all[i]); err != nil {
			return err
		}
	}
	for _, p := range c.parts {
		p.state = join(p.state)
		c.joinState(p)
	}
	c.atlas.unknown = true // not all commits are read
	for _, h := range all {
		if err := c.readSome(h); err != nil {
			return err
		}
		h.done = true
	}
	broken := slices.ContainsFunc(c.parts, func(p *part) bool { return p.broken })
	for i, p := range c.parts {
		slices.Sort(p.outside)
		slices.Sort(p.flights)
		if broken || p.man == nil && len(p.state) == 0 {
			continue
		}
		c.checkSettled(p)
		switch {
		case p.man == nil:
		case c.walks(p):
			c.checkTotals(all[i])
		default:
			for _, s := range c.whole(p.head.Commit, p.man.Slots) {
				if c.inScope(s.Slot) && p.holding.Holds(s.Slot) {
					c.checkSummary(p.head.Commit, s, all[i].slots[s.Slot])
				}
			}
		}
	}
	if p := c.opt.Partition; p != nil {
		if err := c.checkIndexes(all[*p:*p+1], broken); err != nil {
			return err
		}
	}
	if c.still() {
		c.checkSeeds()
		for _, h := range all {
			for _, name := range h.some {
				if err := c.checkReferencesOf(h.part, name); err != nil {
					return err
				}
			}
		}
	}
	c.checkPace()
	return c.checkGrants()
}

// readSome reads the commits of a partition that are needed.
func (c *checker) readSome(h *history) error {
	if h.man == nil {
		return nil
	}
	if c.walks(h.part) {
		for name := range blobschema.CommitNames(h.man) {
			h.some = append(h.some, name)
		}
		defer c.checkMarks(h.part)
		return c.walk(h)
	}
	seqs := map[uint32]bool{}
	for _, p := range c.parts {
		for _, e := range p.state {
			if e.origin != (blobschema.Origin{}) && e.origin.Partition == h.id && c.inScope(e.slot) {
				seqs[e.origin.Seq] = true
			}
		}
	}
	for seq, name := range blobschema.CommitsAfter(h.man, 0) {
		if !seqs[uint32(seq)] {
			continue
		}
		h.some = append(h.some, name)
		data, err := c.object(name, h.head.Commit)
		if err != nil {
			return err
		}
		r := c.opened(name, data)
		if r == nil {
			h.broken = true
			continue
		}
		if err := c.readPagesOf(h, name, r); err != nil {
			return err
		}
	}
	return nil
}

// readPagesOf reads the pages of one commit.
func (c *checker) readPagesOf(h *history, name string, r *blobschema.CommitReader) error {
	c.report.Commits++
	m, err := r.Manifest()
	if err != nil {
		c.unreadable(h, name, err)
		return nil
	}
	if m.Crawl != c.id || m.Partition != h.id || naming.Commit(m.Crawl, m.Partition, m.Seq, m.Fence) != name {
		c.violate("I4", name, "its manifest is of crawl %s, partition %d, commit %d, fence %d", m.Crawl, m.Partition, m.Seq, m.Fence)
	}
	pages, err := r.Pages()
	if err != nil {
		c.unreadable(h, name, err)
	}
	addrs, err := c.checkWARCs(h, name, &m, pages)
	if err != nil {
		return err
	}
	c.readPages(h, name, &m, pages, addrs, func(s partition.Slot) bool { return c.had(h.id, s) })
	return nil
}

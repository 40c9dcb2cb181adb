package crawl

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

const maxGrant = 1000 // largest number of pages granted to a partition at once

// budget is the partition's share of the page limit. A partition stores no page without a grant, so the limit holds despite
// crashes. Pages granted to a crashed step stay with its partition.
type budget struct {
	lease     *lease
	granted   int64 // total pages granted to the partition
	reserved  int64 // pages that requests under way may bring
	exhausted bool  // no pages were left to grant
	refilling bool  // a grant is being requested
}

// spent reports whether nothing is left of the grant of a partition that has stored this many pages.
func (b *budget) spent(pages int64) bool { return b.granted-pages-b.reserved <= 0 }

// refill requests a larger grant for a partition that has stored this many pages, by compare-and-set on the record of all
// grants.
func (b *budget) refill(t *actor.Task, pages *int64, partitions int) error {
	defer func() { b.refilling = false }()
	me := b.lease.cfg.Partition
	return b.change(t, func(g *blobschema.Grants) bool {
		used := *pages + b.reserved
		if g.Granted[me] > used {
			return false // an earlier grant was not used up
		}
		free := g.Limit
		for _, n := range g.Granted {
			free -= n
		}
		b.exhausted = free <= 0
		if b.exhausted {
			return false
		}
		g.Granted[me] = used + min(maxGrant, max(1, free/int64(2*partitions)))
		return true
	})
}

// giveBack returns the unused part of the partition's grant, including grants of crashed steps.
func (b *budget) giveBack(t *actor.Task, pages *int64) error {
	me := b.lease.cfg.Partition
	if b.lease.cfg.Crawl.Settings.MaxPages == 0 {
		return nil
	}
	return b.change(t, func(g *blobschema.Grants) bool {
		if g.Granted[me] <= *pages {
			return false
		}
		g.Granted[me] = *pages
		return true
	})
}

// change updates the record of grants and adopts the resulting grant of this partition. It repeats the change until it is
// stored.
func (b *budget) change(t *actor.Task, change func(*blobschema.Grants) bool) error {
	me, fence, granted := b.lease.cfg.Partition, b.lease.head.Fence, b.granted
	err := actor.Revise(t, naming.GrantsKey(b.lease.cfg.Crawl.ID), func(g *blobschema.Grants) (bool, error) {
		if g.Fences[me] > fence {
			return false, ErrLeaseLost
		}
		if g.Granted == nil {
			g.Granted = map[partition.ID]int64{}
		}
		if g.Fences == nil {
			g.Fences = map[partition.ID]uint64{}
		}
		changed := change(g) || g.Fences[me] < fence
		g.Fences[me], granted = fence, g.Granted[me]
		return changed, nil
	})
	if err == nil {
		b.granted = granted // only now, because the write may fail
	}
	return err
}

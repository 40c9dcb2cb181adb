package crawl

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

const maxGrant = 1000 // pages granted to a partition at once

// budget is the partition's share of the page limit. A partition stores no page that it was not granted, so the
// limit holds whatever crashes; what a crashed step was granted stays its partition's.
type budget struct {
	lease     *lease
	granted   int64 // pages granted to the partition in all
	reserved  int64 // pages that requests under way may bring
	exhausted bool  // no grant was to be had
	refilling bool  // a grant is being requested
}

// spent reports whether nothing is left of the grant for a partition with so many pages.
func (b *budget) spent(pages int64) bool { return b.granted-pages-b.reserved <= 0 }

// refill gets more of the page limit for a partition with so many pages: a compare-and-set on the
// record of all grants.
func (b *budget) refill(t *actor.Task, pages *int64, partitions int) error {
	defer func() { b.refilling = false }()
	me := b.lease.cfg.Partition
	return b.change(t, func(g *blobschema.Grants) bool {
		used := *pages + b.reserved
		if g.Granted[me] > used {
			return false // granted earlier, to a step that did not use it
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

// giveBack returns what this partition was granted, to this step or to one that
// crashed, and did not use.
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

// change changes the record until the change holds, and takes over what it
// then grants.
func (b *budget) change(t *actor.Task, change func(*blobschema.Grants) bool) error {
	me, fence := b.lease.cfg.Partition, b.lease.head.Fence
	key := naming.GrantsKey(b.lease.cfg.Crawl.ID)
	for fails := 0; ; {
		rec, err := t.Record(key)
		if err != nil {
			return err
		}
		g, err := actor.DecodeFound[blobschema.Grants](rec, "grants")
		if err != nil {
			return err
		}
		if g.Granted == nil {
			g.Granted = map[partition.ID]int64{}
		}
		if g.Fences[me] > fence {
			return ErrLeaseLost
		}
		if change(&g) || g.Fences[me] < fence {
			if g.Fences == nil {
				g.Fences = map[partition.ID]uint64{}
			}
			g.Fences[me] = fence
			_, err := t.Do(actor.WriteRecord{Key: key, Value: actor.Encode(g), Revision: rec.Revision})
			if err != nil {
				if fails, err = t.Failed(key, fails, err); err != nil {
					return err
				}
				continue // lost the race, or in doubt: what the record says now decides
			}
		}
		b.granted = g.Granted[me]
		return nil
	}
}

package crawl

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

const maxGrant = 1000 // pages granted to a partition at once

// refill gets more of the page limit for this partition: a compare-and-set on the one
// record that deals it out. A partition stores no page it was not granted, so the
// limit holds whatever crashes; what a crashed step was granted stays its
// partition's.
func (s *Step) refill(t *actor.Task) error {
	defer func() { s.refilling = false }()
	return s.changeGrants(t, func(g *blobschema.Grants) bool {
		used := s.st.totals.Pages + s.reserved
		if g.Granted[s.cfg.Partition] > used {
			return false // granted earlier, to a step that did not use it
		}
		free := g.Limit
		for _, n := range g.Granted {
			free -= n
		}
		s.exhausted = free <= 0
		if s.exhausted {
			return false
		}
		more := min(maxGrant, max(1, free/int64(2*s.partitions())))
		g.Granted[s.cfg.Partition] = used + more
		return true
	})
}

// giveBack returns what this partition was granted, to this step or to one that
// crashed, and did not use.
func (s *Step) giveBack(t *actor.Task) error {
	if s.cfg.Crawl.Settings.MaxPages == 0 {
		return nil
	}
	return s.changeGrants(t, func(g *blobschema.Grants) bool {
		if g.Granted[s.cfg.Partition] <= s.st.totals.Pages {
			return false
		}
		g.Granted[s.cfg.Partition] = s.st.totals.Pages
		return true
	})
}

// changeGrants changes the record until the change holds, and takes over what it
// then grants.
func (s *Step) changeGrants(t *actor.Task, change func(*blobschema.Grants) bool) error {
	key := naming.GrantsKey(s.cfg.Crawl.ID)
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
		if g.Fences[s.cfg.Partition] > s.head.Fence {
			return ErrLeaseLost
		}
		if change(&g) || g.Fences[s.cfg.Partition] < s.head.Fence {
			if g.Fences == nil {
				g.Fences = map[partition.ID]uint64{}
			}
			g.Fences[s.cfg.Partition] = s.head.Fence
			_, err := t.Do(actor.WriteRecord{Key: key, Value: actor.Encode(g), Revision: rec.Revision})
			if err != nil {
				if fails, err = t.Failed(key, fails, err); err != nil {
					return err
				}
				continue // lost the race, or in doubt: what the record says now decides
			}
		}
		s.granted = g.Granted[s.cfg.Partition]
		return nil
	}
}

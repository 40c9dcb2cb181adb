package fsck

import (
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// atlas is what is stored of the map, and where the slots are. What a slot holds is
// known to its home: the partition that holds it, or, while a hand-over is under
// way, the one that is to take it.
type atlas struct {
	record   blobschema.MapRecord                  // of epoch 1 where there is none
	home     []partition.ID                        // by slot
	moving   map[partition.Slot]*blobschema.Moving // by slot, of the record
	handed   map[partition.Slot]*handed            // hand-overs that nobody has taken
	anyMoved bool                                  // some slot was given or taken, or is to be

	// What all visible commits say of slots that were given and taken.
	gifts   map[slotAt]gift
	takes   map[slotAt]partition.ID
	owners  map[partition.Slot][]owned // since the one of the first map, oldest first
	unknown bool                       // a commit cannot be read: there may have been more
}

// slotAt is a move of a slot.
type slotAt struct {
	slot  partition.Slot
	epoch partition.Epoch
}

type gift struct{ from, to partition.ID }

// owned says by which epoch a slot went to a partition.
type owned struct {
	epoch partition.Epoch
	to    partition.ID
}

// handed is a hand-over of a slot, with the partition that gives it.
type handed struct {
	*blobschema.Handover
	from partition.ID
}

// opened is a manifest, or why it cannot be had.
type opened struct {
	man *blobschema.Manifest
	err error
}

// moment reads the record of the map and all heads, so that they can be compared.
//
// Steps go on committing meanwhile, and a large crawl never stands still; so heads are not
// of one moment, and need not be. A commit that is read early tells too little, which
// looks like mail on its way. Only where a slot is must agree: a giver read before its
// commit and a taker read after its own would both hold it. Then all is read again. What
// still disagrees when two readings are the same did so at one moment: it is damage.
func (c *checker) moment() error {
	const tries = 50
	var last []string
	for i := range tries {
		if i > 1 { // the second look is for what stands still
			if err := c.sleep(min(time.Duration(i)*time.Millisecond, 50*time.Millisecond)); err != nil {
				return err
			}
		}
		before, err := c.mapRecord()
		if err != nil {
			return err
		}
		seen, err := c.heads()
		if err != nil {
			return err
		}
		after, err := c.mapRecord()
		if err != nil {
			return err
		}
		if before.Version != after.Version {
			last = nil
			continue
		}
		c.atlas.record = before
		if len(c.placeSlots()) == 0 || last != nil && slices.Equal(last, seen) {
			return nil
		}
		last = seen
	}
	return fmt.Errorf("read heads: slots were on the move in each of %d readings", tries)
}

func (c *checker) sleep(d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.ctx.Done():
		return c.ctx.Err()
	case <-t.C:
		return nil
	}
}

// mapRecord reads the record of the map, and makes room for all partitions it tells of.
func (c *checker) mapRecord() (blobschema.MapRecord, error) {
	key := naming.MapKey(c.id)
	r, found, err := record[blobschema.MapRecord](c, key)
	if err != nil {
		return r, err
	}
	if !found {
		r = blobschema.MapRecord{Epoch: 1, Partitions: c.crawl.Partitions}
	}
	if r.Epoch < 1 || r.Partitions < 0 || r.Partitions > partition.MaxPartitions {
		c.violate("I6", key, "its epoch is %d, with %d partitions", r.Epoch, r.Partitions)
		return r, errUnusable
	}
	for p := len(c.parts); p < max(c.crawl.Partitions, r.Partitions); p++ {
		c.parts = append(c.parts, &part{id: partition.ID(p)})
	}
	return r, nil
}

// heads reads all heads, and the manifests that they name, and returns the names of the
// commits.
func (c *checker) heads() (commits []string, err error) {
	for _, p := range c.parts {
		h, found, err := record[blobschema.Head](c, naming.HeadKey(c.id, p.id))
		if err != nil {
			return nil, err
		}
		if !found {
			h = blobschema.Head{Partition: p.id}
		}
		o, err := c.manifest(h.Commit)
		if err != nil {
			return nil, err
		}
		p.head, p.man, p.broken = h, o.man, o.err != nil
		var moved []blobschema.Moved
		if p.man != nil {
			moved = p.man.Moved
		}
		p.holding = blobschema.NewHolding(p.id, c.pmap, moved)
		commits = append(commits, h.Commit)
	}
	return commits, nil
}

// manifest reads the manifest of a commit that a head names, once: commits do not change.
// What is wrong with it is reported when it is known that this is the one to check.
func (c *checker) manifest(commit string) (opened, error) {
	if commit == "" {
		return opened{}, nil
	}
	if o, ok := c.manifests[commit]; ok {
		return o, nil
	}
	var o opened
	data, err := c.store.Object(c.ctx, commit)
	if ctxErr := c.ctx.Err(); ctxErr != nil {
		return o, ctxErr
	}
	var r *blobschema.CommitReader
	if err == nil {
		r, err = blobschema.OpenCommit(data)
	}
	if err == nil {
		var m blobschema.Manifest
		if m, err = r.Manifest(); err == nil {
			o.man = &m
		}
	}
	o.err = err
	c.manifests[commit] = o
	return o, nil
}

// placeSlots finds the home of each slot, and says which slots have none, or several.
func (c *checker) placeSlots() (problems []string) {
	a := &c.atlas
	n := c.pmap.Slots()
	a.home, a.handed, a.anyMoved = c.pmap.Owners(), map[partition.Slot]*handed{}, false
	a.moving = map[partition.Slot]*blobschema.Moving{}
	owners := make([]int, n)
	for s := range owners {
		owners[s] = 1
	}
	unreadable := false
	for _, p := range c.parts {
		unreadable = unreadable || p.broken
		for _, m := range p.holding.Moved() {
			a.anyMoved = true
			for _, s := range m.Slots {
				if c.pmap.Owner(s) == p.id {
					owners[s]--
				}
				if m.Held {
					owners[s]++
					a.home[s] = p.id
				}
			}
		}
	}
	for _, p := range c.parts {
		if p.man == nil {
			continue
		}
		for i := range p.man.Given {
			g := &p.man.Given[i]
			a.anyMoved = true
			if int(g.To) >= len(c.parts) {
				continue // reported with the manifest
			}
			for _, s := range g.Slots {
				if int(s) < n && g.Epoch > c.parts[g.To].holding.Seen(s) {
					owners[s]++
					a.home[s], a.handed[s] = g.To, &handed{g, p.id}
				}
			}
		}
	}
	for i := range a.record.Moving {
		m := &a.record.Moving[i]
		a.anyMoved = true
		for _, s := range m.Slots {
			a.moving[s] = m
		}
	}
	var none, several partition.Slots
	for s, n := range owners {
		switch {
		case n < 1 && !unreadable:
			none = append(none, partition.Slot(s))
		case n > 1:
			several = append(several, partition.Slot(s))
		}
	}
	if len(none) > 0 {
		problems = append(problems, fmt.Sprintf("no partition holds the slots %.200s, and no hand-over has them", none))
	}
	if len(several) > 0 {
		problems = append(problems, fmt.Sprintf("the slots %.200s are held more than once, hand-overs included", several))
	}
	return problems
}

// homeOf is the partition that knows what there is of a slot.
func (c *checker) homeOf(s partition.Slot) *part { return c.parts[c.atlas.home[s]] }

// awaits reports whether a slot is to come to a partition, as far as its last commit knew.
func (c *checker) awaits(p *part, s partition.Slot) bool {
	m, ok := c.atlas.moving[s]
	return ok && int(s) < c.pmap.Slots() && m.To == p.id && p.man != nil && m.Epoch <= p.man.Epoch && !p.holding.Holds(s)
}

// owes reports whether a partition holds a slot that is to go elsewhere, and knew it.
func (c *checker) owes(p *part, s partition.Slot) bool {
	m, ok := c.atlas.moving[s]
	return ok && int(s) < c.pmap.Slots() && m.From == p.id && p.man != nil && m.Epoch <= p.man.Epoch && p.holding.Holds(s)
}

// had reports whether a partition may have stored anything of a slot: it holds, held or
// awaits it. Runs keep such entries until they are merged.
func (c *checker) had(p partition.ID, s partition.Slot) bool {
	if int(s) >= c.pmap.Slots() || int(p) >= len(c.parts) {
		return false
	}
	q := c.parts[p]
	return c.pmap.Owner(s) == p || q.holding.Seen(s) > 1 || c.awaits(q, s)
}

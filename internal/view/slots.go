package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Where slots are. The map record names the owner of each slot and the slots on the move. The
// manifests of giver and taker say how far a move is. So one slot is found by one record, one
// map and one or two manifests. These are not read at one moment. If a slot moves between two
// reads, no partition seems to hold it, and [View.regions] reads everything again.

// division caches how a crawl is divided: maps never change, and the number of partitions
// only grows. It is safe for concurrent use.
type division struct {
	crawl *blobschema.Crawl
	first *partition.Map // of epoch 1

	mu         sync.Mutex
	read       map[string]*partition.Map // by object
	partitions int                       // highest number in a map record
}

// known returns the number of partitions by the records that were read.
func (d *division) known() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.partitions
}

// MapRecord reads the record of the partition map, which is of epoch 1 before the first move.
// Its partitions include those of the first map.
func (v *View) MapRecord(ctx context.Context) (blobschema.MapRecord, error) {
	if v.still != nil {
		return v.still.record, nil
	}
	var r blobschema.MapRecord
	_, err := v.record(ctx, naming.MapKey(v.id), &r)
	if err == nil {
		err = v.division.check(&r)
	}
	return r, err
}

// check completes a record that was read, or is missing, and notes its number of partitions.
func (d *division) check(r *blobschema.MapRecord) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.Epoch = max(r.Epoch, d.first.Epoch())
	r.Partitions = max(r.Partitions, d.partitions)
	if r.Partitions > partition.MaxPartitions {
		return fmt.Errorf("map record: %w: %d partitions", wire.ErrDamaged, r.Partitions)
	}
	for i := range r.Moving {
		mv := &r.Moving[i]
		n := len(mv.Slots)
		if n > 0 && int(mv.Slots[n-1]) >= d.first.Slots() || int(max(mv.From, mv.To)) >= r.Partitions {
			return fmt.Errorf("map record: %w: slots %.100s from partition %d to %d", wire.ErrDamaged, mv.Slots, mv.From, mv.To)
		}
	}
	d.partitions = r.Partitions
	return nil
}

// mapOf reads a map that a map record names; "" names the map of epoch 1.
func (v *View) mapOf(ctx context.Context, r *blobschema.MapRecord, object string) (*partition.Map, error) {
	d := v.division
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.read[object]
	if m == nil {
		var err error
		if m, err = blobschema.ReadMap(blobschema.GetFrom(ctx, v.store), d.crawl, object); err != nil {
			return nil, err
		}
	}
	for s := range partition.Slot(m.Slots()) {
		if o := m.Owner(s); int(o) >= r.Partitions {
			return nil, fmt.Errorf("%s: %w: slot %d belongs to partition %d of %d", object, wire.ErrDamaged, s, o, r.Partitions)
		}
	}
	d.read[object] = m
	return m, nil
}

// part is a partition with its last manifest, which is empty before the first commit.
type part struct {
	id      partition.ID
	holding *blobschema.Holding
	blobschema.Manifest
}

// parts reads the manifests of partitions.
func (v *View) parts(ctx context.Context, ids []partition.ID) (map[partition.ID]*part, error) {
	heads, err := v.headsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	return v.partsAt(ctx, ids, heads)
}

// partsAt reads the manifests of partitions that heads name. ids may repeat.
func (v *View) partsAt(ctx context.Context, ids []partition.ID, heads []blobschema.Head) (map[partition.ID]*part, error) {
	parts := map[partition.ID]*part{}
	var names []string
	var committed []*part // by name
	for _, id := range ids {
		if parts[id] != nil {
			continue
		}
		p := &part{id: id, holding: blobschema.NewHolding(id, v.division.first, nil)}
		parts[id] = p
		if h := headOf(heads, id); h != nil && h.Commit != "" {
			names, committed = append(names, h.Commit), append(committed, p)
		}
	}
	for o, err := range v.objects(ctx, listed(names)) {
		if err != nil {
			return nil, err
		}
		r, err := blobschema.OpenCommit(o.data)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", o.name, err)
		}
		p := committed[0]
		committed = committed[1:]
		if p.Manifest, err = r.Manifest(); err != nil {
			return nil, fmt.Errorf("manifest of %s: %w", o.name, err)
		}
		p.holding = blobschema.NewHolding(p.id, v.division.first, p.Moved)
	}
	return parts, nil
}

// gives returns the hand-over of a slot that a receiver has not taken yet; nil if there is no such one.
func (p *part) gives(s partition.Slot, to *part) *blobschema.Handover {
	for i := range p.Given {
		if h := &p.Given[i]; h.To == to.id && h.Epoch > to.holding.Seen(s) && h.Slots.Has(s) {
			return h
		}
	}
	return nil
}

// Move is a slot on its way from one partition to another.
type Move struct {
	Epoch partition.Epoch `json:"epoch"`
	From  partition.ID    `json:"from"`
	To    partition.ID    `json:"to"`
	Given bool            `json:"given"` // From requests nothing of it any more
}

// home is the place of the state of a slot. Homes can be compared.
type home struct {
	at     *part                // holder of the slot, or the one that is to take it from the hand-over
	given  *blobschema.Handover // nil if a partition holds the slot
	next   *part                // taker of a slot that is not given yet: it gets the mail already
	moving *blobschema.Moving   // nil if the slot stays
}

// homeOf finds a slot by the manifest of its owner and, if it is on the move, by that of the
// giver. The owner is tried first, because hand-overs go one way.
func homeOf(s partition.Slot, owner *part, moving *blobschema.Moving, from *part) (h home, found bool) {
	switch {
	case owner.holding.Holds(s):
		return home{at: owner}, true
	case moving == nil:
		return h, false
	case from.holding.Holds(s):
		return home{at: from, next: owner, moving: moving}, true
	}
	if g := from.gives(s, owner); g != nil {
		return home{at: owner, given: g, moving: moving}, true
	}
	return h, false
}

// runs returns the runs whose join is the state. Some may hold old entries of a slot that came
// back; joining them changes nothing.
func (h home) runs() []blobschema.RunRef {
	runs := slices.Clone(h.at.Runs)
	if h.given != nil {
		runs = append(runs, h.given.Runs...)
	}
	if h.next != nil {
		runs = append(runs, h.next.Runs...)
	}
	return runs
}

func (h home) move() *Move {
	if h.moving == nil {
		return nil
	}
	return &Move{h.moving.Epoch, h.moving.From, h.moving.To, h.given != nil}
}

// attempts bounds the lookups of slots. A lookup finds no holder only if the slot moves meanwhile, or if
// the stored crawl is damaged.
const attempts = 5

var errNowhere = errors.New("it moves meanwhile, or the stored crawl is damaged (see 'orbweaver fsck'); try again")

// region is some slots with one home.
type region struct {
	home
	slots partition.Slots
}

// regions groups slots by home, in the order of partitions. It reads the manifests of their owners and givers.
func (v *View) regions(ctx context.Context, slots partition.Slots) ([]region, error) {
	var lost partition.Slot
	for range attempts {
		r, err := v.MapRecord(ctx)
		if err != nil {
			return nil, err
		}
		m, err := v.mapOf(ctx, &r, r.Object)
		if err != nil {
			return nil, err
		}
		moving := map[partition.Slot]*blobschema.Moving{}
		for i := range r.Moving {
			for _, s := range r.Moving[i].Slots {
				moving[s] = &r.Moving[i]
			}
		}
		var ids []partition.ID
		for _, s := range slots {
			if mv := moving[s]; mv != nil {
				ids = append(ids, mv.To, mv.From)
			} else {
				ids = append(ids, m.Owner(s))
			}
		}
		parts, err := v.parts(ctx, ids)
		if err != nil {
			return nil, err
		}
		var found bool
		at := map[home]int{}
		var out []region
		for _, s := range slots {
			owner, from := parts[m.Owner(s)], (*part)(nil)
			if mv := moving[s]; mv != nil {
				owner, from = parts[mv.To], parts[mv.From]
			}
			var h home
			if h, found = homeOf(s, owner, moving[s], from); !found {
				lost = s
				break
			}
			i, ok := at[h]
			if !ok {
				i = len(out)
				at[h] = i
				out = append(out, region{home: h})
			}
			out[i].slots = append(out[i].slots, s)
		}
		if found {
			slices.SortStableFunc(out, func(a, b region) int { return int(a.at.id) - int(b.at.id) })
			return out, nil
		}
	}
	return nil, fmt.Errorf("slot %d is held by no partition: %w", lost, errNowhere)
}

// held returns the partitions that hold a slot or held it: their commits may have page records
// of its URLs. If slots have ever moved, it reads all manifests.
func (v *View) held(ctx context.Context, s partition.Slot) ([]partition.ID, error) {
	r, err := v.MapRecord(ctx)
	if err != nil {
		return nil, err
	}
	first := v.division.first.Owner(s)
	if r.Epoch == v.division.first.Epoch() {
		return []partition.ID{first}, nil
	}
	parts, err := v.parts(ctx, partition.All(r.Partitions))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(partition.All(r.Partitions), func(p partition.ID) bool {
		return p != first && parts[p].holding.Seen(s) == v.division.first.Epoch()
	}), nil
}

// Owners returns the partitions that may store page records of some URLs now, or did lately:
// the owners of their slots by the map and by the previous maps that the record names. Where
// addresses decide, these are all partitions.
func (v *View) Owners(ctx context.Context, urls []weburl.URL) ([]partition.ID, error) {
	r, err := v.MapRecord(ctx)
	if err != nil {
		return nil, err
	}
	slots := map[partition.Slot]bool{}
	for _, u := range urls {
		key, placed := v.by.Key(string(u.Host()))
		if v.by == blobschema.ByIP && !placed {
			return partition.All(r.Partitions), nil
		}
		slots[v.hash.Slot(key)] = true
	}
	var owners []partition.ID
	for _, object := range append(r.Previous, r.Object) {
		m, err := v.mapOf(ctx, &r, object)
		if err != nil {
			return nil, err
		}
		for s := range slots {
			owners = append(owners, m.Owner(s))
		}
	}
	for i := range r.Moving {
		if slices.ContainsFunc(r.Moving[i].Slots, func(s partition.Slot) bool { return slots[s] }) {
			owners = append(owners, r.Moving[i].From)
		}
	}
	slices.Sort(owners)
	return slices.Compact(owners), nil
}

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
	"github.com/orbweaver/orbweaver/internal/stored"
	"github.com/orbweaver/orbweaver/partition"
)

// Where slots are. The map record says which partition each slot belongs to, and which are
// on the move; the manifests of those two say how far that is. So one slot is found by
// one record, one map and one or two manifests. They are not read at one moment: what
// changes between two reads is seen by the slot being nowhere, and looked for again.

// division is what was read of how a crawl is divided: maps never change, and partitions
// only get more. It is safe for concurrent use.
type division struct {
	crawl *blobschema.Crawl
	first *partition.Map // of epoch 1

	mu         sync.Mutex
	read       map[string]*partition.Map // by object
	partitions int                       // the most that a map record has told of
}

func newDivision(c *blobschema.Crawl, first *partition.Map) *division {
	return &division{crawl: c, first: first, read: map[string]*partition.Map{"": first}, partitions: len(first.Partitions())}
}

// known is how many partitions there are, as far as records were read.
func (d *division) known() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.partitions
}

// MapRecord reads the record of the partition map. Before the first move it is that of
// epoch 1. Its partitions are all that there are, those of the first map included.
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

// check completes a record that was read, or that there is none of, and takes note of it.
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

// mapOf reads a map that a map record names; "" is that of epoch 1.
func (v *View) mapOf(ctx context.Context, r *blobschema.MapRecord, object string) (*partition.Map, error) {
	d := v.division
	d.mu.Lock()
	m := d.read[object]
	d.mu.Unlock()
	if m == nil {
		var err error
		if m, err = stored.Map(stored.Under(ctx, v.store), d.crawl, object); err != nil {
			return nil, err
		}
	}
	for s := range partition.Slot(m.Slots()) {
		if o := m.Owner(s); int(o) >= r.Partitions {
			return nil, fmt.Errorf("%s: %w: slot %d belongs to partition %d of %d", object, wire.ErrDamaged, s, o, r.Partitions)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read[object] = m
	return m, nil
}

// all are all partitions that there are: heads, and so results, are never deleted.
func (v *View) all(ctx context.Context) ([]partition.ID, error) {
	r, err := v.MapRecord(ctx)
	if err != nil {
		return nil, err
	}
	return partition.All(r.Partitions), nil
}

// part is a partition with its last manifest, which is empty before the first commit.
type part struct {
	id      partition.ID
	holding *blobschema.Holding
	blobschema.Manifest
}

// parts reads the manifests of partitions, some ahead where that helps.
func (v *View) parts(ctx context.Context, ids []partition.ID) ([]*part, error) {
	heads, err := v.headsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	return v.partsAt(ctx, ids, heads)
}

// partsAt reads the manifests that heads name: by partition, as they are given.
func (v *View) partsAt(ctx context.Context, ids []partition.ID, heads []blobschema.Head) ([]*part, error) {
	out := make([]*part, len(ids))
	var names []string
	var at []int
	for i, p := range ids {
		out[i] = &part{id: p, holding: blobschema.NewHolding(p, v.division.first, nil)}
		if h := headOf(heads, p); h != nil && h.Commit != "" {
			names, at = append(names, h.Commit), append(at, i)
		}
	}
	n := 0
	for o, err := range v.objects(ctx, listed(names)) {
		if err != nil {
			return nil, err
		}
		r, err := blobschema.OpenCommit(o.data)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", o.name, err)
		}
		p := out[at[n]]
		if p.Manifest, err = r.Manifest(); err != nil {
			return nil, fmt.Errorf("manifest of %s: %w", o.name, err)
		}
		p.holding = blobschema.NewHolding(p.id, v.division.first, p.Moved)
		n++
	}
	return out, nil
}

// gives returns the hand-over of a slot that a receiver has not taken yet, nil for none.
func (p *part) gives(s partition.Slot, to *part) *blobschema.Handover {
	for i := range p.Given {
		if h := &p.Given[i]; h.To == to.id && h.Epoch > to.holding.Seen(s) && h.Slots.Has(s) {
			return h
		}
	}
	return nil
}

// Move says that a slot is on its way from one partition to another.
type Move struct {
	Epoch partition.Epoch `json:"epoch"`
	From  partition.ID    `json:"from"`
	To    partition.ID    `json:"to"`
	Given bool            `json:"given"` // From asks for nothing of it any more
}

// home is where the state of a slot is: the join of some runs. A home is comparable.
type home struct {
	at     *part                // that holds the slot, or is to take it from the hand-over
	given  *blobschema.Handover // of a slot that nobody holds
	next   *part                // of a slot that is to be given away: it gets its mail already
	moving *blobschema.Moving   // nil for a slot that stays
}

// homeOf finds out where a slot is, given the manifests of the partition that it belongs to
// by the map, and, if it is on the move, of the one that it comes from. The first to
// say that it holds the slot is right: hand-overs go one way.
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

// runs are those that are joined. Some may know of the slot from when it was held before:
// joining what is old changes nothing.
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

// looks is how often slots are looked for. A slot is nowhere only if it has moved while it
// was looked for, or if what is stored is damaged.
const looks = 5

var errNowhere = errors.New("it moves while it is looked for, or what is stored is damaged (see 'orbweaver fsck'); look again")

// locate calls find with the map record and its map until it finds its slots. It fails with
// the slot that find has named last, if that is nowhere.
func (v *View) locate(ctx context.Context, find func(*blobschema.MapRecord, *partition.Map) (lost partition.Slot, found bool, err error)) error {
	var nowhere partition.Slot
	for range looks {
		r, err := v.MapRecord(ctx)
		if err != nil {
			return err
		}
		m, err := v.mapOf(ctx, &r, r.Object)
		if err != nil {
			return err
		}
		lost, found, err := find(&r, m)
		if err != nil || found {
			return err
		}
		nowhere = lost
	}
	return fmt.Errorf("slot %d is held by no partition: %w", nowhere, errNowhere)
}

// home finds the state of a slot.
func (v *View) home(ctx context.Context, s partition.Slot) (h home, err error) {
	err = v.locate(ctx, func(r *blobschema.MapRecord, m *partition.Map) (_ partition.Slot, found bool, err error) {
		ids := []partition.ID{m.Owner(s)}
		var moving *blobschema.Moving
		if i := slices.IndexFunc(r.Moving, func(mv blobschema.Moving) bool { return mv.Slots.Has(s) }); i >= 0 {
			moving = &r.Moving[i]
			ids = []partition.ID{moving.To, moving.From}
		}
		parts, err := v.parts(ctx, ids)
		if err != nil {
			return s, false, err
		}
		h, found = homeOf(s, parts[0], moving, parts[len(parts)-1])
		return s, found, nil
	})
	return h, err
}

// region is some slots with one home.
type region struct {
	home
	slots partition.Slots
}

// regions finds the homes of all slots: those that stay, by partition, and those on the
// move between. It reads all manifests.
func (v *View) regions(ctx context.Context) (out []region, err error) {
	err = v.locate(ctx, func(r *blobschema.MapRecord, m *partition.Map) (lost partition.Slot, found bool, err error) {
		parts, err := v.parts(ctx, partition.All(r.Partitions))
		if err != nil {
			return lost, false, err
		}
		out, lost, found = regionsOf(r, m, parts)
		return lost, found, nil
	})
	return out, err
}

// regionsOf fails with the first slot that is nowhere.
func regionsOf(r *blobschema.MapRecord, m *partition.Map, parts []*part) (out []region, lost partition.Slot, found bool) {
	moving := make([]*blobschema.Moving, m.Slots())
	for i := range r.Moving {
		for _, s := range r.Moving[i].Slots {
			moving[s] = &r.Moving[i]
		}
	}
	at := map[home]int{}
	for s := range partition.Slot(m.Slots()) {
		owner, from := parts[m.Owner(s)], (*part)(nil)
		if mv := moving[s]; mv != nil {
			owner, from = parts[mv.To], parts[mv.From]
		}
		h, found := homeOf(s, owner, moving[s], from)
		if !found {
			return nil, s, false
		}
		i, ok := at[h]
		if !ok {
			i = len(out)
			at[h] = i
			out = append(out, region{home: h})
		}
		out[i].slots = append(out[i].slots, s)
	}
	slices.SortStableFunc(out, func(a, b region) int { return int(a.at.id) - int(b.at.id) })
	return out, 0, true
}

// held are the partitions that hold a slot, or held it: those whose commits may have page
// records of its URLs. Once slots have moved it reads all manifests.
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
	var out []partition.ID
	for _, p := range parts {
		if p.id == first || p.holding.Seen(s) > v.division.first.Epoch() {
			out = append(out, p.id)
		}
	}
	return out, nil
}

// state reads what runs say of some slots, joined.
func (v *View) state(ctx context.Context, runs []blobschema.RunRef, slots partition.Slots) (*blobschema.Run, error) {
	run := &blobschema.Run{}
	first, last := slots[0], slots[len(slots)-1]
	for _, ref := range runs {
		if ref.Last < first || ref.First > last {
			continue
		}
		seen, queued, hosts := len(run.Settled), len(run.Queued), len(run.Hosts)
		if err := v.readRun(ctx, ref, first, last, run); err != nil {
			return nil, fmt.Errorf("run of %s: %w", ref.Object, err)
		}
		if len(slots) <= int(last-first) { // a run may know slots that were given away
			run.Settled = keep(run.Settled, seen, slots, func(e *blobschema.Settled) partition.Slot { return e.Slot })
			run.Queued = keep(run.Queued, queued, slots, func(e *blobschema.Queued) partition.Slot { return e.Slot })
			run.Hosts = keep(run.Hosts, hosts, slots, func(e *blobschema.HostState) partition.Slot { return e.Slot })
		}
	}
	blobschema.Join(v.hash, run)
	return run, nil
}

// keep removes, from an index on, the entries of other slots.
func keep[E any](list []E, from int, slots partition.Slots, slot func(*E) partition.Slot) []E {
	rest := slices.DeleteFunc(list[from:], func(e E) bool { return !slots.Has(slot(&e)) })
	return list[:from+len(rest)]
}

// readRun appends what a run says of some slots: its index, and one range of blocks.
func (v *View) readRun(ctx context.Context, ref blobschema.RunRef, first, last partition.Slot, into *blobschema.Run) error {
	data, err := v.store.Object(ctx, ref.Object, ref.Offset+ref.Index, ref.Length-ref.Index)
	if err != nil {
		return err
	}
	ix, err := blobschema.OpenRun(data, ref)
	if err != nil {
		return err
	}
	at, length := ix.Range(first, last)
	if length == 0 {
		return nil
	}
	if data, err = v.store.Object(ctx, ref.Object, ref.Offset+at, length); err != nil {
		return err
	}
	for _, b := range ix.Blocks(first, last) {
		if err := blobschema.DecodeBlock(data[b.Offset-at:][:b.Length], b, into, first, last); err != nil {
			return err
		}
	}
	return nil
}

package crawl

import (
	"fmt"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// Partitioning says which partition owns which slots, and which should. A crawl whose slots never moved has no record; its
// map is that of epoch 1.
type Partitioning struct {
	Record blobschema.MapRecord
	Map    *partition.Map // map of Record.Epoch
	Target *partition.Map // desired map; equal to Map if all slots are where they should be
}

// Repartition changes the desired owners of slots. Moves that can begin do so at once; slots that are already moving
// follow, by coordinator runs, when they have arrived. It is an [actor.Actor].
type Repartition struct {
	actor.Procedure
	before, after Partitioning
}

// NewRepartition returns the actor. It calls want with the current partitioning. want returns the desired map, with any
// epoch, or nil to change nothing. It may be called again if another change came first. Its error ends the actor.
func NewRepartition(crawl string, want func(Partitioning) (*partition.Map, error)) *Repartition {
	r := &Repartition{}
	r.Body = func(t *actor.Task) error {
		c, err := readCrawl(t, crawl)
		if err != nil {
			return err
		}
		r.before, r.after, err = changePartitioning(t, &c, func(p *Partitioning) (bool, error) {
			target, err := want(*p)
			if err != nil || target == nil {
				return false, err
			}
			if target.Slots() != c.Slots {
				return false, fmt.Errorf("the map has %d slots, but the crawl has %d", target.Slots(), c.Slots)
			}
			changed := !slices.Equal(target.Owners(), p.Target.Owners())
			if changed {
				p.remember()
				p.Target = target
			}
			return p.plan() || changed, nil
		})
		return err
	}
	return r
}

// Result returns the partitioning before and after the change.
func (r *Repartition) Result() (before, after Partitioning) { return r.before, r.after }

// ReadPartitioning returns an actor that only reads the partitioning. Its Result is the same before and after.
func ReadPartitioning(crawl string) *Repartition {
	return NewRepartition(crawl, func(Partitioning) (*partition.Map, error) { return nil, nil })
}

// remember keeps the previous desired map, for a rollback.
func (p *Partitioning) remember() {
	last := p.Record.Target
	if last == "" {
		last = p.Record.Object
	}
	p.Record.Previous = slices.Insert(p.Record.Previous, 0, last)
	p.Record.Previous = p.Record.Previous[:min(len(p.Record.Previous), blobschema.MaxPrevious)]
}

// The record is one table item, at most 400 KB in DynamoDB. Moves beyond these bounds begin when others are confirmed.
const (
	maxMovingPairs = 2000    // pairs of a giver and a receiver
	maxMovingSlots = 1 << 15 // six bytes each if they are not in equal steps
)

// plan begins the moves toward the target, except of slots that are already moving. It reports whether there are any.
func (p *Partitioning) plan() bool {
	var moving partition.Slots
	for _, m := range p.Record.Moving {
		moving = append(moving, m.Slots...)
	}
	moving = partition.SlotsOf(moving)
	moves := p.Map.Toward(p.Target, moving.Has)
	moves = moves[:min(len(moves), max(0, maxMovingSlots-len(moving)))]
	type pair struct{ from, to partition.ID }
	var order []pair
	slots := map[pair]partition.Slots{}
	moves = slices.DeleteFunc(moves, func(m partition.Move) bool {
		k := pair{m.From, m.To}
		if slots[k] == nil {
			if len(p.Record.Moving)+len(order) >= maxMovingPairs {
				return true
			}
			order = append(order, k)
		}
		slots[k] = append(slots[k], m.Slot)
		return false
	})
	if len(moves) == 0 {
		return false
	}
	next, err := p.Map.Apply(moves)
	if err != nil {
		panic("crawl: a plan does not fit the map it was made of: " + err.Error()) // unreachable: Toward made the plan
	}
	// The record lists the moves by giver and receiver.
	p.Record.Moving = slices.Clone(p.Record.Moving)
	for _, k := range order {
		p.Record.Moving = append(p.Record.Moving, blobschema.Moving{Epoch: next.Epoch(), From: k.from, To: k.to, Slots: slots[k]})
		p.Record.Partitions = max(p.Record.Partitions, int(k.to)+1)
	}
	p.Map = next
	return true
}

// readPartitioning reads the record, if it exists, and its maps.
func readPartitioning(t *actor.Task, c *blobschema.Crawl) (p Partitioning, err error) {
	rec, err := t.Record(naming.MapKey(c.ID))
	if err != nil {
		return p, err
	}
	r, err := mapRecord(c, rec)
	if err != nil {
		return p, err
	}
	return openPartitioning(t, c, r)
}

// mapRecord decodes a map record. A missing record stands for the map of epoch 1.
func mapRecord(c *blobschema.Crawl, rec actor.Record) (blobschema.MapRecord, error) {
	if !rec.Found {
		return blobschema.MapRecord{Epoch: 1, Partitions: c.Partitions}, nil
	}
	return actor.Decode[blobschema.MapRecord](rec, "partition map")
}

// openPartitioning reads the maps that a record names.
func openPartitioning(t *actor.Task, c *blobschema.Crawl, r blobschema.MapRecord) (p Partitioning, err error) {
	p.Record = r
	if p.Map, err = blobschema.ReadMap(t.Object, c, r.Object); err != nil {
		return p, err
	}
	p.Target = p.Map
	if r.Target != "" {
		p.Target, err = blobschema.ReadMap(t.Object, c, r.Target)
	}
	return p, err
}

// changePartitioning changes the record by compare-and-set, and announces the change in the desired state, which steps read.
// change returns false to change nothing. The announcement is made even then, because the process that made the last change may
// have died before it made its own.
func changePartitioning(t *actor.Task, c *blobschema.Crawl, change func(*Partitioning) (bool, error)) (before, after Partitioning, err error) {
	err = actor.Revise(t, naming.MapKey(c.ID), func(r *blobschema.MapRecord) (bool, error) {
		if r.Version == 0 { // there is no record yet
			*r = blobschema.MapRecord{Epoch: 1, Partitions: c.Partitions}
		}
		var err error
		if before, err = openPartitioning(t, c, *r); err != nil {
			return false, err
		}
		after = before
		if changed, err := change(&after); err != nil || !changed {
			return false, err
		}
		if err := putMaps(t, c, &before, &after); err != nil {
			return false, err
		}
		after.Record.Version++
		*r = after.Record
		return true, nil
	})
	if err != nil || after.Record.Version == 0 {
		return before, after, err
	}
	return before, after, actor.Update(t, naming.DesiredKey(c.ID), func(w *blobschema.DesiredState) bool {
		if w.Map >= after.Record.Version {
			return false
		}
		w.Map = after.Record.Version
		return true
	})
}

// putMaps stores the maps that a change made, and names them in its record.
func putMaps(t *actor.Task, c *blobschema.Crawl, before, after *Partitioning) error {
	put := func(m *partition.Map) (string, error) {
		name, data, err := blobschema.MapObjectName(c.ID, m)
		if err != nil {
			return "", err
		}
		return name, t.Put(name, data)
	}
	var err error
	if after.Map != before.Map {
		if after.Record.Object, err = put(after.Map); err != nil {
			return err
		}
		after.Record.Epoch = after.Map.Epoch()
	}
	switch {
	case slices.Equal(after.Target.Owners(), after.Map.Owners()):
		after.Target, after.Record.Target = after.Map, ""
	case after.Target != before.Target:
		after.Record.Target, err = put(after.Target)
	}
	return err
}

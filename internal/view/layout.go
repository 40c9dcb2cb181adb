package view

import (
	"context"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// Layout is how a crawl is divided into partitions, with the slots on the move between them.
type Layout struct {
	Record blobschema.MapRecord
	Map    *partition.Map // of Record.Epoch
	// Target is the desired map. It differs from Map while slots still have to move a second time.
	Target *partition.Map
	Parts  []Part // all partitions, by ID
	Moves  []Moves
}

// Part is a partition with its slots.
type Part struct {
	Partition partition.ID
	Head      *blobschema.Head // nil before its first step
	Held      int              // slots whose URLs it may request
	Wanted    int              // slots by the target
	Owes      int              // held slots on their way to others
	Awaits    int              // slots that it owns by the map and does not hold yet
}

// Moves are slots on their way from one partition to another, by one change of the map.
type Moves struct {
	blobschema.Moving
	Held  int       // slots that From still holds; the others are given
	Taken int       // slots that To holds, by its last commit
	Since time.Time // when the map was changed; zero where the store cannot tell
}

// Left counts the slots on the move, and those that have to move later.
func (l *Layout) Left() (moving, later int) {
	for i := range l.Parts {
		moving += l.Parts[i].Awaits
	}
	return moving, len(l.Map.Toward(l.Target, func(partition.Slot) bool { return false }))
}

// Layout reads the map record, the maps, the heads, and the manifests of partitions that
// take part in a move.
func (v *View) Layout(ctx context.Context) (*Layout, error) {
	heads, r, err := v.headsAnd(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	l := &Layout{Record: r}
	if l.Map, err = v.mapOf(ctx, &r, r.Object); err != nil {
		return nil, err
	}
	if l.Target = l.Map; r.Target != "" {
		if l.Target, err = v.mapOf(ctx, &r, r.Target); err != nil {
			return nil, err
		}
	}
	l.Parts = make([]Part, r.Partitions)
	for i := range l.Parts {
		p := &l.Parts[i]
		p.Partition = partition.ID(i)
		p.Head = headOf(heads, p.Partition)
	}
	for s := range partition.Slot(l.Map.Slots()) {
		owner, wanted := l.Map.Owner(s), l.Target.Owner(s)
		l.Parts[owner].Held++
		l.Parts[wanted].Wanted++
	}
	return l, v.addMoves(ctx, l, heads)
}

// addMoves adds how far the moves of the record are.
func (v *View) addMoves(ctx context.Context, l *Layout, heads []blobschema.Head) error {
	moving := l.Record.Moving
	if len(moving) == 0 {
		return nil
	}
	since, err := v.mapTimes(ctx)
	if err != nil {
		return err
	}
	var ids []partition.ID
	for i := range moving {
		ids = append(ids, moving[i].From, moving[i].To)
	}
	part, err := v.partsAt(ctx, ids, heads)
	if err != nil {
		return err
	}
	for i := range moving {
		mv := &moving[i]
		m := Moves{Moving: *mv, Since: since[mv.Epoch]}
		for _, s := range mv.Slots {
			switch {
			case part[mv.To].holding.Holds(s):
				m.Taken++
			case part[mv.From].holding.Holds(s):
				m.Held++
			}
		}
		from, to := &l.Parts[mv.From], &l.Parts[mv.To]
		from.Held += m.Held
		from.Owes += m.Held
		to.Held -= len(m.Slots) - m.Taken
		to.Awaits += len(m.Slots) - m.Taken
		l.Moves = append(l.Moves, m)
	}
	return nil
}

// mapTimes returns the time of each stored map by epoch, if the store knows it. Of two maps of
// an epoch the later one was put in force; the other one was only a target.
func (v *View) mapTimes(ctx context.Context) (map[partition.Epoch]time.Time, error) {
	since := map[partition.Epoch]time.Time{}
	for o, err := range v.store.List(ctx, naming.MapPrefix(v.id)) {
		if err != nil {
			return nil, err
		}
		if epoch, err := naming.ParseMap(o.Name); err == nil && o.Time.After(since[epoch]) {
			since[epoch] = o.Time.UTC()
		}
	}
	return since, nil
}

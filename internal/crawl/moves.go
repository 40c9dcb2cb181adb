package crawl

import (
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// moves removes the moves that their receivers have confirmed from the record, and begins those that the target still
// needs.
func (k *Tick) moves(t *actor.Task) error {
	r := &k.report.Map
	untold := r.Version > k.report.Desired.Map // the process that changed the map died before it told the steps
	if !slices.ContainsFunc(r.Moving, k.confirmed) && r.Target == "" && !untold {
		return nil
	}
	_, after, err := changePartitioning(t, &k.report.Crawl, func(p *Partitioning) (bool, error) {
		old := len(p.Record.Moving)
		p.Record.Moving = slices.DeleteFunc(slices.Clone(p.Record.Moving), k.confirmed)
		arrived := len(p.Record.Moving) < old
		return p.plan() || arrived, nil
	})
	if err != nil {
		return err
	}
	k.report.Map = after.Record
	k.report.Desired.Map = max(k.report.Desired.Map, after.Record.Version)
	return nil
}

// confirmed reports whether the receiver of a move holds the slots, as its manifest says. Once confirmed, a move stays
// confirmed.
func (k *Tick) confirmed(m blobschema.Moving) bool {
	h := k.heads[m.To]
	return h != nil && h.Epoch >= m.Epoch && (h.Awaits == 0 || h.Awaits > m.Epoch)
}

// hasMoves reports whether a partition has slots to give, or to take from one that has given them.
func (k *Tick) hasMoves(p partition.ID) bool {
	h := k.heads[p]
	for _, m := range k.report.Map.Moving {
		switch {
		case m.From == p && (h == nil || h.Epoch < m.Epoch || h.Owes > 0):
			return true
		case m.To == p && !k.confirmed(m):
			if from := k.heads[m.From]; from != nil && from.Gives[p] >= m.Epoch {
				return true
			}
		}
	}
	return false
}

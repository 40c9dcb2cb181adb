package partition

import (
	"fmt"
	"slices"
)

// WithOwners returns the map of the next epoch with the given owners.
func (m *Map) WithOwners(owners []ID) (*Map, error) {
	if len(owners) != len(m.owners) {
		return nil, fmt.Errorf("list has owners of %d slots, but the crawl has %d slots", len(owners), len(m.owners))
	}
	for s, o := range owners {
		if o >= MaxPartitions {
			return nil, fmt.Errorf("owner of slot %d: partition %d is above the highest, %d", s, o, MaxPartitions-1)
		}
	}
	return &Map{epoch: m.epoch + 1, owners: slices.Clone(owners)}, nil
}

// Owners returns the owner of each slot.
func (m *Map) Owners() []ID { return slices.Clone(m.owners) }

// Toward returns the moves that make m's owners those of the target, ascending by slot, except
// for the slots that skip selects.
func (m *Map) Toward(target *Map, skip func(Slot) bool) (moves []Move) {
	for s, o := range m.owners {
		if to := target.owners[s]; to != o && !skip(Slot(s)) {
			moves = append(moves, Move{Slot: Slot(s), From: o, To: to})
		}
	}
	return moves
}

package view

import (
	"context"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// PreviousMap reads the map that was the target before the last change; nil if none is kept.
func (v *View) PreviousMap(ctx context.Context, l *Layout) (*partition.Map, error) {
	if len(l.Record.Previous) == 0 {
		return nil, nil
	}
	return v.mapOf(ctx, &l.Record, l.Record.Previous[0])
}

// Loads returns the work of each slot: its pending URLs or, if the whole crawl has none, its
// known URLs, which may be revisited. It reads all manifests.
func (v *View) Loads(ctx context.Context) ([]float64, error) {
	slots := make(partition.Slots, v.division.first.Slots())
	for i := range slots {
		slots[i] = partition.Slot(i)
	}
	regions, err := v.regions(ctx, slots)
	if err != nil {
		return nil, err
	}
	pending, known := make([]float64, len(slots)), make([]float64, len(slots))
	busy := false
	for _, r := range regions {
		lists := [][]blobschema.SlotSummary{r.at.Slots}
		if r.given != nil {
			lists = append(lists, r.given.State)
		}
		if r.next != nil {
			lists = append(lists, r.next.Slots)
		}
		for _, sum := range slices.Concat(lists...) {
			if !r.slots.Has(sum.Slot) {
				continue
			}
			pending[sum.Slot] += float64(sum.Pending) + float64(sum.Unexamined)
			known[sum.Slot] += float64(sum.Known) + float64(sum.Unexamined)
			busy = busy || sum.Pending+sum.Unexamined > 0
		}
	}
	if busy {
		return pending, nil
	}
	return known, nil
}

package view

import (
	"context"
	"fmt"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// state reads what runs say of some slots, joined.
func (v *View) state(ctx context.Context, runs []blobschema.RunRef, slots partition.Slots) (*blobschema.Run, error) {
	run := &blobschema.Run{}
	first, last := slots[0], slots[len(slots)-1]
	for _, ref := range runs {
		if ref.Last < first || ref.First > last {
			continue
		}
		seen, queued, hosts := len(run.Settled), len(run.Queued), len(run.Keys)
		if err := v.readRun(ctx, ref, first, last, run); err != nil {
			return nil, fmt.Errorf("run of %s: %w", ref.Object, err)
		}
		if len(slots) <= int(last-first) { // a run may know slots that were given away
			run.Settled = keep(run.Settled, seen, slots, func(e *blobschema.Settled) partition.Slot { return e.Slot })
			run.Queued = keep(run.Queued, queued, slots, func(e *blobschema.Queued) partition.Slot { return e.Slot })
			run.Keys = keep(run.Keys, hosts, slots, func(e *blobschema.KeyState) partition.Slot { return e.Slot })
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

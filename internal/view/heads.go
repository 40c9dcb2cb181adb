package view

import (
	"cmp"
	"context"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// moment is what a frozen view keeps: records of one moment.
type moment struct {
	record blobschema.MapRecord
	heads  []blobschema.Head // by partition
}

// Heads reads the heads of the partitions that have one, by partition.
func (v *View) Heads(ctx context.Context) ([]blobschema.Head, error) {
	heads, _, err := v.headsAnd(ctx, nil, nil)
	return heads, err
}

// headsAnd reads all heads and the map record, and with them other records, as [blobschema.ReadRecords] does.
func (v *View) headsAnd(ctx context.Context, keys []string, to []any) ([]blobschema.Head, blobschema.MapRecord, error) {
	var r blobschema.MapRecord
	if v.still != nil && len(keys) == 0 {
		return slices.Clone(v.still.heads), v.still.record, nil
	}
	n := v.division.known()
	heads, err := v.headsWith(ctx, partition.All(n), append(keys, naming.MapKey(v.id)), append(to, &r))
	if err == nil {
		err = v.division.check(&r)
	}
	if err != nil || r.Partitions == n {
		return heads, r, err
	}
	more, err := v.headsWith(ctx, partition.All(r.Partitions)[n:], nil, nil) // of partitions that are new
	return append(heads, more...), r, err
}

// headsOf reads the heads of some partitions that have one, by partition; nil stands for all. ids may repeat.
func (v *View) headsOf(ctx context.Context, ids []partition.ID) (heads []blobschema.Head, err error) {
	if ids == nil {
		return v.Heads(ctx)
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	if v.still == nil {
		return v.headsWith(ctx, ids, nil, nil)
	}
	for _, p := range ids {
		if h := headOf(v.still.heads, p); h != nil {
			heads = append(heads, *h)
		}
	}
	return heads, nil
}

// headsWith reads the heads of partitions that have one, in their order, and with them
// other records.
func (v *View) headsWith(ctx context.Context, ids []partition.ID, keys []string, to []any) ([]blobschema.Head, error) {
	others := len(keys)
	heads := make([]blobschema.Head, len(ids))
	for i, p := range ids {
		keys, to = append(keys, naming.HeadKey(v.id, p)), append(to, &heads[i])
	}
	found, err := blobschema.ReadRecords(ctx, v.store, keys, to)
	if err != nil {
		return nil, err
	}
	there := heads[:0]
	for i := range ids {
		if found[others+i] {
			there = append(there, heads[i])
		}
	}
	return there, nil
}

// headOf finds the head of a partition among heads by partition; nil if it has none.
func headOf(heads []blobschema.Head, p partition.ID) *blobschema.Head {
	i, found := slices.BinarySearchFunc(heads, p, func(h blobschema.Head, p partition.ID) int { return cmp.Compare(h.Partition, p) })
	if !found {
		return nil
	}
	return &heads[i]
}

// Freeze returns a view of the commits that are visible now. All that is read through it,
// in any number of passes, is of this moment. Closing it does nothing.
func (v *View) Freeze(ctx context.Context) (*View, error) {
	frozen := *v
	frozen.close = func() error { return nil }
	heads, r, err := v.headsAnd(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	frozen.still = &moment{r, heads}
	return &frozen, nil
}

package blobschema

import (
	"slices"
	"testing"
)

func TestParts(t *testing.T) {
	parts := []Part{{}}
	for range 3 {
		for _, p := range slices.Clone(parts) {
			halves := p.Halves()
			parts = append(parts[1:], halves[:]...)
		}
	}
	if len(parts) != 8 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, p := range parts {
		for j := range uint64(8) {
			for _, fp := range []uint64{j << 61, j<<61 + (1<<61 - 1)} {
				if p.Has(fp) != (j == uint64(i)) {
					t.Errorf("part %d, %+v, has %016x: %v", i, p, fp, p.Has(fp))
				}
			}
		}
	}
	if whole := (Part{}); !whole.Has(0) || !whole.Has(1<<64-1) {
		t.Error("the whole is not all")
	}
}

func TestWholeSlots(t *testing.T) {
	part := func(depth uint8, prefix uint32) Part { return Part{Depth: depth, Prefix: prefix} }
	got, err := WholeSlots([]SlotSummary{
		{Slot: 1, Known: 9}, {Slot: 3, Part: part(1, 0), Known: 1, Pending: 1, Due: 7}, {Slot: 3, Part: part(2, 2), Known: 2, Unexamined: 4},
		{Slot: 3, Part: part(2, 3), Known: 3, Pending: 2, Due: 5, Urgent: 1}, {Slot: 4},
	})
	want := []SlotSummary{{Slot: 1, Known: 9}, {Slot: 3, Known: 6, Pending: 3, Unexamined: 4, Due: 5, Urgent: 1}, {Slot: 4}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, bad := range map[string][]SlotSummary{
		"order":      {{Slot: 2}, {Slot: 1}},
		"twice":      {{Slot: 2}, {Slot: 2}},
		"no first":   {{Slot: 2, Part: part(1, 1)}},
		"no last":    {{Slot: 2, Part: part(1, 0)}},
		"no last 2":  {{Slot: 2, Part: part(1, 0)}, {Slot: 3}},
		"a gap":      {{Slot: 2, Part: part(2, 0)}, {Slot: 2, Part: part(1, 1)}},
		"an overlap": {{Slot: 2, Part: part(1, 0)}, {Slot: 2, Part: part(2, 1)}, {Slot: 2, Part: part(1, 1)}},
		"too deep":   {{Slot: 2, Part: part(60, 0)}},
	} {
		if got, err := WholeSlots(bad); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got, err := WholeSlots(nil); len(got) != 0 || err != nil {
		t.Errorf("nothing: %+v, %v", got, err)
	}
}

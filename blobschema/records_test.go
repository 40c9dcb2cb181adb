package blobschema

import (
	"slices"
	"testing"
)

func TestFlagsJoin(t *testing.T) {
	all := make([]QueuedFlags, 256)
	for i := range all {
		all[i] = QueuedFlags(i)
	}
	for _, a := range all {
		if a.Join(a) != a {
			t.Fatalf("%08b joined with itself is %08b", a, a.Join(a))
		}
		for _, b := range all {
			ab := a.Join(b)
			if ab != b.Join(a) || ab.Join(a) != ab || ab&0xf != (a|b)&0xf {
				t.Fatalf("%08b and %08b: %08b, or %08b", a, b, ab, b.Join(a))
			}
			for _, c := range all[:128] {
				if ab.Join(c) != a.Join(b.Join(c)) {
					t.Fatalf("%08b, %08b and %08b: %08b, or %08b", a, b, c, ab.Join(c), a.Join(b.Join(c)))
				}
			}
		}
	}
	if got := (FlagSeed | 3<<4).Join(0); got != FlagSeed|3<<4 {
		t.Errorf("a seed's third hop that a page links to has the flags %08b", got)
	}
}

func TestNextHop(t *testing.T) {
	f := FlagSeed | FlagPlaced
	for hop := 1; hop <= 20; hop++ {
		f = f.NextHop()
		if f.Hops() != min(hop, 15) || f&FlagSeed != 0 != (hop <= 5) || f&FlagPlaced != 0 {
			t.Errorf("hop %d has the flags %08b", hop, f)
		}
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

package blobschema

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSums: of sums of figures each field is one.
func TestSums(t *testing.T) {
	count := func(of any, by int64) { // sets the fields to by, 2*by, ...
		v, n := reflect.ValueOf(of).Elem(), int64(0)
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInt() {
				n += by
				f.SetInt(n)
			}
		}
	}
	check := func(got, want any) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	}
	var a, b, sum Totals
	count(&a, 1)
	count(&b, 10)
	count(&sum, 11)
	a.Topics, b.Topics = nil, map[uint8]TopicTotals{3: {1, 2, 3}}
	b.Outcomes = map[string]int64{"ok": 5}
	a.Add(&b)
	a.Add(&Totals{Topics: b.Topics, Outcomes: b.Outcomes})
	sum.Topics, sum.Outcomes = map[uint8]TopicTotals{3: {2, 4, 6}}, map[string]int64{"ok": 10}
	check(a, sum)

	var index, more, all IndexTotals
	count(&index, 1)
	count(&more, 10)
	count(&all, 11)
	index.Add(&more)
	check(index, all)

	var calls, since, now Calls
	count(&calls, 1)
	count(&since, 10)
	count(&now, 11)
	calls.Add(since)
	check(calls, now)
	count(&calls, 1)
	check(now.Minus(since), calls)
}

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
		if f.Hops() != min(hop, 14) || f&FlagSeed != 0 != (hop <= 5) || f&FlagPlaced != 0 {
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

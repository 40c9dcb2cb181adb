package partition_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/partition"
)

// referenceKey is the key of the test vectors published with SipHash: 00 01 … 0f.
var referenceKey = [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

func newHash(t testing.TB, slots int) partition.Hash {
	t.Helper()
	h, err := partition.NewHash(referenceKey, slots)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestReferenceVectors checks the library against the authors' sums of the messages 00 01 … n-1 (Aumasson, Bernstein:
// SipHash, appendix A; vectors_sip64 of their implementation, as little-endian numbers).
func TestReferenceVectors(t *testing.T) {
	h := newHash(t, 1)
	for n, want := range map[int]uint64{
		0: 0x726fdb47dd0e0e31, 1: 0x74f839c593dc67fd, 7: 0xab0200f58b01d137, 8: 0x93f5f5799a932462,
		15: 0xa129ca6149be45e5, 16: 0x3f2acc7f57c29bdb, 63: 0x958a324ceb064572,
	} {
		msg := make([]byte, n)
		for i := range msg {
			msg[i] = byte(i)
		}
		if got := h.Fingerprint(string(msg)); got != want {
			t.Errorf("%d bytes: got %#x, want %#x", n, got, want)
		}
	}
}

// TestSlot pins host → slot, which is fixed within a crawl (I2). Other numbers would make all existing crawls unreadable.
func TestSlot(t *testing.T) {
	sizes := []int{1 << 14, 1000, 1 << 16}
	for _, c := range []struct {
		host string
		want []partition.Slot // by number of slots
	}{
		{"example.org", []partition.Slot{13540, 826, 54162}},
		{"www.example.org", []partition.Slot{5401, 329, 21605}},
		{"example.org:8080", []partition.Slot{5694, 347, 22776}},
		{"xn--bcher-kva.example", []partition.Slot{10998, 671, 43994}},
		{"a.b.c.d.e.example.co.uk", []partition.Slot{3603, 219, 14415}},
		{"127.0.0.1", []partition.Slot{2583, 157, 10332}},
		{"127.0.0.1:8443", []partition.Slot{8232, 502, 32928}},
		{"[2001:db8::1]", []partition.Slot{13188, 804, 52753}},
		{"[::1]:8080", []partition.Slot{11634, 710, 46539}},
		{"localhost", []partition.Slot{4807, 293, 19229}},
		{"", []partition.Slot{7323, 447, 29295}},
	} {
		var got []partition.Slot
		for _, m := range sizes {
			got = append(got, newHash(t, m).Slot(c.host))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%q at %v slots (-want +got):\n%s", c.host, sizes, d)
		}
		if s := newHash(t, 1).Slot(c.host); s != 0 {
			t.Errorf("%q: slot %d of 1", c.host, s)
		}
	}
}

func TestFingerprint(t *testing.T) {
	h := newHash(t, partition.DefaultSlots)
	for url, want := range map[string]uint64{
		"https://example.org/":                                0xacd4c1444775411b,
		"http://example.org/":                                 0x0e9c901b57468c25,
		"https://example.org/a":                               0x2045c9ce0caf48f3,
		"https://example.org/a/":                              0xc912a454a53ed857,
		"https://example.org/a?b=c":                           0xabac4b287e913c23,
		"https://www.example.org/":                            0x8f2d3f2082c118b3,
		"https://example.org:8080/":                           0x321289fd2f1c1c53,
		"https://xn--bcher-kva.example/caf%C3%A9":             0x2185b3c7f30c3975,
		"http://127.0.0.1/":                                   0xf36edc483bdd0702,
		"http://[2001:db8::1]/x":                              0x1995179fbfc77da6,
		"https://example.org/" + strings.Repeat("x", 2048-20): 0x212813db1b4c6ce6,
	} {
		if got := h.Fingerprint(url); got != want {
			t.Errorf("%s: got %#x, want %#x", url, got, want)
		}
	}
}

// TestKeyMatters checks that every bit of the key changes slots and fingerprints, so a site cannot prepare collisions.
func TestKeyMatters(t *testing.T) {
	const host, url = "example.org", "https://example.org/"
	base := newHash(t, partition.MaxSlots)
	slots := map[partition.Slot]bool{base.Slot(host): true}
	for bit := range 128 {
		key := referenceKey
		key[bit/8] ^= 1 << (bit % 8)
		h, err := partition.NewHash(key, partition.MaxSlots)
		if err != nil {
			t.Fatal(err)
		}
		if h.Fingerprint(url) == base.Fingerprint(url) {
			t.Errorf("bit %d of the key changes no fingerprint", bit)
		}
		slots[h.Slot(host)] = true
	}
	if len(slots) < 120 { // 129 balls in 65,536 bins: more than one collision is unlikely
		t.Errorf("129 keys lead to %d slots", len(slots))
	}
}

// TestSlotsAreEven checks that Pearson's statistic of hosts per slot is that of a random distribution, with mean M-1 and
// variance 2(M-1), within five standard deviations.
func TestSlotsAreEven(t *testing.T) {
	for _, m := range []int{7, 1000, 1 << 14} {
		h := newHash(t, m)
		const perSlot = 12
		counts := make([]int, m)
		for i := range perSlot * m {
			s := h.Slot("host" + strconv.Itoa(i) + ".example.org")
			if int(s) >= m {
				t.Fatalf("slot %d of %d", s, m)
			}
			counts[s]++
		}
		chi := 0.0
		for _, n := range counts {
			chi += float64((n-perSlot)*(n-perSlot)) / perSlot
		}
		free := float64(m - 1)
		if off := chi - free; off*off > 25*2*free {
			t.Errorf("%d slots: statistic %.0f, expected about %.0f", m, chi, free)
		}
	}
}

func TestNewHashBounds(t *testing.T) {
	for _, c := range []struct {
		slots int
		ok    bool
	}{{-1, false}, {0, false}, {1, true}, {partition.MaxSlots, true}, {partition.MaxSlots + 1, false}} {
		h, err := partition.NewHash(referenceKey, c.slots)
		if (err == nil) != c.ok {
			t.Errorf("%d slots: %v", c.slots, err)
		}
		if err == nil && h.Slots() != c.slots {
			t.Errorf("%d slots became %d", c.slots, h.Slots())
		}
	}
}

func newMap(t testing.TB, slots, n int) *partition.Map {
	t.Helper()
	m, err := partition.NewMap(slots, n)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ids(n int) []partition.ID {
	out := make([]partition.ID, n)
	for i := range out {
		out[i] = partition.ID(i)
	}
	return out
}

func TestNewMap(t *testing.T) {
	m := newMap(t, 10, 3)
	if m.Epoch() != 1 || m.Slots() != 10 {
		t.Errorf("epoch %d, %d slots", m.Epoch(), m.Slots())
	}
	if d := cmp.Diff(ids(3), m.Partitions()); d != "" {
		t.Errorf("partitions (-want +got):\n%s", d)
	}
	for p, want := range [][]partition.Slot{{0, 3, 6, 9}, {1, 4, 7}, {2, 5, 8}, nil} {
		if d := cmp.Diff(want, m.Owned(partition.ID(p))); d != "" {
			t.Errorf("partition %d owns (-want +got):\n%s", p, d)
		}
		for _, s := range want {
			if m.Owner(s) != partition.ID(p) {
				t.Errorf("slot %d is %d's", s, m.Owner(s))
			}
		}
	}
	for _, c := range []struct{ slots, n int }{
		{0, 1}, {-1, 1}, {partition.MaxSlots + 1, 1}, {1, 0}, {1, -1}, {1, 2}, {10, 11},
		{partition.MaxSlots, partition.MaxPartitions + 1},
	} {
		if _, err := partition.NewMap(c.slots, c.n); err == nil {
			t.Errorf("a map of %d slots and %d partitions", c.slots, c.n)
		}
	}
	newMap(t, 1, 1)
	newMap(t, partition.MaxSlots, partition.MaxPartitions)
}

// TestGrowByOne checks that from n to n+1 equal partitions ⌊M/(n+1)⌋ slots move, all to the new one.
func TestGrowByOne(t *testing.T) {
	for _, slots := range []int{1000, 1 << 14} {
		for _, n := range []int{1, 2, 3, 7, 31, 200, 999} {
			m := newMap(t, slots, n)
			moves, err := m.Plan(ids(n + 1))
			if err != nil {
				t.Fatal(err)
			}
			if want := slots / (n + 1); len(moves) != want {
				t.Errorf("%d slots, %d to %d partitions: %d moves, want %d", slots, n, n+1, len(moves), want)
			}
			for _, mv := range moves {
				if mv.To != partition.ID(n) {
					t.Fatalf("%d slots, %d to %d partitions: %+v", slots, n, n+1, mv)
				}
			}
		}
	}
}

// TestRemove checks that the slots of a removed partition are dealt evenly to the others, and that nothing else moves.
func TestRemove(t *testing.T) {
	m := newMap(t, 1000, 5)
	stay := []partition.ID{0, 1, 3, 4}
	moves, err := m.Plan(stay)
	if err != nil {
		t.Fatal(err)
	}
	got := map[partition.ID]int{}
	var slots []partition.Slot
	for _, mv := range moves {
		if mv.From != 2 {
			t.Errorf("%+v, but 2 is the one to go", mv)
		}
		got[mv.To]++
		slots = append(slots, mv.Slot)
	}
	if d := cmp.Diff(map[partition.ID]int{0: 50, 1: 50, 3: 50, 4: 50}, got); d != "" {
		t.Errorf("slots gained (-want +got):\n%s", d)
	}
	if d := cmp.Diff(m.Owned(2), slots); d != "" {
		t.Errorf("slots moved, in order (-want +got):\n%s", d)
	}
}

// fewest returns the least number of moves, computed in another way: each partition keeps at most the even share, and as
// many partitions as the remainder keep one slot more.
func fewest(m *partition.Map, want []partition.ID) int {
	share, rest := m.Slots()/len(want), m.Slots()%len(want)
	kept := 0
	for _, p := range want {
		n := len(m.Owned(p))
		kept += min(n, share)
		if n > share && rest > 0 {
			kept, rest = kept+1, rest-1
		}
	}
	return m.Slots() - kept
}

// pick returns n different partitions in random order.
func pick(rng *rand.Rand, n, of int) []partition.ID {
	out := make([]partition.ID, n)
	for i, p := range rng.Perm(of)[:n] {
		out[i] = partition.ID(p)
	}
	return out
}

// TestPlanProperties changes maps at random and checks the promises of Plan and Apply for each change.
func TestPlanProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		slots := 1 + rng.IntN(300)
		m := newMap(t, slots, 1+rng.IntN(min(slots, 40)))
		for range 8 {
			want := pick(rng, 1+rng.IntN(min(slots, 40)), 60)
			next := checkPlan(t, m, want)
			if t.Failed() {
				return
			}
			m = next
		}
	}
}

func checkPlan(t *testing.T, m *partition.Map, want []partition.ID) *partition.Map {
	t.Helper()
	before := owners(m)
	moves, err := m.Plan(want)
	if err != nil {
		t.Fatalf("%d slots to %v: %v", m.Slots(), want, err)
	}
	again, err := m.Plan(append(slices.Clone(want), want[0])) // a repeated name counts once
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(moves, again) {
		t.Errorf("two plans (-first +second):\n%s", cmp.Diff(moves, again))
	}
	slices.Reverse(want)
	if again, _ = m.Plan(want); !slices.Equal(moves, again) {
		t.Error("the order of the partitions matters")
	}
	if len(moves) != fewest(m, want) {
		t.Errorf("%d slots of %v to %v: %d moves, %d would do", m.Slots(), m.Partitions(), want, len(moves), fewest(m, want))
	}
	from, to, pairs := map[partition.ID]bool{}, map[partition.ID]bool{}, map[[2]partition.ID]bool{}
	for _, mv := range moves {
		from[mv.From], to[mv.To], pairs[[2]partition.ID{mv.From, mv.To}] = true, true, true
	}
	if len(pairs) > 0 && len(pairs) >= len(from)+len(to) {
		t.Errorf("%d pairs of %d givers and %d receivers", len(pairs), len(from), len(to))
	}
	for i, mv := range moves {
		if mv.From == mv.To || m.Owner(mv.Slot) != mv.From || i > 0 && moves[i-1].Slot >= mv.Slot {
			t.Errorf("move %d is %+v", i, mv)
		}
	}
	next, err := m.Apply(moves)
	if err != nil {
		t.Fatal(err)
	}
	if next.Epoch() != m.Epoch()+1 || next.Slots() != m.Slots() {
		t.Errorf("epoch %d after %d, %d slots after %d", next.Epoch(), m.Epoch(), next.Slots(), m.Slots())
	}
	if after := owners(m); !slices.Equal(before, after) {
		t.Errorf("a map changed (-before +after):\n%s", cmp.Diff(before, after))
	}
	slices.Sort(want)
	if got := next.Partitions(); !slices.Equal(want, got) {
		t.Errorf("owners (-want +got):\n%s", cmp.Diff(want, got))
	}
	least, most := m.Slots(), 0
	for _, p := range want {
		n := len(next.Owned(p))
		least, most = min(least, n), max(most, n)
	}
	if most-least > 1 {
		t.Errorf("shares from %d to %d", least, most)
	}
	if rest, err := next.Plan(want); err != nil || len(rest) != 0 {
		t.Errorf("an even map is planned again: %v %v", rest, err)
	}
	return next
}

func owners(m *partition.Map) []partition.ID {
	out := make([]partition.ID, m.Slots())
	for s := range out {
		out[s] = m.Owner(partition.Slot(s))
	}
	return out
}

func TestPlanRefuses(t *testing.T) {
	m := newMap(t, 4, 2)
	for _, want := range [][]partition.ID{nil, {}, ids(5)} {
		if moves, err := m.Plan(want); err == nil {
			t.Errorf("a plan for %v: %v", want, moves)
		}
	}
}

// TestApplyRefuses checks that a plan for another map or epoch changes nothing.
// TestToward carries out a plan of one epoch at later epochs, slot by slot.
func TestToward(t *testing.T) {
	m := newMap(t, 4, 2)
	target, err := m.WithOwners([]partition.ID{0, 2, 2, 1})
	if err != nil {
		t.Fatal(err)
	}
	if target.Epoch() != m.Epoch()+1 || !slices.Equal(target.Owners(), []partition.ID{0, 2, 2, 1}) || !slices.Equal(m.Owners(), []partition.ID{0, 1, 0, 1}) {
		t.Errorf("I3: %v at epoch %d, after %v at %d", target.Owners(), target.Epoch(), m.Owners(), m.Epoch())
	}
	want := []partition.Move{{Slot: 1, From: 1, To: 2}}
	if got := m.Toward(target, func(s partition.Slot) bool { return s == 2 }); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, owners := range [][]partition.ID{{0, 1, 0}, {0, 1, 0, 1, 0}, {0, 1, 0, partition.MaxPartitions}} {
		if _, err := m.WithOwners(owners); err == nil {
			t.Errorf("%v are taken for the owners of four slots", owners)
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	m := newMap(t, 10, 2)
	moves, err := m.Plan(ids(3))
	if err != nil {
		t.Fatal(err)
	}
	next, err := m.Apply(moves)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := next.Apply(moves); err == nil {
		t.Errorf("one plan was applied twice: epoch %d", got.Epoch())
	}
	for _, mv := range []partition.Move{{Slot: 0, From: 1, To: 0}, {Slot: 10, From: 0, To: 1}, {Slot: 1<<32 - 1, From: 0, To: 1}} {
		if _, err := m.Apply([]partition.Move{mv}); err == nil {
			t.Errorf("%+v was applied", mv)
		}
	}
	if empty, err := m.Apply(nil); err != nil || empty.Epoch() != 2 {
		t.Errorf("no moves: %v", err)
	}
}

// encoded returns the map's bytes and checks that they decode to the same map.
func encoded(t testing.TB, m *partition.Map) []byte {
	t.Helper()
	b, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var back partition.Map
	if err := back.UnmarshalBinary(b); err != nil {
		t.Fatalf("read back: %v", err)
	}
	if back.Epoch() != m.Epoch() || !slices.Equal(owners(&back), owners(m)) {
		t.Fatalf("epoch %d became %d, or owners differ", m.Epoch(), back.Epoch())
	}
	return b
}

func TestMapEncoding(t *testing.T) {
	if got, want := encoded(t, newMap(t, 5, 3)), []byte{1, 1, 5, 0, 1, 2, 0, 1}; !bytes.Equal(got, want) {
		t.Errorf("got % x, want % x", got, want)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		slots := 1 + rng.IntN(500)
		m := newMap(t, slots, 1+rng.IntN(slots))
		for range rng.IntN(4) {
			moves, err := m.Plan(pick(rng, 1+rng.IntN(slots), partition.MaxPartitions))
			if err != nil {
				t.Fatal(err)
			}
			if m, err = m.Apply(moves); err != nil {
				t.Fatal(err)
			}
		}
		encoded(t, m)
	}
	if n := len(encoded(t, newMap(t, partition.DefaultSlots, 1000))); n > 2*partition.DefaultSlots+8 {
		t.Errorf("a map of the default size has %d bytes", n)
	}
}

// TestMapDamaged checks that bytes that are cut, too long or out of bounds are refused and leave the map unchanged.
func TestMapDamaged(t *testing.T) {
	whole := encoded(t, newMap(t, 300, 200))
	bad := map[string][]byte{
		"nothing":          {},
		"version 0":        append([]byte{0}, whole[1:]...),
		"version 2":        append([]byte{2}, whole[1:]...),
		"epoch 0":          {1, 0, 1, 0},
		"no slots":         {1, 1, 0},
		"too many slots":   append([]byte{1, 1, 0x81, 0x80, 4}, make([]byte, partition.MaxSlots+1)...),
		"owner too high":   {1, 1, 1, 0x80, 0x20},
		"number too long":  {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 0},
		"a byte too many":  append(slices.Clone(whole), 0),
		"slots by billion": {1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0},
	}
	for n := range len(whole) {
		bad[fmt.Sprintf("%d bytes", n)] = whole[:n]
	}
	for name, b := range bad {
		m := newMap(t, 2, 2)
		if err := m.UnmarshalBinary(b); err == nil {
			t.Errorf("%s: a map of %d slots", name, m.Slots())
		}
		if m.Epoch() != 1 || !slices.Equal(owners(m), ids(2)) {
			t.Errorf("%s: an error changed the map", name)
		}
	}
	var m partition.Map
	if err := m.UnmarshalBinary([]byte{1, 1, 1, 0xff, 0x1f}); err != nil || m.Owner(0) != partition.MaxPartitions-1 {
		t.Errorf("the last partition is refused: %v", err)
	}
}

// FuzzMap checks that UnmarshalBinary never panics, and that an accepted map is within the bounds and encodes to the same
// map.
func FuzzMap(f *testing.F) {
	for _, c := range []struct{ slots, n int }{{1, 1}, {5, 3}, {300, 200}} {
		f.Add(encoded(f, newMap(f, c.slots, c.n)))
	}
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 0})
	f.Add([]byte{1, 1, 0xff, 0xff, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m partition.Map
		if m.UnmarshalBinary(b) != nil {
			return
		}
		if m.Epoch() == 0 || m.Slots() < 1 || m.Slots() > partition.MaxSlots {
			t.Fatalf("epoch %d, %d slots", m.Epoch(), m.Slots())
		}
		for _, p := range m.Partitions() {
			if p >= partition.MaxPartitions {
				t.Fatalf("partition %d", p)
			}
		}
		if got := encoded(t, &m); len(got) > len(b) {
			t.Errorf("%d bytes became %d", len(b), len(got))
		}
	})
}

func BenchmarkSlot(b *testing.B) {
	h := newHash(b, partition.DefaultSlots)
	for b.Loop() {
		h.Slot("www.example.org")
	}
}

func BenchmarkFingerprint(b *testing.B) {
	h := newHash(b, partition.DefaultSlots)
	b.ReportAllocs()
	for b.Loop() {
		h.Fingerprint("https://www.example.org/a/section/of/the/site/with-a-rather-long-name-of-the-page.html?page=2")
	}
}

func BenchmarkPlan(b *testing.B) {
	m := newMap(b, partition.DefaultSlots, 200)
	want := ids(201)
	for b.Loop() {
		if _, err := m.Plan(want); err != nil {
			b.Fatal(err)
		}
	}
}

func TestMapOneSpelling(t *testing.T) {
	if new(partition.Map).UnmarshalBinary([]byte{1, 0x81, 0x00, 1, 0}) == nil {
		t.Error("epoch 1 in two bytes was taken")
	}
}

func TestPlanRefusesWhatCannotBeStored(t *testing.T) {
	m, err := partition.NewMap(4, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Plan([]partition.ID{0, partition.MaxPartitions}); err == nil {
		t.Error("a partition beyond the last was planned")
	}
}

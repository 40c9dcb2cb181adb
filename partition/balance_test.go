package partition_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/partition"
)

// loads returns the loads of the partitions of a map, by ID.
func loads(m *partition.Map, load []float64) map[partition.ID]float64 {
	out := map[partition.ID]float64{}
	for s := range m.Slots() {
		out[m.Owner(partition.Slot(s))] += load[s]
	}
	return out
}

// fullest returns the largest load of a partition.
func fullest(m *partition.Map, load []float64) (top float64) {
	for _, l := range loads(m, load) {
		top = max(top, l)
	}
	return top
}

// applied returns the map after moves, which must be well formed.
func applied(t testing.TB, m *partition.Map, moves []partition.Move) *partition.Map {
	t.Helper()
	for i, mv := range moves {
		if mv.From == mv.To || i > 0 && moves[i-1].Slot >= mv.Slot {
			t.Fatalf("move %d is %+v", i, mv)
		}
	}
	next, err := m.Apply(moves)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func withOwners(t testing.TB, owners ...partition.ID) *partition.Map {
	t.Helper()
	m, err := newMap(t, len(owners), 1).WithOwners(owners)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// zipf returns a load with a few heavy slots and many light ones, in random order.
func zipf(rng *rand.Rand, slots int, exponent float64) []float64 {
	out := make([]float64, slots)
	for i, s := range rng.Perm(slots) {
		out[s] = 1000 * math.Pow(float64(i+1), -exponent)
	}
	return out
}

func uniform(slots int) []float64 {
	out := make([]float64, slots)
	for s := range out {
		out[s] = 3
	}
	return out
}

func TestBalance(t *testing.T) {
	type move = partition.Move
	for _, c := range []struct {
		name   string
		owners []partition.ID
		load   []float64
		o      partition.BalanceOptions
		want   []move
	}{
		{name: "no load", owners: []partition.ID{0, 1, 0, 1}, load: []float64{0, 0, 0, 0}},
		{name: "loads unknown", owners: []partition.ID{0, 1}},
		{name: "even", owners: []partition.ID{0, 1, 0, 1}, load: []float64{5, 5, 5, 5}},
		{name: "one partition", owners: []partition.ID{0, 0}, load: []float64{5, 1}},
		{name: "within the hysteresis", owners: []partition.ID{0, 0, 0, 1, 1, 1}, load: []float64{6, 4, 2, 4, 3, 1}},
		{
			name: "beyond a narrower one", owners: []partition.ID{0, 0, 0, 1, 1, 1}, load: []float64{6, 4, 2, 4, 3, 1},
			o: partition.BalanceOptions{Start: 1.19}, want: []move{{Slot: 2, From: 0, To: 1}},
		},
		{
			name: "one move does it", owners: []partition.ID{0, 0, 0, 1, 1, 1}, load: []float64{6, 4, 3, 3, 3, 1},
			want: []move{{Slot: 2, From: 0, To: 1}},
		},
		{
			name: "of equal slots those that are neighbours", owners: []partition.ID{0, 1, 0, 2, 0, 1, 0, 2, 0}, load: []float64{2, 1, 2, 1, 2, 1, 2, 1, 2},
			want: []move{{Slot: 0, From: 0, To: 1}, {Slot: 2, From: 0, To: 2}},
		},
		{
			name: "a heavy slot and the first of the light ones", owners: []partition.ID{0, 0, 0, 0, 0, 0, 1, 1}, load: []float64{1, 1, 3, 1, 1, 1, 0, 0},
			want: []move{{Slot: 0, From: 0, To: 1}, {Slot: 2, From: 0, To: 1}},
		},
		{
			name: "neighbours go to one partition", owners: []partition.ID{0, 0, 0, 0, 0, 0}, load: []float64{1, 1, 1, 1, 1, 1},
			o:    partition.BalanceOptions{Partitions: ids(3)},
			want: []move{{Slot: 0, From: 0, To: 1}, {Slot: 1, From: 0, To: 1}, {Slot: 2, From: 0, To: 2}, {Slot: 3, From: 0, To: 2}},
		},
		{
			name: "beside a hot slot the others are evened out", owners: []partition.ID{0, 1, 1, 1, 2}, load: []float64{100, 15, 16, 14, 15},
			want: []move{{Slot: 3, From: 1, To: 2}},
		},
		{
			name: "a hot slot is left alone", owners: []partition.ID{0, 0, 0, 1, 1}, load: []float64{100, 20, 20, 10, 10},
			want: []move{{Slot: 1, From: 0, To: 1}, {Slot: 2, From: 0, To: 1}},
		},
		{
			name: "a hot slot stays where its neighbours are heavy", owners: []partition.ID{0, 0, 0, 1, 2, 3, 4}, load: []float64{100, 30, 40, 10, 10, 10, 10},
			want: []move{{Slot: 1, From: 0, To: 2}, {Slot: 2, From: 0, To: 1}, {Slot: 3, From: 1, To: 4}, {Slot: 4, From: 2, To: 3}},
		},
		{name: "what lies beside a hot slot is compared with that", owners: []partition.ID{0, 0, 1, 1, 2}, load: []float64{100, 20, 30, 20, 40}},
		{name: "and stays", owners: []partition.ID{0, 1, 1, 1, 1}, load: []float64{100, 20, 20, 10, 10}},
		{
			name: "two hot slots part", owners: []partition.ID{0, 0, 1, 2}, load: []float64{100, 90, 10, 11},
			want: []move{{Slot: 1, From: 0, To: 1}, {Slot: 2, From: 1, To: 2}},
		},
		{name: "nothing helps", owners: []partition.ID{0, 0, 1}, load: []float64{1, 1, 1}},
		{
			name: "not all at once", owners: []partition.ID{0, 0, 0, 0, 1}, load: []float64{1, 1, 1, 1, 0},
			o: partition.BalanceOptions{MaxMoves: 1}, want: []move{{Slot: 0, From: 0, To: 1}},
		},
		{
			name: "invalid loads count as zero", owners: []partition.ID{0, 0, 0, 0, 1, 1}, load: []float64{math.Inf(1), math.NaN(), -9, 1, 1, 0},
		},
		{
			name: "nor does what has no end", owners: []partition.ID{0, 0, 0, 1, 1, 1}, load: []float64{math.Inf(1), 3, 2, 1, 1, 0},
			want: []move{{Slot: 2, From: 0, To: 1}},
		},
		{
			name: "as even as requested", owners: []partition.ID{0, 0, 0, 0, 0, 0, 1}, load: []float64{1, 1, 1, 1, 1, 1, 1},
			o: partition.BalanceOptions{Stop: 1.5}, want: []move{{Slot: 0, From: 0, To: 1}},
		},
		{
			name: "loads that no sum holds", owners: []partition.ID{0, 0, 1, 1}, load: []float64{math.MaxFloat64, math.MaxFloat64, 0, 0},
			want: []move{{Slot: 0, From: 0, To: 1}},
		},
		{
			name: "a partition joins", owners: []partition.ID{0, 1, 0, 1, 0, 1}, load: []float64{1, 1, 1, 1, 1, 1},
			o: partition.BalanceOptions{Partitions: ids(3)}, want: []move{{Slot: 0, From: 0, To: 2}, {Slot: 1, From: 1, To: 2}},
		},
		{
			name: "partitions in any order", owners: []partition.ID{0, 1, 0, 1, 0, 1}, load: []float64{1, 1, 1, 1, 1, 1},
			o:    partition.BalanceOptions{Partitions: []partition.ID{2, 0, partition.MaxPartitions, 1, 0}},
			want: []move{{Slot: 0, From: 0, To: 2}, {Slot: 1, From: 1, To: 2}},
		},
		{
			name: "idle slots go to the partition with the fewest", owners: []partition.ID{0, 0, 0, 1, 2, 2, 2, 2},
			o:    partition.BalanceOptions{Partitions: ids(2)},
			want: []move{{Slot: 4, From: 2, To: 1}, {Slot: 5, From: 2, To: 1}, {Slot: 6, From: 2, To: 1}, {Slot: 7, From: 2, To: 0}},
		},
		{
			name: "a partition leaves, the heaviest slots first", owners: []partition.ID{0, 1, 2, 2, 2}, load: []float64{1, 1, 1, 1, 4},
			o:    partition.BalanceOptions{Partitions: ids(2)},
			want: []move{{Slot: 2, From: 2, To: 1}, {Slot: 3, From: 2, To: 1}, {Slot: 4, From: 2, To: 0}},
		},
		{
			name: "a partition leaves, idle slots too", owners: []partition.ID{0, 1, 2, 2, 0, 1, 2}, load: []float64{1, 1, 1, 1, 0, 0, 0},
			o: partition.BalanceOptions{Partitions: ids(2)}, want: []move{{Slot: 2, From: 2, To: 0}, {Slot: 3, From: 2, To: 1}, {Slot: 6, From: 2, To: 1}},
		},
	} {
		if c.o.MaxMoves == 0 {
			c.o.MaxMoves = len(c.owners)
		}
		if d := cmp.Diff(c.want, withOwners(t, c.owners...).Balance(c.load, c.o)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

// TestBalanceMost checks that at most an eighth of the slots move, or one if that is more. All may move if the number of
// partitions changes.
func TestBalanceMost(t *testing.T) {
	for _, c := range []struct{ slots, partitions, want int }{{64, 2, 8}, {63, 2, 7}, {7, 2, 1}, {64, 3, 41}, {64, 1, 1}} {
		owners := make([]partition.ID, c.slots)
		owners[0] = 1
		m := withOwners(t, owners...)
		if got := len(m.Balance(uniform(c.slots), partition.BalanceOptions{Partitions: ids(c.partitions)})); got != c.want {
			t.Errorf("%d slots for %d partitions: %d moves, want %d", c.slots, c.partitions, got, c.want)
		}
	}
	if got := withOwners(t, 0, 1).Balance(uniform(2), partition.BalanceOptions{Partitions: []partition.ID{}}); got != nil {
		t.Errorf("moves without a receiver: %+v", got)
	}
}

// TestBalanceGrows checks that, with equal slots, a new partition gets ⌊M/(n+1)⌋ of them and nothing else moves, as with
// Plan.
func TestBalanceGrows(t *testing.T) {
	for _, slots := range []int{100, 1000, 4096} {
		for _, n := range []int{1, 2, 3, 4, 7, 16, 31, 99} {
			m := newMap(t, slots, n)
			moves := m.Balance(uniform(slots), partition.BalanceOptions{Partitions: m.Active(n + 1)})
			if want := slots / (n + 1); len(moves) != want {
				t.Errorf("%d slots, %d to %d partitions: %d moves, want %d", slots, n, n+1, len(moves), want)
			}
			for _, mv := range moves {
				if mv.To != partition.ID(n) {
					t.Fatalf("%d slots, %d to %d partitions: %+v", slots, n, n+1, mv)
				}
			}
			// And back: only the slots of the last one move.
			grown := applied(t, m, moves)
			back := grown.Balance(uniform(slots), partition.BalanceOptions{Partitions: grown.Active(n)})
			if len(back) != len(moves) {
				t.Errorf("%d slots, %d to %d partitions: %d moves, want %d", slots, n+1, n, len(back), len(moves))
			}
		}
	}
}

// TestBalanceFew compares small plans with the shortest plans for equally even loads, found by trying all. Most are as
// short, and the others have few unnecessary moves.
func TestBalanceFew(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	needed, wasted, longer := 0, 0, 0
	for range 1000 {
		n, slots := 2+rng.IntN(2), 4+rng.IntN(4)
		m, load := newMap(t, slots, n), make([]float64, slots)
		for s := range load {
			load[s] = float64(rng.IntN(20))
		}
		moves := m.Balance(load, partition.BalanceOptions{MaxMoves: slots})
		if len(moves) == 0 {
			continue
		}
		top := fullest(applied(t, m, moves), load)
		best := fewestTo(m, load, n, top)
		needed, wasted = needed+best, wasted+len(moves)-best
		if len(moves) > best {
			longer++
		}
		if len(moves) > best+2 {
			t.Errorf("%v of %d partitions: %d moves to reach %v, %d would do: %+v", load, n, len(moves), top, best, moves)
		}
	}
	t.Logf("%d moves needed, %d more made, by %d plans", needed, wasted, longer)
	if wasted > needed/7 {
		t.Errorf("%d moves needed, %d more made, by %d plans", needed, wasted, longer)
	}
}

// fewestTo returns the least number of moves after which no partition has more than top.
func fewestTo(m *partition.Map, load []float64, n int, top float64) int {
	best, sums := m.Slots(), make([]float64, n)
	var try func(s, moved int)
	try = func(s, moved int) {
		if moved >= best {
			return
		}
		if s == m.Slots() {
			best = moved
			return
		}
		for p := range n {
			if sums[p]+load[s] > top+1e-9 {
				continue
			}
			sums[p] += load[s]
			if partition.ID(p) == m.Owner(partition.Slot(s)) {
				try(s+1, moved)
			} else {
				try(s+1, moved+1)
			}
			sums[p] -= load[s]
		}
	}
	try(0, 0)
	return best
}

// TestBalanceEvens checks that loads as skewed as those of hosts become as even as Stop requires, with far fewer moves than
// slots.
func TestBalanceEvens(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, exponent := range []float64{0, 0.5, 0.8, 1} {
		for _, n := range []int{2, 4, 8, 16} {
			load := zipf(rng, 4096, exponent)
			m := newMap(t, 4096, n)
			moves := m.Balance(load, partition.BalanceOptions{Start: 1.05, Stop: 1.05})
			after := applied(t, m, moves)
			hottest, total := slices.Max(load), 0.0
			for _, l := range load {
				total += l
			}
			if got, want := fullest(after, load), max(hottest, total/float64(n))*1.05; got > want+1e-6 {
				t.Errorf("exponent %v, %d partitions: the fullest has %.0f, not %.0f, after %d moves", exponent, n, got, want, len(moves))
			}
			if len(moves) > 4096/8 {
				t.Errorf("exponent %v, %d partitions: %d moves", exponent, n, len(moves))
			}
		}
	}
}

func FuzzBalance(f *testing.F) {
	f.Add([]byte{3, 0, 0, 0}, []byte{})
	f.Add([]byte{4, 0, 0, 9, 0, 1, 2, 3}, []byte{200, 0, 100, 0, 9, 0, 255, 255})
	f.Add([]byte{16, 1, 17, 3, 5, 5, 5, 5, 5, 0, 0, 0}, []byte{1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0})
	f.Fuzz(func(t *testing.T, head, data []byte) {
		if len(head) < 4 {
			return
		}
		n, want := 1+int(head[0])%40, 1+int(head[1])%40
		o := partition.BalanceOptions{MaxMoves: int(head[2]), Start: 1 + float64(head[3]%16)/8, Stop: 1 + float64(head[3]>>4)/64}
		owners := make([]partition.ID, max(1, min(200, len(head)+len(data)/2)))
		load := make([]float64, len(owners))
		for s := range owners {
			owners[s] = partition.ID(s % n)
			if s+4 < len(head) {
				owners[s] = partition.ID(int(head[s+4]) % n)
			}
			if 2*s+2 <= len(data) {
				load[s] = float64(int16(binary.LittleEndian.Uint16(data[2*s:])))
			}
		}
		m := withOwners(t, owners...)
		checkBalance(t, m, load, o)
		o.Partitions = m.Active(want)
		checkBalance(t, m, load, o)
	})
}

// TestBalanceProperties runs the checks of the fuzz test on loads like those of hosts.
func TestBalanceProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 150 {
		slots := 1 + rng.IntN(600)
		n := 1 + rng.IntN(min(slots, 20))
		o := partition.BalanceOptions{MaxMoves: rng.IntN(slots + 1)}
		load := zipf(rng, slots, 2*rng.Float64())
		for s := range load {
			if rng.IntN(3) == 0 {
				load[s] = 0
			}
		}
		m := newMap(t, slots, n)
		checkBalance(t, m, load, o)
		o.Partitions = pick(rng, 1+rng.IntN(min(slots, 30)), 40)
		checkBalance(t, m, load, o)
	}
}

// checkBalance applies plans until there is none, and checks the promises of Balance.
func checkBalance(t *testing.T, m *partition.Map, load []float64, o partition.BalanceOptions) {
	t.Helper()
	want := o.Partitions
	if want == nil {
		want = m.Partitions()
	}
	for round := 0; ; round++ {
		moves := m.Balance(load, o)
		if !slices.Equal(moves, m.Balance(load, o)) {
			t.Fatal("two plans")
		}
		if len(moves) == 0 {
			break
		}
		if round > 2*m.Slots() {
			t.Fatalf("%d plans, and there is another one of %d moves: %+v", round, len(moves), moves)
		}
		bound := o.MaxMoves
		switch {
		case bound > 0:
		case slices.Equal(m.Partitions(), slices.Sorted(slices.Values(want))):
			bound = max(1, m.Slots()/8)
		default:
			bound = m.Slots()
		}
		if len(moves) > bound {
			t.Fatalf("%d moves, at most %d", len(moves), bound)
		}
		leaves := false
		for _, mv := range moves {
			gone := !slices.Contains(want, mv.From)
			leaves = leaves || gone
			if !slices.Contains(want, mv.To) {
				t.Fatalf("%+v, but %v should own slots", mv, want)
			}
			if !gone && !(load[mv.Slot] > 0) {
				t.Fatalf("%+v has no load", mv)
			}
		}
		next := applied(t, m, moves)
		clean := slices.Clone(load)
		for s := range clean {
			clean[s] = max(0, clean[s])
		}
		if before, after := fullest(m, clean), fullest(next, clean); !leaves && after > before*(1+1e-9) {
			t.Fatalf("the fullest had %v and gets %v", before, after)
		}
		unbounded := len(moves) < bound
		m = next
		if again := m.Balance(load, o); unbounded && len(again) != 0 {
			t.Fatalf("applied and asked again: %+v, after %+v", again, moves)
		}
	}
	for _, p := range m.Partitions() {
		if !slices.Contains(want, p) {
			t.Fatalf("partition %d still owns slots, should be %v", p, want)
		}
	}
}

func TestActive(t *testing.T) {
	for _, c := range []struct {
		owners []partition.ID
		n      int
		want   []partition.ID
	}{
		{[]partition.ID{0, 1, 2, 3}, 4, ids(4)},
		{[]partition.ID{0, 1, 2, 3}, 2, ids(2)},
		{[]partition.ID{0, 0, 1, 1}, 4, ids(4)},
		{[]partition.ID{0, 0, 1, 1}, 9, ids(4)},
		{[]partition.ID{5, 2, 5, 2}, 1, []partition.ID{2}},
		{[]partition.ID{5, 2, 5, 2}, 3, []partition.ID{0, 2, 5}},
		{[]partition.ID{5, 2, 5, 0}, 4, []partition.ID{0, 1, 2, 5}},
		{[]partition.ID{0}, 0, []partition.ID{}},
		{[]partition.ID{0}, -1, []partition.ID{}},
	} {
		if d := cmp.Diff(c.want, withOwners(t, c.owners...).Active(c.n)); d != "" {
			t.Errorf("%d of %v (-want +got):\n%s", c.n, c.owners, d)
		}
	}
}

func TestSize(t *testing.T) {
	for _, c := range []struct {
		load, capacity   float64
		now, least, most int
		want             int
	}{
		{0, 100, 1, 1, 10, 1},
		{80, 100, 1, 1, 10, 1},
		{81, 100, 1, 1, 10, 2},
		{1000, 100, 1, 1, 100, 13},
		{1000, 100, 1, 1, 10, 10},
		{100, 100, 4, 1, 10, 3},
		{100, 100, 3, 1, 10, 3},
		{99, 100, 3, 1, 10, 2},
		{0, 100, 3, 3, 10, 3},
		{0, 100, 1, 3, 10, 3},
		{1e300, 1e-300, 1, 1, 4096, 4096},
		{math.Inf(1), 1, 1, 1, 7, 7},
		{math.NaN(), 1, 2, 1, 7, 2},
		{-1, 1, 2, 1, 7, 2},
		{5, 0, 2, 1, 7, 2},
		{5, math.NaN(), 2, 1, 7, 2},
		{500, 1, 2, 9, 7, 9},
		{500, 1, 0, 0, 0, 1},
	} {
		if got := partition.Size(c.load, c.capacity, c.now, c.least, c.most); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

// TestSizeSettles checks that a constant load leads to a fixed point from any number of partitions, upward in one step and
// downward one by one, without changing direction.
func TestSizeSettles(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for range 3000 {
		load, capacity := 5000*rng.Float64(), 1+200*rng.Float64()
		least := 1 + rng.IntN(5)
		most := least + rng.IntN(60)
		n := least + rng.IntN(most-least+1)
		way := 0
		for range 2 + most - least {
			next := partition.Size(load, capacity, n, least, most)
			if next < least || next > most {
				t.Fatalf("%d is not within %d to %d", next, least, most)
			}
			if next > n && way < 0 || next < n && way > 0 {
				t.Fatalf("load %v of %v: %d became %d after the other way", load, capacity, n, next)
			}
			way += next - n
			n = next
		}
		if again := partition.Size(load, capacity, n, least, most); again != n {
			t.Fatalf("load %v of %v: %d becomes %d", load, capacity, n, again)
		}
	}
}

func BenchmarkBalance(b *testing.B) {
	m := newMap(b, partition.DefaultSlots, 200)
	load := zipf(rand.New(rand.NewPCG(1, 1)), m.Slots(), 0.8)
	for b.Loop() {
		m.Balance(load, partition.BalanceOptions{Start: 1.05, Stop: 1.05})
	}
}

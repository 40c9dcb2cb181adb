package partition

import (
	"cmp"
	"math"
	"slices"
)

// BalanceOptions are the options of [Map.Balance]. The zero value is useful.
type BalanceOptions struct {
	// Start is the load of the fullest partition, relative to the mean, above which slots
	// move; 0 means 1.25. Stop is the load at which the moves end; 0 means a fifth of the way from 1 to Start. The distance
	// between the two prevents slots from moving back and forth.
	Start, Stop float64
	// MaxMoves bounds the number of moves. 0 means an eighth of the slots, or
	// no bound if partitions join or leave.
	MaxMoves int
	// Partitions are the partitions that should own slots; nil means the current owners. Other
	// partitions give all their slots. A partition without slots gets its share of the load, even if the
	// loads are below Start. If there is no load, it gets no slots (Plan deals slots by number).
	Partitions []ID
}

// Balance returns the moves, ascending by slot, that make the partitions' loads even enough.
// load is the load of each slot, by number and in any unit; a load that is missing, negative or
// not finite counts as 0. The number of moves is minimal if all slots have equal loads; otherwise it is only
// small, because the general problem is bin packing. Balance guarantees:
//
//   - The fullest partition never gets fuller, unless another one leaves.
//   - A slot with more load than the mean of the other partitions stays, and other slots
//     leave its partition. The load of that partition is compared with the load of the slot, not with the mean.
//   - Slots without load stay, unless their partition leaves.
//   - Equal input gives equal moves. If MaxMoves did not limit them, the map after the
//     moves needs no further move for the same loads.
func (m *Map) Balance(load []float64, o BalanceOptions) []Move {
	b := newBalancer(m, load, o)
	if len(b.bins) == 0 {
		return nil
	}
	b.empty()
	if joined := b.joining(); len(joined) > 0 || len(b.above(b.start)) > 0 {
		b.fill(joined)
		b.even()
	}
	var moves []Move
	for s, o := range m.owners {
		if b.owners[s] != o {
			moves = append(moves, Move{Slot: Slot(s), From: o, To: b.owners[s]})
		}
	}
	return moves
}

const (
	defaultStart = 1.25

	leastGain = 1e-9 // least gain of a move, relative to the hottest slot; a smaller one may be a rounding error
)

// balancer makes a plan move by move. Each move lowers the larger
// of the two loads that it changes, so the plan is finite.
type balancer struct {
	from        *Map
	owners      []ID      // by slot, as planned
	load        []float64 // by slot; the largest is 1
	start, stop float64
	moves, most int // slots that change their owner, and their bound
	bins        []*bin
	left        []ID    // partitions that should own nothing
	mean        float64 // of the partitions that no single hot slot fills
}

// bin is a partition that should own slots.
type bin struct {
	id    ID
	slots []Slot  // with a load, ascending by it and then by number
	count int     // of all slots
	sum   float64 // added in the order of slots: equal for equal slots
}

func newBalancer(m *Map, load []float64, o BalanceOptions) *balancer {
	b := &balancer{from: m, owners: slices.Clone(m.owners), load: scaled(load, len(m.owners)), start: o.Start, stop: o.Stop, most: o.MaxMoves}
	if !(b.start >= 1) {
		b.start = defaultStart
	}
	if !(b.stop >= 1) {
		b.stop = 1 + (b.start-1)/5
	}
	owning := m.Partitions()
	want := slices.Clone(o.Partitions)
	if want == nil {
		want = owning
	}
	slices.Sort(want)
	byID := map[ID]*bin{}
	for _, p := range slices.Compact(want) {
		if p < MaxPartitions {
			byID[p] = &bin{id: p}
			b.bins = append(b.bins, byID[p])
		}
	}
	for s, p := range m.owners {
		if bin := byID[p]; bin != nil {
			bin.count++
			if b.load[s] > 0 {
				bin.slots = append(bin.slots, Slot(s))
			}
		}
	}
	for _, bin := range b.bins {
		slices.SortFunc(bin.slots, b.byLoad)
		b.addUp(bin)
	}
	for _, p := range owning {
		if byID[p] == nil {
			b.left = append(b.left, p)
		}
	}
	if b.most <= 0 {
		b.most = max(1, len(m.owners)/8)
		if len(b.left) > 0 || len(b.joining()) > 0 {
			b.most = len(m.owners)
		}
	}
	b.level()
	return b
}

// scaled returns the loads of all slots relative to the largest, so that no sum overflows.
func scaled(load []float64, slots int) []float64 {
	out := make([]float64, slots)
	for s := range min(slots, len(load)) {
		if l := load[s]; l > 0 && !math.IsInf(l, 0) {
			out[s] = l
		}
	}
	if top := slices.Max(out); top > 0 {
		for s := range out {
			out[s] /= top
		}
	}
	return out
}

// level computes the mean: a slot hotter than the mean fills a partition by
// itself, and the other partitions share the rest.
func (b *balancer) level() {
	byLoad := slices.Clone(b.load)
	slices.Sort(byLoad)
	sums := make([]float64, len(byLoad)+1) // of the coldest 0, 1, …
	for i, l := range byLoad {
		sums[i+1] = sums[i] + l
	}
	k, n := len(byLoad), len(b.bins)
	for n > 1 && k > 0 && byLoad[k-1] > sums[k]/float64(n) {
		k, n = k-1, n-1
	}
	if n > 0 {
		b.mean = sums[k] / float64(n)
	}
}

func (b *balancer) byLoad(s, t Slot) int {
	return cmp.Or(cmp.Compare(b.load[s], b.load[t]), cmp.Compare(s, t))
}

func (b *balancer) addUp(p *bin) {
	p.sum = 0
	for _, s := range p.slots {
		p.sum += b.load[s]
	}
}

// loose returns the slots of p that may move: all except a slot that fills p by itself.
func (b *balancer) loose(p *bin) []Slot {
	n := len(p.slots)
	if n > 0 && b.load[p.slots[n-1]] > b.mean {
		n--
	}
	return p.slots[:n]
}

// measure returns the load that p should have.
func (b *balancer) measure(p *bin) float64 {
	if n := len(p.slots); n > 0 {
		return max(b.mean, b.load[p.slots[n-1]])
	}
	return b.mean
}

func (b *balancer) joining() (out []*bin) {
	for _, p := range b.bins {
		if p.count == 0 {
			out = append(out, p)
		}
	}
	return out
}

// coldest returns the partition with the least load other than but.
func (b *balancer) coldest(but *bin) (r *bin) {
	for _, p := range b.bins {
		if p != but && (r == nil || p.sum < r.sum) {
			r = p
		}
	}
	return r
}

// above returns the partitions with more than a multiple of the load that they should have, the fullest first.
func (b *balancer) above(by float64) (out []*bin) {
	for _, p := range b.bins {
		if p.sum > by*b.measure(p) {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(p, q *bin) int { return cmp.Compare(q.sum/b.measure(q), p.sum/b.measure(p)) })
	return out
}

// give plans a move. From is nil for a partition that leaves; otherwise the slot has a load.
func (b *balancer) give(s Slot, from, to *bin) {
	if b.owners[s] == b.from.owners[s] {
		b.moves++
	}
	if b.owners[s] = to.id; to.id == b.from.owners[s] {
		b.moves--
	}
	to.count++
	if from != nil {
		from.count--
		i, _ := slices.BinarySearchFunc(from.slots, s, b.byLoad)
		from.slots = slices.Delete(from.slots, i, i+1)
		b.addUp(from)
	}
	if b.load[s] == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(to.slots, s, b.byLoad)
	to.slots = slices.Insert(to.slots, i, s)
	b.addUp(to)
}

// empty deals the slots of leaving partitions, the heaviest slots first. A partition gets slots up to
// the mean before the next one does, so that neighbours stay together.
func (b *balancer) empty() {
	share := (len(b.owners) + len(b.bins) - 1) / len(b.bins)
	for _, id := range b.left {
		slots := b.from.Owned(id)
		slices.SortStableFunc(slots, func(s, t Slot) int { return cmp.Compare(b.load[t], b.load[s]) })
		var to *bin
		for _, s := range slots {
			if b.moves >= b.most {
				return
			}
			switch l := b.load[s]; {
			case l > 0 && (to == nil || to.sum+l > b.mean):
				to = b.coldest(nil)
			case l == 0 && (to == nil || to.count >= share):
				to = slices.MinFunc(b.bins, func(p, q *bin) int { return cmp.Compare(p.count, q.count) })
			}
			b.give(s, nil, to)
		}
	}
}

// even moves slots until no partition is too full, or no move helps.
func (b *balancer) even() {
	for range 2 * len(b.owners) { // a bound on the time; each move lowers the sum of squares, so the plan ends
		if b.moves >= b.most || !slices.ContainsFunc(b.above(b.stop), b.shed) {
			return
		}
	}
}

// shed moves one slot away from p, and reports whether a move helps.
func (b *balancer) shed(p *bin) bool {
	to := b.coldest(p)
	if to == nil {
		return false
	}
	slots := b.loose(p)
	gap := p.sum - to.sum - leastGain // moving a slot below this lowers the larger of the two loads
	slots = slots[:b.below(slots, gap)]
	if len(slots) == 0 {
		return false
	}
	i := b.fitting(slots, p.sum-b.stop*b.measure(p), b.stop*b.mean-to.sum, gap)
	b.give(slots[b.below(slots, b.load[slots[i]])], p, to)
	return true
}

// fitting returns the index of the slot to move: the smallest slot that fits the receiver and suffices, otherwise the
// largest that fits, otherwise the one that balances the two partitions best.
func (b *balancer) fitting(slots []Slot, need, room, gap float64) int {
	if fit := b.below(slots, room); fit > 0 {
		return min(b.below(slots, need), fit-1)
	}
	i := b.below(slots, gap/2)
	if i == len(slots) || i > 0 && gap/2-b.load[slots[i-1]] < b.load[slots[i]]-gap/2 {
		i--
	}
	return i
}

// below returns the number of slots with a load below l.
func (b *balancer) below(slots []Slot, l float64) int {
	i, _ := slices.BinarySearchFunc(slots, l, func(s Slot, l float64) int { return cmp.Compare(b.load[s], l) })
	return i
}

// fill gives new partitions their share, from partitions with more than theirs.
func (b *balancer) fill(joined []*bin) {
	for _, to := range joined {
		takes := func(p *bin) bool {
			slots := b.loose(p)
			n := b.below(slots, min(p.sum-to.sum, b.mean-to.sum+leastGain)-leastGain/2)
			if p == to || n == 0 {
				return false
			}
			b.give(slots[b.below(slots, b.load[slots[n-1]])], p, to)
			return true
		}
		for b.moves < b.most && slices.ContainsFunc(b.above(1), takes) {
		}
	}
}

// Size returns the number of partitions for a total load. capacity is the load that one partition can carry,
// and now is the present number. If the present partitions are more than four fifths full, Size returns the least
// number that is not. If one partition less would still be less than half full, it returns one less. Repeated
// calls with the same load thus move in one direction and stop. The result is between least and most.
func Size(load, capacity float64, now, least, most int) int {
	least = max(least, 1)
	most = max(most, least)
	now = min(max(now, least), most)
	if !(load >= 0) || !(capacity > 0) {
		return now
	}
	switch {
	case load > 0.8*capacity*float64(now):
		return int(min(math.Ceil(load/(0.8*capacity)), float64(most)))
	case load < 0.5*capacity*float64(now-1):
		return max(now-1, least)
	}
	return now
}

// Active returns the n partitions that should own slots, ascending: the lowest current owners,
// and then the lowest other numbers. Partitions with high numbers thus leave first. The result is
// shorter than n if n is above MaxPartitions or the number of slots.
func (m *Map) Active(n int) []ID {
	n = max(0, min(n, MaxPartitions, len(m.owners)))
	out := m.Partitions()
	out = out[:min(n, len(out))]
	for p := ID(0); len(out) < n; p++ {
		if i, owns := slices.BinarySearch(out, p); !owns {
			out = slices.Insert(out, i, p)
		}
	}
	return out
}

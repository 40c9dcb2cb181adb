package experiment

import "github.com/orbweaver/orbweaver/partition"

// Ways to say which of n partitions owns a host. Each is given the hosts' hashes, and returns the
// owners for n partitions, given those for another number of them, or nil at first.
type assigner struct {
	name   string
	assign func(hashes []uint64, n int, before []int) []int
	// handsOver says that the state of what changes its owner goes with it. Else the new owner
	// knows nothing of it, and fetches it again.
	handsOver bool
}

// assigners are ours and those that it is compared with.
func assigners(hash partition.Hash, hosts []string) []assigner {
	slots := make([]partition.Slot, len(hosts))
	for i, h := range hosts {
		slots[i] = hash.Slot(h)
	}
	each := func(f func(hash uint64, n int) int) func([]uint64, int, []int) []int {
		return func(hashes []uint64, n int, _ []int) []int {
			out := make([]int, len(hashes))
			for i, h := range hashes {
				out[i] = f(h, n)
			}
			return out
		}
	}
	var slotMap, table *partition.Map
	byMap := func(m **partition.Map, size int, slot func(i int) partition.Slot) func([]uint64, int, []int) []int {
		return func(hashes []uint64, n int, before []int) []int {
			*m = resized(*m, size, n, before == nil)
			out := make([]int, len(hashes))
			for i := range hashes {
				out[i] = int((*m).Owner(slot(i)))
			}
			return out
		}
	}
	return []assigner{
		{"two-level map", byMap(&slotMap, hash.Slots(), func(i int) partition.Slot { return slots[i] }), true},
		{"hash mod n", each(func(h uint64, n int) int { return int(h % uint64(n)) }), false},
		{"jump hash", each(jump), false},
		{"host table", byMap(&table, len(hosts), func(i int) partition.Slot { return partition.Slot(i) }), true},
	}
}

// resized is the map with another number of owners, or a first one.
func resized(m *partition.Map, slots, n int, first bool) *partition.Map {
	var err error
	if first {
		m, err = partition.NewMap(slots, n)
	} else {
		var moves []partition.Move
		if moves, err = m.Plan(m.Active(n)); err == nil {
			m, err = m.Apply(moves)
		}
	}
	if err != nil {
		panic("experiment: " + err.Error()) // the numbers are this package's own: unreachable
	}
	return m
}

// jump is the jump consistent hash of Lamping and Veach ("A Fast, Minimal Memory, Consistent
// Hash Algorithm", 2014): the key's own random numbers say at which numbers of partitions it
// would have moved to the newest one; the last of these up to n is where it is.
func jump(key uint64, n int) int {
	const multiplier = 2862933555777941757 // of a linear congruential generator, the paper's
	at := 0
	for next := 0; next < n; {
		at = next
		key = key*multiplier + 1
		draw := float64(key>>33+1) / (1 << 31) // 0 < draw <= 1
		next = int(float64(at+1) / draw)
	}
	return at
}

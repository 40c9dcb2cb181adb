package experiment

import "github.com/orbweaver/orbweaver/partition"

// assigner is a way to assign hosts to n partitions. assign gets the hashes of the hosts and their current owners, nil at
// first, and returns their new owners.
type assigner struct {
	name   string
	assign func(hashes []uint64, n int, before []int) []int
	// handsOver says that the state of a host moves with it. Otherwise the new owner does not know its pages, and fetches
	// them again.
	handsOver bool
}

// assigners returns our way and those that it is compared with.
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

// resized returns the map with another number of owners, or a first map.
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
		panic("experiment: " + err.Error()) // unreachable: this package chooses the numbers
	}
	return m
}

// jump is the jump consistent hash of Lamping and Veach ("A Fast, Minimal Memory, Consistent Hash Algorithm", 2014). Random
// numbers of the key determine at which numbers of partitions it moves to the newest one; the last of these up to n is its
// partition.
func jump(key uint64, n int) int {
	const multiplier = 2862933555777941757 // of the paper's linear congruential generator
	at := 0
	for next := 0; next < n; {
		at = next
		key = key*multiplier + 1
		draw := float64(key>>33+1) / (1 << 31) // 0 < draw <= 1
		next = int(float64(at+1) / draw)
	}
	return at
}

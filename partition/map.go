package partition

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Map is the second level: the owner of each slot. A Map is immutable;
// a change makes another Map with the next epoch.
type Map struct {
	epoch  Epoch
	owners []ID // by slot
}

// NewMap deals the slots to partitions 0 to n-1 in turn, at epoch 1.
func NewMap(slots, n int) (*Map, error) {
	if slots < 1 || slots > MaxSlots {
		return nil, fmt.Errorf("number of slots %d is not between 1 and %d", slots, MaxSlots)
	}
	if n < 1 || n > MaxPartitions || n > slots {
		return nil, fmt.Errorf("number of partitions %d is not between 1 and %d, or above the %d slots", n, MaxPartitions, slots)
	}
	m := &Map{epoch: 1, owners: make([]ID, slots)}
	for s := range m.owners {
		m.owners[s] = ID(s % n)
	}
	return m, nil
}

// Epoch returns the version of m.
func (m *Map) Epoch() Epoch { return m.epoch }

// Slots returns the number of slots.
func (m *Map) Slots() int { return len(m.owners) }

// Owner returns the partition that owns s.
func (m *Map) Owner(s Slot) ID { return m.owners[s] }

// Owned returns the slots of one partition, ascending.
func (m *Map) Owned(p ID) []Slot {
	var out []Slot
	for s, o := range m.owners {
		if o == p {
			out = append(out, Slot(s))
		}
	}
	return out
}

// Partitions returns the partitions that own at least one slot, ascending.
func (m *Map) Partitions() []ID {
	out := slices.Clone(m.owners)
	slices.Sort(out)
	return slices.Compact(out)
}

// Move gives one slot to another owner.
type Move struct {
	Slot     Slot
	From, To ID
}

// Plan returns the moves that make exactly the given partitions owners, with
// shares that differ by at most one slot. The number of moves is minimal:
// from n to n+1 equal partitions it is ⌊M/(n+1)⌋. A receiver reads the runs of each partition
// that gives it slots, so Plan forms few pairs of giver and receiver: fewer than there are
// givers and receivers together. Moves are ordered by slot, and equal input gives an equal plan.
func (m *Map) Plan(partitions []ID) ([]Move, error) {
	want := slices.Clone(partitions)
	slices.Sort(want)
	want = slices.Compact(want)
	if len(want) == 0 || len(want) > len(m.owners) || want[len(want)-1] >= MaxPartitions {
		return nil, fmt.Errorf("cannot deal %d slots to %d partitions", len(m.owners), len(want))
	}
	have := make(map[ID]int, len(want))
	for _, o := range m.owners {
		have[o]++
	}
	quota := shares(len(m.owners), want, have)
	var moves []Move
	for s, o := range m.owners { // the slots that each owner must give away
		if have[o] > quota[o] {
			have[o]--
			moves = append(moves, Move{Slot: Slot(s), From: o})
		}
	}
	slices.SortStableFunc(moves, func(a, b Move) int { return cmp.Compare(a.From, b.From) })
	next := 0
	for i := range moves {
		for have[want[next]] >= quota[want[next]] {
			next++
		}
		moves[i].To = want[next]
		have[want[next]]++
	}
	slices.SortFunc(moves, func(a, b Move) int { return cmp.Compare(a.Slot, b.Slot) })
	return moves, nil
}

// shares returns the number of slots that each partition should own: equal shares, and one slot of the
// remainder for each of the partitions that own most, which moves the fewest slots.
func shares(slots int, want []ID, have map[ID]int) map[ID]int {
	byLoad := slices.Clone(want)
	slices.SortStableFunc(byLoad, func(a, b ID) int { return have[b] - have[a] })
	quota := make(map[ID]int, len(want))
	for i, p := range byLoad {
		quota[p] = slots / len(want)
		if i < slots%len(want) {
			quota[p]++
		}
	}
	return quota
}

// Apply returns the map of the next epoch. A move whose From does not own the
// slot is an error, because the plan is for another map.
func (m *Map) Apply(moves []Move) (*Map, error) {
	next := &Map{epoch: m.epoch + 1, owners: slices.Clone(m.owners)}
	for _, mv := range moves {
		if int(mv.Slot) >= len(m.owners) || next.owners[mv.Slot] != mv.From {
			return nil, fmt.Errorf("slot %d is not partition %d's at epoch %d", mv.Slot, mv.From, m.epoch)
		}
		next.owners[mv.Slot] = mv.To
	}
	return next, nil
}

var errMap = errors.New("damaged partition map")

// MarshalBinary encodes m: a version byte, the epoch, the number of slots, then
// per slot the owner as a varint.
func (m *Map) MarshalBinary() ([]byte, error) {
	b := []byte{1}
	b = binary.AppendUvarint(b, uint64(m.epoch))
	b = binary.AppendUvarint(b, uint64(len(m.owners)))
	for _, o := range m.owners {
		b = binary.AppendUvarint(b, uint64(o))
	}
	return b, nil
}

// UnmarshalBinary decodes the result of MarshalBinary. Any other bytes are an error.
func (m *Map) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || b[0] != 1 {
		return fmt.Errorf("%w: unknown version", errMap)
	}
	r := bytes.NewReader(b[1:]) // returns 0 for numbers beyond the end
	epoch, _ := binary.ReadUvarint(r)
	slots, _ := binary.ReadUvarint(r)
	if epoch == 0 || slots == 0 || slots > MaxSlots {
		return errMap
	}
	got := Map{epoch: Epoch(epoch), owners: make([]ID, slots)}
	for s := range got.owners {
		o, _ := binary.ReadUvarint(r)
		if o >= MaxPartitions {
			return errMap
		}
		got.owners[s] = ID(o)
	}
	if again, err := got.MarshalBinary(); err != nil || !bytes.Equal(again, b) {
		return errMap // b is too short or too long, or a number is not in its shortest form
	}
	*m = got
	return nil
}

package frontier

import (
	"container/heap"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// Slots go to another partition and come from one. One that goes is frozen, then released;
// one that comes is awaited, then taken, and opened when a commit says so.

// Freeze stops asking for URLs of some slots: requests under way go on to their end, and
// what is added is kept. It lasts until Release.
func (f *Frontier) Freeze(ids []partition.Slot) {
	if f.frozen == nil {
		f.frozen = map[partition.Slot]bool{}
	}
	for _, id := range ids {
		f.frozen[id] = true
		s := f.slots[id]
		if s == nil {
			continue
		}
		for _, u := range s.units {
			switch u.place {
			case waiting:
				heap.Remove(&f.timers, u.index)
				u.place = idle
			case ready:
				heap.Remove(&f.ready, u.index)
				u.place = idle
			}
		}
	}
}

// Still reports whether nothing of a slot is under way: no request, and no load.
func (f *Frontier) Still(id partition.Slot) bool {
	s := f.slots[id]
	return s == nil || s.asked == 0 && !s.loading
}

// Release forgets frozen slots, all of whose changes are in the delta of this moment, and
// describes those that hold anything. They must be still.
func (f *Frontier) Release(ids []partition.Slot) (state []blobschema.SlotSummary) {
	for _, id := range ids {
		delete(f.frozen, id)
		s := f.slots[id]
		if s == nil {
			continue
		}
		if s.loaded {
			s.due = s.firstDue()
			f.unload(s)
		}
		if sum := s.summary(); sum != (blobschema.SlotSummary{Slot: id}) {
			state = append(state, sum)
		}
		f.counts.Known -= int64(s.known)
		f.counts.Pending -= int64(s.npending)
		f.counts.Unexamined -= int64(s.unexamined)
		f.counts.Urgent -= int64(s.urgent)
		f.resident -= len(s.taken) + len(s.fresh)
		f.fresh -= len(s.fresh)
		f.unloaded--
		delete(f.slots, id)
	}
	return state
}

// Await makes some slots ones whose state is elsewhere: what is added to them is appended
// unexamined, and they are not loaded before Open.
func (f *Frontier) Await(ids []partition.Slot) {
	for _, id := range ids {
		s := f.slots[id]
		if s == nil {
			s = &slot{id: id}
			f.slots[id] = s
			f.unloaded++
		}
		s.awaited = true
	}
}

// Take adds what is known of awaited slots.
func (f *Frontier) Take(state []blobschema.SlotSummary) {
	for _, sum := range state {
		s := f.slots[sum.Slot]
		s.known += sum.Known
		s.npending += sum.Pending
		s.unexamined += sum.Unexamined
		s.urgent += int(sum.Urgent)
		s.due = sum.Due
		f.counts.Urgent += int64(sum.Urgent)
		f.counts.Known += int64(sum.Known)
		f.counts.Pending += int64(sum.Pending)
		f.counts.Unexamined += int64(sum.Unexamined)
	}
}

// Open makes awaited slots that were taken like any others that are not loaded.
func (f *Frontier) Open(ids []partition.Slot) {
	for _, id := range ids {
		s := f.slots[id]
		s.awaited = false
		if s.summary() == (blobschema.SlotSummary{Slot: id}) && len(s.taken)+len(s.fresh) == 0 && !s.want {
			delete(f.slots, id) // it holds nothing: as good as loaded
			f.unloaded--
		}
	}
}

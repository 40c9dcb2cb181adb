package frontier

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// Slots move between partitions. A slot that leaves is frozen, then released. A slot that arrives is
// awaited, then taken, and opened once a commit holds it.

// Freeze stops the requests of some slots until Release. Requests under way finish, and added URLs are kept.
func (f *Frontier) Freeze(ids []partition.Slot) {
	for _, id := range ids {
		f.schedule.Freeze(&f.slots.open(id).keys)
	}
}

// Still reports whether no request and no load of a slot is under way.
func (f *Frontier) Still(id partition.Slot) bool {
	s := f.slots.byID[id]
	if s == nil {
		return true
	}
	for p := range s.parts {
		if p.InFlight() > 0 || p.loading {
			return false
		}
	}
	return true
}

// Release drops frozen slots and returns the summaries of those that hold anything. The slots must be still, and
// the delta that was just taken must hold all their changes.
func (f *Frontier) Release(ids []partition.Slot) (state []blobschema.SlotSummary) {
	for _, id := range ids {
		s := f.slots.byID[id]
		if s == nil {
			continue
		}
		for p := range s.parts {
			if p.loaded {
				p.due = p.FirstDue(false)
				f.unload(p)
			}
		}
		state = s.summaries(state)
		for p := range s.parts {
			f.slots.forget(p, f.schedule)
		}
		delete(f.slots.byID, id)
	}
	return state
}

// Await marks slots whose state is still elsewhere. Until Open, URLs for them are appended unexamined, and no part
// of them is loaded.
func (f *Frontier) Await(ids []partition.Slot) {
	for _, id := range ids {
		s := f.slots.byID[id]
		if s == nil {
			s = newSlot(id)
			f.slots.byID[id] = s
			f.slots.unloaded++
		}
		s.awaited = true
	}
}

// Take adds the summaries of awaited slots.
func (f *Frontier) Take(state []blobschema.SlotSummary) {
	for _, sum := range state {
		s := f.slots.byID[sum.Slot]
		p := s.of(sum.Part.First())
		for p.is.Depth < sum.Part.Depth { // the previous owner has split it
			var sums [2]blobschema.SlotSummary
			for i, half := range p.is.Halves() {
				sums[i].Part = half
			}
			halves := f.split(p, sums)
			p = halves[sum.Part.Prefix>>(sum.Part.Depth-p.is.Depth-1)&1]
		}
		f.slots.know(p, &sum, f.schedule)
	}
}

// Open ends the wait for slots that were taken: from now on their parts can be loaded.
func (f *Frontier) Open(ids []partition.Slot) {
	f.awaited = true // somebody may wait for a part of them: the next Wanted finds out
	for _, id := range ids {
		s := f.slots.byID[id]
		s.awaited = false
		if p := s.of(0); p.summary() == (blobschema.SlotSummary{Slot: id}) && len(p.taken)+len(p.fresh) == 0 && !p.want {
			delete(f.slots.byID, id) // it holds nothing, so it counts as loaded
			f.slots.unloaded--
		}
	}
}

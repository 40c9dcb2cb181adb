package frontier

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// Slots go to another partition and come from one. One that goes is frozen, then released;
// one that comes is awaited, then taken, and opened when a commit says so.

// Freeze stops asking for URLs of some slots: requests under way go on to their end, and
// what is added is kept. It lasts until Release.
func (f *Frontier) Freeze(ids []partition.Slot) {
	for _, id := range ids {
		f.schedule.Freeze(&f.slots.open(id).keys)
	}
}

// Still reports whether nothing of a slot is under way: no request, and no load.
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

// Release forgets frozen slots, all of whose changes are in the delta of this moment, and
// describes those that hold anything. They must be still.
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

// Await makes some slots ones whose state is elsewhere: what is added to them is appended
// unexamined, and they are not loaded before Open.
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

// Take adds what is known of awaited slots.
func (f *Frontier) Take(state []blobschema.SlotSummary) {
	for _, sum := range state {
		s := f.slots.byID[sum.Slot]
		p := s.of(sum.Part.First())
		for p.is.Depth < sum.Part.Depth { // it comes in parts
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

// Open makes awaited slots that were taken like any others that are not loaded.
func (f *Frontier) Open(ids []partition.Slot) {
	for _, id := range ids {
		s := f.slots.byID[id]
		s.awaited = false
		if p := s.of(0); p.summary() == (blobschema.SlotSummary{Slot: id}) && len(p.taken)+len(p.fresh) == 0 && !p.want {
			delete(f.slots.byID, id) // it holds nothing: as good as loaded
			f.slots.unloaded--
		}
	}
}

package frontier

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/partition"
)

// slot is a bucket of politeness keys. Its URLs are in parts.
type slot struct {
	// root is the only part of a slot that was never split. It is not a pointer, and its index comes
	// first, so that finding a URL touches few cache lines.
	root part
	// dir has a pointer to a part for each value of the first bits of a fingerprint. A part with fewer
	// bits than dir has several pointers.
	dir     []*part
	id      partition.Slot
	awaited bool           // its state is still elsewhere, so no part is loaded
	loaded  int            // number of loaded parts; while there is one, the keys are in memory
	keys    schedule.Group // politeness keys
}

func newSlot(id partition.Slot) *slot {
	s := &slot{id: id, keys: schedule.Group{Slot: id}}
	s.root = part{slot: s, Pool: schedule.NewPool(&s.keys)}
	s.dir = []*part{&s.root}
	return s
}

// depth returns the number of bits by which dir is indexed (the global depth).
func (s *slot) depth() int { return bits.Len(uint(len(s.dir))) - 1 }

// of returns the part that a fingerprint belongs to.
func (s *slot) of(fp uint64) *part {
	if !s.root.split {
		return &s.root
	}
	return s.dir[fp>>(64-s.depth())]
}

// parts yields the parts, by prefix.
func (s *slot) parts(yield func(*part) bool) {
	for i := 0; i < len(s.dir); i += 1 << (s.depth() - int(s.dir[i].is.Depth)) {
		if !yield(s.dir[i]) {
			return
		}
	}
}

// loading reports whether any part is being loaded.
func (s *slot) loading() bool {
	for p := range s.parts {
		if p.loading {
			return true
		}
	}
	return false
}

// put creates a part for its range of fingerprints. dir grows if necessary.
func (s *slot) put(is blobschema.Part) *part {
	if is.Depth == 0 {
		return &s.root
	}
	p := &part{slot: s, is: is, Pool: schedule.NewPool(&s.keys)}
	s.root.split = true
	for s.depth() < int(is.Depth) {
		dir := make([]*part, 0, 2*len(s.dir))
		for _, q := range s.dir {
			dir = append(dir, q, q)
		}
		s.dir = dir
	}
	width := 1 << (s.depth() - int(is.Depth))
	for i := range width {
		s.dir[int(is.Prefix)*width+i] = p
	}
	return p
}

// summaries appends the summary of each part that holds anything.
func (s *slot) summaries(out []blobschema.SlotSummary) []blobschema.SlotSummary {
	for p := range s.parts {
		if sum := p.summary(); sum != (blobschema.SlotSummary{Slot: s.id}) {
			out = append(out, sum)
		}
	}
	return out
}

// slots holds the slots that hold anything, or did since the step began.
type slots struct {
	byID     map[partition.Slot]*slot
	unloaded int // parts that are not loaded and hold something
	fresh    int // entries appended to them that no delta holds yet
	resident int // URLs and appended entries in memory
	sum      struct {
		known      int64 // URLs
		pending    int64 // pending URLs of unloaded parts
		unexamined int64
	}
}

func newSlots() slots { return slots{byID: map[partition.Slot]*slot{}} }

// open returns a slot. A new slot counts as loaded.
func (t *slots) open(id partition.Slot) *slot {
	s := t.byID[id]
	if s == nil {
		s = newSlot(id)
		s.root.loaded, s.loaded = true, 1
		t.byID[id] = s
	}
	return s
}

// partOf returns the part of a fingerprint; nil if the slot holds nothing.
func (t *slots) partOf(id partition.Slot, fp uint64) *part {
	if s := t.byID[id]; s != nil {
		return s.of(fp)
	}
	return nil
}

// find returns the place of a URL, if its part is loaded.
func (t *slots) find(id partition.Slot, fp uint64) (p *part, place uint32, k kind) {
	if p = t.partOf(id, fp); p == nil || !p.loaded {
		return nil, 0, absent
	}
	place, k = p.find(fp)
	return p, place, k
}

// sorted returns the slots in order.
func (t *slots) sorted() []*slot {
	list := slices.Collect(maps.Values(t.byID))
	slices.SortFunc(list, func(a, b *slot) int { return cmp.Compare(a.id, b.id) })
	return list
}

// parts yields all parts, by slot and prefix.
func (t *slots) parts(yield func(*part) bool) {
	for _, s := range t.sorted() {
		for p := range s.parts {
			if !yield(p) {
				return
			}
		}
	}
}

// due returns the unloaded parts that are due, in no order, and when the next one is, in Unix milliseconds.
func (t *slots) due(now time.Time, urgentOnly, active bool) (due []*part, next int64) {
	next = never
	for _, s := range t.byID {
		if s.awaited || s.keys.Frozen {
			continue
		}
		for p := range s.parts {
			if p.loaded || p.loading {
				continue
			}
			if at := p.dueAt(now, urgentOnly, active); at <= now.UnixMilli() {
				due = append(due, p)
			} else {
				next = min(next, at)
			}
		}
	}
	return due, next
}

// append adds an entry to a part unexamined.
func (t *slots) append(p *part, q blobschema.Queued) {
	p.fresh = append(p.fresh, q)
	p.unexamined++
	t.fresh++
	t.resident++
	t.sum.unexamined++
}

// know adds the summary of an unloaded part.
func (t *slots) know(p *part, sum *blobschema.SlotSummary, s *schedule.Schedule) {
	p.known += sum.Known
	p.npending += sum.Pending
	p.unexamined += sum.Unexamined
	p.due = sum.Due
	t.sum.known += int64(sum.Known)
	t.sum.pending += int64(sum.Pending)
	t.sum.unexamined += int64(sum.Unexamined)
	s.CountUrgent(&p.Pool, int(sum.Urgent))
}

// forget undoes know, for a part that is being loaded or leaves.
func (t *slots) forget(p *part, s *schedule.Schedule) {
	t.sum.known -= int64(p.known)
	t.sum.pending -= int64(p.npending)
	t.sum.unexamined -= int64(p.unexamined)
	s.CountUrgent(&p.Pool, -p.Urgent())
	t.resident -= len(p.taken) + len(p.fresh)
	t.fresh -= len(p.fresh)
	t.unloaded--
}

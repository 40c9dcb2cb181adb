package frontier

import (
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// Dirty reports whether a delta would hold anything.
func (f *Frontier) Dirty() bool {
	return f.examined || f.fresh+len(f.dirtySlots)+len(f.settled)+len(f.dirtyUnits)+len(f.dirtySites) > 0
}

// Delta returns what changed since the last delta, as a run to be committed, with
// what was observed of the units that were asked, and marks it as under way. seq is the
// number of the commit that will hold it, and the page records of what was settled. It
// ends with Committed; a step whose commit fails drops the whole frontier.
func (f *Frontier) Delta(seq uint64) (*blobschema.Run, []blobschema.HostObservation) {
	f.delta++
	f.examined = false
	run := &blobschema.Run{Seen: f.settled}
	f.settled = nil
	run.Seen = f.giveOrigins(run.Seen, blobschema.Origin{Partition: f.cfg.Partition, Seq: uint32(seq)})
	f.takeDirty(run)
	observed := f.takeStates(run)
	if f.fresh > 0 {
		f.fresh = 0
		for _, id := range f.sortedSlots() {
			s := f.slots[id]
			run.Queued = append(run.Queued, s.fresh...)
			s.taken = append(s.taken, s.fresh...)
			s.fresh = nil
		}
	}
	return run, observed
}

// giveOrigins says of all that was settled since the last delta where its page records
// are: in the run, in memory, and with what is to be asked for again already. It returns
// what is still so: a URL may have been settled in one generation after another.
func (f *Frontier) giveOrigins(settled []blobschema.Seen, o blobschema.Origin) []blobschema.Seen {
	kept := settled[:0]
	for _, e := range settled {
		if e.State != blobschema.Forwarded { // which has no page record here
			e.Origin = o
		}
		s := f.slots[e.Slot]
		switch at, k := s.find(e.Fingerprint); {
		case k == inMarks && s.marks[at].gen > e.Generation:
			continue
		case k == inMarks && s.marks[at].gen == e.Generation:
			s.marks[at].part, s.marks[at].seq = uint16(e.Origin.Partition), e.Origin.Seq
		case k == inItems && s.items[at].gen > e.Generation && e.Origin == o:
			s.setRare(at, func(r *rare) { r.former = o })
		}
		kept = append(kept, e)
	}
	return kept
}

// takeDirty puts the pending URLs that changed into a run.
func (f *Frontier) takeDirty(run *blobschema.Run) {
	n := 0
	for _, s := range f.dirtySlots {
		n += len(s.dirty)
	}
	run.Queued = make([]blobschema.Queued, 0, n+f.fresh)
	for _, s := range f.dirtySlots {
		for _, i := range s.dirty {
			if it := &s.items[i]; it.bits&isDirty != 0 { // else it is not that item any more, or it is here twice
				it.bits &^= isDirty
				run.Queued = append(run.Queued, s.queued(i))
			}
		}
		s.dirty = nil
	}
	f.dirtySlots = nil
}

// takeStates puts the states of units and sites that changed into a run.
func (f *Frontier) takeStates(run *blobschema.Run) (observed []blobschema.HostObservation) {
	for _, u := range f.dirtyUnits {
		u.dirty = false
		u.version++
		run.Hosts = append(run.Hosts, blobschema.HostState{Slot: u.slot.id, Host: u.key, Version: u.version, Data: u.encode()})
		if u.observed {
			u.observed = false
			observed = append(observed, f.observation(u))
		}
	}
	f.dirtyUnits = f.dirtyUnits[:0]
	for _, st := range f.dirtySites {
		st.dirty = false
		st.version++
		run.Hosts = append(run.Hosts, blobschema.HostState{
			Slot: st.unit.slot.id, Host: JoinSite(st.unit.key, st.name), Version: st.version, Data: st.encode(),
		})
	}
	f.dirtySites = f.dirtySites[:0]
	return observed
}

// observation is what others may know of a unit. Its score is the capability, whatever
// the policy.
func (f *Frontier) observation(u *unit) blobschema.HostObservation {
	view := HostView{Pending: u.pending, Pace: &u.pace, unit: u}
	return blobschema.HostObservation{
		Host: u.key, Slot: u.slot.id, Conn: u.pace.ConnTime, Resp: u.pace.RespTime,
		PerConnection: u.pace.PerConnection, Requests: u.requests, Failures: u.failures,
		Score: view.capability(f.quality), Known: u.settled + uint64(u.pending), Pending: uint64(u.pending), Capped: u.capped,
	}
}

// Committed says that the last delta is committed: slots untouched since may be
// unloaded, and appended entries need no copy in memory.
func (f *Frontier) Committed() {
	f.committed = f.delta
	defer f.room() // now slots can be unloaded: keep to the memory bound also while all is busy
	if f.unloaded == 0 {
		return
	}
	for _, s := range f.slots {
		if !s.loading {
			f.resident -= len(s.taken)
			s.taken = nil
		}
	}
}

func (f *Frontier) sortedSlots() []partition.Slot {
	ids := make([]partition.Slot, 0, len(f.slots))
	for id := range f.slots {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Summaries describes every slot that holds anything, by slot.
func (f *Frontier) Summaries() []blobschema.SlotSummary {
	out := make([]blobschema.SlotSummary, 0, len(f.slots))
	for _, id := range f.sortedSlots() {
		if sum := f.slots[id].summary(); sum != (blobschema.SlotSummary{Slot: id}) {
			out = append(out, sum)
		}
	}
	return out
}

func (s *slot) summary() blobschema.SlotSummary {
	sum := blobschema.SlotSummary{Slot: s.id, Known: s.known, Pending: s.npending, Unexamined: s.unexamined, Due: s.due, Urgent: uint32(s.urgent)}
	if s.loaded {
		sum.Known = uint32(s.resident())
		sum.Pending = uint32(s.npend)
		sum.Due = s.firstDue()
	}
	return sum
}

// firstDue is when the first of the slot's pending URLs may be asked for, in Unix
// milliseconds; 1 for at once, 0 for never.
func (s *slot) firstDue() int64 {
	due := int64(0)
	for _, u := range s.units {
		t := int64(0)
		switch {
		case u.place == busy:
			t = 1
		case u.waits():
			t = max(1, u.readyAt().UnixMilli())
		}
		if t > 0 && (due == 0 || t < due) {
			due = t
		}
	}
	return due
}

package frontier

import (
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// Dirty reports whether a delta would hold anything.
func (f *Frontier) Dirty() bool {
	return f.examined || len(f.full) > 0 || f.fresh+len(f.dirtyParts)+len(f.settled)+len(f.dirtyUnits)+len(f.dirtySites) > 0
}

// Delta returns what changed since the last delta, as a run to be committed, with
// what was observed of the units that were asked, and marks it as under way. seq is the
// number of the commit that will hold it, and the page records of what was settled. It
// ends with Committed; a step whose commit fails drops the whole frontier.
func (f *Frontier) Delta(seq uint64) (*blobschema.Run, []blobschema.HostObservation) {
	f.delta++
	f.examined = false
	run := &blobschema.Run{Settled: f.settled}
	f.settled = nil
	run.Settled = f.giveOrigins(run.Settled, blobschema.Origin{Partition: f.cfg.Partition, Seq: uint32(seq)})
	f.takeDirty(run)
	observed := f.takeStates(run)
	if f.fresh > 0 {
		f.fresh = 0
		for _, id := range f.sortedSlots() {
			for p := range f.slots[id].parts {
				run.Queued = append(run.Queued, p.fresh...)
				p.taken = append(p.taken, p.fresh...)
				p.fresh = nil
			}
		}
	}
	return run, observed
}

// giveOrigins says of all that was settled since the last delta where its page records
// are: in the run, in memory, and with what is to be asked for again already. It returns
// what is still so: a URL may have been settled in one generation after another.
func (f *Frontier) giveOrigins(settled []blobschema.Settled, o blobschema.Origin) []blobschema.Settled {
	kept := settled[:0]
	for _, e := range settled {
		if e.State != blobschema.Forwarded { // which has no page record here
			e.Origin = o
		}
		p := f.slots[e.Slot].of(e.Fingerprint)
		switch at, k := p.find(e.Fingerprint); {
		case k == inMarks && p.marks[at].gen > e.Generation:
			continue
		case k == inMarks && p.marks[at].gen == e.Generation:
			p.marks[at].part, p.marks[at].seq = uint16(e.Origin.Partition), e.Origin.Seq
		case k == inItems && p.items[at].gen > e.Generation && e.Origin == o:
			p.setRare(at, func(r *rare) { r.former = o })
		}
		kept = append(kept, e)
	}
	return kept
}

// takeDirty puts the pending URLs that changed into a run.
func (f *Frontier) takeDirty(run *blobschema.Run) {
	n := 0
	for _, p := range f.dirtyParts {
		n += len(p.dirty)
	}
	run.Queued = make([]blobschema.Queued, 0, n+f.fresh)
	for _, p := range f.dirtyParts {
		for _, i := range p.dirty {
			if it := &p.items[i]; it.bits&isDirty != 0 { // else it is not that item any more, or it is here twice
				it.bits &^= isDirty
				run.Queued = append(run.Queued, p.queued(i))
			}
		}
		p.dirty = nil
	}
	f.dirtyParts = nil
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
			Slot: st.unit.slot.id, Host: joinSite(st.unit.key, st.name), Version: st.version, Data: st.encode(),
		})
	}
	f.dirtySites = f.dirtySites[:0]
	return observed
}

// observation is what others may know of a unit. Its score is the capability, whatever
// the policy.
func (f *Frontier) observation(u *unit) blobschema.HostObservation {
	view := HostView{Pending: u.pending, Allowed: u.allowed, Pace: &u.pace, stands: u.stands}
	return blobschema.HostObservation{
		Host: u.key, Slot: u.slot.id, Conn: u.pace.ConnTime, Resp: u.pace.RespTime,
		PerConnection: u.pace.PerConnection, Requests: u.requests, Failures: u.failures,
		Score: view.capability(f.quality), Known: u.settled + uint64(u.pending), Pending: uint64(u.pending), Capped: u.capped,
	}
}

// Committed says that the last delta is committed: parts untouched since may be
// unloaded, and appended entries need no copy in memory.
func (f *Frontier) Committed() {
	f.committed = f.delta
	f.halve()
	defer f.room() // now parts can be unloaded: keep to the memory bound also while all is busy
	if f.unloaded+len(f.full) == 0 {
		return
	}
	for _, s := range f.slots {
		for p := range s.parts {
			if !p.loading {
				f.resident -= len(p.taken)
				p.taken = nil
			}
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

// Summaries describes every part that holds anything, by slot and prefix. The parts of a slot
// that is in several are all there, for they say which they are.
func (f *Frontier) Summaries() []blobschema.SlotSummary {
	out := make([]blobschema.SlotSummary, 0, len(f.slots))
	for _, id := range f.sortedSlots() {
		out = f.slots[id].summaries(out)
	}
	return out
}

func (s *slot) summaries(out []blobschema.SlotSummary) []blobschema.SlotSummary {
	for p := range s.parts {
		if sum := p.summary(); sum != (blobschema.SlotSummary{Slot: s.id}) {
			out = append(out, sum)
		}
	}
	return out
}

func (p *part) summary() blobschema.SlotSummary {
	sum := blobschema.SlotSummary{
		Slot: p.slot.id, Part: p.is, Known: p.known, Pending: p.npending, Unexamined: p.unexamined, Due: p.due, Urgent: uint32(p.urgent),
	}
	if p.loaded {
		sum.Known = uint32(p.resident())
		sum.Pending = uint32(p.npend)
		sum.Due = p.firstDue(false)
	}
	return sum
}

// firstDue is when the first of the part's pending URLs may be asked for, in Unix
// milliseconds; 1 for at once, 0 for never. With urgentOnly it is of those that [Frontier.Next] returns then; of what was
// found, only retries count.
func (p *part) firstDue(urgentOnly bool) int64 {
	due := int64(0)
	sooner := func(ms int64) {
		if ms = max(1, ms); due == 0 || ms < due {
			due = ms
		}
	}
	for _, l := range p.lanes {
		switch u := l.door.site.unit; {
		case urgentOnly && len(l.queue) > 0 && l.urgency() == found:
		case l.asked || u.place == busy && len(l.queue) > 0:
			sooner(1)
		case len(l.queue) > 0:
			at := u.pausedUntil()
			if l.where == held && l.door.retry.After(at) {
				at = l.door.retry
			}
			sooner(at.UnixMilli())
		}
	}
	for _, u := range p.slot.units {
		for _, d := range u.later {
			if d.part == p {
				sooner(max(d.at, u.pausedUntil().UnixMilli()))
			}
			if len(p.slot.dir) == 1 { // the first is the first due
				break
			}
		}
	}
	return due
}

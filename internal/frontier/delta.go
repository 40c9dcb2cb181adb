package frontier

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Dirty reports whether a delta would hold anything.
func (f *Frontier) Dirty() bool {
	return f.examined || len(f.full) > 0 || f.slots.fresh+len(f.settled) > 0 || f.schedule.Dirty()
}

// Delta returns what changed since the last delta, as a run to be committed, with
// what was observed of the politeness keys that were asked, and marks it as under way. seq is the
// number of the commit that will hold it, and the page records of what was settled. It
// ends with Committed; a step whose commit fails drops the whole frontier.
func (f *Frontier) Delta(seq uint64) (*blobschema.Run, []blobschema.HostObservation) {
	f.examined = false
	run := &blobschema.Run{Settled: f.settled}
	f.settled = nil
	run.Settled = f.setRecords(run.Settled, blobschema.RecordRef{Partition: f.cfg.Partition, Seq: uint32(seq)})
	run.Queued = make([]blobschema.Queued, 0, f.slots.fresh)
	var observed []blobschema.HostObservation
	f.delta, observed = f.schedule.Delta(run)
	if f.slots.fresh > 0 {
		f.slots.fresh = 0
		for p := range f.slots.parts {
			run.Queued = append(run.Queued, p.fresh...)
			p.taken = append(p.taken, p.fresh...)
			p.fresh = nil
		}
	}
	return run, observed
}

// setRecords says of all that was settled since the last delta where its page records
// are: in the run, in memory, and with what is to be requested again already. It returns
// what is still so: a URL may have been settled in one generation after another.
func (f *Frontier) setRecords(settled []blobschema.Settled, o blobschema.RecordRef) []blobschema.Settled {
	kept := settled[:0]
	for _, e := range settled {
		if e.State != blobschema.Forwarded { // which has no page record here
			e.Record = o
		}
		p := f.slots.partOf(e.Slot, e.Fingerprint)
		switch at, k := p.find(e.Fingerprint); {
		case k == inMarks && p.marks[at].gen > e.Generation:
			continue
		case k == inMarks && p.marks[at].gen == e.Generation:
			p.marks[at].part, p.marks[at].seq = uint16(e.Record.Partition), e.Record.Seq
		case k == inItems && p.Generation(at) > e.Generation && e.Record == o:
			p.SetPrevious(at, o)
		}
		kept = append(kept, e)
	}
	return kept
}

// Committed says that the last delta is committed: parts untouched since may be
// unloaded, and appended entries need no copy in memory.
func (f *Frontier) Committed() {
	f.committed = f.delta
	f.halve()
	f.noRoom = time.Time{}
	if most := f.cfg.MaxResident; most > 0 {
		defer f.shed(time.Time{}, most, most) // now parts can be unloaded: keep to the memory bound also while all is busy
	}
	if f.slots.unloaded+len(f.full) == 0 {
		return
	}
	for _, s := range f.slots.byID {
		for p := range s.parts {
			if !p.loading {
				f.slots.resident -= len(p.taken)
				p.taken = nil
			}
		}
	}
}

// Summaries describes every part that holds anything, by slot and prefix. The parts of a slot
// that is in several are all there, for they say which they are.
func (f *Frontier) Summaries() []blobschema.SlotSummary {
	out := make([]blobschema.SlotSummary, 0, len(f.slots.byID))
	for _, s := range f.slots.sorted() {
		out = s.summaries(out)
	}
	return out
}

func (p *part) summary() blobschema.SlotSummary {
	sum := blobschema.SlotSummary{
		Slot: p.slot.id, Part: p.is, Known: p.known, Pending: p.npending, Unexamined: p.unexamined, Due: p.due, Urgent: uint32(p.Urgent()),
	}
	if p.loaded {
		sum.Known = uint32(p.resident())
		sum.Pending = uint32(p.Len())
		sum.Due = p.FirstDue(false)
	}
	return sum
}

package frontier

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// Dirty reports whether the next delta holds anything.
func (f *Frontier) Dirty() bool {
	return f.examined || len(f.full) > 0 || f.slots.fresh+len(f.settled) > 0 || f.schedule.Dirty()
}

// Delta returns the changes since the last delta as a run, and observations of the politeness keys that got
// requests. seq is the number of the commit that will hold the run and the page records of the settled URLs.
// The caller commits the run and then calls Committed; if the commit fails, it drops the whole frontier.
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

// setRecords sets the record reference of all URLs that were settled since the last delta: in the run, in memory,
// and with the next generations that are pending already. It returns the entries to store: of a URL that was
// settled in several generations, only the last.
func (f *Frontier) setRecords(settled []blobschema.Settled, o blobschema.RecordRef) []blobschema.Settled {
	kept := settled[:0]
	for _, e := range settled {
		if e.State != blobschema.Forwarded { // a forwarded URL has no page record here
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

// Committed records that the last delta is committed. From now on parts that have not changed since may be
// unloaded, and the appended entries that it holds need no copy in memory.
func (f *Frontier) Committed() {
	f.committed = f.delta
	f.halve()
	f.noRoom = time.Time{}
	if most := f.cfg.MaxResident; most > 0 {
		defer f.shed(time.Time{}, most, most) // more parts can be unloaded now, so keep to the memory bound
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

// Summaries returns the summary of every part that holds anything, by slot and prefix. If a slot was split, it
// returns all its parts, because they tell how it is split.
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

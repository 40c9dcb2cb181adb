package frontier

import (
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/partition"
)

// part is a piece of a slot. A loaded part has all its URLs in memory: the pending ones in its pool, the
// settled ones in marks, and the place of each in index.
type part struct {
	index   index
	loaded  bool
	loading bool
	want    bool      // Want was called; the part stays loaded until it was used
	split   bool      // other parts have replaced it
	waits   time.Time // start of its wait for room or for more appended entries; zero: it does not wait
	late    bool      // it has waited for patience, so it is loaded even if others must be unloaded
	replan  float64   // not 0: threshold of its revisits, which must be planned again after the next load
	slot    *slot
	is      blobschema.Part

	schedule.Pool
	marks []mark

	// While unloaded: the summary as of its last commit, and the entries appended since.
	known      uint32
	npending   uint32
	due        int64 // see Pool.FirstDue
	urgentDue  int64 // Pool.FirstDue with urgentOnly; 0: not known
	unexamined uint32
	fresh      []blobschema.Queued // entries that no delta holds yet
	taken      []blobschema.Queued // entries of a delta whose commit is under way
}

// mark is one settled URL.
type mark struct {
	fp    uint64
	gen   uint32
	seq   uint32 // of its record reference
	part  uint16 // partition of its record reference
	state blobschema.State
}

func newMark(e *blobschema.Settled) mark {
	return mark{fp: e.Fingerprint, gen: e.Generation, seq: e.Record.Seq, part: uint16(e.Record.Partition), state: e.State}
}

func (m *mark) record() blobschema.RecordRef {
	return blobschema.RecordRef{Partition: partition.ID(m.part), Seq: m.seq}
}

// dueAt returns when an unloaded part is due, in Unix milliseconds. If active is set, the schedule has
// something to do, so appended entries can wait.
func (p *part) dueAt(now time.Time, urgentOnly, active bool) int64 {
	if !p.waits.IsZero() {
		p.wait(now)
	}
	at := int64(never)
	switch {
	case p.want || p.late || p.replan > 0 || p.unexamined > 0 && (p.Urgent() > 0 || !active):
		return 0
	case p.npending > 0 && urgentOnly && p.urgentDue != 0:
		at = p.urgentDue
	case p.npending > 0:
		at = p.due
	}
	if p.unexamined > 0 && at > now.UnixMilli() {
		at = min(at, p.wait(now))
	}
	return at
}

// resident returns the number of entries of a loaded part.
func (p *part) resident() int { return p.Len() + len(p.marks) }

// grow makes room for numbers of pending and settled URLs, and for bytes of text.
func (p *part) grow(pending, settled, text int) {
	p.Grow(pending, text)
	p.marks = slices.Grow(p.marks, settled)
	p.reserve(p.index.n + pending + settled)
}

// addMark stores a settled URL. If the URL is still an item, the caller drops the item next.
func (p *part) addMark(m mark) {
	p.marks = append(p.marks, m)
	p.insert(m.fp, uint32(len(p.marks)-1), inMarks)
}

// dropMark removes the mark of a URL that has just become an item.
func (p *part) dropMark(i uint32) {
	last := uint32(len(p.marks) - 1)
	if i != last {
		moved := p.marks[last]
		c := p.cell(moved.fp)
		p.marks[i] = moved
		p.index.cells[c] = i<<1 + 2
	}
	p.marks = p.marks[:last]
}

package blobschema

import (
	"cmp"
	"strconv"

	"github.com/orbweaver/orbweaver/partition"
)

// State is the state of a URL. If runs are merged, the higher state wins.
type State uint8

// The states.
const (
	Pending   State = 0 // to be requested
	Fetched   State = 1 // an answer is stored
	Refused   State = 2 // no answer will be stored; the page record has the reason
	Forwarded State = 3 // now in the slot of its address; no page record here
)

// RecordRef is the commit that holds a page record. The commit ranges of the partition's manifest
// give the object. The zero value is no commit.
type RecordRef struct {
	Partition partition.ID
	Seq       uint32
}

// Compare orders references, for joins.
func (o RecordRef) Compare(p RecordRef) int {
	return cmp.Or(cmp.Compare(o.Partition, p.Partition), cmp.Compare(o.Seq, p.Seq))
}

// Settled is a settled URL in a run.
type Settled struct {
	Slot        partition.Slot
	Fingerprint uint64
	Generation  uint32
	State       State
	Record      RecordRef // of its page record
}

// Queued is a pending URL in a run, or a URL in mail.
type Queued struct {
	Slot       partition.Slot
	Key        string // politeness key of the URL, see [PartitionBy.Key]
	Rank       uint32 // order within the politeness key, lower first; 0 for URLs that the operator requested
	URL        string
	Generation uint32
	Depth      uint16
	Attempts   uint8
	Flags      QueuedFlags
	NotBefore  int64     // Unix milliseconds; 0: now
	Previous   RecordRef // of the previous generation's page record; not mailed
	Topic      uint8     // number of its topic; 0 for none
	Change     Change    // observed changes of its content; not mailed
	// Ask is, with FlagAgain, the number of the request that a forwarded URL belongs to; 0: the request of the mail.
	Ask uint64
}

// Urgent reports whether the URL needs no share of the page limit and goes before found pages: it was requested, or
// pages need it. A revisit is not urgent.
func (q *Queued) Urgent() bool { return q.Rank == 0 || q.Flags.Requisite() && q.Generation == 0 }

// Change is an estimate of how often a URL's content changes: a gamma distribution of the
// rate, with Shape changes seen in Hours. The zero value means that nothing is known.
type Change struct {
	Shape, Hours float32
}

// Compare orders changes, for joins.
func (c Change) Compare(d Change) int {
	return cmp.Or(cmp.Compare(c.Hours, d.Hours), cmp.Compare(c.Shape, d.Shape))
}

// KeyState is the stored state of a politeness key in a run. The higher Version wins. The
// frontier encodes Data.
type KeyState struct {
	Slot    partition.Slot
	Key     string
	Version uint64
	Data    []byte
}

// String returns "pending", "fetched", "refused" or "forwarded".
func (s State) String() string {
	if s <= Forwarded {
		return [...]string{"pending", "fetched", "refused", "forwarded"}[s]
	}
	return "state-" + strconv.Itoa(int(s))
}

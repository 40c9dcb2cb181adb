package blobschema

import (
	"iter"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// Manifest describes a partition as of one commit. With the objects that it names, it
// suffices to continue the crawl. It is a section of the commit object.
type Manifest struct {
	Version   int             `cbor:"1,keyasint"`
	Crawl     string          `cbor:"2,keyasint"`
	Partition partition.ID    `cbor:"3,keyasint"`
	Seq       uint64          `cbor:"4,keyasint"`
	Fence     uint64          `cbor:"5,keyasint"`
	Epoch     partition.Epoch `cbor:"6,keyasint"`
	Time      time.Time       `cbor:"7,keyasint"`
	// Commits are the earlier visible commits, oldest first, as ranges of one fence.
	Commits []CommitRange `cbor:"8,keyasint,omitempty"`
	// Runs are the runs of state, oldest first, with the run of this commit.
	Runs    []RunRef `cbor:"9,keyasint,omitempty"`
	Dropped []string `cbor:"10,keyasint,omitempty"` // run objects that this commit no longer names
	// Unsent are the commits whose outbox may not have been published.
	Unsent []uint64 `cbor:"11,keyasint,omitempty"`
	// BufferedFrom is, by receiver, the first commit with links that are in no mail yet.
	BufferedFrom map[partition.ID]uint64 `cbor:"12,keyasint,omitempty"`
	Sent         map[partition.ID]uint64 `cbor:"13,keyasint,omitempty"` // last mail number, by receiver
	Applied      map[partition.ID]Marks  `cbor:"14,keyasint,omitempty"` // mail applied, by sender
	Totals       Totals                  `cbor:"15,keyasint"`
	Slots        []SlotSummary           `cbor:"16,keyasint,omitempty"` // of slots that are not empty
	Desired      uint64                  `cbor:"17,keyasint,omitempty"`
	Scope        []string                `cbor:"18,keyasint,omitempty"` // hosts added to the scope that this partition obeys
	NewScope     []string                `cbor:"19,keyasint,omitempty"` // hosts found here that the desired state should add
	// Suspects names the URL that a careful step is about to request, once for each time that it
	// was under suspicion.
	Suspects []string      `cbor:"20,keyasint,omitempty"`
	WARCs    []string      `cbor:"21,keyasint,omitempty"` // objects stored for this commit
	Careful  int           `cbor:"22,keyasint,omitempty"` // number of further requests to make one at a time
	Alarms   int           `cbor:"23,keyasint,omitempty"` // number of times that crashes made steps careful
	Delay    time.Duration `cbor:"24,keyasint,omitempty"` // the delay that the operator set for hosts
	// Domains counts the known URLs of the largest registrable domains.
	Domains map[string]int64 `cbor:"25,keyasint,omitempty"`
	// Seeds counts the batches of seeds whose hosts are in the scope.
	Seeds int `cbor:"26,keyasint,omitempty"`
	// Moved are the slots that the partition gave away or received, each with its newest hand-over; see
	// [Holding].
	Moved []Moved `cbor:"27,keyasint,omitempty"`
	// Given are the hand-overs that are not known to be confirmed.
	Given []Handover `cbor:"28,keyasint,omitempty"`
	// Calls are the billed calls of the partition's steps until this commit was made; zero if they are not counted.
	Calls Calls `cbor:"29,keyasint,omitzero"`
}

// CommitRange names the commits From to To of one fence.
type CommitRange struct {
	Fence uint64 `cbor:"1,keyasint"`
	From  uint64 `cbor:"2,keyasint"`
	To    uint64 `cbor:"3,keyasint"`
}

// Marks are the mail numbers applied from one sender: all up to Low, and Above.
type Marks struct {
	Low   uint64   `cbor:"1,keyasint"`
	Above []uint64 `cbor:"2,keyasint,omitempty"` // ascending
}

// Has reports whether a mail is applied.
func (m Marks) Has(number uint64) bool {
	_, above := slices.BinarySearch(m.Above, number)
	return number <= m.Low || above
}

// Count returns how many mails are applied.
func (m Marks) Count() uint64 { return m.Low + uint64(len(m.Above)) }

// Add records that a mail is applied.
func (m *Marks) Add(number uint64) {
	if m.Has(number) {
		return
	}
	i, _ := slices.BinarySearch(m.Above, number)
	m.Above = slices.Insert(m.Above, i, number)
	n := 0
	for n < len(m.Above) && m.Above[n] == m.Low+1 {
		n, m.Low = n+1, m.Low+1
	}
	m.Above = slices.Delete(m.Above, 0, n)
}

// RunRef names a run of state and its parts.
type RunRef struct {
	Object  string         `cbor:"1,keyasint"` // a commit object, or a merged run
	Tier    uint8          `cbor:"2,keyasint,omitempty"`
	Offset  int64          `cbor:"3,keyasint"` // of the run's bytes in the object
	Length  int64          `cbor:"4,keyasint"`
	Index   int64          `cbor:"5,keyasint"` // of the index and filter, from Offset; they end the run
	First   partition.Slot `cbor:"6,keyasint"`
	Last    partition.Slot `cbor:"7,keyasint"`
	Entries int64          `cbor:"8,keyasint"`
}

// CommitNames yields the names of all visible commit objects of a partition,
// oldest first, the commit of m last.
func CommitNames(m *Manifest) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range CommitsAfter(m, 0) {
			if !yield(name) {
				return
			}
		}
	}
}

// CommitOf returns the name of the visible commit with a number, or "" if there is none.
func CommitOf(m *Manifest, seq uint64) string {
	for n, name := range CommitsAfter(m, max(seq, 1)-1) {
		if n == seq {
			return name
		}
		break
	}
	return ""
}

// CommitsAfter yields the numbers and names of the visible commits of a partition after a
// number, oldest first, the commit of m last. Earlier commits cost no time.
func CommitsAfter(m *Manifest, after uint64) iter.Seq2[uint64, string] {
	return func(yield func(uint64, string) bool) {
		for _, r := range m.Commits {
			for seq := max(r.From, after+1); seq <= r.To && seq < m.Seq; seq++ {
				if !yield(seq, naming.Commit(m.Crawl, m.Partition, seq, r.Fence)) {
					return
				}
			}
		}
		if m.Seq > after {
			yield(m.Seq, naming.Commit(m.Crawl, m.Partition, m.Seq, m.Fence))
		}
	}
}

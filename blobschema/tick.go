package blobschema

import (
	"time"

	"github.com/orbweaver/orbweaver/partition"
)

// TickRecord is the state that ticks keep in the table.
type TickRecord struct {
	Copied   map[partition.ID]uint64 `json:"copied,omitempty"` // commits whose host estimates are in the hosts table
	CopiedAt time.Time               `json:"copied_at,omitzero"`
	ResentAt time.Time               `json:"resent_at,omitzero"` // last search for unapplied mail
	// Sweep are the runs that commits have dropped: candidates for deletion.
	Sweep     []Dropped `json:"sweep,omitempty"`
	SweptAt   time.Time `json:"swept_at,omitzero"`
	PlannedAt time.Time `json:"planned_at,omitzero"` // last check of the loads of slots
	// Topics are the periods of topics with a minimum, by name.
	Topics map[string]TopicPeriod `json:"topics,omitempty"`
	TickNotes
	// Idle is the state in which a tick found nothing to do. While it holds, ticks need not
	// read the heads of partitions.
	Idle  *Idle   `json:"idle,omitempty"`
	Calls Calls   `json:"calls,omitzero"` // of the coordinator runs that wrote this record
	Day   CallDay `json:"day,omitzero"`
}

// CallDay is the start of the period for which the coordinator limits function calls; zero: the start of the crawl.
type CallDay struct {
	At     time.Time `json:"at"`
	Calls  int64     `json:"calls"`  // function calls of the crawl before At
	Orders uint64    `json:"orders"` // DesiredState.Orders at At
}

// TopicPeriod is a period in which a topic should reach its minimum of pages.
type TopicPeriod struct {
	Since time.Time `json:"since"`
	Pages int64     `json:"pages,omitempty"` // of the topic before Since
}

// Dropped is a run that a commit has dropped, with the number of sweeps that found no reference to it.
type Dropped struct {
	Object  string `json:"object"`
	Unnamed int    `json:"unnamed,omitempty"`
}

// TickNotes are the notes of one tick for the next. They are in the record if each tick may run in
// another process, and otherwise in memory.
type TickNotes struct {
	Woken map[partition.ID]Waking `json:"woken,omitempty"` // wakes that no step is known to have answered
	// Quiet are the partitions' commits at the last time when nothing was left to do; nil if there was no such time.
	Quiet map[partition.ID]uint64 `json:"quiet,omitempty"`
	// Indexing are the jobs sent for indexes that are behind. Fence is the fence that they
	// are behind.
	Indexing map[partition.ID]Waking `json:"indexing,omitempty"`
}

// Waking is the last wake that a tick sent for a partition of a fence, and the number of wakes.
type Waking struct {
	Fence uint64    `json:"fence"`
	At    time.Time `json:"at"`
	Times int       `json:"times"`
}

// Idle is everything that can make an idle crawl continue, and the state in which it was idle.
type Idle struct {
	Finished bool   `json:"finished,omitempty"`
	Limited  bool   `json:"limited,omitempty"`
	Batches  int    `json:"batches"`  // of seeds
	Requests uint64 `json:"requests"` // number of mails made of requests
	Limit    int64  `json:"limit"`    // on pages
	Desired  uint64 `json:"wish"`
	Orders   uint64 `json:"orders"` // see DesiredState.Orders
	Map      uint64 `json:"map,omitempty"`
	Index    bool   `json:"index,omitempty"`
	Ranks    uint64 `json:"ranks,omitempty"` // last finished rank job, of a crawl with an index
}

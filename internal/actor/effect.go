package actor

import (
	"errors"
	"time"
)

// Now is one reading of both clocks. Wall may jump; Mono only grows, but means
// nothing to another process.
type Now struct {
	Wall time.Time
	Mono time.Duration
}

// Effect is an operation that an executor carries out for an actor. The executor answers each effect with
// one Reply, whose value its comment names, or an error. It may answer
// in any order, and need not answer after the actor has ended.
type Effect interface{ effect() }

// Effects on the web, time and the processor.
type (
	// Fetch requests one URL, and aborts the request at its deadline. Reply: *Outcome, never an error.
	Fetch struct{ Request Request }
	// ExtendFetches gives all fetches under way a later deadline, after the lease was renewed. Reply: nil.
	ExtendFetches struct{ Deadline time.Time }
	// CancelFetches ends all fetches under way; they are answered as aborted. Reply: nil.
	CancelFetches struct{}
	// Sleep waits. Reply: nil.
	Sleep struct{ For time.Duration }
	// Work runs Do outside of the loop. Do must not touch anything that the actor uses meanwhile. Reply:
	// the result of Do.
	Work struct{ Do func() (any, error) }
)

// Effects on blob storage. Objects are created once and never change (I6).
type (
	// GetObject reads Length bytes from Offset, or fewer at the end of the object; Length -1 reads to
	// the end. Reply: []byte.
	// ErrNotFound if there is no such object.
	GetObject struct {
		Name           string
		Offset, Length int64
	}
	// PutObject stores an object durably, the parts one after another. Putting the same
	// bytes again under one name is harmless. Reply: nil.
	PutObject struct {
		Name  string
		Parts [][]byte
	}
	// DeleteObject deletes an object that nothing names any more. It is no error if the object does not
	// exist. Reply: nil.
	DeleteObject struct{ Name string }
)

// Effects on the key-value table. A record is read with a revision, and replaced
// only if it still has that revision.
type (
	// ReadRecords reads records, strongly consistent. Reply: []Record, in the order of Keys.
	ReadRecords struct{ Keys []string }
	// WriteRecord creates (Revision nil) or replaces one record. Reply: the new Revision.
	// ErrConflict if it exists, is gone, or has another revision; after any other error the
	// write may have happened or not.
	WriteRecord struct {
		Key      string
		Value    []byte
		Revision Revision
	}
)

// Effects on queues.
type (
	// Send sends messages to one queue, at least once each. The queue delivers them after
	// Delay, or after its longest delay. Reply: nil.
	Send struct {
		Queue  string
		Bodies [][]byte
		Delay  time.Duration
	}
	// Receive waits up to Wait for messages, and returns at most Max. Reply: []Message.
	Receive struct {
		Queue string
		Max   int
		Wait  time.Duration
	}
	// Acknowledge deletes messages. It may be lost. Reply: nil.
	Acknowledge struct {
		Queue    string
		Receipts []Receipt
	}
)

// Revision is an executor's token for one state of a record.
type Revision any

// Record is a record as read. Found is false if it does not exist.
type Record struct {
	Value    []byte
	Revision Revision
	Found    bool
}

// Receipt is an executor's handle of one delivery.
type Receipt any

// Message is one delivery.
type Message struct {
	ID       string // assigned by the queue, the same in each delivery
	Body     []byte
	Receipt  Receipt
	Receives int // number of deliveries, with this one
}

// Errors that actors distinguish.
var (
	ErrConflict = errors.New("the record was changed by another")
	ErrNotFound = errors.New("no such object")
)

func (Fetch) effect()         {}
func (ExtendFetches) effect() {}
func (CancelFetches) effect() {}
func (Sleep) effect()         {}
func (Work) effect()          {}
func (GetObject) effect()     {}
func (PutObject) effect()     {}
func (DeleteObject) effect()  {}
func (ReadRecords) effect()   {}
func (WriteRecord) effect()   {}
func (Send) effect()          {}
func (Receive) effect()       {}
func (Acknowledge) effect()   {}

// Issue is an effect to carry out. Its Reply has the same ID.
type Issue struct {
	ID     uint64
	Effect Effect
}

// Reply answers an Issue.
type Reply struct {
	ID    uint64
	Value any
	Err   error
}

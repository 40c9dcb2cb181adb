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

// Effect is something only an executor can do for an actor. Each is answered by
// one Reply with the value its comment names, or an error. An executor may answer
// in any order, and need not answer at all once the actor is done.
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
	// Work runs Do off the loop. It may touch nothing the core goes on using. Reply:
	// what Do returns.
	Work struct{ Do func() (any, error) }
)

// Effects on blob storage. Objects are created once and never change (I6).
type (
	// GetObject reads Length bytes from Offset, or as many as there are; Length -1 reads to
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
	// DeleteObject deletes an object that nothing names any more. It is no error if there is
	// none. Reply: nil.
	DeleteObject struct{ Name string }
)

// Effects on the key-value table. A record is read with a revision, and replaced
// only if it still has it.
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
	// Send sends messages to one queue, at least once each. They are not delivered before
	// Delay has passed, where the queue can delay that long. Reply: nil.
	Send struct {
		Queue  string
		Bodies [][]byte
		Delay  time.Duration
	}
	// Receive waits up to Wait for messages, and brings at most Max. Reply: []Message.
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

// Record is a record as read. Found is false when there is none.
type Record struct {
	Value    []byte
	Revision Revision
	Found    bool
}

// Receipt is an executor's handle of one delivery.
type Receipt any

// Message is one delivery.
type Message struct {
	ID       string // the queue's own, the same each time it is delivered
	Body     []byte
	Receipt  Receipt
	Receives int // how often it was delivered, this time included
}

// Errors that actors tell apart.
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

// Issue is an effect to carry out; its Reply carries the same ID.
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

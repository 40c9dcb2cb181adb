// Package platform says what the drivers of a platform give beside gocloud's table and
// bucket: queues, in the few words that steps need, and a meter of what they call.
package platform

import (
	"context"
	"time"
)

// Queue is one queue: it delivers each message at least once, in any order. gocloud's
// portable pubsub is one way to make one; where that falls short (a delay, a deletion
// that has happened when it returns, no more calls than were asked for) a driver uses
// the cloud's own client. Safe for concurrent use.
type Queue interface {
	// Send sends messages, as few calls as the queue allows; after an error some of them
	// may have been sent. They are not delivered before delay has passed, where the queue
	// can delay: at most its longest delay, and not at all where it cannot.
	Send(ctx context.Context, bodies [][]byte, delay time.Duration) error
	// Receive waits up to wait for a first message, and returns what is at hand with it, at
	// most limit. None is no error, nor is the end of ctx.
	Receive(ctx context.Context, limit int, wait time.Duration) ([]Delivery, error)
	// Acknowledge deletes messages. It may be lost: then they are delivered again.
	Acknowledge(ctx context.Context, receipts []Receipt) error
	// Release makes messages visible again soon, as if they had not been received.
	Release(ctx context.Context, receipts []Receipt) error
	// Close ends what the queue has under way. Acknowledgements are out when it returns.
	Close(ctx context.Context) error
}

// Delivery is a message as received.
type Delivery struct {
	ID       string // the queue's own, the same each time the message is delivered
	Body     []byte
	Receives int // how often it was delivered, this time included
	Receipt  Receipt
}

// Receipt stands for one delivery, for the queue that made it. It is comparable.
type Receipt any

// Meter is told of every call that a cloud would bill, tries that failed included.
// Safe for concurrent use.
type Meter interface {
	// QueueRequest is one call of a queue: bytes are those of its messages.
	QueueRequest(op string, bytes int)
	KVRead(bytes int)  // one strongly consistent read of an item of that size
	KVWrite(bytes int) // one write
	BlobPut(bytes int) // one put of an object, or of a part of one
	BlobGet(bytes int) // one get, head or list
}

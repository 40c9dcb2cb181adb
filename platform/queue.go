package platform

import (
	"context"
	"time"
)

// Queue is one queue. It delivers each message at least once, in any order. Methods are safe for
// concurrent use.
//
// gocloud's portable pubsub is one way to make a Queue. A driver uses the client of its own
// cloud where pubsub falls short: it cannot delay, it acknowledges at some later time, and it
// makes additional calls.
type Queue interface {
	// Send sends messages with as few calls as possible. After an error some of them may have
	// been sent. No message is delivered before delay has passed, or before the longest delay
	// of the queue if that is shorter. A queue that cannot delay ignores delay.
	Send(ctx context.Context, bodies [][]byte, delay time.Duration) error
	// Receive waits up to wait for a first message. It returns that message and others that are available, at
	// most limit. If none comes or ctx ends, it returns no messages and no error.
	Receive(ctx context.Context, limit int, wait time.Duration) ([]Delivery, error)
	// Acknowledge deletes messages. A message whose deletion is lost is delivered again.
	Acknowledge(ctx context.Context, receipts []Receipt) error
	// Release makes messages visible again soon, as if they had not been received.
	Release(ctx context.Context, receipts []Receipt) error
	// Close waits for the calls under way. When it returns, acknowledgements have been sent.
	Close(ctx context.Context) error
}

// Delivery is a message as received.
type Delivery struct {
	ID       string // of the message; every delivery has the same
	Body     []byte
	Receives int // number of deliveries, this one included; at least 2 if the queue does not count them
	Receipt  Receipt
}

// Receipt identifies one delivery for the queue that made it. It is comparable.
type Receipt any

package gocloud

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"gocloud.dev/pubsub"

	"github.com/orbweaver/orbweaver/platform"
)

// idField is the metadata field with the id of a message: some drivers give each delivery another LoggableID.
const idField = "orbweaver-id"

// Queue is a platform.Queue over gocloud's portable types. All receivers share its subscription, so messages that one
// leaves are there for the next.
type Queue struct {
	Name  string
	Topic *pubsub.Topic
	Open  func() (*pubsub.Subscription, error) // opens a subscription, before the first receive and after an error
	// Delay sets the delay of a message. It is nil if the queue cannot delay.
	Delay func(*pubsub.Message, time.Duration)
	// Receives returns the number of deliveries of a message. It is nil if the queue does not count them.
	Receives func(*pubsub.Message) int

	mu  sync.Mutex
	sub *pubsub.Subscription
}

func (q *Queue) Send(ctx context.Context, bodies [][]byte, delay time.Duration) error {
	errs := make([]error, len(bodies))
	var wg sync.WaitGroup
	for i, body := range bodies { // the topic sends several concurrent messages in one call
		m := &pubsub.Message{Body: body}
		if q.Receives == nil {
			m.Metadata = map[string]string{idField: rand.Text()}
		}
		if delay > 0 && q.Delay != nil {
			q.Delay(m, delay)
		}
		wg.Go(func() { errs[i] = q.Topic.Send(ctx, m) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (q *Queue) Receive(ctx context.Context, limit int, wait time.Duration) ([]platform.Delivery, error) {
	s, err := q.subscription()
	if err != nil {
		return nil, err
	}
	var out []platform.Delivery
	for len(out) < limit {
		wctx, cancel := context.WithTimeout(ctx, wait)
		m, err := s.Receive(wctx)
		over := wctx.Err() != nil // before cancel makes it so
		cancel()
		if err != nil {
			if over {
				return out, nil
			}
			q.drop(s)
			return out, fmt.Errorf("receive from %s: %w", q.Name, err)
		}
		d := platform.Delivery{ID: cmp.Or(m.Metadata[idField], m.LoggableID), Body: m.Body, Receives: math.MaxInt, Receipt: &receipt{Message: m}}
		if q.Receives != nil {
			d.Receives = q.Receives(m)
		}
		out = append(out, d)
		wait = 2 * time.Millisecond
	}
	return out, nil
}

func (q *Queue) subscription() (*pubsub.Subscription, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var err error
	if q.sub == nil {
		q.sub, err = q.Open()
	}
	return q.sub, err
}

// drop ends a failed subscription: gocloud returns its error for all later receives.
func (q *Queue) drop(s *pubsub.Subscription) {
	q.mu.Lock()
	if q.sub == s {
		q.sub = nil
	}
	q.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.Shutdown(ctx) // its error is known; this ends its goroutines
}

// receipt is a received message. gocloud panics if a message is acknowledged or released a second time.
type receipt struct {
	*pubsub.Message
	used atomic.Bool
}

func (q *Queue) Acknowledge(_ context.Context, receipts []platform.Receipt) error {
	for _, r := range receipts {
		if r := r.(*receipt); !r.used.Swap(true) {
			r.Ack()
		}
	}
	return nil
}

// Release does nothing if the queue cannot release messages: they come again later.
func (q *Queue) Release(_ context.Context, receipts []platform.Receipt) error {
	for _, r := range receipts {
		if r := r.(*receipt); r.Nackable() && !r.used.Swap(true) {
			r.Nack()
		}
	}
	return nil
}

func (q *Queue) Close(ctx context.Context) error {
	return errors.Join(q.Topic.Shutdown(ctx), q.closeSubscription(ctx))
}

func (q *Queue) closeSubscription(ctx context.Context) (err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sub != nil {
		err = q.sub.Shutdown(ctx)
		q.sub = nil
	}
	return err
}

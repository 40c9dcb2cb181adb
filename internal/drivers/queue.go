package drivers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gocloud.dev/pubsub"

	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
	"github.com/orbweaver/orbweaver/platform"
)

// queue implements platform.Queue over gocloud's portable types. All receivers share its subscription, so
// messages that one leaves are there for the next.
type queue struct {
	name  string
	store *store
	topic *pubsub.Topic

	mu  sync.Mutex
	sub *pubsub.Subscription // nil before the first receive, and after an error
}

func (q *queue) Send(ctx context.Context, bodies [][]byte, delay time.Duration) error {
	errs := make([]error, len(bodies))
	var wg sync.WaitGroup
	for i, body := range bodies { // the topic sends ten concurrent messages in one call
		m := &pubsub.Message{Body: body}
		if delay > 0 {
			m.BeforeSend = func(as func(any) bool) error {
				var how *sending
				if as(&how) {
					how.delay = min(delay, maxDelay)
				}
				return nil
			}
		}
		wg.Go(func() { errs[i] = q.topic.Send(ctx, m) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (q *queue) Receive(ctx context.Context, limit int, wait time.Duration) ([]platform.Delivery, error) {
	s := q.subscription()
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
			return out, fmt.Errorf("receive from %s: %w", q.name, err)
		}
		var d embedded.Delivery
		m.As(&d)
		out = append(out, platform.Delivery{ID: m.LoggableID, Body: m.Body, Receives: d.Receives, Receipt: &receipt{Message: m}})
		wait = 2 * time.Millisecond
	}
	return out, nil
}

func (q *queue) subscription() *pubsub.Subscription {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sub == nil {
		q.sub = q.store.openSubscription(q.name, pollTime)
	}
	return q.sub
}

// drop ends a failed subscription: gocloud returns its error for all later receives.
func (q *queue) drop(s *pubsub.Subscription) {
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

func (q *queue) Acknowledge(_ context.Context, receipts []platform.Receipt) error {
	for _, r := range receipts {
		if r := r.(*receipt); !r.used.Swap(true) {
			r.Ack()
		}
	}
	return nil
}

func (q *queue) Release(_ context.Context, receipts []platform.Receipt) error {
	for _, r := range receipts {
		if r := r.(*receipt); !r.used.Swap(true) {
			r.Nack()
		}
	}
	return nil
}

func (q *queue) Close(ctx context.Context) error {
	err := q.topic.Shutdown(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sub != nil {
		err = errors.Join(err, q.sub.Shutdown(ctx))
		q.sub = nil
	}
	return err
}

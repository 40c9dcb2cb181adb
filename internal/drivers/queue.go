package drivers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gocloud.dev/pubsub"

	"github.com/orbweaver/orbweaver/platform"
)

// portable is a queue over gocloud's portable types. What its subscription fetched
// ahead for one receiver serves the next.
type portable struct {
	name  string
	topic *pubsub.Topic
	open  func() *pubsub.Subscription

	mu  sync.Mutex
	sub *pubsub.Subscription // nil until something is received, and after an error
}

func (q *portable) Send(ctx context.Context, bodies [][]byte, delay time.Duration) error {
	errs := make([]error, len(bodies))
	var wg sync.WaitGroup
	for i, body := range bodies { // the topic makes calls of ten of what is sent at once
		m := &pubsub.Message{Body: body}
		if delay > 0 {
			m.BeforeSend = func(as func(any) bool) error {
				var s *Sending
				if as(&s) {
					s.Delay = min(delay, MaxDelay)
				}
				return nil
			}
		}
		wg.Go(func() { errs[i] = q.topic.Send(ctx, m) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Receive waits for a first message and takes what else is at hand.
func (q *portable) Receive(ctx context.Context, limit int, wait time.Duration) ([]platform.Delivery, error) {
	s := q.subscription()
	var out []platform.Delivery
	for len(out) < limit {
		wctx, cancel := context.WithTimeout(ctx, wait)
		m, err := s.Receive(wctx)
		over := wctx.Err() != nil // before it is so anyway
		cancel()
		if err != nil {
			if over {
				return out, nil
			}
			q.drop(s)
			return out, fmt.Errorf("receive from %s: %w", q.name, err)
		}
		receives, ok := Receives(m)
		if !ok {
			receives = 1
		}
		out = append(out, platform.Delivery{ID: m.LoggableID, Body: m.Body, Receives: receives, Receipt: m})
		wait = 2 * time.Millisecond
	}
	return out, nil
}

func (q *portable) subscription() *pubsub.Subscription {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sub == nil {
		q.sub = q.open()
	}
	return q.sub
}

// drop forgets a subscription that failed: gocloud keeps an error for ever.
func (q *portable) drop(s *pubsub.Subscription) {
	q.mu.Lock()
	if q.sub == s {
		q.sub = nil
	}
	q.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.Shutdown(ctx) // it has failed already; what matters is that its goroutines end
}

func (q *portable) Acknowledge(_ context.Context, receipts []platform.Receipt) error {
	for _, r := range receipts {
		r.(*pubsub.Message).Ack()
	}
	return nil
}

func (q *portable) Release(_ context.Context, receipts []platform.Receipt) error {
	for _, r := range receipts {
		if m := r.(*pubsub.Message); m.Nackable() {
			m.Nack()
		}
	}
	return nil
}

func (q *portable) Close(ctx context.Context) error {
	err := q.topic.Shutdown(ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sub != nil {
		err = errors.Join(err, q.sub.Shutdown(ctx))
		q.sub = nil
	}
	return err
}

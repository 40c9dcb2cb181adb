package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gocloud.dev/pubsub"

	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/platform"
)

// queues keeps topics and subscriptions open by name. All steps of a process share
// them: messages prefetched for one step serve the next.
type queues struct {
	platform *platform.Platform
	mu       sync.Mutex
	topics   map[string]*pubsub.Topic
	subs     map[string]*pubsub.Subscription
}

func newQueues(p *platform.Platform) *queues {
	return &queues{platform: p, topics: map[string]*pubsub.Topic{}, subs: map[string]*pubsub.Subscription{}}
}

func (q *queues) topic(name string) (*pubsub.Topic, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.topics[name]; t != nil {
		return t, nil
	}
	t, err := q.platform.Topic(name)
	if err != nil {
		return nil, fmt.Errorf("open queue %s: %w", name, err)
	}
	q.topics[name] = t
	return t, nil
}

func (q *queues) sub(name string) (*pubsub.Subscription, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s := q.subs[name]; s != nil {
		return s, nil
	}
	s, err := q.platform.Subscription(name)
	if err != nil {
		return nil, fmt.Errorf("open queue %s: %w", name, err)
	}
	q.subs[name] = s
	return s, nil
}

// send sends all messages of one effect; they share calls as far as the queue lets
// them.
func (q *queues) send(ctx context.Context, e crawl.Send) error {
	t, err := q.topic(e.Queue)
	if err != nil {
		return err
	}
	errs := make([]error, len(e.Bodies))
	var wg sync.WaitGroup
	for i, body := range e.Bodies {
		m := &pubsub.Message{Body: body}
		wg.Go(func() { errs[i] = t.Send(ctx, m) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// receive waits for a first message and takes what else is at hand.
func (q *queues) receive(ctx context.Context, e crawl.Receive) ([]crawl.Message, error) {
	s, err := q.sub(e.Queue)
	if err != nil {
		return nil, err
	}
	var out []crawl.Message
	wait := e.Wait
	for len(out) < e.Max {
		wctx, cancel := context.WithTimeout(ctx, wait)
		m, err := s.Receive(wctx)
		cancel()
		if err != nil {
			if wctx.Err() != nil {
				return out, nil
			}
			q.drop(e.Queue, s)
			return out, err
		}
		out = append(out, crawl.Message{ID: m.LoggableID, Body: m.Body, Receipt: m, Receives: q.platform.Receives(m)})
		wait = 2 * time.Millisecond
	}
	return out, nil
}

// drop forgets a subscription that failed: gocloud keeps an error for ever.
func (q *queues) drop(name string, s *pubsub.Subscription) {
	q.mu.Lock()
	if q.subs[name] == s {
		delete(q.subs, name)
	}
	q.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.Shutdown(ctx) // it has failed already; what matters is that its goroutines end
}

// close sends what is queued and ends all goroutines.
func (q *queues) close(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var errs []error
	for _, t := range q.topics {
		errs = append(errs, t.Shutdown(ctx))
	}
	for _, s := range q.subs {
		errs = append(errs, s.Shutdown(ctx))
	}
	clear(q.topics)
	clear(q.subs)
	return errors.Join(errs...)
}

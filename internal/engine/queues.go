package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/platform"
)

// queues keeps queues open by name, shared by all steps of a process.
type queues struct {
	platform *platform.Platform
	mu       sync.Mutex
	open     map[string]platform.Queue
}

func newQueues(p *platform.Platform) *queues {
	return &queues{platform: p, open: map[string]platform.Queue{}}
}

func (q *queues) get(name string) (platform.Queue, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if o := q.open[name]; o != nil {
		return o, nil
	}
	o, err := q.platform.Queue(name)
	if err != nil {
		return nil, fmt.Errorf("open queue %s: %w", name, err)
	}
	q.open[name] = o
	return o, nil
}

func (q *queues) send(ctx context.Context, e actor.Send) error {
	o, err := q.get(e.Queue)
	if err != nil {
		return err
	}
	return o.Send(ctx, e.Bodies, e.Delay)
}

func (q *queues) receive(ctx context.Context, e actor.Receive) ([]actor.Message, error) {
	o, err := q.get(e.Queue)
	if err != nil {
		return nil, err
	}
	got, err := o.Receive(ctx, e.Max, e.Wait)
	out := make([]actor.Message, len(got))
	for i, d := range got {
		out[i] = actor.Message{ID: d.ID, Body: d.Body, Receipt: d.Receipt, Receives: d.Receives}
	}
	return out, err
}

func (q *queues) acknowledge(ctx context.Context, e actor.Acknowledge) error {
	o, err := q.get(e.Queue)
	if err != nil {
		return err
	}
	return o.Acknowledge(ctx, receiptsOf(e.Receipts))
}

// release gives messages back, so that others need not wait for their visibility to end.
func (q *queues) release(ctx context.Context, queue string, receipts []actor.Receipt) error {
	o, err := q.get(queue)
	if err != nil {
		return err
	}
	return o.Release(ctx, receiptsOf(receipts))
}

func receiptsOf(rs []actor.Receipt) []platform.Receipt {
	out := make([]platform.Receipt, len(rs))
	for i, r := range rs {
		out[i] = r
	}
	return out
}

// close sends what is waiting to be sent, and ends all goroutines.
func (q *queues) close(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var errs []error
	for _, o := range q.open {
		errs = append(errs, o.Close(ctx))
	}
	clear(q.open)
	return errors.Join(errs...)
}

// Send sends messages.
func (e *Engine) Send(ctx context.Context, s actor.Send) error { return e.queues.send(ctx, s) }

// Receive waits for messages of a queue.
func (e *Engine) Receive(ctx context.Context, r actor.Receive) ([]actor.Message, error) {
	return e.queues.receive(ctx, r)
}

// Acknowledge deletes messages. If that fails it says so in the log: they come again.
func (e *Engine) Acknowledge(ctx context.Context, queue string, msgs []actor.Message) {
	if len(msgs) == 0 {
		return
	}
	if err := e.queues.acknowledge(ctx, actor.Acknowledge{Queue: queue, Receipts: receipts(msgs)}); err != nil {
		e.Log.Warn("acknowledge", "queue", queue, "error", err)
	}
}

// GiveBack makes messages visible again, for others to take. If that fails it says so in the log: they come again
// when their visibility ends.
func (e *Engine) GiveBack(queue string, msgs []actor.Message) {
	if len(msgs) == 0 {
		return
	}
	if err := e.queues.release(context.Background(), queue, receipts(msgs)); err != nil {
		e.Log.Warn("give messages back", "queue", queue, "error", err)
	}
}

func receipts(msgs []actor.Message) []actor.Receipt {
	out := make([]actor.Receipt, len(msgs))
	for i, m := range msgs {
		out[i] = m.Receipt
	}
	return out
}

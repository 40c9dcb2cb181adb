package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/platform"
)

// queue returns a queue, which stays open until the engine closes. All actors share it.
func (e *Engine) queue(name string) (platform.Queue, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if q := e.queues[name]; q != nil {
		return q, nil
	}
	q, err := e.Platform.Queue(name)
	if err != nil {
		return nil, fmt.Errorf("open queue %s: %w", name, err)
	}
	e.queues[name] = q
	return q, nil
}

func (e *Engine) closeQueues(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for _, q := range e.queues {
		errs = append(errs, q.Close(ctx))
	}
	clear(e.queues)
	return errors.Join(errs...)
}

// with calls do with a queue.
func (e *Engine) with(name string, do func(platform.Queue) error) error {
	q, err := e.queue(name)
	if err != nil {
		return err
	}
	return do(q)
}

// Send carries out [actor.Send].
func (e *Engine) Send(ctx context.Context, s actor.Send) error {
	return e.with(s.Queue, func(q platform.Queue) error { return q.Send(ctx, s.Bodies, s.Delay) })
}

// Receive carries out [actor.Receive].
func (e *Engine) Receive(ctx context.Context, r actor.Receive) (msgs []actor.Message, err error) {
	err = e.with(r.Queue, func(q platform.Queue) error {
		got, err := q.Receive(ctx, r.Max, r.Wait)
		for _, d := range got {
			msgs = append(msgs, actor.Message{ID: d.ID, Body: d.Body, Receipt: d.Receipt, Receives: d.Receives})
		}
		return err
	})
	return msgs, err
}

// acknowledge carries out [actor.Acknowledge].
func (e *Engine) acknowledge(ctx context.Context, queue string, receipts []platform.Receipt) error {
	return e.with(queue, func(q platform.Queue) error { return q.Acknowledge(ctx, receipts) })
}

// release makes messages visible again. It logs a failure: they become visible when their visibility timeout ends.
func (e *Engine) release(queue string, receipts []platform.Receipt) {
	if err := e.with(queue, func(q platform.Queue) error { return q.Release(context.Background(), receipts) }); err != nil {
		e.Log.Warn("give messages back", "queue", queue, "error", err)
	}
}

// Acknowledge deletes messages. It logs a failure: the messages come again.
func (e *Engine) Acknowledge(ctx context.Context, queue string, msgs []actor.Message) {
	if len(msgs) == 0 {
		return
	}
	if err := e.acknowledge(ctx, queue, receiptsOf(msgs)); err != nil {
		e.Log.Warn("acknowledge", "queue", queue, "error", err)
	}
}

// GiveBack makes messages visible again for other receivers.
func (e *Engine) GiveBack(queue string, msgs []actor.Message) {
	if len(msgs) > 0 {
		e.release(queue, receiptsOf(msgs))
	}
}

func receiptsOf(msgs []actor.Message) []platform.Receipt {
	out := make([]platform.Receipt, len(msgs))
	for i, m := range msgs {
		out[i] = m.Receipt
	}
	return out
}

package engine

import (
	"context"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
)

// Submit puts a request on the intake queue, where this engine or another process that
// crawls will find it. It needs no crawl to be under way.
func (e *Engine) Submit(ctx context.Context, r blobschema.Request) error {
	body, err := blobschema.EncodeRequest(r)
	if err != nil {
		return err
	}
	e.submitted.Add(1)
	return e.queues.send(ctx, actor.Send{Queue: naming.IntakeQueue, Bodies: [][]byte{body}})
}

// How long an engine with nothing left to do waits for a request that is in the queue
// already: one that it does not know of, also one that it has hardly had time to find, and one
// that it put there itself.
const (
	lastCall  = 20 * time.Millisecond
	firstCall = 250 * time.Millisecond
	justBegun = 2 * time.Second
	ownCall   = 30 * time.Second
)

// watchIntake hands requests from outside to the tick loop.
func (e *Engine) watchIntake(ctx context.Context) {
	for ctx.Err() == nil {
		msgs, err := e.queues.receive(ctx, actor.Receive{Queue: naming.IntakeQueue, Max: 10, Wait: time.Minute})
		if e.lost(err) {
			return
		}
		if err != nil && ctx.Err() == nil {
			e.log.Warn("receive requests", "error", err)
			e.pause(ctx)
		}
		if len(msgs) == 0 {
			continue
		}
		select {
		case e.intake <- msgs:
		case <-ctx.Done():
			e.giveBack(naming.IntakeQueue, msgs)
		}
	}
}

func (e *Engine) pause(ctx context.Context) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
}

// take turns requests into mail. If that fails they stay in the queue.
func (e *Engine) take(msgs []actor.Message) {
	if err := e.newRunner(crawl.NewIntake(crawl.IntakeConfig{Crawl: e.crawl.ID}, msgs)).run(); err != nil {
		e.log.Error("take requests", "error", err)
		e.giveBack(naming.IntakeQueue, msgs)
		return
	}
	e.acknowledge(context.Background(), naming.IntakeQueue, msgs)
	e.submitted.Store(max(0, e.submitted.Load()-int64(len(msgs)))) // only the tick loop takes
}

func (e *Engine) giveBack(queue string, msgs []actor.Message) {
	receipts := make([]actor.Receipt, len(msgs))
	for i, m := range msgs {
		receipts[i] = m.Receipt
	}
	if err := e.queues.release(context.Background(), queue, receipts); err != nil {
		e.log.Warn("give messages back", "queue", queue, "error", err) // they come again when their visibility ends
	}
}

// takeLate takes requests that came while the last work was done, and reports whether
// there were any.
func (e *Engine) takeLate() bool {
	wait := lastCall
	if time.Since(e.started) < justBegun {
		wait = firstCall
	}
	if e.submitted.Load() > 0 {
		wait = ownCall
	}
	select {
	case msgs := <-e.intake:
		e.take(msgs)
		return true
	case <-time.After(wait):
		return false
	}
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/platform"
)

// Call calls an actor between two of its replies, and returns the effects that the actor requests.
type Call func(now actor.Now) []actor.Issue

// Runner runs one actor. One goroutine delivers replies to it. Other goroutines, which end with it, each carry out one
// effect at a time.
type Runner struct {
	// After, if it is not nil, is called between two replies. Set it before Run.
	After func()

	e       *Engine
	actor   actor.Actor
	replies chan actor.Reply
	idle    chan actor.Issue // effects taken over by idle goroutines
	calls   chan Call

	ctx         context.Context // context of all effects
	cancel      context.CancelFunc
	fetches     context.Context
	cancelFetch context.CancelFunc
	wg          sync.WaitGroup
	dropped     <-chan struct{} // closed to drop the actor, as a crash would; nil: never

	mu       sync.Mutex
	leased   context.Context // context of the fetches under way; nil before the first, and once the lease has ended
	endLease context.CancelCauseFunc
	deadline time.Time                // end of the lease, as known last
	timer    *time.Timer              // calls expire
	received map[actor.Receipt]string // queues of the messages that are not acknowledged yet
}

// ErrDropped means that an actor was dropped before its end.
var ErrDropped = errors.New("the actor was dropped before its end")

// Runner returns a runner of an actor that has not started.
func (e *Engine) Runner(a actor.Actor) *Runner {
	r := &Runner{
		e: e, actor: a, replies: make(chan actor.Reply, 128), idle: make(chan actor.Issue), calls: make(chan Call, 16),
		received: map[actor.Receipt]string{},
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.fetches, r.cancelFetch = context.WithCancel(r.ctx)
	return r
}

func (e *Engine) now() actor.Now {
	t := time.Now()
	return actor.Now{Wall: t.Round(0), Mono: t.Sub(e.Started)}
}

// Run runs the actor to its end and returns its error. Nothing that it starts outlives the call.
func (r *Runner) Run() error {
	defer r.end()
	defer r.wg.Wait()
	defer r.cancel()
	issues := r.actor.Start(r.e.now())
	for {
		for _, is := range issues {
			r.execute(is)
		}
		if r.After != nil {
			r.After()
		}
		if ended, err := r.actor.Ended(); ended {
			return err
		}
		select {
		case reply := <-r.replies:
			issues = r.actor.Handle(r.e.now(), reply)
		case call := <-r.calls:
			issues = call(r.e.now())
		case <-r.dropped:
			r.actor.Drop()
			return ErrDropped
		case <-r.e.broken.Done():
			r.actor.Drop()
			return r.e.Trouble()
		}
	}
}

// end stops the timer of the lease, and makes the unacknowledged messages of the actor visible again, so that other
// receivers need not wait for their visibility timeout.
func (r *Runner) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.e.Trouble() != nil { // the next owner of the folder makes the messages visible
		return
	}
	byQueue := map[string][]platform.Receipt{}
	for receipt, queue := range r.received {
		byQueue[queue] = append(byQueue[queue], receipt)
	}
	clear(r.received)
	for queue, receipts := range byQueue {
		r.e.release(queue, receipts)
	}
}

// Call passes a call to the actor unless the actor has ended. It waits while many calls are waiting.
func (r *Runner) Call(c Call) {
	select {
	case r.calls <- c:
	case <-r.ctx.Done():
	}
}

// Offer passes a call to the actor unless many calls are waiting.
func (r *Runner) Offer(c Call) {
	select {
	case r.calls <- c:
	default:
	}
}

func (r *Runner) execute(is actor.Issue) {
	switch e := is.Effect.(type) {
	case actor.CancelFetches:
		r.cancelFetch()
	case actor.ExtendFetches:
		r.extend(e.Deadline)
	}
	select {
	case r.idle <- is:
	default:
		r.wg.Go(func() { r.work(is) })
	}
}

// work carries out an effect and then others. A new goroutine for each effect would have to grow its stack each time.
func (r *Runner) work(is actor.Issue) {
	for {
		v, err := r.perform(is.Effect)
		r.e.Lost(err)
		select {
		case r.replies <- actor.Reply{ID: is.ID, Value: v, Err: err}:
		case <-r.ctx.Done():
			return
		}
		select {
		case is = <-r.idle:
		case <-r.ctx.Done():
			return
		}
	}
}

func (r *Runner) perform(effect actor.Effect) (any, error) {
	p := r.e.Platform
	switch e := effect.(type) {
	case actor.Fetch:
		return r.fetch(e.Request), nil
	case actor.CancelFetches, actor.ExtendFetches:
		return nil, nil
	case actor.Sleep:
		t := time.NewTimer(e.For)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.ctx.Done():
		}
		return nil, nil
	case actor.Work:
		return e.Do()
	case actor.GetObject:
		return GetObject(r.ctx, p, e)
	case actor.PutObject:
		return nil, PutObject(r.ctx, p, e)
	case actor.DeleteObject:
		return nil, p.DeleteObject(r.ctx, e.Name)
	case actor.ReadRecords:
		return ReadRecords(r.ctx, p, e.Keys)
	case actor.WriteRecord:
		rev, err := WriteRecord(r.ctx, p, e)
		r.e.cfg.Changed(e.Key)
		return rev, err
	case actor.Send:
		err := r.e.Send(r.ctx, e)
		r.e.cfg.Changed("")
		return nil, err
	case actor.Receive:
		msgs, err := r.e.Receive(r.ctx, e)
		r.mu.Lock()
		for _, m := range msgs {
			r.received[m.Receipt] = e.Queue
		}
		r.mu.Unlock()
		return msgs, err
	case actor.Acknowledge:
		receipts := make([]platform.Receipt, len(e.Receipts))
		r.mu.Lock()
		for i, receipt := range e.Receipts {
			receipts[i] = receipt
			delete(r.received, receipt)
		}
		r.mu.Unlock()
		return nil, r.e.acknowledge(r.ctx, e.Queue, receipts)
	}
	return nil, errors.ErrUnsupported
}

// fetch waits until the limit of concurrent requests allows one more, and fetches. If a page makes the code panic, the
// outcome says so, and the crawl continues.
func (r *Runner) fetch(req actor.Request) (out *actor.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			r.e.Log.Error("a page crashed its fetch", "url", req.URL.String(), "panic", p, "stack", string(debug.Stack()))
			out = actor.Aborted(req, time.Now())
			out.Page.Outcome, out.Page.Detail, out.Temporary = blobschema.OutcomeSuspect, fmt.Sprintf("panic: %.200v", p), false
		}
	}()
	ctx := r.extend(req.Deadline)
	if err := r.e.connections.Acquire(ctx, 1); err != nil {
		return actor.Aborted(req, time.Now())
	}
	defer r.e.connections.Release(1)
	return r.e.client.Fetch(ctx, req)
}

var errLease = errors.New("the lease ends")

// extend records that the lease lasts until a deadline, and returns the context of fetches. They share one,
// because all of them end with the lease of their actor.
func (r *Runner) extend(deadline time.Time) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if deadline.After(r.deadline) {
		r.deadline = deadline // the timer finds it when it fires
	}
	if r.leased == nil {
		r.leased, r.endLease = context.WithCancelCause(r.fetches)
		r.timer = time.AfterFunc(time.Until(r.deadline), r.expire)
	}
	return r.leased
}

// expire ends the fetches under way if the lease has ended.
func (r *Runner) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := time.Until(r.deadline); left > 0 {
		r.timer.Reset(left)
		return
	}
	r.endLease(errLease)
	r.leased = nil
}

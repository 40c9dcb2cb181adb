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
)

// Call does something with an actor between two of its replies, and returns the effects that it asks for.
type Call func(now actor.Now) []actor.Issue

// Runner carries one actor: one goroutine delivers replies to it, others carry out
// its effects, as many as are under way at once, and end with it.
type Runner struct {
	// After, if it is not nil, is called between two replies. Set it before Run.
	After func()

	e       *Engine
	actor   actor.Actor
	replies chan actor.Reply
	idle    chan actor.Issue // taken by goroutines that have nothing to do
	calls   chan Call

	ctx         context.Context // of all effects
	cancel      context.CancelFunc
	fetches     context.Context
	cancelFetch context.CancelFunc
	wg          sync.WaitGroup
	given       <-chan struct{} // closed: the actor is given up, as if the process had died; nil: never

	mu       sync.Mutex
	extended time.Time                // deadline of all fetches under way; zero: each has its own
	received map[actor.Receipt]string // and not acknowledged yet: their queues
}

// ErrGivenUp means that an actor did not come to its end.
var ErrGivenUp = errors.New("given up")

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

// Run carries the actor to its end and returns its error. Nothing that it starts outlives the call.
func (r *Runner) Run() error {
	defer r.giveBack()
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
		case <-r.given:
			r.actor.Drop()
			return ErrGivenUp
		case <-r.e.broken:
			r.actor.Drop()
			return r.e.trouble
		}
	}
}

// giveBack makes the messages visible again that the actor did not acknowledge: else
// nobody could work on them until their visibility ends.
func (r *Runner) giveBack() {
	if r.e.Trouble() != nil { // they are visible again when the folder is opened
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	byQueue := map[string][]actor.Receipt{}
	for receipt, queue := range r.received {
		byQueue[queue] = append(byQueue[queue], receipt)
	}
	clear(r.received)
	for queue, receipts := range byQueue {
		if err := r.e.queues.release(context.Background(), queue, receipts); err != nil {
			r.e.Log.Warn("give messages back", "queue", queue, "error", err) // they come again when their visibility ends
		}
	}
}

// Call has the actor called, unless it has ended. It waits while many calls are waiting.
func (r *Runner) Call(c Call) {
	select {
	case r.calls <- c:
	case <-r.ctx.Done():
	}
}

// Offer has the actor called, unless many calls are waiting.
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
		r.mu.Lock()
		r.extended = e.Deadline
		r.mu.Unlock()
	}
	select {
	case r.idle <- is:
	default:
		r.wg.Go(func() { r.work(is) })
	}
}

// work carries out an effect, and others as they come. A goroutine that ended with its effect
// would leave the next one to grow a stack for a page anew.
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
		err := r.e.queues.send(r.ctx, e)
		r.e.cfg.Changed("")
		return nil, err
	case actor.Receive:
		msgs, err := r.e.queues.receive(r.ctx, e)
		r.mu.Lock()
		for _, m := range msgs {
			r.received[m.Receipt] = e.Queue
		}
		r.mu.Unlock()
		return msgs, err
	case actor.Acknowledge:
		r.mu.Lock()
		for _, receipt := range e.Receipts {
			delete(r.received, receipt)
		}
		r.mu.Unlock()
		return nil, r.e.queues.acknowledge(r.ctx, e)
	}
	return nil, errors.ErrUnsupported
}

// fetch waits for one of the process's connections and asks. A page that makes our own
// code panic is refused with that for a reason; it does not take the crawl with it.
func (r *Runner) fetch(req actor.Request) (out *actor.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			r.e.Log.Error("a page crashed its fetch", "url", req.URL.String(), "panic", p, "stack", string(debug.Stack()))
			out = actor.Aborted(req, time.Now())
			out.Page.Outcome, out.Page.Detail, out.Temporary = blobschema.OutcomeSuspect, fmt.Sprintf("panic: %.200v", p), false
		}
	}()
	ctx, end := r.leased(req.Deadline)
	defer end()
	if err := r.e.connections.Acquire(ctx, 1); err != nil {
		return actor.Aborted(req, time.Now())
	}
	defer r.e.connections.Release(1)
	return r.e.client.Fetch(ctx, req)
}

var errLease = errors.New("the lease ends")

// leased returns a context for a fetch. It ends with all fetches, and at the deadline, unless that was
// extended before.
func (r *Runner) leased(deadline time.Time) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(r.fetches)
	r.mu.Lock() // the function below uses the timer
	defer r.mu.Unlock()
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(deadline), func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if left := time.Until(r.extended); left <= 0 {
			cancel(errLease)
		} else if ctx.Err() == nil {
			timer.Reset(left)
		}
	})
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

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
	"github.com/orbweaver/orbweaver/internal/crawl"
)

// runner carries one actor: one goroutine delivers replies to it, others carry out
// what it asks for, as many as there is to do at once, and end with it.
type runner struct {
	e       *Engine
	actor   actor.Actor
	replies chan actor.Reply
	idle    chan actor.Issue // taken by goroutines that have nothing to do
	signals chan crawl.Signal

	ctx         context.Context // of all effects
	cancel      context.CancelFunc
	fetches     context.Context
	cancelFetch context.CancelFunc
	wg          sync.WaitGroup
	after       func()          // called on the loop, after each event
	given       <-chan struct{} // closed: the actor is given up, as if the process had died; nil: never

	mu       sync.Mutex
	extended time.Time                // deadline of all fetches under way; zero: each has its own
	received map[actor.Receipt]string // and not acknowledged yet: their queues
}

// errGivenUp says that an actor did not come to its end.
var errGivenUp = errors.New("given up")

func (e *Engine) newRunner(a actor.Actor) *runner {
	r := &runner{e: e, actor: a, replies: make(chan actor.Reply, 128), idle: make(chan actor.Issue), signals: make(chan crawl.Signal, 16), received: map[actor.Receipt]string{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.fetches, r.cancelFetch = context.WithCancel(r.ctx)
	return r
}

func (e *Engine) now() actor.Now {
	t := time.Now()
	return actor.Now{Wall: t.Round(0), Mono: t.Sub(e.started)}
}

// run carries the actor to its end. Nothing it started outlives the call.
func (r *runner) run() error {
	defer r.giveBack()
	defer r.wg.Wait()
	defer r.cancel()
	issues := r.actor.Start(r.e.now())
	for {
		for _, is := range issues {
			r.execute(is)
		}
		if r.after != nil {
			r.after()
		}
		if ended, err := r.actor.Ended(); ended {
			return err
		}
		select {
		case reply := <-r.replies:
			issues = r.actor.Handle(r.e.now(), reply)
		case sig := <-r.signals:
			issues = r.actor.(*crawl.Step).Signal(r.e.now(), sig)
		case <-r.given:
			r.actor.Drop()
			return errGivenUp
		case <-r.e.broken:
			r.actor.Drop()
			return r.e.fatalError()
		}
	}
}

// giveBack makes the messages visible again that the actor did not acknowledge: else
// nobody could work on them until their visibility ends.
func (r *runner) giveBack() {
	if r.e.isLost() { // they are visible again when the folder is opened
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
			r.e.log.Warn("give messages back", "queue", queue, "error", err) // they come again when their visibility ends
		}
	}
}

// signal delivers a signal unless the actor has ended.
func (r *runner) signal(s crawl.Signal) {
	select {
	case r.signals <- s:
	case <-r.ctx.Done():
	}
}

// offer delivers a signal that may be dropped when others wait already.
func (r *runner) offer(s crawl.Signal) {
	select {
	case r.signals <- s:
	default:
	}
}

func (r *runner) execute(is actor.Issue) {
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
func (r *runner) work(is actor.Issue) {
	for {
		v, err := r.perform(is.Effect)
		r.e.lost(err)
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

func (r *runner) perform(effect actor.Effect) (any, error) {
	p := r.e.platform
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
		return nil, DeleteObject(r.ctx, p, e)
	case actor.ReadRecords:
		return ReadRecords(r.ctx, p, e.Keys)
	case actor.WriteRecord:
		rev, err := WriteRecord(r.ctx, p, e)
		r.e.written(e.Key)
		return rev, err
	case actor.Send:
		err := r.e.queues.send(r.ctx, e)
		r.e.written("")
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
func (r *runner) fetch(req actor.Request) (out *actor.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			r.e.log.Error("a page crashed its fetch", "url", req.URL.String(), "panic", p, "stack", string(debug.Stack()))
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
func (r *runner) leased(deadline time.Time) (context.Context, func()) {
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

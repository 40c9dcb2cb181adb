package experiment

import (
	"context"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/platform"
)

// Durations of calls on a farm, in addition to the transfer: as in package measure, with the network of a 1 GB function.
const (
	farmTable = 5 * time.Millisecond
	farmQueue = 10 * time.Millisecond
	farmGet   = 20 * time.Millisecond
	farmPut   = 40 * time.Millisecond
	farmNet   = 80 << 20 // bytes per second
)

// farm runs actors as if each had its own machine with one processor, on a virtual clock. Calls take as long as in a cloud,
// and work takes the processor time that it takes here, one piece after another; nothing else may run meanwhile. Actors
// communicate by stored data and messages.
type farm struct {
	virtual.Clock
	platform *platform.Platform
	sent     func(body []byte) error // receives the messages to the queue of ranks
	calls    int                     // number of calls of the platform
	steps    int                     // number of rank steps
	busy     time.Duration           // processor time of all workers
	err      error
}

// worker is an actor on a farm, with a processor of its own.
type worker struct {
	*farm
	actor.Actor
	process virtual.Process
	free    time.Duration // time at which its processor is free
}

// start starts an actor on a new worker. after, if not nil, is called when the actor has ended.
func (f *farm) start(a actor.Actor, after func()) {
	w := &worker{farm: f, Actor: a, free: f.Mono}
	w.process = virtual.Process{
		Actor: w, Now: w.clock,
		Carry: func(is actor.Issue) { w.at(w.free, func() { w.issue(is) }) },
		OnEnd: func(err error) {
			f.fail(err)
			if after != nil {
				w.at(w.free, after)
			}
		},
	}
	f.After(0, w.process.Start)
}

// at schedules do at a time.
func (f *farm) at(when time.Duration, do func()) { f.After(when-f.Mono, do) }

func (f *farm) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// Start starts the actor and measures its processor time.
func (w *worker) Start(now actor.Now) (issues []actor.Issue) {
	w.spend(func() { issues = w.Actor.Start(now) })
	return issues
}

// Handle passes a reply to the actor and measures its processor time.
func (w *worker) Handle(now actor.Now, r actor.Reply) (issues []actor.Issue) {
	w.spend(func() { issues = w.Actor.Handle(now, r) })
	return issues
}

// run runs until nothing is left to do, and returns the time.
func (f *farm) run() (time.Duration, error) {
	for f.err == nil && f.Next() {
	}
	return f.Mono, f.err
}

func (w *worker) clock() actor.Now {
	return actor.Now{Wall: archiveTime.Add(24*time.Hour + w.Mono), Mono: w.Mono}
}

// spend does something on the worker's processor, and returns the time of its end.
func (w *worker) spend(do func()) time.Duration {
	before := processorTime()
	do()
	took := processorTime() - before
	w.busy += took
	w.free = max(w.free, w.Mono) + took
	return w.free
}

// issue carries out an effect at once, and delivers its reply after the time that it takes.
func (w *worker) issue(is actor.Issue) {
	ctx := context.Background()
	reply := func(at time.Duration, v any, err error) {
		w.at(at, func() { w.process.Reply(is.ID, v, err) })
	}
	w.calls++
	moved := func(bytes int) time.Duration { return time.Duration(bytes) * time.Second / farmNet }
	switch e := is.Effect.(type) {
	case actor.Work:
		w.calls--
		var v any
		var err error
		at := w.spend(func() { v, err = e.Do() })
		reply(at, v, err)
	case actor.Sleep:
		reply(w.Mono+e.For, nil, nil)
	case actor.GetObject:
		data, err := engine.GetObject(ctx, w.platform, e)
		reply(w.Mono+farmGet+moved(len(data)), data, err)
	case actor.PutObject:
		size := 0
		for _, p := range e.Parts {
			size += len(p)
		}
		reply(w.Mono+farmPut+moved(size), nil, engine.PutObject(ctx, w.platform, e))
	case actor.DeleteObject:
		reply(w.Mono+farmPut, nil, w.platform.DeleteObject(ctx, e.Name))
	case actor.ReadRecords:
		recs, err := engine.ReadRecords(ctx, w.platform, e.Keys)
		reply(w.Mono+farmTable, recs, err)
	case actor.WriteRecord:
		rev, err := engine.WriteRecord(ctx, w.platform, e)
		reply(w.Mono+farmTable, rev, err)
	case actor.Send:
		for _, body := range e.Bodies {
			w.After(2*farmQueue, func() { w.fail(w.sent(body)) })
		}
		reply(w.Mono+farmQueue, nil, nil)
	default:
		w.fail(fmt.Errorf("effect %T is unknown on a farm", e))
	}
}

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

// What calls take on a farm, in addition to what they move: as in package simulate, and what a function of
// 1 GB has of the net.
const (
	farmTable = 5 * time.Millisecond
	farmQueue = 10 * time.Millisecond
	farmGet   = 20 * time.Millisecond
	farmPut   = 40 * time.Millisecond
	farmNet   = 80 << 20 // bytes a second
)

// farm runs actors as if each had a machine of its own, with one processor: on a virtual clock, on which
// calls take what they take in a cloud, and work the processor time that it takes here, where one piece of it
// is done after another, and nothing else may run. Actors meet in what is stored, and by messages.
type farm struct {
	virtual.Clock
	platform *platform.Platform
	sent     func(body []byte) error // takes messages to the queue of ranks, when they are there
	calls    int                     // of the platform
	steps    int                     // of ranks
	busy     time.Duration           // of all processors
	err      error
}

// worker is an actor on a farm.
type worker struct {
	*farm
	actor actor.Actor
	free  time.Duration // when its processor is
	ended bool
	after func() // called then
}

// start gives an actor a worker, from now on.
func (f *farm) start(a actor.Actor, after func()) {
	w := &worker{farm: f, actor: a, free: f.Mono, after: after}
	f.After(0, func() { w.resume(func() []actor.Issue { return a.Start(w.clock()) }) })
}

// run runs until nothing is left to do, and returns when that was.
func (f *farm) run() (time.Duration, error) {
	for f.err == nil && f.Next() {
	}
	return f.Mono, f.err
}

func (w *worker) clock() actor.Now {
	return actor.Now{Wall: archiveTime.Add(24*time.Hour + w.Mono), Mono: w.Mono}
}

// spend does something on the worker's processor, and returns when it is done.
func (w *worker) spend(do func()) time.Duration {
	before := processorTime()
	do()
	took := processorTime() - before
	w.busy += took
	w.free = max(w.free, w.Mono) + took
	return w.free
}

// resume has the actor go on, and carries out what it asks for.
func (w *worker) resume(event func() []actor.Issue) {
	if w.ended {
		return
	}
	var issues []actor.Issue
	at := w.spend(func() { issues = event() })
	for _, is := range issues {
		w.After(at-w.Mono, func() { w.issue(is) })
	}
	ended, err := w.actor.Ended()
	if !ended {
		return
	}
	w.ended = true
	if err != nil && w.err == nil {
		w.farm.err = err
	}
	if w.after != nil {
		w.After(at-w.Mono, w.after)
	}
}

// issue has an effect happen at once, and its reply come when it would have ended.
func (w *worker) issue(is actor.Issue) {
	ctx := context.Background()
	reply := func(at time.Duration, v any, err error) {
		w.After(at-w.Mono, func() {
			w.resume(func() []actor.Issue { return w.actor.Handle(w.clock(), actor.Reply{ID: is.ID, Value: v, Err: err}) })
		})
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
			w.After(2*farmQueue, func() {
				if err := w.sent(body); err != nil && w.err == nil {
					w.farm.err = err
				}
			})
		}
		reply(w.Mono+farmQueue, nil, nil)
	default:
		w.farm.err = fmt.Errorf("effect %T is unknown on a farm", e)
	}
}

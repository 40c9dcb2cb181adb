package experiment

import (
	"container/heap"
	"context"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/engine"
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
	platform *platform.Platform
	sent     func(body []byte) error // takes messages to the queue of ranks, when they are there
	calls    int                     // of the platform
	steps    int                     // of ranks
	now      time.Duration
	seq      int
	events   farmEvents
	busy     time.Duration // of all processors
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

type farmEvent struct {
	at  time.Duration
	seq int
	do  func()
}

// farmEvents are a heap by time, and of one time in the order in which they were made.
type farmEvents []farmEvent

func (e farmEvents) Len() int { return len(e) }
func (e farmEvents) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e farmEvents) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *farmEvents) Push(x any)   { *e = append(*e, x.(farmEvent)) }
func (e *farmEvents) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (f *farm) at(t time.Duration, do func()) {
	f.seq++
	heap.Push(&f.events, farmEvent{t, f.seq, do})
}

// start gives an actor a worker, from now on.
func (f *farm) start(a actor.Actor, after func()) {
	w := &worker{farm: f, actor: a, free: f.now, after: after}
	f.at(f.now, func() { w.resume(func() []actor.Issue { return a.Start(w.clock()) }) })
}

// run runs until nothing is left to do, and returns when that was.
func (f *farm) run() (time.Duration, error) {
	for len(f.events) > 0 && f.err == nil {
		e := heap.Pop(&f.events).(farmEvent)
		f.now = e.at
		e.do()
	}
	return f.now, f.err
}

func (w *worker) clock() actor.Now {
	return actor.Now{Wall: archiveTime.Add(24*time.Hour + w.now), Mono: w.now}
}

// spend does something on the worker's processor, and returns when it is done.
func (w *worker) spend(do func()) time.Duration {
	before := processorTime()
	do()
	took := processorTime() - before
	w.busy += took
	w.free = max(w.free, w.now) + took
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
		w.at(at, func() { w.issue(is) })
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
		w.at(at, w.after)
	}
}

// issue has an effect happen at once, and its reply come when it would have ended.
func (w *worker) issue(is actor.Issue) {
	ctx := context.Background()
	reply := func(at time.Duration, v any, err error) {
		w.at(at, func() {
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
		reply(w.now+e.For, nil, nil)
	case actor.GetObject:
		data, err := engine.GetObject(ctx, w.platform, e)
		reply(w.now+farmGet+moved(len(data)), data, err)
	case actor.PutObject:
		size := 0
		for _, p := range e.Parts {
			size += len(p)
		}
		reply(w.now+farmPut+moved(size), nil, engine.PutObject(ctx, w.platform, e))
	case actor.DeleteObject:
		reply(w.now+farmPut, nil, w.platform.DeleteObject(ctx, e.Name))
	case actor.ReadRecords:
		recs, err := engine.ReadRecords(ctx, w.platform, e.Keys)
		reply(w.now+farmTable, recs, err)
	case actor.WriteRecord:
		rev, err := engine.WriteRecord(ctx, w.platform, e)
		reply(w.now+farmTable, rev, err)
	case actor.Send:
		for _, body := range e.Bodies {
			w.at(w.now+2*farmQueue, func() {
				if err := w.sent(body); err != nil && w.err == nil {
					w.farm.err = err
				}
			})
		}
		reply(w.now+farmQueue, nil, nil)
	default:
		w.farm.err = fmt.Errorf("effect %T is unknown on a farm", e)
	}
}

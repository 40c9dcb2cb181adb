package actor

import (
	"iter"
	"time"
)

// Actor is a procedure without I/O: an executor starts it, carries out the effects
// it issues, and delivers the replies, one at a time, until it has ended.
type Actor interface {
	Start(Now) []Issue
	Handle(Now, Reply) []Issue
	Ended() (ended bool, err error)
	Drop()
}

// Loop carries an actor: replies in, effects out. Sequential procedures are tasks,
// coroutines that the loop resumes. Whatever happens to an actor it first tells its loop
// (Begin, Deliver, Advance), then lets it Turn, and returns what Flush does.
type Loop struct {
	now    Now
	begun  Now
	lastID uint64
	waits  map[uint64]func(Reply)
	out    []Issue
	tasks  []*Task
	ended  bool
	err    error
}

// Begin sets the time that the actor starts at.
func (l *Loop) Begin(now Now) {
	l.now, l.begun = now, now
	l.waits = map[uint64]func(Reply){}
}

// Advance sets the time of an event that is no reply.
func (l *Loop) Advance(now Now) { l.now = now }

// Deliver hands a reply to whoever waits for it.
func (l *Loop) Deliver(now Now, r Reply) {
	l.now = now
	if then, ok := l.waits[r.ID]; ok && !l.ended {
		delete(l.waits, r.ID)
		then(r)
	}
}

// Now is the time of the event that is being handled.
func (l *Loop) Now() Now { return l.now }

// Clock is the time that pace and due times are measured by: the wall clock as of
// the actor's start, carried on by the monotonic one, so that it never jumps.
func (l *Loop) Clock() time.Time { return l.begun.Wall.Add(l.Age()) }

// Begun is the wall clock as of the actor's start.
func (l *Loop) Begun() time.Time { return l.begun.Wall }

// Age is how long ago the actor was started.
func (l *Loop) Age() time.Duration { return l.now.Mono - l.begun.Mono }

// Issue asks for an effect and calls then with its reply.
func (l *Loop) Issue(e Effect, then func(Reply)) {
	l.lastID++
	l.waits[l.lastID] = then
	l.out = append(l.out, Issue{ID: l.lastID, Effect: e})
}

// Spawn starts a task. An error it returns ends the actor.
func (l *Loop) Spawn(fn func(*Task) error) {
	t := &Task{l: l}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			t.done = true
			if r := recover(); r != nil {
				if _, ok := r.(stopped); !ok {
					panic(r)
				}
			}
		}()
		if err := fn(t); err != nil {
			l.End(err)
		}
	})
	l.tasks = append(l.tasks, t)
	t.next()
}

// Turn resumes the tasks whose conditions hold now, until none does.
func (l *Loop) Turn() {
	for again := true; again && !l.ended; {
		again = false
		for _, t := range l.tasks {
			if t.ready != nil && !t.done && t.ready() {
				t.ready = nil
				again = true
				t.next()
			}
		}
	}
	live := l.tasks[:0]
	for _, t := range l.tasks {
		if !t.done {
			live = append(live, t)
		}
	}
	clear(l.tasks[len(live):])
	l.tasks = live
}

// Flush returns the effects issued since the last flush, and unwinds everything
// once the actor has ended.
func (l *Loop) Flush() []Issue {
	if l.ended {
		for _, t := range l.tasks {
			t.stop()
		}
		l.tasks, l.out = nil, nil
		return nil
	}
	out := l.out
	l.out = nil
	return out
}

// End ends the actor, with the error of the first call.
func (l *Loop) End(err error) {
	if !l.ended {
		l.ended, l.err = true, err
	}
}

// Ended reports whether the actor is done, and with what error.
func (l *Loop) Ended() (bool, error) { return l.ended, l.err }

// Drop gives up an actor that is not to go on, as if its process had died: what waits in
// it is unwound, and its memory is free. Not while Start or Handle runs.
func (l *Loop) Drop() {
	l.End(nil)
	l.Flush()
}

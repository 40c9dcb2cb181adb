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

// Loop runs an actor: replies come in, effects go out. Sequential procedures are tasks,
// coroutines that the loop resumes. An actor first passes each event to its loop
// (Begin, Deliver, Advance), then calls Turn, and returns the result of Flush.
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

// Deliver passes a reply to the function or task that waits for it.
func (l *Loop) Deliver(now Now, r Reply) {
	l.now = now
	if then, ok := l.waits[r.ID]; ok && !l.ended {
		delete(l.waits, r.ID)
		then(r)
	}
}

// Now returns the time of the current event.
func (l *Loop) Now() Now { return l.now }

// Clock returns the time for pace and due times: the wall clock at the actor's start plus the
// monotonic time since then, so that it never jumps.
func (l *Loop) Clock() time.Time { return l.begun.Wall.Add(l.Age()) }

// Begun returns the wall clock at the actor's start.
func (l *Loop) Begun() time.Time { return l.begun.Wall }

// Age returns the time since the actor's start.
func (l *Loop) Age() time.Duration { return l.now.Mono - l.begun.Mono }

// Issue issues an effect and calls then with its reply.
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

// Flush returns the effects issued since the last flush. After the actor has ended, it unwinds the
// tasks.
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

// Drop ends an actor as if its process had died: it unwinds the waiting tasks and frees their
// memory. Do not call it while Start or Handle runs.
func (l *Loop) Drop() {
	l.End(nil)
	l.Flush()
}

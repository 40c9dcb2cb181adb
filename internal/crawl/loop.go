package crawl

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

// loop carries an actor: replies in, effects out. Sequential procedures are tasks,
// coroutines that the loop resumes; nothing here runs in parallel, so an actor's
// state needs no locks, and the same replies always give the same effects.
type loop struct {
	now    Now
	start  Now
	lastID uint64
	waits  map[uint64]func(Reply)
	out    []Issue
	tasks  []*task
	ended  bool
	err    error
}

// task is one coroutine of an actor.
type task struct {
	l     *loop
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	ready func() bool // what the task awaits, if not a reply
	reply Reply
	done  bool
}

// stopped unwinds a task whose actor has ended.
type stopped struct{}

func (l *loop) begin(now Now) {
	l.now, l.start = now, now
	l.waits = map[uint64]func(Reply){}
}

// clock is the time that pace and due times are measured by: the wall clock as of
// the actor's start, carried on by the monotonic one, so that it never jumps.
func (l *loop) clock() time.Time { return l.start.Wall.Add(l.now.Mono - l.start.Mono) }

// issue asks for an effect and calls then with its reply.
func (l *loop) issue(e Effect, then func(Reply)) {
	l.lastID++
	l.waits[l.lastID] = then
	l.out = append(l.out, Issue{ID: l.lastID, Effect: e})
}

// spawn starts a task. An error it returns ends the actor.
func (l *loop) spawn(fn func(*task) error) *task {
	t := &task{l: l}
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
			l.end(err)
		}
	})
	l.tasks = append(l.tasks, t)
	t.next()
	return t
}

func (t *task) pause() {
	if !t.yield(struct{}{}) {
		panic(stopped{})
	}
}

// do carries out an effect and returns its reply.
func (t *task) do(e Effect) (any, error) {
	t.l.issue(e, func(r Reply) {
		t.reply = r
		t.next()
	})
	t.pause()
	return t.reply.Value, t.reply.Err
}

// await waits until a condition on the actor's state holds.
func (t *task) await(cond func() bool) {
	if cond() {
		return
	}
	t.ready = cond
	t.pause()
}

func (t *task) sleep(d time.Duration) { _, _ = t.do(Sleep{For: d}) }

// Ended reports whether the actor is done, and with what error.
func (l *loop) Ended() (bool, error) { return l.ended, l.err }

func (l *loop) end(err error) {
	if !l.ended {
		l.ended, l.err = true, err
	}
}

// Drop gives up an actor that is not to go on, as if its process had died: what waits in
// it is unwound, and its memory is free. Not while Start or Handle runs.
func (l *loop) Drop() {
	l.end(nil)
	l.flush()
}

// handle delivers a reply to whoever waits for it.
func (l *loop) handle(r Reply) {
	if then, ok := l.waits[r.ID]; ok && !l.ended {
		delete(l.waits, r.ID)
		then(r)
	}
}

// turn resumes the tasks whose conditions hold now, until none does.
func (l *loop) turn() {
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

// flush returns the effects issued since the last flush, and unwinds everything
// once the actor has ended.
func (l *loop) flush() []Issue {
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

// procedure is an actor that is one task from beginning to end. Whoever embeds it sets
// body.
type procedure struct {
	loop
	body func(*task) error
}

// Start begins the actor.
func (p *procedure) Start(now Now) []Issue {
	p.begin(now)
	p.spawn(func(t *task) error {
		err := p.body(t)
		p.end(err)
		return err
	})
	p.turn()
	return p.flush()
}

// Handle takes the reply to an effect.
func (p *procedure) Handle(now Now, r Reply) []Issue {
	p.now = now
	p.handle(r)
	p.turn()
	return p.flush()
}

package actor

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// call is an effect of these tests, identified by its name.
type call string

func (call) effect() {}

// names returns the names of the effects issued since the last flush; byName holds their IDs.
func names(issues []Issue) (out []string) {
	for _, is := range issues {
		out = append(out, string(is.Effect.(call)))
	}
	return out
}

type numbers map[string]uint64

func (n numbers) take(t *testing.T, issues []Issue, want ...string) {
	t.Helper()
	if got := names(issues); !slices.Equal(got, want) {
		t.Fatalf("issued %v, want %v", got, want)
	}
	for _, is := range issues {
		n[string(is.Effect.(call))] = is.ID
	}
}

// deliver handles a reply as every actor does.
func deliver(l *Loop, r Reply) []Issue {
	l.Deliver(l.now, r)
	l.Turn()
	return l.Flush()
}

func newLoop() *Loop {
	l := &Loop{}
	l.Begin(Now{})
	return l
}

// TestTasksTakeTurns checks that each task gets the replies to its own effects, in any order.
func TestTasksTakeTurns(t *testing.T) {
	l, n := newLoop(), numbers{}
	var log []string
	for _, name := range []string{"a", "b"} {
		l.Spawn(func(t *Task) error {
			for i := range 2 {
				v, err := t.Do(call(fmt.Sprint(name, i)))
				log = append(log, fmt.Sprint(name, i, " ", v, " ", err))
			}
			return nil
		})
	}
	n.take(t, l.Flush(), "a0", "b0")
	n.take(t, deliver(l, Reply{ID: n["b0"], Value: 1}), "b1")
	n.take(t, deliver(l, Reply{ID: n["b0"], Value: 2})) // again: nothing waits for it
	n.take(t, deliver(l, Reply{ID: 12345, Value: 3}))
	n.take(t, deliver(l, Reply{ID: n["b1"], Err: ErrConflict}))
	n.take(t, deliver(l, Reply{ID: n["a0"], Value: 4}), "a1")
	n.take(t, deliver(l, Reply{ID: n["a1"], Value: 5}))
	want := []string{"b0 1 <nil>", "b1 <nil> " + ErrConflict.Error(), "a0 4 <nil>", "a1 5 <nil>"}
	if !slices.Equal(log, want) {
		t.Errorf("got %q, want %q", log, want)
	}
	if len(l.tasks) != 0 {
		t.Errorf("%d tasks are left", len(l.tasks))
	}
	if ended, err := l.Ended(); ended {
		t.Errorf("the actor ended with its tasks: %v", err)
	}
}

// TestAwait checks that a task continues when its condition holds, also if another task has made it true, in any order of
// their starts.
func TestAwait(t *testing.T) {
	l, n := newLoop(), numbers{}
	stage := 0
	for _, wait := range []int{3, 2, 1, 0} {
		l.Spawn(func(t *Task) error {
			t.Await(func() bool { return stage == wait })
			stage++
			_, err := t.Do(call(fmt.Sprint(wait)))
			return err
		})
	}
	n.take(t, l.Flush(), "0") // Await does not wait for a condition that holds already
	l.Turn()
	n.take(t, l.Flush(), "1", "2", "3")
	if stage != 4 {
		t.Errorf("stage %d", stage)
	}
}

// TestErrorEndsActor checks that the first error ends the actor. All other tasks are unwound, including their deferred calls;
// nothing is issued or run afterwards.
func TestErrorEndsActor(t *testing.T) {
	l, n := newLoop(), numbers{}
	broken := errors.New("broken")
	var unwound, ran []string
	work := func(name string, end error) {
		l.Spawn(func(t *Task) error {
			defer func() { unwound = append(unwound, name) }()
			_, err := t.Do(call(name))
			ran = append(ran, name)
			l.Issue(call("after "+name), func(Reply) { ran = append(ran, "reply after "+name) })
			return errors.Join(err, end)
		})
	}
	work("a", nil)
	work("b", broken)
	l.Spawn(func(t *Task) error {
		defer func() { unwound = append(unwound, "c") }()
		t.Await(func() bool { return len(ran) == 1 }) // becomes true too late
		ran = append(ran, "c")
		return nil
	})
	n.take(t, l.Flush(), "a", "b")
	n.take(t, deliver(l, Reply{ID: n["b"]}))
	if ended, err := l.Ended(); !ended || !errors.Is(err, broken) {
		t.Errorf("ended %v with %v", ended, err)
	}
	n.take(t, deliver(l, Reply{ID: n["a"]}))
	n.take(t, l.Flush())
	l.End(errors.New("another"))
	if _, err := l.Ended(); !errors.Is(err, broken) {
		t.Errorf("the error became %v", err)
	}
	if want := []string{"b"}; !slices.Equal(ran, want) {
		t.Errorf("%v ran, want %v", ran, want)
	}
	if want := []string{"b", "a", "c"}; !slices.Equal(unwound, want) {
		t.Errorf("tasks %v were unwound, want %v", unwound, want)
	}
}

// TestEndWell checks that no callback is called after an actor has ended without an error.
func TestEndWell(t *testing.T) {
	l, n := newLoop(), numbers{}
	l.Issue(call("x"), func(Reply) { t.Error("a callback after the end") })
	l.Issue(call("y"), func(Reply) { l.End(nil) })
	n.take(t, l.Flush(), "x", "y")
	n.take(t, deliver(l, Reply{ID: n["y"]}))
	n.take(t, deliver(l, Reply{ID: n["x"]}))
	if ended, err := l.Ended(); !ended || err != nil {
		t.Errorf("ended %v with %v", ended, err)
	}
}

// TestPanicIsNotSwallowed checks that panics pass through a task, except the one that unwinds it.
func TestPanicIsNotSwallowed(t *testing.T) {
	l, n := newLoop(), numbers{}
	l.Spawn(func(t *Task) error {
		_, _ = t.Do(call("x"))
		panic("a bug")
	})
	n.take(t, l.Flush(), "x")
	defer func() {
		if r := recover(); r != "a bug" {
			t.Errorf("recovered %v", r)
		}
	}()
	deliver(l, Reply{ID: n["x"]})
	t.Error("the test continued after a panic")
}

// TestNoCoroutineIsLeft checks that tasks that wait when their actor ends leave no goroutine behind, even if other tasks
// started them.
func TestNoCoroutineIsLeft(t *testing.T) {
	const tasks = 50
	l := newLoop()
	for i := range tasks {
		l.Spawn(func(t *Task) error {
			l.Spawn(func(t *Task) error {
				t.Await(func() bool { return false })
				return nil
			})
			if i%2 == 0 {
				t.Sleep(time.Hour)
			}
			t.Await(func() bool { return false })
			return nil
		})
	}
	l.Turn()
	if n := len(l.Flush()); n != tasks/2 {
		t.Fatalf("%d effects", n)
	}
	waiting := runtime.NumGoroutine()
	if waiting < 2*tasks {
		t.Fatalf("%d coroutines wait: this test cannot tell whether they are left", waiting)
	}
	l.End(nil)
	l.Flush()
	noneLeft(t, waiting-2*tasks)
}

// noneLeft fails if there are more goroutines than before.
func noneLeft(t *testing.T, before int) {
	t.Helper()
	for range 10_000 { // a goroutine that has ended may be counted for a moment
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d coroutines are left", runtime.NumGoroutine()-before)
}

// TestClock checks that the wall clock is read once, at the start, and that only the monotonic clock counts from then on.
func TestClock(t *testing.T) {
	l := &Loop{}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l.Begin(Now{Wall: start, Mono: 5 * time.Hour})
	for _, jump := range []time.Duration{0, time.Hour, -time.Hour} {
		l.now = Now{Wall: start.Add(jump), Mono: 5*time.Hour + 3*time.Second}
		if l.Begun() != start || l.Age() != 3*time.Second || l.Now() != l.now {
			t.Errorf("it began at %v, %v ago", l.Begun(), l.Age())
		}
		if got := l.Clock().Sub(start); got != 3*time.Second {
			t.Errorf("wall clock off by %v: %v since the start", jump, got)
		}
	}
}

package virtual

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/internal/actor"
)

// TestClock: events happen in the order of their times, and of equal times in the order in which they were added.
func TestClock(t *testing.T) {
	var c Clock
	var got []string
	add := func(d time.Duration, name string) {
		c.After(d, func() { got = append(got, name+" "+c.Mono.String()) })
	}
	add(2*time.Second, "c")
	add(time.Second, "a")
	add(time.Second, "b")
	c.After(time.Second, func() { add(0, "d") })
	if due, ok := c.Due(); due != time.Second || !ok {
		t.Errorf("due %v, %v", due, ok)
	}
	for c.Next() {
	}
	if want := []string{"a 1s", "b 1s", "d 1s", "c 2s"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := c.Now(); n.Mono != 2*time.Second || !n.Wall.Equal(Epoch.Add(n.Mono)) {
		t.Errorf("now %+v", n)
	}
	if _, ok := c.Due(); ok {
		t.Error("something is due")
	}
}

func TestStore(t *testing.T) {
	s := NewStore()
	do := func(e actor.Effect) any {
		t.Helper()
		v, ok, err := s.Apply(e)
		if err != nil || !ok {
			t.Fatalf("%T: %v, %v", e, ok, err)
		}
		return v
	}
	fails := func(e actor.Effect, want error) {
		t.Helper()
		if _, ok, err := s.Apply(e); !ok || !errors.Is(err, want) {
			t.Errorf("%T: %v, error %v, want %v", e, ok, err, want)
		}
	}
	do(actor.PutObject{Name: "a/1", Parts: [][]byte{[]byte("one "), []byte("two")}})
	do(actor.PutObject{Name: "a/1", Parts: [][]byte{[]byte("one two")}})
	fails(actor.PutObject{Name: "a/1", Parts: [][]byte{[]byte("other")}}, ErrChanged)
	fails(actor.GetObject{Name: "none", Length: -1}, actor.ErrNotFound)
	for _, c := range []struct {
		offset, length int64
		want           string
	}{{0, -1, "one two"}, {4, 2, "tw"}, {4, 99, "two"}, {99, 1, ""}} {
		if got := do(actor.GetObject{Name: "a/1", Offset: c.offset, Length: c.length}); string(got.([]byte)) != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
	first := do(actor.WriteRecord{Key: "k", Value: []byte("1")})
	fails(actor.WriteRecord{Key: "k", Value: []byte("2")}, actor.ErrConflict)
	copied := s.Clone()
	second := do(actor.WriteRecord{Key: "k", Value: []byte("2"), Revision: first})
	fails(actor.WriteRecord{Key: "k", Value: []byte("3"), Revision: first}, actor.ErrConflict)
	fails(actor.WriteRecord{Key: "none", Value: []byte("3"), Revision: first}, actor.ErrConflict)
	want := []actor.Record{{Value: []byte("2"), Revision: second, Found: true}, {}}
	if diff := cmp.Diff(want, do(actor.ReadRecords{Keys: []string{"k", "none"}})); diff != "" {
		t.Error(diff)
	}
	if v, err := copied.Records(t.Context(), "none", "k"); err != nil || v[0] != nil || string(v[1]) != "1" {
		t.Errorf("the copy has %q, error %v", v, err)
	}
	do(actor.PutObject{Name: "b", Parts: [][]byte{nil}})
	var names []string
	for o := range s.List(t.Context(), "a/") {
		names = append(names, o.Name)
	}
	do(actor.DeleteObject{Name: "a/1"})
	if _, err := s.Object(t.Context(), "a/1", 0, -1); !errors.Is(err, actor.ErrNotFound) || !slices.Equal(names, []string{"a/1"}) {
		t.Errorf("names %v, error %v after the object was deleted", names, err)
	}
	if _, ok, _ := s.Apply(actor.Send{}); ok {
		t.Error("the store has no queues")
	}
	if v := do(actor.Work{Do: func() (any, error) { return 1, nil }}); v != 1 {
		t.Errorf("work returned %v", v)
	}
}

// TestProcess checks that effects reach Carry in order, that a reply resumes the actor, that the end is reported once, and
// that nothing runs after a kill, even if Carry kills the process between two effects.
func TestProcess(t *testing.T) {
	var c Clock
	var carried []string
	ends := 0
	begin := func(killAt int) *Process {
		p := &Process{Now: c.Now, OnEnd: func(error) { ends++ }}
		p.Actor = &actor.Procedure{Body: func(task *actor.Task) error {
			ignore := func(int, any, error) error { return nil }
			if err := task.All(2, []actor.Effect{actor.GetObject{Name: "a"}, actor.GetObject{Name: "b"}}, ignore); err != nil {
				return err
			}
			_, err := task.Do(actor.GetObject{Name: "c"})
			return err
		}}
		p.Carry = func(is actor.Issue) {
			carried = append(carried, is.Effect.(actor.GetObject).Name)
			if len(carried) == killAt {
				p.Kill()
			}
			c.After(time.Second, func() { p.Reply(is.ID, nil, nil) })
		}
		p.Start()
		return p
	}
	for _, test := range []struct {
		killAt, ends int
		want         []string
	}{{0, 1, []string{"a", "b", "c"}}, {1, 0, []string{"a"}}, {3, 0, []string{"a", "b", "c"}}} {
		carried, ends = nil, 0
		p := begin(test.killAt)
		for c.Next() {
		}
		p.Reply(1, nil, nil) // too late
		if !slices.Equal(carried, test.want) || ends != test.ends || !p.Ended() {
			t.Errorf("killed at effect %d: carried %q, ended %d times", test.killAt, carried, ends)
		}
	}
}

package experiment

import (
	"errors"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/drivers"
)

// TestFarm checks the farm's clock: calls of one actor take their times in sequence, those of two actors in parallel. Work
// takes processor time, and an error of an actor ends the run.
func TestFarm(t *testing.T) {
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	const bytes = farmNet / 10 // a tenth of a second
	f := &farm{platform: p}
	for _, name := range []string{"a", "b"} {
		f.start(&actor.Procedure{Body: func(task *actor.Task) error {
			if err := task.Put(name, make([]byte, bytes)); err != nil {
				return err
			}
			got, err := task.Object(name, 0, -1)
			if err == nil && len(got) != bytes {
				err = errors.New("it is another")
			}
			return err
		}}, nil)
	}
	end, err := f.run()
	want := farmPut + farmGet + 200*time.Millisecond
	if err != nil || end < want || end > want+f.busy || f.calls != 4 {
		t.Errorf("it ended at %v with %v after %d calls, want %v and what the processors took", end, err, f.calls, want)
	}

	f = &farm{platform: p}
	const turns = 30_000_000
	f.start(&actor.Procedure{Body: func(task *actor.Task) error {
		sum, err := task.Do(actor.Work{Do: func() (any, error) {
			n := 0
			for i := range turns {
				n += i & 1
			}
			return n, nil
		}})
		if err == nil && sum != turns/2 {
			err = errors.New("it was not done")
		}
		return err
	}}, nil)
	if end, err := f.run(); err != nil || end == 0 || end > f.busy || f.calls != 0 {
		t.Errorf("work ended at %v, %v, busy %v, %d calls", end, err, f.busy, f.calls)
	}

	f = &farm{platform: p}
	f.start(&actor.Procedure{Body: func(task *actor.Task) error {
		_, err := task.Object("nothing", 0, -1)
		return err
	}}, nil)
	if _, err := f.run(); !errors.Is(err, actor.ErrNotFound) {
		t.Errorf("the error is %v", err)
	}
}

package virtual

import (
	"container/heap"
	"time"

	"github.com/orbweaver/orbweaver/internal/actor"
)

// Epoch is the wall time at which every clock starts.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Clock is a virtual clock that jumps from one event to the next. Events of the same time happen in the order in which they
// were added, so a run can be repeated exactly. The zero value is ready for use.
type Clock struct {
	Mono   time.Duration // time since Epoch
	events events
	added  uint64
}

// Wall returns the time of day.
func (c *Clock) Wall() time.Time { return Epoch.Add(c.Mono) }

// Now returns both times in the form that actors take.
func (c *Clock) Now() actor.Now { return actor.Now{Wall: c.Wall(), Mono: c.Mono} }

// After schedules do after d.
func (c *Clock) After(d time.Duration, do func()) {
	c.added++
	heap.Push(&c.events, event{at: c.Mono + d, number: c.added, do: do})
}

// Due returns the time of the next event; ok is false if there is none.
func (c *Clock) Due() (at time.Duration, ok bool) {
	if len(c.events) == 0 {
		return 0, false
	}
	return c.events[0].at, true
}

// Next moves the clock to the next event and runs it. It returns false if there is no event.
func (c *Clock) Next() bool {
	if len(c.events) == 0 {
		return false
	}
	e := heap.Pop(&c.events).(event)
	c.Mono = e.at
	e.do()
	return true
}

type event struct {
	at     time.Duration
	number uint64
	do     func()
}

// events is a heap ordered by time, for container/heap.
type events []event

func (h events) Len() int { return len(h) }

func (h events) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].number < h[j].number
}

func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(event)) }

func (h *events) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return last
}

package virtual

import (
	"slices"
	"sort"
	"time"

	"github.com/orbweaver/orbweaver/internal/actor"
)

// Epoch is the wall time at which every clock starts.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Clock is a virtual clock that jumps from one event to the next. Events of the same time happen in the order in which they
// were added, so a run can be repeated exactly. The zero value is ready for use.
type Clock struct {
	Mono   time.Duration // time since Epoch
	events []event       // by time; those of the same time in the order in which they were added
}

// Wall returns the time of day.
func (c *Clock) Wall() time.Time { return Epoch.Add(c.Mono) }

// Now returns both times in the form that actors take.
func (c *Clock) Now() actor.Now { return actor.Now{Wall: c.Wall(), Mono: c.Mono} }

// After schedules do after d.
func (c *Clock) After(d time.Duration, do func()) {
	at := c.Mono + d
	i := sort.Search(len(c.events), func(i int) bool { return c.events[i].at > at })
	c.events = slices.Insert(c.events, i, event{at, do})
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
	e := c.events[0]
	c.events = slices.Delete(c.events, 0, 1)
	c.Mono = e.at
	e.do()
	return true
}

type event struct {
	at time.Duration
	do func()
}

package crawl

import (
	"errors"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// Bounds of topic settings.
const (
	MaxPriority = 100 // the least is -MaxPriority
	MaxSlice    = time.Hour
	maxPeriod   = 365 * 24 * time.Hour // period of a minimum
	maxMinimum  = 1 << 40              // pages
)

// CheckTopic refuses a priority, slice, minimum or period out of bounds.
func CheckTopic(t *blobschema.Topic) error {
	switch {
	case t.Priority < -MaxPriority || t.Priority > MaxPriority:
		return fmt.Errorf("priority %d: it must be from %d to %d", t.Priority, -MaxPriority, MaxPriority)
	case t.Slice < 0 || t.Slice > MaxSlice: // 0: the default
		return fmt.Errorf("slice %s: it must be longer than 0s, and at most %s", t.Slice, MaxSlice)
	case t.Minimum < 0 || t.Minimum > maxMinimum: // 0: none
		return fmt.Errorf("minimum %d: it must be at least 1 page and at most %d", t.Minimum, int64(maxMinimum))
	case t.Period < 0 || t.Period > maxPeriod: // 0: the default
		return fmt.Errorf("period %s: it must be longer than 0s, and at most %s", t.Period, maxPeriod)
	}
	return nil
}

// TopicChange lists changes to a topic; a nil field stays as it is.
type TopicChange struct {
	Priority *int           `json:"priority,omitempty"`
	Slice    *time.Duration `json:"slice,omitempty"`   // 0: the default
	Minimum  *int64         `json:"minimum,omitempty"` // 0: none
	Period   *time.Duration `json:"period,omitempty"`  // 0: the default
}

// Reasons why a topic cannot be changed.
var (
	ErrNoTopic    = errors.New("there is no such topic")
	ErrPriorities = errors.New("its URLs have priorities of their own")
)

// apply changes a topic and reports whether anything changed.
func (c *TopicChange) apply(t *blobschema.Topic) (changed bool) {
	set(&t.Priority, c.Priority, &changed)
	set(&t.Slice, c.Slice, &changed)
	set(&t.Minimum, c.Minimum, &changed)
	set(&t.Period, c.Period, &changed)
	return changed
}

func set[T comparable](field, value *T, changed *bool) {
	if value != nil && *field != *value {
		*field, *changed = *value, true
	}
}

// ChangeTopic changes a topic in the crawl record, which steps read again with their next commit. It is an [actor.Actor].
type ChangeTopic struct {
	actor.Procedure
	topic   blobschema.Topic
	changed bool
}

// NewChangeTopic returns the actor. Its errors are [ErrNoTopic], [ErrPriorities] if the priority of a topic with several
// rows is changed, and those of [CheckTopic].
func NewChangeTopic(crawl, name string, change TopicChange) *ChangeTopic {
	c := &ChangeTopic{}
	c.Body = func(t *actor.Task) error { return c.run(t, crawl, name, change) }
	return c
}

// Topic returns the topic after the change, and whether anything changed.
func (c *ChangeTopic) Topic() (now blobschema.Topic, changed bool) { return c.topic, c.changed }

func (c *ChangeTopic) run(t *actor.Task, crawl, name string, change TopicChange) error {
	// Each row of the topic is changed and checked; one refused row leaves all of them.
	var numbers []uint8
	err := actor.Revise(t, naming.CrawlKey(crawl), func(rec *blobschema.Crawl) (bool, error) {
		if err := checkRecord(crawl, rec); err != nil {
			return false, err
		}
		changed := false
		numbers = numbers[:0]
		for i := range rec.Settings.Topics {
			row := &rec.Settings.Topics[i]
			if row.Name != name {
				continue
			}
			numbers = append(numbers, uint8(i+1))
			changed = change.apply(row) || changed
			if err := CheckTopic(row); err != nil {
				return false, err
			}
			c.topic = *row
		}
		switch {
		case len(numbers) == 0:
			return false, fmt.Errorf("topic %q: %w", name, ErrNoTopic)
		case len(numbers) > 1 && change.Priority != nil:
			return false, fmt.Errorf("topic %q: %w", name, ErrPriorities)
		}
		c.changed = c.changed || changed // also if a write in doubt succeeded
		return changed, nil
	})
	if err != nil {
		return err
	}
	// Tell the steps even if nothing changed: a process that made the change may have died before it did.
	return actor.Update(t, naming.DesiredKey(crawl), func(w *blobschema.DesiredState) bool {
		for _, n := range numbers {
			if change.Slice != nil {
				delete(w.Slices, n) // the watcher shortened the old slice
			}
		}
		w.Version++
		return true
	})
}

package crawl

import (
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// Order is an operator's order to a crawl.
type Order string

// A stopped crawl runs no steps until it is resumed. A paused crawl fetches nothing but still applies its mail, which
// queues would drop after some days.
const (
	OrderPause  Order = "pause"
	OrderStop   Order = "stop"
	OrderResume Order = "resume"
)

// Command gives a crawl an order: it changes the desired state, which steps read at each commit and every coordinator run
// reads. It is an [actor.Actor].
type Command struct {
	actor.Procedure
	changed bool
}

// NewCommand returns the actor.
func NewCommand(crawl string, o Order) *Command {
	c := &Command{}
	c.Body = func(t *actor.Task) error {
		recs, err := t.Records(naming.CrawlKey(crawl))
		if err != nil {
			return err
		}
		if !recs[0].Found {
			return fmt.Errorf("crawl %s has no record", crawl)
		}
		return actor.Update(t, naming.DesiredKey(crawl), func(w *blobschema.DesiredState) bool {
			stop, pause := o == OrderStop, o == OrderPause
			if w.Stop == stop && w.Pause == pause {
				return false
			}
			w.Stop, w.Pause, w.Why = stop, pause, ""
			w.Orders++
			c.changed = true
			return true
		})
	}
	return c
}

// Changed reports whether the order changed anything.
func (c *Command) Changed() bool { return c.changed }

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
)

func newPause() *cobra.Command  { return newOrder(crawl.OrderPause) }
func newResume() *cobra.Command { return newOrder(crawl.OrderResume) }
func newStop() *cobra.Command   { return newOrder(crawl.OrderStop) }

func newOrder(o crawl.Order) *cobra.Command {
	var f reading
	return f.newCommand(string(o), noArguments, func(cmd *cobra.Command, _ []string) error {
		g := given{Order: o}
		err := f.change(cmd.Context(), func(opened *opened) (err error) {
			g.where = f.where(opened.view.ID())
			if g.Changed, err = opened.Order(cmd.Context(), o); err != nil {
				return err
			}
			return g.await(cmd.Context(), opened)
		})
		if err != nil {
			return err
		}
		return f.report(cmd.OutOrStdout(), "order", &g)
	})
}

// obeying describes who obeys a change, and when.
type obeying struct {
	PID    int  `json:"pid,omitempty"`                // of the process that received the order
	AtWork int  `json:"partitions_at_work,omitempty"` // of a deployment, that obey with their next commit
	Idle   bool `json:"-"`                            // no process works on the crawl until another command does
}

// await finds out who obeys.
func (b *obeying) await(ctx context.Context, o *opened) error {
	b.PID, b.Idle = o.pid, o.here()
	s, err := o.view.Status(ctx)
	b.AtWork = s.Leased
	return err
}

// given is the result of an order.
type given struct {
	where
	Order   crawl.Order `json:"order"`
	Changed bool        `json:"changed"` // false: it was so already
	obeying
}

// heldBack returns the error of a request to a crawl that is stopped or paused.
func heldBack(t *target, w *blobschema.DesiredState) error {
	what := "paused"
	if w.Stop {
		what = "stopped"
	}
	return usagef("the crawl in %s is %s, and requests nothing until '%s'.\nGive that first, or leave the request for later with --later",
		t, what, t.command("resume"))
}

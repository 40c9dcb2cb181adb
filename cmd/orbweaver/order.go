package main

import (
	"context"
	"fmt"

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
		return f.report(cmd, &g, func(out *output) { out.line("%s", g.text()) })
	})
}

// obeying says who obeys a change, and when.
type obeying struct {
	PID    int  `json:"pid,omitempty"`                // of the process that was told
	AtWork int  `json:"partitions_at_work,omitempty"` // of a deployment, that obey with their next commit
	idle   bool // nobody does until another command works on the crawl
}

// await finds out who obeys.
func (b *obeying) await(ctx context.Context, o *opened) error {
	b.PID, b.idle = o.pid, o.idle
	s, err := o.view.Status(ctx)
	b.AtWork = s.Leased
	return err
}

// String returns who will obey and when; "" if no process works on the crawl.
func (b *obeying) String() string {
	switch {
	case b.PID > 0:
		return fmt.Sprintf("process %d obeys at once", b.PID)
	case b.AtWork > 0:
		return plural(b.AtWork, "partition") + " at work, which obey with their next commit, within a minute or so"
	}
	return ""
}

// given is the result of an order.
type given struct {
	where
	Order   crawl.Order `json:"order"`
	Changed bool        `json:"changed"` // false: it was so already
	obeying
}

// text says what will happen, and when.
func (g *given) text() string {
	who := g.where.String()
	soon := g.obeying.String()
	switch {
	case soon != "":
	case g.idle:
		soon = "no process works on it"
	default:
		soon = "nothing is at work"
	}
	switch {
	case !g.Changed:
		return who + ": " + map[crawl.Order]string{
			crawl.OrderPause:  "it was paused already",
			crawl.OrderResume: "it was neither paused nor stopped",
			crawl.OrderStop:   "it was stopped already",
		}[g.Order]
	case g.Order == crawl.OrderPause:
		return fmt.Sprintf("%s is paused: no page is requested until '%s'; %s", who, g.at.command("resume"), soon)
	case g.Order == crawl.OrderStop:
		return fmt.Sprintf("%s is stopped: '%s' resumes it; %s", who, g.at.command("crawl"), soon)
	case g.idle:
		return fmt.Sprintf("%s can continue: '%s'", who, g.at.command("crawl"))
	}
	return who + " goes on"
}

// heldBack says that a crawl that was stopped or paused asks for nothing.
func heldBack(t *target, w *blobschema.Wish) error {
	what := "paused"
	if w.Stop {
		what = "stopped"
	}
	return usagef("the crawl in %s is %s, and asks for nothing until '%s'.\nGive that first, or leave the request for later with --later",
		t, what, t.command("resume"))
}

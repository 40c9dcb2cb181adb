package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/view"
)

func newPause() *cobra.Command {
	return newOrder(crawl.OrderPause, "Let a crawl ask for nothing until it is resumed",
		`Pause keeps a crawl from asking for anything; requests under way come to their end. It
goes on with 'orbweaver resume', or with 'orbweaver crawl'. What is mailed meanwhile is
taken: a crawl may be paused for as long as one likes.

In a folder the process that crawls is told, and waits; without one, the next one will.
In a cloud the steps at work obey with their next commit, within a minute or so.`)
}

func newResume() *cobra.Command {
	return newOrder(crawl.OrderResume, "Let a crawl go on that was paused or stopped",
		`Resume takes back what 'orbweaver pause' or 'orbweaver stop' ordered.

In a folder the process that crawls goes on; without one, 'orbweaver crawl' does. In a
cloud work starts at once.`)
}

func newStop() *cobra.Command {
	return newOrder(crawl.OrderStop, "End a crawl before it is finished",
		`Stop ends a crawl: nothing is asked for any more, what was answered is kept, and what is
under way is left for later. 'orbweaver crawl' goes on with it, or begins another one in
its place with --new.

In a folder the process that crawls ends, with exit status 3; without one, a recrawl is
kept from going on. In a cloud the steps at work end with their next commit, within a
minute or so, and no others begin: an idle deployment costs next to nothing.`)
}

func newOrder(o crawl.Order, short, long string) *cobra.Command {
	var f looking
	cmd := &cobra.Command{
		Use:     string(o),
		Short:   short,
		Long:    long,
		Example: fmt.Sprintf("  orbweaver %s\n  orbweaver %[1]s --data two\n  orbweaver %[1]s --platform aws.json", o),
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runOrder(cmd, &f, o) },
	}
	f.register(cmd)
	return cmd
}

// given is what came of an order.
type given struct {
	Crawl   string      `json:"crawl"`
	Data    string      `json:"data,omitempty"`
	Cloud   string      `json:"platform,omitempty"`
	Order   crawl.Order `json:"order"`
	Changed bool        `json:"changed"`                      // false: it was so already
	PID     int         `json:"pid,omitempty"`                // of the process that was told
	AtWork  int         `json:"partitions_at_work,omitempty"` // in a cloud, that will obey
	place   *place
}

func runOrder(cmd *cobra.Command, f *looking, o crawl.Order) error {
	if err := f.settle(); err != nil {
		return err
	}
	g := &given{Order: o, place: &f.place}
	var err error
	if f.inCloud() {
		g.Cloud = f.cloud
		err = g.inCloud(cmd.Context())
	} else {
		g.Data = f.data
		err = g.inFolder(cmd.Context())
	}
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(cmd.OutOrStdout(), g)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), g.text())
	return err
}

func (g *given) inCloud(ctx context.Context) error {
	return g.place.work(ctx, func(v *visit) (err error) {
		g.Crawl = v.view.ID()
		if g.Changed, err = v.engine.Command(g.Order); err != nil {
			return err
		}
		if g.Order == crawl.OrderResume { // also where it was no news: the tick may have been lost
			if _, err := v.engine.Tick(); err != nil {
				return err
			}
		}
		s, err := v.view.Status(ctx)
		g.AtWork = s.Leased
		return err
	})
}

// inFolder tells the process that works on the folder, or leaves word for the next one.
func (g *given) inFolder(ctx context.Context) error {
	return g.place.tell(ctx, func(v *view.View, pid int) (err error) {
		g.Crawl, g.PID = v.ID(), pid
		g.Changed, err = v.Order(ctx, g.Order)
		return err
	}, func(v *visit) (err error) {
		g.Changed, err = v.engine.Command(g.Order)
		return err
	})
}

// tell has the process that works on the folder do something, or does it here if there is none: one
// that is ending is waited for.
func (p *place) tell(ctx context.Context, tell func(v *view.View, pid int) error, here func(*visit) error) error {
	for try := 0; ; try++ {
		pid := 0
		err := p.look(ctx, func(v *view.View) error {
			if live := v.Live(ctx); live != nil {
				pid = live.PID
			}
			return tell(v, pid)
		})
		switch {
		case !errors.Is(err, view.ErrNoOwner):
			return err
		case pid == 0:
			return p.work(ctx, here)
		case try == 10:
			return fail(exitInUse, fmt.Errorf("the process that crawls in %s is ending and changes nothing more; try again soon", p))
		}
		if !wait(ctx, 500*time.Millisecond) {
			return fail(exitStopped, errors.New("stopped; nothing was changed"))
		}
	}
}

// text says what will happen, and when.
func (g *given) text() string {
	who := fmt.Sprintf("crawl %s in %s", g.Crawl, g.place)
	again := g.place.command("crawl")
	if !g.Changed {
		return fmt.Sprintf("%s: %s\n", who, map[crawl.Order]string{
			crawl.OrderPause:  "it was paused already",
			crawl.OrderResume: "it was neither paused nor stopped",
			crawl.OrderStop:   "it was stopped already",
		}[g.Order])
	}
	soon := ""
	switch {
	case g.PID > 0:
		soon = fmt.Sprintf("process %d obeys at once", g.PID)
	case g.place.inCloud() && g.AtWork > 0:
		soon = fmt.Sprintf("%s at work, which obey with their next commit, within a minute or so", plural(int64(g.AtWork), "partition"))
	case g.place.inCloud():
		soon = "nothing is at work"
	default:
		soon = "no process works on it"
	}
	switch g.Order {
	case crawl.OrderPause:
		return fmt.Sprintf("%s is paused: nothing is asked for until '%s'; %s\n", who, g.place.command("resume"), soon)
	case crawl.OrderStop:
		return fmt.Sprintf("%s is stopped: '%s' goes on with it; %s\n", who, again, soon)
	}
	if !g.place.inCloud() && g.PID == 0 {
		return fmt.Sprintf("%s may go on: '%s'\n", who, again)
	}
	return fmt.Sprintf("%s goes on\n", who)
}

// heldBack says that a crawl that was stopped or paused asks for nothing.
func heldBack(p *place, w *blobschema.Wish) error {
	what := "paused"
	if w.Stop {
		what = "stopped"
	}
	return usagef("the crawl in %s is %s, and asks for nothing until '%s'.\nGive that first, or leave the request for later with --later", p, what, p.command("resume"))
}

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

type indexFlags struct {
	reading
	quiet   bool
	rebuild bool
	detach  bool
}

func newIndex() *cobra.Command {
	var f indexFlags
	cmd := f.newCommand("index", noArguments, func(cmd *cobra.Command, _ []string) error { return f.run(cmd) })
	cmd.Flags().BoolVar(&f.rebuild, "rebuild", false, "make index and ranks again from all pages and links")
	cmd.Flags().BoolVar(&f.quiet, "quiet", false, "write only the result")
	cmd.Flags().BoolVar(&f.detach, "detach", false, "in a cloud: do not wait until it is done")
	return cmd
}

// indexed describes the index after a run.
type indexed struct {
	Crawl   string       `json:"crawl"`
	Done    bool         `json:"done"` // index and ranks cover the whole crawl
	Index   *indexReport `json:"index"`
	Ranks   *ranksReport `json:"ranks,omitempty"`
	Seconds float64      `json:"seconds"`
}

func (f *indexFlags) run(cmd *cobra.Command) error {
	if err := f.settle(); err != nil {
		return err
	}
	if !f.inCloud() && f.detach {
		return usagef("--detach makes no sense in a folder: this process makes the index, and it ends with it")
	}
	if err := f.refuseOwned(cmd.Context()); err != nil {
		return err
	}
	ctx, release := following(cmd.Context())
	defer release()
	began := time.Now()
	var result indexed
	err := f.own(ctx, func(o *opened) (err error) {
		if err := o.engine.CheckJobs(ctx); err != nil {
			return err
		}
		_, _, _, err = o.engine.Begin(blobschema.Crawl{}, nil, func(c *blobschema.Crawl) error {
			c.Settings.Index = true
			return nil
		})
		if err != nil {
			return err
		}
		if f.rebuild {
			if err := o.engine.Rebuild(ctx); err != nil {
				return err
			}
		}
		result.Done, err = f.follow(ctx, o, &indexProgress{w: cmd.ErrOrStderr(), quiet: f.quiet, last: began})
		return errors.Join(err, result.read(context.WithoutCancel(ctx), o.view))
	})
	result.Seconds = time.Since(began).Seconds()
	switch {
	case ctx.Err() != nil && !f.inCloud():
		return fail(exitStopped, fmt.Errorf("stopped; what is done is kept: go on with '%s'", f.command("index")))
	case err != nil && ctx.Err() == nil:
		return err
	}
	return f.report(cmd, result, func(out *output) {
		result.Index.print(out)
		result.Ranks.print(out)
		if result.Done {
			out.row("done", "in %.1f s; now:  %s", result.Seconds, f.command("search", "some words"))
		} else {
			out.row("", "functions go on with it; to look:  %s", f.command("index"))
		}
	})
}

// refuseOwned says what to do if another process works on the folder.
func (f *indexFlags) refuseOwned(ctx context.Context) error {
	if f.inCloud() {
		return nil
	}
	return f.read(ctx, func(v *view.View) error {
		live := v.Live(ctx)
		if live == nil {
			return nil
		}
		c, err := v.Crawl(ctx)
		switch {
		case err != nil:
			return err
		case c.Settings.Index:
			return fail(exitInUse, fmt.Errorf("process %d crawls in %s, and indexes as it goes. What is done is found by\n  %s",
				live.PID, f.data, f.command("search", "some words")))
		}
		return fail(exitInUse, fmt.Errorf("process %d crawls in %s, and does not index.\nWait until it ends, or stop it and go on with\n  %s",
			live.PID, f.data, f.command("crawl", "--index")))
	})
}

// indexEvery is how often the command looks at the work of functions.
const indexEvery = 5 * time.Second

// follow brings index and ranks up to date, or waits until functions have; it returns false if it did not wait.
func (f *indexFlags) follow(ctx context.Context, o *opened, p *indexProgress) (done bool, err error) {
	tell := func(rep *crawl.Report) { p.tell(ctx, o.view, rep) }
	if !f.inCloud() {
		return true, o.engine.Follow(ctx, tell)
	}
	if err := o.engine.LookAtIndexes(ctx); err != nil {
		return false, err
	}
	for {
		rep, err := o.engine.Tick()
		if err != nil || !rep.Following() && !rep.Idle || rep.Idle && rep.Indexing == 0 {
			return err == nil, err
		}
		if tell(&rep); f.detach || !wait(ctx, indexEvery) {
			return false, nil
		}
	}
}

// read notes how far the index is.
func (x *indexed) read(ctx context.Context, v *view.View) error {
	s, err := v.Status(ctx)
	if err != nil {
		return err
	}
	x.Crawl, x.Index, x.Ranks = v.ID(), newIndexReport(&s), newRanksReport(&s)
	return nil
}

// indexProgress reports now and then how far the index is.
type indexProgress struct {
	w     io.Writer
	quiet bool
	last  time.Time
}

func (p *indexProgress) tell(ctx context.Context, v *view.View, rep *crawl.Report) {
	if p.quiet || time.Since(p.last) < time.Second {
		return
	}
	p.last = time.Now()
	var x indexed
	if err := x.read(ctx, v); err != nil || x.Index == nil {
		return // there will be another moment
	}
	switch {
	case rep.Indexing > 0:
		fmt.Fprintf(p.w, "%s searchable; %s to go\n", plural(x.Index.Documents, "page"), plural(int64(rep.Indexing), "partition"))
	case rep.Following():
		fmt.Fprintf(p.w, "%s searchable; computing ranks\n", plural(x.Index.Documents, "page"))
	}
}

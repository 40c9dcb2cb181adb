package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/view"
)

type indexFlags struct {
	looking
	quiet   bool
	rebuild bool
	detach  bool
	every   time.Duration
}

func newIndex() *cobra.Command {
	var f indexFlags
	cmd := &cobra.Command{
		Use:   "index",
		Short: "Make what is crawled searchable",
		Long: `Index makes an index of all pages that are crawled so far, and computes ranks of pages and
hosts, for 'orbweaver search'. Nothing is asked for again. From then on the crawl is one
with --index: when it goes on, index and ranks follow it.

What is in the index already is left alone: only what was crawled since is read. Ctrl-C
loses nothing, and the same command goes on.

With --rebuild it makes index and ranks again from all pages and links, and reads nothing of
the old ones, which may be damaged. Until it is done a search finds only what is indexed again.

In a folder this process does it; of a crawl that runs, the process that crawls does, if it
was begun with 'orbweaver crawl --index'. In a cloud functions do, as soon as they are told;
the command looks until they are done.`,
		Example: `  orbweaver index
  orbweaver search "some words"
  orbweaver index --data two --json
  orbweaver index --rebuild             # a search, or fsck, said that the index is damaged
  orbweaver index --platform aws.json --detach`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.rebuild, "rebuild", false, "make index and ranks again from all that is crawled")
	cmd.Flags().BoolVar(&f.quiet, "quiet", false, "say nothing but the result")
	cmd.Flags().BoolVar(&f.detach, "detach", false, "in a cloud: do not wait until it is done")
	cmd.Flags().DurationVar(&f.every, "every", 5*time.Second, "in a cloud: how often to look how far it is")
	return cmd
}

// indexed is what there is of an index, for people and programs.
type indexed struct {
	Crawl   string       `json:"crawl"`
	Done    bool         `json:"done"` // index and ranks are those of all that is crawled
	Index   *indexReport `json:"index"`
	Ranks   *ranksReport `json:"ranks,omitempty"`
	Seconds float64      `json:"seconds"`
}

func (f *indexFlags) run(cmd *cobra.Command) error {
	if err := f.settle(); err != nil {
		return err
	}
	switch {
	case f.every <= 0:
		return usagef("--every must be longer than 0s")
	case !f.inCloud() && f.detach:
		return usagef("--detach makes no sense in a folder: this process makes the index, and it ends with it")
	}
	if err := f.refuseOwned(cmd.Context()); err != nil {
		return err
	}
	ctx, release := following(cmd.Context())
	defer release()
	began := time.Now()
	var out indexed
	err := f.work(ctx, func(v *visit) (err error) {
		if err := v.engine.CheckJobs(ctx); err != nil {
			return err
		}
		_, _, _, err = v.engine.Begin(blobschema.Crawl{}, nil, func(c *blobschema.Crawl) error {
			c.Settings.Index = true
			return nil
		})
		if err != nil {
			return err
		}
		if f.rebuild {
			if err := v.engine.Rebuild(ctx); err != nil {
				return err
			}
		}
		out.Done, err = f.follow(ctx, v, &indexProgress{w: cmd.ErrOrStderr(), quiet: f.quiet, last: began})
		return errors.Join(err, out.read(context.WithoutCancel(ctx), v.view))
	})
	out.Seconds = time.Since(began).Seconds()
	switch {
	case ctx.Err() != nil && !f.inCloud():
		return fail(exitStopped, fmt.Errorf("stopped; what is done is kept: go on with '%s'", f.command("index")))
	case err != nil && ctx.Err() == nil:
		return err
	case f.json:
		return writeJSON(cmd.OutOrStdout(), out)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), out.text(&f.place))
	return err
}

// refuseOwned says what to do where another process works on the folder.
func (f *indexFlags) refuseOwned(ctx context.Context) error {
	if f.inCloud() {
		return nil
	}
	return f.look(ctx, func(v *view.View) error {
		live := v.Live(ctx)
		if live == nil {
			return nil
		}
		c, err := v.Crawl(ctx)
		switch {
		case err != nil:
			return err
		case c.Settings.Index:
			return fail(exitInUse, fmt.Errorf("process %d crawls in %s, and indexes as it goes. What is done is found by\n  %s", live.PID, f.data, f.command("search", "some words")))
		}
		return fail(exitInUse, fmt.Errorf("process %d crawls in %s, and does not index.\nWait until it ends, or stop it and go on with\n  %s", live.PID, f.data, f.command("crawl", "--index")))
	})
}

// follow brings index and ranks up to date, or looks until others have; not done: it did not wait.
func (f *indexFlags) follow(ctx context.Context, v *visit, p *indexProgress) (done bool, err error) {
	tell := func(rep *crawl.Report) { p.tell(ctx, v.view, rep) }
	if !f.inCloud() {
		return true, v.engine.Follow(ctx, tell)
	}
	if err := v.engine.LookAtIndexes(ctx); err != nil {
		return false, err
	}
	for {
		rep, err := v.engine.Tick()
		if err != nil || !rep.Following() && !rep.Idle || rep.Idle && rep.Indexing == 0 {
			return err == nil, err
		}
		if tell(&rep); f.detach || !wait(ctx, f.every) {
			return false, nil
		}
	}
}

// read looks how far it is.
func (x *indexed) read(ctx context.Context, v *view.View) error {
	s, err := v.Status(ctx)
	if err != nil {
		return err
	}
	x.Crawl, x.Index, x.Ranks = v.ID(), newIndexReport(&s), newRanksReport(&s)
	return nil
}

func (x *indexed) text(p *place) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-8s%s\n", name, fmt.Sprintf(format, args...))
	}
	x.Index.rows(row)
	x.Ranks.rows(row)
	if !x.Done {
		row("", "functions go on with it; to look:  %s", p.command("index"))
	} else {
		row("done", "in %.1f s; now:  %s", x.Seconds, p.command("search", "some words"))
	}
	return b.String()
}

// indexProgress tells now and then how far it is.
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

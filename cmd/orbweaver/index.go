package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
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
	Search  string       `json:"-"` // the command that searches
	More    string       `json:"-"` // the command that shows the progress
}

func (f *indexFlags) run(cmd *cobra.Command) error {
	if err := f.checkFlags(); err != nil {
		return err
	}
	ctx, release := following(cmd.Context())
	defer release()
	began, away := time.Now(), false // away: functions do the work
	result := indexed{Search: f.command("search", "some words"), More: f.command("index")}
	err := f.change(ctx, func(o *opened) (err error) {
		if o.pid > 0 {
			return o.refuseIndex(ctx)
		}
		away = !o.here()
		if err := o.engine.CheckJobs(ctx); err != nil {
			return err
		}
		_, _, _, err = o.engine.Begin(blobschema.Crawl{}, nil, func(c *blobschema.Crawl) error {
			c.Settings.Index = true
			return nil
		})
		if err == nil && f.rebuild {
			err = o.engine.Rebuild(ctx)
		}
		if err == nil {
			result.Done, err = f.follow(ctx, o, cmd.ErrOrStderr())
		}
		return errors.Join(err, result.read(context.WithoutCancel(ctx), o.view))
	})
	result.Seconds = time.Since(began).Seconds()
	switch {
	case ctx.Err() != nil && !away:
		return fail(exitStopped, fmt.Errorf("stopped; finished work is kept: continue with '%s'", f.command("index")))
	case err != nil && ctx.Err() == nil:
		return err
	}
	return f.report(cmd.OutOrStdout(), "index", &result)
}

// refuseIndex returns an error with advice if another process works on the folder.
func (o *opened) refuseIndex(ctx context.Context) error {
	c, err := o.view.Crawl(ctx)
	todo := fmt.Sprintf("Wait until it ends, or stop it and run\n  %s", o.command("crawl", "--index"))
	if c.Settings.Index {
		todo = fmt.Sprintf("It indexes the pages as it fetches them. Search them with\n  %s", o.command("search", "some words"))
	}
	return cmp.Or(err, fail(exitInUse, fmt.Errorf("process %d crawls in %s.\n%s", o.pid, o.data, todo)))
}

// indexEvery is the time between two reads of the progress of functions.
const indexEvery = 5 * time.Second

// follow updates index and ranks, or waits until functions have; it returns false if it did not wait. It reports
// the progress to w about once a second.
func (f *indexFlags) follow(ctx context.Context, o *opened, w io.Writer) (done bool, err error) {
	last := time.Now()
	tell := func(rep *crawl.Report) {
		var x indexed
		if f.quiet || time.Since(last) < time.Second || x.read(ctx, o.view) != nil || x.Index == nil {
			return // the next call may succeed
		}
		last = time.Now()
		searchable := plural(x.Index.Documents, "page") + " searchable"
		switch {
		case rep.Indexing > 0:
			fmt.Fprintf(w, "%s; %s to go\n", searchable, plural(rep.Indexing, "partition"))
		case rep.Following():
			fmt.Fprintf(w, "%s; computing ranks\n", searchable)
		}
	}
	if o.here() {
		return true, o.engine.Follow(ctx, tell)
	}
	if err := o.engine.WakeIndexes(ctx); err != nil {
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

// read reads the state of index and ranks.
func (x *indexed) read(ctx context.Context, v *view.View) error {
	s, err := v.Status(ctx)
	if err != nil {
		return err
	}
	x.Crawl, x.Index, x.Ranks = v.ID(), newIndexReport(&s), newRanksReport(&s)
	return nil
}

// indexReport says how much of a crawl is searchable.
type indexReport struct {
	Partitions int `json:"partitions"` // with an index
	blobschema.IndexTotals
	Answers int64   `json:"answers"` // page records, without robots.txt; Pages of them are in the index, or left out for a reason
	Share   float64 `json:"share"`   // Pages of Answers
	Behind  uint64  `json:"behind"`  // commits
	Bytes   int64   `json:"bytes"`
}

// newIndexReport returns nil for a crawl without an index.
func newIndexReport(s *view.Status) *indexReport {
	if !s.Crawl.Settings.Index {
		return nil
	}
	r := &indexReport{Partitions: len(s.Index), Behind: s.Behind(), Share: 1}
	for i := range s.Index {
		r.IndexTotals.Add(&s.Index[i].Totals)
		r.Bytes += s.Index[i].Bytes
	}
	for _, n := range s.Totals.Outcomes {
		r.Answers += n
	}
	if r.Answers > 0 {
		r.Share = min(1, float64(r.Pages)/float64(r.Answers))
	}
	return r
}

// ranksReport says how far the ranks of a crawl are.
type ranksReport struct {
	Job    uint64       `json:"job,omitempty"` // the last finished one
	Done   time.Time    `json:"done,omitzero"`
	Rounds int          `json:"rounds,omitempty"`
	Totals ranks.Totals `json:"totals,omitzero"`
	Behind uint64       `json:"behind,omitempty"` // commits since
	// Running is the job under way, Round its last round that all partitions have finished.
	Running uint64    `json:"running,omitempty"`
	Round   int       `json:"round,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Failed  string    `json:"failed,omitempty"` // why the last job has no result
}

// newRanksReport returns nil if no ranks were ever computed.
func newRanksReport(s *view.Status) *ranksReport {
	job := &s.Ranks.Job
	if job.Number == 0 {
		return nil
	}
	r := &ranksReport{Failed: job.Failed}
	if job.Done.IsZero() {
		r.Running, r.Round, r.Started = job.Number, s.Ranks.Round, job.Started
	}
	if done := job.Finished(); done != nil {
		r.Job, r.Done, r.Rounds, r.Totals = done.Number, done.Done, done.Rounds, done.Totals
		for i := range s.Heads {
			for _, in := range done.Inputs {
				if h := &s.Heads[i]; h.Partition == in.Partition && h.Seq > in.Seq {
					r.Behind += h.Seq - in.Seq
				}
			}
		}
	}
	return r
}

// RoundsDone counts the rounds of the job under way that are finished.
func (r *ranksReport) RoundsDone() int { return r.Round + 1 }

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

type rankFlags struct {
	reading
	params ranks.Params
	weigh  []string
	level  string
	top    int
	out    string
	show   bool
	fresh  bool
	force  bool
	wait   bool
}

func newRank() *cobra.Command {
	f := rankFlags{params: ranks.DefaultParams()}
	cmd := f.newCommand("rank", noArguments, func(cmd *cobra.Command, _ []string) error { return f.run(cmd) })
	f.registerCrawl(cmd)
	fl := cmd.Flags()
	fl.Float64Var(&f.params.Damping, "damping", f.params.Damping, "the chance that a surfer follows a link instead of jumping")
	fl.Float64Var(&f.params.Tolerance, "tolerance", f.params.Tolerance,
		"end when a round changes the ranks, which add up to 1, by no more than this")
	fl.IntVar(&f.params.MaxRounds, "max-rounds", f.params.MaxRounds, "most rounds")
	fl.StringSliceVar(&f.weigh, "personalise", nil, "where a surfer jumps to: hosts and URLs; HOST=WEIGHT for other weights than 1 (default: anywhere)")
	fl.StringVar(&f.level, "level", "all", "what to list: crawled pages, crawled hosts or all")
	fl.IntVar(&f.top, "top", 10, "number of pages and of hosts to list; with --out, the whole table unless this flag is given")
	fl.StringVar(&f.out, "out", "", "write the table of --level to this file, one host or page a line, with a tab and its rank; "+
		"- for standard output. A job keeps lists of the best: 1,000 pages, a million hosts")
	fl.BoolVar(&f.show, "show", false, "compute nothing: show the last result")
	fl.BoolVar(&f.fresh, "fresh", false, "use nothing of previous jobs: read all commits again")
	fl.BoolVar(&f.force, "force", false, "start a new job, and cancel the one under way")
	fl.BoolVar(&f.wait, "wait", true, "in a cloud, or while a crawl runs: wait for the ranks")
	return cmd
}

func (f *rankFlags) check() error {
	switch {
	case f.level != "pages" && f.level != "hosts" && f.level != "all":
		return usagef("invalid argument %q for --level: it must be pages, hosts or all", f.level)
	case f.out != "" && f.level == "all":
		return usagef("--out writes one table: say which one with --level pages or --level hosts")
	case f.out != "" && f.json:
		return usagef("--out writes a table, and --json a report; give one of them")
	case f.crawl != "" && !f.show:
		return usagef("ranks are computed for the active crawl only; show those of another one with --crawl ID --show")
	case f.top < 0:
		return usagef("--top must be 0 or more")
	}
	for _, w := range f.weigh {
		weight, err := parseWeight(w)
		if err != nil {
			return usagef("--personalise: %w", err)
		}
		f.params.Personal = append(f.params.Personal, weight)
	}
	if err := f.params.Check(); err != nil {
		return usagef("%w", err)
	}
	return nil
}

// parseWeight parses an item of --personalise: HOST, HOST=WEIGHT or a URL.
func parseWeight(item string) (w ranks.Weight, err error) {
	w.Weight = 1
	if strings.Contains(item, "://") {
		u, err := weburl.Parse(item)
		w.URL = u.String()
		return w, err
	}
	name, weight, weighted := strings.Cut(item, "=")
	if weighted {
		if w.Weight, err = strconv.ParseFloat(weight, 64); err != nil {
			return w, fmt.Errorf("weight %.40q of %.200q is not a number", weight, name)
		}
	}
	h, err := weburl.ParseHost(name)
	w.Host = string(h)
	return w, err
}

func (f *rankFlags) run(cmd *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	ctx, release := following(cmd.Context())
	defer release()
	if !f.show {
		// A command without parameters joins a job, whatever the job's parameters.
		join := !slices.ContainsFunc([]string{"damping", "tolerance", "max-rounds", "personalise", "fresh"}, cmd.Flags().Changed)
		job, err := f.compute(ctx, rank.StartConfig{Params: f.params, Join: join, Fresh: f.fresh, Force: f.force}, cmd.ErrOrStderr())
		switch {
		case err != nil && ctx.Err() != nil:
			return fail(exitStopped, fmt.Errorf("stopped; resume with '%s'", f.command("rank")))
		case errors.Is(err, rank.ErrNothing):
			return usagef("nothing is crawled in %s yet; begin with '%s'", &f.target, f.command("crawl"))
		case errors.Is(err, rank.ErrUnderWay):
			return fail(exitInUse, fmt.Errorf("%w.\nContinue it with '%s', or cancel it with --force", err, f.command("rank")))
		case err != nil:
			return f.explain(err)
		case job > 0:
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "job %d is under way; see '%s'\n", job, f.command("rank", "--show"))
			return err
		}
	}
	return f.read(ctx, func(v *view.View) error { return f.printLast(ctx, cmd, v) })
}

// The time between two reads of the progress of a job that another process computes, and the time without
// progress after which its messages are resent.
const (
	rankPoll        = 300 * time.Millisecond
	rankRemindAfter = 10 * time.Minute
)

// compute computes ranks or, where other processes do, starts a job and waits for it. Without --wait it returns the number of
// the job instead. It reports rounds to w.
func (f *rankFlags) compute(ctx context.Context, order rank.StartConfig, w io.Writer) (underWay uint64, err error) {
	err = f.change(ctx, func(o *opened) error {
		if o.here() {
			job, err := o.engine.Rank(ctx, order, func(now rank.Progress) { printRound(w, now) })
			return errors.Join(err, failed(&job))
		}
		job, err := o.StartRanks(ctx, order)
		if err == nil && f.wait {
			return f.await(ctx, o, job.Number, w)
		}
		underWay = job.Number
		return err
	})
	return underWay, err
}

// await waits for a job that functions, or the owner of the folder, compute.
func (f *rankFlags) await(ctx context.Context, o *opened, number uint64, w io.Writer) error {
	moved, round := time.Now(), -2
	err := poll(ctx, w, rankPoll, func() (bool, error) {
		now, err := o.view.Ranks(ctx)
		switch {
		case err != nil:
			return false, err
		case now.Job.Number != number || !now.Job.Done.IsZero():
			return true, failed(&now.Job)
		case o.pid > 0 && o.view.Live(ctx) == nil:
			return true, fail(exitStopped, fmt.Errorf("the process that computed the ranks has ended; continue with '%s'", f.command("rank")))
		case now.Round != round:
			moved, round = time.Now(), now.Round
			printRound(w, now)
		case o.engine != nil && time.Since(moved) > rankRemindAfter:
			moved = time.Now()
			return false, o.engine.RemindRanks()
		}
		return false, nil
	})
	return cmp.Or(err, ctx.Err())
}

func failed(job *ranks.Job) error {
	if job.Failed != "" {
		return fmt.Errorf("rank job %d has failed: %s", job.Number, job.Failed)
	}
	return nil
}

// printRound reports the last round of a job.
func printRound(w io.Writer, now rank.Progress) {
	residual, iterating := now.Residual()
	switch {
	case !now.Job.Done.IsZero() || now.Round < 0:
	case iterating:
		fmt.Fprintf(w, "round %d: pages changed by %.2g, hosts by %.2g\n", now.Iterations(), residual.Pages, residual.Hosts)
	case now.Round == ranks.Nodes:
		_, _ = io.WriteString(w, text("rank-totals", now.Totals()))
	}
}

// rankReport describes a rank job.
type rankReport struct {
	where
	Job       uint64           `json:"job"`
	Started   time.Time        `json:"started"`
	Done      time.Time        `json:"done"`
	Seconds   float64          `json:"seconds"`
	Params    ranks.Params     `json:"params"`
	Rounds    int              `json:"rounds"`
	Residuals []ranks.Residual `json:"residuals"`
	Totals    ranks.Totals     `json:"totals"`
	UnderWay  uint64           `json:"under_way,omitempty"` // job
	Hosts     []view.Ranked    `json:"top_hosts,omitempty"`
	Pages     []view.Ranked    `json:"top_pages,omitempty"`
}

// printLast reports the last result.
func (f *rankFlags) printLast(ctx context.Context, cmd *cobra.Command, v *view.View) error {
	now, err := v.Ranks(ctx)
	if err != nil {
		return err
	}
	job := now.Job.Finished()
	switch {
	case job == nil && now.Job.Number > 0:
		return fail(exitNothing, fmt.Errorf("the first ranks are being computed since %s", now.Job.Started.Format(timeLayout)))
	case job == nil:
		return fail(exitNothing, fmt.Errorf("no ranks were computed in %s yet; '%s' does", &f.target, f.command("rank")))
	case f.out != "":
		return f.export(ctx, cmd, v, job)
	}
	r := &rankReport{
		where: f.where(v.ID()), Job: job.Number, Started: job.Started, Done: job.Done, Seconds: job.Done.Sub(job.Started).Seconds(),
		Params: job.Params, Rounds: job.Rounds, Residuals: job.Residuals, Totals: job.Totals,
	}
	if job.Number != now.Job.Number && now.Job.Done.IsZero() {
		r.UnderWay = now.Job.Number
	}
	if f.top > 0 && f.level != "pages" {
		// A job of an earlier version has no table of its own for hosts that were crawled.
		if r.Hosts, err = v.RankTable(ctx, cmp.Or(job.CrawledHosts, job.HostRanks), f.top); err != nil {
			return err
		}
	}
	if f.top > 0 && f.level != "hosts" {
		if r.Pages, err = v.RankTable(ctx, job.PageRanks, f.top); err != nil {
			return err
		}
		warnBest(cmd.ErrOrStderr(), "the list", len(r.Pages), f.top, job.Totals.Crawled, "page")
	}
	return f.report(cmd.OutOrStdout(), "rank", r)
}

// Last is the residual of the last round.
func (r *rankReport) Last() *ranks.Residual {
	if len(r.Residuals) == 0 {
		return nil
	}
	return &r.Residuals[len(r.Residuals)-1]
}

// export writes a table, or its first lines if --top is given.
func (f *rankFlags) export(ctx context.Context, cmd *cobra.Command, v *view.View, job *ranks.Job) error {
	object, all, noun := job.HostRanks, job.Totals.Hosts, "host"
	if f.level == "pages" {
		object, all, noun = job.PageRanks, job.Totals.Crawled, "page"
	}
	data, err := v.Store().Object(ctx, object, 0, -1)
	if err != nil {
		return err
	}
	lines, asked := slices.Collect(bytes.Lines(data)), math.MaxInt
	if f.level == "hosts" && len(lines) < schedule.MaxHostRanks && len(data) < schedule.MaxHostRankBytes-1<<10 {
		all = int64(len(lines)) // neither limit was reached, not even by one more line
	}
	if f.set.Changed("top") {
		asked = f.top
	}
	lines = lines[:min(asked, len(lines))]
	if data = bytes.Join(lines, nil); f.out == "-" {
		_, err = cmd.OutOrStdout().Write(data)
	} else {
		err = os.WriteFile(f.out, data, 0o644)
	}
	if err == nil {
		warnBest(cmd.ErrOrStderr(), "the table", len(lines), asked, all, noun)
	}
	return err
}

// warnBest warns that a list is shorter than requested, because a job keeps only the best.
func warnBest(w io.Writer, list string, got, asked int, all int64, noun string) {
	if int64(got) < min(int64(asked), all) {
		warn(w, "%s has the best %s of %s only: a rank job keeps no more", list, count(got), plural(all, noun))
	}
}

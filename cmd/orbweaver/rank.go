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
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

type rankFlags struct {
	looking
	params ranks.Params
	weigh  []string
	level  levelValue
	top    int
	out    string
	show   bool
	fresh  bool
	force  bool
	wait   bool
	chosen bool // some of params, or fresh
}

func newRank() *cobra.Command {
	f := rankFlags{params: ranks.DefaultParams(), level: "all"}
	cmd := &cobra.Command{
		Use:   "rank",
		Short: "Rank pages and hosts by the links to them (PageRank)",
		Long: `Rank computes PageRank of all that is crawled so far, of pages and of hosts, and lists the
best. It works in rounds: in each every page gives its rank in equal parts to the pages it
links to, until a round changes the ranks by no more than --tolerance in all. A rank of 1 is
the mean, 10 ten times that.

What a job before has computed is used: only commits since then are read, and the ranks
begin as they were. In a folder this process computes, or, while a crawl runs, the one
that crawls; in a cloud functions do. Ctrl-C leaves a job where it is, and 'orbweaver rank'
goes on with it, as it was begun.

The lists have what was crawled; other hosts that crawled pages link to have ranks too, and are
in the table that --out writes.

Ranks serve the search (and the texts of links, as soon as the index has taken them up), and
crawls by quality: with --out FILE the table of all hosts is what 'orbweaver crawl
--host-ranks FILE' reads.

Links marked nofollow do not count, nor those of a page to itself; several links to one
page count once. See docs/rank.md.`,
		Example: `  orbweaver rank
  orbweaver rank --show --top 50 --level hosts
  orbweaver rank --personalise example.org,example.net=3
  orbweaver rank --show --level hosts --out ranks.tsv && orbweaver crawl --data next --policy quality --host-ranks ranks.tsv https://example.org/
  orbweaver rank --platform aws.json --json | jq .rounds`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.register(cmd)
	fl := cmd.Flags()
	fl.Float64Var(&f.params.Damping, "damping", f.params.Damping, "the chance that a surfer follows a link, and does not begin anew")
	fl.Float64Var(&f.params.Tolerance, "tolerance", f.params.Tolerance, "end when a round changes the ranks by no more than this in all; they add up to 1")
	fl.IntVar(&f.params.MaxRounds, "max-rounds", f.params.MaxRounds, "end after so many rounds at the latest")
	fl.StringSliceVar(&f.weigh, "personalise", nil, "where a surfer begins anew: hosts and URLs, HOST=WEIGHT for other weights than 1, or a file with one a line and the weight behind a tab (default: anywhere)")
	fl.Var(&f.level, "level", "what is listed: crawled pages, crawled hosts or all")
	fl.IntVar(&f.top, "top", 10, "number of pages and of hosts to list; with --out, the whole table unless this flag is given")
	fl.StringVar(&f.out, "out", "", "write the table of --level to this file, one host or page a line, with a tab and its rank; - for standard output. A job keeps lists of the best: 1,000 pages, a million hosts")
	fl.BoolVar(&f.show, "show", false, "compute nothing: show what was computed last")
	fl.BoolVar(&f.fresh, "fresh", false, "use nothing of jobs before: read all commits again")
	fl.BoolVar(&f.force, "force", false, "begin a new job even if one is under way, which is given up")
	fl.BoolVar(&f.wait, "wait", true, "in a cloud, or while a crawl runs: wait until the ranks are there")
	return cmd
}

// levelValue is --level.
type levelValue string

func (v *levelValue) Set(s string) error {
	if s != "pages" && s != "hosts" && s != "all" {
		return errors.New("it must be pages, hosts or all")
	}
	*v = levelValue(s)
	return nil
}

func (v *levelValue) String() string { return string(*v) }
func (v *levelValue) Type() string   { return "pages|hosts|all" }

func (f *rankFlags) check() error {
	if err := f.settle(); err != nil {
		return err
	}
	if f.out != "" && f.level == "all" {
		return usagef("--out writes one table: say which one with --level pages or --level hosts")
	}
	if f.out != "" && f.json {
		return usagef("--out writes a table, and --json a report; give one of them")
	}
	if f.top < 0 {
		return usagef("--top must be 0 or more")
	}
	for _, w := range f.weigh {
		list, err := parseWeights(w)
		if err != nil {
			return usagef("--personalise: %w", err)
		}
		f.params.Personal = append(f.params.Personal, list...)
	}
	if err := f.params.Check(); err != nil {
		return usagef("%w", err)
	}
	return nil
}

// maxWeights is how large a file of weights may be.
const maxWeights = 1 << 20

// parseWeights reads an item of --personalise.
func parseWeights(item string) ([]ranks.Weight, error) {
	if info, err := os.Stat(item); err == nil && info.Mode().IsRegular() {
		if info.Size() > maxWeights {
			return nil, fmt.Errorf("the file %s has %d bytes, more than %d", item, info.Size(), maxWeights)
		}
		data, err := os.ReadFile(item)
		if err != nil {
			return nil, err
		}
		var out []ranks.Weight
		for line := range strings.Lines(string(data)) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' {
				continue
			}
			name, weight, _ := strings.Cut(line, "\t")
			w, err := parseWeight(name, weight)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", item, err)
			}
			out = append(out, w)
		}
		return out, nil
	}
	name, weight := item, ""
	if !strings.Contains(item, "://") {
		name, weight, _ = strings.Cut(item, "=")
	}
	w, err := parseWeight(name, weight)
	return []ranks.Weight{w}, err
}

func parseWeight(name, weight string) (w ranks.Weight, err error) {
	w.Weight = 1
	if weight = strings.TrimSpace(weight); weight != "" {
		if w.Weight, err = strconv.ParseFloat(weight, 64); err != nil {
			return w, fmt.Errorf("weight %.40q of %.200q is no number", weight, name)
		}
	}
	if strings.Contains(name, "://") {
		u, err := weburl.Parse(name)
		w.URL = u.String()
		return w, err
	}
	h, err := weburl.ParseHost(name)
	w.Host = string(h)
	return w, err
}

func (f *rankFlags) run(cmd *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	for _, name := range []string{"damping", "tolerance", "max-rounds", "personalise", "fresh"} {
		f.chosen = f.chosen || cmd.Flags().Changed(name)
	}
	ctx, release := following(cmd.Context())
	defer release()
	if !f.show {
		p := &rankProgress{w: cmd.ErrOrStderr(), round: -2}
		done, err := f.compute(ctx, p)
		switch {
		case err != nil && ctx.Err() != nil:
			return fail(exitStopped, fmt.Errorf("stopped; go on with '%s'", f.command("rank")))
		case err != nil:
			return f.explainRanks(err)
		case !done:
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "job %d is under way; see '%s'\n", p.job, f.command("rank", "--show"))
			return err
		}
	}
	return f.look(ctx, func(v *view.View) error { return f.tell(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr(), v) })
}

func (f *rankFlags) explainRanks(err error) error {
	switch {
	case errors.Is(err, rank.ErrNothing):
		return usagef("nothing is crawled in %s yet; begin with '%s'", &f.place, f.command("crawl"))
	case errors.Is(err, rank.ErrUnderWay):
		return fail(exitInUse, fmt.Errorf("%w.\nGo on with it by '%s', or give it up with --force", err, f.command("rank")))
	}
	return f.explain(err)
}

// compute sees that ranks are computed, wherever that is done; not done: nobody waited for it.
func (f *rankFlags) compute(ctx context.Context, p *rankProgress) (done bool, err error) {
	start := rank.StartConfig{Params: f.params, Join: !f.chosen, Fresh: f.fresh, Force: f.force}
	if f.inCloud() {
		return f.inTheCloud(ctx, start, p)
	}
	begun := uint64(0) // by the process that works on the folder
	for {
		owned := false
		var job ranks.Job
		err := f.look(ctx, func(v *view.View) (err error) {
			if owned = v.Live(ctx) != nil; !owned {
				return nil
			}
			if begun == 0 {
				job, _, err = v.StartRanks(ctx, view.RankOrder{Params: start.Params, Join: start.Join, Fresh: start.Fresh, Force: start.Force})
				begun = job.Number
				return err
			}
			now, err := v.Ranks(ctx)
			job = now.Job
			p.tell(now)
			return err
		})
		switch {
		case errors.Is(err, view.ErrNoOwner): // it is ending
		case err != nil:
			return false, err
		case !owned:
			if begun > 0 { // it began, and ended in the middle: go on
				start.Fresh, start.Force = job.Fresh, false
			}
			return true, f.inFolder(ctx, start, begun, p)
		case !job.Done.IsZero() && job.Number >= begun:
			return true, failed(&job)
		case !f.wait:
			p.job = job.Number
			return false, nil
		}
		if !wait(ctx, 300*time.Millisecond) {
			return false, ctx.Err()
		}
	}
}

// inFolder computes in this process.
func (f *rankFlags) inFolder(ctx context.Context, start rank.StartConfig, begun uint64, p *rankProgress) error {
	return f.work(ctx, func(v *visit) error {
		if begun > 0 {
			now, err := v.engine.RankProgress()
			if err != nil || !now.Job.Done.IsZero() {
				return err
			}
			start.Fresh = now.Job.Fresh
		}
		job, err := v.engine.Rank(ctx, start, func(now rank.Progress) { p.tell(now) })
		if err != nil {
			return err
		}
		return failed(&job)
	})
}

// cloudLook is how often a job in a cloud is looked at, and remindAfter how long nothing may happen
// before its messages are sent again.
const (
	cloudLook       = time.Second
	rankRemindAfter = 10 * time.Minute
)

// inTheCloud begins a job there, and follows it.
func (f *rankFlags) inTheCloud(ctx context.Context, start rank.StartConfig, p *rankProgress) (done bool, err error) {
	err = f.work(ctx, func(v *visit) error {
		job, _, err := v.engine.StartRanks(start)
		if err != nil {
			return err
		}
		p.job = job.Number
		moved := time.Now()
		for f.wait {
			now, err := v.engine.RankProgress()
			if err != nil {
				return err
			}
			if p.tell(now) {
				moved = time.Now()
			}
			if now.Job.Number != job.Number || !now.Job.Done.IsZero() {
				done = true
				return failed(&now.Job)
			}
			if time.Since(moved) > rankRemindAfter {
				moved = time.Now()
				if err := v.engine.RemindRanks(); err != nil {
					return err
				}
			}
			if !wait(ctx, cloudLook) {
				return ctx.Err()
			}
		}
		return nil
	})
	return done, err
}

func failed(job *ranks.Job) error {
	if job.Failed != "" {
		return fmt.Errorf("rank job %d has failed: %s", job.Number, job.Failed)
	}
	return nil
}

// rankProgress tells of rounds as they end.
type rankProgress struct {
	w     io.Writer
	job   uint64
	round int
}

func (p *rankProgress) tell(now rank.Progress) (news bool) {
	if now.Job.Number == p.job && now.Round == p.round {
		return false
	}
	p.job, p.round = now.Job.Number, now.Round
	residual, iterating := now.Residual()
	switch {
	case !now.Job.Done.IsZero() || now.Round < 0:
	case iterating:
		fmt.Fprintf(p.w, "round %d: pages changed by %.2g, hosts by %.2g\n", now.Iterations(), residual.Pages, residual.Hosts)
	case now.Round == ranks.Nodes:
		t := now.Totals()
		fmt.Fprintf(p.w, "%s, %s; %s, %s\n", plural(t.Pages, "page"), plural(t.Links, "link"), plural(t.Hosts, "host"), plural(t.HostLinks, "link"))
	}
	return true
}

const rankTime = "2006-01-02 15:04:05 UTC"

// rankReport is what was computed, for a program.
type rankReport struct {
	Crawl     string           `json:"crawl"`
	Data      string           `json:"data,omitempty"`
	Cloud     string           `json:"platform,omitempty"`
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

// tell shows what was computed last.
func (f *rankFlags) tell(ctx context.Context, out, errOut io.Writer, v *view.View) error {
	now, err := v.Ranks(ctx)
	if err != nil {
		return err
	}
	job := now.Job.Finished()
	if job == nil {
		if now.Job.Number > 0 {
			return fail(exitNothing, fmt.Errorf("the first ranks are being computed since %s", now.Job.Started.Format(rankTime)))
		}
		return fail(exitNothing, fmt.Errorf("no ranks were computed in %s yet; '%s' does", &f.place, f.command("rank")))
	}
	if f.out != "" {
		return f.export(ctx, out, errOut, v, job)
	}
	r := rankReport{
		Crawl: v.ID(), Job: job.Number, Started: job.Started, Done: job.Done, Seconds: job.Done.Sub(job.Started).Seconds(),
		Params: job.Params, Rounds: job.Rounds, Residuals: job.Residuals, Totals: job.Totals,
	}
	if f.inCloud() {
		r.Cloud = f.cloud
	} else {
		r.Data = f.data
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
		warnBest(errOut, "the list", len(r.Pages), f.top, job.Totals.Crawled, "page")
	}
	if f.json {
		return writeJSON(out, r)
	}
	return r.print(out, &f.place)
}

func (r *rankReport) print(out io.Writer, p *place) error {
	var b strings.Builder
	rows := newRows(&b)
	rows.add("ranks", "job %d of crawl %s in %s, %s, %s", r.Job, r.Crawl, p, r.Done.Format(rankTime), span(r.Seconds))
	if r.UnderWay > 0 {
		rows.add("", "job %d is under way", r.UnderWay)
	}
	t := &r.Totals
	rows.add("pages", "%s known, %s answered; %s; %s without", count(t.Pages), count(t.Crawled), plural(t.Links, "link"), count(t.Dangling))
	rows.add("hosts", "%s; %s; %s without", count(t.Hosts), plural(t.HostLinks, "link"), count(t.DanglingHosts))
	rows.add("rounds", "%s, damping %g", count(int64(r.Rounds)), r.Params.Damping)
	if n := len(r.Residuals); n > 0 {
		rows.add("", "the last one changed pages by %.2g, hosts by %.2g", r.Residuals[n-1].Pages, r.Residuals[n-1].Hosts)
	}
	rows.w.Flush() // into memory: it cannot fail
	for _, list := range []struct {
		name string
		of   []view.Ranked
	}{{"host", r.Hosts}, {"page", r.Pages}} {
		if len(list.of) == 0 {
			continue
		}
		w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(w, "\nrank\t  %s\n", list.name)
		for _, l := range list.of {
			fmt.Fprintf(w, "%.4g\t  %s\n", l.Rank, printable(l.Name))
		}
		w.Flush() // into memory: it cannot fail
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// export writes a table, or its first lines if --top is given.
func (f *rankFlags) export(ctx context.Context, out, errOut io.Writer, v *view.View, job *ranks.Job) error {
	object, all, noun := job.HostRanks, job.Totals.Hosts, "host"
	if f.level == "pages" {
		object, all, noun = job.PageRanks, job.Totals.Crawled, "page"
	}
	data, err := v.Store().Object(ctx, object, 0, -1)
	if err != nil {
		return err
	}
	lines, asked := slices.Collect(bytes.Lines(data)), math.MaxInt
	if f.level == "hosts" && len(lines) < frontier.MaxHostRanks && len(data) < frontier.MaxHostRankBytes-1<<10 {
		all = int64(len(lines)) // neither limit was reached, not even by one more line
	}
	if f.set.Changed("top") {
		asked = f.top
	}
	lines = lines[:min(asked, len(lines))]
	if data = bytes.Join(lines, nil); f.out == "-" {
		_, err = out.Write(data)
	} else {
		err = os.WriteFile(f.out, data, 0o644)
	}
	if err == nil {
		warnBest(errOut, "the table", len(lines), asked, all, noun)
	}
	return err
}

// warnBest warns that a list is shorter than requested, because a job keeps only the best.
func warnBest(w io.Writer, list string, got, asked int, all int64, noun string) {
	if int64(got) < min(int64(asked), all) {
		warn(w, "%s has the best %s of %s only: a rank job keeps no more", list, count(int64(got)), plural(all, noun))
	}
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/service"
)

// Bounds of --lease: requests must fit into it, and a crash should not last.
const (
	minLease = 4 * time.Second
	maxLease = time.Hour
)

type workFlags struct {
	target
	settings
	reportFlags
	worker      service.WorkConfig
	duration    time.Duration
	connections int
	lease       time.Duration
	jobs        bool
	health      string
	inbound     string
}

func newWork() *cobra.Command {
	var f workFlags
	cmd := reporting("work", noArguments, &f.reportFlags, func(cmd *cobra.Command, rep *reporter, _ []string) error {
		return f.run(cmd.Context(), rep)
	})
	fs := cmd.Flags()
	f.target.register(cmd)
	fs.IntVar(&f.worker.Steps, "steps", 0, "partitions to work on at once; 0 for four per processor")
	fs.DurationVar(&f.worker.StepTime, "step-time", 5*time.Minute, "longest session on a partition; then any worker may take it, also one that has just joined")
	fs.DurationVar(&f.worker.TickEvery, "tick", 5*time.Second, "approximate time between two coordinator runs of all workers together")
	fs.BoolVar(&f.worker.StepsOnly, "no-tick", false, "leave coordinator runs and requests to other workers, or to functions")
	fs.DurationVar(&f.duration, "for", 0, "leave after this time; 0 for never")
	fs.BoolVar(&f.worker.UntilOver, "idle-exit", false, "leave once the crawl is finished, at its limit or stopped")
	fs.IntVar(&f.connections, "connections", engine.DefaultConnections, "requests under way at once")
	fs.BoolVar(&f.jobs, "jobs", false, "build index and ranks too (default: unless the platform has functions for them)")
	fs.StringVar(&f.health, "health", "", "serve probes at this address, such as :8080: /healthz, and /readyz while the platform answers")
	fs.StringVar(&f.inbound, "inbound", "", inboundUsage)
	f.settings.register(fs, "allow-net")
	fs.DurationVar(&f.lease, "lease", 2*time.Minute, "time after which others take over the partition of a dead worker")
	f.reportFlags.register(fs)
	return cmd
}

// check refuses values that the flags' parsers accept.
func (f *workFlags) check() error {
	if d, ok := f.location.(folder); ok {
		return usagef("workers share a platform (--platform, or $%s), and a folder has one owner.\n"+
			"'%s' crawls in the folder %s, with all its partitions in one process", platformVariable, f.command("crawl"), d)
	}
	err := refuse(f.set, []wrong{
		{f.worker.Steps < 0, "steps", "1 or more, or 0 for the default"},
		{f.worker.StepTime < time.Second, "step-time", "1s or more"},
		{f.worker.TickEvery < 100*time.Millisecond, "tick", "100ms or more; see --no-tick"},
		{f.duration < 0, "for", "longer than 0s, or 0 for no bound"},
		{f.connections < 1, "connections", "1 or more"},
		{f.lease < minLease || f.lease > maxLease, "lease", fmt.Sprintf("%s to %s", minLease, maxLease)},
	})
	switch {
	case err != nil:
		return err
	case f.worker.StepsOnly && f.set.Changed("tick"):
		return usagef("--tick and --no-tick contradict each other")
	case f.worker.StepsOnly && f.worker.UntilOver:
		return usagef("--idle-exit needs ticks, which see the end of a crawl; leave --no-tick out, or give a time with --for")
	}
	return nil
}

func (f *workFlags) run(ctx context.Context, rep *reporter) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	ctx, release := interruptible(ctx, rep)
	defer release()
	led := &ledger.Ledger{}
	p, err := f.open(ctx, led)
	if err != nil {
		return f.explain(err)
	}
	defer func() { _ = p.Close() }() // all work is committed
	cfg := serviceConfig(f.connections, f.record.Settings.AllowNet, polite.Retry{Wait: 5 * time.Second}, led, rep, newLog(rep))
	cfg.Bucket, cfg.Step.Lease, cfg.Step.Margin = p.BucketName, f.lease, min(5*time.Second, f.lease/4)
	f.worker.Config, f.worker.Prepare = cfg, func(s *service.Service) { jobs.New(s) } // its coordinator begins rank jobs
	if f.worker.Jobs = f.jobs; !f.set.Changed("jobs") {
		f.worker.Jobs = !p.Functions
	}
	w, err := service.NewWorker(p, f.worker)
	if err != nil {
		return f.explain(err)
	}
	if f.health != "" {
		end, err := serveProbes(f.health, p)
		if err != nil {
			return err
		}
		defer end()
	}
	to, err := service.New(p, service.Config{Ledger: led})
	if err != nil {
		return f.explain(err)
	}
	end, err := serveInbound(ctx, f.inbound, p, to, cfg.Log)
	if err != nil {
		return err
	}
	defer end()
	if f.duration > 0 {
		limited, cancel := context.WithTimeout(ctx, f.duration)
		defer cancel()
		ctx = limited
	}
	return f.explain(f.watch(ctx, w, rep))
}

// watch runs the worker and reports its progress.
func (f *workFlags) watch(ctx context.Context, w *service.Worker, rep *reporter) error {
	began := time.Now()
	rep.begun("joined", &joining{where: f.where(""), Steps: w.Snapshot().MostSteps, Ticks: !f.worker.StepsOnly})
	m := newMeter(began, f.duration, blobschema.Totals{})
	err := watch(rep, func() error { return w.Run(ctx) }, func(now time.Time) (shown, *pulse) {
		fig := f.workFigures(w.Snapshot(), m, now)
		return &fig, &fig.pulse
	})
	if err == nil {
		snap := w.Snapshot()
		left := &leaving{f.workFigures(snap, m, time.Now()), snap.Calls}
		left.PagesPerSecond = float64(left.Pages) / left.Seconds
		rep.told("left", "left", left)
	}
	return err
}

// joining is reported when a worker joins.
type joining struct {
	where
	Steps int  `json:"steps"` // at most
	Ticks bool `json:"ticks"`
}

// workFigures are the figures of a worker.
type workFigures struct {
	where                  // empty while there is no crawl
	Seconds        float64 `json:"seconds"`
	State          string  `json:"state"`
	Pages          int64   `json:"pages"` // by this worker, here and below
	PagesPerSecond float64 `json:"pages_per_second"`
	Bytes          int64   `json:"bytes"`
	AtWork         int     `json:"partitions_at_work"`
	Steps          int     `json:"steps"`       // at most
	Ended          int64   `json:"steps_ended"` // well or not
	FailedSteps    int64   `json:"steps_failed,omitempty"`
	Active         int     `json:"requests_active"`
	All            *whole  `json:"all,omitempty"` // as of the last coordinator run; nil without
	SecondsLeft    float64 `json:"seconds_left,omitempty"`
	pulse          `json:"-"`
}

// whole is the work of all workers and functions together.
type whole struct {
	Pages  int64 `json:"pages"`
	Queue  int64 `json:"queue"`
	AtWork int   `json:"partitions_at_work"`
}

func (t *target) workFigures(s service.WorkSnapshot, m *meter, now time.Time) workFigures {
	totals := blobschema.Totals{Outcomes: map[string]int64{blobschema.OutcomeOK.String(): s.Pages}}
	base := m.read(now, &service.Snapshot{Progress: crawl.Progress{Totals: totals}})
	f := workFigures{
		where: t.where(s.Crawl), Seconds: base.Seconds, State: workState(&s), Pages: s.Pages, PagesPerSecond: base.PagesPerSecond, Bytes: s.Bytes,
		AtWork: len(s.AtWork), Steps: s.MostSteps, Ended: s.Worked.Steps, FailedSteps: s.Failed, Active: s.Active, SecondsLeft: base.SecondsLeft,
		pulse: base.pulse,
	}
	if r := s.Report; r != nil && !r.Idle {
		f.All = &whole{Pages: r.Totals.Pages, Queue: r.Totals.Pending + r.Totals.Unexamined, AtWork: r.Leased}
	}
	return f
}

// workState is the state of the crawl that the worker knows.
func workState(s *service.WorkSnapshot) string {
	r := s.Report
	switch {
	case s.Crawl == "":
		return "no crawl yet"
	case r == nil:
		return "crawling"
	case r.Desired.Stop:
		return "stopped"
	case r.Desired.Pause:
		return "paused"
	case r.Finished && len(s.AtWork) == 0:
		return "finished"
	case r.Limited && len(s.AtWork) == 0:
		return "limit"
	}
	return "crawling"
}

// progress returns the templates of a worker's progress. While requests are under way it always allows
// another line.
func (f *workFigures) progress() (block, line string, seconds float64, key string) {
	key = f.State + count(f.Pages)
	if f.Active > 0 {
		key += span(f.Seconds)
	}
	return "work-block", "work-line", f.Seconds, key
}

// leaving is reported when a worker leaves.
type leaving struct {
	workFigures
	Calls blobschema.Calls `json:"calls"`
}

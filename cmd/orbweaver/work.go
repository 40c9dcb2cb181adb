package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/platform"
)

// Bounds of --lease: requests must fit into it, and a crash should not last.
const (
	minLease = 4 * time.Second
	maxLease = time.Hour
)

// workFlags is what the work command can be told.
type workFlags struct {
	place
	steps       int
	stepTime    time.Duration
	tick        time.Duration
	stepsOnly   bool
	duration    time.Duration
	idleExit    bool
	connections int
	allowNet    netsValue
	lease       time.Duration
	json        bool
	quiet       bool
}

func newWork() *cobra.Command {
	var f workFlags
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Crawl as one of many processes on one platform",
		Long: `Work makes this process one of any number that crawl together what is in a cloud
(--platform): on machines of your own, in containers, instead of functions or beside them.
Start as many as you like, whenever you like; none knows of the others.

A worker takes wakes from their queue, each of which names a partition, and works on that
partition for some minutes, on several at once. It also does what falls to a coordinator:
ticks, which find out whom to wake, and requests from outside. With --no-tick it leaves
that to other workers, or to functions. Index and ranks it always leaves to functions.

Ctrl-C or SIGTERM lets it leave: what was answered is committed, its partitions are given
back, and others go on with them at once. A second Ctrl-C quits at once; that, a kill -9 or
a machine that dies lose what was not committed, a minute of work, which is done again
by others when the lease (--lease) is over.

Without a crawl it waits for one: 'orbweaver crawl --detach --platform ... URL' begins it. When
the crawl is finished it waits for requests ('orbweaver recrawl') or for another crawl, unless
there is --idle-exit. The settings of a crawl are in its record: nothing but what
is this process's own is a flag here.

A folder (--data) has one owner: there 'orbweaver crawl' does all the work itself.

Progress goes to standard error (with --json to standard output), of this worker alone;
'orbweaver status' tells of all.`,
		Example: `  # two workers on this machine, and a crawl for them
  export ORBWEAVER_PLATFORM=aws.json
  orbweaver work & orbweaver work &
  orbweaver crawl --detach https://example.org/
  orbweaver status

  # until the crawl is done, on every machine that there is
  orbweaver work --idle-exit --platform aws.json

  # help the functions for an hour
  orbweaver work --no-tick --for 1h

  # a big machine for fast hosts
  orbweaver work --steps 64 --connections 2000

  # for a program: one JSON object a line
  orbweaver work --json | jq 'select(.event == "progress").pages_per_second'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runWork(cmd, &f) },
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *workFlags) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	f.place.register(fs)
	fs.IntVar(&f.steps, "steps", 0, "partitions to work on at once; 0 for four for every processor")
	fs.DurationVar(&f.stepTime, "step-time", 5*time.Minute, "time after which a partition is handed on, so that workers that join get some")
	fs.DurationVar(&f.tick, "tick", 5*time.Second, "how often all workers together look whom to wake, about")
	fs.BoolVar(&f.stepsOnly, "no-tick", false, "leave ticks and requests to other workers, or to functions")
	fs.DurationVar(&f.duration, "for", 0, "leave after so long; 0 for never")
	fs.BoolVar(&f.idleExit, "idle-exit", false, "leave once the crawl is finished, at its limit or stopped")
	fs.IntVar(&f.connections, "connections", 256, "requests under way at once")
	fs.Var(&f.allowNet, "allow-net", "network to connect to although it is not public; repeatable")
	fs.DurationVar(&f.lease, "lease", 2*time.Minute, "how long others leave a partition alone whose worker has died")
	fs.BoolVar(&f.json, "json", false, "tell what happens as JSON, one object a line")
	fs.BoolVar(&f.quiet, "quiet", false, "say nothing but warnings and errors")
}

// check refuses what cannot be.
func (f *workFlags) check() error {
	if err := f.settle(); err != nil {
		return err
	}
	if !f.inCloud() {
		return usagef("workers share a platform (--platform, or $%s), and a folder has one owner.\n"+
			"'%s' crawls in the folder %s, with all its partitions in one process", platformVariable, f.command("crawl"), f.data)
	}
	w := runFlags{place: f.place}
	err := w.refuse([]wrong{
		{f.steps < 0, "steps", "1 or more, or 0 for the default"},
		{f.stepTime < time.Second, "step-time", "1s or more"},
		{f.tick < 100*time.Millisecond, "tick", "100ms or more; see --no-tick"},
		{f.duration < 0, "for", "longer than 0s, or 0 for no bound"},
		{f.connections < 1, "connections", "1 or more"},
		{f.lease < minLease || f.lease > maxLease, "lease", fmt.Sprintf("%s to %s", minLease, maxLease)},
	})
	switch {
	case err != nil:
		return err
	case f.stepsOnly && f.set.Changed("tick"):
		return usagef("--tick and --no-tick contradict each other")
	case f.stepsOnly && f.idleExit:
		return usagef("--idle-exit needs ticks, which see the end of a crawl; leave --no-tick out, or give a time with --for")
	}
	return nil
}

// config is how the worker works.
func (f *workFlags) config(p *platform.Platform, led *ledger.Ledger, log *slog.Logger) service.WorkConfig {
	return service.WorkConfig{
		Config: service.Config{
			Step: crawl.StepConfig{
				Software: "orbweaver/" + version, Retry: polite.Retry{Wait: 5 * time.Second}, Lease: f.lease, Margin: min(5*time.Second, f.lease/4),
			},
			Fetch: fetch.Config{AllowNet: f.allowNet.nets}, Bucket: p.BucketName, Connections: f.connections,
			MemoryLimit: engine.LimitMemory(os.DirFS("/")), Ledger: led, Log: log,
		},
		Prepare: func(s *service.Service) { jobs.New(s) }, // its coordinator begins rank jobs
		Steps:   f.steps, StepTime: f.stepTime, TickEvery: f.tick, StepsOnly: f.stepsOnly, UntilOver: f.idleExit,
	}
}

func runWork(cmd *cobra.Command, f *workFlags) (err error) {
	rep := newReporter(&runFlags{json: f.json, quiet: f.quiet}, cmd.OutOrStdout(), cmd.ErrOrStderr())
	defer func() { tellFailure(rep, err) }()
	if err := f.check(); err != nil {
		return err
	}
	ctx, release := interruptible(cmd.Context(), rep)
	defer release()
	led := &ledger.Ledger{}
	p, err := f.open(ctx, led)
	if err != nil {
		return f.explain(err)
	}
	defer func() { _ = p.Close() }() // what matters is committed
	w, err := service.NewWorker(p, f.config(p, led, slog.New(slog.NewTextHandler(rep, &slog.HandlerOptions{Level: slog.LevelWarn}))))
	if err != nil {
		return f.explain(err)
	}
	if f.duration > 0 {
		limited, cancel := context.WithTimeout(ctx, f.duration)
		defer cancel()
		ctx = limited
	}
	return f.explain(f.follow(ctx, w, rep))
}

// follow runs the worker and tells what it does.
func (f *workFlags) follow(ctx context.Context, w *service.Worker, rep reporter) error {
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = w.Run(ctx)
	}()
	began := time.Now()
	rep.joined(&joining{Cloud: f.cloud, Steps: w.Snapshot().MostSteps, Ticks: !f.stepsOnly})
	m := newMeter(began, f.duration, blobschema.Totals{})
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		select {
		case <-done:
			if err == nil {
				rep.told(newLeaving(f.cloud, w.Snapshot(), time.Since(began)))
			}
			return err
		case now := <-tick.C:
			fig := workFiguresOf(w.Snapshot(), m, now)
			rep.works(&fig)
		}
	}
}

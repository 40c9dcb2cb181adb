package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/view"
)

// refresh is how often the display is updated.
const refresh = 200 * time.Millisecond

// run is one run of a crawl in a folder. The crawl, recrawl and demo commands share it.
type run struct {
	// Set before start.
	*target
	start
	reporter    *reporter
	request     *request // URLs to fetch before all others; nil for none
	connections int
	maxTime     time.Duration
	retry       polite.Retry
	perRun      []string // flags of this run that the next one needs again

	*opened
	frozen  *view.View  // view from before the request was submitted
	earlier view.Status // the same
	over    atomic.Bool
	crawl   blobschema.Crawl
	begun   *beginning
	before  blobschema.Totals // of earlier runs
	log     *slog.Logger
	began   time.Time
	cpu     time.Duration // used before the run
}

// errMaxTime ends a run that took --max-time.
var errMaxTime = errors.New("--max-time is over")

// do opens the folder, crawls until the end or the end of ctx, and returns the result. It calls
// after with the folder still open.
func (r *run) do(ctx context.Context, after func(context.Context, *summary) error) (sum *summary, err error) {
	r.began, r.cpu = time.Now(), ledger.Processor()
	r.log = slog.New(slog.NewTextHandler(r.reporter, &slog.HandlerOptions{Level: slog.LevelWarn}))
	err = r.enter(ctx, func(o *opened) error {
		r.opened = o
		if err := r.open(ctx); err != nil {
			return err
		}
		limited, cancel := ctx, context.CancelFunc(func() {})
		if r.maxTime > 0 {
			limited, cancel = context.WithDeadlineCause(ctx, r.began.Add(r.maxTime), errMaxTime)
		}
		defer cancel()
		r.reporter.begun("started", r.begun)
		defer r.serve(ctx)()
		if err := r.submitRequest(ctx); err != nil {
			return err
		}
		end, err := r.watch(limited)
		r.over.Store(true)
		if err != nil {
			return err
		}
		snap := r.engine.Snapshot()
		sum = r.ended(end, context.Cause(limited), snap.Totals)
		sum.measure(&r.before, time.Since(r.began))
		if err := sum.price(snap.Calls, ledger.Processor()-r.cpu); err != nil {
			return err
		}
		return after(ctx, sum)
	})
	return sum, err
}

// open creates the crawl or resumes the present one, with an engine that fetches as its record says.
func (r *run) open(ctx context.Context) error {
	s, err := r.begin(ctx, &r.start, func(c *blobschema.Crawl) service.Config {
		return service.Config{
			Step:        crawl.StepConfig{Software: "orbweaver/" + version, Retry: r.retry, Watch: r.reporter.answers.add},
			Fetch:       fetch.Config{AllowNet: c.Settings.AllowNet},
			Connections: r.connections, MemoryLimit: engine.LimitMemory(os.DirFS("/")), Ledger: r.ledger, Log: r.log,
		}.For(&c.Settings)
	})
	if err != nil {
		return err
	}
	r.seeds = nil // they may be a million
	r.crawl, r.before = s.status.Crawl, s.status.Totals
	records := seedRecords
	if r.request != nil {
		if w := &s.status.Desired; w.Stop || w.Pause {
			return heldBack(r.target, w)
		}
		records = 0
	}
	r.begun, err = s.work(ctx, records)
	return err
}

// serve lets other commands read and change the crawl while it runs, until stop is called. If the socket
// cannot be served, the crawl runs without it.
func (r *run) serve(ctx context.Context) (stop func()) {
	end, err := control.Serve(ctx, r.data, r.platform, control.Owner{
		Control: control.Own{Engine: r.engine}, Snapshot: func() any { return r.engine.Snapshot() }, Ended: r.over.Load,
	})
	if err != nil {
		r.log.Warn("other commands cannot look at this crawl while it runs", "error", err)
		return func() {}
	}
	return func() {
		if err := end(); err != nil {
			r.log.Warn("end answering", "error", err)
		}
	}
}

// watch runs the engine and reports its progress.
func (r *run) watch(ctx context.Context) (end service.End, err error) {
	m := newMeter(r.began, r.maxTime, r.before)
	work := func() (err error) {
		end, err = r.engine.Run(ctx)
		return err
	}
	err = watch(work, func(now time.Time) {
		snap := r.engine.Snapshot()
		f := m.read(now, &snap)
		f.Title = "orbweaver " + r.crawl.ID
		r.reporter.urls(&f.pulse)
		if rep := r.engine.Report(); rep != nil {
			f.Paused = rep.Desired.Pause
		}
		r.reporter.progress(&f)
	})
	r.reporter.urls(&pulse{})
	return end, err
}

// watch calls show periodically until work returns.
func watch(work func() error, show func(now time.Time)) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case now := <-tick.C:
			show(now)
		}
	}
}

// ended returns the summary of a run. cause is the reason why its context ended, or nil.
func (r *run) ended(end service.End, cause error, t blobschema.Totals) *summary {
	sum := &summary{where: r.where(r.crawl.ID), End: end, Totals: t, before: r.before, perRun: r.perRun, perNew: r.perNew()}
	if t.Stored > 0 {
		sum.Archive = objectFile(r.data, naming.WARCPrefix(r.crawl.ID))
	}
	// If there is nothing to do, no step runs.
	sum.idle = r.begun.Resumed && r.begun.Seeds+r.begun.Retried == 0 && r.request == nil && end != service.Stopped && r.ledger.Counts().Functions == 0
	pages := plural(t.Pages, "page")
	sum.Resume = r.command("crawl", r.perRun...)
	switch {
	case end == service.Stopped && errors.Is(cause, errMaxTime):
		sum.Status, sum.Reason = exitStopped, fmt.Sprintf("Stopped after --max-time %s, with %s.", r.maxTime, pages)
	case end == service.Stopped:
		sum.Status, sum.Reason = exitStopped, fmt.Sprintf("Stopped, with %s.", pages)
	case sum.idle && end == service.Finished && t.Pages == 0:
		sum.Status, sum.Reason = exitNothing, "already finished: nothing could be fetched."
		sum.Resume = r.command("crawl", append(sum.perNew, "--new", "URL...")...)
	case sum.idle && end == service.Finished:
		sum.Reason = fmt.Sprintf("already finished: %s.", pages)
		sum.Resume = r.command("crawl", append(r.perRun, "URL...")...)
	default:
		sum.Resume = ""
		sum.conclude(r.crawl.Settings.MaxPages)
	}
	return sum
}

// perNew lists the flags that a new crawl in place of this one needs again.
func (r *run) perNew() []string {
	args := slices.Clone(r.perRun)
	for _, p := range r.crawl.Settings.AllowNet {
		args = append(args, "--allow-net="+p.String())
	}
	return args
}

// conclude completes the summary while the folder is still open.
func (r *run) conclude(ctx context.Context, sum *summary) (err error) {
	if sum.Status == exitNothing {
		if sum.Seeds, err = seedOutcomes(ctx, r.view); err != nil {
			return err
		}
	}
	if r.crawl.Settings.Index && !sum.idle {
		now, err := r.view.Status(context.WithoutCancel(ctx)) // after a signal too
		if err != nil {
			return err
		}
		sum.Search = newIndexReport(&now)
	}
	return r.listCaptures(ctx, sum)
}

// listCaptures makes the capture index at the end of a run that was not interrupted.
func (r *run) listCaptures(ctx context.Context, sum *summary) error {
	if sum.End == service.Stopped || sum.End == service.Halted || sum.idle {
		return nil
	}
	switch err := r.view.WriteCDXJ(ctx); {
	case ctx.Err() != nil:
		return nil // export writes the index when it is needed
	case err != nil:
		return fmt.Errorf("the crawl is done, but its capture index is not: %w", err)
	}
	sum.Index = objectFile(r.data, naming.CDXJIndex(r.crawl.ID))
	return nil
}

// interruptible returns a context that ends with the first signal to stop; the second signal ends
// the process at once. release takes the signals back.
func interruptible(parent context.Context, w io.Writer) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup wants it ignored
		signals = append(signals, syscall.SIGHUP)
	}
	got, done, ended := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(got, signals...)
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-got:
			}
			if n > 0 {
				os.Exit(int(exitStopped)) // uncommitted pages will be fetched again
			}
			fmt.Fprintln(w, "stopping; once more quits at once")
			cancel()
		}
	}()
	return ctx, func() {
		signal.Stop(got)
		close(done)
		<-ended
		cancel()
	}
}

// following returns a context that ends with the first signal to stop, which does not end the crawl.
func following(parent context.Context) (ctx context.Context, release func()) {
	return signal.NotifyContext(parent, syscall.SIGINT, syscall.SIGTERM)
}

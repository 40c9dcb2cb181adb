package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/view"
)

// run is one run of the crawl, recrawl or demo command. In a folder this process crawls. In a deployment the
// run creates or resumes the crawl, runs the coordinator once so that work starts at once, and follows;
// functions do everything else.
type run struct {
	// Set before do.
	*target
	reporter    *reporter
	fresh       blobschema.Crawl // the record of a new crawl
	seeds       []crawl.Seed
	ranks       []byte // of hosts, for a new crawl
	another     bool   // a new crawl replaces the last one
	resume      func(stored blobschema.Crawl) (blobschema.Crawl, error)
	prepare     func(o *opened, fresh *blobschema.Crawl) error // completes fresh; nil for nothing to do
	request     *request                                       // URLs to fetch before all others; nil for none
	inbound     string                                         // address of requests of other programs; "" for none
	detach      bool                                           // leave the crawl in the deployment to itself
	connections int
	maxTime     time.Duration
	every       time.Duration // between two reads of the state of a deployment
	retry       polite.Retry

	*opened
	begun   *beginning
	earlier view.Status // before this run
	now     view.Status // as read last
	meter   *meter
	over    atomic.Bool
	log     *slog.Logger
	began   time.Time
	cpu     time.Duration // used before the run, and after it by the run
}

// errMaxTime ends a run that took --max-time.
var errMaxTime = errors.New("--max-time is over")

// do opens the target, crawls or follows until the end or the end of ctx, and returns the result. It calls
// after with the target still open. The result is nil if the crawl continues in a deployment.
func (r *run) do(ctx context.Context, after func(context.Context, *summary) error) (sum *summary, err error) {
	r.began, r.cpu = time.Now(), ledger.Processor()
	r.log = newLog(r.reporter)
	err = r.enter(ctx, func(o *opened) error {
		r.opened = o
		if err := r.begin(ctx); err != nil {
			return err
		}
		r.meter = newMeter(r.began, r.maxTime, r.earlier.Totals)
		limited, cancel := ctx, context.CancelFunc(func() {})
		if r.maxTime > 0 {
			limited, cancel = context.WithDeadlineCause(ctx, r.began.Add(r.maxTime), errMaxTime)
		}
		defer cancel()
		if r.here() && !r.lost() {
			defer r.serve(ctx)()
		}
		stop, err := serveInbound(ctx, r.inbound, r.platform, r.Control, r.log)
		if err != nil {
			return err
		}
		defer stop()
		end, err := r.watch(limited)
		switch {
		case err != nil:
			return err
		case end == left:
			r.reporter.told("left", "departure", &departure{where: r.where(r.id()), Pages: r.now.Totals.Pages, Progress: r.command("status")})
			return nil
		}
		sum = r.ended(end, context.Cause(limited))
		sum.measure(&r.earlier.Totals, time.Since(r.began))
		if err := sum.price(r.now.Calls, r.cpu); err != nil {
			return err
		}
		return after(ctx, sum)
	})
	return sum, err
}

// id is the id of the crawl.
func (r *run) id() string { return r.earlier.Crawl.ID }

// begin creates a crawl or resumes the present one, and reports that. It revokes an order to stop or to
// pause; a crawl with such an order refuses a request instead.
func (r *run) begin(ctx context.Context) error {
	r.begun = &beginning{}
	budget, err := r.create(ctx)
	if err != nil {
		return err
	}
	if err := r.see(ctx); err != nil {
		return err
	}
	if r.earlier, err = r.view.Status(ctx); err != nil {
		return err
	}
	r.now = r.earlier
	if w := &r.now.Desired; r.request != nil && (w.Stop || w.Pause) {
		return heldBack(r.target, w)
	}
	b := r.begun
	b.where, b.Pages, b.Set = r.where(r.id()), r.now.Totals.Pages, r.now.Crawl.Settings
	if budget {
		b.Frozen = b.Pages
	}
	if b.Retried, err = r.retrySeeds(ctx); err != nil {
		return err
	}
	if b.Ordered, err = r.Order(ctx, crawl.OrderResume); err != nil { // in a deployment it also runs the coordinator
		return err
	}
	r.reporter.begun("started", b)
	if r.request != nil {
		err = r.request.send(ctx, r.opened)
	}
	return err
}

// create creates a crawl or resumes the present one. It returns true if a resumed crawl gets its first budget
// for revisits. In a folder the run gets another engine, because only the record says how to fetch.
func (r *run) create(ctx context.Context) (budget bool, err error) {
	if r.prepare != nil {
		if err := r.prepare(r.opened, &r.fresh); err != nil {
			return false, err
		}
	}
	if r.request == nil {
		if r.fresh, err = identify(r.fresh); err != nil {
			return false, err
		}
	}
	if err := r.engine.PutRanks(ctx, &r.fresh, r.ranks); err != nil {
		return false, err
	}
	var c blobschema.Crawl
	if r.another {
		r.begun.Seeds = len(r.seeds)
		c, err = r.createAnother(ctx)
	} else {
		created := false
		c, created, r.begun.Seeds, err = r.engine.Begin(r.fresh, r.seeds, func(c *blobschema.Crawl) error {
			resumed, err := r.resume(*c)
			if err == nil {
				budget = c.Settings.RecrawlPerHour == 0 && resumed.Settings.RecrawlPerHour > 0
				*c = resumed
			}
			return err
		})
		r.begun.Resumed = !created
	}
	r.seeds = nil // they may be a million
	if err != nil || !r.here() {
		return budget, err
	}
	cfg := serviceConfig(r.connections, c.Settings.AllowNet, r.retry, r.ledger, r.reporter, r.log).For(&c.Settings)
	if err := cfg.Fetch.Validate(); err != nil {
		return false, err
	}
	r.engine, err = jobs.Open(r.platform, cfg)
	r.Control = control.Own{Engine: r.engine}
	return budget, err
}

// createAnother creates a crawl in place of the last one. It waits if the id, which derives from the
// second, is taken, or if a step is still ending.
func (r *run) createAnother(ctx context.Context) (blobschema.Crawl, error) {
	for try := 0; ; try++ {
		c, err := r.engine.BeginAnother(ctx, r.fresh, r.seeds)
		if !errors.Is(err, actor.ErrConflict) && !errors.Is(err, crawl.ErrAtWork) || try == 5 || !wait(ctx, time.Second) {
			return c, err
		}
		if r.fresh, err = identify(r.fresh); err != nil {
			return c, err
		}
	}
}

// Page records that are read at most to find the seeds that could not be fetched, when a crawl is
// resumed: some seconds' worth in a folder, and few objects in a deployment.
const (
	seedRecords      = 1_000_000
	cloudSeedRecords = 20_000
)

// retrySeeds gives a resumed crawl the seeds again that could not be fetched, and returns their number.
func (r *run) retrySeeds(ctx context.Context) (n int, err error) {
	most := cloudSeedRecords
	if r.here() {
		most = seedRecords
	}
	var failed []crawl.Seed
	if r.begun.Resumed && r.request == nil {
		if failed, err = r.view.FailedSeeds(ctx, most); err != nil {
			return 0, err
		}
	}
	_, _, n, err = r.engine.Begin(blobschema.Crawl{}, failed, nil)
	return n, err
}

// newLog returns a log of warnings.
func newLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// serviceConfig is the configuration of a process that fetches pages.
func serviceConfig(connections int, allow []netip.Prefix, retry polite.Retry, led *ledger.Ledger, rep *reporter, log *slog.Logger,
) service.Config {
	return service.Config{
		Step: crawl.StepConfig{Software: "orbweaver/" + version, Retry: retry, Watch: rep.answers.add}, Fetch: fetch.Config{AllowNet: allow},
		Connections: connections, MemoryLimit: engine.LimitMemory(os.DirFS("/")), Ledger: led, Log: log,
	}
}

// serve lets other commands read and change the crawl while it runs, until stop is called. If the socket
// cannot be served, the crawl runs without it.
func (r *run) serve(ctx context.Context) (stop func()) {
	end, err := control.Serve(ctx, r.data, r.platform, control.Owner{
		Control: r.Control, Snapshot: func() any { return r.engine.Snapshot() }, Ended: r.over.Load,
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

// ended returns the summary of a run. cause is the reason why its context ended, or nil.
func (r *run) ended(end service.End, cause error) *summary {
	c, t := &r.earlier.Crawl, &r.now.Totals
	sum := &summary{
		where: r.where(c.ID), End: end, Totals: *t, before: r.earlier.Totals, allowed: c.Settings.AllowNet,
	}
	if t.Stored > 0 {
		sum.Archive = r.object(naming.WARCPrefix(c.ID))
	}
	// If there is nothing to do, no step runs.
	sum.idle = r.here() && r.begun.Resumed && r.begun.Seeds+r.begun.Retried == 0 && r.request == nil && end != service.Stopped &&
		r.ledger.Counts().Functions == 0
	if !sum.idle {
		sum.Search = newIndexReport(&r.now)
	}
	pages := plural(t.Pages, "page")
	sum.Resume = r.command("crawl")
	stopped := r.words().stopped
	switch {
	case end == service.Stopped && errors.Is(cause, errMaxTime):
		sum.Status, sum.Reason = exitStopped, fmt.Sprintf("%s after --max-time %s, with %s.", stopped, r.maxTime, pages)
	case end == service.Stopped:
		sum.Status, sum.Reason = exitStopped, fmt.Sprintf("%s, with %s.", stopped, pages)
	case sum.idle && end == service.Finished && t.Pages == 0:
		sum.Status, sum.Reason = exitNothing, "already finished: nothing could be fetched."
		sum.Resume = sum.StartOver()
	case sum.idle && end == service.Finished:
		sum.Reason = fmt.Sprintf("already finished: %s.", pages)
		sum.Resume = r.command("crawl", "URL...")
	default:
		sum.Resume = ""
		sum.conclude(c.Settings.MaxPages)
	}
	if r.lost() { // nothing can be resumed or searched
		sum.Resume, sum.Search = "", nil
	}
	return sum
}

// conclude completes the summary while the target is still open.
func (r *run) conclude(ctx context.Context, sum *summary) (err error) {
	if sum.Status == exitNothing {
		if sum.Seeds, err = seedOutcomes(ctx, r.view); err != nil {
			return err
		}
	}
	return r.listCaptures(ctx, sum)
}

// listCaptures makes the capture index of a folder at the end of a run that was not interrupted.
func (r *run) listCaptures(ctx context.Context, sum *summary) error {
	if !r.here() || r.lost() || sum.End == service.Stopped || sum.End == service.Halted || sum.idle {
		return nil
	}
	switch err := r.view.WriteCDXJ(ctx); {
	case ctx.Err() != nil:
		return nil // export writes the index when it is needed
	case err != nil:
		return fmt.Errorf("the crawl is done, but its capture index is not: %w", err)
	}
	sum.Index = r.object(naming.CDXJIndex(r.id()))
	return nil
}

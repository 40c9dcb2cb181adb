package service

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// WorkConfig configures a worker.
type WorkConfig struct {
	Config // the settings of each crawl complete it
	// Prepare, if it is not nil, is called with the service of each crawl before it works, to register jobs.
	Prepare func(*Service)
	// Steps is the limit of concurrent steps, each on its own partition; default four per processor. A
	// partition of thirty ready hosts with one request per second each uses an eighth of a processor; one whose
	// hosts allow more uses a whole processor.
	Steps int
	// StepTime is the duration of a step, plus or minus a fifth; default 5 min. At its end
	// any worker may take the partition's wake, so a worker that joins gets its
	// share after that time at the latest.
	StepTime time.Duration
	// TickEvery is the mean time between two coordinator runs of all workers together; default 5 s.
	TickEvery time.Duration
	// StepsOnly leaves the coordinator, and requests from outside, to other processes.
	StepsOnly bool
	// Jobs runs index and rank steps too, one of each kind at a time.
	Jobs bool
	// UntilOver ends the worker when the crawl is finished, at its limit or stopped, and no partition is
	// leased; with Jobs, also not before index and ranks have caught up. Otherwise the worker waits for requests or another crawl. It cannot be combined with StepsOnly.
	UntilOver bool
}

// A waiting worker costs nothing extra, but a function pays while it waits. So a worker's steps wait longer for
// mail and hosts. Calls to queue, table and bucket cost both the same.
const (
	workSteps       = 4 // per processor
	workStepTime    = 5 * time.Minute
	workTickEvery   = 5 * time.Second
	workSleepMax    = 15 * time.Second
	workLinger      = 2 * time.Second
	workCommitEvery = time.Minute
	workMailEvery   = 5 * time.Minute
	workHostsEvery  = 15 * time.Minute
	workWakeAgain   = 10 * time.Second

	tickApart    = time.Second // least time between two coordinator runs of one worker
	maxTickWait  = time.Minute
	idleTicks    = 20 * time.Second
	pollWait     = time.Second // longest wait for a wake in one receive
	pollYield    = 100 * time.Millisecond
	maxYield     = time.Second
	crawlEvery   = 3 * time.Second // time between two reads while no crawl is active
	maxErrorWait = 30 * time.Second
)

// Worker is one of any number of processes that share a deployment. It receives wakes, runs several steps at once, runs
// the coordinator and takes requests. Workers can join and leave at any time, also beside functions: a lease keeps two
// steps from working on one partition. When the leases of a killed worker end, another process continues its work.
//
// A worker acknowledges a wake before its step; a function does so after it. A killed worker therefore loses
// wakes. The coordinator sees from the leases that a step is missing and sends a new wake. Keeping the wake
// instead would be slower, because it would become visible again only after half an hour in a deployment, and a
// wake lost five times would become a dead letter without a reason.
type Worker struct {
	cfg    WorkConfig
	opener *Service // reads the record of the active crawl
	read   bool     // whether the record was read, or is known to be missing
	share  *share

	mu      sync.Mutex
	session *session // nil while there is no crawl; after Run the last session
	done    Worked   // work of the steps that have ended
}

// NewWorker returns a worker on an open platform that several processes share.
func NewWorker(p *platform.Platform, cfg WorkConfig) (*Worker, error) {
	if p.Exclusive {
		return nil, errors.New("workers need a shared platform, and this one has a single owner")
	}
	if cfg.UntilOver && cfg.StepsOnly {
		return nil, errors.New("a worker that runs no coordinator does not learn that the crawl is over")
	}
	def := func(d *time.Duration, v time.Duration) { *d = cmp.Or(*d, v) }
	def(&cfg.StepTime, workStepTime)
	def(&cfg.TickEvery, workTickEvery)
	def(&cfg.Step.SleepMax, workSleepMax)
	def(&cfg.Step.Linger, workLinger)
	def(&cfg.Step.CommitEvery, workCommitEvery)
	def(&cfg.Step.MailEvery, workMailEvery)
	def(&cfg.Tick.HostsEvery, workHostsEvery)
	def(&cfg.Tick.WakeAgain, workWakeAgain)
	cfg.Step.SendsWakes = true // coordinator runs are seconds apart, but no process reports which partitions starve
	cfg.Steps = cmp.Or(cfg.Steps, workSteps*runtime.GOMAXPROCS(0))
	cfg.Ledger = cmp.Or(cfg.Ledger, &ledger.Ledger{})
	opener, err := New(p, Config{Ledger: cfg.Ledger, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	cfg.Log = opener.Log
	return &Worker{cfg: cfg, opener: opener, share: &share{ledger: cfg.Ledger}}, nil
}

// Causes of the end of a session.
var (
	errOver    = errors.New("the crawl is over")
	errChanged = errors.New("another crawl is active, or its settings have changed")
)

// Run works until ctx ends, or, with UntilOver, until the crawl is over. When it returns, each step has committed and
// released its lease, wakes that were not begun are back in their queue, and partitions with work left are woken for
// other workers. Run logs failures and retries; it returns an error if a retry is useless.
func (w *Worker) Run(ctx context.Context) error {
	defer func() { _ = w.opener.Close(context.WithoutCancel(ctx)) }()
	for {
		c, err := w.await(ctx)
		if err != nil || ctx.Err() != nil {
			return err
		}
		s, err := w.newSession(c)
		if err != nil {
			return err
		}
		w.set(s)
		err = s.run(ctx)
		if !errors.Is(err, errChanged) {
			return err // Snapshot still describes the crawl
		}
		w.set(nil)
	}
}

func (w *Worker) set(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.session = s
}

// await waits until there is a crawl. If the first read fails, the platform or the crawl is broken and the worker ends;
// a later failure may pass.
func (w *Worker) await(ctx context.Context) (c blobschema.Crawl, err error) {
	for ; ctx.Err() == nil; sleep(ctx, jitter(crawlEvery)) {
		c, err = w.opener.active()
		switch {
		case err == nil:
			w.read = true
			return c, nil
		case errors.Is(err, crawl.ErrNoCrawl):
			w.read = true
		case !w.read || errors.Is(err, wire.ErrVersion):
			return c, err
		default:
			w.cfg.Log.Warn("look for a crawl", "error", err)
		}
	}
	return c, nil
}

// jitter returns a random duration around d, so that workers that start together drift apart.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// share divides the calls of a process among its steps and coordinator runs, so that each call is counted once.
// Which of several concurrent steps made a call is unknown.
type share struct {
	ledger *ledger.Ledger
	mu     sync.Mutex
	told   ledger.Counts
}

// spent returns the Spent function of one step or coordinator run.
func (s *share) spent() func() blobschema.Calls {
	var mine blobschema.Calls
	return func() blobschema.Calls {
		s.mu.Lock()
		defer s.mu.Unlock()
		now := s.ledger.Counts()
		mine.Add(now.Minus(s.told))
		s.told = now
		return mine
	}
}

// Worked counts what a worker has done.
type Worked struct {
	Pages  int64 // pages stored or found unchanged
	Bytes  int64 // bytes received
	Steps  int64 // steps that have ended
	Failed int64 // steps that have ended with an error
}

func (a *Worked) add(b Worked) {
	a.Pages, a.Bytes, a.Steps, a.Failed = a.Pages+b.Pages, a.Bytes+b.Bytes, a.Steps+b.Steps, a.Failed+b.Failed
}

func (w *Worker) add(did Worked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done.add(did)
}

// WorkSnapshot holds the figures of a worker, for a display.
type WorkSnapshot struct {
	Worked                   // work since the start, including running steps
	Active    int            // requests under way
	Rest      schedule.Rest  // of the running steps
	AtWork    []partition.ID // partitions of running steps
	MostSteps int            // limit of concurrent steps
	Crawl     string         // id of the active crawl; "": none
	Report    *crawl.Report  // result of this worker's last coordinator run; nil before the first
	Calls     ledger.Counts
}

// Snapshot returns the current figures.
func (w *Worker) Snapshot() WorkSnapshot {
	snap := WorkSnapshot{MostSteps: w.cfg.Steps, Calls: w.cfg.Ledger.Counts()}
	w.mu.Lock()
	s, done := w.session, w.done
	w.mu.Unlock()
	if s == nil {
		snap.Worked = done
		return snap
	}
	snap.Crawl, snap.Report = s.crawl.ID, s.Report()
	s.mu.Lock()
	defer s.mu.Unlock()
	w.mu.Lock()
	snap.Worked = w.done // no step can end now, so each is counted once
	w.mu.Unlock()
	for p, r := range s.running {
		snap.add(r.worked())
		snap.Active += r.now.Active
		snap.Rest.Add(&r.now.Rest)
		snap.AtWork = append(snap.AtWork, p)
	}
	slices.Sort(snap.AtWork)
	return snap
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/platform"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/internal/view"
)

// refresh is how often the display is brought up to date.
const refresh = 200 * time.Millisecond

// session is one run of a crawl in a folder: what the crawl, recrawl and demo commands
// have in common. Its fields are set before run.
type session struct {
	dir   string
	seeds []crawl.Seed
	fresh blobschema.Crawl // the record of a new crawl
	// another says that it takes the place of the one that there may be.
	another bool
	// resume makes the record of a crawl that goes on from the stored one.
	resume      func(stored blobschema.Crawl) (blobschema.Crawl, error)
	ranks       []byte // of hosts, for a new crawl
	connections int
	maxTime     time.Duration
	retry       polite.Retry
	perRun      []string // flags of this run that going on needs again
	reporter    reporter
	request     *request // to be asked for before all else; nil for none

	ledger   ledger.Ledger
	platform *platform.Platform
	engine   *engine.Engine
	view     *view.View
	asked    *view.View  // as it was before the request was submitted
	earlier  view.Status // the same
	over     atomic.Bool
	crawl    blobschema.Crawl
	created  bool
	resumed  bool              // from an order to stop or to pause
	added    int               // seeds
	retried  int               // seeds that could not be fetched before
	before   blobschema.Totals // of earlier runs
	log      *slog.Logger
	began    time.Time
	cpu      time.Duration // used before the run
}

// Page records that are read at most to find the seeds that could not be fetched, when a crawl is
// resumed: some seconds' worth in a folder, and few objects in a cloud.
const (
	seedRecords      = 1_000_000
	cloudSeedRecords = 20_000
)

// errMaxTime is why a run ends that took --max-time.
var errMaxTime = errors.New("--max-time is over")

// run opens the folder, crawls until the end or the end of ctx, and returns what came
// of it. after is called with the platform still open. The folder is closed when run
// returns.
func (s *session) run(ctx context.Context, after func(context.Context, *summary) error) (sum *summary, err error) {
	s.began, s.cpu = time.Now(), ledger.Processor()
	s.log = slog.New(slog.NewTextHandler(s.reporter, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if s.platform, err = platform.Local(s.dir, &s.ledger); err != nil {
		return nil, s.explain(err)
	}
	defer func() {
		if cerr := s.platform.Close(); cerr != nil && err == nil {
			err = s.explain(cerr) // of a run that failed it says the same again
		}
	}()
	if err := s.open(ctx); err != nil {
		return nil, s.explain(err)
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if s.maxTime > 0 {
		limited, cancel = context.WithDeadlineCause(ctx, s.began.Add(s.maxTime), errMaxTime)
	}
	defer cancel()
	s.reporter.started(&beginning{
		Crawl: s.crawl.ID, Data: s.dir, Resumed: !s.created, Seeds: s.added, Retried: s.retried, Pages: s.before.Pages, Set: s.crawl.Settings, Ordered: s.resumed,
	})
	defer s.answer(ctx)()
	if err := s.submitRequest(ctx); err != nil {
		return nil, s.explain(err)
	}
	end, err := s.watch(limited)
	s.over.Store(true)
	if err != nil {
		return nil, s.explain(err)
	}
	if sum, err = s.summarize(end, context.Cause(limited)); err != nil {
		return nil, err
	}
	if err := after(ctx, sum); err != nil {
		return nil, s.explain(err)
	}
	return sum, nil
}

func (s *session) explain(err error) error { return folderPlace(s.dir).explain(err) }

// open creates the crawl or goes on with the one there is, and makes an engine for it.
func (s *session) open(ctx context.Context) error {
	// How to fetch stands in the record, which only an engine can read: hence two.
	opener, err := engine.New(s.platform, engine.Config{Ledger: &s.ledger})
	if err != nil {
		return err
	}
	check := func(c *blobschema.Crawl) error {
		resumed, err := s.resume(*c)
		if err == nil {
			*c = resumed
		}
		return err
	}
	if err := opener.PutRanks(ctx, &s.fresh, s.ranks); err != nil {
		return err
	}
	if s.another {
		s.created, s.added = true, len(s.seeds)
		s.crawl, err = beginAnother(ctx, opener, s.fresh, s.seeds)
	} else {
		s.crawl, s.created, s.added, err = opener.Begin(s.fresh, s.seeds, check)
	}
	if err != nil {
		return err
	}
	s.seeds = nil // they may be a million
	if s.view, err = view.New(ctx, view.OfPlatform(s.platform)); err != nil {
		return err
	}
	heads, err := s.view.Heads(ctx)
	if err != nil {
		return err
	}
	for i := range heads {
		s.before.Add(&heads[i].Totals)
	}
	cfg := engine.Config{
		Step:        crawl.StepConfig{Software: "orbweaver/" + version, Retry: s.retry},
		Fetch:       fetch.Config{AllowNet: s.crawl.Settings.AllowNet},
		Connections: s.connections, MemoryLimit: engine.LimitMemory(os.DirFS("/")), Ledger: &s.ledger, Log: s.log,
	}.For(&s.crawl.Settings)
	if err := cfg.Fetch.Validate(); err != nil {
		return err
	}
	if s.engine, err = engine.New(s.platform, cfg); err != nil {
		return err
	}
	var failed []crawl.Seed
	if !s.created && s.request == nil {
		if failed, err = s.view.FailedSeeds(ctx, seedRecords); err != nil {
			return err
		}
	}
	if _, _, s.retried, err = s.engine.Begin(blobschema.Crawl{}, failed, nil); err != nil {
		return err
	}
	return s.goOn(ctx)
}

// goOn takes back that the crawl was stopped or paused by an order. What was asked for on
// purpose alone is no reason to.
func (s *session) goOn(ctx context.Context) error {
	w, err := s.view.Wish(ctx)
	if err != nil || !w.Stop && !w.Pause {
		return err
	}
	if s.request != nil {
		return heldBack(folderPlace(s.dir), &w)
	}
	s.resumed, err = s.engine.Command(crawl.OrderResume)
	return err
}

// answer lets other commands look at the crawl while it runs, until the returned
// function is called. Without a socket they have to wait, which is no reason not to
// crawl.
func (s *session) answer(ctx context.Context) (stop func()) {
	end, err := view.Serve(ctx, s.dir, s.platform, view.Owner{
		Snapshot: func() any { return s.engine.Snapshot() },
		Submit: func(ctx context.Context, r blobschema.Request) error {
			if s.over.Load() {
				return errors.New("this run is at its end")
			}
			return s.engine.Submit(ctx, r)
		},
		Order: func(_ context.Context, o crawl.Order) (bool, error) {
			if s.over.Load() {
				return false, errors.New("this run is at its end")
			}
			return s.engine.Command(o)
		},
		ChangeTopic: func(_ context.Context, name string, c crawl.TopicChange) (blobschema.Topic, bool, error) {
			if s.over.Load() {
				return blobschema.Topic{}, false, errors.New("this run is at its end")
			}
			return s.engine.ChangeTopic(name, c)
		},
		StartRanks: func(_ context.Context, o view.RankOrder) (ranks.Job, bool, error) {
			if s.over.Load() {
				return ranks.Job{}, false, errors.New("this run is at its end")
			}
			return s.engine.StartRanks(rank.StartConfig{Params: o.Params, Join: o.Join, Fresh: o.Fresh, Force: o.Force})
		},
		Repartition: func(_ context.Context, c view.Change) error {
			if s.over.Load() {
				return errors.New("this run is at its end")
			}
			_, _, err := s.engine.Repartition(c.Want)
			return err
		},
	})
	if err != nil {
		s.log.Warn("other commands cannot look at this crawl while it runs", "error", err)
		return func() {}
	}
	return func() {
		if err := end(); err != nil {
			s.log.Warn("end answering", "error", err)
		}
	}
}

// watch runs the engine and tells of its progress.
func (s *session) watch(ctx context.Context) (engine.End, error) {
	var end engine.End
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		end, err = s.engine.Run(ctx)
	}()
	m := newMeter(s.began, s.maxTime, s.before)
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return end, err
		case now := <-tick.C:
			snap := s.engine.Snapshot()
			f := m.read(now, &snap)
			if rep := s.engine.Report(); rep != nil {
				f.Paused = rep.Wish.Pause
			}
			s.reporter.progress(&f)
		}
	}
}

// summarize says how the run ended, and measures it. cause is why ctx did end, if it has.
func (s *session) summarize(end engine.End, cause error) (*summary, error) {
	snap := s.engine.Snapshot()
	sum := s.ended(end, cause, snap.Totals)
	sum.measure(&s.before, time.Since(s.began))
	return sum, sum.price(snap.Calls, ledger.Processor()-s.cpu)
}

// ended says how the run ended.
func (s *session) ended(end engine.End, cause error, t blobschema.Totals) *summary {
	sum := &summary{Crawl: s.crawl.ID, Data: s.dir, End: end, Totals: t, before: s.before, perRun: s.perRun, perNew: s.perNew()}
	if t.Stored > 0 {
		sum.Archive = objectFile(s.dir, naming.WARCPrefix(s.crawl.ID))
	}
	// Where there is nothing to do, no step runs.
	sum.idle = !s.created && s.added+s.retried == 0 && s.request == nil && end != engine.Stopped && s.ledger.Counts().Functions == 0
	pages := plural(t.Pages, "page")
	sum.Resume = resumeCommand(s.dir, s.perRun...)
	switch {
	case end == engine.Stopped && errors.Is(cause, errMaxTime):
		sum.Status = exitStopped
		sum.Reason = fmt.Sprintf("Stopped after --max-time %s, with %s.", s.maxTime, pages)
	case end == engine.Stopped:
		sum.Status = exitStopped
		sum.Reason = fmt.Sprintf("Stopped, with %s.", pages)
	case sum.idle && end == engine.Finished && t.Pages == 0:
		sum.Status, sum.Reason = exitNothing, "already finished: nothing could be fetched."
		sum.Resume = resumeCommand(s.dir, append(sum.perNew, "--new", "URL...")...)
	case sum.idle && end == engine.Finished:
		sum.Reason = fmt.Sprintf("already finished: %s.", pages)
		sum.Resume = resumeCommand(s.dir, append(s.perRun, "URL...")...)
	default:
		sum.conclude(s.crawl.Settings.MaxPages)
	}
	return sum
}

// perNew lists the flags that another crawl in place of this one needs again.
func (s *session) perNew() []string {
	args := slices.Clone(s.perRun)
	for _, p := range s.crawl.Settings.AllowNet {
		args = append(args, "--allow-net="+p.String())
	}
	return args
}

// stopped is what ends a command whose summary says it all: nil for status 0.
func stopped(status exit) error {
	if status == exitOK {
		return nil
	}
	return fail(status, nil)
}

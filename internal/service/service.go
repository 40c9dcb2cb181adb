// Package service decides when the actors of a crawl run, and runs them on an engine: a step for each wake, the
// coordinator at intervals, and jobs from their queues. There are three ways, which differ in policy only:
//
//   - [Service.Run] owns a folder: all partitions run in this process until the crawl is over.
//   - [Service.Step], [Service.Tick] and [Service.Take] each do one piece of work, for functions and commands.
//   - [Worker.Run] is one of several processes that share a deployment and receive wakes from its queue. It works on
//     one crawl at a time, in a session.
//
// Read launch.go first, which runs one step; then coordinate.go, which runs the coordinator, its rounds and the
// jobs that follow it; then worker.go and session.go.
//
// Invariants:
//
//  1. A process runs at most one step of a partition at a time. Leases ensure the same between processes.
//  2. When Run, Step, Tick or Take returns, everything that it started has ended.
//  3. A message is acknowledged after its work is durable, except a wake of a worker and of a folder's owner: the
//     coordinator replaces lost wakes.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// Version is the version of the program: in WARC files, and in the default user agent.
const Version = "0.1"

// DefaultAgent is the default user agent.
const DefaultAgent = "orbweaver/" + Version + " (+https://github.com/orbweaver/orbweaver)"

// Config configures a service.
type Config struct {
	Step        crawl.StepConfig // without Crawl, Partition, Process and Exclusive
	Tick        crawl.TickConfig // without Crawl, Process and Exclusive
	Fetch       fetch.Config
	Bucket      string // name of the bucket that holds uploaded lists of URLs; "": none
	Connections int    // limit of concurrent requests of the process; default engine.DefaultConnections
	MemoryLimit int64  // limit of the process's memory in bytes, see engine.LimitMemory; 0: no limit
	MaxResident int    // limit of URLs in memory, for all steps together; default by MemoryLimit, at most 2 million, about 300 MB
	TickEvery   time.Duration
	// RemindJobs is the time without progress after which messages of jobs count as lost; 0: the default of each job.
	RemindJobs time.Duration
	MemoryMB   int // billed memory of this function; 0: not a function
	Ledger     *ledger.Ledger
	Log        *slog.Logger
	// Observe, if it is not nil, is called after each step, coordinator run and job, from their goroutines.
	Observe func(Done)
}

// Done describes work that has ended.
type Done struct {
	Kind         string // "step", "tick" or the queue of a job
	Crawl        string
	Partition    partition.ID // 0 for a coordinator run
	Began        time.Time
	Took         time.Duration
	Pages, Bytes int64 // pages stored or found unchanged, and bytes received, by a step
	Err          error
}

// observe reports work that has ended.
func (s *Service) observe(d Done) {
	if s.cfg.Observe != nil {
		d.Crawl, d.Took = s.crawl.ID, time.Since(d.Began)
		s.cfg.Observe(d)
	}
}

// Service runs the actors of one crawl in one process.
type Service struct {
	*engine.Engine
	cfg      Config
	shared   bool // other processes may work on the same crawl; see Worker
	crawl    blobschema.Crawl
	settings string                         // see Fits
	spent    func() func() blobschema.Calls // makes the Spent function of a step or coordinator run; nil functions in a folder

	tickNow   chan struct{}
	requests  chan []actor.Message
	heard     chan struct{} // closed after the first receive of requests
	submitted atomic.Int64  // requests that this service has submitted but not taken
	memory    crawl.TickMemory
	owning    atomic.Int64 // number of partitions that own slots; 0 until slots have moved
	report    atomic.Pointer[crawl.Report]
	jobs      []Job
	afterTick []func(*crawl.Report) error

	mu          sync.Mutex
	running     map[partition.ID]*running
	warm        map[partition.ID]*crawl.Warm
	warmed      []partition.ID                  // keys of warm, oldest first
	live        map[partition.ID]crawl.Progress // progress of running steps, and of the last step of other partitions
	stopping    bool
	failures    int // successive failures of steps
	jobFailures int // successive failures of jobs
	fatal       error
	steps       sync.WaitGroup
}

// For completes a configuration with the settings of a crawl.
func (c Config) For(set *blobschema.Settings) Config {
	c.Step.Token, c.Step.Compressed = fetch.ProductToken(set.UserAgent), !set.Plain
	c.Fetch.UserAgent, c.Fetch.Token = set.UserAgent, c.Step.Token
	c.Fetch.MaxBody, c.Fetch.Timeout, c.Fetch.Requisites = set.MaxBody, set.Timeout, set.AnyRequisites()
	c.Fetch.Compression = warc.GzipFast
	if set.Plain {
		c.Fetch.Compression = warc.None
	}
	return c
}

// New returns a service on an open platform.
func New(p *platform.Platform, cfg Config) (*Service, error) {
	if cfg.MaxResident == 0 {
		cfg.MaxResident = engine.MaxResident(cfg.MemoryLimit)
	}
	cfg.TickEvery = cmp.Or(cfg.TickEvery, 5*time.Second)
	s := &Service{
		cfg: cfg, tickNow: make(chan struct{}, 1), requests: make(chan []actor.Message), heard: make(chan struct{}), running: map[partition.ID]*running{},
		warm: map[partition.ID]*crawl.Warm{}, live: map[partition.ID]crawl.Progress{},
		spent: func() func() blobschema.Calls { return nil },
	}
	var err error
	s.Engine, err = engine.New(p, engine.Config{
		Fetch: cfg.Fetch, Connections: cfg.Connections, Ledger: cfg.Ledger, Log: cfg.Log, Changed: s.changed,
	})
	return s, err
}

// On returns a service that works on a crawl, on an open platform. The settings of the crawl complete cfg.
func On(p *platform.Platform, cfg Config, c blobschema.Crawl) (*Service, error) {
	cfg = cfg.For(&c.Settings)
	if err := cfg.Fetch.Validate(); err != nil {
		return nil, fmt.Errorf("crawl %s: %w", c.ID, err)
	}
	s, err := New(p, cfg)
	if err != nil {
		return nil, err
	}
	s.crawl, s.settings = c, settingsOf(c)
	return s, nil
}

// Fits reports whether c is the crawl that On was given, with the same settings.
func (s *Service) Fits(c blobschema.Crawl) bool { return settingsOf(c) == s.settings }

// settingsOf returns a text that differs between crawls and between settings.
func settingsOf(c blobschema.Crawl) string {
	c.SeedBatches, c.Published = nil, 0
	return string(actor.Encode(c))
}

// changed requests a coordinator run after a write or a send that matters to it.
func (s *Service) changed(key string) {
	if !s.shared && (key == "" || strings.Contains(key, "/head/") || strings.Contains(key, "/index/") || strings.HasSuffix(key, "/rank")) {
		s.AskTick()
	}
}

// AskTick requests a coordinator run soon.
func (s *Service) AskTick() {
	select {
	case s.tickNow <- struct{}{}:
	default:
	}
}

// Open makes the service work on the active crawl, and returns the crawl's current record. If there is no
// crawl, the error is crawl.ErrNoCrawl.
func (s *Service) Open() (blobschema.Crawl, error) {
	c, err := s.active()
	if err == nil {
		s.crawl = c
	}
	return c, err
}

// active reads the record of the active crawl.
func (s *Service) active() (blobschema.Crawl, error) {
	b := crawl.NewBegin(blobschema.Crawl{}, nil, nil)
	if err := s.Engine.Run(b); err != nil {
		return blobschema.Crawl{}, err
	}
	c, _, _ := b.Crawl()
	return c, nil
}

// Use makes the service work on a crawl whose record was just read.
func (s *Service) Use(c blobschema.Crawl) { s.crawl = c }

// Crawl returns the crawl's record as last read by Open, Use or Begin.
func (s *Service) Crawl() blobschema.Crawl { return s.crawl }

// Current returns the crawl record as read by the last coordinator run. It may have more seeds.
func (s *Service) Current() blobschema.Crawl {
	if rep := s.report.Load(); rep != nil {
		return rep.Crawl
	}
	return s.crawl
}

// Report returns the result of the last coordinator run; nil before the first.
func (s *Service) Report() *crawl.Report { return s.report.Load() }

// Config returns the configuration of the service, with defaults.
func (s *Service) Config() Config { return s.cfg }

// mayHave reports whether a partition may exist. The partition may be newer than the last coordinator run.
func (s *Service) mayHave(p partition.ID) bool {
	if most := s.Platform.Partitions; most > 0 {
		return int(p) < most
	}
	return p < partition.MaxPartitions
}

// share returns the number of partitions that share the memory: those that own slots.
func (s *Service) share() int {
	if n := s.owning.Load(); n > 0 {
		return int(n)
	}
	return s.crawl.Partitions
}

// partitions returns the largest number of partitions so far, by the last coordinator run.
func (s *Service) partitions() int {
	if rep := s.report.Load(); rep != nil {
		return rep.Partitions()
	}
	return s.crawl.Partitions
}

// hopeless reports whether a failed step would fail again: its input is damaged, or is missing and no other
// process can replace it.
func (s *Service) hopeless(err error) bool {
	return errors.Is(err, wire.ErrDamaged) || errors.Is(err, warc.ErrDamaged) || s.Platform.Exclusive && errors.Is(err, actor.ErrNotFound)
}

// fail makes the next coordinator run fail with err.
func (s *Service) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fatal = cmp.Or(s.fatal, err)
	s.AskTick()
}

// trouble returns the error that ends this service, or nil.
func (s *Service) trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.fatal, s.Trouble())
}

// Meter starts to count the billed calls of one piece of work. The caller calls done at its end.
func (s *Service) Meter() (spent func() blobschema.Calls, done func()) {
	before, began := s.Ledger.Counts(), time.Now()
	s.Ledger.Invoked()
	spent = func() blobschema.Calls {
		c := s.Ledger.Counts().Minus(before)
		c.FunctionMBMillis = time.Since(began).Milliseconds() * int64(s.cfg.MemoryMB)
		return c
	}
	return spent, func() { s.Ledger.Ran(time.Since(began), s.cfg.MemoryMB) }
}

// serve calls do with the messages of a queue until ctx ends or no later write can succeed.
func (s *Service) serve(ctx context.Context, queue string, do func([]actor.Message)) {
	for ctx.Err() == nil {
		msgs, err := s.Receive(ctx, actor.Receive{Queue: queue, Max: 10, Wait: time.Minute})
		if s.Lost(err) {
			return
		}
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("receive", "queue", queue, "error", err)
			pause(ctx)
		}
		if len(msgs) > 0 {
			do(msgs)
		}
	}
}

// serveWakes starts a step for every wake whose partition has none.
func (s *Service) serveWakes(ctx context.Context) {
	s.serve(ctx, naming.WakesQueue, func(msgs []actor.Message) {
		s.Acknowledge(ctx, naming.WakesQueue, msgs)
		for _, m := range msgs {
			id, p, err := blobschema.DecodeWake(m.Body)
			if err == nil && id == s.crawl.ID && s.mayHave(p) {
				s.startStep(p)
			}
		}
	})
}

// pause waits for a second after a failure.
func pause(ctx context.Context) { sleep(ctx, time.Second) }

// sleep waits, and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

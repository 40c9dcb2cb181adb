// Package engine is the real executor: it runs steps and ticks over a platform and
// sockets. Package platform defines what a platform is, and package drivers opens one.
//
// One [Engine] is one process's share of a crawl. Its wakes come from a queue, its
// steps are [crawl.Step] values each carried by one goroutine, and everything else a
// step asks for runs in goroutines that end with it.
package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// Version is that of the program: in WARC files, and in the default user agent.
const Version = "0.1"

// Config says how a process crawls. Step holds what every step is given; its Crawl,
// Partition, Process and Exclusive are filled in.
type Config struct {
	Step        crawl.StepConfig
	Tick        crawl.TickConfig // Crawl, Process and Exclusive are filled in
	Fetch       fetch.Config
	Bucket      string // name of the bucket, for lists of URLs that are put into it; "" where none are
	Connections int    // requests under way at once in the process; default 256
	MemoryLimit int64  // bytes that the process may use, see LimitMemory; 0 for any
	MaxResident int    // URLs held in memory by all steps together; default by MemoryLimit, at most 2 million, some 300 MB
	TickEvery   time.Duration
	RemindRanks time.Duration // after which messages of rank steps are taken for lost; default 10 min
	MemoryMB    int           // of the function that the engine runs in, which is billed for it; 0 for none
	Ledger      *ledger.Ledger
	Log         *slog.Logger
}

// Engine runs steps and ticks in one process.
type Engine struct {
	cfg         Config
	platform    *platform.Platform
	client      *fetch.Client
	ledger      *ledger.Ledger
	log         *slog.Logger
	queues      *queues
	connections *semaphore.Weighted
	started     time.Time
	process     string
	shared      bool // other processes may be at work on the same crawl; see Worker
	crawl       blobschema.Crawl

	tickNow chan struct{}
	intake  chan []actor.Message

	submitted atomic.Int64 // requests that this engine put into the queue, and has not taken
	memory    crawl.TickMemory
	owning    atomic.Int64 // partitions that own slots, once any have moved

	mu             sync.Mutex
	runners        map[partition.ID]*runner
	warm           map[partition.ID]*crawl.Warm
	appetite       map[partition.ID]crawl.Appetite
	rewake         map[partition.ID]bool           // partitions woken while their step was at work
	live           map[partition.ID]crawl.Progress // of running steps, and of the last that ended
	stopping       bool
	failures       int
	followFailures int // of index and rank steps, in a row
	fatal          error

	broken chan struct{} // closed once no write can succeed any more; see platform.Permanent
	once   sync.Once     // closes broken

	ranks rankSteps

	report atomic.Pointer[crawl.Report]
	steps  sync.WaitGroup
}

// For fills in what the settings of a crawl say.
func (c Config) For(set *blobschema.Settings) Config {
	c.Step.Token, c.Step.Compressed = fetch.ProductToken(set.UserAgent), !set.Plain
	c.Fetch.UserAgent, c.Fetch.Token = set.UserAgent, c.Step.Token
	c.Fetch.MaxBody, c.Fetch.Timeout, c.Fetch.Srcset = set.MaxBody, set.Timeout, set.Srcset
	c.Fetch.Compression = warc.GzipFast
	if set.Plain {
		c.Fetch.Compression = warc.None
	}
	return c
}

// New returns an engine on an open platform.
func New(p *platform.Platform, cfg Config) (*Engine, error) {
	if cfg.Connections == 0 {
		cfg.Connections = 256
	}
	if cfg.MaxResident == 0 {
		cfg.MaxResident = maxResident(cfg.MemoryLimit)
	}
	if cfg.Fetch.MaxIdle == 0 {
		cfg.Fetch.MaxIdle = maxIdle(openFiles(), cfg.Connections)
	}
	if cfg.TickEvery == 0 {
		cfg.TickEvery = 5 * time.Second
	}
	if cfg.RemindRanks == 0 {
		cfg.RemindRanks = remindAfter
	}
	if cfg.Ledger == nil {
		cfg.Ledger = &ledger.Ledger{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	return &Engine{
		cfg: cfg, platform: p, client: fetch.New(cfg.Fetch), ledger: cfg.Ledger, log: cfg.Log, queues: newQueues(p), started: time.Now(),
		connections: semaphore.NewWeighted(int64(cfg.Connections)), process: hex.EncodeToString(id[:]),
		tickNow: make(chan struct{}, 1), intake: make(chan []actor.Message), runners: map[partition.ID]*runner{}, warm: map[partition.ID]*crawl.Warm{},
		appetite: map[partition.ID]crawl.Appetite{}, rewake: map[partition.ID]bool{}, live: map[partition.ID]crawl.Progress{},
		broken: make(chan struct{}),
	}, nil
}

// Bounds on idle connections. Files, look-ups and the platform's own connections need
// reservedFiles descriptors at most. An idle connection over TLS and HTTP/2 takes about 40 KB, goroutines
// included, so mostIdle of them take 160 MB.
const (
	reservedFiles = 160
	mostIdle      = 4096
)

// maxIdle returns how many connections may be open without a request, if a process may open that many
// files and makes that many requests at once. A crawl of polite pace requests a host once a second or less;
// it needs a connection for each host that it has begun, not for each request under way.
func maxIdle(files, connections int) int {
	return min(mostIdle, max(files-reservedFiles-connections, connections/2))
}

// Begin creates a crawl or opens the one there is, and adds seeds; see
// [crawl.NewBegin].
func (e *Engine) Begin(want blobschema.Crawl, seeds []crawl.Seed, check func(*blobschema.Crawl) error) (c blobschema.Crawl, created bool, added int, err error) {
	if want.Settings.Index {
		if err := e.CheckJobs(context.Background()); err != nil {
			return blobschema.Crawl{}, false, 0, err
		}
	}
	b := crawl.NewBegin(want, seeds, check)
	if err := e.newRunner(b).run(); err != nil {
		return blobschema.Crawl{}, false, 0, err
	}
	e.crawl, created, added = b.Crawl()
	parts, err := e.Partitioning()
	if err == nil {
		err = e.platform.CreateQueues(context.Background(), max(parts.Record.Partitions, e.crawl.Settings.MostPartitions))
	}
	if err != nil {
		return blobschema.Crawl{}, false, 0, err
	}
	return e.crawl, created, added, nil
}

// End says why a crawl ended.
type End string

// The ends.
const (
	Finished End = "finished" // nothing is left to do
	Limited  End = "limit"    // the page limit is reached
	Stopped  End = "stopped"  // by the context
	Halted   End = "halted"   // by an order; see crawl.OrderStop
)

// Run crawls until there is nothing left to do, the page limit is reached, an operator
// has it stopped, or ctx ends. Begin comes first. Every step has committed and released its lease when it
// returns, unless the error says otherwise.
func (e *Engine) Run(ctx context.Context) (End, error) {
	defer e.client.Close()
	run, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { e.serveWakes(run) })
	wg.Go(func() { e.watchIntake(run) })
	wg.Go(func() { e.serveFollowers(run) })
	end, err := e.tickLoop(ctx)
	e.stopSteps()
	e.steps.Wait()
	if err == nil {
		err = e.lastTick()
	}
	cancel()
	wg.Wait()
	shut, done := context.WithTimeout(context.Background(), 2*time.Second)
	defer done()
	return end, errors.Join(err, e.queues.close(shut))
}

// tickLoop runs ticks until the crawl is over. Every send, every commit and every end
// of a step asks for one.
func (e *Engine) tickLoop(ctx context.Context) (End, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return Stopped, nil
		case <-e.tickNow:
		case <-timer.C:
		case msgs := <-e.intake:
			e.take(msgs)
		}
		rep, err := e.tick()
		switch {
		case err != nil:
			return Stopped, err
		case (rep.Finished || rep.Limited) && e.takeLate():
			// a request came just in time
		case (rep.Finished || rep.Limited) && rep.Following():
			// its index is not ready
		case rep.Finished:
			return Finished, nil
		case rep.Limited:
			return Limited, nil
		case rep.Wish.Stop && rep.Leased == 0:
			return Halted, nil
		case rep.Quiet:
			e.askTick() // seen once; the second look decides
		}
		timer.Reset(e.cfg.TickEvery)
	}
}

func (e *Engine) tick() (crawl.Report, error) {
	if err := e.fatalError(); err != nil {
		return crawl.Report{}, err
	}
	return e.runTick(&e.memory, nil)
}

// runTick runs a tick; without a memory it tells other processes' ticks, by the table, what it knows.
func (e *Engine) runTick(mem *crawl.TickMemory, spent func() blobschema.Calls) (crawl.Report, error) {
	cfg := e.cfg.Tick
	cfg.Crawl, cfg.Process, cfg.Exclusive, cfg.Spent = e.crawl.ID, e.process, e.platform.Exclusive, spent
	cfg.Mailboxes = e.platform.Partitions
	k := crawl.NewTick(cfg, mem)
	if err := e.newRunner(k).run(); err != nil {
		return crawl.Report{}, fmt.Errorf("tick: %w", err)
	}
	rep := k.Report()
	e.known(&rep)
	return rep, e.startRanks(&rep)
}

// known takes note of what a tick found; steps at work look at a map that it saw change.
func (e *Engine) known(rep *crawl.Report) {
	last := e.report.Swap(rep)
	if rep.Map.Version == 0 || last != nil && last.Map.Version == rep.Map.Version {
		return
	}
	e.look()
	if parts, err := e.Partitioning(); err == nil { // else steps share memory as before
		e.owning.Store(int64(len(parts.Map.Partitions())))
	}
}

// share is how many partitions share the memory: those that own slots.
func (e *Engine) share() int {
	if n := e.owning.Load(); n > 0 {
		return int(n)
	}
	return e.crawl.Partitions
}

// look has the steps of this process look at what the operator wishes, and at the map.
func (e *Engine) look() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.runners {
		r.offer(crawl.Look{})
	}
}

// partitions is how many partitions there are, or ever were, as far as the last tick knew.
func (e *Engine) partitions() int {
	if rep := e.report.Load(); rep != nil {
		return rep.Partitions()
	}
	return e.crawl.Partitions
}

// mayHave reports whether a partition may exist: it may be newer than what is known here.
func (e *Engine) mayHave(p partition.ID) bool {
	if most := e.platform.Partitions; most > 0 {
		return int(p) < most
	}
	return p < partition.MaxPartitions
}

// lastTick reads the heads once more, so that the report holds what was committed.
func (e *Engine) lastTick() error {
	e.mu.Lock()
	e.stopping = true
	e.mu.Unlock()
	_, err := e.tick()
	return err
}

func (e *Engine) fatalError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.fatal
}

// lost reports whether err says that no write can succeed any more. Then all actors are given up at
// once, as if the process had died: retries would fetch pages again that nobody can store. What was
// committed stays, and the next process resumes.
func (e *Engine) lost(err error) bool {
	if err == nil || !platform.Permanent(err) {
		return false
	}
	e.once.Do(func() {
		e.mu.Lock()
		e.fatal = cmp.Or(e.fatal, err)
		e.mu.Unlock()
		close(e.broken)
		e.askTick()
	})
	return true
}

// isLost reports whether lost ever did.
func (e *Engine) isLost() bool {
	select {
	case <-e.broken:
		return true
	default:
		return false
	}
}

// hopeless reports whether a step that failed would fail again: what it reads is damaged or missing, and
// no other process replaces it.
func (e *Engine) hopeless(err error) bool {
	return errors.Is(err, wire.ErrDamaged) || errors.Is(err, warc.ErrDamaged) || e.platform.Exclusive && errors.Is(err, actor.ErrNotFound)
}

func (e *Engine) askTick() {
	select {
	case e.tickNow <- struct{}{}:
	default:
	}
}

// written is called after a write or a send; the tick looks at what it changed.
func (e *Engine) written(key string) {
	if key == "" || strings.Contains(key, "/head/") || strings.Contains(key, "/index/") || strings.HasSuffix(key, "/rank") {
		e.askTick()
	}
}

// serveWakes starts a step for every wake whose partition has none.
func (e *Engine) serveWakes(ctx context.Context) {
	for ctx.Err() == nil {
		msgs, err := e.queues.receive(ctx, actor.Receive{Queue: naming.WakesQueue, Max: 10, Wait: time.Minute})
		if e.lost(err) {
			return
		}
		if err != nil && ctx.Err() == nil {
			e.log.Warn("receive wakes", "error", err)
			e.pause(ctx)
		}
		e.acknowledge(ctx, naming.WakesQueue, msgs)
		for _, m := range msgs {
			id, p, err := blobschema.DecodeWake(m.Body)
			if err == nil && id == e.crawl.ID && e.mayHave(p) {
				e.startStep(p)
			}
		}
	}
}

// acknowledge deletes messages, or says in the log that it could not: they come again.
func (e *Engine) acknowledge(ctx context.Context, queue string, msgs []actor.Message) {
	if len(msgs) == 0 {
		return
	}
	ack := actor.Acknowledge{Queue: queue}
	for _, m := range msgs {
		ack.Receipts = append(ack.Receipts, m.Receipt)
	}
	if err := e.queues.acknowledge(ctx, ack); err != nil {
		e.log.Warn("acknowledge", "queue", queue, "error", err)
	}
}

func (e *Engine) startStep(p partition.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.runners[p] != nil {
		e.rewake[p] = true // it may be past the point where it would see what this wake is for
		return
	}
	if e.stopping {
		return
	}
	cfg := e.cfg.Step
	cfg.Crawl, cfg.Partition, cfg.Process, cfg.Exclusive = e.currentCrawl(), p, e.process, e.platform.Exclusive
	if cfg.Connections == 0 {
		cfg.Connections = e.cfg.Connections
	}
	if cfg.MaxResident == 0 {
		cfg.MaxResident = max(1, e.cfg.MaxResident/e.share())
	}
	s, err := crawl.NewStep(cfg, e.warm[p])
	if err != nil {
		e.fatal = err
		e.askTick()
		return
	}
	delete(e.warm, p)
	e.ledger.Invoked()
	r := e.newRunner(s)
	e.runners[p] = r
	lastLook := time.Time{}
	r.after = func() {
		e.watch(p, s)
		if now := time.Now(); now.Sub(lastLook) > 100*time.Millisecond || s.Resting() { // what it waits for must be known: nothing may happen for long
			lastLook = now
			if pr, ok := s.Progress(); ok {
				e.setLive(p, pr)
			}
		}
	}
	e.steps.Go(func() { e.runStep(p, s, r) })
}

// currentCrawl is the crawl record as the last tick read it: seeds may have been added.
func (e *Engine) currentCrawl() blobschema.Crawl {
	if rep := e.report.Load(); rep != nil {
		return rep.Crawl
	}
	return e.crawl
}

func (e *Engine) runStep(p partition.ID, s *crawl.Step, r *runner) {
	err := r.run()
	pr, loaded := s.Progress()
	pr.Active = 0
	e.mu.Lock()
	delete(e.runners, p)
	delete(e.appetite, p)
	if err == nil && loaded {
		e.warm[p] = s.Warm()
		e.live[p] = pr
		e.failures = 0
	} else {
		delete(e.live, p) // what it did since its last commit never happened
	}
	switch {
	case err == nil, errors.Is(err, crawl.ErrLeaseTaken), e.isLost():
	case errors.Is(err, crawl.ErrLeaseLost):
		e.log.Warn("step ended early", "partition", p, "error", err)
	default:
		hopeless := e.hopeless(err)
		if !hopeless { // else Run says so
			e.log.Error("step failed", "partition", p, "error", err)
		}
		if e.failures++; e.failures >= 3 || e.stopping || hopeless {
			e.fatal = fmt.Errorf("partition %d: %w", p, err)
		}
	}
	again := e.rewake[p] && err == nil
	delete(e.rewake, p)
	e.mu.Unlock()
	if again {
		e.startStep(p)
	}
	e.tellAppetites()
	e.askTick()
}

func (e *Engine) setLive(p partition.ID, pr crawl.Progress) {
	e.mu.Lock()
	e.live[p] = pr
	e.mu.Unlock()
}

// watch tells the other steps when this one's appetite changes.
func (e *Engine) watch(p partition.ID, s *crawl.Step) {
	a := s.Appetite()
	e.mu.Lock()
	changed := e.appetite[p] != a
	e.appetite[p] = a
	e.mu.Unlock()
	if changed {
		e.tellAppetites()
	}
}

func (e *Engine) tellAppetites() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for p, r := range e.runners {
		of := map[partition.ID]crawl.Appetite{}
		for q := range partition.ID(e.partitions()) {
			switch {
			case q == p:
			case e.runners[q] == nil && e.shared: // another process knows
			case e.runners[q] == nil:
				of[q] = crawl.Starved // mail is what would start it
			case e.appetite[q] != crawl.Fed:
				of[q] = e.appetite[q]
			}
		}
		r.offer(crawl.Appetites{Of: of})
	}
}

func (e *Engine) stopSteps() {
	e.mu.Lock()
	e.stopping = true
	var rs []*runner
	for _, r := range e.runners {
		rs = append(rs, r)
	}
	e.mu.Unlock()
	for _, r := range rs {
		r.signal(crawl.Stop{})
	}
}

// Snapshot is what a display shows of a running crawl.
type Snapshot struct {
	Crawl blobschema.Crawl
	crawl.Progress
	Steps int
	Calls ledger.Counts
}

// Snapshot returns the live figures: of running steps as they are, of the others as
// of their last commit.
func (e *Engine) Snapshot() Snapshot {
	s := Snapshot{Crawl: e.crawl, Calls: e.ledger.Counts()}
	rep := e.report.Load()
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Steps = len(e.runners)
	for _, pr := range e.live {
		s.Totals.Add(&pr.Totals)
		s.Active += pr.Active
		r := &pr.Rest
		if s.Rest.Units += r.Units; r.Units > 0 && (s.Rest.Until.IsZero() || r.Until.Before(s.Rest.Until)) {
			s.Rest.Until = r.Until
		}
		s.Rest.Failed, s.Rest.Silent = s.Rest.Failed+r.Failed, s.Rest.Silent+r.Silent
	}
	if rep != nil {
		s.Crawl = rep.Crawl
		for i := range rep.Heads {
			if _, ok := e.live[rep.Heads[i].Partition]; !ok {
				s.Totals.Add(&rep.Heads[i].Totals)
			}
		}
	}
	return s
}

// Report is what the last tick found; nil before the first.
func (e *Engine) Report() *crawl.Report { return e.report.Load() }

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/platform"
	"github.com/orbweaver/orbweaver/partition"
)

// WorkConfig says how a worker works.
type WorkConfig struct {
	Config // of the engine; the settings of each crawl complete it
	// Steps is how many partitions it works on at once, each by a step. Default: four for
	// every processor. A partition of thirty ready hosts, each asked once a second, keeps an
	// eighth of a processor busy, one whose hosts allow more a whole one.
	Steps int
	// StepTime is how long a step may last, give or take a fifth; default 5 min. A step that
	// ends hands its partition to whoever takes the wake, so that a worker that joins has its
	// share after that time at the latest.
	StepTime time.Duration
	// TickEvery is how often all workers together run the coordinator, about; default 5 s.
	TickEvery time.Duration
	// StepsOnly leaves ticks, and requests from outside, to others.
	StepsOnly bool
	// UntilOver ends the worker once the crawl is finished, at its limit or stopped, and no
	// partition is leased. Else it waits for requests, or for another crawl. It needs ticks.
	UntilOver bool
}

// What a worker does differs from what a function does in one thing: its waiting costs
// nothing. So steps wait longer, for mail and for hosts; calls are dear all the same.
const (
	workSteps       = 4 // for every processor
	workStepTime    = 5 * time.Minute
	workTickEvery   = 5 * time.Second
	workSleepMax    = 15 * time.Second
	workLinger      = 2 * time.Second
	workCommitEvery = time.Minute
	workMailEvery   = 5 * time.Minute
	workHostsEvery  = 15 * time.Minute
	workWakeAgain   = 10 * time.Second

	tickApart    = time.Second // least time from one tick of a worker to its next
	maxTickWait  = time.Minute
	idleTicks    = 20 * time.Second
	pollWait     = time.Second // for a wake: an idle worker asks all the time
	requestWait  = time.Minute
	pollYield    = 100 * time.Millisecond
	maxYield     = time.Second
	crawlEvery   = 3 * time.Second // how often to look for a crawl where there is none
	maxErrorWait = 30 * time.Second
)

// Worker is one of any number of processes that work on what a shared platform holds: it
// takes wakes from their queue, runs the steps they ask for, several at once, and runs
// ticks and takes requests beside them. Workers come and go as they like, also beside
// functions: what keeps two steps from one partition is its lease, and what a worker
// that was killed had in hand goes on, elsewhere, when its leases are over.
//
// A wake is acknowledged before its step, not after it as functions do. A killed worker
// loses wakes that way; but those would come again only when their visibility ends, half
// an hour in a deployment, and the tick, which looks at leases, has sent another long
// before. After five such deaths they would be among the dead letters for no fault of
// theirs.
type Worker struct {
	cfg      WorkConfig
	platform *platform.Platform
	opener   *Engine // reads the record of the active crawl
	looked   bool    // it could be read, or is known not to be there
	share    *share

	mu    sync.Mutex
	shift *shift // nil while there is no crawl
	done  Worked // by steps that have ended
}

// NewWorker returns a worker on an open platform that several processes share.
func NewWorker(p *platform.Platform, cfg WorkConfig) (*Worker, error) {
	if p.Exclusive {
		return nil, errors.New("this platform has one owner, and workers share theirs")
	}
	if cfg.UntilOver && cfg.StepsOnly {
		return nil, errors.New("a worker without ticks does not learn that the crawl is over")
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&cfg.StepTime, workStepTime)
	def(&cfg.TickEvery, workTickEvery)
	def(&cfg.Step.SleepMax, workSleepMax)
	def(&cfg.Step.Linger, workLinger)
	def(&cfg.Step.CommitEvery, workCommitEvery)
	def(&cfg.Step.MailEvery, workMailEvery)
	def(&cfg.Tick.HostsEvery, workHostsEvery)
	def(&cfg.Tick.WakeAgain, workWakeAgain)
	cfg.Step.SendsWakes = true // ticks are seconds apart, but nobody tells which partitions starve
	if cfg.Steps == 0 {
		cfg.Steps = workSteps * runtime.GOMAXPROCS(0)
	}
	if cfg.Ledger == nil {
		cfg.Ledger = &ledger.Ledger{}
	}
	opener, err := New(p, Config{Ledger: cfg.Ledger, Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	cfg.Log = opener.log
	return &Worker{cfg: cfg, platform: p, opener: opener, share: &share{ledger: cfg.Ledger}}, nil
}

// Why a shift ends besides its context.
var (
	errOver    = errors.New("the crawl is over")
	errChanged = errors.New("another crawl is active, or other settings")
)

// Run works until ctx ends, or, with UntilOver, until the crawl is over. Each step has
// committed then and released its lease, the wakes that were not begun are back in their
// queue, and partitions that were left with work are woken, for others. What goes wrong on
// the way is logged and tried again; an error means that it makes no sense to.
func (w *Worker) Run(ctx context.Context) error {
	defer func() { _ = w.opener.Close(context.WithoutCancel(ctx)) }()
	for {
		c, err := w.await(ctx)
		if err != nil || ctx.Err() != nil {
			return err
		}
		s, err := w.newShift(c)
		if err != nil {
			return err
		}
		w.set(s)
		err = s.run(ctx)
		w.set(nil)
		if !errors.Is(err, errChanged) {
			return err
		}
	}
}

func (w *Worker) set(s *shift) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shift = s
}

// await waits until there is a crawl. A first look that fails says that something is wrong
// with the platform or the crawl, and ends the worker; later ones may fail now and then.
func (w *Worker) await(ctx context.Context) (c blobschema.Crawl, err error) {
	for ; ctx.Err() == nil; sleep(ctx, jitter(crawlEvery)) {
		c, err = w.opener.active()
		switch {
		case err == nil:
			w.looked = true
			return c, nil
		case errors.Is(err, crawl.ErrNoCrawl):
			w.looked = true
		case !w.looked || errors.Is(err, blobschema.ErrVersion):
			return c, err
		default:
			w.cfg.Log.Warn("look for a crawl", "error", err)
		}
	}
	return c, nil
}

// jitter is about d: many workers that began at once should not stay in step.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) }

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

// share tells the calls of a process to those who keep accounts of it, each once: which of
// several steps made a call nobody knows.
type share struct {
	ledger *ledger.Ledger
	mu     sync.Mutex
	told   ledger.Counts
}

// spent returns a function for the Spent of one step or tick.
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

// shift is a worker's work on one crawl under the same settings.
type shift struct {
	w        *Worker
	e        *Engine
	settings string
	slots    chan struct{} // one for each step that may run
	soon     chan struct{} // a step has ended: a tick may find more to do
	end      context.CancelCauseFunc

	mu       sync.Mutex
	stints   map[partition.ID]*stint
	order    []partition.ID // of warm partitions, the one that ended first first
	failures int            // of steps, in a row
}

// stint is a step at work.
type stint struct {
	mu   sync.Mutex
	now  crawl.Progress
	from *blobschema.Totals // when it began; nil before it has read them
}

// Worked is what a worker has done.
type Worked struct {
	Pages  int64 // stored, or found unchanged
	Bytes  int64 // received
	Steps  int64 // that have ended
	Failed int64 // of them, by an error
}

func (a *Worked) add(b Worked) {
	a.Pages, a.Bytes, a.Steps, a.Failed = a.Pages+b.Pages, a.Bytes+b.Bytes, a.Steps+b.Steps, a.Failed+b.Failed
}

func (t *stint) see(s *crawl.Step) {
	pr, ok := s.Progress()
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.from == nil {
		t.from = &pr.Totals
	}
	t.now = pr
}

// worked is what the step has done, and how many requests it has under way.
func (t *stint) worked() (w Worked, active int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.from == nil {
		return w, 0
	}
	w.Pages, w.Bytes = captures(&t.now.Totals)-captures(t.from), t.now.Totals.Bytes-t.from.Bytes
	return w, t.now.Active
}

// pending reports whether it has left something to do.
func (t *stint) pending() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now.Totals.Pending+t.now.Totals.Unexamined > 0
}

// captures counts the answers that brought a page, or said that it has not changed.
func captures(t *blobschema.Totals) int64 {
	return t.Outcomes[blobschema.OutcomeOK.String()] + t.Outcomes[blobschema.OutcomeUnchanged.String()]
}

func (w *Worker) newShift(c blobschema.Crawl) (*shift, error) {
	cfg := w.cfg.Config.For(&c.Settings)
	if err := cfg.Fetch.Validate(); err != nil {
		return nil, fmt.Errorf("crawl %s: %w", c.ID, err)
	}
	e, err := New(w.platform, cfg)
	if err != nil {
		return nil, err
	}
	e.Use(c)
	e.shared = true
	return &shift{
		w: w, e: e, settings: settingsOf(c), slots: make(chan struct{}, w.cfg.Steps), soon: make(chan struct{}, 1),
		stints: map[partition.ID]*stint{},
	}, nil
}

// settingsOf tells crawls and settings apart.
func settingsOf(c blobschema.Crawl) string {
	c.SeedBatches, c.Published = nil, 0
	b, err := json.Marshal(c)
	if err != nil {
		panic("engine: a crawl record cannot be encoded: " + err.Error()) // fixed types: unreachable
	}
	return string(b)
}

// run works until ctx ends, the crawl is over, or another one is active. The error is nil
// for the first two, errChanged for the third.
func (s *shift) run(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	s.end = end
	defer end(nil)
	var wg sync.WaitGroup
	wg.Go(func() { s.takeWakes(ctx) })
	wg.Go(func() { s.lookAndTick(ctx) })
	if !s.w.cfg.StepsOnly {
		wg.Go(func() { s.takeRequests(ctx) })
	}
	<-ctx.Done()
	s.e.stopSteps()
	wg.Wait()
	s.e.steps.Wait()
	shut, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	if err := s.e.Close(shut); err != nil {
		s.e.log.Warn("close queues", "error", err)
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errOver), errors.Is(cause, context.Canceled), errors.Is(cause, context.DeadlineExceeded):
		return nil
	default:
		return cause
	}
}

// takeWakes starts a step for each wake, as long as fewer run than may.
func (s *shift) takeWakes(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case s.slots <- struct{}{}:
		}
		m, ok := s.nextWake(ctx)
		if !ok {
			return
		}
		if !s.begin(ctx, m) {
			<-s.slots
		}
	}
}

// nextWake waits for a wake. A worker asks for one at a time, and lets those that have
// less to do ask first: so work spreads. false at the end of ctx.
func (s *shift) nextWake(ctx context.Context) (crawl.Message, bool) {
	for ctx.Err() == nil {
		running, failures := s.load()
		yield := min(maxYield, time.Duration(running)*pollYield)
		if failures > 0 {
			yield = min(maxErrorWait, time.Second<<min(failures-1, 10))
		}
		if !sleep(ctx, yield) {
			break
		}
		msgs, err := s.e.queues.receive(ctx, crawl.Receive{Queue: blobschema.WakesQueue, Max: 1, Wait: pollWait})
		if err != nil && ctx.Err() == nil {
			s.e.log.Warn("receive wakes", "error", err)
			s.e.pause(ctx)
		}
		if len(msgs) > 0 && ctx.Err() == nil {
			return msgs[0], true
		}
		s.release(blobschema.WakesQueue, msgs)
	}
	return crawl.Message{}, false
}

func (s *shift) load() (running, failures int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.stints), s.failures
}

// begin does what a wake asks for, and reports whether it has started a step for it. A
// wake that cannot be read, or is of another crawl, asks for nothing.
func (s *shift) begin(ctx context.Context, m crawl.Message) bool {
	msgs := []crawl.Message{m}
	id, p, err := blobschema.DecodeWake(m.Body)
	switch {
	case err != nil:
		s.e.log.Error("a wake that cannot be read is dropped", "error", err)
	case id != s.e.Crawl().ID:
		switch c, err := s.w.opener.active(); {
		case err != nil:
			s.release(blobschema.WakesQueue, msgs)
			s.e.log.Warn("look for a crawl", "error", err)
			s.e.pause(ctx)
			return false
		case c.ID == id:
			s.release(blobschema.WakesQueue, msgs)
			s.end(errChanged)
			return false
		}
	case int(p) >= s.e.Crawl().Partitions:
	default:
		s.e.acknowledge(context.WithoutCancel(ctx), blobschema.WakesQueue, msgs)
		return s.start(p)
	}
	s.e.acknowledge(context.WithoutCancel(ctx), blobschema.WakesQueue, msgs)
	return false
}

// release gives messages back, for others to take.
func (s *shift) release(queue string, msgs []crawl.Message) {
	if len(msgs) > 0 {
		s.e.giveBack(queue, msgs)
	}
}

// start begins a step, unless one of the partition is at work here: then the wake is sent
// again when that one has ended, for whoever has room.
func (s *shift) start(p partition.ID) bool {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	if s.e.runners[p] != nil {
		s.e.rewake[p] = true // it may be past the point where it would see what this wake is for
		return false
	}
	if s.e.stopping {
		return false // the tick makes up for it
	}
	cfg := s.e.cfg.Step
	cfg.Crawl, cfg.Partition, cfg.Process = s.e.currentCrawl(), p, s.e.process
	cfg.Connections = s.e.cfg.Connections
	cfg.MaxResident = max(1, s.e.cfg.MaxResident/(2*s.w.cfg.Steps)) // of those at work, and of as many that are warm
	cfg.Deadline = s.w.cfg.StepTime*4/5 + rand.N(s.w.cfg.StepTime*2/5+1)
	cfg.Spent = s.w.share.spent()
	st, err := crawl.NewStep(cfg, s.e.warm[p])
	if err != nil {
		s.end(err)
		return false
	}
	delete(s.e.warm, p)
	r, t := s.e.newRunner(st), &stint{}
	s.e.runners[p] = r
	lastLook := time.Time{}
	r.after = func() {
		s.e.watch(p, st)
		if now := time.Now(); t.from == nil || now.Sub(lastLook) > 100*time.Millisecond {
			lastLook = now
			t.see(st)
		}
	}
	s.mu.Lock()
	s.stints[p] = t
	s.mu.Unlock()
	s.e.steps.Go(func() { s.work(p, st, r, t) })
	return true
}

// work carries a step to its end.
func (s *shift) work(p partition.ID, st *crawl.Step, r *runner, t *stint) {
	err := r.run()
	t.see(st)
	s.e.mu.Lock()
	delete(s.e.runners, p)
	delete(s.e.appetite, p)
	stopping, again := s.e.stopping, s.e.rewake[p]
	delete(s.e.rewake, p)
	if err == nil {
		s.keepWarm(p, st.Warm())
	}
	s.e.mu.Unlock()
	did, left := Worked{Steps: 1}, err == nil && stopping && t.pending()
	s.mu.Lock()
	delete(s.stints, p)
	switch {
	case err == nil:
		w, _ := t.worked()
		did.add(w)
		s.failures = 0
	case errors.Is(err, crawl.ErrLeaseTaken):
		did.Steps = 0 // somebody else is at it
	case errors.Is(err, crawl.ErrLeaseLost):
		s.e.log.Warn("step ended early", "partition", p, "error", err)
	default:
		s.e.log.Error("step failed", "partition", p, "error", err)
		did.Failed = 1
		s.failures++
	}
	s.w.add(did)
	s.mu.Unlock()
	if left || again && err == nil {
		s.wake(p)
	}
	<-s.slots
	s.e.tellAppetites()
	select {
	case s.soon <- struct{}{}:
	default:
	}
}

// keepWarm keeps what a step leaves for the next one of its partition, of as many
// partitions as may be at work; e.mu held.
func (s *shift) keepWarm(p partition.ID, warm *crawl.Warm) {
	if warm == nil {
		return
	}
	s.e.warm[p] = warm
	s.order = append(slices.DeleteFunc(s.order, func(q partition.ID) bool { return q == p }), p)
	for len(s.order) > s.w.cfg.Steps {
		delete(s.e.warm, s.order[0])
		s.order = s.order[1:]
	}
}

// wake sends a wake. It may be lost: then a tick sends one.
func (s *shift) wake(p partition.ID) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := s.e.queues.send(ctx, crawl.Send{Queue: blobschema.WakesQueue, Bodies: [][]byte{blobschema.EncodeWake(s.e.Crawl().ID, p)}})
	if err != nil {
		s.e.log.Warn("send a wake", "partition", p, "error", err)
	}
}

// lookAndTick sees to it that the crawl is still the active one, and runs the coordinator,
// now and then.
func (s *shift) lookAndTick(ctx context.Context) {
	first := rand.N(tickApart)
	timer := time.NewTimer(first)
	defer timer.Stop()
	var last time.Time
	next := time.Now().Add(first)
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.soon:
			if at := last.Add(tickApart); at.Before(next) {
				next = at
				timer.Reset(time.Until(next))
			}
			continue
		case <-timer.C:
		}
		wait, err := s.look()
		if err != nil {
			s.e.log.Warn("look after the crawl", "error", err)
		}
		last = time.Now()
		next = last.Add(wait)
		timer.Reset(wait)
	}
}

// look is one look at the crawl, and says how long to wait for the next.
func (s *shift) look() (wait time.Duration, err error) {
	wait = jitter(s.w.cfg.TickEvery)
	c, err := s.w.opener.active()
	if err != nil {
		return wait, err
	}
	if settingsOf(c) != s.settings {
		s.end(errChanged)
		return wait, nil
	}
	if s.w.cfg.StepsOnly {
		return wait, nil
	}
	rep, err := s.e.tickAmongMany(s.w.share.spent())
	if err != nil {
		return wait, err
	}
	over := rep.Leased == 0 && (rep.Finished || rep.Limited || rep.Wish.Stop)
	switch {
	case over && s.w.cfg.UntilOver:
		s.end(errOver)
	case rep.Quiet && !rep.Finished:
		return tickApart, nil // seen once; the second look decides
	case rep.Idle:
		return max(wait, jitter(idleTicks)), nil // whoever gives it something to do sends wakes too
	}
	return min(maxTickWait, wait*time.Duration(s.workers(&rep))), nil
}

// workers is how many processes hold leases, and this one: the more they are, the more
// seldom each of them ticks.
func (s *shift) workers(rep *crawl.Report) int {
	names := map[string]bool{s.e.process: true}
	now := time.Now()
	for i := range rep.Heads {
		if h := &rep.Heads[i]; h.Owner != "" && now.Before(h.LeaseUntil) {
			process, _, _ := strings.Cut(h.Owner, "/")
			names[process] = true
		}
	}
	return len(names)
}

// takeRequests turns requests from outside into mail.
func (s *shift) takeRequests(ctx context.Context) {
	for ctx.Err() == nil {
		msgs, err := s.e.queues.receive(ctx, crawl.Receive{Queue: blobschema.IntakeQueue, Max: 10, Wait: requestWait})
		switch {
		case err != nil && ctx.Err() == nil:
			s.e.log.Warn("receive requests", "error", err)
			s.e.pause(ctx)
		case len(msgs) == 0:
		case ctx.Err() != nil:
			s.release(blobschema.IntakeQueue, msgs)
		default:
			s.take(ctx, msgs)
		}
	}
}

// take takes requests, all at once, or one by one if that fails: one of them may be what
// the others suffer from. Those that fail stay in the queue, hidden for a while: it gives
// them up in the end.
func (s *shift) take(ctx context.Context, msgs []crawl.Message) {
	take := func(msgs []crawl.Message) error {
		cfg := crawl.IntakeConfig{Crawl: s.e.Crawl().ID, Bucket: s.e.cfg.Bucket, Spent: s.w.share.spent()}
		return s.e.newRunner(crawl.NewIntake(cfg, msgs)).run()
	}
	err := take(msgs)
	if err == nil {
		s.e.acknowledge(context.WithoutCancel(ctx), blobschema.IntakeQueue, msgs)
		return
	}
	s.e.log.Error("take requests", "error", err)
	for i := range msgs {
		if one := msgs[i : i+1]; len(msgs) > 1 && take(one) == nil {
			s.e.acknowledge(context.WithoutCancel(ctx), blobschema.IntakeQueue, one)
		}
	}
}

func (w *Worker) add(did Worked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done.add(did)
}

// WorkSnapshot is what a display shows of a worker.
type WorkSnapshot struct {
	Worked                   // since it began, steps under way included
	Active    int            // requests under way
	AtWork    []partition.ID // that it runs a step of
	MostSteps int            // that it may run at once
	Crawl     string         // id; "" while there is none
	Report    *crawl.Report  // of its last tick of that crawl; nil before the first
	Calls     ledger.Counts
}

// Snapshot returns the figures as they are now.
func (w *Worker) Snapshot() WorkSnapshot {
	snap := WorkSnapshot{MostSteps: w.cfg.Steps, Calls: w.cfg.Ledger.Counts()}
	w.mu.Lock()
	s, done := w.shift, w.done
	w.mu.Unlock()
	if s == nil {
		snap.Worked = done
		return snap
	}
	snap.Crawl, snap.Report = s.e.Crawl().ID, s.e.Report()
	s.mu.Lock()
	defer s.mu.Unlock()
	w.mu.Lock()
	snap.Worked = w.done // as long as no step can end: each is counted once
	w.mu.Unlock()
	for p, t := range s.stints {
		did, active := t.worked()
		snap.add(did)
		snap.Active += active
		snap.AtWork = append(snap.AtWork, p)
	}
	slices.Sort(snap.AtWork)
	return snap
}

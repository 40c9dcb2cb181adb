package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/partition"
)

// shift is a worker's work on one crawl under the same settings.
type shift struct {
	w        *Worker
	e        *Engine
	settings string
	room     chan struct{} // one for each step that may run
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
		w: w, e: e, settings: SettingsOf(c), room: make(chan struct{}, w.cfg.Steps), soon: make(chan struct{}, 1),
		stints: map[partition.ID]*stint{},
	}, nil
}

// SettingsOf tells crawls and settings apart.
func SettingsOf(c blobschema.Crawl) string {
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
		case s.room <- struct{}{}:
		}
		m, ok := s.nextWake(ctx)
		if !ok {
			return
		}
		if !s.begin(ctx, m) {
			<-s.room
		}
	}
}

// nextWake waits for a wake. A worker asks for one at a time, and lets those that have
// less to do ask first: so work spreads. false at the end of ctx.
func (s *shift) nextWake(ctx context.Context) (actor.Message, bool) {
	for ctx.Err() == nil {
		running, failures := s.load()
		yield := min(maxYield, time.Duration(running)*pollYield)
		if failures > 0 {
			yield = min(maxErrorWait, time.Second<<min(failures-1, 10))
		}
		if !sleep(ctx, yield) {
			break
		}
		msgs, err := s.e.queues.receive(ctx, actor.Receive{Queue: naming.WakesQueue, Max: 1, Wait: pollWait})
		if err != nil && ctx.Err() == nil {
			s.e.log.Warn("receive wakes", "error", err)
			s.e.pause(ctx)
		}
		if len(msgs) > 0 && ctx.Err() == nil {
			return msgs[0], true
		}
		s.release(naming.WakesQueue, msgs)
	}
	return actor.Message{}, false
}

func (s *shift) load() (running, failures int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.stints), s.failures
}

// begin does what a wake asks for, and reports whether it has started a step for it. A
// wake that cannot be read, or is of another crawl, asks for nothing.
func (s *shift) begin(ctx context.Context, m actor.Message) bool {
	msgs := []actor.Message{m}
	id, p, err := blobschema.DecodeWake(m.Body)
	switch {
	case err != nil:
		s.e.log.Error("a wake that cannot be read is dropped", "error", err)
	case id != s.e.Crawl().ID:
		switch c, err := s.w.opener.active(); {
		case err != nil:
			s.release(naming.WakesQueue, msgs)
			s.e.log.Warn("look for a crawl", "error", err)
			s.e.pause(ctx)
			return false
		case c.ID == id:
			s.release(naming.WakesQueue, msgs)
			s.end(errChanged)
			return false
		}
	case !s.e.mayHave(p):
	default:
		s.e.acknowledge(context.WithoutCancel(ctx), naming.WakesQueue, msgs)
		return s.start(p)
	}
	s.e.acknowledge(context.WithoutCancel(ctx), naming.WakesQueue, msgs)
	return false
}

// release gives messages back, for others to take.
func (s *shift) release(queue string, msgs []actor.Message) {
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
	<-s.room
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
	err := s.e.queues.send(ctx, actor.Send{Queue: naming.WakesQueue, Bodies: [][]byte{blobschema.EncodeWake(s.e.Crawl().ID, p)}})
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
	if SettingsOf(c) != s.settings {
		s.end(errChanged)
		return wait, nil
	}
	if s.w.cfg.StepsOnly {
		return wait, nil
	}
	rep, err := s.e.runTick(nil, s.w.share.spent())
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
		msgs, err := s.e.queues.receive(ctx, actor.Receive{Queue: naming.IntakeQueue, Max: 10, Wait: requestWait})
		switch {
		case err != nil && ctx.Err() == nil:
			s.e.log.Warn("receive requests", "error", err)
			s.e.pause(ctx)
		case len(msgs) == 0:
		case ctx.Err() != nil:
			s.release(naming.IntakeQueue, msgs)
		default:
			s.take(ctx, msgs)
		}
	}
}

// take takes requests, all at once, or one by one if that fails: one of them may be what
// the others suffer from. Those that fail stay in the queue, hidden for a while: it gives
// them up in the end.
func (s *shift) take(ctx context.Context, msgs []actor.Message) {
	take := func(msgs []actor.Message) error {
		cfg := crawl.IntakeConfig{Crawl: s.e.Crawl().ID, Bucket: s.e.cfg.Bucket, Spent: s.w.share.spent()}
		return s.e.newRunner(crawl.NewIntake(cfg, msgs)).run()
	}
	err := take(msgs)
	if err == nil {
		s.e.acknowledge(context.WithoutCancel(ctx), naming.IntakeQueue, msgs)
		return
	}
	s.e.log.Error("take requests", "error", err)
	for i := range msgs {
		if one := msgs[i : i+1]; len(msgs) > 1 && take(one) == nil {
			s.e.acknowledge(context.WithoutCancel(ctx), naming.IntakeQueue, one)
		}
	}
}

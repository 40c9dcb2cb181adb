package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
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
	*Service
	w        *Worker
	settings string
	room     chan struct{} // one for each step that may run
	end      context.CancelCauseFunc
}

// worked is what a step has done so far. mu of the service is held.
func (r *running) worked() (w Worked) {
	if r.from != nil {
		w.Pages, w.Bytes = captures(&r.now.Totals)-captures(r.from), r.now.Totals.Bytes-r.from.Bytes
	}
	return w
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
	s, err := New(w.platform, cfg)
	if err != nil {
		return nil, err
	}
	s.Use(c)
	s.shared = true
	if w.cfg.Prepare != nil {
		w.cfg.Prepare(s)
	}
	return &shift{Service: s, w: w, settings: SettingsOf(c), room: make(chan struct{}, w.cfg.Steps)}, nil
}

// SettingsOf tells crawls and settings apart.
func SettingsOf(c blobschema.Crawl) string {
	c.SeedBatches, c.Published = nil, 0
	b, err := json.Marshal(c)
	if err != nil {
		panic("service: a crawl record cannot be encoded: " + err.Error()) // fixed types: unreachable
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
	wg.Go(func() { s.coordinate(ctx, rand.N(tickApart), tickApart, s.round) })
	if !s.w.cfg.StepsOnly {
		wg.Go(func() {
			s.serve(ctx, naming.IntakeQueue, func(msgs []actor.Message) { s.take(ctx, msgs) })
		})
	}
	<-ctx.Done()
	s.stopSteps()
	wg.Wait()
	s.steps.Wait()
	shut, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	if err := s.Close(shut); err != nil {
		s.Log.Warn("close queues", "error", err)
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errOver), errors.Is(cause, context.Canceled), errors.Is(cause, context.DeadlineExceeded):
		return nil
	default:
		return cause
	}
}

// takeWakes starts a step for each wake, while fewer run than may.
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

// nextWake waits for a wake. A worker takes one at a time, and lets those that have
// less to do go first: so work spreads. It returns false when ctx ends.
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
		msgs, err := s.Receive(ctx, actor.Receive{Queue: naming.WakesQueue, Max: 1, Wait: pollWait})
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("receive wakes", "error", err)
			pause(ctx)
		}
		if len(msgs) > 0 && ctx.Err() == nil {
			return msgs[0], true
		}
		s.GiveBack(naming.WakesQueue, msgs)
	}
	return actor.Message{}, false
}

func (s *shift) load() (running, failures int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running), s.failures
}

// begin carries out a wake, and reports whether it has started a step for it. A
// wake that cannot be read, or is of another crawl, is dropped.
func (s *shift) begin(ctx context.Context, m actor.Message) bool {
	msgs := []actor.Message{m}
	id, p, err := blobschema.DecodeWake(m.Body)
	switch {
	case err != nil:
		s.Log.Error("a wake that cannot be read is dropped", "error", err)
	case id != s.crawl.ID:
		switch c, err := s.w.opener.active(); {
		case err != nil:
			s.GiveBack(naming.WakesQueue, msgs)
			s.Log.Warn("look for a crawl", "error", err)
			pause(ctx)
			return false
		case c.ID == id:
			s.GiveBack(naming.WakesQueue, msgs)
			s.end(errChanged)
			return false
		}
	case !s.mayHave(p):
	default:
		s.Acknowledge(context.WithoutCancel(ctx), naming.WakesQueue, msgs)
		return s.start(p)
	}
	s.Acknowledge(context.WithoutCancel(ctx), naming.WakesQueue, msgs)
	return false
}

// start begins a step. If one of the partition is at work here, the wake is sent
// again when that one has ended, for whoever has room; if the worker stops, the coordinator makes up for the wake.
func (s *shift) start(p partition.ID) bool {
	cfg := s.stepConfig(p)
	cfg.MaxResident = max(1, s.cfg.MaxResident/(2*s.w.cfg.Steps)) // of those at work, and of as many that are warm
	cfg.Deadline = s.w.cfg.StepTime*4/5 + rand.N(s.w.cfg.StepTime*2/5+1)
	cfg.Spent = s.w.share.spent()
	r, err := s.enter(cfg)
	if err != nil {
		s.end(err)
	}
	if r == nil {
		return false
	}
	r.runner.After = func() { s.watch(p, r) }
	s.steps.Go(func() { s.ended(p, s.carry(p, r, s.w.cfg.Steps)) })
	return true
}

// ended decides what follows from the end of a step.
func (s *shift) ended(p partition.ID, e ending) {
	did := Worked{Steps: 1}
	s.mu.Lock()
	pending := e.now.Totals.Pending+e.now.Totals.Unexamined > 0
	switch {
	case e.err == nil:
		did.add(e.worked())
	case errors.Is(e.err, crawl.ErrLeaseTaken):
		did.Steps = 0 // another step is at work
	case errors.Is(e.err, crawl.ErrLeaseLost):
		s.Log.Warn("step ended early", "partition", p, "error", e.err)
	default:
		s.Log.Error("step failed", "partition", p, "error", e.err)
		did.Failed = 1
		s.failures++
	}
	s.w.add(did)
	s.mu.Unlock()
	if e.err == nil && (e.again || e.stopping && pending) {
		s.wake(p)
	}
	<-s.room
	s.tellAppetites()
	s.AskTick()
}

// wake sends a wake. It may be lost: then the coordinator sends one.
func (s *shift) wake(p partition.ID) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Send(ctx, actor.Send{Queue: naming.WakesQueue, Bodies: [][]byte{blobschema.EncodeWake(s.crawl.ID, p)}}); err != nil {
		s.Log.Warn("send a wake", "partition", p, "error", err)
	}
}

// round sees whether the crawl is still the active one, runs the coordinator, and returns how long to wait for the next
// time.
func (s *shift) round() (wait time.Duration, over bool) {
	wait, err := s.lookAfterCrawl()
	if err != nil {
		s.Log.Warn("look after the crawl", "error", err)
	}
	return wait, false // the end of the context ends the loop
}

func (s *shift) lookAfterCrawl() (wait time.Duration, err error) {
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
	rep, err := s.Service.run(nil, s.w.share.spent())
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
// seldom each of them runs the coordinator.
func (s *shift) workers(rep *crawl.Report) int {
	names := map[string]bool{s.Process: true}
	now := time.Now()
	for i := range rep.Heads {
		if h := &rep.Heads[i]; h.Owner != "" && now.Before(h.LeaseUntil) {
			process, _, _ := strings.Cut(h.Owner, "/")
			names[process] = true
		}
	}
	return len(names)
}

// take takes requests, all at once, or one by one if that fails: one of them may be what
// the others suffer from. Those that fail stay in the queue, hidden for a while: in the end it puts
// them aside.
func (s *shift) take(ctx context.Context, msgs []actor.Message) {
	if ctx.Err() != nil {
		s.GiveBack(naming.IntakeQueue, msgs)
		return
	}
	err := s.intake(msgs, s.w.share.spent())
	if err == nil {
		s.Acknowledge(context.WithoutCancel(ctx), naming.IntakeQueue, msgs)
		return
	}
	s.Log.Error("take requests", "error", err)
	for i := range msgs {
		if one := msgs[i : i+1]; len(msgs) > 1 && s.intake(one, s.w.share.spent()) == nil {
			s.Acknowledge(context.WithoutCancel(ctx), naming.IntakeQueue, one)
		}
	}
}

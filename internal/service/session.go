package service

import (
	"context"
	"errors"
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

// session is a worker's work on one crawl while the crawl's settings stay the same.
type session struct {
	*Service
	w    *Worker
	room chan struct{} // one element for each running step
	end  context.CancelCauseFunc
}

// worked returns what a step has done so far. mu of the service is held.
func (r *running) worked() (w Worked) {
	if r.from != nil {
		w.Pages, w.Bytes = captures(&r.now.Totals)-captures(r.from), r.now.Totals.Bytes-r.from.Bytes
	}
	return w
}

// captures returns the number of pages that were stored or found unchanged.
func captures(t *blobschema.Totals) int64 {
	return t.Outcomes[blobschema.OutcomeOK.String()] + t.Outcomes[blobschema.OutcomeUnchanged.String()]
}

func (w *Worker) newSession(c blobschema.Crawl) (*session, error) {
	s, err := On(w.opener.Platform, w.cfg.Config, c)
	if err != nil {
		return nil, err
	}
	s.shared, s.spent = true, w.share.spent
	if w.cfg.Prepare != nil {
		w.cfg.Prepare(s)
	}
	return &session{Service: s, w: w, room: make(chan struct{}, w.cfg.Steps)}, nil
}

// run works until ctx ends, the crawl is over, or another crawl is active. In the last case the error is errChanged.
func (s *session) run(ctx context.Context) error {
	ctx, s.end = context.WithCancelCause(ctx)
	defer s.end(nil)
	var wg sync.WaitGroup
	wg.Go(func() { s.takeWakes(ctx) })
	wg.Go(func() { s.coordinate(ctx, rand.N(tickApart), tickApart, s.round) })
	if !s.w.cfg.StepsOnly {
		wg.Go(func() { s.serve(ctx, naming.IntakeQueue, s.take) })
	}
	if s.w.cfg.Jobs {
		wg.Go(func() { s.serveJobs(ctx) })
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
	cause := context.Cause(ctx)
	if errors.Is(cause, errOver) || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return nil
	}
	return cause
}

// takeWakes starts a step for each wake while it has room for another step.
func (s *session) takeWakes(ctx context.Context) {
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

// nextWake waits for a wake; it returns false when ctx ends. A worker receives one wake at a time. The more
// steps it runs, the longer it waits before, so that work spreads over the workers.
func (s *session) nextWake(ctx context.Context) (actor.Message, bool) {
	for ctx.Err() == nil {
		s.mu.Lock()
		running, failures := len(s.running), s.failures
		s.mu.Unlock()
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

// begin starts a step for a wake, and reports whether it did. It drops a wake that cannot be decoded or belongs to
// another crawl.
func (s *session) begin(ctx context.Context, m actor.Message) bool {
	msgs := []actor.Message{m}
	id, p, err := blobschema.DecodeWake(m.Body)
	if err == nil && id != s.crawl.ID { // of an older crawl, or of one that has just become active
		c, err := s.w.opener.active()
		if err != nil || c.ID == id {
			s.GiveBack(naming.WakesQueue, msgs)
			if err == nil {
				s.end(errChanged)
				return false
			}
			s.Log.Warn("look for a crawl", "error", err)
			pause(ctx)
			return false
		}
	}
	s.Acknowledge(context.WithoutCancel(ctx), naming.WakesQueue, msgs)
	if err != nil {
		s.Log.Error("a wake that cannot be read is dropped", "error", err)
	}
	return err == nil && id == s.crawl.ID && s.mayHave(p) && s.start(p)
}

// start starts a step. If a step of the partition is running here, a wake is sent at its end, for any worker
// with room. If the worker stops before that, the coordinator replaces the wake.
func (s *session) start(p partition.ID) bool {
	cfg := s.stepConfig(p)
	cfg.MaxResident = max(1, s.cfg.MaxResident/(2*s.w.cfg.Steps)) // room for the running steps and as many warm states
	cfg.Deadline = s.w.cfg.StepTime*4/5 + rand.N(s.w.cfg.StepTime*2/5+1)
	started, err := s.launch(cfg, s.w.cfg.Steps, s.ended)
	if err != nil {
		s.end(err)
	}
	return started
}

// ended reacts to the end of a step.
func (s *session) ended(p partition.ID, e ending) {
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
	s.sendDemands()
	s.AskTick()
}

// wake sends a wake. If it is lost, the coordinator sends another.
func (s *session) wake(p partition.ID) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.Send(ctx, actor.Send{Queue: naming.WakesQueue, Bodies: [][]byte{blobschema.EncodeWake(s.crawl.ID, p)}}); err != nil {
		s.Log.Warn("send a wake", "partition", p, "error", err)
	}
}

// round runs the coordinator if the crawl is still the active one, and returns the wait before the next round. It never
// ends the loop: the end of the session does.
func (s *session) round() (wait time.Duration, over bool) {
	wait = jitter(s.w.cfg.TickEvery)
	c, err := s.w.opener.active()
	var rep crawl.Report
	switch {
	case err != nil:
	case !s.Fits(c):
		s.end(errChanged)
		return wait, false
	case s.w.cfg.StepsOnly:
		return wait, false
	default:
		rep, err = s.Service.run(nil, s.spent())
	}
	switch {
	case err != nil:
		s.Log.Warn("run the coordinator", "error", err)
		return wait, false
	case s.w.cfg.UntilOver && rep.Leased == 0 && (rep.Finished || rep.Limited || rep.Desired.Stop) && !(s.w.cfg.Jobs && rep.Following()):
		s.end(errOver)
	case rep.Quiet && !rep.Finished:
		return tickApart, false // a second run decides
	case rep.Idle:
		return max(wait, jitter(idleTicks)), false // commands that create work also send wakes
	}
	return min(maxTickWait, wait*time.Duration(s.workers(&rep))), false
}

// workers returns the number of processes that hold leases, including this one. The more there are, the less often each
// runs the coordinator.
func (s *session) workers(rep *crawl.Report) int {
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

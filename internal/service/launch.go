package service

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/partition"
)

// running is a running step. mu of the service guards its fields except runner and step.
type running struct {
	runner *engine.Runner
	step   *crawl.Step
	demand crawl.Demand
	again  bool               // its partition was woken again, perhaps for something that this step does not see
	from   *blobschema.Totals // totals when it began; nil: not read yet
	now    crawl.Progress
	readAt time.Time // time when now was read
}

// ending describes how a step ended.
type ending struct {
	*running
	err      error
	stopping bool // the service is stopping
}

// stepConfig is the configuration of a partition's next step.
func (s *Service) stepConfig(p partition.ID) crawl.StepConfig {
	cfg := s.cfg.Step
	cfg.Crawl, cfg.Partition, cfg.Process, cfg.Exclusive = s.Current(), p, s.Process, s.Platform.Exclusive
	cfg.Connections = cmp.Or(cfg.Connections, s.Connections())
	return cfg
}

// enter makes a step and registers it for its partition. It returns nil if the service stops, or if a step is running
// already: that one is marked to run again.
func (s *Service) enter(cfg crawl.StepConfig) (*running, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.running[cfg.Partition]; r != nil {
		r.again = true
		return nil, nil
	}
	if s.stopping {
		return nil, nil
	}
	step, err := crawl.NewStep(cfg, s.warm[cfg.Partition])
	if err != nil {
		return nil, err
	}
	s.keepWarm(cfg.Partition, nil, 0)
	r := &running{runner: s.Runner(step), step: step}
	s.running[cfg.Partition] = r
	return r, nil
}

// carry runs a step to its end. It keeps the step's state for the next step of the partition, and the states of at most
// keep-1 other partitions; keep 0: no limit.
func (s *Service) carry(p partition.ID, r *running, keep int) ending {
	did := Done{Kind: "step", Partition: p, Began: time.Now()}
	defer func() { s.observe(did) }() // without the lock
	err := r.runner.Run()
	pr, loaded := r.step.Progress()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, p)
	if loaded {
		r.see(pr)
	}
	pr.Active = 0
	w := r.worked()
	did.Pages, did.Bytes, did.Err = w.Pages, w.Bytes, err
	if err == nil && loaded {
		s.live[p] = pr
		s.failures = 0
	} else {
		delete(s.live, p) // its work since the last commit is lost
	}
	if err == nil {
		s.keepWarm(p, r.step.Warm(), keep)
	}
	return ending{running: r, err: err, stopping: s.stopping}
}

// keepWarm keeps the state that a step left, which may be nil, for the next step of its partition. Beyond keep
// states it drops the oldest. mu is held.
func (s *Service) keepWarm(p partition.ID, warm *crawl.Warm, keep int) {
	delete(s.warm, p)
	s.warmed = slices.DeleteFunc(s.warmed, func(q partition.ID) bool { return q == p })
	if warm == nil {
		return
	}
	s.warm[p], s.warmed = warm, append(s.warmed, p)
	for keep > 0 && len(s.warmed) > keep {
		delete(s.warm, s.warmed[0])
		s.warmed = s.warmed[1:]
	}
}

// see records the progress of a step.
func (r *running) see(pr crawl.Progress) {
	if r.from == nil {
		r.from = &pr.Totals
	}
	r.now, r.readAt = pr, time.Now()
}

// watch reads a step between two of its events: its demand for the other steps, and its progress for a display.
func (s *Service) watch(p partition.ID, r *running) {
	a := r.step.Demand()
	s.mu.Lock()
	changed := r.demand != a
	r.demand = a
	// A resting step is read at each event, because its next event may be far away.
	if r.from == nil || time.Since(r.readAt) > 100*time.Millisecond || r.step.Resting() {
		if pr, ok := r.step.Progress(); ok {
			r.see(pr)
			s.live[p] = pr
		}
	}
	s.mu.Unlock()
	if changed {
		s.sendDemands()
	}
}

// offer passes a signal to a step, unless many signals are waiting.
func (r *running) offer(sig crawl.Signal) {
	r.runner.Offer(func(now actor.Now) []actor.Issue { return r.step.Signal(now, sig) })
}

// sendDemands sends the running steps the demand of all partitions.
func (s *Service) sendDemands() {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := make([]crawl.Demand, s.partitions())
	for p := range of {
		switch r := s.running[partition.ID(p)]; {
		case r != nil:
			of[p] = r.demand
		case !s.shared: // otherwise the process that runs it reports its demand
			of[p] = crawl.HighDemand // only mail would start it
		}
	}
	for _, r := range s.running {
		r.offer(crawl.Demands{Of: of})
	}
}

// signalOrders makes the steps of this process read the desired state and the map.
func (s *Service) signalOrders() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.running {
		r.offer(crawl.ReadOrders{})
	}
}

// stopSteps makes all steps commit and end.
func (s *Service) stopSteps() {
	s.mu.Lock()
	s.stopping = true
	var all []*running
	for _, r := range s.running {
		all = append(all, r)
	}
	s.mu.Unlock()
	for _, r := range all {
		r.runner.Call(func(now actor.Now) []actor.Issue { return r.step.Signal(now, crawl.Stop{}) })
	}
}

// launch starts a step and calls ended after it; keep is as in carry. It returns false if the service stops, or
// if a step of the partition is running already.
func (s *Service) launch(cfg crawl.StepConfig, keep int, ended func(partition.ID, ending)) (started bool, err error) {
	cfg.Spent = s.spent()
	r, err := s.enter(cfg)
	if r == nil {
		return false, err
	}
	p := cfg.Partition
	r.runner.After = func() { s.watch(p, r) }
	s.steps.Go(func() { ended(p, s.carry(p, r, keep)) })
	return true, nil
}

// startStep starts a step of a folder's owner.
func (s *Service) startStep(p partition.ID) {
	cfg := s.stepConfig(p)
	cfg.MaxResident = cmp.Or(cfg.MaxResident, max(1, s.cfg.MaxResident/s.share()))
	started, err := s.launch(cfg, 0, s.ended)
	if err != nil {
		s.fail(err)
	}
	if started {
		s.Ledger.Invoked()
	}
}

// ended reacts to the end of a step of a folder's owner.
func (s *Service) ended(p partition.ID, e ending) {
	switch {
	case e.err == nil, errors.Is(e.err, crawl.ErrLeaseTaken), s.Trouble() != nil:
	case errors.Is(e.err, crawl.ErrLeaseLost):
		s.Log.Warn("step ended early", "partition", p, "error", e.err)
	default:
		hopeless := s.hopeless(e.err)
		if !hopeless { // otherwise Run reports it
			s.Log.Error("step failed", "partition", p, "error", e.err)
		}
		s.mu.Lock()
		s.failures++
		enough := s.failures >= 3
		s.mu.Unlock()
		if enough || e.stopping || hopeless {
			s.fail(fmt.Errorf("partition %d: %w", p, e.err))
		}
	}
	if e.again && e.err == nil {
		s.startStep(p)
	}
	s.sendDemands()
	s.AskTick()
}

// Snapshot holds the figures of a running crawl, for a display.
type Snapshot struct {
	Crawl blobschema.Crawl
	crawl.Progress
	Steps int
	Calls ledger.Counts
}

// Snapshot returns the current figures of running steps, and those of the last commit of the other partitions.
func (s *Service) Snapshot() Snapshot {
	out := Snapshot{Crawl: s.Current(), Calls: s.Ledger.Counts()}
	rep := s.report.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Steps = len(s.running)
	for _, pr := range s.live {
		out.Totals.Add(&pr.Totals)
		out.Active += pr.Active
		out.Rest.Add(&pr.Rest)
	}
	if rep == nil {
		return out
	}
	for i := range rep.Heads {
		if _, ok := s.live[rep.Heads[i].Partition]; !ok {
			out.Totals.Add(&rep.Heads[i].Totals)
		}
	}
	return out
}

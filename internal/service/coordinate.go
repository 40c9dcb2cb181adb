package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/partition"
)

// coordinate calls round after first, and then after each wait that round returns. AskTick brings the next
// round forward, but no closer than apart to the previous one. After a request the next round follows at once.
// coordinate returns true when round reports that the work is over, and false when ctx ends.
func (s *Service) coordinate(ctx context.Context, first, apart time.Duration, round func() (wait time.Duration, over bool)) bool {
	timer := time.NewTimer(first)
	defer timer.Stop()
	next := time.Now().Add(first)
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case <-s.tickNow:
			if at := last.Add(apart); at.Before(next) {
				next = at
				timer.Reset(max(0, time.Until(next)))
			}
			continue
		case msgs := <-s.requests:
			s.take(msgs)
		case <-timer.C:
		}
		wait, over := round()
		if over {
			return true
		}
		last = time.Now()
		next = last.Add(wait)
		timer.Reset(wait)
	}
}

// run runs the coordinator once. If mem is nil, the coordinators of several processes share their knowledge
// through the table.
func (s *Service) run(mem *crawl.TickMemory, spent func() blobschema.Calls) (crawl.Report, error) {
	cfg := s.cfg.Tick
	cfg.Crawl, cfg.Process, cfg.Exclusive, cfg.Spent = s.crawl.ID, s.Process, s.Platform.Exclusive, spent
	cfg.Mailboxes = s.Platform.Partitions
	k, began := crawl.NewTick(cfg, mem), time.Now()
	err := s.Engine.Run(k)
	s.observe(Done{Kind: "tick", Began: began, Err: err})
	if err != nil {
		return crawl.Report{}, fmt.Errorf("run the coordinator: %w", err)
	}
	rep := k.Report()
	s.known(&rep)
	for _, after := range s.afterTick {
		if err := after(&rep); err != nil {
			return rep, err
		}
	}
	return rep, nil
}

// known stores the report of a coordinator run. If the map has changed, it makes running steps read the map.
func (s *Service) known(rep *crawl.Report) {
	last := s.report.Swap(rep)
	if rep.Map.Version == 0 || last != nil && last.Map.Version == rep.Map.Version {
		return
	}
	s.signalOrders()
	if parts, err := s.Partitioning(); err == nil { // on failure the steps share memory as before
		s.owning.Store(int64(len(parts.Map.Partitions())))
	}
}

// tick runs the coordinator of a folder's owner.
func (s *Service) tick() (crawl.Report, error) {
	if err := s.trouble(); err != nil {
		return crawl.Report{}, err
	}
	return s.run(&s.memory, nil)
}

// End is the reason why a crawl ended.
type End string

// The ends of a crawl.
const (
	Finished End = "finished" // nothing is left to do
	Limited  End = "limit"    // the page limit is reached
	Stopped  End = "stopped"  // the context ended
	Halted   End = "halted"   // an operator ordered it; see crawl.OrderStop
)

// Run crawls until nothing is left to do, the page limit is reached, an operator stops it, or ctx ends. Call
// Begin first. Every step has committed and released its lease when Run returns, unless the error says
// otherwise.
func (s *Service) Run(ctx context.Context) (End, error) {
	if s.crawl.Settings.Index && len(s.jobs) == 0 {
		return Stopped, errors.New("the crawl is searchable, but no index jobs are registered")
	}
	// Wakes, requests and jobs are served beside the coordinator.
	run, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.serveWakes(run) })
	wg.Go(func() { s.serveRequests(run) })
	wg.Go(func() { s.serveJobs(run) })
	var end End
	var err error
	if !s.coordinate(ctx, 0, 0, func() (time.Duration, bool) {
		end, err = s.round()
		return s.cfg.TickEvery, end != "" || err != nil
	}) || err != nil {
		end = Stopped
	}
	// The steps end first, because they need the engine.
	s.stopSteps()
	s.steps.Wait()
	if err == nil { // the report then includes the last commits
		_, err = s.tick()
	}
	cancel()
	wg.Wait()
	return end, errors.Join(err, s.shut())
}

// round runs the coordinator, and returns how the crawl ended if it did.
func (s *Service) round() (End, error) {
	rep, err := s.tick()
	switch {
	case err != nil:
		return "", err
	case (rep.Finished || rep.Limited) && s.takeLate():
		// a request came just before the end
	case (rep.Finished || rep.Limited) && rep.Following():
		// the index has not caught up
	case rep.Finished:
		return Finished, nil
	case rep.Limited:
		return Limited, nil
	case rep.Desired.Stop && rep.Leased == 0:
		return Halted, nil
	case rep.Quiet:
		s.AskTick() // a second run decides
	}
	return "", nil
}

// shut closes the engine within two seconds.
func (s *Service) shut() error {
	ctx, done := context.WithTimeout(context.Background(), 2*time.Second)
	defer done()
	return s.Close(ctx)
}

// Follow runs jobs until they have processed everything that was crawled, and crawls nothing. Call Begin first.
// Follow calls prepare once it serves jobs, and progress, which may be nil, after each coordinator run.
func (s *Service) Follow(ctx context.Context, prepare func(context.Context) error, progress func(*crawl.Report)) error {
	s.cfg.Tick.FollowNow = true
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { s.serveJobs(run) })
	err := prepare(run)
	if err == nil && !s.coordinate(ctx, 0, 0, func() (time.Duration, bool) {
		var rep crawl.Report
		if rep, err = s.tick(); err != nil {
			return 0, true
		}
		if progress != nil {
			progress(&rep)
		}
		return s.cfg.TickEvery, !rep.Following()
	}) {
		err = ctx.Err()
	}
	cancel()
	wg.Wait()
	return errors.Join(err, s.shut())
}

// Job is work that follows the crawl. Each message of its queue requests one step.
type Job struct {
	Queue string
	// Step runs one step for a partition. It stops when ctx ends.
	Step func(ctx context.Context, p partition.ID) error
}

// Register adds jobs to serve beside the crawl, and a function to call after each coordinator run. Call it
// before any work begins.
func (s *Service) Register(after func(*crawl.Report) error, jobs ...Job) {
	s.jobs, s.afterTick = append(s.jobs, jobs...), append(s.afterTick, after)
}

const maxJobFailures = 5 // successive failures of jobs that end Run

// serveJobs runs the steps that messages of jobs request, one of each kind at a time, until ctx ends.
func (s *Service) serveJobs(ctx context.Context) {
	var wg sync.WaitGroup
	for _, j := range s.jobs {
		wg.Go(func() { s.serve(ctx, j.Queue, func(msgs []actor.Message) { s.do(ctx, j, msgs) }) })
	}
	wg.Wait()
}

// do runs one step for each partition that messages name. A message is acknowledged after its step; one whose step
// fails comes again.
func (s *Service) do(ctx context.Context, j Job, msgs []actor.Message) {
	same := map[partition.ID][]actor.Message{}
	for _, m := range msgs {
		id, p, err := blobschema.DecodeJob(m.Body)
		if err != nil || id != s.crawl.ID || !s.mayHave(p) {
			s.Acknowledge(ctx, j.Queue, []actor.Message{m})
			continue
		}
		same[p] = append(same[p], m)
	}
	for p, list := range same {
		began := time.Now()
		err := j.Step(ctx, p)
		if ctx.Err() != nil || s.Trouble() != nil {
			return
		}
		s.observe(Done{Kind: j.Queue, Partition: p, Began: began, Err: err})
		s.did(j.Queue, p, err)
		if err != nil {
			pause(ctx)
			s.GiveBack(j.Queue, list)
		} else {
			s.Acknowledge(ctx, j.Queue, list)
		}
		s.AskTick()
	}
}

// did records the result of a job. Repeated failures end Run, because the job would never catch up with the
// crawl.
func (s *Service) did(queue string, p partition.ID, err error) {
	hopeless := s.hopeless(err)
	s.mu.Lock()
	s.jobFailures++
	if err == nil {
		s.jobFailures = 0
	}
	enough := s.jobFailures >= maxJobFailures
	s.mu.Unlock()
	if err != nil && !hopeless { // otherwise Run reports it
		s.Log.Error("step failed", "queue", queue, "partition", p, "error", err)
	}
	if enough || hopeless {
		s.fail(fmt.Errorf("%s: %w", queue, err))
	}
}

// CheckJobs returns an error that says what to do if a deployment lacks the queues of index and ranks. The
// coordinator of a searchable crawl would fail there.
func (s *Service) CheckJobs(ctx context.Context) error {
	return errors.Join(s.Platform.CheckQueue(ctx, naming.IndexQueue), s.Platform.CheckQueue(ctx, naming.RankQueue))
}

// Command gives the crawl an order, and reports whether it changed anything. Steps of this process follow it at once,
// those of others after their next commit.
func (s *Service) Command(o crawl.Order) (changed bool, err error) {
	c := crawl.NewCommand(s.crawl.ID, o)
	if err := s.control(c); err != nil {
		return false, err
	}
	return c.Changed(), nil
}

// ChangeTopic changes a topic, and returns it and whether it changed; see [crawl.NewChangeTopic]. Steps of this process
// follow the change at once, those of others after their next commit.
func (s *Service) ChangeTopic(name string, change crawl.TopicChange) (now blobschema.Topic, changed bool, err error) {
	c := crawl.NewChangeTopic(s.crawl.ID, name, change)
	if err := s.control(c); err != nil {
		return now, false, err
	}
	now, changed = c.Topic()
	return now, changed, nil
}

// control runs an actor that changes the desired state, the topics or the map, and makes steps read the change.
func (s *Service) control(a actor.Actor) error {
	if err := s.Engine.Run(a); err != nil {
		return err
	}
	s.signalOrders()
	s.AskTick()
	return nil
}

// Partitioning returns which partitions own which slots.
func (s *Service) Partitioning() (crawl.Partitioning, error) {
	r := crawl.ReadPartitioning(s.crawl.ID)
	err := s.Engine.Run(r)
	_, now := r.Result()
	return now, err
}

// Repartition changes which partitions should own the slots; see
// [crawl.NewRepartition]. It creates their queues if the platform can. Steps of this process follow the change at once,
// those of others after their next commit.
func (s *Service) Repartition(want func(crawl.Partitioning) (*partition.Map, error)) (before, after crawl.Partitioning, err error) {
	r := crawl.NewRepartition(s.crawl.ID, func(now crawl.Partitioning) (*partition.Map, error) {
		m, err := want(now)
		if err != nil || m == nil {
			return nil, err
		}
		owners := m.Partitions()
		return m, s.Platform.CreateQueues(context.Background(), int(owners[len(owners)-1])+1)
	})
	if err := s.control(r); err != nil {
		return before, after, err
	}
	before, after = r.Result()
	return before, after, nil
}

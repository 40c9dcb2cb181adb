package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/index"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/partition"
)

// What follows a crawl, its index and its ranks, is worked out by steps of their own, which jobs
// of two queues start. An engine that has Run serves them beside the crawl's; one that is called for
// single pieces of work does one at a time.

// Index runs one index step of a partition; nothing of it begins after atMost but a first manifest, 0 for no bound.
func (e *Engine) Index(p partition.ID, atMost time.Duration) (index.Report, error) {
	return e.index(context.Background(), p, index.Config{Deadline: atMost})
}

// index runs one index step; cfg says what is not the same for all.
func (e *Engine) index(ctx context.Context, p partition.ID, cfg index.Config) (index.Report, error) {
	if !e.mayHave(p) {
		return index.Report{}, fmt.Errorf("there can be no partition %d", p)
	}
	spent, done := e.meter()
	defer done()
	cfg.Crawl, cfg.Partition, cfg.Processors, cfg.Spent = e.currentCrawl(), p, runtime.GOMAXPROCS(0), spent
	if e.cfg.MemoryMB > 0 {
		cfg.Memory = e.cfg.MemoryMB << 20 / 16
		cfg.MaxMerged = int64(e.cfg.MemoryMB) << 20 / 5
	}
	s, err := index.NewStep(cfg)
	if err != nil {
		return index.Report{}, err
	}
	r := e.newRunner(s)
	r.given = ctx.Done()
	if err := r.run(); err != nil {
		return index.Report{}, err
	}
	return s.Report(), nil
}

// followFailed takes note of a step that failed. What fails again and again ends Run: index and
// ranks would never be those of the crawl.
func (e *Engine) followFailed(queue string, p partition.ID, err error) {
	hopeless := e.hopeless(err)
	if !hopeless { // else Run says so
		e.log.Error("step failed", "queue", queue, "partition", p, "error", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.followFailures++; (e.followFailures >= maxFollowFailures || hopeless) && e.fatal == nil {
		e.fatal = fmt.Errorf("%s: %w", queue, err)
	}
}

func (e *Engine) followSucceeded() {
	e.mu.Lock()
	e.followFailures = 0
	e.mu.Unlock()
}

// maxFollowFailures is how many steps may fail in a row.
const maxFollowFailures = 5

// Follow brings index and ranks up to all that is crawled, and crawls nothing. Begin comes first. It ends
// when that is done, or ctx does; progress is called after each tick, and may be nil.
func (e *Engine) Follow(ctx context.Context, progress func(*crawl.Report)) error {
	defer e.client.Close()
	e.cfg.Tick.Settle = true
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { e.serveFollowers(run) })
	err := e.beginAnew(run)
	if err == nil {
		err = e.followLoop(ctx, progress)
	}
	cancel()
	wg.Wait()
	shut, done := context.WithTimeout(context.Background(), 2*time.Second)
	defer done()
	return errors.Join(err, e.queues.close(shut))
}

// beginAnew has partitions whose indexes were made by another version begin them anew: ticks only see what is
// behind its commits.
func (e *Engine) beginAnew(ctx context.Context) error {
	parts, err := e.Partitioning()
	for p := range parts.Record.Partitions {
		if err == nil {
			_, err = e.index(ctx, partition.ID(p), index.Config{Deadline: time.Nanosecond})
		}
	}
	return err
}

// Rebuild empties index and ranks, whatever state they are in, so that both are made again from what is crawled: by Follow, or
// by functions. Begin comes first. Ranks come first, because an index takes up the results of a rank job.
//
// A crash in here leaves some of it empty, and the rest as it was; Rebuild can be called again.
func (e *Engine) Rebuild(ctx context.Context) error {
	if _, _, err := e.StartRanks(rank.StartConfig{Same: true, Rebuild: true}); err != nil && !errors.Is(err, rank.ErrNothing) {
		return err
	}
	parts, err := e.Partitioning()
	for p := 0; err == nil && p < parts.Record.Partitions; {
		var did index.Report
		did, err = e.index(ctx, partition.ID(p), index.Config{Deadline: time.Nanosecond, Rebuild: true})
		if !did.Lost { // to another step, which went on with what there was
			p++
		}
	}
	return err
}

// LookAtIndexes has the index steps of all partitions look for what they have to do, wherever they run.
func (e *Engine) LookAtIndexes(ctx context.Context) error {
	parts, err := e.Partitioning()
	if err != nil {
		return err
	}
	jobs := actor.Send{Queue: naming.IndexQueue}
	for p := range parts.Record.Partitions {
		jobs.Bodies = append(jobs.Bodies, blobschema.EncodeJob(e.crawl.ID, partition.ID(p)))
	}
	return e.queues.send(ctx, jobs)
}

func (e *Engine) followLoop(ctx context.Context, progress func(*crawl.Report)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.tickNow:
		case <-timer.C:
		}
		rep, err := e.tick()
		if err != nil {
			return err
		}
		if progress != nil {
			progress(&rep)
		}
		if !rep.Following() {
			return nil
		}
		timer.Reset(e.cfg.TickEvery)
	}
}

// followWait is how long a queue of jobs is listened to at once.
const followWait = time.Minute

// serveFollowers runs the index and rank steps that jobs ask for, one of each at a time, until
// ctx ends: then what is under way is given up.
func (e *Engine) serveFollowers(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() {
		e.serveJobs(ctx, naming.IndexQueue, func(p partition.ID) error {
			_, err := e.index(ctx, p, index.Config{})
			return err
		})
	})
	wg.Go(func() {
		e.serveJobs(ctx, naming.RankQueue, func(p partition.ID) error { return e.rankStep(ctx, p) })
	})
	wg.Wait()
}

// serveJobs does what the jobs of a queue ask for, each partition's once. A job is acknowledged
// once it is done; one that fails comes again.
func (e *Engine) serveJobs(ctx context.Context, queue string, do func(partition.ID) error) {
	for ctx.Err() == nil {
		msgs, err := e.queues.receive(ctx, actor.Receive{Queue: queue, Max: 10, Wait: followWait})
		if e.lost(err) {
			return
		}
		if err != nil && ctx.Err() == nil {
			e.log.Warn("receive jobs", "queue", queue, "error", err)
			e.pause(ctx)
		}
		same := map[partition.ID][]actor.Message{}
		for _, m := range msgs {
			id, p, err := blobschema.DecodeJob(m.Body)
			if err != nil || id != e.crawl.ID || !e.mayHave(p) {
				e.acknowledge(ctx, queue, []actor.Message{m})
				continue
			}
			same[p] = append(same[p], m)
		}
		for p, list := range same {
			switch err := do(p); {
			case ctx.Err() != nil || e.isLost() || errors.Is(err, errGivenUp):
				return
			case err != nil:
				e.followFailed(queue, p, err)
				e.pause(ctx)
				e.giveBack(queue, list)
			default:
				e.followSucceeded()
				e.acknowledge(ctx, queue, list)
			}
			e.askTick()
		}
	}
}

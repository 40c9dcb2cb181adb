package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/partition"
)

// rankSteps is what an engine keeps of its rank steps.
type rankSteps struct {
	mu       sync.Mutex
	warm     map[partition.ID]*rank.Warm
	reminded time.Time // when lost messages were made up for last, or a job was seen first
}

// warmRanks is how many partitions' graphs a process keeps from one step to the next, unless it is a
// function: that has memory for one.
const warmRanks = 16

// take takes what is kept of a partition. What is kept of others makes room for it, if that are most already.
func (r *rankSteps) take(p partition.ID, most int) *rank.Warm {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.warm[p]
	if delete(r.warm, p); len(r.warm) >= most {
		r.warm = nil
	}
	return w
}

func (r *rankSteps) give(p partition.ID, w *rank.Warm, most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.warm == nil || len(r.warm) >= most {
		r.warm = map[partition.ID]*rank.Warm{}
	}
	r.warm[p] = w
}

// RankReport is what a rank step did.
type RankReport = rank.Report

// RankStep runs one rank step of a partition; no round of it begins after atMost, 0 for no bound.
func (e *Engine) RankStep(p partition.ID, atMost time.Duration) (RankReport, error) {
	return e.stepRanks(context.Background(), p, atMost)
}

func (e *Engine) rankStep(ctx context.Context, p partition.ID) error {
	_, err := e.stepRanks(ctx, p, 0)
	return err
}

func (e *Engine) stepRanks(ctx context.Context, p partition.ID, atMost time.Duration) (rank.Report, error) {
	if !e.mayHave(p) {
		return rank.Report{}, fmt.Errorf("there can be no partition %d", p)
	}
	spent, done := e.meter()
	defer done()
	most := warmRanks
	if e.cfg.MemoryMB > 0 {
		most = 1
	}
	s := rank.NewStep(rank.StepConfig{Crawl: e.crawl.ID, Partition: p, Deadline: atMost, Spent: spent}, e.ranks.take(p, most))
	r := e.newRunner(s)
	r.given = ctx.Done()
	if err := r.run(); err != nil {
		return rank.Report{}, err
	}
	if !s.Report().Done {
		e.ranks.give(p, s.Warm(), most)
	}
	return s.Report(), nil
}

// StartRanks begins a rank job of the crawl that the engine works for, or goes on with the one
// under way; see [rank.NewStart]. Somebody has to run its steps.
func (e *Engine) StartRanks(cfg rank.StartConfig) (job ranks.Job, begun bool, err error) {
	cfg.Crawl = e.crawl.ID
	s := rank.NewStart(cfg)
	if err := e.newRunner(s).run(); err != nil {
		return job, false, err
	}
	job, begun = s.Job()
	return job, begun, nil
}

// RankProgress reads how far the rank job is that was begun last.
func (e *Engine) RankProgress() (rank.Progress, error) {
	r := rank.NewRead(e.crawl.ID)
	err := e.newRunner(r).run()
	return r.Progress(), err
}

// Messages are taken for lost when no partition has finished a round for that long. Making up for them
// while a step is at work has it worked out twice.
const remindAfter = 10 * time.Minute

// startRanks begins a rank job if a tick says that there should be one, and makes up for the lost messages
// of one under way.
func (e *Engine) startRanks(rep *crawl.Report) error {
	switch {
	case rep.WantsRanks:
		_, begun, err := e.StartRanks(rank.StartConfig{Same: true})
		if err != nil && !errors.Is(err, rank.ErrUnderWay) && !errors.Is(err, rank.ErrNothing) {
			return fmt.Errorf("begin ranks: %w", err)
		}
		if begun {
			e.ranks.mu.Lock()
			e.ranks.reminded = time.Now()
			e.ranks.mu.Unlock()
			e.askTick()
		}
	case rep.Ranking:
		return e.remindRanks()
	}
	return nil
}

func (e *Engine) remindRanks() error {
	e.ranks.mu.Lock()
	now, first := time.Now(), e.ranks.reminded.IsZero()
	due := first || now.Sub(e.ranks.reminded) >= e.cfg.RemindRanks
	if due {
		e.ranks.reminded = now
	}
	e.ranks.mu.Unlock()
	switch {
	case !due:
		return nil
	case first && e.platform.Exclusive: // the process before this one may have died between a round and its messages
		return e.RemindRanks()
	}
	p, err := e.RankProgress()
	if err != nil || p.Job.Number == 0 || !p.Job.Done.IsZero() {
		return err
	}
	last := p.Job.Started
	for i := range p.Heads {
		if h := &p.Heads[i]; h.Job == p.Job.Number {
			for _, r := range h.Rounds {
				if r.Time.After(last) {
					last = r.Time
				}
			}
		}
	}
	if now.Sub(last) < e.cfg.RemindRanks {
		return nil
	}
	return e.RemindRanks()
}

// RemindRanks has the partitions look that a rank job waits for; see [rank.NewRemind].
func (e *Engine) RemindRanks() error { return e.newRunner(rank.NewRemind(e.crawl.ID)).run() }

// Rank computes ranks to the end, in this process alone: it begins a job, or goes on with the one under way, and
// runs the steps of all partitions, two at once. progress is called whenever all have finished a round, and may be nil.
func (e *Engine) Rank(ctx context.Context, cfg rank.StartConfig, progress func(rank.Progress)) (ranks.Job, error) {
	if err := e.ensureRankQueue(ctx); err != nil {
		return ranks.Job{}, err
	}
	job, _, err := e.StartRanks(cfg)
	if err != nil {
		return ranks.Job{}, err
	}
	round := -2
	for {
		p, err := e.RankProgress()
		if err != nil {
			return job, err
		}
		if job = p.Job; progress != nil && (p.Round != round || !job.Done.IsZero()) {
			progress(p)
		}
		round = p.Round
		if !job.Done.IsZero() {
			return job, e.tidyRanks(ctx, len(p.Heads))
		}
		if err := e.runRanks(ctx); err != nil {
			return job, err
		}
	}
}

func (e *Engine) ensureRankQueue(ctx context.Context) error {
	parts, err := e.Partitioning()
	if err != nil {
		return err
	}
	return e.platform.CreateQueues(ctx, parts.Record.Partitions)
}

// stepTime is how long a step goes on alone before others, and whoever looks, learn of it.
const stepTime = 5 * time.Second

// runRanks takes some messages and runs the steps that they ask for.
func (e *Engine) runRanks(ctx context.Context) error {
	msgs, err := e.queues.receive(ctx, actor.Receive{Queue: naming.RankQueue, Max: 10, Wait: 5 * time.Second})
	if err != nil {
		return err
	}
	if len(msgs) == 0 { // they were lost with a process that died
		return e.RemindRanks()
	}
	var steps errgroup.Group
	steps.SetLimit(2)
	begun := map[partition.ID]bool{}
	for _, m := range msgs {
		id, p, err := blobschema.DecodeJob(m.Body)
		if err != nil || id != e.crawl.ID || !e.mayHave(p) || begun[p] {
			continue
		}
		begun[p] = true
		steps.Go(func() error {
			_, err := e.stepRanks(ctx, p, stepTime)
			return err
		})
	}
	if err := steps.Wait(); err != nil {
		return errors.Join(err, e.queues.release(context.WithoutCancel(ctx), naming.RankQueue, receipts(msgs)))
	}
	return e.queues.acknowledge(ctx, actor.Acknowledge{Queue: naming.RankQueue, Receipts: receipts(msgs)})
}

// tidyRanks has all partitions delete what only the rounds needed.
func (e *Engine) tidyRanks(ctx context.Context, partitions int) error {
	for p := range partitions {
		if _, err := e.stepRanks(ctx, partition.ID(p), 0); err != nil {
			return err
		}
	}
	return nil
}

func receipts(msgs []actor.Message) (out []actor.Receipt) {
	for _, m := range msgs {
		out = append(out, m.Receipt)
	}
	return out
}

package jobs

import (
	"context"
	"errors"
	"fmt"
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

// warmRanks is the number of partitions whose graphs a process keeps between steps. A function has memory for one.
const warmRanks = 16

// take removes and returns the kept state of a partition. If there would be no room for another state
// afterwards, it drops all of them.
func (j *Jobs) take(p partition.ID, most int) *rank.Warm {
	j.mu.Lock()
	defer j.mu.Unlock()
	w := j.warm[p]
	if delete(j.warm, p); len(j.warm) >= most {
		j.warm = nil
	}
	return w
}

func (j *Jobs) give(p partition.ID, w *rank.Warm, most int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.warm == nil || len(j.warm) >= most {
		j.warm = map[partition.ID]*rank.Warm{}
	}
	j.warm[p] = w
}

// RankForFunction runs RankStep, and returns the fields of the function's log line.
func (j *Jobs) RankForFunction(p partition.ID, atMost time.Duration) ([]any, error) {
	did, err := j.RankStep(context.Background(), p, atMost)
	return []any{"job", did.Job, "round", did.Round, "rounds", did.Rounds, "done", did.Done}, err
}

// RankStep runs one rank step of a partition. The step begins no round after atMost; 0: no limit.
func (j *Jobs) RankStep(ctx context.Context, p partition.ID, atMost time.Duration) (rank.Report, error) {
	if err := j.Check(p); err != nil {
		return rank.Report{}, err
	}
	spent, done := j.Meter()
	defer done()
	most := warmRanks
	if j.Config().MemoryMB > 0 {
		most = 1
	}
	s := rank.NewStep(rank.StepConfig{Crawl: j.Crawl(), Partition: p, Deadline: atMost, Spent: spent}, j.take(p, most))
	if err := j.RunUntil(ctx, s); err != nil {
		return rank.Report{}, err
	}
	if !s.Report().Done {
		j.give(p, s.Warm(), most)
	}
	return s.Report(), nil
}

// StartRanks starts a rank job of the service's crawl, or returns the one under way; see [rank.NewStart]. It runs no
// steps.
func (j *Jobs) StartRanks(cfg rank.StartConfig) (job ranks.Job, begun bool, err error) {
	cfg.Crawl = j.Crawl()
	s := rank.NewStart(cfg)
	if err := j.Engine.Run(s); err != nil {
		return job, false, err
	}
	job, begun = s.Job()
	return job, begun, nil
}

// RankProgress reads the progress of the last rank job.
func (j *Jobs) RankProgress() (rank.Progress, error) {
	r := rank.NewRead(j.Crawl().ID)
	err := j.Engine.Run(r)
	return r.Progress(), err
}

// remindAfter is the time without a finished round after which messages count as lost. If they were not lost, some
// partition does a round twice.
const remindAfter = 10 * time.Minute

// startRanks starts a rank job if the coordinator's report wants one, and replaces lost messages of the job under way.
func (j *Jobs) startRanks(rep *crawl.Report) error {
	switch {
	case rep.WantsRanks:
		_, begun, err := j.StartRanks(rank.StartConfig{Same: true})
		if err != nil && !errors.Is(err, rank.ErrUnderWay) && !errors.Is(err, rank.ErrNothing) {
			return fmt.Errorf("start ranks: %w", err)
		}
		if begun {
			j.mu.Lock()
			j.reminded = time.Now()
			j.mu.Unlock()
			j.AskTick()
		}
	case rep.Ranking:
		return j.remindRanks()
	}
	return nil
}

// remindRanks wakes the partitions that a rank job waits for, at most once per remindAfter.
func (j *Jobs) remindRanks() error {
	j.mu.Lock()
	now, first := time.Now(), j.reminded.IsZero()
	due := first || now.Sub(j.reminded) >= j.remindAfter
	if due {
		j.reminded = now
	}
	j.mu.Unlock()
	switch {
	case !due:
		return nil
	case first && j.Platform.Exclusive: // the previous process may have died between a round and its messages
		return j.RemindRanks()
	}
	return j.Engine.Run(rank.NewRemind(j.Crawl().ID, j.remindAfter))
}

// RemindRanks sends new messages to the partitions that a rank job waits for; see [rank.NewRemind].
func (j *Jobs) RemindRanks() error { return j.Engine.Run(rank.NewRemind(j.Crawl().ID, 0)) }

// Rank computes ranks in this process alone: it starts a job or continues the one under way, and runs the steps of all
// partitions, two at once. It calls progress, unless nil, after each round of all partitions.
func (j *Jobs) Rank(ctx context.Context, cfg rank.StartConfig, progress func(rank.Progress)) (ranks.Job, error) {
	parts, err := j.Partitioning()
	if err != nil {
		return ranks.Job{}, err
	}
	if err := j.Platform.CreateQueues(ctx, parts.Record.Partitions); err != nil {
		return ranks.Job{}, err
	}
	job, _, err := j.StartRanks(cfg)
	if err != nil {
		return ranks.Job{}, err
	}
	round := -2
	for {
		p, err := j.RankProgress()
		if err != nil {
			return job, err
		}
		if job = p.Job; progress != nil && (p.Round != round || !job.Done.IsZero()) {
			progress(p)
		}
		round = p.Round
		if !job.Done.IsZero() { // one more step of each partition deletes the objects of the rounds
			for p := range p.Heads {
				if _, err := j.RankStep(ctx, partition.ID(p), 0); err != nil {
					return job, err
				}
			}
			return job, nil
		}
		if err := j.runRanks(ctx); err != nil {
			return job, err
		}
	}
}

// stepTime bounds a step, so that other processes see its progress.
const stepTime = 5 * time.Second

// runRanks receives some messages and runs a step for each partition that they name.
func (j *Jobs) runRanks(ctx context.Context) error {
	msgs, err := j.Receive(ctx, actor.Receive{Queue: naming.RankQueue, Max: 10, Wait: 5 * time.Second})
	if err != nil {
		return err
	}
	if len(msgs) == 0 { // a dead process may have lost them
		return j.RemindRanks()
	}
	var steps errgroup.Group
	steps.SetLimit(2)
	begun := map[partition.ID]bool{}
	for _, m := range msgs {
		id, p, err := blobschema.DecodeJob(m.Body)
		if err != nil || id != j.Crawl().ID || j.Check(p) != nil || begun[p] {
			continue
		}
		begun[p] = true
		steps.Go(func() error {
			_, err := j.RankStep(ctx, p, stepTime)
			return err
		})
	}
	if err := steps.Wait(); err != nil {
		j.GiveBack(naming.RankQueue, msgs)
		return err
	}
	j.Acknowledge(ctx, naming.RankQueue, msgs)
	return nil
}

package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/index"
	"github.com/orbweaver/orbweaver/internal/rank"
)

// pollJobs is the trigger of index and rank jobs: every message of a queue starts a process, even if one is running for the
// same partition. The message is acknowledged when the process has ended well.
func (w *world) pollJobs(queue, kind string, begin func(*proc) (actor.Actor, error)) {
	w.After(w.poll.between(200*time.Millisecond, 2*time.Second), func() { w.pollJobs(queue, kind, begin) })
	got, err := w.queues.Receive(w.Wall(), queue, 10)
	if err != nil {
		w.fail(err)
		return
	}
	for _, d := range got {
		_, part, err := blobschema.DecodeJob(d.Body)
		if err != nil {
			w.fail(err)
			return
		}
		p := w.newProc(kind, part)
		if p.Actor, err = begin(p); err != nil {
			w.fail(err)
			return
		}
		p.onEnd = func(err error) {
			switch {
			case p.dead || errors.Is(err, errInjected) || errors.Is(err, actor.ErrNotFound): // a faster process dropped what this one read
				return // the message comes again
			case err != nil:
				w.fail(fmt.Errorf("%s fails: partition %d at %v: %w", kind, part, w.Mono, err))
				return
			}
			if err := w.queues.Ack(w.Wall(), queue, d.Receipt); err != nil {
				w.note(kind, "was late") // the message was delivered to another process meanwhile
			}
		}
		w.After(p.between(0, 500*time.Millisecond), p.start)
	}
}

// indexStep returns an index step with so little memory and time that it merges often.
func (w *world) indexStep(p *proc) (actor.Actor, error) {
	cfg := index.Config{
		Crawl: w.crawl, Partition: p.part, Processors: 1 + p.rng.IntN(3), BatchSize: 1 + p.rng.IntN(60), FanIn: 2 + p.rng.IntN(3),
		Memory: []int{1 << 14, 1 << 20}[p.rng.IntN(2)], Grace: w.cfg.IndexGrace,
	}
	if p.rng.IntN(4) == 0 {
		cfg.Deadline = p.between(time.Second, time.Minute)
	}
	return index.NewStep(cfg)
}

// rankStep returns a rank step.
func (w *world) rankStep(p *proc) (actor.Actor, error) {
	cfg := rank.StepConfig{Crawl: w.crawl, Partition: p.part}
	if p.rng.IntN(4) == 0 {
		cfg.Deadline = p.between(time.Second, time.Minute)
	}
	return rank.NewStep(cfg, nil), nil
}

// remindAfter is the time between two reminders of the steps of a rank job, whose messages may be lost.
const remindAfter = 10 * time.Minute

// startRanks starts or reminds a rank job if the coordinator wants it, as package jobs does.
func (w *world) startRanks(rep *crawl.Report) {
	p := w.newProc("ranks", 0)
	switch {
	case rep.WantsRanks:
		params := ranks.DefaultParams()
		params.MaxRounds = 1 + int(w.cfg.Seed%16) // few rounds, because most of the simulation would otherwise be rounds without faults
		p.Actor = rank.NewStart(rank.StartConfig{Crawl: w.crawl, Params: params, Same: true})
	case rep.Ranking && w.Mono-w.reminded >= remindAfter:
		p.Actor = rank.NewRemind(w.crawl.ID, 0)
	default:
		return
	}
	w.reminded = w.Mono
	p.onEnd = func(err error) {
		if err != nil && !p.dead && !errors.Is(err, errInjected) && !errors.Is(err, rank.ErrUnderWay) && !errors.Is(err, rank.ErrNothing) {
			w.fail(fmt.Errorf("ranks fail at %v: %w", w.Mono, err))
		}
	}
	p.start()
}

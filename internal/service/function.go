package service

import (
	"errors"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/partition"
)

// StepReport is the result of [Service.Step].
type StepReport struct {
	Worked bool  // false: another step held or took the lease
	Pages  int64 // pages stored
	Before blobschema.Totals
	crawl.Progress
}

// Step runs one step of a partition, from lease to release, for at most atMost; 0: no limit. If another step
// holds or takes the lease, the error is nil and Worked is false. The service keeps the state of the step for
// the next step of the same partition. Do not call Step, Tick and Take concurrently.
func (s *Service) Step(p partition.ID, atMost time.Duration) (did StepReport, err error) {
	if err := s.Check(p); err != nil {
		return did, err
	}
	spent, done := s.Meter()
	defer done()
	cfg := s.stepConfig(p)
	cfg.Crawl, cfg.MaxResident, cfg.Deadline, cfg.Spent = s.crawl, s.cfg.MaxResident, atMost, spent
	if s.warm[p] == nil {
		clear(s.warm) // the state of other partitions is probably stale, and takes memory
	}
	r, err := s.enter(cfg)
	if err != nil {
		return did, err
	}
	r.runner.After = func() { // the totals before its work
		if r.from == nil {
			if pr, ok := r.step.Progress(); ok {
				r.see(pr)
			}
		}
	}
	const keep = 1
	switch e := s.carry(p, r, keep); {
	case errors.Is(e.err, crawl.ErrLeaseTaken), errors.Is(e.err, crawl.ErrLeaseLost):
		return did, nil
	case e.err != nil:
		return did, fmt.Errorf("step of partition %d: %w", p, e.err)
	default:
		did = StepReport{Worked: true, Pages: r.step.Pages(), Progress: r.now}
		if r.from != nil {
			did.Before = *r.from
		}
		return did, nil
	}
}

// Tick runs the coordinator once, as one of many processes.
func (s *Service) Tick() (crawl.Report, error) {
	spent, done := s.Meter()
	defer done()
	return s.run(nil, spent)
}

// Check returns an error if no such partition can exist.
func (s *Service) Check(p partition.ID) error {
	if !s.mayHave(p) {
		return fmt.Errorf("partition %d cannot exist", p)
	}
	return nil
}

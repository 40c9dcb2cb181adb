package service

import (
	"context"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
)

// Submit puts a request on the intake queue. This service or another process that crawls takes it from there. No crawl
// need be under way.
func (s *Service) Submit(ctx context.Context, r blobschema.Request) error {
	body, err := blobschema.EncodeRequest(r)
	if err != nil {
		return err
	}
	s.submitted.Add(1)
	return s.Send(ctx, actor.Send{Queue: naming.IntakeQueue, Bodies: [][]byte{body}})
}

// Times for which a service waits for requests that may be in the queue.
const (
	firstCall = 100 * time.Millisecond // in the first receive, while the first work runs
	lastCall  = 20 * time.Millisecond  // with nothing left to do
	ownCall   = 30 * time.Second       // like lastCall, if the service itself has submitted requests
)

// serveRequests hands requests from outside to the coordinator's goroutine. It closes s.heard after the first
// receive.
func (s *Service) serveRequests(ctx context.Context) {
	hand := func(msgs []actor.Message) {
		select {
		case s.requests <- msgs:
		case <-ctx.Done():
			s.GiveBack(naming.IntakeQueue, msgs)
		}
	}
	msgs, _ := s.Receive(ctx, actor.Receive{Queue: naming.IntakeQueue, Max: 10, Wait: firstCall}) // serve reports an error
	if len(msgs) > 0 {
		hand(msgs)
	}
	close(s.heard)
	s.serve(ctx, naming.IntakeQueue, hand)
}

// Take turns messages of the intake queue into mail, for functions. It returns the messages that failed, and
// the first error. The others may be acknowledged.
func (s *Service) Take(msgs []actor.Message) (failed []actor.Message, err error) {
	return takeEach(msgs, func(some []actor.Message) error {
		spent, done := s.Meter()
		defer done()
		return s.intake(some, spent)
	})
}

func (s *Service) intake(msgs []actor.Message, spent func() blobschema.Calls) error {
	return s.Engine.Run(crawl.NewIntake(crawl.IntakeConfig{Crawl: s.crawl.ID, Bucket: s.cfg.Bucket, Spent: spent}, msgs))
}

// takeEach calls take for all messages together and, if that fails, for each of them, because one bad message may
// have failed all.
func takeEach(msgs []actor.Message, take func([]actor.Message) error) (failed []actor.Message, err error) {
	if err = take(msgs); err == nil {
		return nil, nil
	}
	if len(msgs) == 1 {
		return msgs, err
	}
	for i := range msgs {
		if take(msgs[i:i+1]) != nil {
			failed = append(failed, msgs[i])
		}
	}
	return failed, err
}

// take turns requests into mail and acknowledges them. Requests that fail stay in the queue. Those of a worker
// stay hidden for a while, and after several failures the queue moves them to the dead letters.
func (s *Service) take(msgs []actor.Message) {
	failed, err := takeEach(msgs, func(some []actor.Message) error { return s.intake(some, s.spent()) })
	if err != nil {
		s.Log.Error("take requests", "failed", len(failed), "error", err)
	}
	taken := slices.DeleteFunc(slices.Clone(msgs), func(m actor.Message) bool {
		return slices.ContainsFunc(failed, func(f actor.Message) bool { return f.Receipt == m.Receipt })
	})
	s.Acknowledge(context.Background(), naming.IntakeQueue, taken)
	if !s.shared { // only this process takes them
		s.GiveBack(naming.IntakeQueue, failed)
		s.submitted.Store(max(0, s.submitted.Load()-int64(len(taken)))) // only the coordinator's goroutine takes
	}
}

// takeLate takes requests that arrived during the last work, and reports whether there were any.
func (s *Service) takeLate() bool {
	var over <-chan time.Time
	for heard := s.heard; ; {
		select {
		case msgs := <-s.requests:
			s.take(msgs)
			return true
		case <-heard:
			wait := lastCall
			if s.submitted.Load() > 0 {
				wait = ownCall
			}
			heard, over = nil, time.After(wait)
		case <-over:
			return false
		}
	}
}

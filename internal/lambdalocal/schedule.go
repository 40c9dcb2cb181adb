package lambdalocal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Schedule calls a function every so often, as EventBridge Scheduler does for a rate.
type Schedule struct {
	Function *Function
	Every    time.Duration // at least a minute on AWS, any above zero here
	// Payload is what the function gets. Nil is what the service sends if no input is
	// configured.
	Payload []byte
	// Overlap lets a call begin while the last one runs, as on AWS, where only the
	// function's concurrency keeps calls apart. Otherwise it is left out.
	Overlap bool
	Log     *slog.Logger // of calls that were no invocation; nil is nowhere
}

// Run calls the function now and then every s.Every until ctx ends, and waits for the
// calls that run. Time that is missed is not made up for.
func (s Schedule) Run(ctx context.Context) error {
	if s.Every <= 0 {
		return fmt.Errorf("schedule of %s: every %v", s.Function.config.Name, s.Every)
	}
	log := s.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	free := make(chan struct{}, 1) // holds a token while no call runs
	free <- struct{}{}
	ticker := time.NewTicker(s.Every)
	defer ticker.Stop()
	for at := time.Now(); ; {
		select {
		case <-free:
			calls.Go(func() {
				s.call(at, log)
				free <- struct{}{}
			})
		default:
			if s.Overlap {
				calls.Go(func() { s.call(at, log) })
			}
		}
		select {
		case at = <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s Schedule) call(at time.Time, log *slog.Logger) {
	payload := s.Payload
	if payload == nil {
		payload = s.event(at)
	}
	_, err := s.Function.invoke(payload, "")
	if err != nil && !errors.Is(err, ErrClosed) {
		log.Warn("schedule", "function", s.Function.config.Name, "error", err)
	}
}

// event is the input that EventBridge Scheduler sends by itself.
func (s Schedule) event(at time.Time) []byte {
	c := s.Function.config
	b, err := json.Marshal(map[string]any{
		"version": "0", "id": newID(), "detail-type": "Scheduled Event", "source": "aws.scheduler",
		"account": c.Account, "time": at.UTC().Format(time.RFC3339), "region": c.Region,
		"resources": []string{fmt.Sprintf("arn:aws:scheduler:%s:%s:schedule/default/%s", c.Region, c.Account, c.Name)},
		"detail":    "{}",
	})
	if err != nil {
		panic(err) // strings only
	}
	return b
}

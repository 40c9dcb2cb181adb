package lambdalocal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Schedule calls a function at a fixed rate, as EventBridge Scheduler does. Unlike there, calls do
// not overlap.
type Schedule struct {
	Function *Function
	Every    time.Duration // at least a minute on AWS
	Log      *slog.Logger  // logs calls that did not run; nil: nowhere
}

// Run calls the function now and then every s.Every until ctx ends, and waits for a running
// call. It skips the times that pass during a call.
func (s Schedule) Run(ctx context.Context) {
	ticker := time.NewTicker(s.Every)
	defer ticker.Stop()
	for at := time.Now(); ; {
		_, err := s.Function.invoke(s.event(at), "")
		if err != nil && !errors.Is(err, ErrClosed) && s.Log != nil {
			s.Log.Warn("schedule", "function", s.Function.config.Name, "error", err)
		}
		select {
		case <-ticker.C: // during the call
		default:
		}
		select {
		case at = <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// event returns the input that EventBridge Scheduler sends if none is configured.
func (s Schedule) event(at time.Time) []byte {
	c := s.Function.config
	b, err := json.Marshal(map[string]any{
		"version": "0", "id": newID(), "detail-type": "Scheduled Event", "source": "aws.scheduler",
		"account": account, "time": at.UTC().Format(time.RFC3339), "region": c.Region,
		"resources": []string{fmt.Sprintf("arn:aws:scheduler:%s:%s:schedule/default/%s", c.Region, account, c.Name)},
		"detail":    "{}",
	})
	if err != nil {
		panic(err) // strings only
	}
	return b
}

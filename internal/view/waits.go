package view

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/partition"
)

// Wait is why the pending URLs of a politeness key are not requested now, as of the last commit of its partition.
type Wait struct {
	Why   string
	Until time.Time // zero if it is not known, or if nothing is to wait for
	Bad   bool      // it waits because requests failed
	Delay time.Duration
}

// Waits returns why politeness keys wait. It reads the state of their slots, one after another, until ctx ends: the keys
// that it had no time for are missing.
func (v *View) Waits(ctx context.Context, keys []string) (map[string]Wait, error) {
	of, slots := map[partition.Slot][]string{}, partition.Slots{}
	for _, key := range keys {
		s := v.hash.Slot(key)
		if of[s] == nil {
			slots = append(slots, s)
		}
		of[s] = append(of[s], key)
	}
	slices.Sort(slots)
	out := map[string]Wait{}
	if len(slots) == 0 {
		return out, nil
	}
	regions, err := v.regions(ctx, slots)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	for _, r := range regions {
		for _, s := range r.slots {
			run, err := v.state(ctx, r.runs(), partition.Slots{s})
			if ctx.Err() != nil { // also if files were read all the same
				return out, nil
			}
			if err != nil {
				return nil, err
			}
			for _, key := range of[s] {
				if out[key], err = waitOf(run, key, time.Now()); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}

// waitOf finds the reason in the state of the key's slot: what ends last comes first.
func waitOf(run *blobschema.Run, key string, now time.Time) (Wait, error) {
	var info schedule.HostInfo
	for i := range run.Keys {
		if run.Keys[i].Key == key {
			var err error
			if info, err = schedule.DecodeHost(run.Keys[i].Data); err != nil {
				return Wait{}, fmt.Errorf("host %s: %w", key, err)
			}
		}
	}
	pending, first := 0, time.Time{}
	for i := range run.Queued {
		q := &run.Queued[i]
		if q.Key != key {
			continue
		}
		at := time.UnixMilli(q.NotBefore)
		if pending++; pending == 1 || at.Before(first) {
			first = at
		}
	}
	w := Wait{Delay: info.Pace.Delay}
	for _, c := range []struct {
		until time.Time
		bad   bool
		why   string
	}{
		{info.Pace.BackoffUntil, true, "it failed, or asked for a pause"},
		{info.Hold, true, "its name could not be resolved"},
		{info.HTTPS.Retry, true, "its robots.txt could not be read"},
		{info.HTTP.Retry, true, "its robots.txt could not be read"},
		{first, false, "its URLs wait for a retry or a revisit"},
		{info.Pace.Next, false, "pace: a request every " + info.Pace.Delay.String()},
	} {
		if c.until.After(now) && c.until.After(w.Until) && pending > 0 {
			w.Why, w.Until, w.Bad = c.why, c.until, c.bad
		}
	}
	switch {
	case pending == 0:
		w.Why = "nothing is pending"
	case w.Why == "" && info.HTTP.Rules == nil && info.HTTPS.Rules == nil:
		w.Why = "its robots.txt is requested first"
	case w.Why == "" && info.Pace.Failures > 0:
		w.Why, w.Bad = fmt.Sprintf("%d failures in a row make it slower", info.Pace.Failures), true
	case w.Why == "" && w.Delay > 0: // the commit is older than that
		w.Why = "pace: a request every " + w.Delay.String()
	case w.Why == "":
		w.Why = "it waits for its turn"
	}
	return w, nil
}

package view_test

import (
	"context"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/view"
)

// TestWaits finds out why hosts wait.
func TestWaits(t *testing.T) {
	s := newHandmade(t)
	now := time.Now()
	failed, revisit, ready, idle, other, paced := s.hostIn(0), s.hostIn(2), s.hostIn(4), s.hostIn(6), s.hostIn(1), s.hostIn(3)
	s.commit(0, func(c *blobschema.Commit) {
		c.State = &blobschema.Run{}
		for _, h := range []string{failed, revisit, ready} {
			q := s.queued("http://" + h + "/")
			if h == revisit {
				q.NotBefore = now.Add(time.Hour).UnixMilli()
			}
			c.State.Queued = append(c.State.Queued, q)
		}
		none := []any{[]byte(nil), 0, "", 0, 0, 0} // robots.txt that was never read
		data, err := cbor.Marshal(map[int]any{1: polite.Pace{BackoffUntil: now.Add(time.Minute), Delay: time.Second}, 2: []any{none, none}})
		if err != nil {
			t.Fatal(err)
		}
		c.State.Keys = []blobschema.KeyState{{Slot: s.hash.Slot(failed), Key: failed, Data: data}}
		c.State.Sort()
	})
	s.commit(1, func(c *blobschema.Commit) {
		// An hour ago: its rules are known, and its pace has passed.
		rules := []any{polite.ParseRobots([]byte("User-agent: *\nAllow: /\n"), "orbweaver").Encode(), 0, "", 0, 0, 0}
		data, err := cbor.Marshal(map[int]any{1: polite.Pace{Next: now.Add(-time.Hour), Delay: 2 * time.Second}, 2: []any{rules, rules}})
		if err != nil {
			t.Fatal(err)
		}
		c.State = &blobschema.Run{
			Queued: []blobschema.Queued{s.queued("http://" + other + "/"), s.queued("http://" + paced + "/")},
			Keys:   []blobschema.KeyState{{Slot: s.hash.Slot(paced), Key: paced, Data: data}},
		}
		c.State.Sort()
	})
	v, err := view.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	waits, err := v.Waits(t.Context(), []string{failed, revisit, ready, idle, other, paced})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		revisit: "its URLs wait for a retry or a revisit", ready: "its robots.txt is requested first", idle: "nothing is pending", other: "its robots.txt is requested first",
		paced: "pace: a request every 2s",
	} {
		if got := waits[host].Why; got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
	if w := waits[failed]; w.Why != "it failed, or asked for a pause" || !w.Bad || w.Delay != time.Second || w.Until.Sub(now).Round(2*time.Second) != time.Minute {
		t.Errorf("a host that failed: %+v", w)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if waits, err = v.Waits(ended, []string{failed}); err != nil || len(waits) > 0 {
		t.Errorf("without time: %v, %v", waits, err)
	}
}

package view_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

// TestTimeline reads the history of two partitions: exact at commits, interpolated between them, and with few reads.
func TestTimeline(t *testing.T) {
	s := newHandmade(t)
	start := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	commit := func(p int, second int) {
		host := s.hostIn(0)
		if p == 1 {
			host = s.hostIn(handSlots - 1)
		}
		s.commit(partition.ID(p), func(c *blobschema.Commit) {
			c.Manifest.Time = start.Add(time.Duration(second) * time.Second)
			c.Manifest.Calls.BlobPuts += 5
			for i := range 10 {
				c.Pages = append(c.Pages, page(fmt.Sprintf("http://%s/%d-%d", host, second, i), second))
			}
		})
	}
	commit(0, 0)
	commit(1, 0)
	commit(1, 100)
	commit(0, 50)
	commit(0, 100)
	v, err := view.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var line view.Timeline
	pages := func(n int) (out []int64) {
		t.Helper()
		points, err := line.Read(t.Context(), v, n)
		if err != nil {
			t.Fatal(err)
		}
		for i := range points {
			out = append(out, points[i].Totals.Pages)
		}
		if p := points[len(points)-1]; p.Calls.BlobPuts != 25 || !p.Time.Equal(start.Add(100*time.Second)) {
			t.Errorf("the last point is %+v", p)
		}
		return out
	}
	// Partition 0 has 10, 20 and 30 pages at 0, 50 and 100 s; partition 1 has 10 and 20 at 0 and 100 s.
	if got := pages(5); !slices.Equal(got, []int64{20, 27, 35, 42, 50}) {
		t.Errorf("pages: %v", got)
	}
	reads := 0
	s.before = func() { reads++ }
	pages(5)
	if reads > 6 { // heads, map and last commits
		t.Errorf("%d reads for a crawl that has not changed", reads)
	}
	s.before = nil
	for i := range 1000 {
		commit(0, 101+i)
	}
	s.before, reads = func() { reads++ }, 0
	if _, err := line.Read(t.Context(), v, 20); err != nil || reads > 30 {
		t.Errorf("%d reads of 1,000 commits, %v", reads, err)
	}
}

// TestWaits finds out why hosts wait.
func TestWaits(t *testing.T) {
	s := newHandmade(t)
	now := time.Now()
	failed, revisit, ready, idle, other := s.hostIn(0), s.hostIn(2), s.hostIn(4), s.hostIn(6), s.hostIn(1)
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
		c.State = &blobschema.Run{Queued: []blobschema.Queued{s.queued("http://" + other + "/")}}
	})
	v, err := view.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	waits, err := v.Waits(t.Context(), []string{failed, revisit, ready, idle, other})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{
		revisit: "its URLs wait for a retry or a revisit", ready: "its robots.txt is requested first", idle: "nothing is pending", other: "its robots.txt is requested first",
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

package crawl

import (
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
)

// TestDailyCalls checks that a crawl whose functions ran too often within a day is paused, with the reason in the desired
// state. Resuming it allows as many calls again, and so does the next day.
func TestDailyCalls(t *testing.T) {
	w, s := newScene(t)
	s.cfg.DailyCalls = 100
	s.heads[0].Totals.Pending, s.heads[0].Due = 1, w.in(100*time.Hour) // otherwise nothing is read
	s.heads[0].Calls.Functions, s.heads[1].Fence = 40, 30              // all steps of partition 1 crashed
	s.record.Calls.Functions, s.requests.Calls.Functions = 20, 9
	s.write(w)
	if s.tick(w); s.told(w).Pause {
		t.Fatal("paused after 99 calls")
	}
	s.remembered(w)
	s.heads[1].Fence++
	s.write(w)
	s.tick(w)
	if got := s.told(w); !got.Pause || got.Orders != 1 || !strings.Contains(got.Why, "100 times within a day") {
		t.Fatalf("the desired state after 100 calls: %+v", got)
	}
	if _, err := w.run(NewCommand(s.crawl.ID, OrderResume)); err != nil {
		t.Fatal(err)
	}
	if got := s.told(w); got.Pause || got.Why != "" {
		t.Errorf("the desired state once resumed: %+v", got)
	}
	s.desired = s.told(w)
	for _, more := range []struct {
		after  time.Duration
		calls  int64
		paused bool
	}{{time.Minute, 0, false}, {time.Minute, 99, false}, {24 * time.Hour, 50, false}, {time.Hour, 99, false}, {time.Hour, 1, true}} {
		s.remembered(w)
		s.heads[0].Calls.Functions += more.calls
		s.write(w)
		w.Mono += more.after
		s.tick(w)
		if got := s.told(w); got.Pause != more.paused {
			t.Errorf("%v later, with %d more calls: %+v", more.after, more.calls, got)
		}
	}
}

// told returns the desired state in the table.
func (s *scene) told(w *world) (desired blobschema.DesiredState) {
	w.record(naming.DesiredKey(s.crawl.ID), &desired)
	return desired
}

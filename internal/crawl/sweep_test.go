package crawl

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// TestSweep checks that a merged run is deleted when two sweeps have found it in no manifest and no hand-over, and that a
// run stays if it is named again after the first sweep.
func TestSweep(t *testing.T) {
	w, s := newScene(t)
	name := func(p int, seq uint64, runs, given []string) {
		h := s.heads[p]
		h.Seq, h.Published = seq, seq
		man := blobschema.Manifest{Partition: h.Partition, Fence: h.Fence, Seq: seq, Epoch: 1}
		for _, r := range runs {
			man.Runs = append(man.Runs, blobschema.RunRef{Object: r})
		}
		for _, r := range given {
			man.Given = append(man.Given, blobschema.Handover{Epoch: 2, To: 0, Slots: partition.Slots{1}, Runs: []blobschema.RunRef{{Object: r}}})
		}
		h.Commit = w.stored(s.crawl, blobschema.Commit{Manifest: man})
		s.record.Copied[h.Partition] = seq
	}
	for _, r := range []string{"named", "given", "again", "gone"} {
		w.Objects[r] = []byte(r)
		s.record.Sweep = append(s.record.Sweep, blobschema.Dropped{Object: r})
	}
	name(0, 3, []string{"named"}, nil)
	name(1, 3, nil, []string{"first of it", "given"})
	s.record.SweptAt = w.Now().Wall
	look := func(when string, left []string, want ...blobschema.Dropped) {
		t.Helper()
		s.write(w)
		s.tick(w)
		var got []string
		for _, r := range []string{"named", "given", "again", "gone"} {
			if _, ok := w.Objects[r]; ok {
				got = append(got, r)
			}
		}
		s.remembered(w)
		if d := cmp.Diff(want, s.record.Sweep) + cmp.Diff(left, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", when, d)
		}
	}
	all := []string{"named", "given", "again", "gone"}
	w.Mono += 9 * time.Minute
	look("too early", all, s.record.Sweep...)
	w.Mono += time.Minute
	look("the first sweep", all, blobschema.Dropped{Object: "again", Unnamed: 1}, blobschema.Dropped{Object: "gone", Unnamed: 1})
	name(0, 4, []string{"named", "again"}, nil)
	w.Mono += 9 * time.Minute
	look("too early again", all, s.record.Sweep...)
	w.Mono += time.Minute
	w.fault = func(e actor.Effect) (error, error) {
		if _, ok := e.(actor.DeleteObject); ok {
			return errLost, nil
		}
		return nil, nil
	}
	s.write(w)
	if _, err := w.run(NewTick(s.cfg, nil)); !errors.Is(err, errLost) {
		t.Errorf("it cannot be deleted: %v", err)
	}
	w.fault = nil
	s.remembered(w)
	look("the second sweep", []string{"named", "given", "again"})
}

// TestSweepIsBounded checks that the record stays within a table item, and names each run once.
func TestSweepIsBounded(t *testing.T) {
	var r blobschema.TickRecord
	for range 2 {
		for i := range maxSwept + 1 {
			candidates(&r, []string{fmt.Sprint(i), fmt.Sprint(i)})
		}
	}
	if n := len(slices.Compact(r.Sweep)); n != maxSwept || len(r.Sweep) != n {
		t.Errorf("%d candidates, of them %d different", len(r.Sweep), n)
	}
}

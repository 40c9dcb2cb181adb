package crawl

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// limited is a crawl with a page limit, and a host with more pages than that in each partition.
func limited(t *testing.T, partitions int, limit int64) (*world, blobschema.Crawl) {
	t.Helper()
	c, w := newCrawl(partitions), newWorld(t)
	c.Settings.MaxPages = limit
	var seeds []string
	hosts := map[string]func(actor.Request) *actor.Outcome{}
	for p := range partition.ID(partitions) {
		host := ofPartition(t, c, p)
		hosts[host] = site(t, host, pages, func(int) []string { return all(host) })
		seeds = append(seeds, all(host)[0])
	}
	w.web = func(r actor.Request) *actor.Outcome { return hosts[string(r.URL.Host())](r) }
	return w, w.begin(c, seeds...)
}

// grants records each change of the grants.
func (w *world) grants(do func(blobschema.Grants)) {
	w.fault = func(e actor.Effect) (error, error) {
		if wr, ok := e.(actor.WriteRecord); ok && wr.Key == naming.GrantsKey("test") {
			g, err := actor.Decode[blobschema.Grants](actor.Record{Value: wr.Value, Found: true}, "grants")
			if err != nil {
				w.t.Error(err)
			}
			do(g)
		}
		return nil, nil
	}
}

// TestLimitIsDealt checks that a step is granted only a share of the rest, so that other partitions get theirs, and returns
// what it has no time to use.
func TestLimitIsDealt(t *testing.T) {
	for _, k := range []struct {
		partitions   int
		limit, first int64
	}{{1, 1, 1}, {2, 3, 1}, {1, 100, 50}, {2, 100, 25}, {1, 1e6, maxGrant}} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			w, c := limited(t, k.partitions, k.limit)
			var granted []int64
			w.grants(func(g blobschema.Grants) {
				if granted = append(granted, g.Granted[0]); g.Granted[0] > k.limit {
					t.Errorf("granted %d", g.Granted[0])
				}
			})
			w.step(StepConfig{Crawl: c, Process: "p", Deadline: 5 * time.Second}, nil)
			n := w.head(c.ID, 0).Totals.Pages
			if want := min(k.limit, 5); n != want || granted[0] != k.first || granted[len(granted)-1] != n {
				t.Errorf("granted %v, for %d pages", granted, n)
			}
		})
	}
}

// TestLimitAmongPartitions checks that the limit is used up and never exceeded, however steps of several partitions
// alternate.
func TestLimitAmongPartitions(t *testing.T) {
	const limit = 30
	w, c := limited(t, 2, limit)
	requests := 0
	w.grants(func(g blobschema.Grants) {
		if g.Limit != limit || g.Granted[0]+g.Granted[1] > limit {
			t.Errorf("granted: %+v", g)
		}
	})
	serve := w.web
	w.web = func(r actor.Request) *actor.Outcome {
		if requests++; requests == 4 {
			w.aside(func() { w.step(StepConfig{Crawl: c, Partition: 1, Process: "q"}, nil) })
		}
		return serve(r)
	}
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	if n := len(w.visible(c.ID, 0)) + len(w.visible(c.ID, 1)); n != limit {
		t.Errorf("%d pages, of which %d are of partition 0", n, len(w.visible(c.ID, 0)))
	}
	if rep, _ := w.tick(c.ID); !rep.Limited || rep.Finished {
		t.Errorf("in the end: %+v", rep)
	}
}

// TestGrantOfACrashedStep checks that the grant of a crashed step stays with its partition, and is used before more is
// requested.
func TestGrantOfACrashedStep(t *testing.T) {
	w, c := limited(t, 2, 30)
	w.writeRecord(naming.GrantsKey(c.ID), blobschema.Grants{Limit: 30, Granted: map[partition.ID]int64{0: 6, 1: 24}})
	changes := 0
	w.grants(func(g blobschema.Grants) {
		if changes++; g.Granted[0] != 6 || g.Granted[1] != 24 {
			t.Errorf("granted: %+v", g)
		}
	})
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	if n := w.head(c.ID, 0).Totals.Pages; n != 6 || changes != 1 { // its fence, so that the crashed step cannot change the record
		t.Errorf("%d pages, %d changes", n, changes)
	}
}

// TestGrantsInDoubt checks that a change of grants that was stored despite an error is not made twice, and that a change
// that loses a race is made again.
func TestGrantsInDoubt(t *testing.T) {
	for _, with := range []error{errLost, actor.ErrConflict} {
		w, c := limited(t, 1, 10)
		w.fault = once(naming.GrantsKey(c.ID), with)
		w.step(StepConfig{Crawl: c, Process: "p"}, nil)
		var g blobschema.Grants
		if w.record(naming.GrantsKey(c.ID), &g); w.head(c.ID, 0).Totals.Pages != 10 || g.Granted[0] != 10 {
			t.Errorf("%v: granted %+v, for %d pages", with, g, w.head(c.ID, 0).Totals.Pages)
		}
	}
}

// TestGrantsOfALaterStep checks that a step without its lease takes no grants.
func TestGrantsOfALaterStep(t *testing.T) {
	w, c := limited(t, 1, 10)
	was := blobschema.Grants{Limit: 10, Granted: map[partition.ID]int64{0: 3}, Fences: map[partition.ID]uint64{0: 2}}
	w.writeRecord(naming.GrantsKey(c.ID), was)
	s, err := NewStep(StepConfig{Crawl: c, Process: "p"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.run(s); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("it ends with %v", err)
	}
	var g blobschema.Grants
	if w.record(naming.GrantsKey(c.ID), &g); g.Granted[0] != 3 || g.Fences[0] != 2 {
		t.Errorf("granted: %+v", g)
	}
}

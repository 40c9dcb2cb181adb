package rank

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/partition"
)

// TestInStep runs a step for each message at once, all at the same speed, like a cloud without a limit of
// concurrency. It bounds the number of steps that a round starts.
func TestInStep(t *testing.T) {
	const partitions = 4
	w := newWorld(t)
	w.made(random(21, 60), partitions, blobschema.ByHost)
	if err := w.start(StartConfig{Params: precise}); err != nil {
		t.Fatal(err)
	}
	var live []*running
	begun, most := 0, 0
	for len(w.queue)+len(live) > 0 {
		for _, p := range w.queue {
			live = append(live, w.begin(NewStep(StepConfig{Crawl: w.crawl(), Partition: p}, nil), p))
			begun++
		}
		w.queue = w.queue[:0]
		next := live[:0]
		for _, a := range live {
			switch ended, err := w.turn(a, 0); {
			case err != nil:
				t.Fatal(err)
			case !ended:
				next = append(next, a)
			}
		}
		live = next
		if most = max(most, len(live)); most > 1000 {
			t.Fatalf("%d steps at once, %d begun", len(live), begun)
		}
	}
	j := w.job()
	t.Logf("%d rounds, %d steps, %d at once", j.Rounds, begun, most)
	if j.Done.IsZero() || most > partitions*partitions+partitions || begun > 4*partitions*j.Rounds {
		t.Errorf("%d steps, %d of them at once, for %d rounds of %d partitions", begun, most, j.Rounds, partitions)
	}
}

// TestRemindAfterAJob checks that a second job completes if all its messages are lost.
func TestRemindAfterAJob(t *testing.T) {
	w := newWorld(t)
	c := w.made(random(22, 40), 3, blobschema.ByHost)
	w.compute(StartConfig{Params: rough})
	if err := c.Commit(w, random(23, 10), 5); err != nil {
		t.Fatal(err)
	}
	if err := w.start(StartConfig{Params: rough}); err != nil {
		t.Fatal(err)
	}
	w.queue, w.warm = nil, map[partition.ID]*Warm{}
	if err := w.run(NewRemind("c", time.Minute)); err != nil || len(w.queue) > 0 {
		t.Fatalf("woke partitions %v within the idle time: %v", w.queue, err)
	}
	if err := w.run(NewRemind("c", 0)); err != nil {
		t.Fatal(err)
	}
	if len(w.queue) != 3 {
		t.Errorf("woke partitions %v", w.queue)
	}
	if err := w.drain(); err != nil {
		t.Fatal(err)
	}
	if j := w.job(); j.Number != 2 || j.Done.IsZero() {
		t.Errorf("job: %+v", j)
	}
}

// TestFingerprintTwice checks the table of two URLs of different hosts with the same fingerprint.
func TestFingerprintTwice(t *testing.T) {
	l := &ranks.Layout{HostNames: []string{"a", "b"}, First: []uint32{0, 2, 3}, Nodes: []uint64{1, 5, 5}, Crawled: []byte{7}}
	table, _, err := tables(l, &level{x: []float64{.2, .3, .5}, nodes: 3})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ranks.DecodeTable(table)
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := got.Rank(5); !ok || r != .5 || got.Len() != 2 {
		t.Errorf("rank %g of %d pages", r, got.Len())
	}
}

// TestNamedIsThere crashes a step before each effect of a third job, and checks that all objects that heads name exist.
func TestNamedIsThere(t *testing.T) {
	for _, partitions := range []int{1, 2} {
		for _, deadline := range []time.Duration{0, time.Nanosecond} {
			before := newWorld(t)
			before.made(random(24, 20), partitions, blobschema.ByHost)
			for range 2 {
				before.compute(StartConfig{Params: rough})
			}
			if err := before.start(StartConfig{Params: rough}); err != nil {
				t.Fatal(err)
			}
			for kill, dead := 0, true; dead; kill++ {
				w := before.clone()
				w.effects, w.kill, w.deadline, dead = 0, kill, deadline, false
				for len(w.queue) > 0 && !dead {
					p := w.queue[0]
					w.queue = w.queue[1:]
					err := w.run(w.step(p))
					if dead = errors.Is(err, errKilled); err != nil && !dead {
						t.Fatal(err)
					}
				}
				for p := range partitions {
					h := w.head(p)
					for _, name := range slices.Concat(h.Next.Objects(), h.Last.Objects()) {
						dropped := slices.ContainsFunc(h.Dropped, func(d ranks.Dropped) bool { return d.Object == name })
						if w.Objects[name] == nil && !dropped {
							t.Fatalf("%d partitions, killed at effect %d: partition %d names %s, which does not exist", partitions, kill, p, name)
						}
					}
				}
			}
		}
	}
}

// TestRebuild checks that a job with Rebuild succeeds although all objects of previous jobs, and of the running one, are
// damaged. There are no ranks until it is done.
func TestRebuild(t *testing.T) {
	pages := random(13, 120)
	w := newWorld(t)
	c := w.made(pages, 3, blobschema.ByHost)
	w.compute(StartConfig{Params: precise})
	w.compute(StartConfig{Params: precise})
	if err := w.start(StartConfig{Params: precise}); err != nil {
		t.Fatal(err)
	}
	for p := range 3 { // one round of each partition
		if err := w.run(NewStep(StepConfig{Crawl: w.crawl(), Partition: partition.ID(p), Deadline: 1}, nil)); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range slices.Sorted(maps.Keys(w.Objects)) {
		switch {
		case naming.KindOf(name) != naming.Derived:
		case i%2 == 0 && !strings.HasPrefix(name, naming.RanksPrefix("c")):
			w.Objects[name] = w.Objects[name][:len(w.Objects[name])/2]
		default:
			delete(w.Objects, name)
		}
	}
	if err := w.drain(); err == nil {
		t.Error("no error although objects are damaged")
	}
	if err := w.start(StartConfig{Same: true, Rebuild: true}); err != nil {
		t.Fatal(err)
	}
	if j := w.job(); j.Finished() != nil || j.Params.Tolerance != precise.Tolerance {
		t.Errorf("job %+v", j)
	}
	w.warm = map[partition.ID]*Warm{}
	if err := w.drain(); err != nil {
		t.Fatal(err)
	}
	w.compare(c, pages, precise, 1e-9)
	for p := range 3 { // all named objects exist
		h := w.head(p)
		for _, name := range slices.Concat(h.Next.Objects(), h.Last.Objects()) {
			if name != "" && w.Objects[name] == nil {
				t.Errorf("partition %d names %s, which does not exist", p, name)
			}
		}
	}
	w.compute(StartConfig{Params: precise}) // the next job can use the results
	w.compare(c, pages, precise, 1e-9)
}

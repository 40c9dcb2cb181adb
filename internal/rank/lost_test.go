package rank

import (
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// TestInStep runs every message's step at once, and all of them at one speed, as a cloud with room does
// whose partitions are alike: no round may begin more steps than some for each partition.
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
			a := &running{actor: NewStep(StepConfig{Crawl: "c", Partition: p}, nil), p: p}
			a.queue = a.actor.Start(w.clock())
			live, begun = append(live, a), begun+1
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

// TestRemindAfterAJob: the messages of a job may be lost all together, also where there was one before.
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
	if err := w.run(NewRemind("c")); err != nil {
		t.Fatal(err)
	}
	if len(w.queue) != 3 {
		t.Errorf("partitions %v are reminded", w.queue)
	}
	if err := w.drain(); err != nil {
		t.Fatal(err)
	}
	if j := w.job(); j.Number != 2 || j.Done.IsZero() {
		t.Errorf("job: %+v", j)
	}
}

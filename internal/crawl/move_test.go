package crawl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// give orders that slots go to a partition.
func (w *world) give(crawl string, to partition.ID, slots ...partition.Slot) {
	w.t.Helper()
	r := NewRepartition(crawl, func(p Partitioning) (*partition.Map, error) {
		owners := p.Target.Owners()
		for _, s := range slots {
			owners[s] = to
		}
		return p.Target.WithOwners(owners)
	})
	if _, err := w.run(r); err != nil {
		w.t.Fatal(err)
	}
}

// aside does something while an actor is at work, in no time.
func (w *world) aside(do func()) {
	now, fault, counts := w.now, w.fault, w.counts
	w.fault = nil
	do()
	w.now, w.fault, w.counts = now, fault, counts
}

func (w *world) order(crawl string, o Order) {
	w.t.Helper()
	if _, err := w.run(NewCommand(crawl, o)); err != nil {
		w.t.Fatal(err)
	}
}

func readsHead(e actor.Effect, crawl string, p partition.ID) bool {
	r, ok := e.(actor.ReadRecords)
	return ok && len(r.Keys) == 1 && r.Keys[0] == naming.HeadKey(crawl, p)
}

// TestTakesOfACommitLookedAtBefore: one commit gives by two maps, and the receiver knows of
// the first alone when it looks. It takes what it learns of later from the same commit.
func TestTakesOfACommitLookedAtBefore(t *testing.T) {
	w := newWorld(t)
	w.web = site(t, "nobody.example", 0, nil)
	c := w.begin(newCrawl(2), "https://"+ofPartition(t, newCrawl(2), 0)+"/0")
	w.order(c.ID, OrderPause)
	w.give(c.ID, 1, 0)
	given := false
	w.fault = func(e actor.Effect) (error, error) {
		if !given && readsHead(e, c.ID, 0) {
			given = true
			w.aside(func() {
				w.give(c.ID, 1, 2)
				w.step(StepConfig{Crawl: c, Partition: 0, Process: "a"}, nil)
			})
		}
		return nil, nil
	}
	s, _ := w.step(StepConfig{Crawl: c, Partition: 1, Process: "b"}, nil)
	if !given {
		t.Fatal("the receiver looked at no head")
	}
	for range 2 {
		s, _ = w.step(StepConfig{Crawl: c, Partition: 1, Process: "b"}, s.Warm())
	}
	if h := w.head(c.ID, 1); h.Awaits != 0 {
		t.Errorf("partition 1 still awaits what was given by epoch %d", h.Awaits)
	}
}

// TestMergeLosesNoSlotThatComesBack: a slot comes back while runs that it has its state in
// are merged without it.
func TestMergeLosesNoSlotThatComesBack(t *testing.T) {
	w, c := newWorld(t), newCrawl(2)
	host, another := ofPartition(t, c, 0), ""
	h, err := NewHash(&c)
	if err != nil {
		t.Fatal(err)
	}
	slot := h.Slot(host)
	for i := 0; another == ""; i++ {
		if name := fmt.Sprintf("other%d.example", i); h.Slot(name) != slot && h.Slot(name)%2 == 0 {
			another = name
		}
	}
	w.web = site(t, host, pages, func(int) []string { return all(host) })
	c = w.begin(c, all(host)[0], "https://"+another+"/") // what stays, so that there is a run
	a := func(cfg StepConfig) StepConfig {
		cfg.Crawl, cfg.Process, cfg.Lease, cfg.Margin = c, "a", 9*time.Second, time.Second
		return cfg
	}
	w.step(a(StepConfig{Deadline: 5 * time.Second, CommitEvery: time.Hour}), nil)
	for w.head(c.ID, 0).Seq <= mergeFanIn { // at most one commit each, and no merge
		w.step(a(StepConfig{Deadline: 2500 * time.Millisecond, CommitEvery: time.Hour}), nil)
	}
	w.order(c.ID, OrderPause)
	before := w.settledIn(c, 0, slot)
	if before < mergeFanIn {
		t.Fatalf("only %d pages are settled", before)
	}
	w.give(c.ID, 1, slot)
	tries := 0
	w.fault = func(e actor.Effect) (error, error) {
		if put, ok := e.(actor.PutObject); !ok || !strings.Contains(put.Name, "/r") || tries == 8 {
			return nil, nil
		}
		if tries++; tries == 1 {
			w.aside(func() {
				b := StepConfig{Crawl: c, Partition: 1, Process: "b"}
				w.step(b, nil)
				w.tick(c.ID)
				w.give(c.ID, 0, slot)
				w.step(b, nil)
			})
		}
		return errors.New("not now"), nil
	}
	s, _ := w.step(a(StepConfig{Linger: 20 * time.Second}), nil)
	w.fault = nil
	if tries != 8 || w.head(c.ID, 0).Awaits != 0 {
		t.Fatalf("the run was put %d times in vain; %+v", tries, w.head(c.ID, 0))
	}
	w.order(c.ID, OrderResume)
	w.step(a(StepConfig{Deadline: 20 * time.Second, CommitEvery: 2 * time.Second}), s.Warm())
	if after := w.settledIn(c, 0, slot); after < before {
		t.Errorf("%d URLs were settled, %d are in the runs after a merge", before, after)
	}
}

// settledIn counts the settled URLs of a slot in the runs of a partition.
func (w *world) settledIn(c blobschema.Crawl, p partition.ID, slot partition.Slot) int {
	w.t.Helper()
	h, err := NewHash(&c)
	if err != nil {
		w.t.Fatal(err)
	}
	var runs []*blobschema.Run
	man := w.manifest(c.ID, p)
	for _, ref := range man.Runs {
		run := &blobschema.Run{}
		if err := blobschema.DecodeRun(w.blobs[ref.Object][ref.Offset:][:ref.Length], ref, run); err != nil {
			w.t.Fatal(err)
		}
		runs = append(runs, run)
	}
	n := 0
	for _, s := range blobschema.MergeRuns(h, runs).Settled {
		if s.Slot == slot {
			n++
		}
	}
	return n
}

// TestAwaitedSlotsAreNotDue: what came for a slot that is not here yet gives nobody work, so
// nothing is woken for it again and again until it is given.
func TestAwaitedSlotsAreNotDue(t *testing.T) {
	w, c := newWorld(t), newCrawl(2)
	w.web = site(t, "nobody.example", 0, nil)
	host := ofPartition(t, c, 0)
	c = w.begin(c, "https://"+ofPartition(t, c, 1)+"/")
	b := StepConfig{Crawl: c, Partition: 1, Process: "b", SendsWakes: true}
	w.step(b, nil)
	w.step(StepConfig{Crawl: c, Partition: 0, Process: "a", SendsWakes: true}, nil)
	h, err := NewHash(&c)
	if err != nil {
		t.Fatal(err)
	}
	w.give(c.ID, 1, h.Slot(host))
	body, err := blobschema.EncodeRequest(blobschema.Request{ID: "x", Seeds: []string{"https://" + host + "/"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.run(NewIntake(IntakeConfig{Crawl: c.ID}, []actor.Message{{ID: "1", Body: body}})); err != nil {
		t.Fatal(err)
	}
	w.wakes = nil
	w.step(b, nil)
	if head := w.head(c.ID, 1); head.Awaits == 0 || head.Totals.Unexamined == 0 || !head.Due.IsZero() || len(w.wakes) > 0 {
		t.Errorf("%d URLs of a slot that is awaited by epoch %d: due at %v, wakes %v", head.Totals.Unexamined, head.Awaits, head.Due, w.wakes)
	}
	report, _ := w.tick(c.ID)
	if !slices.Equal(report.Woken, []partition.ID{0}) {
		t.Errorf("a tick wakes %v, it is for 0 to give", report.Woken)
	}
	w.step(StepConfig{Crawl: c, Partition: 0, Process: "a", SendsWakes: true}, nil)
	w.step(b, nil)
	if head := w.head(c.ID, 1); head.Awaits != 0 || head.Totals.Unexamined+head.Totals.Pending > 0 {
		t.Errorf("once it is given it is crawled: %+v", head)
	}
}

package crawl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/partition"
)

// give orders that slots move to a partition.
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

// aside does something while an actor is running, in no time.
func (w *world) aside(do func()) {
	now, fault, counts := w.Mono, w.fault, w.counts
	w.fault = nil
	do()
	w.Mono, w.fault, w.counts = now, fault, counts
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

// TestTakesOfACommitReadBefore checks a commit that gives slots by two maps, read by a receiver that knows only the
// first map. The receiver takes the other slots from the same commit when it learns the second map.
func TestTakesOfACommitReadBefore(t *testing.T) {
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
		t.Errorf("partition 1 still awaits what was given by virtual.Epoch %d", h.Awaits)
	}
}

// TestMergeLosesNoSlotThatComesBack checks a slot that comes back while runs with its state are merged without it.
func TestMergeLosesNoSlotThatComesBack(t *testing.T) {
	w, c := newWorld(t), newCrawl(2)
	host, another := ofPartition(t, c, 0), ""
	h, err := c.Hash()
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
	c = w.begin(c, all(host)[0], "https://"+another+"/") // this one stays, so that there is a run
	a := func(cfg StepConfig) StepConfig {
		cfg.Crawl, cfg.Process, cfg.Lease, cfg.Margin = c, "a", 9*time.Second, time.Second
		return cfg
	}
	w.step(a(StepConfig{Deadline: 5 * time.Second, CommitEvery: time.Hour}), nil)
	for w.head(c.ID, 0).Seq <= mergeFanIn { // at most one commit per step, and no merge
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
		t.Fatalf("the run was put %d times without success; %+v", tries, w.head(c.ID, 0))
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
	h, err := c.Hash()
	if err != nil {
		w.t.Fatal(err)
	}
	var runs []*blobschema.Run
	man := w.manifest(c.ID, p)
	for _, ref := range man.Runs {
		run := &blobschema.Run{}
		if err := blobschema.DecodeRun(w.Objects[ref.Object][ref.Offset:][:ref.Length], ref, run); err != nil {
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

// TestAwaitedSlotsAreNotDue checks that mail for a slot that has not arrived makes no work, so that its partition is not
// woken again and again until the slot is given.
func TestAwaitedSlotsAreNotDue(t *testing.T) {
	w, c := newWorld(t), newCrawl(2)
	w.web = site(t, "nobody.example", 0, nil)
	host := ofPartition(t, c, 0)
	c = w.begin(c, "https://"+ofPartition(t, c, 1)+"/")
	b := StepConfig{Crawl: c, Partition: 1, Process: "b", SendsWakes: true}
	w.step(b, nil)
	w.step(StepConfig{Crawl: c, Partition: 0, Process: "a", SendsWakes: true}, nil)
	h, err := c.Hash()
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
		t.Errorf("%d URLs of a slot that is awaited by virtual.Epoch %d: due at %v, wakes %v", head.Totals.Unexamined, head.Awaits, head.Due, w.wakes)
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

// hostsOf returns n hosts of a partition, each in its own slot.
func hostsOf(t *testing.T, c blobschema.Crawl, p partition.ID, n int) (hosts []string, slots []partition.Slot) {
	t.Helper()
	h, err := c.Hash()
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; len(hosts) < n; i++ {
		host := fmt.Sprintf("h%d.example", i)
		if s := h.Slot(host); int(s)%c.Partitions == int(p) && !slices.Contains(slots, s) {
			hosts, slots = append(hosts, host), append(slots, s)
		}
	}
	return hosts, slots
}

// gave records the slots that a partition's commits give to partition 1 whenever there are more, and the time.
func (w *world) gave(c blobschema.Crawl, p partition.ID) (gave []partition.Slots, at []time.Duration) {
	w.t.Helper()
	for _, com := range w.commits(c.ID, p) {
		man, err := com.Manifest()
		if err != nil {
			w.t.Fatal(err)
		}
		var given partition.Slots
		for _, h := range man.Given {
			if h.To != 1 || h.Epoch != 2 || len(h.Runs) == 0 || len(h.State) != len(h.Slots) {
				w.t.Errorf("given: %+v", h)
			}
			given = append(given, h.Slots...)
		}
		if len(given) > 0 && (len(gave) == 0 || len(given) > len(gave[len(gave)-1])) {
			gave, at = append(gave, given), append(at, man.Time.Sub(virtual.Epoch))
		}
	}
	return gave, at
}

// TestMovesAtWork moves slots from one running step to another. The giver requests nothing more of them as soon as it knows
// of the move, and the receiver nothing before it has them. An idle slot does not wait long for one with a request under
// way. Each page is fetched once.
func TestMovesAtWork(t *testing.T) {
	w, c := newWorld(t), newCrawl(2)
	hosts, slots := hostsOf(t, c, 0, 3)
	quick, slow, stays := hosts[0], hosts[1], hosts[2]
	const n = 12
	served := map[string]func(actor.Request) *actor.Outcome{}
	for _, h := range hosts {
		served[h] = site(t, h, n, func(int) []string { return all(h)[:n] })
	}
	requests := map[string][]time.Duration{} // times by host
	w.web = func(r actor.Request) *actor.Outcome {
		requests[string(r.URL.Host())] = append(requests[string(r.URL.Host())], w.Mono)
		return served[string(r.URL.Host())](r)
	}
	w.slow = func(r actor.Request) time.Duration {
		if string(r.URL.Host()) == slow && !r.Robots {
			return 20 * time.Second
		}
		return fetchTime
	}
	c = w.begin(c, all(quick)[0], all(slow)[0], all(stays)[0])
	var ordered time.Duration
	w.fault = func(e actor.Effect) (error, error) {
		if _, ok := e.(actor.Fetch); ok && ordered == 0 && len(requests[slow]) == 1 && len(requests[quick]) == 3 { // the slow one is under way
			ordered = w.Mono
			w.aside(func() { w.give(c.ID, 1, slots[0], slots[1]) })
		}
		return nil, nil
	}
	cfg := StepConfig{Crawl: c, Process: "a", CommitEvery: 6 * time.Second, CommitMin: 500 * time.Millisecond, Linger: 200 * time.Millisecond, SleepMax: time.Minute}
	w.wakes = nil
	w.step(cfg, nil)
	w.fault = nil
	knows := 7 * time.Second // with the first commit
	if last := requests[quick][len(requests[quick])-1]; ordered == 0 || len(requests[stays]) != n+1 || last > knows || len(requests[slow]) != 2 {
		t.Errorf("requested %d, %d and %d URLs, the last that goes at %v", len(requests[quick]), len(requests[slow]), len(requests[stays]), last)
	}
	gave, at := w.gave(c, 0)
	want := []partition.Slots{{slots[0]}, {slots[0], slots[1]}}
	if d := cmp.Diff(want, gave); d != "" || at[0] > knows+2*giveRest || at[1] < requests[slow][1] || at[1] > requests[slow][1]+time.Second {
		t.Errorf("given at %v; the last request ended at %v (-want +got):\n%s", at, requests[slow][1], d)
	}
	if h := w.head(c.ID, 0); h.Owes != 0 || h.Epoch != 2 || h.Gives[1] != 2 || len(h.Gives) != 1 {
		t.Errorf("the giver's head is %+v", h)
	}
	if len(w.wakes) > 0 || len(w.queues[naming.MailboxQueue(1)]) != 3 { // seeds and two nudges
		t.Errorf("the receiver is woken by %v, and has %d messages", w.wakes, len(w.queues[naming.MailboxQueue(1)]))
	}
	had := int64(len(w.visible(c.ID, 0)) - n) // of the two slots that move
	cfg.Partition, cfg.Process = 1, "b"
	w.step(cfg, nil)
	if h := w.head(c.ID, 1); h.Awaits != 0 || h.Epoch != 2 || had < 2 || h.Totals.Pages != 2*n-had {
		t.Errorf("the receiver's head is %+v; there were %d pages before", h, had)
	}
	objects := map[string]int{}
	for _, r := range w.manifest(c.ID, 1).Runs {
		if objects[r.Object]++; objects[r.Object] > 1 {
			t.Errorf("run %s is named twice", r.Object)
		}
	}
	w.tick(c.ID)
	w.step(StepConfig{Crawl: c, Process: "a"}, nil)
	if man := w.manifest(c.ID, 0); len(man.Given) > 0 || len(w.head(c.ID, 0).Gives) > 0 {
		t.Errorf("what was taken is still given: %+v", man.Given)
	}
}

// TestGivesToSeveral checks that each hand-over is named until its own receiver has it. The receiver takes only its own
// slots, and a giver without a head does not block it. In a cloud the receivers are woken.
func TestGivesToSeveral(t *testing.T) {
	w, c := newWorld(t), newCrawl(3)
	hosts, slots := hostsOf(t, c, 0, 2)
	more, others := hostsOf(t, c, 1, 1)
	_, never := hostsOf(t, c, 2, 1)
	w.web = site(t, "nobody.example", 0, nil)
	c = w.begin(c, "https://"+hosts[0]+"/", "https://"+hosts[1]+"/", "https://"+more[0]+"/")
	w.order(c.ID, OrderPause)
	w.give(c.ID, 4, never[0])
	w.give(c.ID, 3, slots[0])
	w.give(c.ID, 4, slots[1], others[0])
	step := func(p partition.ID) blobschema.Head {
		t.Helper()
		w.wakes = nil
		w.step(inCloud(c, p), nil)
		return w.head(c.ID, p)
	}
	given := func(when string, p partition.ID, want ...blobschema.Handover) {
		t.Helper()
		var got []blobschema.Handover
		for _, h := range w.manifest(c.ID, p).Given {
			got = append(got, blobschema.Handover{Epoch: h.Epoch, To: h.To, Slots: h.Slots})
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s partition %d gives (-want +got):\n%s", when, p, d)
		}
	}
	first, second := blobschema.Handover{Epoch: 3, To: 3, Slots: partition.Slots{slots[0]}}, blobschema.Handover{Epoch: 4, To: 4, Slots: partition.Slots{slots[1]}}
	if h := step(0); h.Gives[3] != 3 || h.Gives[4] != 4 || h.Owes != 0 || len(w.wakes) != 2 || w.wakes[0].p != 3 || w.wakes[1].p != 4 {
		t.Errorf("giver: %+v; wakes %v", h, w.wakes)
	}
	given("at first", 0, first, second)
	step(1)
	if h := step(4); h.Awaits != 2 || h.Totals.Unexamined+h.Totals.Pending != 2 {
		t.Errorf("receiver of one of two given slots, which waits for a third: %+v", h)
	}
	w.tick(c.ID)
	step(0)
	given("without a certain confirmation", 0, first, second)
	if h := step(3); h.Awaits != 0 || h.Totals.Unexamined+h.Totals.Pending != 1 || len(w.manifest(c.ID, 3).Moved) != 1 {
		t.Errorf("receiver of one of two: %+v", h)
	}
	w.tick(c.ID)
	step(0)
	given("when one has confirmed", 0, second)
	step(2)
	if h := step(4); h.Awaits != 0 {
		t.Errorf("receiver of all: %+v", h)
	}
	w.tick(c.ID)
	if h := step(0); len(h.Gives) > 0 {
		t.Errorf("all have confirmed: %+v", h)
	}
	given("in the end", 0)
	if rep, _ := w.tick(c.ID); len(rep.Map.Moving) > 0 || rep.Totals.Unexamined+rep.Totals.Pending != 3 {
		t.Errorf("in the end: %+v, %+v", rep.Map, rep.Totals)
	}
}

// TestFloorGoesAlong checks that the hosts of moving slots rest for a pace after a crash of their previous owner, also at
// their new owner (I9).
func TestFloorGoesAlong(t *testing.T) {
	w, c := newWorld(t), newCrawl(2)
	c.Settings.Delay = 20 * time.Second
	hosts, slots := hostsOf(t, c, 0, 1)
	serve := site(t, hosts[0], 2, func(int) []string { return all(hosts[0])[:2] })
	first := time.Duration(0)
	w.web = func(r actor.Request) *actor.Outcome {
		if first == 0 {
			first = w.Mono - fetchTime
		}
		return serve(r)
	}
	c = w.begin(c, all(hosts[0])[0])
	w.step(StepConfig{Crawl: c, Process: "a", Deadline: 5 * time.Second}, nil) // one page
	w.Mono += time.Hour
	first = 0
	crashed := w.head(c.ID, 0)
	crashed.Fence, crashed.Owner, crashed.LeaseUntil = crashed.Fence+1, "gone/1", w.in(-time.Second)
	w.writeRecord(naming.HeadKey(c.ID, 0), crashed)
	w.give(c.ID, 1, slots[0])
	takeover := w.Mono
	w.step(StepConfig{Crawl: c, Process: "b", Deadline: 5 * time.Second}, nil)
	if first > 0 || w.head(c.ID, 0).Gives[1] != 2 {
		t.Fatalf("the giver makes a request at %v; its head is %+v", first, w.head(c.ID, 0))
	}
	for range 8 {
		w.step(StepConfig{Crawl: c, Partition: 1, Process: "b", Deadline: 5 * time.Second}, nil)
		w.Mono += 4 * time.Second
	}
	if rest := first - takeover; rest < c.Settings.Delay || rest > c.Settings.Delay+10*time.Second {
		t.Errorf("the receiver makes its first request %v after the takeover", rest)
	}
}

// TestWaitsForWhatIsGiven checks that a running step looks for awaited slots soon at first, then less and less often, and
// at once after a nudge.
func TestWaitsForWhatIsGiven(t *testing.T) {
	w, c := newWorld(t), newCrawl(2)
	hosts, slots := hostsOf(t, c, 1, 1)
	w.web = site(t, hosts[0], pages, func(int) []string { return all(hosts[0]) }) // so that it has something to do
	away, moving := hostsOf(t, c, 0, 2)
	c = w.begin(c, all(hosts[0])[0], "https://"+away[0]+"/", "https://"+away[1]+"/")
	w.step(StepConfig{Crawl: c, Process: "a", Deadline: 100 * time.Millisecond}, nil) // so that it has a commit
	w.give(c.ID, 1, moving[0], moving[1])
	var looked []time.Duration
	var took, givenAt time.Duration
	given, read := false, 0
	w.fault = func(e actor.Effect) (error, error) {
		if readsHead(e, c.ID, 0) {
			looked = append(looked, w.Mono)
		}
		if wr, ok := e.(actor.WriteRecord); ok && given && took == 0 && wr.Key == naming.HeadKey(c.ID, 1) {
			if h, err := actor.Decode[blobschema.Head](actor.Record{Value: wr.Value}, "head"); err == nil && h.Awaits == 0 {
				took = w.Mono
			}
		}
		if w.Mono > 30*time.Second && !given {
			given = true
			givenAt = w.Mono
			w.aside(func() { w.step(StepConfig{Crawl: c, Process: "a"}, nil) })
		}
		if get, ok := e.(actor.GetObject); ok && get.Name == w.head(c.ID, 0).Commit && get.Length < 0 {
			read++
		}
		return nil, nil
	}
	w.step(StepConfig{Crawl: c, Partition: 1, Process: "b", CommitEvery: 20 * time.Second}, nil)
	if n := len(looked); !given || n < 8 || n > 20 || looked[1]-looked[0] > time.Second || looked[7]-looked[6] < 4*time.Second {
		t.Errorf("it looks at %v", looked)
	}
	if read != 1 {
		t.Errorf("it reads the given slots %d times", read)
	}
	if took == 0 || took > givenAt+pullLate+2*time.Second || w.head(c.ID, 1).Totals.Pending > 0 || slots[0] == moving[0] {
		t.Errorf("it has them after %v", took)
	}
	if last := looked[len(looked)-1]; last > took {
		t.Errorf("it looks again at %v, when it has them since %v", last, took)
	}
}

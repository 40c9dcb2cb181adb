package crawl

import (
	"fmt"
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

// inCloud configures steps for coordinator runs that are minutes apart.
func inCloud(c blobschema.Crawl, p partition.ID) StepConfig {
	return StepConfig{Crawl: c, Partition: p, Process: "p", SendsWakes: true, SleepMax: 2 * time.Second, Linger: 200 * time.Millisecond}
}

// coldTick is a run in its own process.
func (w *world) coldTick(crawl string) (Report, map[string]int) {
	w.t.Helper()
	k := NewTick(TickConfig{Crawl: crawl}, nil)
	counts, err := w.run(k)
	if err != nil {
		w.t.Fatal(err)
	}
	return k.Report(), counts
}

func TestWorthwhile(t *testing.T) {
	now := virtual.Epoch
	slots := func(secs ...int) (out []blobschema.SlotSummary) {
		for i, s := range secs {
			out = append(out, blobschema.SlotSummary{Slot: partition.Slot(i), Pending: 1, Due: now.Add(time.Duration(s) * time.Second).UnixMilli()})
		}
		return out
	}
	many := func(n, from int) (secs []int) {
		for i := range n {
			secs = append(secs, from+i%10)
		}
		return secs
	}
	unexamined, urgent := slots(8, 20), slots(-1, 20)
	unexamined[1].Unexamined, urgent[0].Urgent = 3, 1
	later, atOnce, settled := slots(8, 20), slots(0, 20), slots(8, 20)
	later[1].Urgent, atOnce[0].Urgent = 1, 1
	settled[1].Due = 0
	for _, c := range []struct {
		name  string
		slots []blobschema.SlotSummary
		want  int // seconds
	}{
		{"one host", slots(10), 10},
		{"few hosts, all soon", slots(8, 9, 10), 10},
		{"one far off", slots(8, 9, 1500), 9},
		{"some later than a minute", slots(5, 64, 66), 64},
		{"due already", slots(-30, -20), 0},
		{"due already, others soon", slots(-30, 40), 40},
		{"enough are due soon", slots(append(many(250, 5), 50)...), 12},
		{"not known what waits", unexamined, 8},
		{"somebody waits", urgent, 0},
		{"somebody waits since just now", atOnce, 0},
		{"somebody waits for a part that is not due", later, 20},
		{"nothing is left of one", settled, 8},
		{"within just a minute", slots(5, 65), 65},
	} {
		first := time.UnixMilli(c.slots[0].Due).UTC()
		if got := worthwhile(c.slots, now, first).Sub(now).Seconds(); int(got) != c.want {
			t.Errorf("%s: in %v s, not %d", c.name, got, c.want)
		}
	}
	if got := worthwhile(nil, now, now.Add(time.Second)); !got.Equal(now.Add(time.Second)) {
		t.Errorf("a wake for an unknown part: at %v", got)
	}
	if !worthwhile(nil, now, time.Time{}).IsZero() {
		t.Error("nothing is due, but a step is wanted")
	}
}

// TestWakesItself checks that a step that would have to wait long ends and wakes its partition when its host is ready
// again. A pending wake is not sent twice, however many steps run meanwhile.
func TestWakesItself(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	c.Settings.Delay = 10 * time.Second
	w := newWorld(t)
	w.web = site(t, host, 3, func(int) []string { return all(host)[:3] })
	c = w.begin(c, all(host)[0])
	for i := range 3 {
		w.wakes = nil
		_, counts := w.step(inCloud(c, 0), nil)
		wantFetch := 1
		if i == 0 {
			wantFetch = 2 // robots.txt
		}
		if counts["Fetch"] != wantFetch {
			t.Fatalf("step %d asks for %d URLs", i, counts["Fetch"])
		}
		h := w.head(c.ID, 0)
		if i == 2 {
			if len(w.wakes) != 0 || !h.Due.IsZero() {
				t.Errorf("wakes %v after the last page, due %v", w.wakes, h.Due)
			}
			break
		}
		if len(w.wakes) != 1 || w.wakes[0].delay < 8*time.Second || w.wakes[0].delay > 10*time.Second {
			t.Fatalf("step %d sends wakes %v", i, w.wakes)
		}
		if in := h.WakeAt.Sub(virtual.Epoch.Add(w.Mono)); in < 8*time.Second || in > 10*time.Second {
			t.Errorf("step %d: the wake comes in %v", i, in)
		}
		// A wake without work.
		w.wakes = nil
		if _, counts := w.step(inCloud(c, 0), nil); counts["Fetch"] != 0 || len(w.wakes) != 0 {
			t.Errorf("a step too early: %v, wakes %v", counts, w.wakes)
		}
		w.Mono += 10 * time.Second
	}
}

// TestWakeCost pins what a step in the cloud costs that finds one page: one wake more than elsewhere.
func TestWakeCost(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	c.Settings.Delay = 10 * time.Second
	w := newWorld(t)
	w.web = site(t, host, 5, func(int) []string { return all(host)[:5] })
	c = w.begin(c, all(host)[0])
	s, _ := w.step(inCloud(c, 0), nil)
	w.Mono += 10 * time.Second
	cfg, spent := inCloud(c, 0), blobschema.Calls{KVWriteUnits: 3}
	cfg.Spent = func() blobschema.Calls { return spent }
	_, counts := w.step(cfg, s.Warm())
	delete(counts, "Sleep")
	want := map[string]int{
		"Fetch": 1, "ReadRecords": 3, // the head; the desired state at the start and with the commit
		"WriteRecord": 3, // the lease, the commit, the end of the lease
		"PutObject":   2, "Work": 1, "Receive": 2, "Send": 1,
	}
	if d := cmp.Diff(want, counts); d != "" {
		t.Errorf("the step (-want +got):\n%s", d)
	}
	if got := w.head(c.ID, 0).Calls; got != spent {
		t.Errorf("the head says that the steps cost %+v", got)
	}
}

// TestDeadlineGoesOn checks that a step that ends at its deadline wakes its partition at once.
func TestDeadlineGoesOn(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	w := newWorld(t)
	w.web = site(t, host, pages, func(int) []string { return all(host) })
	c = w.begin(c, all(host)[0])
	w.wakes = nil
	cfg := inCloud(c, 0)
	cfg.Deadline = 20 * time.Second
	s, _ := w.step(cfg, nil)
	if len(w.wakes) != 1 || w.wakes[0].delay > time.Second || s.Pages() < 15 {
		t.Errorf("wakes %v after %d pages", w.wakes, s.Pages())
	}
}

// TestWakesMailed checks that a partition that gets many links is woken, unless a step is running.
func TestWakesMailed(t *testing.T) {
	for _, c := range []struct {
		name  string
		links int // links of each page to the other partition
		lease time.Duration
		want  int
	}{
		{"asleep", 10, 0, 1},
		{"at work", 10, time.Hour, 0},
		{"a lease that ran out", 10, -time.Second, 1},
		{"little mail", 2, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			cr := newCrawl(2)
			here, there := ofPartition(t, cr, 0), ofPartition(t, cr, 1)
			w := newWorld(t)
			w.web = site(t, here, pages, func(i int) []string {
				links := all(here)
				for n := range c.links {
					links = append(links, fmt.Sprintf("https://%s/%d-%d", there, i, n))
				}
				return links
			})
			cr = w.begin(cr, all(here)[0])
			w.queues = map[string][]actor.Message{naming.MailboxQueue(0): w.queues[naming.MailboxQueue(0)]}
			if c.lease != 0 {
				head := blobschema.Head{Partition: 1, Fence: 1, Owner: "other/1", LeaseUntil: virtual.Epoch.Add(w.Mono + c.lease)}
				w.Table[naming.HeadKey(cr.ID, 1)] = actor.Record{Value: actor.Encode(head), Revision: -1, Found: true}
			}
			w.wakes = nil
			w.step(inCloud(cr, 0), nil)
			got := 0
			for _, k := range w.wakes {
				if k.p == 1 {
					got++
				}
			}
			if got != c.want {
				t.Errorf("%d wakes, not %d: %v", got, c.want, w.wakes)
			}
		})
	}
}

// TestColdTicks checks that runs of unrelated processes wake a partition once, and again after a step has answered or the
// wake seems lost, later each time. They see the end, and then read only a few records until something new comes.
func TestColdTicks(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	c.Settings.Delay = 30 * time.Second
	w := newWorld(t)
	var requests []actor.Request
	w.web = changing(host, &requests)
	b := NewBegin(c, Seeds(urls(t, all(host)[:2]...)), nil)
	if _, err := w.run(b); err != nil {
		t.Fatal(err)
	}
	c, _, _ = b.Crawl()
	for i, want := range []int{1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0} { // lost again and again: after one minute, two, four
		if rep, _ := w.coldTick(c.ID); len(rep.Woken) != want {
			t.Errorf("tick %d wakes %v", i, rep.Woken)
		}
		w.Mono += 31 * time.Second
	}
	w.step(inCloud(c, 0), nil)
	w.Mono += time.Minute
	if rep, _ := w.coldTick(c.ID); len(rep.Woken) != 1 {
		t.Error("a partition that is due is not woken")
	}
	w.step(inCloud(c, 0), nil)
	if rep, _ := w.coldTick(c.ID); !rep.Quiet || rep.Finished {
		t.Errorf("after the last page: %+v", rep)
	}
	if rep, _ := w.coldTick(c.ID); !rep.Finished || rep.Idle {
		t.Errorf("the second look: %+v", rep)
	}
	idle := map[string]int{"ReadRecords": 1}
	if rep, counts := w.coldTick(c.ID); !rep.Idle || !rep.Finished || cmp.Diff(idle, counts) != "" {
		t.Errorf("an idle tick: idle %v, finished %v, %v", rep.Idle, rep.Finished, counts)
	}
	w.Mono += time.Minute
	w.request(c.ID, blobschema.Request{ID: "r", Recrawl: all(host)[:1]})
	if rep, _ := w.coldTick(c.ID); rep.Idle || len(rep.Woken) != 1 {
		t.Errorf("with a request on its way: %+v", rep)
	}
	w.step(inCloud(c, 0), nil)
	w.coldTick(c.ID)
	w.coldTick(c.ID)
	if rep, _ := w.coldTick(c.ID); !rep.Idle {
		t.Errorf("when it is answered: %+v", rep)
	}
}

// TestCommand checks that a stopped crawl does nothing, that a paused one applies its mail, and that both resume where they
// were.
func TestCommand(t *testing.T) {
	order := func(w *world, crawl string, o Order) bool {
		t.Helper()
		c := NewCommand(crawl, o)
		if _, err := w.run(c); err != nil {
			t.Fatal(err)
		}
		return c.Changed()
	}
	for _, o := range []Order{OrderPause, OrderStop} {
		t.Run(string(o), func(t *testing.T) {
			c, host := newCrawl(1), "www.example"
			w := newWorld(t)
			w.web = site(t, host, 5, func(int) []string { return all(host)[:5] })
			b := NewBegin(c, Seeds(urls(t, all(host)[0])), nil)
			if _, err := w.run(b); err != nil {
				t.Fatal(err)
			}
			c, _, _ = b.Crawl()
			if !order(w, c.ID, o) || order(w, c.ID, o) {
				t.Error("an order is news once")
			}
			rep, _ := w.coldTick(c.ID)
			if merges := len(rep.Woken) == 1; merges != (o == OrderPause) {
				t.Errorf("wakes %v", rep.Woken)
			}
			if o == OrderPause {
				if _, counts := w.step(inCloud(c, 0), nil); counts["Fetch"] != 0 || w.head(c.ID, 0).Totals.Pending != 1 {
					t.Errorf("asks for %d URLs; %+v", counts["Fetch"], w.head(c.ID, 0).Totals)
				}
			}
			w.coldTick(c.ID)
			if rep, _ := w.coldTick(c.ID); !rep.Idle {
				t.Errorf("it is not idle: %+v", rep)
			}
			if !order(w, c.ID, OrderResume) {
				t.Error("a resume must be reported")
			}
			if rep, _ := w.coldTick(c.ID); len(rep.Woken) != 1 {
				t.Errorf("wakes %v when it goes on", rep.Woken)
			}
			w.step(inCloud(c, 0), nil)
			checkPages(t, w, c.ID, 0, all(host)[:5])
		})
	}
	w := newWorld(t)
	if _, err := w.run(NewCommand("none", OrderStop)); err == nil {
		t.Error("an order to no crawl")
	}
}

// TestLists checks that a list of URLs in the bucket is a request, and that an invalid list becomes a dead letter.
func TestLists(t *testing.T) {
	notify := func(bucket, name string, size int) []byte {
		return fmt.Appendf(nil, `{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":%q},"object":{"key":%q,"size":%d,"sequencer":"1"}}}]}`, bucket, name, size)
	}
	for _, c := range []struct {
		name  string
		body  []byte
		list  string // content of lists/...
		asked int
		dead  int64
	}{
		{"to recrawl", notify("b", "lists/recrawl/a", 10), "https://www.example/0\r\n# not this\n\n https://www.example/1 or so\n", 2, 0},
		{"seeds", notify("b", "lists/seeds/a", 10), "https://www.example/7", 1, 0},
		{"of one byte, as it is told", notify("b", "lists/seeds/a", 1), "https://www.example/7", 1, 0},
		{"of one bad URL", notify("b", "lists/seeds/a", 10), "https://www.example/7\n:", 1, 1},
		{"empty", notify("b", "lists/seeds/a", 0), "", 0, 0},
		{"of another bucket", notify("c", "lists/seeds/a", 10), "https://www.example/7", 0, 1},
		{"in another folder", notify("b", "test/seeds/a", 10), "", 0, 1},
		{"gone", notify("b", "lists/seeds/gone", 10), "", 0, 1},
		{"too large", notify("b", "lists/seeds/a", 1<<30), "", 0, 1},
		{"too long", notify("b", "lists/seeds/a", 10), strings.Repeat("https://www.example/7\n", blobschema.MaxListURLs+1), 0, 1},
		{"a folder", notify("b", "lists/seeds/", 0), "", 0, 0},
		{"to try", []byte(`{"Event":"s3:TestEvent"}`), "", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			cr, host := newCrawl(1), "www.example"
			w := newWorld(t)
			var requests []actor.Request
			w.web = changing(host, &requests)
			cr = w.begin(cr, all(host)[0])
			w.step(StepConfig{Crawl: cr, Process: "p"}, nil)
			requests = nil
			w.Objects["lists/recrawl/a"], w.Objects["lists/seeds/a"] = []byte(c.list), []byte(c.list)
			for range 2 { // delivered again it changes nothing
				if _, err := w.run(NewIntake(IntakeConfig{Crawl: cr.ID, Bucket: "b"}, []actor.Message{{ID: "m", Body: c.body}})); err != nil {
					t.Fatal(err)
				}
				w.step(StepConfig{Crawl: cr, Process: "p"}, nil)
			}
			if len(requests) != c.asked {
				t.Errorf("requested %d URLs, not %d", len(requests), c.asked)
			}
			var r blobschema.Requests
			if len(w.Table[naming.RequestsKey(cr.ID)].Value) > 0 {
				w.record(naming.RequestsKey(cr.ID), &r)
			}
			if r.Dead != 2*c.dead {
				t.Errorf("%d put aside, not %d", r.Dead, 2*c.dead)
			}
		})
	}
}

// TestRequestedSoon checks that a requested answer is committed sooner than others, in the middle of a busy step.
func TestRequestedSoon(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	w := newWorld(t)
	var requests []actor.Request
	w.web = changing(host, &requests)
	c = w.begin(c, all(host)[0])
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	var seeds []string
	for i := 1; i < pages; i++ {
		seeds = append(seeds, all(host)[i])
	}
	w.request(c.ID, blobschema.Request{ID: "s", Seeds: seeds})
	w.request(c.ID, blobschema.Request{ID: "r", Recrawl: all(host)[:1]})
	requests = nil
	began := w.Mono
	cfg := StepConfig{Crawl: c, Process: "p", CommitEvery: time.Minute}
	w.step(cfg, nil)
	if len(requests) == 0 || requests[0].URL.String() != all(host)[0] {
		t.Fatalf("asks for %v first", requests[0].URL)
	}
	for _, com := range w.commits(c.ID, 0) {
		list, err := com.Pages()
		if err != nil {
			t.Fatal(err)
		}
		man, err := com.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, pg := range list {
			if pg.Generation == 1 {
				if late := man.Time.Sub(virtual.Epoch.Add(began)); late > 6*time.Second {
					t.Errorf("it is committed after %v", late)
				}
				return
			}
		}
	}
	t.Error("it is not stored")
}

// TestNoWakeNeeded checks that a step that ends wakes its partition when it is due, unless the coordinator does so or no
// wake is wanted.
func TestNoWakeNeeded(t *testing.T) {
	for _, k := range []struct {
		name  string
		delay time.Duration
		set   func(w *world, cfg *StepConfig)
		wakes int
	}{
		{"due as soon as a queue can tell", 14 * time.Minute, nil, 1},
		{"due later: the tick does it", 16 * time.Minute, nil, 0},
		{"the steps of one process", 10 * time.Second, func(_ *world, cfg *StepConfig) { cfg.SendsWakes = false }, 0},
		{"a pause", 10 * time.Second, func(w *world, cfg *StepConfig) { w.order(cfg.Crawl.ID, OrderPause) }, 0},
		{"a stop", 10 * time.Second, func(w *world, cfg *StepConfig) { w.order(cfg.Crawl.ID, OrderStop) }, 0},
		{"another wake is on its way", 10 * time.Second, func(w *world, cfg *StepConfig) {
			h := w.head(cfg.Crawl.ID, 0)
			h.WakeAt = w.in(8 * time.Second)
			w.writeRecord(naming.HeadKey(cfg.Crawl.ID, 0), h)
		}, 0},
		{"another wake is late", 10 * time.Second, func(w *world, cfg *StepConfig) {
			h := w.head(cfg.Crawl.ID, 0)
			h.WakeAt = w.in(time.Minute)
			w.writeRecord(naming.HeadKey(cfg.Crawl.ID, 0), h)
		}, 1},
	} {
		t.Run(k.name, func(t *testing.T) {
			c, host := newCrawl(1), "www.example"
			c.Settings.Delay = k.delay
			w := newWorld(t)
			w.web = site(t, host, 3, func(int) []string { return all(host)[:3] })
			c = w.begin(c, all(host)[0])
			w.step(StepConfig{Crawl: c, Process: "p", Deadline: 5 * time.Second}, nil) // the first page
			cfg := inCloud(c, 0)
			if k.set != nil {
				k.set(w, &cfg)
			}
			w.wakes = nil
			w.step(cfg, nil)
			if len(w.wakes) != k.wakes {
				t.Errorf("wakes %v", w.wakes)
			}
			for _, s := range w.wakes {
				if s.delay > k.delay || s.delay < k.delay-6*time.Second {
					t.Errorf("a wake in %v", s.delay)
				}
			}
			if h := w.head(c.ID, 0); h.Due.IsZero() || h.Published != h.Seq {
				t.Errorf("the head is %+v", h)
			}
		})
	}
}

// TestWakesOnceInAWhile checks that a partition that gets many links repeatedly is woken once, until its step has had time
// to begin.
func TestWakesOnceInAWhile(t *testing.T) {
	c := newCrawl(3)
	host, there := ofPartition(t, c, 0), ofPartition(t, c, 1)
	w := newWorld(t)
	w.web = site(t, host, pages, func(i int) []string { // half of what justifies a wake, each second
		links := all(host)
		for n := range wakeURLs / 2 {
			links = append(links, fmt.Sprintf("https://%s/%d-%d", there, i, n))
		}
		return links
	})
	c = w.begin(c, all(host)[0])
	cfg := inCloud(c, 0)
	cfg.MailEvery, cfg.CommitEvery, cfg.Deadline = time.Second, time.Second, 45*time.Second
	w.wakes = nil
	w.step(cfg, nil)
	n := 0
	for _, k := range w.wakes {
		if k.p == 2 {
			t.Errorf("a partition without mail is woken")
		}
		if k.p == 1 {
			n++
		}
	}
	if n != 1 {
		t.Errorf("woken %d times in 45 seconds: %v", n, w.wakes)
	}
}

// TestYoungCrawls checks that a young crawl commits and mails often if steps do not know who starves, and in the end as
// often as configured.
func TestYoungCrawls(t *testing.T) {
	c := newCrawl(1)
	for _, k := range []struct {
		age   time.Duration
		cloud bool
		want  time.Duration
	}{{0, true, youngCommit}, {20 * time.Second, true, youngCommit}, {time.Minute, true, 15 * time.Second}, {time.Hour, true, time.Minute}, {0, false, time.Minute}} {
		cfg := StepConfig{Crawl: c, SendsWakes: k.cloud}
		if got := cfg.young(time.Minute, c.Created.Add(k.age)); got != k.want {
			t.Errorf("at the age of %v it commits and mails every %v, not every %v", k.age, got, k.want)
		}
	}
}

// TestWorklessChainEnds checks that steps that get no work done stop waking their partition after a few, and wake it again
// once they work.
func TestWorklessChainEnds(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	c.Settings.Delay = 10 * time.Second
	w := newWorld(t)
	w.web = site(t, host, 3, func(int) []string { return all(host)[:3] })
	c = w.begin(c, all(host)[0])
	w.step(StepConfig{Crawl: c, Process: "p", Deadline: 5 * time.Second}, nil)
	good := w.web
	w.web = func(r actor.Request) *actor.Outcome { return actor.Aborted(r, virtual.Epoch.Add(w.Mono)) } // a fetcher that never answers
	next := func() int {
		w.wakes = nil
		w.Mono += c.Settings.Delay
		w.step(inCloud(c, 0), nil)
		return len(w.wakes)
	}
	chain := 0
	for chain < 100 && next() == 1 {
		chain++
	}
	if chain != maxWorkless-1 {
		t.Errorf("%d steps without work wake the next one, not %d", chain, maxWorkless-1)
	}
	w.web = good
	if next() != 1 || w.head(c.ID, 0).Workless != 0 {
		t.Error("a step that fetches a page does not wake the next one")
	}
}

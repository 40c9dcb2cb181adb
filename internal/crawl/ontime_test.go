package crawl

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/virtual"
)

// TestOnTime checks that a step does what is due by time alone on time, even if nothing else happens, and is not called
// more often than that.
func TestOnTime(t *testing.T) {
	const delay = 6500 * time.Millisecond // between two pages
	for _, k := range []struct {
		name    string
		cfg     StepConfig
		demand  Demand // of the other partition
		recrawl bool
		due     time.Duration // due time of a head, after the step has begun
	}{
		{"a commit", StepConfig{CommitEvery: 7 * time.Second}, NoDemand, false, 7 * time.Second},
		{"an answer that somebody requested", StepConfig{}, NoDemand, true, 5 * time.Second},
		{"a commit for whom has little to do", StepConfig{CommitMin: 2 * time.Second}, LowDemand, false, 2 * time.Second},
		{"the lease", StepConfig{Lease: 9 * time.Second}, NoDemand, false, 3 * time.Second},
		{"the deadline", StepConfig{Deadline: 10 * time.Second}, NoDemand, false, 10 * time.Second},
		{"the end", StepConfig{Linger: 2 * time.Second}, NoDemand, false, 2*delay + 2*time.Second},
	} {
		t.Run(k.name, func(t *testing.T) {
			c, w := newCrawl(2), newWorld(t)
			c.Settings.Delay = delay
			here, there := ofPartition(t, c, 0), ofPartition(t, c, 1)
			seed := "https://" + here + "/0"
			w.serve(answers{seed: linking(t, actor.LinkAnchor, "https://"+here+"/1", "https://"+here+"/2", "https://"+there+"/")})
			c = w.begin(c, seed)
			if k.recrawl {
				w.request(c.ID, blobschema.Request{ID: "r", Recrawl: []string{seed}})
			}
			began, heads := w.Mono, []time.Duration(nil)
			w.fault = func(e actor.Effect) (before, after error) {
				if wr, ok := e.(actor.WriteRecord); ok && wr.Key == naming.HeadKey(c.ID, 0) {
					heads = append(heads, w.Mono-began)
				}
				return nil, nil
			}
			k.cfg.Crawl, k.cfg.Process = c, "p"
			s := stepOf(t, k.cfg, nil)
			counts, err := w.run(prompted{s, func() Signal { return Demands{[]Demand{1: k.demand}} }})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(heads, func(at time.Duration) bool { return at >= k.due && at < k.due+400*time.Millisecond }) {
				t.Errorf("heads at %v, one is due at %v", heads, k.due)
			}
			if n := counts["Sleep"]; n > 30 {
				t.Errorf("called %d times", n)
			}
		})
	}
}

// TestFiguresGoOn checks that costs and waiting times add up from step to step, and that a step reports only its own pages.
func TestFiguresGoOn(t *testing.T) {
	c, w := newCrawl(1), newWorld(t)
	w.web = site(t, "www.example", pages, func(int) []string { return nil })
	c = w.begin(c, all("www.example")...)
	cfg := StepConfig{Crawl: c, Process: "p", Deadline: 20 * time.Second, CommitEvery: 5 * time.Second}
	cfg.Spent = func() blobschema.Calls { return blobschema.Calls{KVWriteUnits: 3} }
	w.fault = func(e actor.Effect) (before, after error) {
		if wr, ok := e.(actor.WriteRecord); ok && strings.HasPrefix(wr.Key, naming.HeadKey(c.ID, 0)) {
			h, err := actor.Decode[blobschema.Head](actor.Record{Found: true, Value: wr.Value}, "head")
			if err != nil {
				t.Fatal(err)
			}
			if (h.Owner == "") != h.LeaseUntil.IsZero() {
				t.Errorf("%q has the lease until %v", h.Owner, h.LeaseUntil)
			}
			if h.Totals.Pages > 0 && h.Calls.KVWriteUnits == 0 {
				t.Errorf("a head of %d pages says nothing of their cost", h.Totals.Pages)
			}
		}
		return nil, nil
	}
	sum := int64(0)
	for i := range int64(3) {
		s, _ := w.step(cfg, nil)
		sum += s.Pages()
		h := w.head(c.ID, 0)
		if h.Calls.KVWriteUnits != 3*(i+1) || h.Totals.Pages != sum || s.Pages() < 9 {
			t.Errorf("step %d: %d pages of %d, %+v", i, s.Pages(), h.Totals.Pages, h.Calls)
		}
		w.Mono += c.Settings.Delay // so that there is something to do at once
		if wait := time.Duration(h.Totals.WaitMillis) * time.Millisecond; wait < time.Duration(sum-5)*c.Settings.Delay*8/10 || wait > w.Mono {
			t.Errorf("step %d: hosts waited %v of %v", i, wait, w.Mono)
		}
	}
}

// TestLargeDomains checks that the domains of which a partition knows many URLs are in its head, also from cold steps, and
// that a capped domain grows no more.
func TestLargeDomains(t *testing.T) {
	c, w := newCrawl(1), newWorld(t)
	c.Settings.MaxDomainURLs = 40
	var seeds []string
	for i := range 12 {
		seeds = append(seeds, "https://h"+string(rune('a'+i))+".large.example/")
	}
	seeds = append(seeds, "https://small.example/")
	w.serve(answers{"https://other.example/": linking(t, actor.LinkAnchor, "https://too-many.large.example/", "https://other.example/1")})
	c = w.begin(c, seeds...)
	cfg := StepConfig{Crawl: c, Process: "p"}
	check := func(large int64, capped int64) {
		t.Helper()
		w.step(cfg, nil)
		h := w.head(c.ID, 0)
		if len(h.Domains) != 1 || h.Domains["large.example"] != large || h.Totals.Capped != capped {
			t.Errorf("domains %v, %d URLs left out", h.Domains, h.Totals.Capped)
		}
	}
	check(12, 0)
	w.request(c.ID, blobschema.Request{ID: "1", Seeds: []string{"https://more.large.example/"}})
	check(13, 0)
	w.Table[naming.DesiredKey(c.ID)] = actor.Record{Found: true, Revision: -1, Value: actor.Encode(blobschema.DesiredState{Capped: []string{"large.example"}})}
	w.request(c.ID, blobschema.Request{ID: "2", Seeds: []string{"https://other.example/"}})
	check(13, 1)
}

// TestFloorMoves checks that the hosts of a slot from a partition with a crashed step rest for a pace at the receiver too
// (I9).
func TestFloorMoves(t *testing.T) {
	c, w := newCrawl(2), newWorld(t)
	c.Settings.Delay = time.Minute
	host := ofPartition(t, c, 0)
	seeds := []string{"https://" + host + "/0", "https://" + host + "/1"}
	requests := w.serve(nil)
	c = w.begin(c, seeds...)
	w.step(StepConfig{Crawl: c, Process: "a", Deadline: 5 * time.Second}, nil)
	h := w.head(c.ID, 0)
	w.Mono += 10 * time.Minute
	h.Owner, h.LeaseUntil, h.Fence = "b/9", virtual.Epoch.Add(w.Mono), h.Fence+1 // a step that crashed just now
	w.says(c, 0, h)
	crashed := w.Mono
	w.give(c.ID, 1, hashOf(t, c).Slot(host))
	w.step(StepConfig{Crawl: c, Process: "c", Deadline: 5 * time.Second}, nil)
	n := len(*requests)
	at := time.Duration(0)
	serve := w.web
	w.web = func(r actor.Request) *actor.Outcome {
		if at == 0 {
			at = w.Mono - fetchTime - crashed
		}
		return serve(r)
	}
	w.step(StepConfig{Crawl: c, Partition: 1, Process: "d"}, nil)
	if len(*requests) == n || at < c.Settings.Delay || at > 2*c.Settings.Delay {
		t.Errorf("%d requests of the receiver, the first %v after the crash", len(*requests)-n, at)
	}
}

// TestWaitsForNoGiver checks that a request for a slot that another partition must still give keeps no step running, and is
// made once when the slot has arrived.
func TestWaitsForNoGiver(t *testing.T) {
	c, w := newCrawl(2), newWorld(t)
	host := ofPartition(t, c, 0)
	requests := w.serve(nil)
	c = w.begin(c, "https://"+host+"/0", "https://"+host+"/1")
	cfg := StepConfig{Crawl: c, Process: "p"}
	w.crawlOn(cfg)
	w.give(c.ID, 1, hashOf(t, cfg.Crawl).Slot(host))
	*requests = nil
	w.request(c.ID, blobschema.Request{ID: "r", Recrawl: []string{"https://" + host + "/0"}})
	m := w.queues[naming.MailboxQueue(1)]
	w.queues[naming.MailboxQueue(1)] = append(m, m...) // delivered again while it waits
	began := w.Mono
	cfg.Partition = 1
	w.step(cfg, nil)
	if took := w.Mono - began; took > 10*time.Second || len(*requests) > 0 || len(w.mail) == 0 {
		t.Errorf("it waited for %v, requested %v", took, depths(*requests))
	}
	w.redeliver()
	w.crawlOn(StepConfig{Crawl: c, Process: "p"})
	if got := w.records(c.ID, 1, "https://"+host+"/0"); len(got) != 1 || got[0].Generation != 1 {
		t.Errorf("requested %v: %+v", depths(*requests), got)
	}
}

// TestQueueFailsForAWhile checks that a queue failure of some seconds costs only that time.
func TestQueueFailsForAWhile(t *testing.T) {
	c, w := newCrawl(2), newWorld(t)
	here, there := ofPartition(t, c, 0), ofPartition(t, c, 1)
	w.web = site(t, here, pages, func(i int) []string { return append(all(here), all(there)[i]) })
	c = w.begin(c, all(here)[0])
	receives, sends := 0, 0
	w.fault = func(e actor.Effect) (before, after error) {
		switch e := e.(type) {
		case actor.Receive:
			if receives++; receives < 4 {
				return errLost, nil
			}
		case actor.Send:
			if sends++; e.Queue == naming.MailboxQueue(1) && sends < 5 {
				return errLost, nil
			}
		}
		return nil, nil
	}
	w.step(StepConfig{Crawl: c, Process: "p", MailEvery: 5 * time.Second, CommitEvery: 5 * time.Second, Linger: 10 * time.Second}, nil)
	checkPages(t, w, c.ID, 0, all(here))
	if h := w.head(c.ID, 0); h.Published != h.Seq || receives < 6 || receives > 12 || len(w.mailed(1)) != pages {
		t.Errorf("received %d times; all up to %d of %d are sent; %d links", receives, h.Published, h.Seq, len(w.mailed(1)))
	}
}

// TestPartBounds checks that several parts fit into memory together.
func TestPartBounds(t *testing.T) {
	for resident, want := range map[int]int{0: 1 << 17, 1: 1, 4: 1, 8: 2, 4000: 1000, 1 << 30: 1 << 17} {
		if got := (StepConfig{MaxResident: resident}).withDefaults().MaxPart; got != want {
			t.Errorf("of %d in memory: parts of %d, want %d", resident, got, want)
		}
	}
	if got := (StepConfig{MaxResident: 8, MaxPart: 100}).withDefaults().MaxPart; got != 100 {
		t.Errorf("as wanted: %d", got)
	}
}

// TestNoSuchCrawl checks that no step is created for an invalid record.
func TestNoSuchCrawl(t *testing.T) {
	for name, change := range map[string]func(*blobschema.Crawl){
		"no key":       func(c *blobschema.Crawl) { c.HashKey = nil },
		"a long key":   func(c *blobschema.Crawl) { c.HashKey = make([]byte, 17) },
		"what policy?": func(c *blobschema.Crawl) { c.Settings.Policy = "none" },
	} {
		c := newCrawl(1)
		change(&c)
		if _, err := NewStep(StepConfig{Crawl: c}, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestDue checks that a partition is due when its first slot is, and at once if something is unexamined.
func TestDue(t *testing.T) {
	at := func(secs ...int64) (out []blobschema.SlotSummary) {
		for _, s := range secs {
			out = append(out, blobschema.SlotSummary{Due: 1000 * s})
		}
		return out
	}
	unexamined := at(20, 0, 10)
	unexamined[1].Unexamined = 1
	for _, k := range []struct {
		slots []blobschema.SlotSummary
		want  time.Time
	}{
		{nil, time.Time{}}, {at(0, 0), time.Time{}}, {at(30, 10, 20), time.Unix(10, 0)}, {at(0, 20, 0), time.Unix(20, 0)}, {unexamined, time.UnixMilli(1)},
	} {
		if got := due(k.slots); !got.Equal(k.want) {
			t.Errorf("%v: due at %v, want %v", k.slots, got, k.want)
		}
	}
}

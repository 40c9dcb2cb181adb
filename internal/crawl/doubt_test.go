package crawl

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/partition"
)

var errLost = errors.New("the answer was lost")

// once makes the first write of a record succeed and return an error.
func once(key string, with error) func(actor.Effect) (before, after error) {
	done := false
	return func(e actor.Effect) (before, after error) {
		if wr, ok := e.(actor.WriteRecord); ok && wr.Key == key && !done {
			done = true
			return nil, with
		}
		return nil, nil
	}
}

// TestInDoubt checks that an actor recognises its own write that was stored despite an error, also if the retry is a
// conflict: clients of clouds retry by themselves.
func TestInDoubt(t *testing.T) {
	const host = "www.example"
	limited := func(pages int64) func(*blobschema.Crawl) error {
		return func(c *blobschema.Crawl) error { c.Settings.MaxPages = pages; return nil }
	}
	for _, with := range []error{errLost, actor.ErrConflict} {
		for _, key := range []string{naming.GrantsKey("test"), naming.CrawlKey("test"), naming.ActiveKey} {
			t.Run(fmt.Sprintf("begin/%s/%v", key, with), func(t *testing.T) {
				w := newWorld(t)
				c := newCrawl(2)
				c.Settings.MaxPages = 100
				w.fault = once(key, with)
				b := NewBegin(c, Seeds(urls(t, all(host)...)), nil)
				if _, err := w.run(b); err != nil {
					t.Fatal(err)
				}
				var now active
				w.record(naming.ActiveKey, &now)
				if _, created, added := b.Crawl(); !created || added != pages || now.Crawl != c.ID {
					t.Errorf("created %v, %d seeds, active %q", created, added, now.Crawl)
				}
			})
		}
		for _, key := range []string{naming.GrantsKey("test"), naming.CrawlKey("test"), naming.DesiredKey("test")} {
			t.Run(fmt.Sprintf("change/%s/%v", key, with), func(t *testing.T) {
				w := newWorld(t)
				c := newCrawl(2)
				c.Settings.MaxPages = 100
				w.begin(c, all(host)[0])
				w.fault = once(key, with)
				b := NewBegin(blobschema.Crawl{}, Seeds(urls(t, all(host)[:3]...)), limited(200))
				if _, err := w.run(b); err != nil {
					t.Fatal(err)
				}
				var g blobschema.Grants
				var desired blobschema.DesiredState
				w.record(naming.GrantsKey("test"), &g)
				w.record(naming.DesiredKey("test"), &desired)
				if _, _, added := b.Crawl(); added != 2 || g.Limit != 200 || desired.Version != 1 {
					t.Errorf("%d seeds are new, the limit is %d, the desired state %+v", added, g.Limit, desired)
				}
			})
		}
		t.Run(fmt.Sprintf("requests/%v", with), func(t *testing.T) {
			w := newWorld(t)
			c := w.begin(newCrawl(2), all(host)[0])
			w.fault = once(naming.RequestsKey("test"), with)
			spent := func() blobschema.Calls { return blobschema.Calls{BlobPuts: 1} }
			in := NewIntake(IntakeConfig{Crawl: c.ID, Spent: spent}, []actor.Message{{ID: "m", Body: []byte(`{"recrawl":["https://www.example/1","no","nor this"]}`)}})
			if _, err := w.run(in); err != nil {
				t.Fatal(err)
			}
			var r blobschema.Requests
			w.record(naming.RequestsKey("test"), &r)
			if len(r.Outbox) != 1 || r.Dead != 2 || r.Calls.BlobPuts != 1 {
				t.Errorf("%+v", r)
			}
		})
		t.Run(fmt.Sprintf("tick/%v", with), func(t *testing.T) {
			w := newWorld(t)
			c := w.begin(newCrawl(1), all(host)[0])
			w.fault = once(naming.TickKey("test"), with)
			k := NewTick(TickConfig{Crawl: c.ID, Spent: func() blobschema.Calls { return blobschema.Calls{Functions: 1} }}, nil)
			if _, err := w.run(k); err != nil {
				t.Fatal(err)
			}
			var r blobschema.TickRecord
			w.record(naming.TickKey("test"), &r)
			if len(r.Woken) != 1 || r.Calls.Functions != 1 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestChangeGoesOn checks that an actor that dies between writing the crawl record and the limit leaves a limit that the
// next Begin passes on.
func TestChangeGoesOn(t *testing.T) {
	w := newWorld(t)
	c := newCrawl(1)
	c.Settings.MaxPages = 1
	w.begin(c, "https://www.example/0")
	c.Version, c.Settings.MaxPages = wire.Version, 2
	w.Table[naming.CrawlKey("test")] = actor.Record{Found: true, Value: actor.Encode(c), Revision: -1}
	if _, err := w.run(NewBegin(blobschema.Crawl{}, nil, func(*blobschema.Crawl) error { return nil })); err != nil {
		t.Fatal(err)
	}
	var g blobschema.Grants
	w.record(naming.GrantsKey("test"), &g)
	if g.Limit != 2 {
		t.Errorf("the limit is %d", g.Limit)
	}
}

// TestGivesUp checks that an actor ends if a record cannot be written, for example one too large for its table.
func TestGivesUp(t *testing.T) {
	const host = "www.example"
	for key, begin := range map[string]func(*world) actor.Actor{
		naming.TickKey("test"):    func(*world) actor.Actor { return NewTick(TickConfig{Crawl: "test"}, nil) },
		naming.CrawlKey("test"):   func(*world) actor.Actor { return NewBegin(blobschema.Crawl{}, Seeds(urls(t, all(host)[:3]...)), nil) },
		naming.DesiredKey("test"): func(*world) actor.Actor { return NewCommand("test", OrderStop) },
		naming.ActiveKey: func(*world) actor.Actor {
			return NewAnother(blobschema.Crawl{ID: "next", Slots: 1, Partitions: 1}, Seeds(urls(t, all(host)[0])), false)
		},
		naming.RequestsKey("test"): func(*world) actor.Actor {
			return NewIntake(IntakeConfig{Crawl: "test"}, []actor.Message{{ID: "m", Body: []byte(`{"recrawl":["https://www.example/1"]}`)}})
		},
	} {
		t.Run(key, func(t *testing.T) {
			w := newWorld(t)
			w.begin(newCrawl(1), all(host)[0])
			if key == naming.ActiveKey {
				if _, err := w.run(NewCommand("test", OrderStop)); err != nil {
					t.Fatal(err)
				}
			}
			w.fault = func(e actor.Effect) (before, after error) {
				if wr, ok := e.(actor.WriteRecord); ok && wr.Key == key {
					return errLost, nil
				}
				return nil, nil
			}
			began := w.Mono
			if _, err := w.run(begin(w)); !errors.Is(err, errLost) {
				t.Fatalf("%v", err)
			}
			if took := w.Mono - began; took < time.Second || took > time.Minute {
				t.Errorf("it gave up after %v", took)
			}
		})
	}
}

// TestLongSeeds checks that seeds that do not compress still make messages that every queue accepts.
func TestLongSeeds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var seeds []string
	for range 2 * seedsPerBatch {
		var b strings.Builder
		for b.Len() < 1500 {
			fmt.Fprintf(&b, "%016x", rng.Uint64())
		}
		seeds = append(seeds, "https://www.example/"+b.String())
	}
	w := newWorld(t)
	sent := 0
	w.fault = func(e actor.Effect) (before, after error) {
		if s, ok := e.(actor.Send); ok && s.Queue == naming.MailboxQueue(0) {
			for _, b := range s.Bodies {
				if len(b) > blobschema.MaxMailBytes {
					t.Errorf("a mail of %d bytes", len(b))
				}
				m, err := blobschema.DecodeMail(b)
				if err != nil {
					t.Error(err)
				}
				sent += len(m.URLs)
			}
		}
		return nil, nil
	}
	c := w.begin(newCrawl(1), seeds...)
	if sent != len(seeds) || len(c.SeedBatches) < 3 {
		t.Errorf("%d of %d seeds in %d batches", sent, len(seeds), len(c.SeedBatches))
	}
}

// TestSeedsInParts checks that a coordinator run without time for all seeds leaves the rest to the next.
func TestSeedsInParts(t *testing.T) {
	w := newWorld(t)
	var seeds []string
	for i := range 25*seedsPerBatch + 1 {
		seeds = append(seeds, fmt.Sprintf("https://www%d.example/", i))
	}
	if _, err := w.run(NewBegin(newCrawl(2), Seeds(urls(t, seeds...)), nil)); err != nil {
		t.Fatal(err)
	}
	var published []int
	for len(published) < 4 {
		n := 0
		w.fault = func(e actor.Effect) (before, after error) {
			if s, ok := e.(actor.Send); ok && s.Queue != naming.WakesQueue {
				if n++; n > 2 {
					return errLost, nil
				}
			}
			return nil, nil
		}
		_, err := w.run(NewTick(TickConfig{Crawl: "test"}, nil))
		var c blobschema.Crawl
		w.record(naming.CrawlKey("test"), &c)
		published = append(published, c.Published)
		if err == nil {
			break
		}
	}
	if want := []int{10, 20, 26}; !slices.Equal(published, want) {
		t.Errorf("published %v, want %v", published, want)
	}
	got := 0
	for p := range 2 {
		got += len(w.queues[naming.MailboxQueue(partition.ID(p))])
	}
	if got != 2*26 {
		t.Errorf("%d mails", got)
	}
}

// TestHostsInParts checks that copying the estimates of many commits takes several runs, and that the crawl counts as idle
// only afterwards.
func TestHostsInParts(t *testing.T) {
	const host = "www.example"
	w := newWorld(t)
	w.web = site(t, host, pages, func(int) []string { return all(host) })
	c := w.begin(newCrawl(1), all(host)[0])
	cfg := inCloud(c, 0)
	cfg.SleepMax, cfg.CommitPages = time.Minute, 2
	w.step(cfg, nil)
	if seq := w.head("test", 0).Seq; seq < 15 {
		t.Fatalf("only %d commits", seq)
	}
	w.fault = func(e actor.Effect) (before, after error) {
		if _, ok := e.(actor.GetObject); ok {
			w.Mono += 3 * time.Second
		}
		return nil, nil
	}
	var copied []uint64
	for range 20 {
		began := w.Mono
		rep, _ := w.coldTick(c.ID)
		if rep.Idle {
			break
		}
		if took := w.Mono - began; took > copyFor+10*time.Second {
			t.Errorf("a tick took %v", took)
		}
		var r blobschema.TickRecord
		w.record(naming.TickKey("test"), &r)
		copied = append(copied, r.Copied[0])
		w.Mono += time.Minute
	}
	if n := len(copied); n < 3 || n > 10 || copied[n-1] != w.head("test", 0).Seq {
		t.Errorf("copied up to %v of %d", copied, w.head("test", 0).Seq)
	}
}

// TestResendBusy checks that mail to a partition with a running step is resent too, if it was committed long ago.
func TestResendBusy(t *testing.T) {
	for _, leased := range []bool{true, false} {
		w, s := newScene(t)
		com := blobschema.Commit{}
		for seq, ago := range []time.Duration{time.Hour, 20 * time.Minute, 5 * time.Minute} {
			n := uint64(seq + 1)
			com.Manifest = blobschema.Manifest{Partition: 0, Fence: 4, Seq: n, Epoch: 1, Time: w.in(-ago)}
			if n > 1 {
				com.Manifest.Commits = []blobschema.CommitRange{{Fence: 4, From: 1, To: n - 1}}
			}
			com.Outbox = []blobschema.OutMail{{To: 1, Number: n, Body: fmt.Append(nil, n)}}
			s.heads[0].Commit = w.stored(s.crawl, com)
		}
		s.heads[0].Sent = []uint64{0, 3}
		marks := map[partition.ID]blobschema.Marks{partition.Intake: {Low: 1}, 0: {Low: 1}}
		s.heads[1].Commit = w.stored(s.crawl, blobschema.Commit{Manifest: blobschema.Manifest{Partition: 1, Fence: 4, Seq: 3, Epoch: 1, Applied: marks}})
		s.heads[1].Applied = 2
		want := []string{"2", "3"}
		if leased {
			s.heads[1].Owner, s.heads[1].LeaseUntil = "q/5", w.in(time.Minute)
			want = []string{"2"}
		}
		s.record.ResentAt = virtual.Epoch
		s.write(w)
		w.queues = map[string][]actor.Message{}
		s.tick(w)
		if d := cmp.Diff(want, w.lost(1)); d != "" {
			t.Errorf("leased %v: sent again (-want +got):\n%s", leased, d)
		}
		s.remembered(w)
		if s.record.ResentAt.Before(w.in(-time.Second)) {
			t.Errorf("leased %v: sent again at %v", leased, s.record.ResentAt)
		}
	}
}

// TestResendInTurn checks that a run examines few of the partitions with running steps, and each of them in turn.
func TestResendInTurn(t *testing.T) {
	const n = 20
	w := newWorld(t)
	c := w.begin(newCrawl(n), "https://www.example/0")
	w.coldTick(c.ID) // the seeds are mailed
	w.queues = map[string][]actor.Message{}
	had := map[partition.ID]int{}
	for range 3 {
		w.Mono += 10 * time.Minute
		for p := range partition.ID(n) {
			w.writeRecord(naming.HeadKey(c.ID, p), blobschema.Head{Partition: p, Fence: 1, Owner: "p/1", LeaseUntil: w.in(time.Hour)})
		}
		w.coldTick(c.ID)
		sent := 0
		for p := range partition.ID(n) {
			if got := len(w.queues[naming.MailboxQueue(p)]); got > had[p] {
				had[p], sent = got, sent+1
			}
		}
		if sent > busyAtOnce {
			t.Errorf("%d partitions at once", sent)
		}
	}
	for p := range partition.ID(n) {
		if had[p] != 1 {
			t.Errorf("partition %d: %d mails", p, had[p])
		}
	}
}

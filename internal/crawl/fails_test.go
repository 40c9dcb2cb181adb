package crawl

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/partition"
)

// subject creates an actor in its own world, the same each time.
type subject func(t *testing.T) (*world, actor.Actor)

// operation names what an effect does, so that a retry is recognised; "" for an effect that cannot fail.
func operation(e actor.Effect) string {
	switch e := e.(type) {
	case actor.GetObject:
		return "get " + e.Name
	case actor.PutObject:
		return "put " + e.Name
	case actor.DeleteObject:
		return "delete " + e.Name
	case actor.ReadRecords:
		return "read " + strings.Join(e.Keys, " ")
	case actor.WriteRecord:
		return "write " + e.Key
	case actor.Send:
		return "send to " + e.Queue
	}
	return ""
}

// operations runs an actor, and returns each of its operations that can fail, once.
func (w *world) operations(a actor.Actor) (list []string) {
	w.t.Helper()
	w.fault = func(e actor.Effect) (error, error) {
		if op := operation(e); op != "" && !slices.Contains(list, op) {
			list = append(list, op)
		}
		return nil, nil
	}
	if _, err := w.run(a); err != nil {
		w.t.Fatal(err)
	}
	return list
}

// unable is the fault of a world in which an operation always fails.
func unable(op string) func(actor.Effect) (before, after error) {
	return func(e actor.Effect) (error, error) {
		if operation(e) == op {
			return errLost, nil
		}
		return nil, nil
	}
}

// failing makes each operation of an actor fail, and damages each record and object that it reads. The actor must end with
// an error, except for the operations listed, without which it must continue.
func failing(t *testing.T, begin subject, may ...string) {
	t.Helper()
	w, a := begin(t)
	operations := w.operations(a)
	for _, op := range operations {
		w, a := begin(t)
		w.fault = unable(op)
		_, err := w.run(a)
		if want := !slices.Contains(may, op); errors.Is(err, errLost) != want || !want && err != nil {
			t.Errorf("it cannot %s: it ends with %v", op, err)
		}
	}
	damage := func(what string, do func(w *world)) {
		w, a := begin(t)
		do(w)
		if _, err := w.run(a); (err == nil) != slices.Contains(may, what) {
			t.Errorf("%s is damaged: it ends with %v", what, err)
		}
	}
	before, _ := begin(t)
	for _, op := range operations {
		verb, names, _ := strings.Cut(op, " ")
		for _, name := range strings.Fields(names) {
			if rec := before.Table[name]; verb == "read" && rec.Found {
				damage(name, func(w *world) {
					w.Table[name] = actor.Record{Found: true, Value: rec.Value[1:], Revision: rec.Revision}
				})
			}
			if b := before.Objects[name]; verb == "get" && len(b) > 0 {
				damage(name, func(w *world) { w.Objects[name] = bytes.Repeat([]byte{0xff}, len(b)) })
			}
		}
	}
}

// busy is a coordinator run that finds something to do of every kind, except what it does not do while slots move.
func busy(t *testing.T) (*world, actor.Actor) {
	w, s := newScene(t)
	id := s.crawl.ID
	s.cfg.HostsEvery = time.Minute
	batch, err := blobschema.EncodeSeeds(blobschema.SeedBatch{Number: 2, URLs: []blobschema.Queued{{URL: "https://www.example/"}}})
	if err != nil {
		t.Fatal(err)
	}
	w.Objects["seeds"], w.Objects["requests"] = batch, batch
	s.crawl.SeedBatches = append(s.crawl.SeedBatches, "seeds")
	set := &s.crawl.Settings
	set.RecrawlPerHour, set.Index, set.Policy, set.Quality = 1, true, "quality", schedule.HostRank
	set.Topics = []blobschema.Topic{{Name: "a", Minimum: 1}}
	s.ranks = ranks.Job{Number: 1, Done: virtual.Epoch, HostRanks: "ranks"}
	s.requests = blobschema.Requests{
		Sent:   map[partition.ID]uint64{0: 1, 1: 1},
		Outbox: []blobschema.RequestMail{{To: 0, Number: 1, Object: "requests"}, {To: 1, Number: 1, Object: "requests"}},
	}
	s.record.ResentAt, s.record.Copied, s.record.Sweep = virtual.Epoch, nil, []blobschema.Dropped{{Object: "run", Unnamed: 1}}
	for p, h := range s.heads {
		h.Scope, h.Totals.Topics = []string{"found.example"}, map[uint8]blobschema.TopicTotals{1: {Pages: 9}}
		man := blobschema.Manifest{Partition: h.Partition, Fence: h.Fence, Seq: 1, Epoch: 1}
		com := blobschema.Commit{Manifest: man, Hosts: []blobschema.HostObservation{{Host: "www.example"}}}
		com.Outbox = []blobschema.OutMail{{To: partition.ID(1 - p), Number: 1, Body: []byte("mail")}}
		w.stored(s.crawl, com)
		com.Manifest.Seq, com.Manifest.Commits = 2, []blobschema.CommitRange{{Fence: h.Fence, From: 1, To: 1}}
		com.Outbox = nil
		h.Commit, h.Seq, h.Published, h.Sent = w.stored(s.crawl, com), 2, 2, make([]uint64, 2)
		h.Sent[1-p] = 1
	}
	s.heads[0].Requests = 1
	s.write(w)
	w.give(id, 1, 0) // a move that the receiver has confirmed
	w.give(id, 0, 1) // a move that has not begun
	s.heads[1].Epoch = 2
	w.writeRecord(naming.HeadKey(id, 1), s.heads[1])
	return w, NewTick(s.cfg, nil)
}

// planning is a coordinator run that moves slots.
func planning(t *testing.T) (*world, actor.Actor) {
	w, s := newScene(t)
	s.crawl.Settings.MostPartitions, s.cfg.Capacity = 8, 100
	h := s.heads[1]
	man := blobschema.Manifest{Partition: h.Partition, Fence: h.Fence, Seq: h.Seq, Epoch: 1, Slots: []blobschema.SlotSummary{{Slot: 1, Pending: 500}, {Slot: 3, Pending: 500}}}
	h.Commit, h.Totals.Pending = w.stored(s.crawl, blobschema.Commit{Manifest: man}), 1000
	s.write(w)
	return w, NewTick(s.cfg, nil)
}

// copying is a coordinator run with hosts to copy and runs to delete.
func copying(t *testing.T) (*world, actor.Actor) {
	w, s := newScene(t)
	s.record.Copied, s.record.Sweep = map[partition.ID]uint64{1: 3}, []blobschema.Dropped{{Object: "run", Unnamed: 1}}
	for _, h := range s.heads {
		man := blobschema.Manifest{Partition: h.Partition, Fence: h.Fence, Seq: 3, Epoch: 1}
		h.Commit = w.stored(s.crawl, blobschema.Commit{Manifest: man, Hosts: []blobschema.HostObservation{{Host: "www.example"}}})
	}
	s.write(w)
	return w, NewTick(s.cfg, nil)
}

// idle is a coordinator run of a crawl without changes since its end.
func idle(t *testing.T) (*world, actor.Actor) {
	w, s := newScene(t)
	s.crawl.Settings.Index = true
	s.ranks = ranks.Job{Number: 1, Done: virtual.Epoch}
	s.record.Idle = &blobschema.Idle{Finished: true, Batches: 1, Desired: 1, Index: true, Ranks: 1}
	s.write(w)
	return w, NewTick(s.cfg, nil)
}

// TestFailuresOfTicks checks that a coordinator run ignores no failed operation.
func TestFailuresOfTicks(t *testing.T) {
	t.Run("busy", func(t *testing.T) { failing(t, busy) })
	t.Run("copying", func(t *testing.T) { failing(t, copying) })
	t.Run("planning", func(t *testing.T) { failing(t, planning) })
	t.Run("idle", func(t *testing.T) { failing(t, idle) })
}

// TestFailuresOfOrders checks the same of the actors that create or change a crawl, or give it an order.
func TestFailuresOfOrders(t *testing.T) {
	begun := func(t *testing.T) *world {
		w, s := newScene(t)
		s.grants.Limit = 10
		s.write(w)
		w.give(s.crawl.ID, 1, 0)
		w.give(s.crawl.ID, 0, 0) // a move that begins as soon as possible
		return w
	}
	for name, begin := range map[string]subject{
		"begin": func(t *testing.T) (*world, actor.Actor) {
			c := newCrawl(2)
			c.Settings.MaxPages = 10
			return newWorld(t), NewBegin(c, Seeds(urls(t, "https://www.example/")), nil)
		},
		"go on": func(t *testing.T) (*world, actor.Actor) {
			return begun(t), NewBegin(blobschema.Crawl{}, Seeds(urls(t, "https://new.example/")), func(c *blobschema.Crawl) error {
				c.Settings.MaxPages = 20
				return nil
			})
		},
		"another": func(t *testing.T) (*world, actor.Actor) {
			w := begun(t)
			w.order("test", OrderStop)
			c := newCrawl(2)
			c.ID = "next"
			return w, NewAnother(c, Seeds(urls(t, "https://www.example/")), false)
		},
		"order": func(t *testing.T) (*world, actor.Actor) { return begun(t), NewCommand("test", OrderPause) },
		"repartition": func(t *testing.T) (*world, actor.Actor) {
			return begun(t), NewRepartition("test", func(p Partitioning) (*partition.Map, error) { return partition.NewMap(p.Map.Slots(), 3) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "order" {
				failing(t, begin, naming.CrawlKey("test")) // the record must exist, nothing else of it is needed
				return
			}
			failing(t, begin)
		})
	}
}

// TestFailuresOfSteps checks the same of a step, except for operations that only make others faster.
func TestFailuresOfSteps(t *testing.T) {
	box, other := "send to "+naming.MailboxQueue(0), "send to "+naming.MailboxQueue(1)
	wakes := "send to " + naming.WakesQueue
	moves := func(t *testing.T) (*world, StepConfig) {
		c := newCrawl(2)
		here := ofPartition(t, c, 0)
		w := newWorld(t)
		w.web = site(t, here, 3, func(int) []string { return all(here)[:3] })
		c = w.begin(c, all(here)[0])
		w.step(StepConfig{Crawl: c, Process: "p", Deadline: 2 * time.Second}, nil)
		h, err := c.Hash()
		if err != nil {
			t.Fatal(err)
		}
		w.give(c.ID, 1, h.Slot(here))
		return w, inCloud(c, 0)
	}
	step := func(t *testing.T, cfg StepConfig) actor.Actor {
		s, err := NewStep(cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, k := range map[string]struct {
		begin subject
		may   []string
	}{
		"gives": {func(t *testing.T) (*world, actor.Actor) {
			w, cfg := moves(t)
			return w, step(t, cfg)
		}, []string{other, wakes}},
		"takes": {func(t *testing.T) (*world, actor.Actor) {
			w, cfg := moves(t)
			w.step(cfg, nil)
			cfg.Partition, cfg.Linger = 1, time.Minute
			return w, step(t, cfg)
		}, []string{box, wakes}},
		"has a limit": {func(t *testing.T) (*world, actor.Actor) {
			w, c := limited(t, 2, 10)
			return w, step(t, StepConfig{Crawl: c, Process: "p", Deadline: 5 * time.Second})
		}, []string{naming.CrawlKey("test")}}, // there is no desired state yet
		"goes by ranks": {func(t *testing.T) (*world, actor.Actor) {
			w, s := newScene(t)
			set := &s.crawl.Settings
			set.Policy, set.Quality, set.Index = "quality", schedule.HostRank, true
			s.desired.HostRanks, s.heads[0] = "ranks", nil
			w.Objects["ranks"] = []byte("www.example\t8\n")
			s.write(w)
			w.web = site(t, "nobody.example", 0, nil)
			return w, step(t, StepConfig{Crawl: s.crawl, Process: "p"})
		}, nil},
	} {
		t.Run(name, func(t *testing.T) { failing(t, k.begin, k.may...) })
	}
}

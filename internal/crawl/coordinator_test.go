package crawl

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/partition"
)

// scene is what a coordinator run finds: a finished crawl of two partitions, except for the changes of a test. Its steps
// had the same settings.
type scene struct {
	cfg      TickConfig
	crawl    blobschema.Crawl
	heads    [2]*blobschema.Head // nil: none
	desired  blobschema.DesiredState
	grants   blobschema.Grants
	requests blobschema.Requests
	moves    blobschema.MapRecord
	ranks    ranks.Job
	record   blobschema.TickRecord
}

func newScene(t *testing.T) (*world, *scene) {
	w := newWorld(t)
	c := w.begin(newCrawl(2), "https://"+ofPartition(t, newCrawl(2), 0)+"/0")
	c.Published = 1
	w.Mono += time.Hour
	s := &scene{cfg: TickConfig{Crawl: c.ID, Process: "p", HostsEvery: 24 * time.Hour}, crawl: c}
	s.desired.Version = 1
	s.record = blobschema.TickRecord{Copied: map[partition.ID]uint64{0: 3, 1: 3}, ResentAt: w.Now().Wall}
	for p := range s.heads {
		s.heads[p] = &blobschema.Head{
			Partition: partition.ID(p), Fence: 4, Seq: 3, Published: 3, Epoch: 1, Desired: 1, Applied: 1, Totals: blobschema.Totals{Known: 2, Pages: 2},
		}
	}
	return w, s
}

// in returns the time after a duration, for a field of a head or record.
func (w *world) in(d time.Duration) time.Time { return virtual.Epoch.Add(w.Mono + d) }

// write stores the scene in the table.
func (s *scene) write(w *world) {
	id := s.crawl.ID
	w.writeRecord(naming.CrawlKey(id), s.crawl)
	w.writeRecord(naming.DesiredKey(id), s.desired)
	w.writeRecord(naming.RequestsKey(id), s.requests)
	w.writeRecord(naming.GrantsKey(id), s.grants)
	w.writeRecord(naming.RankKey(id), s.ranks)
	w.writeRecord(naming.TickKey(id), s.record)
	for p, h := range s.heads {
		delete(w.Table, naming.HeadKey(id, partition.ID(p)))
		if h != nil {
			w.writeRecord(naming.HeadKey(id, partition.ID(p)), h)
		}
	}
	if s.moves.Version > 0 {
		w.writeRecord(naming.MapKey(id), s.moves)
	}
}

// remembered keeps the coordinator's memory for the next run.
func (s *scene) remembered(w *world) {
	s.record = blobschema.TickRecord{}
	w.record(naming.TickKey(s.crawl.ID), &s.record)
}

// tick is a run in its own process.
func (s *scene) tick(w *world) Report {
	w.t.Helper()
	k := NewTick(s.cfg, nil)
	if _, err := w.run(k); err != nil {
		w.t.Fatal(err)
	}
	return k.Report()
}

// due makes partition 0 due, under a page limit with the given pages left to grant, and granted to it.
func (s *scene) due(left, granted int64) {
	s.crawl.Settings.MaxPages, s.grants = 10+left, blobschema.Grants{Limit: 10 + left, Granted: map[partition.ID]int64{0: granted, 1: 10 - granted}}
	s.heads[0].Due, s.heads[0].Totals.Pending = virtual.Epoch, 3
	s.heads[1].Totals.Pages = 10 - granted
}

// dueRevisits leaves nothing of the limit, and makes revisits of partition 0 due.
func (s *scene) dueRevisits(w *world, in time.Duration) {
	s.due(0, 2)
	s.crawl.Settings.RecrawlPerHour, s.heads[0].RevisitsDue = 1, w.in(in)
	s.desired.Threshold, s.desired.Revisits.At = 1, w.in(0)
}

// moving makes slots move.
func (s *scene) moving(m blobschema.Moving) {
	s.moves = blobschema.MapRecord{Version: 1, Epoch: 2, Partitions: 2, Moving: []blobschema.Moving{m}}
	s.desired.Map = 1
}

// TestWhoIsWoken checks that a partition is woken if a step can do something for it and none is running.
func TestWhoIsWoken(t *testing.T) {
	away := blobschema.Moving{Epoch: 2, From: 0, To: 1, Slots: partition.Slots{2}}
	coming := blobschema.Moving{Epoch: 2, From: 1, To: 0, Slots: partition.Slots{1}}
	for _, k := range []struct {
		name  string
		set   func(w *world, s *scene)
		woken bool
	}{
		{"nothing to do", func(*world, *scene) {}, false},
		{"seeds, and no step was ever there", func(_ *world, s *scene) { s.heads[0] = nil }, true},
		{"nothing, and no step was ever there", func(_ *world, s *scene) { s.heads[0], s.crawl.SeedBatches, s.crawl.Published = nil, nil, 0 }, false},
		{"seeds", func(_ *world, s *scene) { s.heads[0].Applied = 0 }, true},
		{"mail of another partition", func(_ *world, s *scene) { s.heads[1].Sent = []uint64{1} }, true},
		{"mail of requests", func(_ *world, s *scene) { s.requests.Sent = map[partition.ID]uint64{0: 1} }, true},
		{"mail, which others have", func(_ *world, s *scene) {
			s.heads[1].Sent, s.requests.Sent = []uint64{0, 1}, map[partition.ID]uint64{1: 1}
		}, false},
		{"mail, and a step at work", func(w *world, s *scene) {
			s.heads[0].Applied, s.heads[0].Owner, s.heads[0].LeaseUntil = 0, "q/1", w.in(time.Minute)
		}, false},
		{"mail, and a lease that was let go", func(w *world, s *scene) { s.heads[0].Applied, s.heads[0].LeaseUntil = 0, w.in(time.Minute) }, true},
		{"a lease that ran out", func(w *world, s *scene) { s.heads[0].Owner, s.heads[0].LeaseUntil = "q/1", w.in(-time.Second) }, true},
		{"a lease of a process before", func(w *world, s *scene) {
			s.cfg.Exclusive, s.heads[0].Owner, s.heads[0].LeaseUntil = true, "q/1", w.in(time.Minute)
		}, true},
		{"a lease of this process", func(w *world, s *scene) {
			s.cfg.Exclusive, s.heads[0].Owner, s.heads[0].LeaseUntil = true, "p/1", w.in(time.Minute)
		}, false},
		{"mail, and a stop", func(_ *world, s *scene) { s.heads[0].Applied, s.desired.Stop = 0, true }, false},
		{"mail, and a pause", func(_ *world, s *scene) { s.heads[0].Applied, s.desired.Pause = 0, true }, true},
		{"a desired state that is not obeyed", func(_ *world, s *scene) { s.heads[0].Desired = 0 }, true},
		{"mail that was not sent", func(_ *world, s *scene) { s.heads[0].Published = 2 }, true},
		{"links that are held", func(_ *world, s *scene) { s.heads[0].Totals.Buffered = 1 }, true},
		{"it is due", func(w *world, s *scene) { s.heads[0].Due = w.in(0) }, true},
		{"it is due soon", func(w *world, s *scene) { s.heads[0].Due = w.in(time.Second) }, false},
		{"it is due, and a pause", func(w *world, s *scene) { s.heads[0].Due, s.desired.Pause = w.in(0), true }, false},
		{"unexamined links", func(_ *world, s *scene) { s.heads[0].Totals.Unexamined = 1 }, true},
		{"what waits is elsewhere", func(_ *world, s *scene) { s.heads[0].Totals.Unexamined, s.heads[0].Awaits = 1, 2 }, false},
		{"some of the limit is left", func(_ *world, s *scene) { s.due(1, 2) }, true},
		{"nothing of the limit is left", func(_ *world, s *scene) { s.due(0, 2) }, false},
		{"its part of the limit is left", func(_ *world, s *scene) { s.due(0, 3) }, true},
		{"somebody waits, whatever the limit", func(_ *world, s *scene) { s.due(0, 2); s.heads[0].Totals.Urgent = 1 }, true},
		{"looks are due, whatever the limit", func(w *world, s *scene) { s.dueRevisits(w, 0) }, true},
		{"looks are due soon", func(w *world, s *scene) { s.dueRevisits(w, time.Second) }, false},
		{"looks are to come sooner", func(w *world, s *scene) {
			s.dueRevisits(w, time.Hour)
			s.heads[0].Threshold = 100
		}, true},
		{"looks are to come sooner, and a pause", func(w *world, s *scene) {
			s.dueRevisits(w, time.Hour)
			s.heads[0].Threshold, s.desired.Pause = 100, true
		}, false},
		{"slots to give", func(_ *world, s *scene) { s.moving(away) }, true},
		{"slots that it knows it is to give", func(_ *world, s *scene) { s.moving(away); s.heads[0].Epoch, s.heads[0].Owes = 2, 1 }, true},
		{"slots that it has given", func(_ *world, s *scene) { s.moving(away); s.heads[0].Epoch = 2 }, false},
		{"slots to take", func(_ *world, s *scene) { s.moving(coming); s.heads[1].Gives = map[partition.ID]partition.Epoch{0: 2} }, true},
		{"slots to receive that are not given", func(_ *world, s *scene) {
			s.moving(coming)
			s.heads[1].Gives = map[partition.ID]partition.Epoch{0: 1, 1: 2}
		}, false},
		{"slots to take by the first step that comes", func(_ *world, s *scene) {
			s.moving(coming)
			s.heads[0], s.crawl.SeedBatches, s.crawl.Published = nil, nil, 0
			s.heads[1].Gives = map[partition.ID]partition.Epoch{0: 2}
		}, true},
	} {
		t.Run(k.name, func(t *testing.T) {
			w, s := newScene(t)
			k.set(w, s)
			s.write(w)
			if rep := s.tick(w); slices.Contains(rep.Woken, 0) != k.woken {
				t.Errorf("woken are %v", rep.Woken)
			}
		})
	}
}

// TestItsEnd checks that a crawl is finished when two runs find nothing left and no change between them.
func TestItsEnd(t *testing.T) {
	quiet := func(*world, *scene) {}
	for _, k := range []struct {
		name    string
		set     func(w *world, s *scene)
		between func(s *scene)
		want    string // result of the second run
	}{
		{"nothing is left", quiet, nil, "finished"},
		{"seeds are to be sent", func(_ *world, s *scene) { s.heads[1].Applied = 0 }, nil, ""},
		{"a partition without seeds was never begun", func(_ *world, s *scene) {
			s.moves, s.desired.Map = blobschema.MapRecord{Version: 1, Epoch: 2, Partitions: 3}, 1
		}, nil, "finished"},
		{"URLs wait", func(_ *world, s *scene) { s.heads[1].Totals.Pending = 1 }, nil, ""},
		{"URLs are unexamined", func(_ *world, s *scene) { s.heads[0].Totals.Unexamined = 1 }, nil, ""},
		{"links are held", func(_ *world, s *scene) { s.heads[0].Totals.Buffered = 1 }, nil, ""},
		{"mail is under way", func(_ *world, s *scene) { s.heads[0].Sent = []uint64{0, 1} }, nil, ""},
		{"a request is under way", func(_ *world, s *scene) { s.requests.Sent = map[partition.ID]uint64{0: 1} }, nil, ""},
		{"a desired state that is not obeyed", func(_ *world, s *scene) { s.heads[0].Desired = 0 }, nil, ""},
		{"slots are on the move", func(_ *world, s *scene) {
			moving := blobschema.Moving{Epoch: 2, From: 0, To: 1, Slots: partition.Slots{2}}
			s.moves, s.desired.Map = blobschema.MapRecord{Version: 1, Epoch: 2, Partitions: 2, Moving: []blobschema.Moving{moving}}, 1
		}, nil, ""},
		{"a step has committed in between", quiet, func(s *scene) { s.heads[1].Seq++; s.heads[1].Published++; s.record.Copied[1]++ }, "quiet"},
		{"the limit is reached", func(_ *world, s *scene) { s.crawl.Settings.MaxPages, s.heads[0].Totals.Pending = 4, 1 }, nil, "limited"},
		{"the limit is not reached", func(_ *world, s *scene) { s.crawl.Settings.MaxPages, s.heads[0].Totals.Pending = 5, 1 }, nil, ""},
		{"the limit is reached, and looks go on", func(w *world, s *scene) {
			s.crawl.Settings.MaxPages, s.heads[0].Totals.Pending, s.crawl.Settings.RecrawlPerHour = 4, 1, 1
			s.desired.Threshold, s.desired.Revisits.At = 1, w.in(0)
		}, nil, ""},
		{"the limit is reached, a request was answered", func(_ *world, s *scene) {
			s.crawl.Settings.MaxPages, s.heads[0].Totals.Pending, s.requests.Sent, s.heads[1].Applied = 4, 1, map[partition.ID]uint64{1: 1}, 2
		}, nil, "limited"},
		{"the limit is reached, a request is under way", func(_ *world, s *scene) {
			s.crawl.Settings.MaxPages, s.requests.Sent = 4, map[partition.ID]uint64{1: 1}
		}, nil, ""},
		{"the limit is reached, and somebody waits", func(_ *world, s *scene) {
			s.crawl.Settings.MaxPages, s.requests.Sent, s.heads[1].Applied = 4, map[partition.ID]uint64{1: 1}, 2
			s.heads[0].Totals.Pending, s.heads[0].Totals.Urgent = 1, 1
		}, nil, ""},
	} {
		t.Run(k.name, func(t *testing.T) {
			w, s := newScene(t)
			k.set(w, s)
			s.write(w)
			if rep := s.tick(w); rep.Finished {
				t.Error("the first tick finds that it is finished")
			}
			if k.between != nil {
				s.remembered(w)
				k.between(s)
				s.write(w)
			}
			w.Mono += time.Second
			rep := s.tick(w)
			got := ""
			switch {
			case rep.Finished:
				got = "finished"
			case rep.Limited:
				got = "limited"
			case rep.Quiet:
				got = "quiet"
			}
			if got != k.want {
				t.Errorf("it is %q, not %q", got, k.want)
			}
		})
	}
}

// TestIdleUntil checks that an idle crawl is not read until something comes that could change it.
func TestIdleUntil(t *testing.T) {
	for _, k := range []struct {
		name string
		set  func(s *scene)
		idle bool
	}{
		{"nothing", func(*scene) {}, true},
		{"seeds", func(s *scene) { s.crawl.SeedBatches = append(s.crawl.SeedBatches, s.crawl.SeedBatches[0]) }, false},
		{"requests", func(s *scene) { s.requests.Sent = map[partition.ID]uint64{1: 1} }, false},
		{"a limit", func(s *scene) { s.grants.Limit = 100 }, false},
		{"other settings", func(s *scene) { s.desired.Version = 2 }, false},
		{"an order", func(s *scene) { s.desired.Orders = 1 }, false},
		{"another map", func(s *scene) { s.moves, s.desired.Map = blobschema.MapRecord{Version: 1, Epoch: 2, Partitions: 2}, 1 }, false},
		{"an index that is wanted", func(s *scene) { s.crawl.Settings.Index = true }, false},
		{"ranks without an index", func(s *scene) { s.ranks = ranks.Job{Number: 1, Done: virtual.Epoch} }, true},
	} {
		t.Run(k.name, func(t *testing.T) {
			w, s := newScene(t)
			s.write(w)
			s.tick(w)
			if rep := s.tick(w); rep.Idle || !rep.Finished {
				t.Fatalf("at its end: %+v", rep)
			}
			s.remembered(w)
			k.set(s)
			s.write(w)
			rep := s.tick(w)
			if rep.Idle != k.idle || rep.Idle && !rep.Finished {
				t.Errorf("idle %v, finished %v", rep.Idle, rep.Finished)
			}
		})
	}
}

// TestNotIdle checks that every run reads a crawl with anything left to do.
func TestNotIdle(t *testing.T) {
	for _, k := range []struct {
		name string
		set  func(w *world, s *scene)
	}{
		{"a step at work", func(w *world, s *scene) { s.heads[0].Owner, s.heads[0].LeaseUntil = "q/1", w.in(time.Hour) }},
		{"mail to merge, in a pause", func(_ *world, s *scene) { s.desired.Pause, s.heads[0].Totals.Buffered = true, 1 }},
		{"runs to delete", func(_ *world, s *scene) {
			s.record.Sweep, s.record.SweptAt = []blobschema.Dropped{{Object: "run"}}, virtual.Epoch.Add(time.Hour)
		}},
		{"an index that is behind", func(_ *world, s *scene) { s.crawl.Settings.Index = true }},
	} {
		t.Run(k.name, func(t *testing.T) {
			w, s := newScene(t)
			k.set(w, s)
			s.write(w)
			for range 4 {
				if rep := s.tick(w); rep.Idle {
					t.Fatal("it is idle")
				}
			}
		})
	}
}

// TestWakesInTens checks that at most ten messages are sent at once.
func TestWakesInTens(t *testing.T) {
	for _, partitions := range []int{9, 10, 11, 25} {
		w := newWorld(t)
		if _, err := w.run(NewBegin(newCrawl(partitions), Seeds(urls(t, "https://www.example/")), nil)); err != nil {
			t.Fatal(err)
		}
		w.fault = func(e actor.Effect) (before, after error) {
			if s, ok := e.(actor.Send); ok && s.Queue == naming.WakesQueue && len(s.Bodies) > 10 {
				t.Errorf("%d wakes in one request", len(s.Bodies))
			}
			return nil, nil
		}
		w.tick("test")
		var got []partition.ID
		for _, k := range w.wakes {
			got = append(got, k.p)
		}
		slices.Sort(got)
		if got = slices.Compact(got); len(got) != partitions || len(w.wakes) != partitions || w.counts["Send"] != partitions+(partitions+9)/10 {
			t.Errorf("of %d partitions %v are woken, by %d messages", partitions, got, w.counts["Send"])
		}
	}
}

// TestWakesAgain checks that an unanswered wake is resent, later each time, and soon if one process does everything.
// Another partition's wakes do not change that.
func TestWakesAgain(t *testing.T) {
	for _, k := range []struct {
		mem   *TickMemory
		every time.Duration // time between two runs
		first time.Duration
	}{{nil, 15 * time.Second, time.Minute}, {&TickMemory{}, time.Second, 3 * time.Second}} {
		w, s := newScene(t)
		s.heads[0].Applied = 0
		at := [2][]time.Duration{}
		for i := range 300 {
			if i > 0 && k.mem == nil {
				s.remembered(w)
			}
			s.heads[1].Applied = 1 - uint64(i/100%2) // seeds that its step has applied, or not
			s.record.ResentAt = w.Now().Wall
			s.write(w)
			tick := NewTick(s.cfg, k.mem)
			now := w.Mono
			if _, err := w.run(tick); err != nil {
				t.Fatal(err)
			}
			for _, p := range tick.Report().Woken {
				at[p] = append(at[p], now)
			}
			w.Mono = now + k.every
		}
		wait := k.first
		for i := 1; i < len(at[0]); i++ {
			if gap := at[0][i] - at[0][i-1]; gap < wait || gap > wait+k.every {
				t.Errorf("wake %d comes %v after the one before, not %v", i, gap, wait)
			}
			wait = min(2*wait, maxDelay)
		}
		if len(at[0]) < 7 || len(at[1]) < 3 || at[1][0]-at[0][0] != 100*k.every {
			t.Errorf("woken at %v and %v", at[0], at[1])
		}
	}
}

// TestSeedsAreMailed checks that each partition gets its share of a batch as one numbered mail, even an empty one, without
// texts that are not URLs.
func TestSeedsAreMailed(t *testing.T) {
	w, s := newScene(t)
	here := ofPartition(t, s.crawl, 0)
	batch, err := blobschema.EncodeSeeds(blobschema.SeedBatch{Number: 2, URLs: []blobschema.Queued{
		{URL: "no URL"}, {URL: "https://" + here + "/a"}, {URL: "https://" + here + "/b"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.Objects["seeds"] = batch
	s.crawl.SeedBatches = append(s.crawl.SeedBatches, "seeds")
	s.write(w)
	w.queues = map[string][]actor.Message{}
	if rep := s.tick(w); rep.Crawl.Published != 2 || !slices.Equal(rep.Woken, []partition.ID{0, 1}) {
		t.Errorf("published %d batches, woken %v", rep.Crawl.Published, rep.Woken)
	}
	for p := range partition.ID(2) {
		mails := w.lost(p)
		if len(mails) != 1 {
			t.Fatalf("%d mails for %d", len(mails), p)
		}
		m, err := blobschema.DecodeMail([]byte(mails[0]))
		if err != nil || m.From != partition.Intake || m.To != p || m.Number != 2 || m.Epoch != 1 || len(m.URLs) != 2-2*int(p) {
			t.Errorf("mail for %d: %+v, %v", p, m, err)
		}
		for _, q := range m.URLs {
			if q.Flags != blobschema.FlagSeed || q.Rank == 0 {
				t.Errorf("a seed is %+v", q)
			}
		}
	}
	if s.tick(w); w.counts["Send"] > 0 && len(w.lost(0)) > 0 {
		t.Error("seeds are mailed again")
	}
}

// TestSeedsKeepTheirMail checks that a batch of seeds that is sent again after slots have moved has the same URLs in the
// same mails: a mail with other URLs under a known number would be ignored, and its URLs lost.
func TestSeedsKeepTheirMail(t *testing.T) {
	c := newCrawl(2)
	here, there := ofPartition(t, c, 0), ofPartition(t, c, 1)
	w := newWorld(t)
	c = w.begin(c, all(here)[0], all(there)[0])
	sent := [][]string{w.lost(0), w.lost(1)}
	h, err := c.Hash()
	if err != nil {
		t.Fatal(err)
	}
	w.give(c.ID, 1, h.Slot(here))
	w.give(c.ID, 0, h.Slot(there))
	// A crash before the record says that the batch was sent.
	var rec blobschema.Crawl
	w.record(naming.CrawlKey(c.ID), &rec)
	rec.Published = 0
	w.writeRecord(naming.CrawlKey(c.ID), rec)
	w.memory = TickMemory{}
	w.tick(c.ID)
	if d := cmp.Diff(sent, [][]string{w.lost(0), w.lost(1)}); d != "" {
		t.Errorf("sent again (-want +got):\n%s", d)
	}
}

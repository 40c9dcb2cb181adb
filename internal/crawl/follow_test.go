package crawl

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/partition"
)

// searchable is a finished crawl with an index, and its world.
func searchable(t *testing.T, change func(*blobschema.Settings)) (*world, blobschema.Crawl) {
	t.Helper()
	c, host := newCrawl(1), "www.example"
	c.Settings.Index, c.Settings.Delay = true, time.Second
	if change != nil {
		change(&c.Settings)
	}
	w := newWorld(t)
	var requests []actor.Request
	w.web = changing(host, &requests)
	b := NewBegin(c, Seeds(urls(t, all(host)[:2]...)), nil)
	if _, err := w.run(b); err != nil {
		t.Fatal(err)
	}
	c, _, _ = b.Crawl()
	w.coldTick(c.ID)
	for range 2 {
		w.step(inCloud(c, 0), nil)
		w.Mono += time.Minute
		w.coldTick(c.ID)
	}
	return w, c
}

// jobs takes the messages from a queue.
func (w *world) jobs(queue string) int {
	n := len(w.queues[queue])
	w.queues[queue] = nil
	return n
}

func (w *world) writeRecord(key string, v any) {
	w.Write(key, actor.Encode(v))
}

// TestIndexFollows checks that an index that is behind gets a job, and another one when that seems lost. When all is done,
// runs read only a few records until there are new ranks.
func TestIndexFollows(t *testing.T) {
	w, c := searchable(t, nil)
	w.jobs(naming.IndexQueue)
	sent := []int{}
	for range 40 {
		w.Mono += 30 * time.Second
		if rep, _ := w.coldTick(c.ID); rep.Indexing != 1 || !rep.WantsRanks || !rep.Following() || rep.Idle {
			t.Fatalf("report %+v", rep)
		}
		sent = append(sent, w.jobs(naming.IndexQueue))
	}
	total, last := 0, 0
	for i, n := range sent {
		if total += n; n > 0 {
			last = i
		}
	}
	if total < 3 || total > 6 || last < 15 {
		t.Errorf("messages in half-minutes: %v", sent)
	}
	h := w.head(c.ID, 0)
	w.writeRecord(naming.IndexKey(c.ID, 0), blobschema.IndexHead{Number: 1, Seq: h.Seq})
	if rep, _ := w.coldTick(c.ID); rep.Indexing != 0 || !rep.WantsRanks {
		t.Errorf("when it is indexed: %+v", rep)
	}
	job := ranks.Job{Number: 1, Started: w.Now().Wall, Inputs: []ranks.Input{{Partition: 0, Seq: h.Seq}}}
	w.writeRecord(naming.RankKey(c.ID), job)
	if rep, _ := w.coldTick(c.ID); rep.WantsRanks || !rep.Ranking || !rep.Following() {
		t.Errorf("while ranks are computed: %+v", rep)
	}
	job.Done = w.Now().Wall
	w.writeRecord(naming.RankKey(c.ID), job)
	if rep, _ := w.coldTick(c.ID); rep.Ranking || rep.Indexing != 1 || w.jobs(naming.IndexQueue) != 1 {
		t.Errorf("when they are there, with texts of links: %+v", rep)
	}
	w.writeRecord(naming.IndexKey(c.ID, 0), blobschema.IndexHead{Number: 2, Seq: h.Seq, Anchors: 1})
	w.coldTick(c.ID)
	rep, counts := w.coldTick(c.ID)
	if !rep.Idle || cmp.Diff(map[string]int{"ReadRecords": 2}, counts) != "" {
		t.Errorf("an idle tick: %+v, %v", rep, counts)
	}
	job.Number, job.Done = 2, w.Now().Wall.Add(time.Second)
	w.writeRecord(naming.RankKey(c.ID), job)
	if rep, _ := w.coldTick(c.ID); rep.Idle || rep.Indexing != 1 {
		t.Errorf("after ranks that an operator requested: %+v", rep)
	}
}

// TestIndexSwitchedOn checks that an idle crawl continues when its index is switched on.
func TestIndexSwitchedOn(t *testing.T) {
	w, c := searchable(t, func(s *blobschema.Settings) { s.Index = false })
	w.coldTick(c.ID)
	if rep, counts := w.coldTick(c.ID); !rep.Idle || counts["ReadRecords"] != 1 || w.jobs(naming.IndexQueue) != 0 {
		t.Fatalf("a crawl without index: %+v, %v", rep, counts)
	}
	var rec blobschema.Crawl
	w.record(naming.CrawlKey(c.ID), &rec)
	rec.Settings.Index = true
	w.writeRecord(naming.CrawlKey(c.ID), rec)
	if rep, _ := w.coldTick(c.ID); rep.Idle || rep.Indexing != 1 || w.jobs(naming.IndexQueue) != 1 {
		t.Errorf("when it is switched on: %+v", rep)
	}
}

// TestRanksFeedTheFrontier checks that steps learn of computed ranks of hosts, and rank new URLs by them.
func TestRanksFeedTheFrontier(t *testing.T) {
	w, c := searchable(t, func(s *blobschema.Settings) { s.Policy, s.Quality = "quality", schedule.HostRank })
	table := []byte("good.example\t8\nbad.example\t0.125\n")
	name := naming.Ranks(c.ID, table)
	w.Objects[name] = table
	rankOf := func(s *Step, host string) uint32 {
		return s.st.rank(urls(t, "https://"+host+"/x")[0], schedule.Candidate{Depth: 1})
	}
	s, _ := w.step(inCloud(c, 0), nil)
	if rankOf(s, "good.example") != rankOf(s, "bad.example") {
		t.Error("hosts differ before there are ranks")
	}
	w.writeRecord(naming.RankKey(c.ID), ranks.Job{Number: 1, Done: w.Now().Wall, HostRanks: name})
	w.coldTick(c.ID)
	var desired blobschema.DesiredState
	if w.record(naming.DesiredKey(c.ID), &desired); desired.HostRanks != name {
		t.Fatalf("desired state %+v", desired)
	}
	for _, warm := range []*Warm{s.Warm(), nil} {
		s, _ = w.step(inCloud(c, 0), warm)
		if rankOf(s, "good.example") >= rankOf(s, "other.example") || rankOf(s, "other.example") >= rankOf(s, "bad.example") {
			t.Errorf("warm %v: ranks %d, %d, %d", warm != nil, rankOf(s, "good.example"), rankOf(s, "other.example"), rankOf(s, "bad.example"))
		}
	}
}

// TestWhenRanksAreWanted checks that ranks are computed again when a crawl is over, or has grown for a while, if there is
// anything new.
func TestWhenRanksAreWanted(t *testing.T) {
	running := func(s *scene) { s.heads[0].Totals.Pending = 1 }
	for _, k := range []struct {
		name          string
		set           func(w *world, s *scene)
		wants, during bool
	}{
		{"no ranks yet, and the crawl is over", func(*world, *scene) {}, true, false},
		{"the same commits", func(_ *world, s *scene) {
			s.ranks.Inputs = []ranks.Input{{Partition: 0, Seq: 3}, {Partition: 1, Seq: 3}}
		}, false, false},
		{"one commit more", func(_ *world, s *scene) {
			s.ranks.Inputs = []ranks.Input{{Partition: 0, Seq: 3}, {Partition: 1, Seq: 2}}
		}, true, false},
		{"no pages", func(_ *world, s *scene) { s.heads[0].Totals.Pages, s.heads[1].Totals.Pages = 0, 0 }, false, false},
		{"one page", func(_ *world, s *scene) { s.heads[0].Totals.Pages, s.heads[1].Totals.Pages = 1, 0 }, true, false},
		{"they are computed", func(_ *world, s *scene) { s.ranks = ranks.Job{Number: 2, Started: virtual.Epoch} }, false, true},
		{"no ranks yet, for an hour", func(_ *world, s *scene) { running(s) }, true, false},
		{"no ranks yet, for less", func(w *world, s *scene) { running(s); w.Mono -= 2 * time.Second }, false, false},
		{"it has not grown", func(_ *world, s *scene) { running(s); s.ranks.Totals.Crawled = 4 }, false, false},
		{"it has grown", func(_ *world, s *scene) { running(s); s.ranks.Totals.Crawled = 3 }, true, false},
		{"it has grown since a moment ago", func(w *world, s *scene) { running(s); s.ranks.Started = w.in(-59 * time.Minute) }, false, false},
		{"it is to settle", func(w *world, s *scene) { running(s); s.ranks.Started, s.cfg.FollowNow = w.in(-time.Minute), true }, true, false},
		{"it is paused", func(w *world, s *scene) { running(s); s.ranks.Started, s.desired.Pause = w.in(-time.Minute), true }, true, false},
		{"its limit is reached, with a step at work", func(w *world, s *scene) {
			running(s)
			s.ranks.Started, s.crawl.Settings.MaxPages, s.heads[0].Owner, s.heads[0].LeaseUntil = w.in(-time.Minute), 4, "q/1", w.in(time.Hour)
		}, true, false},
	} {
		t.Run(k.name, func(t *testing.T) {
			w, s := newScene(t)
			s.crawl.Settings.Index = true
			s.ranks = ranks.Job{Number: 1, Done: virtual.Epoch}
			k.set(w, s)
			s.write(w)
			s.tick(w)
			s.remembered(w)
			if rep := s.tick(w); rep.WantsRanks != k.wants || rep.Ranking != k.during {
				t.Errorf("wants ranks %v, computes them %v", rep.WantsRanks, rep.Ranking)
			}
		})
	}
}

// TestWhenTheIndexFollows checks the times of jobs: the first at once; the next one later while the crawl runs, at once
// when it is over; a repeated one later each time. Each partition has its own jobs.
func TestWhenTheIndexFollows(t *testing.T) {
	for _, k := range []struct {
		name  string
		mem   *TickMemory
		over  bool
		grows bool
		want  []int // messages in each half minute
	}{
		{"it runs", nil, false, true, []int{1, 0, 0, 0, 1, 0, 0, 0, 1}},
		{"it is over", nil, true, true, []int{1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{"nothing is new", nil, false, false, []int{1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}},
		{"it runs, and one process works on it", &TickMemory{}, false, true, []int{1, 1, 1, 1}},
	} {
		t.Run(k.name, func(t *testing.T) {
			w, s := newScene(t)
			s.crawl.Settings.Index = true
			s.heads[0].Totals.Pending = 1
			s.desired.Pause = k.over
			for p := range s.heads { // partition 1 is not behind
				w.writeRecord(naming.IndexKey(s.crawl.ID, partition.ID(p)), blobschema.IndexHead{Number: 1, Seq: 3 * uint64(p)})
			}
			s.write(w)
			w.jobs(naming.IndexQueue)
			var got []int
			for range k.want {
				tick := NewTick(s.cfg, k.mem)
				if _, err := w.run(tick); err != nil {
					t.Fatal(err)
				}
				if rep := tick.Report(); rep.Indexing != 1 {
					t.Errorf("%d indexes are behind", rep.Indexing)
				}
				for _, m := range w.queues[naming.IndexQueue] {
					if _, p, err := blobschema.DecodeJob(m.Body); err != nil || p != 0 {
						t.Errorf("a message for partition %d, %v", p, err)
					}
				}
				got = append(got, w.jobs(naming.IndexQueue))
				s.remembered(w)
				if k.grows {
					s.heads[0].Seq++
					s.heads[0].Published++
				}
				s.record.Copied = map[partition.ID]uint64{0: s.heads[0].Seq, 1: 3}
				s.write(w)
				w.Mono += 30 * time.Second
			}
			if d := cmp.Diff(k.want, got); d != "" {
				t.Errorf("messages (-want +got):\n%s", d)
			}
		})
	}
}

// TestSecondIndexFollows checks that one partition's waiting index does not delay another's job.
func TestSecondIndexFollows(t *testing.T) {
	w, s := newScene(t)
	s.crawl.Settings.Index = true
	s.heads[0].Totals.Pending = 1
	w.writeRecord(naming.IndexKey(s.crawl.ID, 1), blobschema.IndexHead{Number: 1, Seq: 3})
	s.write(w)
	w.jobs(naming.IndexQueue)
	for i, want := range []int{1, 1, 0} {
		if rep := s.tick(w); rep.Indexing != min(i+1, 2) || w.jobs(naming.IndexQueue) != want {
			t.Errorf("tick %d: %d indexes are behind", i, rep.Indexing)
		}
		s.remembered(w)
		s.heads[1].Seq, s.heads[1].Published, s.record.Copied = 4, 4, map[partition.ID]uint64{0: 3, 1: 4}
		s.write(w)
	}
}

package crawl

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/page"
)

// searchable is a crawl with an index, finished, and its world.
func searchable(t *testing.T, change func(*blobschema.Settings)) (*world, blobschema.Crawl) {
	t.Helper()
	c, host := newCrawl(1), "www.example"
	c.Settings.Index, c.Settings.Delay = true, time.Second
	if change != nil {
		change(&c.Settings)
	}
	w := newWorld(t)
	var asked []page.Request
	w.web = changing(host, &asked)
	b := NewBegin(c, Seeds(urls(t, all(host)[:2]...)), nil)
	if _, err := w.run(b); err != nil {
		t.Fatal(err)
	}
	c, _, _ = b.Crawl()
	w.coldTick(c.ID)
	for range 2 {
		w.step(inCloud(c, 0), nil)
		w.now += time.Minute
		w.coldTick(c.ID)
	}
	return w, c
}

// jobs takes the messages that wait in a queue.
func (w *world) jobs(queue string) int {
	n := len(w.queues[queue])
	w.queues[queue] = nil
	return n
}

func (w *world) writeRecord(key string, v any) {
	w.revision++
	w.table[key] = actor.Record{Value: actor.Encode(v), Revision: w.revision, Found: true}
}

// TestIndexFollows: an index that is behind gets a message, and another one when that seems lost; when all is
// done, ticks look at a few records only, until there are new ranks.
func TestIndexFollows(t *testing.T) {
	w, c := searchable(t, nil)
	w.jobs(naming.IndexQueue)
	sent := []int{}
	for range 40 {
		w.now += 30 * time.Second
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
	job := ranks.Job{Number: 1, Started: w.clocks().Wall, Inputs: []ranks.Input{{Partition: 0, Seq: h.Seq}}}
	w.writeRecord(naming.RankKey(c.ID), job)
	if rep, _ := w.coldTick(c.ID); rep.WantsRanks || !rep.Ranking || !rep.Following() {
		t.Errorf("while ranks are computed: %+v", rep)
	}
	job.Done = w.clocks().Wall
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
	job.Number, job.Done = 2, w.clocks().Wall.Add(time.Second)
	w.writeRecord(naming.RankKey(c.ID), job)
	if rep, _ := w.coldTick(c.ID); rep.Idle || rep.Indexing != 1 {
		t.Errorf("after ranks that an operator asked for: %+v", rep)
	}
}

// TestIndexSwitchedOn: an idle crawl that is to be searchable all at once wakes up for it.
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

// TestRanksFeedTheFrontier: the ranks of hosts that were computed are told to steps, which rank what they find by them.
func TestRanksFeedTheFrontier(t *testing.T) {
	w, c := searchable(t, func(s *blobschema.Settings) { s.Policy, s.Quality = "quality", frontier.HostRanks{}.Name() })
	table := []byte("good.example\t8\nbad.example\t0.125\n")
	name := naming.Ranks(c.ID, table)
	w.blobs[name] = table
	rankOf := func(s *Step, host string) uint32 {
		return s.rank(urls(t, "https://"+host+"/x")[0], frontier.Candidate{Depth: 1})
	}
	s, _ := w.step(inCloud(c, 0), nil)
	if rankOf(s, "good.example") != rankOf(s, "bad.example") {
		t.Error("hosts differ before there are ranks")
	}
	w.writeRecord(naming.RankKey(c.ID), ranks.Job{Number: 1, Done: w.clocks().Wall, HostRanks: name})
	w.coldTick(c.ID)
	var wish blobschema.Wish
	if w.record(naming.WishKey(c.ID), &wish); wish.HostRanks != name {
		t.Fatalf("wish %+v", wish)
	}
	for _, warm := range []*Warm{s.Warm(), nil} {
		s, _ = w.step(inCloud(c, 0), warm)
		if rankOf(s, "good.example") >= rankOf(s, "other.example") || rankOf(s, "other.example") >= rankOf(s, "bad.example") {
			t.Errorf("warm %v: ranks %d, %d, %d", warm != nil, rankOf(s, "good.example"), rankOf(s, "other.example"), rankOf(s, "bad.example"))
		}
	}
}

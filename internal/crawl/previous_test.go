package crawl

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// TestPreviousRecordsAreBounded checks that the newest answers, half of the bound, are always kept in their last state, and that a
// URL without an answer is forgotten.
func TestPreviousRecordsAreBounded(t *testing.T) {
	var f recordCache
	p := blobschema.Page{Outcome: blobschema.OutcomeOK}
	const n = maxCachedRecords + 1
	for i := range n {
		p.URL, p.Generation = fmt.Sprint(i), uint32(i)
		f.keep(&p)
		if held := len(f.newest.young) + len(f.newest.old); held > maxCachedRecords {
			t.Fatalf("%d answers are kept", held)
		}
	}
	for i := range maxCachedRecords / 2 {
		url := fmt.Sprint(n - 1 - i)
		if got, ok := f.newest.get(url); !ok || fmt.Sprint(got.Generation) != url {
			t.Fatalf("the answer before the last %d is %+v, %v", i, got, ok)
		}
	}
	if _, ok := f.newest.get("0"); ok {
		t.Error("the first answer is kept forever")
	}
	for _, i := range []int{n - 1, n - maxCachedRecords/2} { // among the young, and the old
		p.URL, p.Generation, p.Outcome = fmt.Sprint(i), 1<<30, blobschema.OutcomeOK
		f.keep(&p)
		if got, _ := f.newest.get(p.URL); got.Generation != 1<<30 {
			t.Errorf("%d: not the last answer: %+v", i, got)
		}
		p.Outcome = blobschema.OutcomeTimeout
		f.keep(&p)
		if _, ok := f.newest.get(p.URL); ok {
			t.Errorf("%d: an answer before the last failure is kept", i)
		}
	}
	for i := range 2 * previousCommits {
		f.commits.put(blobschema.RecordRef{Seq: uint32(i + 1)}, map[string]blobschema.Page{}, previousCommits)
		if held := len(f.commits.young) + len(f.commits.old); held > previousCommits {
			t.Errorf("the records of %d commits are kept", held)
		}
		for k := max(0, i+1-previousCommits/2); k <= i; k++ {
			if _, ok := f.commits.get(blobschema.RecordRef{Seq: uint32(k + 1)}); !ok {
				t.Errorf("after %d commits: %d is forgotten", i+1, k+1)
			}
		}
	}
}

// TestPayloadsAreBounded checks that the payloads stored last, half of the bound, are known.
func TestPayloadsAreBounded(t *testing.T) {
	var p recent[string, blobschema.Original]
	const n = maxPayloads + 1
	for i := range n {
		p.put(fmt.Sprint(i), blobschema.Original{Offset: int64(i)}, maxPayloads)
		if held := len(p.young) + len(p.old); held > maxPayloads {
			t.Fatalf("%d payloads are known", held)
		}
	}
	for i := n - maxPayloads/2; i < n; i++ {
		if o, ok := p.get(fmt.Sprint(i)); !ok || o.Offset != int64(i) {
			t.Fatalf("payload %d of %d is %+v, %v", i, n, o, ok)
		}
	}
	if _, ok := p.get("0"); ok {
		t.Error("the first payload is known forever")
	}
}

// TestPreviousRecordsOfAnother checks that the previous answers of pages whose slot came from another partition are read from that
// partition's commits, each commit once.
func TestPreviousRecordsOfAnother(t *testing.T) {
	c, w := newCrawl(2), newWorld(t)
	host := ofPartition(t, c, 0)
	var requests []actor.Request
	w.web = changing(host, &requests)
	c = w.begin(c, all(host)[:30]...)
	cfg := StepConfig{Crawl: c, Process: "p"}
	small := cfg
	small.CommitPages = 11
	w.step(small, nil)
	w.give(c.ID, 1, hashOf(t, cfg.Crawl).Slot(host))
	w.crawlOn(cfg)
	requests = nil
	w.request(c.ID, blobschema.Request{ID: "r", Recrawl: all(host)[:30]})
	reads := map[string]int{}
	w.fault = func(e actor.Effect) (before, after error) {
		if g, ok := e.(actor.GetObject); ok && g.Length < 0 && strings.Contains(g.Name, "/p00000/") {
			reads[g.Name]++
		}
		return nil, nil
	}
	cfg.Partition, cfg.Deadline = 1, time.Hour
	w.step(cfg, nil)
	pages := 0
	for _, r := range requests {
		if r.Robots {
			continue
		}
		if pages++; r.Previous == nil || r.Previous.URL != r.URL.String() || r.Previous.ETag != `"v1"` || r.Generation != 1 {
			t.Errorf("%s, generation %d, former %+v", r.URL, r.Generation, r.Previous)
		}
	}
	if pages != 30 || len(reads) != 4 { // one read for the manifest
		t.Errorf("%d requests, %d commits are read", pages, len(reads))
	}
	for name, n := range reads {
		if n > 1 {
			t.Errorf("%s is read %d times", name, n)
		}
	}
	if got := w.records(c.ID, 1, all(host)[3]); len(got) != 1 || got[0].Generation != 1 {
		t.Errorf("%+v", got)
	}
}

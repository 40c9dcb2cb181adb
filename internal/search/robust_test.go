package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/wire"
)

func TestNothingIndexed(t *testing.T) {
	c := newCorpus(t, 2)
	if _, err := Open(t.Context(), c.memory, testCrawl, Options{}); !errors.Is(err, ErrNoIndex) || !strings.Contains(err.Error(), "orbweaver index") {
		t.Errorf("%v", err)
	}
	if _, err := Open(t.Context(), c.memory, "other", Options{}); err == nil {
		t.Error("an unknown crawl was opened")
	}
	c.commit(1, nil, nil)
	ix := c.open()
	if a := ask(t, ix, Request{Query: "coffee"}); a.Total != 0 || a.Results == nil || len(a.Notes) != 1 || a.Notes[0] != "The index is empty." {
		t.Errorf("%+v", a)
	}
	c.put(naming.IndexKey(testCrawl, 0), blobschema.IndexHead{}) // partition without commits
	if err := ix.Refresh(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRefresh checks that a refresh finds new documents, and reads no unchanged object again.
func TestRefresh(t *testing.T) {
	c := newCorpus(t, 2)
	coffee := &page{url: site + "a", body: "coffee"}
	c.commit(0, []blobschema.SegmentRef{c.segment(0, []*page{coffee}, false)}, nil)
	ix := c.open()
	ask(t, ix, Request{Query: "coffee"})
	c.commit(1, []blobschema.SegmentRef{c.segment(1, []*page{{url: site + "b", body: "coffee"}}, false)}, nil)
	if a := ask(t, ix, Request{Query: "coffee"}); a.Total != 1 || a.Reads != 0 {
		t.Errorf("%d documents, %d reads", a.Total, a.Reads)
	}
	if err := ix.Fresh(t.Context(), 1<<40); err != nil {
		t.Fatal(err)
	}
	if ix.Documents() != 1 {
		t.Error("refreshed too early")
	}
	before := c.reads
	if err := ix.Fresh(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if c.reads != before+1 { // one manifest
		t.Errorf("%d reads to refresh", c.reads-before)
	}
	snap := ix.now.Load()
	if err := ix.Refresh(t.Context()); err != nil || ix.now.Load().number != snap.number || !ix.now.Load().at.After(snap.at) || c.reads != before+1 {
		t.Errorf("unchanged objects were read again: %v", err)
	}
	a := ask(t, ix, Request{Query: "coffee"})
	if a.Total != 2 || a.Reads == 0 || a.Reads > 6 {
		t.Errorf("%d documents, %d reads", a.Total, a.Reads)
	}
}

// TestFresh checks that records are read again only if they are too old.
func TestFresh(t *testing.T) {
	c := newCorpus(t, 1)
	c.commit(0, nil, nil)
	ix := c.open()
	snap := ix.now.Load()
	if err := ix.Fresh(t.Context(), 1<<40); err != nil || ix.now.Load() != snap {
		t.Errorf("read again: %v", err)
	}
	if err := ix.Fresh(t.Context(), 0); err != nil || ix.now.Load() == snap {
		t.Errorf("not read again: %v", err)
	}
}

// TestRefreshMoved checks that, after slots have moved, a refresh without changes causes no reads, and one with
// changes hides removed documents.
func TestRefreshMoved(t *testing.T) {
	c := newCorpus(t, 2)
	old, other := &page{url: site + "a", body: "coffee", anchor: "bean"}, &page{url: site + "b", body: "coffee"}
	c.commit(0, []blobschema.SegmentRef{c.segment(0, []*page{old, other}, false)}, []blobschema.SegmentRef{c.segment(0, []*page{old}, true)})
	newer := *old
	newer.body, newer.generation = "coffee again", 1
	c.commit(1, []blobschema.SegmentRef{c.segment(1, []*page{&newer}, false)}, nil)
	c.put(naming.MapKey(testCrawl), blobschema.MapRecord{Version: 2, Epoch: 2, Partitions: 2})
	ix := c.open()
	req := Request{Query: "coffee bean OR coffee"}
	if a := ask(t, ix, req); a.Total != 2 {
		t.Errorf("%d documents", a.Total)
	}
	kept := len(ix.cache.entries)
	if err := ix.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := ask(t, ix, req); a.Total != 2 || a.Reads != 0 || len(ix.cache.entries) != kept {
		t.Errorf("%d documents, %d reads, %d cache entries, want %d", a.Total, a.Reads, len(ix.cache.entries), kept)
	}
	d := c.document(&newer)
	c.removed[1] = append(c.removed[1], blobschema.RemovedDocument{Fingerprint: d.Fingerprint, Slot: d.Slot, Generation: 2})
	c.commit(1, nil, nil)
	if err := ix.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := ask(t, ix, req); a.Total != 1 || a.Results[0].URL != other.url {
		t.Errorf("%d documents", a.Total)
	}
	m := blobschema.IndexManifest{Crawl: testCrawl, Partition: 1, Number: 9, Removed: []blobschema.RemovedDocument{{Slot: 1}, {}}, Terms: c.terms}
	data, err := blobschema.EncodeIndexManifest(&m)
	if err != nil {
		t.Fatal(err)
	}
	name := naming.IndexManifest(testCrawl, 1, 9, data)
	c.objects[name] = data
	c.put(naming.IndexKey(testCrawl, 1), blobschema.IndexHead{Partition: 1, Number: 9, Manifest: name})
	if err := ix.Refresh(t.Context()); !errors.Is(err, wire.ErrDamaged) {
		t.Errorf("removed documents out of order: %v", err)
	}
}

// TestVanished checks that a search reads the records again, once, if segments were merged and deleted.
func TestVanished(t *testing.T) {
	c := newCorpus(t, 1)
	old := c.segment(0, []*page{{url: site + "a", body: "coffee"}}, false)
	c.commit(0, []blobschema.SegmentRef{old}, nil)
	ix := c.open()
	merged := c.segment(0, []*page{{url: site + "a", body: "coffee"}, {url: site + "b", body: "coffee beans"}}, false)
	c.commit(0, []blobschema.SegmentRef{merged}, nil)
	delete(c.objects, old.Object)
	if a := ask(t, ix, Request{Query: "coffee"}); a.Total != 2 {
		t.Errorf("%d documents", a.Total)
	}
	delete(c.objects, merged.Object)
	ix.cache = newCache(1 << 20)
	if _, err := ix.Search(t.Context(), Request{Query: "coffee"}); err == nil || errors.Is(err, wire.ErrDamaged) {
		t.Errorf("segment deleted: %v", err)
	}
}

// TestTermsVersion checks that an index with another version of the terms is an error, because a search would
// miss results.
func TestTermsVersion(t *testing.T) {
	c := newCorpus(t, 1)
	c.terms++
	c.commit(0, []blobschema.SegmentRef{c.segment(0, []*page{{url: site, body: "coffee"}}, false)}, nil)
	if _, err := Open(t.Context(), c.memory, testCrawl, Options{}); !errors.Is(err, wire.ErrVersion) {
		t.Error(err)
	}
}

// TestDamaged checks that after damage to an object a query returns an error that names it, or the
// same answer.
func TestDamaged(t *testing.T) {
	c := newCorpus(t, 1)
	var pages []*page
	for i := range 200 {
		pages = append(pages, &page{url: fmt.Sprint(site, i), lang: "en", title: "Coffee", body: strings.Repeat(fmt.Sprintf("coffee beans w%d ", i), 40), anchor: "coffee", rank: 0.001})
	}
	seg, anchors := c.segment(0, pages, false), c.segment(0, pages, true)
	c.commit(0, []blobschema.SegmentRef{seg}, []blobschema.SegmentRef{anchors})
	c.rank(0, 1000, pages)
	req := Request{Query: `"coffee beans" anchor:coffee`, Explain: true}
	want := urls(ask(t, c.open(), req))
	rng := rand.New(rand.NewPCG(1, 1))
	failed := map[string]int{}
	for name, data := range c.objects {
		for range 60 {
			broken := bytes.Clone(data)
			broken[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
			if rng.IntN(4) == 0 {
				broken = broken[:rng.IntN(len(data))]
			}
			c.objects[name] = broken
			ix, err := Open(t.Context(), c.memory, testCrawl, Options{})
			var a *Answer
			if err == nil {
				a, err = ix.Search(t.Context(), req)
			}
			switch {
			case err == nil && !slices.Equal(urls(a), want):
				t.Errorf("%s: another answer", name)
			case err != nil && !strings.Contains(err.Error(), name) && len(broken) == len(data):
				t.Errorf("%s: %v", name, err)
			case err != nil && len(broken) == len(data) && !errors.Is(err, wire.ErrDamaged) && !errors.Is(err, wire.ErrVersion):
				t.Errorf("%s: %v", name, err)
			case err != nil:
				failed[name]++
			}
		}
		c.objects[name] = data
	}
	for name := range c.objects {
		if failed[name] < 10 {
			t.Errorf("%s: damage was seen %d times of 60", name, failed[name])
		}
	}
}

// TestRecordsDamaged checks that invalid values in records and manifests are errors.
func TestRecordsDamaged(t *testing.T) {
	for name, damage := range map[string]func(*corpus, *blobschema.SegmentRef){
		"size":      func(_ *corpus, r *blobschema.SegmentRef) { r.Bytes++ },
		"negative":  func(_ *corpus, r *blobschema.SegmentRef) { r.Bytes = -1 },
		"documents": func(_ *corpus, r *blobschema.SegmentRef) { r.Documents = 1 << 31 },
		"gone":      func(_ *corpus, r *blobschema.SegmentRef) { r.Gone = 9 },
		"deleted":   func(_ *corpus, r *blobschema.SegmentRef) { r.Deleted = []byte("?") },
		"lengths":   func(_ *corpus, r *blobschema.SegmentRef) { r.Lengths = make([]uint64, 100) },
		"map":       func(c *corpus, _ *blobschema.SegmentRef) { c.put(naming.MapKey(testCrawl), "?") },
		"many": func(c *corpus, _ *blobschema.SegmentRef) {
			c.put(naming.MapKey(testCrawl), blobschema.MapRecord{Partitions: 1 << 30})
		},
		"job":  func(c *corpus, _ *blobschema.SegmentRef) { c.put(naming.RankKey(testCrawl), []int{}) },
		"head": func(c *corpus, _ *blobschema.SegmentRef) { c.put(naming.IndexKey(testCrawl, 0), []int{}) },
	} {
		c := newCorpus(t, 1)
		ref := c.segment(0, []*page{{url: site, body: "coffee"}}, false)
		if name == "head" || name == "map" || name == "many" || name == "job" {
			c.commit(0, []blobschema.SegmentRef{ref}, nil)
		}
		damage(c, &ref)
		if name != "head" && name != "map" && name != "many" && name != "job" {
			c.commit(0, []blobschema.SegmentRef{ref}, nil)
		}
		ix, err := Open(t.Context(), c.memory, testCrawl, Options{})
		if err == nil {
			_, err = ix.Search(t.Context(), Request{Query: "coffee"})
		}
		if !errors.Is(err, wire.ErrDamaged) && name != "size" { // a size that is too large is a read past the end
			t.Errorf("%s: %v", name, err)
		} else if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestBudget checks that a query beyond its bound is cut short and reports it, and that a cancelled query ends.
func TestBudget(t *testing.T) {
	c := newCorpus(t, 1)
	var pages []*page
	for i := range 3000 {
		pages = append(pages, &page{url: fmt.Sprint(site, i), body: "coffee", simHash: uint64(i) << 8})
	}
	c.commit(0, []blobschema.SegmentRef{c.segment(0, pages[:1500], false), c.segment(0, pages[1500:], false)}, nil)
	ix, err := Open(t.Context(), c.memory, testCrawl, Options{MaxPostings: 1000})
	if err != nil {
		t.Fatal(err)
	}
	a := ask(t, ix, Request{Query: "coffee"})
	if !a.Cut || a.Total < 900 || a.Total > 1100 || len(a.Results) != 10 || !strings.Contains(Summary(a), "cut short") {
		t.Errorf("cut %v, %d documents: %s", a.Cut, a.Total, Summary(a))
	}
	if b := ask(t, ix, Request{Query: "coffee"}); !slices.Equal(urls(a), urls(b)) || a.Total != b.Total {
		t.Error("the same query was cut at another place")
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.fail = func(string) error { cancel(); return ctx.Err() }
	ix = c.open2(t)
	if _, err := ix.Search(ctx, Request{Query: "coffee"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	c.fail = nil
	if a := ask(t, ix, Request{Query: "coffee"}); a.Total != 3000 {
		t.Errorf("%d documents after a cancelled query", a.Total)
	}
}

// TestBudgetWithoutHits checks that the bound also holds for queries without results, because it
// counts the entries examined.
func TestBudgetWithoutHits(t *testing.T) {
	var pages []*page
	for i := range 2000 {
		pages = append(pages, &page{url: fmt.Sprintf("%s%04d", site, i), title: "between", body: []string{"coffee milk", "tea"}[i%2] + " " + strings.Repeat("sugar salt ", i%3)})
	}
	c := newCorpus(t, 1)
	c.commit(0, []blobschema.SegmentRef{c.segment(0, pages, false)}, nil)
	for _, query := range []string{"coffee tea", `"salt coffee"`, "between -between", `site:example.org "salt tea"`, `-"salt sugar" "milk tea"`} {
		ix, err := Open(t.Context(), c.memory, testCrawl, Options{MaxPostings: 500})
		if err != nil {
			t.Fatal(err)
		}
		if a := ask(t, ix, Request{Query: query}); !a.Cut || a.Total > 0 {
			t.Errorf("%s: cut %v, %d documents", query, a.Cut, a.Total)
		}
		if a := ask(t, c.open(), Request{Query: query}); a.Cut || a.Total > 0 {
			t.Errorf("%s, default bound: cut %v, %d documents", query, a.Cut, a.Total)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	m := meter{ctx: ctx, left: 1 << 20}
	if !m.spend(10_000) {
		t.Error("used up too early")
	}
	if cancel(); m.spend(10_000) || !errors.Is(m.err, context.Canceled) {
		t.Error("a cancelled query continues")
	}
}

// TestListsAreReleased checks that a query bounds the memory of its lists, and releases lists that it
// has evaluated.
func TestListsAreReleased(t *testing.T) {
	c := newCorpus(t, 1)
	var segs []blobschema.SegmentRef
	var pages []*page
	for i := range 12 {
		var some []*page
		for j := range 200 {
			some = append(some, &page{url: fmt.Sprint(site, 1000*i+j), body: fmt.Sprint("coffee beans x", j%50), anchor: "coffee"})
		}
		segs, pages = append(segs, c.segment(0, some, false)), append(pages, some...)
	}
	c.commit(0, segs, []blobschema.SegmentRef{c.segment(0, pages, true)})
	ix, err := Open(t.Context(), c.memory, testCrawl, Options{CacheBytes: 1000}) // less than the lists of a segment
	if err != nil {
		t.Fatal(err)
	}
	q, err := parse(`"coffee beans" x*`, &Request{})
	if err != nil {
		t.Fatal(err)
	}
	e := &evaluation{reader: reader{ix.store, ix.cache, &reads{}}, ix: ix, snap: ix.now.Load(), q: q, keep: 100}
	m, err := e.run(t.Context())
	if err != nil || m.total != 2400 {
		t.Fatal(m.total, err)
	}
	for _, s := range e.snap.segments {
		lists := e.lister(t.Context(), e.terms[s])
		for _, l := range e.leaves {
			for f := range segment.NumFields {
				lists.leaf(l, f)
			}
		}
		if lists.size() == 0 {
			t.Error("lists without bytes")
		}
	}
	if !e.memory.TryAcquire(ix.listBytes()) {
		t.Error("memory is not released")
	}
	if a := ask(t, ix, Request{Query: `"coffee beans" x*`, Explain: true, Limit: 100}); a.Results[99].Explain.Score != a.Results[99].Score {
		t.Errorf("%+v", a.Results[99])
	}
}

// open2 opens an index with an empty cache, without failures.
func (c *corpus) open2(t *testing.T) *Index {
	fail := c.fail
	c.fail = nil
	defer func() { c.fail = fail }()
	ix, err := Open(t.Context(), c.memory, testCrawl, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ix
}

// TestSideBySide runs many queries at once while the index changes, with a cache that is far too
// small.
func TestSideBySide(t *testing.T) {
	c := newCorpus(t, 1)
	var pages []*page
	for i := range 100 {
		pages = append(pages, &page{url: fmt.Sprint(site, i), body: "coffee " + strings.Repeat(fmt.Sprint("number", i, "x "), 50), anchor: "tea", rank: 0.01})
	}
	commit := func(n int) {
		c.mu.Lock()
		a, b := c.segment(0, pages[:n], false), c.segment(0, pages[n:], false)
		anchors := c.segment(0, pages, true)
		c.mu.Unlock()
		c.commit(0, []blobschema.SegmentRef{a, b}, []blobschema.SegmentRef{anchors})
	}
	commit(50)
	c.rank(0, 1000, pages)
	ix, err := Open(t.Context(), c.memory, testCrawl, Options{CacheBytes: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for j := range 10 {
				if i == 0 {
					commit(1 + 9*j)
				}
				if i == 1 {
					if err := ix.Refresh(t.Context()); err != nil {
						t.Error(err)
					}
				}
				a, err := ix.Search(t.Context(), Request{Query: fmt.Sprintf("coffee number%dx tea", 10*i+j), Explain: true})
				if err != nil || a.Total != 1 {
					t.Errorf("%+v, %v", a, err)
				}
			}
		})
	}
	wg.Wait()
}

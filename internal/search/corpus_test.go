package search

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/token"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// memory is a blobschema.Store in memory that counts reads.
type memory struct {
	mu      sync.Mutex
	records map[string][]byte
	objects map[string][]byte
	reads   int
	fail    func(object string) error // error of a read; nil: none
}

func (m *memory) Records(_ context.Context, keys ...string) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	values := make([][]byte, len(keys))
	for i, key := range keys {
		values[i] = m.records[key]
	}
	return values, nil
}

func (m *memory) List(context.Context, string) iter.Seq2[blobschema.StoredObject, error] {
	panic("a search must not list objects")
}

func (m *memory) Object(ctx context.Context, name string, off, length int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.objects[name]
	if !ok {
		return nil, fmt.Errorf("read object %s: not found", name)
	}
	if m.fail != nil {
		if err := m.fail(name); err != nil {
			return nil, err
		}
	}
	if length < 0 {
		length = int64(len(data))
	}
	if off+length > int64(len(data)) {
		return nil, errors.New("read past the end")
	}
	m.reads++
	return data[off : off+length : off+length], nil
}

func (m *memory) put(key string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[key] = b
}

// page is a page of a corpus.
type page struct {
	url, title, headings, body, anchor, aside string
	lang                                      string
	simHash                                   uint64
	generation                                uint32
	time                                      time.Time
	deleted                                   bool
	rank                                      float64 // the sum of all pages is 1; 0: unknown
}

func (p *page) fields() [segment.NumFields]string {
	return [segment.NumFields]string{segment.Title: p.title, segment.Headings: p.headings, segment.Body: p.body, segment.URL: p.url, segment.Aside: p.aside}
}

// corpus is a crawl with an index.
type corpus struct {
	testing.TB
	*memory
	crawl   blobschema.Crawl
	hash    partition.Hash
	numbers map[partition.ID]uint64
	removed map[partition.ID][]blobschema.RemovedDocument
	terms   int // version
}

const testCrawl = "test"

func newCorpus(t testing.TB, partitions int) *corpus {
	c := &corpus{TB: t, memory: &memory{records: map[string][]byte{}, objects: map[string][]byte{}}, numbers: map[partition.ID]uint64{}, removed: map[partition.ID][]blobschema.RemovedDocument{}, terms: token.Version}
	c.crawl = blobschema.Crawl{Version: wire.Version, ID: testCrawl, HashKey: make([]byte, 16), Slots: 64, Partitions: partitions}
	c.put(naming.CrawlKey(testCrawl), c.crawl)
	var err error
	if c.hash, err = c.crawl.Hash(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *corpus) document(p *page) segment.Document {
	u, err := weburl.Parse(p.url)
	if err != nil {
		c.Fatal(err)
	}
	key, _ := c.crawl.Settings.PartitionBy.Key(string(u.Host()))
	return segment.Document{
		URL: p.url, Host: string(u.Host()), Fingerprint: c.hash.Fingerprint(p.url), Slot: c.hash.Slot(key), Generation: p.generation,
		Time: p.time, Lang: p.lang, SimHash: p.simHash, Title: p.title, Text: p.body,
	}
}

func tokens(text, lang string) (out []segment.TermPosition) {
	for _, t := range token.Append(nil, text, lang) {
		out = append(out, segment.TermPosition{Term: t.Term, Position: t.Position})
	}
	return out
}

// segment stores a segment of pages, or of their anchor texts, and marks deleted pages.
func (c *corpus) segment(id partition.ID, pages []*page, anchors bool) blobschema.SegmentRef {
	c.Helper()
	b := segment.NewBuilder()
	for _, p := range pages {
		d := c.document(p)
		var fields [segment.NumFields][]segment.TermPosition
		if anchors {
			fields[segment.Anchor] = tokens(p.anchor, "")
			d = segment.Document{Fingerprint: d.Fingerprint, Slot: d.Slot}
		} else {
			for f, text := range p.fields() {
				lang := p.lang
				if segment.Field(f) == segment.URL {
					lang = ""
				}
				fields[f] = tokens(text, lang)
			}
		}
		if err := b.Add(d, fields); err != nil {
			c.Fatal(err)
		}
	}
	ref := c.finish(id, b)
	data := c.objects[ref.Object]
	if anchors || !slices.ContainsFunc(pages, func(p *page) bool { return p.deleted }) {
		return ref
	}
	r, err := segment.Open(segment.InMemory(data), ref.Bytes)
	if err != nil {
		c.Fatal(err)
	}
	cols, err := r.Columns()
	if err != nil {
		c.Fatal(err)
	}
	docs := map[uint64]uint32{}
	for doc := range uint32(len(pages)) {
		docs[cols.Fingerprint(doc)] = doc
	}
	gone := &segment.Set{}
	for _, p := range pages {
		if d := c.document(p); p.deleted {
			doc, ok := docs[d.Fingerprint]
			if !ok {
				c.Fatal("the segment lacks a document")
			}
			gone.Add(doc)
		}
	}
	ref.Deleted, ref.Gone = gone.AppendTo(nil), uint32(gone.Len())
	return ref
}

// finish stores the segment of a builder.
func (c *corpus) finish(id partition.ID, b *segment.Builder) blobschema.SegmentRef {
	c.Helper()
	out := b.Finish()
	data, sum := out.Data, out.Summary
	ref := blobschema.SegmentRef{Bytes: int64(len(data)), Documents: uint32(sum.Documents), First: sum.First, Last: sum.Last}
	for _, n := range sum.Lengths {
		ref.Lengths = append(ref.Lengths, uint64(n))
	}
	ref.Object = naming.Segment(testCrawl, id, c.numbers[id], data)
	c.objects[ref.Object] = data
	return ref
}

// commit makes segments the index of a partition.
func (c *corpus) commit(id partition.ID, segments, anchors []blobschema.SegmentRef) {
	c.Helper()
	c.mu.Lock()
	key, head := c.manifest(id, segments, anchors)
	c.mu.Unlock()
	c.put(key, head)
}

// manifest stores a manifest, and returns the key and the head that names it.
func (c *corpus) manifest(id partition.ID, segments, anchors []blobschema.SegmentRef) (string, blobschema.IndexHead) {
	c.numbers[id]++
	slices.SortFunc(c.removed[id], blobschema.RemovedDocument.Compare)
	m := blobschema.IndexManifest{Crawl: testCrawl, Partition: id, Number: c.numbers[id], Segments: segments, Anchors: anchors, Removed: c.removed[id], Terms: c.terms}
	data, err := blobschema.EncodeIndexManifest(&m)
	if err != nil {
		c.Fatal(err)
	}
	name := naming.IndexManifest(testCrawl, id, m.Number, data)
	c.objects[name] = data
	return naming.IndexKey(testCrawl, id), blobschema.IndexHead{Partition: id, Number: m.Number, Manifest: name}
}

// rank stores the ranks of a partition's pages.
func (c *corpus) rank(id partition.ID, nodes int64, pages []*page) {
	c.Helper()
	type entry struct {
		fp   uint64
		rank float64
	}
	var list []entry
	for _, p := range pages {
		if p.rank > 0 {
			list = append(list, entry{c.hash.Fingerprint(p.url), p.rank})
		}
	}
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.fp, b.fp) })
	list = slices.CompactFunc(list, func(a, b entry) bool { return a.fp == b.fp })
	var fps []uint64
	var values []float64
	for _, e := range list {
		fps, values = append(fps, e.fp), append(values, e.rank)
	}
	data, err := ranks.EncodeTable(nodes, fps, values)
	if err != nil {
		c.Fatal(err)
	}
	name := naming.RankObject(testCrawl, id, 1, "table", data)
	c.objects[name] = data
	c.put(naming.RankKey(testCrawl), ranks.Job{Number: 1, Done: time.Unix(1, 0)})
	c.put(naming.RankHeadKey(testCrawl, id), ranks.Head{Partition: id, Job: 1, Final: true, Next: ranks.Result{Job: 1, Table: name}})
}

func (c *corpus) open() *Index {
	c.Helper()
	ix, err := Open(c.Context(), c.memory, testCrawl, Options{})
	if err != nil {
		c.Fatal(err)
	}
	return ix
}

// one returns the index of a corpus of one partition with one segment of pages.
func one(t testing.TB, pages ...*page) *Index {
	t.Helper()
	c := newCorpus(t, 1)
	c.commit(0, []blobschema.SegmentRef{c.segment(0, pages, false)}, []blobschema.SegmentRef{c.segment(0, pages, true)})
	return c.open()
}

// urls returns the URLs of an answer's results.
func urls(a *Answer) (out []string) {
	for _, r := range a.Results {
		out = append(out, r.URL)
	}
	return out
}

func ask(t testing.TB, ix *Index, req Request) *Answer {
	t.Helper()
	a, err := ix.Search(t.Context(), req)
	if err != nil {
		t.Fatalf("%q: %v", req.Query, err)
	}
	return a
}

func sorted(list []string) []string {
	out := slices.Clone(list)
	slices.Sort(out)
	return out
}

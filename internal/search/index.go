package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/stored"
	"github.com/orbweaver/orbweaver/internal/token"
	"github.com/orbweaver/orbweaver/partition"
)

// Options say how much an [Index] may use. The zero value is good.
type Options struct {
	CacheBytes int64 // kept of what was read; 0: 128 MiB
	// MaxPostings is how many places in lists of documents one query looks at; 0: 20 million, some
	// seconds. It is dealt to the segments by their documents.
	MaxPostings int64
}

const (
	defaultCache    = 128 << 20
	defaultPostings = 20e6
	// What one query does side by side. It holds the lists of so many segments.
	parallelReads    = 32
	parallelSegments = 8
)

// ErrNoIndex says that nothing was indexed of a crawl yet.
var ErrNoIndex = errors.New("nothing is indexed yet; 'orbweaver index' does it")

// listBytes bounds the lists that one query holds at a time, unless those of one segment have more.
func (ix *Index) listBytes() int64 { return ix.opt.CacheBytes / 2 }

// Index is the index of a crawl, open to be searched. It is safe for concurrent use.
type Index struct {
	store  stored.Store
	id     string
	record blobschema.Crawl
	hash   partition.Hash
	opt    Options
	cache  *cache

	refreshing sync.Mutex
	now        atomic.Pointer[snapshot]
}

// Open opens the index of a crawl. The errors are [ErrNoIndex], those of the store, and
// blobschema's ErrDamaged and ErrVersion.
func Open(ctx context.Context, store stored.Store, crawlID string, opt Options) (*Index, error) {
	opt.CacheBytes = cmp.Or(opt.CacheBytes, defaultCache)
	opt.MaxPostings = cmp.Or(opt.MaxPostings, defaultPostings)
	ix := &Index{store: store, id: crawlID, opt: opt, cache: newCache(opt.CacheBytes)}
	found, err := stored.ReadOne(ctx, store, naming.CrawlKey(crawlID), &ix.record)
	if err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	if !found {
		return nil, fmt.Errorf("open index: there is no crawl %q", crawlID)
	}
	if ix.record.Version != wire.Version {
		return nil, fmt.Errorf("open index: crawl %s: %w: %d", crawlID, wire.ErrVersion, ix.record.Version)
	}
	if ix.hash, err = ix.record.Hash(); err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	if err := ix.Refresh(ctx); err != nil {
		return nil, err
	}
	return ix, nil
}

// Crawl is the crawl's id.
func (ix *Index) Crawl() string { return ix.id }

// Documents is how many documents there are, as of the last refresh.
func (ix *Index) Documents() int64 { return ix.now.Load().documents }

// snapshot is what there was at one moment. It is immutable.
type snapshot struct {
	at        time.Time // when the records were asked for
	number    int       // grows when they say something new
	parts     []*part   // of partitions with an index, by partition
	moved     bool      // slots have moved, or are by address: what belongs to a document may stand in several partitions
	documents int64
	// average is the mean length of a field.
	average [segment.NumFields]float64
}

// part is the index of a partition.
type part struct {
	head     blobschema.IndexHead
	segments []*seg
	anchors  []*seg
	removed  []blobschema.RemovedDocument
	table    string // object: ranks of the partition's pages; "" for none
}

// seg is a segment. Deleted are the documents that its manifest says so of; hidden those that do not
// count either as another partition knows better, where slots have moved.
type seg struct {
	ref     blobschema.SegmentRef
	deleted *segment.Set
	hidden  *segment.Set
	part    *part
}

// gone reports whether a document does not count any more.
func (s *seg) gone(doc uint32) bool { return s.deleted.Has(doc) || s.hidden.Has(doc) }

// Refresh reads the records again, and what they name that is new: what is unchanged, and what
// was read of it, stays.
func (ix *Index) Refresh(ctx context.Context) error {
	ix.refreshing.Lock()
	defer ix.refreshing.Unlock()
	return ix.refresh(ctx)
}

// Fresh refreshes what is older than d.
func (ix *Index) Fresh(ctx context.Context, d time.Duration) error {
	if time.Since(ix.now.Load().at) <= d {
		return nil
	}
	ix.refreshing.Lock()
	defer ix.refreshing.Unlock()
	if time.Since(ix.now.Load().at) <= d { // another has just done it
		return nil
	}
	return ix.refresh(ctx)
}

func (ix *Index) refresh(ctx context.Context) error {
	before := ix.now.Load()
	if before == nil {
		before = &snapshot{}
	}
	s, err := ix.take(ctx, before)
	if err != nil {
		return fmt.Errorf("read the index of crawl %s: %w", ix.id, err)
	}
	ix.now.Store(s)
	return nil
}

// take makes a snapshot. Records are not read at one moment, and need not be: each partition's
// index is whole in itself.
func (ix *Index) take(ctx context.Context, before *snapshot) (*snapshot, error) {
	s := &snapshot{at: time.Now()}
	var m blobschema.MapRecord
	var job ranks.Job
	if _, err := stored.Read(ctx, ix.store, []string{naming.MapKey(ix.id), naming.RankKey(ix.id)}, []any{&m, &job}); err != nil {
		return nil, err
	}
	n := max(ix.record.Partitions, m.Partitions)
	if n > partition.MaxPartitions {
		return nil, fmt.Errorf("map record: %w: %d partitions", wire.ErrDamaged, n)
	}
	// By address, a document is where the address belongs to, its rank and the texts of links to it where its name does.
	s.moved = m.Epoch > 1 || len(m.Moving) > 0 || ix.record.Settings.PartitionBy == blobschema.ByIP
	heads, tables, err := ix.heads(ctx, n, job.Finished())
	if err != nil {
		return nil, err
	}
	if len(heads) == 0 {
		return nil, ErrNoIndex
	}
	if before.is(heads, tables, s.moved) {
		same := *before
		same.at = s.at
		return &same, nil
	}
	s.number = before.number + 1
	if s.parts, err = ix.parts(ctx, before, heads); err != nil {
		return nil, err
	}
	for _, p := range s.parts {
		p.table = tables[p.head.Partition]
	}
	s.count()
	switch {
	case !s.moved:
	case before.moved && s.likeParts(before):
		for i, p := range s.parts {
			for j, g := range p.segments {
				g.hidden = before.parts[i].segments[j].hidden
			}
		}
	default:
		err = ix.hide(ctx, s)
	}
	return s, err
}

// heads reads the heads of n partitions' indexes, and by a finished rank job, if ranked is not nil, the names of their tables.
func (ix *Index) heads(ctx context.Context, n int, ranked *ranks.Job) (heads []blobschema.IndexHead, tables map[partition.ID]string, err error) {
	keys, to := make([]string, 0, 2*n), make([]any, 0, 2*n)
	indexes, results := make([]blobschema.IndexHead, n), make([]ranks.Head, n)
	for p := range partition.ID(n) {
		keys, to = append(keys, naming.IndexKey(ix.id, p)), append(to, &indexes[p])
	}
	if ranked != nil {
		for p := range partition.ID(n) {
			keys, to = append(keys, naming.RankHeadKey(ix.id, p)), append(to, &results[p])
		}
	}
	found, err := stored.Read(ctx, ix.store, keys, to)
	if err != nil {
		return nil, nil, err
	}
	tables = map[partition.ID]string{}
	for p := range partition.ID(n) {
		if found[p] {
			indexes[p].Partition = p
			heads = append(heads, indexes[p])
		}
		if ranked == nil || !found[n+int(p)] {
			continue
		}
		if result, ok := results[p].Result(ranked.Number); ok {
			tables[p] = result.Table
		}
	}
	return heads, tables, nil
}

// likeParts reports whether all partitions' manifests are those of another snapshot.
func (s *snapshot) likeParts(o *snapshot) bool {
	return slices.EqualFunc(s.parts, o.parts, func(p, q *part) bool { return p.head.Manifest == q.head.Manifest })
}

// is reports whether records say what s was made of.
func (s *snapshot) is(heads []blobschema.IndexHead, tables map[partition.ID]string, moved bool) bool {
	return s.moved == moved && slices.EqualFunc(s.parts, heads, func(p *part, h blobschema.IndexHead) bool {
		return p.head.Partition == h.Partition && p.head.Manifest == h.Manifest && p.table == tables[h.Partition]
	})
}

// parts reads the manifests that heads name, but for those that are known.
func (ix *Index) parts(ctx context.Context, before *snapshot, heads []blobschema.IndexHead) ([]*part, error) {
	out := make([]*part, len(heads))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReads)
	for i, h := range heads {
		at := slices.IndexFunc(before.parts, func(p *part) bool { return p.head.Manifest == h.Manifest })
		if at >= 0 {
			out[i] = before.parts[at].clone()
			continue
		}
		g.Go(func() (err error) {
			out[i], err = ix.manifest(ctx, h)
			return err
		})
	}
	return out, g.Wait()
}

// clone is a part for another snapshot.
func (p *part) clone() *part {
	c := &part{head: p.head, removed: p.removed}
	for _, s := range p.segments {
		c.segments = append(c.segments, &seg{ref: s.ref, deleted: s.deleted, part: c})
	}
	for _, s := range p.anchors {
		c.anchors = append(c.anchors, &seg{ref: s.ref, deleted: s.deleted, part: c})
	}
	return c
}

// maxSegments bounds what a manifest may name.
const maxSegments = 10_000

func (ix *Index) manifest(ctx context.Context, h blobschema.IndexHead) (*part, error) {
	p := &part{head: h}
	if h.Manifest == "" { // nothing was committed when it was indexed
		return p, nil
	}
	data, err := ix.store.Object(ctx, h.Manifest, 0, -1)
	if err != nil {
		return nil, err
	}
	m, err := blobschema.DecodeIndexManifest(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Manifest, err)
	}
	if err := m.CheckTerms(token.Version); err != nil {
		return nil, fmt.Errorf("%s: %w", h.Manifest, err)
	}
	if !slices.IsSortedFunc(m.Removed, blobschema.RemovedDocument.Compare) {
		return nil, fmt.Errorf("%s: %w: removed documents are not in order", h.Manifest, wire.ErrDamaged)
	}
	if m.Crawl != ix.id || len(m.Segments)+len(m.Anchors) > maxSegments {
		return nil, fmt.Errorf("%s: %w: of crawl %.40q, with %d segments", h.Manifest, wire.ErrDamaged, m.Crawl, len(m.Segments)+len(m.Anchors))
	}
	p.removed = m.Removed
	for list, to := range map[*[]blobschema.SegmentRef]*[]*seg{&m.Segments: &p.segments, &m.Anchors: &p.anchors} {
		for _, ref := range *list {
			s := &seg{ref: ref, part: p}
			if len(ref.Deleted) > 0 {
				if s.deleted, err = segment.DecodeSet(ref.Deleted, int(ref.Documents)); err != nil {
					return nil, fmt.Errorf("%s: deleted documents of %s: %w", h.Manifest, ref.Object, err)
				}
			}
			if ref.Gone > ref.Documents || ref.Bytes <= 0 || len(ref.Lengths) > int(segment.NumFields) {
				return nil, fmt.Errorf("%s: %w: segment %.100q", h.Manifest, wire.ErrDamaged, ref.Object)
			}
			*to = append(*to, s)
		}
	}
	return p, nil
}

// count adds up what scores need to know of all documents.
func (s *snapshot) count() {
	var lengths, of [segment.NumFields]float64
	for _, p := range s.parts {
		for _, g := range p.segments {
			s.documents += int64(g.ref.Documents - g.ref.Gone)
			add(&lengths, &of, g.ref, func(f segment.Field) bool { return f != segment.Anchor })
		}
		for _, g := range p.anchors {
			add(&lengths, &of, g.ref, func(f segment.Field) bool { return f == segment.Anchor })
		}
	}
	for f := range lengths {
		s.average[f] = 1
		if of[f] > 0 && lengths[f] > 0 {
			s.average[f] = lengths[f] / of[f]
		}
	}
}

func add(lengths, of *[segment.NumFields]float64, ref blobschema.SegmentRef, counts func(segment.Field) bool) {
	for f, n := range ref.Lengths {
		if counts(segment.Field(f)) {
			lengths[f] += float64(n)
			of[f] += float64(ref.Documents)
		}
	}
}

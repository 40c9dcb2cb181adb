package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/token"
	"github.com/orbweaver/orbweaver/partition"
)

// Options are the limits of an [Index]. The zero value means the defaults.
type Options struct {
	CacheBytes int64 // size of the cache; 0: 128 MiB
	// MaxPostings bounds the entries of lists that one query examines; 0: 20 million, which takes some seconds.
	// Each segment gets a share by its number of documents.
	MaxPostings int64
}

const (
	defaultCache    = 128 << 20
	defaultPostings = 20e6
	// Parallel work of one query. It holds the lists of parallelSegments segments.
	parallelReads    = 32
	parallelSegments = 8
)

// ErrNoIndex reports that nothing of a crawl is indexed yet.
var ErrNoIndex = errors.New("nothing is indexed yet; 'orbweaver index' does it")

// listBytes bounds the lists in memory of one query, unless one segment needs more.
func (ix *Index) listBytes() int64 { return ix.opt.CacheBytes / 2 }

// Index is the index of a crawl, open for searches. It is safe for concurrent use.
type Index struct {
	store  blobschema.Store
	id     string
	record blobschema.Crawl
	hash   partition.Hash
	opt    Options
	cache  *cache

	refreshing sync.Mutex
	now        atomic.Pointer[snapshot]
}

// Open opens the index of a crawl. The errors are [ErrNoIndex], those of the store, [wire.ErrDamaged] and
// [wire.ErrVersion].
func Open(ctx context.Context, store blobschema.Store, crawlID string, opt Options) (*Index, error) {
	opt.CacheBytes = cmp.Or(opt.CacheBytes, defaultCache)
	opt.MaxPostings = cmp.Or(opt.MaxPostings, defaultPostings)
	ix := &Index{store: store, id: crawlID, opt: opt, cache: newCache(opt.CacheBytes)}
	found, err := blobschema.ReadRecord(ctx, store, naming.CrawlKey(crawlID), &ix.record)
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

// Crawl returns the id of the crawl.
func (ix *Index) Crawl() string { return ix.id }

// Documents returns the number of documents, as of the last refresh.
func (ix *Index) Documents() int64 { return ix.now.Load().documents }

// snapshot is the state of the index at one moment. It is immutable, and shares its parts with other snapshots.
type snapshot struct {
	at     time.Time // when the reading of the records began
	number int       // grows when the records have changed
	parts  []*part   // of partitions with an index, by partition
	// The segments of all parts that are not empty.
	segments, anchors []*seg
	tables            map[partition.ID]string // objects: ranks of the pages of each partition
	// moved reports that slots have moved, or depend on addresses. Then several partitions may have data of a document.
	moved     bool
	hidden    map[*seg]*segment.Set // documents outdated by another partition, if moved
	documents int64
	stored    int64                      // documents, including deleted ones
	average   [segment.NumFields]float64 // mean lengths
}

// part is the index of a partition, by one manifest.
type part struct {
	head     blobschema.IndexHead
	segments []*seg
	anchors  []*seg
	removed  []blobschema.RemovedDocument
}

// seg is a segment.
type seg struct {
	ref     blobschema.SegmentRef
	deleted *segment.Set // by its manifest
	part    *part
}

// gone returns a function that reports whether a document of a segment is deleted or hidden.
func (s *snapshot) gone(of *seg) func(doc uint32) bool {
	hidden := s.hidden[of]
	return func(doc uint32) bool { return of.deleted.Has(doc) || hidden.Has(doc) }
}

// Refresh reads the records again, and the manifests that are new. The cache stays.
func (ix *Index) Refresh(ctx context.Context) error {
	return ix.Fresh(ctx, 0)
}

// Fresh refreshes the index if it is older than d.
func (ix *Index) Fresh(ctx context.Context, d time.Duration) error {
	young := func() bool { now := ix.now.Load(); return now != nil && d > 0 && time.Since(now.at) <= d }
	if young() {
		return nil
	}
	ix.refreshing.Lock()
	defer ix.refreshing.Unlock()
	if young() { // another call has just refreshed it
		return nil
	}
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

// take makes a snapshot. The records are not read at one moment, and need not be, because the index of each
// partition is complete by itself.
func (ix *Index) take(ctx context.Context, before *snapshot) (*snapshot, error) {
	s := &snapshot{at: time.Now()}
	var m blobschema.MapRecord
	var job ranks.Job
	if _, err := blobschema.ReadRecords(ctx, ix.store, []string{naming.MapKey(ix.id), naming.RankKey(ix.id)}, []any{&m, &job}); err != nil {
		return nil, err
	}
	n := max(ix.record.Partitions, m.Partitions)
	if n > partition.MaxPartitions {
		return nil, fmt.Errorf("map record: %w: %d partitions", wire.ErrDamaged, n)
	}
	// If slots depend on addresses, a document is in the slot of its address, but its rank and the texts of links
	// to it are in that of its name.
	s.moved = m.Epoch > 1 || len(m.Moving) > 0 || ix.record.Settings.PartitionBy == blobschema.ByIP
	// Read the heads. If they have not changed, the snapshot stays.
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
	// Read the new manifests.
	s.number = before.number + 1
	if s.parts, err = ix.parts(ctx, before, heads); err != nil {
		return nil, err
	}
	s.tables = tables
	s.count()
	if s.moved {
		s.hidden, err = ix.hide(ctx, s)
	}
	return s, err
}

// heads reads the heads of n partitions' indexes and, if a rank job is finished, the names of its tables.
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
	found, err := blobschema.ReadRecords(ctx, ix.store, keys, to)
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

// is reports whether s was made from these records.
func (s *snapshot) is(heads []blobschema.IndexHead, tables map[partition.ID]string, moved bool) bool {
	return s.moved == moved && maps.Equal(s.tables, tables) && slices.EqualFunc(s.parts, heads, func(p *part, h blobschema.IndexHead) bool {
		return p.head.Partition == h.Partition && p.head.Manifest == h.Manifest
	})
}

// parts reads the manifests that heads name, except those of the previous snapshot.
func (ix *Index) parts(ctx context.Context, before *snapshot, heads []blobschema.IndexHead) ([]*part, error) {
	out := make([]*part, len(heads))
	return out, parallel(parallelReads, heads, func(i int, h blobschema.IndexHead) (err error) {
		if at := slices.IndexFunc(before.parts, func(p *part) bool { return p.head.Manifest == h.Manifest }); at >= 0 {
			out[i] = before.parts[at]
			return nil
		}
		out[i], err = ix.manifest(ctx, h)
		return err
	})
}

// maxSegments bounds the segments of a manifest.
const maxSegments = 10_000

func (ix *Index) manifest(ctx context.Context, h blobschema.IndexHead) (*part, error) {
	p := &part{head: h}
	if h.Manifest == "" { // there was no commit to index
		return p, nil
	}
	m, err := blobschema.ReadIndexManifest(blobschema.GetFrom(ctx, ix.store), h.Manifest)
	if err != nil {
		return nil, err
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
			if s.deleted, err = segment.DecodeSet(ref.Deleted, int(ref.Documents)); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", h.Manifest, ref.Object, err)
			}
			if ref.Gone > ref.Documents || ref.Bytes <= 0 || len(ref.Lengths) > int(segment.NumFields) {
				return nil, fmt.Errorf("%s: %w: segment %.100q", h.Manifest, wire.ErrDamaged, ref.Object)
			}
			*to = append(*to, s)
		}
	}
	return p, nil
}

// count collects the segments, and computes the statistics for scores.
func (s *snapshot) count() {
	var lengths, of [segment.NumFields]float64
	for _, p := range s.parts {
		for _, g := range p.segments {
			s.documents += int64(g.ref.Documents - g.ref.Gone)
			s.stored += int64(g.ref.Documents)
		}
		s.segments, s.anchors = append(s.segments, p.segments...), append(s.anchors, p.anchors...)
	}
	empty := func(g *seg) bool { return g.ref.Documents == 0 }
	s.segments, s.anchors = slices.DeleteFunc(s.segments, empty), slices.DeleteFunc(s.anchors, empty)
	for f := range segment.NumFields {
		in := s.segments
		if f == segment.Anchor {
			in = s.anchors
		}
		for _, g := range in {
			if int(f) < len(g.ref.Lengths) {
				lengths[f] += float64(g.ref.Lengths[f])
				of[f] += float64(g.ref.Documents)
			}
		}
		s.average[f] = 1
		if of[f] > 0 && lengths[f] > 0 {
			s.average[f] = lengths[f] / of[f]
		}
	}
}

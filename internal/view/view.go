package view

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/stored"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// View is a crawl, looked at. Each method that takes a context reads anew: of a
// crawl that runs, two calls may show two moments. It is safe for concurrent use.
type View struct {
	store    stored.Store
	id       string
	hash     partition.Hash
	division *division
	by       blobschema.PartitionBy
	still    *moment // of a frozen view, else nil
	close    func() error
}

// moment is what a frozen view was frozen at.
type moment struct {
	record blobschema.MapRecord
	heads  []blobschema.Head // by partition
}

// ErrNoCrawl says that the store, or folder, holds no crawl.
var ErrNoCrawl = errors.New("there is no crawl")

// Open opens the crawl in a folder for reading; see the package documentation. The
// errors are [ErrNoFolder], [ErrNoCrawl], those of opening a folder (package local:
// ErrInUse if its owner does not answer) and wire.ErrVersion.
func Open(ctx context.Context, dir string) (*View, error) {
	s, err := openFolder(ctx, dir)
	if err != nil {
		return nil, err
	}
	v, err := New(ctx, s)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	v.close = s.close
	return v, nil
}

// New returns a view of the active crawl in a store, which stays the caller's.
func New(ctx context.Context, s stored.Store) (*View, error) {
	v := &View{store: s, close: func() error { return nil }}
	var active struct {
		Crawl string `json:"crawl"`
	}
	if found, err := v.record(ctx, naming.ActiveKey, &active); err != nil {
		return nil, err
	} else if !found {
		return nil, ErrNoCrawl
	}
	return v, v.of(ctx, active.Crawl)
}

// of makes v one of the crawl with the given id.
func (v *View) of(ctx context.Context, id string) error {
	v.id = id
	c, err := v.Crawl(ctx)
	if err != nil {
		return err
	}
	if c.Version != wire.Version {
		return fmt.Errorf("crawl %s: %w: %d", id, wire.ErrVersion, c.Version)
	}
	if v.hash, err = c.Hash(); err != nil {
		return err
	}
	v.by = c.Settings.PartitionBy
	first, err := partition.NewMap(c.Slots, c.Partitions)
	if err != nil {
		return err
	}
	v.division = newDivision(&c, first)
	return nil
}

// Close gives back what Open took.
func (v *View) Close() error { return v.close() }

// Store is what the view reads.
func (v *View) Store() stored.Store { return v.store }

// Live is what the process at work on the folder says of itself; nil if there is none.
func (v *View) Live(ctx context.Context) *control.Live {
	if s, ok := v.store.(*folderStore); ok {
		return s.live(ctx)
	}
	return nil
}

// record reads a JSON record into to, and reports whether there is one.
func (v *View) record(ctx context.Context, key string, to any) (bool, error) {
	return stored.ReadOne(ctx, v.store, key, to)
}

// ID is the crawl's.
func (v *View) ID() string { return v.id }

// Crawl reads the crawl's record.
func (v *View) Crawl(ctx context.Context) (c blobschema.Crawl, err error) {
	found, err := v.record(ctx, naming.CrawlKey(v.id), &c)
	if err == nil && !found {
		err = fmt.Errorf("%w with id %q", ErrNoCrawl, v.id)
	}
	return c, err
}

// Wish reads what the operator wants of the crawl.
func (v *View) Wish(ctx context.Context) (w blobschema.Wish, err error) {
	_, err = v.record(ctx, naming.WishKey(v.id), &w)
	return w, err
}

// Heads reads the heads of the partitions that have one, by partition.
func (v *View) Heads(ctx context.Context) ([]blobschema.Head, error) {
	heads, _, err := v.headsAnd(ctx, nil, nil)
	return heads, err
}

// headsAnd reads all heads and the map record, and with them other records, as [stored.Read] does.
func (v *View) headsAnd(ctx context.Context, keys []string, to []any) ([]blobschema.Head, blobschema.MapRecord, error) {
	var r blobschema.MapRecord
	if v.still != nil && len(keys) == 0 {
		return slices.Clone(v.still.heads), v.still.record, nil
	}
	n := v.division.known()
	heads, err := v.headsWith(ctx, partition.All(n), append(keys, naming.MapKey(v.id)), append(to, &r))
	if err == nil {
		err = v.division.check(&r)
	}
	if err != nil || r.Partitions == n {
		return heads, r, err
	}
	more, err := v.headsWith(ctx, partition.All(r.Partitions)[n:], nil, nil) // of partitions that are new
	return append(heads, more...), r, err
}

// headsOf reads the heads of some partitions that have one, by partition; nil stands for all.
func (v *View) headsOf(ctx context.Context, ids []partition.ID) (heads []blobschema.Head, err error) {
	switch {
	case ids == nil:
		return v.Heads(ctx)
	case v.still != nil:
		for _, p := range ids {
			if h := headOf(v.still.heads, p); h != nil {
				heads = append(heads, *h)
			}
		}
	default:
		heads, err = v.headsWith(ctx, ids, nil, nil)
	}
	slices.SortFunc(heads, func(a, b blobschema.Head) int { return cmp.Compare(a.Partition, b.Partition) })
	return heads, err
}

// headsWith reads the heads of partitions that have one, in their order, and with them
// other records.
func (v *View) headsWith(ctx context.Context, ids []partition.ID, keys []string, to []any) ([]blobschema.Head, error) {
	others := len(keys)
	heads := make([]blobschema.Head, len(ids))
	for i, p := range ids {
		keys, to = append(keys, naming.HeadKey(v.id, p)), append(to, &heads[i])
	}
	found, err := stored.Read(ctx, v.store, keys, to)
	if err != nil {
		return nil, err
	}
	there := heads[:0]
	for i := range ids {
		if found[others+i] {
			there = append(there, heads[i])
		}
	}
	return there, nil
}

// headOf finds the head of a partition among heads by partition; nil if it has none.
func headOf(heads []blobschema.Head, p partition.ID) *blobschema.Head {
	i, found := slices.BinarySearchFunc(heads, p, func(h blobschema.Head, p partition.ID) int { return cmp.Compare(h.Partition, p) })
	if !found {
		return nil
	}
	return &heads[i]
}

// Freeze returns a view of the commits that are visible now. All that is read through it,
// in any number of passes, is of this moment. Closing it does nothing.
func (v *View) Freeze(ctx context.Context) (*View, error) {
	frozen := *v
	frozen.close = func() error { return nil }
	heads, r, err := v.headsAnd(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	frozen.still = &moment{r, heads}
	return &frozen, nil
}

// Commit is a visible commit.
type Commit struct {
	Name string
	*blobschema.CommitReader
}

// Commits yields all visible commits by partition, the oldest first. An error ends it.
func (v *View) Commits(ctx context.Context) iter.Seq2[Commit, error] {
	return v.commits(ctx, nil, nil)
}

// commits yields the commits of some partitions, nil for all, that are not visible in a
// frozen view, nil for none.
func (v *View) commits(ctx context.Context, ids []partition.ID, before *View) iter.Seq2[Commit, error] {
	return func(yield func(Commit, error) bool) {
		heads, err := v.headsOf(ctx, ids)
		if err != nil {
			yield(Commit{}, err)
			return
		}
		names := func(yield func(string, error) bool) {
			for i := range heads {
				h, first := &heads[i], uint64(0)
				if before != nil {
					if old := headOf(before.still.heads, h.Partition); old != nil {
						first = old.Seq
					}
				}
				if h.Commit == "" || h.Seq <= first {
					continue
				}
				m, err := stored.Manifest(stored.Under(ctx, v.store), h.Commit)
				if err != nil {
					yield("", err)
					return
				}
				for _, name := range blobschema.CommitsAfter(m, first) {
					if !yield(name, ctx.Err()) { // files do not look at the context
						return
					}
				}
			}
		}
		for o, err := range v.objects(ctx, names) {
			var r *blobschema.CommitReader
			if err == nil {
				if r, err = blobschema.OpenCommit(o.data); err != nil {
					err = fmt.Errorf("open %s: %w", o.name, err)
				}
			}
			if !yield(Commit{o.name, r}, err) || err != nil {
				return
			}
		}
	}
}

// Records says which page records are wanted of a URL that was asked for again.
type Records uint8

// The choices.
const (
	EveryRecord  Records = iota
	LatestRecord         // the one of the highest generation, and of those the latest
)

// Pages yields the visible page records, robots.txt included: by partition, in the
// order of commits. An error ends it. For LatestRecord everything is read twice, of a
// crawl that runs through a frozen view.
func (v *View) Pages(ctx context.Context, which Records) iter.Seq2[blobschema.Page, error] {
	every := v.pages(ctx, nil, nil)
	if which == EveryRecord {
		return every
	}
	return func(yield func(blobschema.Page, error) bool) {
		best := map[uint64]blobschema.Page{} // of URLs that may have several: few
		for pg, err := range every {
			if err != nil {
				yield(pg, err)
				return
			}
			if fp := v.hash.Fingerprint(pg.URL); (pg.Generation > 0 || pg.Robots) && newer(pg, best[fp]) {
				best[fp] = blobschema.Page{URL: pg.URL, Generation: pg.Generation, Time: pg.Time, Robots: pg.Robots}
			}
		}
		for pg, err := range every {
			if b, ok := best[v.hash.Fingerprint(pg.URL)]; err == nil && ok && b.Robots == pg.Robots && newer(b, pg) {
				continue
			}
			if !yield(pg, err) {
				return
			}
		}
	}
}

// newer reports whether a is a later record of a URL than b.
func newer(a, b blobschema.Page) bool {
	return a.Generation > b.Generation || a.Generation == b.Generation && a.Time.After(b.Time)
}

// pages yields the page records of [View.commits].
func (v *View) pages(ctx context.Context, ids []partition.ID, before *View) iter.Seq2[blobschema.Page, error] {
	return func(yield func(blobschema.Page, error) bool) {
		for c, err := range v.commits(ctx, ids, before) {
			var list []blobschema.Page
			if err == nil {
				if list, err = c.Pages(); err != nil {
					err = fmt.Errorf("pages of %s: %w", c.Name, err)
				}
			}
			if err != nil {
				yield(blobschema.Page{}, err)
				return
			}
			for _, pg := range list {
				if !yield(pg, nil) {
					return
				}
			}
		}
	}
}

// PagesSince yields the page records of the commits that are visible in v and were not
// visible in before, a frozen view: of some partitions, nil for all, in the order of
// partitions and commits. An error ends it.
func (v *View) PagesSince(ctx context.Context, ids []partition.ID, before *View) iter.Seq2[blobschema.Page, error] {
	return v.pages(ctx, ids, before)
}

// Owners returns the partitions that may get page records of some URLs, or got some not
// long ago: those that own their slots, or did by the former maps that the record names; or
// all where the addresses of their hosts decide.
func (v *View) Owners(ctx context.Context, urls []weburl.URL) ([]partition.ID, error) {
	slots := map[partition.Slot]bool{}
	for _, u := range urls {
		key, placed := v.by.Key(string(u.Host()))
		if v.by == blobschema.ByIP && !placed {
			return v.all(ctx)
		}
		slots[v.hash.Slot(key)] = true
	}
	r, err := v.MapRecord(ctx)
	if err != nil {
		return nil, err
	}
	owners := map[partition.ID]bool{}
	for _, object := range append(r.Former, r.Object) {
		m, err := v.mapOf(ctx, &r, object)
		if err != nil {
			return nil, err
		}
		for s := range slots {
			owners[m.Owner(s)] = true
		}
	}
	for i := range r.Moving {
		if slices.ContainsFunc(r.Moving[i].Slots, func(s partition.Slot) bool { return slots[s] }) {
			owners[r.Moving[i].From] = true
		}
	}
	return slices.Sorted(maps.Keys(owners)), nil
}

// WARCs yields the names of the WARC objects of all visible commits.
func (v *View) WARCs(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for c, err := range v.Commits(ctx) {
			var m blobschema.Manifest
			if err == nil {
				m, err = c.Manifest()
			}
			if err != nil {
				yield("", err)
				return
			}
			for _, w := range m.WARCs {
				if !yield(w, nil) {
					return
				}
			}
		}
	}
}

// Member reads the bytes of a page's response record as they are stored.
func (v *View) Member(ctx context.Context, pg blobschema.Page) ([]byte, error) {
	if pg.WARC == "" {
		return nil, fmt.Errorf("no answer of %s is kept: %s", pg.URL, pg.Outcome)
	}
	if pg.Length <= 0 || pg.Length > warc.MaxBlock {
		return nil, fmt.Errorf("read record of %s: %w: %d bytes", pg.URL, wire.ErrDamaged, pg.Length)
	}
	return v.store.Object(ctx, pg.WARC, pg.Offset, pg.Length)
}

// Response reads and verifies a page's response record; of a revisit, the record that
// stands in for it, with the header only.
func (v *View) Response(ctx context.Context, pg blobschema.Page) (*warc.Record, error) {
	kind := warc.TypeResponse
	if pg.Original != nil {
		kind = warc.TypeRevisit
	}
	return v.warcRecord(ctx, pg, kind)
}

// Payload reads and verifies the response record with the payload of a page's answer:
// its own, or the original of a revisit.
func (v *View) Payload(ctx context.Context, pg blobschema.Page) (*warc.Record, error) {
	if pg.Original == nil {
		return v.Response(ctx, pg)
	}
	o := pg.Payload()
	rec, err := v.warcRecord(ctx, blobschema.Page{URL: o.URL, WARC: o.WARC, Offset: o.Offset, Length: o.Length}, warc.TypeResponse)
	if err == nil && pg.Digest != "" && rec.PayloadDigest != pg.Digest {
		err = fmt.Errorf("%w: its payload is %s, not %s", wire.ErrDamaged, rec.PayloadDigest, pg.Digest)
	}
	if err != nil {
		return nil, fmt.Errorf("original of %s: %w", pg.URL, err)
	}
	return rec, nil
}

func (v *View) warcRecord(ctx context.Context, pg blobschema.Page, kind warc.Type) (*warc.Record, error) {
	data, err := v.Member(ctx, pg)
	if err != nil {
		return nil, err
	}
	rec, err := warc.ReadAt(bytes.NewReader(data), 0, int64(len(data)))
	if err == nil {
		err = rec.Verify()
	}
	if err == nil && (rec.TargetURI != pg.URL || rec.Type != kind) {
		err = fmt.Errorf("%w: it is a %s of %s", wire.ErrDamaged, rec.Type, rec.TargetURI)
	}
	if err != nil {
		return nil, fmt.Errorf("read record of %s in %s at %d: %w", pg.URL, pg.WARC, pg.Offset, err)
	}
	return rec, nil
}

// File returns the path of an object's file; "" where objects are not files.
func (v *View) File(ctx context.Context, name string) (string, error) {
	switch s := v.store.(type) {
	case *folderStore:
		return s.file(ctx, name)
	case platformStore:
		return s.file(ctx, name)
	}
	return "", nil
}

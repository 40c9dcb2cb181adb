package view

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// Commit is a visible commit.
type Commit struct {
	Name string
	*blobschema.CommitReader
}

// Commits yields all visible commits by partition, the oldest first. An error ends it.
func (v *View) Commits(ctx context.Context) iter.Seq2[Commit, error] {
	return v.CommitsAfter(ctx, nil, func(partition.ID) uint64 { return 0 })
}

// CommitsAfter yields the visible commits of some partitions, nil for all, after the number that after returns for
// each partition. It yields the name of a commit that it cannot read with the error.
func (v *View) CommitsAfter(ctx context.Context, ids []partition.ID, after func(partition.ID) uint64) iter.Seq2[Commit, error] {
	return func(yield func(Commit, error) bool) {
		heads, err := v.headsOf(ctx, ids)
		if err != nil {
			yield(Commit{}, err)
			return
		}
		names := func(yield func(string, error) bool) {
			for i := range heads {
				h := &heads[i]
				first := after(h.Partition)
				if h.Commit == "" || h.Seq <= first {
					continue
				}
				m, err := blobschema.ReadManifest(blobschema.GetFrom(ctx, v.store), h.Commit)
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

// Records selects page records of a URL that was requested several times.
type Records uint8

// The choices.
const (
	EveryRecord  Records = iota
	LatestRecord         // the latest record of the highest generation
)

// Pages yields the visible page records, robots.txt included, by partition and in the order
// of commits. An error ends it. For LatestRecord it reads everything twice; use a frozen
// view of a crawl that runs.
func (v *View) Pages(ctx context.Context, which Records) iter.Seq2[blobschema.Page, error] {
	every := v.PagesSince(ctx, nil, nil)
	if which == EveryRecord {
		return every
	}
	return func(yield func(blobschema.Page, error) bool) {
		superseded, err := v.superseded(ctx, which)
		if err != nil {
			yield(blobschema.Page{}, err)
			return
		}
		for pg, err := range every {
			if err == nil && superseded(&pg) {
				continue
			}
			if !yield(pg, err) {
				return
			}
		}
	}
}

// superseded returns a function that reports whether a later record replaces one, in a selection of records.
func (v *View) superseded(ctx context.Context, which Records) (func(*blobschema.Page) bool, error) {
	if which == EveryRecord {
		return func(*blobschema.Page) bool { return false }, nil
	}
	best, err := v.latest(ctx, func(pg *blobschema.Page) bool { return pg.Generation > 0 || pg.Robots })
	return func(pg *blobschema.Page) bool {
		b, ok := best[v.hash.Fingerprint(pg.URL)]
		return ok && b.Robots == pg.Robots && newer(b, *pg)
	}, err
}

// latest returns the latest of the records that count, by fingerprint, with the fields that newer compares. They are few:
// URLs that may have several records.
func (v *View) latest(ctx context.Context, counts func(*blobschema.Page) bool) (map[uint64]blobschema.Page, error) {
	best := map[uint64]blobschema.Page{}
	for pg, err := range v.PagesSince(ctx, nil, nil) {
		if err != nil {
			return nil, err
		}
		if fp := v.hash.Fingerprint(pg.URL); counts(&pg) && newer(pg, best[fp]) {
			best[fp] = blobschema.Page{URL: pg.URL, Generation: pg.Generation, Time: pg.Time, Robots: pg.Robots}
		}
	}
	return best, nil
}

// newer reports whether a is a later record of a URL than b.
func newer(a, b blobschema.Page) bool {
	return a.Generation > b.Generation || a.Generation == b.Generation && a.Time.After(b.Time)
}

// PagesSince yields the page records of the commits that are visible in v and not visible in before,
// a frozen view or nil: of some partitions, nil for all, in the order of partitions and commits. An error ends it.
func (v *View) PagesSince(ctx context.Context, ids []partition.ID, before *View) iter.Seq2[blobschema.Page, error] {
	after := func(p partition.ID) uint64 {
		if before != nil {
			if old := headOf(before.still.heads, p); old != nil {
				return old.Seq
			}
		}
		return 0
	}
	return func(yield func(blobschema.Page, error) bool) {
		for c, err := range v.CommitsAfter(ctx, ids, after) {
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
				if pg.Time.Before(v.since) {
					continue
				}
				if !yield(pg, nil) {
					return
				}
			}
		}
	}
}

// WARCs yields the names of the WARC objects of all visible commits.
func (v *View) WARCs(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for c, err := range v.Commits(ctx) {
			var m blobschema.Manifest
			if err == nil {
				m, err = c.Manifest()
			}
			var pages []blobschema.Page
			if err == nil && !v.since.IsZero() {
				pages, err = c.Pages()
			}
			if err != nil {
				yield("", err)
				return
			}
			for _, w := range m.WARCs {
				if !v.since.IsZero() && !slices.ContainsFunc(pages, func(pg blobschema.Page) bool { return pg.WARC == w && !pg.Time.Before(v.since) }) {
					continue
				}
				if !yield(w, nil) {
					return
				}
			}
		}
	}
}

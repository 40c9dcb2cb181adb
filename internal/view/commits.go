package view

import (
	"context"
	"fmt"
	"iter"

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
	return v.commits(ctx, nil, nil)
}

// commits yields the commits of some partitions, nil for all, that are not visible in before, a
// frozen view or nil.
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
		best, err := v.latest(ctx, func(pg *blobschema.Page) bool { return pg.Generation > 0 || pg.Robots })
		if err != nil {
			yield(blobschema.Page{}, err)
			return
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

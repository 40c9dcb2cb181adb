// Package feed reads what happened to the pages of a crawl, as an ordered stream from which a reader can resume.
//
// A [Reader] follows the commits of each partition, from its head to its manifest to its commits, as package view does.
// So it yields only records that are visible, in the order in which their partition committed them. It does not order
// the partitions among each other: after a slot has moved, two records of a URL may come in either order, and the
// higher generation is the later one.
//
// Every [Event] has a [Cursor], the position behind it. A reader that begins there continues with the next record and
// loses none, whatever partitions were added or lost their slots meanwhile: a cursor has a number for each partition
// that it has met, and begins a new partition at its first commit.
//
// [Deliver] sends a batch to a [Target], at least once: a webhook or a queue.
//
// Read feed.go, then cursor.go and deliver.go. The package stores nothing and changes no crawl. A reader that stops, and keeps no cursor,
// begins again.
package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sort"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// Unknown is the value of [Event.Before] if there may be an earlier answer, and its record does not tell.
const Unknown = "unknown"

// MaxEvents is the largest number of events of a batch.
const MaxEvents = 100

const maxPollsFailed = 5 // reads in a row that may fail while a reader follows a crawl, because networks do

// Event is a page record, with its result compared to the earlier answer.
type Event struct {
	Kind string `json:"kind"` // see [blobschema.Page.Result]
	// Before is the digest of the earlier answer's payload: empty before the first answer, [Unknown] if its record does not
	// tell.
	Before string `json:"before,omitempty"`
	blobschema.Page
	Cursor string `json:"cursor"` // behind this event
}

// Reader reads the feed of one crawl. It is not safe for concurrent use.
type Reader struct {
	view *view.View
	at   Cursor
}

// New returns a reader of the feed behind the position that since names: a cursor, "" for the beginning of the crawl, or
// [Now]. The error is [ErrCursor] if since is not a cursor of this crawl.
func New(ctx context.Context, v *view.View, since string) (*Reader, error) {
	r := &Reader{view: v, at: Cursor{crawl: v.ID()}}
	switch since {
	case "":
	case Now:
		heads, err := v.Heads(ctx)
		if err != nil {
			return nil, err
		}
		for i := range heads {
			r.at.finish(heads[i].Partition, heads[i].Seq)
		}
	default:
		at, err := Parse(since)
		if err != nil {
			return nil, err
		}
		if at.crawl != v.ID() {
			return nil, fmt.Errorf("%w: it is of the crawl %s, and the present crawl is %s; begin without a cursor", ErrCursor, at.crawl, v.ID())
		}
		r.at = at
	}
	return r, nil
}

// Cursor returns the position behind all batches that were yielded.
func (r *Reader) Cursor() string { return r.at.String() }

// Batches yields the events behind the reader's position, at most [MaxEvents] at a time, and moves the position. If every is 0, it ends
// behind the commits that are visible now. Otherwise it follows the crawl, looks for new commits each time that every
// has passed, and ends without an error when ctx ends. Any other error ends it.
func (r *Reader) Batches(ctx context.Context, every time.Duration) iter.Seq2[[]Event, error] {
	return func(yield func([]Event, error) bool) {
		for failed := 0; ; {
			more, err := r.pass(ctx, func(batch []Event) bool {
				failed = 0
				return yield(batch, nil)
			})
			switch {
			case !more, every > 0 && ctx.Err() != nil, every == 0 && err == nil:
				return
			case err == nil:
				failed = 0
			case every == 0, failed == maxPollsFailed, errors.Is(err, ErrCursor), errors.Is(err, wire.ErrDamaged):
				yield(nil, err)
				return
			default:
				failed++
			}
			if !wait(ctx, every) {
				return
			}
		}
	}
}

// pass yields the events of the commits that are visible now. It returns false if yield does.
func (r *Reader) pass(ctx context.Context, yield func([]Event) bool) (more bool, err error) {
	v, err := r.freeze(ctx)
	if err != nil {
		return true, err
	}
	var batch []Event
	flush := func() bool {
		full := batch
		batch = nil
		return len(full) == 0 || yield(full)
	}
	parts := [][]partition.ID{nil}
	if r.at.read > 0 { // a cursor has room for one commit that was read in part
		parts = [][]partition.ID{{r.at.part}, nil}
	}
	for _, ids := range parts {
		for c, err := range v.CommitsAfter(ctx, ids, r.at.after) {
			if err != nil {
				return flush(), r.missing(ctx, v, c.Name, err)
			}
			p, seq, _, err := naming.ParseCommit(c.Name)
			if err != nil {
				return flush(), err
			}
			pages, err := c.Pages()
			if err != nil {
				return flush(), fmt.Errorf("pages of %s: %w", c.Name, err)
			}
			for r.at.next(p, len(pages)) {
				pg := &pages[r.at.read-1]
				if pg.Robots { // the crawler requested it for itself
					continue
				}
				if batch = append(batch, eventOf(pg, r.at)); len(batch) == MaxEvents && !flush() {
					return false, nil
				}
			}
			r.at.finish(p, seq)
		}
	}
	return flush(), nil
}

func eventOf(pg *blobschema.Page, at Cursor) Event {
	e := Event{Kind: pg.Result(), Before: pg.Before, Page: *pg, Cursor: at.String()}
	if pg.Generation > 0 || pg.Change != "" {
		e.Before = cmp.Or(e.Before, Unknown)
	}
	return e
}

// freeze returns a view of the present moment. It refuses a position that is not one of the crawl's.
func (r *Reader) freeze(ctx context.Context) (*view.View, error) {
	switch id, err := blobschema.ActiveCrawl(ctx, r.view.Store()); {
	case err != nil:
		return nil, err
	case id != r.at.crawl:
		return nil, fmt.Errorf("%w: it is of the crawl %s, which the crawl %s has replaced; begin without a cursor", ErrCursor, r.at.crawl, id)
	}
	v, err := r.view.Freeze(ctx)
	if err != nil {
		return nil, err
	}
	heads, err := v.Heads(ctx)
	if err != nil {
		return nil, err
	}
	last := map[partition.ID]uint64{}
	for i := range heads {
		last[heads[i].Partition] = heads[i].Seq
	}
	for p, seq := range r.at.done {
		if last := last[partition.ID(p)]; seq > last {
			return nil, fmt.Errorf("%w: it is behind commit %d of partition %d, whose last commit is %d: the crawl was restored from a copy; begin without a cursor",
				ErrCursor, seq, p, last)
		}
	}
	return v, nil
}

// missing completes the error of reading a commit. If the commit was deleted, it names the cursor before the next
// one that was not. Commits are taken to be deleted in their order.
func (r *Reader) missing(ctx context.Context, v *view.View, name string, err error) error {
	p, seq, _, perr := naming.ParseCommit(name)
	if perr != nil || !errors.Is(err, platform.ErrNotFound) {
		return err
	}
	heads, herr := v.Heads(ctx)
	if herr != nil {
		return herr
	}
	var later []uint64
	var names []string
	for i := range heads {
		if heads[i].Partition == p {
			m, err := blobschema.ReadManifest(blobschema.GetFrom(ctx, v.Store()), heads[i].Commit)
			if err != nil {
				return err
			}
			for n, name := range blobschema.CommitsAfter(m, seq) {
				later, names = append(later, n), append(names, name)
			}
		}
	}
	i := sort.Search(len(later), func(i int) bool {
		_, err := v.Store().Object(ctx, names[i], 0, 1)
		return !errors.Is(err, platform.ErrNotFound)
	})
	if i == len(later) {
		return err
	}
	at := r.at.clone()
	at.finish(p, later[i]-1)
	return fmt.Errorf("%w: commit %d of partition %d was deleted (%w); commit %d is the next one that is stored: give the cursor %s to resume there",
		ErrCursor, seq, p, err, later[i], at)
}

// wait waits, and reports whether ctx has not ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

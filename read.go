package orbweaver

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/extract"
	"github.com/orbweaver/orbweaver/internal/feed"
	"github.com/orbweaver/orbweaver/internal/text"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Reader reads a crawl, also while it runs. Its methods are safe for concurrent use.
type Reader struct {
	view  *view.View
	close func() error
}

// OpenReader opens the crawl at a location for reading: a folder, which another process may be crawling in, or the URL of a
// platform. The errors include [ErrNoCrawl], and [ErrInUse] if the owner of the folder does not crawl now.
func OpenReader(ctx context.Context, location string) (*Reader, error) {
	if !drivers.IsCloud(location) {
		v, err := view.Open(ctx, location)
		if err != nil {
			return nil, told(err)
		}
		return &Reader{v, v.Close}, nil
	}
	p, err := open(ctx, location)
	if err != nil {
		return nil, err
	}
	v, err := view.New(ctx, engine.Store{Platform: p})
	if err != nil {
		return nil, errors.Join(told(err), p.Close())
	}
	return &Reader{v, p.Close}, nil
}

// told gives an error of opening a crawl the names of this package.
func told(err error) error {
	switch {
	case errors.Is(err, view.ErrNoCrawl), errors.Is(err, view.ErrNoFolder):
		return fmt.Errorf("%w: %w", ErrNoCrawl, err)
	case errors.Is(err, drivers.ErrInUse):
		return fmt.Errorf("%w: %w", ErrInUse, err)
	}
	return err
}

// Close ends the use of the location.
func (r *Reader) Close() error { return r.close() }

// Pages yields the pages that are visible now: each URL whose last request was answered with a page (2xx), or with 304.
// It reads the records only; the methods of a page read its content. An error ends it.
func (r *Reader) Pages(ctx context.Context) iter.Seq2[*Page, error] {
	return func(yield func(*Page, error) bool) {
		v, err := r.view.Freeze(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for pg, err := range v.Pages(ctx, view.LatestRecord) {
			switch {
			case err != nil:
				yield(nil, err)
				return
			case pg.Robots || pg.Outcome != blobschema.OutcomeOK && pg.Outcome != blobschema.OutcomeUnchanged:
			case !yield(r.page(pg), nil):
				return
			}
		}
	}
}

// Page is the record of a request.
type Page struct {
	URL        string
	Generation int    // 0 for the first request, one more for each revisit
	Depth      int    // links from a seed
	Outcome    string // "ok", "redirect", "client-error", "timeout" and others, see docs/formats.md
	Status     int    // of the answer; 0 without one
	Time       time.Time
	MIME       string // media type, as the server named it
	Digest     string // of the payload, sha1:BASE32; "" without an answer
	Redirect   string // target of a redirect
	Requisite  bool   // found only as something that pages need to be displayed, with the setting requisites

	view   *view.View
	record blobschema.Page
}

func (r *Reader) page(pg blobschema.Page) *Page {
	return &Page{
		URL: pg.URL, Generation: int(pg.Generation), Depth: int(pg.Depth), Outcome: pg.Outcome.String(), Status: int(pg.Status),
		Time: pg.Time, MIME: pg.MIME, Digest: pg.Digest, Redirect: pg.Redirect, Requisite: pg.Requisite, view: r.view, record: pg,
	}
}

// Body reads the body of the answer from the archive, verifies it and decompresses it. A body of several MiB may have been
// cut when it was stored. It is an error if there was no answer.
func (p *Page) Body(ctx context.Context) ([]byte, error) {
	_, body, err := p.body(ctx)
	return body, err
}

func (p *Page) body(ctx context.Context) (contentType string, body []byte, err error) {
	rec, err := p.view.Payload(ctx, p.record)
	if err != nil {
		return "", nil, err
	}
	return view.Body(rec)
}

// Text reads the title and the main text of a page, without menus and footers, one paragraph a line. Both are empty if
// the body is not HTML, XML, Markdown or plain text.
func (p *Page) Text(ctx context.Context) (title, main string, err error) {
	contentType, body, err := p.body(ctx)
	if err != nil {
		return "", "", err
	}
	doc, _ := text.Extract(contentType, body, p.URL)
	return doc.Title, doc.Body, nil
}

// Links reads the URLs that a page, sitemap or feed links to, in order and each once, whether or not the crawl follows them.
func (p *Page) Links(ctx context.Context) ([]string, error) {
	contentType, body, err := p.body(ctx)
	if err != nil {
		return nil, err
	}
	self, err := weburl.Parse(p.URL)
	if err != nil {
		return nil, err
	}
	var urls []string
	for _, l := range extract.Links(body, contentType, self, extract.Options{}).Links {
		urls = append(urls, l.URL.String())
	}
	return urls, nil
}

// Change is one request of a URL, compared with the one before.
type Change struct {
	// Kind is "new" (the first answer), "changed", "unchanged", "gone" (404 or 410, where there was another answer before)
	// or "failed" (an error, or no answer).
	Kind string
	// Before is the digest of the earlier answer: "" before the first one, "unknown" if its record does not tell.
	Before string
	Page   *Page
	Cursor string // the position behind this change
}

// Feed yields what has happened so far to the URLs of the crawl, behind a cursor: "" for the beginning of the crawl, or "now". Changes
// of one partition have the order in which they became visible; of two changes of a URL the one with the higher
// generation is the later one. Whoever keeps the cursor of the last change that it has processed misses none, and sees
// those after it again. An error ends it; that of a cursor which cannot be used says from where to go on.
func (r *Reader) Feed(ctx context.Context, cursor string) iter.Seq2[Change, error] {
	return r.feed(ctx, cursor, 0)
}

// Follow is Feed that waits for further changes, and looks for them each time that every has passed. It ends without an error when ctx ends.
func (r *Reader) Follow(ctx context.Context, cursor string, every time.Duration) iter.Seq2[Change, error] {
	return r.feed(ctx, cursor, max(every, 10*time.Millisecond))
}

func (r *Reader) feed(ctx context.Context, cursor string, every time.Duration) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		f, err := feed.New(ctx, r.view, cursor)
		if err != nil {
			yield(Change{}, err)
			return
		}
		r.changes(f.Batches(ctx, every))(yield)
	}
}

// changes yields the events of batches.
func (r *Reader) changes(batches iter.Seq2[[]feed.Event, error]) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for batch, err := range batches {
			if err != nil {
				yield(Change{}, err)
				return
			}
			for i := range batch {
				e := &batch[i]
				if !yield(Change{Kind: e.Kind, Before: e.Before, Page: r.page(e.Page), Cursor: e.Cursor}, nil) {
					return
				}
			}
		}
	}
}

// Package query answers searches for the deployed function query, as a page or as JSON.
package query

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/function"
	"github.com/orbweaver/orbweaver/internal/search"
)

const (
	// refreshAfter is the greatest age of the index when a query uses it. A check for a newer index takes four
	// small calls of the table.
	refreshAfter = 10 * time.Second
	// cacheShare is the divisor that gives the part of the memory that caches the index. The rest is for
	// queries and for the program.
	cacheShare = 4
	// queryReserve is the part of an invocation's time that is kept for the answer.
	queryReserve = time.Second
)

// Handler answers requests of the search page; see search.Handler. The parameter refresh=1 refreshes the index
// whatever its age. Like other functions it answers one request at a time.
type Handler struct {
	f       *function.Function
	index   *search.Index // nil until it has been opened
	checked time.Time     // when index was last known to be that of the active crawl
}

// New returns a handler that does its work in a function.
func New(f *function.Function) *Handler { return &Handler{f: f} }

// ServeHTTP answers a request, and writes one line to the log. The line does not hold the query, because it is
// private.
func (q *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-queryReserve))
		defer cancel()
	}
	refresh := r.URL.Query().Get("refresh") == "1"
	_ = q.f.Log("query", func(line *[]any) (failed error) { // the handler has answered with the error
		h := &search.Handler{
			Open: func(ctx context.Context) (*search.Index, error) { return q.open(ctx, refresh) },
			Done: func(_ *http.Request, a *search.Answer, err error) {
				switch {
				case errors.Is(err, search.ErrQuery): // the error quotes the query
					*line = append(*line, "outcome", "not a query")
				case errors.Is(err, search.ErrNoIndex):
					*line = append(*line, "outcome", err.Error())
				case err != nil:
					failed = err
				default:
					*line = append(*line, "outcome", "answered", "results", a.Total, "shown", len(a.Results), "documents", a.Documents,
						"query_ms", a.TookMS, "reads", a.Reads, "read_bytes", a.ReadBytes)
				}
			},
		}
		h.ServeHTTP(w, r.WithContext(ctx))
		return failed
	})
}

// open opens or refreshes the index of the active crawl.
func (q *Handler) open(ctx context.Context, refresh bool) (*search.Index, error) {
	if q.index != nil && !refresh && time.Since(q.checked) < refreshAfter {
		return q.index, nil
	}
	p, err := q.f.Platform(ctx)
	if err != nil {
		return nil, err
	}
	store := engine.Store{Platform: p}
	crawl, err := blobschema.ActiveCrawl(ctx, store)
	if errors.Is(err, blobschema.ErrNoCrawl) {
		return nil, fmt.Errorf("%w: %w", search.ErrNoIndex, err)
	}
	if err != nil {
		return nil, err
	}
	if q.index == nil || q.index.Crawl() != crawl {
		q.index, err = search.Open(ctx, store, crawl, search.Options{CacheBytes: int64(q.f.MemoryMB()) << 20 / cacheShare})
	} else {
		err = q.index.Refresh(ctx)
	}
	if err != nil {
		return nil, err
	}
	q.checked = time.Now()
	return q.index, nil
}

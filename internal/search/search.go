package search

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// Bounds of a request.
const (
	DefaultLimit = 10
	MaxResults   = 1000 // offset and limit together
)

// Request is a search.
type Request struct {
	Query   string
	Sites   []string // like site: in the query
	Langs   []string // like lang: in the query
	Offset  int      // number of results to skip
	Limit   int      // number of results; 0: DefaultLimit
	All     bool     // include near-duplicates, and all results of a site
	Explain bool     // explain the scores
}

// Answer is the result of a search.
type Answer struct {
	Query     string   `json:"query"`
	Total     int64    `json:"total"` // number of matching documents, with near-duplicates
	Offset    int      `json:"offset"`
	Limit     int      `json:"limit"`
	More      bool     `json:"more"` // there are more results, within MaxResults
	Results   []Result `json:"results"`
	Languages []Count  `json:"languages,omitempty"` // of all matching documents, the most frequent first
	// Suggestions contains a corrected query with results if this query has no results.
	Suggestions []Suggestion `json:"suggestions,omitempty"`

	Cut       bool     `json:"cut_short,omitempty"` // a bound was reached before all documents were examined
	Notes     []string `json:"notes,omitempty"`     // remarks for people
	Documents int64    `json:"documents"`           // in the index

	Took      time.Duration `json:"-"`
	TookMS    float64       `json:"took_ms"`
	Reads     int64         `json:"reads"`      // reads of objects; 0 if everything was in memory
	ReadBytes int64         `json:"read_bytes"` // bytes of these reads
}

// Count is a number of documents, such as those in a language.
type Count struct {
	Name      string `json:"name"`
	Documents int64  `json:"documents"`
}

// Result is a document of an answer.
type Result struct {
	Place     int          `json:"place"` // from 1
	URL       string       `json:"url"`
	Site      string       `json:"site"`
	Title     Marked       `json:"title"` // may be empty
	Snippet   Marked       `json:"snippet"`
	Lang      string       `json:"lang,omitempty"`
	Fetched   time.Time    `json:"fetched"`
	Published time.Time    `json:"published,omitzero"` // if the page states it
	Score     float64      `json:"score"`
	Similar   int          `json:"similar,omitempty"`      // number of near-duplicates behind this one
	Others    []Similar    `json:"similar_urls,omitempty"` // some of them
	Explain   *Explanation `json:"explain,omitempty"`
}

// Date returns the time of publication, or of the fetch if that is not known.
func (r *Result) Date() time.Time {
	if r.Published.IsZero() {
		return r.Fetched
	}
	return r.Published
}

// Similar is a near-duplicate of a result.
type Similar struct {
	URL   string `json:"url"`
	Title string `json:"title,omitempty"`
}

// Search answers a request. The error is [ErrQuery] if the request is invalid; its text is for the user. A damaged
// segment is an error that names it, because an answer without it would look complete. If segments have vanished
// because they were merged, Search reads the records again, once.
func (ix *Index) Search(ctx context.Context, req Request) (*Answer, error) {
	began := time.Now()
	q, err := req.parse()
	if err != nil {
		return nil, err
	}
	rd := reads{}
	snap := ix.now.Load()
	a, err := ix.answer(ctx, snap, q, &req, &rd)
	if err != nil && ctx.Err() == nil && !errors.Is(err, wire.ErrDamaged) && !errors.Is(err, wire.ErrVersion) {
		if ix.Refresh(ctx) != nil {
			return nil, err
		}
		a, err = ix.answer(ctx, ix.now.Load(), q, &req, &rd)
	}
	if err != nil {
		return nil, err
	}
	a.Reads, a.ReadBytes = rd.calls.Load(), rd.bytes.Load()
	a.Took = time.Since(began)
	a.TookMS = float64(a.Took.Microseconds()) / 1000
	return a, nil
}

// parse checks the request and parses its query.
func (req *Request) parse() (*Query, error) {
	req.Limit = cmp.Or(req.Limit, DefaultLimit)
	if req.Offset < 0 || req.Limit < 0 || req.Offset > MaxResults || req.Limit > MaxResults || req.Offset+req.Limit > MaxResults {
		return nil, badQuery("results %d to %d cannot be shown: a query has at most %d", req.Offset+1, req.Offset+req.Limit, MaxResults)
	}
	return parse(req.Query, req)
}

// maxKept bounds the hits that are grouped.
const maxKept = 1 << 15

// grouped finds the best hits and groups them. If near-duplicates leave too few groups for the page of results, it
// takes more hits.
func (e *evaluation) grouped(ctx context.Context, req *Request) (*matches, []group, error) {
	for {
		m, err := e.run(ctx)
		if err != nil {
			return nil, nil, err
		}
		groups := e.groups(m.best, req)
		if len(groups) > req.Offset+req.Limit+lookAhead || len(m.best) < e.keep || e.keep >= maxKept {
			return m, groups, nil
		}
		e.keep *= 8
	}
}

func (ix *Index) answer(ctx context.Context, snap *snapshot, q *Query, req *Request, rd *reads) (*Answer, error) {
	a := &Answer{Query: req.Query, Offset: req.Offset, Limit: req.Limit, Documents: snap.documents, Results: []Result{}}
	if snap.documents == 0 {
		a.Notes = append(a.Notes, "The index is empty.")
		return a, nil
	}
	e := &evaluation{
		reader: reader{ix.store, ix.cache, rd}, ix: ix, snap: snap, q: q,
		// Grouping needs more hits than the page has results.
		keep: 2*(req.Offset+req.Limit) + lookAhead + 200,
	}
	m, groups, err := e.grouped(ctx, req)
	if err != nil {
		return nil, err
	}
	a.Total, a.Cut, a.Notes = m.total, m.short, e.notes
	if m.total == 0 && !m.short {
		if a.Suggestions, err = e.suggest(ctx, req); err != nil {
			return nil, err
		}
	}
	for l, n := range m.langs {
		if l != "" {
			a.Languages = append(a.Languages, Count{l, n})
		}
	}
	slices.SortFunc(a.Languages, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Documents, a.Documents), cmp.Compare(a.Name, b.Name))
	})
	last := req.Offset + req.Limit
	a.More = len(groups) > last && last < MaxResults
	groups = groups[min(req.Offset, len(groups)):min(last, len(groups))]
	if a.Results, err = e.results(groups, req); err != nil {
		return nil, err
	}
	if req.Explain {
		err = e.explain(ctx, groups, a.Results)
	}
	return a, err
}

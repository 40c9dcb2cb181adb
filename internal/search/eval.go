package search

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/internal/token"
)

// Bounds on the terms with a prefix: terms in each field and segment, and blocks of the
// dictionary that are read for them, of a few thousand terms each.
const (
	maxExpanded       = 64
	maxExpandedBlocks = 16
)

// evaluation is one query against one snapshot. The segments are evaluated in parallel, document by document. Before
// that, run collects data of all segments: the number of documents with each word, and the documents that anchor
// texts belong to.
type evaluation struct {
	reader
	ix   *Index
	snap *snapshot
	q    *Query
	keep int // number of best hits wanted

	memory *semaphore.Weighted // bytes of lists in memory
	leaves []*leaf             // of the query; excluding ones come last
	sums   []sums              // by leaf
	hits   map[*seg][][]hit    // by segment and leaf: documents whose anchor texts have the leaf

	cut   atomic.Bool // a bound was reached before all anchor texts, or names of sites, were read
	mu    sync.Mutex
	terms map[*seg]*terms
	notes []string
}

// sums are the totals of a leaf over all segments.
type sums struct {
	documents float64 // documents with the word; of several words, with the rarest one
	idf       float64
}

// terms holds the entries of the query's terms in the dictionary of a segment.
type terms struct {
	seg      *seg
	opened   *segment.Reader
	langs    []langCount
	cols     *segment.Columns // nil until documents are scored
	infos    map[string][segment.NumFields]segment.TermInfo
	prefixes map[*leaf][segment.NumFields][]segment.TermInfo
}

// langCount is the number of documents in a language that is stemmed.
type langCount struct {
	of        token.Langs
	documents int
}

// documents returns the number of the segment's documents that an alternative may be in.
func (t *terms) documents(alt *token.Alternative) (n int) {
	if alt.Exact() {
		return t.opened.Documents()
	}
	for _, l := range t.langs {
		if alt.Langs&l.of != 0 {
			n += l.documents
		}
	}
	return n
}

// found is a matching document.
type found struct {
	seg   *seg
	doc   uint32
	score float64
	segment.ID
	hash uint64 // its SimHash
}

// before orders results: the best first, and otherwise always in the same order.
func before(a, b found) int {
	return cmp.Or(cmp.Compare(b.score, a.score), a.ID.Compare(b.ID), cmp.Compare(a.doc, b.doc))
}

// matches are the matching documents of some segments.
type matches struct {
	best  []found // in order
	total int64
	langs map[string]int64
	short bool // a bound was reached before all documents were examined

	full  bool // enough of the best are not after worst
	worst found
}

// run evaluates the query.
func (e *evaluation) run(ctx context.Context) (*matches, error) {
	// Collect the data of all segments.
	e.leaves, e.sums = e.q.leaves(), nil
	e.memory = semaphore.NewWeighted(e.ix.listBytes())
	if err := e.lookup(ctx); err != nil {
		return nil, err
	}
	e.sum()
	if err := e.anchors(ctx); err != nil {
		return nil, err
	}
	// Evaluate the segments in parallel, and keep the best.
	all := &matches{langs: map[string]int64{}}
	err := parallel(parallelSegments, e.snap.segments, func(_ int, s *seg) error {
		m, err := e.segment(ctx, s)
		if err != nil {
			return bad(s, err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		all.add(m, e.keep)
		return nil
	})
	all.short = all.short || e.cut.Load()
	return all, err
}

func (m *matches) add(o *matches, keep int) {
	m.total += o.total
	m.short = m.short || o.short
	for l, n := range o.langs {
		m.langs[l] += n
	}
	m.best = append(m.best, o.best...)
	m.cut(keep)
}

// cut sorts the best matches and drops the rest.
func (m *matches) cut(keep int) {
	slices.SortFunc(m.best, before)
	m.best = m.best[:min(len(m.best), keep)]
}

// offer adds a match if it may be one of the best. Once there are more than 2*keep, it drops all but the keep best.
func (m *matches) offer(f found, keep int) {
	if m.full && before(f, m.worst) > 0 {
		return
	}
	if m.best = append(m.best, f); len(m.best) > 2*keep {
		m.cut(keep)
		if m.full = keep > 0; m.full {
			m.worst = m.best[keep-1]
		}
	}
}

// parallel calls f for each item, for at most n at a time, and returns the first error after all calls have returned.
func parallel[T any](n int, items []T, f func(i int, item T) error) error {
	var g errgroup.Group
	g.SetLimit(n)
	for i, item := range items {
		g.Go(func() error { return f(i, item) })
	}
	return g.Wait()
}

// lookup opens all segments and looks all terms up in them.
func (e *evaluation) lookup(ctx context.Context) error {
	e.terms = map[*seg]*terms{}
	err := parallel(parallelReads, slices.Concat(e.snap.segments, e.snap.anchors), func(_ int, s *seg) error {
		o, err := e.open(ctx, s)
		if err != nil {
			return err
		}
		t := &terms{seg: s, opened: o, infos: map[string][segment.NumFields]segment.TermInfo{}, prefixes: map[*leaf][segment.NumFields][]segment.TermInfo{}}
		for _, l := range o.Summary().Langs {
			if of := token.LangOf(l.Lang); of != 0 {
				t.langs = append(t.langs, langCount{of, l.Documents})
			}
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.terms[s] = t
		return nil
	})
	if err != nil {
		return err
	}
	return e.lookupTerms()
}

func (e *evaluation) lookupTerms() error {
	var g errgroup.Group
	g.SetLimit(parallelReads)
	for s, t := range e.terms {
		// Look each term up once, unless the segment has no document in a language of its forms.
		seen := map[string]bool{}
		for _, l := range e.leaves {
			if l.prefix != "" {
				g.Go(func() error { return bad(s, e.expand(t, l)) })
			}
			for alt, term := range l.terms {
				if seen[term] || t.documents(alt) == 0 {
					continue
				}
				seen[term] = true
				g.Go(func() error {
					infos, err := t.opened.Lookup(term)
					e.mu.Lock()
					defer e.mu.Unlock()
					t.infos[term] = infos
					return bad(s, err)
				})
			}
		}
	}
	return g.Wait()
}

// expand finds the terms with the prefix of a leaf.
func (e *evaluation) expand(t *terms, l *leaf) error {
	var all [segment.NumFields][]segment.TermInfo
	more := false
	cut, err := t.opened.Terms(l.prefix, maxExpandedBlocks, func(_ string, infos [segment.NumFields]segment.TermInfo) {
		for f, info := range infos {
			switch {
			case info.Documents == 0 || !l.fields.has(segment.Field(f)):
			case len(all[f]) == maxExpanded:
				more = true
			default:
				all[f] = append(all[f], info)
			}
		}
	})
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Too many words begin with %s. The search used only the first of them in alphabetical order.", l.prefix)
	e.mu.Lock()
	defer e.mu.Unlock()
	t.prefixes[l] = all
	if (cut || more) && !slices.Contains(e.notes, text) {
		e.notes = append(e.notes, text)
	}
	return nil
}

// sum estimates the number of documents with each leaf; lists do not show which documents they share. For a word it
// is the largest number of any field and form. For a word of several terms in a row it is the number with the
// rarest term.
func (e *evaluation) sum() {
	n := float64(e.snap.documents)
	for _, l := range e.leaves {
		var s sums
		if l.prefix != "" {
			// For a prefix it is the sum of its terms, in the field that has most of them.
			var by [segment.NumFields]float64
			for _, t := range e.terms {
				for f, infos := range t.prefixes[l] {
					for i := range infos {
						by[f] += float64(infos[i].Documents)
					}
				}
			}
			s.documents = min(n, slices.Max(by[:]))
			s.idf = idf(n, s.documents)
		}
		// Of several words the rarest counts, and each adds its own weight.
		for i, w := range l.words {
			df := min(n, e.have(w, l.fields))
			if i == 0 || df < s.documents {
				s.documents = df
			}
			s.idf += idf(n, df)
		}
		e.sums = append(e.sums, s)
	}
}

// have estimates the number of documents with a word.
func (e *evaluation) have(w token.Word, in fields) (most float64) {
	for f := range segment.NumFields {
		if !in.has(f) {
			continue
		}
		for i := range w.Alternatives {
			var n float64
			for _, t := range e.terms {
				rarest := t.documents(&w.Alternatives[i])
				for _, term := range w.Alternatives[i].Terms {
					rarest = min(rarest, t.have(term, f))
				}
				n += float64(rarest)
			}
			most = max(most, n)
		}
	}
	return most
}

// have estimates the number of documents with one of the terms at a place.
func (t *terms) have(at token.Term, f segment.Field) (most int) {
	for _, term := range at.Any {
		most = max(most, t.infos[term][f].Documents)
	}
	return most
}

// anchors finds the documents that anchor texts belong to: the texts of links to a document count as its own.
func (e *evaluation) anchors(ctx context.Context) error {
	e.hits = map[*seg][][]hit{}
	err := parallel(parallelReads, e.snap.anchors, func(_ int, a *seg) error { return bad(a, e.anchorHits(ctx, a)) })
	if err != nil {
		return err
	}
	for _, by := range e.hits {
		for l := range by {
			// Once slots have moved, two partitions may have texts of one document: the largest number counts.
			slices.SortFunc(by[l], func(a, b hit) int {
				return cmp.Or(cmp.Compare(a.doc, b.doc), cmp.Compare(b.freq, a.freq), cmp.Compare(a.length, b.length))
			})
		}
	}
	return nil
}

// anchorHits adds the hits of one segment of anchor texts.
func (e *evaluation) anchorHits(ctx context.Context, a *seg) error {
	// Make the cursors of all leaves, so that their lists are read together.
	lists := e.lister(ctx, e.terms[a])
	var by []cursor // by leaf
	for _, l := range e.leaves {
		by = append(by, lists.leaf(l, segment.Anchor))
	}
	return e.hold(ctx, lists, func() error {
		var cols *segment.Columns
		var to *targets
		var err error
		for i, c := range by {
			if c == nil {
				continue
			}
			if c.seek(0); c.at() == end {
				continue
			}
			// Only a segment with hits needs its documents' columns and targets.
			if to == nil {
				if cols, err = e.columns(ctx, a); err != nil {
					return err
				}
				if to, err = e.targets(ctx, e.snap, a); err != nil {
					return err
				}
			}
			// Collect the hits by the segment of their documents.
			found := map[*seg][]hit{}
			for gone := e.snap.gone(a); c.at() != end; c.seek(c.at() + 1) {
				if doc := c.at(); to.of[doc].seg >= 0 && !gone(doc) {
					s := to.segments[to.of[doc].seg]
					n, _ := c.freq() // texts of links have no language, so they match as they were written
					found[s] = append(found[s], hit{to.of[doc].doc, int32(n), int32(cols.Length(segment.Anchor, doc))})
				}
			}
			// Add them to those of the other segments of anchor texts.
			e.mu.Lock()
			for s, hits := range found {
				if e.hits[s] == nil {
					e.hits[s] = make([][]hit, len(e.leaves))
				}
				e.hits[s][i] = append(e.hits[s][i], hits...)
			}
			e.mu.Unlock()
		}
		if lists.meter.out {
			e.cut.Store(true)
		}
		return nil
	})
}

package search

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema/segment"
)

// scorer goes through the matching documents of one segment.
type scorer struct {
	*lister
	e     *evaluation
	cols  *segment.Columns
	ranks []float32 // times the number of pages; nil if there are none
	gone  func(doc uint32) bool

	leaves  []leafCursor
	clauses [][]*leafCursor // the rarest first
	not     []*leafCursor
	in, out []span // of sites; in is nil for all documents
	doc     uint32
}

// leafCursor goes through the documents of a leaf.
type leafCursor struct {
	fields [segment.NumFields]cursor // nil: no document has the leaf in the field
	doc    uint32
	docs   float64

	// The last scored document has the leaf as written, or in its title.
	exact, titled bool
}

func (l *leafCursor) seek(to uint32) uint32 {
	if l.doc >= to {
		return l.doc
	}
	return l.advance(to)
}

func (l *leafCursor) advance(to uint32) uint32 {
	l.doc = end
	for _, c := range l.fields {
		if c != nil {
			c.seek(to)
			l.doc = min(l.doc, c.at())
		}
	}
	return l.doc
}

// withScorer calls f with a scorer that is ready to go through a segment, unless no document of the segment can match.
func (e *evaluation) withScorer(ctx context.Context, seg *seg, f func(*scorer)) error {
	s := e.scorer(ctx, seg)
	if s == nil {
		return nil
	}
	return e.hold(ctx, s.lister, func() error {
		if err := s.load(ctx); err != nil {
			return err
		}
		f(s)
		return nil
	})
}

// scorer makes the cursors of a segment. It reads nothing, and returns nil if no document can match.
func (e *evaluation) scorer(ctx context.Context, seg *seg) *scorer {
	s := &scorer{e: e, lister: e.lister(ctx, e.terms[seg]), leaves: make([]leafCursor, len(e.leaves))}
	// Make a cursor for each leaf and field. Documents of anchor texts are known already.
	for i, l := range e.leaves {
		c := &s.leaves[i]
		c.docs = e.sums[i].documents
		for f := range segment.NumFields {
			c.fields[f] = s.leaf(l, f)
		}
		if by := e.hits[seg]; by != nil && len(by[i]) > 0 {
			c.fields[segment.Anchor] = &hitsCursor{hits: by[i]}
		}
	}
	// The clauses come first among the leaves, then the rows, then the excluding ones.
	next := 0
	for _, clause := range e.q.clauses {
		any := make([]*leafCursor, len(clause))
		there := false
		for i := range clause {
			any[i] = &s.leaves[next]
			there = there || slices.ContainsFunc(any[i].fields[:], func(c cursor) bool { return c != nil })
			next++
		}
		if !there {
			return nil
		}
		s.clauses = append(s.clauses, any)
	}
	for next += len(e.q.rows); next < len(s.leaves); next++ {
		s.not = append(s.not, &s.leaves[next])
	}
	slices.SortStableFunc(s.clauses, func(a, b []*leafCursor) int { return cmp.Compare(most(a), most(b)) })
	return s
}

func most(clause []*leafCursor) (n float64) {
	for _, l := range clause {
		n += l.docs
	}
	return n
}

// load reads the tables of the segment's documents, and goes to the first document of each leaf.
func (s *scorer) load(ctx context.Context) (err error) {
	e := s.e
	if s.cols, err = e.columns(ctx, s.seg); err != nil {
		return err
	}
	s.terms.cols, s.gone = s.cols, e.snap.gone(s.seg)
	if s.ranks, err = e.ranks(ctx, e.snap, s.seg); err != nil {
		return err
	}
	if len(e.q.sites) > 0 {
		if s.in, err = e.spans(ctx, s.terms, e.q.sites); err != nil {
			return err
		}
		s.in = append(s.in, span{end, end})
	}
	if s.out, err = e.spans(ctx, s.terms, e.q.notSites); err != nil {
		return err
	}
	for i := range s.leaves {
		s.leaves[i].advance(0)
	}
	return nil
}

// next returns the next candidate from s.doc on, which has the words and is of the sites, or end.
func (s *scorer) next() uint32 {
	for {
		// Go to the next document of the sites.
		to := s.doc
		for _, in := range s.in { // there are few
			if to < in.end {
				to = max(to, in.first)
				break
			}
		}
		// Each clause moves to its first document that is not before; the rarest clause skips most.
		for _, clause := range s.clauses {
			least := uint32(end)
			for _, l := range clause {
				least = min(least, l.seek(to))
			}
			if to = least; to == end {
				break
			}
		}
		if to >= s.seg.ref.Documents {
			return end
		}
		// If nothing has moved, all clauses have the document. Otherwise try again from the furthest of them.
		if to == s.doc {
			return to
		}
		s.doc = to
	}
}

// counts reports whether a candidate matches.
func (s *scorer) counts(doc uint32) bool {
	if s.gone(doc) {
		return false
	}
	for _, out := range s.out {
		if doc >= out.first && doc < out.end {
			return false
		}
	}
	for _, l := range s.not {
		if l.seek(doc) == doc {
			return false
		}
	}
	q := s.e.q
	if len(q.langs) == 0 && len(q.notLangs) == 0 {
		return true
	}
	lang := s.cols.Lang(doc)
	return (len(q.langs) == 0 || speaks(lang, q.langs)) && !speaks(lang, q.notLangs)
}

// speaks reports whether a language is one of a list. "en-GB" is also "en".
func speaks(lang string, list []string) bool {
	lang = strings.ToLower(lang)
	base, _, _ := strings.Cut(lang, "-")
	return slices.Contains(list, lang) || slices.Contains(list, base)
}

// score returns the score of the document that the scorer is at, and fills in x unless it is nil. It adds the parts in
// the order of the query, so that the sum is the same to the last bit.
func (s *scorer) score(doc uint32, x *Explanation) (total float64) {
	e := s.e
	// Add up the contributions of the fields of each leaf.
	for i := range len(s.leaves) - len(s.not) {
		l := &s.leaves[i]
		l.exact, l.titled = false, false
		if l.seek(doc) != doc {
			continue
		}
		sum := 0.0
		var parts []FieldScore
		for f, c := range l.fields {
			if c == nil || c.at() != doc {
				continue
			}
			field := segment.Field(f)
			freq, exact := c.freq()
			l.exact, l.titled = l.exact || exact > 0, l.titled || field == segment.Title
			length := 0
			if h, ok := c.(*hitsCursor); ok {
				length = int(h.hits[h.i].length)
			} else {
				length = s.cols.Length(field, doc)
			}
			part := fieldPart(field, freq, length, e.snap.average[f])
			sum += part
			if x != nil {
				parts = append(parts, FieldScore{field.String(), freq, exact, length, part})
			}
		}
		// The word counts by its saturated sum.
		score := e.sums[i].idf * wordPart(sum, l.exact)
		total += score
		if x != nil {
			x.Words = append(x.Words, WordScore{e.leaves[i].text, int64(e.sums[i].documents), e.sums[i].idf, l.exact, parts, sum, score})
		}
	}
	// Words as written, and a title with all words, count extra.
	exact, titled := 0, len(s.clauses)
	for _, clause := range s.clauses {
		if slices.ContainsFunc(clause, func(l *leafCursor) bool { return l.exact }) {
			exact++
		}
		if !slices.ContainsFunc(clause, func(l *leafCursor) bool { return l.titled }) {
			titled = 0
		}
	}
	if exact > 0 {
		part := exactWeight * float64(exact) / float64(len(s.clauses))
		if total += part; x != nil {
			x.Exact = part
		}
	}
	if titled > 0 {
		part := titledWeight * float64(titled) / float64(max(titled, s.cols.Length(segment.Title, doc)))
		if total += part; x != nil {
			x.Titled = part
		}
	}
	// Add the rank of the page.
	rank := 0.0
	if s.ranks != nil {
		rank = float64(s.ranks[doc])
	}
	part := rankPart(rank)
	if total += part; x != nil {
		x.Rank, x.Score = RankScore{rank, part}, total
	}
	return total
}

// segment finds the matches of a segment.
func (e *evaluation) segment(ctx context.Context, seg *seg) (*matches, error) {
	m := &matches{langs: map[string]int64{}}
	err := e.withScorer(ctx, seg, func(s *scorer) {
		for {
			doc := s.next()
			if doc == end || e.q.listing() && !s.meter.spend(1) { // otherwise the lists have counted it
				break
			}
			s.doc = doc + 1
			if !s.counts(doc) {
				continue
			}
			score := s.score(doc, nil)
			if s.meter.out { // the score is incomplete
				break
			}
			m.total++
			m.langs[s.cols.Lang(doc)]++
			m.offer(found{seg, doc, score, s.cols.ID(doc), s.cols.SimHash(doc)}, e.keep)
		}
		m.short = s.meter.out
		m.cut(e.keep)
	})
	return m, err
}

// lister returns a lister for a segment, with the segment's share of the work that the query may do.
func (e *evaluation) lister(ctx context.Context, t *terms) *lister {
	share := float64(e.ix.opt.MaxPostings) * float64(t.seg.ref.Documents) / math.Max(1, float64(e.snap.stored))
	return &lister{terms: t, meter: &meter{ctx: ctx, left: int64(share) + 1}}
}

// hold waits until there is memory for some lists, reads them, calls f, and releases the memory.
func (e *evaluation) hold(ctx context.Context, l *lister, f func() error) error {
	size := min(l.size(), e.ix.listBytes())
	if err := e.memory.Acquire(ctx, size); err != nil {
		return err
	}
	defer e.memory.Release(size)
	if err := l.read(); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return l.err()
}

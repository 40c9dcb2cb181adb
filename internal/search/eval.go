package search

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/internal/token"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// maxExpanded is how many terms of a field and segment the beginning of a word stands for, of the first
// blocks of the dictionary, of some thousand terms each, that have such.
const (
	maxExpanded       = 64
	maxExpandedBlocks = 16
)

// evaluation is one query against one snapshot. Segments are evaluated side by side, document
// by document; what they need to know of each other is found out first: how many documents
// have each word, and which are meant by anchor texts.
type evaluation struct {
	reader
	ix      *Index
	snap    *snapshot
	q       *Query
	weights Weights
	keep    int // how many of the best hits are wanted

	lists  *semaphore.Weighted // bytes of lists that are held
	leaves []*leaf             // of the query, those that exclude last
	sums   []sums              // by leaf
	hits   map[*seg][][]hit

	cut   atomic.Bool // not all anchor texts, or names of sites, were looked at
	mu    sync.Mutex
	terms map[*seg]*terms
	notes []string
}

// sums are what is known of a leaf in all segments together.
type sums struct {
	documents float64 // that have it, or, of several words, the rarest
	idf       float64
}

// terms is what the dictionary of a segment says of the query's.
type terms struct {
	seg      *seg
	opened   *segment.Reader
	langs    []langCount
	cols     *segment.Columns // nil until documents are gone through
	infos    map[string][segment.NumFields]segment.TermInfo
	prefixes map[*leaf][segment.NumFields][]segment.TermInfo
	meter    *meter
	ready    map[listKey][]*segment.Postings // read ahead
	open     []*segment.Postings             // all that are in use, to be asked what went wrong
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

// form makes the cursor of an alternative in the documents of its languages.
func (t *terms) form(c cursor, alt *token.Alternative) cursor {
	if t.documents(alt) == t.opened.Documents() {
		return newForm(c, nil)
	}
	return newForm(c, t.cols.InLangs(func(lang string) bool { return token.LangOf(lang)&alt.Langs != 0 }))
}

// listKey names the list of a term.
type listKey struct {
	term      string
	field     segment.Field
	positions bool
}

// found is a matching document.
type found struct {
	seg   *seg
	doc   uint32
	score float64
	slot  partition.Slot
	fp    uint64
}

// before is the order of results: the best first, and always the same.
func before(a, b found) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.slot, b.slot), cmp.Compare(a.fp, b.fp), cmp.Compare(a.doc, b.doc))
}

// matches are what segments have for a query.
type matches struct {
	best  []found // in order
	total int64
	langs map[string]int64
	cut   bool // not all was looked at
}

// run evaluates the query.
func (e *evaluation) run(ctx context.Context) (*matches, error) {
	e.leaves, e.sums = e.q.leaves(), nil
	e.lists = semaphore.NewWeighted(e.ix.listBytes())
	if err := e.lookup(ctx); err != nil {
		return nil, err
	}
	e.sum()
	if err := e.anchors(ctx); err != nil {
		return nil, err
	}
	all := &matches{langs: map[string]int64{}}
	var g errgroup.Group
	g.SetLimit(parallelSegments)
	for s := range e.segments() {
		g.Go(func() error {
			m, err := e.segment(ctx, s)
			if err != nil {
				return bad(s, err)
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			all.add(m, e.keep)
			return nil
		})
	}
	err := g.Wait()
	all.cut = all.cut || e.cut.Load()
	return all, err
}

func (m *matches) add(o *matches, keep int) {
	m.total += o.total
	m.cut = m.cut || o.cut
	for l, n := range o.langs {
		m.langs[l] += n
	}
	m.best = append(m.best, o.best...)
	slices.SortFunc(m.best, before)
	m.best = m.best[:min(len(m.best), keep)]
}

// segments are those of documents, and with it those of anchor texts.
func (e *evaluation) segments() map[*seg]bool {
	return e.list(func(p *part) []*seg { return p.segments })
}

func (e *evaluation) list(of func(*part) []*seg) map[*seg]bool {
	out := map[*seg]bool{}
	for _, p := range e.snap.parts {
		for _, s := range of(p) {
			if s.ref.Documents > 0 {
				out[s] = true
			}
		}
	}
	return out
}

// lookup looks all terms up in all segments.
func (e *evaluation) lookup(ctx context.Context) error {
	e.terms = map[*seg]*terms{}
	var g errgroup.Group
	g.SetLimit(parallelReads)
	for s := range e.list(func(p *part) []*seg { return append(p.segments[:len(p.segments):len(p.segments)], p.anchors...) }) {
		g.Go(func() error {
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
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return e.lookupTerms()
}

func (e *evaluation) lookupTerms() error {
	var g errgroup.Group
	g.SetLimit(parallelReads)
	for s, t := range e.terms {
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

// expand finds the terms that begin as a leaf says.
func (e *evaluation) expand(t *terms, l *leaf) error {
	all, cut, err := t.opened.Terms(l.prefix, maxExpanded+1, maxExpandedBlocks)
	if err != nil {
		return err
	}
	for f := range all {
		if !l.fields.has(segment.Field(f)) {
			all[f] = nil
		} else if len(all[f]) > maxExpanded {
			all[f], cut = all[f][:maxExpanded], true
		}
	}
	if cut {
		e.note(fmt.Sprintf("Too many words begin with %s; only the first in order were looked for.", l.prefix))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	t.prefixes[l] = all
	return nil
}

func (e *evaluation) note(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.notes, text) {
		e.notes = append(e.notes, text)
	}
}

// sum adds up how many documents have each leaf: of a word those that have it in the field, and
// in the spelling, where most do, for lists do not say which documents they share; of what is
// several terms in a row, those that have the rarest.
func (e *evaluation) sum() {
	n := float64(e.snap.documents)
	for _, l := range e.leaves {
		var s sums
		if l.prefix != "" {
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

// have is about how many documents have a word.
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

// have returns about how many documents have one of the terms that may be at a place.
func (t *terms) have(at token.Term, f segment.Field) (most int) {
	for _, term := range at.Any {
		most = max(most, t.infos[term][f].Documents)
	}
	return most
}

// cursor makes the cursor of a leaf in one field: nil if it is not there.
func (t *terms) cursor(l *leaf, f segment.Field) (cursor, error) {
	if !l.fields.has(f) {
		return nil, nil
	}
	if l.prefix == "" {
		return words(l.words, f, lister{t.list, t})
	}
	var of []cursor
	for _, info := range t.prefixes[l][f] {
		c, err := t.read(info, false)
		if err != nil {
			return nil, err
		}
		of = append(of, c)
	}
	return newAny(of, true), nil
}

func (t *terms) list(term string, f segment.Field, positions bool) (cursor, error) {
	info := t.infos[term][f]
	if info.Documents == 0 {
		return nil, nil
	}
	k := listKey{term, f, positions}
	if ahead := t.ready[k]; len(ahead) > 0 {
		t.ready[k] = ahead[1:]
		t.open = append(t.open, ahead[0])
		return newList(term, ahead[0], t.meter), nil
	}
	return t.read(info, positions)
}

// has reports whether a leaf may be in the segment.
func (t *terms) has(l *leaf) bool {
	if l.prefix != "" {
		by := t.prefixes[l]
		return slices.ContainsFunc(by[:], func(infos []segment.TermInfo) bool { return len(infos) > 0 })
	}
	for range t.needs([]*leaf{l}) {
		return true
	}
	return false
}

// fetch reads the lists of leaves side by side: one after another each would wait for the store.
func (t *terms) fetch(leaves []*leaf) error {
	var g errgroup.Group
	g.SetLimit(parallelReads / parallelSegments)
	var mu sync.Mutex
	t.ready = map[listKey][]*segment.Postings{}
	for k := range t.needs(leaves) {
		g.Go(func() error {
			p, err := t.opened.Postings(t.infos[k.term][k.field], k.positions)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				t.ready[k] = append(t.ready[k], p)
			}
			return err
		})
	}
	return g.Wait()
}

// needs are the lists of leaves, each as often as it is used.
func (t *terms) needs(leaves []*leaf) iter.Seq[listKey] {
	return func(yield func(listKey) bool) {
		for _, l := range leaves {
			for _, w := range l.words {
				for i := range w.Alternatives {
					alt := &w.Alternatives[i]
					if t.documents(alt) > 0 && !t.needsOf(alt, l.fields, len(l.words) > 1 || len(alt.Terms) > 1, yield) {
						return
					}
				}
			}
		}
	}
}

// needsOf yields the lists of an alternative, and reports whether more are wanted.
func (t *terms) needsOf(alt *token.Alternative, in fields, positions bool, yield func(listKey) bool) bool {
	for f := range segment.NumFields {
		missing := func(at token.Term) bool { return t.have(at, f) == 0 }
		if !in.has(f) || slices.ContainsFunc(alt.Terms, missing) {
			continue
		}
		for _, at := range alt.Terms {
			for _, term := range at.Any {
				if t.infos[term][f].Documents > 0 && !yield(listKey{term, f, positions}) {
					return false
				}
			}
		}
	}
	return true
}

// size is how many bytes the lists of leaves have.
func (t *terms) size(leaves []*leaf) (n int64) {
	seen := map[listKey]bool{}
	for k := range t.needs(leaves) {
		if info := t.infos[k.term][k.field]; !seen[k] {
			seen[k] = true
			n += info.Bytes(k.positions)
		}
	}
	for _, l := range leaves {
		for _, infos := range t.prefixes[l] {
			for i := range infos {
				n += infos[i].Bytes(false)
			}
		}
	}
	return n
}

func (t *terms) read(info segment.TermInfo, positions bool) (cursor, error) {
	p, err := t.opened.Postings(info, positions)
	if err != nil {
		return nil, err
	}
	t.open = append(t.open, p)
	return newList(info.Term, p, t.meter), nil
}

// err is what went wrong with a list, if anything did.
func (t *terms) err() error {
	if t.meter.err != nil {
		return t.meter.err
	}
	for _, p := range t.open {
		if err := p.Err(); err != nil {
			return err
		}
	}
	return nil
}

// anchors finds the documents that anchor texts are of: what was said of them elsewhere counts
// as theirs.
func (e *evaluation) anchors(ctx context.Context) error {
	e.hits = map[*seg][][]hit{}
	var g errgroup.Group
	g.SetLimit(parallelReads)
	for a := range e.list(func(p *part) []*seg { return p.anchors }) {
		g.Go(func() error { return bad(a, e.anchorHits(ctx, a)) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, by := range e.hits {
		for l := range by {
			// Once slots have moved, two partitions may have texts of one document: the most counts.
			slices.SortFunc(by[l], func(a, b hit) int {
				return cmp.Or(cmp.Compare(a.doc, b.doc), cmp.Compare(b.freq, a.freq), cmp.Compare(a.length, b.length))
			})
		}
	}
	return nil
}

func (e *evaluation) anchorHits(ctx context.Context, a *seg) error {
	t := e.terms[a]
	done, err := e.hold(ctx, t)
	if err != nil {
		return err
	}
	defer done()
	if err := t.fetch(e.leaves); err != nil {
		return err
	}
	var cols *segment.Columns
	var to *targets
	for i, l := range e.leaves {
		c, err := t.cursor(l, segment.Anchor)
		if err != nil {
			return err
		}
		if c == nil || c.at() == end {
			continue
		}
		if to == nil {
			if cols, err = e.columns(ctx, a); err != nil {
				return err
			}
			if to, err = e.targets(ctx, e.snap, a); err != nil {
				return err
			}
		}
		found := map[*seg][]hit{}
		for ; c.at() != end; c.seek(c.at() + 1) {
			if doc := c.at(); to.of[doc].seg >= 0 && !a.gone(doc) {
				s := to.segments[to.of[doc].seg]
				n, _ := c.freq() // texts of links have no language: all is as it was written
				found[s] = append(found[s], hit{to.of[doc].doc, int32(n), int32(cols.Length(segment.Anchor, doc))})
			}
		}
		e.mu.Lock()
		for s, hits := range found {
			if e.hits[s] == nil {
				e.hits[s] = make([][]hit, len(e.leaves))
			}
			e.hits[s][i] = append(e.hits[s][i], hits...)
		}
		e.mu.Unlock()
	}
	if t.meter.out {
		e.cut.Store(true)
	}
	return t.err()
}

// span is some documents that stand side by side, first to end-1.
type span struct{ first, end uint32 }

// spans are the documents of some sites, in order.
func (e *evaluation) spans(ctx context.Context, t *terms, sites []string) ([]span, error) {
	var out []span
	for _, site := range sites {
		host := weburl.Host(site)
		exact := host.Port() != ""
		slots, err := e.slots(ctx, t, host, exact)
		if err != nil {
			return nil, err
		}
		for _, slot := range slots {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			var s span
			if exact {
				s.first, s.end, err = t.opened.Site(site, slot)
			} else {
				s.first, s.end, err = t.opened.Domain(site, slot)
			}
			if err != nil {
				return nil, err
			}
			if s.first < s.end {
				out = append(out, s)
			}
		}
	}
	slices.SortFunc(out, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	return out, nil
}

// slots are those that may have documents of a site. Its own is known by its name. Names below it, and
// other ports, may have slots of their own: of those, the ones whose documents have the name in their URL.
func (e *evaluation) slots(ctx context.Context, t *terms, host weburl.Host, exact bool) ([]partition.Slot, error) {
	by := e.ix.record.Settings.PartitionBy
	key, _ := by.Key(string(host))
	out := []partition.Slot{e.ix.hash.Slot(key)}
	other := "a." + host
	if host.IsIP() { // there are no names below an address
		other = host + ":1"
	}
	if another, _ := by.Key(string(other)); exact || another == key {
		return out, nil
	}
	cols, err := e.columns(ctx, t.seg)
	if err != nil {
		return nil, err
	}
	add := func(doc uint32) { // in order
		if slot := cols.Slot(doc); slot != out[len(out)-1] {
			out = append(out, slot)
		}
	}
	name := host.Name()
	if name[0] >= '0' && name[0] <= '9' && !host.IsIP() { // it may be one word with what is before it, as in a1.2.example
		_, name, _ = strings.Cut(name, ".")
	}
	list := token.Query(name, []string{})
	if len(list) == 0 {
		for doc := range t.seg.ref.Documents {
			add(doc)
		}
	} else {
		m := *t.meter // as much again
		c, err := words(list, segment.URL, lister{of: t, list: func(term string, f segment.Field, positions bool) (cursor, error) {
			info, ok, err := t.opened.Term(f, term)
			if err != nil || !ok {
				return nil, err
			}
			p, err := t.opened.Postings(info, positions)
			if err != nil {
				return nil, err
			}
			t.open = append(t.open, p)
			return newList(term, p, &m), nil
		}})
		if c == nil || err != nil {
			return out, err
		}
		for ; c.at() != end; c.seek(c.at() + 1) {
			add(c.at())
		}
		if m.out {
			e.cut.Store(true)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

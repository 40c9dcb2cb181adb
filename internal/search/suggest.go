package search

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/internal/token"
)

// Suggestion is another query, which finds something.
type Suggestion struct {
	Query     string `json:"query"`
	Documents int64  `json:"documents"`
}

// Bounds on suggestions.
const (
	maxSuggestions = 3
	maxTries       = 10 // queries that are tried
	nearSegments   = 32 // largest segments, whose words are compared
	nearBlocks     = 16 // blocks of a dictionary that are read for a word
)

// suggest finds queries with results where e has none: with nearby spellings of words that no document has, and
// with fewer words.
func (e *evaluation) suggest(ctx context.Context, req *Request) (out []Suggestion, err error) {
	var pieces []piece // pieces that can be left out
	fixed, wrong := false, false
	for i, a := range e.q.atoms {
		if a.at == 0 {
			continue // filters beside the query stay
		}
		p, err := e.piece(ctx, &a)
		if err != nil {
			return nil, err
		}
		fixed, wrong = fixed || p.fixed != p.raw, wrong || p.unknown
		if n := len(pieces); n > 0 && (a.or || e.q.atoms[i-1].or) { // alternatives go together
			pieces[n-1].join(p)
			continue
		}
		pieces = append(pieces, p)
	}
	var tries []string
	if fixed {
		tries = append(tries, write(pieces, func(_ int, p *piece) string { return p.fixed }))
	}
	if wrong {
		tries = append(tries, write(pieces, func(_ int, p *piece) string {
			if p.unknown {
				return ""
			}
			return p.raw
		}))
	}
	for without := range pieces {
		tries = append(tries, write(pieces, func(i int, p *piece) string {
			if i == without {
				return ""
			}
			return p.raw
		}))
	}
	tried := map[string]bool{}
	for _, text := range tries {
		if tried[text] || len(tried) == maxTries || len(out) == maxSuggestions {
			continue
		}
		tried[text] = true
		n, err := e.try(ctx, text, req)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			out = append(out, Suggestion{text, n})
		}
	}
	return out, nil
}

// try returns the number of documents that another query finds, 0 if it is invalid.
func (e *evaluation) try(ctx context.Context, text string, req *Request) (int64, error) {
	q, err := parse(text, req)
	if err != nil {
		return 0, nil
	}
	other := &evaluation{reader: e.reader, ix: e.ix, snap: e.snap, q: q, weights: e.weights}
	m, err := other.run(ctx)
	if err != nil {
		return 0, err
	}
	return m.total, nil
}

// piece is a part of a query that stays or goes as a whole.
type piece struct {
	raw     string // as it was written
	fixed   string // with nearby words for those that no document has, or without its quotes
	unknown bool   // no document has a word of it, and no nearby word exists
}

func (p *piece) join(o piece) {
	p.raw += " " + o.raw
	p.fixed += " " + o.fixed
	p.unknown = p.unknown && o.unknown
}

// write joins pieces to a query.
func write(pieces []piece, as func(int, *piece) string) string {
	var parts []string
	for i := range pieces {
		if s := as(i, &pieces[i]); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, " ")
}

// piece looks up the words of an atom.
func (e *evaluation) piece(ctx context.Context, a *atom) (piece, error) {
	p := piece{raw: a.raw, fixed: a.raw}
	if a.or || a.not || a.prefix || a.filter != "" {
		return p, nil
	}
	words := token.Query(a.text, nil)
	for i := len(words) - 1; i >= 0; i-- { // from the end, so that offsets stay valid
		w := words[i]
		if e.have(w, allFields) > 0 {
			continue
		}
		near, err := e.near(ctx, w)
		if err != nil {
			return p, err
		}
		if near == "" {
			p.unknown = true
			continue
		}
		p.fixed = p.fixed[:a.before+w.Start] + near + p.fixed[a.before+w.End:]
	}
	switch {
	case p.unknown:
		p.fixed = p.raw
	case a.phrase && p.fixed == p.raw && a.fields == allFields: // its words exist, but not in a row
		p.fixed = a.text
	}
	return p, nil
}

// near returns the word of the index with the spelling nearest to an unknown word, "" if none is near. Both begin
// with the same letter.
func (e *evaluation) near(ctx context.Context, w token.Word) (string, error) {
	exact := &w.Alternatives[0]
	word := exact.Terms[0].Any[0]
	letters := utf8.RuneCountInString(word)
	if len(exact.Terms) > 1 || letters < 4 {
		return "", nil
	}
	most := 1 // mistakes
	if letters > 5 {
		most = 2
	}
	var segs []*seg
	for s := range e.segments() {
		segs = append(segs, s)
	}
	slices.SortFunc(segs, func(a, b *seg) int {
		return cmp.Or(cmp.Compare(b.ref.Documents, a.ref.Documents), strings.Compare(a.ref.Object, b.ref.Object))
	})
	documents := map[string]int{} // of nearby words
	var g errgroup.Group
	g.SetLimit(parallelReads)
	for _, s := range segs[:min(len(segs), nearSegments)] {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			infos, err := around(e.terms[s].opened, word)
			e.mu.Lock()
			defer e.mu.Unlock()
			for _, list := range infos {
				for _, info := range list {
					if distance(word, info.Term, most) <= most {
						documents[info.Term] += info.Documents
					}
				}
			}
			return bad(s, err)
		})
	}
	if err := g.Wait(); err != nil {
		return "", err
	}
	best := ""
	for term, n := range documents {
		if best == "" || cmp.Or(cmp.Compare(distance(word, best, most), distance(word, term, most)), cmp.Compare(n, documents[best]), strings.Compare(best, term)) > 0 {
			best = term
		}
	}
	return best, nil
}

// around returns terms with the beginning of a word: its first letter, or more letters if there are too many.
func around(r *segment.Reader, word string) (infos [segment.NumFields][]segment.TermInfo, err error) {
	end := 0
	for range 4 {
		_, n := utf8.DecodeRuneInString(word[end:])
		if end += n; r.Blocks(word[:end]) <= nearBlocks {
			break
		}
	}
	infos, _, err = r.Terms(word[:end], 1<<20, nearBlocks)
	return infos, err
}

// distance returns the number of letters to change, add, remove or swap with the next one to turn one word into
// another; more than most if it is higher than that.
func distance(a, b string, most int) int {
	x, y := []rune(a), []rune(b)
	if d := len(x) - len(y); d > most || -d > most {
		return most + 1
	}
	rows := [3][]int{make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)} // the previous row, this row, the one before the previous
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := range x {
		before, now, old := rows[0], rows[1], rows[2]
		now[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			now[j+1] = min(before[j]+cost, before[j+1]+1, now[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				now[j+1] = min(now[j+1], old[j-1]+1)
			}
		}
		rows = [3][]int{now, old, before}
	}
	return rows[0][len(y)]
}

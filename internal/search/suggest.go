package search

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/internal/token"
)

// Suggestion is another query, which has results.
type Suggestion struct {
	Query     string `json:"query"`
	Documents int64  `json:"documents"`
}

// Bounds on suggestions.
const (
	nearSegments = 32 // largest segments, whose words are compared
	nearBlocks   = 16 // blocks of a dictionary that are read for a word
)

// suggest returns the query with nearby spellings of words that no document has, and without the quotes of phrases that
// no document has. It returns nil if the result is the query itself or finds nothing.
func (e *evaluation) suggest(ctx context.Context, req *Request) ([]Suggestion, error) {
	var parts []string
	changed := false
	for _, a := range e.q.atoms {
		if a.at == 0 {
			continue // filters beside the query stay
		}
		text, err := e.spell(ctx, &a)
		if err != nil {
			return nil, err
		}
		parts, changed = append(parts, text), changed || text != a.raw
	}
	text := strings.Join(parts, " ")
	q, err := parse(text, req)
	if err != nil || !changed {
		return nil, nil
	}
	other := &evaluation{reader: e.reader, ix: e.ix, snap: e.snap, q: q}
	m, err := other.run(ctx)
	if err != nil || m.total == 0 {
		return nil, err
	}
	return []Suggestion{{text, m.total}}, nil
}

// spell returns an atom as written, or corrected.
func (e *evaluation) spell(ctx context.Context, a *atom) (string, error) {
	if a.or || a.not || a.prefix || a.filter != "" {
		return a.raw, nil
	}
	fixed := a.raw
	words := token.Query(a.text, nil)
	for _, w := range slices.Backward(words) { // from the end, so that offsets stay valid
		if e.have(w, allFields) > 0 {
			continue
		}
		near, err := e.near(ctx, w)
		if err != nil || near == "" {
			return a.raw, err
		}
		fixed = fixed[:a.before+w.Start] + near + fixed[a.before+w.End:]
	}
	if a.phrase && fixed == a.raw && a.fields == allFields { // its words exist, but not in a row
		return a.text, nil
	}
	return fixed, nil
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
	segs := slices.Clone(e.snap.segments)
	slices.SortFunc(segs, func(a, b *seg) int {
		return cmp.Or(cmp.Compare(b.ref.Documents, a.ref.Documents), strings.Compare(a.ref.Object, b.ref.Object))
	})
	documents := map[string]int{} // of nearby words
	err := parallel(parallelReads, segs[:min(len(segs), nearSegments)], func(_ int, s *seg) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		r := e.terms[s].opened
		_, err := r.Terms(beginning(r, word), nearBlocks, func(term string, infos [segment.NumFields]segment.TermInfo) {
			if distance(word, term, most) > most {
				return
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			for _, info := range infos {
				documents[term] += info.Documents
			}
		})
		return bad(s, err)
	})
	if err != nil {
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

// beginning returns the first letter of a word, or more letters if too many terms begin with it.
func beginning(r *segment.Reader, word string) string {
	end := 0
	for range 4 {
		_, n := utf8.DecodeRuneInString(word[end:])
		if end += n; r.Blocks(word[:end]) <= nearBlocks {
			break
		}
	}
	return word[:end]
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

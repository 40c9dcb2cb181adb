package token

import (
	"slices"

	"github.com/orbweaver/orbweaver/blobschema/segment"
)

// A Word is a piece of a query that is searched as a unit: a word, a compound such as
// "wi-fi", a Chinese word, or a run of Kana.
type Word struct {
	Text       string // as written
	Start, End int    // Text is [Start, End) of the query

	// Position is the place of the word among the others, counted as in documents. The words of a
	// phrase have the same distances in a document.
	Position int32

	// Alternatives are the forms of the word in the index: a document contains the word if it
	// contains any of them. There is at least one; all differ. Exact ones come first.
	Alternatives []Alternative
}

// An Alternative is one or more terms in order of Offset. A document contains the alternative if it contains
// all of them, each at its Offset from the position of the word. The first Offset is 0.
type Alternative struct {
	Terms []Term

	// Langs are the languages of the documents in which the terms are forms of the word. It is empty for
	// the word as written, which counts in all documents.
	Langs Langs
}

// Exact reports whether the alternative is the word as written.
func (a *Alternative) Exact() bool { return a.Langs == 0 }

// A Term is a place in an [Alternative]. Any one of its terms of the index may be there.
type Term struct {
	Any    []string
	Offset int32
}

// maxAlternative bounds the terms of one alternative. A longer word is matched by
// its beginning.
const maxAlternative = 32

// Query analyses a piece of query text. Each word matches itself as written and, in documents of some
// languages, its stem there. langs are the codes of these languages (ISO 639-1); nil means all with stems.
//
// The words are in order; their Positions make phrases. The caller bounds the number of words.
func Query(text string, langs []string) []Word {
	a := analyzers.Get().(*analyzer)
	defer a.release()
	q := querier{analyzer: a}
	for l := firstStemmed; int(l) < languages; l++ {
		if langs == nil || slices.ContainsFunc(langs, func(tag string) bool { return parseLanguage(tag) == l }) {
			q.langs = append(q.langs, l)
		}
	}
	a.open(text, "", nil)
	for more := a.next(); more; {
		if a.script == spaced {
			more = q.compound()
			continue
		}
		q.run()
		more = a.next()
	}
	return q.needed()
}

// A querier makes words from the stretches of an analyzer.
type querier struct {
	*analyzer
	langs  []language
	words  []Word
	single map[int32]bool // positions of words of one character, in scripts of pairs
}

// needed returns the words that a document must have. A run of one Kana or the like is a term only where it stands alone: the
// document may continue it, as in 踊り and 踊りの. So it is needed only if the query has nothing else.
func (q *querier) needed() []Word {
	if len(q.single) == 0 || len(q.single) == len(q.words) {
		return q.words
	}
	return slices.DeleteFunc(q.words, func(w Word) bool { return q.single[w.Position] })
}

// compound makes one word of stretches with only joints between them. It advances to the
// stretch after them, and reports whether there is one.
func (q *querier) compound() (more bool) {
	type stretch struct{ start, end int }
	parts := []stretch{{q.start, q.end}}
	for more = q.next(); more && q.script == spaced && joint(q.text[parts[len(parts)-1].end:q.start]); more = q.next() {
		parts = append(parts, stretch{q.start, q.end})
	}
	w := Word{Start: parts[0].start, End: parts[len(parts)-1].end, Position: q.pos}
	var exact []Term
	for _, p := range parts {
		if t := q.terms(q.text[p.start:p.end], unknown); t.exact != "" {
			exact = append(exact, Term{[]string{t.exact}, int32(len(exact))})
		}
	}
	w.add(exact, 0)
	for _, l := range q.langs {
		var stems []Term
		for _, p := range parts {
			if t := q.terms(q.text[p.start:p.end], l); t.exact != "" {
				stems = append(stems, Term{q.formsOf(t, l), int32(len(stems))})
			}
		}
		w.add(stems, 1<<l)
	}
	q.pos += int32(len(exact))
	q.keep(w)
	return more
}

// formsOf returns the terms in documents of a language for words with the stem of t: the stem with FormMark for words
// that differ from it, and the plain stem for a word that is its own stem.
func (q *querier) formsOf(t terms, l language) []string {
	stem := t.stem()
	if t.form != "" && q.terms(stem, l).form != "" { // the stem, as a word, has another stem
		return []string{t.form}
	}
	return []string{stem, stem + segment.FormMark}
}

// joint reports whether the text between two words joins them into one: a point, a
// hyphen, an underscore and the like, but not a space.
func joint(between string) bool {
	switch between {
	case "", ".", ":", "-", "_", "'", "’", "‐", "‑", "·":
		return true
	}
	return false
}

// run makes words from a run without spaces.
func (q *querier) run() {
	q.split()
	n := q.units.count()
	switch q.script {
	case han:
		from := 0
		for _, to := range chinese().cut(nil, q.units.han) {
			q.unspaced(from, to, to-from <= 2)
			from = to
		}
	case hangul:
		// The word may be part of a longer one in a document, so the syllables are an alternative too.
		w := q.word(0, n)
		w.addText(q.terms(q.text[q.start:q.end], unknown).exact)
		w.add(q.pairs(0, n), 0)
		q.keep(w)
	default:
		q.unspaced(0, n, n == 1)
		if n == 1 {
			if q.single == nil {
				q.single = map[int32]bool{}
			}
			q.single[q.pos] = true
		}
	}
	q.pos += int32(n)
}

// unspaced makes a word from the characters [from, to) of a run. short means that the pairs would be the word itself.
func (q *querier) unspaced(from, to int, short bool) {
	w := q.word(from, to)
	if short || q.script == han {
		w.addText(q.unit(from, to))
	}
	if !short {
		w.add(q.pairs(from, to), 0)
	}
	q.keep(w)
}

// pairs returns the pairs of the characters [from, to) of the run.
func (q *querier) pairs(from, to int) (pairs []Term) {
	for i := from; i+2 <= to; i++ {
		pairs = append(pairs, Term{[]string{q.unit(i, i+2)}, int32(i - from)})
	}
	return pairs
}

func (q *querier) word(from, to int) Word {
	u := &q.units
	return Word{Start: q.start + int(u.starts[from]), End: q.start + int(u.stops[to-1]), Position: q.pos + int32(from)}
}

// keep appends a word, unless nothing is left of it.
func (q *querier) keep(w Word) {
	if len(w.Alternatives) > 0 {
		w.Text = q.text[w.Start:w.End]
		q.words = append(q.words, w)
	}
}

// add adds an alternative: the form of the word in some languages, or the word as written if langs is empty.
// Languages with the same terms share one alternative.
func (w *Word) add(terms []Term, langs Langs) {
	terms = terms[:min(len(terms), maxAlternative)]
	if len(terms) == 0 {
		return
	}
	for i := range w.Alternatives {
		a := &w.Alternatives[i]
		if a.Exact() == (langs == 0) && slices.EqualFunc(a.Terms, terms, func(t, u Term) bool { return t.Offset == u.Offset && slices.Equal(t.Any, u.Any) }) {
			a.Langs |= langs
			return
		}
	}
	w.Alternatives = append(w.Alternatives, Alternative{terms, langs})
}

// addText adds an alternative of one term, the word as written.
func (w *Word) addText(term string) {
	if term != "" {
		w.add([]Term{{Any: []string{term}}}, 0)
	}
}

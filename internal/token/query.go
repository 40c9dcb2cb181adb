package token

import "slices"

// A Word is a piece of a query that is looked for as one: a word, a compound such as
// "wi-fi", a Chinese word, a run of Kana.
type Word struct {
	Text       string // as it was written
	Start, End int    // Text is [Start, End) of the query

	// Position says where the word stands among the others, counted as in documents: in a
	// phrase, words stand that far apart.
	Position int32

	// Alternatives are what the word may be in the index: a document has the word if it
	// has any of them. There is at least one; all differ.
	Alternatives []Alternative
}

// An Alternative is one or more terms, in order of Offset, all of which a document
// has, each Offset after the position of the word. The first Offset is 0.
type Alternative []Term

// A Term is a term of the index and its place in an [Alternative].
type Term struct {
	Text   string
	Offset int32
}

// maxAlternative is how many terms one alternative has: what is longer is matched by
// its beginning.
const maxAlternative = 32

// Query analyses a piece of query text. langs are the languages to look in besides
// those that are not stemmed: ISO 639-1 codes; nil are all of [stemmed]. Chinese,
// Japanese and other text without spaces is looked for whatever they are.
//
// The words are in order; phrases are made by their Positions. A query may be of any
// length: whoever evaluates it bounds the number of words.
func Query(text string, langs []string) []Word {
	if langs == nil {
		langs = stemmed()
	}
	a := analyzers.Get().(*analyzer)
	defer a.release()
	q := querier{analyzer: a, langs: []language{unknown}}
	for _, tag := range langs {
		if l := parseLanguage(tag); l >= firstStemmed && !slices.Contains(q.langs, l) {
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
	return q.words
}

// A querier makes words of what an analyzer cuts.
type querier struct {
	*analyzer
	langs []language
	words []Word
}

// compound makes one word of stretches that nothing but a joint parts. It goes to the
// stretch behind them, and reports whether there is one.
func (q *querier) compound() (more bool) {
	type stretch struct{ start, end int }
	parts := []stretch{{q.start, q.end}}
	for more = q.next(); more && q.script == spaced && joint(q.text[parts[len(parts)-1].end:q.start]); more = q.next() {
		parts = append(parts, stretch{q.start, q.end})
	}
	w := Word{Start: parts[0].start, End: parts[len(parts)-1].end, Position: q.pos}
	var width int32
	for _, l := range q.langs {
		var alt Alternative
		width = 0
		for _, p := range parts {
			if t := q.term(q.text[p.start:p.end], l); t != "" {
				alt = append(alt, Term{t, width})
				width++
			}
		}
		w.add(alt)
	}
	q.pos += width
	q.keep(w)
	return more
}

// joint reports whether what stands between two words makes them one: a point, a
// hyphen, an underscore and the like. A space does not.
func joint(between string) bool {
	switch between {
	case "", ".", ":", "-", "_", "'", "’", "‐", "‑", "·":
		return true
	}
	return false
}

// run makes words of a run without spaces.
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
		// What the document has of it may be longer, so the syllables come as well.
		w := q.word(0, n)
		w.add(Alternative{{Text: q.term(q.text[q.start:q.end], unknown)}})
		w.add(q.pairs(0, n))
		q.keep(w)
	default:
		q.unspaced(0, n, n == 1)
	}
	q.pos += int32(n)
}

// unspaced makes a word of the characters [from, to) of a run. It is short if its
// pairs are the word itself.
func (q *querier) unspaced(from, to int, short bool) {
	w := q.word(from, to)
	if short || q.script == han {
		w.add(Alternative{{Text: q.unit(from, to)}})
	}
	if !short {
		w.add(q.pairs(from, to))
	}
	q.keep(w)
}

// pairs are the characters [from, to) of the run by twos.
func (q *querier) pairs(from, to int) (alt Alternative) {
	for i := from; i+2 <= to; i++ {
		alt = append(alt, Term{q.unit(i, i+2), int32(i - from)})
	}
	return alt
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

// add adds an alternative that is new.
func (w *Word) add(alt Alternative) {
	alt = alt[:min(len(alt), maxAlternative)]
	same := func(other Alternative) bool { return slices.Equal(alt, other) }
	if len(alt) > 0 && alt[0].Text != "" && !slices.ContainsFunc(w.Alternatives, same) {
		w.Alternatives = append(w.Alternatives, alt)
	}
}

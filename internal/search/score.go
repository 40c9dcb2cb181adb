package search

import (
	"math"

	"github.com/orbweaver/orbweaver/blobschema/segment"
)

// Weights say how a document is scored; see docs/search.md for the formula and for why they
// are as they are.
type Weights struct {
	Field [segment.NumFields]FieldWeight
	// Exact is what a document adds that has all words as they were written; for a part of them, that
	// part. It is more than rank and title add to a document that has another form.
	Exact float64
	K1    float64 // how soon more of a word says no more
	// Rank, RankK and RankA are w, k and a of w·r^a/(k^a+r^a), where r is the page's PageRank
	// times the number of pages: 1 is the mean.
	Rank, RankK, RankA float64
	// Titled is what a title adds that has all that was asked for, and nothing else; a longer one adds less.
	Titled float64
}

// FieldWeight is what a word in a field counts, and how much (0 to 1) a long field makes it
// count less.
type FieldWeight struct {
	Weight, B float64
}

// weights are those in use. BM25F is that of Robertson, Zaragoza and Taylor (2004); the part of
// the rank that of Craswell, Robertson, Zaragoza and Taylor (2005), with their values.
func weights() Weights {
	return Weights{
		Field: [segment.NumFields]FieldWeight{
			segment.Title:    {5, 0.5},
			segment.Headings: {3, 0.5},
			segment.Anchor:   {2.5, 0.4},
			segment.URL:      {2, 0.5},
			segment.Body:     {1, 0.75},
			segment.Aside:    {0.2, 0.75},
		},
		Exact: 4, K1: 1.2, Rank: 1.8, RankK: 1, RankA: 0.6, Titled: 2,
	}
}

// idf is the weight of a word that df of n documents have: always above 0.
func idf(n, df float64) float64 {
	df = min(df, n)
	return math.Log1p((n - df + 0.5) / (df + 0.5))
}

// fieldPart is what freq words in a field of a length add, before saturation.
func (w *Weights) fieldPart(f segment.Field, freq, length int, average float64) float64 {
	fw := &w.Field[f]
	return fw.Weight * float64(freq) / (1 - fw.B + fw.B*float64(length)/average)
}

// word is how many times its idf a word is worth, by the sum of its parts. If the document has it as it was
// written, that is once more: no frequency of another form counts as much.
func (w *Weights) word(sum float64, exact bool) float64 {
	if sum /= w.K1 + sum; exact {
		sum++
	}
	return sum
}

// rankPart is what a page's rank adds; rank is 1 in the mean.
func (w *Weights) rankPart(rank float64) float64 {
	if rank <= 0 {
		return 0
	}
	p := math.Pow(rank, w.RankA)
	return w.Rank * p / (math.Pow(w.RankK, w.RankA) + p)
}

// Explanation says how the score of a result came about: Score is the sum of those of its words,
// of Exact, of Titled and of the rank's.
type Explanation struct {
	Score  float64     `json:"score"`
	Words  []WordScore `json:"words,omitempty"`
	Exact  float64     `json:"exact,omitempty"`  // for words as they were written
	Titled float64     `json:"titled,omitempty"` // for a title that has all that was asked for
	Rank   RankScore   `json:"rank"`
}

// WordScore is what a word, a phrase or a beginning adds: IDF · Sum/(k1+Sum), and IDF once more if the
// document has it as it was written.
type WordScore struct {
	Word      string       `json:"word"`
	Documents int64        `json:"documents"` // that have it, or, of several words, the rarest; about
	IDF       float64      `json:"idf"`       // of several words that of all together
	Exact     bool         `json:"exact"`     // the document has it as it was written
	Fields    []FieldScore `json:"fields"`
	Sum       float64      `json:"sum"` // of the fields' parts
	Score     float64      `json:"score"`
}

// FieldScore is what a field adds to a word's sum.
type FieldScore struct {
	Field  string   `json:"field"`
	Freq   int      `json:"freq"`            // in any form
	Exact  int      `json:"exact"`           // as it was written
	Terms  []string `json:"terms,omitempty"` // of the index that matched
	Length int      `json:"length"`          // of the field, in words; about
	Part   float64  `json:"part"`
}

// RankScore is what the PageRank adds.
type RankScore struct {
	Rank  float64 `json:"rank"` // times the number of pages: 1 is the mean; 0: unknown
	Score float64 `json:"score"`
}

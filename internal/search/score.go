package search

import (
	"math"

	"github.com/orbweaver/orbweaver/blobschema/segment"
)

// Weights are the parameters of scores; see docs/search.md for the formula and its reasons.
type Weights struct {
	Field [segment.NumFields]FieldWeight
	// Exact is added for a document that has all words as they were written, or a part of it for a part of the
	// words. It is more than rank and title can add.
	Exact float64
	K1    float64 // how soon a repeated word adds nothing
	// Rank, RankK and RankA are w, k and a of w·r^a/(k^a+r^a), where r is the page's PageRank times the number of
	// pages: its mean is 1.
	Rank, RankK, RankA float64
	// Titled is added for a title that consists of the words of the query; a longer title adds less.
	Titled float64
}

// FieldWeight is the weight of a word in a field, and by how much (0 to 1) a long field reduces it.
type FieldWeight struct {
	Weight, B float64
}

// weights returns the weights in use. BM25F is by Robertson, Zaragoza and Taylor (2004); the part of the rank,
// with its values, by Craswell, Robertson, Zaragoza and Taylor (2005).
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

// idf returns the weight of a word that df of n documents have. It is always above 0.
func idf(n, df float64) float64 {
	df = min(df, n)
	return math.Log1p((n - df + 0.5) / (df + 0.5))
}

// fieldPart returns what freq occurrences in a field add, before saturation.
func (w *Weights) fieldPart(f segment.Field, freq, length int, average float64) float64 {
	fw := &w.Field[f]
	return fw.Weight * float64(freq) / (1 - fw.B + fw.B*float64(length)/average)
}

// word returns the factor of a word's idf for the sum of its parts. If the document has the word as it was
// written, it is 1 more, which no frequency of another form reaches.
func (w *Weights) word(sum float64, exact bool) float64 {
	if sum /= w.K1 + sum; exact {
		sum++
	}
	return sum
}

// rankPart returns what a page's rank adds. The mean rank is 1.
func (w *Weights) rankPart(rank float64) float64 {
	if rank <= 0 {
		return 0
	}
	p := math.Pow(rank, w.RankA)
	return w.Rank * p / (math.Pow(w.RankK, w.RankA) + p)
}

// Explanation lists the parts of a result's score: Score is the sum of the scores of its words, of Exact, of
// Titled and of the rank's score.
type Explanation struct {
	Score  float64     `json:"score"`
	Words  []WordScore `json:"words,omitempty"`
	Exact  float64     `json:"exact,omitempty"`  // for words as they were written
	Titled float64     `json:"titled,omitempty"` // for a title with all words
	Rank   RankScore   `json:"rank"`
}

// WordScore is what a word, a phrase or a prefix adds: IDF · Sum/(k1+Sum), plus IDF if the document has it as
// it was written.
type WordScore struct {
	Word      string       `json:"word"`
	Documents int64        `json:"documents"` // approximate number of those that have it, or the rarest of several words
	IDF       float64      `json:"idf"`       // for several words, their sum
	Exact     bool         `json:"exact"`     // the document has it as it was written
	Fields    []FieldScore `json:"fields"`
	Sum       float64      `json:"sum"` // of the fields' parts
	Score     float64      `json:"score"`
}

// FieldScore is what a field adds to a word's sum.
type FieldScore struct {
	Field  string  `json:"field"`
	Freq   int     `json:"freq"`   // in any form
	Exact  int     `json:"exact"`  // as it was written
	Length int     `json:"length"` // approximate length of the field, in words
	Part   float64 `json:"part"`
}

// RankScore is what the PageRank adds.
type RankScore struct {
	Rank  float64 `json:"rank"` // times the number of pages: 1 is the mean; 0: unknown
	Score float64 `json:"score"`
}

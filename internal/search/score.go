package search

import (
	"math"

	"github.com/orbweaver/orbweaver/blobschema/segment"
)

// The parameters of scores; see docs/search.md for the formula and its reasons. BM25F is by Robertson, Zaragoza and
// Taylor (2004); the part of the rank, with its values, by Craswell, Robertson, Zaragoza and Taylor (2005).
const (
	// exactWeight is added for a document that has all words as written, or a part of it for some of the words. It is
	// more than rank and title can add.
	exactWeight = 4
	k1          = 1.2 // saturation: the larger it is, the longer repetitions of a word add to its score
	// rankWeight, rankK and rankA are w, k and a of w·r^a/(k^a+r^a), where r is the page's PageRank times the number of
	// pages: its mean is 1.
	rankWeight, rankK, rankA = 1.8, 1, 0.6
	// titledWeight is added for a title that consists of the words of the query; a longer title adds less.
	titledWeight = 2
)

// fieldWeights has the weight of a word in each field, and its reduction (0 to 1) by the length of the field.
var fieldWeights = [segment.NumFields]struct{ weight, b float64 }{
	segment.Title:    {5, 0.5},
	segment.Headings: {3, 0.5},
	segment.Anchor:   {2.5, 0.4},
	segment.URL:      {2, 0.5},
	segment.Body:     {1, 0.75},
	segment.Aside:    {0.2, 0.75},
}

// idf returns the weight of a word that df of n documents have. It is always above 0.
func idf(n, df float64) float64 {
	df = min(df, n)
	return math.Log1p((n - df + 0.5) / (df + 0.5))
}

// fieldPart returns the contribution of freq occurrences in a field, before saturation.
func fieldPart(f segment.Field, freq, length int, average float64) float64 {
	w := &fieldWeights[f]
	return w.weight * float64(freq) / (1 - w.b + w.b*float64(length)/average)
}

// wordPart returns the factor of a word's idf for the sum of its parts. If the document has the word as written, it
// is 1 more, which no frequency of another form reaches.
func wordPart(sum float64, exact bool) float64 {
	if sum /= k1 + sum; exact {
		sum++
	}
	return sum
}

// rankPart returns the contribution of a page's rank. The mean rank is 1.
func rankPart(rank float64) float64 {
	if rank <= 0 {
		return 0
	}
	p := math.Pow(rank, rankA)
	return rankWeight * p / (math.Pow(rankK, rankA) + p)
}

// Explanation lists the parts of a result's score: Score is the sum of the scores of its words, of Exact, of
// Titled and of the rank's score.
type Explanation struct {
	Score  float64     `json:"score"`
	Words  []WordScore `json:"words,omitempty"`
	Exact  float64     `json:"exact,omitempty"`  // for words as written
	Titled float64     `json:"titled,omitempty"` // for a title with all words
	Rank   RankScore   `json:"rank"`
}

// WordScore is the contribution of a word, a phrase or a prefix: IDF · Sum/(k1+Sum), plus IDF if the document has
// it as written.
type WordScore struct {
	Word      string       `json:"word"`
	Documents int64        `json:"documents"` // approximate number with the word, or the rarest of several words
	IDF       float64      `json:"idf"`       // for several words, their sum
	Exact     bool         `json:"exact"`     // the document has it as written
	Fields    []FieldScore `json:"fields"`
	Sum       float64      `json:"sum"` // of the fields' parts
	Score     float64      `json:"score"`
}

// FieldScore is the contribution of a field to a word's sum.
type FieldScore struct {
	Field  string  `json:"field"`
	Freq   int     `json:"freq"`   // in any form
	Exact  int     `json:"exact"`  // as written
	Length int     `json:"length"` // approximate length of the field, in words
	Part   float64 `json:"part"`
}

// RankScore is the contribution of the PageRank.
type RankScore struct {
	Rank  float64 `json:"rank"` // times the number of pages: 1 is the mean; 0: unknown
	Score float64 `json:"score"`
}

package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/orbweaver/orbweaver/internal/token"
)

// Marked is text with marks at the words of the query.
type Marked struct {
	Text  string   `json:"text"`
	Marks [][2]int `json:"marks,omitempty"` // ranges of bytes, ascending, apart
}

// Piece is a stretch of a marked text.
type Piece struct {
	Text string
	Mark bool
}

// Pieces splits the text at the ends of marks.
func (m Marked) Pieces() (out []Piece) {
	at := 0
	for _, mark := range m.Marks {
		if mark[0] > at {
			out = append(out, Piece{m.Text[at:mark[0]], false})
		}
		out = append(out, Piece{m.Text[mark[0]:mark[1]], true})
		at = mark[1]
	}
	if at < len(m.Text) {
		out = append(out, Piece{m.Text[at:], false})
	}
	return out
}

const (
	snippetBytes = 260
	snippetLead  = 60 // bytes of it before the first matching word
	// snippetText bounds the text that is searched for a snippet.
	snippetText = 256 << 10
)

// highlighter finds a query's words in texts. It is safe for concurrent use.
type highlighter struct {
	leaves   []*leaf
	prefixes map[string]int // to leaf
	weights  []float64      // by leaf
}

func (e *evaluation) highlighter() *highlighter {
	h := &highlighter{leaves: e.leaves[:len(e.leaves)-len(e.q.not)], prefixes: map[string]int{}}
	for i, l := range h.leaves {
		h.weights = append(h.weights, e.sums[i].idf)
		if l.prefix != "" {
			h.prefixes[l.prefix] = i
		}
	}
	return h
}

// terms returns the terms to mark in a document of a language, with their leaves.
func (h *highlighter) terms(lang string) map[string]int {
	terms, of := map[string]int{}, token.LangOf(lang)
	for i, l := range h.leaves {
		for alt, t := range l.terms {
			if _, ok := terms[t]; !ok && (alt.Exact() || alt.Langs&of != 0) {
				terms[t] = i
			}
		}
	}
	return terms
}

// mark is a place of a leaf in a text.
type mark struct{ start, end, leaf int }

// find finds the places of all leaves in a text.
func (h *highlighter) find(text, lang string) (out []mark) {
	terms := h.terms(lang)
	if len(terms)+len(h.prefixes) == 0 {
		return nil
	}
	for _, t := range token.Append(nil, text, lang) {
		leaf, ok := terms[t.Term]
		if !ok {
			for p, i := range h.prefixes {
				if strings.HasPrefix(t.Term, p) && (!ok || i < leaf) {
					leaf, ok = i, true
				}
			}
		}
		if ok {
			out = append(out, mark{int(t.Start), int(t.End), leaf})
		}
	}
	slices.SortStableFunc(out, func(a, b mark) int { return a.start - b.start })
	return out
}

func (h *highlighter) title(title, lang string) Marked {
	title = oneLine(title)
	return Marked{title, ranges(h.find(title, lang), 0, len(title), 0)}
}

// snippet returns the part of a text with most words of the query. Rare words count most; of equal parts the first
// is returned.
func (h *highlighter) snippet(text, lang string) Marked {
	text = oneLine(cutText(text, snippetText))
	marks := h.find(text, lang)
	from := 0
	if best := h.best(marks); best > snippetLead {
		from = best - snippetLead
	}
	if len(text)-from < snippetBytes {
		from = max(0, len(text)-snippetBytes)
	}
	from = wordStart(text, from)
	to := from + len(cutText(text[from:], snippetBytes))
	if to < len(text) {
		if space := strings.LastIndexByte(text[from:to], ' '); space > snippetBytes/2 {
			to = from + space
		}
	}
	lead, tail := "", ""
	if from > 0 {
		lead = "… "
	}
	if to < len(text) {
		tail = " …"
	}
	return Marked{lead + text[from:to] + tail, ranges(marks, from, to, len(lead))}
}

// best returns the start of the best stretch.
func (h *highlighter) best(marks []mark) (start int) {
	top := 0.0
	last := 0
	count := make([]int, len(h.weights))
	weight := 0.0
	for i, m := range marks {
		for last < len(marks) && marks[last].end <= m.start+snippetBytes-snippetLead {
			leaf := marks[last].leaf
			weight += 0.01 // a repeated word counts a little
			if count[leaf]++; count[leaf] == 1 {
				weight += 1 + h.weights[leaf]
			}
			last++
		}
		if last > i { // otherwise the word alone is longer than a snippet
			if weight > top+1e-9 {
				top, start = weight, m.start
			}
			weight -= 0.01
			if count[m.leaf]--; count[m.leaf] == 0 {
				weight -= 1 + h.weights[m.leaf]
			}
		} else {
			last = i + 1
		}
	}
	return start
}

// ranges returns the marks within a stretch of text, joined where they overlap, relative to its beginning plus an
// offset.
func ranges(marks []mark, from, to, offset int) (out [][2]int) {
	for _, m := range marks {
		if m.start < from || m.end > to {
			continue
		}
		a, b := m.start-from+offset, m.end-from+offset
		if n := len(out); n > 0 && a < out[n-1][1] {
			out[n-1][1] = max(out[n-1][1], b)
			continue
		}
		out = append(out, [2]int{a, b})
	}
	return out
}

// wordStart returns the start of the next word if it is near, otherwise the start of a character.
func wordStart(text string, from int) int {
	if from == 0 {
		return 0
	}
	if space := strings.IndexByte(text[from:min(len(text), from+snippetLead/2)], ' '); space >= 0 {
		return from + space + 1
	}
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return from
}

// cutText returns at most n bytes of a text, without a partial character.
func cutText(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

// oneLine replaces control characters, which terminals obey, and characters that change the direction of writing, by
// spaces.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, text)
}

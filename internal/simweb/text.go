package simweb

import (
	"bytes"
	"sort"
)

// text is a stock of ready paragraphs and words, so that a body costs little more than copying. A page takes
// each paragraph at most once until the stock is used up, so that a page does not compress better because the
// stock is small.
type text struct {
	words      []string
	paragraphs [][]byte // a power of two of them, with their p element
}

const (
	wordCount  = 6000
	turnCount  = 400
	stockPages = 8 // pages whose text the stock holds
)

func newText(seed uint64, pageBytes int) *text {
	size := min(max(pageBytes/50, 80), 600) // of a paragraph
	n := 64
	for n*size < stockPages*pageBytes && n < 4096 {
		n *= 2
	}
	t := &text{words: make([]string, min(wordCount, n*8))}
	r := draw(seed, 0, 0, streamText)
	// Word frequencies fall as 1/(rank+2) (Zipf-Mandelbrot law).
	weight := make([]uint64, len(t.words))
	sum := uint64(0)
	for i := range t.words {
		t.words[i] = word(i)
		sum += 1 << 24 / uint64(i+2)
		weight[i] = sum
	}
	pick := func() string {
		at := uint64(r.below(int(sum)))
		return t.words[sort.Search(len(weight), func(i int) bool { return weight[i] > at })]
	}
	// Natural language repeats phrases; without them text compresses too badly.
	turns := make([]string, min(turnCount, n))
	for i := range turns {
		turns[i] = pick() + " " + pick() + " " + pick()
		if i%2 == 0 {
			turns[i] += " " + pick() + " " + pick()
		}
	}
	single := pick
	pick = func() string {
		if r.below(4) == 0 {
			return turns[r.skewed(len(turns), 2)]
		}
		return single()
	}
	var buf bytes.Buffer
	ends := make([]int, n)
	for i := range ends {
		start := buf.Len()
		buf.WriteString("<p class=\"text\">")
		for limit := start + r.about(size); buf.Len() < limit; {
			sentence(&buf, &r, pick)
		}
		buf.WriteString("</p>\n")
		ends[i] = buf.Len()
	}
	all, start := buf.Bytes(), 0
	for _, end := range ends {
		t.paragraphs = append(t.paragraphs, all[start:end:end])
		start = end
	}
	return t
}

func sentence(buf *bytes.Buffer, r *rng, pick func() string) {
	n := 4 + r.below(14)
	for i := range n {
		s := pick()
		switch {
		case i == 0:
			buf.WriteByte(s[0] - 'a' + 'A')
			buf.WriteString(s[1:])
		case r.below(12) == 0:
			buf.WriteString(", ")
			buf.WriteString(s)
		default:
			buf.WriteByte(' ')
			buf.WriteString(s)
		}
	}
	buf.WriteString(". ")
}

// word returns the word of a rank. Common words are short, and no two words are the same.
func word(rank int) string {
	const heads, tails = "bcdfghjklmnprstvwz", "aeiou"
	var b []byte
	for n := rank; ; n = n/90 - 1 {
		s := n % 90 * 37 % 90 // neighbours in rank have different syllables
		b = append(b, heads[s/5], tails[s%5])
		if n < 90 {
			break
		}
	}
	return string(append(b, "nrstl"[rank%5]))
}

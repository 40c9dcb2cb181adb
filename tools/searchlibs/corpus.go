package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema/segment"
)

// page is a made-up document: some 5 KB of words as frequent as in texts.
type page struct {
	url, host, title, text string
	fields                 [segment.NumFields][]segment.TermPosition
}

type corpus struct {
	rng  *rand.Rand
	zipf *rand.Zipf
}

func newCorpus() *corpus {
	rng := rand.New(rand.NewPCG(1, 1))
	return &corpus{rng, rand.NewZipf(rng, 1.1, 4, 1<<17)}
}

// word is the nth word: lower-case letters.
func word(n uint64) string {
	const syllables = "bacidofugehajikolumanepiqorusetivowuxayezi"
	var b []byte
	for n += 3; ; n /= 21 {
		b = append(b, syllables[n%21*2:n%21*2+2]...)
		if n < 21 {
			return string(b)
		}
	}
}

func (c *corpus) words(n int) (string, []segment.TermPosition) {
	var tokens []segment.TermPosition
	var text strings.Builder
	for i := range n {
		w := word(c.zipf.Uint64())
		tokens = append(tokens, segment.TermPosition{Term: w, Position: int32(i)})
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(w)
	}
	return text.String(), tokens
}

func (c *corpus) page(n int) (p page) {
	p.host = fmt.Sprintf("www.example%d.org", c.rng.IntN(1000))
	p.url = fmt.Sprintf("https://%s/%s/page-%d.html", p.host, word(uint64(n%50)), n)
	p.title, p.fields[segment.Title] = c.words(4 + c.rng.IntN(8))
	p.text, p.fields[segment.Body] = c.words(450 + c.rng.IntN(900))
	return p
}

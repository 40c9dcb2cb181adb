// Package corpus generates documents with known answers, to measure indexes and to judge searches.
//
// Each document is a pure function of the seed and its number. It is an HTML page of about 15 KB: menus, a sidebar, a footer
// and scripts around 5 KB of text. It has a unique title, a word that occurs in no other document, and links. 72% are in a
// language of common English words and invented ones, whose frequencies follow Zipf's law; 15% are Chinese, 8% Japanese and
// 5% Korean, of real words.
package corpus

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Most is the largest number of documents.
const Most = 200_000

// TextBytes is the approximate size of a document's text.
const TextBytes = 5_000

// Corpus is a collection. It is immutable, and safe for concurrent use.
type Corpus struct {
	seed   uint64
	docs   int
	starts []int // first document of each host, ascending; the last is docs
	words  []string
	weight []uint64 // cumulative, by rank
}

// Document describes a document.
type Document struct {
	URL    string
	Host   string
	Lang   string // en, zh, ja or ko
	Title  string // unique
	Unique string // a word of the text that no other document has
	Text   int    // bytes of paragraphs and headings
	HTML   []byte
}

// Ranks of all English words, and of those in titles.
const (
	vocabulary  = 60_000
	titleFirst  = 300
	titleDigits = 64
)

// New returns the collection of a seed, with at most [Most] documents.
func New(seed uint64, docs int) (*Corpus, error) {
	if docs < 1 || docs > Most {
		return nil, fmt.Errorf("a corpus of %d documents, not 1 to %d", docs, Most)
	}
	c := &Corpus{seed: seed, docs: docs}
	hosts := max(4, docs/25)
	sum, total := 0.0, 0.0
	for h := range hosts {
		total += 1 / math.Sqrt(float64(h+1))
	}
	for h := range hosts {
		c.starts = append(c.starts, int(sum/total*float64(docs)))
		sum += 1 / math.Sqrt(float64(h+1))
	}
	c.starts = append(slices.Compact(c.starts), docs)
	mass := uint64(0)
	for rank := range vocabulary {
		w := made(rank)
		if rank%3 != 0 || rank/3 >= len(english) { // the most common third of the first words are English
			w += [...]string{"", "", "s", "ed", "ing", "", "er", "ly"}[rank%8]
		} else {
			w = english[rank/3]
		}
		c.words = append(c.words, w)
		mass += 1 << 32 / uint64(rank+3) // Zipf's law in Mandelbrot's form
		c.weight = append(c.weight, mass)
	}
	return c, nil
}

// Len returns the number of documents.
func (c *Corpus) Len() int { return c.docs }

// made returns the invented word of a rank. All are different, and none contains q or x.
func made(rank int) string {
	const heads, tails = "bcdfghjklmnprstvwz", "aeiou"
	var b []byte
	for n := rank; ; n = n/90 - 1 {
		s := n % 90 * 37 % 90 // neighbours in rank sound different
		b = append(b, heads[s/5], tails[s%5])
		if n < 90 {
			break
		}
	}
	return string(append(b, "nrtlm"[rank%5]))
}

// Lang returns the language of document i.
func (c *Corpus) Lang(i int) string {
	lang, _ := language(i)
	return lang
}

// language returns the language of document i, and its number among those of the language.
func language(i int) (lang string, n int) {
	for first, l := range shares {
		if at := i * 37 % 100; at >= l.from && at < l.to { // 37: neighbours have several languages
			return shares[first].lang, i/100*(l.to-l.from) + at - l.from
		}
	}
	panic("corpus: unreachable: the shares are whole")
}

var shares = []struct {
	lang     string
	from, to int
}{{"en", 0, 72}, {"zh", 72, 87}, {"ja", 87, 95}, {"ko", 95, 100}}

// host returns the host of document i.
func (c *Corpus) host(i int) int {
	h, _ := slices.BinarySearchFunc(c.starts, i, func(start, i int) int { return cmp.Compare(start, i+1) })
	return h - 1
}

func hostName(h int) string { return "www.site" + strconv.Itoa(h) + ".example" }

// Title returns the title of document i: three words of three lists, another choice for each document.
func (c *Corpus) Title(i int) string {
	start, rest := c.title(i)
	return start + rest
}

// SharedTitle returns the first two words of the title of document i, which several documents share in a large collection.
func (c *Corpus) SharedTitle(i int) string {
	start, _ := c.title(i)
	return start
}

func (c *Corpus) title(i int) (shared, rest string) {
	lang, n := language(i)
	base := uint32(titleDigits)
	if lang == "ja" || lang == "ko" {
		base = titleDigits / 2
	}
	k := uint32(n) * 40503 % (base * base * base) // an odd factor modulo a power of two is one-to-one
	a, b, d := k%base, base+k/base%base, 2*base+k/base/base
	switch lang {
	case "zh":
		return chinese[a] + chinese[b], "与" + chinese[d]
	case "ja":
		return japanese[a] + "と" + japanese[b], "の" + japanese[d]
	case "ko":
		return korean[a] + " " + korean[b] + "의", " " + korean[d]
	}
	w := c.words[titleFirst:]
	return capital(w[a]) + " " + w[b], " and " + w[d]
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Unique returns the word that occurs only in document i.
func (c *Corpus) Unique(i int) string {
	lang, n := language(i)
	digits := func(alphabet string, count int) string {
		letters := []rune(alphabet)
		var b strings.Builder
		for k := n; count > 0; count-- {
			b.WriteRune(letters[k%len(letters)])
			k /= len(letters)
		}
		return b.String()
	}
	switch lang {
	case "zh":
		return digits(rare, 3)
	case "ja":
		return "ヴ" + digits(kana, 4) + "ヂ"
	case "ko":
		return "뷁" + digits(syllables, 4)
	}
	return "q" + made(n) + "ux"
}

// URL returns the URL of document i.
func (c *Corpus) URL(i int) string {
	slug := "page"
	if c.Lang(i) == "en" {
		slug = strings.ReplaceAll(strings.ToLower(c.Title(i)), " ", "-")
	}
	return fmt.Sprintf("http://%s/articles/%s-%d.html", hostName(c.host(i)), slug, i)
}

// Document generates document i and appends its page to the empty dst.
func (c *Corpus) Document(i int, dst []byte) Document {
	lang, _ := language(i)
	d := Document{URL: c.URL(i), Host: hostName(c.host(i)), Lang: lang, Title: c.Title(i), Unique: c.Unique(i)}
	p := &page{Corpus: c, i: i, lang: lang, rng: rand.New(rand.NewPCG(c.seed, uint64(i)))}
	for range 24 {
		p.topic = append(p.topic, c.words[200+p.rng.IntN(vocabulary-200)])
	}
	d.HTML, d.Text = p.html(dst[:0], &d)
	return d
}

// frequent returns a random word with the frequency of its rank.
func (c *Corpus) frequent(rng *rand.Rand) string {
	at := rng.Uint64N(c.weight[len(c.weight)-1])
	return c.words[sort.Search(len(c.weight), func(i int) bool { return c.weight[i] > at })]
}

// Words returns n random words for searches, as frequent as in documents, without the most common ones.
func (c *Corpus) Words(rng *rand.Rand, n int) (out []string) {
	for len(out) < n {
		if w := c.frequent(rng); !slices.Contains(english, w) {
			out = append(out, w)
		}
	}
	return out
}

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// A corpus is the text of the site's HTML pages, read from their files: what a search must
// find in them. Nothing of the crawler's text, tokens or index is used.
type corpus struct {
	pages  []*document // in order of their keys
	suffix string      // that most titles have: the site's name

	prefixes map[string]owner // of words, see ownWord
	grams    map[string]owner // of text without spaces
}

// owner is the one page that has something, by its number in the corpus, or shared.
type owner int32

const shared owner = -1

// A document is what can be seen of a page.
type document struct {
	key    string
	url    string // as the crawler spells it
	group  string // language by the path: LANG of translations/LANG/, or else "main"
	title  string // without the site's name
	alone  bool   // no other page has the title
	prose  []string
	body   []string // all pieces of text that are not within links, navigation and the like
	hidden []string // what may be found though it is not of the page's own text: links, attributes, the path
}

// documents reads all HTML pages that truth says are served. urls are the crawler's
// spellings, by key.
func readCorpus(truth map[string]answer, urls map[string]string) (*corpus, error) {
	c := &corpus{prefixes: map[string]owner{}, grams: map[string]owner{}}
	var titles []string
	for k, a := range truth {
		if a.status != http.StatusOK || !isDocument(a.file) {
			continue
		}
		data, err := os.ReadFile(a.file)
		if err != nil {
			return nil, err
		}
		d := readDocument(data)
		d.key, d.url, d.group = k, urls[k], group(k)
		if d.url == "" {
			return nil, fmt.Errorf("%s has no page record", k)
		}
		d.hidden = append(d.hidden, k)
		c.pages = append(c.pages, d)
		titles = append(titles, d.title)
	}
	slices.SortFunc(c.pages, func(a, b *document) int { return cmp.Compare(a.key, b.key) })
	c.suffix = commonSuffix(titles)
	times := map[string]int{}
	for _, d := range c.pages {
		d.title = strings.TrimSpace(strings.TrimSuffix(d.title, c.suffix))
		times[plain(d.title)]++
	}
	for i, d := range c.pages {
		d.alone = plain(d.title) != "" && times[plain(d.title)] == 1
		c.note(owner(i), d)
	}
	return c, nil
}

// group is the language that the path of a page says, as Sphinx lays out translations.
func group(key string) string {
	_, rest, found := strings.Cut(key, "/translations/")
	lang, _, inside := strings.Cut(rest, "/")
	if !found || !inside {
		return "main"
	}
	return lang
}

// commonSuffix is what more than half of the titles end with, from a sign that divides on.
func commonSuffix(titles []string) string {
	times := map[string]int{}
	for _, t := range titles {
		for _, sign := range []string{" — ", " – ", " - ", " | ", " :: "} {
			if at := strings.LastIndex(t, sign); at > 0 {
				times[t[at:]]++
			}
		}
	}
	for s, n := range times {
		if 2*n > len(titles) {
			return s // there can be but one
		}
	}
	return ""
}

// What the elements of a page are to a reader.
var (
	unseen = words(`script style template textarea select svg math head`)
	aside  = words(`nav header footer aside form button`) // seen, but perhaps not of the page's text
	inline = words(`a abbr b bdi bdo big cite code dfn em font i kbd mark q s samp small span strong sub sup tt u var wbr`)
	void   = words(`area base br col embed hr img input link meta param source track wbr`)
)

func words(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

// readDocument reads a page with a plain tokenizer. It trusts the file to close most of what
// it opens: that of a documentation does.
func readDocument(data []byte) *document {
	d := &document{}
	var open []string // elements
	depth := map[string]int{}
	var text, side strings.Builder
	within := func(set map[string]bool) bool {
		return slices.ContainsFunc(open, func(e string) bool { return set[e] })
	}
	flush := func() {
		if s := oneSpaced(text.String()); strings.Trim(s, gap) != "" {
			d.body = append(d.body, s)
			if depth["p"] > 0 {
				d.prose = append(d.prose, s)
			}
		}
		if s := oneSpaced(side.String()); s != "" {
			d.hidden = append(d.hidden, s)
		}
		text.Reset()
		side.Reset()
	}
	for z := html.NewTokenizer(bytes.NewReader(data)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		t := z.Token()
		switch kind {
		case html.TextToken:
			switch {
			case depth["title"] > 0 && depth["svg"] == 0:
				d.title = oneSpaced(d.title + t.Data)
			case within(unseen):
			case within(aside):
				side.WriteString(t.Data)
			case depth["a"] > 0: // found by it is what it leads to, too
				side.WriteString(t.Data)
				text.WriteString(gap)
			default:
				text.WriteString(t.Data)
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			for _, a := range t.Attr {
				if a.Key == "alt" || a.Key == "title" || a.Key == "content" {
					d.hidden = append(d.hidden, a.Val)
				}
			}
			if !inline[t.Data] {
				flush()
			}
			if kind == html.StartTagToken && !void[t.Data] {
				open = append(open, t.Data)
				depth[t.Data]++
			}
		case html.EndTagToken:
			if !inline[t.Data] {
				flush()
			}
			if depth[t.Data] == 0 {
				break
			}
			for last := ""; last != t.Data; {
				last = open[len(open)-1]
				open = open[:len(open)-1]
				depth[last]--
			}
		}
	}
	flush()
	return d
}

// gap stands where a link was: no word or phrase is drawn across it.
const gap = "\x00"

func oneSpaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// plain is a text as its words alone, in one case.
func plain(text string) string { return strings.Join(split(text), " ") }

// asked is a text as somebody would type it, without what has a meaning in a query.
func asked(text string) string {
	var out []string
	for _, w := range strings.Fields(strings.ToLower(text)) {
		w = strings.TrimFunc(strings.ReplaceAll(w, `"`, ""), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
		if w != "" {
			out = append(out, w)
		}
	}
	return strings.Join(out, " ")
}

// split cuts a text into runs of letters, digits and marks, in one case.
func split(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	})
}

// unspaced reports whether a character is of a script that has no spaces between words, or,
// as Hangul, words of which a part is found.
func unspaced(r rune) bool {
	return r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r == 'ー' // which no script has alone
}

// Characters that tell a word from any other, and a stretch of text without spaces.
const (
	prefixRunes = 4
	gramRunes   = 4
)

// language is the code that lang: has for the group; "" for the main one.
func (d *document) language() string {
	if d.group == "main" {
		return ""
	}
	lang, _, _ := strings.Cut(d.group, "_")
	return lang
}

// note takes down whose the words of a page are.
func (c *corpus) note(i owner, d *document) {
	mark := func(m map[string]owner, s string, by owner) {
		if was, ok := m[s]; ok && was != by {
			by = shared
		}
		m[s] = by
	}
	look := func(text string, by owner) {
		for _, w := range split(text) {
			mark(c.prefixes, first(w, prefixRunes), by)
		}
		for g := range grams(text) {
			mark(c.grams, g, by)
		}
	}
	for _, text := range d.body {
		look(text, i)
	}
	look(d.title, i)
	for _, text := range d.hidden {
		look(text, shared)
	}
}

// grams are the stretches of gramRunes characters in a text, spaces left out.
func grams(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		var run []rune
		for _, r := range text {
			switch {
			case unspaced(r):
				run = append(run, r)
			case !unicode.IsSpace(r):
				run = run[:0]
			}
			if n := len(run); n >= gramRunes && unspaced(r) && !yield(string(run[n-gramRunes:])) {
				return
			}
		}
	}
}

// first is the first n characters of s.
func first(s string, n int) string {
	at := 0
	for ; n > 0 && at < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return s[:at]
}

// ownWords are words that no other page has, nor another form of them: of eight letters, of
// which the first four begin no word of another page; and runs of text without spaces, of
// which four characters are in no other page. Those are looked for as phrases.
func (c *corpus) ownWords(i int) (out []string) {
	seen := map[string]bool{}
	for _, text := range c.pages[i].body {
		for _, w := range split(text) {
			letters := strings.IndexFunc(w, func(r rune) bool { return !unicode.IsLetter(r) || unspaced(r) }) < 0
			if letters && utf8.RuneCountInString(w) >= 8 && c.prefixes[first(w, prefixRunes)] == owner(i) && !seen[w] {
				seen[w] = true
				out = append(out, w)
			}
		}
		for _, run := range strings.FieldsFunc(text, func(r rune) bool { return !unspaced(r) }) {
			own := false
			for g := range grams(run) {
				own = own || c.grams[g] == owner(i)
			}
			if n := utf8.RuneCountInString(run); own && n <= 12 && !seen[run] {
				seen[run] = true
				out = append(out, `"`+run+`"`)
			}
		}
	}
	return out
}

// How long phrases are that are looked for: in words, or in characters where there are no spaces.
const (
	phraseWords = 4
	phraseRunes = 6 // and up to three times as many, for they end where a run ends
)

// phrases are stretches of the running text of a page.
func (d *document) phrases() (out []string) {
	for _, text := range d.prose {
		pieces := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(gap+`"“”„`, r) })
		for _, piece := range pieces {
			if strings.ContainsFunc(piece, unspaced) {
				out = append(out, unspacedPhrases([]rune(piece))...)
				continue
			}
			w := strings.Fields(piece)
			// The piece may begin and end within a word.
			for at := 1; at+phraseWords < len(w); at += phraseWords {
				four := w[at : at+phraseWords]
				if !slices.ContainsFunc(four, func(s string) bool { return plain(s) == "" }) {
					out = append(out, strings.Join(four, " "))
				}
			}
		}
	}
	return out
}

// unspacedPhrases begin and end where runs do, so that no word is cut.
func unspacedPhrases(text []rune) (out []string) {
	starts := func(i int) bool { return unspaced(text[i]) && i > 0 && !unspaced(text[i-1]) }
	ends := func(i int) bool { return unspaced(text[i]) && i+1 < len(text) && !unspaced(text[i+1]) }
	for from := range text {
		if !starts(from) {
			continue
		}
		for to := from; to < len(text) && to < from+3*phraseRunes; to++ {
			if ends(to) && to-from+1 >= phraseRunes {
				out = append(out, string(text[from:to+1]))
				break
			}
		}
	}
	return out
}

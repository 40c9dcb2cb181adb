package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// A document is the text of a page.
type document struct {
	title  string
	body   []string // text outside links, navigation and the like
	hidden []string // text that a search may find, but that is not the page's own: links, attributes, the path
}

var (
	unseen = []string{"script", "style", "template", "textarea", "select", "svg", "math", "head"}
	aside  = []string{"nav", "header", "footer", "aside", "form", "button"}
	inline = strings.Fields("a abbr b bdi bdo big cite code dfn em font i kbd mark q s samp small span strong sub sup tt u var wbr")
)

// newDocument divides the text of a page into blocks.
func newDocument(doc *html.Node) *document {
	d := &document{}
	var text strings.Builder
	flush := func() {
		if s := oneSpaced(text.String()); s != "" {
			d.body = append(d.body, s)
		}
		text.Reset()
	}
	var visit func(n *html.Node)
	visit = func(n *html.Node) {
		block := n.Type == html.ElementNode && !slices.Contains(inline, n.Data)
		if block {
			flush()
		}
		switch {
		case n.Type == html.ElementNode:
			for _, name := range []string{"alt", "title", "content"} {
				d.hidden = append(d.hidden, attribute(n, name))
			}
		case n.Type != html.TextNode:
		case n.Parent.Data == "title" && !within(n, "svg"):
			d.title = oneSpaced(n.Data)
		case within(n, unseen...):
		case within(n, aside...):
			d.hidden = append(d.hidden, n.Data)
		case within(n, "a"): // the target is found by it, too
			d.hidden = append(d.hidden, n.Data)
			text.WriteString(" ")
		default:
			text.WriteString(n.Data)
		}
		for child := range n.ChildNodes() {
			visit(child)
		}
		if block {
			flush()
		}
	}
	visit(doc)
	return d
}

func oneSpaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// split cuts a text into runs of letters, digits and marks, in lower case.
func split(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	})
}

// A corpus is the text of all pages: what searches must find.
type corpus struct {
	keys   []string            // of the HTML pages, in order
	titled map[string]string   // key by title, of titles that one page has
	own    map[string][]string // by key: words that no other page has, see ownWords
	common string              // a word that many pages have
}

// prefix is the beginning of a word that tells it from all forms of other words.
func prefix(word string) string { return string([]rune(word)[:min(4, utf8.RuneCountInString(word))]) }

// corpus collects titles and own words. A word is a page's own if it has at least eight
// letters, and its first four begin no word of another page.
func (s *site) corpus() *corpus {
	c := &corpus{titled: map[string]string{}, own: map[string][]string{}}
	suffix := "" // the site's name
	if home := s.pages[key(s.home)].text.title; strings.Contains(home, " — ") {
		suffix = home[strings.LastIndex(home, " — "):]
	}
	owners, pages := map[string]string{}, map[string]int{} // of prefixes and words
	const shared = "?"
	mark := func(m map[string]string, what, by string) {
		if was, ok := m[what]; ok && was != by {
			by = shared
		}
		m[what] = by
	}
	for k, p := range s.pages {
		if p.text == nil || p.status != http.StatusOK {
			continue
		}
		c.keys = append(c.keys, k)
		mark(c.titled, strings.TrimSuffix(p.text.title, suffix), k)
		body := split(strings.Join(append(p.text.body, p.text.title), " "))
		for _, w := range body {
			mark(owners, prefix(w), k)
		}
		slices.Sort(body)
		for _, w := range slices.Compact(body) {
			pages[w]++
		}
		for _, w := range split(strings.Join(p.text.hidden, " ")) {
			mark(owners, prefix(w), shared)
		}
	}
	slices.Sort(c.keys)
	delete(c.titled, "")
	for _, k := range c.keys {
		for _, w := range split(strings.Join(s.pages[k].text.body, " ")) {
			plain := strings.IndexFunc(w, func(r rune) bool { return !unicode.IsLetter(r) || r > unicode.MaxLatin1 }) < 0
			if plain && utf8.RuneCountInString(w) >= 8 && owners[prefix(w)] == k && !slices.Contains(c.own[k], w) {
				c.own[k] = append(c.own[k], w)
			}
		}
	}
	const wanted = 300 // results: several pages of them, and fewer than a search shows
	for w, n := range pages {
		if len(w) >= 5 && n <= wanted && (n > pages[c.common] || n == pages[c.common] && w < c.common) {
			c.common = w
		}
	}
	return c
}

// replaceWord replaces all words of a file's text that begin as old does, and gives the
// file another time.
func replaceWord(file, old, word string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	pattern := regexp.MustCompile(`(?i)` + regexp.QuoteMeta(prefix(old)) + `[\pL\pN\pM]*`)
	var out bytes.Buffer
	for z := html.NewTokenizer(bytes.NewReader(data)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		raw := z.Raw()
		if kind == html.TextToken {
			raw = pattern.ReplaceAllLiteral(raw, []byte(word))
		}
		out.Write(raw)
	}
	if bytes.Equal(out.Bytes(), data) {
		return fmt.Errorf("%s has no %s", file, old)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		return err
	}
	return touch(file)
}

// touch gives a file a later time.
func touch(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	later := info.ModTime().Add(time.Hour)
	return os.Chtimes(file, later, later)
}

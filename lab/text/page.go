package main

import (
	"bytes"
	"embed"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
)

//go:embed pages/*.html
var files embed.FS

// A page is one labelled page.
type page struct {
	name string
	lang string // ISO 639-1 code, from the file name
	body []byte // without the labels
	main bag    // what an extractor should return
	free bag    // what it may return or leave out
}

// A bag counts words.
type bag map[string]int

func (b bag) size() (n int) {
	for c := range maps.Values(b) {
		n += c
	}
	return n
}

// readPages reads the labelled pages. Each label, <!--main-->, <!--frame--> or <!--free-->, holds for the text behind
// it up to the next one; pages begin with frame.
func readPages() ([]page, error) {
	entries, err := files.ReadDir("pages")
	if err != nil {
		return nil, err
	}
	var pages []page
	for _, e := range entries {
		labelled, err := files.ReadFile("pages/" + e.Name())
		if err != nil {
			return nil, err
		}
		parts := strings.Split(e.Name(), ".")
		p := page{name: parts[0], lang: parts[1], body: labelled, main: bag{}, free: bag{}}
		for _, label := range []string{"main", "frame", "free"} {
			p.body = bytes.ReplaceAll(p.body, []byte("<!--"+label+"-->"), nil)
		}
		p.label(labelled)
		pages = append(pages, p)
	}
	return pages, nil
}

// label counts the words of each label. Titles and top headings are free, because some extractors return them apart.
func (p *page) label(labelled []byte) {
	label := "frame"
	var main, free strings.Builder
	visible(labelled, func(comment string) { label = comment }, func(text, element string) {
		switch {
		case text == " ":
			main.WriteByte(' ')
			free.WriteByte(' ')
		case element == "title" || element == "h1" || label == "free":
			free.WriteString(text)
		case label == "main":
			main.WriteString(text)
		}
	})
	p.main, p.free = words(main.String()), words(free.String())
}

// visible calls text for each visible text of a body, with the name of the title or h1 around it, and for a space where an
// element ends that separates words. It calls label for each label.
func visible(body []byte, label func(string), text func(text, element string)) {
	z := html.NewTokenizer(bytes.NewReader(body))
	element, hidden := "", ""
	for tt := z.Next(); tt != html.ErrorToken; tt = z.Next() {
		t := z.Token()
		switch tt {
		case html.CommentToken:
			if slices.Contains([]string{"main", "frame", "free"}, t.Data) {
				label(t.Data)
			}
		case html.StartTagToken:
			switch t.Data {
			case "script", "style", "noscript", "template", "svg", "select", "textarea":
				if hidden == "" {
					hidden = t.Data
				}
			case "title", "h1":
				element = t.Data
			}
		case html.EndTagToken:
			switch t.Data {
			case hidden:
				hidden = ""
			case element:
				element = ""
			}
			if t.Data != "a" && t.Data != "span" && t.Data != "b" && t.Data != "i" && t.Data != "em" && t.Data != "code" {
				text(" ", element)
			}
		case html.TextToken:
			if hidden == "" {
				text(t.Data, element)
			}
		}
	}
}

// words counts the words of a text in lower case. In scripts without spaces, each character is a word.
func words(text string) bag {
	b := bag{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}) {
		from := 0
		for i, r := range w {
			if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) {
				if i > from {
					b[w[from:i]]++
				}
				b[string(r)]++
				from = i + len(string(r))
			}
		}
		if from < len(w) {
			b[w[from:]]++
		}
	}
	return b
}

package search

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/internal/token"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Bounds of a query.
const (
	maxQuery = 4 << 10 // bytes
	maxWords = 32      // words
	// Terms of the index for these words: a word may have several parts, each with a stem in every
	// language. A prefix has many terms.
	maxTerms    = 512
	maxPrefixes = 8
)

// ErrQuery reports an invalid query; the text is for the user.
var ErrQuery = errors.New("query")

func badQuery(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrQuery, fmt.Sprintf(format, args...))
}

// Syntax describes queries, for people.
const Syntax = `A query consists of words. It finds documents that contain all of them, in any field.

  coffee roasting       both words, also in other forms in the document's language; documents
                        that have the words as you write them come first
  "coffee roasting"     the words side by side
  coffee OR tea         one of the two; OR binds tighter than a space
  -tea  -"green tea"    documents without this
  roast*                any word with this beginning
  title:coffee          only in one field: title, headings, body, url, aside (see-also lists,
                        footnotes and other parts beside the text), anchor (the texts of
                        links to the document); also before a phrase or a prefix
  site:example.org      only that site, at any port, and those below it; several: any
  lang:de               only documents in that language; several: any of them
  -site:... -lang:...   none of them

Case and accents make no difference. Chinese, Japanese and Korean need no spaces. Quote a
word with a colon that names no field: "std:vector". A query of only site: and lang: lists
documents, the most linked first. A query has at most 4096 bytes and 32 words.`

// Query is a parsed query. A document matches if it has all clauses and none of not.
type Query struct {
	clauses []clause
	rows    []leaf // adjoining words, such as Chinese ones; they add to the score if they are in a row
	not     []leaf

	atoms              []atom   // its pieces, filters of the request included
	sites, langs       []string // any of them; empty: all
	notSites, notLangs []string
	words              int
}

// listing reports whether the query has filters only: then it lists documents.
func (q *Query) listing() bool { return len(q.clauses) == 0 }

// clause matches if any of its leaves does.
type clause []leaf

// fields is a set of segment.Field.
type fields uint8

const allFields = fields(1<<segment.NumFields - 1)

func (f fields) has(field segment.Field) bool { return f&(1<<field) != 0 }

// leaf is one thing to find: a word, a prefix, or words in a row.
type leaf struct {
	text   string // for people
	fields fields
	prefix string       // of terms, else ""
	words  []token.Word // their Positions give their distances
}

// fieldNames are the prefixes of fields.
var fieldNames = map[string]segment.Field{
	"title": segment.Title, "heading": segment.Headings, "headings": segment.Headings,
	"body": segment.Body, "url": segment.URL, "anchor": segment.Anchor, "aside": segment.Aside,
}

const fieldList = "title, headings, body, url, aside, anchor, site and lang"

// parse parses a query with the filters beside it; the errors are [ErrQuery]. Parts without a meaning, such as a
// single point, are ignored unless there is nothing else.
func parse(text string, req *Request) (*Query, error) {
	if len(text) > maxQuery {
		return nil, badQuery("it has %d bytes, more than %d", len(text), maxQuery)
	}
	text = strings.Map(printable, strings.ToValidUTF8(text, " "))
	l := lexer{text: text, rest: text}
	var langs []string // languages of the stems of words; nil: all
	var atoms []atom
	for _, s := range req.Sites {
		atoms = append(atoms, atom{filter: "site", text: s})
	}
	for _, s := range req.Langs {
		langs = append(langs, s)
		atoms = append(atoms, atom{filter: "lang", text: s})
	}
	for {
		a, ok, err := l.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		atoms = append(atoms, a)
		if a.filter == "lang" && !a.not {
			langs = append(langs, a.text)
		}
	}
	q := &Query{atoms: atoms}
	if err := q.build(atoms, langs); err != nil {
		return nil, err
	}
	return q, nil
}

func printable(r rune) rune {
	if unicode.IsControl(r) || unicode.IsSpace(r) {
		return ' '
	}
	return r
}

// atom is a piece of a query's text.
type atom struct {
	text   string
	or     bool // the operator, nothing else
	not    bool
	phrase bool
	prefix bool
	filter string // "site" or "lang"
	fields fields
	at     int    // its first character in the query, from 1; 0: it is not in the query's text
	raw    string // whole atom, as written
	before int    // bytes of raw before text
}

// lexer cuts a query into atoms.
type lexer struct{ text, rest string }

// at returns the number of the next character, from 1.
func (l *lexer) at() int { return utf8.RuneCountInString(l.text[:len(l.text)-len(l.rest)]) + 1 }

// quotes are the marks that begin or end a phrase.
const quotes = "\"“”„«»"

// next returns the next atom. ok is false at the end.
func (l *lexer) next() (a atom, ok bool, err error) {
	l.rest = strings.TrimLeft(l.rest, " ")
	if l.rest == "" {
		return a, false, nil
	}
	begin := l.rest
	a.at, a.fields = l.at(), allFields
	if len(l.rest) > 1 && l.rest[0] == '-' && l.rest[1] != ' ' {
		a.not, l.rest = true, l.rest[1:]
	}
	if err := l.field(&a); err != nil {
		return a, false, err
	}
	a.before = len(begin) - len(l.rest)
	err = l.content(&a)
	a.raw = begin[:len(begin)-len(l.rest)]
	return a, err == nil, err
}

// field reads the name of a field or filter, if there is one. An unknown name is an error if a word or a quote
// follows: std::vector, https://example.org and example:8080 are words.
func (l *lexer) field(a *atom) error {
	name, rest, found := strings.Cut(l.rest, ":")
	if !found || name == "" || strings.ContainsFunc(name, func(r rune) bool { return r|0x20 < 'a' || r|0x20 > 'z' }) {
		return nil
	}
	first, _ := utf8.DecodeRuneInString(rest)
	f, known := fieldNames[strings.ToLower(name)]
	switch {
	case known:
		a.fields = 1 << f
	case strings.EqualFold(name, "site") || strings.EqualFold(name, "lang"):
		a.filter = strings.ToLower(name)
	case unicode.IsLetter(first) || strings.ContainsRune(quotes, first):
		return badQuery("there is no field %.40s at character %d; fields are %s. Put quotes around a text that has a colon", name, l.at(), fieldList)
	default:
		return nil
	}
	if l.rest = rest; rest == "" || first == ' ' {
		return a.empty()
	}
	return nil
}

// empty returns the error for a field without content.
func (a *atom) empty() error {
	if a.at == 0 {
		return badQuery("the filter for a %s is empty", a.filter)
	}
	return badQuery("the field at character %d is empty; write a word directly after the colon", a.at)
}

// content reads what follows the name of a field.
func (l *lexer) content(a *atom) error {
	if first, width := utf8.DecodeRuneInString(l.rest); strings.ContainsRune(quotes, first) {
		at := l.at()
		l.rest = l.rest[width:]
		end := strings.IndexAny(l.rest, quotes)
		if end < 0 {
			return badQuery("the quote at character %d is not closed", at)
		}
		a.before += width
		a.text, a.phrase = l.rest[:end], true
		_, width = utf8.DecodeRuneInString(l.rest[end:])
		l.rest = l.rest[end+width:]
		return nil
	}
	end := strings.IndexAny(l.rest, " "+quotes)
	if end < 0 {
		end = len(l.rest)
	}
	a.text, l.rest = l.rest[:end], l.rest[end:]
	if a.or = a.text == "OR" && !a.not && a.fields == allFields && a.filter == ""; a.or {
		return nil
	}
	if stem := strings.TrimRight(a.text, "*"); stem != a.text && a.filter == "" {
		a.text, a.prefix = stem, stem != ""
	}
	return nil
}

// build makes clauses of atoms.
func (q *Query) build(atoms []atom, langs []string) error {
	word, joined := false, false // the last atom was a word; the next atom is an alternative to it
	for i, a := range atoms {
		switch {
		case a.or && i > 0 && i+1 < len(atoms) && !word:
			return badQuery("OR stands between two words")
		case a.or:
			joined = word && i+1 < len(atoms)
			continue
		case joined && (a.not || a.filter != ""):
			return badQuery("OR stands between two words")
		case a.filter != "":
			word = false
			if err := q.filter(a); err != nil {
				return err
			}
			continue
		}
		leaves, err := q.leavesOf(a, langs, joined || i+1 < len(atoms) && atoms[i+1].or)
		if err != nil {
			return err
		}
		if len(leaves) == 0 && a.fields != allFields {
			return a.empty()
		}
		if len(leaves) == 0 {
			continue
		}
		switch {
		case a.not:
			q.not = append(q.not, leaves...)
		case joined:
			last := &q.clauses[len(q.clauses)-1]
			*last = append(*last, leaves...)
		default:
			for _, l := range leaves {
				q.clauses = append(q.clauses, clause{l})
			}
		}
		word, joined = !a.not, false
	}
	if terms, prefixes := q.count(); terms > maxTerms || prefixes > maxPrefixes {
		return badQuery("it has %d terms and %d prefixes; the limits are %d and %d", terms, prefixes, maxTerms, maxPrefixes)
	}
	if q.listing() && len(q.sites) == 0 && len(q.langs) == 0 {
		if len(q.not)+len(q.notSites)+len(q.notLangs) > 0 {
			return badQuery("it only excludes; add a word to search for")
		}
		return badQuery("it has no word to search for")
	}
	return nil
}

// leavesOf makes the leaves of an atom. Adjoining words, as in tcp/ip, must all match, unless they have to be one
// leaf: as an alternative, or to be excluded. Then they must stand in a row.
func (q *Query) leavesOf(a atom, langs []string, one bool) ([]leaf, error) {
	if a.prefix {
		return q.prefixLeaves(a, langs, one)
	}
	words := token.Query(a.text, langs)
	if q.words += len(words); q.words > maxWords {
		return nil, badQuery("it has more than %d words", maxWords)
	}
	if len(words) == 0 {
		return nil, nil
	}
	if a.phrase || one || a.not {
		return []leaf{{text: a.text, fields: a.fields, words: words}}, nil
	}
	var out []leaf
	for i, first := 0, 0; i < len(words); i++ {
		w := words[i]
		out = append(out, leaf{text: w.Text, fields: a.fields, words: []token.Word{w}})
		if i > 0 && w.Start != words[i-1].End {
			first = i
		}
		if last := i+1 == len(words) || words[i+1].Start != w.End; last && i > first {
			q.rows = append(q.rows, leaf{text: a.text[words[first].Start:w.End], fields: a.fields, words: words[first : i+1]})
		}
	}
	return out, nil
}

// prefixLeaves makes the leaves of a prefix. Of several words in one, as in tcp_rm*, the last is the prefix, and the
// words before it must match.
func (q *Query) prefixLeaves(a atom, langs []string, one bool) ([]leaf, error) {
	list := token.Append(nil, a.text, "")
	if len(list) == 0 {
		return nil, nil
	}
	last := list[len(list)-1]
	before := atom{text: a.text[:last.Start], fields: a.fields}
	leaves, err := q.leavesOf(before, langs, false)
	switch {
	case err != nil:
		return nil, err
	case len(leaves) > 0 && (one || a.not):
		return nil, badQuery("%.80s* is more than one word, and cannot be one of several or be left out", a.text)
	}
	if q.words++; q.words > maxWords {
		return nil, badQuery("it has more than %d words", maxWords)
	}
	return append(leaves, leaf{text: a.text[last.Start:] + "*", fields: a.fields, prefix: last.Term}), nil
}

// filter adds a site or a language.
func (q *Query) filter(a atom) error {
	if strings.TrimSpace(a.text) == "" {
		return a.empty()
	}
	text := strings.ToLower(a.text)
	if i := strings.IndexAny(text, "-_"); i > 0 && a.filter == "lang" { // regions make no difference
		text = text[:i]
	}
	to := map[string]*[]string{"site": &q.sites, "lang": &q.langs}[a.filter]
	if a.not {
		to = map[string]*[]string{"site": &q.notSites, "lang": &q.notLangs}[a.filter]
	}
	if a.filter == "site" {
		var err error
		if text, err = siteOf(a.text); err != nil {
			return badQuery("%.80q is no site: %v", a.text, err)
		}
	}
	if len(*to) == maxWords {
		return badQuery("it has more than %d times %s:", maxWords, a.filter)
	}
	if !slices.Contains(*to, text) {
		*to = append(*to, text)
	}
	return nil
}

// siteOf parses a site, which is a host or a URL.
func siteOf(text string) (string, error) {
	if _, rest, found := strings.Cut(text, "://"); found {
		text = rest
	}
	text, _, _ = strings.Cut(text, "/")
	h, err := weburl.ParseHost(strings.TrimSuffix(text, "."))
	return string(h), err
}

// leaves returns all leaves: those of the clauses, then the rows, then the excluding ones.
func (q *Query) leaves() (out []*leaf) {
	for i := range q.clauses {
		for j := range q.clauses[i] {
			out = append(out, &q.clauses[i][j])
		}
	}
	for i := range q.rows {
		out = append(out, &q.rows[i])
	}
	for i := range q.not {
		out = append(out, &q.not[i])
	}
	return out
}

// count returns the numbers of terms and of prefixes.
func (q *Query) count() (terms, prefixes int) {
	seen := map[string]bool{}
	for _, l := range q.leaves() {
		if l.prefix != "" {
			prefixes++
		}
		for _, t := range l.terms {
			seen[t] = true
		}
	}
	return len(seen), prefixes
}

// terms yields all index terms of a leaf's words, each with its alternative.
func (l *leaf) terms(yield func(*token.Alternative, string) bool) {
	for _, w := range l.words {
		for i := range w.Alternatives {
			for _, t := range w.Alternatives[i].Terms {
				for _, term := range t.Any {
					if !yield(&w.Alternatives[i], term) {
						return
					}
				}
			}
		}
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
)

// Shares of titles that must succeed. docs/experiments/docsite.md explains the misses.
const (
	minFirst = 0.95 // pages found first by their titles
	minTen   = 0.98 // pages among the first ten
	drawn    = 100  // titles, and terms

	minTermFirst = 0.8 // terms of the index whose page is found first
	minTermTen   = 0.95
	minShared    = 0.9 // pages found among the first ten by a title that up to ten pages have
)

// titleOf returns the title of a document.
func titleOf(doc *html.Node) string {
	for n := range doc.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data == "title" {
			return strings.Join(strings.Fields(n.Data), " ")
		}
	}
	return ""
}

// titles returns the keys of pages by title, as a query. The end that all titles share, the site's name, does not count.
func (s *site) titles() map[string][]string {
	_, suffix, _ := strings.Cut(s.pages[key(s.home)].title, " — ")
	keys := map[string][]string{}
	for k, p := range s.pages {
		if title := plain(strings.TrimSuffix(p.title, " — "+suffix)); title != "" {
			keys[title] = append(keys[title], k)
		}
	}
	return keys
}

// terms returns the terms of the site's alphabetical index that lead to one page, with its key, as Sphinx writes them: a
// link per page, with the term and its kind, as in "kfree (C function)", or with a number if the term has several. It returns
// nil if there is no index. self is the key of the index.
func (s *site) terms() (terms map[string]string, self string, err error) {
	at, _ := s.home.Parse("genindex.html") // a constant: it cannot fail
	self = key(at)
	p := s.pages[self]
	if p == nil || !p.html {
		return nil, self, nil
	}
	data, err := os.ReadFile(p.file)
	if err != nil {
		return nil, self, err
	}
	doc, err := html.Parse(bytes.NewReader(data))
	if err != nil {
		return nil, self, err
	}
	pages, term := map[string][]string{}, ""
	for n := range doc.Descendants() {
		if n.Data != "a" || n.FirstChild == nil || n.Parent.Data != "li" && n.Parent.Data != "dt" {
			continue
		}
		ref, _ := attribute(n, "href")
		if name, kind, ok := strings.Cut(n.FirstChild.Data, " ("); ok {
			if term = name; !strings.HasPrefix(kind, "C ") { // others are few, and of many kinds
				term = ""
			}
		} else if !strings.HasPrefix(n.FirstChild.Data, "[") {
			term = ""
		}
		if to, err := at.Parse(ref); err == nil && term != "" {
			pages[term] = append(pages[term], key(to))
		}
	}
	terms = map[string]string{}
	for term, keys := range pages {
		slices.Sort(keys)
		if keys = slices.Compact(keys); len(keys) == 1 {
			terms[term] = keys[0]
		}
	}
	return terms, self, nil
}

// search returns the keys of the first ten documents that have all words, near-duplicates
// included.
func (t *trial) search(ctx context.Context, query string) (keys []string, err error) {
	out, err := t.orbweaver(ctx, "", "search", "--json", "--all", query)
	var found struct {
		Results []struct {
			URL string `json:"url"`
		} `json:"results"`
	}
	if err == nil {
		err = json.Unmarshal(out, &found)
	}
	for _, r := range found.Results {
		keys = append(keys, keyOf(r.URL))
	}
	return keys, err
}

// known searches for pages by their titles, and by the terms that the site's own index has for them.
func (t *trial) known(ctx context.Context) error {
	unique, shared := map[string]string{}, map[string][]string{}
	for title, keys := range t.site.titles() {
		if len(keys) == 1 {
			unique[title] = keys[0]
		} else if len(keys) <= 10 {
			shared[title] = keys
		}
	}
	if err := t.find(ctx, "titles", unique, "", minFirst, minTen); err != nil {
		return err
	}
	pages, ten := 0, 0
	for _, title := range slices.Sorted(maps.Keys(shared)) {
		found, err := t.search(ctx, title)
		if err != nil {
			return err
		}
		for _, k := range shared[title] {
			if pages++; slices.Contains(found, k) {
				ten++
			} else {
				fmt.Fprintf(t.out, "  not in ten for its title: %s\n", k)
			}
		}
	}
	fmt.Fprintf(t.out, "  %d titles of %d pages: %d in ten\n", len(shared), pages, ten)
	t.compare("shared", table{"ten": enough(ten, pages, minShared)}, table{"ten": "true"})
	terms, index, err := t.site.terms()
	if err != nil || len(terms) == 0 {
		return err
	}
	return t.find(ctx, "terms", terms, index, minTermFirst, minTermTen)
}

// find searches for some pages, each by a query of its own, and compares the shares found first and in ten with what is wanted. A
// page does not count among the results.
func (t *trial) find(ctx context.Context, what string, pages map[string]string, without string, first, ten float64) error {
	all := slices.Sorted(maps.Keys(pages))
	rand.New(rand.NewPCG(1, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:min(drawn, len(all))]
	places := make([]int, 11) // pages by their place among the results; 0 for none
	for _, query := range all {
		keys, err := t.search(ctx, query)
		if err != nil {
			return err
		}
		keys = slices.DeleteFunc(keys, func(k string) bool { return k == without })
		place := 1 + slices.Index(keys, pages[query])
		if places[place]++; place != 1 {
			fmt.Fprintf(t.out, "  number %d for %s: %s\n", place, query, pages[query])
		}
	}
	fmt.Fprintf(t.out, "  %d %s: %d first, %d in ten\n", len(all), what, places[1], len(all)-places[0])
	t.compare(what, table{"first": enough(places[1], len(all), first), "ten": enough(len(all)-places[0], len(all), ten)}, table{"first": "true", "ten": "true"})
	return nil
}

// enough reports whether some are a share of all.
func enough(some, all int, share float64) string {
	return fmt.Sprint(float64(some) >= share*float64(all))
}

// plain returns a text as a query without operators.
func plain(text string) string {
	fields := strings.Fields(strings.ReplaceAll(strings.ToLower(text), `"`, ""))
	for i, w := range fields {
		fields[i] = strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	}
	return strings.Join(fields, " ")
}

// findWords compares the results of words with the keys of pages; "" means no page.
func (t *trial) findWords(ctx context.Context, want table) error {
	got := table{}
	for word := range want {
		keys, err := t.search(ctx, word)
		if err != nil {
			return err
		}
		got[word] = strings.Join(keys, " ")
	}
	t.compare("words", got, want)
	return nil
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
)

// Shares of titles that must succeed. docs/experiments/docsite.md explains the misses.
const (
	minFirst = 0.95 // pages found first by their titles
	minTen   = 0.98 // pages among the first ten
	drawn    = 100  // titles
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

// titles returns the keys of pages by title, for titles that only one page has. The end that all titles
// share, the site's name, does not count.
func (s *site) titles() map[string]string {
	_, suffix, _ := strings.Cut(s.pages[key(s.home)].title, " — ")
	keys := map[string][]string{}
	for k, p := range s.pages {
		title := strings.TrimSuffix(p.title, " — "+suffix)
		keys[title] = append(keys[title], k)
	}
	titles := map[string]string{}
	for title, k := range keys {
		if title != "" && len(k) == 1 {
			titles[title] = k[0]
		}
	}
	return titles
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

// titled searches for pages by their titles.
func (t *trial) titled(ctx context.Context) error {
	titles := t.site.titles()
	all := slices.Sorted(maps.Keys(titles))
	rand.New(rand.NewPCG(1, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:min(drawn, len(all))]
	places := make([]int, 11) // pages by their place among the results; 0 for none
	for _, title := range all {
		keys, err := t.search(ctx, plain(title))
		if err != nil {
			return err
		}
		place := 1 + slices.Index(keys, titles[title])
		if places[place]++; place != 1 {
			fmt.Fprintf(t.out, "  number %d for its title: %s\n", place, titles[title])
		}
	}
	first, ten := places[1], len(all)-places[0]
	fmt.Fprintf(t.out, "  %d titles: %d first, %d in ten\n", len(all), first, ten)
	enough := func(some int, share float64) string { return fmt.Sprint(float64(some) >= share*float64(len(all))) }
	t.compare("titles", table{"first": enough(first, minFirst), "ten": enough(ten, minTen)}, table{"first": "true", "ten": "true"})
	return nil
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

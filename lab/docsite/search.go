package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Shares of searches that must succeed. docs/experiments/docsite.md explains the misses.
const (
	minFirst = 0.95 // pages found first by their titles
	minTen   = 0.98 // pages among the first ten
	minWords = 0.93 // own words that find their page and no other
)

const (
	drawn      = 200  // pages that are searched for
	maxResults = 1000 // results that a search shows
	// Ranks are printed with six digits, and exact to the tolerance of the computation.
	rankDigits = 2e-5
)

// index makes the crawl searchable.
func (t *trial) index(ctx context.Context) error {
	out, err := t.crawler.run(ctx, "", "index", "--json", "--quiet")
	if err != nil {
		return err
	}
	var x struct {
		Done  bool `json:"done"`
		Index struct {
			Documents int64 `json:"documents"`
			Behind    int64 `json:"behind"`
		} `json:"index"`
	}
	if err := json.Unmarshal(out, &x); err != nil {
		return err
	}
	fmt.Fprintf(t.out, "search: %d documents\n", x.Index.Documents)
	t.compare("index", table{"done": fmt.Sprint(x.Done, x.Index.Behind, x.Index.Documents > 0)}, table{"done": fmt.Sprint(true, 0, true)})
	return nil
}

// ranks compares the best pages, and the numbers of pages and links, with those of the files.
func (t *trial) ranks(ctx context.Context) error {
	show := []string{"rank", "--show", "--level", "pages"}
	out, err := t.crawler.run(ctx, "", append(show, "--json")...)
	if err != nil {
		return err
	}
	var shown struct {
		Params struct {
			Damping float64 `json:"damping"`
		} `json:"params"`
		Totals struct {
			Pages int `json:"pages"`
			Links int `json:"links"`
		} `json:"totals"`
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		return err
	}
	if out, err = t.crawler.run(ctx, "", append(show, "--out", "-")...); err != nil {
		return err
	}
	g, edges := t.site.graph()
	truth := g.ranks(shown.Params.Damping)
	got := table{"pages": strconv.Itoa(shown.Totals.Pages), "links": strconv.Itoa(shown.Totals.Links)}
	expected := table{"pages": strconv.Itoa(len(g)), "links": strconv.Itoa(edges)}
	best := slices.SortedFunc(maps.Keys(truth), func(a, b string) int { return cmp.Or(cmp.Compare(truth[b], truth[a]), cmp.Compare(a, b)) })
	best = slices.DeleteFunc(best, func(k string) bool { return t.site.pages[k].status >= 400 })
	lines := bufio.NewScanner(bytes.NewReader(out))
	for i := 0; lines.Scan() && i < len(best); i++ {
		name, number, _ := strings.Cut(lines.Text(), "\t")
		x, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return err
		}
		k := keyOf(name)
		got[k], expected[k] = near(x, truth[k], rankDigits), fmt.Sprint(truth[k])
		place := fmt.Sprintf("number %d", i+1) // pages of one rank are in any order
		got[place], expected[place] = near(truth[k], truth[best[i]], rankDigits), fmt.Sprint(truth[best[i]])
	}
	t.compare("ranks", got, expected)
	return lines.Err()
}

// searches looks for pages by their titles and own words, and compares answers of one
// query with each other.
func (t *trial) searches(ctx context.Context, s searcher) error {
	r := rand.New(rand.NewPCG(1, 0))
	draw := func(all []string) []string {
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[:min(drawn, len(all))]
	}
	const shared = "?"
	titles := slices.DeleteFunc(slices.Sorted(maps.Keys(t.words.titled)), func(title string) bool { return t.words.titled[title] == shared })
	var first, ten, alone share
	for _, title := range draw(titles) {
		f, err := s.ask(ctx, words(title), 0, 10)
		if err != nil {
			return err
		}
		place := f.place(t.spelled[t.words.titled[title]])
		if place != 1 {
			fmt.Fprintf(t.out, "  number %d for its title: %s\n", place, t.words.titled[title])
		}
		first.add(place == 1)
		ten.add(place > 0)
	}
	for _, k := range draw(slices.Sorted(maps.Keys(t.words.own))) {
		f, err := s.ask(ctx, t.words.own[k][0], 0, 10)
		if err != nil {
			return err
		}
		alone.add(f.Total == 1 && f.place(t.spelled[k]) == 1)
	}
	fmt.Fprintf(t.out, "  titles: %v first, %v in ten; own words: %v\n", first, ten, alone)
	t.compare("shares", table{"first": first.least(minFirst), "ten": ten.least(minTen), "words": alone.least(minWords)},
		table{"first": "enough", "ten": "enough", "words": "enough"})
	return t.compareAnswers(ctx, s)
}

// words is a text as a query without operators.
func words(text string) string {
	fields := strings.Fields(strings.ToLower(strings.ReplaceAll(text, `"`, "")))
	for i, w := range fields {
		fields[i] = strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	}
	return strings.Join(fields, " ")
}

// A share counts successes.
type share struct{ some, of int }

func (s *share) add(success bool) {
	s.of++
	if success {
		s.some++
	}
}

func (s share) String() string { return fmt.Sprintf("%d of %d", s.some, s.of) }

// least is "enough" if the share is at least min. Of a few, one may fail.
func (s share) least(minimum float64) string {
	if float64(s.some) >= min(minimum*float64(s.of), float64(s.of-1)) {
		return "enough"
	}
	return s.String()
}

// compareAnswers compares the pages of an answer with the whole answer, HTML with JSON, and
// scores with their parts.
func (t *trial) compareAnswers(ctx context.Context, s searcher) error {
	pages, wholes, scores, sums := table{}, table{}, table{}, table{}
	const limit = 10
	for _, text := range []string{t.words.common, "title:" + t.words.common, t.words.common[:4] + "*", "-the " + t.words.common, "qzxwvkjq"} {
		whole, err := s.ask(ctx, text, 0, maxResults)
		if err != nil {
			return err
		}
		paged, shown := "", ""
		for offset, more := 0, true; more; offset += limit {
			f, err := s.ask(ctx, text, offset, limit)
			if err != nil {
				return err
			}
			page, err := s.shown(ctx, text, offset, limit)
			if err != nil {
				return err
			}
			paged, shown, more = paged+f.urls(), shown+page, f.More
		}
		pages[text], wholes[text] = paged, whole.urls()
		pages[text+" as HTML"], wholes[text+" as HTML"] = shown, whole.urls()
		for _, h := range whole.Results {
			x := h.Explain
			sum := x.Exact + x.Titled + x.Rank.Score
			for _, w := range x.Words {
				sum += w.Score
			}
			name := text + ": " + h.URL
			scores[name], sums[name] = near(sum, h.Score, 1e-6), fmt.Sprint(h.Score)
		}
	}
	t.compare("pages of answers", pages, wholes)
	t.compare("explanations", scores, sums)
	return nil
}

// lookUp compares what words find with the keys of pages, "" for none; and counts documents.
func (t *trial) lookUp(ctx context.Context, s searcher, want table) error {
	got := table{}
	for word := range want {
		f, err := s.ask(ctx, word, 0, 10)
		if err != nil {
			return err
		}
		if got[word] = keyOf(strings.TrimSpace(f.urls())); f.Total == 0 {
			got[word] = ""
		}
	}
	f, err := s.ask(ctx, "site:"+t.site.home.Host, 0, 1)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.out, "  %d documents\n", f.Total)
	t.compare("words", got, want)
	return nil
}

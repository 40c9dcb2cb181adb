package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// What a search must come up to, as shares of what is asked. What is missed was looked at, and
// is explained in docs/experiments/docsite.md.
const (
	minFirst   = 0.95 // pages found first by their titles as words
	minTen     = 0.98 // among the first ten
	minQuoted  = 0.97 // found first by their titles as phrases
	minWords   = 0.93 // own words that find their page and no other
	minPhrases = 0.95 // phrases that find their page
)

// sought is how pages of a language were found.
type sought struct {
	Group   string `json:"group"`
	Pages   int    `json:"pages"`
	Alone   int    `json:"own_titles"` // pages with a title that is theirs alone
	Titles  tally  `json:"titles"`     // looked for as words
	Quoted  tally  `json:"title_phrases"`
	Words   tally  `json:"own_words"` // first: that page and no other
	Phrases tally  `json:"phrases"`
}

// A tally counts where what was looked for was found.
type tally struct {
	Asked      int     `json:"asked"`
	First      int     `json:"first"`
	Ten        int     `json:"ten"`        // among the first ten
	Found      int     `json:"found"`      // at all
	Reciprocal float64 `json:"reciprocal"` // of the places, in all
	missed     []string
}

func (t *tally) add(place int) {
	t.Asked++
	if place == 1 {
		t.First++
	}
	if place > 0 && place <= 10 {
		t.Ten++
	}
	if place > 0 {
		t.Found++
		t.Reciprocal += 1 / float64(place)
	}
}

// missf says of what was added last that it was not where it should be.
func (t *tally) missf(format string, args ...any) {
	t.missed = append(t.missed, fmt.Sprintf(format, args...))
}

func (t *tally) mrr() float64 { return t.Reciprocal / max(1, float64(t.Asked)) }

// followed looks up what a phase has changed, and whether the ranks are those of what is there now.
func (t *trial) followed(ctx context.Context, lookups []lookup) ([]check, error) {
	ranks, _, err := t.checkRanks(ctx)
	if err != nil {
		return nil, err
	}
	s, err := t.crawler.serve(ctx)
	if err != nil {
		return nil, err
	}
	c := check{Name: "followed"}
	err = errors.Join(t.lookUp(ctx, s, lookups, &c), s.stop())
	return []check{ranks, c}, err
}

func (t *trial) lookUp(ctx context.Context, s *searcher, lookups []lookup, c *check) error {
	anew, gone := 0, 0
	for _, l := range lookups {
		for _, w := range []string{l.word, l.was} {
			if w == "" {
				continue
			}
			f, err := s.ask(ctx, question{query: w, all: true})
			if err != nil {
				return err
			}
			switch {
			case w == l.was && f.Total > 0:
				c.wrongf("%s finds %v, though it is gone from %s", w, f.urls(), l.page.key)
			case w == l.word && (f.Total != 1 || f.place(l.page.url) != 1):
				c.wrongf("%s finds %d, %v, not only %s", w, f.Total, f.urls(), l.page.key)
			case w == l.word && l.was != "" && !strings.Contains(strings.ToLower(f.Results[0].Snippet.Text+f.Results[0].Title.Text), w):
				c.wrongf("%s finds %s, but the text shown is %q", w, l.page.key, f.Results[0].Snippet.Text)
			}
		}
		f, err := s.ask(ctx, question{query: `title:"` + quoted(l.page.title) + `"`, all: true, limit: maxResults})
		if err != nil {
			return err
		}
		if l.page.title != "" && f.Error == "" && f.Total <= maxResults && (f.place(l.page.url) > 0) != (l.word != "") {
			c.wrongf("%s is number %d by its title", l.page.key, f.place(l.page.url))
		}
		if l.word == "" {
			gone++
		} else if l.was != "" {
			anew++
		}
	}
	all, err := s.ask(ctx, question{query: "site:" + t.site.home.Host, all: true})
	if err != nil {
		return err
	}
	if want := t.documents - int64(gone); all.Total != want {
		c.wrongf("there are %d documents, not %d", all.Total, want)
	}
	c.Fact = fmt.Sprintf("%d documents; %d pages found by their new words and not by the old ones, %d not found any more", all.Total, anew, gone)
	return nil
}

// quoted is a title for a phrase.
func quoted(title string) string { return strings.ReplaceAll(title, `"`, " ") }

// draw chooses some of n at random, all if the sample is 0 or larger.
func (t *trial) draw(r *rand.Rand, n int) []int {
	all := r.Perm(n)
	if s := t.settings.sample; s > 0 {
		all = all[:min(s, n)]
	}
	return all
}

// A searching is what came of the index, and of asking it.
type searching struct {
	Documents int64     `json:"documents"`
	Bytes     int64     `json:"index_bytes"`
	Indexing  float64   `json:"index_seconds"` // with the ranks
	Seconds   float64   `json:"seconds"`       // of asking
	Sought    []*sought `json:"sought"`
	Checks    []check   `json:"checks"`
}

// search makes the crawl searchable, and asks.
func (t *trial) search(ctx context.Context) (*searching, error) {
	fmt.Fprintln(t.stderr, "search:")
	x, err := t.crawler.index(ctx)
	if err != nil {
		return nil, err
	}
	t.documents = x.Index.Documents
	out := &searching{Documents: t.documents, Bytes: x.Index.Bytes, Indexing: x.Seconds}
	indexed := check{Name: "index", Fact: fmt.Sprintf("%d documents in %s", t.documents, size(out.Bytes))}
	if !x.Done || x.Index.Behind > 0 || x.Index.Documents == 0 {
		indexed.wrongf("%+v", *x)
	}
	if t.corpus, err = readCorpus(t.truth, t.urls); err != nil {
		return nil, err
	}
	ranks, byKey, err := t.checkRanks(ctx)
	if err != nil {
		return nil, err
	}
	s, err := t.crawler.serve(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	out.Checks = []check{indexed, ranks}
	err = t.ask(ctx, s, byKey, out)
	out.Seconds = time.Since(began).Seconds()
	if err = errors.Join(err, s.stop()); err != nil {
		return nil, err
	}
	fsck, err := checkFsck(ctx, &t.crawler)
	out.Checks = append(out.Checks, fsck)
	writeChecks(t.stderr, out.Checks, t.settings.verbose)
	return out, err
}

// ask makes all the checks that ask the page.
func (t *trial) ask(ctx context.Context, s *searcher, ranks map[string]float64, out *searching) error {
	for _, group := range t.corpus.groups() {
		f, err := t.seek(ctx, s, group)
		if err != nil {
			return err
		}
		out.Sought = append(out.Sought, f)
		out.Checks = append(out.Checks, f.check())
	}
	explain := func(ctx context.Context, s *searcher) (check, error) { return t.checkExplain(ctx, s, ranks) }
	for _, look := range []func(context.Context, *searcher) (check, error){t.checkSites, t.checkLanguages, t.checkPaging, explain, t.checkShown, t.checkRefused} {
		c, err := look(ctx, s)
		if err != nil {
			return err
		}
		out.Checks = append(out.Checks, c)
	}
	return nil
}

// check says what is too little.
func (f *sought) check() check {
	c := check{Name: f.Group}
	for _, x := range []struct {
		what  string
		tally *tally
		found int
		least float64
	}{
		{"titles", &f.Titles, f.Titles.First, minFirst},
		{"titles, in the first ten", &f.Titles, f.Titles.Ten, minTen},
		{"titles as phrases", &f.Quoted, f.Quoted.First, minQuoted},
		{"own words", &f.Words, f.Words.First, minWords},
		{"phrases", &f.Phrases, f.Phrases.Found, minPhrases},
	} {
		c.Fact += fmt.Sprintf("%s: %d of %d; ", x.what, x.found, x.tally.Asked)
		if !enough(x.found, x.tally.Asked, x.least) {
			c.wrongf("%s: %d of %d are too few, they should be %.0f %%", x.what, x.found, x.tally.Asked, 100*x.least)
		}
	}
	c.Fact = strings.TrimSuffix(c.Fact, "; ")
	for _, t := range []*tally{&f.Titles, &f.Quoted, &f.Words, &f.Phrases} {
		c.missed = append(c.missed, t.missed...)
	}
	return c
}

// enough reports whether some of n are at least a share of them. Of a few, one may be missed.
func enough(some, n int, least float64) bool {
	return float64(some) >= min(least*float64(n), float64(n-1))
}

// seek looks for the pages of a language.
func (t *trial) seek(ctx context.Context, s *searcher, group string) (*sought, error) {
	r := rand.New(rand.NewPCG(t.settings.seed, uint64(len(group))))
	var pages, alone []int // of the corpus
	for i, d := range t.corpus.pages {
		if d.group == group {
			pages = append(pages, i)
			if d.alone {
				alone = append(alone, i)
			}
		}
	}
	out := &sought{Group: group, Pages: len(pages), Alone: len(alone)}
	for _, i := range t.draw(r, len(alone)) {
		d := t.corpus.pages[alone[i]]
		for tally, query := range map[*tally]string{&out.Titles: asked(d.title), &out.Quoted: `title:"` + quoted(d.title) + `"`} {
			f, err := s.ask(ctx, question{query: query})
			if err != nil {
				return nil, err
			}
			tally.add(f.place(d.url))
			if p := f.place(d.url); p != 1 {
				tally.missf("%s is number %d of %d for %s, first is %v", d.url, p, f.Total, query, f.urls()[:min(1, len(f.Results))])
			}
		}
	}
	for _, i := range t.draw(r, len(pages)) {
		if err := t.seekOwn(ctx, s, r, pages[i], out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// seekOwn looks for a page by a word that is its own, and by a phrase of its text.
func (t *trial) seekOwn(ctx context.Context, s *searcher, r *rand.Rand, i int, out *sought) error {
	d := t.corpus.pages[i]
	if own := t.corpus.ownWords(i); len(own) > 0 {
		w := own[r.IntN(len(own))]
		f, err := s.ask(ctx, question{query: w, all: true})
		if err != nil {
			return err
		}
		place := f.place(d.url)
		if f.Total != 1 {
			place = 0
		}
		if out.Words.add(place); place != 1 {
			out.Words.missf("%s finds %d, %v, not only %s", w, f.Total, f.urls()[:min(3, len(f.Results))], d.url)
		}
	}
	if phrases := d.phrases(); len(phrases) > 0 {
		p := phrases[r.IntN(len(phrases))]
		f, err := s.ask(ctx, question{query: `"` + p + `"`, all: true, limit: maxResults})
		if err != nil {
			return err
		}
		place := f.place(d.url)
		if place == 0 && f.Total > maxResults {
			return nil // it may be among those that are not shown
		}
		if out.Phrases.add(place); place == 0 {
			out.Phrases.missf("%q of %s finds %d others", p, d.url, f.Total)
		}
	}
	return nil
}

// maxResults is how many results there are at most.
const maxResults = 1000

// groups are the languages of the corpus.
func (c *corpus) groups() (out []string) {
	for _, d := range c.pages {
		if !slices.Contains(out, d.group) {
			out = append(out, d.group)
		}
	}
	slices.Sort(out)
	return out
}

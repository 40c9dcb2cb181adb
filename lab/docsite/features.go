package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// common is a word that many pages have, but not more than are shown: as near to 300 as there is.
func (c *corpus) common() string {
	pages := map[string]int{}
	for _, d := range c.pages {
		seen := map[string]bool{}
		for _, text := range d.body {
			for _, w := range split(text) {
				if len(w) >= 5 && !strings.ContainsFunc(w, func(r rune) bool { return r < 'a' || r > 'z' }) && !seen[w] {
					seen[w] = true
					pages[w]++
				}
			}
		}
	}
	best := ""
	distance := func(w string) int { return max(pages[w]-300, 300-pages[w]) }
	for _, w := range slices.Sorted(maps.Keys(pages)) {
		if best == "" || distance(w) < distance(best) {
			best = w
		}
	}
	return best
}

// walk asks for all pages of results.
func (s *searcher) walk(ctx context.Context, q question) (all []hit, last *found, err error) {
	for {
		q.offset = len(all)
		f, err := s.ask(ctx, q)
		if err != nil {
			return nil, nil, err
		}
		if f.Error != "" {
			return nil, nil, fmt.Errorf("%q is refused: %s", q.query, f.Error)
		}
		all = append(all, f.Results...)
		if !f.More || len(f.Results) == 0 {
			return all, f, nil
		}
	}
}

// checkPaging walks through all results of a query, page by page and at once.
func (t *trial) checkPaging(ctx context.Context, s *searcher) (check, error) {
	c := check{Name: "paging"}
	q := question{query: t.corpus.common(), limit: 10}
	for _, q.all = range []bool{true, false} {
		paged, last, err := s.walk(ctx, q)
		if err != nil {
			return c, err
		}
		whole, err := s.ask(ctx, question{query: q.query, all: q.all, limit: maxResults})
		if err != nil {
			return c, err
		}
		have, similar := map[string]int{}, int64(0)
		for i := range paged {
			have[paged[i].URL]++
			if paged[i].Place != i+1 {
				c.wrongf("number %d is called %d", i+1, paged[i].Place)
			}
			if i > 0 && paged[i].Score > paged[i-1].Score {
				c.wrongf("number %d is better than the one before", i+1)
			}
		}
		for i := range whole.Results {
			similar += int64(whole.Results[i].Similar)
		}
		switch n := int64(len(have)); {
		case len(have) != len(paged):
			c.wrongf("of %d results %d are different", len(paged), len(have))
		case !slices.Equal((&found{Results: paged}).urls(), whole.urls()):
			c.wrongf("ten by ten there are other results than at once, %d and %d", len(paged), len(whole.Results))
		case n+similar != last.Total || q.all && similar > 0:
			c.wrongf("%d results and %d similar ones are not %d", n, similar, last.Total)
		}
		c.Fact += fmt.Sprintf("%s: %d results on %d pages, %d more like them; ", q.query, len(paged), (len(paged)+q.limit-1)/q.limit, similar)
	}
	c.Fact = strings.TrimSuffix(c.Fact, "; ")
	return c, nil
}

// explainDigits is how exact the parts of a score are, and the rank in it, which was stored.
const explainDigits = 1e-6

// checkExplain adds up explanations of some queries. ranks are those of the pages.
func (t *trial) checkExplain(ctx context.Context, s *searcher, ranks map[string]float64) (check, error) {
	c := check{Name: "explain"}
	results := 0
	common := t.corpus.common()
	for _, query := range []string{common, common + " -the", "title:" + common, common[:4] + "*", common + " OR kernel", "site:" + t.site.home.Host} {
		f, err := s.ask(ctx, question{query: query, explain: true, limit: 50, all: true})
		if err != nil {
			return c, err
		}
		for _, r := range f.Results {
			x := r.Explain
			if x == nil {
				c.wrongf("%s: %s is not explained", query, r.URL)
				continue
			}
			results++
			sum := x.Rank.Score + x.Titled
			for _, w := range x.Words {
				sum += w.Score
				parts := 0.0
				for _, f := range w.Fields {
					parts += f.Part
				}
				if math.Abs(parts-w.Sum) > explainDigits*parts {
					c.wrongf("%s: the fields of %s add up to %g, not %g", query, r.URL, parts, w.Sum)
				}
			}
			u, err := url.Parse(r.URL)
			if err != nil {
				return c, err
			}
			if math.Abs(sum-x.Score) > explainDigits*sum || math.Abs(sum-r.Score) > explainDigits*sum {
				c.wrongf("%s: the parts of %s add up to %g, the score is %g and %g", query, r.URL, sum, r.Score, x.Score)
			}
			if want := ranks[key(u)]; math.Abs(x.Rank.Rank-want) > rankDigits*want {
				c.wrongf("%s: the rank of %s is %g, by the files %g", query, r.URL, x.Rank.Rank, want)
			}
		}
	}
	if results == 0 {
		c.wrongf("there was nothing to explain")
	}
	c.Fact = fmt.Sprintf("the parts of %d scores add up, and their ranks are those of the files", results)
	return c, nil
}

// checkSites looks for all that is there, and for what is not.
func (t *trial) checkSites(ctx context.Context, s *searcher) (check, error) {
	c := check{Name: "sites"}
	total := func(query string) (int64, error) {
		f, err := s.ask(ctx, question{query: query, all: true})
		if err == nil && f.Error != "" {
			err = fmt.Errorf("%q is refused: %s", query, f.Error)
		}
		if err != nil {
			return 0, err
		}
		return f.Total, nil
	}
	served := 0
	for _, a := range t.truth {
		if a.status == http.StatusOK {
			served++
		}
	}
	withText := 0
	for _, d := range t.corpus.pages {
		if len(d.body) > 0 {
			withText++
		}
	}
	all, err := total("site:" + t.site.home.Host)
	if err != nil {
		return c, err
	}
	if all < int64(withText) || all > int64(served) || all != t.documents {
		c.wrongf("site:%s has %d documents; %d are indexed, %d HTML pages with text and %d files were served", t.site.home.Host, all, t.documents, withText, served)
	}
	nonsense := []string{"site:elsewhere.example", "-site:" + t.site.home.Host + " " + t.corpus.common(), "qzxwvkjq", "qzxwvkjq OR vvkqxzw", `"` + t.corpus.common() + ` qzxwvkjq"`, "lang:tlh", "蘋鑿齉"}
	for _, query := range nonsense {
		if n, err := total(query); err != nil || n != 0 {
			c.wrongf("%s finds %d (%v)", query, n, err)
		}
	}
	c.Fact = fmt.Sprintf("%d documents by site:, none by %d queries for what is not there", all, len(nonsense))
	return c, nil
}

// written reports whether most of a page's own text is in characters of the languages that have
// their own: such a page can be told without knowing the language.
func (d *document) written() bool {
	letters, own := 0, 0
	for _, text := range d.body {
		for _, r := range text {
			if unspaced(r) {
				own++
			} else if unicode.IsLetter(r) {
				letters++
			}
		}
	}
	return own > letters/5 // a character is about as much as a word's five letters
}

// minTold is the share of a language's pages that lang: must list, and of what it lists that must be
// in that language: it is told by the first 2 KB of a page, which in some are code, or not translated.
const minTold = 0.95

// checkLanguages compares what lang: lists with the folders of translations, and with the
// characters that pages are written in.
func (t *trial) checkLanguages(ctx context.Context, s *searcher) (check, error) {
	c := check{Name: "languages"}
	wants, of := map[string][]*document{}, map[string]*document{}
	for _, d := range t.corpus.pages {
		of[d.url] = d
		if lang := d.language(); lang == "it" || lang != "" && d.written() {
			wants[lang] = append(wants[lang], d)
		}
	}
	for _, lang := range slices.Sorted(maps.Keys(wants)) {
		all, _, err := s.walk(ctx, question{query: "lang:" + lang, all: true, limit: 100})
		if err != nil {
			return c, err
		}
		listed, strange := map[string]bool{}, 0
		for _, h := range all {
			listed[h.URL] = true
			if d := of[h.URL]; d == nil || d.language() != lang {
				strange++
				c.missed = append(c.missed, fmt.Sprintf("lang:%s lists %s", lang, h.URL))
			}
		}
		found, want := 0, len(wants[lang])
		for _, d := range wants[lang] {
			if listed[d.url] {
				found++
			} else {
				c.missed = append(c.missed, fmt.Sprintf("lang:%s does not list %s", lang, d.key))
			}
		}
		if !enough(found, want, minTold) || !enough(len(all)-strange, len(all), minTold) {
			c.wrongf("lang:%s lists too few, or too many that it should not", lang)
		}
		c.Fact += fmt.Sprintf("lang:%s lists %d of %d, and %d others; ", lang, found, want, strange)
	}
	c.Fact = cmp.Or(strings.TrimSuffix(c.Fact, "; "), "there are no translations")
	return c, nil
}

// long is a query of a size that nobody types.
const long = 100 << 10

// checkRefused asks what cannot be answered, of the page and from the command line.
func (t *trial) checkRefused(ctx context.Context, s *searcher) (check, error) {
	c := check{Name: "refused"}
	for _, r := range []struct {
		ref    string
		status int
		says   string
	}{
		{"search.json", 400, "q is missing"},
		{"search.json?q=", 400, "q is missing"},
		{"search.json?q=+++", 400, "q is missing"},
		{"search.json?q=%22%22", 400, "no word"},
		{"search.json?q=-kernel", 400, "leave out"},
		{"search.json?q=kernel&offset=-1", 400, "offset"},
		{"search.json?q=kernel&limit=x", 400, "limit"},
		{"search.json?q=kernel&offset=1000", 400, "at most"},
		{"search.json?q=" + strings.Repeat("a", 10<<10), 400, "more than 4096"},
		{"search.json?q=" + strings.Repeat("a", 30<<10), 400, "bytes"},
		{"?q=" + strings.Repeat("a", 10<<10), 400, "more than 4096"},
		{"?q=" + strings.Repeat("a", long), http.StatusRequestHeaderFieldsTooLarge, ""},
		{"favicon.ico", 404, ""},
	} {
		status, body, err := s.get(ctx, r.ref)
		if err != nil {
			return c, err
		}
		if status != r.status || !strings.Contains(string(body), r.says) {
			c.wrongf("%.60s: status %d, %.200q; not %d, %q", r.ref, status, body, r.status, r.says)
		}
	}
	for query, says := range map[string]string{"": "what shall be looked for", " ": "no word", strings.Repeat("a", long): "it has 102400 bytes, more than 4096", "-x": "leave out"} {
		f, err := t.crawler.search(ctx, nil, query)
		if err != nil {
			return c, err
		}
		if !strings.Contains(f.Error, says) {
			c.wrongf("orbweaver search %.40q: %.200q, not %q", query, f.Error, says)
		}
	}
	c.Fact = "empty queries, those of 100 KiB and others that mean nothing are refused, with the reason"
	return c, nil
}

// checkShown compares what a reader sees, and what the command line says, with the JSON of the page.
func (t *trial) checkShown(ctx context.Context, s *searcher) (check, error) {
	c := check{Name: "shown"}
	home, err := s.show(ctx, "")
	if err != nil {
		return c, err
	}
	if home.status != http.StatusOK || len(home.results) > 0 || home.alert != "" || !home.noScript {
		c.wrongf("the empty page is %+v", home)
	}
	common := t.corpus.common()
	pages, results := 0, 0
	for _, query := range []string{common, `"` + common + `"`, "title:" + common, "lang:zh", "内存", `<script>alert("` + common + `")</script>`, "qzxwvkjq"} {
		q := question{query: query, limit: 10}
		ref := q.encode()
		for range 2 { // the first page of results, and the next
			p, err := s.show(ctx, ref)
			if err != nil {
				return c, err
			}
			f, err := s.ask(ctx, q)
			if err != nil {
				return c, err
			}
			pages++
			results += len(p.results)
			if p.status != http.StatusOK || p.query != query || p.alert != "" || !p.noScript {
				c.wrongf("the page of %s is %+v", query, p)
			}
			if !slices.Equal(p.results, f.urls()) || (p.next != "") != f.More {
				c.wrongf("the page of %s shows %q, as JSON there are %q", query, p.results, f.urls())
			}
			for i := range min(len(p.titles), len(f.Results)) {
				if want := f.Results[i].Title.Text; p.titles[i] != want && want != "" {
					c.wrongf("the page of %s has the title %q, as JSON %q", query, p.titles[i], want)
				}
			}
			if ref = p.next; ref == "" {
				break
			}
			q.offset += 10
		}
		said, err := t.crawler.search(ctx, []string{"--explain", "--limit", "20"}, query)
		if err != nil {
			return c, err
		}
		asked, err := s.ask(ctx, question{query: query, limit: 20, explain: true})
		if err != nil {
			return c, err
		}
		if !reflect.DeepEqual(said, asked) {
			c.wrongf("orbweaver search %s says %+v, the page %+v", query, said, asked)
		}
	}
	c.Fact = fmt.Sprintf("%d pages of %d results for a browser, and the command line, show what the JSON has", pages, results)
	return c, nil
}

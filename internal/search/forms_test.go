package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
)

// TestForms checks that a query finds only the forms that a word has in the document's language.
func TestForms(t *testing.T) {
	// "pointer" and "point" have the same stem in French, "vital" and "vitale" in Italian.
	ix := one(t,
		&page{url: site + "pointer", lang: "en", body: "A pointer holds an address."},
		&page{url: site + "pointers", lang: "en", body: "Pointers hold addresses."},
		&page{url: site + "point", lang: "en", body: "The point of it, and points of view.", anchor: "organisation"},
		&page{url: site + "fr", lang: "fr", body: "Pointer du doigt, un point vital."},
		&page{url: site + "it", lang: "it", body: "Una parte vitale."},
		&page{url: site + "unknown", body: "points pointers vitale"},
		&page{url: site + "organ", lang: "en", body: "An organ, several organs.", aside: "See also: tissues"},
	)
	for _, q := range []struct {
		query string
		want  []string
	}{
		{"pointer", []string{"pointer", "pointers", "fr"}},
		{"pointers", []string{"pointer", "pointers", "unknown"}}, // in French, "pointers" and "pointer" have different stems
		{"point", []string{"point", "fr"}},
		{"points", []string{"point", "fr", "unknown"}},
		{"pointer lang:en", []string{"pointer", "pointers"}},
		{`"a pointer"`, []string{"pointer"}},
		{`"pointers hold"`, []string{"pointer", "pointers"}},
		{`"pointers holds" -pointers`, nil},
		{`"points of"`, []string{"point"}},
		{"pointer -points", []string{"pointer", "pointers"}},
		{"vital", []string{"fr", "it"}},
		{"vitale", []string{"fr", "it", "unknown"}},
		{"point*", []string{"pointer", "pointers", "point", "fr", "unknown"}},
		{"organs", []string{"organ"}},
		{"organisations", nil}, // texts of links have no language
		{"organisation", []string{"point"}},
		{"tissue", []string{"organ"}},
		{"aside:tissue", []string{"organ"}},
		{"body:tissue", nil},
	} {
		var want []string
		for _, w := range q.want {
			want = append(want, site+w)
		}
		if d := cmp.Diff(sorted(want), sorted(urls(ask(t, ix, Request{Query: q.query, All: true})))); d != "" {
			t.Errorf("%s: (-want +got)\n%s", q.query, d)
		}
	}
}

// TestWordsOfOnePage checks that a word of one page finds only that page, although its stem in another
// language is a word of many pages.
func TestWordsOfOnePage(t *testing.T) {
	words := strings.Fields(`pointer parser vital manual general nation passer ration fonder porter former order letter
		master center finder binder tender render sender border corner cover fever silver summer winter hunter butter matter`)
	var pages []*page
	for i, w := range words {
		pages = append(pages, &page{url: fmt.Sprint(site, i), lang: "en", title: "One", body: "the " + w + " of one page"})
	}
	// Other pages have the beginnings of these words, and thus their stems in other languages.
	for i, w := range words {
		for n := 3; n < len(w); n++ {
			pages = append(pages, &page{url: fmt.Sprint(site, "many/", i, "/", n), lang: "en", title: "Many", body: w[:n] + "x " + w[:n], rank: 0.01})
		}
	}
	ix := one(t, pages...)
	for i, w := range words {
		if a := ask(t, ix, Request{Query: w}); a.Total != 1 || a.Results[0].URL != pages[i].url {
			t.Errorf("%s finds %v", w, urls(a))
		}
	}
}

// TestExactFirst checks that a document with the words as written comes before one with other forms, even if these
// are more frequent and in the title, and the rank is better. It also checks the explanation.
func TestExactFirst(t *testing.T) {
	pages := []*page{
		{url: site + "often", lang: "en", title: "Roasting", headings: "Roasting and roasting", body: strings.Repeat("roasting ", 50), rank: 0.9},
		{url: site + "exact", lang: "en", title: "Something else", body: strings.Repeat("nothing of the kind ", 500) + "it is roasted"},
		{url: site + "both", lang: "en", title: "Roasting", body: "roasting, roasted"},
	}
	c := newCorpus(t, 1)
	c.rank(0, 10, pages)
	for range 300 {
		pages = append(pages, &page{url: fmt.Sprint(site, len(pages)), lang: "en", body: "another one"})
	}
	c.commit(0, []blobschema.SegmentRef{c.segment(0, pages, false)}, nil)
	a := ask(t, c.open(), Request{Query: "roasted", Explain: true, All: true})
	if got := urls(a); !slices.Equal(got, []string{site + "both", site + "exact", site + "often"}) {
		t.Fatalf("%v", got)
	}
	for i, want := range []string{
		"  words as they were written\n",
		"  words as they were written\n",
		", only in another form\n",
	} {
		if x := a.Results[i].Explain.String(); !strings.Contains(x, want) {
			t.Errorf("explanation of %s:\n%s", a.Results[i].URL, x)
		}
	}
	if x := a.Results[2].Explain; x.Exact != 0 || x.Words[0].Exact {
		t.Errorf("%+v", x)
	}
}

package search

import (
	"fmt"
	"slices"
	"testing"
)

// TestSuggest checks that a query without results gets a corrected one with results.
func TestSuggest(t *testing.T) {
	pages := []*page{
		{url: site + "a", lang: "en", title: "Roasting coffee", body: "Coffee beans are roasted."},
		{url: site + "b", lang: "en", title: "Coffee", body: "Coffee and milk"},
		{url: site + "c", lang: "en", title: "Toffee", body: "Toffee, and tea of Äthiopien"},
		{url: site + "d", lang: "zh", title: "搜索引擎", body: "搜索引擎"},
	}
	for i := range 3000 { // more words than a block of the dictionary holds
		pages = append(pages, &page{url: fmt.Sprint(site, i), body: fmt.Sprintf("filler%dx c%dx", i*7919%10000, i*104729%100000)})
	}
	ix := one(t, pages...)
	for _, c := range []struct {
		query string
		want  []Suggestion
	}{
		{"coffee", nil},
		{"cofee", []Suggestion{{"coffee", 2}}},
		{"Coffeee -milk", []Suggestion{{"coffee -milk", 1}}},
		{"cofefe", []Suggestion{{"coffee", 2}}}, // more documents than toffee, which begins with another letter
		{"tofee", []Suggestion{{"toffee", 1}}},
		{"athiopein", []Suggestion{{"athiopien", 1}}},
		{"title:cofee mlik", []Suggestion{{"title:coffee milk", 1}}},
		{"cofee OR teaa", []Suggestion{{"coffee OR tea", 3}}},
		{`"beans coffee"`, []Suggestion{{"beans coffee", 1}}},
		{`milk "cofee beans"`, nil}, // no document has all
		{"coffee nothingofthekind", nil},
		{"nothingofthekind neitherthis", nil},
		{"milk beans", nil},
		{"mikl site:elsewhere.example", nil},
		{"tex", nil}, // too short to guess
		{"lang:fr", nil},
	} {
		a := ask(t, ix, Request{Query: c.query})
		if !slices.Equal(a.Suggestions, c.want) {
			t.Errorf("%s: %v, want %v", c.query, a.Suggestions, c.want)
		}
		for _, s := range a.Suggestions { // the number is right
			if b := ask(t, ix, Request{Query: s.Query}); b.Total != s.Documents {
				t.Errorf("%s finds %d, not %d", s.Query, b.Total, s.Documents)
			}
		}
	}
	// The filters of the request apply to suggestions too.
	if a := ask(t, ix, Request{Query: "cofee", Sites: []string{"elsewhere.example"}}); a.Suggestions != nil {
		t.Errorf("on another site: %v", a.Suggestions)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "a", 0}, {"kernel", "kernels", 1}, {"kernel", "krenel", 1}, {"kernel", "kern", 2}, {"abcd", "badc", 2},
		{"straße", "strase", 1}, {"kernel", "colonel", 3}, {"a", "abcdefgh", 3},
	} {
		if got := min(distance(c.a, c.b, 2), 3); got != c.want || min(distance(c.b, c.a, 2), 3) != c.want {
			t.Errorf("%s and %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

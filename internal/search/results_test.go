package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/partition"
)

func TestCollapse(t *testing.T) {
	ix := one(t,
		&page{url: site + "a", title: "coffee", body: "coffee one", simHash: 0b1111_0000},
		&page{url: site + "b", body: "coffee two and more", simHash: 0b1111_0111},
		&page{url: site + "c", body: "coffee three and much more", simHash: 0b1111_1111},
		&page{url: site + "d", body: "coffee four of them in a longer text"},
		&page{url: site + "e", body: "coffee five of them in a longer text too"},
	)
	a := ask(t, ix, Request{Query: "coffee"})
	// b differs from a in three bits. c differs from a in four, and in one from b, which is grouped with a.
	if got := urls(a); !slices.Equal(got, []string{site + "a", site + "c", site + "d", site + "e"}) || a.Total != 5 {
		t.Errorf("%v, %d in all", got, a.Total)
	}
	if r := a.Results[0]; r.Similar != 1 || len(r.Others) != 1 || r.Others[0].URL != site+"b" {
		t.Errorf("%+v", r)
	}
	if a := ask(t, ix, Request{Query: "coffee", All: true}); len(a.Results) != 5 || a.Results[0].Similar != 0 {
		t.Errorf("with all: %v", urls(a))
	}
}

func TestSpread(t *testing.T) {
	groups := func(sites ...partition.Slot) (out []group) {
		for i, s := range sites {
			out = append(out, group{found: found{doc: uint32(i), ID: segment.ID{Slot: s}}})
		}
		return out
	}
	order := func(list []group) (out []uint32) {
		for _, g := range list {
			out = append(out, g.doc)
		}
		return out
	}
	for _, c := range []struct {
		in   []group
		want []uint32
	}{
		{groups(), nil},
		{groups(1, 1, 1, 1), []uint32{0, 1, 2, 3}},
		{groups(1, 1, 1, 2, 3), []uint32{0, 1, 3, 4, 2}},
		{groups(1, 2, 1, 2, 1, 2, 3), []uint32{0, 1, 2, 3, 6, 4, 5}},
		// The site that was moved back comes first in the next ten.
		{groups(1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), []uint32{0, 1, 5, 6, 7, 8, 9, 10, 11, 12, 2, 3, 13, 4}},
	} {
		if got := order(spread(c.in)); !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var sites []partition.Slot
		for range rng.IntN(300) {
			sites = append(sites, partition.Slot(rng.IntN(1+rng.IntN(20))))
		}
		in := groups(sites...)
		got := order(spread(in))
		if sortedGot := slices.Sorted(slices.Values(got)); !slices.Equal(sortedGot, order(in)) {
			t.Fatal("results are lost or repeated")
		}
	}
}

// TestPages checks that pages of results fit together, although hits are grouped and sites spread.
func TestPages(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	var pages []*page
	for i := range 300 {
		pages = append(pages, &page{
			url: fmt.Sprintf("https://s%d.example/%d", rng.IntN(12), i), body: sentence(rng, 5+rng.IntN(60)) + " all", simHash: 1 << 63 >> rng.IntN(60) * 255, rank: rng.Float64() / 1000,
		})
	}
	ix := one(t, pages...)
	for _, req := range []Request{{Query: "all"}, {Query: "all", All: true}, {Query: "all coffee"}, {Query: "all site:s1.example"}} {
		req.Limit = MaxResults
		whole := ask(t, ix, req)
		var got []string
		req.Limit = 7
		for {
			a := ask(t, ix, req)
			got = append(got, urls(a)...)
			if req.Offset += 7; !a.More {
				break
			}
		}
		if !slices.Equal(got, urls(whole)) {
			t.Errorf("%+v: %d results by pages, %d at once, or another order", req, len(got), len(whole.Results))
		}
		shown := 0
		for i, r := range whole.Results {
			shown += 1 + r.Similar
			if r.Place != i+1 {
				t.Errorf("result %d has place %d", i, r.Place)
			}
		}
		if shown != int(whole.Total) {
			t.Errorf("%+v: %d of %d documents are results or grouped with one", req, shown, whole.Total)
		}
	}
	// A page has few results of one site, while there are others.
	a := ask(t, ix, Request{Query: "all", Limit: 20})
	for at := 0; at < 20; at += 10 {
		count := map[string]int{}
		for _, r := range a.Results[at : at+10] {
			if count[r.Site]++; count[r.Site] > 2*perSite { // twice, because lookAhead is bounded
				t.Errorf("%d results of %s", count[r.Site], r.Site)
			}
		}
	}
}

func TestSnippet(t *testing.T) {
	filler := strings.Repeat("nothing of the kind here. ", 40)
	ix := one(t,
		&page{url: site + "1", lang: "en", body: filler + "The coffee roaster is\nin the cellar. " + filler + "coffee " + filler},
		&page{url: site + "2", lang: "zh", body: strings.Repeat("今天天气很好。", 60) + "搜索引擎优化是一门学问。" + strings.Repeat("今天天气很好。", 60)},
		&page{url: site + "3", lang: "en", body: "short cellar"},
		&page{url: site + "4", body: ""},
		&page{url: site + "5", body: strings.Repeat("x", 5000) + " longword"},
	)
	for _, c := range []struct{ query, has, marked string }{
		{"roaster coffee url:1", "… ", "coffee roaster"},
		{"搜索引擎", "优化是一门学问", "搜索引擎"},
		{"cellar url:3", "short cellar", "cellar"},
		{"roast* url:1", "in the cellar", "roaster"},
		{"longword", "… ", "longword"},
		{"site:example.org nothing", "nothing of the kind", "nothing"},
	} {
		a := ask(t, ix, Request{Query: c.query})
		if len(a.Results) != 1 {
			t.Fatalf("%s: %d results", c.query, len(a.Results))
		}
		s := a.Results[0].Snippet
		checkMarked(t, s)
		var marked []string
		for _, p := range s.Pieces() {
			if p.Mark {
				marked = append(marked, p.Text)
			}
		}
		if got := strings.Join(marked, " "); !strings.Contains(s.Text, c.has) || !strings.HasPrefix(got, c.marked) || len(s.Text) > snippetBytes+10 {
			t.Errorf("%s: %q, marked %q", c.query, s.Text, got)
		}
	}
}

// TestManyAlike checks that results after thousands of near-duplicates are found.
func TestManyAlike(t *testing.T) {
	var pages []*page
	for i := range 3000 {
		pages = append(pages, &page{url: fmt.Sprintf("https://a%d.example/%d", i%100, i), title: "coffee", simHash: 7})
	}
	for i := range 20 {
		pages = append(pages, &page{url: fmt.Sprintf("https://b%d.example/", i), body: "coffee, and much more than that"})
	}
	ix := one(t, pages...)
	a := ask(t, ix, Request{Query: "coffee"})
	if a.Total != 3020 || len(a.Results) != 10 || !a.More || a.Results[0].Similar != 2999 {
		t.Errorf("%d results of %d, more %v, %d alike", len(a.Results), a.Total, a.More, a.Results[0].Similar)
	}
	if b := ask(t, ix, Request{Query: "coffee", Offset: 10, Limit: 20}); len(b.Results) != 11 || b.More || slices.Contains(urls(a), b.Results[0].URL) {
		t.Errorf("%d results on the second page, more %v", len(b.Results), b.More)
	}
}

package main

import (
	"math"
	"testing"
)

// TestExtractor checks the quality of internal/text on the labelled pages.
func TestExtractor(t *testing.T) {
	pages, err := readPages()
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 100 {
		t.Fatalf("%d pages", len(pages))
	}
	score := mean(pages, extractor{extract: ours})
	if score.precision < 0.91 || score.recall < 0.96 || score.f1 < 0.925 || score.lost > 1 {
		t.Errorf("internal/text: %+v", score)
	}
	if all := mean(pages, extractor{extract: everything}); all.recall < 0.999 || all.precision > 0.8 {
		t.Errorf("all visible text: %+v", all)
	}
	wrong := 0
	for _, p := range pages {
		if lang := extract(p.body).Lang; lang != p.lang && p.main.size() > 0 {
			wrong++
			t.Logf("%s.%s: %q", p.name, p.lang, lang)
		}
	}
	if wrong > 1 {
		t.Errorf("%d languages are wrong", wrong)
	}
}

func TestScore(t *testing.T) {
	p := page{main: bag{}, free: bag{}}
	p.label([]byte("<title>t</title>frame<!--main--><h1>top</h1><p>one two <b>three</b> 水火<!--free-->maybe<!--frame-->end"))
	for text, want := range map[string]score{
		"one two three 水 火":    {precision: 1, recall: 1, f1: 1},
		"top t maybe":          {precision: 1, recall: 0, lost: 1},
		"one two three frame ": {precision: 0.75, recall: 0.6, f1: 2 * 0.75 * 0.6 / (0.75 + 0.6)},
	} {
		got := p.score(text)
		if math.Abs(got.f1-want.f1) > 1e-9 || got.precision != want.precision || got.recall != want.recall || got.lost != want.lost {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

// Text compares extractors of main text on labelled pages: how many of the words they return belong to the text
// (precision), how many words of the text they return (recall), the harmonic mean of both (F1), and processor time.
// It also compares guesses of the language.
//
// The pages are described in pages/README.md. Run it in lab: go run ./text [-pages]. With -pages it prints the
// scores of our extractor for every page.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/abadojack/whatlanggo"
	"github.com/markusmobius/go-domdistiller"
	"github.com/markusmobius/go-trafilatura"

	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/text"
)

const address = "https://www.example.org/2026/page.html"

var parsed, _ = url.Parse(address)

// An extractor returns the main text of a page.
type extractor struct {
	name    string
	extract func(body []byte) string
}

var extractors = []extractor{
	{"all visible text", everything},
	{"internal/text", ours},
	{"internal/text with aside", oursWithAside},
	{"go-readability/v2", readable},
	{"go-trafilatura", func(b []byte) string { return trafilature(b, false) }},
	{"go-trafilatura, fallback", func(b []byte) string { return trafilature(b, true) }},
	{"go-domdistiller", distilled},
}

func main() {
	each := flag.Bool("pages", false, "print the scores of internal/text for every page")
	flag.Parse()
	pages, err := readPages()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if *each {
		for _, p := range pages {
			s := p.score(ours(p.body))
			fmt.Printf("%.2f %.2f %s.%s\n", s.precision, s.recall, p.name, p.lang)
		}
		return
	}
	fmt.Printf("%d pages, %d bytes on average\n\n", len(pages), size(pages)/len(pages))
	fmt.Printf("%-26s %9s %9s %6s %12s %8s\n", "", "precision", "recall", "F1", "recall < 0.5", "ms/page")
	for _, e := range extractors {
		s := mean(pages, e)
		fmt.Printf("%-26s %9.3f %9.3f %6.3f %12d %8.2f\n", e.name, s.precision, s.recall, s.f1, s.lost, milliseconds(pages, e))
	}
	fmt.Printf("\n%-26s %6s %6s %8s\n", "language", "right", "wrong", "unknown")
	for _, g := range guessers {
		right, wrong, unknown := 0, 0, 0
		for _, p := range pages {
			switch lang := g.guess(p.body); {
			case p.main.size() == 0:
			case lang == p.lang:
				right++
			case lang == "":
				unknown++
			default:
				wrong++
			}
		}
		fmt.Printf("%-26s %6d %6d %8d\n", g.name, right, wrong, unknown)
	}
}

func size(pages []page) (n int) {
	for _, p := range pages {
		n += len(p.body)
	}
	return n
}

// A score compares the text of an extractor with the labels.
type score struct {
	precision, recall, f1 float64
	lost                  int // pages with less than half of the text found
}

// score compares an extracted text with the labels. Free words do not count.
func (p *page) score(extracted string) (s score) {
	got := words(extracted)
	hit, miss := 0, 0
	for w, n := range got {
		right := min(n, p.main[w])
		hit += right
		miss += max(0, n-right-p.free[w])
	}
	s.precision, s.recall = 1, 1
	if hit+miss > 0 {
		s.precision = float64(hit) / float64(hit+miss)
	}
	if all := p.main.size(); all > 0 {
		s.recall = float64(hit) / float64(all)
	}
	if s.precision+s.recall > 0 {
		s.f1 = 2 * s.precision * s.recall / (s.precision + s.recall)
	}
	if s.recall < 0.5 {
		s.lost = 1
	}
	return s
}

// mean returns the mean of the scores of all pages; each page counts the same.
func mean(pages []page, e extractor) (m score) {
	for _, p := range pages {
		s := p.score(e.extract(p.body))
		m.precision, m.recall, m.f1, m.lost = m.precision+s.precision, m.recall+s.recall, m.f1+s.f1, m.lost+s.lost
	}
	n := float64(len(pages))
	m.precision, m.recall, m.f1 = m.precision/n, m.recall/n, m.f1/n
	return m
}

// milliseconds returns the processor time of a page, garbage collection included.
func milliseconds(pages []page, e extractor) float64 {
	const rounds = 5
	start := ledger.Processor()
	for range rounds {
		for _, p := range pages {
			e.extract(p.body)
		}
	}
	return (ledger.Processor() - start).Seconds() * 1000 / float64(rounds*len(pages))
}

func everything(body []byte) string {
	var b strings.Builder
	visible(body, func(string) {}, func(text, _ string) { b.WriteString(text) })
	return b.String()
}

func extract(body []byte) text.Document {
	d, _ := text.Extract("text/html; charset=utf-8", body, address)
	return d
}

func ours(body []byte) string { return extract(body).Body }

func oursWithAside(body []byte) string {
	d := extract(body)
	return d.Body + "\n" + d.Aside
}

func readable(body []byte) string {
	a, err := readability.FromReader(bytes.NewReader(body), parsed)
	if err != nil || a.Node == nil {
		return ""
	}
	var b strings.Builder
	if err := a.RenderText(&b); err != nil {
		return ""
	}
	return b.String()
}

func trafilature(body []byte, fallback bool) string {
	r, err := trafilatura.Extract(bytes.NewReader(body), trafilatura.Options{OriginalURL: parsed, EnableFallback: fallback})
	if err != nil {
		return ""
	}
	return r.ContentText + "\n" + r.CommentsText
}

func distilled(body []byte) string {
	r, err := distiller.ApplyForReader(bytes.NewReader(body), &distiller.Options{OriginalURL: parsed})
	if err != nil {
		return ""
	}
	return r.Text
}

// guessers guess the language of a page: an ISO 639-1 code, "" if they do not know.
var guessers = []struct {
	name  string
	guess func(body []byte) string
}{
	{"internal/text", func(body []byte) string { return extract(body).Lang }},
	{"whatlanggo", func(body []byte) string { return whatlanggo.Detect(ours(body)).Lang.Iso6391() }},
	{"whatlanggo, if reliable", func(body []byte) string {
		if i := whatlanggo.Detect(ours(body)); i.IsReliable() {
			return i.Lang.Iso6391()
		}
		return ""
	}},
}

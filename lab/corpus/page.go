package corpus

import (
	"math/rand/v2"
	"strconv"
)

// page is a document that is being generated.
type page struct {
	*Corpus
	i     int
	lang  string
	rng   *rand.Rand
	topic []string // words that are frequent in this document
	text  int      // bytes so far
}

// html appends the page, and returns it and the bytes of its text.
func (p *page) html(dst []byte, d *Document) ([]byte, int) {
	dst = append(dst, "<!DOCTYPE html>\n<html"...)
	if p.i%4 != 0 { // the others do not declare it
		dst = append(dst, ` lang="`+p.lang+`"`...)
	}
	dst = append(dst, ">\n<head>\n<meta charset=\"utf-8\">\n<title>"...)
	dst = append(append(dst, d.Title...), "</title>\n<meta name=\"viewport\" content=\"width=device-width\">\n<style>\n"...)
	for k := range 24 {
		dst = append(dst, ".box-"+strconv.Itoa(k)+" { margin: 0 auto; padding: 4px 8px; color: #333; border: 1px solid #ccc }\n"...)
	}
	dst = append(dst, "</style>\n</head>\n<body>\n"...)
	dst = p.menu(dst)
	dst = append(dst, "<main>\n<article>\n<h1>"...)
	dst = append(append(dst, d.Title...), "</h1>\n"...)
	p.text += len(d.Title)
	size := TextBytes/2 + p.rng.IntN(TextBytes+1)
	at := p.rng.IntN(size) // position of the unique word
	for n := 0; p.text < size; n++ {
		if n%4 == 3 {
			dst = append(dst, "<h2>"...)
			dst = p.words(dst, 3)
			dst = append(dst, "</h2>\n"...)
		}
		dst = append(dst, "<p>"...)
		for range 3 + p.rng.IntN(5) {
			unique := ""
			if at >= 0 && p.text >= at {
				unique, at = d.Unique, -1
			}
			dst = p.sentence(dst, unique)
		}
		if n%2 == 1 {
			dst = p.link(dst)
		}
		dst = append(dst, "</p>\n"...)
	}
	if at >= 0 {
		dst = append(p.sentence(append(dst, "<p>"...), d.Unique), "</p>\n"...)
	}
	dst = append(dst, "</article>\n</main>\n"...)
	return p.footer(dst), p.text
}

// anchor appends a link to a document of the corpus.
func (p *page) anchor(dst []byte, to int, words string) []byte {
	dst = append(append(dst, `<a class="box-3" href="`...), p.URL(to)...)
	return append(append(append(dst, `">`...), words...), "</a>"...)
}

// menu appends the start of each page of a site.
func (p *page) menu(dst []byte) []byte {
	h := p.host(p.i)
	site := rand.New(rand.NewPCG(p.seed, 1<<40+uint64(h)))
	dst = append(dst, "<header class=\"box-1\"><p>Site "+strconv.Itoa(h)+" of the example web</p>\n<nav class=\"menu\"><ul>\n"...)
	for k := p.starts[h]; k < min(p.starts[h]+10, p.starts[h+1]); k++ {
		dst = append(p.anchor(append(dst, "<li>"...), k, capital(p.Words(site, 1)[0])), "</li>\n"...)
	}
	dst = append(dst, "</ul></nav></header>\n<aside class=\"sidebar\"><h3>Most read</h3><ul>\n"...)
	for range 8 {
		to := p.starts[h] + site.IntN(p.starts[h+1]-p.starts[h])
		dst = append(p.anchor(append(dst, "<li>"...), to, p.Title(to)), "</li>\n"...)
	}
	return append(dst, "</ul></aside>\n"...)
}

// footer appends the end of each page.
func (p *page) footer(dst []byte) []byte {
	dst = append(dst, "<footer class=\"box-2\"><ul>\n"...)
	for _, w := range []string{"About us", "Contact", "Terms of use", "Privacy", "Cookies", "Imprint", "Jobs", "Press"} {
		dst = append(dst, "<li><a rel=\"nofollow\" href=\"/static/"+w[:3]+".html\">"+w+"</a></li>\n"...)
	}
	dst = append(dst, "</ul><p>All rights reserved. Share this page with your friends.</p></footer>\n<script>\n"...)
	for k := range 30 {
		n := strconv.Itoa(k)
		dst = append(dst, "window.queue = window.queue || []; window.queue.push({event: 'view', box: "+n+", at: Date.now()});\n"...)
	}
	return append(dst, "</script>\n</body>\n</html>\n"...)
}

// link appends a link in the text, with the title of its target. Half of the links lead to the same site; the first documents
// of all are more frequent targets.
func (p *page) link(dst []byte) []byte {
	h := p.host(p.i)
	to := p.starts[h] + p.rng.IntN(p.starts[h+1]-p.starts[h])
	if p.rng.IntN(2) == 0 {
		u := p.rng.Float64()
		to = min(p.docs-1, int(float64(u*u*u)*float64(p.docs)))
	}
	return p.anchor(append(dst, ' '), to, p.Title(to))
}

// words appends n words of the language and their separators.
func (p *page) words(dst []byte, n int) []byte {
	start := len(dst)
	for k := range n {
		switch {
		case p.lang == "zh":
			dst = append(dst, pick(p.rng, chinese)...)
			if p.rng.IntN(3) == 0 {
				dst = append(dst, pick(p.rng, glue)...)
			}
		case p.lang == "ja":
			dst = append(append(dst, pick(p.rng, japanese)...), [...]string{"は", "が", "の", "を", "に"}[k%5]...)
		default:
			if k > 0 {
				dst = append(dst, ' ')
			}
			if p.lang == "ko" {
				dst = append(append(dst, pick(p.rng, korean)...), pick(p.rng, particles)...)
			} else {
				dst = append(dst, p.word()...)
			}
		}
	}
	p.text += len(dst) - start
	return dst
}

// word returns a random word, sometimes one of the document's topic, because words come in bursts.
func (p *page) word() string {
	if p.rng.IntN(6) == 0 {
		return p.topic[p.rng.IntN(len(p.topic))]
	}
	return p.frequent(p.rng)
}

func pick(rng *rand.Rand, list []string) string { return list[rng.IntN(len(list))] }

// sentence appends a sentence, with the unique word in its middle if it is not empty.
func (p *page) sentence(dst []byte, unique string) []byte {
	n := 3 + p.rng.IntN(8)
	start := len(dst)
	dst = p.words(dst, n)
	if p.lang == "en" {
		dst[start] = capital(string(dst[start : start+1]))[0]
	}
	mid := len(dst)
	if unique != "" {
		space := p.lang == "en" || p.lang == "ko"
		if space {
			dst = append(dst, ' ')
		}
		dst = append(dst, unique...)
		if space {
			dst = append(dst, ' ')
		} else {
			dst = append(dst, "，"...)
		}
	} else if p.lang == "en" || p.lang == "ko" {
		dst = append(dst, ' ')
	}
	p.text += len(dst) - mid
	dst = p.words(dst, n)
	mid = len(dst)
	switch p.lang {
	case "zh":
		dst = append(dst, "。"...)
	case "ja":
		dst = append(append(dst, pick(p.rng, verbs)...), "。"...)
	case "ko":
		dst = append(append(append(dst, ' '), pick(p.rng, endings)...), ". "...)
	default:
		dst = append(dst, ". "...)
	}
	p.text += len(dst) - mid
	return dst
}

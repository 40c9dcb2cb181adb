package simweb

import "strconv"

// A host has a style sheet if Config.Requisites is set. It is page sheetPage.
const (
	sheetPage = -1
	sheetPath = "/static/site.css"
)

// requisites appends what a page or a style sheet needs to be displayed, except the style sheet of a page. Changes of the
// page do not change it.
func (w *Web) requisites(dst []link, h, p int) []link {
	k, ok := w.kind(h, p)
	if !ok || w.cfg.Requisites == 0 {
		return dst
	}
	r := draw(w.cfg.Seed, h, p, streamRequisites)
	n := r.about(w.cfg.Requisites)
	switch k {
	case redirect, loop, gone, broken, reset, silent, garbage, media, trap:
		return dst
	case duplicate:
		return w.requisites(dst, h, w.original(h, p))
	case sheet:
		n = 1 + r.below(3)
		if h > 0 && r.below(2) == 0 { // so chains of imports are short
			dst = append(dst, link{int32(h / 2), sheetPage, byAnchor})
		}
	}
	for range n {
		to := h
		if r.below(3) == 0 {
			to = r.below(len(w.hosts))
		}
		dst = w.add(dst, h, p, w.someLink(&r, h, to, byAnchor))
	}
	return dst
}

// appendRequisite appends an element that needs the target of l.
func (pg *page) appendRequisite(dst []byte, l link) []byte {
	form := [...][2]string{
		{`<img alt="" src="`, `">`}, {`<img alt="" srcset="`, ` 2x">`}, {`<script src="`, `"></script>`}, {`<p style="background: url(`, `)">`},
		{`<video poster="`, `"></video>`}, {`<style>p { background: url("`, `") }</style>`}, {`<link rel="icon" href="`, `">`},
	}[pg.rng.below(7)]
	dst = append(dst, form[0]...)
	if form[0][1] == 's' && form[0][2] == 't' { // character references mean nothing in a style element
		dst = pg.w.appendURL(dst, int(l.host), int(l.page))
	} else {
		dst = pg.appendReference(dst, l)
	}
	return append(append(dst, form[1]...), '\n')
}

// sheetBody returns the style sheet of a host.
func (w *Web) sheetBody(h, version int) []byte {
	dst := strconv.AppendInt([]byte("/* version "), int64(version), 10)
	dst = append(dst, " url(none) */\n"...)
	for _, l := range w.requisites(nil, h, sheetPage) {
		if l.page == sheetPage {
			dst = append(append(append(dst, `@import "`...), w.URL(int(l.host), sheetPage)...), "\";\n"...)
			continue
		}
		dst = append(append(append(dst, "p { background: url("...), w.URL(int(l.host), int(l.page))...), ") }\n"...)
	}
	return dst
}

package simweb

import "slices"

// manner says how a page links to another.
type manner uint8

const (
	byAnchor   manner = iota
	byFrame           // iframe, area
	byRefresh         // meta refresh
	byNoFollow        // a rel=nofollow
	byComment         // an anchor in a comment: not a link
	byScript          // an anchor in a script's string: not a link
)

// followed reports whether a crawler that obeys nofollow follows such a link.
func (m manner) followed() bool { return m <= byRefresh }

type link struct {
	host, page int32
	manner     manner
}

// appendLinks appends the links of a page's HTML in the order of the document, each target once. It is the only
// source of both the HTML and the truth.
func (w *Web) appendLinks(dst []link, h, p, version int) []link {
	x := &w.hosts[h]
	k, ok := w.kind(h, p)
	if !ok {
		return dst
	}
	switch k {
	case redirect, loop, gone, broken, cut, reset, silent, garbage, surplus, media, sheet:
		return dst
	case duplicate:
		return w.appendLinks(dst, h, w.original(h, p), version)
	case trap:
		return w.appendDays(dst, h, p)
	}
	r := draw(w.seed(version), h, p, streamLinks)
	n := len(dst) + r.about(w.cfg.LinksPerPage)
	if k == refresh {
		dst = w.add(dst, h, p, w.someLink(&r, h, h, byRefresh))
	}
	if p == 0 && x.days > 0 {
		dst = w.add(dst, h, p, link{int32(h), int32(x.pages), byAnchor})
	}
	for _, g := range x.roots[int32(p)] {
		dst = w.add(dst, h, p, link{g, 0, byAnchor})
	}
	for _, c := range x.children[x.childAt[p]:x.childAt[p+1]] {
		m := byAnchor
		if x.kinds[c] == hidden {
			m = w.hiding(h, int(c))
		}
		dst = w.add(dst, h, p, link{int32(h), c, m})
	}
	for tries := n - len(dst); tries > 0; tries-- {
		dst = w.add(dst, h, p, w.randomLink(&r, h))
	}
	return dst
}

// hiding returns the manner of the only link to a hidden page.
func (w *Web) hiding(h, p int) manner {
	r := draw(w.cfg.Seed, h, p, streamDetail)
	return byNoFollow + manner(r.below(3))
}

func (w *Web) appendDays(dst []link, h, p int) []link {
	x := &w.hosts[h]
	dst = append(dst, link{int32(h), 0, byAnchor})
	for _, step := range [...]int{1, 7, 365} {
		if p+step < x.pages+x.days {
			dst = append(dst, link{int32(h), int32(p + step), byAnchor})
		}
	}
	return dst
}

func (w *Web) randomLink(r *rng, h int) link {
	m := byAnchor
	if s := w.cfg.Links; s != (LinkShares{}) {
		switch u := r.unit(); {
		case u < s.NoFollow:
			m = byNoFollow
		case u < s.NoFollow+s.Frame:
			m = byFrame
		}
	}
	to := h
	if r.unit() < w.cfg.CrossHost {
		to = r.skewed(len(w.hosts), w.cfg.Skew)
	}
	return w.someLink(r, h, to, m)
}

// someLink draws a page of host to; half of the links between hosts lead to the root.
func (w *Web) someLink(r *rng, from, to int, m manner) link {
	if from != to && r.below(2) == 0 {
		return link{int32(to), 0, m}
	}
	return link{int32(to), int32(w.visible(to, r.skewed(w.hosts[to].pages, w.cfg.Skew))), m}
}

// visible returns the last page from p downwards that is not hidden or unlinked.
func (w *Web) visible(h, p int) int {
	for w.hosts[h].kinds[p] == hidden || w.hosts[h].kinds[p] == unlinked {
		p--
	}
	return p
}

// add appends l unless it leads to the page itself or has the same target as another link.
func (w *Web) add(dst []link, h, p int, l link) []link {
	if int(l.host) == h && int(l.page) == p {
		return dst
	}
	for i := range dst {
		if dst[i].page == l.page && dst[i].host == l.host {
			return dst
		}
	}
	return append(dst, l)
}

// redirectTarget returns where a page of kind redirect or loop points.
func (w *Web) redirectTarget(h, p int) (toHost, toPage int) {
	x := &w.hosts[h]
	if x.kinds[p] == loop {
		return h, int(after(x.loops, int32(p), x.loops[0]))
	}
	r := draw(w.cfg.Seed, h, p, streamTarget)
	switch r.below(4) {
	case 0: // a chain, if there is a later redirect
		if next := after(x.redirects, int32(p), 0); next > 0 {
			return h, int(next)
		}
	case 1:
		l := w.someLink(&r, h, r.below(len(w.hosts)), byAnchor)
		return int(l.host), int(l.page)
	}
	return h, w.visible(h, r.below(x.pages))
}

// after returns the element of ascending list that follows v, or otherwise.
func after(list []int32, v, otherwise int32) int32 {
	if i, _ := slices.BinarySearch(list, v+1); i < len(list) {
		return list[i]
	}
	return otherwise
}

// Links returns the canonical targets of a page's links in the order of the document, each once: those that
// count for a crawler which obeys nofollow, or the one target of a redirect. It is nil for a URL without links.
func (w *Web) Links(url string) []string {
	h, p, ok := w.find(url)
	if !ok {
		return nil
	}
	var urls []string
	for _, l := range w.targets(nil, h, p, w.version(h, p)) {
		urls = append(urls, w.URL(int(l.host), int(l.page)))
	}
	return urls
}

// targets appends the links that a crawler learns from a page.
func (w *Web) targets(dst []link, h, p, version int) []link {
	k, _ := w.kind(h, p)
	switch k {
	case redirect, loop:
		th, tp := w.redirectTarget(h, p)
		return append(dst, link{int32(th), int32(tp), byAnchor})
	case noFollow:
		return dst
	}
	start := len(dst)
	dst = w.appendLinks(dst, h, p, version)
	kept := dst[:start]
	for _, l := range dst[start:] {
		if l.manner.followed() {
			kept = append(kept, l)
		}
	}
	return kept
}

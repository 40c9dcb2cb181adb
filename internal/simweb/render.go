package simweb

import (
	"bytes"
	"strconv"
	"strings"
)

// page holds the state for writing the links of one page.
type page struct {
	w    *Web
	host int
	dir  []byte // of the base URL's path, with both slashes
	rng  rng
}

// appendHTML appends the HTML of a page that has some.
func (w *Web) appendHTML(dst []byte, h, p, version int) []byte {
	k, _ := w.kind(h, p)
	if k == duplicate {
		p = w.original(h, p)
		k, _ = w.kind(h, p)
	}
	start := len(dst)
	r := draw(w.seed(version), h, p, streamBody)
	size := r.about(w.cfg.PageBytes)
	if k == trap {
		size = min(size, 1<<10)
	}
	var scratch [96]link
	links := w.appendLinks(scratch[:0], h, p, version)
	var dirBuf [64]byte
	pg := page{w: w, host: h, dir: directory(w.appendPath(dirBuf[:0], h, p)), rng: r}

	dst = append(dst, "<!DOCTYPE html>\n<html lang=\"la\">\n<head>\n<meta charset=\"utf-8\">\n<title>"...)
	dst = strconv.AppendInt(append(pg.appendWords(dst, 3), ' '), int64(p), 10)
	dst = append(dst, "</title>\n<link rel=\"stylesheet\" href=\""+sheetPath+"\">\n"...)
	dst = pg.appendHead(dst, k, links)
	dst = append(dst, "</head>\n<body>\n<h1>"...)
	dst = append(pg.appendWords(dst, 3), "</h1>\n"...)

	stock := w.text.paragraphs
	next, step := pg.rng.below(len(stock)), pg.rng.below(len(stock))|1 // an odd step visits each paragraph once
	for i, l := range links {
		dst = pg.appendLink(dst, l)
		for limit := start + size*(i+1)/len(links); len(dst) < limit; {
			dst = append(dst, stock[next]...)
			next = (next + step) & (len(stock) - 1)
		}
	}
	for len(links) == 0 && len(dst)-start < size {
		dst = append(dst, stock[next]...)
		next = (next + step) & (len(stock) - 1)
	}
	for _, l := range w.requisites(nil, h, p) {
		dst = pg.appendRequisite(dst, l)
	}
	return append(dst, "</body>\n</html>\n"...)
}

// directory cuts a path after its last slash.
func directory(path []byte) []byte {
	path, _, _ = bytes.Cut(path, []byte("?"))
	return path[:bytes.LastIndexByte(path, '/')+1]
}

func (pg *page) appendHead(dst []byte, k kind, links []link) []byte {
	switch k {
	case noFollow:
		dst = append(dst, "<meta name=\"robots\" content=\"NoFollow\">\n"...)
	case noIndex:
		dst = append(dst, "<meta name=\"robots\" content=\"noindex, follow\">\n"...)
	case based:
		pg.dir = []byte("/base/of/all/")
		dst = append(dst, "<base href=\"/base/of/all/links.html\">\n"...)
	case refresh:
		for _, l := range links {
			if l.manner == byRefresh {
				dst = append(dst, "<meta http-equiv=\"refresh\" content=\"5; url="...)
				dst = append(pg.appendReference(dst, l), "\">\n"...)
			}
		}
	}
	return dst
}

func (pg *page) appendWords(dst []byte, n int) []byte {
	words := pg.w.text.words
	for i := range n {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = append(dst, words[pg.rng.skewed(len(words), 2)]...)
	}
	return dst
}

func (pg *page) appendLink(dst []byte, l link) []byte {
	odd := pg.w.cfg.Links.Odd
	switch l.manner {
	case byRefresh:
		return dst
	case byComment:
		dst = append(pg.appendReference(append(dst, "<!-- <a href=\""...), l), "\">"...)
		return append(pg.appendWords(dst, 1), "</a> -->\n"...)
	case byScript:
		dst = append(pg.appendReference(append(dst, "<script>var s = '<a href=\""...), l), "\">"...)
		return append(pg.appendWords(dst, 1), "</a>';</script>\n"...)
	case byNoFollow:
		dst = append(pg.appendReference(append(dst, "<a rel=\"external nofollow\" href=\""...), l), "\">"...)
	case byFrame:
		if pg.rng.below(2) == 0 {
			return append(pg.appendReference(append(dst, "<iframe src=\""...), l), "\"></iframe>\n"...)
		}
		return append(pg.appendReference(append(dst, "<map name=\"m\"><area alt=\"\" href=\""...), l), "\"></map>\n"...)
	default:
		if odd > 0 && pg.rng.unit() < odd {
			dst = pg.appendOddAnchor(dst, l)
		} else {
			dst = append(pg.appendReference(append(dst, "<a href=\""...), l), "\">"...)
		}
	}
	return append(pg.appendWords(dst, 2), "</a>\n"...)
}

// appendReference appends a reference to the target of l in a usual form, escaped for an attribute. Within a
// host half of the references begin at the root; the others are relative or absolute.
func (pg *page) appendReference(dst []byte, l link) []byte {
	w, h, p := pg.w, int(l.host), int(l.page)
	start := len(dst)
	form := pg.rng.below(4)
	switch {
	case h != pg.host || form == 0:
		dst = w.appendURL(dst, h, p)
	case form == 1:
		dst = w.appendPath(dst, h, p)
		if bytes.HasPrefix(dst[start:], pg.dir) && len(dst)-start > len(pg.dir) && dst[start+len(pg.dir)] != '?' {
			dst = append(dst[:start], dst[start+len(pg.dir):]...)
			break
		}
		dst = dst[:start]
		for range bytes.Count(pg.dir, []byte("/")) - 1 {
			dst = append(dst, "../"...)
		}
		if len(dst) == start {
			dst = append(dst, "./"...)
		}
		at := len(dst)
		dst = w.appendPath(dst, h, p)
		dst = append(dst[:at], dst[at+1:]...) // its first slash
	default:
		dst = w.appendPath(dst, h, p)
	}
	return escapeFrom(dst, start)
}

// escapeFrom escapes the ampersands in dst[start:].
func escapeFrom(dst []byte, start int) []byte {
	if bytes.IndexByte(dst[start:], '&') < 0 {
		return dst
	}
	return append(dst[:start], bytes.ReplaceAll(dst[start:], []byte("&"), []byte("&amp;"))...)
}

// oddHrefs are unusual spellings of a URL that a crawler must understand.
var oddHrefs = [...]func(pg *page, host, path string) string{
	func(pg *page, host, path string) string { return "HTTP://" + strings.ToUpper(host) + path },
	func(pg *page, host, path string) string { return "http://" + pg.explicitPort(host) + path },
	func(pg *page, host, path string) string { return "http://" + host + path + "#part-2" },
	func(pg *page, host, path string) string { return " \n http://" + host + path + "\t " },
	func(pg *page, host, path string) string { return "http://" + host + "/./x/../y/z/../.." + path },
	func(pg *page, host, path string) string { return "//" + host + path },
	func(pg *page, host, path string) string { return "http://" + host + decoded(path) },
	func(pg *page, host, path string) string {
		return "http://" + host + strings.Replace(path, "~", "%7E", 1)
	},
	func(pg *page, host, path string) string { return "http://" + pg.native(host) + path },
	func(pg *page, host, path string) string { return "http://" + host + "\t" + path[:1] + "\n" + path[1:] },
	func(pg *page, host, path string) string {
		at := strings.IndexByte(path+"?", '?')
		return "http:\\\\" + host + strings.ReplaceAll(path[:at], "/", "\\") + path[at:]
	},
}

// appendOddAnchor appends an anchor's start whose URL, and whose attribute, are written in
// unusual ways.
func (pg *page) appendOddAnchor(dst []byte, l link) []byte {
	path := string(pg.w.appendPath(nil, int(l.host), int(l.page)))
	href := oddHrefs[pg.rng.below(len(oddHrefs))](pg, pg.w.authority[l.host], path)
	href = strings.ReplaceAll(href, "&", "&amp;")
	switch pg.rng.below(4) {
	case 0:
		return append(append(append(dst, "<A CLASS=x HREF = '"...), href...), "'>"...)
	case 1:
		if !strings.ContainsAny(href, " \t\n'\"<>`") {
			return append(append(append(dst, "<a href="...), href...), '>')
		}
	case 2:
		href = strings.Replace(href, "/", "&#x2F;", 1)
	}
	return append(append(append(dst, "<a\n title='a > b' href=\""...), href...), "\">"...)
}

// explicitPort adds the default port to a host without a port.
func (pg *page) explicitPort(host string) string {
	if strings.Contains(host, ":") {
		return host
	}
	return host + ":80"
}

// native writes an IDN host in its own letters.
func (pg *page) native(host string) string {
	x := &pg.w.hosts[pg.w.byAuthority[host]]
	if x.unicode == "" {
		return host
	}
	return x.unicode + strings.TrimPrefix(host, x.name)
}

// decoded replaces the escapes of a canonical path by the characters themselves.
func decoded(path string) string {
	return strings.NewReplacer("%20", " ", "%C3%A9", "é").Replace(path)
}

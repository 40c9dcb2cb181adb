package simweb

import (
	"bytes"
	"strconv"
	"strings"
)

// The last number in a path is the page's: "/d3/p17.html", "/go/17", "/view?id=17". So lookup finds the number,
// writes the path of that page and compares the two.

// scheme returns the beginning of all URLs, with its slashes.
func (w *Web) scheme() string {
	if w.cfg.TLS {
		return "https://"
	}
	return "http://"
}

func (w *Web) appendURL(dst []byte, h, p int) []byte {
	dst = append(dst, w.scheme()...)
	dst = append(dst, w.authority[h]...)
	return w.appendPath(dst, h, p)
}

// section returns the section of page p. Hosts without rules have no sections except open and days.
func (w *Web) section(h, p int) section {
	x := &w.hosts[h]
	if p >= x.pages {
		return days
	}
	if p <= 0 || !x.robots.rules() {
		return open
	}
	switch x.kinds[p] {
	case redirect, loop, media, duplicate:
		return open
	}
	r := draw(w.cfg.Seed, h, p, streamPath)
	switch n := r.below(100); {
	case n < 10:
		return private
	case n < 14:
		return allowed
	case n < 18:
		return beta
	case n < 21:
		return script
	default:
		return open
	}
}

func (w *Web) appendPath(dst []byte, h, p int) []byte {
	x := &w.hosts[h]
	switch p {
	case 0:
		return append(dst, '/')
	case sheetPage:
		return append(dst, sheetPath...)
	}
	if p >= x.pages {
		return strconv.AppendInt(append(dst, "/calendar/"...), int64(p-x.pages), 10)
	}
	k := x.kinds[p]
	switch k {
	case redirect, loop:
		return strconv.AppendInt(append(dst, "/go/"...), int64(p), 10)
	case duplicate:
		start := len(dst)
		dst = w.appendPath(dst, h, w.original(h, p))
		mark := byte('?')
		if bytes.IndexByte(dst[start:], '?') >= 0 {
			mark = '&'
		}
		dst = append(append(dst, mark), "copy="...)
		return strconv.AppendInt(dst, int64(p), 10)
	}
	dir, ending := "", ".html"
	switch w.section(h, p) {
	case private:
		dir = "/private/p"
	case allowed:
		dir = "/private/open/p"
	case beta:
		dir = "/beta/p"
	case script:
		dir, ending = "/bin/p", ".cgi"
	default:
		r := draw(w.cfg.Seed, h, p, streamTarget)
		dir, ending = w.place(&r)
	}
	if k == media {
		ending = w.mediaType(h, p).ending
	}
	return append(strconv.AppendInt(append(dst, dir...), int64(p), 10), ending...)
}

var plainDirs = [...]string{"/d0/p", "/d1/p", "/d2/p", "/d3/p", "/d4/p", "/d5/p", "/d6/p", "/d7/p"}

// oddDirs need care: a tilde, a space, a letter beyond ASCII, a query, two levels.
var oddDirs = [...]string{"/~ann/p", "/a%20b/p", "/caf%C3%A9/p", "/view?id=", "/x/y/p"}

func (w *Web) place(r *rng) (dir, ending string) {
	if w.cfg.Links.Odd > 0 && r.below(4) == 0 {
		d := oddDirs[r.below(len(oddDirs))]
		if strings.HasSuffix(d, "=") {
			return d, ""
		}
		return d, ".html"
	}
	return plainDirs[r.below(len(plainDirs))], ".html"
}

// lookup returns the page of host h that a request URI names.
func (w *Web) lookup(h int, uri string) (p int, ok bool) {
	if uri == "/" || uri == "" {
		return 0, true
	}
	if uri == sheetPath && w.cfg.Requisites > 0 {
		return sheetPage, true
	}
	if strings.Contains(uri, "%7") { // a client may escape ~
		uri = strings.NewReplacer("%7E", "~", "%7e", "~").Replace(uri)
	}
	end := len(uri)
	for end > 0 && !digit(uri[end-1]) {
		end--
	}
	start := end
	for start > 0 && digit(uri[start-1]) {
		start--
	}
	if end-start > 10 {
		return 0, false
	}
	p, err := strconv.Atoi(uri[start:end])
	if err != nil {
		return 0, false
	}
	if strings.HasPrefix(uri, "/calendar/") {
		p += w.hosts[h].pages
	}
	if _, ok := w.kind(h, p); !ok {
		return 0, false
	}
	var buf [128]byte
	return p, string(w.appendPath(buf[:0], h, p)) == uri
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

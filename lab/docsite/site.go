package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// A site is a folder of files as the server shows it.
type site struct {
	root  string
	home  *url.URL         // start page of the crawl
	pages map[string]*page // every page that links lead to, by key
}

// A page is the expected answer for a URL.
type page struct {
	status int
	file   string            // path of the payload; "" unless the status is 200
	sum    [sha256.Size]byte // of the payload
	links  []string          // keys on the site that the page or redirect leads to
	html   bool
	title  string // of an HTML page

	heading bool // an HTML page with a heading of the first level
}

const headingEnd = "</h1>"

func newSite(root string, port int) *site {
	return &site{root: root, home: &url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port), Path: "/index.html"}, pages: map[string]*page{}}
}

// key returns the form for comparing URLs of all sources: path and query without percent-encoding.
func key(u *url.URL) string {
	k := u.Path
	if k == "" {
		k = "/"
	}
	if u.RawQuery != "" {
		q, err := url.PathUnescape(u.RawQuery)
		if err != nil {
			q = u.RawQuery
		}
		k += "?" + q
	}
	return k
}

// keyOf returns the key of a URL in text, or the text itself if it is not a URL.
func keyOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	return key(u)
}

// walk follows links and redirects from the home page.
func (s *site) walk() error {
	for next := []*url.URL{s.home}; len(next) > 0; {
		u := next[len(next)-1]
		next = next[:len(next)-1]
		if s.pages[key(u)] != nil {
			continue
		}
		p, targets, err := s.read(u)
		if err != nil {
			return err
		}
		s.pages[key(u)] = p
		for _, to := range targets {
			if to.Scheme == s.home.Scheme && to.Host == s.home.Host {
				next = append(next, to)
				p.links = append(p.links, key(to))
			}
		}
	}
	return nil
}

// read returns the answer of nginx to a URL with root, index.html and without listings, and
// the targets of the page's links. The server has no robots.txt.
func (s *site) read(u *url.URL) (p *page, targets []*url.URL, err error) {
	name := u.Path
	if name == "" {
		name = "/"
	}
	file := filepath.Join(s.root, filepath.FromSlash(path.Clean("/"+name)))
	info, err := os.Stat(file)
	switch slash := strings.HasSuffix(name, "/"); {
	case err != nil || path.Clean(name) == "/robots.txt" || slash && !info.IsDir():
		return &page{status: http.StatusNotFound}, nil, nil
	case info.IsDir() && !slash:
		to := *u
		to.Path += "/"
		return &page{status: http.StatusMovedPermanently}, []*url.URL{&to}, nil
	case info.IsDir():
		file = filepath.Join(file, "index.html")
		if _, err := os.Stat(file); err != nil {
			return &page{status: http.StatusForbidden}, nil, nil
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	p = &page{status: http.StatusOK, file: file, sum: sha256.Sum256(data)}
	if slices.Contains([]string{".html", ".htm", ".xhtml"}, filepath.Ext(file)) {
		doc, err := html.ParseWithOptions(bytes.NewReader(data), html.ParseOptionEnableScripting(false))
		if err != nil {
			return nil, nil, err
		}
		p.html, p.title, p.heading = true, titleOf(doc), bytes.Contains(data, []byte(headingEnd))
		targets = links(doc, u)
	}
	return p, targets, nil
}

// links returns the targets of the links that documentation has: a, area, frames, refresh and the
// relations between pages. It does not know base and template; a site that needs these differs.
func links(doc *html.Node, self *url.URL) (targets []*url.URL) {
	clean := strings.NewReplacer("\t", "", "\n", "", "\r", "")
	for n := range doc.Descendants() {
		ref, ok := "", false
		rel, _ := attribute(n, "rel")
		related := func(names ...string) bool {
			return slices.ContainsFunc(strings.Fields(rel), func(r string) bool { return slices.Contains(names, r) })
		}
		switch n.Data {
		case "a", "area":
			ref, ok = attribute(n, "href")
		case "frame", "iframe":
			ref, ok = attribute(n, "src")
		case "link":
			ref, ok = attribute(n, "href")
			ok = ok && related("canonical", "next", "prev")
		case "meta":
			content, _ := attribute(n, "content")
			equiv, _ := attribute(n, "http-equiv")
			_, ref, ok = strings.Cut(content, "=")
			ref, ok = strings.Trim(ref, `'" `), ok && strings.EqualFold(equiv, "refresh")
		}
		ref, _, _ = strings.Cut(clean.Replace(strings.TrimSpace(ref)), "#")
		if u, err := self.Parse(ref); ok && err == nil && !related("nofollow") {
			u.User = nil
			targets = append(targets, u)
		}
	}
	return targets
}

func attribute(n *html.Node, name string) (value string, ok bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

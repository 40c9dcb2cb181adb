package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
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
	home  *url.URL         // of the page to start from
	pages map[string]*page // all that links lead to, by key
}

// A page is what a request for a URL must bring.
type page struct {
	status int
	file   string            // path of the payload; "" unless the status is 200
	sum    [sha256.Size]byte // of the payload
	links  []string          // keys on the site that the page or redirect leads to
	text   *document         // nil unless the page is HTML
}

func newSite(root string, port int) *site {
	return &site{root: root, home: &url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port), Path: "/index.html"}, pages: map[string]*page{}}
}

// key is what URLs of all sources are compared by: path and query without percent-encoding.
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

// keyOf is the key of a URL in text, or the text itself if it is no URL.
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

// read returns what nginx makes of a URL with root, index.html and without listings, and
// the targets of the page's links. robots.txt is never served.
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
		p.text = newDocument(doc)
		p.text.hidden = append(p.text.hidden, key(u))
		targets = links(doc, u)
	}
	return p, targets, nil
}

// links are the targets that a crawler should follow from an HTML document, as the
// documentation of package extract promises them.
func links(doc *html.Node, self *url.URL) (targets []*url.URL) {
	var refs []string
	base := ""
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || within(n, "template") {
			continue
		}
		switch {
		case n.Data == "base" && base == "":
			base = attribute(n, "href")
		case n.Data == "meta" && strings.EqualFold(attribute(n, "name"), "robots") && hasWord(attribute(n, "content"), "nofollow", "none"):
			return nil
		}
		if ref, ok := reference(n); ok && !hasWord(attribute(n, "rel"), "nofollow") {
			refs = append(refs, ref)
		}
	}
	if u, err := self.Parse(base); base != "" && err == nil {
		self = u
	}
	clean := strings.NewReplacer("\t", "", "\n", "", "\r", "")
	for _, ref := range refs {
		ref, _, _ = strings.Cut(clean.Replace(strings.TrimSpace(ref)), "#")
		if u, err := self.Parse(ref); err == nil {
			u.User = nil
			targets = append(targets, u)
		}
	}
	return targets
}

// reference is what an element refers to.
func reference(n *html.Node) (ref string, ok bool) {
	name := "href"
	switch n.Data {
	case "a", "area":
	case "frame", "iframe":
		name = "src"
	case "link":
		rel, kind := attribute(n, "rel"), attribute(n, "type")
		alternate := hasWord(rel, "alternate") && (kind == "" || hasWord(kind, "text/html", "application/xhtml+xml", "application/rss+xml", "application/atom+xml"))
		if hasWord(rel, "stylesheet") || !alternate && !hasWord(rel, "canonical", "next", "prev", "previous") {
			return "", false
		}
	case "meta":
		_, to, found := strings.Cut(attribute(n, "content"), "=")
		return strings.Trim(strings.TrimSpace(to), `'"`), found && strings.EqualFold(attribute(n, "http-equiv"), "refresh")
	default:
		return "", false
	}
	has := slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	return attribute(n, name), has
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// within reports whether a node has an ancestor of one of the names.
func within(n *html.Node, list ...string) bool {
	for up := range n.Ancestors() {
		if up.Type == html.ElementNode && slices.Contains(list, up.Data) {
			return true
		}
	}
	return false
}

// hasWord reports whether a list divided by spaces or commas has one of the words.
func hasWord(list string, words ...string) bool {
	fields := strings.FieldsFunc(strings.ToLower(list), func(r rune) bool { return strings.ContainsRune(", \t\n\r\f", r) })
	return slices.ContainsFunc(fields, func(w string) bool { return slices.Contains(words, w) })
}

// A graph has the links between pages, each once, and none from a page to itself.
type graph map[string][]string

func (s *site) graph() (g graph, edges int) {
	g = graph{}
	for k, p := range s.pages {
		if p.status != http.StatusOK && p.status != http.StatusMovedPermanently {
			continue
		}
		to := slices.DeleteFunc(slices.Clone(p.links), func(l string) bool { return l == k })
		slices.Sort(to)
		g[k] = slices.Compact(to)
		edges += len(g[k])
	}
	for _, p := range g {
		for _, to := range p {
			if _, ok := g[to]; !ok {
				g[to] = nil
			}
		}
	}
	return g, edges
}

// ranks are the PageRanks of the nodes, times their number. Without the shares of nodes that
// have no links, and without the norm, PageRank is a linear system, y = v + d A y, of which
// the ranks are a multiple (Langville and Meyer, "Deeper inside PageRank", 2004, section
// 5.2). It is solved in place, node by node (Gauss and Seidel), not in rounds.
func (g graph) ranks(damping float64) map[string]float64 {
	keys := slices.Sorted(maps.Keys(g))
	number, degree := map[string]int{}, make([]float64, len(keys))
	for i, k := range keys {
		number[k], degree[i] = i, float64(len(g[k]))
	}
	from := make([][]int, len(keys))
	for i, k := range keys {
		for _, to := range g[k] {
			from[number[to]] = append(from[number[to]], i)
		}
	}
	y, sum := make([]float64, len(keys)), 0.0
	for change := 1.0; change > 1e-14*sum; {
		change, sum = 0, 0
		for j := range y {
			x := 1.0
			for _, i := range from[j] {
				x += damping * y[i] / degree[i]
			}
			change += math.Abs(x - y[j])
			y[j] = x
			sum += x
		}
	}
	ranks := map[string]float64{}
	for i, k := range keys {
		ranks[k] = y[i] / sum * float64(len(keys))
	}
	return ranks
}

package main

import (
	"bytes"
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

// documents are the endings of files that are served as HTML or XHTML: those with links.
var documents = []string{".html", ".htm", ".xhtml"}

// maxURLs bounds a walk.
const maxURLs = 1_000_000

// A site is a folder of files as the server shows it. It is read anew at each call.
type site struct {
	root string   // the folder
	home *url.URL // where it is served: scheme, host and the path of the page to start from
}

// An answer is what a request for a URL must bring.
type answer struct {
	status int
	file   string // path of the payload; "" unless the status is 200
	to     string // target of a redirect, in a link's form
}

// key is what a URL is compared by, in spellings of whatever source: path and query
// without percent-encoding. All URLs compared are of one host.
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

// answer says what the server makes of a URL of the site, in words of nginx: root, index
// index.html, no autoindex. There is no robots.txt, whatever is in the folder.
func (s *site) answer(u *url.URL) answer {
	name := u.Path
	if name == "" {
		name = "/"
	}
	file := filepath.Join(s.root, filepath.FromSlash(path.Clean("/"+name)))
	info, err := os.Stat(file)
	switch slash := strings.HasSuffix(name, "/"); {
	case err != nil || path.Clean(name) == "/robots.txt" || slash && !info.IsDir():
		return answer{status: http.StatusNotFound}
	case !info.IsDir():
		return answer{status: http.StatusOK, file: file}
	case !slash:
		to := url.URL{Path: name + "/", RawQuery: u.RawQuery}
		return answer{status: http.StatusMovedPermanently, to: to.String()}
	}
	index := filepath.Join(file, "index.html")
	if info, err := os.Stat(index); err != nil || info.IsDir() {
		return answer{status: http.StatusForbidden}
	}
	return answer{status: http.StatusOK, file: index}
}

// walk follows links and redirects from the home page as far as they stay on the site,
// and returns what each URL reached must be answered with, by key.
func (s *site) walk() (map[string]answer, error) {
	reached := map[string]answer{}
	next := []*url.URL{s.home}
	for len(next) > 0 {
		u := next[len(next)-1]
		next = next[:len(next)-1]
		k := key(u)
		if _, ok := reached[k]; ok {
			continue
		}
		if len(reached) == maxURLs {
			return nil, fmt.Errorf("the documentation has more than %d URLs", maxURLs)
		}
		a := s.answer(u)
		reached[k] = a
		var targets []*url.URL
		if a.to != "" {
			targets = resolve(u, []string{a.to})
		} else if isDocument(a.file) {
			doc, err := os.ReadFile(a.file)
			if err != nil {
				return nil, err
			}
			targets = links(doc, u)
		}
		for _, to := range targets {
			if to.Scheme == s.home.Scheme && to.Host == s.home.Host {
				next = append(next, to)
			}
		}
	}
	return reached, nil
}

func isDocument(file string) bool {
	return slices.Contains(documents, strings.ToLower(filepath.Ext(file)))
}

// resolve are the targets of references without their fragments. What is no URL leads
// nowhere.
func resolve(base *url.URL, refs []string) (targets []*url.URL) {
	clean := strings.NewReplacer("\t", "", "\n", "", "\r", "")
	for _, ref := range refs {
		ref, _, _ = strings.Cut(clean.Replace(strings.TrimSpace(ref)), "#")
		u, err := base.Parse(ref)
		if err != nil {
			continue
		}
		u.User = nil
		targets = append(targets, u)
	}
	return targets
}

// links are the targets that a crawler should follow from an HTML document at self: what
// package extract's documentation promises, by simpler means. It is no browser: nested
// templates and the like are beyond it.
func links(doc []byte, self *url.URL) []*url.URL {
	var refs []string
	base := ""
	noFollow, templates := false, 0
	z := html.NewTokenizer(bytes.NewReader(doc))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken && kind != html.EndTagToken {
			continue
		}
		t := z.Token()
		if t.Data == "noscript" {
			z.NextIsNotRawText() // there are no scripts
		}
		if t.Data == "template" {
			if kind == html.EndTagToken {
				templates = max(templates-1, 0)
			} else {
				templates++
			}
		}
		if kind == html.EndTagToken || templates > 0 {
			continue
		}
		at := map[string]string{}
		for _, a := range t.Attr {
			if _, twice := at[a.Key]; !twice {
				at[a.Key] = a.Val
			}
		}
		switch t.Data {
		case "base":
			if base == "" {
				base = at["href"]
			}
		case "meta":
			noFollow = noFollow || strings.EqualFold(at["name"], "robots") && hasWord(at["content"], "nofollow", "none")
		}
		if ref, ok := reference(t.Data, at); ok {
			refs = append(refs, ref)
		}
	}
	if noFollow {
		return nil
	}
	if found := resolve(self, []string{base}); base != "" && len(found) == 1 {
		self = found[0]
	}
	return resolve(self, refs)
}

// reference is what a tag refers to.
func reference(tag string, at map[string]string) (ref string, ok bool) {
	name := "href"
	switch tag {
	case "a", "area":
	case "frame", "iframe":
		name = "src"
	case "link":
		kind := at["type"]
		page := kind == "" || slices.Contains([]string{
			"text/html", "application/xhtml+xml", "application/rss+xml", "application/atom+xml", "application/feed+json",
		}, strings.ToLower(kind))
		if hasWord(at["rel"], "stylesheet") ||
			!hasWord(at["rel"], "canonical", "next", "prev", "previous") && !(page && hasWord(at["rel"], "alternate")) {
			return "", false
		}
	case "meta":
		if !strings.EqualFold(at["http-equiv"], "refresh") {
			return "", false
		}
		_, to, found := strings.Cut(at["content"], "=")
		return strings.Trim(strings.TrimSpace(to), `'"`), found
	default:
		return "", false
	}
	ref, ok = at[name]
	return ref, ok && !hasWord(at["rel"], "nofollow")
}

// hasWord reports whether one of words is in a list divided by spaces or commas.
func hasWord(list string, words ...string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(list), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == '\f' }),
		func(w string) bool { return slices.Contains(words, w) })
}

package extract

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/net/html"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

var compareURLs = cmp.Comparer(func(a, b weburl.URL) bool { return a == b })

func FuzzHTML(f *testing.F) {
	pages, _ := filepath.Glob("testdata/*.html")
	for _, name := range pages {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body, "text/html")
	}
	for _, h := range hostile {
		f.Add([]byte(h.make(300)), h.contentType)
	}
	f.Add([]byte(`<script>`+strings.Repeat("x", longScript)+`<!-- <script></script> --></script><a href=1>`), "text/html; charset=utf-8")
	f.Add([]byte(`<title x="`+strings.Repeat("x", longTag)+`"><a href=2></title><a href=1>`), "text/html; charset=utf-8")
	f.Add([]byte(`<noscript a="`+strings.Repeat("x", longTag)+`"><a href=2></noscript><a href=1>`), "text/html; charset=utf-8")
	f.Add([]byte(`<template><a href=1></template><template shadowrootmode=open><a href=2></template>`), "application/xhtml+xml")

	self := mustParse(f, selfURL)
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		given := bytes.Clone(body)
		r := HTML(body, contentType, self, Options{Token: "orbweaver"})
		checkResult(t, r, self, MaxLinks)
		if !bytes.Equal(given, body) {
			t.Error("the body was changed")
		}
		// Reused scanners must give the same result.
		if diff := cmp.Diff(r, HTML(body, contentType, self, Options{Token: "orbweaver"}), compareURLs); diff != "" {
			t.Errorf("second time (-first +second):\n%s", diff)
		}
		Links(body, contentType, self, Options{})

		// The tokenizer alone gives the same result.
		d := newDocument(self, Options{Token: "orbweaver"})
		defer d.release()
		d.irregular = maxIrregular + 1
		if diff := cmp.Diff(r, d.html(body, contentType, strings.EqualFold(essence(contentType), typeXHTML)), compareURLs); diff != "" {
			t.Errorf("result (-ours +the tokenizer's):\n%s", diff)
		}

		// Starting and stopping the tokenizer in between must give the same result.
		if len(body) < maxToken && detect(body, contentType, false).enc == nil && !strings.HasPrefix(contentType, "app") {
			d := newDocument(self, Options{})
			defer d.release()
			d.open(body, false)
			d.read()
			var got []string
			others := make(map[string]bool) // first found in another element
			for _, ref := range d.refs {
				if ref.kind == actor.LinkAnchor {
					got = append(got, ref.href)
				} else {
					others[ref.href] = true
				}
			}
			want := slices.DeleteFunc(anchors(body), func(href string) bool { return others[href] })
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("hrefs (-one tokenizer +ours):\n%s", diff)
			}
		}
	})
}

// checkResult checks the properties of every result.
func checkResult(t *testing.T, r Result, self weburl.URL, limit int) {
	t.Helper()
	m := r.Meta
	for text, limit := range map[string]int{m.Title: maxTitle, m.H1: maxTitle, m.Description: maxDescription, m.Lang: maxLang, r.Directives: MaxDirectives} {
		if len(text) > limit || !utf8.ValidString(text) || strings.TrimSpace(text) != text {
			t.Errorf("text %q", text)
		}
	}
	if len(r.Links) > limit {
		t.Errorf("%d links", len(r.Links))
	}
	seen := make(map[weburl.URL]bool)
	for _, l := range r.Links {
		again, err := weburl.Parse(l.URL.String())
		if err != nil || again != l.URL {
			t.Errorf("link %q is not canonical: %q, %v", l.URL, again, err)
		}
		if l.URL == self || seen[l.URL] {
			t.Errorf("link %q is the page itself or there twice", l.URL)
		}
		seen[l.URL] = true
		if l.Priority < -5 || l.Priority > 5 || l.Modified < 0 {
			t.Errorf("link %q: priority %d, modified %d", l.URL, l.Priority, l.Modified)
		}
		if len(l.Anchor) > maxAnchor || !utf8.ValidString(l.Anchor) || strings.TrimSpace(l.Anchor) != l.Anchor {
			t.Errorf("anchor %q", l.Anchor)
		}
		if r.NoFollow && !l.NoFollow {
			t.Errorf("link %q may be followed from a page that says nofollow", l.URL)
		}
	}
}

// anchors is the oracle: the simplest way to find the hrefs of a and area elements.
func anchors(body []byte) []string {
	var hrefs []string
	templates := 0
	for z := html.NewTokenizer(bytes.NewReader(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))); ; {
		tt := z.Next()
		if tt == html.ErrorToken {
			return hrefs
		}
		tok := z.Token()
		attr := func(key string) (string, bool) {
			i := slices.IndexFunc(tok.Attr, func(a html.Attribute) bool { return a.Key == key })
			if i < 0 {
				return "", false
			}
			return tok.Attr[i].Val, true
		}
		switch {
		case tt == html.EndTagToken && tok.Data == "template":
			templates = max(0, templates-1)
		case tt != html.StartTagToken && tt != html.SelfClosingTagToken:
		case tok.Data == "noscript":
			z.NextIsNotRawText()
		case tok.Data == "template":
			if _, shadow := attr("shadowrootmode"); !shadow || templates > 0 {
				templates++
			}
		case (tok.Data == "a" || tok.Data == "area") && templates == 0:
			if href, ok := attr("href"); ok {
				h := string(withoutFragment(trim([]byte(href))))
				if !otherScheme([]byte(h)) && len(h) <= maxHref && !slices.Contains(hrefs, h) {
					hrefs = append(hrefs, h)
				}
			}
		}
	}
}

package main

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// home is where the sites of the tests are.
var home = &url.URL{Scheme: "http", Host: "127.0.0.1:8080", Path: "/index.html"}

func TestLinks(t *testing.T) {
	for _, c := range []struct{ doc, want string }{
		{`<a href=b.html><area href="/c?q#f"><A HREF='../d'>`, "/a/b.html /c?q /d"},
		{`<a name=x>`, ""},
		{`<a href="">`, "/a/page.html"},
		{`<iframe src=f1></iframe><frame src=f2><img src=no><script src=no></script>`, "/a/f1 /a/f2"},
		{`<link rel=next href=1><link rel="icon prev" href=2><link rel=canonical href=3><link rel=stylesheet href=no>`, "/a/1 /a/2 /a/3"},
		{`<link rel=alternate href=1><link rel=alternate type=application/pdf href=no><link rel="alternate stylesheet" href=no>`, "/a/1"},
		{`<link rel=alternate type=application/atom+xml href=feed><link rel=search href=no>`, "/a/feed"},
		{`<meta http-equiv=Refresh content="0; url='there'"><meta http-equiv=refresh content=5>`, "/a/there"},
		{`<a href=1><base href=/b/><base href=/c/><a href=2>`, "/b/1 /b/2"},
		{`<base href=sub/><a href=1>`, "/a/sub/1"},
		{`<!-- <a href=no> --><script>"<a href=no>"</script><style><a href=no></style><textarea><a href=no></textarea><title><a href=no></title>`, ""},
		{`<noscript><iframe src=yes></iframe></noscript>`, "/a/yes"},
		{`<template><a href=no></template><a href=yes>`, "/a/yes"},
		{`<a rel="external nofollow" href=no><a rel=external href=yes>`, "/a/yes"},
		{`<a href=no><meta name=robots content="noindex, nofollow">`, ""},
		{`<a href=yes><meta name=robots content=noindex>`, "/a/yes"},
		{"<a href=' a\nb.html\t'>", "/a/ab.html"},
		{`<a href="x&amp;y?a=1&amp;b=2">`, "/a/x&y?a=1&b=2"},
		{`<a href="%zz"><a href="http://[">`, ""},
		{`<a href=no`, ""},
	} {
		self := home.JoinPath("../a/page.html")
		var got []string
		for _, u := range links([]byte(c.doc), self) {
			if u.Host != home.Host || u.Fragment != "" {
				t.Errorf("%s leads to %s", c.doc, u)
			}
			got = append(got, u.RequestURI())
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("%s\ngives %s\nwant  %s", c.doc, got, c.want)
		}
	}
}

func FuzzLinks(f *testing.F) {
	f.Add("<a href=b.html><base href=sub/>")
	f.Add("<template><noscript><meta http-equiv=refresh content='0;url=x'>")
	f.Add("<a href='http://[::1%25a]:x/\x00'>")
	f.Fuzz(func(t *testing.T, doc string) {
		for _, u := range links([]byte(doc), home) {
			if !u.IsAbs() || u.Fragment != "" {
				t.Errorf("%q", u)
			}
		}
	})
}

// write makes files, by path.
func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWalk(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		"index.html":          `<a href="sub"><a href=/empty/><a href=gone.html><a href="notes.txt?v=1"><a href=http://elsewhere.test/x><a href="https://127.0.0.1:8080/y">`,
		"sub/index.html":      `<a href="../index.html#top"><a href="with%20space.html"><a href="with space.html"><a href=../notes.txt/><a href=/../../etc/passwd>`,
		"sub/with space.html": `<a href="/robots.txt"><a href="mailto:somebody">`,
		"notes.txt":           `<a href=unreachable.html>`,
		"unreachable.html":    ``,
		"robots.txt":          `Disallow: /`,
		"empty/.keep":         ``,
	})
	s := site{root: root, home: home}
	reached, err := s.walk()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for k, a := range reached {
		got[k] = a.status
		if (a.status == 200) != (a.file != "") {
			t.Errorf("%s: %+v", k, a)
		}
	}
	want := map[string]int{
		"/index.html": 200, "/sub": 301, "/sub/": 200, "/empty/": 403, "/gone.html": 404, "/notes.txt?v=1": 200,
		"/sub/with space.html": 200, "/notes.txt/": 404, "/etc/passwd": 404, "/robots.txt": 404,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if want := filepath.Join(root, "sub", "index.html"); reached["/sub/"].file != want {
		t.Errorf("/sub/ is %s, want %s", reached["/sub/"].file, want)
	}
}

func TestCopyTree(t *testing.T) {
	src, dst := filepath.Join(t.TempDir(), "src"), filepath.Join(t.TempDir(), "dst")
	write(t, src, map[string]string{"a.html": "a", "sub/b.html": "b"})
	for link, to := range map[string]string{"file": "a.html", "folder": "sub", "sub/around": "..", "nowhere": "gone"} {
		if err := os.Symlink(to, filepath.Join(src, link)); err != nil {
			t.Skip(err) // not every system lets everybody
		}
	}
	n, err := copyTree(dst, src)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, name := range []string{"a.html", "file", "sub/b.html", "folder/b.html"} {
		data, err := os.ReadFile(filepath.Join(dst, name))
		if err != nil {
			t.Error(err)
		}
		got[name] = string(data)
	}
	if d := cmp.Diff(map[string]string{"a.html": "a", "file": "a", "sub/b.html": "b", "folder/b.html": "b"}, got); d != "" || n != len(got) {
		t.Errorf("%d files; %s", n, d)
	}
	was, _ := os.Stat(filepath.Join(src, "a.html"))
	is, err := os.Stat(filepath.Join(dst, "a.html"))
	if err != nil || !is.ModTime().Equal(was.ModTime()) {
		t.Errorf("the copy has another time (%v)", err)
	}
	entries, err := os.ReadDir(dst)
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Type()&os.ModeSymlink != 0 }) {
		t.Errorf("%v %v", entries, err)
	}
}

func TestPick(t *testing.T) {
	site := func(n int) *trial {
		tr := trial{truth: map[string]answer{}, site: site{home: home}, corpus: &corpus{prefixes: map[string]owner{}, grams: map[string]owner{}}}
		for i := range n {
			letter := string(rune('a' + i))
			d := &document{key: "/" + letter, body: []string{"shared and " + strings.Repeat(letter, 9)}}
			tr.corpus.pages = append(tr.corpus.pages, d)
			tr.corpus.note(owner(i), d)
			tr.truth[d.key] = answer{status: 200, file: letter + ".html"}
		}
		tr.truth["/a?again"] = answer{status: 200, file: "a.html"}
		tr.truth["/style"] = answer{status: 200, file: "style.css"}
		return &tr
	}
	tr := site(16)
	got, err := tr.pick(10)
	seen := map[string]bool{}
	for _, l := range got {
		seen[l.page.key] = true
		if l.word != strings.Repeat(l.page.key[1:], 9) {
			t.Errorf("%s has the word %s", l.page.key, l.word)
		}
	}
	if err != nil || len(got) != 10 || len(seen) != 10 || seen["/a"] {
		t.Errorf("%v, %v", got, err)
	}
	if more, err := tr.pick(15); err != nil || !slices.Equal(more[:10], got) {
		t.Errorf("%v, %v; before %v", more, err, got)
	}
	if _, err := site(15).pick(10); err == nil {
		t.Error("fourteen pages are fifteen")
	}
}

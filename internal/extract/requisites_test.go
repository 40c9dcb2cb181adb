package extract

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/orbweaver/orbweaver/internal/actor"
)

// TestRequisites checks what pages and style sheets need to be displayed.
func TestRequisites(t *testing.T) {
	for _, tt := range []struct{ name, body, want string }{
		{"images", `<picture><source type=image/webp srcset="1 1x, 2 2x"><img src=3 srcset="3 1x,4 2x" alt=x></picture><IMG SRC="5">`, "1 2 3 4 5"},
		{"nothing to fetch", `<img src="data:image/png;base64,AA=="><img src=""><img><img src="#x"><imgs src=x><sources src=y>`, ""},
		{"inert", `<template><img src=z style="x:url(y)"><style>a{b:url(c)}</style></template><noscript><img src=n></noscript><!-- <img src=c> -->`, "n"},
		{"head", `<link rel="shortcut icon" href=1><link rel="alternate stylesheet" href=2><link rel=manifest href=3><link rel=apple-touch-icon href=4>
			<link rel=preload as=font href=5><link rel=modulepreload href=6><link rel=dns-prefetch href=x><link rel=next href=y>`, "1 2 3 4 5 6"},
		{"scripts", `<script src=1></script><script>var x = '<img src=x>'</script>`, "1"},
		{"media", `<video src=1 poster=2><source src=3><track src=4></video><audio src=5></audio><embed src=6><object data=7></object><input type=image src=8><input src=x>`, "2 1 3 4 5 6 7 8"},
		{"backgrounds", `<body background=1><table background=2><td style="background: url('3')"><p style='x: url( "4" )' class=x><p style="y: url(&quot;5&quot;)">`, "1 2 3 4 5"},
		{"drawings", `<svg><image href=1 /><image xlink:href=2 /><use href="3#part"/><use href="#part"/></svg>`, "1 2 3"},
		{"frames are links", `<iframe src=x></iframe><frame src=y>`, ""},
		{"style element", `<style>@import "1"; @import url(2) print; a { b: url(3) }</style>`, "1 2 3"},
		{"base", `<base href="/dir/"><img src=1><style>a{b:url(2)}</style>`, "1 2"},
		{"style sheet", `@charset "utf-8"; @namespace svg url(x); @import'1'; /* url(x) "*/ a::after { content: "url(x)"; b: URL( 2 ) } @font-face { src: url("3") format("woff2"), url('4') }`, "1 2 3 4"},
		{"escapes", `a { b: url(1\)); c: url("2\22 x"); d: url(3\20 4); e: url("5\
6") }`, "1) 2%22x 3%204 56"},
		{"broken style sheet", "a { b: url(1; c: 'open\n; d: url(2) } /* url(3)", "1;%20c:%20'open;%20d:%20url(2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			contentType := "text/html"
			if strings.Contains(tt.name, "sheet") || tt.name == "escapes" {
				contentType = "text/css"
			}
			self := mustParse(t, selfURL)
			var got []string
			for _, l := range Links([]byte(tt.body), contentType, self, Options{Requisites: true}).Links {
				if l.Requisite != (l.Kind == actor.LinkRequisite) || l.NoFollow {
					t.Errorf("%+v", l)
				}
				if l.Requisite {
					got = append(got, strings.TrimPrefix(l.URL.String(), "http://example.com/dir/"))
				}
			}
			if diff := cmp.Diff(strings.Fields(tt.want), got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("requisites (-want +got):\n%s", diff)
			}
			for _, l := range Links([]byte(tt.body), contentType, self, Options{}).Links {
				if l.Requisite {
					t.Errorf("without the option: %+v", l)
				}
			}
		})
	}
}

// TestRoles checks URLs that are links and requisites of one page.
func TestRoles(t *testing.T) {
	const body = `<meta name=robots content=nofollow><img src=1><a href=1>One</a><a href=2 rel=nofollow>Two</a><img src=/dir/2><img src=3>`
	want := map[string]actor.Link{
		"1": {Kind: actor.LinkAnchor, Requisite: true, NoFollow: true, Anchor: "One"},
		"2": {Kind: actor.LinkAnchor, Requisite: true, NoFollow: true, Anchor: "Two"},
		"3": {Kind: actor.LinkRequisite, Requisite: true},
	}
	links := Links([]byte(body), "text/html", mustParse(t, selfURL), Options{Requisites: true}).Links
	for _, l := range links {
		w := want[strings.TrimPrefix(l.URL.String(), "http://example.com/dir/")]
		w.URL = l.URL
		if diff := cmp.Diff(w, l, compareURLs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", l.URL, diff)
		}
	}
	if len(links) != len(want) {
		t.Errorf("%d links", len(links))
	}
}

// TestMostRequisites checks that requisites leave room for links, and links for requisites.
func TestMostRequisites(t *testing.T) {
	var b strings.Builder
	for i := range MaxLinks + 5 {
		b.WriteString("<img src=i" + strconv.Itoa(i) + "><a href=" + strconv.Itoa(i) + ">")
	}
	n := map[bool]int{}
	for _, l := range Links([]byte(b.String()), "text/html", mustParse(t, selfURL), Options{Requisites: true}).Links {
		n[l.Requisite]++
	}
	if n[false] != MaxLinks || n[true] != MaxRequisites {
		t.Errorf("%d links and %d requisites", n[false], n[true])
	}
}

// FuzzCSS checks that any style sheet gives few canonical URLs, in linear time.
func FuzzCSS(f *testing.F) {
	for _, s := range []string{"@import 'a'", "url(", "url(\\", "@import \"\\", "/*", "a{b:url(c\\0000", "@namespace", "url('a\nb')", "\\"} {
		f.Add([]byte(s))
	}
	self := mustParse(f, selfURL)
	f.Fuzz(func(t *testing.T, css []byte) {
		r := Links(css, "text/css", self, Options{Requisites: true})
		checkResult(t, r, self, MaxRequisites)
		rest := 0
		for ref := range cssURLs(css) {
			rest += len(ref)
		}
		if rest > 4*len(css) {
			t.Errorf("URLs of %d bytes from %d", rest, len(css))
		}
	})
}

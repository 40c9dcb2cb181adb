package extract

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSrcset(t *testing.T) {
	for _, tt := range []struct {
		srcset string
		want   []string
	}{
		{"", nil},
		{" , ,", nil},
		{"a.jpg", []string{"a.jpg"}},
		{"a.jpg, b.jpg 2x", []string{"a.jpg", "b.jpg"}},
		{" a.jpg  100w ,\n\tb.jpg 200w,c.jpg", []string{"a.jpg", "b.jpg", "c.jpg"}},
		{"a,b.jpg 1x,c.jpg", []string{"a,b.jpg", "c.jpg"}},
		{"a.jpg,b.jpg", []string{"a.jpg,b.jpg"}},
		{"a.jpg,,, b.jpg", []string{"a.jpg", "b.jpg"}},
		{"data:image/png;base64,AA== 1x, b.jpg 2x", []string{"data:image/png;base64,AA==", "b.jpg"}},
		{"a.jpg x(1, 2) 3w, b.jpg", []string{"a.jpg", "b.jpg"}},
		{"a.jpg x(1, b.jpg", []string{"a.jpg"}},
		{"a.jpg x), b.jpg", []string{"a.jpg", "b.jpg"}},
	} {
		var got []string
		for u := range images([]byte(tt.srcset)) {
			got = append(got, string(u))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.srcset, got, tt.want)
		}
	}
}

func TestImages(t *testing.T) {
	const body = `<picture><source type=image/webp srcset="a.webp 1x, b.webp 2x"><img src=a.jpg srcset="a.jpg 1x,b.jpg 2x" alt=x></picture>` +
		`<IMG SRC="data:image/png;base64,AA=="><img src=""><img><img src="//cdn.example/é.png"><imgs src=x><sources src=y>` +
		`<template><img src=z></template><noscript><img src=n.jpg></noscript><a href=1><img src=c.jpg>One</a>`
	want := []string{"image http://example.com/dir/a.webp", "image http://example.com/dir/b.webp", "image http://example.com/dir/a.jpg", "image http://example.com/dir/b.jpg",
		"image http://cdn.example/%C3%A9.png", "image http://example.com/dir/n.jpg", `anchor http://example.com/dir/1 "One"`, "image http://example.com/dir/c.jpg"}
	self := mustParse(t, selfURL)
	if diff := cmp.Diff(want, showAll(Links([]byte(body), "text/html", self, Options{Srcset: true}).Links)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[6:7], showAll(Links([]byte(body), "text/html", self, Options{}).Links), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("links without images (-want +got):\n%s", diff)
	}
}

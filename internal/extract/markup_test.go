package extract

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var mixes = flag.Int("mixes", 5_000, "number of mixed pages")

// TestRegular compares the scanner with the tokenizer on pages mixed from all relevant markup.
func TestRegular(t *testing.T) {
	pieces := []string{
		"<", ">", "/", "=", "'", `"`, " ", "\n", "\f", "\r", "\x00", "&", ";", "-", "!", "?", "x", "é", "<!", "</", "/>", "\">", "'>",
		"<a ", "<a href=1>", "<a href='2'>", `<A HREF="3" `, "<area/", "</a>", "</A x='>'>", "<a/href=4/>", "<a href href=5>", "<a =href=6 ==7>", "href=8",
		`<a href="?a=1&amp;b=2&c=3">`, "<a href=?&copy=1&copy;&copy&notit;>", "<a href='&#50;&#x33;&#;&#1x;&semi;&'>", "<a href=&NotEqualTilde;>", "rel=nofollow ", "rel='a\rb' ",
		"<base href=/b/>", "<iframe src=9>", "</iframe>", "<frame src=10>", "<img src=11 srcset='12 1x, 13'>", "<link rel=next href=14>", "<link rel='stylesheet next' href=16>", "<td background=17 style='x:url(18)'>", "<style>@import '19';", "<a href=20 style=\"x: url(&quot;21\\29&quot;)\">", "<meta name=robots content=nofollow>",
		"<meta http-equiv=refresh content='0;url=15'>", "<noscript>", "</noscript>", "<plaintext>", "<xmp>", "</xmp>", "<svg>", "<svg/>", "<svg x=/>", "<svg x=1 x=/>", "</svg>",
		"<script>", "<script x>", "</script>", "</script ", "<style>", "</style>", "<textarea>", "</textarea>", "<title>", "</title>", "</titlex>", "<title/>",
		"<template>", "<template shadowrootmode=open>", "</template>", "<!--", "-->", "--!>", "--", "->", "<!-->", "<!--->", "<!doctype html>", "<!>", "<?x?>", "<>", "</>", "</ x>", "<![CDATA[", "]]>",
		strings.Repeat("y", longScript), "<p x='" + strings.Repeat("z", longTag),
	}
	self := mustParse(t, selfURL)
	opt := Options{Token: "orbweaver", Requisites: true}
	random := rand.New(rand.NewPCG(1, 2))
	links, irregular := 0, 0
	for range *mixes {
		var b strings.Builder
		for range 1 + random.IntN(20) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		body := []byte(b.String())
		ours, theirs := newDocument(self, opt), newDocument(self, opt)
		theirs.irregular = maxIrregular + 1
		got, want := ours.html(body, "", false), theirs.html(body, "", false)
		links, irregular = links+len(got.Links), irregular+min(ours.irregular, 1)
		if diff := cmp.Diff(want, got, compareURLs); diff != "" {
			t.Fatalf("%q (-tokenizer +ours):\n%s", body, diff)
		}
		ours.release()
		theirs.release()
	}
	t.Logf("%d links; %d of %d pages had irregular tokens", links, irregular, *mixes)
	if links < *mixes/2 || irregular == *mixes {
		t.Error("the mix tells nothing")
	}
}

// TestMostIsRegular checks that typical pages do not need the tokenizer.
func TestMostIsRegular(t *testing.T) {
	for _, p := range benchmarkPages {
		d := newDocument(mustParse(t, selfURL), Options{})
		d.html(p.body, "text/html", false)
		if d.irregular != 0 {
			t.Errorf("%s: %d irregular tokens", p.name, d.irregular)
		}
		d.release()
	}
}

package extract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
)

// TestMeta reads what pages say about themselves.
func TestMeta(t *testing.T) {
	const self = "http://example.com/dir/page.html?x=1"
	var many strings.Builder
	for i := range 2 * maxAlternates {
		fmt.Fprintf(&many, `<link rel=alternate hreflang=l%d href=/%d>`, i, i)
	}
	for name, tt := range map[string]struct {
		body, contentType string
		want              blobschema.Meta
		directives        string
	}{
		"all": {body: `<!doctype html><html lang=" en-GB "><head><title> A &amp;
			B </title><title>second</title><meta name=Description content="x  &lt;y"><meta name=description content=second>
			<link rel=canonical href="../c#f"><link rel=canonical href=second>
			<link rel=alternate hreflang=de href="/de"><link rel=alternate type=application/rss+xml href=/feed>
			<meta name=robots content="noindex, max-snippet:3"><meta name=googlebot content=nofollow></head>
			<body><h1><img></h1><h1>One <b>and</b> <a href=/a>two</a></h1>more<h1>second</h1>`,
			want: blobschema.Meta{Title: "A & B", Description: "x <y", Canonical: "http://example.com/c", Lang: "en-GB", H1: "One and two",
				Hreflang: []blobschema.Alternate{{Lang: "de", URL: "http://example.com/de"}}, Charset: "utf-8"},
			directives: "noindex, max-snippet:3"},
		"charset": {body: "<title>Caf\xe9</title><h1>\xe9t\xe9</h1><meta name=description content='\xe9'>", contentType: "text/html; charset=latin1",
			want: blobschema.Meta{Title: "Café", H1: "été", Description: "é", Charset: "windows-1252"}},
		"self":            {body: "<link rel=canonical href='" + self + "'>", want: blobschema.Meta{Canonical: self, Charset: "utf-8"}},
		"base":            {body: "<base href=/b/><link rel=canonical href=c>", want: blobschema.Meta{Canonical: "http://example.com/b/c", Charset: "utf-8"}},
		"no URL":          {body: "<link rel=canonical href='http://['>", want: blobschema.Meta{Charset: "utf-8"}},
		"template":        {body: "<template><title>no</title><h1>no</h1></template><h1>yes", want: blobschema.Meta{H1: "yes", Charset: "utf-8"}},
		"several of them": {body: "<meta name=robots content=a><meta name=robots content=b>", want: blobschema.Meta{Charset: "utf-8"}, directives: "a, b"},
		"long": {body: "<title>" + strings.Repeat("é", 5000) + "</title><h1>" + strings.Repeat("<b>x</b> ", 500) + "</h1><html lang=" + strings.Repeat("x", 99) +
			"><meta name=description content='" + strings.Repeat("d", 9999) + "'><meta name=robots content='" + strings.Repeat("r", 9999) + "'>",
			want: blobschema.Meta{Title: strings.Repeat("é", 150), H1: strings.TrimSuffix(strings.Repeat("x ", 150), " "), Lang: strings.Repeat("x", 35),
				Description: strings.Repeat("d", 500), Charset: "utf-8"}, directives: strings.Repeat("r", 200)},
	} {
		t.Run(name, func(t *testing.T) {
			got := Links([]byte(tt.body), "text/html; "+tt.contentType, mustParse(t, self), Options{Token: "orbweaver"})
			if d := cmp.Diff(tt.want, got.Meta); d != "" || got.Directives != tt.directives {
				t.Errorf("directives %q, meta (-want +got):\n%s", got.Directives, d)
			}
		})
	}
	if n := len(Links([]byte(many.String()), "text/html", mustParse(t, self), Options{}).Meta.Hreflang); n != maxAlternates {
		t.Errorf("%d translations", n)
	}
}

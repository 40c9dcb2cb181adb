package extract

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/net/html"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// addXML adds the documents of testdata and the hostile ones as seeds.
func addXML(f *testing.F, contentType string, hostile []hostileXML) {
	docs, _ := filepath.Glob("testdata/*.xml")
	for _, name := range docs {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body, contentType)
	}
	for _, h := range hostile {
		f.Add([]byte(h.make(300)), contentType)
	}
}

func FuzzSitemap(f *testing.F) {
	addXML(f, "application/xml", hostileSitemaps)
	f.Add([]byte("http://example.com/a\r\nhttp://example.com/b"), "text/plain; charset=gbk")
	f.Add([]byte(zipped("<urlset><url><loc>/a</loc></url>")), "application/x-gzip")
	self := mustParse(f, selfURL)
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		r := checkLinks(t, body, contentType, self, Options{Sitemap: true})
		// The gzip file of the body gives the same links, unless the type says that the body is a gzip file.
		if !gzipped(body) && len(body) < DecodedLimit(0, MaxDecoded) && !gzipType(strings.ToLower(essence(contentType))) {
			again := Links([]byte(zipped(string(body))), contentType, self, Options{Sitemap: true})
			if diff := cmp.Diff(r, again, compareURLs); diff != "" {
				t.Errorf("zipped (-plain +zipped):\n%s", diff)
			}
		}
	})
}

func FuzzFeed(f *testing.F) {
	addXML(f, "application/rss+xml", hostileFeeds)
	f.Add([]byte(`<rss><item><title>x</title><link>/a</link><guid>http://example.com/b</guid></item>`), "")
	f.Add([]byte(`<feed xml:base="/x/"><entry xml:base="y"><link href="z" rel="alternate"/></entry></feed>`), "text/html")
	self := mustParse(f, selfURL)
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		checkLinks(t, body, contentType, self, Options{Requisites: true})
	})
}

// checkLinks checks the properties of Links for any input.
func checkLinks(t *testing.T, body []byte, contentType string, self weburl.URL, opt Options) Result {
	t.Helper()
	given := bytes.Clone(body)
	r := Links(body, contentType, self, opt)
	checkResult(t, r, self, MaxListed)
	if !bytes.Equal(given, body) {
		t.Error("the body was changed")
	}
	if diff := cmp.Diff(r, Links(body, contentType, self, opt), compareURLs); diff != "" {
		t.Errorf("second time (-first +second):\n%s", diff)
	}
	head := body[:min(len(body), 512)]
	if (len(r.Links) > 0 || Wanted(contentType, nil, opt)) && !Wanted(contentType, head, opt) {
		t.Errorf("%d links of an unwanted body", len(r.Links))
	}
	return r
}

// FuzzXML compares the scanner with encoding/xml on all well-formed documents.
func FuzzXML(f *testing.F) {
	addXML(f, "", append(hostileSitemaps, hostileFeeds...))
	f.Add([]byte(`<a b="c>d" e='"'><f:g/><![CDATA[<h>]]>i&amp;j<!-- k> --></a >`), "")
	f.Fuzz(func(t *testing.T, body []byte, _ string) {
		want, ok := xmlTokens(body)
		if !ok {
			return
		}
		var got []string
		var s xmlScanner
		s.open(body, true)
		for tt := s.next(); tt != html.ErrorToken; tt = s.next() {
			name := string(s.name)
			if s.prefix != nil {
				name = string(s.prefix) + ":" + name
			}
			switch {
			case tt == html.EndTagToken:
				got = append(got, ">"+name)
			case tt != html.TextToken:
				got = append(got, "<"+name+string(appendCharacters(nil, tagAttribute(s.src, "href"))))
				if s.closed {
					got = append(got, ">"+name)
				}
			case s.section:
				got = appendText(got, string(s.text))
			default:
				got = appendText(got, string(appendCharacters(nil, s.text)))
			}
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("tokens (-encoding/xml +ours):\n%s", diff)
		}
	})
}

// xmlTokens reads with encoding/xml. ok is false if the document is not well-formed, or if the two differ on purpose:
// declarations, instructions that contain a bracket, references to control characters, names that do not begin with an
// ASCII letter, and comments that end at once in HTML.
func xmlTokens(body []byte) (tokens []string, ok bool) {
	if bytes.Contains(body, []byte("&#")) || bytes.ContainsRune(body, '\r') || bytes.Contains(body, []byte("<!-->")) {
		return nil, false
	}
	d := xml.NewDecoder(bytes.NewReader(body))
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	name := func(n xml.Name) string {
		if n.Space != "" {
			return n.Space + ":" + n.Local
		}
		return n.Local
	}
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return tokens, true
		}
		if err != nil {
			return nil, false
		}
		switch token := token.(type) {
		case xml.StartElement:
			if !letter(name(token.Name)[0]) {
				return nil, false
			}
			href := ""
			if i := slices.IndexFunc(token.Attr, func(a xml.Attr) bool { return strings.EqualFold(name(a.Name), "href") }); i >= 0 {
				href = token.Attr[i].Value
			}
			tokens = append(tokens, "<"+name(token.Name)+href)
		case xml.EndElement:
			tokens = append(tokens, ">"+name(token.Name))
		case xml.CharData:
			tokens = appendText(tokens, string(token))
		case xml.Directive:
			return nil, false
		case xml.ProcInst:
			if bytes.ContainsRune(token.Inst, '>') {
				return nil, false
			}
		}
	}
}

// appendText appends text to the tokens, joined with preceding text.
func appendText(tokens []string, text string) []string {
	switch n := len(tokens); {
	case text == "":
		return tokens
	case n > 0 && tokens[n-1][0] == '"':
		tokens[n-1] += text
		return tokens
	}
	return append(tokens, `"`+text)
}

func FuzzLinkHeader(f *testing.F) {
	f.Add(`</c>; rel=canonical, <n>;rel="next" , <?p>; rel = "PREV"`)
	f.Add(`</a,b;c>; title="x, <y>; rel=\"canonical\""; rel=next; anchor="#x", </f>; rel=alternate; type="application/atom+xml"`)
	f.Add(strings.Repeat("</a>; rel=next,", 30))
	f.Add(strings.Repeat(`<;"\`, 30))
	self := mustParse(f, selfURL)
	f.Fuzz(func(t *testing.T, value string) {
		links := AddLinkHeader(nil, []string{value}, self)
		checkResult(t, Result{Links: links}, self, maxHeaderLinks)
		for _, l := range links {
			if l.Kind != actor.LinkHeader && l.Kind != actor.LinkFeed {
				t.Errorf("link %q of kind %d", l.URL, l.Kind)
			}
		}
		if len(links) < maxHeaderLinks {
			if diff := cmp.Diff(links, AddLinkHeader(nil, []string{value, "", value}, self), compareURLs); diff != "" {
				t.Errorf("twice the same (-once +twice):\n%s", diff)
			}
		}
	})
}

func FuzzSrcset(f *testing.F) {
	f.Add([]byte("a.jpg 100w, b.jpg 200w"))
	f.Add([]byte("a,b.jpg x(1, 2),c.jpg,,,"))
	f.Add([]byte("data:image/png;base64,AA== 1x, b.jpg 2x"))
	f.Fuzz(func(t *testing.T, srcset []byte) {
		rest := srcset
		for url := range images(srcset) {
			// In order, each as written between separators.
			at := bytes.Index(rest, url)
			if at < 0 {
				t.Fatalf("%q: no %q", srcset, url)
			}
			rest = rest[at+len(url):]
			if len(url) == 0 || bytes.ContainsAny(url, " \t\n\f\r") || url[0] == ',' || url[len(url)-1] == ',' {
				t.Errorf("%q: image %q", srcset, url)
			}
		}
	})
}

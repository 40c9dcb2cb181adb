package fetch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/extract"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

var started = time.Date(2024, 2, 29, 12, 30, 45, 123456789, time.UTC)

func fields(pairs ...string) (out []warc.HeaderField) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, warc.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return out
}

// made returns an answer to a request for example.org.
func made(status int, header []warc.HeaderField, body string) Response {
	return Response{
		Status: status, Reason: "Reason", Proto: "HTTP/1.1", Header: header, Body: []byte(body),
		RequestHead: []byte("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"), Addr: "192.0.2.7",
		Started: started, Ended: started.Add(time.Second),
	}
}

func testScratch() *Scratch { return NewScratch(Config{Token: "orbtest", MaxBody: 1 << 20}) }

var sameURL = cmp.Comparer(func(a, b weburl.URL) bool { return a == b })

// TestAssembleGolden pins every byte of the records and every field of the page.
func TestAssembleGolden(t *testing.T) {
	req := actor.Request{URL: parse(t, "http://example.org/a?q=1"), Depth: 3, Generation: 2, Attempt: 1}
	resp := made(200, fields(
		"Content-Type", "Text/HTML; charset=UTF-8",
		"Etag", `"abc"`,
		"Last-Modified", "Thu, 29 Feb 2024 00:00:00 GMT",
		"Transfer-Encoding", "chunked",
	), `<title>T</title><a href="/x">X</a><a href="y" rel="nofollow">Y</a>`)
	resp.Proto = "HTTP/2.0"
	out := Assemble(testScratch(), req, resp)

	request, response := records(t, out)
	out.Page.Length = 0 // depends on the compressor; records has checked it
	shown, err := json.MarshalIndent(out.Page, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got := request + "\n=====\n" + response + "\n=====\n" + string(shown) + "\n"
	const file = "testdata/golden.txt"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("records and page (-want +got)\n%s", diff)
	}
	links := []actor.Link{
		{URL: parse(t, "http://example.org/x"), Anchor: "X"},
		{URL: parse(t, "http://example.org/y"), Anchor: "Y", NoFollow: true},
	}
	if diff := cmp.Diff(links, out.Links, sameURL); diff != "" {
		t.Errorf("links (-want +got)\n%s", diff)
	}
	if !out.Started.Equal(started) || !out.Ended.Equal(started.Add(time.Second)) {
		t.Errorf("stamps %v %v", out.Started, out.Ended)
	}
}

func TestAssembleStatus(t *testing.T) {
	for _, tt := range []struct {
		status    int
		location  string
		want      blobschema.Outcome
		temporary bool
	}{
		{0, "", blobschema.OutcomeServerError, true},
		{99, "", blobschema.OutcomeServerError, true},
		{200, "", blobschema.OutcomeOK, false},
		{204, "", blobschema.OutcomeOK, false},
		{201, "/elsewhere", blobschema.OutcomeOK, false},
		{299, "", blobschema.OutcomeOK, false},
		{300, "/x", blobschema.OutcomeRedirect, false},
		{301, "/x", blobschema.OutcomeRedirect, false},
		{302, "https://example.net/", blobschema.OutcomeRedirect, false},
		{303, "?q", blobschema.OutcomeRedirect, false},
		{307, "//example.net/", blobschema.OutcomeRedirect, false},
		{308, "/x", blobschema.OutcomeRedirect, false},
		{301, "", blobschema.OutcomeClientError, false},
		{301, "mailto:a@example.org", blobschema.OutcomeClientError, false},
		{301, "javascript:alert(1)", blobschema.OutcomeClientError, false},
		{301, "http://", blobschema.OutcomeClientError, false},
		{300, "", blobschema.OutcomeClientError, false},
		{304, "/x", blobschema.OutcomeClientError, false},
		{305, "/x", blobschema.OutcomeClientError, false},
		{399, "/x", blobschema.OutcomeClientError, false},
		{400, "", blobschema.OutcomeClientError, false},
		{404, "/x", blobschema.OutcomeClientError, false},
		{408, "", blobschema.OutcomeClientError, true},
		{410, "", blobschema.OutcomeClientError, false},
		{425, "", blobschema.OutcomeClientError, true},
		{429, "", blobschema.OutcomeClientError, true},
		{500, "", blobschema.OutcomeServerError, true},
		{503, "", blobschema.OutcomeServerError, true},
		{600, "", blobschema.OutcomeServerError, true},
		{999, "", blobschema.OutcomeServerError, true},
	} {
		t.Run(fmt.Sprint(tt.status, tt.location), func(t *testing.T) {
			header := fields("Content-Type", "text/html", "Location", tt.location)
			out := Assemble(testScratch(), ask(t, "http://example.org/"), made(tt.status, header, `<a href="/in-body">`))
			wantOutcome(t, out, tt.want)
			if out.Temporary != tt.temporary {
				t.Errorf("temporary %v", out.Temporary)
			}
			if int(out.Page.Status) != tt.status {
				t.Errorf("status %d", out.Page.Status)
			}
			var want []actor.Link
			switch tt.want {
			case blobschema.OutcomeOK:
				want = []actor.Link{{URL: parse(t, "http://example.org/in-body")}}
			case blobschema.OutcomeRedirect:
				target, err := parse(t, "http://example.org/").Resolve(tt.location)
				if err != nil {
					t.Fatal(err)
				}
				want = []actor.Link{{URL: target, Kind: actor.LinkRedirect}}
				if out.Page.Redirect != target.String() {
					t.Errorf("redirect to %q", out.Page.Redirect)
				}
			}
			if diff := cmp.Diff(want, out.Links, sameURL, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("links (-want +got)\n%s", diff)
			}
			if int(out.Page.Links) != len(want) {
				t.Errorf("%d links counted", out.Page.Links)
			}
			if _, response := records(t, out); payload(t, response) != `<a href="/in-body">` {
				t.Errorf("stored %q", response)
			}
		})
	}
}

func TestAssembleTruncated(t *testing.T) {
	for reason, want := range map[string]blobschema.Outcome{
		"":                   blobschema.OutcomeOK,
		warc.TruncatedLength: blobschema.OutcomeOK,
		warc.TruncatedTime:   blobschema.OutcomeOK,
		"disconnect":         blobschema.OutcomeCut,
	} {
		resp := made(200, fields("Content-Type", "text/html"), `<a href="/x">x</a>`)
		resp.Truncated = reason
		out := Assemble(testScratch(), ask(t, "http://example.org/"), resp)
		wantOutcome(t, out, want)
		if want != blobschema.OutcomeOK {
			if len(out.Record) != 0 || len(out.Links) != 0 || out.Page.Digest != "" || !out.Temporary {
				t.Errorf("%s: something is kept: %+v", reason, out)
			}
			continue
		}
		_, response := records(t, out)
		if marked := strings.Contains(response, "\r\nWARC-Truncated: "+reason+"\r\n"); marked != (reason != "") || out.Page.Truncated != reason {
			t.Errorf("%q: record marked %v, page %q", reason, marked, out.Page.Truncated)
		}
		if len(out.Links) != 1 {
			t.Errorf("%q: links %v", reason, out.Links)
		}
	}
	resp := made(200, nil, "User-agent: *\nDisallow: /")
	resp.Truncated = warc.TruncatedTime
	out := Assemble(testScratch(), actor.Request{URL: parse(t, "http://example.org/robots.txt"), Robots: true}, resp)
	if wantOutcome(t, out, blobschema.OutcomeTimeout); len(out.Record)+len(out.Body) != 0 {
		t.Errorf("of a robots.txt that is not whole something is kept: %+v", out)
	}
}

// TestAssembleContent checks which bodies are parsed, and how.
func TestAssembleContent(t *testing.T) {
	const html = `<!DOCTYPE html><a href="/x">x</a>`
	bomb := string(gzipped(html + strings.Repeat(" ", 8<<20) + `<a href="/late">`))
	cut := string(gzipped(html + strings.Repeat("<p>some text, and <b>more</b>", 1000)))
	for _, tt := range []struct {
		name   string
		header []warc.HeaderField
		body   string
		links  int
	}{
		{"html", fields("Content-Type", "text/html"), html, 1},
		{"xhtml", fields("Content-Type", "application/xhtml+xml; charset=utf-8"), html, 1},
		{"no type", nil, html, 1},
		{"no type, gzip", fields("Content-Encoding", "gzip"), string(gzipped(html)), 1},
		{"no type, not html", nil, "just <a href=/x>", 0},
		{"plain", fields("Content-Type", "text/plain"), html, 0},
		{"image", fields("Content-Type", "image/png"), html, 0},
		{"gzip", fields("Content-Encoding", "gzip", "Content-Type", "text/html"), string(gzipped(html)), 1},
		{"x-gzip", fields("Content-Encoding", "X-GZIP", "Content-Type", "text/html"), string(gzipped(html)), 1},
		{"two members", fields("Content-Encoding", "gzip", "Content-Type", "text/html"), string(gzipped(html)) + string(gzipped(`<a href="/y">`)), 2},
		{"identity", fields("Content-Encoding", "identity", "Content-Type", "text/html"), html, 1},
		{"gzip that is plain", fields("Content-Encoding", "gzip", "Content-Type", "text/html"), html, 1},
		{"gzip cut off", fields("Content-Encoding", "gzip", "Content-Type", "text/html"), cut[:len(cut)-20], 1},
		{"gzip damaged", fields("Content-Encoding", "gzip", "Content-Type", "text/html"), "\x1f\x8b\x08\x00 nothing", 0},
		{"gzip twice", fields("Content-Encoding", "gzip", "Content-Encoding", "gzip", "Content-Type", "text/html"), string(gzipped(html)), 0},
		{"brotli", fields("Content-Encoding", "br", "Content-Type", "text/html"), string(encode(t, "br", html)), 1},
		{"brotli that is plain", fields("Content-Encoding", "br", "Content-Type", "text/html"), html, 0},
		{"no type, zstd", fields("Content-Encoding", "zstd"), string(encode(t, "zstd", html)), 1},
		{"gzip, then brotli", fields("Content-Encoding", "gzip, br", "Content-Type", "text/html"), string(encode(t, "br", string(gzipped(html)))), 0},
		{"bomb", fields("Content-Encoding", "gzip", "Content-Type", "text/html"), bomb, 1},
		{"empty", fields("Content-Type", "text/html"), "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := testScratch()
			out := Assemble(s, ask(t, "http://example.org/"), made(200, tt.header, tt.body))
			wantOutcome(t, out, blobschema.OutcomeOK)
			if len(out.Links) != tt.links || int(out.Page.Links) != tt.links {
				t.Errorf("links %v, counted %d", out.Links, out.Page.Links)
			}
			if _, response := records(t, out); payload(t, response) != tt.body {
				t.Error("the stored body is not the one received")
			}
			if out.Page.Digest != warc.PayloadDigest([]byte(tt.body)) || out.Page.BodyBytes != int64(len(tt.body)) {
				t.Errorf("digest %s of %d bytes", out.Page.Digest, out.Page.BodyBytes)
			}
		})
	}
}

// TestAssembleOptions checks that options of the request and the configuration reach package extract.
func TestAssembleOptions(t *testing.T) {
	const html = `<img srcset="/a.png 1x, /b.png 2x"><a href="/x">`
	for requisites, want := range map[bool]int{false: 1, true: 3} {
		s := NewScratch(Config{Token: "orbtest", Requisites: requisites})
		out := Assemble(s, ask(t, "http://example.org/"), made(200, fields("Content-Type", "text/html"), html))
		if len(out.Links) != want {
			t.Errorf("requisites %v: links %v", requisites, out.Links)
		}
	}
	const list = "http://example.org/1\nhttp://example.org/2\n"
	for sitemap, want := range map[bool]int{false: 0, true: 2} {
		for _, coding := range codings {
			req := ask(t, "http://example.org/sitemap.txt")
			req.Sitemap = sitemap
			h := fields("Content-Type", "text/plain", "Content-Encoding", coding)
			out := Assemble(testScratch(), req, made(200, h, string(encode(t, coding, list))))
			if len(out.Links) != want {
				t.Errorf("sitemap %v, %q: links %v", sitemap, coding, out.Links)
			}
		}
	}
	xml := `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://example.org/1</loc></url></urlset>`
	for _, body := range []string{xml, string(gzipped(xml))} { // a gzip file, without a coding
		req := ask(t, "http://example.org/sitemap.xml.gz")
		req.Sitemap = true
		out := Assemble(testScratch(), req, made(200, fields("Content-Type", "application/octet-stream"), body))
		if len(out.Links) != 1 || out.Links[0].Kind != actor.LinkListed {
			t.Errorf("links %+v", out.Links)
		}
	}
}

func TestDecodedLimit(t *testing.T) {
	for _, tt := range []struct {
		maxBody int64
		n, want int
	}{
		{16 << 20, 100, 1 << 20},
		{16 << 20, 100_000, 100_000 * 128},
		{16 << 20, 16 << 20, extract.MaxDecoded},
		{32 << 20, 32 << 20, extract.MaxDecoded},
		{1 << 20, 1 << 20, 4 << 20},
		{1 << 10, 1 << 10, 4 << 10},
	} {
		s := NewScratch(Config{MaxBody: tt.maxBody})
		if got := extract.DecodedLimit(tt.n, s.maxBody); got != tt.want {
			t.Errorf("limit for %d of at most %d bytes: %d, want %d", tt.n, tt.maxBody, got, tt.want)
		}
	}
}

func TestAssembleRobotsDirectives(t *testing.T) {
	const body = `<meta name="robots" content="%s"><a href="/x">`
	for _, tt := range []struct {
		tags              []string
		meta              string
		noIndex, noFollow bool
	}{
		{nil, "", false, false},
		{[]string{"noindex"}, "", true, false},
		{[]string{"nofollow"}, "", false, true},
		{[]string{"none"}, "", true, true},
		{[]string{"otherbot: noindex", "orbtest: nofollow"}, "", false, true},
		{[]string{"noindex"}, "nofollow", true, true},
		{nil, "noindex", true, false},
	} {
		var header []warc.HeaderField
		header = append(header, fields("Content-Type", "text/html")...)
		for _, tag := range tt.tags {
			header = append(header, fields("X-Robots-Tag", tag)...)
		}
		out := Assemble(testScratch(), ask(t, "http://example.org/"), made(200, header, fmt.Sprintf(body, tt.meta)))
		if len(out.Links) != 1 || out.Links[0].NoFollow != tt.noFollow || out.Page.NoIndex != tt.noIndex {
			t.Errorf("%v %q: noindex %v, links %+v", tt.tags, tt.meta, out.Page.NoIndex, out.Links)
		}
	}
}

func TestAssembleRobotsFile(t *testing.T) {
	rules := "User-agent: *\nDisallow: /x\n"
	long := strings.Repeat("# a line of comment\n", maxRobots/10)
	for _, tt := range []struct {
		name   string
		status int
		header []warc.HeaderField
		body   string
		want   []byte
	}{
		{"plain", 200, nil, rules, []byte(rules)},
		{"html is not read for links", 200, fields("Content-Type", "text/html"), `<a href="/x">`, []byte(`<a href="/x">`)},
		{"gzip", 200, fields("Content-Encoding", "gzip"), string(gzipped(rules)), []byte(rules)},
		{"long", 200, nil, long, []byte(long[:maxRobots])},
		{"long gzip", 200, fields("Content-Encoding", "gzip"), string(gzipped(long)), []byte(long[:maxRobots])},
		{"empty", 200, nil, "", []byte{}},
		{"gone", 404, nil, rules, nil},
		{"broken", 500, nil, rules, nil},
	} {
		req := ask(t, "http://example.org/robots.txt")
		req.Robots = true
		resp := made(tt.status, tt.header, tt.body)
		out := Assemble(testScratch(), req, resp)
		clear(resp.Body) // the outcome must share no memory with it
		if !bytes.Equal(out.Body, tt.want) || (out.Body == nil) != (tt.want == nil) {
			t.Errorf("%s: body of %d bytes, want %d", tt.name, len(out.Body), len(tt.want))
		}
		if len(out.Links) != 0 || !out.Page.Robots {
			t.Errorf("%s: links %v, robots %v", tt.name, out.Links, out.Page.Robots)
		}
		records(t, out)
	}
}

func TestMediaType(t *testing.T) {
	for in, want := range map[string]string{
		"text/html":                            "text/html",
		" Text/HTML ; charset=x":               "text/html",
		"application/atom+xml":                 "application/atom+xml",
		"":                                     "",
		"text":                                 "",
		"text/":                                "",
		"/html":                                "",
		"text/html, text/plain":                "",
		"te xt/html":                           "",
		"text/ht\xffml":                        "",
		"a/b/c":                                "",
		"text/" + strings.Repeat("x", maxMIME): "",
	} {
		if got := mediaType(in); got != want {
			t.Errorf("mediaType(%q) = %q", in, got)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Duration{
		"":                                  0,
		"0":                                 0,
		"120":                               2 * time.Minute,
		"86400":                             24 * time.Hour,
		"86401":                             24 * time.Hour,
		"99999999999999999999999999":        24 * time.Hour,
		"-5":                                0,
		"1.5":                               0,
		" ":                                 0,
		"soon":                              0,
		"Thu, 29 Feb 2024 12:00:30 GMT":     30 * time.Second,
		"Thu, 29 Feb 2024 11:00:00 GMT":     0,
		"Thursday, 29-Feb-24 12:00:30 GMT":  30 * time.Second,
		"Thu Feb 29 12:00:30 2024":          30 * time.Second,
		"Fri, 01 Mar 2999 12:00:00 GMT":     24 * time.Hour,
		"Thu, 29 Feb 2024 12:00:30 GMT, 10": 0,
	} {
		if got := retryAfter(in, now); got != want {
			t.Errorf("retryAfter(%q) = %v, want %v", in, got, want)
		}
	}
	for status, want := range map[int]time.Duration{200: 0, 301: 7 * time.Second, 429: 7 * time.Second, 503: 7 * time.Second} {
		out := Assemble(testScratch(), ask(t, "http://example.org/"), made(status, fields("Location", "/x", "Retry-After", "7"), ""))
		if out.RetryAfter != want {
			t.Errorf("status %d: %v", status, out.RetryAfter)
		}
	}
}

func TestShort(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "",
		"a\r\nb\x00c":                       "a  b c",
		"caf\xe9":                           "caf\ufffd",
		"h\u00e9 \U0001F600":                "h\u00e9 \U0001F600",
		strings.Repeat("a", 200):            strings.Repeat("a", maxDetail),
		"x" + strings.Repeat("\u00e9", 200): "x" + strings.Repeat("\u00e9", (maxDetail-1)/2),
	} {
		if got := short(in); got != want {
			t.Errorf("short(%q) = %q", in, got)
		}
	}
}

// TestAssembleUnfit passes values that a record must not hold.
func TestAssembleUnfit(t *testing.T) {
	resp := made(200, fields("Content-Type", "text/html"), `<a href="/x">`)
	resp.Addr = "not an address"
	out := Assemble(testScratch(), ask(t, "http://example.org/"), resp)
	wantOutcome(t, out, blobschema.OutcomeProtocol)
	if out.Temporary || len(out.Record) != 0 || len(out.Links) != 0 || out.Page.Digest != "" {
		t.Errorf("something is kept: %+v", out)
	}
}

// FuzzAssemble passes any answer and, if there is an ETag, a previous answer, which may have the same digest.
// The header is split into lines of name and value.
func FuzzAssemble(f *testing.F) {
	f.Add(200, "Content-Type: text/html\nEtag: x", []byte(`<a href="/x">x</a>`), false, "", "")
	f.Add(301, "Location: //example.net/%zz", []byte{}, false, "length", "")
	f.Add(200, "Content-Encoding: gzip\nContent-Type: text/html", gzipped(`<a href="/x">`), false, "", "")
	f.Add(200, "Content-Encoding: gzip", gzipped("User-agent: *"), true, "", "")
	f.Add(429, "Retry-After: 99999999999\nX: \x00\xff", []byte("\xff"), false, "time", "")
	f.Add(200, "X-Robots-Tag: none\n: \nTransfer-Encoding: a\nLink: </b>; rel=next", []byte("<html>"), false, "", "")
	f.Add(200, "Content-Encoding: br", encode(f, "br", previousBody), false, "", "")
	f.Add(200, "Content-Encoding: zstd", encode(f, "zstd", previousBody), true, "", "")
	f.Add(200, "Content-Type: text/html", []byte(previousBody), false, "", `"v1"`)
	f.Add(304, "Etag: x", []byte{}, false, "", `"v1"`)
	f.Add(304, "", []byte("body"), false, "length", "\xff\n")
	s := testScratch()
	f.Fuzz(func(t *testing.T, status int, header string, body []byte, robots bool, truncated, etag string) {
		var h []warc.HeaderField
		for line := range strings.Lines(header) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			h = append(h, warc.HeaderField{Name: name, Value: value})
		}
		resp := made(status, h, string(body))
		resp.Truncated = truncated
		req := ask(t, "http://example.org/dir/")
		req.Robots = robots
		if etag != "" {
			req.Previous = changed(func(p *blobschema.Page) {
				p.ETag, p.Modified = shortText(etag, maxETag), ""
				if len(etag)%2 == 0 { // the body has not changed
					p.Digest, p.BodyBytes = warc.PayloadDigest(body), int64(len(body))
				}
			})
		}
		out := Assemble(s, req, resp)

		if again := Assemble(testScratch(), req, resp); !reflect.DeepEqual(out, again) {
			t.Errorf("not deterministic\n%+v\n%+v", out, again)
		}
		p := out.Page
		for _, text := range []string{p.MIME, p.Redirect, p.ETag, p.Modified, p.Detail} {
			if !utf8.ValidString(text) {
				t.Errorf("%q is not UTF-8", text)
			}
		}
		if p.Outcome == blobschema.OutcomeNone || len(p.Detail) > maxDetail || len(p.ETag) > maxETag {
			t.Errorf("unfit page %+v", p)
		}
		if out.RetryAfter < 0 || out.RetryAfter > maxRetryAfter || len(out.Body) > maxRobots || int(p.Links) != len(out.Links) {
			t.Errorf("unfit outcome %+v", out)
		}
		if len(out.Record) > 0 {
			stored := body
			if p.Original != nil {
				stored = nil
				if p.Digest != req.Previous.Digest || p.BodyBytes != req.Previous.BodyBytes || p.Outcome != blobschema.OutcomeUnchanged && p.Outcome != blobschema.OutcomeOK {
					t.Errorf("a revisit of another payload: %+v", p)
				}
			}
			if _, response := records(t, out); !strings.HasSuffix(response, "\r\n\r\n"+string(stored)+"\r\n\r\n") || len(out.Head) > 0 && !strings.Contains(response, string(out.Head)) {
				t.Error("the stored body is not the one received")
			}
		} else if p.Outcome < blobschema.OutcomeRobots {
			t.Error("an answer without record")
		}
		if len(out.Links) > extract.MaxListed || p.Outcome == blobschema.OutcomeUnchanged && (p.Original == nil || len(out.Links) > 0) {
			t.Errorf("unfit outcome %+v", out)
		}
	})
}

func BenchmarkAssemble(b *testing.B) {
	html := htmlPage(30 << 10)
	for _, bb := range []struct {
		name string
		resp Response
	}{
		{"plain30KB", made(200, fields("Content-Type", "text/html; charset=utf-8"), html)},
		{"gzip30KB", made(200, fields("Content-Encoding", "gzip", "Content-Type", "text/html; charset=utf-8"), string(gzipped(html)))},
		{"br30KB", made(200, fields("Content-Encoding", "br", "Content-Type", "text/html; charset=utf-8"), string(encode(b, "br", html)))},
		{"zstd30KB", made(200, fields("Content-Encoding", "zstd", "Content-Type", "text/html; charset=utf-8"), string(encode(b, "zstd", html)))},
		{"image30KB", made(200, fields("Content-Type", "image/png"), "\x89PNG"+html)},
		{"notfound", made(404, fields("Content-Type", "text/html"), html[:500])},
	} {
		b.Run(bb.name, func(b *testing.B) {
			s := testScratch()
			req := ask(b, "http://example.org/dir/")
			b.SetBytes(int64(len(bb.resp.Body)))
			b.ReportAllocs()
			for b.Loop() {
				Assemble(s, req, bb.resp)
			}
		})
	}
}

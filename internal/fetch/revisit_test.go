package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/extract"
)

const previousBody = `<!DOCTYPE html><a href="/x">x</a>`

// previous returns the record of an earlier answer.
func previous() *blobschema.Page {
	return &blobschema.Page{
		URL: "http://example.org/", Outcome: blobschema.OutcomeOK, Status: 200, Time: started.AddDate(-1, 0, 0).UTC().Truncate(time.Microsecond),
		MIME: "text/html", Digest: warc.PayloadDigest([]byte(previousBody)), BodyBytes: int64(len(previousBody)),
		WARC: "warc/old.warc.gz", Offset: 100, Length: 200, ETag: `"v1"`, Modified: "Thu, 29 Feb 2024 00:00:00 GMT", NoIndex: true, Links: 1,
		Meta: blobschema.Meta{Title: "title"}, Directives: "noindex",
	}
}

// changed returns previous with a change.
func changed(change func(*blobschema.Page)) *blobschema.Page {
	f := previous()
	change(f)
	return f
}

func TestAssembleNotModified(t *testing.T) {
	older := blobschema.Original{URL: "http://example.org/first", Time: started.AddDate(-2, 0, 0), WARC: "warc/older.warc.gz", Offset: 7, Length: 8}
	for _, tt := range []struct {
		name     string
		previous *blobschema.Page
		header   []warc.HeaderField
		want     blobschema.Outcome
		change   func(*blobschema.Page) // to the expected page
	}{
		{"unchanged", previous(), nil, blobschema.OutcomeUnchanged, nil},
		{"new validators", previous(), fields("Etag", `"v2"`, "Last-Modified", "Fri, 01 Mar 2024 00:00:00 GMT", "Content-Type", "text/plain"),
			blobschema.OutcomeUnchanged, func(p *blobschema.Page) { p.ETag, p.Modified = `"v2"`, "Fri, 01 Mar 2024 00:00:00 GMT" }},
		{"of a revisit", changed(func(p *blobschema.Page) { p.Original = &older; p.Outcome = blobschema.OutcomeUnchanged; p.Status = 304 }), nil,
			blobschema.OutcomeUnchanged, func(p *blobschema.Page) { p.Original = &older }},
		{"was cut", changed(func(p *blobschema.Page) { p.Truncated = "length" }), nil,
			blobschema.OutcomeUnchanged, func(p *blobschema.Page) { p.Truncated = "length" }},
		{"was cut by time", changed(func(p *blobschema.Page) { p.Truncated = "time" }), nil, blobschema.OutcomeClientError, nil},
		{"only an ETag", changed(func(p *blobschema.Page) { p.Modified = "" }), nil, blobschema.OutcomeUnchanged, func(p *blobschema.Page) { p.Modified = "" }},
		{"without former", nil, nil, blobschema.OutcomeClientError, nil},
		{"not asked", changed(func(p *blobschema.Page) { p.ETag, p.Modified = "", "a\nb" }), nil, blobschema.OutcomeClientError, nil},
		{"former not stored", changed(func(p *blobschema.Page) { p.WARC = "" }), nil, blobschema.OutcomeClientError, nil},
		{"former without digest", changed(func(p *blobschema.Page) { p.Digest = "" }), nil, blobschema.OutcomeClientError, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := ask(t, "http://example.org/")
			req.Previous = tt.previous
			resp := made(304, append(fields("Link", `</next>; rel=next`), tt.header...), "")
			out := Assemble(testScratch(), req, resp)
			wantOutcome(t, out, tt.want)
			request, response := records(t, out)
			if out.Page.Status != 304 || len(out.Links) != 0 || out.Head != nil || out.Temporary {
				t.Errorf("outcome %+v", out)
			}
			if tt.want != blobschema.OutcomeUnchanged {
				if out.Page.Original != nil || !strings.Contains(response, "WARC-Type: response\r\n") {
					t.Errorf("a revisit: %s", response)
				}
				return
			}
			f := previous()
			original := tt.previous.Payload()
			want := blobschema.Page{
				URL: f.URL, Outcome: tt.want, Status: 304, Time: started.UTC().Truncate(time.Microsecond), Attempts: 1, Length: out.Page.Length,
				MIME: f.MIME, Digest: f.Digest, BodyBytes: f.BodyBytes, ETag: f.ETag, Modified: f.Modified, NoIndex: true, Original: &original,
				Meta: f.Meta, Directives: f.Directives, IP: "192.0.2.7", Protocol: "HTTP/1.1",
			}
			if tt.change != nil {
				tt.change(&want)
			}
			if diff := cmp.Diff(want, out.Page); diff != "" {
				t.Errorf("page (-want +got)\n%s", diff)
			}
			wantRevisit(t, request, response, warc.ProfileNotModified, original, "")
			if strings.Contains(response, "WARC-Truncated") {
				t.Error("a 304 leaves nothing out")
			}
		})
	}
}

// wantRevisit checks the fields of a revisit record, and that its block is the header only.
func wantRevisit(t *testing.T, request, response, profile string, of blobschema.Original, statusLine string) {
	t.Helper()
	_, id, _ := strings.Cut(request, "WARC-Record-ID: ")
	id, _, _ = strings.Cut(id, "\r\n")
	for _, want := range []string{
		"WARC-Type: revisit\r\n", "WARC-Profile: " + profile + "\r\n", "WARC-Refers-To-Target-URI: " + of.URL + "\r\n",
		"WARC-Refers-To-Date: " + of.Time.Format("2006-01-02T15:04:05.000000Z") + "\r\n", "WARC-IP-Address: 192.0.2.7\r\n",
		"WARC-Payload-Digest: " + previous().Digest + "\r\n", "WARC-Concurrent-To: " + id + "\r\n", "\r\n\r\n" + statusLine,
	} {
		if !strings.Contains(response, want) {
			t.Errorf("no %q in\n%s", want, response)
		}
	}
	stored := "\r\nContent-Length: 0\r\n"
	if statusLine != "" {
		stored = statusLine
		if body := payload(t, response); body != "" {
			t.Errorf("the payload is stored: %q", body)
		}
	}
	if !strings.Contains(response, stored) {
		t.Errorf("no %q in\n%s", stored, response)
	}
}

func TestAssembleIdentical(t *testing.T) {
	for _, tt := range []struct {
		name     string
		previous *blobschema.Page
		body     string
		change   func(*Response)
		revisit  bool
	}{
		{"identical", previous(), previousBody, nil, true},
		{"without validators", changed(func(p *blobschema.Page) { p.ETag, p.Modified = "", "" }), previousBody, nil, true},
		{"another body", previous(), previousBody + " ", nil, false},
		{"another length", changed(func(p *blobschema.Page) { p.BodyBytes++ }), previousBody, nil, false},
		{"empty", changed(func(p *blobschema.Page) { p.Digest, p.BodyBytes = warc.PayloadDigest(nil), 0 }), "", nil, false},
		{"cut", previous(), previousBody, func(r *Response) { r.Truncated = "length" }, false},
		{"former cut", changed(func(p *blobschema.Page) { p.Truncated = "length" }), previousBody, nil, false},
		{"former not stored", changed(func(p *blobschema.Page) { p.WARC = "" }), previousBody, nil, false},
		{"not a page", previous(), previousBody, func(r *Response) { r.Status = 404 }, false},
		{"no former", nil, previousBody, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := ask(t, "http://example.org/")
			req.Previous = tt.previous
			resp := made(200, fields("Content-Type", "text/html", "Etag", `"v2"`), tt.body)
			if tt.change != nil {
				tt.change(&resp)
			}
			out := Assemble(testScratch(), req, resp)
			request, response := records(t, out)
			if tt.revisit != (out.Page.Original != nil) {
				t.Fatalf("original %v", out.Page.Original)
			}
			if resp.Status == 200 && tt.body != "" && len(out.Links) != 1 {
				t.Errorf("links %v", out.Links)
			}
			if !tt.revisit {
				if payload(t, response) != tt.body || !strings.Contains(response, "WARC-Type: response\r\n") {
					t.Errorf("stored\n%s", response)
				}
				return
			}
			wantOutcome(t, out, blobschema.OutcomeOK)
			wantRevisit(t, request, response, warc.ProfileIdenticalPayload, tt.previous.Payload(), "HTTP/1.1 200 Reason\r\nContent-Type: text/html\r\n")
			if p := out.Page; p.ETag != `"v2"` || p.BodyBytes != int64(len(tt.body)) || p.Truncated != "" || out.Head != nil ||
				!strings.Contains(response, "WARC-Truncated: length\r\n") {
				t.Errorf("page %+v\n%s", p, response)
			}
		})
	}
}

// TestAssembleHead makes the revisit record that a step makes from an outcome when it finds the payload
// elsewhere.
func TestAssembleHead(t *testing.T) {
	out := Assemble(testScratch(), ask(t, "http://example.org/"), made(200, fields("Content-Type", "text/html"), previousBody))
	request, response := records(t, out)
	if want := "HTTP/1.1 200 Reason\r\nContent-Type: text/html\r\n\r\n"; string(out.Head) != want || !strings.Contains(response, want) {
		t.Errorf("head %q", out.Head)
	}
	of := previous().Payload()
	r := warc.Revisit(out.Page.Time, out.Page.URL, out.IP, warc.ProfileIdenticalPayload, out.Page.Digest, of, out.Head)
	r.ConcurrentTo = out.RequestID
	data, _, err := warc.NewEncoder(warc.GzipFast).Append(bytes.Clone(out.Record[:out.ResponseAt]), &r)
	if err != nil {
		t.Fatal(err)
	}
	wantRevisit(t, request, gunzip(t, data[out.ResponseAt:]), warc.ProfileIdenticalPayload, of, "HTTP/1.1 200 Reason\r\n")

	for name, resp := range map[string]Response{
		"no body":    made(200, nil, ""),
		"large head": made(200, fields("X", strings.Repeat("y", maxHead)), previousBody),
	} {
		if out := Assemble(testScratch(), ask(t, "http://example.org/"), resp); out.Head != nil || len(out.Record) == 0 {
			t.Errorf("%s: head of %d bytes", name, len(out.Head))
		}
	}
}

func TestConditions(t *testing.T) {
	for _, tt := range []struct {
		name           string
		previous       *blobschema.Page
		robots         bool
		etag, modified string
	}{
		{"both", previous(), false, `"v1"`, "Thu, 29 Feb 2024 00:00:00 GMT"},
		{"weak", changed(func(p *blobschema.Page) { p.ETag, p.Modified = `W/"v1"`, "" }), false, `W/"v1"`, ""},
		{"neither", changed(func(p *blobschema.Page) { p.ETag, p.Modified = "", "" }), false, "", ""},
		{"unfit", changed(func(p *blobschema.Page) { p.ETag, p.Modified = "\"\r\nX: y\"", "\x00" }), false, "", ""},
		{"space around", changed(func(p *blobschema.Page) { p.ETag, p.Modified = " \"v1\"", "now\t" }), false, "", ""},
		{"no digest", changed(func(p *blobschema.Page) { p.Digest = "" }), false, "", ""},
		{"not stored", changed(func(p *blobschema.Page) { p.WARC = "" }), false, "", ""},
		{"robots.txt", previous(), true, "", ""},
		{"nil", nil, false, "", ""},
	} {
		req := ask(t, "http://example.org/")
		req.Previous, req.Robots = tt.previous, tt.robots
		var want []warc.HeaderField
		if tt.modified != "" {
			want = append(want, fields("If-Modified-Since", tt.modified)...)
		}
		if tt.etag != "" {
			want = append(want, fields("If-None-Match", tt.etag)...)
		}
		if diff := cmp.Diff(want, Conditions(&req)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}

// TestFetchConditional fetches a page twice, and a third time with the validators of the second answer.
func TestFetchConditional(t *testing.T) {
	var sent []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header)
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Etag", `"v1"`)
		http.ServeContent(w, r, "", started, strings.NewReader(previousBody))
	}))
	defer server.Close()
	c := testClient(t, nil)
	req := ask(t, server.URL+"/")
	first := c.Fetch(context.Background(), req)
	wantOutcome(t, first, blobschema.OutcomeOK)
	if len(sent[0]["If-None-Match"]) != 0 || len(first.Head) == 0 {
		t.Errorf("first request %v, head %q", sent[0], first.Head)
	}
	last := first.Page
	last.WARC, last.Offset = "warc/1.warc.gz", 10
	original := last.Payload()
	for range 2 {
		req.Previous = &blobschema.Page{}
		*req.Previous = last
		out := c.Fetch(context.Background(), req)
		wantOutcome(t, out, blobschema.OutcomeUnchanged)
		h := sent[len(sent)-1]
		if h.Get("If-None-Match") != `"v1"` || h.Get("If-Modified-Since") != "Thu, 29 Feb 2024 12:30:45 GMT" {
			t.Errorf("sent %v", h)
		}
		request, response := records(t, out)
		if !strings.Contains(request, "\r\nIf-Modified-Since: Thu, 29 Feb 2024 12:30:45 GMT\r\nIf-None-Match: \"v1\"\r\n\r\n") {
			t.Errorf("stored request\n%s", request)
		}
		if !strings.Contains(response, "\r\nContent-Length: 0\r\n") {
			t.Errorf("stored\n%s", response)
		}
		if diff := cmp.Diff(&original, out.Page.Original); diff != "" || out.Page.Digest != first.Page.Digest || out.Page.MIME != "text/html" {
			t.Errorf("page %+v %s", out.Page, diff)
		}
		last = out.Page
		last.WARC = "warc/2.warc.gz"
	}
}

// TestFetchLongETag checks that a validator of 1 MiB is neither stored nor sent back.
func TestFetchLongETag(t *testing.T) {
	etag := `"` + strings.Repeat("v", 1<<20) + `"`
	out := Assemble(testScratch(), ask(t, "http://example.org/"), made(200, fields("Etag", etag, "Last-Modified", etag), "body"))
	if out.Page.ETag != "" || out.Page.Modified != "" {
		t.Errorf("%d bytes of ETag kept", len(out.Page.ETag))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", etag[:32<<10])
		io.WriteString(w, "body")
	}))
	defer server.Close()
	out = testClient(t, nil).Fetch(context.Background(), ask(t, server.URL+"/"))
	wantOutcome(t, out, blobschema.OutcomeOK)
	if out.Page.ETag != "" || len(out.Head) < 32<<10 {
		t.Errorf("%d bytes of ETag kept, head of %d bytes", len(out.Page.ETag), len(out.Head))
	}
}

func TestAssembleSitemaps(t *testing.T) {
	var many strings.Builder
	for i := range 2 * maxSitemaps {
		fmt.Fprintf(&many, "Sitemap: /s%d.xml\n", i/2)
	}
	for _, tt := range []struct {
		name, body string
		status     int
		want       []string
	}{
		{"some", "User-agent: *\nDisallow: /\nSitemap: https://example.org/a.xml\nsitemap: http://EXAMPLE.net/b.xml#x\nSitemap: /c.xml\nSitemap: ../d.txt\n", 200,
			[]string{"https://example.org/a.xml", "http://example.net/b.xml", "http://example.org/c.xml", "http://example.org/d.txt"}},
		{"repeated", "Sitemap: /a\nSitemap: http://example.org/a\nSitemap: /b\n", 200, []string{"http://example.org/a", "http://example.org/b"}},
		{"unfit", "Sitemap: javascript:x\nSitemap: http://\nSitemap: ftp://example.org/a\nSitemap:\nSitemap: /robots.txt\n", 200, nil},
		{"not found", "Sitemap: /a\n", 404, nil},
		{"broken", "Sitemap: /a\n", 500, nil},
		{"none", "<a href=/x>", 200, nil},
	} {
		req := ask(t, "http://example.org/robots.txt")
		req.Robots = true
		for _, coding := range codings {
			out := Assemble(testScratch(), req, made(tt.status, fields("Content-Encoding", coding, "Link", "</l>; rel=next"), string(encode(t, coding, tt.body))))
			var got []string
			for _, l := range out.Links {
				if l.Kind != actor.LinkSitemap || l.NoFollow {
					t.Errorf("%s: %+v", tt.name, l)
				}
				got = append(got, l.URL.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || int(out.Page.Links) != len(got) {
				t.Errorf("%s, %q (-want +got)\n%s", tt.name, coding, diff)
			}
		}
	}
	req := ask(t, "http://example.org/robots.txt")
	req.Robots = true
	out := Assemble(testScratch(), req, made(200, nil, many.String()))
	if len(out.Links) != maxSitemaps || out.Links[1].URL.String() != "http://example.org/s1.xml" {
		t.Errorf("%d sitemaps", len(out.Links))
	}
}

func TestAssembleLinkHeader(t *testing.T) {
	long := strings.Builder{}
	for i := range extract.MaxLinks {
		fmt.Fprintf(&long, "<a href=/%d>", i)
	}
	for _, tt := range []struct {
		name, contentType, body string
		link                    []string
		tags                    string
		want                    []string // URL and what else
		n                       int
	}{
		{"appended", "text/html", `<a href="/a">`, []string{`</b>; rel=next, </c>; rel="canonical nofollow"`}, "", []string{"/a", "/b", "/c nofollow"}, 3},
		{"of any type", "image/png", "\x89PNG", []string{`</b>; rel=canonical`}, "", []string{"/b"}, 1},
		{"in both", "text/html", `<a href="/a" rel=nofollow><a href="/b" rel=nofollow>`, []string{`</a>; rel=next`, `</b>; rel="next nofollow"`}, "",
			[]string{"/a", "/b nofollow"}, 2},
		{"nofollow in the header", "text/html", `<a href="/a">`, []string{`</b>; rel=next`}, "nofollow", []string{"/a nofollow", "/b nofollow"}, 2},
		{"nofollow in the page", "text/html", `<meta name=robots content=nofollow><a href="/a">`, []string{`</b>; rel=next`}, "", []string{"/a nofollow", "/b nofollow"}, 2},
		{"no room", "text/html", long.String(), []string{`</b>; rel=next, </7>; rel=next`}, "", nil, extract.MaxLinks},
		{"others", "text/html", "", []string{`</style.css>; rel=preload`, `nonsense`}, "", nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := fields("Content-Type", tt.contentType, "X-Robots-Tag", tt.tags)
			for _, l := range tt.link {
				h = append(h, fields("Link", l)...)
			}
			out := Assemble(testScratch(), ask(t, "http://example.org/"), made(200, h, tt.body))
			var got []string
			for _, l := range out.Links {
				s := l.URL.RequestURI()
				if l.NoFollow {
					s += " nofollow"
				}
				got = append(got, s)
			}
			if len(got) != tt.n || int(out.Page.Links) != tt.n {
				t.Errorf("%d links, %d counted, want %d", len(got), out.Page.Links, tt.n)
			}
			if diff := cmp.Diff(tt.want, got); tt.want != nil && diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	out := Assemble(testScratch(), ask(t, "http://example.org/"), made(404, fields("Link", "</b>; rel=next"), ""))
	if len(out.Links) != 0 {
		t.Errorf("links of a 404: %v", out.Links)
	}
}

package warc

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHTTPHeads(t *testing.T) {
	fields := []HeaderField{
		{"Content-Type", "text/html\r\nX-Evil: 1"},
		{"Bad Name:\r\n", "\ttab, \x00, \xe9"},
		{"", "nameless"},
		{"transfer-encoding", "chunked"},
		{"Content-Encoding", "br"},
		{"content-length", "12"},
	}
	got := string(AppendHTTPResponseHead([]byte("x"), "HTTP/2.0\r\n", 404, "Not\nFound", fields))
	want := "xHTTP/1.1 404 Not Found\r\n" +
		"Content-Type: text/html  X-Evil: 1\r\n" +
		"Bad_Name___: \ttab,  , \xe9\r\n" +
		"X-Crawler-Original-transfer-encoding: chunked\r\n" +
		"Content-Encoding: br\r\n" +
		"content-length: 12\r\n\r\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for status, want := range map[int]string{-1: "HTTP/1.0 000 \r\n\r\n", 7: "HTTP/1.0 007 \r\n\r\n", 1000: "HTTP/1.0 000 \r\n\r\n"} {
		if got := string(AppendHTTPResponseHead(nil, "HTTP/1.0", status, "", nil)); got != want {
			t.Errorf("status %d: %q", status, got)
		}
	}
	got = string(AppendHTTPRequestHead(nil, "G T\n", "/a b\r\nX: y", []HeaderField{{"Host", "h\n"}}))
	if want := "G_T_ /a_b__X:_y HTTP/1.1\r\nHost: h \r\n\r\n"; got != want {
		t.Errorf("request %q, want %q", got, want)
	}
}

func TestSplitHTTP(t *testing.T) {
	long := "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", MaxHTTPHeader) + "\r\n\r\n"
	for block, want := range map[string]*HTTPMessage{
		"HTTP/1.1 200 OK\r\nA: b\r\nc:d \r\n\r\nbody\r\n\r\n": {Start: "HTTP/1.1 200 OK", Proto: "HTTP/1.1", Status: 200, Reason: "OK",
			Fields: []HeaderField{{"A", "b"}, {"c", "d"}}, Body: []byte("body\r\n\r\n")},
		"HTTP/1.0 404\nA: b\r\n  c\n\td\n\n": {Start: "HTTP/1.0 404", Proto: "HTTP/1.0", Status: 404,
			Fields: []HeaderField{{"A", "b    c \td"}}, Body: []byte{}},
		"GET /x HTTP/1.1\r\n\r\n": {Start: "GET /x HTTP/1.1", Body: []byte{}},
		"HTTP/1.1 20 OK\r\n\r\n":  nil,
		"HTTP/1.1 +20 OK\r\n\r\n": nil,
		"HTTP/1.1\r\n\r\n":        nil,
		"HTTP/1.1 200 OK\r\nA":    nil,
		"HTTP/1.1 200\r\nA\r\n\n": nil,
		"HTTP/1.1 200\r\n: b\n\n": nil,
		"":                        nil,
		long:                      nil,
	} {
		got, err := SplitHTTP([]byte(block))
		if (err == nil) != (want != nil) {
			t.Errorf("%.80q: %v", block, err)
		} else if want != nil {
			if diff := cmp.Diff(*want, got); diff != "" {
				t.Errorf("%q: %s", block, diff)
			}
		}
	}
}

func TestHeadEnd(t *testing.T) {
	for head, want := range map[string]int{
		"": -1, "\n": 1, "\r\n": 2, "a\n": -1, "a\n\nb": 3, "a\r\n\r\nb": 5, "a\n\r\nb": 4,
		"a\n\rb\n\nc": 6, "a\nb\nc\n\n": 7, "a\n\r": -1,
	} {
		if got := headEnd([]byte(head)); got != want {
			t.Errorf("%q ends at %d, want %d", head, got, want)
		}
	}
}

// FuzzSplitHTTP: a header written from any values comes apart into one field each.
func FuzzSplitHTTP(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody"), "HTTP/1.1", 200, "OK", "Name", "value")
	f.Add([]byte("\n\n"), "", -5, "\r\n\r\n", "a:b", "\r\nX: y")
	f.Fuzz(func(t *testing.T, block []byte, proto string, status int, reason, name, value string) {
		if m, err := SplitHTTP(block); err == nil && (len(m.Body) >= len(block) || !bytes.HasSuffix(block, m.Body)) {
			t.Fatalf("body %q of %q", m.Body, block)
		}
		if len(reason)+len(name)+len(value) > 1000 {
			return
		}
		head := AppendHTTPResponseHead(nil, proto, status, reason, []HeaderField{{name, value}, {"Last", "1"}})
		m, err := SplitHTTP(append(head, block...))
		if err != nil {
			t.Fatalf("%q: %v", head, err)
		}
		want := 2
		if name == "" {
			want = 1
		}
		if len(m.Fields) != want || m.Fields[want-1] != (HeaderField{"Last", "1"}) || !bytes.Equal(m.Body, block) {
			t.Fatalf("%q came apart into %+v", head, m)
		}
		head = AppendHTTPRequestHead(nil, reason, value, []HeaderField{{name, value}})
		if m, err := SplitHTTP(head); err == nil && len(m.Fields) != want-1 || headEnd(head) != len(head) {
			t.Fatalf("%q came apart into %+v", head, m)
		}
	})
}

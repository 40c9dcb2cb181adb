package warc

import (
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
	got = string(AppendHTTPRequestHead(nil, "GET", "/a%20b?c", []HeaderField{{"Host", "h\n"}}))
	if want := "GET /a%20b?c HTTP/1.1\r\nHost: h \r\n\r\n"; got != want {
		t.Errorf("request %q, want %q", got, want)
	}
}

func TestRecordHTTP(t *testing.T) {
	for head, want := range map[string]*HTTPHead{
		"HTTP/1.1 200 OK\r\nA: b\r\nc:d \r\n\r\n": {Proto: "HTTP/1.1", Status: 200, Reason: "OK", Fields: []HeaderField{{"A", "b"}, {"c", "d"}}},
		"HTTP/1.0 404\nA: b\r\n  c\n\td\n\n":      {Proto: "HTTP/1.0", Status: 404, Fields: []HeaderField{{"A", "b c d"}}},
		"GET /x HTTP/1.1\r\n\r\n":                 {},
		"HTTP/1.1 20 OK\r\n\r\n":                  nil,
		"HTTP/1.1 +20 OK\r\n\r\n":                 nil,
		"HTTP/1.1\r\n\r\n":                        nil,
		"HTTP/1.1 200 OK\r\nA":                    nil,
		"HTTP/1.1 200\r\nA\r\n\n":                 nil,
		"HTTP/1.1 200\r\n: b\n\n":                 nil,
		"HTTP/1.1 200 OK\r\n\r\nbody":             nil,
		"":                                        nil,
	} {
		got, err := (&Record{Header: []byte(head)}).HTTP()
		if (err == nil) != (want != nil) {
			t.Errorf("%.80q: %v", head, err)
		} else if want != nil {
			if diff := cmp.Diff(*want, got); diff != "" {
				t.Errorf("%q: %s", head, diff)
			}
		}
	}
}

func TestHeadEnd(t *testing.T) {
	for head, want := range map[string]int{
		"": -1, "\n": 1, "\r\n": 2, "a\n": -1, "a\n\nb": 3, "a\r\n\r\nb": 5, "a\n\r\nb": 4,
		"a\n\rb\n\nc": 6, "a\nb\nc\n\n": 7, "a\n\r": -1,
	} {
		if got := HeadEnd([]byte(head), 0); got != want {
			t.Errorf("%q ends at %d, want %d", head, got, want)
		}
	}
}

// FuzzHTTP parses any header, and checks that a header written from any values is parsed to one field each.
func FuzzHTTP(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nA: b\r\n\r\n"), "HTTP/1.1", 200, "OK", "Name", "value")
	f.Add([]byte("\n\n"), "", -5, "\r\n\r\n", "a:b", "\r\nX: y")
	f.Fuzz(func(t *testing.T, head []byte, proto string, status int, reason, name, value string) {
		_, _ = (&Record{Header: head}).HTTP()
		if len(reason)+len(name)+len(value) > 1000 {
			return
		}
		head = AppendHTTPResponseHead(nil, proto, status, reason, []HeaderField{{name, value}, {"Last", "1"}})
		h, err := (&Record{Header: head}).HTTP()
		if err != nil {
			t.Fatalf("%q: %v", head, err)
		}
		want := 2
		if name == "" {
			want = 1
		}
		if len(h.Fields) != want || h.Fields[want-1] != (HeaderField{"Last", "1"}) {
			t.Fatalf("%q was parsed as %+v", head, h)
		}
		head = AppendHTTPRequestHead(nil, "GET", "/x", []HeaderField{{name, value}})
		if h, err := (&Record{Header: head}).HTTP(); err == nil && len(h.Fields) != want-1 || HeadEnd(head, 0) != len(head) {
			t.Fatalf("%q was parsed as %+v", head, h)
		}
	})
}

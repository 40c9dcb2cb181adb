package hostile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

var update = flag.Bool("update", false, "rewrite the table of the documentation")

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestCasesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cases() {
		if seen[c.Name] {
			t.Errorf("%s: there are two", c.Name)
		}
		seen[c.Name] = true
		served := 0
		for _, is := range []bool{c.serve != nil, c.serve2 != nil, c.lookup != nil} {
			if is {
				served++
			}
		}
		if c.Does == "" || c.Bound == "" || c.Want.Outcome == 0 || served != 1 {
			t.Errorf("%s: incomplete", c.Name)
		}
		if strings.ContainsAny(c.Does+c.Bound, "|\n") {
			t.Errorf("%s: not fit for a table", c.Name)
		}
	}
	if len(seen) < 200 {
		t.Errorf("only %d cases", len(seen))
	}
}

// TestDocumentation keeps the table of the documentation equal to the cases. With -update it
// writes the table.
func TestDocumentation(t *testing.T) {
	const file, begin, end = "../../docs/hostile-web.md", "<!-- cases -->\n", "<!-- end -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s: the marks of the table are gone", file)
	}
	want := table()
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s: table differs (-cases +file); run this test with -update\n%s", file, cmp.Diff(want, got))
	}
	if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func table() string {
	var b strings.Builder
	b.WriteString("| case | what the server does | bound or check | outcome |\n|---|---|---|---|\n")
	for _, c := range cases() {
		outcome := c.Want.Outcome.String()
		if c.Want.Or != 0 {
			outcome += " or " + c.Want.Or.String()
		}
		if c.Want.Truncated {
			outcome += ", cut"
		}
		if c.Follow {
			outcome += "; its target forbidden"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Name, c.Does, c.Bound, outcome)
	}
	return b.String()
}

// TestPagesAreServed requests the pages with net/http, an independent HTTP client.
func TestPagesAreServed(t *testing.T) {
	s := start(t)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	values := [256]bool{}
	large, empty := 0, 0
	for u, want := range s.Pages() {
		if strings.HasPrefix(u, "https") {
			continue
		}
		resp, err := client.Get(u)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !bytes.Equal(body, want.Body) || resp.StatusCode != 200 ||
			resp.Header.Get("Content-Encoding") != want.Coding || resp.Header.Get("Content-Type") != want.Type {
			t.Fatalf("%s: %v, status %d, %d bytes, want %d", u, err, resp.StatusCode, len(body), len(want.Body))
		}
		for _, c := range body {
			values[c] = true
		}
		if len(body) > 1<<20 {
			large++
		}
		if len(body) == 0 {
			empty++
		}
	}
	for c, ok := range values {
		if !ok {
			t.Errorf("no page has the byte %d", c)
		}
	}
	if large == 0 || empty == 0 {
		t.Errorf("%d large pages, %d empty ones", large, empty)
	}
	if s.Reached() != 0 {
		t.Error("the inside was reached")
	}
}

// TestCloseEndsEverything opens connections to all hosts, and leaves none behind.
func TestCloseEndsEverything(t *testing.T) {
	before := runtime.NumGoroutine()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range s.hosts {
		if h == nil {
			continue
		}
		c, err := net.Dial("tcp4", h.l.Addr().String())
		if err != nil {
			continue // one case resets at once
		}
		defer c.Close()
		if i%2 == 0 { // neither reads nor writes; the others send a request and do not read
			continue
		}
		_, path, _ := strings.Cut(strings.TrimPrefix(s.URL(i), "http://"), "/")
		fmt.Fprintf(c, "GET /%s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	}
	time.Sleep(50 * time.Millisecond)
	begun := time.Now()
	s.Close()
	if d := time.Since(begun); d > 5*time.Second {
		t.Errorf("Close took %v", d)
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, there were %d", runtime.NumGoroutine(), before)
}

// TestConnectionsEndByThemselves checks that connections end although the client never gives up.
func TestConnectionsEndByThemselves(t *testing.T) {
	s, err := startFor(100 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, c := range s.cases {
		if c.Name != "accepts-and-says-nothing" && c.Name != "header-drip" && c.Name != "status-endless" && c.Name != "tls-silent" {
			continue
		}
		nc, err := net.Dial("tcp4", s.hosts[i].l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(nc, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
		nc.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := io.Copy(io.Discard, nc); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s: the connection did not end", c.Name)
		}
		nc.Close()
	}
}

func TestSentIsBounded(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	go io.Copy(io.Discard, client)
	m := &metered{Conn: server, h: &host{}, left: 1000}
	x := &conn{Conn: m}
	endless("", "x")(x)
	if n := m.h.sent.Load(); n > 1000 {
		t.Errorf("%d bytes sent", n)
	}
	server.Close()
}

// TestCodingsAreWhatTheySay decodes the bodies of the cases, and the beginnings of the bombs.
func TestCodingsAreWhatTheySay(t *testing.T) {
	const much = 64 << 20
	for _, c := range codings() {
		open := func(b []byte) io.Reader {
			switch c.name {
			case "gzip":
				r, err := gzip.NewReader(bytes.NewReader(b))
				if err != nil {
					t.Fatal(err)
				}
				return r
			case "zstd":
				r, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(r.Close)
				return r
			case "br":
				return brotli.NewReader(bytes.NewReader(b))
			}
			t.Fatalf("no reader of %s", c.name)
			return nil
		}
		if page, err := io.ReadAll(open(c.page)); err != nil || string(page) != codingPage {
			t.Errorf("%s: %v, page %q", c.name, err, page)
		}
		bomb := c.bomb()
		r := bufio.NewReader(open(bomb))
		head := make([]byte, len(codingPage))
		if _, err := io.ReadFull(r, head); err != nil || string(head) != codingPage {
			t.Errorf("%s: %v, bomb begins %q", c.name, err, head)
		}
		if n, err := io.CopyN(io.Discard, r, much); err != nil {
			t.Errorf("%s: the bomb of %d bytes is only %d: %v", c.name, len(bomb), n, err)
		}
		if len(bomb) > 1<<20 {
			t.Errorf("%s: a bomb of %d bytes is cut before it goes off", c.name, len(bomb))
		}
	}
}

func TestLookup(t *testing.T) {
	s := start(t)
	for range 2 {
		for i, c := range s.cases {
			if c.lookup == nil {
				continue
			}
			if !strings.Contains(s.URL(i), c.Name+nameSuffix) {
				t.Errorf("%s has the URL %s", c.Name, s.URL(i))
			}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			s.Lookup(ctx, c.Name+nameSuffix)
			cancel()
		}
	}
	got, err := s.Lookup(context.Background(), "dns-rebinds"+nameSuffix)
	if err != nil || len(got) != 1 || got[0] != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("after the first query: %v, %v", got, err)
	}
	if _, err := s.Lookup(context.Background(), "example.org"); err == nil {
		t.Error("another name is resolved")
	}
}

package fetch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// canned is a connection to a server that has sent its answer and closed.
type canned struct {
	net.Conn
	io.Reader
}

func (c canned) Read(p []byte) (int, error)     { return c.Reader.Read(p) }
func (canned) Write(p []byte) (int, error)      { return len(p), nil }
func (canned) Close() error                     { return nil }
func (canned) SetDeadline(time.Time) error      { return nil }
func (canned) SetReadDeadline(time.Time) error  { return nil }
func (canned) SetWriteDeadline(time.Time) error { return nil }

// exchanged returns the answer that a client reads from bytes that come in pieces of at most piece bytes.
func exchanged(t testing.TB, c *Client, answer []byte, piece int) (resp Response, closed bool, err error) {
	f := &flight{ctx: context.Background(), conn: &conn{}}
	f.conn.Conn = canned{Reader: &pieces{answer, piece}}
	f.conn.stream = f.conn
	b := c.buffer()
	defer c.release(b)
	resp, err = c.over(f, &actor.Request{URL: parse(t, "http://example.org/")}, b, c.cfg.MaxBody)
	resp.Head, resp.Body, resp.Chunks = bytes.Clone(resp.Head), bytes.Clone(resp.Body), bytes.Clone(resp.Chunks)
	if err == nil && resp.Chunks != nil {
		if resp.Body, err = warc.Dechunk(nil, resp.Chunks); err != nil {
			t.Fatal(err)
		}
	}
	resp.Header = slices.Clone(resp.Header)
	return resp, f.closed, err
}

// ending is a connection whose request ends just as the deadline for the head is removed.
type ending struct {
	canned
	end  context.CancelFunc
	past chan struct{} // closed once the end has set its deadline
	by   time.Time
}

func (e *ending) SetDeadline(t time.Time) error {
	e.by = t
	close(e.past)
	return nil
}

func (e *ending) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		e.end()
		<-e.past
	}
	e.by = t
	return nil
}

func (e *ending) Read(p []byte) (int, error) {
	if e.by.IsZero() {
		return 0, errors.New("a read that nothing would end")
	}
	return e.canned.Read(p)
}

// TestEndWithinHead checks that the end of a request is noticed even if it comes while the deadline of the head
// is removed.
func TestEndWithinHead(t *testing.T) {
	c := testClient(t, nil)
	ctx, end := context.WithCancel(context.Background())
	f := &flight{ctx: ctx, conn: &conn{}}
	f.conn.Conn = &ending{canned: canned{Reader: strings.NewReader("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")}, end: end, past: make(chan struct{})}
	f.conn.stream = f.conn
	_, err := c.over(f, &actor.Request{URL: parse(t, "http://example.org/")}, &buffers{raw: make([]byte, 0, firstBuffer)}, 100)
	if !errors.Is(err, context.Canceled) || !f.closed {
		t.Errorf("%v, closed %v", err, f.closed)
	}
}

// pieces reads b in pieces of at most n bytes.
type pieces struct {
	b []byte
	n int
}

func (p *pieces) Read(to []byte) (n int, err error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n = copy(to, p.b[:min(len(p.b), max(1, p.n))])
	p.b = p.b[n:]
	return n, nil
}

// TestAsReceived checks that an answer is kept as received, in whatever pieces it came.
func TestAsReceived(t *testing.T) {
	c := testClient(t, nil)
	for _, tt := range []struct {
		name, head, body, payload string
		closed                    bool
	}{
		{"order, case and spaces", "HTTP/1.1 200 fine thing\r\nx-B:  2 \r\nX-a: 1\r\nCONTENT-length:\t4\r\nx-b: 3\r\n\r\n", "body", "body", false},
		{"folded", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\tc\r\nContent-Length: 4\r\n\r\n", "body", "body", false},
		{"bare LF", "HTTP/1.1 200 OK\nContent-Length: 4\n\n", "body", "body", false},
		{"old", "HTTP/1.0 200 OK\r\n\r\n", "to the end", "to the end", true},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "2;a=b\r\nbo\r\n002\r\ndy\r\n0\r\nX: y\r\n\r\n", "body", false},
		{"chunks and a length", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\ntransfer-encoding: Chunked\r\n\r\n", "4\r\nbody\r\n0\r\n\r\n", "body", true},
		{"told to close", "HTTP/1.1 200 OK\r\nconnection: x, Close\r\nContent-Length: 0\r\n\r\n", "", "", true},
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			resp, closed, err := exchanged(t, c, []byte(tt.head+tt.body), piece)
			stored := resp.Body
			if resp.Chunks != nil {
				stored = resp.Chunks
			}
			if err != nil || string(resp.Head) != tt.head || string(stored) != tt.body || string(resp.Body) != tt.payload || closed != tt.closed {
				t.Errorf("%s in pieces of %d: head %q, stored %q, body %q, closed %v, %v", tt.name, piece, resp.Head, stored, resp.Body, closed, err)
			}
		}
	}
	// Bytes before or after an answer do not belong to it.
	resp, closed, err := exchanged(t, c, []byte("HTTP/1.1 103 E\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbodyHTTP/1.1 200"), 1<<20)
	if err != nil || string(resp.Head) != "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" || string(resp.Body) != "body" || !closed {
		t.Errorf("surplus: head %q, body %q, closed %v, %v", resp.Head, resp.Body, closed, err)
	}
}

// FuzzExchange compares with net/http. If both accept an answer, they must read the same. Except for spaces in
// a name and signs in a status, net/http must refuse every answer that this package refuses.
func FuzzExchange(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<a href='/x'>",
		"HTTP/1.0 200 OK\r\n\r\nbody",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a\r\nab\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nbody",
		"HTTP/1.1 200 OK\nContent-Length: 4, 5\n\nbody",
	} {
		f.Add([]byte(s), 3)
	}
	c := New(Config{UserAgent: "orbtest", MaxBody: 1 << 16, Timeout: time.Second})
	f.Cleanup(c.Close)
	f.Fuzz(func(t *testing.T, answer []byte, piece int) {
		resp, _, err := exchanged(t, c, answer, piece)
		want, bad := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), nil)
		if bad == nil && (want.StatusCode < 200 && want.StatusCode >= 100) {
			return // another answer follows
		}
		if err != nil {
			if bad == nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) && !known(answer) {
				if _, bad = io.Copy(io.Discard, io.LimitReader(want.Body, 1<<16)); bad == nil {
					t.Fatalf("refused (%v), but net/http understands status %d", err, want.StatusCode)
				}
			}
			return
		}
		if bad != nil {
			t.Fatalf("net/http refuses it: %v", bad)
		}
		body, bad := io.ReadAll(io.LimitReader(want.Body, 1<<16))
		if bad != nil && (strings.Contains(bad.Error(), "trailer") || strings.Contains(bad.Error(), "MIME header")) { // this package accepts any trailer
			bad = nil
		}
		if resp.Status != want.StatusCode || !bytes.Equal(body, resp.Body) || bad != nil && resp.Truncated == "" {
			t.Fatalf("status %d, body %q; net/http has %d, %q, %v", resp.Status, resp.Body, want.StatusCode, body, bad)
		}
		got := http.Header{}
		for _, field := range resp.Header {
			got.Add(field.Name, field.Value)
		}
		for name, values := range want.Header {
			if name != "Content-Length" && name != "Connection" && !slices.Equal(got[name], trimmed(values)) {
				t.Fatalf("field %s: %q; net/http has %q", name, got[name], values)
			}
		}
		if !bytes.HasPrefix(answer, resp.Head) {
			t.Fatalf("head %q is not what came", resp.Head)
		}
	})
}

// known reports whether only this package may refuse an answer.
func known(answer []byte) bool {
	head, _, _ := strings.Cut(strings.ReplaceAll(string(answer), "\r\n", "\n"), "\n\n")
	line, rest, _ := strings.Cut(head, "\n")
	for field := range strings.Lines(rest) {
		if name, _, _ := strings.Cut(field, ":"); strings.Contains(name, " ") {
			return true
		}
	}
	return strings.ContainsAny(line, "+-") || len(head) >= maxHeader/2
}

// trimmed returns values without surrounding spaces, and with folds joined as this package does.
func trimmed(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = strings.Trim(v, " \t")
	}
	return out
}

// TestHeaderTimeoutHTTP2 requests a server that sends no header over HTTP/2.
func TestHeaderTimeoutHTTP2(t *testing.T) {
	server, roots := tlsServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	c := testClient(t, func(cfg *Config) { cfg.Roots, cfg.HeaderTimeout = roots, 30*time.Millisecond })
	out := c.Fetch(context.Background(), ask(t, "https://example.com:"+port+"/"))
	if !out.HTTP2 || out.Page.Outcome != blobschema.OutcomeTimeout || out.Page.Detail != "no answer in time" {
		t.Errorf("HTTP/2 %v, outcome %v, %q", out.HTTP2, out.Page.Outcome, out.Page.Detail)
	}
}

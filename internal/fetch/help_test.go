package fetch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// testClient returns a client that may connect to loopback and resolves every name to it.
func testClient(t testing.TB, change func(*Config)) *Client {
	t.Helper()
	cfg := Config{
		UserAgent: "orbtest/1.0 (+http://example.org/bot)",
		Token:     "orbtest",
		AllowNet:  []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{loopback}, nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	c := New(cfg)
	t.Cleanup(c.Close)
	return c
}

func parse(t testing.TB, s string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(s)
	if err != nil {
		t.Fatalf("parse %q: %v", s, err)
	}
	return u
}

func ask(t testing.TB, url string) actor.Request {
	return actor.Request{URL: parse(t, url), Attempt: 1}
}

// rawServer runs serve for each connection to the host that it returns. Connections are
// closed when serve returns; the test ends when all have.
func rawServer(t testing.TB, serve func(net.Conn)) (host string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// answer reads one request and writes text.
func answer(text string) func(net.Conn) {
	return func(c net.Conn) {
		readRequest(c)
		io.WriteString(c, text)
	}
}

// hang waits until the client closes the connection.
func hang(c net.Conn) { io.Copy(io.Discard, c) }

func readRequest(c net.Conn) (*http.Request, error) {
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	defer c.SetReadDeadline(time.Time{})
	return http.ReadRequest(bufio.NewReader(c))
}

func gzipped(s string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, s)
	w.Close()
	return b.Bytes()
}

// codings lists all content codings; "" means no coding.
var codings = []string{"", "gzip", "br", "zstd"}

// encode returns s in a content coding.
func encode(t testing.TB, coding, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "":
		return []byte(s)
	case "gzip":
		return gzipped(s)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	default:
		t.Fatalf("no encoder of %q", coding)
	}
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// htmlPage returns about n bytes of HTML with links.
func htmlPage(n int) string {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html><html><head><title>A page</title></head><body>")
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `<p class="item c%d">Words of paragraph %d, %x and so on. <a href="/section/%d.html">Read more</a></p>`, i%7, i, i*7919, i)
	}
	return b.String()
}

func gunzip(t testing.TB, b []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("open gzip member: %v", err)
	}
	r.Multistream(false)
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("read gzip member: %v", err)
	}
	return string(out)
}

// records checks the record bytes against the promises of actor.Outcome, and returns both records.
func records(t testing.TB, out *actor.Outcome) (request, response string) {
	t.Helper()
	if cap(out.Record) != len(out.Record) {
		t.Errorf("record of %d bytes holds %d", len(out.Record), cap(out.Record))
	}
	if int64(out.ResponseAt)+out.Page.Length != int64(len(out.Record)) {
		t.Fatalf("response at %d, long %d, of %d bytes", out.ResponseAt, out.Page.Length, len(out.Record))
	}
	return gunzip(t, out.Record[:out.ResponseAt]), gunzip(t, out.Record[out.ResponseAt:])
}

// payload returns the body within a record, without transfer coding.
func payload(t testing.TB, record string) string {
	t.Helper()
	parts := strings.SplitN(record, "\r\n\r\n", 3)
	if len(parts) != 3 || !strings.HasSuffix(parts[2], "\r\n\r\n") {
		t.Fatalf("not a record: %q", record)
	}
	body := strings.TrimSuffix(parts[2], "\r\n\r\n")
	if strings.Contains(parts[1], "\r\nTransfer-Encoding: chunked") && !strings.Contains(parts[0], "WARC-Protocol") {
		b, err := warc.Dechunk(nil, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	return body
}

func wantOutcome(t testing.TB, out *actor.Outcome, want blobschema.Outcome) {
	t.Helper()
	if out.Page.Outcome != want {
		t.Fatalf("outcome %d, want %d (status %d, detail %q)", out.Page.Outcome, want, out.Page.Status, out.Page.Detail)
	}
}

package fetch

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
)

func TestFetchPage(t *testing.T) {
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Etag", `"v1"`)
		w.Header().Set("Set-Cookie", "a=b")
		io.WriteString(w, `<title>T</title><a href="/next">Next</a>`)
	}))
	defer server.Close()
	c := testClient(t, nil)
	before := time.Now()
	out := c.Fetch(context.Background(), ask(t, server.URL+"/dir/?q=1"))
	wantOutcome(t, out, blobschema.OutcomeOK)

	wantHeader := http.Header{
		"User-Agent":      {"orbtest/1.0 (+http://example.org/bot)"},
		"Accept":          {"text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"},
		"Accept-Encoding": {"gzip, br, zstd"},
	}
	if diff := cmp.Diff(wantHeader, got); diff != "" {
		t.Errorf("header sent (-want +got)\n%s", diff)
	}
	p := out.Page
	if p.URL != server.URL+"/dir/?q=1" || p.Status != 200 || p.MIME != "text/html" || p.ETag != `"v1"` || p.Attempts != 1 || p.Detail != "" || p.BodyBytes != 40 {
		t.Errorf("page %+v", p)
	}
	if p.Time.Before(before.Truncate(time.Microsecond)) || p.Time.Location() != time.UTC {
		t.Errorf("time %v", p.Time)
	}
	if len(out.Links) != 1 || out.Links[0].URL.String() != server.URL+"/next" {
		t.Errorf("links %v", out.Links)
	}
	if out.Connect <= 0 || out.Response <= 0 || out.Reused || out.Closed || out.Temporary || out.Ended.Before(out.Started) {
		t.Errorf("observed %+v", out)
	}
	request, response := records(t, out)
	if !strings.Contains(request, "\r\n\r\nGET /dir/?q=1 HTTP/1.1\r\nHost: "+strings.TrimPrefix(server.URL, "http://")+"\r\nUser-Agent: orbtest/1.0") {
		t.Errorf("request record\n%s", request)
	}
	for _, want := range []string{
		"\r\nWARC-IP-Address: 127.0.0.1\r\n", "\r\n\r\nHTTP/1.1 200 OK\r\n", "\r\nContent-Length: 40\r\n",
		"\r\nSet-Cookie: a=b\r\n", "WARC-Concurrent-To: ", `<a href="/next">`,
	} {
		if !strings.Contains(response, want) {
			t.Errorf("no %q in response record\n%s", want, response)
		}
	}

	c.Fetch(context.Background(), ask(t, server.URL+"/"))
	if got.Get("Cookie") != "" {
		t.Error("a cookie was sent back")
	}
}

// TestRequestHead compares the stored request with the bytes sent.
func TestRequestHead(t *testing.T) {
	for _, path := range []string{
		"/", "/a/b?c=d&e", "/?", "/a|b?{}|", "/%zz%", "//double//slash?x", "//%zz", "/%2F%2f/", "/a;b=c/d,e/'()*!$", "/?q=\"<>",
	} {
		var sent bytes.Buffer
		host := rawServer(t, func(c net.Conn) {
			r := bufio.NewReader(io.TeeReader(c, &sent))
			http.ReadRequest(r)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			hang(c)
		})
		c := testClient(t, nil)
		u := parse(t, "http://"+host+path)
		out := c.Fetch(context.Background(), actor.Request{URL: u})
		wantOutcome(t, out, blobschema.OutcomeOK)
		var b buffers
		c.requestHead(&b, &actor.Request{URL: u})
		if diff := cmp.Diff(string(b.head), sent.String()); diff != "" {
			t.Errorf("%s: request stored and sent differ (-stored +sent)\n%s", path, diff)
		}
	}
}

func TestRequestURL(t *testing.T) {
	for _, s := range []string{"http://example.org//a/b?x", "https://example.org//", "http://example.org:8080/a%7Cb/%C3%BC/'(!)?{%7B", "http://example.org/?a=//b"} {
		u := parse(t, s)
		r, err := http2Request(context.Background(), &actor.Request{URL: u}, nil)
		if err != nil || r.URL.RequestURI() != u.RequestURI() || r.Host != string(u.Host()) {
			t.Errorf("%s is requested as %+v, %v", s, r, err)
		}
	}
}

func TestFetchBodyBound(t *testing.T) {
	const bound = 100_000
	var size atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, `<a href="/x">`)
		w.(http.Flusher).Flush() // chunked
		io.WriteString(w, strings.Repeat("x", int(size.Load())-13))
	}))
	defer server.Close()
	for _, tt := range []struct {
		size, stored int64
		truncated    string
		robots       bool
	}{
		{bound - 1, bound - 1, "", false},
		{bound, bound, "", false},
		{bound + 1, bound, "length", false},
		{50 * bound, bound, "length", false},
		{maxRobots + 1, bound, "length", true},
	} {
		size.Store(tt.size)
		c := testClient(t, func(cfg *Config) { cfg.MaxBody = bound })
		req := ask(t, server.URL)
		req.Robots = tt.robots
		out := c.Fetch(context.Background(), req)
		wantOutcome(t, out, blobschema.OutcomeOK)
		_, response := records(t, out)
		if n := int64(len(payload(t, response))); n != tt.stored || out.Page.BodyBytes != tt.stored || out.Page.Truncated != tt.truncated {
			t.Errorf("size %d: stored %d, page says %d, %q", tt.size, n, out.Page.BodyBytes, out.Page.Truncated)
		}
		if strings.Contains(response, "\r\nWARC-Truncated: length\r\n") != (tt.truncated != "") {
			t.Errorf("size %d: record not marked rightly", tt.size)
		}
		if out.Temporary || !tt.robots && len(out.Links) != 1 {
			t.Errorf("size %d: temporary %v, links %v", tt.size, out.Temporary, out.Links)
		}
	}
	c := testClient(t, nil)
	req := ask(t, server.URL)
	req.Robots = true
	size.Store(2 * maxRobots)
	if out := c.Fetch(context.Background(), req); out.Page.BodyBytes != maxRobots || len(out.Body) != maxRobots {
		t.Errorf("robots.txt of %d bytes stored, %d kept", out.Page.BodyBytes, len(out.Body))
	}
}

// TestFetchLarge fetches many large bodies at once with few large buffers.
func TestFetchLarge(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", (3<<20)/16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, body) }))
	defer server.Close()
	c := testClient(t, func(cfg *Config) { cfg.MaxLarge, cfg.Processors = 1, 1 })
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			out := c.Fetch(context.Background(), ask(t, server.URL))
			if out.Page.Outcome != blobschema.OutcomeOK || out.Page.BodyBytes != int64(len(body)) {
				t.Errorf("outcome %d, %d bytes: %s", out.Page.Outcome, out.Page.BodyBytes, out.Page.Detail)
			}
		})
	}
	all.Wait()
	if len(c.large) != 0 || len(c.scratch) != 1 {
		t.Errorf("%d places not given back, %d processors free", len(c.large), len(c.scratch))
	}
}

func TestFetchConnections(t *testing.T) {
	text := "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"
	last := "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody"
	type seen struct {
		Reused, Closed, Connect bool
		Wire                    int64
	}
	for _, tt := range []struct {
		name    string
		answers []string // of each connection, until it is closed
		want    []seen
	}{
		{"kept", []string{text, text, text}, []seen{
			{false, false, true, int64(len(text))}, {true, false, false, int64(len(text))}, {true, false, false, int64(len(text))}}},
		{"told to close", []string{last}, []seen{{false, true, true, int64(len(last))}, {false, true, true, int64(len(last))}}},
		{"last of two", []string{text, last}, []seen{
			{false, false, true, int64(len(text))}, {true, true, false, int64(len(last))}, {false, false, true, int64(len(text))}}},
		{"closed without a word", []string{text}, []seen{{false, false, true, int64(len(text))}, {false, false, true, int64(len(text))}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			host := rawServer(t, func(c net.Conn) {
				for _, a := range tt.answers {
					if _, err := readRequest(c); err != nil {
						return
					}
					io.WriteString(c, a)
				}
			})
			c := testClient(t, nil)
			for i, want := range tt.want {
				out := c.Fetch(context.Background(), ask(t, "http://"+host+"/"))
				wantOutcome(t, out, blobschema.OutcomeOK)
				if diff := cmp.Diff(want, seen{out.Reused, out.Closed, out.Connect > 0, out.Wire}); diff != "" {
					t.Errorf("request %d (-want +got)\n%s", i, diff)
				}
			}
		})
	}
}

func TestFetchCloseIdle(t *testing.T) {
	gone := make(chan struct{})
	host := rawServer(t, func(c net.Conn) {
		answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")(c)
		hang(c)
		close(gone)
	})
	c := testClient(t, nil)
	wantOutcome(t, c.Fetch(context.Background(), ask(t, "http://"+host+"/")), blobschema.OutcomeOK)
	c.CloseIdle()
	<-gone
}

func tlsServer(t *testing.T, h http.Handler) (*httptest.Server, *x509.CertPool) {
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server, roots
}

func TestFetchHTTP2(t *testing.T) {
	server, roots := tlsServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/reset":
			w.Write(make([]byte, 10))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "/large-header":
			w.Header().Set("X", strings.Repeat("y", 80<<10))
		case "/large":
			w.Write(make([]byte, 5<<20))
			return
		}
		fmt.Fprintf(w, "%s %s %s", r.Proto, r.URL.RequestURI(), r.Host)
	}))
	c := testClient(t, func(cfg *Config) { cfg.Roots, cfg.MaxBody = roots, 4<<20 })
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	base := "https://example.com:" + port
	for i, path := range []string{"/", "/a|b?{}", "//x?y"} {
		req := ask(t, base+path)
		out := c.Fetch(context.Background(), req)
		wantOutcome(t, out, blobschema.OutcomeOK)
		_, response := records(t, out)
		want := "HTTP/2.0 " + req.URL.RequestURI() + " example.com:" + port
		if got := payload(t, response); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if !strings.Contains(response, "\r\n\r\nHTTP/1.1 200 OK\r\n") || !strings.Contains(response, "WARC-IP-Address: 127.0.0.1") {
			t.Errorf("stored %q", response)
		}
		if !out.HTTP2 || out.Reused != (i > 0) || (out.Connect > 0) != (i == 0) || out.Wire <= 0 || out.Response <= 0 || out.Closed {
			t.Errorf("request %d: observed %+v", i, out)
		}
	}
	out := c.Fetch(context.Background(), ask(t, base+"/reset"))
	wantOutcome(t, out, blobschema.OutcomeCut)
	if !out.Temporary || out.Page.Status != 200 {
		t.Errorf("%+v", out)
	}
	wantOutcome(t, c.Fetch(context.Background(), ask(t, base+"/large-header")), blobschema.OutcomeProtocol)
	out = c.Fetch(context.Background(), ask(t, base+"/large"))
	wantOutcome(t, out, blobschema.OutcomeOK)
	if out.Page.BodyBytes != 4<<20 || out.Page.Truncated != "length" || out.Wire < 4<<20 {
		t.Errorf("%d bytes, %q, %d on the wire", out.Page.BodyBytes, out.Page.Truncated, out.Wire)
	}
	server.Config.SetKeepAlivesEnabled(false) // sends GOAWAY
	wantOutcome(t, c.Fetch(context.Background(), ask(t, base+"/")), blobschema.OutcomeOK)
}

func TestFetchTLS(t *testing.T) {
	server, roots := tlsServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "body") }))
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	plain := rawServer(t, answer("HTTP/1.1 200 OK\r\n\r\n"))
	silent := rawServer(t, hang)
	closes := rawServer(t, func(c net.Conn) { io.ReadFull(c, make([]byte, 100)) })
	for _, tt := range []struct {
		name, url string
		change    func(*Config)
		temporary bool
		detail    string // prefix
	}{
		{"unknown authority", server.URL, nil, false, "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		{"other name", "https://other.example:" + port, func(cfg *Config) { cfg.Roots = roots }, false,
			"tls: failed to verify certificate: x509: certificate is valid for example.com"},
		{"plain HTTP", "https://" + plain, nil, true, "not TLS"},
		{"silent", "https://" + silent, func(cfg *Config) { cfg.ConnectTimeout = 30 * time.Millisecond }, true, "no connection in time"},
		{"closes", "https://" + closes, nil, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := testClient(t, tt.change).Fetch(context.Background(), ask(t, tt.url))
			wantOutcome(t, out, blobschema.OutcomeTLS)
			if out.Temporary != tt.temporary || !strings.HasPrefix(out.Page.Detail, tt.detail) {
				t.Errorf("temporary %v, detail %q", out.Temporary, out.Page.Detail)
			}
		})
	}
}

func TestReasonExpired(t *testing.T) {
	err := &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time 2024-02-29 is after 2023"}}
	if got := reason(err); strings.Contains(got, "2024") {
		t.Errorf("the reason %q depends on the time of day", got)
	}
}

func TestFetchNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := l.Addr().String()
	l.Close()
	lookup := func(found []netip.Addr, err error) func(*Config) {
		return func(cfg *Config) {
			cfg.Lookup = func(context.Context, string) ([]netip.Addr, error) { return found, err }
		}
	}
	for _, tt := range []struct {
		name, url string
		change    func(*Config)
		want      blobschema.Outcome
		temporary bool
		detail    string
	}{
		{"refused", "http://" + dead, nil, blobschema.OutcomeConnect, true, "connection refused"},
		{"no such host", "http://nowhere.example/", lookup(nil, errNoName), blobschema.OutcomeDNS, false, "no such host"},
		{"no address", "http://nowhere.example/", lookup(nil, nil), blobschema.OutcomeDNS, false, "no such host"},
		{"name server fails", "http://nowhere.example/",
			lookup(nil, &net.DNSError{Err: "server misbehaving", Server: "10.0.0.1:53", IsTemporary: true}), blobschema.OutcomeDNS, true, "server misbehaving"},
		{"name server is slow", "http://nowhere.example/",
			func(cfg *Config) {
				cfg.ConnectTimeout = 30 * time.Millisecond
				cfg.Lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) {
					<-ctx.Done()
					return nil, &net.DNSError{Err: ctx.Err().Error(), IsTimeout: true}
				}
			}, blobschema.OutcomeDNS, true, "name server does not answer"},
		{"all the time goes into the name", "http://nowhere.example/",
			func(cfg *Config) {
				cfg.Timeout = 30 * time.Millisecond
				cfg.Lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
			}, blobschema.OutcomeConnect, true, "took too long"},
		{"forbidden name", "http://metadata.example/", lookup(addrs("169.254.169.254"), nil), blobschema.OutcomeForbidden, false, "address 169.254.169.254 is not allowed"},
		{"forbidden number", "http://169.254.169.254/latest", nil, blobschema.OutcomeForbidden, false, "address 169.254.169.254 is not allowed"},
		{"forbidden IPv6", "http://[::1]/", nil, blobschema.OutcomeForbidden, false, "address ::1 is not allowed"},
		{"forbidden mapped", "https://[::ffff:10.0.0.1]/", nil, blobschema.OutcomeForbidden, false, "address 10.0.0.1 is not allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := testClient(t, tt.change).Fetch(context.Background(), ask(t, tt.url))
			wantOutcome(t, out, tt.want)
			detail := strings.Replace(out.Page.Detail, "::ffff:", "", 1)
			if out.Temporary != tt.temporary || tt.detail != "" && detail != tt.detail {
				t.Errorf("temporary %v, detail %q", out.Temporary, out.Page.Detail)
			}
			if out.Wire != 0 || out.Connect != 0 || len(out.Record) != 0 {
				t.Errorf("observed %+v", out)
			}
		})
	}
}

// TestFetchGuard requests names that lead to internal addresses. No connection may arrive there.
func TestFetchGuard(t *testing.T) {
	var connections atomic.Int32
	host := rawServer(t, func(net.Conn) { connections.Add(1) })
	_, port, _ := net.SplitHostPort(host)
	c := testClient(t, func(cfg *Config) { cfg.AllowNet = nil })
	wantOutcome(t, c.Fetch(context.Background(), ask(t, "http://inside.example:"+port+"/")), blobschema.OutcomeForbidden)
	wantOutcome(t, c.Fetch(context.Background(), ask(t, "http://127.0.0.1:"+port+"/")), blobschema.OutcomeForbidden)

	// The last check considers only the address of the socket, not the name.
	d := &dialer{names: c.names, timeout: time.Second}
	_, _, err := d.try(context.Background(), addrs("127.0.0.1"), netip.MustParseAddrPort(host).Port())
	var v verdict
	if !errors.As(err, &v) || v != forbidden(loopback) {
		t.Errorf("error %v", err)
	}
	if connections.Load() != 0 {
		t.Error("a connection was made")
	}
}

// TestFetchRebinding requests a name that resolves to an allowed address first and to forbidden ones later.
func TestFetchRebinding(t *testing.T) {
	var now clock
	var inside atomic.Bool
	host := rawServer(t, answer("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody"))
	_, port, _ := net.SplitHostPort(host)
	c := testClient(t, func(cfg *Config) {
		cfg.Clock = now.now
		cfg.Lookup = func(context.Context, string) ([]netip.Addr, error) {
			if inside.Load() {
				return addrs("10.0.0.1", "169.254.169.254"), nil
			}
			return addrs("10.0.0.1", "127.0.0.1"), nil // the first is skipped
		}
	})
	req := ask(t, "http://rebind.example:"+port+"/")
	wantOutcome(t, c.Fetch(context.Background(), req), blobschema.OutcomeOK)
	inside.Store(true)
	wantOutcome(t, c.Fetch(context.Background(), req), blobschema.OutcomeOK) // from the cache
	now.advance(foundFor)
	wantOutcome(t, c.Fetch(context.Background(), req), blobschema.OutcomeForbidden)
}

// TestFetchNextAddress requests a name whose first address is dead. The working address must be remembered.
func TestFetchNextAddress(t *testing.T) {
	host := rawServer(t, answer("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody"))
	_, port, _ := net.SplitHostPort(host)
	c := testClient(t, func(cfg *Config) {
		cfg.Lookup = func(context.Context, string) ([]netip.Addr, error) { return addrs("127.0.0.2", "127.0.0.1"), nil }
	})
	wantOutcome(t, c.Fetch(context.Background(), ask(t, "http://two.example:"+port+"/")), blobschema.OutcomeOK)
	if got, _ := c.names.resolve(context.Background(), "two.example"); got[0] != loopback {
		t.Errorf("addresses %v after one of them worked", got)
	}
}

func TestFetchAborted(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run("cancelled, "+scheme, func(t *testing.T) {
			gone := make(chan struct{})
			host := rawServer(t, func(c net.Conn) {
				hang(c)
				close(gone)
			})
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			out := testClient(t, func(cfg *Config) { cfg.ConnectTimeout = time.Hour }).Fetch(ctx, ask(t, scheme+"://"+host+"/"))
			wantOutcome(t, out, blobschema.OutcomeAborted)
			if !out.Temporary || out.Page.Detail != context.DeadlineExceeded.Error() {
				t.Errorf("temporary %v, detail %q", out.Temporary, out.Page.Detail)
			}
			<-gone // even a connection that was being opened ends
		})
	}
	t.Run("cancelled within the body", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		host := rawServer(t, func(c net.Conn) {
			answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")(c)
			cancel()
			hang(c)
		})
		out := testClient(t, nil).Fetch(ctx, ask(t, "http://"+host+"/"))
		wantOutcome(t, out, blobschema.OutcomeAborted)
	})
	t.Run("no processor", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		host := rawServer(t, func(c net.Conn) {
			answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")(c)
			hang(c)
		})
		c := testClient(t, func(cfg *Config) { cfg.Processors = 1; cfg.Timeout = 50 * time.Millisecond })
		s := <-c.scratch
		time.AfterFunc(200*time.Millisecond, cancel) // waiting for a processor does not count against the server
		wantOutcome(t, c.Fetch(ctx, ask(t, "http://"+host+"/")), blobschema.OutcomeAborted)
		c.scratch <- s
	})
}

func TestConfigValidate(t *testing.T) {
	good := Config{UserAgent: "a/1", Token: "a"}
	if err := good.Validate(); err != nil {
		t.Errorf("good configuration: %v", err)
	}
	for name, change := range map[string]func(*Config){
		"no user agent":  func(c *Config) { c.UserAgent = "" },
		"bad user agent": func(c *Config) { c.UserAgent = "a\r\nb" },
		"no token":       func(c *Config) { c.Token = "" },
		"bad token":      func(c *Config) { c.Token = "a b" },
		"large body":     func(c *Config) { c.MaxBody = warc.MaxBlock },
		"bad net":        func(c *Config) { c.AllowNet = []netip.Prefix{{}} },
	} {
		bad := good
		change(&bad)
		if bad.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestProxyIgnored sets the environment variables of a proxy.
func TestProxyIgnored(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	host := rawServer(t, answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"))
	wantOutcome(t, testClient(t, nil).Fetch(context.Background(), ask(t, "http://"+host+"/")), blobschema.OutcomeOK)
}

// FuzzFetch answers with any bytes.
func FuzzFetch(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<a href='/x'>",
		"HTTP/1.1 301 Moved\r\nLocation: http://[::1]/\r\n\r\n",
		"HTTP/1.0 200 OK\r\n\r\nbody",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a\r\nab\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 429 Slow\r\nRetry-After: 10\r\n\r\n",
		"HTTP/1.1 101 S\r\n\r\n",
		"\x16\x03\x01",
	} {
		f.Add([]byte(s))
	}
	log.SetOutput(io.Discard) // net/http reports bytes after an answer
	var text atomic.Pointer[[]byte]
	host := rawServer(f, func(c net.Conn) {
		readRequest(c)
		c.Write(*text.Load())
	})
	c := testClient(f, func(cfg *Config) { cfg.MaxBody = 64 << 10 })
	f.Fuzz(func(t *testing.T, b []byte) {
		text.Store(&b)
		out := c.Fetch(context.Background(), ask(t, "http://"+host+"/"))
		switch o := out.Page.Outcome; o {
		case blobschema.OutcomeProtocol, blobschema.OutcomeCut:
			if len(out.Record) != 0 {
				t.Errorf("outcome %d has a record", o)
			}
		case blobschema.OutcomeOK, blobschema.OutcomeRedirect, blobschema.OutcomeClientError, blobschema.OutcomeServerError:
			records(t, out)
		default:
			t.Errorf("outcome %d: %s", o, out.Page.Detail)
		}
	})
}

func BenchmarkFetch(b *testing.B) {
	html := []byte(htmlPage(30 << 10))
	packed := gzipped(string(html))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.Path == "/gzip" {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(packed)
			return
		}
		w.Write(html)
	}))
	defer server.Close()
	for _, path := range []string{"/plain", "/gzip"} {
		b.Run(path[1:]+"30KB", func(b *testing.B) {
			c := testClient(b, nil)
			req := ask(b, server.URL+path)
			b.ReportAllocs()
			for b.Loop() {
				if out := c.Fetch(context.Background(), req); out.Page.Outcome != blobschema.OutcomeOK {
					b.Fatal(out.Page.Detail)
				}
			}
		})
	}
}

// TestFetchIdle visits five hosts in rotation with three idle connections. The hosts needed soonest
// keep theirs.
func TestFetchIdle(t *testing.T) {
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "body") }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	c := testClient(t, func(cfg *Config) { cfg.MaxIdle = 3 })
	began := time.Now()
	visit := func(host int, next time.Duration) bool {
		req := ask(t, fmt.Sprintf("http://h%d.example:%s/", host, port))
		if next > 0 {
			req.Next = began.Add(next)
		}
		out := c.Fetch(context.Background(), req)
		wantOutcome(t, out, blobschema.OutcomeOK)
		return out.Reused
	}
	reused := 0
	for i := range 50 {
		if visit(i%5, time.Duration(i+5)*time.Second) {
			reused++
		}
	}
	if reused < 20 || int(opened.Load()) != 50-reused { // of five turns the best plan reuses two; closing the oldest reuses none
		t.Errorf("%d of 50 requests over a connection that was open, %d opened", reused, opened.Load())
	}
	c.CloseIdle()
	for host, next := range []time.Duration{0, time.Hour, time.Minute, time.Second} {
		visit(10+host, next)
	}
	if visit(10, 0) || !visit(13, time.Second) || !visit(12, time.Minute) {
		t.Error("a connection that is not needed was kept, or one that is needed was closed")
	}
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	if n := len(c.pool.conns); n != 3 || c.pool.idle != 3 {
		t.Errorf("%d idle connections, counted as %d, want 3", n, c.pool.idle)
	}
}

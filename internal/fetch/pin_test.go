package fetch

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// TestOrigins checks which requests must not share a connection, and which no connection may serve.
func TestOrigins(t *testing.T) {
	seen := map[origin]bool{}
	for _, u := range []string{"http://example.org/", "https://example.org/", "http://example.org:8080/", "http://a.example/"} {
		for _, a := range append(addrs("1.2.3.4", "1.2.3.5", "2606::1"), netip.Addr{}) {
			o, ok := originOf(&actor.Request{URL: parse(t, u), Addr: a})
			if !ok || seen[o] {
				t.Errorf("%s at %s: origin %v, seen before %v", u, a, o, seen[o])
			}
			seen[o] = true
		}
	}
	for u, want := range map[string]bool{"http://[2606::1]:80/": false, "http://1.2.3.4:80/": true, "http://1.2.3.5/": false} {
		o, ok := originOf(&actor.Request{URL: parse(t, u), Addr: netip.MustParseAddr("::ffff:1.2.3.4")})
		if ok != want || o.addr.IsValid() || o.port != 80 {
			t.Errorf("%s at 1.2.3.4: origin %v, %v", u, o, ok)
		}
	}
}

// twoAddresses listens at one port of two loopback addresses; each answers with its own address
// and the number of its connection.
func twoAddresses(t *testing.T) (port string) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(first.Addr().String())
	second, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		first.Close()
		t.Skipf("no second loopback address: %v", err)
	}
	for _, l := range []net.Listener{first, second} {
		var servers sync.WaitGroup
		var connections atomic.Int32
		type key struct{}
		s := &http.Server{
			ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
				return context.WithValue(ctx, key{}, connections.Add(1))
			},
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				host, _, _ := net.SplitHostPort(l.Addr().String())
				fmt.Fprintf(w, "%s %d %s", host, r.Context().Value(key{}), r.Host)
			}),
		}
		servers.Go(func() { s.Serve(l) })
		t.Cleanup(func() {
			s.Close()
			servers.Wait()
		})
	}
	return port
}

// TestFetchPinned alternates between two addresses of a host and no given address. Each keeps its own
// connection.
func TestFetchPinned(t *testing.T) {
	port := twoAddresses(t)
	asked := 0
	c := testClient(t, func(cfg *Config) {
		cfg.Lookup = func(context.Context, string) ([]netip.Addr, error) {
			asked++
			return addrs("127.0.0.1"), nil
		}
	})
	req := ask(t, "http://pinned.example:"+port+"/")
	for i, tt := range []struct {
		addr, want string
		reused     bool
	}{
		{"127.0.0.2", "127.0.0.2 1", false},
		{"127.0.0.1", "127.0.0.1 1", false},
		{"127.0.0.2", "127.0.0.2 1", true},
		{"::ffff:127.0.0.2", "127.0.0.2 1", true},
		{"", "127.0.0.1 2", false},
		{"127.0.0.1", "127.0.0.1 1", true},
		{"", "127.0.0.1 2", true},
	} {
		req.Addr = netip.Addr{}
		if tt.addr != "" {
			req.Addr = netip.MustParseAddr(tt.addr)
		}
		out := c.Fetch(context.Background(), req)
		wantOutcome(t, out, blobschema.OutcomeOK)
		_, response := records(t, out)
		if got := payload(t, response); got != tt.want+" pinned.example:"+port || out.Reused != tt.reused {
			t.Errorf("request %d: %q, reused %v", i, got, out.Reused)
		}
		if out.IP != strings.Fields(tt.want)[0] || !strings.Contains(response, "WARC-IP-Address: "+out.IP+"\r\n") {
			t.Errorf("request %d: address %s in\n%s", i, out.IP, response)
		}
	}
	if asked != 1 {
		t.Errorf("%d look-ups for one request that was not pinned", asked)
	}
}

func TestFetchPinnedTLS(t *testing.T) {
	server, roots := tlsServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Proto+" "+r.TLS.ServerName+" "+r.Host)
	}))
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	c := testClient(t, func(cfg *Config) {
		cfg.Roots = roots
		cfg.Lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, errNoName }
	})
	req := ask(t, "https://example.com:"+port+"/")
	req.Addr = loopback
	for i := range 2 {
		out := c.Fetch(context.Background(), req)
		wantOutcome(t, out, blobschema.OutcomeOK)
		_, response := records(t, out)
		if got := payload(t, response); got != "HTTP/2.0 example.com example.com:"+port || out.Reused != (i > 0) {
			t.Errorf("request %d: %q, reused %v", i, got, out.Reused)
		}
	}
	req.URL = parse(t, "https://other.example:"+port+"/") // the certificate is for another name
	wantOutcome(t, c.Fetch(context.Background(), req), blobschema.OutcomeTLS)
	req.URL, req.Addr = parse(t, "https://example.com:"+port+"/"), netip.Addr{}
	wantOutcome(t, c.Fetch(context.Background(), req), blobschema.OutcomeDNS) // not over the pinned connection
}

// TestFetchPinnedGuard pins requests to forbidden addresses.
func TestFetchPinnedGuard(t *testing.T) {
	var connections atomic.Int32
	host := rawServer(t, func(net.Conn) { connections.Add(1) })
	_, port, _ := net.SplitHostPort(host)
	c := testClient(t, func(cfg *Config) { cfg.AllowNet = nil })
	for _, tt := range []struct{ url, addr string }{
		{"http://inside.example:" + port + "/", "127.0.0.1"},
		{"https://inside.example:" + port + "/", "::ffff:127.0.0.1"},
		{"http://inside.example:" + port + "/", "::1"},
		{"http://127.0.0.1:" + port + "/", "127.0.0.1"},
		{"http://8.8.8.8:" + port + "/", "127.0.0.1"}, // the host is another address
		{"http://[2606::1]:" + port + "/", "2606::2"},
	} {
		req := ask(t, tt.url)
		req.Addr = netip.MustParseAddr(tt.addr)
		out := c.Fetch(context.Background(), req)
		wantOutcome(t, out, blobschema.OutcomeForbidden)
		if out.Temporary || out.IP != "" {
			t.Errorf("%s at %s: %+v", tt.url, tt.addr, out)
		}
	}
	if connections.Load() != 0 {
		t.Error("a connection was made")
	}
	req := ask(t, "http://"+host+"/") // the host is the pinned address
	req.Addr = loopback
	host2 := testClient(t, nil).Fetch(context.Background(), req)
	wantOutcome(t, host2, blobschema.OutcomeCut)
	if connections.Load() == 0 {
		t.Error("no connection was made")
	}
}

func TestFetchResolve(t *testing.T) {
	many := make([]netip.Addr, 0, 40)
	for i := range 40 { // unordered, and more than are kept
		many = append(many, netip.AddrFrom4([4]byte{8, 8, byte(i * 7 % 40), 8}))
	}
	for _, tt := range []struct {
		name, url string
		found     []netip.Addr
		err       error
		want      blobschema.Outcome
		addr      string
		temporary bool
	}{
		{"lowest", "http://a.example/", addrs("8.8.8.8", "1.1.1.1", "9.9.9.9"), nil, blobschema.OutcomeOK, "1.1.1.1", false},
		{"IPv4 first", "https://a.example:99/x", addrs("2001:4860::1", "::ffff:9.9.9.9"), nil, blobschema.OutcomeOK, "9.9.9.9", false},
		{"IPv6 only", "http://a.example/", addrs("2606::2", "2606::1"), nil, blobschema.OutcomeOK, "2606::1", false},
		{"lowest allowed", "http://a.example/", addrs("9.9.9.9", "10.0.0.1", "2606::1"), nil, blobschema.OutcomeOK, "9.9.9.9", false},
		{"many", "http://a.example/", append(addrs("2606::1"), many...), nil, blobschema.OutcomeOK, "8.8.0.8", false},
		{"all inside", "http://a.example/", addrs("10.0.0.1", "::1"), nil, blobschema.OutcomeForbidden, "", false},
		{"no such name", "http://a.example/", nil, errNoName, blobschema.OutcomeDNS, "", false},
		{"none", "http://a.example/", nil, nil, blobschema.OutcomeDNS, "", false},
		{"fails", "http://a.example/", nil, &net.DNSError{Err: "server misbehaving", IsTemporary: true}, blobschema.OutcomeDNS, "", true},
		{"literal", "http://8.8.8.8:81/", nil, nil, blobschema.OutcomeOK, "8.8.8.8", false},
		{"IPv6 literal", "https://[2606::1]/", nil, nil, blobschema.OutcomeOK, "2606::1", false},
		{"mapped literal", "http://[::ffff:808:808]/", nil, nil, blobschema.OutcomeOK, "8.8.8.8", false},
		{"literal inside", "http://10.0.0.1/", nil, nil, blobschema.OutcomeForbidden, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			c := testClient(t, func(cfg *Config) {
				cfg.Lookup = func(context.Context, string) ([]netip.Addr, error) {
					asked++
					return tt.found, tt.err
				}
			})
			req := ask(t, tt.url)
			req.Resolve = true
			for range 2 {
				out := c.Fetch(context.Background(), req)
				wantOutcome(t, out, tt.want)
				if got := out.Addr; out.Temporary != tt.temporary || got.IsValid() != (tt.addr != "") || got.IsValid() && got.String() != tt.addr {
					t.Errorf("address %v, temporary %v", got, out.Temporary)
				}
				if out.Page.URL != tt.url || len(out.Record) != 0 || out.Wire != 0 || out.Page.Status != 0 || out.Page.Attempts != 1 || out.Ended.Before(out.Started) {
					t.Errorf("outcome %+v", out)
				}
			}
			if asked > 1 {
				t.Errorf("%d look-ups", asked)
			}
		})
	}
}

func TestFetchResolveEnds(t *testing.T) {
	slow := func(cfg *Config) {
		cfg.Lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*Config)
		ctx    time.Duration // until it is cancelled
		want   blobschema.Outcome
	}{
		{"name server does not answer", func(cfg *Config) { cfg.ConnectTimeout = 20 * time.Millisecond }, time.Hour, blobschema.OutcomeDNS},
		{"whole time", func(cfg *Config) { cfg.Timeout = 20 * time.Millisecond }, time.Hour, blobschema.OutcomeDNS},
		{"cancelled", func(*Config) {}, 20 * time.Millisecond, blobschema.OutcomeAborted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := testClient(t, func(cfg *Config) { slow(cfg); tt.change(cfg) })
			ctx, cancel := context.WithTimeout(context.Background(), tt.ctx)
			defer cancel()
			req := actor.Request{URL: parse(t, "http://slow.example/"), Resolve: true}
			out := c.Fetch(ctx, req)
			wantOutcome(t, out, tt.want)
			if !out.Temporary || out.Addr.IsValid() {
				t.Errorf("%+v", out)
			}
		})
	}
}

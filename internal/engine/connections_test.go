package engine_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/platform"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// TestConnectionsLast crawls more hosts at a slow pace than requests may be under way at once.
// Each host's connection serves all of its pages.
func TestConnectionsLast(t *testing.T) {
	const hosts, perHost = 600, 4
	var opened atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		if n := len(r.URL.Path); n < perHost { // "/", "/a", "/aa", …
			fmt.Fprintf(w, `<a href="/%s">next</a>`, strings.Repeat("a", n))
		}
	}))
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	var seeds []weburl.URL
	for i := range hosts {
		u, err := weburl.Parse(fmt.Sprintf("http://h%d.example:%s/", i, port))
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, u)
	}
	p, err := platform.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	e, err := engine.New(p, engine.Config{Fetch: fetch.Config{
		UserAgent: "orbweaver", Token: "orbweaver", AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := blobschema.Crawl{
		ID: "test", HashKey: make([]byte, 16), Slots: 1024, Partitions: 2,
		Settings: blobschema.Settings{MaxDepth: -1, Delay: time.Second},
	}
	if _, _, _, err := e.Begin(want, crawl.Seeds(seeds), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if end, err := e.Run(ctx); err != nil || end != engine.Finished {
		t.Fatal(end, err)
	}
	totals := e.Snapshot().Totals
	if got := opened.Load(); totals.Pages != hosts*perHost || got > hosts*12/10 || totals.Connections != got {
		t.Errorf("%d pages over %d connections, of which %d were counted", totals.Pages, got, totals.Connections)
	}
}

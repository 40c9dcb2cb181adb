package service_test

import (
	"context"
	"encoding/json"
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
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// TestConnectionsLast crawls at a slow pace, with more hosts than concurrent requests are allowed. Each host's
// connection must serve all of its pages.
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
	e, _ := crawlNames(t, seeds, blobschema.Settings{MaxDepth: -1, Delay: time.Second})
	totals := e.Snapshot().Totals
	if got := opened.Load(); totals.Pages != hosts*perHost || got > hosts*12/10 || totals.Connections != got {
		t.Errorf("%d pages over %d connections, of which %d were counted", totals.Pages, got, totals.Connections)
	}
}

// TestLongURL follows a link of the longest URL to a host of another partition.
func TestLongURL(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch {
		case r.URL.Path == "/robots.txt":
			http.NotFound(w, r)
		case len(r.URL.Path) > 1:
			fmt.Fprint(w, "<p>some words to be indexed")
		default:
			for i := range 8 {
				to := fmt.Sprintf("http://h%d.example:%s/", i, r.Host[strings.LastIndexByte(r.Host, ':')+1:])
				fmt.Fprintf(w, `<a href="%s%s">`, to, strings.Repeat("x", weburl.MaxLen-len(to)))
			}
		}
	}))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	seed, err := weburl.Parse("http://seed.example:" + port + "/")
	if err != nil {
		t.Fatal(err)
	}
	_, p := crawlNames(t, []weburl.URL{seed}, blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: -1, Index: true})
	long := 0
	for url, got := range pages(t, p) {
		if len(url) == weburl.MaxLen && got.Outcome == blobschema.OutcomeOK {
			long++
		}
	}
	var keys []string
	for part := range partition.ID(4) {
		keys = append(keys, naming.IndexKey("test", part))
	}
	recs, err := engine.ReadRecords(t.Context(), p, keys)
	if err != nil {
		t.Fatal(err)
	}
	indexed := int64(0)
	for _, rec := range recs {
		var h blobschema.IndexHead
		if rec.Found {
			if err := json.Unmarshal(rec.Value, &h); err != nil {
				t.Fatal(err)
			}
		}
		indexed += h.Documents
	}
	if long != 8 || indexed != 1+8 {
		t.Errorf("of 8 URLs of %d bytes %d were fetched, and of 9 pages %d are indexed", weburl.MaxLen, long, indexed)
	}
}

// crawlNames crawls hosts whose names all lead to 127.0.0.1.
func crawlNames(t *testing.T, seeds []weburl.URL, set blobschema.Settings) (*service.Service, *platform.Platform) {
	t.Helper()
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	e, err := service.New(p, service.Config{Fetch: fetch.Config{
		UserAgent: "orbweaver", Token: "orbweaver", AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	jobs.New(e)
	want := blobschema.Crawl{ID: "test", HashKey: make([]byte, 16), Slots: 1024, Partitions: 4, Settings: set}
	if _, _, _, err := e.Begin(want, crawl.Seeds(seeds), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if end, err := e.Run(ctx); err != nil || end != service.Finished {
		t.Fatal(end, err)
	}
	return e, p
}

package service_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// TestRecordOpensNoNetwork checks that AllowNet in a crawl's record, which a folder's owner obeys, opens no
// network to a function or a worker.
func TestRecordOpensNoNetwork(t *testing.T) {
	cfg := service.Config{}.For(&blobschema.Settings{UserAgent: "a/1", AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if len(cfg.Fetch.AllowNet) > 0 {
		t.Errorf("allowed: %v", cfg.Fetch.AllowNet)
	}
}

func TestCrawlsDemo(t *testing.T) {
	led := &ledger.Ledger{}
	p, err := drivers.Memory(led)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	crawlDemo(t, p, led)
}

// TestNATSCrawl crawls on a NATS server in this process.
func TestNATSCrawl(t *testing.T) {
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	led := &ledger.Ledger{}
	p, err := drivers.Open(t.Context(), srv.ClientURL()+"?sync=confirmed&blobs=file://"+filepath.ToSlash(t.TempDir()), led)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	crawlDemo(t, p, led)
}

// crawlDemo crawls a generated web on a platform, and compares the pages with its truth.
func crawlDemo(t *testing.T, p *platform.Platform, led *ledger.Ledger) {
	t.Helper()
	srv, err := simweb.Start(t.Context(), simweb.Demo())
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	web := srv.Web()
	e, err := service.New(p, service.Config{
		Ledger: led,
		Log:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Step:   crawl.StepConfig{Retry: polite.Retry{Wait: 200 * time.Millisecond, Backoff: 100 * time.Millisecond}, Token: "orbweaver", Software: "orbweaver", Compressed: true},
		Fetch:  fetch.Config{UserAgent: "orbweaver", Token: "orbweaver", AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var seeds []weburl.URL
	for _, s := range web.Seeds() {
		u, err := weburl.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, u)
	}
	want := blobschema.Crawl{ID: "test", HashKey: make([]byte, 16), Slots: 1024, Partitions: 4, Settings: blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: -1}}
	if _, _, _, err := e.Begin(want, crawl.Seeds(seeds), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	end, err := e.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if end != service.Finished {
		t.Errorf("it %s", end)
	}
	if d := simweb.Diff(web.Truth(simweb.Scope{}), pages(t, p)); d != "" {
		t.Error(d)
	}
	t.Logf("%s %+v %+v", end, e.Snapshot().Totals, e.Snapshot().Calls)
}

// pages reads the visible page records.
func pages(t *testing.T, p *platform.Platform) map[string]simweb.Got {
	t.Helper()
	got := map[string]simweb.Got{}
	for part := range 4 {
		recs, err := engine.ReadRecords(t.Context(), p, []string{naming.HeadKey("test", partition.ID(part))})
		if err != nil {
			t.Fatal(err)
		}
		var h blobschema.Head
		if err := json.Unmarshal(recs[0].Value, &h); err != nil {
			t.Fatal(err)
		}
		c := commit(t, p, h.Commit)
		man, err := c.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		for name := range blobschema.CommitNames(&man) {
			list, err := commit(t, p, name).Pages()
			if err != nil {
				t.Fatal(err)
			}
			for _, pg := range list {
				if !pg.Robots {
					got[pg.URL] = simweb.GotOf(pg)
				}
			}
		}
	}
	return got
}

func commit(t *testing.T, p *platform.Platform, name string) *blobschema.CommitReader {
	t.Helper()
	data, err := engine.GetObject(t.Context(), p, actor.GetObject{Name: name, Length: -1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := blobschema.OpenCommit(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

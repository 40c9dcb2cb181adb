package conformance_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// TestAWSCrawl crawls a generated web over AWS by emulator: the pages are those of its
// truth, and the ledger is what went over the wire.
func TestAWSCrawl(t *testing.T) {
	emulated(t)
	srv, err := simweb.Start(t.Context(), simweb.Demo(), simweb.ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	web := srv.Web()
	var seeds []weburl.URL
	for _, s := range web.Seeds() {
		u, err := weburl.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, u)
	}

	location := deploy(t, 4, 30*time.Second)
	wire := tapped(t)
	led := &ledger.Ledger{}
	p, err := drivers.Open(t.Context(), location, led)
	p = opened(t, p, err)
	e, err := engine.New(p, engine.Config{
		Ledger: led,
		Log:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Step:   crawl.StepConfig{Retry: polite.Retry{Wait: 200 * time.Millisecond, Backoff: 100 * time.Millisecond}, Token: "orbweaver", Software: "orbweaver", Compressed: true},
		Fetch:  fetch.Config{UserAgent: "orbweaver", Token: "orbweaver", AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := blobschema.Crawl{ID: "test", HashKey: make([]byte, 16), Slots: 1024, Partitions: 4, Settings: blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: -1}}
	if _, _, _, err := e.Begin(want, crawl.Seeds(seeds), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := time.Now()
	end, err := e.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if end != engine.Finished {
		t.Errorf("it %s", end)
	}
	t.Logf("%s in %v: %+v", end, time.Since(start), e.Snapshot().Totals)

	if d := simweb.Diff(web.Truth(simweb.Scope{}), pages(t, p, 4)); d != "" {
		t.Error(d)
	}
	wire.check(t, led)
}

// pages are the visible page records of a crawl.
func pages(t *testing.T, p *drivers.Platform, partitions int) map[string]simweb.Got {
	t.Helper()
	read := func(name string) *blobschema.CommitReader {
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
	got := map[string]simweb.Got{}
	for part := range partitions {
		recs, err := engine.ReadRecords(t.Context(), p, []string{naming.HeadKey("test", partition.ID(part))})
		if err != nil {
			t.Fatal(err)
		}
		var h blobschema.Head
		if err := json.Unmarshal(recs[0].Value, &h); err != nil {
			t.Fatal(err)
		}
		man, err := read(h.Commit).Manifest()
		if err != nil {
			t.Fatal(err)
		}
		for name := range blobschema.CommitNames(&man) {
			list, err := read(name).Pages()
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

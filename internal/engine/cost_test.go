package engine_test

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/platform"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// TestCallsPerPage pins the cost rule: what a crawl asks of queues, table and blob
// storage is per thousand pages, not per page. The web is W1 but for the size of its
// pages, which no call depends on: a WARC object is full at 1,000 pages long before
// it is at 32 MiB.
func TestCallsPerPage(t *testing.T) {
	if testing.Short() || raced {
		// A step commits at times too: ten times slower, it makes more calls for the same pages.
		t.Skip("crawls 32,000 pages, and counts calls at full speed")
	}
	cfg := simweb.W1()
	cfg.PageBytes = 1 << 10
	srv, err := simweb.Start(t.Context(), cfg, simweb.ListenOptions{Recording: simweb.RecordCounts})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	web := srv.Web()
	led := &ledger.Ledger{}
	p, err := platform.Memory(led)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	e, err := engine.New(p, engine.Config{
		Ledger: led,
		Log:    slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Step:   crawl.StepConfig{Token: "orbweaver", Software: "orbweaver", Compressed: true},
		Fetch:  fetch.Config{UserAgent: "orbweaver", Token: "orbweaver", AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	seed, err := weburl.Parse(web.Seeds()[0])
	if err != nil {
		t.Fatal(err)
	}
	want := blobschema.Crawl{
		ID: "test", HashKey: make([]byte, 16), Slots: partition.DefaultSlots, Partitions: 4,
		Settings: blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: -1},
	}
	if _, _, _, err := e.Begin(want, crawl.Seeds([]weburl.URL{seed}), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the race detector is slow
	defer cancel()
	end, err := e.Run(ctx)
	if err != nil || end != engine.Finished {
		t.Fatal(end, err)
	}
	calls, pages := led.Counts(), e.Snapshot().Totals.Pages
	if pages != int64(web.Pages()) {
		t.Fatalf("%d pages of %d", pages, web.Pages())
	}
	for _, c := range []struct {
		name    string
		n       int64
		perPage float64
	}{
		{"queue requests", calls.QueueRequests, 0.005},
		{"blob puts", calls.BlobPuts, 0.003},
		{"KV write units", calls.KVWriteUnits, 0.005},
	} {
		got := float64(c.n) / float64(pages)
		if got > c.perPage {
			t.Errorf("%d %s: %.4f per page, not at most %.4f", c.n, c.name, got, c.perPage)
		}
		t.Logf("%s: %d, %.4f per page", c.name, c.n, got)
	}
	t.Logf("%+v", calls)
}

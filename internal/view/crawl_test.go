package view_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/platform"
)

const crawlID = "test"

// smallWeb has hosts that refuse, redirect and forbid, and none that takes long.
var smallWeb = simweb.Config{
	Seed: 7, Hosts: 8, Pages: simweb.Pages{Min: 8, Max: 20}, PageBytes: 2 << 10, LinksPerPage: 10,
	Connection: simweb.Connection{Gzip: 0.5},
	Robots:     simweb.RobotsShares{AllowAll: 0.2, Sections: 0.3, Forbidden: 0.15},
	Kinds:      simweb.PageShares{Redirect: 0.1, Gone: 0.1, Media: 0.05, NoFollow: 0.1},
	Links:      simweb.LinkShares{NoFollow: 0.1},
}

// crawlInto crawls the generated web on an open platform, up to maxPages pages.
func crawlInto(t testing.TB, p *platform.Platform, maxPages int64) *simweb.Web {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	srv, err := simweb.Start(ctx, smallWeb)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	e, err := service.New(p, service.Config{
		Step: crawl.StepConfig{
			Token: "orbweaver", Software: "orbweaver", Compressed: true,
			CommitEvery: 100 * time.Millisecond, CommitMin: 5 * time.Millisecond, CommitPages: 5,
		},
		Fetch: fetch.Config{UserAgent: "orbweaver", Token: "orbweaver", AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var seeds []weburl.URL
	for _, s := range srv.Web().Seeds() {
		u, err := weburl.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, u)
	}
	want := blobschema.Crawl{
		ID: crawlID, HashKey: []byte("0123456789abcdef"), Slots: 64, Partitions: 4,
		Settings: blobschema.Settings{Scope: blobschema.ScopeAny, Exclude: []string{"/never$"}, MaxDepth: -1, Delay: time.Millisecond, MaxPages: maxPages},
	}
	if _, _, _, err := e.Begin(want, crawl.Seeds(seeds), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return srv.Web()
}

// folder returns a folder with a crawl and no owner.
func folder(t testing.TB, maxPages int64) (dir string, web *simweb.Web) {
	t.Helper()
	dir = t.TempDir()
	p, err := drivers.Local(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	return dir, crawlInto(t, p, maxPages)
}

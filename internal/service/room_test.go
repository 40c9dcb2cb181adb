package service_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/platform"
)

// fullDisk makes puts fail once its room is used up.
type fullDisk struct {
	mu     sync.Mutex
	room   int // puts that succeed
	failed int
}

func (d *fullDisk) put(store *platform.Platform) func(context.Context, string, [][]byte) error {
	return func(ctx context.Context, name string, parts [][]byte) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.room--; d.room < 0 {
			d.failed++
			return fmt.Errorf("write %s: %w", name, syscall.ENOSPC)
		}
		return engine.PutObject(ctx, store, actor.PutObject{Name: name, Parts: parts})
	}
}

// TestFullDisk checks that a crawl ends with the first put that fails on a full disk, whichever put it is,
// without a retry and without another page. With room again it resumes, and no page is lost.
func TestFullDisk(t *testing.T) {
	srv, err := simweb.Start(t.Context(), simweb.Config{Seed: 4, Hosts: 6, Pages: simweb.Pages{Min: 10, Max: 20}, PageBytes: 2 << 10, LinksPerPage: 8})
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
	const partitions = 4
	for room := range 9 {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			p, err := drivers.Memory(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			store, disk := *p, &fullDisk{room: room}
			p.Put = disk.put(&store)
			run := func() error {
				e, err := service.New(p, service.Config{
					Step:  crawl.StepConfig{Retry: polite.Retry{Wait: 50 * time.Millisecond}, Token: "orbweaver", Software: "orbweaver", Compressed: true},
					Fetch: fetch.Config{UserAgent: "orbweaver", Token: "orbweaver", AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
				})
				if err != nil {
					return err
				}
				want := blobschema.Crawl{ID: "test", HashKey: make([]byte, 16), Slots: 64, Partitions: partitions, Settings: blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: -1}}
				if _, _, _, err := e.Begin(want, crawl.Seeds(seeds), nil); err != nil {
					return err
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err = e.Run(ctx)
				return err
			}
			if err := run(); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("with room for %d objects: %v", room, err)
			}
			if disk.failed > 2*partitions { // each step may have some under way
				t.Errorf("%d puts were tried on a full disk", disk.failed)
			}
			disk.room = 1 << 30
			if err := run(); err != nil {
				t.Fatal(err)
			}
			if d := simweb.Diff(web.Truth(simweb.Scope{}), pages(t, p)); d != "" {
				t.Error(d)
			}
		})
	}
}

package fsck_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/internal/platform"
	"github.com/orbweaver/orbweaver/internal/view"
)

// TestLive checks crawls again and again while they go on and their slots move.
func TestLive(t *testing.T) {
	for name, s := range map[string]blobschema.Settings{
		"by host":   {Sitemaps: true},
		"by domain": {PartitionBy: blobschema.ByDomain, MaxHostURLs: 12, MaxSegments: 3},
		"by IP":     {PartitionBy: blobschema.ByIP, MaxPages: 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var checks, moving atomic.Int64
			_, err := crawlOnce(quickly, s, 2, func(ctx context.Context, e *engine.Engine, p *platform.Platform) error {
				shuffled := make(chan error, 1)
				go func() { shuffled <- shuffle(ctx, e, 50*time.Millisecond) }()
				for ctx.Err() == nil {
					rep, err := fsck.Check(t.Context(), view.OfPlatform(p), fsck.Options{})
					if err != nil {
						t.Error(err)
						break
					}
					for _, v := range rep.Violations {
						t.Error(v)
					}
					checks.Add(1)
					if rep.Moving > 0 {
						moving.Add(1)
					}
				}
				return <-shuffled
			})
			if err != nil {
				t.Fatal(err)
			}
			if checks.Load() < 5 || moving.Load() == 0 {
				t.Errorf("%d checks, %d of them while slots were on the move", checks.Load(), moving.Load())
			}
		})
	}
}

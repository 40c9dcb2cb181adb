package fsck_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/platform"
)

// TestLive checks crawls repeatedly while they run and their slots move. During some checks
// an object is missing.
func TestLive(t *testing.T) {
	for name, s := range map[string]blobschema.Settings{
		"by host":   {Sitemaps: true},
		"by domain": {PartitionBy: blobschema.ByDomain, MaxHostURLs: 12, MaxSegments: 3, Index: true},
		"by IP":     {PartitionBy: blobschema.ByIP, MaxPages: 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := live{T: t}
			_, err := crawlOnce(quickly, s, 1, func(ctx context.Context, e *jobs.Jobs, p *platform.Platform) error {
				shuffled := make(chan error, 1)
				go func() { shuffled <- shuffle(ctx, e, 30*time.Millisecond) }()
				for ctx.Err() == nil && l.checks < 17 {
					l.check(p)
					if l.checks%8 == 0 {
						l.plant(p)
					}
					time.Sleep(5 * time.Millisecond) // leave the processor to the crawl
				}
				return <-shuffled
			})
			if err != nil {
				t.Fatal(err)
			}
			if l.checks < 5 || l.moving == 0 || l.planted == 0 {
				t.Errorf("%d checks, %d of them while slots moved, %d with damage", l.checks, l.moving, l.planted)
			}
		})
	}
}

// live counts the checks of a running crawl.
type live struct {
	*testing.T
	checks, moving, planted int
}

func (l *live) check(p *platform.Platform) {
	rep, err := fsck.Check(context.Background(), engine.Store{Platform: p}, fsck.Options{})
	if err != nil {
		l.Error(err)
	}
	for _, v := range rep.Violations {
		l.Error(v)
	}
	l.checks++
	if rep.Moving > 0 {
		l.moving++
	}
}

// plant deletes an object that a visible commit names, checks the crawl and restores the object.
func (l *live) plant(p *platform.Platform) {
	ctx, store := context.Background(), engine.Store{Platform: p}
	v, err := view.New(ctx, store)
	if err != nil {
		l.Error(err)
		return
	}
	for c, err := range v.Commits(ctx) {
		if err != nil {
			l.Error(err)
			return
		}
		man, err := c.Manifest()
		if err != nil || len(man.WARCs) == 0 {
			continue
		}
		name := man.WARCs[0]
		data, err := store.Object(ctx, name, 0, -1)
		if err == nil {
			err = p.Bucket.Delete(ctx, name)
		}
		rep, checkErr := fsck.Check(ctx, store, fsck.Options{})
		if err == nil {
			err = p.Bucket.WriteAll(ctx, name, data, nil)
		}
		if err != nil || checkErr != nil {
			l.Error(err, checkErr)
			return
		}
		if rep.Found != 1 || rep.Violations[0].Where != name || !strings.Contains(rep.Violations[0].What, "does not exist") {
			l.Errorf("without %s: found %v", name, rep.Violations)
		}
		l.planted++
		return
	}
}

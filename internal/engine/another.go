package engine

import (
	"context"
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/crawl"
)

// BeginAnother creates a crawl in place of one that is at its end; see
// [crawl.NewAnother]. Whoever works on the crawl calls Begin after it.
func (e *Engine) BeginAnother(ctx context.Context, want blobschema.Crawl, seeds []crawl.Seed) (blobschema.Crawl, error) {
	if err := e.platform.CreateQueues(ctx, want.Partitions); err != nil { // too few of them: nothing has changed yet
		return blobschema.Crawl{}, err
	}
	if want.Settings.Index {
		if err := e.CheckJobs(ctx); err != nil {
			return blobschema.Crawl{}, err
		}
	}
	b := crawl.NewAnother(want, seeds, e.platform.Exclusive)
	if err := e.newRunner(b).run(); err != nil {
		return blobschema.Crawl{}, err
	}
	e.crawl, _, _ = b.Crawl()
	return e.crawl, nil
}

// PutRanks stores the ranks of hosts that a new crawl is to go by, and names them in its record;
// nil is none.
func (e *Engine) PutRanks(ctx context.Context, c *blobschema.Crawl, ranks []byte) error {
	if ranks == nil {
		return nil
	}
	c.Settings.HostRanks = naming.Ranks(c.ID, ranks)
	if err := e.platform.Bucket.WriteAll(ctx, c.Settings.HostRanks, ranks, nil); err != nil {
		return fmt.Errorf("put %s: %w", c.Settings.HostRanks, err)
	}
	return nil
}

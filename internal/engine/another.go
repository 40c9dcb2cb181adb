package engine

import (
	"context"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
)

// BeginAnother creates a crawl in place of one that is at its end; see
// [crawl.NewAnother]. Whoever works on the crawl calls Begin after it.
func (e *Engine) BeginAnother(ctx context.Context, want blobschema.Crawl, seeds []crawl.Seed) (blobschema.Crawl, error) {
	if err := e.platform.CreateQueues(ctx, want.Partitions); err != nil { // too few of them: nothing has changed yet
		return blobschema.Crawl{}, err
	}
	b := crawl.NewAnother(want, seeds, e.platform.Exclusive)
	if err := e.newRunner(b).run(); err != nil {
		return blobschema.Crawl{}, err
	}
	e.crawl, _, _ = b.Crawl()
	return e.crawl, nil
}

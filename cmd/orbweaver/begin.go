package main

import (
	"context"
	"errors"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/view"
)

// start says how to create a crawl or to resume the present one, in a folder or in a deployment.
type start struct {
	fresh   blobschema.Crawl // the record of a new crawl
	seeds   []crawl.Seed
	ranks   []byte // of hosts, for a new crawl
	another bool   // a new crawl replaces the last one
	resume  func(stored blobschema.Crawl) (blobschema.Crawl, error)
}

// Page records that are read at most to find the seeds that could not be fetched, when a crawl is
// resumed: some seconds' worth in a folder, and few objects in a deployment.
const (
	seedRecords      = 1_000_000
	cloudSeedRecords = 20_000
)

// started is a crawl that was created or resumed and on which no process works yet.
type started struct {
	*opened
	status  view.Status
	created bool
	added   int   // seeds
	frozen  int64 // pages that budgeted revisits leave out, because they were fetched before --recrawl was given
}

// begin creates a crawl or resumes the present one. If configure is not nil, the target gets another
// engine, because only the record says how to fetch.
func (o *opened) begin(ctx context.Context, s *start, configure func(*blobschema.Crawl) service.Config) (b *started, err error) {
	b = &started{opened: o}
	if err := o.engine.PutRanks(ctx, &s.fresh, s.ranks); err != nil {
		return nil, err
	}
	var c blobschema.Crawl
	began := false // the first budget for revisits
	if s.another {
		b.created, b.added = true, len(s.seeds)
		c, err = o.beginAnother(ctx, s)
	} else {
		c, b.created, b.added, err = o.engine.Begin(s.fresh, s.seeds, func(c *blobschema.Crawl) error {
			resumed, err := s.resume(*c)
			if err == nil {
				began = c.Settings.RecrawlPerHour == 0 && resumed.Settings.RecrawlPerHour > 0
				*c = resumed
			}
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	if configure != nil {
		cfg := configure(&c)
		if err := cfg.Fetch.Validate(); err != nil {
			return nil, err
		}
		if o.engine, err = jobs.Open(o.platform, cfg); err != nil {
			return nil, err
		}
		o.Control = control.Own{Engine: o.engine}
	}
	if err := o.see(ctx); err != nil {
		return nil, err
	}
	if b.status, err = o.view.Status(ctx); began {
		b.frozen = b.status.Totals.Pages
	}
	return b, err
}

// beginAnother creates a crawl in place of the last one. It waits if the id, which derives from the
// second, is taken, or if a step is still ending.
func (o *opened) beginAnother(ctx context.Context, s *start) (blobschema.Crawl, error) {
	for try := 0; ; try++ {
		c, err := o.engine.BeginAnother(ctx, s.fresh, s.seeds)
		if !errors.Is(err, actor.ErrConflict) && !errors.Is(err, crawl.ErrAtWork) || try == 5 || !wait(ctx, time.Second) {
			return c, err
		}
		if s.fresh, err = identify(s.fresh); err != nil {
			return c, err
		}
	}
}

// work starts work: it revokes an order to stop or to pause, and gives a resumed crawl the seeds again
// that could not be fetched. To find these it reads at most mostRecords page records.
func (b *started) work(ctx context.Context, mostRecords int) (*beginning, error) {
	out := &beginning{
		where: b.where(b.view.ID()), Resumed: !b.created, Seeds: b.added, Pages: b.status.Totals.Pages, Frozen: b.frozen, Set: b.status.Crawl.Settings,
	}
	var failed []crawl.Seed
	var err error
	if !b.created && mostRecords > 0 {
		if failed, err = b.view.FailedSeeds(ctx, mostRecords); err != nil {
			return nil, err
		}
	}
	if _, _, out.Retried, err = b.engine.Begin(blobschema.Crawl{}, failed, nil); err != nil {
		return nil, err
	}
	switch w := &b.status.Desired; {
	case w.Stop || w.Pause:
		out.Ordered, err = b.Order(ctx, crawl.OrderResume)
	case b.inCloud():
		_, err = b.engine.Tick()
	}
	return out, err
}

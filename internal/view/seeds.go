package view

import (
	"context"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// FailedSeeds returns the seeds that were never fetched for a reason that may have passed
// since. It reads at most maxRecords page records, and none if the totals show no failure.
func (v *View) FailedSeeds(ctx context.Context, maxRecords int) ([]crawl.Seed, error) {
	heads, err := v.Heads(ctx)
	if err != nil {
		return nil, err
	}
	var failures int64
	for i := range heads {
		for outcome, n := range heads[i].Totals.Outcomes {
			switch outcome {
			case blobschema.OutcomeOK.String(), blobschema.OutcomeRedirect.String(), blobschema.OutcomeUnchanged.String():
			default:
				failures += n
			}
		}
	}
	if failures == 0 {
		return nil, nil
	}
	c, err := v.Crawl(ctx)
	if err != nil {
		return nil, err
	}
	open := map[string]bool{} // seeds that no record shows as fetched; true for those that failed
	if err := v.eachSeed(ctx, &c, func(_ uint64, _ uint8, u weburl.URL) bool {
		open[u.String()] = false
		return true
	}); err != nil {
		return nil, err
	}
	var failed []crawl.Seed
	for pg, err := range v.Pages(ctx, EveryRecord) {
		if err != nil {
			return nil, err
		}
		if maxRecords--; maxRecords < 0 || len(open) == 0 {
			break
		}
		known, seed := open[pg.URL]
		switch {
		case !seed || pg.Robots:
		case !mayPass(&pg):
			delete(open, pg.URL)
		case !known:
			u, err := weburl.Parse(pg.URL)
			if err != nil {
				return nil, err
			}
			open[pg.URL], failed = true, append(failed, crawl.Seed{URL: u, Topic: pg.Topic, Retry: true})
		}
	}
	return slices.DeleteFunc(failed, func(s crawl.Seed) bool { return !open[s.URL.String()] }), nil
}

// mayPass reports whether the reason of a failed fetch may be gone when the crawl is resumed:
// the server may run by then, or its network may be allowed.
func mayPass(pg *blobschema.Page) bool {
	switch pg.Outcome {
	case blobschema.OutcomeForbidden, blobschema.OutcomeRobotsGone:
		return true
	}
	again, _ := polite.Retry{}.Next(pg.Outcome, pg.Status, 0)
	return again
}

// eachSeed calls f with each seed, the number of its batch, from 1, and the number of its topic, until f returns false.
func (v *View) eachSeed(ctx context.Context, c *blobschema.Crawl, f func(batch uint64, topic uint8, u weburl.URL) bool) error {
	for i, name := range c.SeedBatches {
		urls, err := blobschema.ReadSeeds(blobschema.GetFrom(ctx, v.store), name)
		if err != nil {
			return err
		}
		for _, q := range urls {
			if u, err := weburl.Parse(q.URL); err == nil && !f(uint64(i+1), q.Topic, u) {
				return nil
			}
		}
	}
	return nil
}

package view

import (
	"context"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// OutOfScope returns the reason why the crawl does not fetch u, or "" if u is in its scope. It reads all seeds.
func (v *View) OutOfScope(ctx context.Context, u weburl.URL) (string, error) {
	c, err := v.Crawl(ctx)
	if err != nil {
		return "", err
	}
	return v.outOfScope(ctx, &c, u)
}

// outOfScope returns the reason why links to u are not followed, or "" if they are.
func (v *View) outOfScope(ctx context.Context, c *blobschema.Crawl, u weburl.URL) (string, error) {
	desired, err := v.Desired(ctx)
	if err != nil {
		return "", err
	}
	entries := slices.Clone(desired.Scope)
	if err := v.eachSeed(ctx, c, func(_ uint64, topic uint8, seed weburl.URL) bool {
		entries = append(entries, crawl.ScopeEntry(topic, seed.Host()))
		return true
	}); err != nil {
		return "", err
	}
	return crawl.OutOfScope(&c.Settings, entries, u)
}

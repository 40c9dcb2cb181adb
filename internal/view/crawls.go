package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gocloud.dev/blob"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
)

// ErrUnknownCrawl means that the store contains no crawl with a given id.
var ErrUnknownCrawl = blobschema.ErrUnknownCrawl

// Of returns a view of another crawl in the same store, by its id. Closing it does nothing. The error is
// [ErrUnknownCrawl], with the ids of some crawls, if there is none.
func (v *View) Of(ctx context.Context, id string) (*View, error) {
	found, err := false, naming.CheckCrawlID(id)
	if err == nil {
		found, err = v.record(ctx, naming.CrawlKey(id), &blobschema.Crawl{})
		if err != nil {
			return nil, err
		}
	}
	if found {
		return newView(ctx, v.store, id, v.active)
	}
	const most = 10
	ids, err := v.Crawls(ctx)
	if err != nil {
		return nil, err
	}
	more := ""
	if n := len(ids); n > most {
		ids, more = ids[n-most:], "..., "
	}
	return nil, fmt.Errorf("crawl %.40q: %w; there are %s%s", id, ErrUnknownCrawl, more, strings.Join(ids, ", "))
}

// Active reports whether the crawl is the active one of the store.
func (v *View) Active() bool { return v.id == v.active }

// Crawls returns the ids of the crawls in the store, the oldest first. It lists the bucket down to the first slash, which is
// one call for a thousand crawls. It leaves out crawls that were created and never had a step, except the active one: a
// crash may have left them.
func (v *View) Crawls(ctx context.Context) (ids []string, err error) {
	p := v.platform()
	if p == nil {
		return []string{v.active}, nil
	}
	for folders := p.Bucket.List(&blob.ListOptions{Delimiter: "/"}); ; {
		o, err := folders.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("list crawls: %w", err)
		}
		if id := strings.TrimSuffix(o.Key, "/"); o.IsDir && id != v.active && naming.CheckCrawlID(id) == nil {
			found, err := v.begun(ctx, id)
			if err != nil {
				return nil, err
			}
			if found {
				ids = append(ids, id)
			}
		}
	}
	ids = append(ids, v.active)
	slices.Sort(ids)
	return ids, nil
}

// begun reports whether a crawl has a record and a partition with a head.
func (v *View) begun(ctx context.Context, id string) (bool, error) {
	var c blobschema.Crawl
	found, err := v.record(ctx, naming.CrawlKey(id), &c)
	if err != nil || !found {
		return false, err
	}
	other, err := newView(ctx, v.store, id, v.active)
	if err != nil {
		return false, err
	}
	heads, err := other.Heads(ctx)
	return len(heads) > 0, err
}

// LastCommit returns when the newest of the commits that heads name was stored; zero if the store does not know. It costs a
// call for each head.
func (v *View) LastCommit(ctx context.Context, heads []blobschema.Head) (last time.Time, err error) {
	p := v.platform()
	for i := range heads {
		if name := heads[i].Commit; name != "" && p != nil {
			a, err := p.Bucket.Attributes(ctx, name)
			if err != nil {
				return last, fmt.Errorf("look up %s: %w", name, err)
			}
			if a.ModTime.After(last) {
				last = a.ModTime.UTC()
			}
		}
	}
	return last, nil
}

// FirstSeeds returns the URLs of the first batch of seeds.
func (v *View) FirstSeeds(ctx context.Context, c *blobschema.Crawl) (urls []string, err error) {
	if len(c.SeedBatches) == 0 {
		return nil, nil
	}
	seeds, err := blobschema.ReadSeeds(blobschema.GetFrom(ctx, v.store), c.SeedBatches[0])
	for _, q := range seeds {
		urls = append(urls, q.URL)
	}
	return urls, err
}

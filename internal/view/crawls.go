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

// Summary describes one of several crawls.
type Summary struct {
	Crawl   string    `json:"crawl"`
	Active  bool      `json:"active"`
	State   State     `json:"state"`
	Seeds   []string  `json:"seeds"` // the first ones
	Pages   int64     `json:"pages"`
	Stored  int64     `json:"stored_bytes"` // of WARC records
	Created time.Time `json:"created"`
	Last    time.Time `json:"last_commit,omitzero"`
	More    bool      `json:"more_seeds,omitempty"`
}

// Summaries describes all crawls in the store, the latest first.
func (v *View) Summaries(ctx context.Context) (list []Summary, err error) {
	ids, err := v.Crawls(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Backward(ids) {
		o, err := v.Of(ctx, id)
		if err != nil {
			return nil, err
		}
		s, err := o.summary(ctx)
		if err != nil {
			return nil, fmt.Errorf("crawl %s: %w", id, err)
		}
		list = append(list, *s)
	}
	return list, nil
}

func (v *View) summary(ctx context.Context) (*Summary, error) {
	s, err := v.Status(ctx)
	if err != nil {
		return nil, err
	}
	r := &Summary{Crawl: v.id, Active: v.Active(), State: s.State, Pages: s.Totals.Pages, Stored: s.Totals.Stored, Created: s.Crawl.Created}
	if r.Last, err = v.LastCommit(ctx, s.Heads); err != nil {
		return nil, err
	}
	const most = 3
	r.Seeds, err = v.FirstSeeds(ctx, &s.Crawl)
	r.More = len(r.Seeds) > most || len(s.Crawl.SeedBatches) > 1
	r.Seeds = r.Seeds[:min(most, len(r.Seeds))]
	return r, err
}

// First is the first seed.
func (r Summary) First() string {
	first := strings.Join(r.Seeds[:min(1, len(r.Seeds))], "")
	if r.More || len(r.Seeds) > 1 {
		first += " ..."
	}
	return first
}

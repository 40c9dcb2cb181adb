package main

import (
	"context"
	"iter"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/platform"
)

// pages yields the page records of all visible commits.
func pages(ctx context.Context, p *platform.Platform, c *blobschema.Crawl) iter.Seq2[blobschema.Page, error] {
	return func(yield func(blobschema.Page, error) bool) {
		heads, err := readHeads(ctx, p, c)
		if err != nil {
			yield(blobschema.Page{}, err)
			return
		}
		for i := range heads {
			if heads[i].Commit == "" {
				continue
			}
			if !pagesOf(ctx, p, heads[i].Commit, yield) {
				return
			}
		}
	}
}

// pagesOf yields those of one partition; false says that it is to end.
func pagesOf(ctx context.Context, p *platform.Platform, head string, yield func(blobschema.Page, error) bool) bool {
	c, err := readCommit(ctx, p, head)
	if err != nil {
		return yield(blobschema.Page{}, err) && false
	}
	man, err := c.Manifest()
	if err != nil {
		return yield(blobschema.Page{}, err) && false
	}
	for name := range blobschema.CommitNames(&man) {
		c, err := readCommit(ctx, p, name)
		if err != nil {
			return yield(blobschema.Page{}, err) && false
		}
		records, err := c.Pages()
		if err != nil {
			return yield(blobschema.Page{}, err) && false
		}
		for _, r := range records {
			if !yield(r, nil) {
				return false
			}
		}
	}
	return true
}

func readCommit(ctx context.Context, p *platform.Platform, name string) (*blobschema.CommitReader, error) {
	data, err := engine.GetObject(ctx, p, crawl.GetObject{Name: name, Length: -1})
	if err != nil {
		return nil, err
	}
	return blobschema.OpenCommit(data)
}

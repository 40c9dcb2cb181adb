package view

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// View reads a crawl. Each method that takes a context reads the store again: two calls may
// show two moments of a crawl that runs. A View is safe for concurrent use.
type View struct {
	store    blobschema.Store
	id       string
	active   string // id of the active crawl
	hash     partition.Hash
	division *division
	by       blobschema.PartitionBy
	still    *moment // of a frozen view, else nil
	since    time.Time
	close    func() error
}

// ErrNoCrawl means that the store or folder contains no crawl.
var ErrNoCrawl = blobschema.ErrNoCrawl

// Open opens the crawl in a folder for reading; see the package documentation. The
// errors are [ErrNoFolder], [ErrNoCrawl], those of opening a folder (package drivers:
// ErrInUse if its owner does not answer) and wire.ErrVersion.
func Open(ctx context.Context, dir string) (*View, error) {
	s, err := openFolder(ctx, dir)
	if err != nil {
		return nil, err
	}
	v, err := New(ctx, s)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	v.close = s.close
	return v, nil
}

// New returns a view of the active crawl in a store, which stays the caller's.
func New(ctx context.Context, s blobschema.Store) (*View, error) {
	id, err := blobschema.ActiveCrawl(ctx, s)
	if err != nil {
		return nil, err
	}
	return newView(ctx, s, id, id)
}

func newView(ctx context.Context, s blobschema.Store, id, active string) (*View, error) {
	v := &View{store: s, id: id, active: active, close: func() error { return nil }}
	c, err := v.Crawl(ctx)
	if err != nil {
		return nil, err
	}
	if c.Version != wire.Version {
		return nil, fmt.Errorf("crawl %s: %w: %d", id, wire.ErrVersion, c.Version)
	}
	if v.hash, err = c.Hash(); err != nil {
		return nil, err
	}
	v.by = c.Settings.PartitionBy
	first, err := partition.NewMap(c.Slots, c.Partitions)
	if err != nil {
		return nil, err
	}
	v.division = &division{
		crawl: &c, first: first, read: map[string]*partition.Map{"": first}, partitions: len(first.Partitions()),
	}
	return v, nil
}

// Close releases what Open opened.
func (v *View) Close() error { return v.close() }

// Since returns a view without the records of requests before t, their links, and the WARC files that hold nothing else.
func (v *View) Since(t time.Time) *View {
	later := *v
	later.since, later.close = t, func() error { return nil }
	return &later
}

// Store returns the store that v reads.
func (v *View) Store() blobschema.Store { return v.store }

// platform returns the platform that v reads; nil for a store of another kind.
func (v *View) platform() *platform.Platform {
	switch s := v.store.(type) {
	case *folderStore:
		return s.Platform
	case engine.Store:
		return s.Platform
	}
	return nil
}

// Live asks the process that owns the folder for its figures; nil if no process does, or if the crawl is not the active one.
func (v *View) Live(ctx context.Context) *control.Live {
	if s, ok := v.store.(*folderStore); ok && v.Active() {
		return s.live(ctx)
	}
	return nil
}

// record reads a JSON record into to, and reports whether there is one.
func (v *View) record(ctx context.Context, key string, to any) (bool, error) {
	return blobschema.ReadRecord(ctx, v.store, key, to)
}

// ID returns the id of the crawl.
func (v *View) ID() string { return v.id }

// Crawl reads the crawl's record.
func (v *View) Crawl(ctx context.Context) (c blobschema.Crawl, err error) {
	found, err := v.record(ctx, naming.CrawlKey(v.id), &c)
	if err == nil && !found {
		err = fmt.Errorf("%w with id %q", ErrNoCrawl, v.id)
	}
	return c, err
}

// Desired reads the desired state that the operator has set.
func (v *View) Desired(ctx context.Context) (w blobschema.DesiredState, err error) {
	_, err = v.record(ctx, naming.DesiredKey(v.id), &w)
	return w, err
}

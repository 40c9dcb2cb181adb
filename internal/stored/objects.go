package stored

import (
	"context"
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// Get reads length bytes of an object from an offset, or all bytes that follow if length is -1.
type Get func(name string, offset, length int64) ([]byte, error)

// Under returns the objects of a store, read under a context.
func Under(ctx context.Context, s Store) Get {
	return func(name string, offset, length int64) ([]byte, error) { return s.Object(ctx, name, offset, length) }
}

// Commit reads a commit object.
func Commit(get Get, name string) (*blobschema.CommitReader, error) {
	data, err := get(name, 0, -1)
	if err != nil {
		return nil, err
	}
	c, err := blobschema.OpenCommit(data)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return c, nil
}

// Manifest reads the manifest of a commit object.
func Manifest(get Get, commit string) (*blobschema.Manifest, error) {
	c, err := Commit(get, commit)
	if err != nil {
		return nil, err
	}
	man, err := c.Manifest()
	if err != nil {
		return nil, fmt.Errorf("manifest of %s: %w", commit, err)
	}
	return &man, nil
}

// IndexManifest reads a manifest of an index.
func IndexManifest(get Get, name string) (m blobschema.IndexManifest, err error) {
	data, err := get(name, 0, -1)
	if err != nil {
		return m, err
	}
	if m, err = blobschema.DecodeIndexManifest(data); err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// URLs reads a batch of seeds, or the URLs of a mail of requests.
func URLs(get Get, name string) ([]blobschema.Queued, error) {
	data, err := get(name, 0, -1)
	if err != nil {
		return nil, err
	}
	b, err := blobschema.DecodeSeeds(data)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	return b.URLs, nil
}

// Map reads a map of a crawl. An empty name stands for the map of epoch 1, which is no object.
func Map(get Get, c *blobschema.Crawl, name string) (*partition.Map, error) {
	if name == "" {
		return partition.NewMap(c.Slots, c.Partitions)
	}
	data, err := get(name, 0, -1)
	if err != nil {
		return nil, err
	}
	m := &partition.Map{}
	if err := m.UnmarshalBinary(data); err != nil {
		return nil, fmt.Errorf("decode %s: %w: %w", name, wire.ErrDamaged, err)
	}
	if m.Slots() != c.Slots {
		return nil, fmt.Errorf("%s: %w: a map of %d slots for a crawl of %d", name, wire.ErrDamaged, m.Slots(), c.Slots)
	}
	return m, nil
}

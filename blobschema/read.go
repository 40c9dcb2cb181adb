package blobschema

import (
	"context"
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// GetObject reads length bytes of an object from an offset, or all bytes that follow if length is -1.
type GetObject func(name string, offset, length int64) ([]byte, error)

// GetFrom returns the objects of a store, read under a context.
func GetFrom(ctx context.Context, s Store) GetObject {
	return func(name string, offset, length int64) ([]byte, error) { return s.Object(ctx, name, offset, length) }
}

// ReadCommit reads a commit object.
func ReadCommit(get GetObject, name string) (*CommitReader, error) {
	data, err := get(name, 0, -1)
	if err != nil {
		return nil, err
	}
	c, err := OpenCommit(data)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return c, nil
}

// ReadManifest reads the manifest of a commit object.
func ReadManifest(get GetObject, commit string) (*Manifest, error) {
	c, err := ReadCommit(get, commit)
	if err != nil {
		return nil, err
	}
	man, err := c.Manifest()
	if err != nil {
		return nil, fmt.Errorf("manifest of %s: %w", commit, err)
	}
	return &man, nil
}

// ReadIndexManifest reads a manifest of an index.
func ReadIndexManifest(get GetObject, name string) (m IndexManifest, err error) {
	data, err := get(name, 0, -1)
	if err != nil {
		return m, err
	}
	if m, err = DecodeIndexManifest(data); err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// ReadSeeds reads a batch of seeds, or the URLs of a mail of requests.
func ReadSeeds(get GetObject, name string) ([]Queued, error) {
	data, err := get(name, 0, -1)
	if err != nil {
		return nil, err
	}
	b, err := DecodeSeeds(data)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	return b.URLs, nil
}

// ReadMap reads a map of a crawl. An empty name means the map of epoch 1, which is not stored.
func ReadMap(get GetObject, c *Crawl, name string) (*partition.Map, error) {
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

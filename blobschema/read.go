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

// read reads an object and decodes it.
func read[T any](get GetObject, name string, decode func([]byte) (T, error)) (v T, err error) {
	data, err := get(name, 0, -1)
	if err != nil {
		return v, err
	}
	if v, err = decode(data); err != nil {
		return v, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// ReadCommit reads a commit object.
func ReadCommit(get GetObject, name string) (*CommitReader, error) {
	return read(get, name, OpenCommit)
}

// ReadManifest reads the manifest of a commit object.
func ReadManifest(get GetObject, commit string) (*Manifest, error) {
	return read(get, commit, func(data []byte) (*Manifest, error) {
		c, err := OpenCommit(data)
		if err != nil {
			return nil, err
		}
		m, err := c.Manifest()
		return &m, err
	})
}

// ReadIndexManifest reads a manifest of an index.
func ReadIndexManifest(get GetObject, name string) (IndexManifest, error) {
	return read(get, name, DecodeIndexManifest)
}

// ReadSeeds reads a batch of seeds, or the URLs of a mail of requests.
func ReadSeeds(get GetObject, name string) ([]Queued, error) {
	b, err := read(get, name, DecodeSeeds)
	return b.URLs, err
}

// ReadMap reads a map of a crawl. An empty name means the map of epoch 1, which is not stored.
func ReadMap(get GetObject, c *Crawl, name string) (*partition.Map, error) {
	if name == "" {
		return partition.NewMap(c.Slots, c.Partitions)
	}
	return read(get, name, func(data []byte) (*partition.Map, error) {
		m := &partition.Map{}
		if err := m.UnmarshalBinary(data); err != nil {
			return nil, fmt.Errorf("%w: %w", wire.ErrDamaged, err)
		}
		if m.Slots() != c.Slots {
			return nil, wire.Damaged("a map of %d slots for a crawl of %d", m.Slots(), c.Slots)
		}
		return m, nil
	})
}

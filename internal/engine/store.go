package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"gocloud.dev/blob"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/platform"
)

// Store is the [blobschema.Store] of a platform that the caller keeps open. Its methods are safe for concurrent use.
type Store struct{ Platform *platform.Platform }

// Records reads records, as [blobschema.Store] says.
func (s Store) Records(ctx context.Context, keys ...string) ([][]byte, error) {
	recs, err := s.Platform.ReadRecords(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", keys[0], err)
	}
	values := make([][]byte, len(recs))
	for i := range recs {
		if recs[i].Found {
			values[i] = recs[i].Value
		}
	}
	return values, nil
}

// Object reads part of an object. It is not metered: reads of viewers are not part of the bill of the crawl.
func (s Store) Object(ctx context.Context, name string, offset, length int64) ([]byte, error) {
	p := platform.Platform{Bucket: s.Platform.Bucket}
	data, err := p.GetObject(ctx, name, offset, length)
	if err == nil && length >= 0 && int64(len(data)) != length {
		err = fmt.Errorf("%w: it ends early", wire.ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", name, err)
	}
	return data, nil
}

// List lists objects by prefix. It skips unfinished objects, which fileblob lists too.
func (s Store) List(ctx context.Context, prefix string) iter.Seq2[blobschema.StoredObject, error] {
	return func(yield func(blobschema.StoredObject, error) bool) {
		objects := s.Platform.Bucket.List(&blob.ListOptions{Prefix: prefix})
		for {
			o, err := objects.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(blobschema.StoredObject{}, fmt.Errorf("list objects: %w", err))
				return
			}
			if !naming.Unfinished(o.Key) && !yield(blobschema.StoredObject{Name: o.Key, Time: o.ModTime}, nil) {
				return
			}
		}
	}
}

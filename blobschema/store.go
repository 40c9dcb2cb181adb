package blobschema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// Store reads the table and the objects of a platform. Implementations are safe for
// concurrent use.
type Store interface {
	// Records reads records in the order of keys, each as it is now. A value is nil if there
	// is no such record.
	Records(ctx context.Context, keys ...string) ([][]byte, error)
	// Object reads length bytes of an object from an offset, or all bytes that follow if
	// length is -1. An object that ends early is an error. The caller does not change the bytes.
	Object(ctx context.Context, name string, offset, length int64) ([]byte, error)
	// List yields the finished objects whose names begin with prefix, in the order of names.
	// An error ends it.
	List(ctx context.Context, prefix string) iter.Seq2[StoredObject, error]
}

// StoredObject is an object as it is listed.
type StoredObject struct {
	Name string
	Time time.Time // of its last put; zero if the store does not know
}

// ReadRecords reads JSON records in one call, each into the value beside its key, and reports which
// exist. A value stays as it is if its record does not exist.
func ReadRecords(ctx context.Context, s Store, keys []string, to []any) (found []bool, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	values, err := s.Records(ctx, keys...)
	if err != nil {
		return nil, err
	}
	found = make([]bool, len(keys))
	for i, value := range values {
		if found[i] = value != nil; !found[i] {
			continue
		}
		if err := json.Unmarshal(value, to[i]); err != nil {
			return nil, fmt.Errorf("decode record %s: %w: %w", keys[i], wire.ErrDamaged, err)
		}
	}
	return found, nil
}

// ReadRecord is [ReadRecords] of one record.
func ReadRecord(ctx context.Context, s Store, key string, to any) (found bool, err error) {
	all, err := ReadRecords(ctx, s, []string{key}, []any{to})
	return err == nil && all[0], err
}

// ErrNoCrawl means that the store contains no crawl.
var ErrNoCrawl = errors.New("there is no crawl")

// ErrUnknownCrawl means that the store contains no crawl with a given id.
var ErrUnknownCrawl = errors.New("there is no such crawl")

// ActiveCrawl returns the id of the active crawl. The error is [ErrNoCrawl] if there is none.
func ActiveCrawl(ctx context.Context, s Store) (string, error) {
	var active struct {
		Crawl string `json:"crawl"`
	}
	found, err := ReadRecord(ctx, s, naming.ActiveKey, &active)
	if err == nil && !found {
		err = ErrNoCrawl
	}
	return active.Crawl, err
}

package virtual

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// ErrChanged means that an object would get other bytes: invariant I6 is broken.
var ErrChanged = errors.New("an object would change")

// Store holds objects and records. It keeps and returns their bytes without copying, so nobody may change them. Its effects
// take no time. They fail only if an object is missing or would change, or a record has another revision.
type Store struct {
	Objects  map[string][]byte
	Table    map[string]actor.Record // records, with an int as revision
	revision int
}

// NewStore returns an empty store.
func NewStore() Store {
	return Store{Objects: map[string][]byte{}, Table: map[string]actor.Record{}}
}

// Clone returns a copy that changes independently of the original.
func (s *Store) Clone() Store {
	return Store{maps.Clone(s.Objects), maps.Clone(s.Table), s.revision}
}

// Apply carries out an effect on objects or records, or [actor.Work]. ok is false for any other effect.
func (s *Store) Apply(effect actor.Effect) (value any, ok bool, err error) {
	switch e := effect.(type) {
	case actor.Work:
		value, err = e.Do()
	case actor.GetObject:
		value, err = s.Get(e.Name, e.Offset, e.Length)
	case actor.PutObject:
		err = s.Put(e.Name, bytes.Join(e.Parts, nil))
	case actor.DeleteObject:
		delete(s.Objects, e.Name)
	case actor.ReadRecords:
		records := make([]actor.Record, len(e.Keys))
		for i, k := range e.Keys {
			records[i] = s.Table[k]
		}
		value = records
	case actor.WriteRecord:
		if s.Table[e.Key].Revision != e.Revision {
			return nil, true, fmt.Errorf("%w: %s", actor.ErrConflict, e.Key)
		}
		value = s.Write(e.Key, e.Value)
	default:
		return nil, false, nil
	}
	return value, true, err
}

// Put stores an object. The error is ErrChanged if an object of that name has other bytes.
func (s *Store) Put(name string, data []byte) error {
	if old, ok := s.Objects[name]; ok && !bytes.Equal(old, data) {
		return fmt.Errorf("%w: %s", ErrChanged, name)
	}
	s.Objects[name] = data
	return nil
}

// Write stores a record regardless of its revision, and returns the new revision.
func (s *Store) Write(key string, value []byte) actor.Revision {
	s.revision++
	s.Table[key] = actor.Record{Value: value, Revision: s.revision, Found: true}
	return s.revision
}

// Get returns an object or a part of it, with the same bounds as blobschema.GetObject.
func (s *Store) Get(name string, offset, length int64) ([]byte, error) {
	b, ok := s.Objects[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s", actor.ErrNotFound, name)
	}
	b = b[min(offset, int64(len(b))):]
	if length >= 0 {
		b = b[:min(length, int64(len(b)))]
	}
	return b, nil
}

// Records returns the values of records. With Object and List it makes Store a blobschema.Store.
func (s *Store) Records(_ context.Context, keys ...string) ([][]byte, error) {
	values := make([][]byte, len(keys))
	for i, k := range keys {
		values[i] = s.Table[k].Value
	}
	return values, nil
}

// Object returns an object, or a part of it.
func (s *Store) Object(_ context.Context, name string, offset, length int64) ([]byte, error) {
	return s.Get(name, offset, length)
}

// List returns all objects with a prefix, sorted.
func (s *Store) List(_ context.Context, prefix string) iter.Seq2[blobschema.StoredObject, error] {
	return func(yield func(blobschema.StoredObject, error) bool) {
		for _, name := range slices.Sorted(maps.Keys(s.Objects)) {
			if strings.HasPrefix(name, prefix) && !yield(blobschema.StoredObject{Name: name}, nil) {
				return
			}
		}
	}
}

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

	"github.com/orbweaver/orbweaver/internal/actor"
)

// ErrChanged means that an object would get other bytes: invariant I6 is broken.
var ErrChanged = errors.New("an object would change")

// Store holds objects and records. It keeps and returns their bytes as they are: nobody may change them. Its effects take no time and never fail without a reason.
type Store struct {
	Objects  map[string][]byte
	Records  map[string]actor.Record // with an int as revision
	revision int
}

// NewStore returns an empty store.
func NewStore() Store {
	return Store{Objects: map[string][]byte{}, Records: map[string]actor.Record{}}
}

// Clone returns a copy that changes independently of the original.
func (s *Store) Clone() Store {
	return Store{maps.Clone(s.Objects), maps.Clone(s.Records), s.revision}
}

// Apply carries out an effect on objects or records, or [actor.Work]; ok is false if it is another one.
func (s *Store) Apply(effect actor.Effect) (value any, ok bool, err error) {
	switch e := effect.(type) {
	case actor.Work:
		value, err = e.Do()
	case actor.GetObject:
		value, err = s.get(e)
	case actor.PutObject:
		err = s.Put(e.Name, bytes.Join(e.Parts, nil))
	case actor.DeleteObject:
		delete(s.Objects, e.Name)
	case actor.ReadRecords:
		records := make([]actor.Record, len(e.Keys))
		for i, k := range e.Keys {
			records[i] = s.Records[k]
		}
		value = records
	case actor.WriteRecord:
		if s.Records[e.Key].Revision != e.Revision {
			return nil, true, fmt.Errorf("%w: %s", actor.ErrConflict, e.Key)
		}
		value = s.Write(e.Key, e.Value)
	default:
		return nil, false, nil
	}
	return value, true, err
}

func (s *Store) get(e actor.GetObject) (any, error) {
	b, ok := s.Objects[e.Name]
	if !ok {
		return nil, fmt.Errorf("%w: %s", actor.ErrNotFound, e.Name)
	}
	b = b[min(e.Offset, int64(len(b))):]
	if e.Length >= 0 {
		b = b[:min(e.Length, int64(len(b)))]
	}
	return b, nil
}

// Put stores an object. The error is ErrChanged if there is one of that name with other bytes.
func (s *Store) Put(name string, data []byte) error {
	if old, ok := s.Objects[name]; ok && !bytes.Equal(old, data) {
		return fmt.Errorf("%w: %s", ErrChanged, name)
	}
	s.Objects[name] = data
	return nil
}

// Write stores a record, whatever its revision, and returns the new one.
func (s *Store) Write(key string, value []byte) actor.Revision {
	s.revision++
	s.Records[key] = actor.Record{Value: value, Revision: s.revision, Found: true}
	return s.revision
}

// Record returns a record; found is false if there is none.
func (s *Store) Record(_ context.Context, key string) (value []byte, found bool, err error) {
	r := s.Records[key]
	return r.Value, r.Found, nil
}

// Object returns an object, or actor.ErrNotFound.
func (s *Store) Object(_ context.Context, name string) ([]byte, error) {
	b, ok := s.Objects[name]
	if !ok {
		return nil, actor.ErrNotFound
	}
	return b, nil
}

// List returns the names of all objects with a prefix, sorted.
func (s *Store) List(_ context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, name := range slices.Sorted(maps.Keys(s.Objects)) {
			if strings.HasPrefix(name, prefix) && !yield(name, nil) {
				return
			}
		}
	}
}

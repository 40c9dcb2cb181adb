package embedded

import (
	"encoding/binary"
	"errors"
	"iter"
	"maps"
	"slices"
)

// ErrConflict says that a key does not have the revision that a write expects.
var ErrConflict = errors.New("another revision")

// Table is a map from keys to values with revisions. Each write gives its key the next revision; all keys share
// them, they start at 1, and none is used twice. The table keeps and returns values without copying them;
// callers must not change them. It is not safe for concurrent use. Use [NewTable].
type Table struct {
	log     *Log
	rev     uint64
	entries map[string]entry
}

type entry struct {
	value []byte
	rev   uint64
}

// NewTable returns an empty table that records its writes in log, which may be nil.
func NewTable(log *Log) *Table { return &Table{log: log, entries: map[string]entry{}} }

// Get returns the value and the revision of a key; the revision is 0 if there is no such key.
func (t *Table) Get(key string) (value []byte, rev uint64) {
	e := t.entries[key]
	return e.value, e.rev
}

// Write sets the value of the key that has revision rev, or creates the key if rev is 0. It returns
// the new revision. If the key has another revision the error is [ErrConflict].
func (t *Table) Write(key string, value []byte, rev uint64) (uint64, error) {
	if t.entries[key].rev != rev {
		return 0, ErrConflict
	}
	t.rev++
	t.entries[key] = entry{value, t.rev}
	if t.log != nil {
		t.log.set(bucketCounter, counterRevision, encodeUint64(t.rev))
		t.log.set(bucketTable, key, append(encodeUint64(t.rev), value...))
	}
	return t.rev, nil
}

// Len returns the number of keys.
func (t *Table) Len() int { return len(t.entries) }

// All yields all keys and their values in the order of keys.
func (t *Table) All() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, key := range slices.Sorted(maps.Keys(t.entries)) {
			if !yield(key, t.entries[key].value) {
				return
			}
		}
	}
}

func (t *Table) load(key string, stored []byte) error {
	if len(stored) < 8 {
		return errDamaged
	}
	rev := binary.BigEndian.Uint64(stored)
	if _, twice := t.entries[key]; twice || rev == 0 {
		return errDamaged
	}
	t.entries[key] = entry{slices.Clone(stored[8:]), rev}
	t.rev = max(t.rev, rev)
	return nil
}

package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// The ways in which a conditional write of a [Table] is refused.
var (
	ErrExists   = errors.New("key exists")
	ErrNotFound = errors.New("no such key")
	ErrConflict = errors.New("another revision")
	ErrRepeated = errors.New("key twice in one batch")
)

// Table is a sorted map from keys to values. Every write of a key gives it the
// next revision; revisions are shared by all keys, start at 1 and are never used
// twice. Values are kept and handed out as they are: nobody may change one.
//
// All methods are O(log n) plus a move of at most a block's entries. Not safe for
// concurrent use. Use [NewTable].
type Table struct {
	log    *Log
	rev    uint64
	blocks [][]entry // sorted, none empty, each at most blockSize long
	n      int
}

type entry struct {
	key   string
	value []byte
	rev   uint64
}

// blockSize bounds what an insert moves. Sorted blocks need no balancing and no
// random numbers; at 512 an insert into 100,000 keys moves about 12 KB.
const blockSize = 512

// NewTable returns an empty table that records its writes in log, which may be nil.
func NewTable(log *Log) *Table { return &Table{log: log} }

// Len returns the number of keys.
func (t *Table) Len() int { return t.n }

// Get returns the value and revision of key.
func (t *Table) Get(key string) (value []byte, rev uint64, ok bool) {
	b, i, ok := t.find(key)
	if !ok {
		return nil, 0, false
	}
	e := &t.blocks[b][i]
	return e.value, e.rev, true
}

// Create writes a key that must not exist: else [ErrExists].
func (t *Table) Create(key string, value []byte) (rev uint64, err error) {
	return t.one(Op{Kind: OpCreate, Key: key, Value: value})
}

// Replace writes a key that must exist. If rev is not 0 the key must have that
// revision. The errors are [ErrNotFound] for rev 0, else [ErrConflict]: whoever
// names a revision lost a race, whether the other wrote or deleted.
func (t *Table) Replace(key string, value []byte, rev uint64) (uint64, error) {
	return t.one(Op{Kind: OpReplace, Key: key, Value: value, Rev: rev})
}

// Put writes a key whether or not it exists.
func (t *Table) Put(key string, value []byte) (rev uint64) {
	return t.apply(Op{Kind: OpPut, Key: key, Value: value})
}

// Delete removes a key. If rev is not 0 the key must have that revision, else
// [ErrConflict]. With rev 0 a missing key is no error.
func (t *Table) Delete(key string, rev uint64) error {
	_, err := t.one(Op{Kind: OpDelete, Key: key, Rev: rev})
	return err
}

// OpKind says what an [Op] does, as the method of [Table] of that name.
type OpKind uint8

// The kinds of conditional write.
const (
	OpCreate OpKind = iota
	OpReplace
	OpPut
	OpDelete
)

// Op is one write of a batch.
type Op struct {
	Kind  OpKind
	Key   string
	Value []byte // not for OpDelete
	Rev   uint64 // OpReplace and OpDelete: the revision the key must have, 0 any
}

// Batch does all of ops or, if one is refused, nothing. It returns the new
// revision of each (0 for a delete), or the index of the first one refused and
// why. A key may occur once ([ErrRepeated]).
func (t *Table) Batch(ops []Op) (revs []uint64, failed int, err error) {
	seen := make(map[string]struct{}, len(ops))
	for i, op := range ops {
		if _, twice := seen[op.Key]; twice {
			return nil, i, ErrRepeated
		}
		seen[op.Key] = struct{}{}
		if err := t.check(op); err != nil {
			return nil, i, err
		}
	}
	revs = make([]uint64, len(ops))
	for i, op := range ops {
		revs[i] = t.apply(op)
	}
	return revs, -1, nil
}

func (t *Table) one(op Op) (uint64, error) {
	if err := t.check(op); err != nil {
		return 0, err
	}
	return t.apply(op), nil
}

func (t *Table) check(op Op) error {
	_, cur, ok := t.Get(op.Key)
	switch op.Kind {
	case OpCreate:
		if ok {
			return ErrExists
		}
	case OpReplace, OpDelete:
		if op.Rev != 0 && op.Rev != cur {
			return ErrConflict
		}
		if !ok && op.Kind == OpReplace {
			return ErrNotFound
		}
	case OpPut:
	default:
		return fmt.Errorf("unknown operation %d", op.Kind)
	}
	return nil
}

// apply does op, which check has let pass, and returns the new revision, 0 for a
// delete.
func (t *Table) apply(op Op) uint64 {
	b, i, ok := t.find(op.Key)
	if op.Kind == OpDelete {
		if !ok {
			return 0
		}
		t.removeAt(b, i)
		// A delete takes a revision too and the counter is stored with it: the
		// deleted key's revision may have been the highest of all (invariant 3).
		t.nextRev()
		t.log.remove(bucketTable, op.Key)
		return 0
	}
	e := entry{op.Key, op.Value, t.nextRev()}
	if ok {
		t.blocks[b][i] = e
	} else {
		t.insertAt(b, i, e)
	}
	if t.log != nil {
		stored := make([]byte, 8, 8+len(op.Value))
		binary.BigEndian.PutUint64(stored, e.rev)
		t.log.set(bucketTable, op.Key, append(stored, op.Value...))
	}
	return e.rev
}

func (t *Table) nextRev() uint64 {
	t.rev++
	if t.log != nil {
		t.log.set(bucketCounter, counterRevision, encodeUint64(t.rev))
	}
	return t.rev
}

// Item is what a scan yields of a key.
type Item struct {
	Value []byte
	Rev   uint64
}

// Scan yields, in order, the keys that begin with prefix and are not below from.
// The table may be written between two steps: the scan goes on behind the last
// key it yielded, in the table as it then is.
func (t *Table) Scan(prefix, from string) iter.Seq2[string, Item] {
	return func(yield func(string, Item) bool) {
		b, i, _ := t.find(max(prefix, from))
		for {
			if b < len(t.blocks) && i == len(t.blocks[b]) {
				b, i = b+1, 0
			}
			if b >= len(t.blocks) {
				return
			}
			e := t.blocks[b][i]
			if !strings.HasPrefix(e.key, prefix) {
				return
			}
			rev := t.rev
			if !yield(e.key, Item{e.value, e.rev}) {
				return
			}
			i++
			if t.rev != rev { // written meanwhile: positions may have moved
				b, i, _ = t.find(e.key + "\x00")
			}
		}
	}
}

// find returns where key is, or where it would be inserted: block b, index i.
// Without any block that is 0, 0.
func (t *Table) find(key string) (b, i int, ok bool) {
	// The last block whose first key is not above key.
	b, _ = slices.BinarySearchFunc(t.blocks, key, func(block []entry, key string) int {
		if block[0].key <= key {
			return -1
		}
		return 1
	})
	if b > 0 {
		b--
	}
	if b == len(t.blocks) {
		return b, 0, false
	}
	i, ok = slices.BinarySearchFunc(t.blocks[b], key, func(e entry, key string) int {
		return strings.Compare(e.key, key)
	})
	return b, i, ok
}

func (t *Table) insertAt(b, i int, e entry) {
	t.n++
	if len(t.blocks) == 0 {
		t.blocks = [][]entry{append(make([]entry, 0, 8), e)}
		return
	}
	block := slices.Insert(t.blocks[b], i, e)
	t.blocks[b] = block
	if len(block) <= blockSize {
		return
	}
	cut := blockSize / 2
	if i == blockSize {
		cut = blockSize // keys that arrive in order fill their blocks
	}
	t.blocks = slices.Insert(t.blocks, b+1, slices.Clone(block[cut:]))
	clear(block[cut:])
	t.blocks[b] = block[:cut]
}

func (t *Table) removeAt(b, i int) {
	t.n--
	t.blocks[b] = slices.Delete(t.blocks[b], i, i+1)
	if len(t.blocks[b]) == 0 {
		t.blocks = slices.Delete(t.blocks, b, b+1)
	}
}

func (t *Table) load(key string, stored []byte) error {
	if len(stored) < 8 {
		return errDamaged
	}
	rev := binary.BigEndian.Uint64(stored)
	if rev == 0 {
		return errDamaged
	}
	b, i, ok := t.find(key)
	if ok {
		return errDamaged
	}
	t.insertAt(b, i, entry{key, slices.Clone(stored[8:]), rev})
	t.rev = max(t.rev, rev)
	return nil
}

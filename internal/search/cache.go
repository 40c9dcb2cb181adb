package search

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// Objects are read in blocks, because data that is used together lies together, and a read costs the same for a
// byte and for a block. Blocks of 64 KiB would save a tenth of the reads, for three times the bytes
// (BenchmarkNext).
const (
	blockSize = 16 << 10
	// maxBlocks bounds the reads that are cached as blocks. Longer ones, such as long lists of postings, are cached
	// whole.
	maxBlocks = 32
)

// kind is the kind of a cached value.
type kind uint8

const (
	kindBlock   kind = iota // at: its number
	kindRange               // at: its offset; length: its length
	kindRun                 // blocks being read; at: number of the first; length: their number
	kindReader              // an open segment
	kindColumns             // of the document table, all of them
	kindTable               // page ranks of a partition
	kindRanks               // page ranks of a segment's documents
	kindTargets             // of anchor texts
)

// key identifies a cached value. Stored objects never change (I6), so no value becomes stale.
type key struct {
	object string
	kind   kind
	at     int64
	length int64
}

// cache keeps values that were read or derived from reads, up to a bound in bytes. It drops the least recently used
// first. If a value is being read, other calls wait for it. It is safe for concurrent use.
type cache struct {
	max int64

	mu      sync.Mutex
	used    int64
	entries map[key]*entry
	order   *list.List // of *entry, the last used first; without those being read
}

type entry struct {
	key   key
	value any
	bytes int64
	err   error
	done  chan struct{} // closed when value or err is set
	at    *list.Element
}

func newCache(maxBytes int64) *cache {
	return &cache{max: maxBytes, entries: map[key]*entry{}, order: list.New()}
}

// claim returns the entry of a key, and whether the caller has to settle it.
func (c *cache) claim(k key) (e *entry, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e = c.entries[k]; e != nil {
		if e.at != nil {
			c.order.MoveToFront(e.at)
		}
		return e, false
	}
	e = &entry{key: k, done: make(chan struct{})}
	c.entries[k] = e
	return e, true
}

// get returns a cached value.
func (c *cache) get(k key) (value any, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[k]
	if e == nil || e.at == nil {
		return nil, false
	}
	c.order.MoveToFront(e.at)
	return e.value, true
}

// fill sets the value of a claimed entry. Waiting calls get an error or a value of kind [kindRun], but it is not cached.
func (c *cache) fill(e *entry, value any, size int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.value, e.bytes, e.err = value, size, err
	close(e.done)
	if err != nil || e.key.kind == kindRun {
		delete(c.entries, e.key)
		return
	}
	e.at = c.order.PushFront(e)
	c.used += size
	for c.used > c.max && c.order.Len() > 0 {
		last := c.order.Remove(c.order.Back()).(*entry)
		last.at = nil
		c.used -= last.bytes
		delete(c.entries, last.key)
	}
}

// wait waits until another call has settled the entry. again reports that the other call was cancelled, so that
// this one should try itself.
func (e *entry) wait(ctx context.Context) (again bool, err error) {
	select {
	case <-e.done:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	gaveUp := errors.Is(e.err, context.Canceled) || errors.Is(e.err, context.DeadlineExceeded)
	return gaveUp && ctx.Err() == nil, e.err
}

// cached returns the value of a key, or what load makes, with its size in bytes.
func cached[T any](ctx context.Context, c *cache, k key, load func() (T, int64, error)) (value T, err error) {
	for {
		e, mine := c.claim(k)
		if mine {
			var size int64
			err = errors.New("the read did not end") // stays if load panics, so that no call waits forever
			defer func() { c.fill(e, value, size, err) }()
			value, size, err = load()
			return value, err
		}
		again, err := e.wait(ctx)
		if again {
			continue
		}
		if err != nil {
			return value, err
		}
		return e.value.(T), nil
	}
}

// reads counts the reads of one query.
type reads struct{ calls, bytes atomic.Int64 }

// reader reads objects for one query.
type reader struct {
	store blobschema.Store
	cache *cache
	reads *reads
}

// direct reads a range without the cache; all of the object if length is negative.
func (r *reader) direct(ctx context.Context, object string, off, length int64) ([]byte, error) {
	r.reads.calls.Add(1)
	data, err := r.store.Object(ctx, object, off, length)
	r.reads.bytes.Add(int64(len(data)))
	return data, err
}

// source returns a source that reads a segment of size bytes through the cache.
func (r *reader) source(ctx context.Context, object string, size int64) segment.Source {
	return func(off, length int64) ([]byte, error) {
		if off < 0 || length < 0 || off > size || length > size-off {
			return nil, fmt.Errorf("%w: bytes %d to %d of %d", wire.ErrDamaged, off, off+length, size)
		}
		if length == 0 {
			return nil, nil
		}
		first, last := off/blockSize, (off+length-1)/blockSize
		if last-first >= maxBlocks {
			return cached(ctx, r.cache, key{object, kindRange, off, length}, func() ([]byte, int64, error) {
				data, err := r.direct(ctx, object, off, length)
				return data, length, err
			})
		}
		blocks, err := r.blocks(ctx, object, size, first, last)
		if err != nil {
			return nil, err
		}
		b, at := blocks[0], off-first*blockSize
		if len(blocks) > 1 {
			b = bytes.Join(blocks, nil)
		}
		return b[at : at+length : at+length], nil
	}
}

// blocks returns some blocks of an object. It reads the missing ones, and those between them, in one call. If another
// call is reading the same blocks, it waits for that call.
func (r *reader) blocks(ctx context.Context, object string, size, first, last int64) ([][]byte, error) {
	out := make([][]byte, last-first+1)
	from, to := last+1, first // of the missing blocks, to is behind the last
	for i := range out {
		at := first + int64(i)
		if b, ok := r.cache.get(key{object, kindBlock, at, 0}); ok {
			out[i] = b.([]byte)
		} else {
			from, to = min(from, at), at+1
		}
	}
	if from >= to {
		return out, nil
	}
	read, err := cached(ctx, r.cache, key{object, kindRun, from, to - from}, func() ([][]byte, int64, error) {
		length := min(size, to*blockSize) - from*blockSize
		data, err := r.direct(ctx, object, from*blockSize, length)
		if err == nil && int64(len(data)) != length {
			err = fmt.Errorf("%w: %s has %d of %d bytes", wire.ErrDamaged, object, len(data), length)
		}
		if err != nil {
			return nil, 0, err
		}
		run := slices.Collect(slices.Chunk(data, blockSize))
		for i, b := range run {
			if len(run) > 1 {
				run[i] = bytes.Clone(b) // the cache drops blocks one by one
			}
			if e, mine := r.cache.claim(key{object, kindBlock, from + int64(i), 0}); mine {
				r.cache.fill(e, run[i], int64(len(b)), nil)
			}
		}
		return run, 0, nil
	})
	if err != nil {
		return nil, err
	}
	copy(out[from-first:], read)
	return out, nil
}

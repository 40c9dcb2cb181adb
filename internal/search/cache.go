package search

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/stored"
)

// What is read, is read in blocks: what is used together lies together, and a read costs
// the same for a byte and for a block. Blocks of 64 KiB save a tenth of the reads, and are
// three times the bytes (BenchmarkNext).
const (
	blockSize = 16 << 10
	// maxBlocks is how many blocks a read may span to be kept as such. What is longer, as a
	// long list of postings, is read and kept as it is.
	maxBlocks = 32
)

// kind tells apart what is kept of an object.
type kind uint8

const (
	kindBlock   kind = iota // at: its number
	kindRange               // at: where it begins; and its length
	kindReader              // an open segment
	kindColumns             // of the document table, all of them
	kindTable               // page ranks of a partition
	kindRanks               // page ranks of a segment's documents
	kindTargets             // of anchor texts
)

// key names what is kept. What is stored never changes (I6), so it never grows old.
type key struct {
	object string
	kind   kind
	at     int64
	length int64
}

// cache keeps what was read and what was made of it, the last used, up to a bound in
// bytes. Whoever wants what another is just reading waits for it. It is safe for
// concurrent use.
type cache struct {
	max int64

	mu      sync.Mutex
	used    int64
	entries map[key]*entry
	order   *list.List // of *entry, the last used first; without those under way
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

// claim returns the entry of a key, and whether the caller is the one to settle it.
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

// settle gives an entry what it was claimed for. An error is for those who wait, not for
// those who come later.
func (c *cache) settle(e *entry, value any, size int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.value, e.bytes, e.err = value, size, err
	close(e.done)
	if err != nil {
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

// wait waits for what another is reading. again says that the other gave up, as whoever
// asked it did, which is no reason for this one to.
func (e *entry) wait(ctx context.Context) (again bool, err error) {
	select {
	case <-e.done:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	gaveUp := errors.Is(e.err, context.Canceled) || errors.Is(e.err, context.DeadlineExceeded)
	return gaveUp && ctx.Err() == nil, e.err
}

// cached returns what is kept under a key, or what load makes of it, with its size in
// bytes.
func cached[T any](ctx context.Context, c *cache, k key, load func() (T, int64, error)) (value T, err error) {
	for {
		e, mine := c.claim(k)
		if mine {
			var size int64
			err = errors.New("what was to be read could not be") // if load panics: nobody may wait for ever
			defer func() { c.settle(e, value, size, err) }()
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

// reads counts what one query read.
type reads struct{ calls, bytes atomic.Int64 }

// reader reads ranges of objects for one query.
type reader struct {
	store stored.Store
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

// source reads a segment of size bytes through the cache.
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
		if len(blocks) == 1 {
			at := off - first*blockSize
			return blocks[0][at : at+length : at+length], nil
		}
		at := off - first*blockSize
		return bytes.Join(blocks, nil)[at : at+length], nil
	}
}

// blocks returns some blocks of an object. Those that are missing side by side are one
// read.
func (r *reader) blocks(ctx context.Context, object string, size, first, last int64) ([][]byte, error) {
	out := make([][]byte, last-first+1)
	for {
		var mine, others []*entry
		for i := range out {
			if out[i] != nil {
				continue
			}
			e, claimed := r.cache.claim(key{object, kindBlock, first + int64(i), 0})
			if claimed {
				mine = append(mine, e)
			} else {
				others = append(others, e)
			}
		}
		if err := r.fill(ctx, object, size, mine); err != nil {
			return nil, err
		}
		for _, e := range mine {
			out[e.key.at-first] = e.value.([]byte)
		}
		retry := false
		for _, e := range others {
			again, err := e.wait(ctx)
			switch {
			case again:
				retry = true
			case err != nil:
				return nil, err
			default:
				out[e.key.at-first] = e.value.([]byte)
			}
		}
		if !retry {
			return out, nil
		}
	}
}

// fill reads blocks that the caller has claimed, in their order, and settles them all,
// whatever happens.
func (r *reader) fill(ctx context.Context, object string, size int64, claimed []*entry) (failed error) {
	for len(claimed) > 0 {
		n := 1
		for n < len(claimed) && claimed[n].key.at == claimed[0].key.at+int64(n) {
			n++
		}
		run := claimed[:n]
		claimed = claimed[n:]
		from := run[0].key.at * blockSize
		to := min(size, from+int64(n)*blockSize)
		data, err := []byte(nil), failed
		if err == nil {
			data, err = r.direct(ctx, object, from, to-from)
		}
		for i, e := range run {
			if err != nil {
				failed = err
				r.cache.settle(e, nil, 0, err)
				continue
			}
			block := data[i*blockSize : min((i+1)*blockSize, len(data))]
			if n > 1 {
				block = bytes.Clone(block) // each is dropped alone
			}
			r.cache.settle(e, block, int64(len(block)), nil)
		}
	}
	return failed
}

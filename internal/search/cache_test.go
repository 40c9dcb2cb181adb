package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

func newReader(store blobschema.Store, size int64) *reader {
	return &reader{store, newCache(size), &reads{}}
}

// TestSource checks the bytes of random ranges, with caches of different sizes.
func TestSource(t *testing.T) {
	data := make([]byte, 20*blockSize+17)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	for _, size := range []int64{1, 3 * blockSize, 1 << 30} {
		m := &memory{objects: map[string][]byte{"o": data}}
		r := newReader(m, size)
		src := r.source(t.Context(), "o", int64(len(data)))
		var wg sync.WaitGroup
		for range 8 {
			seed := rng.Uint64()
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 1))
				for range 200 {
					off := rng.Int64N(int64(len(data)))
					length := rng.Int64N(min(12*blockSize, int64(len(data))-off+1))
					got, err := src(off, length)
					if err != nil || !bytes.Equal(got, data[off:off+length]) {
						t.Errorf("bytes %d to %d: %d bytes, %v", off, off+length, len(got), err)
					}
				}
			})
		}
		wg.Wait()
		c := r.cache
		if c.used > max(size, 0) || c.used < 0 || len(c.entries) != c.order.Len() {
			t.Errorf("the cache has %d bytes of %d, in %d entries of %d", c.used, size, c.order.Len(), len(c.entries))
		}
		for _, bad := range [][2]int64{{-1, 1}, {0, -1}, {0, int64(len(data)) + 1}, {int64(len(data)), 1}, {1 << 62, 1 << 62}} {
			if _, err := src(bad[0], bad[1]); err == nil {
				t.Errorf("bytes %d, %d of them: no error", bad[0], bad[1])
			}
		}
	}
}

// TestBlocksAreReadOnce checks that missing blocks are read in one call, and cached blocks are not read again.
func TestBlocksAreReadOnce(t *testing.T) {
	data := make([]byte, 6*blockSize)
	m := &memory{objects: map[string][]byte{"o": data}}
	src := newReader(m, 1<<30).source(t.Context(), "o", int64(len(data)))
	for _, c := range []struct {
		off, length int64
		reads       int
	}{{0, 10, 1}, {5, 100, 1}, {0, 3 * blockSize, 2}, {0, 3 * blockSize, 2}, {4*blockSize + 5, 1, 3}, {0, int64(len(data)), 4}, {1, int64(len(data)) - 1, 4}} {
		if _, err := src(c.off, c.length); err != nil || m.reads != c.reads {
			t.Errorf("after bytes %d to %d: %d reads, want %d; %v", c.off, c.off+c.length, m.reads, c.reads, err)
		}
	}
}

// TestCacheWaits checks that calls wait for a value that another call loads, and share its error. A
// later call tries again. If the loading call is cancelled, a waiting call loads the value.
func TestCacheWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(1000)
		loads := 0
		var mu sync.Mutex
		load := func(value int, err error) func() (int, int64, error) {
			return func() (int, int64, error) {
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				loads++
				return value, 10, err
			}
		}
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if v, err := cached(t.Context(), c, key{object: "a"}, load(7, nil)); v != 7 || err != nil {
					t.Errorf("%d, %v", v, err)
				}
			})
		}
		wg.Wait()
		if loads != 1 {
			t.Errorf("loaded %d times", loads)
		}
		failure := errors.New("no")
		for range 2 {
			if _, err := cached(t.Context(), c, key{object: "b"}, load(0, failure)); err != failure {
				t.Error(err)
			}
		}
		if loads != 3 {
			t.Errorf("an error is cached: %d loads", loads)
		}
		wg.Go(func() { _, _ = cached(t.Context(), c, key{object: "c"}, load(0, context.Canceled)) })
		synctest.Wait()
		if v, err := cached(t.Context(), c, key{object: "c"}, load(9, nil)); v != 9 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
		wg.Wait()
		// A waiting call may be cancelled.
		wg.Go(func() { _, _ = cached(t.Context(), c, key{object: "d"}, load(1, nil)) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := cached(ctx, c, key{object: "d"}, load(1, nil)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		wg.Wait()
	})
}

func TestCacheIsBounded(t *testing.T) {
	c := newCache(100)
	for i := range 50 {
		for range 2 {
			if _, err := cached(t.Context(), c, key{object: fmt.Sprint(i)}, func() (int, int64, error) { return i, int64(i), nil }); err != nil {
				t.Fatal(err)
			}
		}
		if c.used > 100 {
			t.Fatalf("the cache has %d bytes", c.used)
		}
	}
	if _, ok := c.entries[key{object: "49"}]; !ok {
		t.Error("the last used value is not cached")
	}
	func() { // a panic does not block later calls
		defer func() { _ = recover() }()
		_, _ = cached(t.Context(), c, key{object: "p"}, func() (int, int64, error) { panic("p") })
	}()
	if v, err := cached(t.Context(), c, key{object: "p"}, func() (int, int64, error) { return 1, 1, nil }); v != 1 || err != nil {
		t.Error(v, err)
	}
}

// TestColumnsAreCounted checks that a cached document table counts with its size in memory, not with the
// bytes read for it.
func TestColumnsAreCounted(t *testing.T) {
	var pages []*page
	for i := range 2000 {
		pages = append(pages, &page{url: fmt.Sprint(site, i), body: "coffee"})
	}
	ix := one(t, pages...)
	ask(t, ix, Request{Query: "coffee"})
	for k, e := range ix.cache.entries {
		if k.kind == kindColumns && e.bytes < 2000*(8+8+4*4+5) {
			t.Errorf("%d bytes for 2,000 documents", e.bytes)
		}
	}
}

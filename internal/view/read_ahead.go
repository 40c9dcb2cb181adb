package view

import (
	"context"
	"iter"
	"sync"
)

// readAhead is how many objects are read at once where each read is a call over a network.
// Commits are small; eight of the largest are a few hundred MB.
const readAhead = 8

// object is an object that was read.
type object struct {
	name string
	data []byte
}

// objects reads objects and yields them in the order of their names. Where a read is a
// call over a network, it reads some objects ahead. An error ends it, also one of names.
// No read is under way any more when it returns.
func (v *View) objects(ctx context.Context, names iter.Seq2[string, error]) iter.Seq2[object, error] {
	width := 1 // files are there at once
	if v.shared() {
		width = readAhead
	}
	return Ahead(ctx, width, names, func(ctx context.Context, name string) (object, error) {
		data, err := v.store.Object(ctx, name, 0, -1)
		return object{name, data}, err
	})
}

// Ahead yields the result of read for each item, in the order of the items. It runs up to width reads at once. An error ends
// it, also one of items. No read is under way any more when it returns.
func Ahead[I, R any](ctx context.Context, width int, items iter.Seq2[I, error], read func(context.Context, I) (R, error)) iter.Seq2[R, error] {
	type result struct {
		r   R
		err error
	}
	return func(yield func(R, error) bool) {
		var wg sync.WaitGroup
		defer wg.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		next, stop := iter.Pull2(items)
		defer stop()
		var reads []chan result // under way
		for more := true; ; {
			for more && len(reads) < width {
				var item I
				var err error
				if item, err, more = next(); !more {
					break
				}
				done := make(chan result, 1)
				reads = append(reads, done)
				wg.Go(func() {
					r := result{err: err}
					if err == nil {
						r.r, r.err = read(ctx, item)
					}
					done <- r
				})
			}
			if len(reads) == 0 {
				return
			}
			r := <-reads[0]
			reads = reads[1:]
			if !yield(r.r, r.err) || r.err != nil {
				return
			}
		}
	}
}

// listed yields names that are known to the caller.
func listed(names []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, name := range names {
			if !yield(name, nil) {
				return
			}
		}
	}
}

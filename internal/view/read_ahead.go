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
	type result struct {
		object
		err error
	}
	return func(yield func(object, error) bool) {
		var wg sync.WaitGroup
		defer wg.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		next, stop := iter.Pull2(names)
		defer stop()
		var reads []chan result // under way
		for more := true; ; {
			for more && len(reads) < width {
				r := result{}
				if r.name, r.err, more = next(); !more {
					break
				}
				done := make(chan result, 1)
				reads = append(reads, done)
				wg.Go(func() {
					if r.err == nil {
						r.data, r.err = v.store.Object(ctx, r.name, 0, -1)
					}
					done <- r
				})
			}
			if len(reads) == 0 {
				return
			}
			r := <-reads[0]
			reads = reads[1:]
			if !yield(r.object, r.err) || r.err != nil {
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

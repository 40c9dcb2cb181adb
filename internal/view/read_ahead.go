package view

import (
	"context"
	"iter"
	"sync"
)

// readAhead is how many objects are read at once where a read is a call over a network.
// Commits are small; eight of the largest are a few hundred MB.
const readAhead = 8

// object is one that was read.
type object struct {
	name string
	data []byte
}

// objects yields objects in the order of their names, reading some ahead where that
// helps. An error ends it. Nothing is being read any more when it returns.
func (v *View) objects(ctx context.Context, names iter.Seq[string]) iter.Seq2[object, error] {
	width := 1 // files are there at once
	if v.shared() {
		width = readAhead
	}
	return func(yield func(object, error) bool) {
		type result struct {
			data []byte
			err  error
		}
		type reading struct {
			name string
			done chan result
		}
		var wg sync.WaitGroup
		defer wg.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		next, stop := iter.Pull(names)
		defer stop()
		var under []reading
		for {
			for len(under) < width {
				name, ok := next()
				if !ok {
					break
				}
				r := reading{name, make(chan result, 1)}
				under = append(under, r)
				wg.Go(func() {
					data, err := v.store.Object(ctx, name, 0, -1)
					r.done <- result{data, err}
				})
			}
			if len(under) == 0 {
				return
			}
			first := under[0]
			under = under[1:]
			r := <-first.done
			if !yield(object{first.name, r.data}, r.err) || r.err != nil {
				return
			}
		}
	}
}

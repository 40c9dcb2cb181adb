package hostile

import (
	"runtime/metrics"
	"time"
)

// WatchHeap samples the size of the heap every millisecond until stop is called. stop returns the first size
// and the largest, in bytes.
func WatchHeap() (stop func() (before, peak uint64)) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	heap := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	before, peak := heap(), uint64(0)
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				peak = max(peak, heap())
			}
		}
	}()
	return func() (uint64, uint64) {
		close(done)
		<-watched
		return before, peak
	}
}

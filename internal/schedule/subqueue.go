package schedule

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// maxQueues bounds the queues of a politeness key.
const maxQueues = 64

// subQueue returns the queue of a URL among the k queues of its politeness key, 0 … k-1. A k above maxQueues counts
// as maxQueues. By host, or with k below 2, it is 0. The queue depends on nothing else, so it is not stored.
func subQueue(by blobschema.QueueBy, k int, u weburl.URL) uint8 {
	if k < 2 {
		return 0
	}
	s := u.String()
	if by == blobschema.QueueBySURT {
		by, s = blobschema.QueueByBKDR, u.SURTPrefix()
	}
	return uint8(Reduce(HashString(by, s), min(k, maxQueues)))
}

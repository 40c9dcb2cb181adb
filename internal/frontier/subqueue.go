package frontier

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// maxQueues is the most queues that the URLs of a unit are dealt to.
const maxQueues = 64

// subQueue returns which of the k queues of its unit a URL belongs to, 0 … k-1; k is at most
// maxQueues, and with less than 2 there is one. By host it is always 0. It depends on
// nothing else, so it need not be stored.
func subQueue(by blobschema.QueueBy, k int, u weburl.URL) uint8 {
	if k < 2 {
		return 0
	}
	var h uint32
	switch by {
	case blobschema.QueueBySURT:
		h = BKDR(u.SURTPrefix())
	case blobschema.QueueByBKDR:
		h = BKDR(u.String())
	case blobschema.QueueByELF:
		h = ELF(u.String())
	case blobschema.QueueBySDBM:
		h = SDBM(u.String())
	default:
		return 0
	}
	return uint8(Reduce(h, min(k, maxQueues)))
}

package frontier

import (
	"container/heap"
	"time"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// item is one pending URL of a loaded slot.
type item struct {
	url       weburl.URL
	fp        uint64
	host      *host
	notBefore int64 // Unix milliseconds
	seq       uint32
	rank      uint32
	gen       uint32
	depth     uint16
	attempts  uint8
	flags     blobschema.QueuedFlags
	dirty     bool // changed since the last delta
	asked     bool // a request for it is under way
	settled   bool
}

func (it *item) queued() blobschema.Queued {
	return blobschema.Queued{
		Slot: it.host.slot.id, Host: it.host.name, Rank: it.rank, URL: it.url.String(), Generation: it.gen,
		Depth: it.depth, Attempts: it.attempts, Flags: it.flags, NotBefore: it.notBefore,
	}
}

// place says in which queue a host stands.
type place uint8

const (
	idle    place = iota // no URL waits
	waiting              // in the timers, until its pace allows a request
	ready                // in the ready queue
	busy                 // a request is under way
)

// host is one politeness key of a loaded slot.
type host struct {
	name               string
	slot               *slot
	queue              itemHeap // URLs that may be asked for now
	later              itemHeap // URLs to be tried again, ordered by notBefore
	pace               polite.Pace
	robots             [2]robots // for http and https
	requests, failures uint64
	silent             int    // different URLs in a row that got no answer
	version            uint64 // of the stored state; grows with every delta that holds it
	dirty              bool

	place     place
	index     int // in its heap
	at        time.Time
	rank      float64
	turn      uint64 // order of arrival in the ready queue
	free      bool   // a robots.txt was had just now, and does not count
	connected bool   // its connection is open and may serve more
	served    int    // requests on that connection
	since     time.Time
}

// robots is what is known of one robots.txt.
type robots struct {
	rules    *polite.Robots
	until    time.Time  // rules are good until then
	next     weburl.URL // where a redirect points to, zero for the usual place
	hops     uint8
	attempts uint8
	retry    time.Time // after a failure, ask again no earlier
}

func schemeIndex(u weburl.URL) int {
	if u.Scheme() == "https" {
		return 1
	}
	return 0
}

func (h *host) pending() int { return len(h.queue) + len(h.later) }

// promote moves URLs whose time has come from later into the queue.
func (h *host) promote(now time.Time) {
	ms := now.UnixMilli()
	for len(h.later) > 0 && h.later[0].notBefore <= ms {
		it := heap.Pop(laterView{&h.later}).(*item)
		it.notBefore = 0
		heap.Push(&h.queue, it)
	}
}

func (h *host) push(it *item, now time.Time) {
	if it.notBefore > now.UnixMilli() {
		heap.Push(laterView{&h.later}, it)
		return
	}
	heap.Push(&h.queue, it)
}

// readyAt is when the host may be asked for something, given that a URL waits.
func (h *host) readyAt() time.Time {
	at := h.pace.ReadyAt()
	var best *item
	if len(h.queue) > 0 {
		best = h.queue[0]
	} else {
		best = h.later[0]
		if t := time.UnixMilli(best.notBefore); t.After(at) {
			at = t
		}
	}
	if t := h.robots[schemeIndex(best.url)].retry; t.After(at) {
		at = t
	}
	return at
}

// visit is how many requests one visit to the host may hold.
func (h *host) visit() float64 {
	if h.pace.PerConnection == 0 {
		return polite.NewPerConnection
	}
	return h.pace.PerConnection
}

func (h *host) observation() blobschema.HostObservation {
	return blobschema.HostObservation{
		Host: h.name, Slot: h.slot.id, Conn: h.pace.ConnTime, Resp: h.pace.RespTime,
		PerConnection: h.pace.PerConnection, Requests: h.requests, Failures: h.failures,
	}
}

func (h *host) view() HostView {
	v := HostView{Pending: h.pending(), Connect: h.pace.ConnTime, Response: h.pace.RespTime, PerConnection: h.pace.PerConnection}
	if len(h.queue) > 0 {
		v.Best = h.queue[0].rank
	}
	return v
}

// slot is a bucket of hosts.
type slot struct {
	id      partition.Slot
	loaded  bool
	loading bool
	pending map[uint64]*item
	settled map[uint64]mark
	hosts   []*host
	asked   int // requests under way
	touched uint64

	// When unloaded: what the last commit said, and what came since.
	known      uint32
	npending   uint32
	due        int64
	unexamined uint32
	filter     *bloom.BloomFilter  // of all URLs, if the slot was unloaded by this frontier
	fresh      []blobschema.Queued // in no delta yet
	taken      []blobschema.Queued // in a delta whose commit is under way
}

// mark is the settled state of a URL: generation and state.
type mark uint64

func newMark(gen uint32, s blobschema.State) mark { return mark(gen)<<8 | mark(s) }

func (m mark) generation() uint32 { return uint32(m >> 8) }

// itemHeap orders a host's URLs by rank, then by arrival.
type itemHeap []*item

func (q itemHeap) Len() int { return len(q) }
func (q itemHeap) Less(i, j int) bool {
	if q[i].rank != q[j].rank {
		return q[i].rank < q[j].rank
	}
	return q[i].seq < q[j].seq
}
func (q itemHeap) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *itemHeap) Push(x any)   { *q = append(*q, x.(*item)) }
func (q *itemHeap) Pop() any {
	old := *q
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return it
}

// laterView orders the same kind of heap by time.
type laterView struct{ *itemHeap }

func (q laterView) Less(i, j int) bool {
	a, b := (*q.itemHeap)[i], (*q.itemHeap)[j]
	if a.notBefore != b.notBefore {
		return a.notBefore < b.notBefore
	}
	return a.seq < b.seq
}

// readyHeap orders the hosts that may be asked now: those with an open connection
// first, then by rank, then by arrival.
type readyHeap []*host

func (q readyHeap) Len() int { return len(q) }
func (q readyHeap) Less(i, j int) bool {
	a, b := q[i], q[j]
	if a.connected != b.connected {
		return a.connected
	}
	if a.rank != b.rank {
		return a.rank > b.rank
	}
	return a.turn < b.turn
}
func (q readyHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *readyHeap) Push(x any) {
	h := x.(*host)
	h.index = len(*q)
	*q = append(*q, h)
}
func (q *readyHeap) Pop() any {
	old := *q
	h := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return h
}

// timerHeap orders the hosts that wait by when they are ready.
type timerHeap []*host

func (q timerHeap) Len() int { return len(q) }
func (q timerHeap) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].turn < q[j].turn
}
func (q timerHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *timerHeap) Push(x any) {
	h := x.(*host)
	h.index = len(*q)
	*q = append(*q, h)
}
func (q *timerHeap) Pop() any {
	old := *q
	h := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return h
}

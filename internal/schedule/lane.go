package schedule

import "time"

// lane is a queue of the URLs of one origin, pool, topic and sub-queue. At most one request for
// them is under way.
type lane struct {
	origin     *origin
	pool       *Pool
	topicQueue *topicQueue
	number     uint32 // in the pool's list
	topic      uint8
	sub        uint8
	inFlight   bool // a request is under way
	where      laneWhere
	index      int      // in its heap
	queue      []uint32 // items that may be requested now: a heap, best first
}

type laneWhere uint8

const (
	nowhere laneWhere = iota // empty, stopped, or a request is under way
	open                     // in topicQueue.lanes
	blocked                  // in Key.blocked
)

func (l *lane) moved(at int) { l.index = at }

// before orders lanes by their best items.
func (l *lane) before(o *lane) bool { return l.best().before(o.best()) }

// blockedLane waits for its robots.txt, which may not be requested yet.
type blockedLane struct{ *lane }

func (l blockedLane) before(o blockedLane) bool { return l.origin.Retry.Before(o.origin.Retry) }

// enlist puts a lane where it belongs after a change of its queue or of a condition that blocks it.
func (l *lane) enlist(now time.Time) {
	where := open
	switch {
	case len(l.queue) == 0 || l.inFlight || l.origin.asking || l.pool.full:
		where = nowhere
	case l.origin.closed(now):
		where = blocked
	}
	switch {
	case where == open && l.where == open:
		l.topicQueue.lanes.fix(l.index)
		return
	case where == l.where: // a blocked lane changes its time only through delist
		return
	}
	l.delist()
	switch l.where = where; where {
	case open:
		l.topicQueue.lanes.push(l)
	case blocked:
		l.topicQueue.key.blocked.push(blockedLane{l})
	}
}

// delist takes a lane out of its heap.
func (l *lane) delist() {
	switch l.where {
	case open:
		l.topicQueue.lanes.remove(l.index)
	case blocked:
		l.topicQueue.key.blocked.remove(l.index)
	}
	l.where = nowhere
}

// putBack delays the best item by a pause.
func (l *lane) putBack(now time.Time, pause time.Duration) {
	i := l.pop()
	l.pool.setNotBefore(i, now.Add(pause).UnixMilli())
	l.enlist(now)
	l.topicQueue.key.add(l.pool, i, now)
}

// urgency returns the urgency of the best URL of a lane that is not empty.
func (l *lane) urgency() urgency {
	switch it := l.best(); {
	case it.rank == 0:
		return requested
	case l.topicQueue.key.isRevisit(it):
		return revisit
	case it.urgent():
		return needed
	}
	return found
}

// less orders items by rank, then urgent ones first, then by arrival.
func (p *Pool) less(a, b uint32) bool { return p.items[a].before(&p.items[b]) }

func (x *item) before(y *item) bool {
	if x.rank != y.rank {
		return x.rank < y.rank
	}
	if x.urgent() != y.urgent() {
		return x.urgent()
	}
	return x.seq < y.seq
}

// best returns the item at the top of the queue.
func (l *lane) best() *item { return &l.pool.items[l.queue[0]] }

func (l *lane) push(i uint32) {
	l.queue = append(l.queue, i)
	l.up(len(l.queue) - 1)
}

// up and down move an item to its place. A lane is not a [heap], because every URL passes through a
// lane: its entries are the indexes of items, four bytes each (BenchmarkLane).
func (l *lane) up(at int) {
	p, q := l.pool, l.queue
	i := q[at]
	for at > 0 {
		parent := (at - 1) / 2
		if !p.less(i, q[parent]) {
			break
		}
		q[at] = q[parent]
		p.items[q[at]].pos = uint32(at)
		at = parent
	}
	q[at] = i
	p.items[i].pos = uint32(at)
}

func (l *lane) down(at int) {
	p, q := l.pool, l.queue
	i := q[at]
	for {
		child := 2*at + 1
		if child >= len(q) {
			break
		}
		if child+1 < len(q) && p.less(q[child+1], q[child]) {
			child++
		}
		if !p.less(q[child], i) {
			break
		}
		q[at] = q[child]
		p.items[q[at]].pos = uint32(at)
		at = child
	}
	q[at] = i
	p.items[i].pos = uint32(at)
}

// pop takes the best item out of the queue.
func (l *lane) pop() uint32 {
	i, last := l.queue[0], len(l.queue)-1
	l.queue[0] = l.queue[last]
	l.queue = l.queue[:last]
	switch {
	case last == 0:
		l.queue = nil
	case last < cap(l.queue)/4 && last > 64:
		l.queue = append(make([]uint32, 0, last*2), l.queue...)
	}
	if last > 0 {
		l.down(0)
	}
	return i
}

// remove takes an item out of the middle of the queue.
func (l *lane) remove(at int) {
	last := len(l.queue) - 1
	l.queue[at] = l.queue[last]
	l.queue = l.queue[:last]
	if at < last {
		l.pool.items[l.queue[at]].pos = uint32(at)
		l.up(at)
		l.down(int(l.pool.items[l.queue[at]].pos))
	}
}

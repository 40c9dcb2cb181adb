package frontier

import (
	"container/heap"
	"net/netip"
	"time"

	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// place says in which queue a unit stands.
type place uint8

const (
	idle    place = iota // no URL waits
	waiting              // in the timers, until its pace allows a request
	ready                // in the ready queue
	busy                 // a request is under way
)

// unit is what has one pace, of a loaded slot.
type unit struct {
	key     string
	slot    *slot
	domain  *domain
	own     site        // whose authority is the key, if there is such a one
	lanes   laneHeap    // with URLs that may be asked for, by the best of each
	blocked blockedHeap // lanes with URLs whose robots.txt may not be asked for yet
	later   laterHeap   // URLs to be tried again
	pace    polite.Pace

	addr     netip.Addr // of a placed unit, or what a name is pinned to
	placed   bool       // the key is an address
	resolves uint8      // attempts to resolve the name, in vain
	hold     time.Time  // the next of them comes no earlier

	requests, failures uint64
	settled, capped    uint64 // of all its sites
	pending            int
	asks               []ask
	version            uint64 // of the stored state; grows with every delta that holds it
	dirty              bool
	observed           bool // asked since the last delta

	place     place
	index     int // in its heap
	at        time.Time
	since     time.Time
	rank      float64
	start     uint64 // virtual time of its turn
	turn      uint64 // order of arrival in the ready queue
	urgent    bool   // its best URL is asked for on purpose
	free      bool   // a robots.txt was had just now, and does not count
	connected bool   // its connection is open and may serve more
	served    int    // requests on that connection
}

// site is an authority within a unit.
type site struct {
	name    string
	unit    *unit
	lanes   [2]lane // for http and https
	settled uint64
	capped  uint64
	pending int
	silent  int    // different URLs in a row that got no answer
	version uint64 // of the stored state of a further site
	dirty   bool
}

// lane is the URLs of one site under one scheme: what one robots.txt is about.
type lane struct {
	site   *site
	number uint32 // in the slot's list, if listed
	https  bool
	listed bool
	where  laneWhere
	index  int      // in its heap
	queue  []uint32 // items that may be asked for now: a heap, best first

	rules    *polite.Robots
	until    time.Time  // rules are good until then
	next     weburl.URL // where a redirect of robots.txt points to, zero for the usual place
	retry    time.Time  // after a failure, ask for robots.txt no earlier
	hops     uint8
	attempts uint8
}

type laneWhere uint8

const (
	nowhere laneWhere = iota // empty
	open                     // in unit.lanes
	held                     // in unit.blocked
)

// siteKey finds the further sites of a unit.
type siteKey struct {
	unit *unit
	name string
}

func (l *lane) prefix() string {
	if l.https {
		return "https://"
	}
	return "http://"
}

func schemeIndex(u weburl.URL) int {
	if u.Scheme() == "https" {
		return 1
	}
	return 0
}

// setRules ends the asking for robots.txt.
func (l *lane) setRules(rules *polite.Robots, until time.Time) {
	l.rules, l.until = rules, until
	l.next, l.retry, l.hops, l.attempts = weburl.URL{}, time.Time{}, 0, 0
}

func (st *site) known() uint64 { return st.settled + uint64(st.pending) }

// further reports whether a site has a stored state of its own.
func (st *site) further() bool { return st != &st.unit.own }

// waits reports whether any URL waits, for whatever.
func (u *unit) waits() bool { return len(u.lanes)+len(u.blocked)+len(u.later) > 0 }

// promote moves what the time has come for: URLs to be tried again, and lanes whose
// robots.txt may be asked for.
func (u *unit) promote(now time.Time) {
	for len(u.blocked) > 0 && !u.blocked[0].retry.After(now) {
		l := heap.Pop(&u.blocked).(*lane)
		l.where = nowhere
		u.enlist(l, now)
	}
	ms := now.UnixMilli()
	for len(u.later) > 0 && u.later[0].at <= ms {
		i := heap.Pop(&u.later).(delayed).item
		u.slot.setRare(i, func(r *rare) { r.notBefore = 0 })
		u.push(i, now)
	}
}

// add puts an item into the queue it belongs in.
func (u *unit) add(i uint32, now time.Time) {
	s := u.slot
	switch at := s.rareOf(i).notBefore; {
	case at > now.UnixMilli():
		heap.Push(&u.later, delayed{at: at, seq: s.items[i].seq, item: i})
		return
	case at != 0:
		s.setRare(i, func(r *rare) { r.notBefore = 0 })
	}
	u.push(i, now)
}

func (u *unit) push(i uint32, now time.Time) {
	l := u.slot.lanes[u.slot.items[i].lane]
	l.push(i)
	u.enlist(l, now)
}

// enlist puts a lane where it belongs now that its queue has changed.
func (u *unit) enlist(l *lane, now time.Time) {
	switch {
	case l.where == open && len(l.queue) == 0:
		heap.Remove(&u.lanes, l.index)
		l.where = nowhere
	case l.where == open:
		heap.Fix(&u.lanes, l.index)
	case l.where == held && len(l.queue) == 0:
		heap.Remove(&u.blocked, l.index)
		l.where = nowhere
	case l.where == held || len(l.queue) == 0:
	case l.retry.After(now):
		l.where = held
		heap.Push(&u.blocked, l)
	default:
		l.where = open
		heap.Push(&u.lanes, l)
	}
}

// delist takes a lane out of its heap: its retry, or all of its queue, is about to change.
func (u *unit) delist(l *lane) {
	switch l.where {
	case open:
		heap.Remove(&u.lanes, l.index)
	case held:
		heap.Remove(&u.blocked, l.index)
	}
	l.where = nowhere
}

// readyAt is when the unit may be asked for something, given that a URL waits.
func (u *unit) readyAt() time.Time {
	at := u.pace.ReadyAt()
	later := func(t time.Time) {
		if t.After(at) {
			at = t
		}
	}
	later(u.hold)
	if len(u.lanes) > 0 {
		return at
	}
	later(u.nextTry())
	return at
}

// nextTry is when the first of the URLs and lanes that wait for another attempt is due;
// zero if none does.
func (u *unit) nextTry() (at time.Time) {
	if len(u.blocked) > 0 {
		at = u.blocked[0].retry
	}
	if len(u.later) > 0 {
		if t := time.UnixMilli(u.later[0].at); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// hasUrgent reports whether the best URL that may be asked for is asked for on purpose.
func (u *unit) hasUrgent() bool {
	return len(u.lanes) > 0 && u.slot.items[u.lanes[0].queue[0]].rank == 0
}

// visit is how many requests one visit to the unit may hold.
func (u *unit) visit() float64 {
	if u.pace.PerConnection == 0 {
		return polite.NewPerConnection
	}
	return u.pace.PerConnection
}

// less orders items by rank, then by arrival.
func (s *slot) less(a, b uint32) bool {
	x, y := &s.items[a], &s.items[b]
	if x.rank != y.rank {
		return x.rank < y.rank
	}
	return x.seq < y.seq
}

func (l *lane) push(i uint32) {
	l.queue = append(l.queue, i)
	l.up(len(l.queue) - 1)
}

func (l *lane) up(at int) {
	s, q := l.site.unit.slot, l.queue
	i := q[at]
	for at > 0 {
		parent := (at - 1) / 2
		if !s.less(i, q[parent]) {
			break
		}
		q[at] = q[parent]
		s.items[q[at]].pos = uint32(at)
		at = parent
	}
	q[at] = i
	s.items[i].pos = uint32(at)
}

func (l *lane) down(at int) {
	s, q := l.site.unit.slot, l.queue
	i := q[at]
	for {
		child := 2*at + 1
		if child >= len(q) {
			break
		}
		if child+1 < len(q) && s.less(q[child+1], q[child]) {
			child++
		}
		if !s.less(q[child], i) {
			break
		}
		q[at] = q[child]
		s.items[q[at]].pos = uint32(at)
		at = child
	}
	q[at] = i
	s.items[i].pos = uint32(at)
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

// laneHeap orders lanes by the best item of each.
type laneHeap []*lane

func (q laneHeap) Len() int { return len(q) }
func (q laneHeap) Less(i, j int) bool {
	return q[i].site.unit.slot.less(q[i].queue[0], q[j].queue[0])
}
func (q laneHeap) Swap(i, j int) { swapLanes(q, i, j) }
func (q *laneHeap) Push(x any)   { *q = pushLane(*q, x) }
func (q *laneHeap) Pop() (x any) { *q, x = popLast(*q); return x }

// blockedHeap orders lanes by when their robots.txt may be asked for.
type blockedHeap []*lane

func (q blockedHeap) Len() int           { return len(q) }
func (q blockedHeap) Less(i, j int) bool { return q[i].retry.Before(q[j].retry) }
func (q blockedHeap) Swap(i, j int)      { swapLanes(q, i, j) }
func (q *blockedHeap) Push(x any)        { *q = pushLane(*q, x) }
func (q *blockedHeap) Pop() (x any)      { *q, x = popLast(*q); return x }

func swapLanes(q []*lane, i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func pushLane(q []*lane, x any) []*lane {
	l := x.(*lane)
	l.index = len(q)
	return append(q, l)
}

// popLast shortens a heap's list.
func popLast[T any](q []T) ([]T, any) {
	last := len(q) - 1
	x := q[last]
	clear(q[last:])
	return q[:last], x
}

// delayed is an item that waits for its next attempt.
type delayed struct {
	at   int64 // Unix milliseconds
	seq  uint32
	item uint32
}

// laterHeap orders items by when they may be tried again.
type laterHeap []delayed

func (q laterHeap) Len() int { return len(q) }
func (q laterHeap) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].seq < q[j].seq
}
func (q laterHeap) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *laterHeap) Push(x any)   { *q = append(*q, x.(delayed)) }
func (q *laterHeap) Pop() (x any) { *q, x = popLast(*q); return x }

// readyHeap orders the units that may be asked now: those with a URL asked for on
// purpose first, then those with an open connection, then by rank, then by turn.
type readyHeap []*unit

func (q readyHeap) Len() int { return len(q) }
func (q readyHeap) Less(i, j int) bool {
	a, b := q[i], q[j]
	switch {
	case a.urgent != b.urgent:
		return a.urgent
	case a.connected != b.connected:
		return a.connected
	case a.rank != b.rank:
		return a.rank > b.rank
	case a.start != b.start:
		return a.start < b.start
	}
	return a.turn < b.turn
}
func (q readyHeap) Swap(i, j int) { swapUnits(q, i, j) }
func (q *readyHeap) Push(x any)   { *q = pushUnit(*q, x) }
func (q *readyHeap) Pop() (x any) { *q, x = popLast(*q); return x }

// timerHeap orders the units that wait by when they are ready.
type timerHeap []*unit

func (q timerHeap) Len() int { return len(q) }
func (q timerHeap) Less(i, j int) bool {
	if !q[i].at.Equal(q[j].at) {
		return q[i].at.Before(q[j].at)
	}
	return q[i].turn < q[j].turn
}
func (q timerHeap) Swap(i, j int) { swapUnits(q, i, j) }
func (q *timerHeap) Push(x any)   { *q = pushUnit(*q, x) }
func (q *timerHeap) Pop() (x any) { *q, x = popLast(*q); return x }

func swapUnits(q []*unit, i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func pushUnit(q []*unit, x any) []*unit {
	u := x.(*unit)
	u.index = len(q)
	return append(q, u)
}

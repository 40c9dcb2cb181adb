package frontier

import (
	"container/heap"
	"math"
	"net/netip"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/fresh"
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
	key      string
	slot     *slot
	domain   *domain
	own      site        // whose authority is the key, if there is such a one
	stands   []*stand    // of the topics that it has, or had, URLs of
	blocked  blockedHeap // lanes with URLs whose robots.txt may not be asked for yet
	later    laterHeap   // URLs to be tried again
	pace     polite.Pace
	allowed  int           // requests that may be under way at once
	asked    int           // requests under way
	starting *lane         // of the request that was taken and has not begun
	delay    time.Duration // what is configured for it
	looks    bool          // its pages are looked at again
	looked   bool          // a look was the last request
	lookHold time.Time     // the next look that is due stands in line until then

	addr     netip.Addr // of a placed unit, or what a name is pinned to
	placed   bool       // the key is an address
	resolves uint8      // attempts to resolve the name, in vain
	hold     time.Time  // the next of them comes no earlier

	requests, failures uint64
	settled, capped    uint64            // of all its sites
	changes            blobschema.Change // how often its pages change, as if they were one
	trust              fresh.Trust       // in its sitemaps
	pending            int
	asks               []ask
	version            uint64 // of the stored state; grows with every delta that holds it
	dirty              bool
	observed           bool // asked since the last delta
	silent             bool // its last request got no answer

	place     place
	index     int // in the timers
	pause     pause
	at        time.Time
	since     time.Time
	start     uint64 // virtual time of its turn
	turn      uint64 // order of arrival in the ready queue
	free      bool   // a robots.txt was had just now, and does not count
	connected bool   // its connection is open and may serve more
	served    int    // requests on that connection
}

// stand is where the URLs of one unit and topic wait: the lanes with some that may be asked
// for, by the best of each. A ready unit has each of its stands in the queue of its topic.
type stand struct {
	unit   *unit
	topic  uint8
	lanes  laneHeap
	index  int // in the ready queue, -1 if it is in none
	rank   float64
	ranked int    // URLs of the unit when it was ranked
	top    uint32 // rank of its best URL then
	urgent urgency
}

// best is the rank of the best URL that may be asked for; of none, if there is none.
func (st *stand) best() uint32 {
	if len(st.lanes) == 0 {
		return math.MaxUint32
	}
	return st.lanes[0].best().rank
}

// urgency says what the best URL of a stand is.
type urgency uint8

const (
	found     urgency = iota
	looked            // it waits for a look
	onPurpose         // it is asked for on purpose
)

// site is an authority within a unit.
type site struct {
	name    string
	unit    *unit
	doors   [2]door // for http and https
	settled uint64
	capped  uint64
	pending int
	silent  int    // different URLs in a row that got no answer
	version uint64 // of the stored state of a further site
	dirty   bool
}

// door is a site under one scheme: what one robots.txt is about.
type door struct {
	site   *site
	https  bool
	asking bool // a request for the robots.txt is under way
	lanes  []*lane

	rules    *polite.Robots
	until    time.Time  // rules are good until then
	next     weburl.URL // where a redirect of robots.txt points to, zero for the usual place
	retry    time.Time  // after a failure, ask for robots.txt no earlier
	hops     uint8
	attempts uint8
}

// lane is a queue of URLs behind one door: those of one part, topic and sub-queue. At most one
// request for them is under way.
type lane struct {
	door   *door
	part   *part
	stand  *stand
	number uint32 // in the part's list
	topic  uint8
	sub    uint8
	asked  bool // a request is under way
	where  laneWhere
	index  int      // in its heap
	queue  []uint32 // items that may be asked for now: a heap, best first
}

type laneWhere uint8

const (
	nowhere laneWhere = iota // empty, or not to be asked for while a request is under way
	open                     // in stand.lanes
	held                     // in unit.blocked
)

// siteKey finds the further sites of a unit.
type siteKey struct {
	unit *unit
	name string
}

func (d *door) prefix() string {
	if d.https {
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
func (d *door) setRules(rules *polite.Robots, until time.Time) {
	d.rules, d.until = rules, until
	d.next, d.retry, d.hops, d.attempts = weburl.URL{}, time.Time{}, 0, 0
}

// closed reports whether the lanes must wait for a robots.txt that may not be asked for yet.
func (d *door) closed(now time.Time) bool { return d.retry.After(now) }

func (st *site) known() uint64 { return st.settled + uint64(st.pending) }

// further reports whether a site has a stored state of its own.
func (st *site) further() bool { return st != &st.unit.own }

// open reports whether any URL may be asked for as far as robots.txt goes.
func (u *unit) open() bool {
	for _, st := range u.stands {
		if len(st.lanes) > 0 {
			return true
		}
	}
	return false
}

// waits reports whether any URL waits, for whatever.
func (u *unit) waits() bool { return len(u.blocked)+len(u.later) > 0 || u.open() }

// stand returns the stand of a topic.
func (u *unit) stand(topic uint8) *stand {
	for _, st := range u.stands {
		if st.topic == topic {
			return st
		}
	}
	st := &stand{unit: u, topic: topic, index: -1}
	u.stands = append(u.stands, st)
	return st
}

// sites goes over all sites of the unit.
func (u *unit) sites(yield func(*site) bool) {
	if !yield(&u.own) {
		return
	}
	for _, st := range u.slot.further {
		if st.unit == u && !yield(st) {
			return
		}
	}
}

// promote moves what the time has come for: URLs to be tried again, and lanes whose
// robots.txt may be asked for.
func (u *unit) promote(now time.Time) {
	for len(u.blocked) > 0 && !u.blocked[0].door.closed(now) {
		l := heap.Pop(&u.blocked).(*lane)
		l.where = nowhere
		u.enlist(l, now)
	}
	ms := now.UnixMilli()
	for len(u.later) > 0 && u.later[0].at <= ms {
		d := heap.Pop(&u.later).(delayed)
		if u.putOff(d, now) {
			continue
		}
		d.part.setRare(d.item, func(r *rare) { r.notBefore = 0 })
		u.push(d.part, d.item, now)
	}
}

// add puts an item into the queue it belongs in.
func (u *unit) add(p *part, i uint32, now time.Time) {
	switch at := p.rareOf(i).notBefore; {
	case at > now.UnixMilli(), at != 0 && u.looks && isLook(&p.items[i]): // those that are due may have to stand in line
		heap.Push(&u.later, delayed{at: at, seq: p.items[i].seq, item: i, part: p})
		return
	case at != 0:
		p.setRare(i, func(r *rare) { r.notBefore = 0 })
	}
	u.push(p, i, now)
}

// putBack moves the best item of a lane to those that wait, for a pause.
func (u *unit) putBack(l *lane, now time.Time, pause time.Duration) {
	i := l.pop()
	l.part.setRare(i, func(r *rare) { r.notBefore = now.Add(pause).UnixMilli() })
	u.enlist(l, now)
	u.add(l.part, i, now)
}

// hasUntried reports whether the unit has a URL to request that has not failed yet.
func (u *unit) hasUntried() bool {
	return u.hasAny(func(it *item) bool { return it.attempts == 0 })
}

// hasAny reports whether wanted accepts one of the URLs that may be requested now. It looks at the first places of
// each queue only: few URLs in them are looks or have failed.
func (u *unit) hasAny(wanted func(*item) bool) bool {
	const places = 64
	for _, st := range u.stands {
		for _, l := range st.lanes {
			for _, i := range l.queue[:min(places, len(l.queue))] {
				if wanted(&l.part.items[i]) {
					return true
				}
			}
		}
	}
	return false
}

func (u *unit) push(p *part, i uint32, now time.Time) {
	l := p.lanes[p.items[i].lane]
	l.push(i)
	u.enlist(l, now)
}

// enlist puts a lane where it belongs now that its queue, or what keeps it from being asked
// for, has changed.
func (u *unit) enlist(l *lane, now time.Time) {
	where := open
	switch {
	case len(l.queue) == 0 || l.asked || l.door.asking || l.part.full:
		where = nowhere
	case l.door.closed(now):
		where = held
	}
	switch {
	case where == open && l.where == open:
		heap.Fix(&l.stand.lanes, l.index)
		return
	case where == l.where: // the time it is held to does not change but through delist
		return
	}
	u.delist(l)
	switch l.where = where; where {
	case open:
		heap.Push(&l.stand.lanes, l)
	case held:
		heap.Push(&u.blocked, l)
	}
}

// delist takes a lane out of its heap.
func (u *unit) delist(l *lane) {
	switch l.where {
	case open:
		heap.Remove(&l.stand.lanes, l.index)
	case held:
		heap.Remove(&u.blocked, l.index)
	}
	l.where = nowhere
}

// relist puts all lanes behind a door where they belong after a change of it.
func (d *door) relist(now time.Time, change func()) {
	u := d.site.unit
	for _, l := range d.lanes {
		u.delist(l)
	}
	change()
	for _, l := range d.lanes {
		u.enlist(l, now)
	}
}

// pausedUntil is the earliest time that the unit's pace allows a request.
func (u *unit) pausedUntil() time.Time {
	at := u.pace.ReadyAt()
	if u.hold.After(at) {
		at = u.hold
	}
	return at
}

// readyAt is when the unit may be asked for something, given that a URL waits.
func (u *unit) readyAt() time.Time {
	at := u.pausedUntil()
	if u.open() {
		return at
	}
	if next := u.nextTry(); next.After(at) {
		return next
	}
	return at
}

// nextTry is when the first of the URLs and lanes that wait for another attempt is due;
// zero if none does.
func (u *unit) nextTry() (at time.Time) {
	if len(u.blocked) > 0 {
		at = u.blocked[0].door.retry
	}
	if len(u.later) > 0 {
		if t := time.UnixMilli(u.later[0].at); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// urgency is that of the best URL that may be asked for.
func (st *stand) urgency() urgency {
	if len(st.lanes) == 0 {
		return found
	}
	return st.lanes[0].urgency()
}

// urgency is that of the best URL of a lane that has any.
func (l *lane) urgency() urgency {
	switch it := l.best(); {
	case it.rank == 0:
		return onPurpose
	case l.door.site.unit.looks && isLook(it):
		return looked
	}
	return found
}

// visit is how many requests one visit to the unit may hold.
func (u *unit) visit() float64 {
	if u.pace.PerConnection == 0 {
		return polite.NewPerConnection
	}
	return u.pace.PerConnection
}

// less orders items by rank, then by arrival.
func (p *part) less(a, b uint32) bool { return p.items[a].less(&p.items[b]) }

func (x *item) less(y *item) bool {
	if x.rank != y.rank {
		return x.rank < y.rank
	}
	return x.seq < y.seq
}

// best is the item at the top of the queue.
func (l *lane) best() *item { return &l.part.items[l.queue[0]] }

func (l *lane) push(i uint32) {
	l.queue = append(l.queue, i)
	l.up(len(l.queue) - 1)
}

// up and down move an item to its place. Lanes do not use container/heap: it takes 2.5 to 8 times as long and
// allocates for each item (BenchmarkLane), and every URL passes through a lane.
func (l *lane) up(at int) {
	p, q := l.part, l.queue
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
	p, q := l.part, l.queue
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
		l.part.items[l.queue[at]].pos = uint32(at)
		l.up(at)
		l.down(int(l.part.items[l.queue[at]].pos))
	}
}

// laneHeap orders lanes by the best item of each.
type laneHeap []*lane

func (q laneHeap) Len() int { return len(q) }
func (q laneHeap) Less(i, j int) bool {
	return q[i].best().less(q[j].best())
}
func (q laneHeap) Swap(i, j int) { swapLanes(q, i, j) }
func (q *laneHeap) Push(x any)   { *q = pushLane(*q, x) }
func (q *laneHeap) Pop() (x any) { *q, x = popLast(*q); return x }

// blockedHeap orders lanes by when their robots.txt may be asked for.
type blockedHeap []*lane

func (q blockedHeap) Len() int           { return len(q) }
func (q blockedHeap) Less(i, j int) bool { return q[i].door.retry.Before(q[j].door.retry) }
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
	part *part
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
func (q laterHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q.place(i)
	q.place(j)
}
func (q *laterHeap) Push(x any) {
	*q = append(*q, x.(delayed))
	q.place(len(*q) - 1)
}
func (q *laterHeap) Pop() (x any) { *q, x = popLast(*q); return x }

// place tells an item where it is: it is in no lane's queue.
func (q laterHeap) place(i int) { q[i].part.items[q[i].item].pos = uint32(i) }

// init orders what is left after some were taken out.
func (q *laterHeap) init() {
	for i := range *q {
		q.place(i)
	}
	heap.Init(q)
}

// readyHeap orders stands of one topic: those with a URL requested on purpose first, then those
// of units with an open connection, then by rank, then by turn.
type readyHeap []*stand

func (q readyHeap) Len() int { return len(q) }
func (q readyHeap) Less(i, j int) bool {
	a, b := q[i], q[j]
	switch {
	case a.urgent != b.urgent:
		return a.urgent > b.urgent
	case a.unit.connected != b.unit.connected:
		return a.unit.connected
	case a.rank != b.rank:
		return a.rank > b.rank
	case a.unit.start != b.unit.start:
		return a.unit.start < b.unit.start
	}
	return a.unit.turn < b.unit.turn
}
func (q readyHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *readyHeap) Push(x any) {
	st := x.(*stand)
	st.index = len(*q)
	*q = append(*q, st)
}
func (q *readyHeap) Pop() (x any) {
	*q, x = popLast(*q)
	x.(*stand).index = -1
	return x
}

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

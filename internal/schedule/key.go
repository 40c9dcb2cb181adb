package schedule

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// queueState names the queue that a politeness key is in.
type queueState uint8

const (
	idle    queueState = iota // in none: no URL waits
	waiting                   // in the timers, until a request is allowed
	ready                     // in the ready queue
	busy                      // a request is under way
)

// Key is a politeness key: all its URLs share one pace.
type Key struct {
	// The fields that every new URL needs come first, so that they share cache lines.
	name        string
	group       *Group
	domain      *domain
	addr        netip.Addr // of a placed key, or the address that a name is pinned to
	placed      bool       // the name of the key is an address
	state       queueState
	resolves    uint8             // failed attempts to resolve the name
	allowed     int               // requests that may be under way at once
	inFlight    int               // requests under way
	pending     int               // URLs in memory that are not settled
	blocked     heap[blockedLane] // lanes whose robots.txt may not be requested yet
	later       heap[delayed]     // URLs that wait for a time
	topicQueues []*topicQueue     // one for each topic that the key has, or had, URLs of
	own         site              // the site whose authority is the name; empty if there is none
	pace        polite.Pace
	starting    *lane         // lane of the request that was taken and has not begun
	delay       time.Duration // configured
	hold        time.Time     // earliest time of the next attempt to resolve the name

	revisits    bool              // its pages are revisited
	revisited   bool              // the last request was a revisit
	revisitHold time.Time         // the next due revisit waits until then
	changes     blobschema.Change // belief about all its pages, as if they were one
	trust       Trust             // in its sitemaps

	requests, failures uint64
	settled, capped    uint64 // URLs of all its sites
	asks               []ask
	version            uint64 // of the stored state; grows with every delta that holds it
	dirty              bool   // changed since the last delta
	observed           bool   // the next delta returns an observation of it
	silent             bool   // its last request got no answer

	index     int       // place in the timers
	pause     pause     // why it is in the timers
	at        time.Time // when it leaves the timers
	since     time.Time // when it entered them
	start     uint64    // virtual time of its turn
	turn      uint64    // order of arrival in the ready queue
	free      bool      // its last request was a robots.txt that does not count for its pace
	connected bool      // its connection is open and may serve more
	served    int       // requests on that connection
}

func (k *Key) moved(at int) { k.index = at }

// before orders the keys in the timers by when they are ready.
func (k *Key) before(o *Key) bool {
	if !k.at.Equal(o.at) {
		return k.at.Before(o.at)
	}
	return k.turn < o.turn
}

// Name returns the name of the key.
func (k *Key) Name() string { return k.name }

// Slot returns the slot of the key.
func (k *Key) Slot() partition.Slot { return k.group.Slot }

// Domain returns the registrable domain of the key.
func (k *Key) Domain() string { return k.domain.name }

// Placed reports whether the name of the key is an address.
func (k *Key) Placed() bool { return k.placed }

// Pinned reports whether the key is a name whose address is known.
func (k *Key) Pinned() bool { return !k.placed && k.addr.IsValid() }

// Address returns the name of the key for URLs at the key's address.
func (k *Key) Address() string { return "[" + k.addr.String() + "]" }

// address reads a name of the form "[address]".
func address(name string) (netip.Addr, bool) {
	if len(name) < 2 || name[0] != '[' || name[len(name)-1] != ']' {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(name[1 : len(name)-1])
	return a, err == nil
}

// topicQueue holds the lanes of one key and topic that have a URL to request, ordered by their best
// URLs. While the key is ready, each of its topic queues is in the ready queue of its topic.
type topicQueue struct {
	key    *Key
	topic  uint8
	lanes  heap[*lane]
	index  int     // place in the ready queue, -1 if it is in none
	rank   float64 // by the policy
	ranked int     // URLs of the key when it was ranked
	top    uint32  // rank of its best URL then
	urgent urgency
}

func (st *topicQueue) moved(at int) { st.index = at }

// before orders the ready topic queues of one topic: first by urgency, then those of keys with an
// open connection, then by rank, then by turn.
func (st *topicQueue) before(o *topicQueue) bool {
	switch {
	case st.urgent != o.urgent:
		return st.urgent > o.urgent
	case st.key.connected != o.key.connected:
		return st.key.connected
	case st.rank != o.rank:
		return st.rank > o.rank
	case st.key.start != o.key.start:
		return st.key.start < o.key.start
	}
	return st.key.turn < o.key.turn
}

// best returns the rank of the best URL that may be requested; without one, the worst rank.
func (st *topicQueue) best() uint32 {
	if len(st.lanes) == 0 {
		return math.MaxUint32
	}
	return st.lanes[0].best().rank
}

// urgency is the kind of the best URL of a topic queue.
type urgency uint8

const (
	found     urgency = iota // a new URL
	needed                   // a requisite
	revisit                  // a due revisit
	requested                // a URL that somebody requested
)

// urgency returns the urgency of the best URL that may be requested.
func (st *topicQueue) urgency() urgency {
	if len(st.lanes) == 0 {
		return found
	}
	return st.lanes[0].urgency()
}

// site is an authority within a key.
type site struct {
	name    string
	key     *Key
	settled uint64
	capped  uint64
	pending int
	silent  int    // number of different URLs in a row without an answer
	version uint64 // of the stored state of a further site
	dirty   bool
	origins [2]origin // for http and https
}

// init makes the site of a key.
func (st *site) init(k *Key, name string) {
	*st = site{name: name, key: k}
	for i := range st.origins {
		st.origins[i].site, st.origins[i].https = st, i == 1
	}
}

// of returns the origin of a URL of the site.
func (st *site) of(u weburl.URL) *origin {
	if u.Scheme() == "https" {
		return &st.origins[1]
	}
	return &st.origins[0]
}

// origin is a site under one scheme. A robots.txt applies to one origin.
type origin struct {
	site   *site
	https  bool
	asking bool // a request for the robots.txt is under way
	lanes  []*lane
	hops   uint8 // number of redirects that led to Next
	RobotsInfo
}

// siteKey finds the further sites of a key.
type siteKey struct {
	key  *Key
	name string
}

func (d *origin) prefix() string {
	if d.https {
		return "https://"
	}
	return "http://"
}

// setRules takes the rules of robots.txt.
func (d *origin) setRules(rules *polite.Robots, until time.Time) {
	d.Rules, d.Until = rules, until
	d.Next, d.Retry, d.hops, d.Attempts = weburl.URL{}, time.Time{}, 0, 0
}

// closed reports whether the lanes wait until their robots.txt may be requested again.
func (d *origin) closed(now time.Time) bool { return d.Retry.After(now) }

// delay returns the least time between two requests: the larger of the configured delay and that of robots.txt.
func (d *origin) delay() time.Duration { return polite.EffectiveDelay(d.site.key.delay, d.Rules) }

// lane returns the lane of a pool, topic and sub-queue.
func (d *origin) lane(p *Pool, topic, sub uint8) *lane {
	for _, l := range d.lanes { // most origins have one lane, those of a divided host a few dozen
		if l.pool == p && l.topic == topic && l.sub == sub {
			return l
		}
	}
	l := &lane{origin: d, pool: p, topicQueue: d.site.key.topicQueue(topic), number: uint32(len(p.lanes)), topic: topic, sub: sub}
	d.lanes, p.lanes = append(d.lanes, l), append(p.lanes, l)
	return l
}

// empty takes all items of an origin out of their queues and returns them, best first.
func (d *origin) empty() []spot {
	if len(d.lanes) == 0 {
		return nil
	}
	k := d.site.key
	var items []spot
	for _, l := range d.lanes {
		l.delist()
		for _, i := range l.queue {
			items = append(items, spot{l.pool, i})
		}
		l.queue = nil
	}
	k.later = slices.DeleteFunc(k.later, func(w delayed) bool {
		if w.pool.lanes[w.it().lane].origin != d {
			return false
		}
		items = append(items, w.spot)
		return true
	})
	k.later.init()
	sortSpots(items)
	return items
}

// remove forgets a lane.
func (d *origin) remove(l *lane) {
	d.lanes = slices.DeleteFunc(d.lanes, func(o *lane) bool { return o == l })
}

// forget drops the items of a pool that wait for a time.
func (k *Key) forget(p *Pool) {
	k.later = slices.DeleteFunc(k.later, func(d delayed) bool { return d.pool == p })
	k.later.init()
}

// empty takes all items of a key out of their queues and returns them, best first.
func (k *Key) empty() (items []spot) {
	for st := range k.sites {
		for i := range st.origins {
			items = append(items, st.origins[i].empty()...)
		}
	}
	sortSpots(items)
	return items
}

func (st *site) known() uint64 { return st.settled + uint64(st.pending) }

// further reports whether a site has a stored state of its own.
func (st *site) further() bool { return st != &st.key.own }

// open reports whether the key has a URL that may be requested once its pace allows it.
func (k *Key) open() bool {
	for _, st := range k.topicQueues {
		if len(st.lanes) > 0 {
			return true
		}
	}
	return false
}

// waits reports whether any URL of the key is in a queue.
func (k *Key) waits() bool { return len(k.blocked)+len(k.later) > 0 || k.open() }

// topicQueue returns the topic queue of a topic.
func (k *Key) topicQueue(topic uint8) *topicQueue {
	for _, st := range k.topicQueues {
		if st.topic == topic {
			return st
		}
	}
	st := &topicQueue{key: k, topic: topic, index: -1}
	k.topicQueues = append(k.topicQueues, st)
	return st
}

// sites yields all sites of the key.
func (k *Key) sites(yield func(*site) bool) {
	if !yield(&k.own) {
		return
	}
	for _, st := range k.group.further {
		if st.key == k && !yield(st) {
			return
		}
	}
}

// promote queues the URLs whose time has come, and the lanes whose robots.txt may be requested again.
func (k *Key) promote(now time.Time) {
	for len(k.blocked) > 0 && !k.blocked[0].origin.closed(now) {
		l := k.blocked.pop()
		l.where = nowhere
		l.enlist(now)
	}
	ms := now.UnixMilli()
	for len(k.later) > 0 && k.later[0].at <= ms {
		d := k.later.pop()
		if k.putOff(d, now) {
			continue
		}
		d.pool.setNotBefore(d.item, 0)
		k.push(d.pool, d.item, now)
	}
}

// add puts an item into the queue it belongs in.
func (k *Key) add(p *Pool, i uint32, now time.Time) {
	switch at := p.rareOf(i).notBefore; {
	case at > now.UnixMilli(), at != 0 && k.isRevisit(&p.items[i]): // putOff may delay a due revisit
		k.later.push(delayed{at: at, seq: p.items[i].seq, spot: spot{p, i}})
		return
	case at != 0:
		p.setNotBefore(i, 0)
	}
	k.push(p, i, now)
}

// hasAny reports whether wanted accepts one of the URLs that may be requested now. It checks only the
// first places of each queue: few URLs in them are revisits or have failed.
func (k *Key) hasAny(wanted func(*item) bool) bool {
	const places = 64
	for _, st := range k.topicQueues {
		for _, l := range st.lanes {
			for _, i := range l.queue[:min(places, len(l.queue))] {
				if wanted(&l.pool.items[i]) {
					return true
				}
			}
		}
	}
	return false
}

func (k *Key) push(p *Pool, i uint32, now time.Time) {
	l := p.lanes[p.items[i].lane]
	l.push(i)
	l.enlist(now)
}

// relist changes an origin and then moves its lanes to where they belong.
func (d *origin) relist(now time.Time, change func()) {
	for _, l := range d.lanes {
		l.delist()
	}
	change()
	for _, l := range d.lanes {
		l.enlist(now)
	}
}

// pausedUntil returns the earliest time at which the pace of the key allows a request.
func (k *Key) pausedUntil() time.Time {
	at := k.pace.ReadyAt()
	if k.hold.After(at) {
		at = k.hold
	}
	return at
}

// readyAt returns when the key may get a request, given that a URL waits.
func (k *Key) readyAt() time.Time {
	at := k.pausedUntil()
	if k.open() {
		return at
	}
	if next := k.nextTry(); next.After(at) {
		return next
	}
	return at
}

// nextTry returns when the first of the delayed URLs and blocked lanes is due; zero if no URL and no lane waits.
func (k *Key) nextTry() (at time.Time) {
	if len(k.blocked) > 0 {
		at = k.blocked[0].origin.Retry
	}
	if len(k.later) > 0 {
		if t := time.UnixMilli(k.later[0].at); at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// visit returns the number of requests of one visit to the key.
func (k *Key) visit() float64 {
	if k.pace.PerConnection == 0 {
		return polite.NewPerConnection
	}
	return k.pace.PerConnection
}

// Keys yields the keys of a group that are in memory.
func (g *Group) Keys(yield func(*Key) bool) {
	for _, k := range g.keys {
		if !yield(k) {
			return
		}
	}
}

// Pending returns the number of URLs in memory that are not settled.
func (k *Key) Pending() int { return k.pending }

// sites holds the further sites in memory.
type sites map[siteKey]*site

// of returns the site of a URL.
func (m sites) of(k *Key, u weburl.URL) *site { return m.named(k, string(u.Host())) }

// named returns the site of an authority, which may be new.
func (m sites) named(k *Key, name string) *site {
	if name == k.name {
		return &k.own
	}
	key := siteKey{k, name}
	st := m[key]
	if st == nil {
		st = &site{}
		key.name = strings.Clone(name) // so that the text of a URL can be freed
		st.init(k, key.name)
		m[key] = st
		k.group.further = append(k.group.further, st)
	}
	return st
}

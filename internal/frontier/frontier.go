package frontier

import (
	"net/netip"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/fresh"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Config is fixed for the life of a Frontier.
type Config struct {
	Hash      partition.Hash
	Partition partition.ID  // whose commits the settled URLs have their page records in
	Policy    Policy        // default BreadthFirst
	Token     string        // product token that robots.txt groups are matched with
	Delay     time.Duration // least time between the starts of two requests to a unit
	Retry     polite.Retry  // how often a URL is tried, and when a site is given up
	// MaxResident bounds the URLs held in memory, pending and settled; above three quarters of
	// it parts with nothing under way are unloaded, the latest due first. 0 is no bound.
	MaxResident int
	// MaxHostURLs and MaxDomainURLs bound the known URLs of one site, and of one registrable
	// domain as far as this partition sees. What comes on top is counted, not kept, but
	// for seeds and what is asked for on purpose. 0 is no bound.
	MaxHostURLs   int64
	MaxDomainURLs int64
	// Resolve is for units that are addresses: the URLs of a name wait until its address is
	// known, to which they are sent on for ever. See Placements.
	Resolve bool
	// Topics are priorities and slices by number; see SetTopics.
	Topics []Topic
	Began  time.Time // start of the crawl, from which turns of topics are counted
	// Hosts are what the operators of some units allow, by unit.
	Hosts map[string]HostRule
	// QueueBy says how the URLs of units that allow several requests at once are dealt to
	// Queues queues; "" is by BKDR hash, to as many as requests.
	QueueBy blobschema.QueueBy
	Queues  int
	// Looks says that settled URLs are asked for again, when they may have changed: see
	// SetThreshold.
	Looks bool
	// Threshold is the one that looks which wait were planned with by whoever had the state before; 0 is
	// that of a look a day.
	Threshold float64
	// MaxPart is how many URLs a part of a slot may hold before it is halved. 0 is no bound.
	MaxPart int
}

// HostRule is what the operator of a unit allows.
type HostRule struct {
	Connections int           // requests under way at once; less than 1 is 1
	Delay       time.Duration // in place of Config.Delay
}

// Frontier is the state of one partition. It belongs to one step and is not safe for
// concurrent use.
//
// What has one slot and one pace is a unit ([blobschema.Queued].Host: an authority, a
// registrable domain, or an address); a site is an authority within a unit, and a door one of
// its two schemes, which has a robots.txt. Scheduling has three levels (Fan, Li; Cao, Jiang,
// Singh): topics have priorities, and turns among equals; of a topic, the units that are ready
// stand in one queue; and the URLs of each wait in lanes behind their doors. A [Policy] ranks
// units and URLs. Units of equal rank share by registrable domain (start-time fair queueing:
// Goyal, Vin, Cheng), so that a domain with 100,000 names has one turn at a time. A unit has
// one request under way, or as many as its operator allows ([Config].Hosts), one per lane.
//
// State is kept by slot, and a slot consists of parts: one, until it holds too many URLs
// (extendible hashing: Fagin, Nievergelt, Pippenger, Strong). A part is loaded, with its URLs
// in memory, or unloaded, with only a summary; URLs for an unloaded part are appended
// unexamined and de-duplicated when it is loaded, so that memory stays bounded however long
// the frontier grows, and however large one host is. The units of a slot are in memory as long
// as any of its parts. Merging runs is a join, so nothing depends on their order.
//
// A loaded part is a few large arrays without pointers: an entry of forty bytes and its text
// for a pending URL, one of 24 bytes for a settled one, and an index of fingerprints.
type Frontier struct {
	cfg     Config
	quality func(Waiting) float64 // for the score of a unit
	slots   map[partition.Slot]*slot
	units   map[string]*unit // of loaded slots
	sites   map[siteKey]*site
	domains map[string]*domain
	ready   readyQueue
	timers  timerHeap
	pauses  [pauseKinds]int // units in the timers, by why they are there
	seq     uint32
	turn    uint64
	virtual uint64 // time of fair queueing: the turn of the unit taken last

	sizes       domainSizes
	domainsFull map[string]bool // see CapDomains
	domainsHalf map[string]bool

	// Since the last delta.
	dirtyParts []*part // with items in their dirty lists
	settled    []blobschema.Settled
	dirtyUnits []*unit
	dirtySites []*site
	examined   bool // a part with unexamined entries was loaded: its summary changes
	floor      time.Time
	frozen     map[partition.Slot]bool // see Freeze
	delta      uint64                  // counts deltas
	committed  uint64                  // the last delta known to be committed

	partDue    time.Time // see PartDue
	unloaded   int       // parts that are not loaded and hold something
	fresh      int       // entries appended to them that are in no delta yet
	resident   int
	counts     Counts
	pending    [256]int64 // URLs of parts in memory that are not settled, by topic
	refusals   []Refusal
	placements []Link
	full       []*part   // see watch
	view       HostView  // for rank, which is called often
	viewed     [1]*stand // by it
	threshold  float64   // see SetThreshold
	planned    float64   // the highest threshold that looks which wait are planned with, to within ReplanAt
	seen       time.Time // the latest that is known
}

// Counts are figures of the whole frontier, loaded or not.
type Counts struct {
	Known      int64 // URLs, as far as examined
	Pending    int64 // of them not settled
	Urgent     int64 // of them asked for on purpose
	Looks      int64 // of those in memory, that wait for a look and nothing else
	Unexamined int64 // appended to unloaded parts, perhaps known
	Hosts      int64 // units in loaded slots
	Asked      int64 // requests under way
	WaitMillis int64 // time units stood ready but for their pace, since New
	Capped     int64 // URLs left out for a cap, since New
	Hits       int64 // URLs that came for a part in memory, since New
	Misses     int64 // URLs that came for a part that was not, since New
	Halved     int64 // parts that were, since New
}

// New returns an empty frontier, all of whose slots count as loaded.
func New(cfg Config) *Frontier {
	if cfg.Policy == nil {
		cfg.Policy = BreadthFirst{}
	}
	f := &Frontier{
		cfg: cfg, quality: qualities(cfg.Policy), slots: map[partition.Slot]*slot{}, units: map[string]*unit{},
		sites: map[siteKey]*site{}, domains: map[string]*domain{}, sizes: domainSizes{},
		threshold: cfg.Threshold,
	}
	if f.threshold <= 0 {
		f.threshold = fresh.First(blobschema.Change{}, 24, 1) // a look a day
	}
	f.planned = f.threshold
	f.ready.began, f.ready.pending = cfg.Began, &f.pending
	f.ready.setTopics(cfg.Topics)
	return f
}

// Added says what became of a URL.
type Added uint8

// The results of Add and Again.
const (
	Known    Added = iota // nothing changed
	Fresh                 // pending now: not known before, or settled in a lower generation
	Lowered               // pending already; its depth, rank, topic, flags or generation changed
	Deferred              // its part is not loaded, or to be halved: appended unexamined
	Capped                // its site or domain has too many: counted, not kept
)

// Add records a link. Adding a URL again changes nothing except a lower depth, rank or topic of one
// that is pending, its flags, or a higher generation. If that comes while a request for the URL is under
// way, the request settles the generation that it was made for, and the higher one is pending after it.
func (f *Frontier) Add(now time.Time, l Link) Added {
	l.Flags &^= blobschema.FlagAgain
	q, fp := l.Queued(), l.Fingerprint
	un := f.units[l.Key]
	p := f.slot(l.Slot).of(fp)
	if p.loaded && !p.full {
		f.counts.Hits++
		return f.add(now, p, un, l.URL, fp, &q, fromOutside)
	}
	f.counts.Misses++
	if f.domainCapped(nil, &q) {
		f.counts.Capped++
		return Capped
	}
	p.fresh = append(p.fresh, q)
	p.unexamined++
	f.countUrgent(p, q.Rank, 1) // perhaps one too many, until the part is loaded
	f.fresh++
	f.resident++
	f.counts.Unexamined++
	return Deferred
}

// Again requests a URL on purpose: it comes before all that was found, and if it was settled it is
// pending once more, in the next generation. Its part must be loaded ([Frontier.Want]); otherwise
// nothing happens and the result is Deferred. The link's rank and generation are set here. request
// names the request from outside that this is part of: its repeats do nothing for 15 days. 0 is a
// request that is never repeated.
func (f *Frontier) Again(now time.Time, l Link, request uint64) Added {
	un, fp := f.units[l.Key], l.Fingerprint
	p := f.slot(l.Slot).of(fp)
	if !p.loaded {
		return Deferred
	}
	p.want = false
	l.Generation, l.Flags, l.Ask = 0, l.Flags&^blobschema.FlagAgain, 0
	if l.Flags&blobschema.FlagSeed == 0 { // a seed that is tried again has the rank of any seed, and its page counts
		l.Rank = 0
	}
	if request != 0 {
		if un = f.unit(p.slot, l.Key); !f.firstAsk(un, request, fp, now) {
			return Known
		}
	}
	q := l.Queued()
	switch i, k := p.find(fp); k {
	case inMarks:
		q.Generation = p.marks[i].gen + 1
	case inItems:
		it := &p.items[i]
		if it.bits&isAsked != 0 {
			return f.wish(p, i, &q, false)
		}
		if f.waitsForLook(p, i) {
			f.reschedule(now, p, i, now, 0)
			return Lowered
		}
		q.Generation, q.Depth, q.Attempts, q.Topic = it.gen, it.depth, it.attempts, it.topic
	}
	return f.add(now, p, un, l.URL, fp, &q, fromOutside)
}

// source says where an entry comes from.
type source uint8

const (
	fromOutside source = iota
	fromState          // a run
	unexamined         // what was appended to the part: nobody has looked at it
)

// add is Add for a loaded part. un is the URL's unit, nil if there is none yet.
func (f *Frontier) add(now time.Time, p *part, un *unit, u weburl.URL, fp uint64, q *blobschema.Queued, from source) Added {
	if f.cfg.Looks && q.Generation == 0 && q.Rank == lookRank {
		found := *q
		found.Rank++
		q = &found
	}
	place, k := p.find(fp)
	if k == inMarks && q.Generation <= p.marks[place].gen {
		return Known
	}
	var added Added
	if k == inItems {
		added = f.rejoin(now, p, place, q, from)
	} else {
		added = f.addNew(now, p, un, u, fp, q, from, place, k)
	}
	if from == fromOutside && (q.Rank == 0 || q.Generation > 0) {
		f.retryRobots(now, p, fp)
	}
	if k != inItems {
		f.watch(p, now)
	}
	return added
}

// retryRobots has the robots.txt of a URL that was requested on purpose fetched again, if it
// could not be fetched the last time: it would refuse the URL for a day.
func (f *Frontier) retryRobots(now time.Time, p *part, fp uint64) {
	i, k := p.find(fp)
	if k != inItems {
		return // it was forwarded, or left out
	}
	if d := p.lanes[p.items[i].lane].door; d.rules != nil && d.rules.Unreachable() && d.until.After(now) {
		d.until = now
		f.touchSite(d.site)
	}
}

// addNew adds a URL that is not pending; place and k say where it is.
func (f *Frontier) addNew(now time.Time, p *part, un *unit, u weburl.URL, fp uint64, q *blobschema.Queued, from source, place uint32, k kind) Added {
	if k == absent && from != fromState && f.domainCapped(un, q) {
		return f.leaveOut(p, nil, u, fp, q, from)
	}
	if un == nil {
		un = f.unit(p.slot, q.Host)
	}
	settler := un
	if un.pinned() {
		if near := f.near(un); near != nil {
			un = near
			placed := *q
			placed.Flags |= blobschema.FlagPlaced
			q = &placed
		}
	}
	st := f.site(un, u)
	if k == absent && from != fromState && (f.siteCapped(st, q) || len(p.text) > maxText) {
		return f.leaveOut(p, st, u, fp, q, from)
	}
	if un.pinned() {
		f.forward(un, st, u, fp, q)
		return Fresh
	}
	i := f.insert(now, p, st, u, fp, q)
	if k == inMarks {
		if st.settled > 0 { // else it was refused before its name was pinned to what is near
			settler = un
		}
		f.unsettle(p, f.site(settler, u), place, i)
	} else {
		f.counts.Known++
		f.resident++
		if from == fromOutside && !un.placed {
			f.sizes.add(un.domain.name, 1)
		}
	}
	if from != fromState {
		f.touch(p, i)
	}
	return Fresh
}

// insert makes a pending item of a URL that is not one.
func (f *Frontier) insert(now time.Time, p *part, st *site, u weburl.URL, fp uint64, q *blobschema.Queued) uint32 {
	un := st.unit
	l := f.lane(p, st, u, q.Topic)
	f.seq++
	i := p.newItem(item{
		fp: fp, seq: f.seq, rank: q.Rank, gen: q.Generation, lane: l.number, topic: l.topic, depth: q.Depth, attempts: q.Attempts, flags: q.Flags,
	}, u.RequestURI())
	if q.NotBefore != 0 || q.Former != (blobschema.Origin{}) || q.Change != (blobschema.Change{}) {
		p.setRare(i, func(r *rare) { r.notBefore, r.former, r.change = q.NotBefore, q.Former, q.Change })
	}
	f.counts.Pending++
	f.pending[l.topic]++
	un.pending++
	st.pending++
	f.countUrgent(p, q.Rank, 1)
	f.countLooks(p, q.Rank, 1)
	un.add(p, i, now)
	f.settleUnit(un, now)
	return i
}

// unsettle takes back that a URL is settled: it is item i now. What settled it is where
// its former answer is.
func (f *Frontier) unsettle(p *part, st *site, place, i uint32) {
	origin := p.marks[place].origin()
	p.dropMark(place)
	f.countSettled(st, -1)
	p.setRare(i, func(r *rare) {
		if origin.Compare(r.former) > 0 {
			r.former = origin
		}
	})
}

// rejoin joins another entry of a pending URL into it, part by part, as merging
// runs does.
func (f *Frontier) rejoin(now time.Time, p *part, i uint32, q *blobschema.Queued, from source) Added {
	it := &p.items[i]
	if it.bits&isAsked != 0 && q.Generation > it.gen {
		return f.wish(p, i, q, true)
	}
	old, oldMore := *it, p.rareOf(i)
	more, topic := oldMore, it.topic
	switch {
	case q.Generation > it.gen:
		topic = q.Topic
		it.gen, it.depth, it.rank, it.attempts, it.flags = q.Generation, q.Depth, q.Rank, q.Attempts, q.Flags
	case q.Generation < it.gen && q.Flags&blobschema.FlagSeed == 0:
		return Known
	case q.Generation < it.gen: // that a URL is a seed holds for every generation, however late it comes
		it.flags = it.flags.Join(q.Flags)
	default:
		it.depth = min(it.depth, q.Depth)
		if from == fromOutside && it.rank > 0 && q.Rank > 0 {
			it.rank = f.cfg.Policy.Found(it.rank, q.Rank)
			if f.cfg.Looks && it.gen == 0 {
				it.rank = max(it.rank, lookRank+1)
			}
		} else {
			it.rank = min(it.rank, q.Rank)
		}
		it.attempts = max(it.attempts, q.Attempts)
		it.flags = it.flags.Join(q.Flags)
		topic = min(topic, q.Topic)
	}
	if q.Former.Compare(more.former) > 0 {
		more.former = q.Former
	}
	if q.Change.Compare(more.change) > 0 {
		more.change = q.Change
	}
	lane := f.relaned(p, it, topic)
	if *it == old && more == oldMore && lane == it.lane {
		return Known
	}
	if more != oldMore {
		p.setRare(i, func(r *rare) { *r = more })
	}
	f.moved(now, p, i, old.rank, lane)
	if from != fromState {
		f.touch(p, i)
	}
	return Lowered
}

// relaned is the number of the lane that an item belongs in, if it is of a topic.
func (f *Frontier) relaned(p *part, it *item, topic uint8) uint32 {
	if it.topic == topic {
		return it.lane
	}
	l := p.lanes[it.lane]
	return f.laneOf(p, l.door, topic, l.sub).number
}

// moved puts a pending item whose rank or lane has changed where it belongs now.
func (f *Frontier) moved(now time.Time, p *part, i, oldRank, lane uint32) {
	it := &p.items[i]
	if it.rank == oldRank && it.lane == lane {
		return
	}
	f.countUrgent(p, oldRank, -1)
	f.countUrgent(p, it.rank, 1)
	f.countLooks(p, oldRank, -1)
	f.countLooks(p, it.rank, 1)
	if it.bits&isAsked != 0 || p.rareOf(i).notBefore != 0 {
		f.setLane(p, it, lane)
		return // in no queue that goes by rank
	}
	l := p.lanes[it.lane]
	un := l.door.site.unit
	if it.lane != lane {
		l.remove(int(it.pos))
		un.enlist(l, now)
		f.setLane(p, it, lane)
		un.push(p, i, now)
	} else {
		l.up(int(it.pos))
		l.down(int(it.pos))
		un.enlist(l, now)
	}
	f.settleUnit(un, now)
}

// setLane makes an item that is in no lane's queue one of a lane.
func (f *Frontier) setLane(p *part, it *item, lane uint32) {
	topic := p.lanes[lane].topic
	f.pending[it.topic]--
	f.pending[topic]++
	it.lane, it.topic = lane, topic
}

// wish notes that an item whose request is under way is to be asked for once more.
func (f *Frontier) wish(p *part, i uint32, q *blobschema.Queued, firm bool) Added {
	it := &p.items[i]
	w, ok := p.wishes[i]
	old := w
	switch {
	case !ok && !firm:
		w = wish{gen: it.gen + 1, rank: q.Rank, depth: q.Depth, flags: q.Flags, topic: q.Topic}
	case !ok || firm && q.Generation > w.gen:
		w = wish{gen: q.Generation, rank: q.Rank, depth: q.Depth, flags: q.Flags, topic: q.Topic, firm: true}
	case firm && q.Generation < w.gen:
		return Known
	default:
		w.rank, w.depth, w.flags, w.firm = min(w.rank, q.Rank), min(w.depth, q.Depth), w.flags|q.Flags, w.firm || firm
		w.topic = min(w.topic, q.Topic)
	}
	if ok && w == old {
		return Known
	}
	if p.wishes == nil {
		p.wishes = map[uint32]wish{}
	}
	p.wishes[i] = w
	f.touch(p, i)
	return Lowered
}

func (f *Frontier) countUrgent(p *part, rank uint32, n int) {
	if rank == 0 {
		p.urgent += n
		f.counts.Urgent += int64(n)
	}
}

// touch marks an item for the next delta.
func (f *Frontier) touch(p *part, i uint32) {
	p.touched = f.delta + 1
	if it := &p.items[i]; it.bits&isDirty == 0 {
		it.bits |= isDirty
		if len(p.dirty) == 0 {
			f.dirtyParts = append(f.dirtyParts, p)
		}
		p.dirty = append(p.dirty, i)
	}
}

func (f *Frontier) touchUnit(u *unit) {
	u.slot.touched = f.delta + 1
	if !u.dirty {
		u.dirty = true
		f.dirtyUnits = append(f.dirtyUnits, u)
	}
}

func (f *Frontier) touchSite(st *site) {
	if !st.further() {
		f.touchUnit(st.unit)
		return
	}
	st.unit.slot.touched = f.delta + 1
	if !st.dirty {
		st.dirty = true
		f.dirtySites = append(f.dirtySites, st)
	}
}

// settle ends an item that is in no queue: it will not be asked for again in this
// generation. Its place in items is free then.
func (f *Frontier) settle(p *part, i uint32, state blobschema.State) {
	it := p.items[i]
	st := p.lanes[it.lane].door.site
	f.countUrgent(p, it.rank, -1)
	f.countLooks(p, it.rank, -1)
	f.counts.Pending--
	f.pending[it.topic]--
	st.pending--
	st.unit.pending--
	f.addSettled(p, st, it.fp, it.gen, state, p.rareOf(i).former)
	p.dropItem(i)
	if it.bits&isAsked != 0 {
		delete(p.wishes, i)
	}
}

// addSettled notes a settled URL. Its origin is known when the commit that holds it is
// begun; until then its former one must do.
func (f *Frontier) addSettled(p *part, st *site, fp uint64, gen uint32, state blobschema.State, former blobschema.Origin) {
	p.touched = f.delta + 1
	p.addMark(newMark(&blobschema.Settled{Fingerprint: fp, Generation: gen, State: state, Origin: former}))
	f.countSettled(st, 1)
	f.settled = append(f.settled, blobschema.Settled{Slot: p.slot.id, Fingerprint: fp, Generation: gen, State: state})
}

func (f *Frontier) countSettled(st *site, n int) {
	if n < 0 && (st.settled == 0 || st.unit.settled == 0) {
		return // its stored state is not true
	}
	st.settled += uint64(n)
	st.unit.settled += uint64(n)
	f.touchSite(st)
}

func (f *Frontier) slot(id partition.Slot) *slot {
	s := f.slots[id]
	if s == nil {
		s = newSlot(id)
		s.root.loaded, s.loaded = true, 1
		f.slots[id] = s
	}
	return s
}

func (f *Frontier) unit(s *slot, key string) *unit {
	u := f.units[key]
	if u == nil {
		u = &unit{key: key, slot: s, domain: f.domain(key), pace: polite.NewPace(), allowed: 1, delay: f.cfg.Delay, looks: f.cfg.Looks}
		if rule, ok := f.cfg.Hosts[key]; ok {
			u.allowed, u.delay = max(1, rule.Connections), rule.Delay
		}
		f.initSite(&u.own, u, key)
		if f.cfg.Resolve {
			if u.addr, u.placed = address(key); !u.placed {
				u.allowed = 1 // it is only resolved
			}
		}
		if !f.floor.IsZero() {
			u.pace.Floor(f.floor, u.delay)
		}
		f.units[key] = u
		s.units = append(s.units, u)
		f.counts.Hosts++
	}
	return u
}

// address reads a key of the form "[address]".
func address(key string) (netip.Addr, bool) {
	if len(key) < 2 || key[0] != '[' || key[len(key)-1] != ']' {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(key[1 : len(key)-1])
	return a, err == nil
}

func (f *Frontier) initSite(st *site, u *unit, name string) {
	*st = site{name: name, unit: u}
	for i := range st.doors {
		st.doors[i].site, st.doors[i].https = st, i == 1
	}
}

// site returns the site of a URL.
func (f *Frontier) site(u *unit, url weburl.URL) *site { return f.namedSite(u, string(url.Host())) }

func (f *Frontier) namedSite(u *unit, name string) *site {
	if name == u.key {
		return &u.own
	}
	key := siteKey{u, name}
	st := f.sites[key]
	if st == nil {
		st = &site{}
		key.name = string(append([]byte(nil), name...)) // not a part of a URL's text
		f.initSite(st, u, key.name)
		f.sites[key] = st
		u.slot.further = append(u.slot.further, st)
	}
	return st
}

// lane returns the lane of a URL.
func (f *Frontier) lane(p *part, st *site, url weburl.URL, topic uint8) *lane {
	sub := uint8(0)
	if n := st.unit.allowed; n > 1 {
		by, k := f.cfg.QueueBy, f.cfg.Queues
		if by == "" {
			by, k = blobschema.QueueByBKDR, n
		}
		sub = subQueue(by, k, url)
	}
	return f.laneOf(p, &st.doors[schemeIndex(url)], topic, sub)
}

func (f *Frontier) laneOf(p *part, d *door, topic, sub uint8) *lane {
	for _, l := range d.lanes { // most doors have one, and those of a divided host some dozens
		if l.part == p && l.topic == topic && l.sub == sub {
			return l
		}
	}
	l := &lane{door: d, part: p, stand: d.site.unit.stand(topic), number: uint32(len(p.lanes)), topic: topic, sub: sub}
	d.lanes, p.lanes = append(d.lanes, l), append(p.lanes, l)
	return l
}

// Counts returns the present figures.
func (f *Frontier) Counts() Counts { return f.counts }

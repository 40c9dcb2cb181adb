package frontier

import (
	"container/heap"
	"net/netip"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
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
	// MaxResident bounds the URLs held in loaded slots, pending and settled; above it
	// slots with nothing due are unloaded. 0 is no bound.
	MaxResident int
	// MaxHostURLs and MaxDomainURLs bound the known URLs of one site, and of one registrable
	// domain as far as this partition sees. What comes on top is counted, not kept, but
	// for seeds and what is asked for on purpose. 0 is no bound.
	MaxHostURLs   int64
	MaxDomainURLs int64
	// Resolve is for units that are addresses: the URLs of a name wait until its address is
	// known, to which they are sent on for ever. See Placements.
	Resolve bool
}

// Frontier is the state of one partition. See the package documentation.
type Frontier struct {
	cfg     Config
	quality func(Waiting) float64 // for the score of a unit
	slots   map[partition.Slot]*slot
	units   map[string]*unit // of loaded slots
	sites   map[siteKey]*site
	domains map[string]*domain
	ready   readyHeap
	timers  timerHeap
	seq     uint32
	turn    uint64
	virtual uint64 // time of fair queueing: the turn of the unit taken last

	sizes       domainSizes
	domainsFull map[string]bool

	// Since the last delta.
	dirtySlots []*slot // with items in their dirty lists
	settled    []blobschema.Seen
	dirtyUnits []*unit
	dirtySites []*site
	examined   bool // a slot with unexamined entries was loaded: its summary changes
	floor      time.Time
	frozen     map[partition.Slot]bool // see Freeze
	delta      uint64                  // counts deltas
	committed  uint64                  // the last delta known to be committed

	unloaded   int // slots that are not loaded and hold something
	fresh      int // entries appended to them that are in no delta yet
	resident   int
	counts     Counts
	refusals   []Refusal
	placements []Placement
}

// Counts are figures of the whole frontier, loaded or not.
type Counts struct {
	Known      int64 // URLs, as far as examined
	Pending    int64 // of them not settled
	Urgent     int64 // of them asked for on purpose
	Unexamined int64 // appended to unloaded slots, perhaps known
	Hosts      int64 // units in loaded slots
	Asked      int64 // requests under way
	WaitMillis int64 // time units stood ready but for their pace, since New
	Capped     int64 // URLs left out for a cap, since New
}

// New returns an empty frontier, all of whose slots count as loaded.
func New(cfg Config) *Frontier {
	if cfg.Policy == nil {
		cfg.Policy = BreadthFirst{}
	}
	return &Frontier{
		cfg: cfg, quality: qualities(cfg.Policy), slots: map[partition.Slot]*slot{}, units: map[string]*unit{},
		sites: map[siteKey]*site{}, domains: map[string]*domain{}, sizes: domainSizes{},
	}
}

// Added says what became of a URL.
type Added uint8

// The results of Add and Again.
const (
	Known    Added = iota // nothing changed
	Fresh                 // pending now: not known before, or settled in a lower generation
	Lowered               // pending already; its depth, rank or generation changed
	Deferred              // its slot is not loaded: appended unexamined
	Capped                // its site or domain has too many: counted, not kept
)

// Add records a URL; fp is its fingerprint. q.Host is its unit, q.Rank the policy's (or
// 0, if it is asked for on purpose), q.URL and q.Slot are taken from u and q.Host. Adding a URL
// again changes nothing but a lower depth or rank of one that is pending, or a higher
// generation. If that comes while a request for the URL is under way, the request
// settles the generation that it was made for, and the higher one is pending after it.
func (f *Frontier) Add(now time.Time, u weburl.URL, fp uint64, q blobschema.Queued) Added {
	q.Flags &^= blobschema.FlagAgain
	un := f.units[q.Host]
	s := f.slotOf(un, q.Host)
	if s.loaded {
		return f.add(now, s, un, u, fp, &q, fromOutside)
	}
	if f.domainCapped(nil, &q) {
		f.counts.Capped++
		return Capped
	}
	q.URL, q.Slot = u.String(), s.id
	s.fresh = append(s.fresh, q)
	s.unexamined++
	f.countUrgent(s, q.Rank, 1) // perhaps one too many, until the slot is loaded
	f.fresh++
	f.resident++
	f.counts.Unexamined++
	return Deferred
}

// Again asks for a URL on purpose: it comes before all that is found, and if it was
// settled it is pending once more, in the next generation. Its slot must be loaded
// ([Frontier.Want]); else nothing happens and the result is Deferred. q is as for Add, its
// rank and generation apart, which come from here. request names the request from outside
// that this is part of: its repeats do nothing for 15 days. 0 is a request that is never
// repeated.
func (f *Frontier) Again(now time.Time, u weburl.URL, fp uint64, q blobschema.Queued, request uint64) Added {
	un := f.units[q.Host]
	s := f.slotOf(un, q.Host)
	if !s.loaded {
		return Deferred
	}
	s.want = false
	q.Rank, q.Generation, q.Flags = 0, 0, q.Flags&^blobschema.FlagAgain
	if request != 0 {
		if un = f.unit(s, q.Host); !f.firstAsk(un, request, fp, now) {
			return Known
		}
	}
	switch i, k := s.find(fp); k {
	case inMarks:
		q.Generation = s.marks[i].gen + 1
	case inItems:
		it := &s.items[i]
		if it.bits&isAsked != 0 {
			return f.wish(s, i, &q, false)
		}
		q.Generation, q.Depth, q.Attempts = it.gen, it.depth, it.attempts
	}
	return f.add(now, s, un, u, fp, &q, fromOutside)
}

// source says where an entry comes from.
type source uint8

const (
	fromOutside source = iota
	fromState          // a run
	unexamined         // a run, perhaps never looked at before
	appended           // what was appended to the slot, and may be in no run
)

// add is Add for a loaded slot. un is the URL's unit, nil if there is none yet.
func (f *Frontier) add(now time.Time, s *slot, un *unit, u weburl.URL, fp uint64, q *blobschema.Queued, from source) Added {
	place, k := s.find(fp)
	switch {
	case k == inMarks && q.Generation <= s.marks[place].gen:
		return Known
	case k == inItems:
		return f.rejoin(now, s, place, q, from != fromState)
	case k == absent && from != fromState && f.domainCapped(un, q):
		return f.leaveOut(s, nil, u, fp, q, from)
	}
	if un == nil {
		un = f.unit(s, q.Host)
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
	if k == absent && from != fromState && (f.siteCapped(st, q) || len(s.text) > maxText) {
		return f.leaveOut(s, st, u, fp, q, from)
	}
	if un.pinned() {
		f.forward(un, st, u, fp, q)
		return Fresh
	}
	i := f.insert(now, st, u, fp, q)
	if k == inMarks {
		if st.settled > 0 { // else it was refused before its name was pinned to what is near
			settler = un
		}
		f.unsettle(f.site(settler, u), place, i)
	} else {
		f.counts.Known++
		f.resident++
		if from == fromOutside && !un.placed {
			f.sizes.add(un.domain.name, 1)
		}
	}
	if from != fromState {
		f.touch(s, i)
	}
	return Fresh
}

// insert makes a pending item of a URL that is not one.
func (f *Frontier) insert(now time.Time, st *site, u weburl.URL, fp uint64, q *blobschema.Queued) uint32 {
	un, s := st.unit, st.unit.slot
	l := f.lane(st, u)
	f.seq++
	i := s.newItem(item{
		fp: fp, seq: f.seq, rank: q.Rank, gen: q.Generation, lane: l.number, depth: q.Depth, attempts: q.Attempts, flags: q.Flags,
	}, u.RequestURI())
	if q.NotBefore != 0 || q.Former != (blobschema.Origin{}) {
		s.setRare(i, func(r *rare) { r.notBefore, r.former = q.NotBefore, q.Former })
	}
	f.counts.Pending++
	un.pending++
	st.pending++
	f.countUrgent(s, q.Rank, 1)
	un.add(i, now)
	f.settleUnit(un, now)
	return i
}

// unsettle takes back that a URL is settled: it is item i now. What settled it is where
// its former answer is.
func (f *Frontier) unsettle(st *site, place, i uint32) {
	s := st.unit.slot
	origin := s.marks[place].origin()
	s.dropMark(place)
	f.countSettled(st, -1)
	s.setRare(i, func(r *rare) {
		if origin.Compare(r.former) > 0 {
			r.former = origin
		}
	})
}

// rejoin joins another entry of a pending URL into it, part by part, as merging
// runs does.
func (f *Frontier) rejoin(now time.Time, s *slot, i uint32, q *blobschema.Queued, dirty bool) Added {
	it := &s.items[i]
	if it.bits&isAsked != 0 && q.Generation > it.gen {
		return f.wish(s, i, q, true)
	}
	old := *it
	switch {
	case q.Generation > it.gen:
		it.gen, it.depth, it.rank, it.attempts, it.flags = q.Generation, q.Depth, q.Rank, q.Attempts, q.Flags
	case q.Generation < it.gen:
		return Known
	default:
		it.depth = min(it.depth, q.Depth)
		it.rank = min(it.rank, q.Rank)
		it.attempts = max(it.attempts, q.Attempts)
		it.flags = it.flags.Join(q.Flags)
	}
	former := s.rareOf(i).former
	if later := q.Former.Compare(former) > 0; later {
		s.setRare(i, func(r *rare) { r.former = q.Former })
	} else if it.gen == old.gen && it.depth == old.depth && it.rank == old.rank && it.attempts == old.attempts && it.flags == old.flags {
		return Known
	}
	f.moved(now, s, i, old.rank)
	if dirty {
		f.touch(s, i)
	}
	return Lowered
}

// moved puts a pending item whose rank has changed where it belongs now.
func (f *Frontier) moved(now time.Time, s *slot, i, oldRank uint32) {
	it := &s.items[i]
	if it.rank == oldRank {
		return
	}
	f.countUrgent(s, oldRank, -1)
	f.countUrgent(s, it.rank, 1)
	if it.bits&isAsked != 0 || s.rareOf(i).notBefore != 0 {
		return // in no queue that goes by rank
	}
	l := s.lanes[it.lane]
	l.up(int(it.pos))
	l.down(int(it.pos))
	un := l.site.unit
	un.enlist(l, now)
	f.settleUnit(un, now)
}

// wish notes that an item whose request is under way is to be asked for once more.
func (f *Frontier) wish(s *slot, i uint32, q *blobschema.Queued, firm bool) Added {
	it := &s.items[i]
	w, ok := s.wishes[i]
	old := w
	switch {
	case !ok && !firm:
		w = wish{gen: it.gen + 1, rank: q.Rank, depth: q.Depth, flags: q.Flags}
	case !ok || firm && q.Generation > w.gen:
		w = wish{gen: q.Generation, rank: q.Rank, depth: q.Depth, flags: q.Flags, firm: true}
	case firm && q.Generation < w.gen:
		return Known
	default:
		w.rank, w.depth, w.flags, w.firm = min(w.rank, q.Rank), min(w.depth, q.Depth), w.flags|q.Flags, w.firm || firm
	}
	if ok && w == old {
		return Known
	}
	if s.wishes == nil {
		s.wishes = map[uint32]wish{}
	}
	s.wishes[i] = w
	f.touch(s, i)
	return Lowered
}

func (f *Frontier) countUrgent(s *slot, rank uint32, n int) {
	if rank == 0 {
		s.urgent += n
		f.counts.Urgent += int64(n)
	}
}

// touch marks an item for the next delta.
func (f *Frontier) touch(s *slot, i uint32) {
	s.touched = f.delta + 1
	if it := &s.items[i]; it.bits&isDirty == 0 {
		it.bits |= isDirty
		if len(s.dirty) == 0 {
			f.dirtySlots = append(f.dirtySlots, s)
		}
		s.dirty = append(s.dirty, i)
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
func (f *Frontier) settle(s *slot, i uint32, state blobschema.State) {
	it := s.items[i]
	st := s.lanes[it.lane].site
	f.countUrgent(s, it.rank, -1)
	f.counts.Pending--
	st.pending--
	st.unit.pending--
	f.addSettled(st, it.fp, it.gen, state, s.rareOf(i).former)
	s.dropItem(i)
	if it.bits&isAsked != 0 {
		delete(s.wishes, i)
	}
}

// addSettled notes a settled URL. Its origin is known when the commit that holds it is
// begun; until then its former one must do.
func (f *Frontier) addSettled(st *site, fp uint64, gen uint32, state blobschema.State, former blobschema.Origin) {
	s := st.unit.slot
	s.addMark(newMark(&blobschema.Seen{Fingerprint: fp, Generation: gen, State: state, Origin: former}))
	f.countSettled(st, 1)
	f.settled = append(f.settled, blobschema.Seen{Slot: s.id, Fingerprint: fp, Generation: gen, State: state})
}

func (f *Frontier) countSettled(st *site, n int) {
	if n < 0 && (st.settled == 0 || st.unit.settled == 0) {
		return // its stored state is not true
	}
	st.settled += uint64(n)
	st.unit.settled += uint64(n)
	f.touchSite(st)
}

// slotOf returns the slot of a unit, which is nil if it is not in memory.
func (f *Frontier) slotOf(u *unit, host string) *slot {
	if u != nil {
		return u.slot
	}
	return f.slot(f.cfg.Hash.Slot(host))
}

func (f *Frontier) slot(id partition.Slot) *slot {
	s := f.slots[id]
	if s == nil {
		s = &slot{id: id, loaded: true}
		f.slots[id] = s
	}
	return s
}

func (f *Frontier) unit(s *slot, key string) *unit {
	u := f.units[key]
	if u == nil {
		u = &unit{key: key, slot: s, domain: f.domain(key), pace: polite.NewPace()}
		f.initSite(&u.own, u, key)
		if f.cfg.Resolve {
			u.addr, u.placed = address(key)
		}
		if !f.floor.IsZero() {
			u.pace.Floor(f.floor, f.cfg.Delay)
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
	for i := range st.lanes {
		st.lanes[i].site, st.lanes[i].https = st, i == 1
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
func (f *Frontier) lane(st *site, url weburl.URL) *lane {
	l, s := &st.lanes[schemeIndex(url)], st.unit.slot
	if !l.listed {
		l.listed, l.number = true, uint32(len(s.lanes))
		s.lanes = append(s.lanes, l)
	}
	return l
}

// Counts returns the present figures.
func (f *Frontier) Counts() Counts { return f.counts }

// settleUnit puts a unit that is not busy into the queue it belongs in.
func (f *Frontier) settleUnit(u *unit, now time.Time) {
	if u.place == busy || u.slot.loading { // all units of a slot are settled when it is loaded
		return
	}
	u.promote(now)
	if len(f.frozen) > 0 && f.frozen[u.slot.id] {
		return
	}
	switch u.place {
	case ready: // it keeps its turn
		if urgent := u.hasUrgent(); urgent != u.urgent {
			u.urgent = urgent
			heap.Fix(&f.ready, u.index)
		}
		return
	case waiting:
		if u.waits() && u.at.Equal(u.readyAt()) && u.at.After(now) {
			return
		}
		heap.Remove(&f.timers, u.index)
		u.place = idle
	}
	if !u.waits() {
		return
	}
	f.turn++
	u.turn = f.turn
	if at := u.readyAt(); at.After(now) {
		u.place, u.at, u.since = waiting, at, now
		heap.Push(&f.timers, u)
		return
	}
	u.place, u.urgent = ready, u.hasUrgent()
	if !u.connected { // else its visit goes on: the turn is the same
		u.start = u.domain.nextTurn(f.virtual)
		u.rank = f.cfg.Policy.HostRank(&HostView{Pending: u.pending, Pace: &u.pace, unit: u})
	}
	heap.Push(&f.ready, u)
}

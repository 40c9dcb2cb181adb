package schedule

import (
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Config is fixed for the life of a Schedule.
type Config struct {
	Hash      partition.Hash
	Partition partition.ID
	Policy    Policy              // default breadth-first
	Token     string              // product token that selects the group of a robots.txt
	Delay     time.Duration       // least time between the starts of two requests to a key
	Retry     polite.Retry        // attempts and waits for a URL, and when a silent site is given up
	Resolve   bool                // the crawl paces by address: names are resolved first
	Topics    []Topic             // priorities and slices by number; see SetTopics
	Began     time.Time           // start of the crawl, from which turns of topics are counted
	Hosts     map[string]HostRule // exceptions that the operators of hosts allow, by name of the key
	// A key that allows several requests at once spreads its URLs over Queues queues, by QueueBy.
	// The default is one queue for each request, by BKDR hash.
	QueueBy blobschema.QueueBy
	Queues  int
	// Known are the states in which keys begin that have no stored state, by name: see [polite.Pace.Remember]. Other keys begin
	// as unknown ones. The caller may fill the map until the first key comes.
	Known    map[string]polite.Pace
	Revisits bool // settled URLs are requested again when they may have changed: see SetThreshold
	// Threshold is the one with which the previous owner of the state planned the pending revisits.
	// The default plans a revisit each day.
	Threshold float64
}

// HostRule holds the limits that apply to one key.
type HostRule struct {
	Connections int           // requests under way at once; less than 1 counts as 1
	Delay       time.Duration // replaces Config.Delay
}

// Schedule decides which pending URL is requested next.
//
// It has three levels (Fan, Li; Cao, Jiang, Singh). Topics have priorities; topics of one priority
// take turns. Each topic has a queue of its ready keys. The URLs of a key wait in lanes, one for
// each origin, pool, topic and sub-queue. Keys of equal rank take turns by registrable domain
// (start-time fair queueing: Goyal, Vin, Cheng), so a domain with 100,000 names has one turn
// at a time. A key has one request under way, or as many as its operator allows, one per lane.
type Schedule struct {
	cfg     Config
	quality func(Waiting) float64 // of a URL, for the score of its key
	keys    map[string]*Key       // in memory
	sites   sites
	domains domains
	queues  queues
	seq     uint32    // number of the item added last
	floor   time.Time // see Floor
	seen    time.Time // latest time that a caller passed

	tally    tally
	revisits revisits
	changes  changes
	ended    []Ended
}

// Counts counts the URLs and keys in memory, and the urgent URLs of all pools.
type Counts struct {
	Pending    int64
	Urgent     int64 // requested, or requisites
	Revisits   int64 // URLs that wait for a revisit and nothing else
	Keys       int64
	InFlight   int64 // requests under way
	WaitMillis int64 // total time that keys with a URL waited for their pace
}

// New returns an empty schedule.
func New(cfg Config) *Schedule {
	if cfg.Policy == nil {
		cfg.Policy = policies(Quality{})[0]
	}
	if cfg.Threshold <= 0 {
		cfg.Threshold = FirstThreshold(24, 1)
	}
	s := &Schedule{
		cfg: cfg, quality: qualities(cfg.Policy), keys: map[string]*Key{}, sites: sites{}, domains: domains{},
		tally: tally{revisits: cfg.Revisits}, queues: queues{policy: cfg.Policy},
		revisits: revisits{partition: cfg.Partition, threshold: cfg.Threshold, planned: cfg.Threshold},
	}
	s.queues.ready.began, s.queues.ready.pending = cfg.Began, &s.tally.pending
	s.queues.ready.setTopics(cfg.Topics)
	return s
}

// Counts returns the present figures.
func (s *Schedule) Counts() Counts { return s.tally.counts }

// PendingOf returns the number of URLs of a topic in memory.
func (s *Schedule) PendingOf(topic uint8) int64 { return s.tally.pending[topic] }

// SetTopics changes the priorities and slices of the topics, by number. URLs without a topic have number 0.
func (s *Schedule) SetTopics(topics []Topic) { s.queues.ready.setTopics(topics) }

// Active reports whether any request is under way or may be made now.
func (s *Schedule) Active() bool { return s.tally.counts.InFlight > 0 || !s.queues.ready.empty() }

// Floor forbids any request to a key before at plus the key's pace. Call it on an empty schedule.
func (s *Schedule) Floor(at time.Time) { s.floor = at }

// Find returns a key that is in memory, or nil.
func (s *Schedule) Find(name string) *Key { return s.keys[name] }

// Key returns the key of a name, which may be new.
func (s *Schedule) Key(g *Group, name string) *Key {
	k := s.keys[name]
	if k == nil {
		name = strings.Clone(name) // so that the text of a URL can be freed
		k = &Key{name: name, group: g, domain: s.domains.enter(name), pace: polite.NewPace(), allowed: 1, delay: s.cfg.Delay, revisits: s.cfg.Revisits}
		if pace, ok := s.cfg.Known[name]; ok {
			k.pace = pace
		}
		if rule, ok := s.cfg.Hosts[name]; ok {
			k.allowed, k.delay = max(1, rule.Connections), rule.Delay
		}
		k.own.init(k, name)
		if s.cfg.Resolve {
			if k.addr, k.placed = address(name); !k.placed {
				k.allowed = 1 // it is only resolved
			}
		}
		if !s.floor.IsZero() {
			k.pace.Floor(s.floor, k.delay)
		}
		s.keys[name] = k
		g.keys = append(g.keys, k)
		s.tally.counts.Keys++
	}
	return k
}

// lane returns the lane of a URL.
func (s *Schedule) lane(p *Pool, st *site, u weburl.URL, topic uint8) *lane {
	sub := uint8(0)
	if n := st.key.allowed; n > 1 {
		by, queues := s.cfg.QueueBy, s.cfg.Queues
		if by == "" {
			by, queues = blobschema.QueueByBKDR, n
		}
		sub = subQueue(by, queues, u)
	}
	return st.of(u).lane(p, topic, sub)
}

// Freeze forbids new requests to the keys of a group. Requests under way finish.
func (s *Schedule) Freeze(g *Group) {
	g.Frozen = true
	for _, k := range g.keys {
		s.queues.dequeue(k)
	}
}

// Stop forbids new requests for the URLs of a pool until it is emptied.
func (s *Schedule) Stop(p *Pool, now time.Time) {
	p.full = true
	for _, l := range p.lanes {
		l.delist()
	}
	for _, l := range p.lanes {
		s.queues.enqueue(l.topicQueue.key, now)
	}
}

// Filled queues the keys of a group after one of its pools was filled.
func (s *Schedule) Filled(g *Group, now time.Time) {
	g.Filling = false
	for _, k := range g.keys {
		s.queues.enqueue(k, now)
	}
}

// Empty drops the URLs of a pool from memory. If last is set, it is the last pool of its group, and the
// keys of the group are dropped too. No request for the URLs may be under way.
func (s *Schedule) Empty(p *Pool, last bool) {
	for i := range p.items {
		if it := &p.items[i]; it.length > 0 {
			s.tally.pending[it.topic]--
			s.tally.counts.Pending--
		}
	}
	s.tally.counts.Revisits -= int64(p.revisits)
	if last {
		s.forgetKeys(p.group)
	} else {
		s.leave(p)
	}
	*p = Pool{group: p.group, touched: p.touched, urgent: p.urgent}
}

// forgetKeys drops the keys of a group.
func (s *Schedule) forgetKeys(g *Group) {
	for _, k := range g.keys {
		s.queues.dequeue(k)
		delete(s.keys, k.name)
		s.domains.leave(k.domain)
		s.tally.counts.Keys--
	}
	for _, st := range g.further {
		delete(s.sites, siteKey{st.key, st.name})
	}
	g.keys, g.further = nil, nil
}

// leave takes the URLs of a pool out of the queues of keys that stay in memory.
func (s *Schedule) leave(p *Pool) {
	touched := map[*Key]bool{}
	for i := range p.items {
		if it := &p.items[i]; it.length > 0 {
			st := p.lanes[it.lane].origin.site
			st.pending--
			st.key.pending--
			touched[st.key] = true
		}
	}
	for _, l := range p.lanes {
		l.delist()
		l.origin.remove(l)
	}
	for _, k := range p.group.keys { // in a fixed order, unlike the map's
		if touched[k] {
			k.forget(p)
			s.queues.enqueue(k, s.seen)
		}
	}
}

// countSettled adds n, which may be negative, to the settled URLs of a site.
func (s *Schedule) countSettled(st *site, n int) {
	if n < 0 && (st.settled == 0 || st.key.settled == 0) {
		return // its stored state is wrong
	}
	st.settled += uint64(n)
	st.key.settled += uint64(n)
	s.changes.site(st)
}

// Fill prepares an emptied pool for URLs: until Filled, the keys of its group are not queued.
func (s *Schedule) Fill(now time.Time, p *Pool) {
	s.seen = now
	*p = Pool{group: p.group, touched: p.touched}
	p.group.Filling = true
}

// tally counts the URLs in memory.
type tally struct {
	revisits bool // see Config.Revisits
	counts   Counts
	pending  [256]int64 // URLs by topic
}

// CountUrgent adds n urgent URLs that are not in memory to the count of a pool. The count
// survives Empty.
func (s *Schedule) CountUrgent(p *Pool, n int) { s.tally.urgent(p, n) }

func (y *tally) urgent(p *Pool, n int) {
	p.urgent += n
	p.group.urgent += n
	y.counts.Urgent += int64(n)
}

// count counts a pending URL n times. In a crawl with revisits, only revisits have revisitRank.
func (y *tally) count(p *Pool, it *item, n int) {
	switch {
	case it.urgent():
		y.urgent(p, n)
	case y.revisits && it.rank == revisitRank:
		p.revisits += n
		y.counts.Revisits += int64(n)
	}
}

// setLane moves an item that is in no queue to a lane.
func (y *tally) setLane(p *Pool, it *item, lane uint32) {
	topic := p.lanes[lane].topic
	y.pending[it.topic]--
	y.pending[topic]++
	it.lane, it.topic = lane, topic
}

// Package measure runs the real crawl on a virtual clock, in a world without faults whose calls take as long as in a cloud.
// It measures the cost, rate and balance of a crawl for webs and clusters of any size. It is deterministic.
package measure

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Lab describes a crawl to measure.
type Lab struct {
	Seed        uint64
	Web         *simweb.Web
	Seeds       int      // number of hosts whose roots are seeds; 0: all
	Regions     []Region // replace Web and Seeds
	Partitions  int      // number of partitions that own the slots at first
	Most        int      // largest number of partitions; 0: Partitions
	Slots       int
	Connections int                 // per partition
	Delay       time.Duration       // between two requests to a host
	Duration    time.Duration       // 0: until the crawl is finished
	Settings    blobschema.Settings // of the crawl, except for scope, depth, delay, timeout and user agent
	Policy      schedule.Policy     // nil: the one that Settings names
	Known       []weburl.URL        // seeds; nil: the roots of Seeds hosts
	// Server returns the times of connections to a host. It is called once per host. nil: connections take no time, and
	// answers take the time that Web gives.
	Server func(host string) Server
	// Answered, if not nil, is called for each answer, except those of robots.txt, when it arrives.
	Answered func(at time.Duration, url weburl.URL)
	// Watch is the time between two calls of OnSight, which gets the events since the last call; 0: OnSight is not called.
	Watch   time.Duration
	OnSight func(Sight)
	// Asked, if not nil, is called before the web answers a request for a page. It may change the web.
	Asked func(url string, at time.Duration)
	// Plan decides which partitions should own the slots, every PlanEvery, but not while slots move. It gets the current map
	// and returns nil for no change. With nil, the coordinator plans, as its Settings say, every PlanEvery.
	PlanEvery time.Duration
	Plan      func(*partition.Map) (*partition.Map, error)
	Asks      []Ask
	// Store, if not nil, is the store to crawl in. If it holds a crawl that has finished, the crawl to measure is another one.
	Store *virtual.Store
	Life  time.Duration // limit of a step's time, as in functions; the next step starts without memory. 0: no limit, and it has memory
}

// Sight describes a period of time.
type Sight struct {
	At    time.Duration // end of the period, since the start of the crawl
	Pages []int         // answered pages by partition, without robots.txt
	// Regions are the same pages by region.
	Regions []int
	Active  float64 // mean number of requests under way
	Bytes   int64   // of bodies
}

// Measured is the result of a [Lab].
type Measured struct {
	Virtual  time.Duration
	Pages    int // answered, without robots.txt
	Twice    int // pages whose URL had been answered before
	Requests int // including robots.txt
	// Found are the numbers of URLs by region: seeds, and links of answered pages. They are counted if there are several regions.
	Found    []int
	Mail     MailCount
	Steps    int
	Calls    ledger.Counts // a trigger that waits for wakes costs nothing
	Finished bool
	Epoch    partition.Epoch // of the map at the end
	Pauses   []Pause         // of slots that moved, in the order of their arrival
	// Served is the time from each of the Asks, in their order, to its page; 0: the page was not fetched.
	Served []time.Duration
}

// Pause is the time without requests to a slot because it moved: from when its owner's step learns of the move until the
// new owner's head names the commit that received the slot.
type Pause struct {
	Epoch  partition.Epoch
	Length time.Duration
}

// MailCount counts the mail between partitions.
type MailCount struct {
	Messages int
	URLs     int
	Bytes    int64 // as sent, compressed
	Text     int64 // bytes of the URLs themselves
}

// Durations of calls in the world of a [Lab], about as in a cloud.
const (
	tableTime = 5 * time.Millisecond
	queueTime = 10 * time.Millisecond
	getTime   = 20 * time.Millisecond
	putTime   = 40 * time.Millisecond
	startTime = 200 * time.Millisecond // from a wake to the step
	tickEvery = time.Minute
)

const (
	agent   = "orbweaver"
	timeout = time.Minute // of a request
)

// lab is the state of one measurement.
type lab struct {
	virtual.Clock
	virtual.Store
	cfg       Lab
	queues    *embedded.Queues
	scratch   *fetch.Scratch
	crawl     blobschema.Crawl
	hash      partition.Hash
	memory    *crawl.TickMemory
	warm      map[partition.ID]*crawl.Warm
	steps     map[partition.ID]*labActor
	waiting   map[string]*poll // waiting receivers by queue
	seen      map[uint64]struct{}
	found     map[string]struct{}
	active    int           // requests under way
	busy      time.Duration // sum of their times since the last call of OnSight, until counted
	counted   time.Duration
	servers   map[weburl.Host]*server
	sight     Sight
	asleep    map[partition.Slot]stopped
	began     time.Duration
	result    Measured
	ledger    ledger.Ledger
	actors    int
	asked     map[string][]int // indexes of the Asks under way, by URL
	ticking   bool
	tickAgain bool // another run follows the current one
	done      bool
	err       error
}

// stopped is the time at which a slot's owner learnt of its move, from the map of an epoch.
type stopped struct {
	epoch partition.Epoch
	at    time.Duration
	over  bool // the slot was received
}

// poll is a receiver that waits.
type poll struct {
	a    *labActor
	id   uint64
	max  int
	done bool
}

// labActor is a running actor.
type labActor struct {
	*lab
	virtual.Process
	part     partition.ID
	isStep   bool
	commit   string // last commit of a step
	fetching map[uint64]actor.Request
	received map[embedded.Receipt]string // queues of the messages that are not acknowledged
}

// Measure crawls until Duration is over or nothing is left to do.
func Measure(cfg Lab) (Measured, error) {
	l, err := newLab(cfg)
	if err != nil {
		return Measured{}, err
	}
	if err := l.begin(); err != nil {
		return Measured{}, err
	}
	l.began = l.Mono
	l.After(0, l.tick)
	if cfg.Watch > 0 {
		l.After(cfg.Watch, l.show)
	}
	if cfg.Plan != nil {
		l.After(cfg.PlanEvery, l.plan)
	}
	l.schedule()
	for !l.done && l.err == nil {
		due, ok := l.Due()
		if !ok {
			return l.result, errors.New("the crawl stands still: no event is left")
		}
		if end := l.began + cfg.Duration; cfg.Duration > 0 && due > end {
			l.Mono = end
			break
		}
		l.Next()
	}
	if cfg.Store != nil {
		*cfg.Store = l.Store
	}
	l.result.Virtual, l.result.Finished, l.result.Calls = l.Mono-l.began, l.done, l.ledger.Counts()
	return l.result, l.err
}

func newLab(cfg Lab) (*lab, error) {
	cfg.Most = max(cfg.Most, cfg.Partitions)
	if len(cfg.Regions) == 0 {
		cfg.Regions = []Region{{Web: cfg.Web, Seeds: cfg.Seeds}}
	}
	l := &lab{
		cfg: cfg, queues: embedded.NewQueues(nil), Store: virtual.NewStore(),
		scratch: fetch.NewScratch(fetch.Config{UserAgent: agent, Token: agent, Compression: warc.None}),
		memory:  &crawl.TickMemory{}, warm: map[partition.ID]*crawl.Warm{}, steps: map[partition.ID]*labActor{},
		waiting: map[string]*poll{}, seen: map[uint64]struct{}{}, found: map[string]struct{}{}, servers: map[weburl.Host]*server{}, asleep: map[partition.Slot]stopped{},
		asked: map[string][]int{},
	}
	if cfg.Store != nil {
		l.Store = *cfg.Store
	}
	l.sight = l.nothing()
	l.result.Found = make([]int, len(cfg.Regions))
	l.result.Served = make([]time.Duration, len(cfg.Asks))
	names := []string{naming.WakesQueue, naming.IntakeQueue}
	for p := range partition.ID(cfg.Most) {
		names = append(names, naming.MailboxQueue(p))
	}
	for _, q := range names {
		if err := l.queues.Create(q, 6*time.Minute); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// begin creates the crawl.
func (l *lab) begin() error {
	seeds, err := l.seeds(0)
	if err != nil {
		return err
	}
	settings := l.cfg.Settings
	settings.Scope, settings.MaxDepth, settings.Delay = blobschema.ScopeAny, -1, l.cfg.Delay
	settings.Timeout, settings.UserAgent, settings.Plain = timeout, agent, true
	want := blobschema.Crawl{
		ID: "lab", HashKey: l.cfg.hashKey(), Created: virtual.Epoch,
		Slots: l.cfg.Slots, Partitions: l.cfg.Partitions, Settings: settings,
	}
	b := crawl.NewBegin(want, seeds, nil)
	if l.Table[naming.ActiveKey].Found {
		want.ID = "another"
		b = crawl.NewAnother(want, seeds, true)
	}
	a := l.start(b, 0, nil)
	for !a.Ended() && l.err == nil {
		l.Next()
	}
	if l.err != nil {
		return l.err
	}
	if _, err := b.Ended(); err != nil {
		return err
	}
	l.crawl, _, _ = b.Crawl()
	l.hash, err = l.crawl.Hash()
	return err
}

func (cfg *Lab) hashKey() []byte { return binary.BigEndian.AppendUint64(make([]byte, 8), cfg.Seed) }

// Hash returns the hash of the crawl, which makes its fingerprints.
func (cfg *Lab) Hash() (partition.Hash, error) {
	return partition.NewHash([16]byte(cfg.hashKey()), cfg.Slots)
}

func (l *lab) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// show passes the events since the last call to OnSight.
func (l *lab) show() {
	l.After(l.cfg.Watch, l.show)
	l.sight.At = l.Mono - l.began
	l.underWay(0)
	l.sight.Active = l.busy.Seconds() / l.cfg.Watch.Seconds()
	l.cfg.OnSight(l.sight)
	l.busy = 0
	l.sight = l.nothing()
}

// underWay changes the number of requests under way.
func (l *lab) underWay(by int) {
	l.busy += time.Duration(l.active) * (l.Mono - l.counted)
	l.active, l.counted = l.active+by, l.Mono
}

// plan calls Plan and moves slots accordingly.
func (l *lab) plan() {
	l.After(l.cfg.PlanEvery, l.plan)
	r := crawl.NewRepartition(l.crawl.ID, func(p crawl.Partitioning) (*partition.Map, error) {
		if len(p.Record.Moving) > 0 || p.Record.Target != "" {
			return nil, nil
		}
		return l.cfg.Plan(p.Map)
	})
	l.start(r, 0, func(err error) {
		if err != nil {
			l.fail(fmt.Errorf("plan at %v: %w", l.Mono, err))
			return
		}
		_, after := r.Result()
		l.result.Epoch = after.Record.Epoch
	})
}

// tick runs the coordinator, now and every minute.
func (l *lab) tick() {
	l.After(tickEvery, l.tick)
	if !l.ticking {
		l.tickNow()
	}
}

// tickNow runs the coordinator. If a run is under way, another one follows it, because it may have read the state already.
func (l *lab) tickNow() {
	if l.tickAgain = l.ticking; l.ticking {
		return
	}
	l.ticking = true
	k := crawl.NewTick(crawl.TickConfig{
		Crawl: l.crawl.ID, Process: "tick", WakeAgain: time.Minute, Policy: l.cfg.Policy, PlanEvery: l.cfg.PlanEvery,
	}, l.memory)
	l.start(k, 0, func(err error) {
		l.ticking = false
		switch {
		case err != nil:
			l.fail(fmt.Errorf("tick at %v: %w", l.Mono, err))
		case k.Report().Finished:
			l.done = l.allGiven()
		}
		if l.tickAgain {
			l.tickNow()
		}
	})
}

// wakes starts the steps that wakes request.
func (l *lab) wakes() {
	got, err := l.queues.Receive(l.Wall(), naming.WakesQueue, 10)
	if err != nil {
		l.fail(err)
		return
	}
	for _, d := range got {
		_, p, err := blobschema.DecodeWake(d.Body)
		if err == nil {
			err = l.queues.Ack(l.Wall(), naming.WakesQueue, d.Receipt)
		}
		if err != nil {
			l.fail(err)
			return
		}
		l.After(startTime, func() { l.startStep(p) })
	}
	if len(got) > 0 {
		l.queueCalls(make([][]byte, 2*len(got))) // received and acknowledged
		l.wakes()
	}
}

func (l *lab) startStep(p partition.ID) {
	if l.steps[p] != nil {
		return
	}
	l.result.Steps++
	s, err := crawl.NewStep(crawl.StepConfig{
		Crawl: l.crawl, Partition: p, Process: fmt.Sprintf("step%d", l.actors), Connections: l.cfg.Connections,
		SendsWakes: true, Deadline: l.cfg.Life, SleepMax: 3 * time.Second, Retry: polite.Retry{}, Policy: l.cfg.Policy, Token: agent, Software: agent,
	}, l.warm[p])
	if err != nil {
		l.fail(err)
		return
	}
	l.steps[p] = &labActor{} // replaced once the step has started, because it may end at once
	l.steps[p] = l.start(s, p, func(err error) {
		delete(l.steps, p)
		delete(l.warm, p)
		if err != nil {
			l.fail(fmt.Errorf("step of partition %d at %v: %w", p, l.Mono, err))
			return
		}
		if l.cfg.Life == 0 {
			l.warm[p] = s.Warm()
		}
	})
	if l.steps[p].Ended() {
		delete(l.steps, p)
	}
}

func (l *lab) start(begun actor.Actor, p partition.ID, onEnd func(error)) *labActor {
	l.actors++
	_, step := begun.(*crawl.Step)
	a := &labActor{lab: l, part: p, isStep: step, fetching: map[uint64]actor.Request{}, received: map[embedded.Receipt]string{}}
	a.Process = virtual.Process{Actor: begun, Now: l.Now, Carry: a.issue, OnEnd: func(err error) {
		a.giveBack()
		if onEnd != nil {
			onEnd(err)
		}
	}}
	a.Start()
	return a
}

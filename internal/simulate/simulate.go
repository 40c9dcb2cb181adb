// Package simulate runs whole crawls in one deterministic event loop: the real actors of package crawl with their frontier
// and schedule, the real queues of the embedded driver, records and write-once objects in memory, and the generated web, on
// a virtual clock.
//
// The same seed gives the same run, bit for bit, on every machine. Only one goroutine of a world works at any time, there
// is one heap of events, and each process has its own random source, so that a change in one process does not move the
// others. Every effect is split into issue, apply and reply, and between them the world may fail in the ways that [Kind]
// lists.
//
// At each write of a head and each request to a host the world checks the invariants I1, I3 to I6, I8 and I9. At the end
// the pages must equal the ground truth of the web (I7, I10), the index must match the pages (I11), and package fsck must
// find nothing.
//
// The main types are [Config], one scenario, and the world that runs it. [Run] runs one scenario, [Sweep] runs many in
// parallel, and [Shrink] looks for the smallest scenario that fails in the same way. Read simulate.go, proc.go (effects),
// platform.go (what starts processes), fault.go and scenario.go (what goes wrong), web.go, invariant.go and check.go. The
// package does not measure time or cost; module lab does.
package simulate

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Config is one scenario.
type Config struct {
	Seed        uint64
	Web         simweb.Config
	Partitions  int
	Slots       int
	Connections int
	MaxResident int
	MaxPages    int64
	MaxDepth    int // greatest depth; -1: no bound
	Scope       blobschema.Scope
	Sitemaps    bool     // the crawl follows sitemaps
	Requisites  bool     // the crawl fetches requisites
	Seeds       []string // seeds; nil: those of the web
	MailEvery   time.Duration
	// Local simulates the embedded platform: all steps are in one process, which owns the queues. When it dies all steps
	// die, and the next process takes over at once.
	Local bool
	// Cold simulates a platform of functions: coordinator runs are a minute apart, each in another process; steps send
	// wakes; at most Concurrency steps run at once (0: any number); and the operator gives an order now and then.
	Cold        bool
	Queues      Queues
	Concurrency int
	// Late makes the operator create the crawl with half of the seeds and half of MaxPages, and give the rest some time
	// later or at the end of the crawl.
	Late bool
	// Resend is the time after which the coordinator resends unapplied mail; 0: never.
	Resend time.Duration
	Delay  time.Duration
	Faults Faults
	Killer string // URL that crashes every step that requests it
	// PartitionBy and Policy are settings of the crawl; "": the defaults.
	PartitionBy blobschema.PartitionBy
	Policy      string
	Quality     string // source of quality, for the policies that rank by it
	// Topics is the number of topics to which the seeds are dealt, with different priorities, slices and minimums; 0: the
	// crawl has no topics.
	Topics int
	// Allowed is the number of requests that each host allows at once; 0: 1. QueueBy selects how its URLs are dealt to that
	// many queues.
	Allowed int
	QueueBy blobschema.QueueBy
	// MaxPart is the setting of steps; 0: their default.
	MaxPart int
	// Recrawls is the number of requests for a URL from outside: some while the crawl runs, some at its end.
	Recrawls int
	// PerHour is the number of revisits per hour; 0: none. A crawl with revisits never finishes: the run ends some hours
	// after the last request for a new URL.
	PerHour float64
	// Maps lists the operator's orders to move slots between partitions.
	Maps []MapOrder
	// Elastic lets the coordinator choose the number of partitions and balance their load.
	Elastic bool
	// MergeFanIn is the setting of steps; 0: their default.
	MergeFanIn int
	// SweepEvery is the time between two sweeps of the coordinator; 0: its default.
	SweepEvery time.Duration
	// CommitEvery and SleepMax are settings of steps; 0: 20 s and 30 s.
	CommitEvery, SleepMax time.Duration
	// Attempts is the number of attempts for a URL; 0: 4. It exceeds the number of failures of any URL, so that the truth
	// is the same whatever happens to hosts.
	Attempts uint8
	Checks   int // number of checks by package fsck while the crawl runs
	// Index makes the index follow the crawl. IndexGrace is the time for which objects that no index names are kept.
	Index      bool
	IndexGrace time.Duration
	// SlowQueues is the longest time of a receive, and twice the shortest; 0: 1 to 30 ms.
	SlowQueues time.Duration
	Trace      io.Writer // every event as a line of text; nil: no trace
}

// Result describes a run.
type Result struct {
	Trace   uint64        // hash of all events; equal seeds have equal traces
	Events  int           // number of events
	Virtual time.Duration // time that passed in the simulated world
	Pages   int           // number of URLs with a page record at the end
	Faults  [kinds]int    // number of faults and other events, by Kind
	Fired   []Fault       // the faults, in order
}

// A run must end within these bounds.
const (
	maxEvents  = 4_000_000 // a local platform polls for wakes 30 times a second
	maxVirtual = 60 * 24 * time.Hour
)

// world is the state of one run.
type world struct {
	virtual.Clock
	virtual.Store
	cfg                     Config
	odds                    [kinds]float64
	only                    map[Fault]bool // faults that may happen; nil: all
	suffered                int            // faults that count towards the bound
	procs                   map[string]int // number of processes so far, by kind and partition
	outside, poll, operator identity       // identities of what is not a process
	trace                   hash.Hash64
	web                     *simweb.Web
	queues                  *embedded.Queues
	scratch                 *fetch.Scratch
	crawl                   blobschema.Crawl
	memory                  *crawl.TickMemory
	warm                    map[machine]*crawl.Warm
	hits                    map[string]int         // requests by URL
	lastRequests            map[string]lastRequest // last request, by politeness key
	parts                   map[partition.ID]*part
	seen                    map[pageKey]string // the commit that made a page visible
	hash                    partition.Hash
	first                   *partition.Map // map of epoch 1
	clocks                  map[machine]*clock
	failing                 [services]time.Duration  // end of the throttling of each service
	trouble                 map[string]*trouble      // current trouble, by host
	spoilt                  map[string]int           // answers spoilt by trouble, by URL
	changed                 map[string]bool          // hosts with pages that have changed
	requisites              map[string]bool          // URLs with a record as a requisite
	checks                  []int                    // numbers of the head writes after which fsck runs
	writes                  int                      // number of head writes
	pace                    map[string]time.Duration // least time between requests, by host, learnt from robots.txt
	pinned                  map[string]netip.Addr    // address at which each host was requested
	urls                    []string                 // see reachable
	news                    time.Duration            // time of the last request for something that had no answer before
	met                     map[string]bool          // hosts of which more than robots.txt was requested
	recrawls                []recrawl
	orders                  []*mapOrder
	ordering                int           // orders under way
	resumeAt                time.Duration // time of the resume after the last order to halt
	closing                 bool          // the crawl is stopped finally
	mapRecord               blobschema.MapRecord
	toldMap                 uint64        // version of the map that steps were told to read
	taken                   time.Duration // time when the last request was taken, or the rest of the seeds given
	late                    lateness
	crashes                 int // crashes of processes, by a fault or a page
	result                  Result
	ticking                 *proc
	reminded                time.Duration // time of the last reminder of rank steps
	live                    []*proc
	process                 int                         // number of processes of a local platform so far
	bodies                  map[embedded.Receipt][]byte // mail delivered
	got                     map[string]simweb.Got       // result for each URL, at the end
	done                    bool
	err                     error
}

// lateness is the state of the seeds and pages that Late holds back.
type lateness uint8

const (
	givenAll lateness = iota
	toGive
	giving
)

// machine is the place where processes of one kind run, one after another. It has a clock, and memory that may outlive a
// process.
type machine struct {
	kind string
	part partition.ID
	n    int
}

// Run runs a scenario and checks its end. The error names the broken promise; the same Config breaks it again.
func Run(cfg Config) (Result, error) {
	w, err := newWorld(cfg)
	if err != nil {
		return Result{}, err
	}
	err = w.run()
	for _, p := range w.live {
		p.Actor.Drop()
	}
	w.result.Virtual, w.result.Trace = w.Mono, w.trace.Sum64()
	return w.result, err
}

func (w *world) run() error {
	if err := w.begin(); err != nil {
		return err
	}
	w.After(0, w.tick)
	w.After(0, w.pollWakes)
	w.After(0, w.pollIntake)
	if w.cfg.Index {
		w.After(0, func() { w.pollJobs(naming.IndexQueue, "index", w.indexStep) })
		w.After(0, func() { w.pollJobs(naming.RankQueue, "rank", w.rankStep) })
	}
	if w.cfg.Cold {
		w.After(w.outside.between(0, 20*time.Minute), w.command)
	}
	if w.cfg.Late {
		w.late = toGive
		w.After(w.outside.between(0, 40*time.Minute), w.giveRest)
	}
	w.repartitionOnTime()
	onTime := w.cfg.Recrawls / 2
	if w.cfg.PerHour > 0 { // the end of such a crawl is far away
		onTime = w.cfg.Recrawls
	}
	for range onTime {
		w.After(w.outside.between(0, 20*time.Minute), w.recrawl)
	}
	for !w.done && w.err == nil {
		if w.result.Events > maxEvents || w.Mono > maxVirtual {
			w.fail(broken("end", "the crawl does not end: %d events, %v: %s", w.result.Events, w.Mono, w.heads()))
			break
		}
		w.turn()
	}
	if w.err != nil {
		return w.err
	}
	return w.check()
}

func newWorld(cfg Config) (*world, error) {
	web, err := simweb.New(cfg.Web)
	if err != nil {
		return nil, err
	}
	w := &world{
		cfg: cfg, trace: fnv.New64a(), web: web, outside: newIdentity(cfg.Seed, "outside"),
		poll: newIdentity(cfg.Seed, "poll"), operator: newIdentity(cfg.Seed, "operator"),
		queues: embedded.NewQueues(nil), Store: virtual.NewStore(),
		scratch: fetch.NewScratch(fetch.Config{UserAgent: agent, Token: agent, Compression: warc.None, Requisites: cfg.Requisites}),
		memory:  &crawl.TickMemory{}, warm: map[machine]*crawl.Warm{}, hits: map[string]int{},
		lastRequests: map[string]lastRequest{}, met: map[string]bool{}, pace: map[string]time.Duration{}, procs: map[string]int{},
		bodies: map[embedded.Receipt][]byte{}, pinned: map[string]netip.Addr{}, clocks: map[machine]*clock{},
		parts: map[partition.ID]*part{}, seen: map[pageKey]string{},
		trouble: map[string]*trouble{}, spoilt: map[string]int{}, changed: map[string]bool{}, requisites: map[string]bool{},
	}
	for k, p := range cfg.Faults.Chances {
		w.odds[k] = p
	}
	if cfg.Faults.Only != nil {
		w.only = map[Fault]bool{}
		for _, f := range cfg.Faults.Only {
			w.only[f] = true
		}
	}
	for range cfg.Checks {
		w.checks = append(w.checks, 1+w.outside.rng.IntN(50))
	}
	for _, q := range append([]string{naming.WakesQueue, naming.IntakeQueue, naming.IndexQueue, naming.RankQueue}, w.mailboxes()...) {
		if err := w.queues.Create(q, 6*time.Minute); err != nil {
			return nil, err
		}
	}
	return w, nil
}

const agent = "orbweaver"

func (w *world) mailboxes() (names []string) {
	for p := range partition.ID(w.most()) {
		names = append(names, naming.MailboxQueue(p))
	}
	return names
}

// begin creates the crawl without faults.
func (w *world) begin() error {
	seeds, err := w.seedURLs()
	if err != nil {
		return err
	}
	limit := w.cfg.MaxPages
	if w.cfg.Late {
		seeds, limit = seeds[:(len(seeds)+1)/2], (limit+1)/2
	}
	most := 0
	if w.cfg.Elastic {
		most = w.most()
	}
	key := binary.BigEndian.AppendUint64(make([]byte, 8), w.cfg.Seed)
	want := blobschema.Crawl{
		ID: "sim", HashKey: key, Created: virtual.Epoch, Slots: w.cfg.Slots, Partitions: w.cfg.Partitions,
		Settings: blobschema.Settings{
			Scope: w.cfg.Scope, MaxDepth: w.cfg.MaxDepth, Delay: w.cfg.Delay, MaxPages: limit, Timeout: timeout, UserAgent: agent,
			PartitionBy: w.cfg.PartitionBy, Policy: w.cfg.Policy, Quality: w.cfg.Quality, MostPartitions: most,
			Topics: w.cfg.topics(), Hosts: w.hostRules(), QueueBy: w.cfg.QueueBy, Queues: w.cfg.Allowed,
			RecrawlPerHour: w.cfg.PerHour, Index: w.cfg.Index, Sitemaps: w.cfg.Sitemaps, Requisites: w.cfg.Requisites,
		},
	}
	b := crawl.NewBegin(want, w.cfg.dealt(seeds), nil)
	p := w.newProc("begin", 0)
	p.Actor, p.kindly = b, true
	p.start()
	for w.err == nil {
		if ended, err := b.Ended(); ended {
			if err != nil {
				return err
			}
			return w.begun(b)
		}
		w.turn()
	}
	return w.err
}

// begun records the properties of the new crawl.
func (w *world) begun(b *crawl.Begin) (err error) {
	w.crawl, _, _ = b.Crawl()
	if w.hash, err = w.crawl.Hash(); err != nil {
		return err
	}
	w.first, err = partition.NewMap(w.crawl.Slots, w.crawl.Partitions)
	w.mapRecord = blobschema.MapRecord{Epoch: 1, Partitions: w.crawl.Partitions}
	return err
}

func (w *world) seedURLs() (seeds []weburl.URL, err error) {
	for _, s := range w.seeds() {
		u, err := weburl.Parse(s)
		if err != nil {
			return nil, err
		}
		seeds = append(seeds, u)
	}
	return seeds, nil
}

// turn runs the next event.
func (w *world) turn() {
	w.result.Events++
	if !w.Next() {
		w.fail(broken("end", "the crawl stands still: no event is left"))
	}
}

func (w *world) note(parts ...string) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(w.Mono))
	w.trace.Write(b[:])
	for _, p := range parts {
		w.trace.Write([]byte(p))
	}
	if w.cfg.Trace != nil {
		fmt.Fprintln(w.cfg.Trace, w.Mono, strings.Join(parts, " "))
	}
}

func (w *world) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *world) seeds() []string {
	if w.cfg.Seeds != nil {
		return w.cfg.Seeds
	}
	return w.web.Seeds()
}

// heads returns the heads of all partitions, for a failure message.
func (w *world) heads() string {
	var b strings.Builder
	for p := range partition.ID(w.partitions()) {
		fmt.Fprintf(&b, "\n  %s", w.Table[naming.HeadKey(w.crawl.ID, p)].Value)
	}
	return b.String()
}

// Package simulate runs whole crawls in one deterministic event loop: the real step,
// tick and frontier of package crawl, the real semantics of the embedded queue and
// table, blobs that are created once, and the generated web, on a virtual clock.
//
// One seed is one run, bit for bit, on every machine: a world has one goroutine at work at
// any time, one heap of events, and a random source for each process, so that what one
// does moves no other. Every effect is split into issue, apply and reply, and between
// them the world may fail in the ways that [Kind] lists. At each write of a head and each
// request to a host the invariants are checked that can be; at the end the pages must
// equal the ground truth of the web, and package fsck must find nothing.
//
// [Run] carries out one scenario, [Sweep] many, each on a processor of its own, and
// [Shrink] looks for the smallest scenario that fails the same way.
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
	MaxDepth    int // -1 for no bound
	Scope       blobschema.Scope
	Seeds       []string // nil: the web's own
	MailEvery   time.Duration
	// Local is the embedded platform: all steps are one process, which owns the queues; when
	// it dies all die, and the next one takes over at once.
	Local bool
	// Cold is a platform of functions: ticks are a minute apart and each in another process,
	// steps send wakes, at most Concurrency of them are at work (0: any number), and the
	// operator gives an order now and then.
	Cold        bool
	Concurrency int
	// Late has the operator begin the crawl with half of the seeds and half of MaxPages, and
	// give the rest some time later, or when it is done.
	Late bool
	// Resend is how long unapplied mail waits before the tick sends it again; 0 for never.
	Resend time.Duration
	Delay  time.Duration
	Faults Faults
	Killer string // a URL that crashes every step that asks for it
	// PartitionBy and Policy are the crawl's; "" for the defaults.
	PartitionBy blobschema.PartitionBy
	Policy      string
	Quality     string // the source of it, for the policies that rank by it
	// Topics is how many topics the seeds are dealt to, 0 for a crawl without: of different
	// priorities, slices and minimums.
	Topics int
	// Allowed is how many requests each host allows at once, 0 for 1; QueueBy says how its URLs
	// are dealt to that many queues.
	Allowed int
	QueueBy blobschema.QueueBy
	// MaxPart is that of steps, 0 for their default.
	MaxPart int
	// Recrawls is how many requests for a URL come from outside, some while the crawl runs,
	// some when it is done.
	Recrawls int
	// PerHour is how many settled URLs are looked at again in an hour, 0 for none. Such a crawl
	// never finishes: the run ends some hours after the last new URL was asked for.
	PerHour float64
	// Maps are the operator's orders to move slots between partitions.
	Maps []MapOrder
	// Elastic has ticks choose the number of partitions, and even their load.
	Elastic bool
	// MergeFanIn is that of steps, 0 for their default.
	MergeFanIn int
	// SweepEvery is how often ticks look for runs to delete, 0 for their default.
	SweepEvery time.Duration
	// CommitEvery and SleepMax are those of steps, 0 for 20 s and 30 s.
	CommitEvery, SleepMax time.Duration
	// Attempts is how often a URL is tried, 0 for 4: more often than it fails, so that the
	// truth is the same whatever befalls hosts.
	Attempts uint8
	Looks    int // checks by package fsck while the crawl runs
	// Index has the pages indexed as the crawl goes; IndexGrace is how long objects are kept that
	// no index names any more.
	Index      bool
	IndexGrace time.Duration
	// SlowQueues is how long a receive takes at most, and half of it at least; 0 for 1 to 30 ms.
	SlowQueues time.Duration
	Trace      io.Writer // every event as a line of text; nil for none
}

// Result is what came of a run.
type Result struct {
	Trace   uint64        // hash of all events: equal seeds have equal traces
	Events  int           // carried out
	Virtual time.Duration // time that passed in the simulated world
	Pages   int           // URLs with a page record at the end
	Faults  [kinds]int    // that happened, by Kind
	Fired   []Fault       // those of them that are faults, in their order
}

// Bounds that a run must end within.
const (
	maxEvents  = 4_000_000 // a local platform looks for wakes 30 times a second
	maxVirtual = 60 * 24 * time.Hour
)

// world is the state of one run.
type world struct {
	virtual.Clock
	virtual.Store
	cfg                     Config
	odds                    [kinds]float64
	only                    map[Fault]bool // nil for all
	suffered                int            // faults that count for the bound
	procs                   map[string]int // begun, by kind and partition
	outside, poll, operator identity       // of what is no process
	trace                   hash.Hash64
	web                     *simweb.Web
	queues                  *embedded.Queues
	scratch                 *fetch.Scratch
	crawl                   blobschema.Crawl
	memory                  *crawl.TickMemory
	warm                    map[machine]*crawl.Warm
	hits                    map[string]int   // requests by URL
	asked                   map[string]asked // last request, by unit of pacing
	parts                   map[partition.ID]*part
	seen                    map[pageKey]string // the commit that made a page visible
	hash                    partition.Hash
	first                   *partition.Map // of virtual.Epoch 1
	clocks                  map[machine]*clock
	failing                 [services]time.Duration  // until then, by throttling
	trouble                 map[string]*trouble      // by host
	spoilt                  map[string]int           // answers that trouble has spoilt, by URL
	changed                 map[string]bool          // hosts with pages that have changed
	looks                   []int                    // head writes after which fsck looks
	writes                  int                      // of heads
	pace                    map[string]time.Duration // least time between requests, by host, as learnt from robots.txt
	pinned                  map[string]netip.Addr    // the address each host was asked at
	urls                    []string                 // see reachable
	news                    time.Duration            // when something was asked for last that had no answer before
	met                     map[string]bool          // the hosts that were asked for more than robots.txt
	wishes                  []wish
	orders                  []*mapOrder
	ordering                int           // of these under way
	resumeAt                time.Duration // after the last order to halt
	closing                 bool          // the crawl is stopped for good
	mapRecord               blobschema.MapRecord
	looked                  uint64        // version of the map that steps were told of
	taken                   time.Duration // when the last request was taken, or the rest of the seeds was given
	late                    lateness
	crashes                 int // of processes, by fault or by a page
	result                  Result
	ticking                 *proc
	reminded                time.Duration // when the steps of ranks were
	live                    []*proc
	process                 int                         // counts the processes of a local platform
	bodies                  map[embedded.Receipt][]byte // of mail delivered
	got                     map[string]simweb.Got       // what was found of each URL, at the end
	done                    bool
	err                     error
}

// lateness is how far the operator is with what the crawl was not begun with.
type lateness uint8

const (
	givenAll lateness = iota
	toGive
	giving
)

// machine is what processes of one kind run on, one after another: it has a clock, and
// memory that may outlive them.
type machine struct {
	kind string
	part partition.ID
	n    int
}

// Run carries out a scenario and checks its end. An error says which promise was
// broken; with the same Config it happens again.
func Run(cfg Config) (Result, error) {
	w, err := newWorld(cfg)
	if err != nil {
		return Result{}, err
	}
	err = w.run()
	for _, p := range w.live {
		p.actor.Drop()
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
	if w.cfg.PerHour > 0 { // its end is far
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
		scratch: fetch.NewScratch(fetch.Config{UserAgent: agent, Token: agent, Compression: warc.None}),
		memory:  &crawl.TickMemory{}, warm: map[machine]*crawl.Warm{}, hits: map[string]int{},
		asked: map[string]asked{}, met: map[string]bool{}, pace: map[string]time.Duration{}, procs: map[string]int{},
		bodies: map[embedded.Receipt][]byte{}, pinned: map[string]netip.Addr{}, clocks: map[machine]*clock{},
		parts: map[partition.ID]*part{}, seen: map[pageKey]string{},
		trouble: map[string]*trouble{}, spoilt: map[string]int{}, changed: map[string]bool{},
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
	for range cfg.Looks {
		w.looks = append(w.looks, 1+w.outside.rng.IntN(50))
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

// begin creates the crawl, in a world without faults.
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
			RecrawlPerHour: w.cfg.PerHour, Index: w.cfg.Index,
		},
	}
	b := crawl.NewBegin(want, w.cfg.dealt(seeds), nil)
	p := w.newProc("begin", 0)
	p.actor, p.kindly = b, true
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

// begun takes note of what the crawl was begun with.
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

// turn carries out the next event.
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

// heads describes how far the partitions are, for a failure.
func (w *world) heads() string {
	var b strings.Builder
	for p := range partition.ID(w.partitions()) {
		fmt.Fprintf(&b, "\n  %s", w.Table[naming.HeadKey(w.crawl.ID, p)].Value)
	}
	return b.String()
}

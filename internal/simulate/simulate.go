// Package simulate runs whole crawls in one deterministic event loop: the real step,
// tick and frontier of package crawl, the real semantics of the embedded queue and
// table, blobs that are created once, and the generated web, on a virtual clock.
//
// One seed is one run, bit for bit, whatever GOMAXPROCS: there is one goroutine at
// work at any time, one random source, and one heap of events. Every effect is split
// into issue, apply and reply, and between them the world may fail: steps and ticks
// crash, effects are lost or done without a reply, messages are repeated, lost,
// delayed and reordered, processes freeze beyond their lease. At the end the
// pages must equal the ground truth of the web, and package fsck must find nothing.
package simulate

import (
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"iter"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/platform/embedded"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Faults are probabilities, each per effect it can befall; 0 never, 1 always. The zero
// value is a world without faults.
type Faults struct {
	Crash     float64 // the actor dies: before the effect, or between apply and reply
	Lost      float64 // nothing happens, and the reply is an error
	Doubt     float64 // it happens, and the reply is an error
	Repeat    float64 // of a message sent: it is delivered twice
	Drop      float64 // of a message sent: it is gone
	Slow      float64 // the effect takes very long
	Freeze    float64 // the process stands still for longer than its lease
	Damage    float64 // of a message sent: a copy with a broken byte is delivered too
	Stop      float64 // the step is told to stop
	MaxFaults int     // after so many the world is kind, so that a run ends
}

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
	// Recrawls is how many requests for a URL come from outside, some while the crawl runs,
	// some when it is done.
	Recrawls int
	Trace    io.Writer // every event as a line of text; nil for none
}

// Result is what came of a run.
type Result struct {
	Trace   uint64         // hash of all events: equal seeds have equal traces
	Events  int            // carried out
	Virtual time.Duration  // time that passed in the simulated world
	Pages   int            // page records visible at the end
	Faults  map[string]int // that happened, by kind
	Steps   int
	Ticks   int
}

// Bounds that a run must end within.
const (
	maxEvents  = 4_000_000 // a local platform looks for wakes 30 times a second
	maxVirtual = 60 * 24 * time.Hour
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type event struct {
	at  time.Duration
	seq uint64
	do  func()
}

type events []event

func (h events) Len() int { return len(h) }
func (h events) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}
func (h events) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *events) Push(x any)   { *h = append(*h, x.(event)) }
func (h *events) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*h = old[:len(old)-1]
	return e
}

// world is the state of one run.
type world struct {
	cfg     Config
	rng     *rand.Rand
	now     time.Duration
	seq     uint64
	heap    events
	trace   hash.Hash64
	web     *simweb.Web
	queues  *embedded.Queues
	table   *embedded.Table
	blobs   map[string][]byte
	scratch *fetch.Scratch
	crawl   blobschema.Crawl
	memory  *crawl.TickMemory
	warm    map[warmKey]*crawl.Warm
	hits    map[string]int           // requests by URL
	asked   map[string]asked         // last request, by unit of pacing
	pace    map[string]time.Duration // least time between requests, by host, as learnt from robots.txt
	pinned  map[string]netip.Addr    // the address each host was asked at
	wishes  []wish
	taken   time.Duration // when the last request was taken, or the rest of the seeds was given
	late    lateness
	crashes int // of processes, by fault or by a page
	result  Result
	ticking bool
	procs   int
	live    []*proc
	process int                         // counts the processes of a local platform
	bodies  map[embedded.Receipt][]byte // of mail delivered
	done    bool
	err     error
}

// lateness is how far the operator is with what the crawl was not begun with.
type lateness uint8

const (
	givenAll lateness = iota
	toGive
	giving
)

// asked is a host's last request. One for a robots.txt does not count for the pace
// that the operator set, only for one that the host asks for.
type asked struct {
	at     time.Duration
	host   string
	robots bool
}

// wish is a request from outside for one URL.
type wish struct {
	url string
	id  string
	at  time.Duration // when it was made first
}

type warmKey struct {
	process int
	part    partition.ID
}

// Run carries out a scenario and checks its end. An error says which promise was
// broken; with the same Config it happens again.
func Run(cfg Config) (Result, error) {
	w, err := newWorld(cfg)
	if err != nil {
		return Result{}, err
	}
	if err := w.begin(); err != nil {
		return w.result, err
	}
	w.at(0, w.tick)
	w.at(0, w.pollWakes)
	w.at(0, w.pollIntake)
	if cfg.Cold {
		w.at(w.between(0, 20*time.Minute), w.command)
	}
	if cfg.Late {
		w.late = toGive
		w.at(w.between(0, 40*time.Minute), w.giveRest)
	}
	for range w.cfg.Recrawls / 2 {
		w.at(w.between(0, 20*time.Minute), w.recrawl)
	}
	for !w.done && w.err == nil {
		if len(w.heap) == 0 {
			return w.result, errors.New("the crawl stands still: no event is left")
		}
		e := heap.Pop(&w.heap).(event)
		w.now = e.at
		w.result.Events++
		if w.result.Events > maxEvents || w.now > maxVirtual {
			return w.result, fmt.Errorf("the crawl does not end: %d events, %v: %s", w.result.Events, w.now, w.heads())
		}
		e.do()
	}
	w.result.Virtual, w.result.Trace = w.now, w.trace.Sum64()
	if w.err != nil {
		return w.result, w.err
	}
	return w.result, w.check()
}

func newWorld(cfg Config) (*world, error) {
	web, err := simweb.New(cfg.Web)
	if err != nil {
		return nil, err
	}
	w := &world{
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x0b)), trace: fnv.New64a(), web: web,
		queues: embedded.NewQueues(nil), table: embedded.NewTable(nil), blobs: map[string][]byte{},
		scratch: fetch.NewScratch(fetch.Config{UserAgent: agent, Token: agent, Compression: blobschema.None}),
		memory:  &crawl.TickMemory{}, warm: map[warmKey]*crawl.Warm{}, hits: map[string]int{},
		asked: map[string]asked{}, pace: map[string]time.Duration{},
		bodies: map[embedded.Receipt][]byte{}, pinned: map[string]netip.Addr{},
	}
	w.result.Faults = map[string]int{}
	for _, q := range append([]string{blobschema.WakesQueue, blobschema.IntakeQueue}, w.mailboxes()...) {
		if err := w.queues.Create(q, embedded.QueueConfig{Visibility: 6 * time.Minute}); err != nil {
			return nil, err
		}
	}
	return w, nil
}

const agent = "orbweaver"

func (w *world) mailboxes() (names []string) {
	for p := range partition.ID(w.cfg.Partitions) {
		names = append(names, blobschema.MailboxQueue(p))
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
	key := binary.BigEndian.AppendUint64(make([]byte, 8), w.cfg.Seed)
	want := blobschema.Crawl{
		ID: "sim", HashKey: key, Created: epoch, Slots: w.cfg.Slots, Partitions: w.cfg.Partitions,
		Settings: blobschema.Settings{
			Scope: w.cfg.Scope, MaxDepth: w.cfg.MaxDepth, Delay: w.cfg.Delay, MaxPages: limit, Timeout: timeout, UserAgent: agent,
			PartitionBy: w.cfg.PartitionBy, Policy: w.cfg.Policy,
		},
	}
	b := crawl.NewBegin(want, seeds, nil)
	p := &proc{w: w, actor: b, kind: "begin", kindly: true}
	p.start()
	for {
		if ended, err := b.Ended(); ended {
			w.crawl, _, _ = b.Crawl()
			return err
		}
		e := heap.Pop(&w.heap).(event)
		w.now = e.at
		e.do()
	}
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

// giveRest gives the crawl the seeds and the limit that it was not begun with, as often as
// it takes.
func (w *world) giveRest() {
	if w.late != toGive {
		return
	}
	w.late = giving
	seeds, err := w.seedURLs()
	if err != nil {
		w.fail(err)
		return
	}
	b := crawl.NewBegin(blobschema.Crawl{}, seeds, func(c *blobschema.Crawl) error {
		c.Settings.MaxPages = w.cfg.MaxPages
		return nil
	})
	p := &proc{w: w, actor: b, kind: "give"}
	p.onEnd = func(err error) {
		if err != nil || p.dead {
			w.late = toGive
			w.at(w.between(0, time.Minute), w.giveRest)
			return
		}
		w.late, w.taken = givenAll, w.now
		w.crawl, _, _ = b.Crawl()
	}
	p.start()
}

// at has something done after d.
func (w *world) at(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.heap, event{at: w.now + d, seq: w.seq, do: do})
}

func (w *world) note(parts ...string) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(w.now))
	w.trace.Write(b[:])
	for _, p := range parts {
		w.trace.Write([]byte(p))
	}
	if w.cfg.Trace != nil {
		fmt.Fprintln(w.cfg.Trace, w.now, strings.Join(parts, " "))
	}
}

// chance draws a fault of a kind.
func (w *world) chance(kind string, p float64) bool {
	if p <= 0 || w.faults() >= w.cfg.Faults.MaxFaults || w.rng.Float64() >= p {
		return false
	}
	w.result.Faults[kind]++
	w.note("fault", kind)
	return true
}

func (w *world) faults() (n int) {
	for _, c := range w.result.Faults {
		n += c
	}
	return n
}

func (w *world) wall() time.Time { return epoch.Add(w.now) }

func (w *world) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(w.rng.Int64N(int64(hi-lo)+1))
}

// tick runs the coordinator, every minute.
func (w *world) tick() {
	w.at(time.Minute, w.tick)
	w.startTick()
}

func (w *world) startTick() {
	if w.ticking {
		return
	}
	w.ticking = true
	w.result.Ticks++
	cfg := crawl.TickConfig{Crawl: w.crawl.ID, Process: w.processName("tick"), Exclusive: w.cfg.Local, ResendAfter: w.cfg.Resend}
	if cfg.ResendAfter == 0 {
		cfg.ResendAfter = 10000 * time.Hour
	}
	memory := w.memory
	if w.cfg.Cold {
		memory = nil
	}
	k := crawl.NewTick(cfg, memory)
	p := &proc{w: w, actor: k, kind: "tick"}
	began := w.now
	p.onEnd = func(err error) {
		w.ticking = false
		if err != nil || p.dead {
			w.memory = &crawl.TickMemory{} // another process runs the next one
			return
		}
		if k.Report().Finished || k.Report().Limited {
			w.finish(began)
		}
	}
	p.start()
}

// pollWakes is the function trigger: every wake starts a step, whether or not one is
// at work already.
func (w *world) pollWakes() {
	pause := w.between(200*time.Millisecond, time.Second)
	if w.cfg.Local {
		pause /= 20
	}
	w.at(pause, w.pollWakes)
	free := 10
	if w.cfg.Concurrency > 0 {
		free = min(free, w.cfg.Concurrency-w.working())
	}
	if free <= 0 {
		return
	}
	got, err := w.queues.Receive(w.wall(), blobschema.WakesQueue, free)
	if err != nil {
		w.fail(err)
		return
	}
	for _, d := range got {
		_, part, err := blobschema.DecodeWake(d.Body)
		if err != nil {
			w.fail(err)
			return
		}
		w.at(w.between(0, 500*time.Millisecond), func() { w.startStep(part) })
		if err := w.queues.Ack(w.wall(), blobschema.WakesQueue, d.Receipt); err != nil {
			w.fail(err)
		}
	}
}

// working is the number of steps at work.
func (w *world) working() (n int) {
	for _, p := range w.live {
		if p.step != nil {
			n++
		}
	}
	return n
}

// command is the operator, who halts the crawl and has it go on some minutes later, now
// and then once more.
func (w *world) command() {
	w.order([]crawl.Order{crawl.OrderPause, crawl.OrderStop}[w.rng.IntN(2)])
	w.at(w.between(time.Second, 30*time.Minute), func() { w.order(crawl.OrderResume) })
	if w.rng.IntN(2) == 0 {
		w.at(w.between(30*time.Minute, 2*time.Hour), w.command)
	}
}

// order gives an order, until the crawl goes on if that is what it says.
func (w *world) order(o crawl.Order) {
	p := &proc{w: w, actor: crawl.NewCommand(w.crawl.ID, o), kind: string(o)}
	p.onEnd = func(err error) {
		if o == crawl.OrderResume && (err != nil || p.dead) {
			w.at(w.between(0, time.Minute), func() { w.order(o) })
		}
	}
	p.start()
}

func (w *world) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// processName names the process of a new actor.
func (w *world) processName(kind string) string {
	if w.cfg.Local {
		return fmt.Sprintf("local%d", w.process)
	}
	return fmt.Sprintf("%s%d", kind, w.procs)
}

func (w *world) seeds() []string {
	if w.cfg.Seeds != nil {
		return w.cfg.Seeds
	}
	return w.web.Seeds()
}

func (w *world) startStep(part partition.ID) {
	if w.cfg.Local && slices.ContainsFunc(w.live, func(p *proc) bool { return p.step != nil && p.part == part }) {
		return
	}
	w.result.Steps++
	cfg := crawl.StepConfig{
		Crawl: w.currentCrawl(), Partition: part, Process: w.processName("proc"), Exclusive: w.cfg.Local,
		Connections: w.cfg.Connections, Lease: 2 * time.Minute, MaxResident: w.cfg.MaxResident,
		SleepMax: 30 * time.Second, CommitEvery: 20 * time.Second, CommitPages: 40, MailEvery: w.cfg.MailEvery, Linger: 2 * time.Second,
		CrashesAllowed: w.crashesAllowed(),
		Retry:          polite.Retry{Attempts: 4, Wait: 5 * time.Second}, Token: agent, Software: agent,
	}
	if w.rng.IntN(4) == 0 {
		cfg.Deadline = w.between(10*time.Second, 5*time.Minute)
	}
	if w.cfg.Cold {
		cfg.SendsWakes, cfg.SleepMax, cfg.Linger = true, 2*time.Second, 200*time.Millisecond
	}
	// Several processes may serve a partition in turn, each with what it kept of it.
	at := warmKey{part: part}
	if !w.cfg.Local {
		at.process = w.rng.IntN(3)
	}
	warm := w.warm[at]
	delete(w.warm, at)
	s, err := crawl.NewStep(cfg, warm)
	if err != nil {
		w.fail(err)
		return
	}
	p := &proc{w: w, actor: s, step: s, part: part, kind: "step"}
	p.onEnd = func(err error) {
		switch {
		case p.dead:
		case err == nil:
			w.warm[at] = s.Warm()
			for host, d := range p.learnt {
				w.pace[host] = max(w.pace[host], d)
			}
			if !w.cfg.Cold && w.rng.IntN(2) == 0 {
				w.at(w.between(0, time.Second), w.startTick)
			}
		case errors.Is(err, crawl.ErrLeaseTaken), errors.Is(err, crawl.ErrLeaseLost), errors.Is(err, errInjected):
		default:
			w.fail(fmt.Errorf("step of partition %d at %v: %w", part, w.now, err))
		}
	}
	p.start()
}

func (w *world) currentCrawl() blobschema.Crawl { return w.crawl }

// heads describes how far the partitions are, for a failure.
func (w *world) heads() string {
	var b strings.Builder
	for p := range partition.ID(w.cfg.Partitions) {
		v, _, _ := w.table.Get(blobschema.HeadKey(w.crawl.ID, p))
		fmt.Fprintf(&b, "\n  %s", v)
	}
	return b.String()
}

// crashesAllowed keeps steps from blaming a URL for crashes that are injected.
func (w *world) crashesAllowed() int {
	if w.cfg.Killer != "" {
		return 0
	}
	return 1 << 30
}

// store lets package fsck read the world.
type store struct{ w *world }

// Record returns a record of the table.
func (s store) Record(_ context.Context, key string) ([]byte, bool, error) {
	v, _, ok := s.w.table.Get(key)
	return v, ok, nil
}

// Object returns an object.
func (s store) Object(_ context.Context, name string) ([]byte, error) {
	b, ok := s.w.blobs[name]
	if !ok {
		return nil, crawl.ErrNotFound
	}
	return b, nil
}

// List returns the names of all objects with a prefix, sorted.
func (s store) List(_ context.Context, prefix string) iter.Seq2[string, error] {
	var names []string
	for n := range s.w.blobs {
		if strings.HasPrefix(n, prefix) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return func(yield func(string, error) bool) {
		for _, n := range names {
			if !yield(n, nil) {
				return
			}
		}
	}
}

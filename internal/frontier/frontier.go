package frontier

import (
	"container/heap"
	"encoding/binary"
	"slices"
	"time"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Config is fixed for the life of a Frontier.
type Config struct {
	Hash   partition.Hash
	Policy Policy
	Token  string        // product token that robots.txt groups are matched with
	Delay  time.Duration // least time between the starts of two requests to a host
	Retry  polite.Retry  // how often a URL is tried, and when a host is given up
	// MaxResident bounds the URLs held in loaded slots, pending and settled; above it
	// slots with nothing due are unloaded. 0 is no bound.
	MaxResident int
}

// Frontier is the state of one partition. See the package documentation.
type Frontier struct {
	cfg    Config
	slots  map[partition.Slot]*slot
	hosts  map[string]*host
	ready  readyHeap
	timers timerHeap
	seq    uint32
	turn   uint64

	// Since the last delta.
	dirtyItems []*item
	settled    []blobschema.Seen
	dirtyHosts []*host
	examined   bool // a slot with unexamined entries was loaded: its summary changes
	floor      time.Time
	delta      uint64 // counts deltas
	committed  uint64 // the last delta known to be committed

	unloaded int // slots that are not loaded and hold something
	fresh    int // entries appended to them that are in no delta yet
	resident int
	counts   Counts
	refusals []Refusal
}

// Counts are figures of the whole frontier, loaded or not.
type Counts struct {
	Known      int64 // URLs, as far as examined
	Pending    int64 // of them not settled
	Unexamined int64 // appended to unloaded slots, perhaps known
	Hosts      int64 // in loaded slots
	Asked      int64 // requests under way
	WaitMillis int64 // time hosts stood ready but for their pace
}

// New returns an empty frontier, all of whose slots count as loaded.
func New(cfg Config) *Frontier {
	if cfg.Policy == nil {
		cfg.Policy = BreadthFirst{}
	}
	return &Frontier{cfg: cfg, slots: map[partition.Slot]*slot{}, hosts: map[string]*host{}}
}

// Added says what became of a URL.
type Added uint8

// The results of Add.
const (
	Known    Added = iota // nothing changed
	Fresh                 // not known before: pending now
	Lowered               // known already; its depth or generation changed
	Deferred              // its slot is not loaded: appended unexamined
)

// Add records a URL found at q.Depth; fp is its fingerprint. q.URL, q.Slot and q.Host
// are taken from u, whatever the caller says, and q.Rank from the policy. Adding a URL again changes nothing but a lower depth of
// one that is pending, or a higher generation.
func (f *Frontier) Add(now time.Time, u weburl.URL, fp uint64, q blobschema.Queued) Added {
	q.URL, q.Host = u.String(), string(u.Host())
	s := f.slot(f.cfg.Hash.Slot(q.Host))
	q.Slot = s.id
	q.Rank = f.cfg.Policy.URLRank(q)
	if !s.loaded {
		return f.append(s, fp, q)
	}
	return f.add(now, s, u, fp, q, true)
}

// append is Add for a slot that is not loaded. Where the slot's filter says that the
// URL is surely not there, it is new; else it may be known, and is left to be
// examined when the slot is loaded. The filter never makes anybody drop a URL.
func (f *Frontier) append(s *slot, fp uint64, q blobschema.Queued) Added {
	s.fresh = append(s.fresh, q)
	f.fresh++
	f.resident++
	if s.filter != nil && !s.filter.TestOrAdd(filterKey(fp)) {
		s.known++
		s.npending++
		f.counts.Known++
		f.counts.Pending++
		if s.due == 0 || s.due > 1 {
			s.due = 1
		}
		return Fresh
	}
	s.unexamined++
	f.counts.Unexamined++
	return Deferred
}

// newFilter returns a filter of all URLs of a loaded slot, with room for as many more:
// about 20 bits a URL, where keeping it loaded takes some hundred bytes.
func newFilter(s *slot) *bloom.BloomFilter {
	n := len(s.pending) + len(s.settled)
	b := bloom.NewWithEstimates(uint(2*n+64), 0.01)
	for fp := range s.pending {
		b.Add(filterKey(fp))
	}
	for fp := range s.settled {
		b.Add(filterKey(fp))
	}
	return b
}

func filterKey(fp uint64) []byte { return binary.LittleEndian.AppendUint64(nil, fp) }

// add is Add for a loaded slot; clean entries come from stored state.
func (f *Frontier) add(now time.Time, s *slot, u weburl.URL, fp uint64, q blobschema.Queued, dirty bool) Added {
	if m, ok := s.settled[fp]; ok {
		if q.Generation <= m.generation() {
			return Known
		}
		delete(s.settled, fp) // asked for again on purpose
		f.counts.Known--
		f.resident--
	}
	if it, ok := s.pending[fp]; ok {
		return f.rejoin(it, q, dirty)
	}
	h := f.host(s, q.Host)
	f.seq++
	it := &item{
		url: u, fp: fp, host: h, notBefore: q.NotBefore, seq: f.seq, rank: q.Rank,
		gen: q.Generation, depth: q.Depth, attempts: q.Attempts, flags: q.Flags,
	}
	s.pending[fp] = it
	f.counts.Known++
	f.counts.Pending++
	f.resident++
	h.push(it, now)
	if dirty {
		f.touch(it)
	}
	f.settleHost(h, now)
	return Fresh
}

// rejoin joins another entry of a pending URL into it, part by part, as merging
// runs does.
func (f *Frontier) rejoin(it *item, q blobschema.Queued, dirty bool) Added {
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
		it.flags |= q.Flags
	}
	if it.gen == old.gen && it.depth == old.depth && it.rank == old.rank && it.attempts == old.attempts && it.flags == old.flags {
		return Known
	}
	if !it.asked && it.rank != old.rank {
		heap.Init(&it.host.queue)
	}
	if dirty {
		f.touch(it)
	}
	return Lowered
}

// touch marks an item for the next delta.
func (f *Frontier) touch(it *item) {
	it.host.slot.touched = f.delta + 1
	if !it.dirty {
		it.dirty = true
		f.dirtyItems = append(f.dirtyItems, it)
	}
}

func (f *Frontier) touchHost(h *host) {
	h.slot.touched = f.delta + 1
	if !h.dirty {
		h.dirty = true
		f.dirtyHosts = append(f.dirtyHosts, h)
	}
}

// settle ends an item: it will not be asked for again in this generation.
func (f *Frontier) settle(it *item, state blobschema.State) {
	s := it.host.slot
	it.settled = true
	delete(s.pending, it.fp)
	s.settled[it.fp] = newMark(it.gen, state)
	s.touched = f.delta + 1
	f.counts.Pending--
	f.settled = append(f.settled, blobschema.Seen{Slot: s.id, Fingerprint: it.fp, Generation: it.gen, State: state})
}

func (f *Frontier) slot(id partition.Slot) *slot {
	s := f.slots[id]
	if s == nil {
		s = &slot{id: id, loaded: true, pending: map[uint64]*item{}, settled: map[uint64]mark{}}
		f.slots[id] = s
	}
	return s
}

func (f *Frontier) host(s *slot, name string) *host {
	h := f.hosts[name]
	if h == nil {
		h = &host{name: name, slot: s, pace: polite.NewPace()}
		if !f.floor.IsZero() {
			h.pace.Floor(f.floor, f.cfg.Delay)
		}
		f.hosts[name] = h
		s.hosts = append(s.hosts, h)
		f.counts.Hosts++
	}
	return h
}

// Counts returns the present figures.
func (f *Frontier) Counts() Counts { return f.counts }

// Dirty reports whether a delta would hold anything.
func (f *Frontier) Dirty() bool {
	return f.examined || f.fresh+len(f.dirtyItems)+len(f.settled)+len(f.dirtyHosts) > 0
}

// Delta returns what changed since the last delta, as a run to be committed, with
// what was observed of the hosts that were asked, and marks it as under way. It ends with Committed; a step whose commit fails drops
// the whole frontier.
func (f *Frontier) Delta() (*blobschema.Run, []blobschema.HostObservation) {
	f.delta++
	f.examined = false
	run := &blobschema.Run{Seen: f.settled}
	var observed []blobschema.HostObservation
	f.settled = nil
	for _, it := range f.dirtyItems {
		it.dirty = false
		if !it.settled {
			run.Queued = append(run.Queued, it.queued())
		}
	}
	f.dirtyItems = f.dirtyItems[:0]
	for _, h := range f.dirtyHosts {
		h.dirty = false
		h.version++
		run.Hosts = append(run.Hosts, blobschema.HostState{Slot: h.slot.id, Host: h.name, Version: h.version, Data: h.encode()})
		observed = append(observed, h.observation())
	}
	f.dirtyHosts = f.dirtyHosts[:0]
	if f.fresh > 0 {
		f.fresh = 0
		for _, id := range f.sortedSlots() {
			s := f.slots[id]
			run.Queued = append(run.Queued, s.fresh...)
			s.taken = append(s.taken, s.fresh...)
			s.fresh = nil
		}
	}
	return run, observed
}

// Committed says that the last delta is committed: slots untouched since may be
// unloaded, and appended entries need no copy in memory.
func (f *Frontier) Committed() {
	f.committed = f.delta
	defer f.room() // now slots can be unloaded: keep to the memory bound also while all is busy
	if f.unloaded == 0 {
		return
	}
	for _, s := range f.slots {
		if !s.loading {
			f.resident -= len(s.taken)
			s.taken = nil
		}
	}
}

func (f *Frontier) sortedSlots() []partition.Slot {
	ids := make([]partition.Slot, 0, len(f.slots))
	for id := range f.slots {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Summaries describes every slot that holds anything, by slot.
func (f *Frontier) Summaries() []blobschema.SlotSummary {
	out := make([]blobschema.SlotSummary, 0, len(f.slots))
	for _, id := range f.sortedSlots() {
		s := f.slots[id]
		sum := blobschema.SlotSummary{Slot: id, Known: s.known, Pending: s.npending, Unexamined: s.unexamined, Due: s.due}
		if s.loaded {
			sum.Known = uint32(len(s.pending) + len(s.settled))
			sum.Pending = uint32(len(s.pending))
			sum.Due = s.firstDue()
		}
		if sum != (blobschema.SlotSummary{Slot: id}) {
			out = append(out, sum)
		}
	}
	return out
}

// firstDue is when the first of the slot's pending URLs may be asked for, in Unix
// milliseconds; 1 for at once, 0 for never.
func (s *slot) firstDue() int64 {
	due := int64(0)
	for _, h := range s.hosts {
		t := int64(0)
		switch {
		case h.place == busy:
			t = 1
		case h.pending() > 0:
			t = max(1, h.readyAt().UnixMilli())
		}
		if t > 0 && (due == 0 || t < due) {
			due = t
		}
	}
	return due
}

package frontier

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Config is fixed for the life of a Frontier. Fields without a comment are those of [schedule.Config].
type Config struct {
	Hash      partition.Hash
	Partition partition.ID // whose commits hold the page records of settled URLs
	Policy    schedule.Policy
	Token     string
	Delay     time.Duration
	Retry     polite.Retry
	// MaxResident bounds the URLs held in memory, pending and settled. Above it parts with nothing under way are
	// unloaded, the latest due first; below it only parts that are not due make room for others. 0 is no bound.
	MaxResident int
	// MaxHostURLs and MaxDomainURLs bound the known URLs of one site, and those of one registrable
	// domain that this partition knows. URLs above the bound are counted, not kept, except
	// seeds and URLs requested. 0 is no bound.
	MaxHostURLs   int64
	MaxDomainURLs int64
	// Resolve is for keys that are addresses: the URLs of a name wait until its address is
	// known, and are forwarded there from then on. See Placements.
	Resolve   bool
	Topics    []schedule.Topic
	Began     time.Time
	Hosts     map[string]schedule.HostRule
	QueueBy   blobschema.QueueBy
	Queues    int
	Revisits  bool // revisits
	Threshold float64
	// MaxPart is how many URLs a part of a slot may hold before it is halved. 0 is no bound.
	MaxPart int
}

// Frontier is the state of one partition. It belongs to one step and is not safe for
// concurrent use.
//
// State is kept by slot, and a slot consists of parts: one, until it holds too many URLs
// (extendible hashing: Fagin, Nievergelt, Pippenger, Strong). A part is loaded, with its URLs
// in memory, or unloaded, with only a summary; URLs for an unloaded part are appended
// unexamined and de-duplicated when it is loaded, so that memory stays bounded however long
// the frontier grows, and however large one host is. The keys of a slot are in memory as long
// as any of its parts. Merging runs is a join, so nothing depends on their order.
type Frontier struct {
	cfg      Config
	schedule *schedule.Schedule
	slots    slots
	caps     caps
	names    *names // nil unless keys are addresses

	// Since the last delta.
	settled  []blobschema.Settled
	examined bool // a part with unexamined entries was loaded: its summary changes

	delta     uint64 // number of the last delta
	committed uint64 // the last delta known to be committed
	full      []*part
	refusals  []Refusal
	counts    Counts    // those of single calls, since New
	partDue   time.Time // see PartDue
	noRoom    time.Time // Wanted need not look for parts again before, unless somebody waits for one
}

// Counts are figures of the whole frontier, loaded or not.
type Counts struct {
	schedule.Counts       // WaitMillis since New
	Known           int64 // URLs, without those not examined
	Unexamined      int64 // appended to unloaded parts, perhaps known
	// Since New:
	Capped int64 // URLs left out for a cap
	Hits   int64 // URLs that came for a part in memory
	Misses int64 // URLs that came for a part that was not
	Halved int64 // parts that were halved
}

// New returns an empty frontier, all of whose slots count as loaded.
func New(cfg Config) *Frontier {
	f := &Frontier{
		cfg: cfg, slots: newSlots(), caps: caps{host: cfg.MaxHostURLs, domain: cfg.MaxDomainURLs, sizes: domainSizes{}},
		schedule: schedule.New(schedule.Config{
			Hash: cfg.Hash, Partition: cfg.Partition, Policy: cfg.Policy, Token: cfg.Token, Delay: cfg.Delay, Retry: cfg.Retry,
			Resolve: cfg.Resolve, Topics: cfg.Topics, Began: cfg.Began, Hosts: cfg.Hosts, QueueBy: cfg.QueueBy, Queues: cfg.Queues,
			Revisits: cfg.Revisits, Threshold: cfg.Threshold,
		}),
	}
	if cfg.Resolve {
		f.names = &names{f: f}
	}
	return f
}

// Counts returns the present figures.
func (f *Frontier) Counts() Counts {
	c, sum := f.counts, &f.slots.sum
	c.Counts, c.Known, c.Unexamined = f.schedule.Counts(), sum.known, sum.unexamined
	c.Pending += sum.pending
	return c
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
	q := l.Queued()
	p := f.slots.open(l.Slot).of(l.Fingerprint)
	if p.loaded && !p.Full() {
		f.counts.Hits++
		return f.add(now, p, f.schedule.Find(l.Key), l.URL, l.Fingerprint, &q, schedule.Outside)
	}
	f.counts.Misses++
	if f.caps.domainFull(nil, &q) {
		f.counts.Capped++
		return Capped
	}
	f.slots.append(p, q)
	if q.Rank == 0 {
		f.schedule.CountUrgent(&p.Pool, 1) // perhaps one too many, until the part is loaded
		f.noRoom = time.Time{}
	}
	return Deferred
}

// Again requests a URL on purpose: it comes before all that was found, and if it was settled it is
// pending once more, in the next generation. Its part must be loaded ([Frontier.Want]); otherwise
// nothing happens and the result is Deferred. The link's rank and generation are set here. request
// names the request from outside that this is part of: its repeats do nothing for 15 days. 0 is a
// request that is never repeated.
func (f *Frontier) Again(now time.Time, l Link, request uint64) Added {
	k, fp := f.schedule.Find(l.Key), l.Fingerprint
	p := f.slots.open(l.Slot).of(fp)
	if !p.loaded {
		return Deferred
	}
	p.want = false
	l.Generation, l.Flags, l.Ask = 0, l.Flags&^blobschema.FlagAgain, 0
	if l.Flags&blobschema.FlagSeed == 0 { // a seed that is tried again has the rank of any seed, and its page counts
		l.Rank = 0
	}
	if request != 0 {
		if k = f.schedule.Key(&p.slot.keys, l.Key); !f.schedule.FirstAsk(k, request, fp, now) {
			return Known
		}
	}
	q := l.Queued()
	switch i, at := p.find(fp); at {
	case inMarks:
		q.Generation = p.marks[i].gen + 1
	case inItems:
		if done, changed := f.schedule.Again(now, &p.Pool, i, &q); done {
			return lowered(changed)
		}
	}
	return f.add(now, p, k, l.URL, fp, &q, schedule.Outside)
}

func lowered(changed bool) Added {
	if changed {
		return Lowered
	}
	return Known
}

// add is Add for a loaded part. k is the URL's politeness key, nil if it is not in memory.
func (f *Frontier) add(now time.Time, p *part, k *schedule.Key, u weburl.URL, fp uint64, q *blobschema.Queued, from schedule.Source) Added {
	if rank := f.schedule.Rank(q.Generation, q.Rank); rank != q.Rank {
		found := *q
		found.Rank = rank
		q = &found
	}
	i, at := p.find(fp)
	if at == inMarks && q.Generation <= p.marks[i].gen {
		return Known
	}
	var added Added
	if at == inItems {
		added = lowered(f.schedule.Join(now, &p.Pool, i, q, from))
	} else {
		added = f.addNew(now, p, k, u, fp, q, from, i, at)
	}
	if from == schedule.Outside && (q.Rank == 0 || q.Generation > 0) {
		if i, at := p.find(fp); at == inItems { // else it was forwarded, or left out
			f.schedule.RetryRobots(now, &p.Pool, i)
		}
	}
	if at != inItems {
		f.watch(p, now)
	}
	return added
}

// addNew adds a URL that is not pending; mark and at say where it is.
func (f *Frontier) addNew(now time.Time, p *part, k *schedule.Key, u weburl.URL, fp uint64, q *blobschema.Queued, from schedule.Source, mark uint32, at kind) Added {
	isNew := at == absent && from != schedule.Stored
	if isNew && f.caps.domainFull(k, q) {
		return f.leaveOut(p, nil, u, fp, q, from)
	}
	if k == nil {
		k = f.schedule.Key(&p.slot.keys, q.Key)
	}
	settler := k
	if k, q = f.names.added(k, q); k != settler && from == schedule.Unexamined {
		from = schedule.Appended // the run has it under its name
	}
	if isNew && (f.caps.siteFull(f.schedule, k, u, q) || !p.Fits()) {
		return f.leaveOut(p, k, u, fp, q, from)
	}
	if k.Pinned() {
		f.names.forward(p, k, u, fp, q)
		return Fresh
	}
	i := f.schedule.Insert(now, &p.Pool, k, u, fp, q, from)
	p.insert(fp, i, inItems)
	if at == inMarks {
		if f.schedule.Settled(k, u) > 0 { // else it was refused before its name was pinned to what is near
			settler = k
		}
		p.SetPrevious(i, p.marks[mark].record())
		p.dropMark(mark)
		f.schedule.CountSettled(settler, u, -1)
		return Fresh
	}
	f.slots.sum.known++
	f.slots.resident++
	if from == schedule.Outside && !k.Placed() {
		f.caps.sizes.add(k.Domain(), 1)
	}
	return Fresh
}

// addSettled records a settled URL. Its origin is known when the commit that holds it
// begins; until then it has the previous one.
func (f *Frontier) addSettled(p *part, fp uint64, gen uint32, state blobschema.State, previous blobschema.RecordRef) {
	f.schedule.TouchPool(&p.Pool)
	p.addMark(newMark(&blobschema.Settled{Fingerprint: fp, Generation: gen, State: state, Record: previous}))
	f.settled = append(f.settled, blobschema.Settled{Slot: p.slot.id, Fingerprint: fp, Generation: gen, State: state})
}

// Refusal is a URL that was settled without a request, or given up with its site.
type Refusal struct {
	blobschema.Queued // its URL is below
	URL               weburl.URL
	Outcome           blobschema.Outcome
	Detail            string
}

// Refusals returns the URLs that were refused since the last call.
func (f *Frontier) Refusals() []Refusal {
	r := f.refusals
	f.refusals = nil
	return r
}

func (f *Frontier) refuse(u weburl.URL, q *blobschema.Queued, o blobschema.Outcome, detail string) {
	f.refusals = append(f.refusals, Refusal{*q, u, o, detail})
}

// Next returns the best request that may be made now, if there is one. Its key is
// busy until Done, or, if it allows several requests at once, until Begun. With urgentOnly it is
// one for a URL that is requested or due for a revisit.
func (f *Frontier) Next(now time.Time, urgentOnly bool) (schedule.Task, bool) {
	t, ok := f.schedule.Next(now, urgentOnly)
	f.settleEnded()
	return t, ok
}

// Begun says that the request of a task starts now. From now on its key may get another
// request, if it allows several at once; before, the time of that request was unknown.
func (f *Frontier) Begun(now time.Time, t schedule.Task) { f.schedule.Begun(now, t) }

// NextAt is when Next may have something that it has not now; zero when only a
// new URL or the end of a task can change that.
func (f *Frontier) NextAt() time.Time { return f.schedule.NextAt() }

// Rest describes the keys that wait, as of the last call that changed it.
func (f *Frontier) Rest() schedule.Rest { return f.schedule.Rest() }

// PendingOf returns the number of URLs of a topic that are not settled, of those in memory.
func (f *Frontier) PendingOf(topic uint8) int64 { return f.schedule.PendingOf(topic) }

// SetTopics changes priorities and slices of the topics, by number.
func (f *Frontier) SetTopics(topics []schedule.Topic) { f.schedule.SetTopics(topics) }

// Done ends a task with its outcome. A URL is settled, or queued again when the
// failure may pass and attempts are left. There is no page record of a name that was
// to be resolved, whatever the verdict: see Placements and Refusals.
func (f *Frontier) Done(now time.Time, t schedule.Task, o *actor.Outcome) schedule.Verdict {
	v, next := f.schedule.Answered(now, &t, o)
	f.settleEnded()
	f.names.answered(now, &t)
	if next != nil {
		p := f.slots.partOf(t.Key().Slot(), t.Fingerprint())
		f.add(now, p, t.Key(), t.Request.URL, t.Fingerprint(), next, schedule.Outside)
		if i, at := p.find(t.Fingerprint()); at == inItems {
			p.Visited(i, next, now)
		}
	}
	f.schedule.Close(now, &t, o)
	f.settleEnded()
	return v
}

// settleEnded settles the URLs that wait no longer.
func (f *Frontier) settleEnded() {
	ended := f.schedule.Ended()
	for i := range ended {
		e := &ended[i]
		p := f.slots.partOf(e.Key.Slot(), e.Fingerprint)
		f.addSettled(p, e.Fingerprint, e.Queued.Generation, e.State, e.Queued.Previous)
		p.Drop(e.Item)
		switch {
		case e.State == blobschema.Forwarded:
			f.names.sendOn(e.Key, e.URL, e.Fingerprint, &e.Queued)
		case !e.URL.IsZero():
			f.refuse(e.URL, &e.Queued, e.Outcome, e.Detail)
		}
	}
}

// SetThreshold says from which worth on a settled URL is revisited, in the unit of
// [schedule.Interval]; before the first call it is Config.Threshold.
// If it has fallen by much, revisits that wait come sooner: those of parts in memory from now on, others when they are
// loaded, which Wanted does for them.
func (f *Frontier) SetThreshold(now time.Time, threshold float64) {
	previous, replan := f.schedule.SetThreshold(threshold)
	if !replan {
		return
	}
	for p := range f.slots.parts {
		if p.loaded {
			f.schedule.Replan(now, &p.Pool, previous)
		} else if p.npending > 0 && p.replan == 0 {
			p.replan = previous
		}
	}
}

// Threshold is the one that revisits are planned with.
func (f *Frontier) Threshold() float64 { return f.schedule.Threshold() }

// Hint takes what a sitemap of a URL's own host says that was read just now: when its page was last modified. The next
// revisit comes sooner or later for that, as far as the host's word has been right before. A URL that does not wait for a
// revisit, or whose part is not loaded, stays as it is.
func (f *Frontier) Hint(now time.Time, host string, fp uint64, modified time.Time) {
	k := f.schedule.Find(host)
	if k == nil || !f.cfg.Revisits {
		return
	}
	if p, i, at := f.slots.find(k.Slot(), fp); at == inItems && !p.Full() {
		f.schedule.Hint(now, &p.Pool, i, modified)
	}
}

// Floor forbids any request to a key before at plus its pace. A step that
// takes over from one that crashed calls it on its empty frontier, because it cannot know
// the last requests of its predecessor (I9).
func (f *Frontier) Floor(at time.Time) { f.schedule.Floor(at) }

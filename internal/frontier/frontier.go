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
	// MaxHostURLs and MaxDomainURLs bound the URLs that this partition knows of one site and of one
	// registrable domain. URLs above the bound are counted and dropped, except seeds and requested URLs.
	// 0 is no bound.
	MaxHostURLs   int64
	MaxDomainURLs int64
	// Resolve is set if the politeness keys are addresses. Then the URLs of a name wait until its address
	// is known, and are forwarded to the address. See Placements.
	Resolve   bool
	Topics    []schedule.Topic
	Began     time.Time
	Hosts     map[string]schedule.HostRule
	Known     map[string]polite.Pace
	QueueBy   blobschema.QueueBy
	Queues    int
	Revisits  bool
	Threshold float64
	// MaxPart bounds the URLs of a part of a slot; a part above it is halved. 0 is no bound.
	MaxPart int
}

// Frontier is the state of one partition. It belongs to one step and is not safe for
// concurrent use.
//
// State is stored by slot. A slot has one part until it holds too many URLs, and then several
// (extendible hashing: Fagin, Nievergelt, Pippenger, Strong). The URLs of a loaded part are in memory;
// an unloaded part has only a summary. A URL for an unloaded part is appended unexamined, and
// de-duplicated when the part is loaded. So memory stays bounded, however large the frontier and
// each host grow. The keys of a slot are in memory while any of its parts is. The merge of runs is
// a join, so nothing depends on their order.
type Frontier struct {
	cfg      Config
	schedule *schedule.Schedule
	slots    slots
	caps     caps
	names    *names // nil unless keys are addresses

	// Since the last delta.
	settled  []blobschema.Settled
	examined bool // a part with unexamined entries was loaded, so its summary changes

	delta     uint64    // number of the last delta
	committed uint64    // number of the last committed delta
	full      []*part   // to be halved
	refusals  []Refusal // see Refusals
	counts    Counts    // only the figures since New
	partDue   time.Time // see PartDue
	awaited   bool      // see PartDue
	noRoom    time.Time // until then Wanted finds no room, unless somebody waits for a part
}

// Counts holds figures of the whole frontier, loaded or not.
type Counts struct {
	schedule.Counts       // WaitMillis since New
	Known           int64 // URLs, without the unexamined ones
	Unexamined      int64 // URLs appended to unloaded parts; some may be known
	// Since New:
	Capped int64 // URLs dropped because of a cap
	Hits   int64 // URLs that came for a loaded part
	Misses int64 // URLs that came for an unloaded part
	Halved int64 // parts that were halved
}

// New returns an empty frontier. All its slots count as loaded.
func New(cfg Config) *Frontier {
	f := &Frontier{
		cfg: cfg, slots: newSlots(), caps: caps{host: cfg.MaxHostURLs, domain: cfg.MaxDomainURLs, sizes: domainSizes{}},
		schedule: schedule.New(schedule.Config{
			Hash: cfg.Hash, Partition: cfg.Partition, Policy: cfg.Policy, Token: cfg.Token, Delay: cfg.Delay, Retry: cfg.Retry,
			Resolve: cfg.Resolve, Topics: cfg.Topics, Began: cfg.Began, Hosts: cfg.Hosts, Known: cfg.Known, QueueBy: cfg.QueueBy, Queues: cfg.Queues,
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

// Added is the result of adding a URL.
type Added uint8

// The results of Add and Again.
const (
	Known    Added = iota // nothing changed
	Fresh                 // now pending: the URL was new, or settled in a lower generation
	Lowered               // it was pending; its depth, rank, topic, flags or generation changed
	Deferred              // its part is not loaded, or to be halved: appended unexamined
	Capped                // its site or domain has too many URLs: counted and dropped
)

// Add records a link. A known URL changes only in these ways: a pending URL takes a lower depth, rank or
// topic, and further flags; a higher generation makes a URL pending again. If a higher generation comes
// while a request for the URL is under way, that request settles the lower one first.
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
	if q.Urgent() {
		f.schedule.CountUrgent(&p.Pool, 1) // if the URL is known, one too many until the part is loaded
		f.noRoom = time.Time{}
	}
	return Deferred
}

// Again adds a URL that somebody requested. It goes before all found URLs. If it was settled, it is pending
// again, in the next generation. Its part must be loaded ([Frontier.Want]); otherwise Again does nothing
// and returns Deferred. Again sets the rank and generation of the link. request is the id of the request
// from outside: for 15 days, Again ignores repeats of the same id for the URL. With 0, no call is a repeat.
func (f *Frontier) Again(now time.Time, l Link, request uint64) Added {
	k, fp := f.schedule.Find(l.Key), l.Fingerprint
	p := f.slots.open(l.Slot).of(fp)
	if !p.loaded {
		return Deferred
	}
	p.want = false
	l.Generation, l.Flags, l.Ask = 0, l.Flags&^blobschema.FlagAgain, 0
	if l.Flags&blobschema.FlagSeed == 0 { // a seed keeps its rank, so that its page counts against the page limit
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

// add is Add for a loaded part. k is the politeness key of the URL; nil if it is not in memory.
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
		if i, at := p.find(fp); at == inItems { // otherwise it was forwarded or dropped
			f.schedule.RetryRobots(now, &p.Pool, i)
		}
	}
	if at != inItems {
		f.watch(p, now)
	}
	return added
}

// addNew adds a URL that is not pending. mark and at are the result of find.
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
		from = schedule.Appended // the run holds it under the key of its name
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
		if f.schedule.Settled(k, u) > 0 { // otherwise it was settled before its name was pinned, and the name's key counts it
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

// addSettled records a settled URL. Delta sets its record reference; until then it has the previous one.
func (f *Frontier) addSettled(p *part, fp uint64, gen uint32, state blobschema.State, previous blobschema.RecordRef) {
	f.schedule.TouchPool(&p.Pool)
	p.addMark(newMark(&blobschema.Settled{Fingerprint: fp, Generation: gen, State: state, Record: previous}))
	f.settled = append(f.settled, blobschema.Settled{Slot: p.slot.id, Fingerprint: fp, Generation: gen, State: state})
}

// Refusal is a URL that was settled without a request.
type Refusal struct {
	blobschema.Queued // without the URL
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

// Next returns the best request that is allowed now, if there is one. Its key is busy until Done, or
// until Begun if it allows several requests at once. With urgentOnly, Next returns only requests for
// URLs that somebody requested, and due revisits.
func (f *Frontier) Next(now time.Time, urgentOnly bool) (schedule.Task, bool) {
	t, ok := f.schedule.Next(now, urgentOnly)
	f.settleEnded()
	return t, ok
}

// Begun records that the request of a task starts now: see [schedule.Schedule.Begun].
func (f *Frontier) Begun(now time.Time, t schedule.Task) { f.schedule.Begun(now, t) }

// NextAt returns when time alone makes another request possible; zero if only a new URL or the end of
// a task can.
func (f *Frontier) NextAt() time.Time { return f.schedule.NextAt() }

// Rest returns the figures of the keys that wait, as of the last change.
func (f *Frontier) Rest() schedule.Rest { return f.schedule.Rest() }

// PendingOf returns the number of pending URLs of a topic in memory.
func (f *Frontier) PendingOf(topic uint8) int64 { return f.schedule.PendingOf(topic) }

// SetTopics changes priorities and slices of the topics, by number.
func (f *Frontier) SetTopics(topics []schedule.Topic) { f.schedule.SetTopics(topics) }

// Done ends a task with its outcome. The URL is settled, or queued again if the failure is temporary and
// attempts are left. The resolution of a name has no page record, whatever the verdict: see Placements
// and Refusals.
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

// settleEnded settles the URLs that ended in the schedule.
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

// SetThreshold sets the worth from which a settled URL is revisited, in the unit of [schedule.Interval].
// Before the first call it is Config.Threshold. After a large fall, waiting revisits are planned again: those
// of loaded parts now, and those of other parts when they are loaded, which Wanted then demands.
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

// Threshold returns the threshold that revisits are planned with.
func (f *Frontier) Threshold() float64 { return f.schedule.Threshold() }

// Hint takes the time of the last modification of a page from a sitemap of its own host that was read just now. It
// moves the next revisit, by as much as the sitemaps of the host have been right before. It changes nothing if
// the URL does not wait for a revisit or its part is not loaded.
func (f *Frontier) Hint(now time.Time, host string, fp uint64, modified time.Time) {
	k := f.schedule.Find(host)
	if k == nil || !f.cfg.Revisits {
		return
	}
	if p, i, at := f.slots.find(k.Slot(), fp); at == inItems && !p.Full() {
		f.schedule.Hint(now, &p.Pool, i, modified)
	}
}

// Floor forbids any request to a key before at plus its pace. A step that follows a crashed one calls it
// on its empty frontier, because nobody knows the last requests of the crashed step (I9).
func (f *Frontier) Floor(at time.Time) { f.schedule.Floor(at) }

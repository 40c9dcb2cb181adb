package crawl

import (
	"errors"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/partition"
)

// StepConfig says how a step works. Durations that are zero take the default.
type StepConfig struct {
	Crawl     blobschema.Crawl
	Partition partition.ID
	Process   string // unique to the process
	// Exclusive says that no other process can be at work on this crawl: leases of
	// other processes are void (the embedded platform, where a folder has one owner).
	Exclusive   bool
	Connections int           // requests under way at once; default 64
	Lease       time.Duration // default 2 min
	Margin      time.Duration // no request lasts past the lease's end less this; default 5 s
	CommitEvery time.Duration // longest time that work stays uncommitted; default 30 s
	CommitMin   time.Duration // least time between commits made for a starving partition, unless all starve; default 100 ms
	CommitPages int           // pages that make a commit; default 4,000
	MergeFanIn  int           // runs of one tier that are merged into one of the next; default 8
	MailEvery   time.Duration // longest time that links for others are held; default CommitEvery
	Linger      time.Duration // how long a step with nothing to do waits for mail; default 1 s
	SleepMax    time.Duration // how long it waits for a host that is not ready yet; default for ever
	Deadline    time.Duration // of the whole step, from its start; 0 for none
	MaxResident int           // see frontier.Config
	MaxPart     int           // see frontier.Config; default 1<<17, or a quarter of MaxResident if that is less
	Retry       polite.Retry
	Policy      frontier.Policy // for experiments; nil: what the crawl's settings name
	// CrashesAllowed is how many steps may crash, without a commit that settles a URL, before the next
	// are careful for a while: they ask for one URL at a time, and name it in a commit first.
	// Default 2.
	CrashesAllowed int
	// SendsWakes says that ticks are minutes apart, so that the step sends the wakes itself
	// that cannot wait so long: for its partition's later work, and to partitions it mails
	// much to.
	SendsWakes bool
	// Spent is what the process was billed for since the step began; nil: that is not counted.
	Spent      func() blobschema.Calls
	Token      string // product token for robots.txt
	Software   string // for warcinfo
	Compressed bool   // WARC records are gzip members
}

func (c StepConfig) withDefaults() StepConfig {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.Lease, 2*time.Minute)
	def(&c.Margin, 5*time.Second)
	def(&c.CommitEvery, 30*time.Second)
	def(&c.CommitMin, 100*time.Millisecond)
	def(&c.MailEvery, c.CommitEvery)
	def(&c.Linger, time.Second)
	def(&c.SleepMax, 1<<62)
	if c.Connections == 0 {
		c.Connections = 64
	}
	if c.CrashesAllowed == 0 {
		c.CrashesAllowed = 2
	}
	if c.MergeFanIn == 0 {
		c.MergeFanIn = mergeFanIn
	}
	if c.MaxPart == 0 {
		if c.MaxPart = 1 << 17; c.MaxResident > 0 {
			c.MaxPart = min(c.MaxPart, max(1, c.MaxResident/4))
		}
	}
	if c.CommitPages == 0 {
		c.CommitPages = 4000
	}
	return c
}

// carefulRequests is how long the first alarm makes steps careful; each further one
// four times longer, so that a URL that crashes steps is found among any number.
const (
	carefulRequests = 32
	maxAlarms       = 8
)

// enoughPending is how many pending URLs make a step that has few hosts at work wait
// for mail until it comes by itself.
const enoughPending = 256

// suspectCrashes is how often a URL may crash a careful step before it is refused. A
// few may be chance: a process that somebody kills again and again.
const suspectCrashes = 5

// Errors that end a step early. Both are normal: another step goes on.
var (
	ErrLeaseTaken = errors.New("another step holds the lease")
	ErrLeaseLost  = errors.New("the lease was lost to another step")
)

// Warm is what a step leaves to the next one in the same process, which may use it
// if the head still names the same commit.
type Warm struct {
	commit string
	st     *state
}

// state is what a step knows of its partition; all of it is in commits.
type state struct {
	man     blobschema.Manifest // of the last commit
	f       *frontier.Frontier
	out     map[partition.ID]*outgoing
	marks   map[partition.ID]*marks
	totals  blobschema.Totals // as they are now, counts of the frontier apart
	sent    *sentFilter
	policy  frontier.Policy
	scopes  scopes
	topics  []blobschema.Topic // that scopes and frontier are of
	made    string             // see madeWith
	seeds   int                // batches of seeds whose hosts are in the scope
	wish    blobschema.Wish
	indexes map[string]*blobschema.RunIndex
	merged  *merged // a finished merge, for the next commit
	ter     *territory

	payloads recent[string, blobschema.Original] // where the payloads of the pages stored last are, by digest
	formers  formers
	encoder  *warc.Encoder
}

// Step is one invocation's work on one partition: it takes the lease, loads the
// state, fetches and commits until there is nothing to do or time is up, and
// releases the lease. It is an [actor.Actor].
//
// It stands between the queues and the web. Mail comes in with URLs, the frontier says
// which of them may be asked for now, answers come back as records and links, and a
// commit makes all of it visible at once and names the mail for other partitions.
// Kept here, by the numbers of docs/invariants.md:
//
//   - I3: a slot leaves in one commit of its holder and comes with one of its receiver, who
//     takes only what is newer than anything it has seen of the slot (move.go).
//   - I4: a step works under a lease and a fence; the head is replaced by
//     compare-and-set only, so what was begun under an older fence is never named.
//   - I5: mail is acknowledged after the commit that holds its effect, and numbered, so
//     that what comes again is known.
//   - I6: object names carry partition, sequence and fence; nothing is put twice with
//     different content.
//   - I7: what leaves one partition's commit is named in its manifest until it was sent,
//     and sent again by the tick until it was applied.
//   - I8: a page is visible when the head names its commit; what a crashed step fetched
//     is not. It is not deleted here either: 'fsck --repair' does that.
//   - I9: no request starts or lasts past the lease less a margin, and after a takeover
//     every host is left alone for its pace. The pace itself is package polite's.
type Step struct {
	actor.Loop
	cfg    StepConfig
	links  frontier.Mapping
	policy frontier.Policy
	head   blobschema.Head
	rev    actor.Revision
	st     *state
	batch  *batch

	leaseEnd    actor.Now
	careful     int // requests still to be made one at a time, named by a commit first
	alarms      int
	clearing    bool           // the suspect did no harm: commit that before going on
	suspects    map[string]int // how often a step crashed over a URL while asking for nothing else
	suspect     *frontier.Task // waits for the commit that names it
	floor       time.Time      // hosts may not be asked before this plus their pace
	warcs       int
	running     bool
	busy        bool // the main task commits, renews or ends
	stopping    bool
	closed      bool // its last commit is under way: no more mail is applied
	timeUp      bool // its deadline has come
	halted      bool // the operator wants no more of it
	paused      bool
	look        bool // the wish is to be read now
	inflight    int  // fetches
	reserved    int64
	loading     int
	merging     bool
	rescanning  bool
	refilling   bool
	granted     int64
	exhausted   bool // no grant is to be had
	publishing  int
	unsent      []uint64
	mailed      map[partition.ID]int       // links mailed to partitions since they were last looked after
	awake       map[partition.ID]time.Time // partitions with a step at work, until then at least
	taken       blobschema.Head            // as the step before left it
	appetites   map[partition.ID]Appetite  // of the other partitions, where not Fed
	hungry      bool
	lastCommit  time.Time
	lastMail    time.Time
	dead        map[string]bool        // messages put aside by this step
	asking      map[string]bool        // mail with requests that is being looked at
	waited      map[partition.Slot]int // of it, what waits for a slot
	heard       bool                   // the first receive has been answered: before, nobody knows whether there is mail
	idleSince   time.Time              // zero while there is something to do
	alarm       time.Time              // of the earliest Sleep under way
	sinceCommit int                    // pages
	later       []actor.Message        // mail from senders with a newer map
	pulling     bool                   // looks for slots that are to come
	gaveTo      []partition.ID         // since the last commit
	informed    bool                   // it has read the crawl record itself
	requested   bool                   // an answer that somebody asked for is not committed yet
}

// NewStep returns a step for one partition. warm may be nil.
func NewStep(cfg StepConfig, warm *Warm) (*Step, error) {
	cfg = cfg.withDefaults()
	links, err := mapping(&cfg.Crawl)
	if err != nil {
		return nil, err
	}
	policy, err := policyOf(&cfg.Crawl, cfg.Policy)
	if err != nil {
		return nil, err
	}
	s := &Step{
		cfg: cfg, links: links, policy: policy, batch: &batch{},
		suspects: map[string]int{}, dead: map[string]bool{}, asking: map[string]bool{}, waited: map[partition.Slot]int{},
		mailed: map[partition.ID]int{}, awake: map[partition.ID]time.Time{},
	}
	s.head.Partition = cfg.Partition
	if warm != nil && warm.st.made == madeWith(&cfg.Crawl.Settings) {
		s.st = warm.st
		s.head.Commit = warm.commit
	}
	return s, nil
}

// Start begins the step.
func (s *Step) Start(now actor.Now) []actor.Issue {
	s.Begin(now)
	s.Spawn(s.main)
	return s.after()
}

// Handle takes the reply to an effect.
func (s *Step) Handle(now actor.Now, r actor.Reply) []actor.Issue {
	s.Deliver(now, r)
	return s.after()
}

// Signal takes a signal from outside.
func (s *Step) Signal(now actor.Now, sig Signal) []actor.Issue {
	s.Advance(now)
	switch sig := sig.(type) {
	case Stop:
		s.stop()
	case Look:
		s.look = true
	case Appetites:
		s.appetites = sig.Of
	}
	return s.after()
}

// Appetite says how much a step wants mail.
type Appetite uint8

// The appetites.
const (
	Fed     Appetite = iota // enough hosts are at work
	Hungry                  // few are
	Starved                 // none is, nor will be soon
)

// Appetite says whether others should send what they hold for this partition.
func (s *Step) Appetite() Appetite {
	switch {
	case !s.running || s.stopping || s.paused || s.exhausted:
		return Fed
	case !s.idleSince.IsZero():
		return Starved
	case s.hungry:
		return Hungry
	}
	return Fed
}

// Warm returns what the next step in this process may go on with, nil if this one
// did not end well.
func (s *Step) Warm() *Warm {
	if ended, err := s.Ended(); !ended || err != nil || s.st == nil {
		return nil
	}
	return &Warm{commit: s.head.Commit, st: s.st}
}

// Pages is the number of pages that the step has stored so far.
func (s *Step) Pages() int64 {
	if s.st == nil {
		return 0
	}
	return s.st.totals.Pages - s.taken.Totals.Pages
}

// Progress is a step's figures as they are now, for a display.
type Progress struct {
	Totals blobschema.Totals
	Active int // requests under way
	Rest   frontier.Rest
}

// Progress returns the live figures; false before the state is loaded.
func (s *Step) Progress() (Progress, bool) {
	if !s.running {
		return Progress{}, false
	}
	return Progress{Totals: s.snapshotTotals(), Active: s.inflight, Rest: s.st.f.Rest()}, true
}

// Resting reports whether no request is under way.
func (s *Step) Resting() bool { return s.running && s.inflight == 0 }

// after runs what follows from an event, and sets the alarm for what follows from
// time alone.
func (s *Step) after() []actor.Issue {
	s.Turn()
	if ended, _ := s.Ended(); s.running && !ended {
		s.kick()
		s.Turn()
		s.setAlarm()
	}
	return s.Flush()
}

// main is the step from beginning to end.
func (s *Step) main(t *actor.Task) error {
	if err := s.take(t); err != nil {
		return err
	}
	if err := s.load(t); err != nil {
		return err
	}
	s.running = true
	s.lastCommit = s.Clock()
	s.lastMail = s.lastCommit
	s.Spawn(s.receive)
	s.pull()
	for {
		t.Await(func() bool { return s.decide() != wait })
		var err error
		s.busy = true
		switch s.decide() {
		case commitNow:
			err = s.commit(t)
		case renewNow:
			err = s.renew(t)
		case lookNow:
			err = s.obeyWish(t)
		case endNow:
			return s.finish(t)
		}
		s.busy = false
		if err != nil {
			return err
		}
	}
}

type decision uint8

const (
	wait decision = iota
	commitNow
	renewNow
	lookNow
	endNow
)

// decide says what the main task does next. It looks at state and time only.
func (s *Step) decide() decision {
	now := s.Clock()
	if s.cfg.Deadline > 0 && s.Age() >= s.cfg.Deadline {
		s.timeUp = true
		s.stop()
	}
	since := now.Sub(s.lastCommit)
	switch {
	case s.stopping && s.inflight == 0 && s.loading == 0 && !s.merging && !s.rescanning && !s.refilling:
		return endNow
	case s.suspect != nil || s.clearing:
		return commitNow
	case s.sinceCommit >= s.cfg.CommitPages, s.fullOfMail():
		return commitNow
	case since >= s.commitEvery(now) && s.dirty(), s.requested && since >= s.requestedAfter():
		return commitNow
	case since >= s.feedAfter(), s.handsOver(since):
		return commitNow
	case !s.idleSince.IsZero() && since >= s.idleAfter() && (s.dirty() || s.held() > 0):
		return commitNow // nothing else will come of waiting, and others may wait for this
	case s.leaseLeft() <= s.cfg.Lease*2/3: // the alarm is set for when it is so much
		return renewNow
	case s.look:
		return lookNow
	case s.over(now):
		return endNow
	}
	return wait
}

// requestedAfter is how long after the last commit an answer that somebody asked for is
// committed: the one who asked waits for it.
func (s *Step) requestedAfter() time.Duration {
	return max(s.cfg.CommitMin, min(s.cfg.CommitEvery, 5*time.Second))
}

// idleAfter is how long after the last commit an idle step commits what came in since:
// at once in a young step, later in an old one, where it is mostly mail that brings
// nothing new.
func (s *Step) idleAfter() time.Duration {
	if s.allStarve() {
		return min(s.cfg.CommitMin, 50*time.Millisecond)
	}
	return max(s.cfg.CommitMin, min(400*time.Millisecond, s.lastCommit.Sub(s.Begun())/8))
}

// allStarve reports whether no other partition has anything to do either: whatever this
// step holds is all that can make the crawl go on.
func (s *Step) allStarve() bool {
	for p := range partition.ID(s.partitions()) {
		if p != s.cfg.Partition && s.appetites[p] != Starved {
			return false
		}
	}
	return true
}

// over reports whether an idle step should end rather than wait on.
func (s *Step) over(now time.Time) bool {
	if s.idleSince.IsZero() || s.publishing > 0 || s.dirty() || now.Sub(s.idleSince) < s.cfg.Linger {
		return false
	}
	if s.asksNothing() {
		return true
	}
	next := s.st.f.NextAt()
	return next.IsZero() || next.Sub(now) > s.cfg.SleepMax
}

func (s *Step) stop() {
	if !s.stopping {
		s.stopping = true
		if t := s.suspect; t != nil {
			s.suspect = nil
			s.done(*t, actor.Aborted(t.Request, s.Now().Wall))
		}
		s.Issue(actor.CancelFetches{}, func(actor.Reply) {})
	}
}

// kick starts as many requests as may be made now, and finds out whether the step
// is idle.
func (s *Step) kick() {
	now := s.Clock()
	more := true
	for more && s.mayFetch() {
		var t frontier.Task
		if t, more = s.st.f.Next(now, s.limited()); more {
			s.begun(t)
		}
		s.refusals()
		s.placements()
	}
	if !more || s.inflight == 0 {
		s.loadWanted(now)
	}
	s.hungry = s.inflight <= s.cfg.Connections/8 && s.st.f.Counts().Pending < enoughPending && s.loading == 0 && s.nothingWithin(now, time.Second)
	idle := s.heard && s.inflight == 0 && s.loading == 0 && !s.rescanning && !s.refilling && s.suspect == nil && !s.stopping && len(s.asking) == s.stuck() &&
		(s.asksNothing() || s.nothingWithin(now, min(s.cfg.SleepMax, s.cfg.CommitEvery)))
	switch {
	case !idle:
		s.idleSince = time.Time{}
	case s.idleSince.IsZero():
		s.idleSince = now
	}
}

// nothingWithin reports that no host is, or becomes, ready in the next d.
func (s *Step) nothingWithin(now time.Time, d time.Duration) bool {
	next := s.st.f.NextAt()
	return next.IsZero() || next.Sub(now) > d
}

func (s *Step) mayFetch() bool {
	if s.stopping || s.paused || s.rescanning || s.suspect != nil || s.clearing || s.inflight >= s.cfg.Connections || s.careful > 0 && s.inflight > 0 {
		return false
	}
	if s.leaseLeft() <= s.cfg.Margin {
		return false
	}
	if s.limited() {
		n := s.st.f.Counts()
		if !s.refilling && !s.exhausted && n.Pending > n.Urgent+n.Looks {
			s.refilling = true
			s.Spawn(s.refill)
		}
		// A look waits until it is known whether more is granted: what was found has its turn.
		return n.Urgent > 0 || looks(&s.cfg.Crawl.Settings) && !s.refilling
	}
	return true
}

// limited reports whether the limit on pages leaves nothing to ask for but what is asked
// for on purpose, or looked at again.
func (s *Step) limited() bool {
	return s.cfg.Crawl.Settings.MaxPages > 0 && s.granted-s.st.totals.Pages-s.reserved <= 0
}

// asksNothing reports whether the step may not ask for anything that it knows, whatever is
// due: it is paused, or the limit on pages is reached, nothing is asked for on purpose, and nothing
// is looked at again.
func (s *Step) asksNothing() bool {
	return s.paused || s.exhausted && s.st.f.Counts().Urgent == 0 && !looks(&s.cfg.Crawl.Settings)
}

// begun starts the request of a task, or sets it aside until a commit names it.
func (s *Step) begun(t frontier.Task) {
	u := t.Request.URL.String()
	switch {
	case s.suspects[u] >= suspectCrashes:
		o := actor.Aborted(t.Request, s.Now().Wall)
		o.Page.Outcome, o.Page.Detail, o.Temporary = blobschema.OutcomeSuspect, "asking for it crashed the crawler again and again", false
		s.done(t, o)
	case s.careful > 0:
		s.suspect = &t
	default:
		s.fetch(t)
	}
}

func (s *Step) fetch(t frontier.Task) {
	s.inflight++
	if counted(t) {
		s.reserved++
	}
	if t.Former() == (blobschema.Origin{}) {
		s.ask(t)
		return
	}
	s.Spawn(func(tk *actor.Task) error {
		if p := s.former(tk, t.Former(), t.Request.URL.String()); p != nil {
			if p.Outcome.Answered() {
				t.Request.Former = p
			}
			if t.Request.Depth == 0 && t.Flags&blobschema.FlagSeed == 0 { // a request from outside tells no depth
				t.Request.Depth = p.Depth
			}
		}
		if s.stopping || s.leaseLeft() <= s.cfg.Margin { // reading took its time
			s.answered(t, actor.Aborted(t.Request, s.Now().Wall))
			return nil
		}
		s.ask(t)
		return nil
	})
}

// counted reports whether a task's page counts against the limit on pages.
func counted(t frontier.Task) bool {
	return !t.Request.Robots && !t.Request.Resolve && !t.Urgent() && !t.Look()
}

// fetchDeadline is the end of all requests under way, unless the lease is renewed before.
func (s *Step) fetchDeadline() time.Time { return s.Now().Wall.Add(s.leaseLeft() - s.cfg.Margin) }

// ask issues the request of a task.
func (s *Step) ask(t frontier.Task) {
	// A request that takes at most half a step comes to its end sooner or later: one that the end of a step
	// aborts is made again, and is no attempt.
	t.Request.Longest, t.Request.Deadline = s.cfg.Deadline/2, s.fetchDeadline()
	asked, ahead := s.Clock(), s.Clock().Sub(s.Now().Wall)
	s.st.f.Begun(asked, t)
	s.Issue(actor.Fetch{Request: t.Request}, func(r actor.Reply) {
		o, ok := r.Value.(*actor.Outcome)
		if !ok || r.Err != nil {
			o = actor.Aborted(t.Request, s.Now().Wall)
		}
		if o.Started.IsZero() { // it may have reached the host, later than the frontier knows (I9)
			o.Started = asked
		} else { // by the executor's wall clock, which may have been set since the step began
			o.Started = o.Started.Add(ahead)
		}
		s.answered(t, o)
	})
}

func (s *Step) answered(t frontier.Task, o *actor.Outcome) {
	s.inflight--
	if counted(t) {
		s.reserved--
	}
	if t.Urgent() && !t.Request.Robots && !t.Request.Resolve {
		s.requested = true
	}
	s.done(t, o)
}

// setAlarm makes sure that the step is called again when time alone changes what it
// would do.
func (s *Step) setAlarm() {
	now := s.Clock()
	var at time.Time
	sooner := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) { // what is past was looked at just now
			at = t
		}
	}
	if s.mayFetch() {
		sooner(s.st.f.NextAt())
	}
	if !s.busy { // else what the main task does next is decided when it is done
		if s.dirty() {
			sooner(s.lastCommit.Add(s.commitEvery(now)))
		}
		if s.requested {
			sooner(s.lastCommit.Add(s.requestedAfter()))
		}
		if after := s.feedAfter(); after < never {
			sooner(s.lastCommit.Add(after))
		}
		if len(s.st.ter.owed)+len(s.st.ter.arrived) > 0 {
			sooner(s.lastCommit.Add(s.cfg.CommitMin))
			sooner(s.lastCommit.Add(giveRest))
		}
		if !s.idleSince.IsZero() {
			sooner(s.lastCommit.Add(s.idleAfter()))
			sooner(s.idleSince.Add(s.cfg.Linger))
		}
		sooner(now.Add(s.leaseLeft() - s.cfg.Lease*2/3))
	}
	if s.cfg.Deadline > 0 && !s.stopping {
		sooner(now.Add(s.cfg.Deadline - (s.Age())))
	}
	if at.IsZero() {
		return
	}
	if !s.alarm.IsZero() && !s.alarm.After(at) {
		return
	}
	s.alarm = at
	s.Issue(actor.Sleep{For: at.Sub(now)}, func(actor.Reply) {
		if s.alarm.Equal(at) {
			s.alarm = time.Time{}
		}
	})
}

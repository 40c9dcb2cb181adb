package crawl

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// Step is one invocation's work on one partition. It takes the lease, loads the state, fetches and commits until there is
// nothing to do or its time is up, and releases the lease. It is an [actor.Actor].
//
// A step keeps these invariants, by the numbers of docs/invariants.md:
//
//   - I3: a slot leaves in one commit of its holder and arrives in one commit of its receiver, which
//     takes only what is newer than anything it has seen of the slot (handover.go).
//   - I4: a step works under a lease and a fence. The head is replaced by compare-and-set only, so
//     nothing that was begun under an older fence is ever named (lease.go).
//   - I5: mail is acknowledged after the commit that holds its effect. It is numbered, so a repeated
//     delivery is recognised (inbox.go).
//   - I6: object names carry partition, sequence and fence. Nothing is put twice with different content.
//   - I7: what leaves one partition's commit is named in its manifest until it was sent. The
//     coordinator resends it until it was applied (outbox.go, resend.go).
//   - I8: a page is visible when the head names its commit. What a crashed step fetched is not
//     visible; 'fsck --repair' deletes it.
//   - I9: no request starts or lasts past the lease less a margin. After a takeover the step leaves
//     every host alone for its pace. Package polite computes the pace.
type Step struct {
	actor.Loop
	cfg   StepConfig
	doing *duty     // current duty of the main task; nil: it waits
	timer time.Time // end of the earliest pending Sleep; zero: no Sleep
	lease lease
	st    *state // nil until it is loaded

	orders  orders
	inbox   inbox
	outbox  outbox
	budget  budget
	care    care
	reading reading

	underWay  int       // requests
	idleSince time.Time // start of the idle time; zero: there is something to do
	hungry    bool      // few requests are under way and few URLs are pending
}

// orders are the operator's orders that the step has read.
type orders struct {
	paused    bool
	halted    bool // no step is wanted any more
	signalled bool // the orders must be read now
	informed  bool // this step has read the crawl record itself
}

// reading is the state of the tasks that run beside the main task.
type reading struct {
	parts  bool      // a task loads parts of slots
	next   time.Time // due time of the next part that is not in memory; zero: unknown
	merge  bool      // a task merges runs
	rescan bool      // a task follows links that were out of scope before
}

// NewStep returns a step for one partition. warm may be nil.
func NewStep(cfg StepConfig, warm *Warm) (*Step, error) {
	cfg = cfg.withDefaults()
	if _, err := mapping(&cfg.Crawl); err != nil {
		return nil, err
	}
	if _, err := policyOf(&cfg.Crawl, cfg.Policy); err != nil {
		return nil, err
	}
	s := &Step{cfg: cfg, inbox: newInbox()}
	s.lease = lease{Loop: &s.Loop, cfg: &s.cfg}
	s.lease.head.Partition = cfg.Partition
	s.outbox = newOutbox(&s.lease)
	s.budget.lease = &s.lease
	if warm != nil && warm.st.made == madeWith(&cfg.Crawl.Settings) {
		s.st = warm.st
		s.lease.head.Commit = warm.commit
	}
	return s, nil
}

func (s *Step) Start(now actor.Now) []actor.Issue {
	s.Begin(now)
	s.Spawn(s.main)
	return s.after()
}

// Handle delivers the reply to an effect.
func (s *Step) Handle(now actor.Now, r actor.Reply) []actor.Issue {
	s.Deliver(now, r)
	return s.after()
}

// Signal delivers a signal from outside.
func (s *Step) Signal(now actor.Now, sig Signal) []actor.Issue {
	s.Advance(now)
	switch sig := sig.(type) {
	case Stop:
		s.stop()
	case ReadOrders:
		s.orders.signalled = true
	case Demands:
		s.outbox.demands = sig.Of
	}
	return s.after()
}

// after runs what follows from an event, and sets the timer for what follows from time alone.
func (s *Step) after() []actor.Issue {
	s.Turn()
	if ended, _ := s.Ended(); s.lease.phase != loading && !ended {
		s.request(s.Clock())
		s.rest(s.Clock())
		s.Turn()
		s.setTimer(duties)
	}
	return s.Flush()
}

// main is the step from beginning to end: take the lease, load the state, do one duty after another.
func (s *Step) main(t *actor.Task) error {
	if err := s.take(t); err != nil {
		return err
	}
	if err := s.load(t); err != nil {
		return err
	}
	if s.lease.phase = working; s.lease.hurry { // a Stop came while it loaded
		s.lease.phase = ending
	}
	s.st.batch.begun = s.Clock()
	s.outbox.mailedAt = s.st.batch.begun
	s.Spawn(s.receive)
	s.st.pull()
	for s.lease.phase != closed {
		t.Await(func() bool { return s.due(duties) != nil })
		s.doing = s.due(duties)
		if err := s.doing.do(s, t); err != nil {
			return err
		}
		s.doing = nil
	}
	return nil
}

// take takes the lease. It drops a warm state if another step has worked since.
func (s *Step) take(t *actor.Task) error {
	warm := s.lease.head.Commit
	crashed, err := s.lease.take(t)
	if err == nil && s.st != nil && (crashed || warm != s.lease.taken.Commit) {
		s.st = nil
	}
	return err
}

// stop makes the step end soon: requests are aborted, and finished work is committed.
func (s *Step) stop() {
	if s.lease.hurry {
		return
	}
	s.lease.hurry = true
	if s.lease.phase == working {
		s.lease.phase = ending
	}
	if t := s.care.release(); t != nil {
		s.done(*t, actor.Aborted(t.Request, s.Now().Wall))
	}
	s.Issue(actor.CancelFetches{}, func(actor.Reply) {})
}

// enoughPending is the number of pending URLs from which on a step counts as not hungry, even if few requests are under
// way: such a step has enough to do while it waits for mail.
const enoughPending = 256

// rest decides whether the step is idle or hungry.
func (s *Step) rest(now time.Time) {
	s.hungry = s.underWay <= s.cfg.Connections/8 && s.st.f.Counts().Pending < enoughPending && !s.reading.parts && s.nothingWithin(now, time.Second)
	busy := !s.inbox.heard || s.underWay > 0 || s.reading.parts || s.reading.rescan || s.budget.refilling || s.care.suspect != nil ||
		s.lease.phase != working || s.inbox.asking(s.st.ter) > 0
	switch {
	case busy || !s.asksNothing() && !s.nothingWithin(now, min(s.cfg.SleepMax, s.cfg.CommitEvery)):
		s.idleSince = time.Time{}
	case s.idleSince.IsZero():
		s.idleSince = now
	}
}

// idle reports whether nothing will happen for a while unless mail comes.
func (s *Step) idle() bool { return !s.idleSince.IsZero() }

// next returns when the next host or unloaded part becomes ready; zero: none that is known.
func (s *Step) next() time.Time {
	return earlier(s.st.f.NextAt(), s.reading.next)
}

// nothingWithin reports whether no host and no part becomes ready within d.
func (s *Step) nothingWithin(now time.Time, d time.Duration) bool {
	next := s.next()
	return next.IsZero() || next.Sub(now) > d
}

// Demand returns whether other partitions should send the links that they buffer for this one.
func (s *Step) Demand() Demand {
	switch {
	case s.lease.phase != working || s.orders.paused || s.budget.exhausted:
		return NoDemand
	case s.idle():
		return HighDemand
	case s.hungry:
		return LowDemand
	}
	return NoDemand
}

// Warm returns the state for the next step in this process; nil if this step did not end well.
func (s *Step) Warm() *Warm {
	if ended, err := s.Ended(); !ended || err != nil || s.st == nil {
		return nil
	}
	return &Warm{commit: s.lease.head.Commit, st: s.st}
}

// Pages returns the number of pages that the step has stored so far.
func (s *Step) Pages() int64 {
	if s.st == nil {
		return 0
	}
	return s.st.totals.Pages - s.lease.taken.Totals.Pages
}

// Progress holds the current figures of a step, for a display.
type Progress struct {
	Totals blobschema.Totals
	Active int // requests under way
	Rest   schedule.Rest
}

// Progress returns the current figures; false before the state is loaded.
func (s *Step) Progress() (Progress, bool) {
	if s.lease.phase == loading {
		return Progress{}, false
	}
	return Progress{Totals: s.st.figures(), Active: s.underWay, Rest: s.st.f.Rest()}, true
}

// Resting reports whether no request is under way.
func (s *Step) Resting() bool { return s.lease.phase != loading && s.underWay == 0 }

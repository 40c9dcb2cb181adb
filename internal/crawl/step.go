package crawl

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// Step is one invocation's work on one partition: it takes the lease, loads the
// state, fetches and commits until there is nothing to do or time is up, and
// releases the lease. It is an [actor.Actor].
//
// It stands between the queues and the web. Mail brings URLs, the frontier says
// which of them may be requested now, answers become records and links, and a
// commit makes all of it visible at once and names the mail for other partitions.
// It keeps these invariants, by the numbers of docs/invariants.md:
//
//   - I3: a slot leaves in one commit of its holder and comes with one of its receiver, which
//     takes only what is newer than anything it has seen of the slot (handover.go).
//   - I4: a step works under a lease and a fence; the head is replaced by
//     compare-and-set only, so what was begun under an older fence is never named (lease.go).
//   - I5: mail is acknowledged after the commit that holds its effect, and numbered, so
//     that a repetition is known (inbox.go).
//   - I6: object names carry partition, sequence and fence; nothing is put twice with
//     different content.
//   - I7: what leaves one partition's commit is named in its manifest until it was sent,
//     and sent again by the coordinator until it was applied (outbox.go).
//   - I8: a page is visible when the head names its commit; what a crashed step fetched
//     is not. It is not deleted here either: 'fsck --repair' does that.
//   - I9: no request starts or lasts past the lease less a margin, and after a takeover
//     every host is left alone for its pace. The pace itself is in package polite.
type Step struct {
	actor.Loop
	cfg   StepConfig
	doing *duty     // what the main task does now; nil: it waits
	timer time.Time // end of the earliest Sleep under way; zero: none
	lease lease
	st    *state // nil until it is loaded

	orders  orders
	inbox   inbox
	outbox  outbox
	budget  budget
	care    care
	reading reading

	underWay  int       // requests
	idleSince time.Time // zero: there is something to do
	hungry    bool      // few hosts are at work, and few URLs are known
}

// orders are what the operator wants, as far as the step knows.
type orders struct {
	paused   bool
	halted   bool // no step is wanted any more
	look     bool // they are to be read now
	informed bool // this step has read the crawl record itself
}

// reading is what the step reads and writes beside its main task.
type reading struct {
	parts  bool      // parts of slots are being loaded
	next   time.Time // when the next part that is not in memory is due; zero: not known
	merge  bool      // runs are being merged
	rescan bool      // links that were out of scope are being followed
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
		s.orders.look = true
	case Appetites:
		s.outbox.appetites = sig.Of
	}
	return s.after()
}

// after does what follows from an event, and sets the timer for what follows from
// time alone.
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

// main is the step from beginning to end: it takes the lease, loads the state, and does one duty after another.
func (s *Step) main(t *actor.Task) error {
	if err := s.take(t); err != nil {
		return err
	}
	if err := s.load(t); err != nil {
		return err
	}
	if s.lease.phase = working; s.lease.hurry { // told to stop while it loaded
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

// take takes the lease. A warm state is of use if no other step has worked since.
func (s *Step) take(t *actor.Task) error {
	warm := s.lease.head.Commit
	crashed, err := s.lease.take(t)
	if err == nil && s.st != nil && (crashed || warm != s.lease.taken.Commit) {
		s.st = nil
	}
	return err
}

// stop has the step end soon: requests are aborted, and what is done is committed.
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

// enoughPending is the number of pending URLs with which a step that has few hosts at work waits
// for mail until it comes by itself.
const enoughPending = 256

// rest finds out whether the step is idle, and whether more mail would help.
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

// idle reports whether nothing will happen for a while, except that mail comes.
func (s *Step) idle() bool { return !s.idleSince.IsZero() }

// next is when a host or a part that is not in memory becomes ready; zero: never, for what is known.
func (s *Step) next() time.Time {
	return earlier(s.st.f.NextAt(), s.reading.next)
}

// nothingWithin reports that no host is, or becomes, ready in the next d.
func (s *Step) nothingWithin(now time.Time, d time.Duration) bool {
	next := s.next()
	return next.IsZero() || next.Sub(now) > d
}

// Appetite returns whether others should send what they buffer for this partition.
func (s *Step) Appetite() Appetite {
	switch {
	case s.lease.phase != working || s.orders.paused || s.budget.exhausted:
		return Fed
	case s.idle():
		return Starved
	case s.hungry:
		return Hungry
	}
	return Fed
}

// Warm returns what the next step in this process may start with, nil if this one
// did not end well.
func (s *Step) Warm() *Warm {
	if ended, err := s.Ended(); !ended || err != nil || s.st == nil {
		return nil
	}
	return &Warm{commit: s.lease.head.Commit, st: s.st}
}

// Pages is the number of pages that the step has stored so far.
func (s *Step) Pages() int64 {
	if s.st == nil {
		return 0
	}
	return s.st.totals.Pages - s.lease.taken.Totals.Pages
}

// Progress is a step's figures as they are now, for a display.
type Progress struct {
	Totals blobschema.Totals
	Active int // requests under way
	Rest   schedule.Rest
}

// Progress returns the live figures; false before the state is loaded.
func (s *Step) Progress() (Progress, bool) {
	if s.lease.phase == loading {
		return Progress{}, false
	}
	return Progress{Totals: s.st.figures(), Active: s.underWay, Rest: s.st.f.Rest()}, true
}

// Resting reports whether no request is under way.
func (s *Step) Resting() bool { return s.lease.phase != loading && s.underWay == 0 }

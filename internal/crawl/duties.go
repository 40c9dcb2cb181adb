package crawl

import (
	"time"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// duty is something that a step does at a time, or once a condition holds.
type duty struct {
	name string
	// at returns when the duty is due, given what the step knows now: now or earlier if it is due, zero if only another
	// event can make it due. It changes nothing visible, so it may be called at any time.
	at func(s *Step, now time.Time) time.Time
	// do runs in the main task, which does one duty at a time. If do is nil, Step.after does the duty at every event.
	do func(s *Step, t *actor.Task) error
}

// duties lists everything that a step does in time. The main task does the first that is due, and the step's timer is set
// from the same list, so the two cannot disagree.
var duties = []duty{
	{"request", requestAt, nil},
	{"load parts", func(s *Step, _ time.Time) time.Time { return s.reading.next }, nil},
	{"stop in time", deadlineAt, func(s *Step, _ *actor.Task) error { s.stop(); return nil }},
	{"end", endAt, (*Step).finish},
	{"commit: a suspect", careAt, (*Step).commit},
	{"commit: much work", workAt, (*Step).commit},
	{"commit: work is old", oldAt, (*Step).commit},
	{"commit: somebody waits for an answer", answerAt, (*Step).commit},
	{"commit: others starve", feedAt, (*Step).commit},
	{"commit: slots come or go", handoverAt, (*Step).commit},
	{"commit: idle", idleAt, (*Step).commit},
	{"renew the lease", renewAt, (*Step).renew},
	{"read the orders", ordersAt, (*Step).obey},
	{"end: nothing left", overAt, (*Step).finish},
}

// due returns the next duty of the main task; nil: it waits.
func (s *Step) due(list []duty) *duty {
	now := s.Clock()
	for i := range list {
		if d := &list[i]; d.do != nil {
			if at := d.at(s, now); !at.IsZero() && !at.After(now) {
				return d
			}
		}
	}
	return nil
}

// setTimer schedules a call of the step for when the next duty is due. While the main task does a duty, its other duties
// wait for that.
func (s *Step) setTimer(list []duty) {
	now := s.Clock()
	var at time.Time
	for i := range list {
		if d := &list[i]; d.do == nil || s.doing == nil {
			if next := d.at(s, now); next.After(now) { // a duty that is due already was handled just before
				at = earlier(at, next)
			}
		}
	}
	if at.IsZero() || !s.timer.IsZero() && !s.timer.After(at) {
		return
	}
	s.timer = at
	s.Issue(actor.Sleep{For: at.Sub(now)}, func(actor.Reply) {
		if s.timer.Equal(at) {
			s.timer = time.Time{}
		}
	})
}

// earlier returns the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// onlyIf returns a time if a condition holds, else never.
func onlyIf(cond bool, at time.Time) time.Time {
	if cond {
		return at
	}
	return time.Time{}
}

func requestAt(s *Step, _ time.Time) time.Time { return onlyIf(s.mayFetch(), s.st.f.NextAt()) }

func deadlineAt(s *Step, _ time.Time) time.Time {
	return onlyIf(s.cfg.Deadline > 0 && !s.lease.hurry, s.Begun().Add(s.cfg.Deadline))
}

func endAt(s *Step, now time.Time) time.Time {
	return onlyIf(s.lease.phase == ending && s.underWay == 0 && !s.reading.parts && !s.reading.merge && !s.reading.rescan && !s.budget.refilling, now)
}

func careAt(s *Step, now time.Time) time.Time { return onlyIf(s.care.commits(), now) }

func workAt(s *Step, now time.Time) time.Time {
	return onlyIf(s.st.batch.settled >= s.cfg.CommitPages || s.st.fullOfMail(), now)
}

// oldAt: work stays uncommitted for at most CommitEvery, less while the crawl is young. In a folder commits cost no money,
// and a user may kill a process that has just started: its first commit comes after one second, and a later kill loses at
// most about a third of the work so far.
func oldAt(s *Step, now time.Time) time.Time {
	every := s.cfg.young(s.cfg.CommitEvery, now)
	if s.cfg.Exclusive {
		every = min(every, max(time.Second, s.st.batch.begun.Sub(s.Begun())/2))
	}
	return onlyIf(s.st.dirty(), s.st.batch.begun.Add(every))
}

// answerAt: the requester of a URL from outside waits for the commit with its answer.
func answerAt(s *Step, _ time.Time) time.Time {
	return onlyIf(s.st.batch.requested, s.st.batch.begun.Add(max(s.cfg.CommitMin, min(s.cfg.CommitEvery, 5*time.Second))))
}

const (
	manyPartitions = 16               // partitions that feed each other at the usual intervals
	appliedWait    = 10 * time.Second // time that an idle step of a folder waits before it records mail that brought nothing
)

// feedAt: other partitions get the links that are buffered for them, a starved partition sooner than a hungry one. The
// intervals grow with the age of the step. So a young crawl spreads fast; near its end, when one partition after another
// runs dry, a step does not commit just to mail links that are most likely known. Beyond manyPartitions they grow with the
// number of partitions too, because each of them mails to each.
func feedAt(s *Step, _ time.Time) time.Time {
	begun := s.st.batch.begun
	age := begun.Sub(s.Begun()) * time.Duration(max(1, s.st.partitions()/manyPartitions))
	var at time.Time
	for p, o := range s.st.out {
		switch a := s.outbox.demand(p); {
		case len(o.links) == 0 || a == NoDemand:
		case a == HighDemand:
			return begun.Add(max(s.cfg.CommitMin, age/8))
		default:
			at = begun.Add(max(s.cfg.CommitMin, age/2))
		}
	}
	return at
}

// handoverAt: slots that have arrived, and frozen slots without requests under way, go into a commit. If some frozen slots
// still have requests under way, the commit waits a little for them.
func handoverAt(s *Step, _ time.Time) time.Time {
	ter := s.st.ter
	soon := s.st.batch.begun.Add(s.cfg.CommitMin)
	if len(ter.arrived) > 0 {
		return soon
	}
	moving := ter.moving(s.st.f)
	switch {
	case len(ter.owed) == 0 || moving == len(ter.owed):
		return time.Time{}
	case moving == 0:
		return soon
	}
	return s.st.batch.begun.Add(max(s.cfg.CommitMin, giveRest))
}

// idleAt: an idle step gains nothing by waiting, and other partitions may need its mail. A young step commits soon; an old
// one later, because its mail mostly brings nothing new. In a folder, a commit that only records that mail was applied waits
// longer: nobody needs it before the crawl ends. If all partitions starve, only this commit can keep the crawl going, so it
// comes at once.
func idleAt(s *Step, _ time.Time) time.Time {
	after := max(s.cfg.CommitMin, min(400*time.Millisecond, s.st.batch.begun.Sub(s.Begun())/8))
	switch {
	case s.allStarve():
		after = min(s.cfg.CommitMin, 50*time.Millisecond)
	case s.cfg.Exclusive && s.st.batch.settled == 0 && s.st.out.links() == 0:
		after = max(after, appliedWait)
	}
	return onlyIf(s.idle() && (s.st.dirty() || s.st.out.links() > 0), s.st.batch.begun.Add(after))
}

// allStarve reports whether no other partition has anything to do.
func (s *Step) allStarve() bool {
	for p := range partition.ID(s.st.partitions()) {
		if p != s.cfg.Partition && s.outbox.demand(p) != HighDemand {
			return false
		}
	}
	return true
}

func renewAt(s *Step, now time.Time) time.Time { return now.Add(s.lease.left() - s.cfg.Lease*2/3) }

func ordersAt(s *Step, now time.Time) time.Time { return onlyIf(s.orders.signalled, now) }

// overAt: an idle step waits for mail for Linger and then ends, unless something is due soon.
func overAt(s *Step, now time.Time) time.Time {
	next := s.next()
	return onlyIf(s.idle() && s.outbox.publishing == 0 && !s.st.dirty() && (s.asksNothing() || next.IsZero() || next.Sub(now) > s.cfg.SleepMax),
		s.idleSince.Add(s.cfg.Linger))
}

package crawl

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// request starts as many requests as allowed now. It loads parts of slots if connections are left, or if somebody
// requested URLs of parts that are not in memory.
func (s *Step) request(now time.Time) {
	more := true
	for more && s.mayFetch() {
		var t schedule.Task
		if t, more = s.st.f.Next(now, s.limited()); more {
			s.begin(t)
		}
		s.st.refusals()
		s.st.placements()
	}
	if _, awaited := s.st.f.PartDue(); awaited || !more || s.underWay == 0 {
		s.loadWanted(now)
	}
}

// mayFetch reports whether another request may start now.
func (s *Step) mayFetch() bool {
	if s.lease.phase != working || s.orders.paused || s.reading.rescan || s.underWay >= s.cfg.Connections || !s.care.allows(s.underWay) {
		return false
	}
	if s.lease.left() <= s.cfg.Margin {
		return false
	}
	if s.limited() {
		n := s.st.f.Counts()
		if !s.budget.refilling && !s.budget.exhausted && n.Pending > n.Urgent+n.Revisits {
			s.budget.refilling = true
			s.Spawn(func(t *actor.Task) error { return s.budget.refill(t, &s.st.totals.Pages, s.st.partitions()) })
		}
		// A revisit waits for the answer whether more pages are granted: new URLs go first.
		return n.Urgent > 0 || revisits(&s.cfg.Crawl.Settings) && !s.budget.refilling
	}
	return true
}

// limited reports whether the page limit leaves only requested URLs and revisits to fetch.
func (s *Step) limited() bool {
	return s.cfg.Crawl.Settings.MaxPages > 0 && s.budget.spent(s.st.totals.Pages)
}

// asksNothing reports whether the step may not fetch anything that it knows, whatever is due: the crawl is paused, or the
// page limit is reached and nothing was requested from outside or is revisited.
func (s *Step) asksNothing() bool {
	return s.orders.paused || s.budget.exhausted && s.st.f.Counts().Urgent == 0 && !revisits(&s.cfg.Crawl.Settings)
}

// begin starts the request of a task, or sets it aside until a commit names it.
func (s *Step) begin(t schedule.Task) {
	switch {
	case s.care.refuses(t.Request.URL.String()):
		o := actor.Aborted(t.Request, s.Now().Wall)
		o.Page.Outcome, o.Page.Detail, o.Temporary = blobschema.OutcomeSuspect, "requests for it crashed the crawler several times", false
		s.done(t, o)
	case s.care.left > 0:
		s.care.suspect = &t
	default:
		s.fetch(t)
	}
}

// fetch requests a task's URL. If the URL was answered before, fetch reads that record first.
func (s *Step) fetch(t schedule.Task) {
	s.underWay++
	if counted(t) {
		s.budget.reserved++
	}
	if t.Previous() == (blobschema.RecordRef{}) {
		s.ask(t)
		return
	}
	s.Spawn(func(tk *actor.Task) error {
		if p := s.st.previous(tk, t.Previous(), t.Request.URL.String()); p != nil {
			if p.Outcome.Answered() && (!p.Requisite || t.Revisit()) { // the links of a requisite that is now a page are needed
				t.Request.Previous = p
			}
			if t.Request.Depth == 0 && t.Flags&blobschema.FlagSeed == 0 { // a request from outside carries no depth
				t.Request.Depth = p.Depth
			}
		}
		if s.lease.phase != working || s.lease.left() <= s.cfg.Margin { // reading may have taken long
			s.answered(t, actor.Aborted(t.Request, s.Now().Wall))
			return nil
		}
		s.ask(t)
		return nil
	})
}

// counted reports whether a task's page counts against the limit on pages.
func counted(t schedule.Task) bool {
	return !t.Request.Robots && !t.Request.Resolve && !t.Urgent() && !t.Revisit()
}

// ask issues the request of a task.
func (s *Step) ask(t schedule.Task) {
	// No request may take longer than half a step. If the end of a step aborts a request, it is repeated and does not count
	// as an attempt, so one that takes longer would never finish.
	t.Request.Longest, t.Request.Deadline = s.cfg.Deadline/2, s.lease.deadline()
	requests, ahead := s.Clock(), s.Clock().Sub(s.Now().Wall)
	s.st.f.Begun(requests, t)
	s.Issue(actor.Fetch{Request: t.Request}, func(r actor.Reply) {
		o, ok := r.Value.(*actor.Outcome)
		if !ok || r.Err != nil {
			o = actor.Aborted(t.Request, s.Now().Wall)
		}
		if o.Started.IsZero() { // it may have reached the host later than the frontier knows (I9)
			o.Started = requests
		} else { // the executor's wall clock may have been set since the step began
			o.Started = o.Started.Add(ahead)
		}
		s.answered(t, o)
	})
}

// answered takes the outcome of a request.
func (s *Step) answered(t schedule.Task, o *actor.Outcome) {
	s.underWay--
	if counted(t) {
		s.budget.reserved--
	}
	if t.Urgent() && !t.Flags.Requisite() && !t.Request.Robots && !t.Request.Resolve {
		s.st.batch.requested = true
	}
	s.done(t, o)
}

// done handles the outcome of a task, whether or not a request was made.
func (s *Step) done(t schedule.Task, o *actor.Outcome) {
	s.st.done(t, o)
	s.care.done(t.Request.URL.String())
}

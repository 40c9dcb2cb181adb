package schedule

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Ended is a URL whose generation has ended: it was answered, refused or forwarded. [Pool.Drop]
// frees its item.
type Ended struct {
	Key         *Key
	Item        uint32 // in the pool of its fingerprint
	Fingerprint uint64
	State       blobschema.State
	URL         weburl.URL        // zero if the outcome of its own request ended it
	Queued      blobschema.Queued // Rank, Generation, Depth, Attempts, Flags, Topic and Previous
	Outcome     blobschema.Outcome
	Detail      string
}

// Ended returns the URLs that ended since the last call. The list is valid until the next change of
// the schedule.
func (s *Schedule) Ended() []Ended {
	e := s.ended
	s.ended = s.ended[:0]
	return e
}

// end ends an item that is in no queue.
func (s *Schedule) end(w spot, state blobschema.State) *Ended {
	p, it := w.pool, w.it()
	st := p.lanes[it.lane].origin.site
	s.tally.count(p, it, -1)
	s.tally.counts.Pending--
	s.tally.pending[it.topic]--
	st.pending--
	st.key.pending--
	p.touched = s.changes.delta + 1
	s.countSettled(st, 1)
	e := Ended{
		Key: st.key, Item: w.item, Fingerprint: it.fp, State: state, Queued: blobschema.Queued{
			Rank: it.rank, Generation: it.gen, Depth: it.depth, Attempts: it.attempts, Flags: it.allFlags(), Topic: it.topic, Previous: p.rareOf(w.item).previous,
		},
	}
	s.ended = append(s.ended, e)
	return &s.ended[len(s.ended)-1]
}

// refuse ends an item that is in no queue.
func (s *Schedule) refuse(w spot, o blobschema.Outcome, detail string) {
	e := s.end(w, blobschema.Refused)
	e.URL, e.Outcome, e.Detail = w.pool.url(w.it()), o, detail
	k := w.pool.lanes[w.it().lane].topicQueue.key
	k.observed = true // its figures changed without a request
	s.changes.key(k)
}

// refuseAll refuses items that are in no queue.
func (s *Schedule) refuseAll(items []spot, o blobschema.Outcome, detail string) {
	for _, w := range items {
		s.refuse(w, o, detail)
	}
}

// Verdict is what Answered decides about an outcome.
type Verdict uint8

// The verdicts.
const (
	Final Verdict = iota // the URL is settled; keep the page record
	Again                // the request is repeated; keep nothing
)

// Answered takes the outcome of a task. The URL ends, or is queued again if the failure is temporary
// and attempts are left. If next is not nil, the caller adds the URL again with it. The caller must
// then call Close.
func (s *Schedule) Answered(now time.Time, t *Task, o *actor.Outcome) (v Verdict, next *blobschema.Queued) {
	l, k := t.lane, t.Key()
	s.seen = now
	l.pool.inFlight--
	k.inFlight--
	s.tally.counts.InFlight--
	if k.starting == l {
		k.starting = nil
	}
	s.queues.dequeue(k)
	k.state = busy // until Close, so that URLs that are added meanwhile do not queue it
	if t.Request.Resolve {
		return s.resolved(now, k, o), nil
	}
	k.observe(t, o, now, s.cfg.Retry.Backoff)
	if !t.page {
		return s.robotsDone(now, t, o), nil
	}
	l.inFlight = false
	l.enlist(now)
	return s.urlDone(now, t, o)
}

// Close ends a task that was answered, and queues its key again.
func (s *Schedule) Close(now time.Time, t *Task, o *actor.Outcome) {
	k := t.Key()
	if !t.Request.Resolve {
		s.pause(now, t, o)
	}
	if k.starting == nil {
		k.state = idle
		s.queues.enqueue(k, now)
	}
}

// pause applies the pace of a key after a request, and gives up a site that does not answer.
func (s *Schedule) pause(now time.Time, t *Task, o *actor.Outcome) {
	st, k := t.lane.origin.site, t.Key()
	free := k.free
	k.free = false
	if !o.Started.IsZero() && !free {
		// The request may have started later than it was issued, and a new robots.txt may
		// have slowed the pace.
		k.pace.Floor(o.Started, t.lane.origin.delay())
	}
	switch {
	case o.Page.Outcome.Answered():
		st.silent = 0
	case t.page && t.Request.Attempt == 0 && polite.Silent(o.Page.Outcome) && o.Page.Status == 0: // a slow body has a status
		if st.silent++; s.cfg.Retry.GivenUp(st.silent) {
			s.giveUp(now, st, o)
		}
		s.changes.site(st)
	}
	s.changes.key(k)
}

// observe updates the figures of a key from an outcome.
func (k *Key) observe(t *Task, o *actor.Outcome, now time.Time, backoff time.Duration) {
	k.observed, k.silent = true, polite.Silent(o.Page.Outcome)
	end := polite.End{Outcome: o.Page.Outcome, Status: o.Page.Status, RetryAfter: o.RetryAfter}
	if t.page {
		end.Attempt = t.Request.Attempt
	}
	k.pace.Done(now, end, backoff)
	k.requests++
	if !o.Page.Outcome.Answered() {
		k.failures++
	}
	if o.Response > 0 {
		k.pace.ObserveResponse(o.Response)
		k.pace.ObserveProtocol(o.HTTP2)
	}
	if !o.Reused && o.Connect > 0 {
		k.pace.ObserveConnection(o.Connect)
		k.served = 0
	}
	k.served++
	k.connected = o.Response > 0 && !o.Closed
	if o.Closed {
		k.pace.ObserveClosed(k.served)
	}
	if !k.connected || float64(k.served) >= k.visit()*float64(k.allowed) {
		k.served, k.connected = 0, false // its visit is over: another key may take its turn
	}
}

// urlDone decides whether a URL ends or is tried again.
func (s *Schedule) urlDone(now time.Time, t *Task, o *actor.Outcome) (Verdict, *blobschema.Queued) {
	k, p := t.Key(), t.lane.pool
	it := &p.items[t.item]
	again, after := false, time.Duration(0)
	switch {
	case o.Page.Outcome == blobschema.OutcomeAborted:
		again = true // we aborted it, so it does not count as an attempt
	case o.Temporary:
		it.attempts++
		again, after = s.cfg.Retry.Next(o.Page.Outcome, o.Page.Status, it.attempts)
	}
	w, wished := p.followUps[t.item]
	if again {
		it.bits &^= isInFlight
		delete(p.followUps, t.item)
		if wished {
			s.grant(p, t.item, w)
		}
		at := int64(0)
		if after > 0 {
			at = now.Add(after).UnixMilli()
		}
		p.setNotBefore(t.item, at)
		s.changes.item(p, t.item)
		k.add(p, t.item, now)
		return Again, nil
	}
	o.Page.Attempts = it.attempts
	state := blobschema.Refused
	if o.Page.Outcome.Answered() {
		state = blobschema.Fetched
	}
	was := s.end(spot{p, t.item}, state).Queued
	switch {
	case wished:
		return Final, &blobschema.Queued{
			Key: k.name, Rank: w.rank, Generation: w.gen, Depth: w.depth, Flags: w.flags, Topic: w.topic, Change: t.Change,
		}
	case s.cfg.Revisits:
		s.changes.key(k)
		return Final, s.revisits.nextVisit(now, t, o, &was)
	}
	return Final, nil
}

// grant gives an item whose request failed the properties of its next generation. Only a firm
// generation has a number that others know; otherwise the item keeps its own.
func (s *Schedule) grant(p *Pool, i uint32, w followUp) {
	it := &p.items[i]
	s.tally.count(p, it, -1)
	if w.firm {
		it.gen, it.depth, it.attempts, it.rank = w.gen, w.depth, 0, w.rank
		it.setFlags(w.flags)
		s.tally.setLane(p, it, p.relaned(it, w.topic))
	} else {
		it.rank, it.depth = min(it.rank, w.rank), min(it.depth, w.depth)
		it.setFlags(it.allFlags().Join(w.flags))
		s.tally.setLane(p, it, p.relaned(it, min(it.topic, w.topic)))
	}
	s.tally.count(p, it, 1)
}

// giveUp refuses the pending URLs of a site that stopped answering.
func (s *Schedule) giveUp(now time.Time, st *site, o *actor.Outcome) {
	for i := range st.origins {
		s.refuseAll(s.postpone(now, st.origins[i].empty()), o.Page.Outcome, "the host stopped answering")
	}
	st.silent = 0
}

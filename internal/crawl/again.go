package crawl

import (
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// askAgain gives each requested URL its next generation. Unlike other mail, a request needs its slot in memory, so askAgain
// loads the slots first, one after another. A repeated delivery, or a copy under another number, changes nothing: the owner
// remembers the request.
func (s *Step) askAgain(mail blobschema.Mail, list []frontier.Link, applied func()) {
	key := fmt.Sprint(mail.From, "/", mail.Number)
	if s.inbox.requests[key] {
		return
	}
	s.inbox.requests[key] = true
	id := mail.Request
	if id == 0 { // a sitemap caused it: the mail itself is the request
		id = s.st.links.Hash.Fingerprint(fmt.Sprintf("mail %s to %d", key, s.cfg.Partition))
	}
	s.Spawn(func(t *actor.Task) error {
		defer delete(s.inbox.requests, key)
		for _, l := range list {
			if l.Ask == 0 {
				l.Ask = id
			}
			s.again(t, l)
		}
		if s.lease.phase != closed {
			applied()
		}
		return nil
	})
}

// again gives a URL its next generation, or follows the redirect of a late seed.
func (s *Step) again(t *actor.Task, l frontier.Link) {
	if s.lease.phase == closed {
		return
	}
	if l.Flags&blobschema.FlagAgain == 0 {
		s.widen(t, l)
		return
	}
	if l.Flags&blobschema.FlagSeed == 0 {
		topic, ok := s.st.scopes.admit(l.URL)
		if !ok {
			s.st.refuseOutside(l.URL)
			return
		}
		if l.Topic == 0 {
			l.Topic = topic
		}
	}
	if s.awaitPart(t, l) {
		s.st.f.Again(s.Clock(), l, l.Ask)
	} else if s.lease.phase != closed {
		s.st.buffer(l)
	}
}

// awaitPart waits until the part of the slot that holds a link is loaded. It returns false if the step ends first or the
// slot belongs to another partition.
func (s *Step) awaitPart(t *actor.Task, l frontier.Link) bool {
	here := func() bool { return s.st.owner(l.Slot) == s.cfg.Partition }
	if here() {
		s.st.f.Want(l.Slot, l.Fingerprint)
	}
	s.inbox.waiting[l.Slot]++
	t.Await(func() bool { return s.lease.phase == closed || !here() || s.st.f.Loaded(l.Slot, l.Fingerprint) })
	if s.inbox.waiting[l.Slot]--; s.inbox.waiting[l.Slot] == 0 {
		delete(s.inbox.waiting, l.Slot)
	}
	return s.lease.phase != closed && here()
}

// widen follows the redirect of a seed that was settled before it was known to be one. Its page record names the target.
func (s *Step) widen(t *actor.Task, l frontier.Link) {
	elsewhere := func() bool { // the new owner of the slot checks it
		if s.st.owner(l.Slot) == s.cfg.Partition {
			return false
		}
		s.st.buffer(l)
		return true
	}
	if !s.awaitPart(t, l) {
		if s.lease.phase != closed {
			elsewhere()
		}
		return
	}
	if s.st.f.Pending(l.Slot, l.Fingerprint) { // it may be pending in a later generation or under way: its answer widens the scope
		s.st.add(l)
		return
	}
	if placed, ok := s.st.f.SentOn(l); ok && s.lease.phase != closed { // its page is in the slot of its address
		s.st.buffer(placed) // also if this partition owns it: mail checks settled seeds
		return
	}
	// A URL settled since the last commit has its record after the next commit.
	t.Await(func() bool {
		return s.lease.phase == closed || s.st.f.Pending(l.Slot, l.Fingerprint) || s.st.f.Record(l.Slot, l.Fingerprint).Seq > 0 || !s.st.dirty() && s.doing == nil
	})
	o := s.st.f.Record(l.Slot, l.Fingerprint)
	if s.lease.phase == closed || elsewhere() || o.Seq == 0 {
		return
	}
	// The page record must name a target that is in scope.
	p := s.st.previous(t, o, l.URL.String())
	if p != nil && p.Requisite && p.Outcome == blobschema.OutcomeOK && s.lease.phase != closed { // nobody has followed its links
		l.Generation = p.Generation + 1
		s.st.add(l)
		return
	}
	if p == nil || p.Redirect == "" || s.lease.phase == closed {
		return
	}
	u, err := weburl.Parse(p.Redirect)
	if err != nil {
		return
	}
	to := s.st.links.Link(u)
	to.Depth, to.Topic, to.Flags = p.Depth, l.Topic, to.Flags|l.Flags.NextHop()
	sc := s.st.scopes.of(to.Topic)
	if !sc.patterns(u) || to.Flags&blobschema.FlagSeed == 0 && !sc.host(u.Host()) {
		return
	}
	to.Rank = s.st.rank(u, schedule.Candidate{Depth: to.Depth, Fingerprint: to.Fingerprint, Cash: 1}) // as if a seed linked to it
	s.st.deliver(to)
}

// refuseOutside stores a record for a requested URL that is out of scope: a crawl fetches only within its scope.
func (st *state) refuseOutside(u weburl.URL) {
	p := blobschema.Page{
		URL: u.String(), Outcome: blobschema.OutcomeScope, Time: st.lease.Now().Wall.UTC(),
		Detail: "it is out of the crawl's scope: add it as a seed",
	}
	st.count(&p, true)
	st.batch.add(&p)
	st.watched(Watched{Page: &p})
}

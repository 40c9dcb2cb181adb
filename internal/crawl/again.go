package crawl

import (
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// request is a URL that is asked for on purpose, with its unit.
type request struct {
	u weburl.URL
	q blobschema.Queued
}

// askAgain asks for URLs once more: the owner gives each its next generation. Unlike
// other mail it is looked at before it is applied, so the slots are loaded first, one
// after another. Delivered again meanwhile, or sent again under another number, it
// changes nothing: the owner remembers the request.
func (s *Step) askAgain(mail blobschema.Mail, list []request, applied func()) {
	key := fmt.Sprint(mail.From, "/", mail.Number)
	if s.asking[key] {
		return
	}
	s.asking[key] = true
	id := mail.Request
	if id == 0 { // what a sitemap said: the mail itself is the request
		id = s.hash.Fingerprint(fmt.Sprintf("mail %s to %d", key, s.cfg.Partition))
	}
	s.Spawn(func(t *actor.Task) error {
		defer delete(s.asking, key)
		for _, r := range list {
			if r.q.Ask == 0 {
				r.q.Ask = id
			}
			s.again(t, r)
		}
		if !s.closed {
			applied()
		}
		return nil
	})
}

func (s *Step) again(t *actor.Task, r request) {
	u := r.u
	if s.closed {
		return
	}
	if r.q.Flags&blobschema.FlagAgain == 0 {
		s.widen(t, r)
		return
	}
	if r.q.Flags&blobschema.FlagSeed == 0 {
		topic, ok := s.st.scopes.admit(u)
		if !ok {
			s.refuseOutside(u)
			return
		}
		if r.q.Topic == 0 {
			r.q.Topic = topic
		}
	}
	r.q.Flags &^= blobschema.FlagAgain
	r.q.URL, r.q.Slot = u.String(), s.hash.Slot(r.q.Host)
	fp := s.hash.Fingerprint(r.q.URL)
	if !s.awaitPart(t, r.q.Slot, fp) {
		if !s.closed {
			r.q.Flags |= blobschema.FlagAgain
			s.hold(s.owner(r.q.Slot), r.q)
		}
		return
	}
	id := r.q.Ask
	r.q.Ask = 0
	s.st.f.Again(s.Clock(), u, fp, r.q, id)
}

// awaitPart waits until the part of a slot that a URL belongs to is loaded. It is not if the
// step ends first, or the slot is another partition's.
func (s *Step) awaitPart(t *actor.Task, slot partition.Slot, fp uint64) bool {
	here := func() bool { return s.owner(slot) == s.cfg.Partition }
	if here() {
		s.st.f.Want(slot, fp)
	}
	s.waited[slot]++
	t.Await(func() bool { return s.closed || !here() || s.st.f.Loaded(slot, fp) })
	if s.waited[slot]--; s.waited[slot] == 0 {
		delete(s.waited, slot)
	}
	return !s.closed && here()
}

// stuck is the number of mails with requests that wait for slots that others have to give
// first. The step does not stay for them: they come again.
func (s *Step) stuck() (n int) {
	for slot, asks := range s.waited {
		if s.st.ter.awaited[slot] != 0 {
			n += asks
		}
	}
	return n
}

// widen follows the redirect of a seed that was settled before it was known to be one: its
// page record says where it leads.
func (s *Step) widen(t *actor.Task, r request) {
	url := r.u.String()
	slot, fp := s.hash.Slot(r.q.Host), s.hash.Fingerprint(url)
	elsewhere := func() bool { // who has the slot now looks at it again
		if s.owner(slot) == s.cfg.Partition {
			return false
		}
		q := r.q
		q.URL, q.Slot = url, slot
		s.hold(s.owner(slot), q)
		return true
	}
	if !s.awaitPart(t, slot, fp) {
		if !s.closed {
			elsewhere()
		}
		return
	}
	if address, ok := s.st.f.SentOn(r.q.Host, slot, fp); ok && !s.closed { // its page is there
		q := r.q
		q.URL, q.Host, q.Flags = url, address, q.Flags|blobschema.FlagPlaced
		q.Slot = s.hash.Slot(address)
		s.hold(s.owner(q.Slot), q) // also to this partition itself: as mail it is looked at
		return
	}
	// What was settled since the last commit has its record when the next is made.
	t.Await(func() bool {
		return s.closed || s.st.f.Pending(slot, fp) || s.st.f.Origin(slot, fp).Seq > 0 || !s.dirty() && !s.busy
	})
	o := s.st.f.Origin(slot, fp)
	if s.closed || elsewhere() || o.Seq == 0 {
		return
	}
	p := s.former(t, o, url)
	if p == nil || p.Redirect == "" || s.closed {
		return
	}
	to, err := weburl.Parse(p.Redirect)
	sc := s.st.scopes.of(r.q.Topic)
	if err != nil || !sc.patterns(to) {
		return
	}
	q := blobschema.Queued{Depth: p.Depth, Flags: r.q.Flags.NextHop(), Topic: r.q.Topic}
	place(&s.cfg.Crawl.Settings, to, &q)
	if q.Flags&blobschema.FlagSeed == 0 && !sc.host(to.Host()) {
		return
	}
	next, nextFP := s.hash.Slot(q.Host), s.hash.Fingerprint(to.String())
	q.Rank = s.rank(to, frontier.Candidate{Depth: q.Depth, Fingerprint: nextFP, Cash: 1}) // as if a seed led to it
	if !s.heldLate(to, next, nextFP, q) {
		s.found(to, next, nextFP, q)
	}
}

// refuseOutside keeps a record of a URL that was asked for on purpose but is out of
// scope: a crawl asks only where it was sent.
func (s *Step) refuseOutside(u weburl.URL) {
	p := blobschema.Page{
		URL: u.String(), Outcome: blobschema.OutcomeScope, Time: s.Now().Wall.UTC(),
		Detail: "it is outside of the crawl's scope: begin with it as a seed",
	}
	s.count(&p, true)
	s.batch.pages = append(s.batch.pages, p)
	s.sinceCommit++
}

package simulate

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Broken is the error of a promise that did not hold.
type Broken struct {
	Promise string // "I1" to "I11", "truth", "end", "limit", "requests", "suspect", "pin", or "fsck" with the violated invariant
	What    string
}

// Error returns the promise and how it was broken.
func (b *Broken) Error() string { return b.Promise + " broken: " + b.What }

func broken(promise, format string, args ...any) error {
	return &Broken{Promise: promise, What: fmt.Sprintf(format, args...)}
}

// sortOf returns what errors of the same cause have in common, by their text.
func sortOf(err error) string {
	if b := (*Broken)(nil); errors.As(err, &b) {
		return b.Promise
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}

// part is what the world knows of a partition from its head.
type part struct {
	head    blobschema.Head
	man     blobschema.Manifest // manifest of the commit that the head names
	holding *blobschema.Holding
	holder  *proc // process that holds the fence
}

func (w *world) part(id partition.ID) *part {
	s := w.parts[id]
	if s == nil {
		s = &part{holding: blobschema.NewHolding(id, w.first, nil)}
		w.parts[id] = s
	}
	return s
}

// wroteHead checks a head that a process has just written.
func (p *proc) wroteHead(value []byte) error {
	w := p.w
	h, err := decodeJSON[blobschema.Head](value)
	if err != nil {
		return err
	}
	s := w.part(p.part)
	old := s.head
	switch {
	case h.Partition != p.part:
		return broken("I4", "the head of partition %d says it is of %d", p.part, h.Partition)
	case h.Fence == old.Fence+1:
		if old.Owner != "" && !w.cfg.Local && p.wall().Before(old.LeaseUntil.Add(-2*maxSkew)) {
			return broken("I4", "%s takes a lease of partition %d that ends at %v", p.name, p.part, old.LeaseUntil.Sub(virtual.Epoch))
		}
		if s.holder = p; old.Owner != "" {
			w.count(TakenOver)
		}
	case h.Fence != old.Fence || s.holder != p:
		return broken("I4", "%s writes the head of partition %d under fence %d, which is at %d", p.name, p.part, h.Fence, old.Fence)
	}
	s.head = h
	if h.Commit == old.Commit {
		return nil
	}
	if h.Seq != old.Seq+1 {
		return broken("I4", "commit %d of partition %d comes after %d", h.Seq, p.part, old.Seq)
	}
	if err := w.committed(p.part, s); err != nil {
		return err
	}
	for w.writes++; len(w.checks) > 0 && slices.Contains(w.checks, w.writes); {
		w.checks = slices.DeleteFunc(w.checks, func(n int) bool { return n == w.writes })
		_, err := w.fsck()
		return err
	}
	return nil
}

// committed checks a commit that a head has just named.
func (w *world) committed(id partition.ID, s *part) error {
	name := s.head.Commit
	c, err := blobschema.OpenCommit(w.Objects[name])
	if err != nil {
		return broken("I6", "head of partition %d: %s: %v", id, name, err)
	}
	old := s.man
	man, err := c.Manifest()
	if err != nil {
		return broken("I6", "head of partition %d: %s: %v", id, name, err)
	}
	s.man = man
	switch {
	case man.Partition != id || man.Seq != s.head.Seq || man.Fence != s.head.Fence:
		return broken("I4", "%s has manifest %d of partition %d under fence %d", name, man.Seq, man.Partition, man.Fence)
	case man.Epoch < old.Epoch:
		return broken("I3", "partition %d goes back to epoch %d from %d", id, man.Epoch, old.Epoch)
	}
	for from, m := range old.Applied {
		if man.Applied[from].Low < m.Low {
			return broken("I5", "partition %d forgets that it applied mail %d of %d", id, m.Low, from)
		}
	}
	if !reflect.DeepEqual(old.Moved, man.Moved) {
		if len(man.Given) > len(old.Given) {
			w.count(SlotsGiven)
		}
		if err := w.moved(id, s); err != nil {
			return err
		}
	}
	pages, err := c.Pages()
	if err != nil {
		return broken("I6", "%s: %v", name, err)
	}
	return w.appeared(name, pages)
}

// moved checks I3 after a partition has given or taken slots: each slot is held by one partition, or offered to one that
// has not seen the offer.
func (w *world) moved(id partition.ID, s *part) error {
	was, taken := s.holding, false
	s.holding = blobschema.NewHolding(id, w.first, s.man.Moved)
	for slot := range partition.Slot(w.cfg.Slots) {
		if s.holding.Seen(slot) < was.Seen(slot) {
			return broken("I3", "partition %d forgets epoch %d of slot %d", id, was.Seen(slot), slot)
		}
		taken = taken || s.holding.Holds(slot) && !was.Holds(slot)
		if s.holding.Holds(slot) != was.Holds(slot) && s.holding.Seen(slot) == was.Seen(slot) {
			return broken("I3", "partition %d gives or takes slot %d at epoch %d, which it has seen", id, slot, was.Seen(slot))
		}
	}
	if taken {
		w.count(SlotsTaken)
	}
	where := make([]int, w.cfg.Slots) // number of holders and offers of each slot
	for p := range partition.ID(w.partitions()) {
		s := w.part(p)
		for _, slot := range s.holding.Slots() {
			where[slot]++
		}
		for _, g := range s.man.Given {
			for _, slot := range g.Slots {
				if g.Epoch > w.part(g.To).holding.Seen(slot) {
					where[slot]++
				}
			}
		}
	}
	for slot, n := range where {
		if n != 1 {
			return broken("I3", "slot %d is in %d places after commit %d of partition %d", slot, n, s.man.Seq, id)
		}
	}
	return nil
}

// wroteMap checks a map record that was just written (I3).
func (p *proc) wroteMap(value []byte) error {
	w := p.w
	rec, err := decodeJSON[blobschema.MapRecord](value)
	if err != nil {
		return err
	}
	old := w.mapRecord
	if w.mapRecord = rec; p.kind == "tick" && len(rec.Previous) > len(old.Previous) {
		w.count(MapMade)
	}
	m, err := w.openMap(rec.Object)
	switch {
	case err != nil:
		return broken("I6", "map %s: %v", rec.Object, err)
	case rec.Version != old.Version+1 || rec.Epoch < old.Epoch || rec.Partitions < old.Partitions:
		return broken("I3", "map record %d of epoch %d comes after %d of %d", rec.Version, rec.Epoch, old.Version, old.Epoch)
	case m.Epoch() != rec.Epoch:
		return broken("I3", "the map of epoch %d is of %d", rec.Epoch, m.Epoch())
	}
	moving := map[partition.Slot]bool{}
	for _, mv := range rec.Moving {
		for _, slot := range mv.Slots {
			if moving[slot] || m.Owner(slot) != mv.To {
				return broken("I3", "slot %d moves to %d, but its owner differs or it moves twice (epoch %d)", slot, mv.To, rec.Epoch)
			}
			moving[slot] = true
		}
	}
	for slot := range partition.Slot(w.cfg.Slots) { // a slot that is not moving is at its owner
		if owner := m.Owner(slot); !moving[slot] && !w.part(owner).holding.Holds(slot) {
			return broken("I3", "slot %d has arrived at %d, which does not hold it (epoch %d)", slot, owner, rec.Epoch)
		}
	}
	return nil
}

// mayDelete checks that no manifest named by a head needs an object.
func (w *world) mayDelete(name string) error {
	w.count(RunDeleted)
	needs := func(r blobschema.RunRef) bool { return r.Object == name }
	for id := range partition.ID(w.partitions()) {
		s := w.part(id)
		if slices.ContainsFunc(s.man.Runs, needs) {
			return broken("I6", "%s is deleted, but it is a run of partition %d", name, id)
		}
		for _, g := range s.man.Given {
			if slices.ContainsFunc(g.Runs, needs) {
				return broken("I6", "%s is deleted, but partition %d gives it to %d", name, id, g.To)
			}
		}
	}
	return nil
}

// partitions returns one more than the highest partition that ever owned a slot.
func (w *world) partitions() int { return max(w.cfg.Partitions, w.mapRecord.Partitions) }

// pageKey identifies what must be visible only once.
type pageKey struct {
	url        string
	generation uint32
}

// appeared checks I8 for the page records of a commit.
func (w *world) appeared(name string, pages []blobschema.Page) error {
	for i := range pages {
		pg := &pages[i]
		if pg.Robots || pg.Outcome == blobschema.OutcomeScope {
			continue
		}
		key := pageKey{pg.URL, pg.Generation}
		if old, ok := w.seen[key]; ok {
			return broken("I8", "generation %d of %s is visible in %s and %s", pg.Generation, pg.URL, old, name)
		}
		w.seen[key] = name
	}
	return nil
}

// mayAsk checks a request: the process has the lease until the request ends (I4), its partition holds the slot (I3), the
// URL is canonical (I1), and the pace is kept (I9).
func (p *proc) mayAsk(req *actor.Request) error {
	w := p.w
	url := req.URL.String()
	if u, err := weburl.Parse(url); err != nil || u.String() != url {
		return broken("I1", "%s is not canonical", url)
	}
	s := w.part(p.part)
	switch {
	case s.holder != p || s.head.Owner == "":
		return broken("I4", "%s requests %s after it has lost the lease", p.name, url)
	case req.Deadline.After(s.head.LeaseUntil.Add(-margin)):
		return broken("I4", "%s requests %s until %v, the lease ends at %v", p.name, url, req.Deadline.Sub(virtual.Epoch), s.head.LeaseUntil.Sub(virtual.Epoch))
	case req.Deadline.Before(p.wall()):
		return broken("I4", "a request of %s for %s begins after its deadline", p.name, url)
	}
	if slot := w.hash.Slot(req.Key); !s.holding.Holds(slot) {
		return broken("I3", "%s requests %s of slot %d, which partition %d does not hold", p.name, url, slot, p.part)
	}
	if req.Resolve {
		return nil
	}
	at := 1
	for _, other := range p.fetching {
		if other.Key == req.Key && !other.Resolve {
			at++
		}
	}
	if at > max(1, w.cfg.Allowed) {
		return broken("I9", "%s gets %d requests at once from %s", req.Key, at, p.name)
	}
	last, ok := w.lastRequests[req.Key]
	if !ok {
		return nil
	}
	pace := max(w.pace[last.key], p.learnt[last.key])
	if !last.robots {
		pace = max(pace, w.cfg.Delay)
	}
	if last.by != p { // that process had another clock, which may be wrong in either direction
		pace -= max(0, p.ahead+w.skew())
	}
	if gap := w.Mono - last.at; gap < pace {
		return broken("I9", "%s was requested %v after the last request, its pace is %v (%s, then %s)", req.Key, gap, pace, last.by.name, p.name)
	}
	return nil
}

// skew returns the largest error of any clock.
func (w *world) skew() time.Duration {
	if w.result.Faults[Skew]+w.result.Faults[Jump] == 0 {
		return 0
	}
	return maxSkew
}

// mayAcknowledge checks I5: the head names a commit that holds the effect of the mail.
func (p *proc) mayAcknowledge(r embedded.Receipt) error {
	w := p.w
	m, err := blobschema.DecodeMail(w.bodies[r])
	if err != nil || m.Crawl != w.crawl.ID || m.To != p.part {
		return nil // it became a dead letter and is not applied
	}
	marks := w.part(p.part).man.Applied[m.From]
	if m.Number > marks.Low && !slices.Contains(marks.Above, m.Number) {
		return broken("I5", "mail %d from %d to %d is acknowledged but not committed", m.Number, m.From, m.To)
	}
	return nil
}

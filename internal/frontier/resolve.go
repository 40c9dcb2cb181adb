package frontier

import (
	"net/netip"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Placements returns the links that were forwarded to the slot of their address since the last call: those of
// names whose address became known, those found first, first. The commit that holds the next delta
// must hold them too, because from then on they are settled here, as Forwarded.
func (f *Frontier) Placements() []Link {
	p := f.placements
	f.placements = nil
	return p
}

// pinned reports whether a unit is a name whose address is known.
func (u *unit) pinned() bool { return !u.placed && u.addr.IsValid() }

// address is the host of URLs that are placed at the unit's address.
func (u *unit) address() string { return "[" + u.addr.String() + "]" }

// near returns the unit of a pinned name's address if that is in the same slot, else nil. A
// slot has one entry for a URL, so what is near is not sent on: it changes its unit.
func (f *Frontier) near(u *unit) *unit {
	key := u.address()
	if f.cfg.Hash.Slot(key) != u.slot.id {
		return nil
	}
	return f.unit(u.slot, key)
}

// resolveTask asks for the address of a name. Its URLs stay in their queues.
func (f *Frontier) resolveTask(u *unit, l *lane, url weburl.URL) Task {
	return Task{Request: actor.Request{URL: url, Host: u.key, Resolve: true, Attempt: u.resolves}, lane: l}
}

// resolved takes the address of a name, or refuses its URLs if it has none. Their
// successors are tried again, within the unit's back-off. Asking for an address is
// not asking the host: the pace is as before.
func (f *Frontier) resolved(now time.Time, t Task, o *actor.Outcome) Verdict {
	u := t.lane.door.site.unit
	if o.Addr.IsValid() {
		f.pin(u, o.Addr.Unmap().WithZone(""), now)
		return Final
	}
	if o.Page.Outcome == blobschema.OutcomeAborted {
		return Again
	}
	f.touchUnit(u)
	u.failures++
	u.pace.Done(now, polite.End{Outcome: o.Page.Outcome, Status: o.Page.Status, RetryAfter: o.RetryAfter}, f.cfg.Retry.Backoff)
	if o.Temporary {
		u.resolves++
		if again, after := f.cfg.Retry.Next(o.Page.Outcome, o.Page.Status, u.resolves); again {
			u.hold = now.Add(after)
			return Again
		}
	}
	u.resolves, u.hold = 0, time.Time{}
	f.refuseAll(f.emptyUnit(u), o.Page.Outcome, o.Page.Detail)
	return Final
}

// pin gives a name its address for good, and sends on what waits for it.
func (f *Frontier) pin(u *unit, addr netip.Addr, now time.Time) {
	u.addr, u.resolves, u.hold = addr, 0, time.Time{}
	f.touchUnit(u)
	near := f.near(u)
	for _, w := range f.emptyUnit(u) {
		p, it := w.part, &w.part.items[w.item]
		if near != nil {
			f.move(p, w.item, near, now)
			continue
		}
		f.sendOn(u, p.url(it), it.fp, &blobschema.Queued{
			Rank: it.rank, Generation: it.gen, Depth: it.depth, Flags: it.flags, Topic: it.topic,
		})
		f.settle(p, w.item, blobschema.Forwarded)
	}
}

// move gives an item that is in no queue to another unit of its slot.
func (f *Frontier) move(p *part, i uint32, to *unit, now time.Time) {
	it := &p.items[i]
	l := p.lanes[it.lane]
	l.door.site.pending--
	l.door.site.unit.pending--
	url := p.url(it)
	st := f.site(to, url)
	st.pending++
	to.pending++
	it.lane, it.flags = f.lane(p, st, url, l.topic).number, it.flags|blobschema.FlagPlaced
	f.touch(p, i)
	to.add(p, i, now)
	f.settleUnit(to, now)
}

// forward settles a URL of a name whose address is known.
func (f *Frontier) forward(u *unit, st *site, url weburl.URL, fp uint64, q *blobschema.Queued) {
	f.sendOn(u, url, fp, q)
	p := u.slot.of(fp)
	if i, k := p.find(fp); k == inMarks { // in a lower generation
		m := &p.marks[i]
		m.gen, m.state, m.seq, m.part = q.Generation, blobschema.Forwarded, 0, 0
		f.settled = append(f.settled, blobschema.Settled{Slot: u.slot.id, Fingerprint: fp, Generation: q.Generation, State: blobschema.Forwarded})
		p.touched = f.delta + 1
		return
	}
	f.counts.Known++
	f.resident++
	f.sizes.add(u.domain.name, 1)
	f.addSettled(p, st, fp, q.Generation, blobschema.Forwarded, blobschema.Origin{})
}

// sendOn forwards a URL of a name to the slot of the name's address.
func (f *Frontier) sendOn(u *unit, url weburl.URL, fp uint64, q *blobschema.Queued) {
	l := Link{URL: url, Fingerprint: fp, Rank: q.Rank, Generation: q.Generation, Depth: q.Depth, Topic: q.Topic, Flags: q.Flags}
	l.place(f.cfg.Hash, u.address())
	f.placements = append(f.placements, l)
}

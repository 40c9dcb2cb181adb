package frontier

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// names forwards the URLs of names to their addresses, in a crawl whose politeness keys are addresses. In other
// crawls it is nil and does nothing.
type names struct {
	f          *Frontier
	placements []Link
}

// Placements returns the links that were forwarded to the slot of their address since the last call, in the order of
// their discovery. The commit that holds the next delta must hold them too, because that delta settles them as
// Forwarded.
func (f *Frontier) Placements() []Link {
	if f.names == nil {
		return nil
	}
	p := f.names.placements
	f.names.placements = nil
	return p
}

// near returns the key of a pinned name's address if that key is in the same slot, else nil. A slot has one
// entry for a URL, so a URL is not forwarded within its slot: it changes its key.
func (n *names) near(k *schedule.Key) *schedule.Key {
	address := k.Address()
	if n.f.cfg.Hash.Slot(address) != k.Slot() {
		return nil
	}
	return n.f.schedule.Key(&n.f.slots.open(k.Slot()).keys, address)
}

// added returns the key to which a URL is added, and its entry there.
func (n *names) added(k *schedule.Key, q *blobschema.Queued) (*schedule.Key, *blobschema.Queued) {
	if n == nil || !k.Pinned() {
		return k, q
	}
	near := n.near(k)
	if near == nil {
		return k, q
	}
	placed := *q
	placed.Flags |= blobschema.FlagPlaced
	return near, &placed
}

// answered forwards the URLs of a name after a task has found its address.
func (n *names) answered(now time.Time, t *schedule.Task) {
	if n != nil && t.Request.Resolve && t.Key().Pinned() {
		n.f.schedule.Pin(now, t.Key(), n.near(t.Key()))
		n.f.settleEnded()
	}
}

// settler returns the key that counts a URL of a loaded part as settled.
func (n *names) settler(k *schedule.Key, u weburl.URL) *schedule.Key {
	if n != nil && k.Pinned() {
		if near := n.near(k); near != nil && n.f.schedule.Settled(near, u) > 0 {
			return near
		}
	}
	return k
}

// forward settles a URL of a name whose address is known.
func (n *names) forward(p *part, k *schedule.Key, u weburl.URL, fp uint64, q *blobschema.Queued) {
	n.sendOn(k, u, fp, q)
	f := n.f
	if i, at := p.find(fp); at == inMarks { // it is settled in a lower generation
		m := &p.marks[i]
		m.gen, m.state, m.seq, m.part = q.Generation, blobschema.Forwarded, 0, 0
		f.settled = append(f.settled, blobschema.Settled{Slot: p.slot.id, Fingerprint: fp, Generation: q.Generation, State: blobschema.Forwarded})
		f.schedule.TouchPool(&p.Pool)
		return
	}
	f.slots.sum.known++
	f.slots.resident++
	f.caps.sizes.add(k.Domain(), 1)
	f.schedule.CountSettled(k, u, 1)
	f.addSettled(p, fp, q.Generation, blobschema.Forwarded, blobschema.RecordRef{})
}

// sendOn forwards a URL of a name to the slot of the name's address.
func (n *names) sendOn(k *schedule.Key, u weburl.URL, fp uint64, q *blobschema.Queued) {
	l := Link{URL: u, Fingerprint: fp, Rank: q.Rank, Generation: q.Generation, Depth: q.Depth, Topic: q.Topic, Flags: q.Flags}
	l.pin(n.f.cfg.Hash, k.Address())
	n.placements = append(n.placements, l)
}

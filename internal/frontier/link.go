package frontier

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Link is a URL on its way to the frontier that owns its slot, with everything that decides where it
// belongs and when it is fetched. [Mapping.Link] and [Mapping.Stored] create it.
type Link struct {
	URL         weburl.URL
	Key         string         // politeness key
	Slot        partition.Slot // slot of Key
	Fingerprint uint64         // identity of URL within the crawl
	Rank        uint32         // place in the order within the key, lower first; 0 is for requested URLs
	Generation  uint32
	Depth       uint16 // links followed from a seed
	Topic       uint8  // number of the topic; 0: none
	Flags       blobschema.QueuedFlags
	Ask         uint64 // with FlagAgain, id of its request from outside; 0: the one of its mail
}

// Mapping maps URLs to politeness keys and slots. A crawl has one, which never changes.
type Mapping struct {
	Hash partition.Hash
	By   blobschema.PartitionBy

	host weburl.Host // host of the last call: neighbouring links mostly have the same one
	last Link        // key, slot and flags of its URLs
}

// Link returns the link of a URL with its key, slot and fingerprint. The caller adds depth, topic, flags and rank.
func (m *Mapping) Link(u weburl.URL) Link {
	if h := u.Host(); h != m.host {
		key, placed := m.By.Key(string(h))
		m.host, m.last = h, Link{Key: key, Slot: m.Hash.Slot(key)}
		if placed {
			m.last.Flags = blobschema.FlagPlaced
		}
	}
	l := m.last
	l.URL, l.Fingerprint = u, m.Hash.Fingerprint(u.String())
	return l
}

// Stored returns the link that a mail or commit of this crawl holds. ok is false if q.URL does not have the form of a URL.
func (m *Mapping) Stored(q *blobschema.Queued) (l Link, ok bool) {
	u, ok := weburl.Canonical(q.URL)
	if !ok {
		return Link{}, false
	}
	l = m.Link(u)
	if q.Flags&blobschema.FlagPlaced != 0 {
		l.pin(m.Hash, q.Key)
	}
	l.Rank, l.Generation, l.Depth, l.Topic, l.Ask = q.Rank, q.Generation, q.Depth, q.Topic, q.Ask
	l.Flags |= q.Flags
	return l, true
}

// pin moves a link to the address that the name of its host was pinned to.
func (l *Link) pin(h partition.Hash, address string) {
	l.Key, l.Slot, l.Flags = address, h.Slot(address), l.Flags|blobschema.FlagPlaced
}

// Queued returns the form of a link in mail and commits.
func (l *Link) Queued() blobschema.Queued {
	return blobschema.Queued{
		Slot: l.Slot, Key: l.Key, Rank: l.Rank, URL: l.URL.String(), Generation: l.Generation, Depth: l.Depth,
		Flags: l.Flags, Topic: l.Topic, Ask: l.Ask,
	}
}

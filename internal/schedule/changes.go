package schedule

import (
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
)

// changes records what changed since the last delta.
type changes struct {
	delta uint64  // number of the last delta
	pools []*Pool // with items in their dirty lists
	keys  []*Key
	sites []*site // further sites; the own site of a key is stored with the key
}

// TouchPool records that the next delta holds something of a pool.
func (s *Schedule) TouchPool(p *Pool) { s.changes.pool(p) }

// Dirty reports whether the next delta holds anything.
func (s *Schedule) Dirty() bool {
	return len(s.changes.pools)+len(s.changes.keys)+len(s.changes.sites) > 0
}

// Delta adds the pending URLs, keys and sites that changed since the last delta to a run. It
// returns the number of the delta, and the observations of the keys that got requests.
func (s *Schedule) Delta(run *blobschema.Run) (number uint64, observed []blobschema.HostObservation) {
	c := &s.changes
	c.delta++
	c.takeItems(run)
	for _, k := range c.keys {
		if k.observed {
			k.observed = false
			observed = append(observed, k.observation(s.quality))
		}
	}
	c.takeStates(run)
	return c.delta, observed
}

func (c *changes) pool(p *Pool) { p.touched = c.delta + 1 }

// item marks an item for the next delta.
func (c *changes) item(p *Pool, i uint32) {
	c.pool(p)
	if it := &p.items[i]; it.bits&isDirty == 0 {
		it.bits |= isDirty
		if len(p.dirty) == 0 {
			c.pools = append(c.pools, p)
		}
		p.dirty = append(p.dirty, i)
	}
}

// key marks a key for the next delta.
func (c *changes) key(k *Key) {
	k.group.touched = c.delta + 1
	if !k.dirty {
		k.dirty = true
		c.keys = append(c.keys, k)
	}
}

// site marks a site for the next delta, or its key if they are stored together.
func (c *changes) site(st *site) {
	if !st.further() {
		c.key(st.key)
		return
	}
	st.key.group.touched = c.delta + 1
	if !st.dirty {
		st.dirty = true
		c.sites = append(c.sites, st)
	}
}

// takeItems puts the pending URLs that changed into a run.
func (c *changes) takeItems(run *blobschema.Run) {
	n := 0
	for _, p := range c.pools {
		n += len(p.dirty)
	}
	run.Queued = slices.Grow(run.Queued, n)
	for _, p := range c.pools {
		for _, i := range p.dirty {
			if it := &p.items[i]; it.bits&isDirty != 0 { // otherwise the item was dropped, or is listed twice
				it.bits &^= isDirty
				run.Queued = append(run.Queued, p.queued(i))
			}
		}
		p.dirty = nil
	}
	c.pools = nil
}

// takeStates puts the states of keys and sites that changed into a run.
func (c *changes) takeStates(run *blobschema.Run) {
	for _, k := range c.keys {
		k.dirty = false
		k.version++
		run.Keys = append(run.Keys, blobschema.KeyState{Slot: k.group.Slot, Key: k.name, Version: k.version, Data: k.encode()})
	}
	c.keys = c.keys[:0]
	for _, st := range c.sites {
		st.dirty = false
		st.version++
		run.Keys = append(run.Keys, blobschema.KeyState{
			Slot: st.key.group.Slot, Key: joinSite(st.key.name, st.name), Version: st.version, Data: st.encode(),
		})
	}
	c.sites = c.sites[:0]
}

// observation returns the figures of a key for the table of hosts. The score is the capability,
// whatever the policy.
func (k *Key) observation(quality func(Waiting) float64) blobschema.HostObservation {
	view := KeyView{Pending: k.pending, Allowed: k.allowed, Pace: &k.pace, topicQueues: k.topicQueues}
	return blobschema.HostObservation{
		Host: k.name, Slot: k.group.Slot, Conn: k.pace.ConnTime, Resp: k.pace.RespTime,
		PerConnection: k.pace.PerConnection, Requests: k.requests, Failures: k.failures,
		Score: view.capability(quality), Known: k.settled + uint64(k.pending), Pending: uint64(k.pending), Capped: k.capped,
	}
}

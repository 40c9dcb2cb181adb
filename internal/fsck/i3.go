package fsck

import (
	"cmp"
	"maps"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// mapNamed reads the map that an object holds; "" is that of epoch 1. It returns nil, and
// the violation is reported, if that cannot be done.
func (c *checker) mapNamed(name, where string) (*partition.Map, error) {
	if name == "" {
		return c.pmap, nil
	}
	c.name(name, where)
	data, err := c.object(name, where)
	if data == nil {
		return nil, err
	}
	m := &partition.Map{}
	if err := m.UnmarshalBinary(data); err != nil {
		c.violate("I6", name, "%v", err)
		return nil, nil
	}
	if of, _, err := blobschema.MapObjectName(c.id, m); err != nil || of != name || m.Slots() != c.pmap.Slots() {
		c.violate("I6", name, "it holds a map of epoch %d and %d slots, which is %s", m.Epoch(), m.Slots(), of)
		return nil, nil
	}
	return m, nil
}

// checkMap checks the record of the map, and that every slot is where it says, or on its
// way there.
func (c *checker) checkMap() error {
	a, key := &c.atlas, naming.MapKey(c.id)
	a.gifts, a.takes = map[slotAt]gift{}, map[slotAt]partition.ID{}
	c.report.Epoch, c.report.Moving = a.record.Epoch, len(a.moving)
	for _, what := range c.placeSlots() {
		c.violate("I3", key, "%s", what)
	}
	now, err := c.mapNamed(a.record.Object, key)
	if err != nil {
		return err
	}
	for _, name := range append([]string{a.record.Target}, a.record.Former...) {
		if _, err := c.mapNamed(name, key); err != nil {
			return err
		}
	}
	if now != nil {
		c.checkPlaces(now)
	}
	for _, p := range c.parts {
		if p.man != nil {
			c.checkMoved(p)
		}
	}
	return nil
}

// checkPlaces checks each slot against the map of the record.
func (c *checker) checkPlaces(now *partition.Map) {
	a, key := &c.atlas, naming.MapKey(c.id)
	if now.Epoch() != a.record.Epoch {
		c.violate("I3", key, "its epoch is %d, that of its map %d", a.record.Epoch, now.Epoch())
	}
	for _, o := range now.Partitions() {
		if int(o) >= len(c.parts) {
			c.violate("I3", key, "its map has slots for partition %d, and it says that there are %d", o, len(c.parts))
		}
	}
	twice := map[partition.Slot]bool{}
	for _, m := range a.record.Moving {
		for _, s := range m.Slots {
			switch {
			case int(s) >= now.Slots():
				c.violate("I3", key, "slot %d is on the move, of %d", s, now.Slots())
			case twice[s]:
				c.violate("I3", key, "slot %d is on the move twice", s)
			case m.Epoch < 2 || m.Epoch > a.record.Epoch || m.From == m.To || int(max(m.From, m.To)) >= len(c.parts):
				c.violate("I3", key, "slot %d is on the move from partition %d to %d by epoch %d", s, m.From, m.To, m.Epoch)
			case now.Owner(s) != m.To:
				c.violate("I3", key, "slot %d is on the move to partition %d, and by the map partition %d's", s, m.To, now.Owner(s))
			}
			twice[s] = true
		}
	}
	for _, p := range c.parts {
		if p.broken {
			return // where its slots are nobody can say
		}
	}
	for s := range partition.Slot(now.Slots()) {
		c.checked["I3"]++
		home, h := c.homeOf(s), a.handed[s]
		m, on := a.moving[s]
		switch {
		case !on && (h != nil || home.id != now.Owner(s)):
			c.violate("I3", key, "slot %d is partition %d's and is not on the move, and its home is partition %d", s, now.Owner(s), home.id)
		case !on:
		case h != nil && (h.Epoch != m.Epoch || h.from != m.From || h.To != m.To):
			c.violate("I3", key, "slot %d is on the move from partition %d to %d by epoch %d, and handed from %d to %d by epoch %d",
				s, m.From, m.To, m.Epoch, h.from, h.To, h.Epoch)
		case h != nil:
		case home.id == m.From && home.holding.Seen(s) < m.Epoch:
		case home.id == m.To && home.holding.Seen(s) == m.Epoch:
		default:
			c.violate("I3", key, "slot %d is on the move from partition %d to %d by epoch %d, and partition %d holds it since epoch %d",
				s, m.From, m.To, m.Epoch, home.id, home.holding.Seen(s))
		}
	}
}

// checkMoved checks what the last manifest of a partition says of slots that moved.
func (c *checker) checkMoved(p *part) {
	where, m := p.head.Commit, p.man
	if m.Epoch > c.atlas.record.Epoch {
		c.violate("I3", where, "its epoch is %d, and the map is of epoch %d", m.Epoch, c.atlas.record.Epoch)
	}
	for _, mv := range m.Moved {
		if mv.Epoch < 2 || mv.Epoch > m.Epoch {
			c.violate("I3", where, "at epoch %d it has seen slots %.100s move by epoch %d", m.Epoch, mv.Slots, mv.Epoch)
		}
		if n := len(mv.Slots); n > 0 && int(mv.Slots[n-1]) >= c.pmap.Slots() {
			c.violate("I3", where, "it has seen slot %d move, of %d", mv.Slots[n-1], c.pmap.Slots())
		}
	}
	for i := range m.Given {
		c.checkGiven(p, &m.Given[i])
	}
}

// checkGiven checks a hand-over. One that was taken stays until the giver knows.
func (c *checker) checkGiven(p *part, g *blobschema.Handover) {
	where := p.head.Commit
	if g.Epoch < 2 || g.Epoch > p.man.Epoch || g.To == p.id || int(g.To) >= len(c.parts) {
		c.violate("I3", where, "it hands slots %.100s to partition %d by epoch %d", g.Slots, g.To, g.Epoch)
	}
	for _, s := range g.Slots {
		if int(s) >= c.pmap.Slots() {
			c.violate("I3", where, "it hands slot %d over, of %d", s, c.pmap.Slots())
			continue
		}
		if seen := p.holding.Seen(s); seen < g.Epoch || seen == g.Epoch && p.holding.Holds(s) {
			c.violate("I3", where, "it hands slot %d over by epoch %d, and has not given it", s, g.Epoch)
		}
	}
	for _, s := range g.State {
		if !g.Slots.Has(s.Slot) {
			c.violate("I3", where, "its hand-over of slots %.100s has a summary of slot %d", g.Slots, s.Slot)
		}
	}
}

// checkMoves checks what a commit says of slots that moved against the commit before. It
// returns what the partition held before it and since.
func (c *checker) checkMoves(h *history, name string, prev, m *blobschema.Manifest) (was, is *blobschema.Holding) {
	if was = h.then; was == nil {
		was = blobschema.NewHolding(h.id, c.pmap, nil)
	}
	if slices.EqualFunc(prev.Moved, m.Moved, func(a, b blobschema.Moved) bool {
		return a.Epoch == b.Epoch && a.Held == b.Held && slices.Equal(a.Slots, b.Slots)
	}) {
		h.then = was
		return was, was
	}
	is = blobschema.NewHolding(h.id, c.pmap, m.Moved)
	h.then = is
	if m.Seq != prev.Seq+1 {
		return was, is // what happened between them cannot be read
	}
	for s := range partition.Slot(c.pmap.Slots()) {
		at := slotAt{s, is.Seen(s)}
		switch before := was.Seen(s); {
		case at.epoch < before:
			c.violate("I3", name, "slot %d had moved by epoch %d before, and has by epoch %d", s, before, at.epoch)
		case at.epoch == before && was.Holds(s) != is.Holds(s):
			c.violate("I3", name, "slot %d was held and is not, or the other way round, by the same epoch %d", s, at.epoch)
		case at.epoch == before:
		case was.Holds(s) == is.Holds(s):
			c.violate("I3", name, "slot %d is given that was not held, or taken that was, by epoch %d", s, at.epoch)
		case is.Holds(s):
			if by, twice := c.atlas.takes[at]; twice {
				c.violate("I3", name, "slot %d is taken by epoch %d, and partition %d took it then", s, at.epoch, by)
			}
			c.atlas.takes[at] = h.id
		default:
			c.give(h, name, at, m)
		}
	}
	return was, is
}

// give takes note that a commit gives a slot away.
func (c *checker) give(h *history, name string, at slotAt, m *blobschema.Manifest) {
	i := slices.IndexFunc(m.Given, func(g blobschema.Handover) bool { return g.Epoch == at.epoch && g.Slots.Has(at.slot) })
	if i < 0 {
		c.violate("I3", name, "slot %d is given by epoch %d, and no hand-over has it", at.slot, at.epoch)
		return
	}
	if by, twice := c.atlas.gifts[at]; twice {
		c.violate("I3", name, "slot %d is given by epoch %d, and partition %d gave it then", at.slot, at.epoch, by.from)
	}
	c.atlas.gifts[at] = gift{h.id, m.Given[i].To}
}

// checkHistory checks that all slots that were taken were given, to the same partition, and
// puts together who owned them.
func (c *checker) checkHistory() {
	a := &c.atlas
	a.unknown = slices.ContainsFunc(c.parts, func(p *part) bool { return p.broken })
	a.owners = map[partition.Slot][]owned{}
	for at, g := range a.gifts {
		a.owners[at.slot] = append(a.owners[at.slot], owned{at.epoch, g.to})
	}
	for s, m := range a.moving {
		if _, given := a.gifts[slotAt{s, m.Epoch}]; !given {
			a.owners[s] = append(a.owners[s], owned{m.Epoch, m.To})
		}
	}
	for _, list := range a.owners {
		slices.SortFunc(list, func(a, b owned) int { return cmp.Compare(a.epoch, b.epoch) })
	}
	if a.unknown {
		return
	}
	ats := slices.SortedFunc(maps.Keys(a.takes), func(a, b slotAt) int {
		return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.epoch, b.epoch))
	})
	for _, at := range ats {
		by := a.takes[at]
		where := c.where(c.parts[by])
		switch g, given := a.gifts[at]; {
		case !given:
			c.violate("I3", where, "it has taken slot %d by epoch %d, and no commit gave it then", at.slot, at.epoch)
		case g.to != by:
			c.violate("I3", where, "it has taken slot %d by epoch %d, which partition %d gave to partition %d", at.slot, at.epoch, g.from, g.to)
		}
	}
}

// ownerBy is the owner of a slot by the map of an epoch.
func (c *checker) ownerBy(s partition.Slot, e partition.Epoch) partition.ID {
	owner := c.pmap.Owner(s)
	for _, o := range c.atlas.owners[s] {
		if o.epoch <= e {
			owner = o.to
		}
	}
	return owner
}

// mayMail reports whether a partition may send another a URL of a slot, by a map of an epoch
// or, as links may wait, by one before. To itself it sends what it asks for again.
func (c *checker) mayMail(from, to partition.ID, s partition.Slot, e partition.Epoch) bool {
	return c.pmap.Owner(s) == to || from == to && c.had(to, s) || c.atlas.unknown ||
		slices.ContainsFunc(c.atlas.owners[s], func(o owned) bool { return o.to == to && o.epoch <= e })
}

// checkMovesOfHead compares what a head says of moves with its manifest and the map.
func (c *checker) checkMovesOfHead(p *part, key string) {
	h := &p.head
	gives := map[partition.ID]partition.Epoch{}
	for _, g := range p.man.Given {
		gives[g.To] = max(gives[g.To], g.Epoch)
	}
	if len(gives)+len(h.Gives) > 0 && !maps.Equal(gives, h.Gives) {
		c.violate("I3", key, "it gives slots to %v, its manifest to %v", h.Gives, gives)
	}
	owes, awaits := 0, partition.Epoch(0)
	for s, m := range c.atlas.moving {
		if c.owes(p, s) {
			owes++
		}
		if c.awaits(p, s) {
			awaits = cmp.Or(min(awaits, m.Epoch), m.Epoch)
		}
	}
	if owes != h.Owes {
		c.violate("I3", key, "it owes %d slots, and by the map %d", h.Owes, owes)
	}
	if awaits != h.Awaits {
		c.violate("I3", key, "it awaits slots since epoch %d, and by the map since epoch %d (0: none)", h.Awaits, awaits)
	}
}

package fsck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// atlas is what is stored of the map, and where the slots are. What a slot holds is
// known to its home: the partition that holds it, or, while a hand-over is under
// way, the one that is to take it.
type atlas struct {
	record   blobschema.MapRecord                  // of epoch 1 where there is none
	byEpoch  map[partition.Epoch]*partition.Map    // as far as they are kept, and can be read
	byName   map[string]*partition.Map             // nil for what cannot be read
	home     []partition.ID                        // by slot
	moving   map[partition.Slot]*blobschema.Moving // by slot, of the record
	handed   map[partition.Slot]*handed            // hand-overs that nobody has taken
	anyMoved bool                                  // some slot was given or taken, or is to be
}

// handed is a hand-over of a slot, with the partition that gives it.
type handed struct {
	*blobschema.Handover
	from partition.ID
}

// opened is a manifest, or why it cannot be had.
type opened struct {
	man *blobschema.Manifest
	err error
}

// moment reads the record of the map and all heads, so that they can be compared.
//
// Steps go on committing meanwhile, and a large crawl never stands still; so heads are not
// of one moment, and need not be. A commit that is read early tells too little, which
// looks like mail on its way. Only where a slot is must agree: a giver read before its
// commit and a taker read after its own would both hold it. Then all is read again. What
// still disagrees when two readings are the same did so at one moment: it is damage.
func (c *checker) moment() error {
	const tries = 50
	var last []string
	for i := range tries {
		if i > 1 { // the second look is for what stands still
			if err := c.sleep(min(time.Duration(i)*time.Millisecond, 50*time.Millisecond)); err != nil {
				return err
			}
		}
		before, err := c.mapRecord()
		if err != nil {
			return err
		}
		seen, err := c.heads()
		if err != nil {
			return err
		}
		after, err := c.mapRecord()
		if err != nil {
			return err
		}
		if before.Version != after.Version {
			last = nil
			continue
		}
		c.atlas.record = before
		if len(c.placeSlots()) == 0 || last != nil && slices.Equal(last, seen) {
			return nil
		}
		last = seen
	}
	return fmt.Errorf("read heads: slots were on the move in each of %d readings", tries)
}

func (c *checker) sleep(d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.ctx.Done():
		return c.ctx.Err()
	case <-t.C:
		return nil
	}
}

// mapRecord reads the record of the map, and makes room for all partitions it tells of.
func (c *checker) mapRecord() (blobschema.MapRecord, error) {
	key := blobschema.MapKey(c.id)
	r, found, err := record[blobschema.MapRecord](c, key)
	if err != nil {
		return r, err
	}
	if !found {
		r = blobschema.MapRecord{Epoch: 1, Partitions: c.crawl.Partitions}
	}
	if r.Epoch < 1 || r.Partitions < 0 || r.Partitions > partition.MaxPartitions {
		c.violate("I6", key, "its epoch is %d, with %d partitions", r.Epoch, r.Partitions)
		return r, errUnusable
	}
	for p := len(c.parts); p < max(c.crawl.Partitions, r.Partitions); p++ {
		c.parts = append(c.parts, &part{id: partition.ID(p)})
	}
	return r, nil
}

// heads reads all heads, and the manifests that they name, and returns the names of the
// commits.
func (c *checker) heads() (commits []string, err error) {
	for _, p := range c.parts {
		h, found, err := record[blobschema.Head](c, blobschema.HeadKey(c.id, p.id))
		if err != nil {
			return nil, err
		}
		if !found {
			h = blobschema.Head{Partition: p.id}
		}
		o, err := c.manifest(h.Commit)
		if err != nil {
			return nil, err
		}
		p.head, p.man, p.broken = h, o.man, o.err != nil
		var moved []blobschema.Moved
		if p.man != nil {
			moved = p.man.Moved
		}
		p.holding = blobschema.NewHolding(p.id, c.pmap, moved)
		commits = append(commits, h.Commit)
	}
	return commits, nil
}

// manifest reads the manifest of a commit that a head names, once: commits do not change.
// What is wrong with it is reported when it is known that this is the one to check.
func (c *checker) manifest(commit string) (opened, error) {
	if commit == "" {
		return opened{}, nil
	}
	if o, ok := c.manifests[commit]; ok {
		return o, nil
	}
	var o opened
	data, err := c.store.Object(c.ctx, commit)
	if ctxErr := c.ctx.Err(); ctxErr != nil {
		return o, ctxErr
	}
	var r *blobschema.CommitReader
	if err == nil {
		r, err = blobschema.OpenCommit(data)
	}
	if err == nil {
		var m blobschema.Manifest
		if m, err = r.Manifest(); err == nil {
			o.man = &m
		}
	}
	o.err = err
	c.manifests[commit] = o
	return o, nil
}

// placeSlots finds the home of each slot, and says which slots have none, or several.
func (c *checker) placeSlots() (problems []string) {
	a := &c.atlas
	n := c.pmap.Slots()
	a.home, a.handed, a.anyMoved = c.pmap.Owners(), map[partition.Slot]*handed{}, false
	a.moving = map[partition.Slot]*blobschema.Moving{}
	owners := make([]int, n)
	for s := range owners {
		owners[s] = 1
	}
	unreadable := false
	for _, p := range c.parts {
		unreadable = unreadable || p.broken
		for _, m := range p.holding.Moved() {
			a.anyMoved = true
			for _, s := range m.Slots {
				if c.pmap.Owner(s) == p.id {
					owners[s]--
				}
				if m.Held {
					owners[s]++
					a.home[s] = p.id
				}
			}
		}
	}
	for _, p := range c.parts {
		if p.man == nil {
			continue
		}
		for i := range p.man.Given {
			g := &p.man.Given[i]
			a.anyMoved = true
			if int(g.To) >= len(c.parts) {
				continue // reported with the manifest
			}
			for _, s := range g.Slots {
				if int(s) < n && g.Epoch > c.parts[g.To].holding.Seen(s) {
					owners[s]++
					a.home[s], a.handed[s] = g.To, &handed{g, p.id}
				}
			}
		}
	}
	for i := range a.record.Moving {
		m := &a.record.Moving[i]
		a.anyMoved = true
		for _, s := range m.Slots {
			a.moving[s] = m
		}
	}
	var none, several partition.Slots
	for s, n := range owners {
		switch {
		case n < 1 && !unreadable:
			none = append(none, partition.Slot(s))
		case n > 1:
			several = append(several, partition.Slot(s))
		}
	}
	if len(none) > 0 {
		problems = append(problems, fmt.Sprintf("no partition holds the slots %.200s, and no hand-over has them", none))
	}
	if len(several) > 0 {
		problems = append(problems, fmt.Sprintf("the slots %.200s are held more than once, hand-overs included", several))
	}
	return problems
}

// homeOf is the partition that knows what there is of a slot.
func (c *checker) homeOf(s partition.Slot) *part { return c.parts[c.atlas.home[s]] }

// awaits reports whether a slot is to come to a partition, as far as its last commit knew.
func (c *checker) awaits(p *part, s partition.Slot) bool {
	m, ok := c.atlas.moving[s]
	return ok && int(s) < c.pmap.Slots() && m.To == p.id && p.man != nil && m.Epoch <= p.man.Epoch && !p.holding.Holds(s)
}

// owes reports whether a partition holds a slot that is to go elsewhere, and knew it.
func (c *checker) owes(p *part, s partition.Slot) bool {
	m, ok := c.atlas.moving[s]
	return ok && int(s) < c.pmap.Slots() && m.From == p.id && p.man != nil && m.Epoch <= p.man.Epoch && p.holding.Holds(s)
}

// had reports whether a partition may have stored anything of a slot: it holds, held or
// awaits it. Runs keep such entries until they are merged.
func (c *checker) had(p partition.ID, s partition.Slot) bool {
	if int(s) >= c.pmap.Slots() || int(p) >= len(c.parts) {
		return false
	}
	q := c.parts[p]
	return c.pmap.Owner(s) == p || q.holding.Seen(s) > 1 || c.awaits(q, s)
}

// mapNamed reads the map that an object holds; "" is that of epoch 1. It returns nil, and
// the violation is reported, if that cannot be done.
func (c *checker) mapNamed(name, where string) (*partition.Map, error) {
	if name == "" {
		return c.pmap, nil
	}
	if m, ok := c.atlas.byName[name]; ok {
		return m, nil
	}
	c.name(name, where)
	data, err := c.object(name, where)
	if data == nil {
		return nil, err
	}
	m := &partition.Map{}
	if err := m.UnmarshalBinary(data); err != nil {
		c.violate("I6", name, "%v", err)
		m = nil
	} else if of, _, err := blobschema.MapObjectName(c.id, m); err != nil || of != name || m.Slots() != c.pmap.Slots() {
		c.violate("I6", name, "it holds a map of epoch %d and %d slots, which is %s", m.Epoch(), m.Slots(), of)
		m = nil
	}
	c.atlas.byName[name] = m
	return m, nil
}

// mapInForce is mapNamed for a map that is in force, or was.
func (c *checker) mapInForce(name, where string) (*partition.Map, error) {
	m, err := c.mapNamed(name, where)
	if m != nil {
		c.atlas.byEpoch[m.Epoch()] = m
	}
	return m, err
}

// checkMap checks the record of the map, and that every slot is where it says, or on its
// way there.
func (c *checker) checkMap() error {
	a, key := &c.atlas, blobschema.MapKey(c.id)
	a.byEpoch, a.byName = map[partition.Epoch]*partition.Map{1: c.pmap}, map[string]*partition.Map{}
	c.report.Epoch, c.report.Moving = a.record.Epoch, len(a.moving)
	for _, what := range c.placeSlots() {
		c.violate("I3", key, "%s", what)
	}
	now, err := c.mapInForce(a.record.Object, key)
	if err != nil {
		return err
	}
	if a.record.Target != "" {
		if _, err := c.mapNamed(a.record.Target, key); err != nil {
			return err
		}
	}
	last := a.record.Epoch
	for _, name := range a.record.Former {
		m, err := c.mapInForce(name, key)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		if m.Epoch() >= last {
			c.violate("I3", key, "among the maps before, that of epoch %d comes after that of epoch %d", m.Epoch(), last)
		}
		last = m.Epoch()
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
	a, key := &c.atlas, blobschema.MapKey(c.id)
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
		for _, s := range mv.Slots {
			if int(s) >= c.pmap.Slots() {
				c.violate("I3", where, "it has seen slot %d move, of %d", s, c.pmap.Slots())
				continue
			}
			from, to, known := c.moveOf(s, mv.Epoch)
			if known && (from == to || mv.Held && to != p.id || !mv.Held && from != p.id) {
				did := "given"
				if mv.Held {
					did = "taken"
				}
				c.violate("I3", where, "it has %s slot %d by epoch %d, which goes from partition %d to %d then", did, s, mv.Epoch, from, to)
			}
		}
	}
	for i := range m.Given {
		c.checkGiven(p, &m.Given[i])
	}
}

// moveOf says from where to where a slot goes by an epoch, if both maps are known.
func (c *checker) moveOf(s partition.Slot, e partition.Epoch) (from, to partition.ID, known bool) {
	before, after := c.atlas.byEpoch[e-1], c.atlas.byEpoch[e]
	if before == nil || after == nil {
		return 0, 0, false
	}
	return before.Owner(s), after.Owner(s), true
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
		if from, to, known := c.moveOf(s, g.Epoch); known && (from != p.id || to != g.To) {
			c.violate("I3", where, "it hands slot %d to partition %d by epoch %d, which goes from partition %d to %d then", s, g.To, g.Epoch, from, to)
		}
	}
	for _, s := range g.State {
		if !g.Slots.Has(s.Slot) {
			c.violate("I3", where, "its hand-over of slots %.100s has a summary of slot %d", g.Slots, s.Slot)
		}
	}
}

// checkMoves checks what a commit says of slots that moved against the commit before. It
// returns what the partition held then.
func (c *checker) checkMoves(h *history, name string, prev, m *blobschema.Manifest) (was, is *blobschema.Holding) {
	same := slices.EqualFunc(prev.Moved, m.Moved, func(a, b blobschema.Moved) bool {
		return a.Epoch == b.Epoch && a.Held == b.Held && slices.Equal(a.Slots, b.Slots)
	})
	was = h.then
	if was == nil {
		was = blobschema.NewHolding(h.id, c.pmap, nil)
	}
	if is = was; same {
		h.then = is
		return was, is
	}
	is = blobschema.NewHolding(h.id, c.pmap, m.Moved)
	h.then = is
	for s := range partition.Slot(c.pmap.Slots()) {
		before, now := was.Seen(s), is.Seen(s)
		switch {
		case now < before:
			c.violate("I3", name, "slot %d had moved by epoch %d before, and has by epoch %d", s, before, now)
		case now == before && was.Holds(s) != is.Holds(s):
			c.violate("I3", name, "slot %d is held or not by the same epoch %d", s, now)
		case now > before && !is.Holds(s) && m.Seq == prev.Seq+1 && !slices.ContainsFunc(m.Given, func(g blobschema.Handover) bool {
			return g.Epoch == now && g.Slots.Has(s)
		}):
			c.violate("I3", name, "slot %d is given by epoch %d, and no hand-over has it", s, now)
		}
	}
	return was, is
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

// mayMail reports whether mail of an epoch may go to a partition with a URL of a slot: the
// slot was the partition's by a map up to that epoch, as far as maps are kept.
func (c *checker) mayMail(from, to partition.ID, s partition.Slot, e partition.Epoch) bool {
	e = min(e, c.atlas.record.Epoch)
	known := partition.Epoch(0)
	for n, m := range c.atlas.byEpoch {
		if n > e {
			continue
		}
		if known++; m.Owner(s) == to {
			return true
		}
	}
	return known < e || from == to && c.had(to, s)
}

package crawl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/stored"
	"github.com/orbweaver/orbweaver/partition"
)

// Moving a slot moves pointers. A step that learns of a move asks for nothing more of a
// slot that goes; when nothing of it is under way the next commit is made without it, and
// names the runs for the receiver: the hand-over. The receiver's step pulls it from that
// manifest. The commit in which it names the runs itself confirms the move, and only then
// it asks for URLs of the slot. What comes for the slot before is kept unexamined; what
// comes to a partition that has given it away is sent on.

// Times of a move.
const (
	pullSoon = 100 * time.Millisecond // between two looks at who should give
	pullLate = 5 * time.Second        // the same, when it takes long
	giveRest = time.Second            // how long slots that are still wait for those that are not
)

// territory is what a step knows of its slots: those it holds, as its manifest says, and
// those that are to come and to go by the map.
type territory struct {
	pmap    *partition.Map // never older than the epoch of the manifest
	record  blobschema.MapRecord
	holding *blobschema.Holding
	given   []blobschema.Handover                // not known to be confirmed
	owed    map[partition.Slot]blobschema.Moving // frozen slots, to be given
	busy    []partition.Slot                     // of them, those that were not still when last looked at
	awaited map[partition.Slot]partition.Epoch   // to come, and in no manifest of ours
	from    map[partition.ID]string              // who should give them, and the commit that was last looked at for it
	takes   int                                  // commits that took slots over
	arrived []arrival                            // pulled, for the next commit

	// Of the step at work.
	pulling bool           // it looks for slots that are to come
	gaveTo  []partition.ID // receivers of the slots that it gave since the last commit
}

// arrival is a hand-over, or the part of it that is news.
type arrival struct {
	slots partition.Slots
	given blobschema.Handover
}

func newTerritory(c *blobschema.Crawl, p partition.ID, moved []blobschema.Moved) (*territory, error) {
	first, err := partition.NewMap(c.Slots, c.Partitions)
	if err != nil {
		return nil, fmt.Errorf("crawl %s: %w", c.ID, err)
	}
	return &territory{
		pmap: first, record: blobschema.MapRecord{Epoch: 1, Partitions: c.Partitions},
		holding: blobschema.NewHolding(p, first, moved),
		owed:    map[partition.Slot]blobschema.Moving{}, awaited: map[partition.Slot]partition.Epoch{}, from: map[partition.ID]string{},
	}, nil
}

// owner is where a URL of a slot belongs, as far as this step knows: here, if it holds the
// slot or waits for it.
func (st *state) owner(slot partition.Slot) partition.ID {
	ter := st.ter
	if ter.holding.Holds(slot) || len(ter.awaited) > 0 && ter.awaited[slot] != 0 {
		return st.cfg.Partition
	}
	return ter.pmap.Owner(slot)
}

// ours reports, off the loop too, which slots this step's runs need to hold as of now: nil
// for all that are in them.
func (st *state) ours() func(partition.Slot) bool {
	if st.ter.record.Version == 0 {
		return nil
	}
	mine := make([]bool, st.cfg.Crawl.Slots)
	for i := range mine {
		mine[i] = st.owner(partition.Slot(i)) == st.cfg.Partition
	}
	return func(id partition.Slot) bool { return int(id) < len(mine) && mine[id] }
}

// partitions is how many partitions there are, or ever were, as far as this step knows.
func (st *state) partitions() int { return max(st.cfg.Crawl.Partitions, st.ter.record.Partitions) }

// learnMap brings the step's map up to date with the record, and plans what follows.
func (st *state) learnMap(t *actor.Task) error {
	ter := st.ter
	p, rec, err := readPartitioning(t, &st.cfg.Crawl)
	if err != nil {
		return err
	}
	if !rec.Found || p.Record.Version == ter.record.Version {
		return nil
	}
	ter.record, ter.pmap = p.Record, p.Map
	before := len(ter.given)
	ter.given = slices.DeleteFunc(ter.given, func(h blobschema.Handover) bool {
		return !slices.ContainsFunc(p.Record.Moving, func(m blobschema.Moving) bool {
			return m.Epoch == h.Epoch && m.From == st.cfg.Partition && m.To == h.To
		})
	})
	changed := len(ter.given) < before
	for _, m := range p.Record.Moving {
		fresh := slices.DeleteFunc(slices.Clone(m.Slots), func(id partition.Slot) bool { return m.Epoch <= ter.holding.Seen(id) })
		switch st.cfg.Partition {
		case m.From:
			fresh = slices.DeleteFunc(fresh, func(id partition.Slot) bool { return !ter.holding.Holds(id) || ter.owed[id].Epoch == m.Epoch })
			st.f.Freeze(fresh)
			for _, id := range fresh {
				ter.owed[id] = m
			}
			ter.busy = append(ter.busy, fresh...)
		case m.To:
			fresh = slices.DeleteFunc(fresh, func(id partition.Slot) bool { return ter.awaited[id] == m.Epoch })
			st.f.Await(fresh)
			for _, id := range fresh {
				ter.awaited[id] = m.Epoch
			}
			if len(fresh) > 0 {
				ter.from[m.From] = "" // what it gives may be in a commit that was looked at before
			}
		default:
			continue
		}
		changed = changed || len(fresh) > 0
	}
	if changed {
		st.batch.applied = true // the head must say so
	}
	st.pull()
	return nil
}

// pull is the task that looks for what others should give, as long as anything is awaited.
func (st *state) pull() {
	if st.ter.pulling || len(st.ter.awaited) == 0 {
		return
	}
	st.ter.pulling = true
	st.lease.Spawn(func(t *actor.Task) error {
		defer func() { st.ter.pulling = false }()
		for wait := pullSoon; st.lease.phase != closed; wait = min(2*wait, pullLate) {
			if err := st.pullOnce(t); err != nil {
				return err
			}
			if len(st.ter.awaited) == st.ter.arrivedSlots() {
				return nil
			}
			t.Sleep(wait)
		}
		return nil
	})
}

func (ter *territory) arrivedSlots() (n int) {
	for _, a := range ter.arrived {
		n += len(a.slots)
	}
	return n
}

// pullOnce takes what of the awaited slots stands in the manifests of those who give them.
func (st *state) pullOnce(t *actor.Task) error {
	ter := st.ter
	givers := slices.Sorted(maps.Keys(ter.from))
	keys := make([]string, len(givers))
	for i, p := range givers {
		keys[i] = naming.HeadKey(st.cfg.Crawl.ID, p)
	}
	recs, err := t.Records(keys...)
	if err != nil {
		return err
	}
	for i, p := range givers {
		if !recs[i].Found {
			continue
		}
		h, err := actor.Decode[blobschema.Head](recs[i], "head")
		if err != nil {
			return err
		}
		if h.Gives[st.cfg.Partition] == 0 || h.Commit == ter.from[p] {
			continue
		}
		man, err := stored.Manifest(t.Object, h.Commit)
		if err != nil {
			return err
		}
		if st.lease.phase == closed {
			return nil
		}
		for _, given := range man.Given {
			st.arrive(given)
		}
		ter.from[p] = h.Commit
	}
	return nil
}

// nudged looks at once for what others should give: one of them has just given it.
func (st *state) nudged() {
	if len(st.ter.awaited) > st.ter.arrivedSlots() {
		st.lease.Spawn(st.pullOnce)
	}
}

// nudgeReceivers tells those that the last commit has given slots to. A step at work looks
// when it gets the mail, which it would not know of before its next commit; one is begun where
// ticks are far apart. Both may be lost: then it takes longer.
func (s *Step) nudgeReceivers() {
	slices.Sort(s.st.ter.gaveTo)
	to := slices.Compact(s.st.ter.gaveTo)
	s.st.ter.gaveTo = nil
	if len(to) == 0 {
		return
	}
	s.outbox.publishing++
	s.Spawn(func(t *actor.Task) error {
		defer func() { s.outbox.publishing-- }()
		for _, p := range to {
			body, err := blobschema.EncodeMail(blobschema.Mail{Crawl: s.cfg.Crawl.ID, From: s.cfg.Partition, To: p, Epoch: s.st.ter.pmap.Epoch()})
			if err != nil {
				return err
			}
			_, _ = t.Do(actor.Send{Queue: naming.MailboxQueue(p), Bodies: [][]byte{body}})
		}
		if s.cfg.SendsWakes && !s.orders.halted {
			s.outbox.wake(t, 0, to...)
		}
		return nil
	})
}

// arrive takes of a hand-over what is awaited, and not older than what was seen before.
func (st *state) arrive(h blobschema.Handover) {
	ter := st.ter
	if h.To != st.cfg.Partition {
		return
	}
	a := arrival{given: h}
	for _, id := range h.Slots {
		already := slices.ContainsFunc(ter.arrived, func(a arrival) bool { return a.slots.Has(id) })
		if ter.awaited[id] == h.Epoch && h.Epoch > ter.holding.Seen(id) && !already {
			a.slots = append(a.slots, id)
		}
	}
	if len(a.slots) > 0 {
		ter.arrived = append(ter.arrived, a)
	}
}

// moving is the number of frozen slots with something under way.
func (ter *territory) moving(f *frontier.Frontier) int {
	ter.busy = slices.DeleteFunc(ter.busy, f.Still)
	return len(ter.busy)
}

// give puts the slots that are to go and are still into a commit, and forgets them. The
// delta of the frontier, which the commit holds, was taken just before.
func (st *state) give(man *blobschema.Manifest) {
	ter := st.ter
	type to struct {
		epoch partition.Epoch
		p     partition.ID
	}
	groups := map[to]partition.Slots{}
	for id, m := range ter.owed {
		if st.f.Still(id) {
			k := to{m.Epoch, m.To}
			groups[k] = append(groups[k], id)
		}
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b to) int { return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.p, b.p)) })
	for _, k := range keys {
		slots := partition.SlotsOf(groups[k])
		h := blobschema.Handover{Epoch: k.epoch, To: k.p, Slots: slots, State: st.f.Release(slots), Floor: st.lease.head.Floor}
		ter.given = append(ter.given, h)
		ter.holding.Add(blobschema.Moved{Epoch: k.epoch, Slots: slots})
		for _, id := range slots {
			delete(ter.owed, id)
		}
		st.ter.gaveTo = append(st.ter.gaveTo, k.p)
	}
	man.Given = slices.Clone(ter.given)
}

// takeArrived puts the slots that have arrived into a commit. They may be asked for when
// it is made: see [frontier.Frontier.Open].
func (st *state) takeArrived(man *blobschema.Manifest) (slots partition.Slots, floor time.Time) {
	ter := st.ter
	for _, a := range ter.arrived {
		for _, r := range a.given.Runs {
			if !slices.ContainsFunc(man.Runs, func(have blobschema.RunRef) bool { return have.Object == r.Object }) {
				man.Runs = append(man.Runs, r)
			}
		}
		st.f.Take(slices.DeleteFunc(slices.Clone(a.given.State), func(sum blobschema.SlotSummary) bool { return !a.slots.Has(sum.Slot) }))
		ter.holding.Add(blobschema.Moved{Epoch: a.given.Epoch, Held: true, Slots: a.slots})
		for _, id := range a.slots {
			delete(ter.awaited, id)
		}
		slots = append(slots, a.slots...)
		if a.given.Floor.After(floor) {
			floor = a.given.Floor
		}
	}
	if len(ter.arrived) > 0 {
		ter.takes++
	}
	ter.arrived = nil
	if len(ter.awaited) == 0 {
		clear(ter.from)
	}
	return slots, floor
}

// tellMoves says in a head what of moves others need to know.
func (st *state) tellMoves(h *blobschema.Head, man *blobschema.Manifest) {
	ter := st.ter
	h.Owes, h.Gives, h.Awaits = len(ter.owed), nil, 0
	for _, g := range man.Given {
		if h.Gives == nil {
			h.Gives = map[partition.ID]partition.Epoch{}
		}
		h.Gives[g.To] = max(h.Gives[g.To], g.Epoch)
	}
	for _, e := range ter.awaited {
		if h.Awaits == 0 || e < h.Awaits {
			h.Awaits = e
		}
	}
}

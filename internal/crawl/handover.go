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
	"github.com/orbweaver/orbweaver/partition"
)

// Moving a slot moves pointers to its runs, not data. A step that learns of a move stops requesting URLs of a slot that
// leaves. When no request of the slot is under way, the next commit is made without the slot and names its runs for the
// receiver: the hand-over. The receiver's step reads the hand-over from that manifest. Its own commit that names the runs
// confirms the move, and only then the receiver requests URLs of the slot. What arrives for the slot earlier is kept
// unexamined; what reaches a partition that has given the slot away is forwarded.

// Times of a move.
const (
	pullSoon = 100 * time.Millisecond // first wait between two reads of a giver's head
	pullLate = 5 * time.Second        // longest such wait
	giveRest = time.Second            // how long idle slots wait for slots with requests under way
)

// territory is what a step knows of its slots: those it holds, as its manifest says, and those that the map moves to or
// from it.
type territory struct {
	pmap    *partition.Map // current map; never older than the epoch of the manifest
	record  blobschema.MapRecord
	holding *blobschema.Holding
	given   []blobschema.Handover                // hand-overs that are not known to be confirmed
	owed    map[partition.Slot]blobschema.Moving // frozen slots that must be given away
	busy    []partition.Slot                     // those of owed that had something under way at the last check
	awaited map[partition.Slot]partition.Epoch   // slots that move here and are in none of our manifests yet
	from    map[partition.ID]string              // givers of awaited slots, with the commit of each that was read last
	takes   int                                  // number of commits that took slots over
	arrived []blobschema.Handover                // hand-overs that were read, or the new parts of them, for the next commit

	// These belong to the current step.
	pulling bool           // the pull task is running
	gaveTo  []partition.ID // receivers of slots given since the last commit
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

// owner returns the partition to which URLs of a slot belong, by this step's knowledge: this partition if it holds the slot
// or waits for it, else the owner by the map.
func (st *state) owner(slot partition.Slot) partition.ID {
	ter := st.ter
	if ter.holding.Holds(slot) || len(ter.awaited) > 0 && ter.awaited[slot] != 0 {
		return st.cfg.Partition
	}
	return ter.pmap.Owner(slot)
}

// ours returns a test for the slots that this step's runs must hold, usable off the loop; nil: all slots in the runs.
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

// partitions returns the largest number of partitions so far, by this step's knowledge.
func (st *state) partitions() int { return max(st.cfg.Crawl.Partitions, st.ter.record.Partitions) }

// learnMap updates the step's map from the record, and records which slots it must give and await.
func (st *state) learnMap(t *actor.Task) error {
	ter := st.ter
	p, err := readPartitioning(t, &st.cfg.Crawl)
	if err != nil || p.Record.Version == ter.record.Version {
		return err
	}
	ter.record, ter.pmap = p.Record, p.Map
	before := len(ter.given)
	// A hand-over whose move is no longer in the record is confirmed.
	ter.given = slices.DeleteFunc(ter.given, func(h blobschema.Handover) bool {
		return !slices.ContainsFunc(p.Record.Moving, func(m blobschema.Moving) bool {
			return m.Epoch == h.Epoch && m.From == st.cfg.Partition && m.To == h.To
		})
	})
	changed := len(ter.given) < before
	// Slots that leave are frozen, and slots that arrive are awaited.
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
				ter.from[m.From] = "" // its hand-over may be in a commit that was read before
			}
		default:
			continue
		}
		changed = changed || len(fresh) > 0
	}
	if changed {
		st.batch.applied = true // the next head must report the change
	}
	st.pull()
	return nil
}

// pull starts the task that reads the givers' manifests until every awaited slot has arrived.
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
		n += len(a.Slots)
	}
	return n
}

// pullOnce reads the manifests of the givers once and takes the awaited slots that are in them.
func (st *state) pullOnce(t *actor.Task) error {
	ter := st.ter
	givers := slices.Sorted(maps.Keys(ter.from))
	heads, err := readHeads(t, st.cfg.Crawl.ID, givers...)
	if err != nil {
		return err
	}
	for i, p := range givers {
		h := heads[i]
		if h == nil || h.Gives[st.cfg.Partition] == 0 || h.Commit == ter.from[p] {
			continue
		}
		man, err := blobschema.ReadManifest(t.Object, h.Commit)
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

// nudged reads the givers' manifests at once, because one of them has just given slots.
func (st *state) nudged() {
	if len(st.ter.awaited) > st.ter.arrivedSlots() {
		st.lease.Spawn(st.pullOnce)
	}
}

// nudgeReceivers sends a nudge to the partitions that got slots with the last commit. A running step reads the hand-over
// when the nudge arrives instead of with its next commit; where coordinator runs are minutes apart, a wake starts a step.
// Both may be lost: then the move takes longer.
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

// arrive takes the awaited slots of a hand-over, unless a newer hand-over of them was seen before.
func (st *state) arrive(h blobschema.Handover) {
	ter := st.ter
	if h.To != st.cfg.Partition {
		return
	}
	h.Slots = slices.DeleteFunc(slices.Clone(h.Slots), func(id partition.Slot) bool {
		already := slices.ContainsFunc(ter.arrived, func(a blobschema.Handover) bool { return a.Slots.Has(id) })
		return !(ter.awaited[id] == h.Epoch && h.Epoch > ter.holding.Seen(id) && !already)
	})
	if len(h.Slots) > 0 {
		ter.arrived = append(ter.arrived, h)
	}
}

// moving returns the number of frozen slots with requests under way.
func (ter *territory) moving(f *frontier.Frontier) int {
	ter.busy = slices.DeleteFunc(ter.busy, f.Still)
	return len(ter.busy)
}

// give moves frozen slots without requests under way out of the state and into hand-overs of a manifest. The caller has
// just taken the frontier's delta, which the commit holds.
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

// takeArrived adds the slots that have arrived to a manifest. Their URLs may be requested once the commit is visible: see
// [frontier.Frontier.Open].
func (st *state) takeArrived(man *blobschema.Manifest) (slots partition.Slots, floor time.Time) {
	ter := st.ter
	for _, a := range ter.arrived {
		for _, r := range a.Runs {
			if !slices.ContainsFunc(man.Runs, func(have blobschema.RunRef) bool { return have.Object == r.Object }) {
				man.Runs = append(man.Runs, r)
			}
		}
		st.f.Take(slices.DeleteFunc(slices.Clone(a.State), func(sum blobschema.SlotSummary) bool { return !a.Slots.Has(sum.Slot) }))
		ter.holding.Add(blobschema.Moved{Epoch: a.Epoch, Received: true, Slots: a.Slots})
		for _, id := range a.Slots {
			delete(ter.awaited, id)
		}
		slots = append(slots, a.Slots...)
		if a.Floor.After(floor) {
			floor = a.Floor
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

// recordMoves writes into a head what others need to know of this partition's moves.
func (st *state) recordMoves(h *blobschema.Head, man *blobschema.Manifest) {
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

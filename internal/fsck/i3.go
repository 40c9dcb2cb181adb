package fsck

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// i3 checks that each slot has one owner per epoch: one partition holds it, or it is in one
// hand-over that the receiver has not taken; it is at its owner by the map, or on the move there. The
// state and pages of a partition are of slots that it held then, mail goes to the owner of
// its slots, epochs never go back, and slots move as the maps that are kept say.
func i3(v *judge, fact any) {
	switch f := fact.(type) {
	case moment:
		for _, what := range v.placeSlots() {
			v.violate(naming.MapKey(v.id), "%s", what)
		}
		v.checkMaps()
	case *part:
		if f.man.Seq > 0 {
			v.checkMoved(f)
			v.headMoves(f)
		}
	case *batch:
		m, epoch := &f.mail, v.atlas.record.Epoch
		v.must(m.Epoch <= epoch, f.by, "request %d to partition %d was dealt by a map of epoch %d, of %d", m.Number, m.To, m.Epoch, epoch)
		for i := range f.urls {
			if f.seeds == 0 { // the first map deals seeds
				v.routed(m.To, &f.urls[i], routed{epoch: max(1, m.Epoch), how: "requested from", name: f.object})
			}
		}
	case *block:
		own := func(s partition.Slot) {
			if v.Checked++; !v.had(f.of, s) {
				v.violate(f.object, "an entry is of slot %d, which is not partition %d's", s, f.of)
			}
		}
		for _, s := range f.Settled {
			own(s.Slot)
		}
		for _, q := range f.Queued {
			own(q.Slot)
		}
		for _, h := range f.Keys {
			own(h.Slot)
		}
	case *commit:
		v.must(f.m.Epoch >= max(1, f.prev.Epoch), f.name, "its epoch is %d, that of the commit before %d", f.m.Epoch, f.prev.Epoch)
		if f.m.Seq == f.prev.Seq+1 && f.is != f.was { // otherwise there are commits between them that cannot be read
			v.compareMoves(f)
		}
	case *page:
		if v.Checked++; f.home != nil && !f.in.was.Holds(f.slot) && !f.in.is.Holds(f.slot) && !(f.outside() && v.had(f.in.id, f.slot)) {
			v.violate(f.in.name, "the page record of %s, of slot %d, is partition %d's", f.URL, f.slot, f.home.id)
		}
	case *letter:
		v.mailedTo(f)
	case end:
		v.checkHistory()
	}
}

// checkMaps reads the map of the record, and those that it names besides.
func (v *judge) checkMaps() {
	r, key := &v.atlas.record, naming.MapKey(v.id)
	now := v.mapNamed(r.Object, key)
	for _, name := range append([]string{r.Target}, r.Previous...) {
		v.mapNamed(name, key)
	}
	if now == nil {
		return
	}
	v.must(now.Epoch() == r.Epoch, key, "its epoch is %d, that of its map %d", r.Epoch, now.Epoch())
	for _, o := range now.Partitions() {
		v.must(int(o) < len(v.parts), key, "its map has slots for partition %d, and it says that there are %d", o, len(v.parts))
	}
	twice := map[partition.Slot]bool{}
	for _, m := range r.Moving {
		for _, s := range m.Slots {
			switch {
			case int(s) >= now.Slots():
				v.violate(key, "slot %d is on the move, of %d", s, now.Slots())
			case twice[s]:
				v.violate(key, "slot %d is on the move twice", s)
			case m.Epoch < 2 || m.Epoch > r.Epoch || m.From == m.To || int(max(m.From, m.To)) >= len(v.parts):
				v.violate(key, "slot %d is on the move from partition %d to %d by epoch %d", s, m.From, m.To, m.Epoch)
			case now.Owner(s) != m.To:
				v.violate(key, "slot %d is on the move to partition %d, and by the map partition %d's", s, m.To, now.Owner(s))
			}
			twice[s] = true
		}
	}
	if v.anyBroken() {
		return // its slots are unknown
	}
	for s := range partition.Slot(now.Slots()) {
		v.checkPlace(s, now.Owner(s))
	}
}

// mapNamed reads the map in an object; "" names the map of epoch 1. It returns nil, and has
// reported why, if that cannot be done.
func (v *judge) mapNamed(name, by string) *partition.Map {
	if name == "" {
		return v.pmap
	}
	v.name(name, by)
	m, _, ok := decoded(v.checker, name, by, func(b []byte) (*partition.Map, error) {
		m := &partition.Map{}
		return m, m.UnmarshalBinary(b)
	})
	if !ok {
		return nil
	}
	if of, _, err := blobschema.MapObjectName(v.id, m); err != nil || of != name || m.Slots() != v.pmap.Slots() {
		v.damaged(name, "it holds a map of epoch %d and %d slots, which is %s", m.Epoch(), m.Slots(), of)
		return nil
	}
	return m
}

// checkPlace checks that a slot is at its owner by the map, or on the move there.
func (v *judge) checkPlace(s partition.Slot, owner partition.ID) {
	key, home, h := naming.MapKey(v.id), v.homeOf(s), v.atlas.handed[s]
	m, on := v.atlas.moving[s]
	switch {
	case !on:
		v.must(h == nil && home.id == owner, key,
			"slot %d is partition %d's and is not on the move, and its home is partition %d", s, owner, home.id)
	case h != nil:
		v.must(h.Epoch == m.Epoch && h.from == m.From && h.To == m.To, key,
			"slot %d is on the move from partition %d to %d by epoch %d, and handed from %d to %d by epoch %d",
			s, m.From, m.To, m.Epoch, h.from, h.To, h.Epoch)
	default:
		seen := home.holding.Seen(s)
		v.must(home.id == m.From && seen < m.Epoch || home.id == m.To && seen == m.Epoch, key,
			"slot %d is on the move from partition %d to %d by epoch %d, and partition %d holds it since epoch %d",
			s, m.From, m.To, m.Epoch, home.id, seen)
	}
}

// checkMoved checks the last manifest of a partition for the slots that moved.
func (v *judge) checkMoved(p *part) {
	where, m, n := p.head.Commit, p.man, partition.Slot(v.pmap.Slots())
	v.must(m.Epoch <= v.atlas.record.Epoch, where, "its epoch is %d, and the map is of epoch %d", m.Epoch, v.atlas.record.Epoch)
	for _, mv := range m.Moved {
		v.must(mv.Epoch >= 2 && mv.Epoch <= m.Epoch, where, "at epoch %d it has seen slots %.100s move by epoch %d", m.Epoch, mv.Slots, mv.Epoch)
		last := slices.Max(append(mv.Slots, 0))
		v.must(last < n, where, "it has seen slot %d move, of %d", last, n)
	}
	for _, s := range p.sums {
		if s.Slot >= n || !p.holding.Holds(s.Slot) && !v.awaits(p, s.Slot) {
			v.violate(where, "it has a summary of slot %d, which is not partition %d's", s.Slot, p.id)
		}
	}
	// A hand-over that was taken stays until the giver knows.
	for i := range m.Given {
		g := &m.Given[i]
		v.must(g.Epoch >= 2 && g.Epoch <= m.Epoch && g.To != p.id && int(g.To) < len(v.parts), where,
			"it hands slots %.100s to partition %d by epoch %d", g.Slots, g.To, g.Epoch)
		for _, s := range g.Slots {
			if s >= n {
				v.violate(where, "it hands slot %d over, of %d", s, n)
			} else if seen := p.holding.Seen(s); seen < g.Epoch || seen == g.Epoch && p.holding.Holds(s) {
				v.violate(where, "it hands slot %d over by epoch %d, and has not given it", s, g.Epoch)
			}
		}
		for _, s := range g.State {
			v.must(g.Slots.Has(s.Slot), where, "its hand-over of slots %.100s has a summary of slot %d", g.Slots, s.Slot)
		}
	}
}

// headMoves compares the moves of a head with the map.
func (v *judge) headMoves(p *part) {
	key, h := naming.HeadKey(v.id, p.id), &p.head
	owes, awaits := 0, partition.Epoch(0)
	for s, m := range v.atlas.moving {
		if v.owes(p, s) {
			owes++
		}
		if v.awaits(p, s) {
			awaits = cmp.Or(min(awaits, m.Epoch), m.Epoch)
		}
	}
	v.same(key, "number of slots that it owes", h.Owes, owes)
	v.same(key, "oldest epoch of slots that it awaits (0: none)", h.Awaits, awaits)
}

// turn is a slot that changes hands by the map of an epoch.
type turn struct {
	slot  partition.Slot
	epoch partition.Epoch
}

func (a turn) compare(b turn) int {
	return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.epoch, b.epoch))
}

// gift is a turn according to visible commits.
type gift struct{ from, to partition.ID }

// place is a slot at a partition that did not own it by the first map.
type place struct {
	slot partition.Slot
	at   partition.ID
}

func (a place) compare(b place) int {
	return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.at, b.at))
}

// routed is a URL that went to a place by the map of an epoch.
type routed struct {
	epoch          partition.Epoch
	url, how, name string
}

// compareMoves compares the moved slots of a commit with those of the previous commit.
func (v *judge) compareMoves(f *commit) {
	for s := range partition.Slot(v.pmap.Slots()) {
		at, before := turn{s, f.is.Seen(s)}, f.was.Seen(s)
		held, holds := f.was.Holds(s), f.is.Holds(s)
		switch {
		case at.epoch < before:
			v.violate(f.name, "slot %d had moved by epoch %d before, and has by epoch %d", s, before, at.epoch)
		case at.epoch == before:
			v.must(held == holds, f.name, "slot %d was held and is not, or the other way round, by the same epoch %d", s, at.epoch)
		case held == holds:
			v.violate(f.name, "slot %d is given that was not held, or taken that was, by epoch %d", s, at.epoch)
		case holds:
			by, already := v.taken[at]
			v.must(!already, f.name, "slot %d is taken by epoch %d, and partition %d took it then", s, at.epoch, by)
			v.taken[at] = f.id
			v.gain(at, f.id)
		default:
			i := slices.IndexFunc(f.m.Given, func(g blobschema.Handover) bool { return g.Epoch == at.epoch && g.Slots.Has(s) })
			if i < 0 {
				v.violate(f.name, "slot %d is given by epoch %d, and no hand-over has it", s, at.epoch)
				continue
			}
			g, already := v.given[at]
			v.must(!already, f.name, "slot %d is given by epoch %d, and partition %d gave it then", s, at.epoch, g.from)
			v.given[at] = gift{f.id, f.m.Given[i].To}
			v.gain(at, f.m.Given[i].To)
		}
	}
}

// gain records that a partition becomes the owner of a slot.
func (v *judge) gain(at turn, p partition.ID) {
	if old, ok := v.gained[place{at.slot, p}]; !ok || at.epoch < old {
		v.gained[place{at.slot, p}] = at.epoch
	}
}

// mailedTo notes where the URLs of a letter went. A partition mails to itself what it
// requests again.
func (v *judge) mailedTo(l *letter) {
	r := routed{epoch: l.mail.Epoch, how: "mailed to", name: l.name}
	if l.buffered {
		r.how, r.epoch = "held for", v.atlas.record.Epoch
	} else if l.err == nil && l.fits {
		v.must(r.epoch <= l.m.Epoch, l.name, "mail %d to partition %d is of epoch %d, and the commit of epoch %d", l.number, l.to, r.epoch, l.m.Epoch)
	}
	for i := range l.urls {
		if a := &l.urls[i]; l.id != l.to || !v.had(l.to, a.slot) {
			v.routed(l.to, a, r)
		}
	}
}

// routed records where a URL went, unless the first map sent it there. For each place it keeps
// the URL that went by the oldest map.
func (v *judge) routed(to partition.ID, a *address, r routed) {
	if v.Checked++; a.err != nil || v.pmap.Owner(a.slot) == to {
		return
	}
	at := place{a.slot, to}
	if old, ok := v.routes[at]; !ok || r.epoch < old.epoch {
		r.url = strings.Clone(a.text)
		v.routes[at] = r
	}
}

// checkHistory checks that the receiver of each slot took it, and that URLs went to partitions
// that had gained the slots by the map of that time or an earlier one, because links may
// wait. If a commit cannot be read, there may have been more moves.
func (v *judge) checkHistory() {
	if v.anyBroken() {
		return
	}
	for s, m := range v.atlas.moving { // some are to be given
		v.gain(turn{s, m.Epoch}, m.To)
	}
	for _, at := range slices.SortedFunc(maps.Keys(v.taken), turn.compare) {
		by := v.taken[at]
		g, given := v.given[at]
		where := v.where(v.parts[by])
		v.must(given, where, "it has taken slot %d by epoch %d, and no commit gave it then", at.slot, at.epoch)
		v.must(!given || g.to == by, where, "it has taken slot %d by epoch %d, which partition %d gave to partition %d", at.slot, at.epoch, g.from, g.to)
	}
	for _, at := range slices.SortedFunc(maps.Keys(v.routes), place.compare) {
		r := v.routes[at]
		since, ever := v.gained[at]
		v.must(ever && since <= r.epoch, r.name, "%s was %s partition %d by the map of epoch %d, and its slot %d was not that partition's",
			r.url, r.how, at.at, r.epoch, at.slot)
	}
}

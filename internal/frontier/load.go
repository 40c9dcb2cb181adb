package frontier

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// PartID names a part of a slot.
type PartID struct {
	Slot partition.Slot
	Part blobschema.Part
}

// Restore makes every part of the summaries an unloaded one. It is called once, on
// an empty frontier.
func (f *Frontier) Restore(parts []blobschema.SlotSummary) {
	for _, sum := range parts {
		s := f.slots[sum.Slot]
		if s == nil {
			s = newSlot(sum.Slot)
			f.slots[sum.Slot] = s
		}
		p := s.put(sum.Part)
		f.unloaded++
		f.know(p, &sum)
	}
}

// know adds what is known of a part that is not loaded.
func (f *Frontier) know(p *part, sum *blobschema.SlotSummary) {
	p.known += sum.Known
	p.npending += sum.Pending
	p.unexamined += sum.Unexamined
	p.urgent += int(sum.Urgent)
	p.due = sum.Due
	f.counts.Known += int64(sum.Known)
	f.counts.Pending += int64(sum.Pending)
	f.counts.Unexamined += int64(sum.Unexamined)
	f.counts.Urgent += int64(sum.Urgent)
}

// forget undoes know, for a part that is loaded or leaves.
func (f *Frontier) forget(p *part) {
	f.counts.Known -= int64(p.known)
	f.counts.Pending -= int64(p.npending)
	f.counts.Unexamined -= int64(p.unexamined)
	f.counts.Urgent -= int64(p.urgent)
	f.resident -= len(p.taken) + len(p.fresh)
	f.fresh -= len(p.fresh)
	f.unloaded--
}

// partOf returns the part of a fingerprint, nil if the slot holds nothing.
func (f *Frontier) partOf(id partition.Slot, fp uint64) *part {
	if s := f.slots[id]; s != nil {
		return s.of(fp)
	}
	return nil
}

// Loaded reports whether the part that a URL belongs to is in memory, as one of a slot that
// holds nothing is.
func (f *Frontier) Loaded(id partition.Slot, fp uint64) bool {
	p := f.partOf(id, fp)
	return p == nil || p.loaded
}

// find says where a URL is, if its part is loaded.
func (f *Frontier) find(id partition.Slot, fp uint64) (p *part, place uint32, k kind) {
	if p = f.partOf(id, fp); p == nil || !p.loaded {
		return nil, 0, absent
	}
	place, k = p.find(fp)
	return p, place, k
}

// Pending reports whether a URL of a loaded part waits to be asked for, or is being.
func (f *Frontier) Pending(id partition.Slot, fp uint64) bool {
	_, _, k := f.find(id, fp)
	return k == inItems
}

// Settled reports whether a URL of a loaded part is settled, committed or not.
func (f *Frontier) Settled(id partition.Slot, fp uint64) bool {
	_, _, k := f.find(id, fp)
	return k == inMarks
}

// Origin returns where the page record of a settled URL is: zero if its part is not
// loaded, it is not settled, or has no record yet or here.
func (f *Frontier) Origin(id partition.Slot, fp uint64) blobschema.Origin {
	p, i, k := f.find(id, fp)
	if k != inMarks {
		return blobschema.Origin{}
	}
	return p.marks[i].origin()
}

// SentOn returns a link of a name as it was forwarded to the address of that name. ok is false if it was not
// forwarded, or its part is not loaded.
func (f *Frontier) SentOn(l Link) (placed Link, ok bool) {
	u := f.units[l.Key]
	if u == nil || !u.pinned() {
		return l, false
	}
	p, i, k := f.find(l.Slot, l.Fingerprint)
	if k != inMarks || p.marks[i].state != blobschema.Forwarded {
		return l, false
	}
	l.place(f.cfg.Hash, u.address())
	return l, true
}

// Want has Wanted return the part of a URL that is not loaded before others, whatever is due. Once
// loaded it stays so long enough to call Again, if that is done before more is
// asked of the frontier than its loads.
func (f *Frontier) Want(id partition.Slot, fp uint64) {
	if p := f.partOf(id, fp); p != nil {
		p.want = true
	}
}

// pressing reports whether an unloaded part that is due goes before others.
func (p *part) pressing() bool { return p.want || p.urgent > 0 || p.late }

// Wanted returns the unloaded parts that should be loaded now: those of Want and those
// with URLs asked for on purpose first, then the one due first, as far as the memory bound has room for them. It marks them as
// loading: each must be given to Load. They are ordered by slot and first fingerprint. With urgentOnly what was found is not
// due, as for [Frontier.Next], as far as it is known what else parts have: of those that were in memory once.
func (f *Frontier) Wanted(now time.Time, urgentOnly bool) []PartID {
	f.partDue = time.Time{}
	if f.unloaded == 0 {
		return nil
	}
	var due []*part
	first := int64(math.MaxInt64)
	for _, s := range f.slots {
		if s.awaited || f.frozen[s.id] {
			continue
		}
		for p := range s.parts {
			at := p.due
			if urgentOnly && p.urgentDue != 0 {
				at = p.urgentDue
			}
			switch {
			case p.loaded || p.loading:
			case p.want || p.replan > 0 || p.unexamined > 0 || p.npending > 0 && at <= now.UnixMilli():
				due = append(due, p)
			case p.npending > 0:
				first = min(first, at)
			}
		}
	}
	if first < math.MaxInt64 {
		f.partDue = time.UnixMilli(first)
	}
	slices.SortFunc(due, func(a, b *part) int {
		if x, y := a.pressing(), b.pressing(); x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.slot.id, b.slot.id), cmp.Compare(a.is.First(), b.is.First()))
	})
	room := f.room()
	var ids []PartID
	for i, p := range due {
		size := int(p.known + p.unexamined)
		// A part larger than the bound is loaded alone: when nothing else runs, or when
		// somebody waits for it.
		if f.cfg.MaxResident > 0 && size > room && (len(ids) > 0 || f.active() && !p.pressing()) {
			f.waitInVain(due[i:], now)
			break
		}
		room -= size
		p.loading = true
		ids = append(ids, PartID{p.slot.id, p.is})
	}
	slices.SortFunc(ids, func(a, b PartID) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Part.First(), b.Part.First()))
	})
	return ids
}

// PartDue is when the first of the unloaded parts is due that were not at the last call of Wanted; zero: none ever.
func (f *Frontier) PartDue() time.Time { return f.partDue }

// never is the urgentDue of a part that has nothing urgent.
const never = math.MaxInt64

// patience is how long a part waits for room at most where looks keep those in memory at work for ever.
const patience = time.Minute

// waitInVain takes note of parts that there is no room for.
func (f *Frontier) waitInVain(parts []*part, now time.Time) {
	if !f.cfg.Looks {
		return
	}
	for _, p := range parts {
		if p.waits.IsZero() {
			p.waits = now
		}
		p.late = now.Sub(p.waits) >= patience
	}
}

// active reports whether loaded parts have work under way or ready.
func (f *Frontier) active() bool { return f.counts.Asked > 0 || !f.ready.empty() }

// room is how many more entries fit; it unloads what can be spared first.
func (f *Frontier) room() int {
	if f.cfg.MaxResident == 0 {
		return 1 << 60
	}
	if f.resident > f.cfg.MaxResident*3/4 {
		f.shed(f.cfg.MaxResident / 2)
	}
	return f.cfg.MaxResident - f.resident
}

// Load gives a part its state: the join of all runs, restricted to the part, sorted as
// runs are. (Host states are the slot's: those of other parts' URLs may be left in.) URLs that
// were appended while it was unloaded are joined too. It keeps nothing of run. One that
// turns out to hold too many is halved first, and not all of it loaded. After an error the
// frontier is of no use any more.
func (f *Frontier) Load(now time.Time, id PartID, run *blobschema.Run) error {
	s := f.slots[id.Slot]
	var p *part
	if s != nil {
		for q := range s.parts {
			if q.is == id.Part {
				p = q
			}
		}
	}
	if p == nil || p.loaded {
		return fmt.Errorf("load part %+v of slot %d: not an unloaded part", id.Part, id.Slot)
	}
	f.seen = now
	queued, excess := run.Queued, int(p.known)-int(p.npending)-len(run.Settled)
	p, run = f.narrow(p, run)
	old := *p
	f.forget(p)
	f.examined = f.examined || p.unexamined > 0
	*p = part{slot: s, is: p.is, loaded: true, want: p.want, touched: p.touched}
	s.filling = true
	s.loaded++
	if err := f.fill(now, p, &old, run); err != nil {
		return fmt.Errorf("load part %+v of slot %d: %w", p.is, s.id, err)
	}
	f.recount(queued, excess)
	if err := f.join(now, p, old.taken, old.fresh); err != nil {
		return fmt.Errorf("load part %+v of slot %d: %w", p.is, s.id, err)
	}
	s.filling = false
	for _, u := range s.units {
		f.settleUnit(u, now)
	}
	if old.replan > 0 {
		f.replan(now, p, old.replan)
	}
	f.countNews(p, int64(p.resident())-int64(old.known))
	return nil
}

// fill puts what is stored of a part into memory.
func (f *Frontier) fill(now time.Time, p, old *part, run *blobschema.Run) error {
	s := p.slot
	if s.loaded == 1 {
		for i := range run.Hosts {
			if err := f.loadState(now, s, &run.Hosts[i]); err != nil {
				return fmt.Errorf("host %s: %w", run.Hosts[i].Host, err)
			}
		}
	}
	text := 0
	for i := range run.Queued {
		text += max(0, len(run.Queued[i].URL)-len(run.Queued[i].Host)-len("http://"))
	}
	more := len(old.taken) + len(old.fresh)
	p.grow(len(run.Queued)+more, len(run.Settled), text)
	for i := range run.Settled {
		p.addMark(newMark(&run.Settled[i]))
	}
	f.counts.Known += int64(len(run.Settled))
	f.resident += len(run.Settled)
	from := fromState
	if old.unexamined > 0 {
		from = unexamined
	}
	var un *unit
	for i := range run.Queued {
		q := &run.Queued[i]
		if un == nil || un.key != q.Host { // they come unit by unit
			if un = f.unit(s, q.Host); un.slot != s {
				return fmt.Errorf("host %s is of slot %d", q.Host, un.slot.id)
			}
		}
		if err := f.loadQueued(now, p, un, q, from); err != nil {
			return err
		}
	}
	return nil
}

// join adds what was appended to a part.
func (f *Frontier) join(now time.Time, p *part, lists ...[]blobschema.Queued) error {
	for _, list := range lists {
		for i := range list {
			if err := f.loadQueued(now, p, nil, &list[i], unexamined); err != nil {
				return err
			}
		}
	}
	return nil
}

// recount makes up for URLs that were settled when a higher generation of them was
// appended: the join has dropped what settled them, and no site knows. They are among those
// that are queued; excess is how many they are.
func (f *Frontier) recount(queued []blobschema.Queued, excess int) {
	for i := range queued {
		if excess <= 0 {
			return
		}
		q := &queued[i]
		un := f.units[q.Host]
		u, ok := weburl.Canonical(q.URL)
		if q.Generation == 0 || un == nil || !ok {
			continue
		}
		st := f.site(un, u)
		if un.pinned() {
			if near := f.near(un); near != nil && f.site(near, u).settled > 0 {
				st = f.site(near, u)
			}
		}
		if st.settled > 0 {
			f.countSettled(st, -1)
			excess--
		}
	}
}

func (f *Frontier) loadQueued(now time.Time, p *part, un *unit, q *blobschema.Queued, from source) error {
	u, ok := weburl.Canonical(q.URL)
	if !ok {
		return fmt.Errorf("%q is not a canonical URL", q.URL)
	}
	fp := f.cfg.Hash.Fingerprint(q.URL)
	if !p.is.Has(fp) {
		return fmt.Errorf("%q is of another part", q.URL)
	}
	f.add(now, p, un, u, fp, q, from)
	return nil
}

// loadState restores a unit, or a further site of one.
func (f *Frontier) loadState(now time.Time, s *slot, hs *blobschema.HostState) error {
	key, name := SplitSite(hs.Host)
	u := f.unit(s, key)
	if u.slot != s {
		return fmt.Errorf("it is of slot %d", u.slot.id)
	}
	if name != "" {
		st := f.namedSite(u, name)
		st.version = hs.Version
		if err := st.decode(hs.Data); err != nil {
			return err
		}
		f.rest(st)
		return nil
	}
	u.version = hs.Version
	if err := u.decode(hs.Data); err != nil {
		return err
	}
	u.pace.Clamp(now)
	f.rest(&u.own)
	return nil
}

// rest keeps the unit of a site from being asked for the site's pace after a takeover:
// the site may be what the step before asked last.
func (f *Frontier) rest(st *site) {
	if f.floor.IsZero() {
		return
	}
	for i := range st.doors {
		st.unit.pace.Floor(f.floor, f.delay(&st.doors[i]))
	}
}

// countNews spreads the URLs that a part turned out to have more than was known over the
// registrable domains of its pending ones: which are new is not to be told any more.
func (f *Frontier) countNews(p *part, n int64) {
	if n <= 0 || p.npend == 0 {
		return
	}
	for _, u := range p.slot.units {
		if share := n * int64(min(u.pending, p.npend)) / int64(p.npend); share > 0 && !u.placed {
			f.sizes.add(u.domain.name, share)
		}
	}
}

// Floor forbids any request to any unit before at plus the unit's pace. A step that
// takes over from one that crashed calls it on its empty frontier, for it cannot know
// what its predecessor asked for last (I9).
func (f *Frontier) Floor(at time.Time) { f.floor = at }

// shed unloads parts that need not be in memory until at most keep entries are
// resident: those with nothing under way and nothing uncommitted, latest due first.
func (f *Frontier) shed(keep int) {
	var idle []*part
	for _, s := range f.slots {
		for p := range s.parts {
			switch {
			case p.loaded && p.want:
				p.want = false // it stays this time, and was to be looked at before the next
			case p.loaded && p.resident() > 0 && f.still(p):
				p.due = p.firstDue(false)
				idle = append(idle, p)
			}
		}
	}
	rank := func(p *part) int64 { // nothing pending: first to go
		if p.due == 0 {
			return 1 << 62
		}
		return p.due
	}
	slices.SortFunc(idle, func(a, b *part) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(a.slot.id, b.slot.id), cmp.Compare(a.is.First(), b.is.First()))
	})
	for _, p := range idle {
		if f.resident <= keep {
			return
		}
		if f.still(p) { // the last part of a slot takes the units along
			f.unload(p)
		}
	}
}

// still reports whether a loaded part can be unloaded: nothing of it is under way or
// uncommitted, nor of its units, if they go with it. These must stay while another part is
// loading, which may come with older states of them.
func (f *Frontier) still(p *part) bool {
	s := p.slot
	return p.asked == 0 && p.touched <= f.committed && (s.loaded > 1 || s.touched <= f.committed && !s.loading())
}

// unload drops what is in memory of a part that is still, and its units if it was the last.
func (f *Frontier) unload(p *part) {
	s, urgentDue := p.slot, cmp.Or(p.firstDue(true), never)
	if s.loaded--; s.loaded > 0 {
		f.leave(p)
	} else {
		f.dropUnits(s)
	}
	for i := range p.items {
		if it := &p.items[i]; it.length > 0 {
			f.pending[it.topic]--
		}
	}
	f.resident -= p.resident()
	f.counts.Looks -= int64(p.looks)
	f.unloaded++
	*p = part{
		slot: s, is: p.is, touched: p.touched, due: p.due, urgentDue: urgentDue, urgent: p.urgent,
		known: uint32(p.resident()), npending: uint32(p.npend),
		unexamined: p.unexamined, fresh: p.fresh, taken: p.taken, // of one that was full
	}
}

// dropUnits forgets all units of a slot.
func (f *Frontier) dropUnits(s *slot) {
	for _, u := range s.units {
		f.unqueue(u)
		delete(f.units, u.key)
		f.dropDomain(u.domain)
		f.counts.Hosts--
	}
	for _, st := range s.further {
		delete(f.sites, siteKey{st.unit, st.name})
	}
	s.units, s.further = nil, nil
}

// leave takes all URLs of a part out of the queues of units that stay.
func (f *Frontier) leave(p *part) {
	touched := map[*unit]bool{}
	for i := range p.items {
		if it := &p.items[i]; it.length > 0 {
			st := p.lanes[it.lane].door.site
			st.pending--
			st.unit.pending--
			touched[st.unit] = true
		}
	}
	for _, l := range p.lanes {
		d := l.door
		d.site.unit.delist(l)
		d.lanes = slices.DeleteFunc(d.lanes, func(o *lane) bool { return o == l })
	}
	for _, u := range p.slot.units { // by order, not that of the map
		if !touched[u] {
			continue
		}
		u.later = slices.DeleteFunc(u.later, func(d delayed) bool { return d.part == p })
		u.later.init()
		f.settleUnit(u, f.seen)
	}
}

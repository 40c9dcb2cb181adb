package frontier

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Restore makes every slot of the summaries an unloaded one. It is called once, on
// an empty frontier.
func (f *Frontier) Restore(slots []blobschema.SlotSummary) {
	for _, sum := range slots {
		f.slots[sum.Slot] = &slot{
			id: sum.Slot, known: sum.Known, npending: sum.Pending, unexamined: sum.Unexamined, due: sum.Due, urgent: int(sum.Urgent),
		}
		f.counts.Urgent += int64(sum.Urgent)
		f.unloaded++
		f.counts.Known += int64(sum.Known)
		f.counts.Pending += int64(sum.Pending)
		f.counts.Unexamined += int64(sum.Unexamined)
	}
}

// Loaded reports whether a slot is in memory, as one that holds nothing is.
func (f *Frontier) Loaded(id partition.Slot) bool {
	s := f.slots[id]
	return s == nil || s.loaded
}

// Pending reports whether a URL of a loaded slot waits to be asked for, or is being.
func (f *Frontier) Pending(id partition.Slot, fp uint64) bool {
	s := f.slots[id]
	if s == nil || !s.loaded {
		return false
	}
	_, k := s.find(fp)
	return k == inItems
}

// Settled reports whether a URL of a loaded slot is settled, committed or not.
func (f *Frontier) Settled(id partition.Slot, fp uint64) bool {
	s := f.slots[id]
	if s == nil || !s.loaded {
		return false
	}
	_, k := s.find(fp)
	return k == inMarks
}

// Origin returns where the page record of a settled URL is: zero if its slot is not
// loaded, it is not settled, or has no record yet or here.
func (f *Frontier) Origin(id partition.Slot, fp uint64) blobschema.Origin {
	s := f.slots[id]
	if s == nil || !s.loaded {
		return blobschema.Origin{}
	}
	i, k := s.find(fp)
	if k != inMarks {
		return blobschema.Origin{}
	}
	return s.marks[i].origin()
}

// SentOn returns the address that a URL of a name was sent on to, as the host of URLs
// placed there. ok is false if it was not, or its slot is not loaded.
func (f *Frontier) SentOn(name string, id partition.Slot, fp uint64) (address string, ok bool) {
	s, u := f.slots[id], f.units[name]
	if s == nil || !s.loaded || u == nil || !u.pinned() {
		return "", false
	}
	i, k := s.find(fp)
	if k != inMarks || s.marks[i].state != blobschema.Forwarded {
		return "", false
	}
	return u.address(), true
}

// Want makes the next Wanted return a slot that is not loaded, whatever is due. Once
// loaded it stays so long enough to call Again, if that is done before more is
// asked of the frontier than its loads.
func (f *Frontier) Want(id partition.Slot) {
	if s := f.slots[id]; s != nil {
		s.want = true
	}
}

// pressing reports whether an unloaded slot that is due goes before others.
func (s *slot) pressing() bool { return s.want || s.urgent > 0 }

// Wanted returns the unloaded slots that should be loaded now: those of Want and those
// with URLs asked for on purpose first, then the one due first, as far as the memory bound has room for them. It marks them as
// loading: each must be given to Load.
func (f *Frontier) Wanted(now time.Time) []partition.Slot {
	if f.unloaded == 0 {
		return nil
	}
	var due []*slot
	for _, s := range f.slots {
		if s.loaded || s.loading || s.awaited || f.frozen[s.id] {
			continue
		}
		if s.want || s.unexamined > 0 || s.npending > 0 && s.due <= now.UnixMilli() {
			due = append(due, s)
		}
	}
	slices.SortFunc(due, func(a, b *slot) int {
		if x, y := a.pressing(), b.pressing(); x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id))
	})
	room := f.room()
	var ids []partition.Slot
	for _, s := range due {
		size := int(s.known + s.unexamined)
		// A slot larger than the bound is loaded alone: when nothing else runs, or when
		// somebody waits for it.
		if f.cfg.MaxResident > 0 && size > room && (len(ids) > 0 || f.active() && !s.pressing()) {
			break
		}
		room -= size
		s.loading = true
		ids = append(ids, s.id)
	}
	slices.Sort(ids)
	return ids
}

// active reports whether loaded slots have work under way or ready.
func (f *Frontier) active() bool { return f.counts.Asked > 0 || len(f.ready) > 0 }

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

// Load gives a slot its state: the join of all runs, restricted to the slot, sorted as
// runs are. URLs that were appended while it was unloaded are joined too. It keeps
// nothing of run. After an error the frontier is of no use any more.
func (f *Frontier) Load(now time.Time, id partition.Slot, run *blobschema.Run) error {
	s := f.slots[id]
	if s == nil || s.loaded {
		return fmt.Errorf("load slot %d: not an unloaded slot", id)
	}
	old := *s
	f.counts.Known -= int64(s.known)
	f.counts.Pending -= int64(s.npending)
	f.counts.Unexamined -= int64(s.unexamined)
	f.counts.Urgent -= int64(s.urgent)
	f.unloaded--
	f.examined = f.examined || s.unexamined > 0
	f.resident -= len(s.taken) + len(s.fresh)
	f.fresh -= len(s.fresh)
	*s = slot{id: id, loaded: true, loading: true, want: s.want, touched: s.touched}
	if err := f.fill(now, s, &old, run); err != nil {
		return fmt.Errorf("load slot %d: %w", id, err)
	}
	s.loading = false
	for _, u := range s.units {
		f.settleUnit(u, now)
	}
	f.countNews(s, int64(s.resident())-int64(old.known))
	return nil
}

// fill puts what is stored of a slot into memory, and what was appended to it.
func (f *Frontier) fill(now time.Time, s, old *slot, run *blobschema.Run) error {
	for i := range run.Hosts {
		if err := f.loadState(now, s, &run.Hosts[i]); err != nil {
			return fmt.Errorf("host %s: %w", run.Hosts[i].Host, err)
		}
	}
	text := 0
	for i := range run.Queued {
		text += max(0, len(run.Queued[i].URL)-len(run.Queued[i].Host)-len("http://"))
	}
	more := len(old.taken) + len(old.fresh)
	s.grow(len(run.Queued)+more, len(run.Seen), text)
	for i := range run.Seen {
		s.addMark(newMark(&run.Seen[i]))
	}
	f.counts.Known += int64(len(run.Seen))
	f.resident += len(run.Seen)
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
		if err := f.loadQueued(now, s, un, q, from); err != nil {
			return err
		}
	}
	f.recount(s)
	for _, list := range [][]blobschema.Queued{old.taken, old.fresh} {
		for i := range list {
			if err := f.loadQueued(now, s, nil, &list[i], appended); err != nil {
				return err
			}
		}
	}
	return nil
}

// recount makes up for URLs that were settled when a higher generation of them was
// appended: the join has dropped what settled them, and no site knows.
func (f *Frontier) recount(s *slot) {
	excess := -len(s.marks)
	for _, u := range s.units {
		excess += int(u.settled)
	}
	for i := range s.items {
		if excess <= 0 {
			return
		}
		if st := s.lanes[s.items[i].lane].site; s.items[i].gen > 0 && st.settled > 0 {
			f.countSettled(st, -1)
			excess--
		}
	}
}

func (f *Frontier) loadQueued(now time.Time, s *slot, un *unit, q *blobschema.Queued, from source) error {
	u, ok := weburl.Canonical(q.URL)
	if !ok {
		return fmt.Errorf("%q is not a canonical URL", q.URL)
	}
	f.add(now, s, un, u, f.cfg.Hash.Fingerprint(q.URL), q, from)
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
	for i := range st.lanes {
		st.unit.pace.Floor(f.floor, f.delay(&st.lanes[i]))
	}
}

// countNews spreads the URLs that a slot turned out to have more than was known over the
// registrable domains of its pending ones: which are new is not to be told any more.
func (f *Frontier) countNews(s *slot, n int64) {
	if n <= 0 || s.npend == 0 {
		return
	}
	for _, u := range s.units {
		if share := n * int64(u.pending) / int64(s.npend); share > 0 && !u.placed {
			f.sizes.add(u.domain.name, share)
		}
	}
}

// Floor forbids any request to any unit before at plus the unit's pace. A step that
// takes over from one that crashed calls it on its empty frontier, for it cannot know
// what its predecessor asked for last (I9).
func (f *Frontier) Floor(at time.Time) { f.floor = at }

// shed unloads slots that need not be in memory until at most keep entries are
// resident: those with nothing under way and nothing uncommitted, latest due first.
func (f *Frontier) shed(keep int) {
	var idle []*slot
	for _, s := range f.slots {
		if s.loaded && s.want {
			s.want = false // it stays this time, and was to be looked at before the next
			continue
		}
		if s.loaded && s.asked == 0 && s.touched <= f.committed && s.resident() > 0 {
			s.due = s.firstDue()
			idle = append(idle, s)
		}
	}
	rank := func(s *slot) int64 { // nothing pending: first to go
		if s.due == 0 {
			return 1 << 62
		}
		return s.due
	}
	slices.SortFunc(idle, func(a, b *slot) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(a.id, b.id))
	})
	for _, s := range idle {
		if f.resident <= keep {
			return
		}
		f.unload(s)
	}
}

func (f *Frontier) unload(s *slot) {
	for _, u := range s.units {
		switch u.place {
		case waiting:
			heap.Remove(&f.timers, u.index)
		case ready:
			heap.Remove(&f.ready, u.index)
		}
		delete(f.units, u.key)
		f.dropDomain(u.domain)
		f.counts.Hosts--
	}
	for _, st := range s.further {
		delete(f.sites, siteKey{st.unit, st.name})
	}
	f.resident -= s.resident()
	f.unloaded++
	*s = slot{
		id: s.id, touched: s.touched, due: s.due, urgent: s.urgent,
		known: uint32(s.resident()), npending: uint32(s.npend),
	}
}

package frontier

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// PartID names a part of a slot.
type PartID struct {
	Slot partition.Slot
	Part blobschema.Part
}

// Restore adds an unloaded part for each summary. It is called once, on an empty frontier.
func (f *Frontier) Restore(parts []blobschema.SlotSummary) {
	for _, sum := range parts {
		s := f.slots.byID[sum.Slot]
		if s == nil {
			s = newSlot(sum.Slot)
			f.slots.byID[sum.Slot] = s
		}
		p := s.put(sum.Part)
		f.slots.unloaded++
		f.slots.know(p, &sum, f.schedule)
	}
}

// Loaded reports whether the part of a URL is in memory. The part of a slot that holds nothing is.
func (f *Frontier) Loaded(id partition.Slot, fp uint64) bool {
	p := f.slots.partOf(id, fp)
	return p == nil || p.loaded
}

// Pending reports whether a URL of a loaded part waits for a request, or has one under way.
func (f *Frontier) Pending(id partition.Slot, fp uint64) bool {
	_, _, k := f.slots.find(id, fp)
	return k == inItems
}

// Settled reports whether a URL of a loaded part is settled, committed or not.
func (f *Frontier) Settled(id partition.Slot, fp uint64) bool {
	_, _, k := f.slots.find(id, fp)
	return k == inMarks
}

// Record returns the reference to the page record of a settled URL. It is zero if the part of the URL is
// not loaded, if the URL is not settled, or if this partition holds no record of it yet.
func (f *Frontier) Record(id partition.Slot, fp uint64) blobschema.RecordRef {
	p, i, k := f.slots.find(id, fp)
	if k != inMarks {
		return blobschema.RecordRef{}
	}
	return p.marks[i].record()
}

// SentOn returns a link of a name in the form in which it was forwarded to the address of that name. ok is false if
// it was not forwarded, or its part is not loaded.
func (f *Frontier) SentOn(l Link) (placed Link, ok bool) {
	k := f.schedule.Find(l.Key)
	if k == nil || !k.Pinned() {
		return l, false
	}
	p, i, at := f.slots.find(l.Slot, l.Fingerprint)
	if at != inMarks || p.marks[i].state != blobschema.Forwarded {
		return l, false
	}
	l.pin(f.cfg.Hash, k.Address())
	return l, true
}

// Want makes Wanted return the unloaded part of a URL before all others. Once loaded, the part survives
// the next unloading, so that the caller can call Again.
func (f *Frontier) Want(id partition.Slot, fp uint64) {
	if p := f.slots.partOf(id, fp); p != nil {
		p.want, f.awaited, f.noRoom = true, true, time.Time{}
	}
}

// pressing reports whether an unloaded part that is due goes before others.
func (p *part) pressing() bool { return p.want || p.Urgent() > 0 || p.late }

// class returns 0 for a part that goes before others, and 1 for the others.
func (p *part) class() int {
	if p.pressing() {
		return 0
	}
	return 1
}

// comparePlaces orders parts by slot and first fingerprint.
func comparePlaces(a, b *part) int {
	return cmp.Or(cmp.Compare(a.slot.id, b.slot.id), cmp.Compare(a.is.First(), b.is.First()))
}

// Wanted returns the unloaded parts to load now, ordered by slot and first fingerprint. The parts of Want and those
// with requested URLs come first, then those that are due first, until the memory bound is reached. Wanted marks
// them as loading: the caller must call Load for each. With urgentOnly, new URLs are never due, as for
// [Frontier.Next]; whether an unloaded part has others is known only if it was in memory before.
//
// A loaded part that is due is as useful as an unloaded one, so an unloaded part replaces others only after it has
// waited for patience. A part that is due only for appended entries, which may all be known, waits as long for more
// of them while the schedule has something to do.
func (f *Frontier) Wanted(now time.Time, urgentOnly bool) []PartID {
	waits := now.Before(f.noRoom) && (f.partDue.IsZero() || now.Before(f.partDue))
	if waits && f.schedule.Active() {
		return nil
	}
	f.partDue, f.noRoom, f.awaited = time.Time{}, time.Time{}, false
	if f.slots.unloaded == 0 {
		return nil
	}
	due, next := f.slots.due(now, urgentOnly, f.schedule.Active())
	slices.SortFunc(due, func(a, b *part) int {
		return cmp.Or(cmp.Compare(a.class(), b.class()), cmp.Compare(a.due, b.due), comparePlaces(a, b))
	})
	room := f.room(now, due)
	var ids []PartID
	for i, p := range due {
		// A part larger than the bound is loaded alone, if nothing else runs or it is pressing.
		if f.cfg.MaxResident > 0 && p.size() > room && (len(ids) > 0 || f.schedule.Active() && !p.pressing()) {
			for _, p := range due[i:] {
				next = min(next, p.wait(now))
				f.awaited = f.awaited || p.want
			}
			f.noRoom = now.Add(time.Second)
			break
		}
		room -= p.size()
		p.loading = true
		ids = append(ids, PartID{p.slot.id, p.is})
	}
	if next < never {
		f.partDue = time.UnixMilli(next)
	}
	slices.SortFunc(ids, func(a, b PartID) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Part.First(), b.Part.First()))
	})
	return ids
}

// PartDue returns when Wanted may return the first of the unloaded parts that its last call left out; zero if there is
// none. awaited reports whether the caller may wait for one of them, see Want: Wanted was not called since then, or had no room.
// Such a part is to be loaded even if the URLs in memory keep the caller busy.
func (f *Frontier) PartDue() (at time.Time, awaited bool) { return f.partDue, f.awaited }

// never is the time at which a part is due that has no pending URL, or, as urgentDue, no urgent one.
const never = math.MaxInt64

// patience bounds the wait of a part for room or for more appended entries. After it, the part replaces loaded ones,
// because those may have something to do forever.
const patience = time.Minute

// wait records that a part must wait, and returns when it has waited for patience, in Unix milliseconds.
func (p *part) wait(now time.Time) int64 {
	if p.waits.IsZero() {
		p.waits = now
	}
	until := p.waits.Add(patience)
	p.late = !now.Before(until)
	return until.UnixMilli()
}

// size returns the number of entries that an unloaded part will have at most.
func (p *part) size() int { return int(p.known + p.unexamined) }

// room makes room for due parts and returns the number of entries that fit. It unloads parts that are not due, and any
// parts for pressing ones, but keeps at least half of MaxResident loaded.
func (f *Frontier) room(now time.Time, due []*part) int {
	if f.cfg.MaxResident == 0 {
		return 1 << 60
	}
	half := f.cfg.MaxResident / 2
	need, pressing := 0, 0
	for _, p := range due {
		if need += p.size(); p.pressing() {
			pressing += p.size()
		}
	}
	f.shed(now, f.cfg.MaxResident-min(need, half), f.cfg.MaxResident-min(pressing, half))
	return f.cfg.MaxResident - f.slots.resident
}

// Load loads a part. run is the join of all runs, restricted to the part and sorted as runs are; it may hold
// the states of all keys of the slot. Load joins the entries that were appended while the part was unloaded.
// It does not retain run. A part that turns out to hold too many URLs is halved first, and only one half is
// loaded. After an error the frontier is unusable.
func (f *Frontier) Load(now time.Time, id PartID, run *blobschema.Run) error {
	p := f.slots.partOf(id.Slot, id.Part.First())
	if p == nil || p.is != id.Part || p.loaded {
		return fmt.Errorf("load part %+v of slot %d: not an unloaded part", id.Part, id.Slot)
	}
	s := p.slot
	queued, excess := run.Queued, int(p.known)-int(p.npending)-len(run.Settled)
	p, run = f.narrow(p, run)
	old := *p
	f.slots.forget(p, f.schedule)
	f.examined = f.examined || p.unexamined > 0
	f.schedule.Fill(now, &p.Pool)
	*p = part{slot: s, is: p.is, Pool: p.Pool, loaded: true, want: p.want}
	s.loaded++
	if err := f.fill(now, p, &old, run); err != nil {
		return fmt.Errorf("load part %+v of slot %d: %w", p.is, s.id, err)
	}
	f.recount(queued, excess)
	for _, q := range slices.Concat(old.taken, old.fresh) {
		if err := f.loadQueued(now, p, nil, &q, schedule.Appended); err != nil {
			return fmt.Errorf("load part %+v of slot %d: %w", p.is, s.id, err)
		}
	}
	f.schedule.Filled(&s.keys, now)
	if old.replan > 0 {
		f.schedule.Replan(now, &p.Pool, old.replan)
	}
	f.countNews(p, int64(p.resident())-int64(old.known))
	return nil
}

// fill puts the stored state of a part into memory.
func (f *Frontier) fill(now time.Time, p, old *part, run *blobschema.Run) error {
	s := p.slot
	if s.loaded == 1 {
		for i := range run.Keys {
			if err := f.schedule.LoadState(now, &s.keys, &run.Keys[i]); err != nil {
				return fmt.Errorf("host %s: %w", run.Keys[i].Key, err)
			}
		}
	}
	text := 0
	for i := range run.Queued {
		text += max(0, len(run.Queued[i].URL)-len(run.Queued[i].Key)-len("http://"))
	}
	more := len(old.taken) + len(old.fresh)
	p.grow(len(run.Queued)+more, len(run.Settled), text)
	for i := range run.Settled {
		p.addMark(newMark(&run.Settled[i]))
	}
	f.slots.sum.known += int64(len(run.Settled))
	f.slots.resident += len(run.Settled)
	from := schedule.Stored
	if old.unexamined > 0 {
		from = schedule.Unexamined
	}
	var k *schedule.Key
	for i := range run.Queued {
		q := &run.Queued[i]
		if k == nil || k.Name() != q.Key { // runs are sorted by key
			if k = f.schedule.Key(&s.keys, q.Key); k.Slot() != s.id {
				return fmt.Errorf("host %s is of slot %d", q.Key, k.Slot())
			}
		}
		if err := f.loadQueued(now, p, k, q, from); err != nil {
			return err
		}
	}
	return nil
}

// recount corrects the counts of settled URLs by site. A higher generation may have been appended for a settled
// URL; the join then dropped the settled entry, but its site still counts it. excess is the number of
// such URLs, which are among queued.
func (f *Frontier) recount(queued []blobschema.Queued, excess int) {
	for i := range queued {
		if excess <= 0 {
			return
		}
		q := &queued[i]
		k := f.schedule.Find(q.Key)
		u, ok := weburl.Canonical(q.URL)
		if q.Generation == 0 || k == nil || !ok {
			continue
		}
		if k = f.names.settler(k, u); f.schedule.Settled(k, u) > 0 {
			f.schedule.CountSettled(k, u, -1)
			excess--
		}
	}
}

func (f *Frontier) loadQueued(now time.Time, p *part, k *schedule.Key, q *blobschema.Queued, from schedule.Source) error {
	u, ok := weburl.Canonical(q.URL)
	if !ok {
		return fmt.Errorf("%q is not a canonical URL", q.URL)
	}
	fp := f.cfg.Hash.Fingerprint(q.URL)
	if !p.is.Has(fp) {
		return fmt.Errorf("%q is of another part", q.URL)
	}
	f.add(now, p, k, u, fp, q, from)
	return nil
}

// countNews adds n URLs that a part turned out to have to the counts of registrable domains. It divides them in
// proportion to the pending URLs, because after the join nobody knows which URLs were new.
func (f *Frontier) countNews(p *part, n int64) {
	if n <= 0 || p.Len() == 0 {
		return
	}
	for k := range p.slot.keys.Keys {
		if share := n * int64(min(k.Pending(), p.Len())) / int64(p.Len()); share > 0 && !k.Placed() {
			f.caps.sizes.add(k.Domain(), share)
		}
	}
}

// shed unloads parts, the latest due first, that have nothing under way and nothing uncommitted. It unloads parts that
// are not due until at most spare entries are in memory, and due ones until at most keep are.
func (f *Frontier) shed(now time.Time, spare, keep int) {
	if f.slots.resident <= spare {
		return
	}
	var idle []*part
	for _, s := range f.slots.byID {
		for p := range s.parts {
			switch {
			case p.loaded && p.want:
				p.want = false // it stays this time; its user must be done before the next
			case p.loaded && p.resident() > 0 && f.still(p):
				p.due = p.FirstDue(false)
				idle = append(idle, p)
			}
		}
	}
	rank := func(p *part) int64 { // a part without a pending URL goes first
		if p.due == 0 {
			return 1 << 62
		}
		return p.due
	}
	slices.SortFunc(idle, func(a, b *part) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), comparePlaces(a, b))
	})
	for _, p := range idle {
		most := spare
		if rank(p) <= now.UnixMilli() {
			most = keep
		}
		if f.slots.resident <= most {
			return
		}
		if f.still(p) { // once more: the last loaded part of a slot takes the politeness keys with it
			f.unload(p)
		}
	}
}

// still reports whether a loaded part can be unloaded: nothing of it is under way or uncommitted. The last
// loaded part of a slot takes the politeness keys with it, so these must be committed too. They must also stay
// while another part is loading, because that one may bring older states of them.
func (f *Frontier) still(p *part) bool {
	s := p.slot
	return p.InFlight() == 0 && p.Touched() <= f.committed && (s.loaded > 1 || s.keys.Still(f.committed) && !s.loading())
}

// unload drops the URLs of a still part from memory, and the keys of the slot with its last loaded part.
func (f *Frontier) unload(p *part) {
	s, urgentDue, pending := p.slot, cmp.Or(p.FirstDue(true), never), p.Len()
	s.loaded--
	f.slots.resident -= p.resident()
	f.slots.sum.pending += int64(pending)
	f.slots.unloaded++
	known := p.resident()
	f.schedule.Empty(&p.Pool, s.loaded == 0)
	*p = part{
		slot: s, is: p.is, Pool: p.Pool, due: p.due, urgentDue: urgentDue,
		known: uint32(known), npending: uint32(pending),
		unexamined: p.unexamined, fresh: p.fresh, taken: p.taken, // a full part has some although it was loaded
	}
}

package frontier

import (
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Restore makes every slot of the summaries an unloaded one. It is called once, on
// an empty frontier.
func (f *Frontier) Restore(slots []blobschema.SlotSummary) {
	for _, sum := range slots {
		f.slots[sum.Slot] = &slot{
			id: sum.Slot, known: sum.Known, npending: sum.Pending, unexamined: sum.Unexamined, due: sum.Due,
		}
		f.unloaded++
		f.counts.Known += int64(sum.Known)
		f.counts.Pending += int64(sum.Pending)
		f.counts.Unexamined += int64(sum.Unexamined)
	}
}

// Wanted returns the unloaded slots that should be loaded now, the one due first
// first, as far as the memory bound has room for them. It marks them as loading:
// each must be given to Load.
func (f *Frontier) Wanted(now time.Time) []partition.Slot {
	if f.unloaded == 0 {
		return nil
	}
	var due []*slot
	for _, s := range f.slots {
		if s.loaded || s.loading {
			continue
		}
		if s.unexamined > 0 || s.npending > 0 && s.due <= now.UnixMilli() {
			due = append(due, s)
		}
	}
	slices.SortFunc(due, func(a, b *slot) int {
		if a.due != b.due {
			return int(min(1, max(-1, a.due-b.due)))
		}
		return int(a.id) - int(b.id)
	})
	room := f.room()
	var ids []partition.Slot
	for _, s := range due {
		size := int(s.known + s.unexamined)
		if f.cfg.MaxResident > 0 && size > room && (len(ids) > 0 || f.active()) {
			break // a slot larger than the bound is loaded alone, when nothing else runs
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

// Load gives a slot its state: the join of all runs, restricted to the slot. URLs
// that were appended while it was unloaded are joined too.
func (f *Frontier) Load(now time.Time, id partition.Slot, run *blobschema.Run) error {
	s := f.slots[id]
	if s == nil || s.loaded {
		return fmt.Errorf("load slot %d: not an unloaded slot", id)
	}
	f.counts.Known -= int64(s.known)
	f.counts.Pending -= int64(s.npending)
	f.counts.Unexamined -= int64(s.unexamined)
	f.unloaded--
	f.examined = f.examined || s.unexamined > 0
	taken, fresh := s.taken, s.fresh
	f.resident -= len(taken) + len(fresh)
	f.fresh -= len(fresh)
	*s = slot{
		id: id, loaded: true,
		pending: make(map[uint64]*item, len(run.Queued)), settled: make(map[uint64]mark, len(run.Seen)),
		touched: s.touched,
	}
	for _, hs := range run.Hosts {
		h := f.host(s, hs.Host)
		h.version = hs.Version
		if err := h.decode(hs.Data); err != nil {
			return fmt.Errorf("load slot %d: host %s: %w", id, hs.Host, err)
		}
		h.pace.Clamp(now)
		if !f.floor.IsZero() {
			h.pace.Floor(f.floor, max(f.delay(h, 0), f.delay(h, 1)))
		}
	}
	for _, e := range run.Seen {
		s.settled[e.Fingerprint] = newMark(e.Generation, e.State)
		f.counts.Known++
		f.resident++
	}
	add := func(q blobschema.Queued, dirty bool) error {
		u, err := weburl.Parse(q.URL)
		if err != nil {
			return fmt.Errorf("load slot %d: %q: %w", id, q.URL, err)
		}
		f.add(now, s, u, f.cfg.Hash.Fingerprint(q.URL), q, dirty)
		return nil
	}
	for _, q := range run.Queued {
		if err := add(q, false); err != nil {
			return err
		}
	}
	for _, q := range slices.Concat(taken, fresh) {
		if err := add(q, true); err != nil {
			return err
		}
	}
	return nil
}

// Floor forbids any request to any host before at plus the host's pace. A step that
// takes over from one that crashed calls it on its empty frontier, for it cannot know
// what its predecessor asked for last (I9).
func (f *Frontier) Floor(at time.Time) { f.floor = at }

// shed unloads slots that need not be in memory until at most keep entries are
// resident: those with nothing under way and nothing uncommitted, latest due first.
func (f *Frontier) shed(keep int) {
	var idle []*slot
	for _, s := range f.slots {
		if s.loaded && s.asked == 0 && s.touched <= f.committed && len(s.pending)+len(s.settled) > 0 {
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
		if ra, rb := rank(a), rank(b); ra != rb {
			if ra > rb {
				return -1
			}
			return 1
		}
		return int(a.id) - int(b.id)
	})
	for _, s := range idle {
		if f.resident <= keep {
			return
		}
		f.unload(s)
	}
}

func (f *Frontier) unload(s *slot) {
	for _, h := range s.hosts {
		switch h.place {
		case waiting:
			heap.Remove(&f.timers, h.index)
		case ready:
			heap.Remove(&f.ready, h.index)
		}
		delete(f.hosts, h.name)
		f.counts.Hosts--
	}
	f.resident -= len(s.pending) + len(s.settled)
	f.unloaded++
	*s = slot{
		id: s.id, touched: s.touched, due: s.due,
		known: uint32(len(s.pending) + len(s.settled)), npending: uint32(len(s.pending)), filter: newFilter(s),
	}
}

// stored is how a host is kept in a run.
type stored struct {
	Pace     polite.Pace     `cbor:"1,keyasint"`
	Robots   [2]storedRobots `cbor:"2,keyasint"`
	Requests uint64          `cbor:"3,keyasint,omitempty"`
	Failures uint64          `cbor:"4,keyasint,omitempty"`
	Silent   int             `cbor:"5,keyasint,omitempty"`
}

type storedRobots struct {
	_        struct{} `cbor:",toarray"`
	Rules    []byte
	Until    int64
	Next     string
	Hops     uint8
	Attempts uint8
	Retry    int64
}

func (h *host) encode() []byte {
	st := stored{Pace: h.pace, Requests: h.requests, Failures: h.failures, Silent: h.silent}
	for i, r := range h.robots {
		sr := storedRobots{Next: r.next.String(), Hops: r.hops, Attempts: r.attempts}
		if r.rules != nil {
			sr.Rules, sr.Until = r.rules.Encode(), r.until.UnixMilli()
		}
		if !r.retry.IsZero() {
			sr.Retry = r.retry.UnixMilli()
		}
		st.Robots[i] = sr
	}
	b, err := cbor.Marshal(st)
	if err != nil {
		panic("frontier: host state cannot be encoded: " + err.Error()) // a fixed type: unreachable
	}
	return b
}

func (h *host) decode(b []byte) error {
	var st stored
	if err := cbor.Unmarshal(b, &st); err != nil {
		return err
	}
	h.pace, h.requests, h.failures, h.silent = st.Pace, st.Requests, st.Failures, st.Silent
	for i, sr := range st.Robots {
		r := robots{hops: sr.Hops, attempts: sr.Attempts}
		if sr.Next != "" {
			u, err := weburl.Parse(sr.Next)
			if err != nil {
				return err
			}
			r.next = u
		}
		if sr.Retry != 0 {
			r.retry = time.UnixMilli(sr.Retry)
		}
		if len(sr.Rules) > 0 {
			rules, err := polite.DecodeRobots(sr.Rules)
			if err != nil {
				return err
			}
			r.rules, r.until = rules, time.UnixMilli(sr.Until)
		}
		h.robots[i] = r
	}
	return nil
}

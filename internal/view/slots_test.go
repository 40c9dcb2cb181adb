package view_test

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// In these tests movedSlot belongs to partition 0 at epoch 1, then to the new partition 2, then to 0 again.
const movedSlot = partition.Slot(4)

// moves is a crawl in which a slot moves.
type moves struct {
	*handmade
	host               string   // in the slot that moves
	stays              string   // in another slot of partition 0
	old, waits, mailed string   // URLs of host: refused, pending, and found while it moves
	late               string   // of host: refused by partition 2
	maps               []string // objects
}

func newMoves(t *testing.T) *moves {
	m := &moves{handmade: newHandmade(t)}
	m.host = m.hostIn(movedSlot)
	m.stays = m.hostIn(0)
	m.old, m.waits, m.mailed = "http://"+m.host+"/old", "http://"+m.host+"/waits", "http://"+m.host+"/mailed"
	m.late = m.waits
	first, err := partition.NewMap(handSlots, 2)
	if err != nil {
		t.Fatal(err)
	}
	second, err := first.Apply([]partition.Move{{Slot: movedSlot, From: 0, To: 2}})
	if err != nil {
		t.Fatal(err)
	}
	third, err := second.Apply([]partition.Move{{Slot: movedSlot, From: 2, To: 0}})
	if err != nil {
		t.Fatal(err)
	}
	m.maps = []string{"", m.putMap(second), m.putMap(third)}
	return m
}

// Expected findings.
type want struct {
	partition partition.ID // of the slot
	move      *view.Move
	underWay  bool // according to the map record; move is nil after the slot was received
	mailed    bool // the URL found during the move is known
	done      bool // the pending URL is settled
	pending   int64
	held      []int // by partition
	owes      int   // slots, all partitions together
	awaits    int
}

// phases changes the crawl step by step, with the expected view of each phase.
func (m *moves) phases() []struct {
	name string
	do   func()
	want want
} {
	slots := partition.Slots{movedSlot}
	other := "http://" + m.stays + "/"
	var kept blobschema.Handover
	moving := func(epoch partition.Epoch, from, to partition.ID) []blobschema.Moving {
		return []blobschema.Moving{{Epoch: epoch, From: from, To: to, Slots: slots}}
	}
	return []struct {
		name string
		do   func()
		want want
	}{
		{"before", func() {
			m.commit(0, func(c *blobschema.Commit) {
				c.Pages = []blobschema.Page{page(m.old, 1)}
				c.State = &blobschema.Run{
					Settled: []blobschema.Settled{m.fetched(m.old, 0, 1)},
					Queued:  []blobschema.Queued{m.queued(m.waits), m.queued(other)},
				}
				c.Manifest.Slots = []blobschema.SlotSummary{{Slot: 0, Known: 1, Pending: 1}, {Slot: movedSlot, Known: 2, Pending: 1}}
			})
		}, want{pending: 2, held: []int{4, 4}}},
		{"planned", func() {
			m.write(naming.MapKey(handID), blobschema.MapRecord{
				Version: 1, Epoch: 2, Partitions: 3, Object: m.maps[1], Previous: m.maps[:1], Moving: moving(2, 0, 2),
			})
		}, want{move: &view.Move{Epoch: 2, To: 2}, pending: 2, held: []int{4, 4, 0}, owes: 1, awaits: 1}},
		{"mailed", func() {
			m.commit(2, func(c *blobschema.Commit) {
				c.State = &blobschema.Run{Queued: []blobschema.Queued{m.queued(m.mailed)}}
				c.Manifest.Slots = []blobschema.SlotSummary{{Slot: movedSlot, Unexamined: 1}}
			})
		}, want{move: &view.Move{Epoch: 2, To: 2}, mailed: true, pending: 3, held: []int{4, 4, 0}, owes: 1, awaits: 1}},
		{"given", func() {
			m.commit(0, func(c *blobschema.Commit) {
				kept = blobschema.Handover{Epoch: 2, To: 2, Slots: slots, Runs: c.Manifest.Runs, State: c.Manifest.Slots[1:]}
				c.Manifest.Given = []blobschema.Handover{kept}
				c.Manifest.Moved = []blobschema.Moved{{Epoch: 2, Slots: slots}}
				c.Manifest.Slots = c.Manifest.Slots[:1]
			})
		}, want{partition: 2, move: &view.Move{Epoch: 2, To: 2, Given: true}, mailed: true, pending: 3, held: []int{3, 4, 0}, awaits: 1}},
		{"taken", func() {
			m.commit(2, func(c *blobschema.Commit) {
				c.Manifest.Moved = []blobschema.Moved{{Epoch: 2, Received: true, Slots: slots}}
				c.Manifest.Runs = append(slices.Clone(c.Manifest.Runs), kept.Runs...)
				c.Manifest.Slots = []blobschema.SlotSummary{{Slot: movedSlot, Known: 3, Pending: 2}}
				c.Manifest.Epoch = 2
			})
			h := m.heads[2]
			h.Epoch = 2
			m.head(h)
		}, want{partition: 2, underWay: true, mailed: true, pending: 3, held: []int{3, 4, 1}}},
		{"asked", func() {
			m.commit(2, func(c *blobschema.Commit) {
				c.Pages = []blobschema.Page{page(m.late, 2)}
				c.State = &blobschema.Run{Settled: []blobschema.Settled{m.fetched(m.late, 2, 3)}}
				c.Manifest.Slots = []blobschema.SlotSummary{{Slot: movedSlot, Known: 3, Pending: 1}}
			})
		}, want{partition: 2, underWay: true, mailed: true, done: true, pending: 2, held: []int{3, 4, 1}}},
		{"confirmed", func() {
			m.write(naming.MapKey(handID), blobschema.MapRecord{Version: 2, Epoch: 2, Partitions: 3, Object: m.maps[1], Previous: m.maps[:1]})
			m.commit(0, func(c *blobschema.Commit) { c.Manifest.Given = nil })
		}, want{partition: 2, mailed: true, done: true, pending: 2, held: []int{3, 4, 1}}},
		{"back", func() {
			m.write(naming.MapKey(handID), blobschema.MapRecord{
				Version: 3, Epoch: 3, Partitions: 3, Object: m.maps[2], Previous: []string{m.maps[1], ""}, Moving: moving(3, 2, 0),
			})
			m.commit(2, func(c *blobschema.Commit) {
				kept = blobschema.Handover{Epoch: 3, To: 0, Slots: slots, Runs: c.Manifest.Runs, State: c.Manifest.Slots}
				c.Manifest.Given = []blobschema.Handover{kept}
				c.Manifest.Moved = []blobschema.Moved{{Epoch: 3, Slots: slots}}
				c.Manifest.Runs, c.Manifest.Slots = nil, nil
			})
		}, want{move: &view.Move{Epoch: 3, From: 2, Given: true}, mailed: true, done: true, pending: 2, held: []int{3, 4, 0}, awaits: 1}},
		{"at home", func() {
			m.commit(0, func(c *blobschema.Commit) {
				c.Manifest.Moved = []blobschema.Moved{{Epoch: 3, Received: true, Slots: slots}}
				c.Manifest.Runs = append(slices.Clone(c.Manifest.Runs), kept.Runs...)
				c.Manifest.Slots = []blobschema.SlotSummary{{Slot: 0, Known: 1, Pending: 1}, {Slot: movedSlot, Known: 3, Pending: 1}}
				c.Manifest.Epoch = 3
			})
			h := m.heads[0]
			h.Epoch = 3
			m.head(h)
			m.write(naming.MapKey(handID), blobschema.MapRecord{
				Version: wire.Version, Epoch: 3, Partitions: 3, Object: m.maps[2], Previous: []string{m.maps[1], ""},
			})
			m.commit(2, func(c *blobschema.Commit) { c.Manifest.Given = nil })
		}, want{mailed: true, done: true, pending: 2, held: []int{4, 4, 0}}},
	}
}

// TestMoves checks that in every phase of a move the state of the slot is found once, and page records wherever they were
// made.
func TestMoves(t *testing.T) {
	m := newMoves(t)
	for _, ph := range m.phases() {
		ph.do()
		t.Run(ph.name, func(t *testing.T) {
			v, err := view.New(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			m.check(t, v, ph.want)
			m.checkWhole(t, v, ph.want)
			frozen, err := v.Freeze(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			m.check(t, frozen, ph.want)
			m.checkWhole(t, frozen, ph.want)
		})
	}
}

// check checks single URLs and hosts.
func (m *moves) check(t *testing.T, v *view.View, w want) {
	t.Helper()
	for _, tt := range []struct {
		url     string
		known   bool
		done    bool
		records int
	}{{m.old, true, true, 1}, {m.waits, true, w.done, 1}, {m.mailed, w.mailed, false, 0}} {
		r, err := v.ExplainURL(t.Context(), mustParse(t, tt.url))
		if err != nil {
			t.Fatal(err)
		}
		state := view.Unknown
		switch {
		case tt.known && tt.done:
			state = "refused"
		case tt.known:
			state = "pending"
		}
		if r.State != state || r.Partition != w.partition || r.Slot != movedSlot || (r.Page != nil) != tt.done {
			t.Errorf("%s is %s in slot %d of partition %d with page %v, want %s in partition %d", tt.url, r.State, r.Slot, r.Partition, r.Page, state, w.partition)
		}
		if d := cmp.Diff(w.move, r.Move); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.url, d)
		}
		if pages, err := v.History(t.Context(), mustParse(t, tt.url)); err != nil || tt.done != (len(pages) == 1) {
			t.Errorf("%s: %d records, %v", tt.url, len(pages), err)
		}
	}
	h, err := v.ExplainHost(t.Context(), weburl.Host(m.host))
	if err != nil {
		t.Fatal(err)
	}
	if h.Pending != w.pending-1 || h.Partition != w.partition || h.Outcomes["robots"] != map[bool]int64{false: 1, true: 2}[w.done] {
		t.Errorf("host: %+v, want %+v", h, w)
	}
}

// checkWhole checks the crawl as a whole.
func (m *moves) checkWhole(t *testing.T, v *view.View, w want) {
	t.Helper()
	pending := int64(0)
	for _, name := range []string{m.host, m.stays} {
		h, err := v.ExplainHost(t.Context(), weburl.Host(name))
		if err != nil {
			t.Fatal(err)
		}
		pending += h.Pending
		if name == m.host && h.Partition != w.partition {
			t.Errorf("%s is in partition %d, want %d", name, h.Partition, w.partition)
		}
	}
	if pending != w.pending {
		t.Errorf("%d pending, want %d", pending, w.pending)
	}
	s, err := v.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Totals.Pending + s.Totals.Unexamined; got != w.pending {
		t.Errorf("status: %d pending, want %d", got, w.pending)
	}
	pages := []string{m.old}
	if w.done {
		pages = append(pages, m.late)
	}
	var got []string
	for _, pg := range all(t, v, view.LatestRecord) {
		got = append(got, pg.URL)
	}
	if d := cmp.Diff(pages, got); d != "" {
		t.Errorf("pages (-want +got):\n%s", d)
	}
	l, err := v.Layout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var held []int
	owes, awaits := 0, 0
	for i := range l.Parts {
		p := &l.Parts[i]
		held = append(held, p.Held)
		owes += p.Owes
		awaits += p.Awaits
	}
	if d := cmp.Diff(w.held, held); d != "" || owes != w.owes || awaits != w.awaits {
		t.Errorf("%d owed, %d awaited; slots held (-want +got):\n%s", owes, awaits, d)
	}
	if len(l.Moves) > 0 != (w.underWay || w.move != nil) {
		t.Errorf("moves %+v, want %+v", l.Moves, w)
	}
}

// TestMovesWhileLookedAt checks that a slot is found even if it is given, received or confirmed between two reads.
func TestMovesWhileLookedAt(t *testing.T) {
	m := newMoves(t)
	phases := m.phases()
	for i, ph := range phases {
		ph.do()
		if i == 0 || i+1 == len(phases) {
			continue
		}
		for at := 0; ; at++ {
			// The changes of the rest of the move are stored before read number at.
			later := newMoves(t)
			for _, p := range later.phases()[:min(i+4, len(phases))] {
				p.do()
			}
			now := m.clone()
			reads := 0
			now.before = func() {
				if reads == at {
					now.records, now.objects = later.records, later.handmade.objects
				}
				reads++
			}
			v, err := view.New(t.Context(), now)
			if err != nil {
				t.Fatal(err)
			}
			r, err := v.ExplainURL(t.Context(), mustParse(t, m.old))
			if err != nil || r.State != "refused" || r.Page == nil {
				t.Errorf("%s, changed before read %d: %+v, %v", ph.name, at, r, err)
			}
			if at > reads {
				break
			}
		}
	}
}

// TestOwnersOfMoves checks that the partitions that may get records of a URL are its owner, the giver and earlier owners. For
// a URL that stays it is one partition.
func TestOwnersOfMoves(t *testing.T) {
	m := newMoves(t)
	for _, ph := range m.phases() {
		ph.do()
		v, err := view.New(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		want := []partition.ID{0, 2}
		if ph.name == "before" {
			want = want[:1]
		}
		got, err := v.Owners(t.Context(), []weburl.URL{mustParse(t, m.old)})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: owners %v, %v, want %v", ph.name, got, err, want)
		}
		if got, err = v.Owners(t.Context(), []weburl.URL{mustParse(t, "http://"+m.hostIn(1)+"/")}); err != nil || !slices.Equal(got, []partition.ID{1}) {
			t.Errorf("%s: owners of what stays %v, %v", ph.name, got, err)
		}
	}
}

// TestEstimatesOfMoves checks that of a host's records in several partitions the one with the most observations is used.
func TestEstimatesOfMoves(t *testing.T) {
	m := newMoves(t)
	for _, ph := range m.phases()[:7] {
		ph.do()
	}
	pack := func(p partition.ID, commit, requests, pending uint64) {
		m.write(naming.HostsKey(handID, p, 0), crawl.HostPack{Hosts: map[string]crawl.HostRecord{
			m.host: {Commit: commit, HostObservation: blobschema.HostObservation{Requests: requests, Pending: pending}},
		}})
	}
	for _, tt := range []struct {
		name                   string
		requests0, requests2   uint64
		wantRequests, wantLeft uint64
	}{
		{"copied since", 3, 5, 5, 20},
		{"asked for nothing since", 3, 3, 3, 20},
		{"not copied since", 3, 0, 3, 10},
	} {
		pack(0, 9, tt.requests0, 10)
		pack(2, 1, tt.requests2, 20)
		v, err := view.New(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		e, err := v.Estimates(t.Context())
		if err != nil || len(e.Hosts) != 1 {
			t.Fatalf("%s: %+v, %v", tt.name, e, err)
		}
		if h := e.Hosts[0]; h.Partition != 2 || h.Requests != tt.wantRequests || h.Pending != tt.wantLeft {
			t.Errorf("%s: %+v", tt.name, h)
		}
	}
}

// TestDamagedMaps checks that an impossible map or map record is an error, not a panic.
func TestDamagedMaps(t *testing.T) {
	m := newMoves(t)
	m.phases()[0].do()
	wrong, err := partition.NewMap(handSlots+1, 2)
	if err != nil {
		t.Fatal(err)
	}
	m.handmade.objects["hand/maps/garbage"] = []byte("garbage")
	for name, r := range map[string]blobschema.MapRecord{
		"too many partitions":  {Epoch: 2, Partitions: partition.MaxPartitions + 1, Object: m.maps[1]},
		"a slot too high":      {Epoch: 2, Partitions: 3, Object: m.maps[1], Moving: []blobschema.Moving{{Epoch: 2, To: 2, Slots: partition.Slots{handSlots}}}},
		"a partition too high": {Epoch: 2, Partitions: 3, Object: m.maps[1], Moving: []blobschema.Moving{{Epoch: 2, To: 3, Slots: partition.Slots{0}}}},
		"a map of more slots":  {Epoch: 2, Partitions: 3, Object: m.putMap(wrong)},
		"a damaged map":        {Epoch: 2, Partitions: 3, Object: "hand/maps/garbage"},
		"an owner too high":    {Epoch: 2, Partitions: 2, Object: m.maps[1]},
	} {
		m.write(naming.MapKey(handID), r)
		v, err := view.New(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = v.ExplainURL(t.Context(), mustParse(t, m.old)); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%s: explain: %v", name, err)
		}
		_, err = v.Loads(t.Context())
		if !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%s: loads: %v", name, err)
		}
		if _, err = v.Layout(t.Context()); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%s: layout: %v", name, err)
		}
	}
	delete(m.handmade.objects, m.maps[1])
	m.write(naming.MapKey(handID), blobschema.MapRecord{Epoch: 2, Partitions: 3, Object: m.maps[1]})
	v, err := view.New(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Layout(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a map that is not there: %v", err)
	}
}

// TestNowhere checks that a slot without an owner is reported, after some attempts.
func TestNowhere(t *testing.T) {
	m := newMoves(t)
	for _, ph := range m.phases()[:4] {
		ph.do()
	}
	m.commit(0, func(c *blobschema.Commit) { c.Manifest.Given = nil }) // and 2 never took it
	v, err := view.New(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.ExplainURL(t.Context(), mustParse(t, m.old)); err == nil || !strings.Contains(err.Error(), "slot 4 is held by no partition") {
		t.Errorf("%v", err)
	}
	if _, err = v.Loads(t.Context()); err == nil || !strings.Contains(err.Error(), "slot 4 is held by no partition") {
		t.Errorf("%v", err)
	}
	var out bytes.Buffer
	if _, err := v.CDXJ(t.Context(), &out, ""); err != nil {
		t.Errorf("the pages are there all the same: %v", err)
	}
}

// TestLoads checks that the work of each slot is counted once, wherever the slot is.
func TestLoads(t *testing.T) {
	m := newMoves(t)
	for _, ph := range m.phases() {
		ph.do()
		v, err := view.New(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		load, err := v.Loads(t.Context())
		if err != nil || len(load) != handSlots {
			t.Fatalf("%s: %v, %v", ph.name, load, err)
		}
		want := make([]float64, handSlots)
		want[0], want[movedSlot] = 1, float64(ph.want.pending-1)
		if d := cmp.Diff(want, load); d != "" {
			t.Errorf("%s (-want +got):\n%s", ph.name, d)
		}
	}
	// Without work, known URLs count.
	m.commit(0, func(c *blobschema.Commit) {
		c.Manifest.Slots = []blobschema.SlotSummary{{Slot: 0, Known: 7}, {Slot: movedSlot, Known: 3}}
	})
	v, err := view.New(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if load, err := v.Loads(t.Context()); err != nil || load[0] != 7 || load[movedSlot] != 3 {
		t.Errorf("%v, %v", load, err)
	}
}

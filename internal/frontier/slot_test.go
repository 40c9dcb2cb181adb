package frontier

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// TestTextOfSettledURLs checks that a part frees the texts of settled URLs, and that the other texts stay right.
func TestTextOfSettledURLs(t *testing.T) {
	const n, size = 400, 200
	r := begun(t, Config{}, urlX)
	want := map[string]bool{urlX: true}
	for i := range n {
		url := fmt.Sprintf("https://a.example/%d/%s", i, strings.Repeat("x", size))
		want[url] = true
		r.add(2, url)
	}
	p := r.f.slots.partOf(r.hash.Slot("a.example"), 0)
	most := textOf(p)
	for left := n + 1; left > 0; left-- {
		task, ok := r.f.Next(r.now, false)
		if !ok || !want[task.Request.URL.String()] {
			t.Fatalf("%d are left; requested %v (%v)", left, task.Request.URL, ok)
		}
		delete(want, task.Request.URL.String())
		r.f.Done(r.now, task, answer{}.reply(task, r.now, 0))
		if textOf(p) > most || textOf(p) > 1<<14+2*left*(size+30) {
			t.Fatalf("%d URLs have %d bytes of text", left-1, textOf(p))
		}
		if left%50 == 0 {
			r.check()
		}
	}
	if p.Len() != 0 || len(p.marks) != n+1 {
		t.Errorf("%d are pending, %d settled", p.Len(), len(p.marks))
	}
}

// TestSettledAndBack checks that URLs are found after they were settled and pending again in any order.
func TestSettledAndBack(t *testing.T) {
	const n = 40
	r := begun(t, Config{}, urlX)
	for i := range n {
		r.add(2, pageURL(i))
	}
	for task, ok := r.f.Next(r.now, false); ok; task, ok = r.f.Next(r.now, false) {
		r.done(task, answer{})
	}
	r.state(1)
	id := r.hash.Slot("a.example")
	for _, i := range []int{0, n - 1, 7, 8, n - 2} { // the first mark, the last, and some between
		fp := r.hash.Fingerprint(pageURL(i))
		if !r.f.Settled(id, fp) || r.f.Pending(id, fp) || r.f.Record(id, fp).Seq != 1 {
			t.Errorf("%d is not settled by commit 1: %+v", i, r.f.Record(id, fp))
		}
		r.again(pageURL(i), 0)
		r.check()
		if r.f.Settled(id, fp) || !r.f.Pending(id, fp) || r.f.Record(id, fp) != (blobschema.RecordRef{}) {
			t.Errorf("%d is not pending again", i)
		}
		task := r.mustNext(pageURL(i))
		if task.Previous().Seq != 1 || task.Request.Generation != 1 {
			t.Errorf("%d: generation %d, its previous answer is in commit %d", i, task.Request.Generation, task.Previous().Seq)
		}
		r.done(task, answer{})
	}
	if c := r.f.Counts(); c.Known != n+1 || c.Pending != 0 {
		t.Errorf("counts %+v", c)
	}
	fp := r.hash.Fingerprint("https://a.example/never")
	if r.f.Settled(id, fp) || r.f.Pending(id, fp) || !r.f.Loaded(id, fp) || !r.f.Loaded(id^1, fp) {
		t.Error("a URL that was never found is known")
	}
}

// TestWantedFirst checks that parts that somebody waits for come before due ones. Slots that are elsewhere or move away are
// not loaded, and nothing is wanted twice.
func TestWantedFirst(t *testing.T) {
	at := func(s int) int64 { return epoch.Add(time.Duration(s) * time.Second).UnixMilli() }
	sums := []blobschema.SlotSummary{
		{Slot: 1, Known: 10, Pending: 5, Due: at(-9)},
		{Slot: 2, Known: 10, Pending: 5, Due: at(-8), Urgent: 1},
		{Slot: 3, Known: 10, Pending: 5, Due: at(60)},
		{Slot: 4, Known: 10, Pending: 5, Due: at(-7)},
		{Slot: 5, Known: 10, Unexamined: 1},
	}
	for _, k := range []struct {
		name string
		room int
		set  func(f *Frontier)
		want []partition.Slot
	}{
		{"all due slots", 0, func(*Frontier) {}, []partition.Slot{1, 2, 4, 5}},
		{"room for one", 10, func(*Frontier) {}, []partition.Slot{2}},
		{"too little room for the next", 20, func(*Frontier) {}, []partition.Slot{2}},
		{"room for two", 21, func(*Frontier) {}, []partition.Slot{2, 5}},
		{"room for three", 31, func(*Frontier) {}, []partition.Slot{1, 2, 5}},
		{"somebody waits for a slot that is not due", 20, func(f *Frontier) { f.Want(3, 1) }, []partition.Slot{2, 3}},
		{"one is elsewhere, two leave", 0, func(f *Frontier) { f.Await([]partition.Slot{9}); f.Freeze([]partition.Slot{1, 4}) }, []partition.Slot{2, 5}},
		{"already loading", 0, func(f *Frontier) { f.Wanted(epoch, false) }, nil},
	} {
		t.Run(k.name, func(t *testing.T) {
			r := newRig(t, Config{MaxResident: k.room})
			r.f.Restore(sums)
			k.set(r.f)
			got := r.f.Wanted(r.now, false)
			if !slices.Equal(got, whole(k.want...)) {
				t.Errorf("wanted are %v, not %v", got, k.want)
			}
		})
	}
}

// TestPartsOfOneSlot checks that parts are wanted in order and loaded one by one, and that links for other parts wait unexamined.
func TestPartsOfOneSlot(t *testing.T) {
	p := newProcess(t, Config{})
	const n = 60
	for i := range n {
		p.add(blobschema.Queued{URL: pageURL(i)})
	}
	p.commit()
	p.f.cfg.MaxPart = 8
	p.restart(false)
	p.loadAll() // one of many
	p.f.cfg.MaxPart = 0
	id := p.hash.Slot("a.example")
	var parts []blobschema.Part
	for q := range p.f.slots.byID[id].parts {
		parts = append(parts, q.is)
	}
	if len(parts) < 4 || !slices.IsSortedFunc(parts, func(a, b blobschema.Part) int {
		return int(int64(a.Prefix)<<(32-a.Depth) - int64(b.Prefix)<<(32-b.Depth))
	}) {
		t.Fatalf("parts %+v", parts)
	}
	loaded, known := 0, 0
	for i := range 2 * n { // half of them are new
		u := mustParse(t, pageURL(i))
		fp := p.hash.Fingerprint(pageURL(i))
		switch got := p.f.Add(p.now, p.link(u, blobschema.Queued{Key: "a.example", Rank: 2})); {
		case p.f.Loaded(id, fp) != (got != Deferred):
			t.Errorf("page %d: its part is loaded: %v; added: %d", i, p.f.Loaded(id, fp), got)
		case got == Fresh:
			loaded++
		case got == Known:
			known++
		}
	}
	p.check()
	if c := p.f.Counts(); loaded == 0 || known == 0 || int(c.Unexamined) != 2*n-loaded-known {
		t.Errorf("%d are new, %d known; counts %+v", loaded, known, c)
	}
}

// TestAgainUnexamined requests settled URLs while their part is not in memory. They are pending when it is loaded, whether or
// not a commit contains the request by then, and nothing is counted twice.
func TestAgainUnexamined(t *testing.T) {
	for _, committed := range []bool{false, true} {
		for _, gen := range []uint32{0, 1} {
			p := newProcess(t, Config{})
			const n = 5
			for i := range n {
				p.add(blobschema.Queued{URL: pageURL(i)})
			}
			p.drain()
			p.commit()
			p.restart(false)
			id := p.hash.Slot("a.example")
			for i := range 2 {
				fp := p.hash.Fingerprint(pageURL(i))
				if got := p.f.Add(p.now, p.link(mustParse(t, pageURL(i)), blobschema.Queued{Key: "a.example", Rank: 2, Generation: gen})); got != Deferred || p.f.Loaded(id, fp) {
					t.Fatalf("added: %d", got)
				}
			}
			if committed {
				p.commit()
			}
			p.loadAll()
			p.check()
			want := int64(2 * gen)
			if c := p.f.Counts(); c.Known != n || c.Pending != want || p.f.schedule.Find("a.example") != nil && p.info("a.example").Settled != uint64(n-want) {
				t.Errorf("generation %d, committed %v: counts %+v", gen, committed, c)
			}
			for i := range n {
				fp := p.hash.Fingerprint(pageURL(i))
				if back := gen == 1 && i < 2; p.f.Pending(id, fp) != back || p.f.Settled(id, fp) == back || (p.f.Record(id, fp).Seq == 0) != back {
					t.Errorf("generation %d, committed %v: page %d is pending %v, settled by %+v", gen, committed, i, p.f.Pending(id, fp), p.f.Record(id, fp))
				}
			}
		}
	}
}

// TestWantInMovingSlot checks that a part that somebody waits for is to be loaded as soon as its slot has arrived.
func TestWantInMovingSlot(t *testing.T) {
	r, id := newRig(t, Config{}), partition.Slot(5)
	r.f.Await([]partition.Slot{id})
	r.f.Want(id, 1)
	got := r.f.Wanted(r.now, false)
	if _, awaited := r.f.PartDue(); len(got) != 0 || awaited {
		t.Errorf("before it has arrived: %v wanted, awaited %v", got, awaited)
	}
	r.f.Open([]partition.Slot{id})
	_, awaited := r.f.PartDue()
	if got := r.f.Wanted(r.now, false); !awaited || len(got) != 1 {
		t.Errorf("afterwards: %v wanted, awaited %v", got, awaited)
	}
}

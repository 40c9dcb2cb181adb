package frontier

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
)

// pageURL is the i-th URL of a host.
func pageURL(i int) string { return fmt.Sprintf("https://a.example/%d", i) }

// commit does a whole one.
func (p *process) commit() {
	p.beginCommit()
	p.endCommit()
	p.check()
}

// loadAll loads what is wanted.
func (p *process) loadAll() (n int) {
	for p.want(); len(p.loads) > 0; n++ {
		p.load(0)
		p.check()
	}
	return n
}

// TestHalved: a part that holds too many is asked for nothing more, is halved when what is
// under way is committed, and what was found meanwhile is not lost.
func TestHalved(t *testing.T) {
	p := newProcess(t, Config{MaxPart: 4, Delay: time.Second})
	for i := range 4 {
		p.add(blobschema.Queued{URL: pageURL(i)})
	}
	p.start(0)
	p.finish(0)
	p.start(0) // a page, under way
	p.add(blobschema.Queued{URL: pageURL(4)})
	p.check()
	fifth := mustParse(t, pageURL(5))
	if got := p.f.Add(p.now, fifth, p.hash.Fingerprint(pageURL(5)), blobschema.Queued{Host: "a.example", Rank: 1}); got != Deferred {
		t.Errorf("a URL that comes to a full part is %d", got)
	}
	p.now = p.now.Add(time.Minute)
	p.mustIdle()
	p.commit()
	if n := p.f.Counts(); n.Halved != 0 || !p.f.Dirty() || n.Misses != 1 || n.Hits != 5 {
		t.Errorf("with a request under way: counts %+v, dirty %v", n, p.f.Dirty())
	}
	p.finish(0)
	p.now = p.now.Add(time.Minute)
	p.mustIdle()
	p.commit()
	id := p.hash.Slot("a.example")
	want := []blobschema.SlotSummary{{Slot: id, Known: 5, Pending: 4, Unexamined: 1, Due: 1}}
	if d := cmp.Diff(want, p.slots, cmp.AllowUnexported(blobschema.SlotSummary{}, blobschema.Part{}), cmp.Transformer("due", func(ms int64) bool { return ms > 0 })); d != "" {
		t.Errorf("the summary that was committed (-want +got):\n%s", d)
	}
	if n := p.f.Counts(); n.Halved != 1 || p.f.Dirty() || p.f.slots[id].loaded != 0 || n.Hosts != 0 {
		t.Errorf("without it: counts %+v, dirty %v", n, p.f.Dirty())
	}
	if n := p.loadAll(); n != 2 {
		t.Errorf("%d parts were loaded", n)
	}
	p.drain()
	if len(p.settled) != 6 || p.f.Counts().Known != 6 {
		t.Errorf("settled %v, counts %+v", p.settled, p.f.Counts())
	}
}

// TestHalvedOnLoading: of a part that turns out to hold too many, one piece is loaded.
func TestHalvedOnLoading(t *testing.T) {
	p := newProcess(t, Config{})
	for i := range 40 {
		p.add(blobschema.Queued{URL: pageURL(i)})
	}
	p.commit()
	p.f.cfg.MaxPart = 8
	p.restart(false)
	if n := p.loadAll(); n != 1 || p.f.resident > 8 || p.f.Counts().Halved < 3 {
		t.Errorf("%d parts were loaded, %d URLs are resident, counts are %+v", n, p.f.resident, p.f.Counts())
	}
	p.drain()
	if len(p.settled) != 40 {
		t.Errorf("%d URLs are settled", len(p.settled))
	}
}

// TestUnitsOutlastLoads: units stay in memory while another part of their slot is loading, for it
// comes with the states of when its loading began.
func TestUnitsOutlastLoads(t *testing.T) {
	p := newProcess(t, Config{MaxPart: 8, MaxResident: 40, Delay: time.Minute})
	for i := range 9 {
		p.add(blobschema.Queued{URL: pageURL(i)})
	}
	p.commit()
	p.want()
	if len(p.loads) != 2 {
		t.Fatalf("%d parts are wanted", len(p.loads))
	}
	p.load(0)
	p.start(0)
	p.finish(0)
	p.start(0)
	p.finish(0)
	p.commit()
	at := p.f.units["a.example"].pace.ReadyAt()
	if p.f.shed(0); p.f.slots[p.hash.Slot("a.example")].loaded != 1 {
		t.Fatal("the units are gone")
	}
	p.load(0)
	p.check()
	if u := p.f.units["a.example"]; u.requests != 2 || !u.pace.ReadyAt().Equal(at) {
		t.Errorf("%d requests, ready at %v, not %v", u.requests, u.pace.ReadyAt(), at)
	}
	if p.f.shed(0); p.f.counts.Hosts != 0 {
		t.Error("the units stay for ever")
	}
	p.check()
}

// TestUrgentInAFullPart: what is asked for on purpose is known to wait in one of the halves.
func TestUrgentInAFullPart(t *testing.T) {
	p := newProcess(t, Config{MaxPart: 4})
	for i := range 4 {
		p.add(blobschema.Queued{URL: pageURL(i)})
	}
	p.start(0)
	p.add(blobschema.Queued{URL: pageURL(4)})
	u := mustParse(t, pageURL(5))
	p.f.Add(p.now, u, p.hash.Fingerprint(pageURL(5)), blobschema.Queued{Host: "a.example", Generation: 3})
	p.commit() // it is in runs only from now on
	p.finish(0)
	p.commit()
	urgent := 0
	for _, sum := range p.f.Summaries() {
		urgent += int(sum.Urgent)
	}
	if n := p.f.Counts(); n.Halved != 1 || n.Urgent != 2 || urgent != 2 {
		t.Errorf("counts %+v, %d urgent URLs in the summaries", n, urgent)
	}
	p.loadAll()
	if n := p.f.Counts(); n.Urgent != 1 {
		t.Errorf("counts %+v", n)
	}
}

// TestWantedPart: a part that somebody wants stays wanted when it is halved.
func TestWantedPart(t *testing.T) {
	p := newProcess(t, Config{MaxPart: 4, MaxResident: 5})
	for i := range 5 {
		p.add(blobschema.Queued{URL: pageURL(i)})
	}
	id, fp := p.hash.Slot("a.example"), p.hash.Fingerprint(pageURL(2))
	p.f.Want(id, fp)
	p.commit()
	if p.f.Loaded(id, fp) {
		t.Fatal("it was not halved")
	}
	p.rig.add(0, "https://b.example/") // something else to do
	p.loadAll()
	if !p.f.Loaded(id, fp) {
		t.Error("it is not loaded")
	}
}

// TestSplitsCost: what is stored of a part that is halved stays as it is: the next delta has
// nothing of it but what was appended.
func TestSplitsCost(t *testing.T) {
	p := newProcess(t, Config{MaxPart: 50})
	for i := range 51 {
		p.add(blobschema.Queued{URL: pageURL(i)})
	}
	p.commit()
	if n := p.f.Counts().Halved; n != 1 || p.f.Dirty() {
		t.Errorf("%d parts were halved; dirty %v", n, p.f.Dirty())
	}
	run, _ := p.f.Delta(99)
	if len(run.Settled)+len(run.Queued)+len(run.Hosts) != 0 {
		t.Errorf("halving wrote %d settled and %d pending URLs, %d hosts", len(run.Settled), len(run.Queued), len(run.Hosts))
	}
}

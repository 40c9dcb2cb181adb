package frontier

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// pageURL returns the i-th URL of a host.
func pageURL(i int) string { return fmt.Sprintf("https://a.example/%d", i) }

// commit begins and ends a commit.
func (p *process) commit() {
	p.beginCommit()
	p.endCommit()
	p.check()
}

// loadAll loads all wanted parts.
func (p *process) loadAll() (n int) {
	for p.want(); len(p.loads) > 0; n++ {
		p.load(0)
		p.check()
	}
	return n
}

// TestHalved checks that a part with too many URLs makes no more requests and is halved when those under way are committed.
// Links found meanwhile are not lost.
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
	if got := p.f.Add(p.now, p.link(fifth, blobschema.Queued{Key: "a.example", Rank: 1})); got != Deferred {
		t.Errorf("adding a URL to a full part returns %d", got)
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
	if n := p.f.Counts(); n.Halved != 1 || p.f.Dirty() || p.f.slots.byID[id].loaded != 0 || n.Keys != 0 {
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

// TestHalvedOnLoading checks that only one piece is loaded of a part that turns out to hold too many URLs.
func TestHalvedOnLoading(t *testing.T) {
	p := newProcess(t, Config{})
	for i := range 40 {
		p.add(blobschema.Queued{URL: pageURL(i)})
	}
	p.commit()
	p.f.cfg.MaxPart = 8
	p.restart(false)
	if n := p.loadAll(); n != 1 || p.f.slots.resident > 8 || p.f.Counts().Halved < 3 {
		t.Errorf("%d parts were loaded, %d URLs are resident, counts are %+v", n, p.f.slots.resident, p.f.Counts())
	}
	p.drain()
	if len(p.settled) != 40 {
		t.Errorf("%d URLs are settled", len(p.settled))
	}
}

// TestLoadedPartsAreNotStoredAgain checks that a commit stores each link for an unloaded part once. Loading the part stores
// none of its URLs again, neither known ones nor those that were appended and committed.
func TestLoadedPartsAreNotStoredAgain(t *testing.T) {
	p := newProcess(t, Config{})
	for i := range 100 {
		p.add(blobschema.Queued{URL: pageURL(i), Depth: 3})
	}
	p.restart(false)
	for i := range 6 {
		p.add(blobschema.Queued{URL: pageURL(97 + i), Depth: 2}) // three known, three new
	}
	p.commit()
	if n := p.runs[len(p.runs)-1].Len(); n != 6 {
		t.Errorf("the commit of 6 links for an unloaded part stores %d entries", n)
	}
	p.loadAll()
	p.add(blobschema.Queued{URL: pageURL(103)})
	p.commit()
	if run := p.runs[len(p.runs)-1]; len(run.Queued) != 1 || len(run.Settled) != 0 {
		t.Errorf("the commit of one URL after a load stores %d entries", run.Len())
	}
	p.restart(false)
	p.drain()
	if len(p.settled) != 104 {
		t.Errorf("%d URLs are settled", len(p.settled))
	}
}

// TestKeysOutlastLoads checks that politeness keys stay in memory while another part of their slot is loading, because that
// part brings their states as of the start of its loading.
func TestKeysOutlastLoads(t *testing.T) {
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
	before := p.info("a.example").Pace
	at := before.ReadyAt()
	if p.f.shed(p.now, 0, 0); p.f.slots.byID[p.hash.Slot("a.example")].loaded != 1 {
		t.Fatal("the politeness keys were unloaded")
	}
	p.load(0)
	p.check()
	if k := p.info("a.example"); k.Requests != 2 || !k.Pace.ReadyAt().Equal(at) {
		t.Errorf("%d requests, ready at %v, not %v", k.Requests, k.Pace.ReadyAt(), at)
	}
	if p.f.shed(p.now, 0, 0); p.f.Counts().Keys != 0 {
		t.Error("the politeness keys are never unloaded")
	}
	p.check()
}

// TestUrgentInAFullPart checks that a requested URL is known to wait in one of the halves.
func TestUrgentInAFullPart(t *testing.T) {
	p := newProcess(t, Config{MaxPart: 4})
	for i := range 4 {
		p.add(blobschema.Queued{URL: pageURL(i)})
	}
	p.start(0)
	p.add(blobschema.Queued{URL: pageURL(4)})
	u := mustParse(t, pageURL(5))
	p.f.Add(p.now, p.link(u, blobschema.Queued{Key: "a.example", Generation: 3}))
	p.commit() // from now on only the runs hold it
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

// TestWantedPart checks that a wanted part stays wanted when it is halved.
func TestWantedPart(t *testing.T) {
	p := newProcess(t, Config{MaxPart: 4, MaxResident: 5})
	for i := range 5 {
		p.add(blobschema.Queued{URL: pageURL(i)})
	}
	id, fp := p.hash.Slot("a.example"), p.hash.Fingerprint(pageURL(2))
	p.f.Want(id, fp)
	p.commit()
	if p.f.Loaded(id, fp) {
		t.Fatal("the part was not halved")
	}
	p.rig.add(0, "https://b.example/") // something else to do
	p.loadAll()
	if !p.f.Loaded(id, fp) {
		t.Error("the wanted half is not loaded")
	}
}

// TestSplitsCost checks that halving a part rewrites none of its stored entries: the next delta contains only appended
// ones.
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
	if len(run.Settled)+len(run.Queued)+len(run.Keys) != 0 {
		t.Errorf("halving wrote %d settled and %d pending URLs, %d hosts", len(run.Settled), len(run.Queued), len(run.Keys))
	}
}

// TestHalvedWithMail adds links for a part that will be halved: before, during and after a commit. Each goes to its half,
// which counts the links that somebody waits for; none is lost.
func TestHalvedWithMail(t *testing.T) {
	p := newProcess(t, Config{MaxPart: 4, Delay: time.Second})
	n := 0
	add := func(urls int) {
		t.Helper()
		for range urls {
			q := blobschema.Queued{URL: pageURL(n)}
			if n > 4 && n%3 == 0 {
				q.Generation = 1 // with rank 0: somebody waits for it
			}
			p.next.added = append(p.next.added, q)
			u := mustParse(t, q.URL)
			got := p.f.Add(p.now, p.link(u, blobschema.Queued{Key: "a.example", Rank: 1 - q.Generation, Generation: q.Generation}))
			if n > 4 != (got == Deferred) {
				t.Fatalf("page %d: %d", n, got)
			}
			p.check()
			n++
		}
	}
	add(4)
	p.start(0)
	p.finish(0) // the robots.txt
	p.now = p.now.Add(time.Second)
	p.start(0)
	add(1 + 8) // the fifth makes it full
	p.beginCommit()
	add(7)
	p.endCommit()
	p.check()
	add(6)
	p.finish(0)
	p.check()
	p.beginCommit()
	add(5)
	p.endCommit()
	p.check()
	if c := p.f.Counts(); c.Halved != 1 || c.Misses != 26 {
		t.Fatalf("counts %+v", c)
	}
	id := p.hash.Slot("a.example")
	var known, unexamined, urgent uint32
	for _, sum := range p.f.Summaries() {
		if sum.Slot != id || sum.Part.Depth != 1 || sum.Due <= 0 {
			t.Errorf("summary %+v", sum)
		}
		known, unexamined, urgent = known+sum.Known, unexamined+sum.Unexamined, urgent+sum.Urgent
	}
	// For URLs in runs the half is unknown, so both halves count them.
	if known != 5 || unexamined < 26 || unexamined > 2*26 || urgent < 9 || urgent > 2*9 {
		t.Errorf("of 31 URLs %d are known, %d unexamined, %d urgent", known, unexamined, urgent)
	}
	p.f.cfg.MaxPart = 0
	p.loadAll()
	if c := p.f.Counts(); c.Known != 31 || c.Pending != 30 || c.Unexamined != 0 || c.Urgent != 9 {
		t.Errorf("when they are loaded: counts %+v", c)
	}
}

// TestHalfThatIsLoaded loads a part that turns out to hold too many URLs. The piece that somebody waits for is loaded, and the
// summaries of the others are right.
func TestHalfThatIsLoaded(t *testing.T) {
	for _, second := range []bool{false, true} { // whether the requested URL belongs to the second half
		p := newProcess(t, Config{})
		urgent, n := "", 0
		for i := 0; n < 40; i++ {
			if urgent == "" && p.hash.Fingerprint(pageURL(i))>>63 == 1 == second {
				urgent = pageURL(i)
				continue
			}
			p.add(blobschema.Queued{URL: pageURL(i)})
			n++
		}
		p.again(urgent, 0)
		p.next.added = append(p.next.added, blobschema.Queued{URL: urgent})
		p.commit()
		p.f.cfg.MaxPart = 8
		p.restart(false)
		p.want()
		p.load(0)
		id := p.hash.Slot("a.example")
		if !p.f.Loaded(id, p.hash.Fingerprint(urgent)) {
			t.Error("the part that somebody waits for is not loaded")
		}
		var known, pending, waits uint32
		for _, sum := range p.f.Summaries() {
			known, pending, waits = known+sum.Known, pending+sum.Pending, waits+sum.Urgent
			if sum.Pending > 0 != (sum.Due > 0) || sum.Unexamined > 0 {
				t.Errorf("summary %+v", sum)
			}
		}
		if known != 41 || pending != 41 || waits != 1 || !p.f.Dirty() {
			t.Errorf("%d are known, %d pending, %d urgent; dirty %v", known, pending, waits, p.f.Dirty())
		}
	}
}

// TestPartLeaves unloads one part of a host. The host continues with the other one, including its URLs that wait for a
// retry.
func TestPartLeaves(t *testing.T) {
	p := newProcess(t, Config{MaxPart: 20, Delay: time.Second})
	for i := range 21 {
		p.add(blobschema.Queued{URL: pageURL(i)})
	}
	p.commit() // halves it
	p.loadAll()
	id := p.hash.Slot("a.example")
	if s := p.f.slots.byID[id]; s.loaded != 2 {
		t.Fatalf("%d parts are loaded", s.loaded)
	}
	for range 12 { // some need a retry
		task, ok := p.f.Next(p.now, false)
		if !ok {
			p.now = p.f.NextAt()
			continue
		}
		a := answer{status: 503}
		if task.Request.Robots {
			a = answer{status: 404}
		}
		p.f.Done(p.now, task, a.reply(task, p.now, 0))
		p.check()
		p.now = p.now.Add(time.Second)
	}
	p.f.Delta(p.seq())
	p.f.Committed()
	before := p.f.Counts()
	p.f.unload(p.f.slots.byID[id].dir[0])
	p.check()
	c := p.f.Counts()
	if c.Known != before.Known || c.Pending != before.Pending || c.Keys != 1 || p.f.slots.byID[id].loaded != 1 {
		t.Errorf("counts %+v, before %+v", c, before)
	}
	stays := p.f.slots.byID[id].dir[1]
	asked := map[string]bool{}
	for left := stays.Len(); stays.Len() > 0; {
		if left--; left < -50 {
			t.Fatalf("%d are left", stays.Len())
		}
		if task, ok := p.f.Next(p.now, false); ok {
			url := task.Request.URL.String()
			if asked[url] || !stays.is.Has(p.hash.Fingerprint(url)) {
				t.Errorf("%s is requested", url)
			}
			asked[url] = true
			p.f.Done(p.now, task, answer{}.reply(task, p.now, 0))
			p.check()
			continue
		}
		p.now = p.f.NextAt()
	}
}

// TestSheds checks that parts that are not due make room for due parts that are not in memory. Due parts do so too if one of
// those has waited too long. Half of the room keeps its parts.
func TestSheds(t *testing.T) {
	for name, c := range map[string]struct {
		bound  int
		due    time.Duration // of the parts in memory
		wanted *part
		stay   int
	}{
		"room for all":                 {bound: 30, stay: 20},
		"too many URLs":                {bound: 16, stay: 16},
		"due part, all due in memory":  {bound: 20, wanted: &part{known: 6}, stay: 20},
		"due part, none due in memory": {bound: 20, due: time.Hour, wanted: &part{known: 6}, stay: 14},
		"large due part":               {bound: 20, due: time.Hour, wanted: &part{known: 60}, stay: 10},
		"due part with room":           {bound: 26, due: time.Hour, wanted: &part{known: 6}, stay: 20},
		"pressing part":                {bound: 20, wanted: &part{known: 6, late: true}, stay: 14},
		"pressing part with room":      {bound: 26, wanted: &part{known: 6, late: true}, stay: 20},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcess(t, Config{})
			for i := range 20 { // nearly all in different slots
				p.queue(fmt.Sprintf("https://h%d.example/", i), blobschema.Queued{NotBefore: p.now.Add(c.due).UnixMilli()})
			}
			p.commit()
			p.f.cfg.MaxResident = c.bound
			var due []*part
			if c.wanted != nil {
				due = append(due, c.wanted)
				c.wanted.Pool = schedule.NewPool(&schedule.Group{})
			}
			if got := p.f.room(p.now, due); p.f.slots.resident > c.stay || p.f.slots.resident < c.stay-4 || got != c.bound-p.f.slots.resident {
				t.Errorf("%d URLs stay, and there is room for %d", p.f.slots.resident, got)
			}
			p.check()
		})
	}
}

// TestPartsThatWait checks that, while there is work, a part without room is loaded after a while, and so is a part with only
// appended entries. A part that somebody waits for is loaded at once.
func TestPartsThatWait(t *testing.T) {
	const id = 1
	appended := blobschema.SlotSummary{Slot: id, Known: 5, Unexamined: 1}
	for name, c := range map[string]struct {
		part    blobschema.SlotSummary
		working bool
		wait    time.Duration
	}{
		"no room":                   {blobschema.SlotSummary{Slot: id, Known: 100, Pending: 5, Due: 1}, true, patience},
		"no room, idle":             {blobschema.SlotSummary{Slot: id, Known: 100, Pending: 5, Due: 1}, false, 0},
		"appended":                  {appended, true, patience},
		"appended, idle":            {appended, false, 0},
		"appended and due":          {blobschema.SlotSummary{Slot: id, Known: 5, Pending: 1, Unexamined: 1, Due: 1}, true, 0},
		"appended, due in a second": {blobschema.SlotSummary{Slot: id, Known: 5, Pending: 1, Unexamined: 1, Due: epoch.Add(time.Second).UnixMilli()}, true, time.Second},
		"appended, due in an hour":  {blobschema.SlotSummary{Slot: id, Known: 5, Pending: 1, Unexamined: 1, Due: epoch.Add(time.Hour).UnixMilli()}, true, patience},
		"appended and requested":    {blobschema.SlotSummary{Slot: id, Known: 5, Unexamined: 1, Urgent: 1}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{MaxResident: 10})
			r.f.Restore([]blobschema.SlotSummary{c.part})
			if c.working {
				r.add(0, loadedURL)
			}
			if c.wait > 0 {
				got := r.f.Wanted(r.now, false)
				if due, awaited := r.f.PartDue(); got != nil || awaited || !due.Equal(r.now.Add(c.wait)) {
					t.Fatalf("%v is wanted at once, and the next one after %v, awaited %v", got, due.Sub(r.now), awaited)
				}
			}
			if got := r.f.Wanted(r.now.Add(c.wait), false); len(got) != 1 {
				t.Errorf("%v is wanted", got)
			}
		})
	}
}

// TestDuePartsStay checks that due parts in memory are not replaced by other due parts, so loads do not grow with the number
// of calls. All get their turn: used parts are due later, and parts that are not in memory wait a minute.
func TestDuePartsStay(t *testing.T) {
	p := newProcess(t, Config{Delay: 2 * time.Second, MaxResident: 200})
	for i := range 400 {
		p.add(blobschema.Queued{URL: fmt.Sprintf("https://h%d.example/%d", i%80, i/80)})
	}
	p.restart(false)
	loads, requests, first := 0, 0, map[string]bool{}
	for second := range 120 {
		for range 10 { // as after ten events
			loads += p.loadAll()
		}
		for range 2 {
			if p.start(0) {
				requests++
				first[p.flights[0].task.KeyName()] = true
				p.finish(0)
			}
		}
		if second%10 == 9 {
			p.commit()
		}
		p.now = p.now.Add(time.Second)
	}
	if requests != 240 || loads > 20 || len(first) < 70 {
		t.Errorf("%d requests to %d hosts took %d loads", requests, len(first), loads)
	}
	p.drain()
	if len(p.settled) != 400 {
		t.Errorf("%d URLs are settled", len(p.settled))
	}
}

// TestWantedInOrder checks that parts are wanted and read in the order of their fingerprints, whatever their depths, so a
// repeated crawl does the same.
func TestWantedInOrder(t *testing.T) {
	p := newProcess(t, Config{MaxPart: 4})
	for i := range 200 {
		p.add(blobschema.Queued{URL: pageURL(i)})
	}
	for range 3 { // the loaded parts are halved
		p.commit()
		p.restart(false)
		p.loadAll()
	}
	p.commit()
	p.restart(false)
	wanted := p.f.Wanted(p.now, false)
	depths := map[uint8]bool{}
	for i, id := range wanted {
		depths[id.Part.Depth] = true
		if i > 0 && wanted[i-1].Part.First() >= id.Part.First() {
			t.Errorf("%+v is wanted before %+v", wanted[i-1].Part, id.Part)
		}
	}
	if len(wanted) < 20 || len(depths) < 2 {
		t.Errorf("only %d parts, of %d depths, are wanted", len(wanted), len(depths))
	}
}

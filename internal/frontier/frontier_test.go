package frontier

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/partition"
)

// TestAdd adds one URL several times per case. Each case lists the result of every call and the entry of the URL in the next
// commit.
func TestAdd(t *testing.T) {
	const url = "https://a.example/x"
	type q = blobschema.Queued
	for _, c := range []struct {
		name string
		adds []q
		want []Added
		end  q
	}{
		{"again", []q{{Depth: 2}, {Depth: 2}}, []Added{Fresh, Known}, q{Depth: 2, Rank: 3}},
		{"farther", []q{{Depth: 2}, {Depth: 3}}, []Added{Fresh, Known}, q{Depth: 2, Rank: 3}},
		{"nearer", []q{{Depth: 2}, {Depth: 1}, {Depth: 2}, {Depth: 1}, {Depth: 0}}, []Added{Fresh, Lowered, Known, Known, Lowered}, q{Rank: 1}},
		{"a seed", []q{{Depth: 1}, {Depth: 1, Flags: blobschema.FlagSeed}}, []Added{Fresh, Lowered}, q{Depth: 1, Rank: 2, Flags: blobschema.FlagSeed}},
		{"requested again", []q{{Depth: 1}, {Depth: 4, Generation: 1}}, []Added{Fresh, Lowered}, q{Depth: 4, Rank: 5, Generation: 1}},
		{"older", []q{{Depth: 4, Generation: 2}, {Depth: 0, Generation: 1}, {Depth: 0}}, []Added{Fresh, Known, Known}, q{Depth: 4, Rank: 5, Generation: 2}},
		{"rank is the caller's", []q{{Depth: 3, Rank: 9}, {Depth: 3, Rank: 2}, {Depth: 3, Rank: 5}}, []Added{Fresh, Lowered, Known}, q{Depth: 3, Rank: 2}},
		{"key is the caller's", []q{{Slot: 9999, Key: "example"}, {Key: "example", Depth: 1}}, []Added{Fresh, Known}, q{Key: "example", Rank: 1}},
		{"where it was", []q{{Depth: 1}, {Depth: 1, Previous: blobschema.RecordRef{Seq: 7}}, {Depth: 1, Previous: blobschema.RecordRef{Seq: 6}}}, []Added{Fresh, Lowered, Known}, q{Depth: 1, Rank: 2, Previous: blobschema.RecordRef{Seq: 7}}},
		{"attempts", []q{{}, {Attempts: 2}, {Attempts: 1}}, []Added{Fresh, Lowered, Known}, q{Attempts: 2, Rank: 1}},
		{"rank is the policy's", []q{{Depth: 3, Rank: 4}}, []Added{Fresh}, q{Depth: 3, Rank: 4}},
	} {
		r := newRig(t, Config{})
		var got []Added
		for _, add := range c.adds {
			got = append(got, r.queue(url, add))
			r.check()
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		if c.end.Key == "" {
			c.end.Key = "a.example"
		}
		c.end.URL, c.end.Slot = url, r.hash.Slot(c.end.Key)
		run, _ := r.f.Delta(1)
		if d := cmp.Diff(&blobschema.Run{Queued: []q{c.end}}, run); d != "" {
			t.Errorf("%s: delta (-want +got):\n%s", c.name, d)
		}
	}
}

// TestAddSettled checks that settled URLs stay settled, unless a higher generation is added.
func TestAddSettled(t *testing.T) {
	r := newRig(t, Config{})
	const url = "https://a.example/x"
	r.add(3, url)
	r.run(nil)
	for _, c := range []struct {
		q    blobschema.Queued
		want Added
	}{
		{blobschema.Queued{Depth: 3}, Known}, {blobschema.Queued{}, Known},
		{blobschema.Queued{Generation: 2}, Fresh}, {blobschema.Queued{Generation: 1}, Known},
	} {
		if got := r.queue(url, c.q); got != c.want {
			t.Errorf("%+v: got %d, want %d", c.q, got, c.want)
		}
	}
	r.check()
	r.mustNext(url)
	if n := r.f.Counts(); n.Known != 1 || n.Pending != 1 {
		t.Errorf("counts are %+v", n)
	}
	run, _ := r.f.Delta(1)
	all := blobschema.MergeRuns(r.hash, []*blobschema.Run{run})
	if len(all.Queued) != 1 || all.Queued[0].Generation != 2 || len(all.Settled) != 0 {
		t.Errorf("the join holds %+v and %+v", all.Queued, all.Settled)
	}
}

// TestDelta checks that each delta contains the changes since the previous one and nothing else.
func TestDelta(t *testing.T) {
	r := newRig(t, Config{})
	if r.f.Dirty() {
		t.Error("an empty frontier is dirty")
	}
	r.add(1, "https://a.example/1", "https://a.example/2")
	expect := func(name string, seen, queued int, hosts ...string) (observed []blobschema.HostObservation) {
		t.Helper()
		if !r.f.Dirty() && seen+queued+len(hosts) > 0 {
			t.Errorf("%s: not dirty", name)
		}
		run, observed := r.f.Delta(1)
		var got []string
		for _, h := range run.Keys {
			got = append(got, fmt.Sprintf("%s %d", h.Key, h.Version))
		}
		if len(run.Settled) != seen || len(run.Queued) != queued || !slices.Equal(got, hosts) {
			t.Errorf("%s: %d settled, %d pending, hosts %v", name, len(run.Settled), len(run.Queued), got)
		}
		if r.f.Dirty() {
			t.Errorf("%s: dirty after the delta", name)
		}
		r.f.Committed()
		return observed
	}
	expect("two URLs", 0, 2)
	expect("nothing", 0, 0)
	robots := r.mustNext("https://a.example/robots.txt")
	if seen := expect("a request that began", 0, 0, "a.example 1"); len(seen) > 0 { // its host's pace has changed
		t.Errorf("observed a host that was not requested: %+v", seen)
	}
	r.f.Done(r.now, robots, answer{status: 404}.reply(robots, r.now, time.Second))
	one := r.mustNext("https://a.example/1")
	expect("a page that was requested", 0, 0, "a.example 2")
	if sum := r.f.Summaries(); len(sum) != 1 || sum[0].Due != 1 {
		t.Errorf("a slot with a request under way is due: %+v", sum)
	}
	r.f.Done(r.now, one, answer{keep: true}.reply(one, r.now, time.Second))
	r.add(0, "https://b.example/")
	observed := expect("a page, a link", 1, 1, "a.example 3")
	want := []blobschema.HostObservation{{
		Host: "a.example", Slot: r.hash.Slot("a.example"), Resp: time.Second, PerConnection: polite.NewPerConnection, Requests: 2,
		Score: 6. / 11 / 2 / 1.1, Known: 2, Pending: 1, // a URL one link from a seed, 1 s after two times 50 ms
	}}
	if d := cmp.Diff(want, observed, cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Errorf("observed (-want +got):\n%s", d)
	}
	r.add(0, "https://a.example/2") // nearer: changed, then settled within one delta
	r.run(nil)
	expect("the rest", 2, 0, "a.example 4", "b.example 1")
	r.check()
}

// stored commits everything and returns a new frontier loaded from the runs.
func (p *process) stored() *process {
	p.beginCommit()
	p.endCommit()
	q := newProcess(p.t, p.cfg)
	q.now, q.runs, q.slots, q.took = p.now, p.runs, p.slots, p.took
	q.hits = maps.Clone(p.hits)
	q.f.Restore(p.slots)
	for part := range q.f.slots.parts {
		part.loading = true
		q.loads = append(q.loads, loading{PartID{part.slot.id, part.is}, q.runs})
	}
	for len(q.loads) > 0 {
		q.load(0)
	}
	q.check()
	return q
}

// TestStoredStateGoesOn stores and loads a frontier and checks that it continues as before: it keeps paces, back-offs,
// robots.txt rules, their redirects and attempts.
func TestStoredStateGoesOn(t *testing.T) {
	web := answers{
		"https://a.example/robots.txt": {{body: "User-agent: *\nCrawl-delay: 7\nDisallow: /no\n"}},
		"https://b.example/robots.txt": {{status: 301, location: "https://elsewhere.example/r"}},
		"https://elsewhere.example/r":  {{status: 503}, {body: "User-agent: *\nDisallow: /4\n"}},
		"https://c.example/1":          {{status: 500}, {status: 500}, {status: 500}},
		"https://d.example/1":          {{status: 429, retryAfter: 5 * time.Minute}, {}},
		"https://e.example/robots.txt": {{status: 500}},
		"http://e.example/1":           {{outcome: blobschema.OutcomeTimeout}},
		"https://f.example/robots.txt": {{status: 302, location: "https://f.example/robots.txt"}}, // forever
	}
	cfg := Config{Delay: time.Second, Retry: polite.Retry{Wait: 10 * time.Second}}
	for _, after := range []time.Duration{0, time.Second, 4 * time.Second, 12 * time.Second, time.Minute} {
		p := newProcess(t, cfg)
		p.took = 0
		for _, h := range "abcdef" {
			for i := range 5 {
				p.rig.add(uint16(7*i%5), fmt.Sprintf("https://%c.example/%d", h, i)) // different depths, because the order of arrival is not stored
			}
			p.rig.add(5, fmt.Sprintf("https://%c.example/no", h))
			p.rig.add(6, fmt.Sprintf("http://%c.example/1", h))
		}
		for end := epoch.Add(after); p.now.Before(end); p.now = p.now.Add(100 * time.Millisecond) {
			for task, ok := p.f.Next(p.now, false); ok; task, ok = p.f.Next(p.now, false) {
				p.f.Done(p.now, task, p.hit(web, task.Request).reply(task, p.now, 0))
			}
		}
		p.refused()
		q := p.stored()
		if d := cmp.Diff(slices.Sorted(slices.Values(p.run(web))), slices.Sorted(slices.Values(q.run(web)))); d != "" {
			t.Errorf("stored after %v: requests (-kept +stored):\n%s", after, d)
		}
		if d := cmp.Diff(slices.Sorted(slices.Values(p.refused())), slices.Sorted(slices.Values(q.refused()))); d != "" {
			t.Errorf("stored after %v: refused (-kept +stored):\n%s", after, d)
		}
		if a, b := p.f.Counts(), q.f.Counts(); a.Known != b.Known || a.Pending != b.Pending || a.Keys != b.Keys {
			t.Errorf("stored after %v: counts are %+v and %+v", after, a, b)
		}
	}
}

// TestSilentAcrossLoads checks that URLs without an answer are counted across commits and processes until there are ten in
// a row.
func TestSilentAcrossLoads(t *testing.T) {
	p := newProcess(t, Config{Delay: time.Second, Retry: polite.Retry{Attempts: 9, Wait: time.Hour}})
	web := answers{}
	for i := range 12 {
		u := fmt.Sprintf("https://a.example/%d", i)
		p.rig.add(0, u)
		web[u] = []answer{{outcome: blobschema.OutcomeTimeout}}
	}
	asked := func(p *process) {
		for len(p.hits) < 6 { // the robots.txt and five pages
			if task, ok := p.f.Next(p.now, false); ok {
				p.f.Done(p.now, task, p.hit(web, task.Request).reply(task, p.now, 0))
			}
			p.now = p.now.Add(time.Second)
		}
	}
	asked(p)
	q := p.stored()
	q.run(web)
	if n := len(q.refused()); n != 12 || len(q.hits) != 11 {
		t.Errorf("%d URLs refused, %d requested", n, len(q.hits)-1)
	}
}

// TestDeferred checks that a link for a slot that is not in memory stays unexamined, goes into the next delta, and is
// examined when the slot is loaded.
func TestDeferred(t *testing.T) {
	p := newProcess(t, Config{})
	p.rig.add(2, "https://a.example/old", "https://a.example/done")
	p.restart(false)
	id := p.hash.Slot("a.example")
	for i, u := range []string{"https://a.example/new", "https://a.example/new", "https://a.example/old"} {
		if got := p.queue(u, blobschema.Queued{Depth: 1}); got != Deferred {
			t.Errorf("%d: %s is %d", i, u, got)
		}
	}
	if n := p.f.Counts(); n.Unexamined != 3 || n.Known != 2 || !p.f.Dirty() {
		t.Errorf("counts are %+v, dirty %v", n, p.f.Dirty())
	}
	p.mustIdle()
	p.check()
	p.beginCommit()
	if n := len(p.under.run.Queued); n != 3 || p.f.Dirty() {
		t.Errorf("%d URLs in the delta", n)
	}
	want := []blobschema.SlotSummary{{Slot: id, Known: 2, Pending: 2, Unexamined: 3, Due: 1}}
	if d := cmp.Diff(want, p.under.slots, cmp.AllowUnexported(blobschema.SlotSummary{})); d != "" {
		t.Errorf("summary (-want +got):\n%s", d)
	}
	p.endCommit()
	p.check()
	if got := p.f.Wanted(p.now, false); !slices.Equal(got, whole(id)) {
		t.Fatalf("slots %v are wanted", got)
	}
	if got := p.f.Wanted(p.now, false); got != nil {
		t.Errorf("slots %v are wanted twice", got)
	}
	p.loads = []loading{{PartID{Slot: id}, p.runs}}
	p.load(0)
	if n := p.f.Counts(); n.Unexamined != 0 || n.Known != 3 || n.Pending != 3 || !p.f.Dirty() { // the summary has changed
		t.Errorf("counts are %+v, dirty %v", n, p.f.Dirty())
	}
	p.run(nil)
	wantLog(t, p.urls(), "https://a.example/robots.txt", "https://a.example/new", "https://a.example/old", "https://a.example/done")
}

// TestUnloadsLatestDue checks that above the memory bound the slots that are due last are unloaded. A slot with a request
// under way or with uncommitted changes stays.
func TestUnloadsLatestDue(t *testing.T) {
	p := newProcess(t, Config{Delay: time.Second})
	hosts := map[partition.Slot]string{} // one per slot
	for i := 0; len(hosts) < 8; i++ {
		h := fmt.Sprintf("h%d.example", i)
		hosts[p.hash.Slot(h)] = h
	}
	ids := slices.Sorted(maps.Keys(hosts))
	due := map[partition.Slot]int64{}
	for i, id := range ids {
		at := epoch.Add(time.Duration(i) * 10 * time.Second).UnixMilli()
		for n := range 5 {
			p.queue(fmt.Sprintf("https://%s/%d", hosts[id], n), blobschema.Queued{NotBefore: at})
		}
		due[id] = at
	}
	if !p.start(0) { // of the first slot, the only one due now
		t.Fatal("no request is possible")
	}
	p.beginCommit()
	p.endCommit()
	p.queue(fmt.Sprintf("https://%s/new", hosts[ids[7]]), blobschema.Queued{})
	for _, c := range []struct {
		keep int
		want []partition.Slot
	}{
		{100, ids}, {20, []partition.Slot{ids[0], ids[1], ids[7]}}, {0, []partition.Slot{ids[0], ids[7]}},
	} {
		p.f.shed(p.now, c.keep, c.keep)
		p.check()
		var got []partition.Slot
		for _, sum := range p.f.Summaries() {
			if p.f.slots.byID[sum.Slot].loaded == 1 {
				got = append(got, sum.Slot)
			} else if sum.Due != due[sum.Slot] || sum.Known != 5 || sum.Pending != 5 {
				t.Errorf("an unloaded slot is %+v", sum)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("down to %d: slots %v are loaded, want %v", c.keep, got, c.want)
		}
	}
}

// TestClockSetBack checks that times stored by a clock that was ahead delay a host by at most one pace.
func TestClockSetBack(t *testing.T) {
	p := newProcess(t, Config{Delay: time.Second})
	p.now = epoch.Add(48 * time.Hour)
	p.rig.add(0, "https://a.example/1", "https://a.example/2")
	for range 2 { // the robots.txt and a page
		p.start(0)
		p.finish(0)
	}
	p.beginCommit()
	p.endCommit()
	p.now = epoch
	q := p.stored()
	q.now = epoch.Add(time.Second - 1)
	q.mustIdle()
	q.now = epoch.Add(time.Second)
	q.mustNext("https://a.example/2")
}

// TestWantedOrder checks that if not all slots fit, the one due first is wanted first, and those with nothing due are not
// wanted.
func TestWantedOrder(t *testing.T) {
	r := newRig(t, Config{MaxResident: 25})
	at := func(s int) int64 { return epoch.Add(time.Duration(s) * time.Second).UnixMilli() }
	r.f.Restore([]blobschema.SlotSummary{
		{Slot: 1, Known: 10, Pending: 5, Due: at(-1)},
		{Slot: 2, Known: 10, Pending: 5, Due: at(-3)},
		{Slot: 3, Known: 10, Pending: 5, Due: at(-2)},
		{Slot: 4, Known: 10},
		{Slot: 5, Known: 10, Pending: 5, Due: at(60)},
	})
	r.check()
	if got := r.f.Wanted(r.now, false); !slices.Equal(got, whole(2, 3)) {
		t.Errorf("slots %v are wanted", got)
	}
	big := newRig(t, Config{MaxResident: 25})
	big.f.Restore([]blobschema.SlotSummary{{Slot: 1, Known: 100, Pending: 5, Due: at(-1)}, {Slot: 2, Known: 1, Pending: 1, Due: at(0)}})
	if got := big.f.Wanted(big.now, false); !slices.Equal(got, whole(1)) { // alone
		t.Errorf("slots %v are wanted", got)
	}
	working := newRig(t, Config{MaxResident: 25})
	working.f.Restore([]blobschema.SlotSummary{{Slot: 1, Known: 100, Pending: 5, Due: at(-1)}})
	working.add(0, loadedURL)
	if got := working.f.Wanted(working.now, false); got != nil { // not while there is something to do
		t.Errorf("slots %v are wanted", got)
	}
	none := newRig(t, Config{})
	none.f.Restore([]blobschema.SlotSummary{{Slot: 4, Known: 10}, {Slot: 5, Known: 10, Pending: 5, Due: at(60)}})
	if got := none.f.Wanted(none.now, false); got != nil {
		t.Errorf("slots %v are wanted, though nothing is due", got)
	}
	if got := none.f.Wanted(none.now.Add(time.Minute), false); !slices.Equal(got, whole(5)) {
		t.Errorf("slots %v are wanted a minute later", got)
	}
}

// whole returns the only parts of undivided slots.
func whole(ids ...partition.Slot) (parts []PartID) {
	for _, id := range ids {
		parts = append(parts, PartID{Slot: id})
	}
	return parts
}

// TestLoadRefuses checks that impossible state causes an error, not a panic.
func TestLoadRefuses(t *testing.T) {
	good := storedHost(t)
	for name, c := range map[string]struct {
		slot partition.Slot
		run  blobschema.Run
		ok   bool
	}{
		"nothing":        {slot: 1, ok: true},
		"a host":         {slot: 1, run: blobschema.Run{Keys: []blobschema.KeyState{{Slot: 1, Key: "b.example", Data: good}}}, ok: true},
		"no such slot":   {slot: 2},
		"loaded slot":    {slot: slotInMemory(t)},
		"not a URL":      {slot: 1, run: blobschema.Run{Queued: []blobschema.Queued{{Slot: 1, Key: "a.example", URL: "ftp://a.example/"}}}},
		"damaged host":   {slot: 1, run: blobschema.Run{Keys: []blobschema.KeyState{{Slot: 1, Key: "a.example", Data: good[:len(good)-1]}}}},
		"elsewhere":      {slot: 1, run: blobschema.Run{Queued: []blobschema.Queued{{Slot: 1, Key: "a.example", URL: loadedURL}}}},
		"host elsewhere": {slot: 1, run: blobschema.Run{Keys: []blobschema.KeyState{{Slot: 1, Key: "a.example x.a.example", Data: good}}}},
		"not a URL of a host": {slot: 1, run: blobschema.Run{
			Keys:   []blobschema.KeyState{{Slot: 1, Key: "a.example", Data: good}},
			Queued: []blobschema.Queued{{Slot: 1, Key: "a.example", URL: "ftp://a.example/"}},
		}},
		"no host state": {slot: 1, run: blobschema.Run{Keys: []blobschema.KeyState{{Slot: 1, Key: "a.example"}}}},
	} {
		r := newRig(t, Config{})
		r.f.Restore([]blobschema.SlotSummary{{Slot: 1, Known: 1}})
		r.add(0, loadedURL)
		if err := r.f.Load(r.now, PartID{Slot: c.slot}, &c.run); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const loadedURL = "https://a.example/"

// slotInMemory returns the slot of loadedURL.
func slotInMemory(t *testing.T) partition.Slot {
	s := newRig(t, Config{}).hash.Slot("a.example")
	if s == 1 || s == 2 {
		t.Fatal("the test needs another slot")
	}
	return s
}

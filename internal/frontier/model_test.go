package frontier

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// TestBoundedAsUnbounded compares a frontier that has room for 12 to 30 URLs and is sometimes restarted with an unbounded one.
// Both fetch the same URLs, each once according to the commits (I7, I8), and never faster than the host's pace (I9).
func TestBoundedAsUnbounded(t *testing.T) {
	unloads, halved := 0, 0
	for seed := range uint64(20) {
		cfg := Config{Delay: time.Second, Retry: polite.Retry{Wait: time.Second, Backoff: time.Second}}
		whole := newProcess(t, cfg)
		rng := rand.New(rand.NewPCG(seed, 7))
		cfg.MaxResident, cfg.MaxPart = []int{30, 12, 20}[rng.IntN(3)], []int{0, 5, 10}[seed%3]
		bounded := newProcess(t, cfg)
		added := map[string]string{}
		w := someWeights(rng)
		steady := w
		steady.stop, steady.crash, steady.move = 0, 0, 0
		for i := range 600 {
			if rng.IntN(100) < w.add {
				q := someURL(rng)
				added[q.URL] = expected(q.URL)
				whole.add(q)
				bounded.add(q)
			}
			whole.act(rng, steady)
			bounded.act(rng, w)
			if i%5 == 0 {
				whole.check()
				bounded.check()
			}
		}
		whole.drain()
		bounded.drain()
		for name, p := range map[string]*process{"unbounded": whole, "bounded": bounded} {
			if d := cmp.Diff(added, p.settled); d != "" {
				t.Errorf("seed %d, %s: outcomes of URLs (-want +got):\n%s", seed, name, d)
			}
			all := blobschema.MergeRuns(p.hash, p.runs)
			if len(all.Queued) != 0 || len(all.Settled) != len(added) {
				t.Errorf("seed %d, %s: runs hold %d settled URLs and %d pending ones", seed, name, len(all.Settled), len(all.Queued))
			}
		}
		unloads += bounded.unloads
		halved += int(bounded.halved + bounded.f.Counts().Halved)
	}
	if halved < 100 {
		t.Errorf("only %d parts were halved", halved)
	}
	if unloads < 100 {
		t.Errorf("slots were unloaded only %d times: the bound was not tested", unloads)
	}
}

// weights are the relative probabilities of the events of a process.
type weights struct{ add, start, finish, begin, end, want, load, wait, stop, crash, move int }

// someWeights returns random weights, so that some worlds see few commits, others many crashes, and so on.
func someWeights(rng *rand.Rand) weights {
	w := func(most int) int { return 1 + rng.IntN(most) }
	return weights{add: w(40), start: w(30), finish: w(30), begin: w(15), end: w(15), want: w(20), load: w(30), wait: w(15), stop: rng.IntN(2), crash: rng.IntN(3), move: rng.IntN(3)}
}

// act does one random thing.
func (p *process) act(rng *rand.Rand, w weights) {
	p.t.Helper()
	p.ops++
	n := rng.IntN(w.start + w.finish + w.begin + w.end + w.want + w.load + w.wait + w.stop + w.crash + w.move)
	drawn := func(weight int) bool {
		n -= weight
		return n < 0
	}
	switch {
	case drawn(w.start):
		p.start(time.Duration(rng.IntN(300)) * time.Millisecond)
	case drawn(w.finish):
		if len(p.flights) > 0 {
			p.finish(rng.IntN(len(p.flights)))
		}
	case drawn(w.begin):
		p.beginCommit()
	case drawn(w.end):
		p.endCommit()
	case drawn(w.want):
		before := p.f.slots.unloaded
		p.want()
		p.unloads += max(0, p.f.slots.unloaded-before)
	case drawn(w.load):
		if len(p.loads) > 0 {
			p.load(rng.IntN(len(p.loads)))
		}
	case drawn(w.wait):
		p.now = p.now.Add(time.Duration(rng.IntN(1000)) * time.Millisecond)
		if p.cfg.Revisits && p.ops%7 == 0 {
			p.now = p.now.Add(time.Minute)
		}
	case drawn(w.stop):
		p.restart(false)
	case drawn(w.crash):
		p.restart(true)
	case drawn(w.move):
		p.freeze(rng)
	}
}

// TestWorlds runs random worlds with links, requests, caps, pinned names, unloads, stops and crashes. Each URL is visible once
// per generation (I8). None is lost except those above a cap, which are counted (I7). A recrawl is fetched after it was
// ordered, and its request names the previous record. A name has one address.
func TestWorlds(t *testing.T) {
	byDomain := func(u weburl.URL) string { return u.Host().RegistrableDomain() }
	for name, c := range map[string]struct {
		cfg    Config
		unitOf func(weburl.URL) string
	}{
		"hosts":              {},
		"bounded":            {cfg: Config{MaxResident: 30}},
		"parts":              {cfg: Config{MaxPart: 5}},
		"parts, bounded":     {cfg: Config{MaxPart: 5, MaxResident: 30}},
		"few parts":          {cfg: Config{MaxPart: 20, MaxResident: 40}, unitOf: byDomain},
		"connections":        {cfg: Config{Hosts: severalOf("h%d.example", 20), QueueBy: blobschema.QueueByBKDR, Queues: 4}},
		"all":                {cfg: Config{MaxPart: 5, MaxResident: 30, Topics: threeTopics, Hosts: severalOf("h%d.example", 20), QueueBy: blobschema.QueueByBKDR, Queues: 4}},
		"topics":             {cfg: Config{Topics: threeTopics}},
		"topics, domains":    {cfg: Config{Topics: threeTopics, MaxPart: 20, MaxResident: 40, Policy: policyNamed(t, "capability"), Hosts: map[string]schedule.HostRule{"a.example": {Connections: 3, Delay: 500 * time.Millisecond}}}, unitOf: byDomain},
		"revisits":           {cfg: Config{Revisits: true, Partition: 5}},
		"revisits, all":      {cfg: Config{Revisits: true, Topics: threeTopics, MaxPart: 5, MaxResident: 30, Hosts: severalOf("h%d.example", 20), QueueBy: blobschema.QueueByBKDR, Queues: 4}},
		"parts of names":     {cfg: Config{Resolve: true, MaxPart: 5, MaxResident: 30, Hosts: severalOf("[192.0.2.%d]", 4)}},
		"parts and caps":     {cfg: Config{MaxHostURLs: 5, MaxDomainURLs: 12, MaxPart: 5, MaxResident: 30}, unitOf: byDomain},
		"domains":            {cfg: Config{MaxResident: 40}, unitOf: byDomain},
		"capability":         {cfg: Config{MaxResident: 40, Policy: policyNamed(t, "capability")}, unitOf: byDomain},
		"addresses":          {cfg: Config{Resolve: true}},
		"addresses, bounded": {cfg: Config{Resolve: true, MaxResident: 30}},
		"caps":               {cfg: Config{MaxHostURLs: 5, MaxDomainURLs: 12}},
		"caps, bounded":      {cfg: Config{MaxHostURLs: 5, MaxDomainURLs: 12, MaxResident: 30}, unitOf: byDomain},
	} {
		c.cfg.Delay, c.cfg.Retry = time.Second, polite.Retry{Wait: time.Second, Backoff: time.Second}
		for seed := range uint64(7) {
			t.Run(fmt.Sprintf("%s %d", name, seed), func(t *testing.T) {
				p := newProcess(t, c.cfg)
				p.keyOf = c.unitOf
				world(t, p, rand.New(rand.NewPCG(seed, 11)))
			})
		}
	}
}

// severalOf returns rules that allow three concurrent requests for some politeness keys.
func severalOf(format string, n int) map[string]schedule.HostRule {
	rules := map[string]schedule.HostRule{}
	for i := range n {
		rules[fmt.Sprintf(format, i)] = schedule.HostRule{Connections: 3, Delay: 500 * time.Millisecond}
	}
	return rules
}

var threeTopics = []schedule.Topic{{}, {Priority: 1, Slice: time.Second}, {Priority: 1}}

func world(t *testing.T, p *process, rng *rand.Rand) {
	added := map[string]bool{}
	w := someWeights(rng)
	draw := func() blobschema.Queued {
		q := someURL(rng)
		if len(p.cfg.Topics) > 0 {
			q.Topic = uint8(rng.IntN(4)) // one more than there are
		}
		q.URL = strings.Replace(q.URL, ".example", []string{".a.example", ".b.example", ".example"}[rng.IntN(3)], 1)
		return q
	}
	asks := rng.IntN(20)
	for i := range 500 {
		if rng.IntN(100) < w.add {
			q := draw()
			added[q.URL] = true
			p.add(q)
		}
		if rng.IntN(100) < asks {
			q := draw()
			if known := slices.Sorted(maps.Keys(p.visible)); len(known) > 0 && rng.IntN(3) > 0 {
				q.URL = known[rng.IntN(len(known))] // a settled one
			}
			added[q.URL] = true
			p.todo = append(p.todo, asking{q.URL, 1 + uint64(rng.IntN(300))})
			p.ask()
		}
		p.act(rng, w)
		if i%5 == 0 {
			p.check()
		}
	}
	p.drain()
	all := blobschema.MergeRuns(p.hash, p.runs)
	final := map[uint64]blobschema.Settled{}
	for _, e := range all.Settled {
		if e.State != blobschema.Forwarded {
			final[e.Fingerprint] = e
		}
	}
	if len(all.Queued) > 0 && !p.cfg.Revisits {
		t.Fatalf("%d URLs are pending in the runs", len(all.Queued))
	}
	for _, q := range all.Queued { // these wait for a revisit: compare their last records
		final[p.hash.Fingerprint(q.URL)] = blobschema.Settled{Record: q.Previous}
	}
	capped := 0
	for url := range added {
		records := p.visible[url]
		if len(records) == 0 {
			capped++
			if p.cfg.MaxHostURLs == 0 {
				for _, e := range all.Settled {
					if e.Fingerprint == p.hash.Fingerprint(url) {
						t.Errorf("%s has no record: %+v", url, e)
					}
				}
			}
			continue
		}
		last := slices.MaxFunc(records, func(a, b record) int { return int(a.gen) - int(b.gen) })
		if e := final[p.hash.Fingerprint(url)]; e.Generation != last.gen && !p.cfg.Revisits || e.Record.Seq != last.seq {
			t.Fatalf("%s is settled as %+v, its last record is %+v", url, e, last)
		}
		if heard, ok := p.heard[url]; ok && last.began <= heard {
			t.Fatalf("%s was requested at %d, but its last record is %+v", url, heard, last)
		}
	}
	caps := p.cfg.MaxHostURLs > 0
	if capped > 0 && !caps || len(final) != len(p.visible) {
		t.Fatalf("%d URLs are lost; %d are settled, %d have records", capped, len(final), len(p.visible))
	}
	if n := p.capped + p.f.Counts().Capped; n < int64(capped) || !caps && n > 0 {
		t.Fatalf("%d URLs were dropped, %d counted", capped, n)
	}
}

// TestWantedRespectsBound checks that loading due slots never exceeds the memory bound, unless a single slot is larger.
func TestWantedRespectsBound(t *testing.T) {
	p := newProcess(t, Config{Delay: time.Second})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 400 {
		p.add(someURL(rng))
	}
	p.beginCommit()
	p.endCommit()
	for _, bound := range []int{10, 60, 200} {
		p.f.cfg.MaxResident = bound
		p.restart(false)
		largest := 0
		for _, s := range p.slots {
			largest = max(largest, int(s.Known))
		}
		first := p.f.Wanted(p.now, false)
		p.loads = nil
		for _, id := range first {
			p.loads = append(p.loads, loading{id, p.runs})
		}
		for len(p.loads) > 0 {
			p.load(0)
		}
		p.check()
		if len(first) == 0 || p.f.slots.resident > max(bound, largest) || p.f.slots.resident > bound && len(first) > 1 {
			t.Errorf("bound %d: slots %v were loaded, %d URLs are resident, the largest slot has %d", bound, first, p.f.slots.resident, largest)
		}
		if more := p.f.Wanted(p.now, false); len(more) > 0 && p.f.slots.resident+int(p.f.slots.byID[more[0].Slot].of(0).known) > bound {
			t.Errorf("bound %d: %v is wanted in addition to %d URLs", bound, more, p.f.slots.resident)
		}
	}
}

// TestPace makes random requests with random durations, delays and failures to hosts with their own paces. No two requests to
// a host start closer than its pace, except the first page after robots.txt, and the pace is not longer than necessary.
func TestPace(t *testing.T) {
	const configured = time.Second
	delays := []time.Duration{-1, 0, 500 * time.Millisecond, 3 * time.Second} // in robots.txt; -1: not given
	exact := 0
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 3))
		r := newRig(t, Config{Delay: configured, Retry: polite.Retry{Wait: 100 * time.Millisecond, Backoff: time.Second}})
		last, until := map[string]flight{}, map[string]time.Time{}
		rules := map[string]time.Duration{} // Crawl-delay by host, once its robots.txt was read
		var flights []flight
		for i := range 120 {
			r.add(uint16(rng.IntN(3)), fmt.Sprintf("https://h%d.example/%d", i%6, i))
		}
		for step := 0; r.f.Counts().Pending > 0; step++ {
			if step > 20_000 {
				t.Fatalf("seed %d: URLs remain pending: %+v", seed, r.f.Counts())
			}
			r.now = r.now.Add(time.Duration(rng.IntN(200)) * time.Millisecond)
			if len(flights) > 0 && rng.IntN(2) == 0 {
				fl := flights[0]
				flights = flights[1:]
				if r.now.Before(fl.started) {
					r.now = fl.started
				}
				host, a := fl.task.KeyName(), someAnswer(rng)
				if fl.task.Request.Robots {
					a = answer{}
					rules[host] = delays[int(host[1]-'0')%len(delays)]
					if d := rules[host]; d >= 0 {
						a.body = fmt.Sprintf("User-agent: *\nCrawl-delay: %g\n", d.Seconds())
					}
				}
				until[host] = r.now.Add(a.retryAfter)
				r.f.Done(r.now, fl.task, a.reply(fl.task, fl.started, r.now.Sub(fl.started)))
				r.check()
			}
			task, ok := r.f.Next(r.now, false)
			if !ok {
				continue
			}
			host := task.KeyName()
			fl := flight{task: task, started: r.now.Add(time.Duration(rng.IntN(2)*rng.IntN(900)) * time.Millisecond)}
			pace := max(configured, rules[host])
			if last[host].task.Request.Robots && rules[host] < 0 {
				pace = 0
			}
			if before, ok := last[host]; ok {
				if gap := fl.started.Sub(before.started); gap < pace || fl.started.Before(until[host]) {
					t.Fatalf("seed %d: %s got a request for %s %v after the previous one, its pace is %v", seed, host, task.Request.URL, gap, pace)
				} else if gap < pace+200*time.Millisecond {
					exact++
				}
			}
			last[host] = fl
			flights = append(flights, fl)
		}
	}
	if exact < 200 {
		t.Errorf("only %d requests started as soon as possible", exact)
	}
}

func someAnswer(rng *rand.Rand) answer {
	switch rng.IntN(12) {
	case 0:
		return answer{status: 503, retryAfter: time.Duration(rng.IntN(20)) * time.Second}
	case 1:
		return answer{outcome: blobschema.OutcomeCut}
	case 2:
		return answer{outcome: blobschema.OutcomeAborted}
	case 3:
		return answer{status: 200, retryAfter: 5 * time.Second}
	case 4, 5, 6:
		return answer{keep: true}
	}
	return answer{}
}

// TestSummariesAgree checks that the summaries of a commit equal the state of each slot after loading it from the runs.
func TestSummariesAgree(t *testing.T) {
	p := newProcess(t, Config{Delay: time.Second, Retry: polite.Retry{Wait: time.Second}})
	rng := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		p.add(someURL(rng))
		p.act(rng, weights{start: 25, finish: 25, begin: 5, end: 5, want: 5, load: 5, wait: 5})
		p.check()
	}
	p.restart(false)
	want := maps.Collect(bySlot(p.slots))
	if d := cmp.Diff(p.slots, p.f.Summaries(), cmp.AllowUnexported(blobschema.SlotSummary{})); d != "" {
		t.Errorf("summaries after Restore (-want +got):\n%s", d)
	}
	p.now = p.now.Add(time.Hour)
	for _, id := range p.f.Wanted(p.now, false) {
		p.loads = append(p.loads, loading{id, p.runs})
	}
	loaded := 0
	for ; len(p.loads) > 0; loaded++ {
		p.load(0)
	}
	p.check()
	got := maps.Collect(bySlot(p.f.Summaries()))
	if d := cmp.Diff(want, got, cmp.AllowUnexported(blobschema.SlotSummary{})); d != "" {
		t.Errorf("summaries of loaded slots (-want +got):\n%s", d)
	}
	if loaded < 10 {
		t.Errorf("%d slots were loaded", loaded)
	}
}

func bySlot(list []blobschema.SlotSummary) func(func(partition.Slot, blobschema.SlotSummary) bool) {
	return func(yield func(partition.Slot, blobschema.SlotSummary) bool) {
		for _, s := range list {
			if !yield(s.Slot, s) {
				return
			}
		}
	}
}

// TestFreshFrontierIsBounded checks that the memory bound holds from the first commit on, even if nothing was ever unloaded.
func TestFreshFrontierIsBounded(t *testing.T) {
	p := newProcess(t, Config{Delay: time.Second, MaxResident: 30})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 400 {
		p.add(someURL(rng))
	}
	p.beginCommit()
	p.endCommit()
	for range 10 {
		p.want()
	}
	if p.f.slots.resident > 30 || p.f.slots.unloaded == 0 {
		t.Errorf("%d resident, %d slots unloaded", p.f.slots.resident, p.f.slots.unloaded)
	}
}

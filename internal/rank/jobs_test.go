package rank

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/rank/made"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/partition"
)

// rough needs few rounds.
var rough = ranks.Params{Damping: 0.85, Tolerance: 0.02, MaxRounds: 50}

// results returns the names of the result objects of the job. Names depend on content.
func (w *world) results() (names []string) {
	job := w.job()
	names = append(names, job.HostRanks, job.PageRanks, job.CrawledHosts)
	for p := range job.Inputs {
		h := w.head(p)
		names = append(names, h.Next.Objects()...)
	}
	return names
}

// TestCrashAnywhere crashes a step before each effect of a job, which is after each effect too, and compares the results.
func TestCrashAnywhere(t *testing.T) {
	for _, way := range []struct {
		partitions int
		alone      int64
	}{{1, -1}, {3, -1}, {1, 0}, {3, 0}} {
		partitions := way.partitions
		before := newWorld(t)
		before.alone = way.alone
		c := before.made(random(5, 30), partitions, blobschema.ByHost)
		before.compute(StartConfig{Params: rough}) // the next job uses and deletes its objects
		if err := c.Commit(before, []made.Page{{URL: "https://new.example/", Links: links("https://h1.example/1")}}, 1); err != nil {
			t.Fatal(err)
		}
		if err := before.start(StartConfig{Params: rough}); err != nil {
			t.Fatal(err)
		}
		before.effects = 0
		calm := before.clone()
		if err := calm.drain(); err != nil {
			t.Fatal(err)
		}
		want := calm.results()
		if calm.job().Number != 2 || calm.job().Done.IsZero() {
			t.Fatalf("job: %+v", calm.job())
		}
		kill, run := 0, before.clone()
		run.fork = func(p partition.ID) {
			w := run.clone() // all crashes share the run until here
			w.fork = nil
			w.killed(p)
			if err := w.drain(); err != nil {
				t.Fatalf("killed before effect %d: %v", kill, err)
			}
			if got := w.results(); !slices.Equal(got, want) {
				t.Fatalf("killed before effect %d: job %+v makes\n%q\nwant\n%q", kill, w.job(), got, want)
			}
			if o := w.orphans(); len(o) > 0 {
				t.Fatalf("killed before effect %d: nothing names %q", kill, o)
			}
			kill++
		}
		if err := run.drain(); err != nil || kill != calm.effects {
			t.Fatalf("%d kills of %d: %v", kill, calm.effects, err)
		}
		t.Logf("%+v: %d effects", way, calm.effects)
	}
}

// TestManyAtOnce runs steps in parallel, also of the same partition, with messages delivered twice.
func TestManyAtOnce(t *testing.T) {
	for _, alone := range []int64{-1, 0} {
		manyAtOnce(t, alone)
	}
}

func manyAtOnce(t *testing.T, alone int64) {
	before := newWorld(t)
	before.alone = alone
	before.made(random(6, 40), 3, blobschema.ByHost)
	if err := before.start(StartConfig{Params: rough}); err != nil {
		t.Fatal(err)
	}
	calm := before.clone()
	if err := calm.drain(); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(40) {
		w := before.clone()
		if err := w.drainWild(rand.New(rand.NewPCG(seed, 9)), 5); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got := w.results(); !slices.Equal(got, calm.results()) {
			t.Fatalf("seed %d: job %+v makes\n%q\nwant\n%q", seed, w.job(), got, calm.results())
		}
		for _, name := range w.orphans() { // a slow step may leave a layout
			if _, _, what, err := naming.ParseRankObject(name); err != nil || what != "layout" {
				t.Errorf("seed %d: nothing names %s", seed, name)
			}
		}
	}
}

// TestAlone checks that one partition computes the same ranks alone, to the last bit, with fewer calls.
func TestAlone(t *testing.T) {
	for seed := range uint64(10) {
		for _, partitions := range []int{1, 2, 5} {
			all := newWorld(t)
			all.made(random(seed, 60), partitions, blobschema.ByHost)
			one := all.clone()
			one.alone = 0
			params := ranks.Params{Damping: 0.85, Tolerance: 1e-9, MaxRounds: 15 + 60*int(seed%2)}
			if seed%3 == 0 {
				params.Personal = []ranks.Weight{{Host: "h1.example", Weight: 2}, {Host: "h2.example", Weight: 1}}
			}
			all.compute(StartConfig{Params: params})
			one.compute(StartConfig{Params: params})
			if !slices.Equal(all.results(), one.results()) || all.job().Rounds != one.job().Rounds || !slices.Equal(all.job().Residuals, one.job().Residuals) {
				t.Errorf("seed %d, %d partitions: alone %+v, together %+v", seed, partitions, one.job(), all.job())
			}
			if 2*one.effects > all.effects {
				t.Errorf("seed %d, %d partitions: %d effects alone, %d together", seed, partitions, one.effects, all.effects)
			}
		}
	}
}

// TestFaults checks that steps retry, or restart, if effects fail at random. An effect fails before or after it
// took place.
func TestFaults(t *testing.T) {
	for _, alone := range []int64{-1, 0} {
		faults(t, alone)
	}
}

func faults(t *testing.T, alone int64) {
	before := newWorld(t)
	before.alone = alone
	before.made(random(6, 40), 2, blobschema.ByHost)
	if err := before.start(StartConfig{Params: rough}); err != nil {
		t.Fatal(err)
	}
	calm := before.clone()
	if err := calm.drain(); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 8))
		w := before.clone()
		w.fault = func(e actor.Effect) (before, after error) {
			if _, work := e.(actor.Work); work {
				return nil, nil
			}
			switch r.IntN(8) {
			case 0:
				return broken, nil
			case 1:
				return nil, broken
			}
			return nil, nil
		}
		for len(w.queue) > 0 {
			p := w.queue[0]
			if err := w.drain(); err != nil && !errors.Is(err, broken) {
				t.Fatalf("seed %d: %v", seed, err)
			} else if err != nil {
				w.queue = append(w.queue, p)
			}
		}
		w.fault = nil
		if w.job().Done.IsZero() {
			if err := w.run(NewRemind("c", 0)); err != nil {
				t.Fatal(err)
			}
			if err := w.drain(); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.results(); !slices.Equal(got, calm.results()) {
			t.Fatalf("seed %d: job %+v makes\n%q\nwant\n%q", seed, w.job(), got, calm.results())
		}
	}
}

// TestDeadline checks that steps of one round each give the same results.
func TestDeadline(t *testing.T) {
	for _, partitions := range []int{1, 2} {
		whole := newWorld(t)
		whole.made(random(8, 40), partitions, blobschema.ByHost)
		short := whole.clone()
		short.deadline = time.Nanosecond
		whole.compute(StartConfig{Params: rough})
		short.compute(StartConfig{Params: rough})
		if !slices.Equal(whole.results(), short.results()) {
			t.Errorf("%d partitions: steps of one round give other results", partitions)
		}
	}
}

// TestDeadlineCold checks that steps of some rounds, each in a new process, give the same results. In the ring, pages
// settle before hosts.
func TestDeadlineCold(t *testing.T) {
	ring := make([]made.Page, 12)
	for i := range ring {
		url := func(i int) string {
			return fmt.Sprintf("https://h%d.example/%d", []int{0, 1, 0, 0, 2, 2, 0, 3, 1, 1, 0, 2}[i%12], i%12)
		}
		ring[i] = made.Page{URL: url(i), Links: []made.Link{{URL: url(i + 1)}}}
	}
	for name, pages := range map[string][]made.Page{"random": random(8, 40), "ring": ring} {
		whole := newWorld(t)
		whole.made(pages, 1, blobschema.ByHost)
		short := whole.clone()
		whole.compute(StartConfig{Params: rough})
		for ms := range time.Duration(12) {
			short := short.clone()
			short.deadline, short.cold = (6+ms)*time.Millisecond, true
			short.compute(StartConfig{Params: rough})
			if !slices.Equal(whole.results(), short.results()) {
				t.Errorf("%s: steps of %v give other results", name, short.deadline)
			}
		}
	}
}

func TestSlotsHaveMoved(t *testing.T) {
	pages := random(9, 80)
	for _, jobBefore := range []bool{false, true} {
		w := newWorld(t)
		c := w.made(pages[:50], 2, blobschema.ByHost)
		if jobBefore {
			w.compute(StartConfig{Params: precise})
		}
		moves, err := c.Map.Plan([]partition.ID{1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		m, err := c.Map.Apply(moves)
		if err == nil {
			err = c.Move(w, m, 4)
		}
		if err == nil {
			err = c.Commit(w, pages[50:], 4)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.compute(StartConfig{Params: precise})
		w.compare(c, pages, precise, 1e-9)
	}
}

func TestPersonalisation(t *testing.T) {
	pages := random(10, 60)
	p := precise
	p.Personal = []ranks.Weight{{Host: "h1.example", Weight: 3}, {URL: "https://h2.example/3", Weight: 1}, {Host: "unknown.example", Weight: 5}}
	for partitions := 1; partitions <= 3; partitions++ {
		w := newWorld(t)
		c := w.made(pages, partitions, blobschema.ByHost)
		w.compute(StartConfig{Params: p})
		w.compare(c, pages, p, 1e-9)
	}
	w := newWorld(t)
	w.made(pages, 2, blobschema.ByHost)
	p.Personal = p.Personal[2:]
	if err := w.start(StartConfig{Params: p}); err != nil {
		t.Fatal(err)
	}
	if err := w.drain(); err != nil {
		t.Fatal(err)
	}
	if j := w.job(); j.Done.IsZero() || !strings.Contains(j.Failed, "personalisation") {
		t.Errorf("personalisation of an unknown host: %+v", j)
	}
	w.compute(StartConfig{Params: rough}) // the next job succeeds
}

func TestUnits(t *testing.T) {
	for _, by := range []blobschema.PartitionBy{blobschema.ByDomain, blobschema.ByIP} {
		pages := append(random(12, 60), made.Page{URL: "http://127.0.0.1:8080/", Links: links("https://h1.example/1", "http://127.0.0.1:8081/")})
		w := newWorld(t)
		c := w.made(pages, 3, by)
		w.compute(StartConfig{Params: precise})
		w.compare(c, pages, precise, 1e-9)
	}
}

// TestGrowing ranks a crawl repeatedly while it grows.
func TestGrowing(t *testing.T) {
	all := random(13, 160)
	p := ranks.Params{Damping: 0.85, Tolerance: 1e-10, MaxRounds: 500}
	w := newWorld(t)
	c, err := made.Begin(w, "c", 64, 3, blobschema.ByHost)
	if err != nil {
		t.Fatal(err)
	}
	for end := 40; end <= 160; end += 40 {
		if err := c.Commit(w, all[end-40:end], 6); err != nil {
			t.Fatal(err)
		}
		w.compute(StartConfig{Params: p})
		w.compare(c, all[:end], p, 1e-9)
		if o := w.orphans(); len(o) > 0 {
			t.Errorf("nothing names %q", o)
		}
	}
	before := w.job()
	gets := w.gets
	w.compute(StartConfig{Params: p}) // without new pages
	if j := w.job(); j.Rounds > before.Rounds/3 || w.gets-gets > 40+12*j.Rounds {
		t.Errorf("without new pages: %d rounds and %d objects read, %d rounds before", j.Rounds, w.gets-gets, before.Rounds)
	}
	again := w.results()
	w.compute(StartConfig{Params: p, Fresh: true})
	w.compare(c, all, p, 1e-9)
	if slices.Equal(again, w.results()) {
		t.Error("a fresh job has made the same objects as the previous one")
	}
	objects := len(w.Objects)
	for range 3 {
		w.compute(StartConfig{Params: p})
	}
	if len(w.Objects) > objects+4 { // text tables stay
		t.Errorf("%d objects, %d after three more jobs", objects, len(w.Objects))
	}
}

func TestStart(t *testing.T) {
	w := newWorld(t)
	if _, err := made.Begin(w, "c", 64, 2, blobschema.ByHost); err != nil {
		t.Fatal(err)
	}
	if err := w.start(StartConfig{Params: rough}); !errors.Is(err, ErrNothing) {
		t.Errorf("without commits: %v", err)
	}
	if err := w.start(StartConfig{Params: ranks.Params{Damping: 1, MaxRounds: 1}}); err == nil {
		t.Error("no error for a damping of 1")
	}
	w.made(random(1, 30), 2, blobschema.ByHost)
	if err := w.start(StartConfig{Params: rough}); err != nil || len(w.queue) != 2 {
		t.Fatalf("%d messages, %v", len(w.queue), err)
	}
	other := rough
	other.Damping = 0.5
	if err := w.start(StartConfig{Params: other}); !errors.Is(err, ErrUnderWay) {
		t.Errorf("other parameters than the running job: %v", err)
	}
	if err := w.start(StartConfig{Params: ranks.DefaultParams(), Join: true}); err != nil || w.job().Number != 1 || w.job().Params.Tolerance != rough.Tolerance {
		t.Errorf("joining the running job: job %+v, %v", w.job(), err)
	}
	w.queue = nil // lose all messages
	if err := w.start(StartConfig{Params: rough}); err != nil || len(w.queue) != 2 || w.job().Number != 1 {
		t.Errorf("resent: %d messages, job %d, %v", len(w.queue), w.job().Number, err)
	}
	for range 5 { // stop in the middle of the job
		if err := w.run(w.step(w.queue[0])); err != nil {
			t.Fatal(err)
		}
		w.queue = w.queue[1:]
	}
	if err := w.start(StartConfig{Params: other, Force: true}); err != nil || w.job().Number != 2 {
		t.Errorf("by force: job %d, %v", w.job().Number, err)
	}
	if err := w.drain(); err != nil {
		t.Fatal(err)
	}
	if j := w.job(); j.Done.IsZero() || j.Params.Damping != 0.5 {
		t.Errorf("job: %+v", j)
	}
	if o := w.orphans(); len(o) > 0 {
		t.Errorf("nothing names %q", o)
	}
}

// TestEarlierResultStays checks the ranks of the last finished job after each effect of the next one.
func TestEarlierResultStays(t *testing.T) {
	w := newWorld(t)
	c := w.made(random(3, 40), 2, blobschema.ByHost)
	w.compute(StartConfig{Params: rough})
	w.warm = map[partition.ID]*Warm{}
	want, _ := w.ranks()
	if err := c.Commit(w, []made.Page{{URL: "https://new.example/"}}, 1); err != nil {
		t.Fatal(err)
	}
	if err := w.start(StartConfig{Params: rough}); err != nil {
		t.Fatal(err)
	}
	first := w.clone()
	if err := first.drain(); err != nil {
		t.Fatal(err)
	}
	for kill := range first.effects - w.effects {
		v := w.clone()
		v.kill = w.effects + kill
		_ = v.run(v.step(v.queue[0]))
		if j := v.job(); !j.Done.IsZero() {
			break
		}
		if got, _ := v.ranks(); !maps.Equal(got, want) {
			t.Fatalf("after %d effects of the next job the last ranks have changed", kill)
		}
	}
}

func TestHostTable(t *testing.T) {
	w := newWorld(t)
	w.made(made.Sites(2, 300), 3, blobschema.ByHost)
	w.compute(StartConfig{Params: rough})
	j := w.job()
	if _, err := schedule.ParseHostRanks(w.Objects[j.HostRanks]); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(w.Objects[j.HostRanks])), "\n")
	sum, last := 0.0, math.Inf(1)
	for _, line := range lines {
		var host string
		var v float64
		if _, err := fmt.Sscanf(line, "%s\t%g", &host, &v); err != nil || v > last {
			t.Fatalf("line %q after %g: %v", line, last, err)
		}
		sum, last = sum+v, v
	}
	if int64(len(lines)) != j.Totals.Hosts || math.Abs(sum/float64(len(lines))-1) > 1e-4 {
		t.Errorf("%d lines for %d hosts, mean %g", len(lines), j.Totals.Hosts, sum/float64(len(lines)))
	}
	crawled := strings.Split(strings.TrimSpace(string(w.Objects[j.CrawledHosts])), "\n")
	for _, line := range crawled {
		if !slices.Contains(lines, line) {
			t.Errorf("crawled host %q is not among all hosts", line)
		}
	}
	best := strings.Split(string(w.Objects[j.PageRanks]), "\n")
	if !strings.HasPrefix(best[0], "https://site") || !strings.HasPrefix(lines[0], "site") || len(best) < 200 {
		t.Errorf("%d best pages, the first %q; the best host %q", len(best), best[0], lines[0])
	}
}

func TestAnchors(t *testing.T) {
	a, b, far := "https://a.example/", "https://b.example/", "https://c.example/never"
	w := newWorld(t)
	c := w.made([]made.Page{
		{URL: a, Links: []made.Link{{URL: b, Text: " good \n page "}, {URL: b, Text: "good page"}, {URL: b}, {URL: far, Text: "x"}, {URL: a, Text: "self"}}},
		{URL: "https://a.example/2", Links: []made.Link{{URL: b, Text: "good page"}, {URL: b, Text: "bad", NoFollow: true}}},
		{URL: b, Links: []made.Link{{URL: a, Text: "back"}}},
		{URL: "https://d.example/", Links: []made.Link{{URL: b, Text: "another"}, {URL: b, Text: "good page"}}},
	}, 3, blobschema.ByHost)
	w.compute(StartConfig{Params: rough})
	got := map[uint64][]ranks.AnchorText{}
	for p := range 3 {
		h := w.head(p)
		list, err := ranks.DecodeAnchors(w.Objects[h.Next.Anchors])
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if c.Map.Owner(x.Slot) != partition.ID(p) {
				t.Errorf("partition %d has texts of slot %d", p, x.Slot)
			}
			got[x.Fingerprint] = x.Texts
		}
	}
	want := map[uint64][]ranks.AnchorText{
		c.Fingerprint(a): {{Text: "back", Pages: 1, Hosts: 1}},
		c.Fingerprint(b): {{Text: "good page", Pages: 3, Hosts: 2}, {Text: "another", Pages: 1, Hosts: 1}},
	}
	if !maps.EqualFunc(got, want, slices.Equal[[]ranks.AnchorText]) {
		t.Errorf("texts are %v, want %v", got, want)
	}
}

func TestDamage(t *testing.T) {
	w := newWorld(t)
	w.made(random(4, 40), 2, blobschema.ByHost)
	for name, data := range w.Objects {
		v := w.clone()
		bad := slices.Clone(data)
		bad[len(bad)/2] ^= 1
		v.Objects[name] = bad
		if err := v.start(StartConfig{Params: rough}); err != nil {
			t.Fatal(err)
		}
		if err := v.drain(); !errors.Is(err, wire.ErrDamaged) || !strings.Contains(err.Error(), name) {
			t.Errorf("damaged %s: %v", name, err)
		}
		v.Objects[name] = data // restored
		v.queue = []partition.ID{0, 1}
		if err := v.drain(); err != nil || v.job().Done.IsZero() {
			t.Errorf("restored %s: %v", name, err)
		}
	}
	if err := w.run(NewStep(StepConfig{Crawl: w.crawl(), Partition: 9}, nil)); err != nil {
		t.Errorf("a step without a job: %v", err)
	}
	if ended, err := actor.Actor(NewStart(StartConfig{Params: rough})).Ended(); ended || err != nil {
		t.Error("an actor that was not started has ended")
	}
}

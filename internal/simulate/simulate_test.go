package simulate

import (
	"flag"
	"maps"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/simweb"
)

var (
	seeds = flag.Int("seeds", 8, "number of scenarios; `make simulate` carries out more")
	first = flag.Uint64("first", 1, "seed of the first scenario")
)

var workers = flag.Int("workers", runtime.GOMAXPROCS(0), "scenarios at once")

var traced = flag.Bool("events", false, "print every event")

func TestScenarios(t *testing.T) {
	if *traced {
		*workers = 1
	}
	tally := Sweep(t.Context(), Sweeping{First: *first, Seeds: *seeds, Workers: *workers, Scenario: func(seed uint64) Config {
		cfg := Scenario(seed)
		if *traced {
			cfg.Trace = os.Stdout
		}
		return cfg
	}})
	for _, f := range tally.Failures {
		t.Errorf("seed %d: %v (%d events, %v)", f.Seed, f.Err, f.Result.Events, f.Result.Virtual)
	}
	t.Logf("trace %016x", tally.Trace)
}

// TestMain makes the collector run less often: worlds are small and short-lived.
func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// TestI10 crawls the same web with more and more partitions, in a world without faults and in one where everything goes
// wrong and slots move. All crawls must find the same.
func TestI10(t *testing.T) {
	for seed := uint64(1); seed <= 2; seed++ {
		rough := Scenario(seed)
		for k := range rough.Faults.Chances {
			rough.Faults.Chances[k] = 0.005
		}
		rough.Faults.Chances[HostChanged], rough.Faults.Max = 0, 300
		rough.Web.Kinds.Steady = 0 // how much of such a body arrives in time depends on the step
		var first map[string]simweb.Got
		for _, n := range []int{1, 2, 4, 8, 16} {
			for _, kind := range []bool{true, false} {
				cfg := Config{
					Seed: seed, Web: rough.Web, Partitions: n, Slots: 64, Connections: 16, MaxDepth: -1, Scope: blobschema.ScopeAny,
					MailEvery: 20 * time.Second, Delay: 200 * time.Millisecond, Resend: 15 * time.Minute, Attempts: 4 + maxSpoilt,
				}
				if !kind {
					cfg.Faults = rough.Faults
					cfg.Maps = []MapOrder{{Kind: ScaleUp, After: 3 * time.Minute}, {Kind: TwoMaps, After: 5 * time.Minute}, {Kind: RollBack, Pending: 20}}
				}
				w, err := newWorld(cfg)
				if err == nil {
					err = w.run()
				}
				if err != nil {
					t.Fatalf("seed %d with %d partitions: %v", seed, n, err)
				}
				got := plainly(w)
				if first == nil {
					first = got
				}
				if !maps.Equal(first, got) {
					t.Errorf("seed %d: %d partitions (no faults: %v) found %d URLs, one partition %d", seed, n, kind, len(got), len(first))
				}
			}
		}
	}
}

// plainly returns what a world found. Where the truth allows two outcomes, it returns the first.
func plainly(w *world) map[string]simweb.Got {
	truth := w.web.Truth(simweb.Scope{Agent: agent})
	for url, g := range w.got {
		if e := truth.Pages[url]; g.Outcome == e.Or {
			w.got[url] = simweb.Got{Outcome: e.Outcome}
		}
	}
	return w.got
}

// TestFailingPages crawls a host where three pages of a hundred always answer 502, 503 or 504. They must not stop the crawl.
func TestFailingPages(t *testing.T) {
	tried := 0
	for seed := uint64(1); tried < 5; seed++ {
		cfg := Config{
			Seed: seed, Partitions: 1, Slots: 16, Connections: 16, MaxDepth: -1, Scope: blobschema.ScopeAny, Local: true,
			MailEvery: 20 * time.Second, Delay: time.Second,
			Web: simweb.Config{Seed: seed, Hosts: 1, Names: true, Pages: simweb.Pages{Min: 103}, Kinds: simweb.PageShares{Busy: 0.03}},
		}
		web, err := simweb.New(cfg.Web)
		if err != nil {
			t.Fatal(err)
		}
		if truth := web.Truth(simweb.Scope{Agent: agent}); truth.Count(simweb.KindError) != 3 {
			continue
		}
		tried++
		if res, err := Run(cfg); err != nil || res.Pages != 103 || res.Virtual > 8*time.Minute {
			t.Errorf("seed %d: %d pages in %v: %v", seed, res.Pages, res.Virtual, err)
		}
	}
}

// TestNotModified checks that scenarios contain what only some settings bring about: answers of
// status 304 to revisits, and pages that only a sitemap lists.
func TestNotModified(t *testing.T) {
	unchanged, listed := 0, 0
	for seed := uint64(1); seed <= 40 && (unchanged == 0 || listed == 0); seed++ {
		cfg := Scenario(seed)
		if cfg.Web.Validators == 0 || !cfg.Sitemaps || cfg.Recrawls == 0 {
			continue
		}
		w, err := newWorld(cfg)
		if err == nil {
			err = w.run()
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		all, err := w.visible()
		if err != nil {
			t.Fatal(err)
		}
		for _, pages := range all {
			for _, p := range pages {
				if p.Outcome == blobschema.OutcomeUnchanged {
					unchanged++
				}
			}
		}
		linked := w.web.Truth(simweb.Scope{Agent: agent, SkipSitemaps: true, SkipDigests: true}).Pages
		for url := range w.got {
			if _, ok := linked[url]; !ok {
				listed++
			}
		}
	}
	if unchanged == 0 || listed == 0 {
		t.Errorf("%d answers of status 304, %d pages that only a sitemap lists", unchanged, listed)
	}
}

// TestOnceBroken runs scenarios that have found errors. They are as they were drawn then, but the times of their events
// have changed.
func TestOnceBroken(t *testing.T) {
	for _, seed := range []uint64{
		5232, 5278, // a seed's mail came after it was fetched as a found URL: no step followed its redirect
		20518, 20841, // a step that began after seeds were given did not follow old links to their hosts
		20947, 41112, // the same for a URL that was forwarded to its address
		81728, // a request that started late and was cancelled set the pace too early
		82050, // of two redirects from a late seed, only the first was followed
		30495, // at the page limit, slots that do not fit into memory together were loaded in turn forever
	} {
		if res, err := Run(firstScenario(seed)); err != nil {
			t.Errorf("seed %d: %v (%d events, %v)", seed, err, res.Events, res.Virtual)
		}
	}
	for _, seed := range []uint64{
		6438,  // a sitemap lists the root of another host in scope, which nothing else links: the ground truth lacked it
		21238, // without a delay, slow answers made revisits due faster than the host served them: new URLs had no turn
	} {
		cfg := Scenario(seed)
		cfg.Requisites, cfg.Web.Requisites = false, 0 // there were none then
		if _, err := Run(cfg); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	for _, seed := range []uint64{ // with requisites
		12,    // the crawl ended at its page limit before the requisites of the last pages were fetched
		124,   // at the page limit, a redirect of a requisite waited behind pages
		268,   // a requisite was fetched before its host came into scope: no step followed its links
		378,   // a redirect was found as a link and as a requisite
		1051,  // a requisite is a page whose links are followed
		2399,  // the revisit of a requisite, after its record could not be read
		2501,  // a requisite was revisited as a page, which the checker counted
		18791, // clocks were set during two steps, and fsck expected exact times in records
	} {
		if _, err := Run(Scenario(seed)); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// TestSameSeedSameTrace checks that traces do not depend on the Go scheduler.
func TestSameSeedSameTrace(t *testing.T) {
	all := Sweeping{First: *first, Seeds: 4, Workers: 4}
	a := Sweep(t.Context(), all)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	all.Workers = 1
	b := Sweep(t.Context(), all)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("traces %x and %x, events %d and %d", a.Trace, b.Trace, a.Events, b.Events)
	}
}

// TestKiller crawls with a page that crashes every step that requests it. It must be refused, and no other page.
func TestKiller(t *testing.T) {
	for seed := *first; seed < *first+3; seed++ {
		cfg := Scenario(seed)
		cfg.Faults, cfg.MaxPages, cfg.Scope, cfg.Seeds = Faults{}, 0, blobschema.ScopeAny, nil
		web, err := simweb.New(cfg.Web)
		if err != nil {
			t.Fatal(err)
		}
		for url, e := range web.Truth(simweb.Scope{Agent: agent, SkipDigests: true}).Pages {
			if e.Outcome == blobschema.OutcomeOK && e.Depth > 0 && (cfg.Killer == "" || url < cfg.Killer) {
				cfg.Killer = url
			}
		}
		if *traced {
			cfg.Trace = os.Stdout
		}
		if res, err := Run(cfg); err != nil {
			t.Errorf("seed %d: %v (%d events, %v)", seed, err, res.Events, res.Virtual)
		}
	}
}

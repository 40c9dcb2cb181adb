package simulate

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/simweb"
)

// Shrunk is a small scenario that fails in the same way as a larger one.
type Shrunk struct {
	Failure
	Runs int      // number of runs it took
	Last []string // last events before the failure
}

// lastEvents is the number of events before a failure that are reported.
const lastEvents = 40

// Shrink looks for a smaller scenario that breaks the same promise as f: with fewer faults (Zeller, Hildebrandt:
// Simplifying and Isolating Failure-Inducing Input, 2002), and with less of everything else. It runs at most runs
// scenarios, and ends with ctx.
func Shrink(ctx context.Context, f Failure, runs int) *Shrunk {
	s := shrinker{ctx: ctx, left: runs, best: f, sort: sortOf(f.Err)}
	s.best.Config.Trace = nil
	s.simplify()
	pinned := s.best.Config
	pinned.Faults = Faults{Only: append([]Fault{}, s.best.Result.Fired...)}
	if s.fails(pinned) {
		s.fewerFaults()
		if s.simplify() {
			s.fewerFaults()
		}
	}
	out := &Shrunk{Failure: s.best, Runs: runs - s.left}
	last := &tail{}
	cfg := s.best.Config
	cfg.Trace = last
	_, _ = runSafely(cfg)
	out.Last = last.lines
	return out
}

type shrinker struct {
	ctx  context.Context
	left int
	best Failure
	sort string
}

// fails reports whether a scenario fails in the same way. If so, it becomes the best one.
func (s *shrinker) fails(cfg Config) bool {
	if s.left <= 0 || s.ctx.Err() != nil {
		return false
	}
	s.left--
	res, err := runSafely(cfg)
	if err == nil || sortOf(err) != s.sort {
		return false
	}
	s.best = Failure{Seed: cfg.Seed, Config: cfg, Result: res, Err: err}
	return true
}

// fewerFaults leaves out faults: halves of them, then quarters, and finally single ones.
func (s *shrinker) fewerFaults() {
	for size := max(1, len(s.best.Config.Faults.Only)); size > 0; size /= 2 {
		for again := true; again; {
			again = false
			for at := 0; at < len(s.best.Config.Faults.Only); {
				cfg := s.best.Config
				cfg.Faults.Only = slices.Delete(slices.Clone(cfg.Faults.Only), at, min(at+size, len(cfg.Faults.Only)))
				if !s.fails(cfg) {
					at += size
					continue
				}
				again = size == 1 // a fault that others needed may be unnecessary now
			}
		}
	}
}

// simplify reduces everything except faults, and removes kinds of fault that are not needed.
func (s *shrinker) simplify() (changed bool) {
	for again := true; again; {
		again = false
		for _, simpler := range simplifications {
			for {
				cfg := s.best.Config
				cfg.Faults.Chances = maps.Clone(cfg.Faults.Chances)
				if !simpler(&cfg) || !s.fails(cfg) {
					break
				}
				again, changed = true, true
			}
		}
		for _, k := range slices.Sorted(maps.Keys(s.best.Config.Faults.Chances)) {
			cfg := s.best.Config
			cfg.Faults.Chances = maps.Clone(cfg.Faults.Chances)
			if delete(cfg.Faults.Chances, k); s.fails(cfg) {
				again, changed = true, true
			}
		}
	}
	return changed
}

// simplifications each make a scenario simpler, or return false if it cannot become simpler that way.
var simplifications = []func(*Config) bool{
	func(c *Config) bool { return less(&c.Faults.Max, 0) },
	func(c *Config) bool { return set(&c.Killer, "") },
	func(c *Config) bool { return less(&c.Recrawls, 0) },
	func(c *Config) bool { return set(&c.PerHour, 0) },
	func(c *Config) bool { return withoutMap(c, 0) },
	func(c *Config) bool { return withoutMap(c, 1) },
	func(c *Config) bool { return withoutMap(c, 2) },
	func(c *Config) bool { return set(&c.Elastic, false) },
	func(c *Config) bool { return set(&c.SweepEvery, 0) },
	func(c *Config) bool { return set(&c.SlowQueues, 0) },
	func(c *Config) bool { return set(&c.MergeFanIn, 0) },
	func(c *Config) bool { return set(&c.Late, false) },
	func(c *Config) bool { return set(&c.Checks, 0) },
	func(c *Config) bool { return set(&c.MaxPages, 0) },
	func(c *Config) bool { c.Seeds = nil; return set(&c.Scope, blobschema.ScopeAny) },
	func(c *Config) bool { return less(&c.Partitions, 1) },
	func(c *Config) bool { return less(&c.Web.Hosts, 1) && keepSeeds(c) },
	func(c *Config) bool { return less(&c.Web.Pages.Max, c.Web.Pages.Min) && keepSeeds(c) },
	func(c *Config) bool { return less(&c.Web.Pages.Min, 2) && keepSeeds(c) },
	func(c *Config) bool { return set(&c.Web.Kinds, simweb.PageShares{}) && keepSeeds(c) },
	func(c *Config) bool { return set(&c.Web.Robots, simweb.RobotsShares{}) },
	func(c *Config) bool { return set(&c.Web.Down, simweb.DownShares{}) },
	func(c *Config) bool { return set(&c.Web.Links, simweb.LinkShares{}) && keepSeeds(c) },
	func(c *Config) bool { return set(&c.Web.Trap, simweb.Trap{}) },
	func(c *Config) bool { return set(&c.Web.Connection, simweb.Connection{}) },
	func(c *Config) bool { return set(&c.Web.Validators, 0) },
	func(c *Config) bool {
		c.Web.Sitemaps = simweb.Sitemaps{}
		return set(&c.Sitemaps, false) && keepSeeds(c)
	},
	func(c *Config) bool { return set(&c.PartitionBy, "") },
	func(c *Config) bool { return set(&c.Policy, "") },
	func(c *Config) bool { return set(&c.Quality, "") },
	func(c *Config) bool { return set(&c.Topics, 0) },
	func(c *Config) bool { return set(&c.Allowed, 0) },
	func(c *Config) bool { return set(&c.QueueBy, "") },
	func(c *Config) bool { return set(&c.MaxPart, 0) },
	func(c *Config) bool { return less(&c.Slots, max(4, c.Partitions)) },
	func(c *Config) bool { return less(&c.Connections, 1) },
	func(c *Config) bool { return set(&c.MaxResident, 0) },
	func(c *Config) bool { return set(&c.Cold, false) },
	func(c *Config) bool { return set(&c.Concurrency, 0) },
	func(c *Config) bool { return set(&c.CommitEvery, 0) },
	func(c *Config) bool { return set(&c.SleepMax, 0) },
	func(c *Config) bool { return set(&c.Delay, 0) },
	func(c *Config) bool { return set(&c.Attempts, 0) },
}

// set changes a value, and reports whether it changed.
func set[T comparable](v *T, to T) bool {
	changed := *v != to
	*v = to
	return changed
}

// less halves the distance to the least value, and reports whether the value changed.
func less(v *int, least int) bool {
	if *v <= least {
		return false
	}
	*v = least + (*v-least)/2
	return true
}

// withoutMap removes an order, and reports whether there was one.
func withoutMap(c *Config, i int) bool {
	if i >= len(c.Maps) {
		return false
	}
	c.Maps = slices.Delete(slices.Clone(c.Maps), i, i+1)
	return true
}

// keepSeeds keeps the seeds that the web still has.
func keepSeeds(c *Config) bool {
	if c.Seeds == nil {
		return true
	}
	web, err := simweb.New(c.Web)
	if err != nil {
		return false
	}
	there := web.Truth(simweb.Scope{Agent: agent, SkipDigests: true}).Pages
	c.Seeds = slices.DeleteFunc(slices.Clone(c.Seeds), func(u string) bool { _, ok := there[u]; return !ok })
	return len(c.Seeds) > 0
}

// tail keeps the last lines written to it.
type tail struct{ lines []string }

func (t *tail) Write(b []byte) (int, error) {
	t.lines = append(t.lines, string(bytes.TrimRight(b, "\n")))
	if n := len(t.lines) - lastEvents; n > 0 {
		t.lines = append(t.lines[:0], t.lines[n:]...)
	}
	return len(b), nil
}

// String returns what a test needs: the error, the faults and events that lead to it, and the scenario as Go source for
// this package.
func (s *Shrunk) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n\nwith these faults (found in %d runs; %d events, %v):\n", s.Err, s.Runs, s.Result.Events, s.Result.Virtual)
	for _, f := range s.Result.Fired {
		fmt.Fprintf(&b, "  %s %d: %s\n", f.Who, f.N, f.Kind)
	}
	b.WriteString("\nthe last events:\n")
	for _, l := range s.Last {
		fmt.Fprintf(&b, "  %.200s\n", l)
	}
	fmt.Fprintf(&b, "\nas a test:\n%s\n", s.Config.source())
	return b.String()
}

package simulate

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Sweeping selects the scenarios to run.
type Sweeping struct {
	First    uint64 // first seed
	Seeds    int
	Workers  int                      // scenarios at once; 0: one per processor
	Scenario func(seed uint64) Config // nil: [Scenario]
	// Done, if not nil, is called after each scenario, by one goroutine at a time.
	Done func(*Tally)
}

// Tally is the result of many scenarios. It is the same for the same seeds in any order of execution, except that Failures
// are only sorted at the end.
type Tally struct {
	Seeds    int
	Failures []Failure // sorted by seed
	Times    [kinds]int
	In       [kinds]int // number of seeds in which a kind occurred
	Events   int64
	Pages    int64
	Virtual  time.Duration
	Trace    uint64 // sum over all traces
}

// Failure is a scenario that failed.
type Failure struct {
	Seed   uint64
	Config Config
	Result Result
	Err    error
}

// Sweep runs scenarios in parallel, each in its own world, until all are done or ctx ends.
func Sweep(ctx context.Context, s Sweeping) *Tally {
	if s.Scenario == nil {
		s.Scenario = Scenario
	}
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		next  int
		tally Tally
	)
	for range cmp.Or(s.Workers, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for {
				mu.Lock()
				seed := s.First + uint64(next)
				if next++; next > s.Seeds || ctx.Err() != nil {
					mu.Unlock()
					return
				}
				mu.Unlock()
				cfg := s.Scenario(seed)
				res, err := runSafely(cfg)
				mu.Lock()
				tally.add(cfg, &res, err)
				if s.Done != nil {
					s.Done(&tally)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.SortFunc(tally.Failures, func(a, b Failure) int { return cmp.Compare(a.Seed, b.Seed) })
	return &tally
}

// runSafely is like Run, but returns a panic as an error.
func runSafely(cfg Config) (res Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = broken(fmt.Sprintf("panic: %.80v", r), "\n%s", debug.Stack())
		}
	}()
	return Run(cfg)
}

func (t *Tally) add(cfg Config, res *Result, err error) {
	t.Seeds++
	if err != nil {
		t.Failures = append(t.Failures, Failure{Seed: cfg.Seed, Config: cfg, Result: *res, Err: err})
	}
	for k, n := range res.Faults {
		t.Times[k] += n
		t.In[k] += min(n, 1)
	}
	t.Events += int64(res.Events)
	t.Pages += int64(res.Pages)
	t.Virtual += res.Virtual
	t.Trace += mix(cfg.Seed ^ mix(res.Trace)) // the same in any order
}

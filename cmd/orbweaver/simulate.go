package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/simulate"
)

// simulateFlags are those of simulate.
type simulateFlags struct {
	seed   uint64
	seeds  int
	first  uint64
	json   bool
	trace  bool
	shrink bool
}

// shrinkRuns is how many crawls may be carried out to shrink one.
const shrinkRuns = 500

func newSimulate() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Crawl made-up webs in a simulated world where all kinds of things go wrong",
		Long: `Simulate runs whole crawls of small made-up webs on a virtual clock: the real steps and
ticks, in a world where processes crash and freeze, calls are lost or done and not
answered, messages are repeated, lost, damaged and late, clocks differ, hosts go down,
and partitions are added and removed. All of it is drawn from a seed, so that a crawl
that fails fails again, on any machine. Each crawl is compared with what is known of its
web, and what it stored is checked as fsck does.

It prints how often each kind of fault happened, and the seeds that failed.`,
		Example: `  orbweaver simulate --seeds 10000
  orbweaver simulate --seed 4711 --trace        # every event of one crawl
  orbweaver simulate --seed 4711 --shrink       # the shortest way to the same failure`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("seed") {
				f.first, f.seeds = f.seed, 1
			}
			if f.seeds < 1 {
				return usagef("--seeds must be 1 or more\nSee '%s --help'", cmd.CommandPath())
			}
			ctx, release := following(cmd.Context())
			defer release()
			return runSimulate(ctx, &f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&f.seed, "seed", 1, "run this seed only")
	flags.IntVar(&f.seeds, "seeds", 200, "number of crawls, each of the next seed")
	flags.Uint64Var(&f.first, "first", 1, "the first seed")
	flags.BoolVar(&f.json, "json", false, "write JSON, for a program")
	flags.BoolVar(&f.trace, "trace", false, "print every event; one crawl at a time")
	flags.BoolVar(&f.shrink, "shrink", false, "look for the shortest way to each failure")
	return cmd
}

// simulated is the result as JSON.
type simulated struct {
	First      uint64           `json:"first"`
	Seeds      int              `json:"seeds"`
	Seconds    float64          `json:"seconds"`
	Events     int64            `json:"events"`
	Pages      int64            `json:"pages"`
	Virtual    float64          `json:"virtual_seconds"`
	Trace      string           `json:"trace"` // the same on every machine
	Faults     []simulatedFault `json:"faults"`
	Failures   []failedSeed     `json:"failures"`
	Interrupts bool             `json:"interrupted,omitempty"`
}

type simulatedFault struct {
	Kind  string `json:"kind"`
	Times int    `json:"times"`
	Seeds int    `json:"seeds"`
}

type failedSeed struct {
	Seed   uint64 `json:"seed"`
	Error  string `json:"error"`
	Shrunk string `json:"shrunk,omitempty"`
}

func runSimulate(ctx context.Context, f *simulateFlags, out, progress io.Writer) error {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // small worlds that come and go: memory is cheap, time is not
	begun := time.Now()
	told := begun
	s := simulate.Sweeping{First: f.first, Seeds: f.seeds}
	if f.trace {
		s.Workers = 1
		s.Scenario = func(seed uint64) simulate.Config {
			cfg := simulate.Scenario(seed)
			cfg.Trace = out
			return cfg
		}
	}
	failed := 0
	s.Done = func(t *simulate.Tally) {
		for ; failed < len(t.Failures); failed++ {
			one := &t.Failures[failed]
			what, _, _ := strings.Cut(one.Err.Error(), "\n")
			fmt.Fprintf(progress, "seed %d: %s\n", one.Seed, what)
		}
		if now := time.Now(); now.Sub(told) >= 10*time.Second && t.Seeds < f.seeds {
			told = now
			fmt.Fprintf(progress, "%s of %s, %.1f a second, %d failed\n", count(int64(t.Seeds)), plural(int64(f.seeds), "seed"),
				float64(t.Seeds)/now.Sub(begun).Seconds(), len(t.Failures))
		}
	}
	t := simulate.Sweep(ctx, s)
	result := simulated{
		First: f.first, Seeds: t.Seeds, Seconds: time.Since(begun).Seconds(), Events: t.Events, Pages: t.Pages,
		Virtual: t.Virtual.Seconds(), Trace: fmt.Sprintf("%016x", t.Trace), Interrupts: t.Seeds < f.seeds,
		Failures: []failedSeed{},
	}
	for _, k := range simulate.Kinds() {
		result.Faults = append(result.Faults, simulatedFault{k.String(), t.Times[k], t.In[k]})
	}
	for _, failure := range t.Failures {
		one := failedSeed{Seed: failure.Seed, Error: failure.Err.Error()}
		if f.shrink {
			one.Shrunk = simulate.Shrink(ctx, failure, shrinkRuns).String()
		}
		result.Failures = append(result.Failures, one)
	}
	if err := printSimulated(out, &result, f.json); err != nil {
		return err
	}
	switch {
	case len(t.Failures) > 0:
		return fail(exitError, nil)
	case result.Interrupts:
		return fail(exitStopped, nil)
	}
	return nil
}

func printSimulated(w io.Writer, r *simulated, asJSON bool) error {
	if asJSON {
		return writeJSON(w, r)
	}
	fmt.Fprintf(w, "%-16s%10s%9s\n", "", "times", "seeds")
	for _, f := range r.Faults {
		fmt.Fprintf(w, "%-16s%10s%9s\n", f.Kind, count(int64(f.Times)), count(int64(f.Seeds)))
	}
	for _, f := range r.Failures {
		fmt.Fprintf(w, "\nseed %d: %s\n", f.Seed, f.Error)
		if f.Shrunk != "" {
			fmt.Fprintf(w, "\nseed %d, shrunk: %s", f.Seed, f.Shrunk)
		}
	}
	_, err := fmt.Fprintf(w, "\n%s in %s (%.1f a second): %s events, %s of virtual time, %s, trace %s; %d failed\n",
		plural(int64(r.Seeds), "seed"), span(r.Seconds), float64(r.Seeds)/r.Seconds, count(r.Events), span(r.Virtual),
		plural(r.Pages, "URL"), r.Trace, len(r.Failures))
	return err
}

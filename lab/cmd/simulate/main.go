// Simulate crawls small generated webs on a virtual clock: the real steps and coordinator runs, in a world where
// processes crash and freeze, calls are lost or carried out without an answer, messages are repeated, lost,
// damaged and late, clocks differ, hosts go down, and partitions are added and removed.
//
//	simulate -seeds 10000
//	simulate -seed 4711 -trace        # print every event of one crawl
//	simulate -seed 4711 -shrink       # find a smaller scenario with the same failure
//
// Each seed is one crawl and repeats exactly on any machine. The result of each crawl is compared with the ground
// truth of its web, and its stored objects are checked by package fsck. The command prints how often each kind of
// fault happened, and the seeds that failed. Its exit status is 1 if one failed, and 3 after Ctrl-C.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/orbweaver/orbweaver/internal/simulate"
)

// shrinkRuns bounds the crawls for shrinking one failure.
const shrinkRuns = 500

var (
	errFailed  = errors.New("some seeds failed")
	errStopped = errors.New("stopped")
)

func main() {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	release()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errStopped):
		os.Exit(3)
	default:
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

// report is the result as JSON.
type report struct {
	First       uint64       `json:"first"`
	Seeds       int          `json:"seeds"`
	Seconds     float64      `json:"seconds"`
	Events      int64        `json:"events"`
	Pages       int64        `json:"pages"`
	Virtual     float64      `json:"virtual_seconds"`
	Trace       string       `json:"trace"` // the same on every machine
	Faults      []faults     `json:"faults"`
	Failures    []failedSeed `json:"failures"`
	Interrupted bool         `json:"interrupted,omitempty"`
}

// faults says how often a kind of fault happened, and in how many crawls.
type faults struct {
	Kind  string `json:"kind"`
	Times int    `json:"times"`
	Seeds int    `json:"seeds"`
}

type failedSeed struct {
	Seed   uint64 `json:"seed"`
	Error  string `json:"error"`
	Shrunk string `json:"shrunk,omitempty"`
}

// run carries out the command line.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	s := simulate.Sweeping{}
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	f.SetOutput(progress)
	f.Uint64Var(&s.First, "first", 1, "the first seed")
	f.IntVar(&s.Seeds, "seeds", 200, "number of crawls, each with the next seed")
	seed := f.Uint64("seed", 0, "run only this seed")
	asJSON := f.Bool("json", false, "print the result as JSON")
	trace := f.Bool("trace", false, "print every event; runs one crawl at a time")
	shrink := f.Bool("shrink", false, "look for a smaller scenario with the same failure")
	if err := f.Parse(args); err != nil {
		return err
	}
	f.Visit(func(set *flag.Flag) {
		if set.Name == "seed" {
			s.First, s.Seeds = *seed, 1
		}
	})
	switch {
	case f.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	case s.Seeds < 1:
		return errors.New("-seeds must be 1 or more")
	}
	if *trace {
		s.Workers = 1
		s.Scenario = func(seed uint64) simulate.Config {
			cfg := simulate.Scenario(seed)
			cfg.Trace = out
			return cfg
		}
	}
	r := sweep(ctx, s, *shrink, progress)
	if err := r.print(out, *asJSON); err != nil {
		return err
	}
	switch {
	case len(r.Failures) > 0:
		return errFailed
	case r.Interrupted:
		return errStopped
	}
	return nil
}

// sweep runs the crawls and reports progress and failures as they occur.
func sweep(ctx context.Context, s simulate.Sweeping, shrink bool, progress io.Writer) *report {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // the worlds are small and short-lived: memory is cheap, time is not
	begun := time.Now()
	last, failed := begun, 0
	s.Done = func(t *simulate.Tally) {
		for ; failed < len(t.Failures); failed++ {
			what, _, _ := strings.Cut(t.Failures[failed].Err.Error(), "\n")
			fmt.Fprintf(progress, "seed %d: %s\n", t.Failures[failed].Seed, what)
		}
		if now := time.Now(); now.Sub(last) >= 10*time.Second && t.Seeds < s.Seeds {
			last = now
			fmt.Fprintf(progress, "%d of %d seeds, %.1f per second, %d failed\n", t.Seeds, s.Seeds, float64(t.Seeds)/now.Sub(begun).Seconds(), len(t.Failures))
		}
	}
	t := simulate.Sweep(ctx, s)
	r := &report{
		First: s.First, Seeds: t.Seeds, Seconds: time.Since(begun).Seconds(), Events: t.Events, Pages: t.Pages,
		Virtual: t.Virtual.Seconds(), Trace: fmt.Sprintf("%016x", t.Trace), Interrupted: t.Seeds < s.Seeds, Failures: []failedSeed{},
	}
	for _, k := range simulate.Kinds() {
		r.Faults = append(r.Faults, faults{k.String(), t.Times[k], t.In[k]})
	}
	for _, failure := range t.Failures {
		one := failedSeed{Seed: failure.Seed, Error: failure.Err.Error()}
		if shrink {
			one.Shrunk = simulate.Shrink(ctx, failure, shrinkRuns).String()
		}
		r.Failures = append(r.Failures, one)
	}
	return r
}

func (r *report) print(out io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	fmt.Fprintf(out, "%-16s%10s%9s\n", "", "times", "seeds")
	for _, f := range r.Faults {
		fmt.Fprintf(out, "%-16s%10d%9d\n", f.Kind, f.Times, f.Seeds)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(out, "\nseed %d: %s\n", f.Seed, f.Error)
		if f.Shrunk != "" {
			fmt.Fprintf(out, "\nseed %d, shrunk: %s", f.Seed, f.Shrunk)
		}
	}
	_, err := fmt.Fprintf(out, "\n%d seeds in %.0f s (%.1f per second): %d events, %v of virtual time, %d URLs, trace %s; %d failed\n",
		r.Seeds, r.Seconds, float64(r.Seeds)/r.Seconds, r.Events, time.Duration(r.Virtual*float64(time.Second)).Round(time.Minute),
		r.Pages, r.Trace, len(r.Failures))
	return err
}

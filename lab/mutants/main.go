// Mutants measures how many changes of the core its tests notice: it makes small changes in the
// sources, called mutants, and counts those with which a test fails.
//
//	make mutants ARGS='-packages internal/weburl,partition -sample 400 -list'
//
// All mutants of a package are compiled into its tests at once, each behind a switch that the
// environment sets (schema.go.txt), by `go test -c -overlay`, which leaves the sources unchanged. Each
// test first runs alone, to record the mutants that it reaches and its time. Then, for each mutant,
// the tests that reach it run, the fastest first, until one fails or takes far longer than without
// the mutant. Mutants that no test reaches have survived.
//
// It changes comparisons, && and ||, !, conditions (true, false), arithmetic, ++ and --, integers (one
// more, one less), calls and assignments (removed), results (zero), break and continue. It does not
// change named constants, tables of numbers, capacities, messages and String methods.
//
// It runs on Unix only. The exit status is 0 if at least -least percent of the mutants of each package were
// killed, otherwise 1.
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
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// core lists the packages to test.
const core = "internal/weburl,internal/polite,partition,internal/extract,internal/schedule+internal/frontier,internal/frontier,internal/actor+internal/crawl,internal/crawl," +
	"blobschema,blobschema/naming,blobschema/ranks,blobschema/segment,blobschema/warc,blobschema/wire"

func main() {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	release()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	root     string
	packages string
	sample   int
	seed     uint64
	workers  int
	slowest  time.Duration
	least    float64
	only     string
	again    string
	list     bool
	json     string
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	var o options
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.StringVar(&o.root, "root", ".", "the folder of the module")
	flags.StringVar(&o.packages, "packages", core, "the packages, with commas; as A+B those of A, with the tests of B too")
	flags.IntVar(&o.sample, "sample", 0, "`number` of mutants of each package, chosen by hash (0: all)")
	flags.Uint64Var(&o.seed, "seed", 1, "of the hash")
	flags.IntVar(&o.workers, "workers", 2, "mutants that are run at a time")
	flags.DurationVar(&o.slowest, "slowest", 0, "leave out tests that take more CPU time by themselves (0: none)")
	flags.Float64Var(&o.least, "least", 80, "percent of each package's mutants that must be killed")
	flags.StringVar(&o.only, "only", "", "only mutants at FILE or FILE:LINE, for a closer look")
	flags.StringVar(&o.again, "again", "", "earlier -json `file`, whose killed mutants are not tried again")
	flags.BoolVar(&o.list, "list", false, "list what survived, and the tests that came by it")
	flags.StringVar(&o.json, "json", "", "write all mutants into this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := filepath.Abs(o.root)
	if err != nil {
		return err
	}
	var results []*result
	for entry := range strings.SplitSeq(o.packages, ",") {
		r, err := try(ctx, root, strings.Split(entry, "+"), o, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", entry, err)
		}
		results = append(results, r)
		if o.list {
			r.list(out)
		}
	}
	if o.json != "" {
		b, err := json.MarshalIndent(results, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(o.json, append(b, '\n'), 0o666); err != nil {
			return err
		}
	}
	return table(out, results, o.least)
}

// result is the result for a package.
type result struct {
	Package  string    `json:"package"`
	Made     int       `json:"made"` // mutants that were made and tried
	Killed   int       `json:"killed"`
	Survived int       `json:"survived"`
	Missed   int       `json:"notReached"`
	Time     int       `json:"byTime"` // killed because a test took too long
	Dropped  int       `json:"dropped"`
	LeftOut  []string  `json:"testsLeftOut,omitempty"` // tests that are too slow, or fail without a mutant because of the switches
	Seconds  float64   `json:"seconds"`
	Mutants  []*mutant `json:"mutants"`
}

// try makes the mutants of the first package, and runs the tests of all packages.
func try(ctx context.Context, root string, packages []string, o options, progress io.Writer) (r *result, err error) {
	begun := time.Now()
	folder, err := os.MkdirTemp("", "orbweaver-mutants-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	p, err := load(ctx, root, packages[0])
	if err != nil {
		return nil, err
	}
	if err := p.choose(o); err != nil {
		return nil, err
	}
	overlay, err := p.write(folder)
	if err != nil {
		return nil, err
	}
	programs, err := build(ctx, root, folder, overlay, packages)
	if err != nil {
		return nil, err
	}
	r = &result{Package: p.path}
	var tests []*test
	for _, program := range programs {
		good, bad, err := program.tests(ctx, p.count)
		if err != nil {
			return nil, err
		}
		for _, t := range good {
			if o.slowest > 0 && t.cpu > o.slowest {
				bad = append(bad, t.name)
			} else {
				tests = append(tests, t)
			}
		}
		r.LeftOut = append(r.LeftOut, bad...)
	}
	var tried []*mutant
	for _, s := range p.sites {
		for _, m := range s.mutants {
			switch {
			case m.out:
			case s.left:
				r.Dropped++
			default:
				tried = append(tried, m)
			}
		}
	}
	total := time.Duration(0)
	for _, t := range tests {
		total += t.cpu
	}
	fmt.Fprintf(progress, "%s: %d mutants, %d dropped, %d tests of %.1f s, left out: %v\n", p.path, len(tried), r.Dropped, len(tests), total.Seconds(), r.LeftOut)
	err = judge(ctx, tried, tests, o.workers, func(done int) {
		if done%100 == 0 {
			fmt.Fprintf(progress, "%s: %d of %d after %.0f s\n", p.path, done, len(tried), time.Since(begun).Seconds())
		}
	})
	r.count(tried)
	r.Seconds = time.Since(begun).Seconds()
	return r, err
}

func (r *result) count(tried []*mutant) {
	r.Mutants, r.Made = tried, len(tried)
	for _, m := range tried {
		switch m.Fate {
		case killed:
			r.Killed++
		case survived:
			r.Survived++
		case notReached:
			r.Missed++
		}
		if m.By == "time" {
			r.Time++
		}
	}
}

// share returns the killed mutants in percent.
func (r *result) share() float64 {
	if r.Made == 0 {
		return 100
	}
	return 100 * float64(r.Killed) / float64(r.Made)
}

// list writes the mutants that survived.
func (r *result) list(out io.Writer) {
	for _, m := range r.Mutants {
		if m.Fate != killed {
			reach := strings.Join(m.Reach[:min(len(m.Reach), 4)], " ")
			if len(m.Reach) > 4 {
				reach += fmt.Sprintf(" and %d more", len(m.Reach)-4)
			}
			fmt.Fprintf(out, "%s: %s, %s: %s (%s)\n", m.place(), m.Fate, m.Operator, m.Change, reach)
		}
	}
}

// table writes a line for each package. It returns an error if one has less than the least share.
func table(out io.Writer, results []*result, least float64) error {
	fmt.Fprintln(out, "| package | mutants | killed | by time | survived | not reached | killed, % |")
	fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---:|")
	var short []string
	for _, r := range results {
		fmt.Fprintf(out, "| %s | %d | %d | %d | %d | %d | %.1f |\n", r.Package, r.Made, r.Killed, r.Time, r.Survived, r.Missed, r.share())
		if r.share() < least {
			short = append(short, r.Package)
		}
	}
	if len(short) > 0 {
		return fmt.Errorf("fewer than %g%% were killed of %s", least, strings.Join(short, ", "))
	}
	return nil
}

// Bench measures the crawler against loaders that already know every URL, in one run on
// one machine, so that their ratio means something where absolute figures do not.
//
//	bench                      all webs, 3 rounds: some five minutes
//	bench -web W1,W2           two of them
//	bench -quick               a smoke test of some seconds
//	bench -partitions 1,2,4,8  which number is best
//	bench -against BINARY      beside the crawl as it was before
//	bench -stages -web W1      where CPU and memory go, by stage
//	bench -cpuprofile DIR      the profiles of all measurements
//
// What is measured (trial.go has the targets):
//
//   - W1, where the processors are the limit: 32,000 pages of 30 KB at once. The crawl is
//     held to the loader.
//   - W1G: the same pages, sent in gzip. The crawl is held to itself on W1.
//   - plain: W1 with WARCs that are not compressed, by both.
//   - W2, where waiting is the limit: 500 hosts that take 5 to 200 ms to answer. The crawl,
//     which has to find the hosts first, is held to an oracle that keeps one connection to
//     each of them busy from the start.
//
// The webs are generated and served over loopback by a process of its own, and so is each
// measurement made in a fresh one: this program starts itself again, see child.go. The
// sides take turns (loader, crawl, …, loader, crawl, …) and each round gives one ratio, of
// two measurements next to each other in time; the medians over the rounds are printed.
//
//   - The loader (loader.go) is what a crawl cannot do without: one connection per host,
//     a tokenizer over each body, WARC records, files of 1,000 pages.
//   - The crawl (crawl.go) is the real engine on the embedded platform, from one seed,
//     obeying robots.txt, everything durable.
//
// With -against, the crawls of another commit take turns with those of this one: its program, built
// with go build -C lab -o BINARY ./bench, makes each of them on the server of this one. Loader,
// before and now stand side by side, and how now compares with before is of one round, too.
//
// Every measurement is checked: by the server, that each page was asked for exactly once,
// and for crawls by the page records that its commits make visible. One that fails the
// check ends the program with an error; a target missed does not.
//
// Files go below the system's folder for temporary ones (TMPDIR), which should be on a
// disk: the crawl makes what it commits durable. They need 1 GB at a time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// childFlag is the first argument of a process that measures or serves.
const childFlag = "-child"

func main() {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if len(os.Args) == 3 && os.Args[1] == childFlag {
		err = runChild(ctx, role(os.Args[2]), os.Stdin, os.Stdout)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	release()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are what the flags say.
type settings struct {
	webs       []string // of webNames
	quick      bool
	rounds     int
	partitions []int // of one crawl each per web and round
	json       bool
	profiles   string // folder; "" for none
	stages     bool   // one crawl of each web, and what the stages cost
	against    string // this program as it was before; "" for none
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	webs := fs.String("web", strings.Join(webNames, ","), "`webs` to measure on, separated by commas")
	fs.IntVar(&s.rounds, "rounds", 3, "`times` that each side is measured")
	fs.BoolVar(&s.quick, "quick", false, "one round on small webs, to see that all works; they are too small for the targets")
	partitions := fs.String("partitions", "4", "`numbers` of partitions to crawl with, separated by commas")
	fs.BoolVar(&s.json, "json", false, "print one JSON object, with all rounds, instead of the tables")
	fs.StringVar(&s.against, "against", "", "`program` built from another commit, whose crawls take turns with ours")
	fs.StringVar(&s.profiles, "cpuprofile", "", "`folder` for CPU and allocation profiles of the last round")
	fs.BoolVar(&s.stages, "stages", false, "crawl each web once, and print what each stage of the work costs per page")
	if err := fs.Parse(args); err != nil {
		return s, err
	}
	if fs.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if s.rounds < 1 {
		return s, fmt.Errorf("-rounds is %d", s.rounds)
	}
	for name := range strings.SplitSeq(*webs, ",") {
		if !slices.Contains(webNames, name) {
			return s, fmt.Errorf("-web: %q is none of %s", name, strings.Join(webNames, ", "))
		}
		s.webs = append(s.webs, name)
	}
	for text := range strings.SplitSeq(*partitions, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || slices.Contains(s.partitions, n) {
			return s, fmt.Errorf("-partitions: %q is not another number above 0", text)
		}
		s.partitions = append(s.partitions, n)
	}
	if s.quick || s.stages {
		s.rounds = 1
	}
	if s.profiles != "" {
		var err error
		if s.profiles, err = filepath.Abs(s.profiles); err != nil {
			return s, err
		}
		return s, os.MkdirAll(s.profiles, 0o755)
	}
	return s, nil
}

// run measures all sides and prints the report. What each measurement gave goes to stderr
// as it is made.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "orbweaver-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if s.stages {
		return profileStages(ctx, &s, dir, stdout, stderr)
	}
	all := trials(&s)
	made, err := takeTurns(ctx, &s, all, dir, stderr)
	if err != nil {
		return err
	}
	rep, err := newReport(&s, all, made)
	if err != nil {
		return err
	}
	if s.json {
		return rep.writeJSON(stdout)
	}
	return rep.writeText(stdout)
}

// takeTurns makes all measurements, round by round.
func takeTurns(ctx context.Context, s *settings, all []trial, dir string, stderr io.Writer) (measured, error) {
	made := measured{}
	for round := range s.rounds {
		for _, t := range all {
			for _, side := range t.sides {
				if len(made[side.Name]) > round {
					continue // for a trial before
				}
				j := side.job
				j.Dir, j.Profiles = filepath.Join(dir, j.Name), s.profiles
				f, err := measure(ctx, j)
				if err != nil {
					return nil, fmt.Errorf("round %d, %s: %w", round+1, j.Name, err)
				}
				made[j.Name] = append(made[j.Name], f)
				fmt.Fprintf(stderr, "round %d/%d  %-13s %7.0f pages/s  %6.2f CPU s per 1,000 pages  %5.1f s\n",
					round+1, s.rounds, j.Name, f.PagesPerSecond, f.CPUPer1000, f.Seconds)
			}
		}
	}
	return made, nil
}

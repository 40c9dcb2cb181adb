// Bench measures the crawler against a loader that already knows every URL, in one run
// on one machine, so that their ratio means something where absolute figures do not.
//
//	go run ./internal/bench                      the web W1, 3 rounds
//	go run ./internal/bench -quick               a smoke test of some seconds
//	go run ./internal/bench -partitions 1,2,4,8  which number is best
//	go run ./internal/bench -cpuprofile DIR      where the time goes
//
// The web is generated and served over loopback by a process of its own, and so is each
// measurement made in a fresh one: this program starts itself again, see child.go. The
// sides take turns (loader, crawl, loader, crawl, …) and each round gives one ratio, of
// two measurements next to each other in time; the medians over the rounds are printed.
//
//   - The loader (loader.go) is what a crawl cannot do without: one connection per host,
//     a tokenizer over each body, WARC records, files of 1,000 pages.
//   - The crawl (crawl.go) is the real engine on the embedded platform, from one seed,
//     obeying robots.txt, everything durable.
//
// Every measurement is checked: by the server, that each page was asked for exactly once,
// and for crawls by the page records that its commits make visible. One that fails the
// check ends the program with an error; a target missed does not.
//
// Files go below the system's folder for temporary ones (TMPDIR), which should be on a
// disk: the crawl makes what it commits durable.
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
	"strconv"
	"strings"
	"syscall"

	"github.com/orbweaver/orbweaver/internal/simweb"
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
	web        simweb.Config
	name       string // of the web
	rounds     int
	partitions []int // of one crawl each per round
	json       bool
	profiles   string // folder; "" for none
}

func parse(args []string, stderr io.Writer) (settings, error) {
	s := settings{web: simweb.W1(), name: "W1"}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.IntVar(&s.rounds, "rounds", 3, "`times` that each side is measured")
	quick := fs.Bool("quick", false, "one round on a web of 16 hosts × 100 small pages, to see that all works")
	partitions := fs.String("partitions", "4", "`numbers` of partitions to crawl with, separated by commas")
	fs.BoolVar(&s.json, "json", false, "print one JSON object, with all rounds, instead of the table")
	fs.StringVar(&s.profiles, "cpuprofile", "", "`folder` for CPU and allocation profiles of the last round")
	if err := fs.Parse(args); err != nil {
		return s, err
	}
	if fs.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if s.rounds < 1 {
		return s, fmt.Errorf("-rounds is %d", s.rounds)
	}
	for _, text := range strings.Split(*partitions, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return s, fmt.Errorf("-partitions: %q is not a number above 0", text)
		}
		s.partitions = append(s.partitions, n)
	}
	if *quick {
		s.rounds, s.name = 1, "a cut of W1, too small for the targets"
		s.web.Hosts, s.web.Pages.Min, s.web.PageBytes = 16, 100, 8<<10
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
	sides := []job{{Role: roleLoader}}
	for _, n := range s.partitions {
		sides = append(sides, job{Role: roleCrawl, Partitions: n})
	}
	rounds := make([][]figures, len(sides))
	for round := range s.rounds {
		for i, side := range sides {
			side.Web, side.Dir, side.Profiles = s.web, filepath.Join(dir, side.name()), s.profiles
			f, err := measure(ctx, side)
			if err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, side.name(), err)
			}
			rounds[i] = append(rounds[i], f)
			fmt.Fprintf(stderr, "round %d/%d  %-10s %7.0f pages/s  %6.2f CPU s per 1,000 pages  %5.1f s\n",
				round+1, s.rounds, side.name(), f.PagesPerSecond, f.CPUPer1000, f.Seconds)
		}
	}
	rep, err := newReport(&s, sides, rounds)
	if err != nil {
		return err
	}
	if s.json {
		return rep.writeJSON(stdout)
	}
	return rep.writeText(stdout)
}

// Bench measures the crawler beside loaders that already know every URL, in one run on
// one machine. Their ratio is meaningful even where absolute figures are not.
//
//	bench                      all webs except the million, 5 rounds: some ten minutes
//	bench -web W1,W2           two of them
//	bench -web million         a million pages: some minutes
//	bench -quick               a smoke test of some seconds
//	bench -partitions 1,2,4,8  compare numbers of partitions
//	bench -against BINARY      beside the crawl of another commit
//	bench -stages -web W1      CPU and memory by stage
//	bench -cpuprofile DIR      the profiles of all measurements
//
// The webs (trial.go has the targets):
//
//   - W1, where the processors are the limit: 32,000 pages of 30 KB.
//   - W1G: the same pages, sent in gzip.
//   - plain: W1 with WARC files that are not compressed, by both sides.
//   - W2, where waiting is the limit: 500 hosts that take 5 to 200 ms to answer. The loader
//     is an oracle here: it keeps one connection to each host busy from the start, while the
//     crawl has to find the hosts first.
//   - W1T: W1 over TLS 1.3, with a certificate of an authority made for the run. This loader
//     uses net/http.
//   - W1P: W1 in 128 partitions, beside a crawl in 2.
//   - W1R: W1 with requisites, beside a crawl of the same pages without.
//   - million: 1,000 hosts of 1,000 pages of 1 KB. The crawl is compared with its own
//     beginning, and fsck checks it.
//
// A separate process generates the web and serves it over loopback. Each measurement runs in
// a new process too: this program starts itself again, see child.go. The
// sides take turns (loader, crawl, …, loader, crawl, …), and each round gives one ratio of
// two measurements next to each other in time; the program prints the medians over the rounds.
//
//   - The loader (loader.go) does the minimum work of a crawl: one connection per host
//     that it writes to and reads from itself, a scan of each page for links, a set of URLs
//     and WARC records.
//   - The crawl (crawl.go) is the real engine on the embedded platform, from one seed,
//     obeying robots.txt, everything durable.
//
// With -against, the crawls of another commit take turns with those of this one. Build its program
// with go build -C lab -o BINARY ./bench; it runs on the server of this one.
//
// Every measurement is checked: the server counts one request for each page,
// and the page records that the commits of a crawl make visible are the web. A measurement that fails the
// check ends the program with an error; a missed target does not.
//
// Files go below the system's folder for temporary ones (TMPDIR), which should be on a
// disk: the crawl makes its commits durable. They need 1 GB at a time, and for the million 5 GB.
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

// settings holds the values of the flags.
type settings struct {
	webs       []string // of webNames
	quick      bool
	rounds     int
	partitions []int // one crawl with each number, per web and round
	json       bool
	profiles   string // folder; "" for none
	stages     bool   // one crawl of each web, and the cost of its stages
	against    string // this program built from another commit; "" for none
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	webs := fs.String("web", strings.Join(webNames[:len(webNames)-1], ","), "`webs` to measure on, separated by commas")
	fs.IntVar(&s.rounds, "rounds", 5, "`times` that each side is measured")
	fs.BoolVar(&s.quick, "quick", false, "one round on small webs, which are too small for the targets")
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
		return s, fmt.Errorf("-rounds is %d, not above 0", s.rounds)
	}
	for name := range strings.SplitSeq(*webs, ",") {
		if !slices.Contains(webNames, name) {
			return s, fmt.Errorf("-web: %q is not one of %s", name, strings.Join(webNames, ", "))
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

// run measures all sides and prints the report. It prints each measurement to stderr at once.
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
					continue // measured for a trial before
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

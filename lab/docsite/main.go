// Docsite crawls a real documentation site, served on loopback by a real web server, and
// holds the crawl to the files that were served:
//
//	make docsite DOCS=/usr/share/doc/linux-doc/html
//
// Any folder of HTML with an index.html will do. A copy of it is served by nginx, as
// compressed as nginx does by itself; the crawler is the orbweaver program, used through
// its commands alone. There are four phases:
//
//   - crawl: from index.html, until nothing is left to do. What links lead to is computed
//     from the files (truth.go), without the crawler's own parser.
//   - recrawl: each page is asked for once more. The server must answer every request
//     with 304, and nothing may be stored but references.
//   - changes: five pages are changed, and five get a new time only; each page is asked
//     for again. Five are stored anew, five are found equal by their digest, and all
//     others are not modified.
//   - removals: five pages are removed, and all are asked for again.
//
// After the first of them comes another, the search: the crawl is indexed, and pages are looked for by
// titles, words and phrases that are read from the files (search.go, corpus.go); ranks are
// computed from the files' links in another way (rank.go). Changes and removals are
// looked for too.
//
// After each, all is compared: page records with the files, every stored payload with its
// file, the server's log with what should have been asked for, the crawler's figures with
// what is there; and fsck must find nothing. The exit status is 0 only if all is right, 2
// if something is missing that the program needs.
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
	"syscall"
	"time"
)

// defaultDocs is where Debian's package linux-doc puts the kernel's documentation.
const defaultDocs = "/usr/share/doc/linux-doc/html"

func main() {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	release()
	var wrong wrongUse
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case errors.As(err, &wrong):
		fmt.Fprintln(os.Stderr, "docsite:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "docsite:", err)
		os.Exit(1)
	}
}

// wrongUse is an error that says what to do otherwise, or what to install.
type wrongUse string

func (w wrongUse) Error() string { return string(w) }

// errDiffers is how a run ends that found something wrong, and has said what.
var errDiffers = errors.New("the crawl is not what it should be")

// settings are what the flags say.
type settings struct {
	docs       string
	binary     string
	warcio     string
	partitions int
	maxTime    time.Duration
	keep       bool
	json       bool
	verbose    bool
	sample     int
	seed       uint64
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	fs := flag.NewFlagSet("docsite", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&s.docs, "docs", defaultDocs, "`folder` of HTML files with an index.html")
	fs.StringVar(&s.binary, "binary", filepath.Join("bin", "orbweaver"), "the orbweaver `program`")
	fs.StringVar(&s.warcio, "warcio", "", "a warcio `program`; if given, it checks the WARC files too")
	fs.IntVar(&s.partitions, "partitions", 0, "`number` of partitions to crawl with; 0 for the program's default")
	fs.DurationVar(&s.maxTime, "max-time", 10*time.Minute, "`time` after which it gives up")
	fs.BoolVar(&s.keep, "keep", false, "leave the temporary folder behind and say where it is")
	fs.BoolVar(&s.verbose, "v", false, "say what the search misses")
	fs.IntVar(&s.sample, "sample", 200, "look for so many `pages` of each language, drawn at random; 0 for all")
	fs.Uint64Var(&s.seed, "seed", 1, "`seed` of what is drawn")
	fs.BoolVar(&s.json, "json", false, "print one JSON object instead of the table")
	if err := fs.Parse(args); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			err = wrongUse(err.Error())
		}
		return s, err
	}
	switch {
	case fs.NArg() > 0:
		return s, wrongUse(fmt.Sprintf("unexpected argument %q", fs.Arg(0)))
	case s.partitions < 0:
		return s, wrongUse(fmt.Sprintf("-partitions is %d", s.partitions))
	}
	if info, err := os.Stat(filepath.Join(s.docs, "index.html")); err != nil || info.IsDir() {
		return s, wrongUse(fmt.Sprintf("%s has no index.html; give another folder, or on Debian and Ubuntu: apt-get install linux-doc", s.docs))
	}
	if _, err := os.Stat(s.binary); err != nil {
		return s, wrongUse(fmt.Sprintf("there is no %s; build it with 'make build'", s.binary))
	}
	var err error
	s.binary, err = filepath.Abs(s.binary)
	return s, err
}

// run makes all phases and prints the report. What is found goes to stderr as it is found.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	nginx, err := findNginx()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.maxTime, fmt.Errorf("it took longer than -max-time %s", s.maxTime))
	defer cancel()
	dir, err := os.MkdirTemp("", "orbweaver-docsite-")
	if err != nil {
		return err
	}
	defer func() {
		if s.keep {
			fmt.Fprintln(stderr, "kept:", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	r, err := crawlAndCheck(ctx, &s, nginx, dir, stderr)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return err
	}
	if s.json {
		err = r.writeJSON(stdout)
	} else {
		err = r.writeText(stdout)
	}
	if err == nil && !r.OK {
		err = errDiffers
	}
	return err
}

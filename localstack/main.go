// Localstack tests Orbweaver's whole AWS path on this machine, end to end:
//
//	go run ./localstack
//
// It fetches and starts emulators of AWS (package internal/emulators), puts a counting proxy in front of them
// (internal/wiretap), runs functions as Lambda does (internal/lambdalocal), and runs the steps of a scenario.
// The exit status is 0 only if every step succeeds, and 3 if this machine lacks a program that is needed.
//
//	-fetch  only fetch the emulators
//	-up     deploy, have the functions called, and print the environment that leads there,
//	        for use by hand
//	-bare   only start the emulators and print the environment that leads to them
//	-few    crawl few hosts with long delays too
//	-fast   the shortest scenario, with small webs and without pages of many megabytes
//	-only TEXT
//	        run only the steps whose names contain TEXT, and those that they need
//	-keep   leave the emulators running after the scenario, until interrupted
//	-v      show what the functions print
//	-json   write the summary to a file
//
// Emulators that the environment names on loopback (AWS_ENDPOINT_URL,
// AWS_ENDPOINT_URL_DYNAMODB) are used as they are, such as those of compose.yaml.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/orbweaver/orbweaver/internal/emulators"
)

// Exit statuses.
const (
	statusWrong   = 1 // a step failed
	statusUse     = 2
	statusMissing = 3 // a program must be installed first
)

func main() {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	release()
	os.Exit(status(err, os.Stderr))
}

// status prints an error and returns the exit status.
func status(err error, stderr io.Writer) int {
	var missing emulators.Missing
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp) || errors.Is(err, errUse):
		return statusUse // the flag package has printed the reason
	case errors.As(err, &missing):
		fmt.Fprintln(stderr, "localstack:", missing)
		return statusMissing
	}
	fmt.Fprintln(stderr, "localstack:", err)
	return statusWrong
}

var errUse = errors.New("wrong use")

// options holds the flags.
type options struct {
	fetch, up, bare, fast, few, keep, verbose bool
	json, only                                string
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	flags := flag.NewFlagSet("localstack", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.BoolVar(&o.fetch, "fetch", false, "only fetch the emulators")
	flags.BoolVar(&o.up, "up", false, "deploy for use by hand, and print the environment that leads there")
	flags.BoolVar(&o.bare, "bare", false, "only start the emulators, and print the environment that leads to them")
	flags.BoolVar(&o.fast, "fast", false, "the shortest scenario")
	flags.BoolVar(&o.few, "few", false, "crawl few hosts with long delays too, for two minutes")
	flags.StringVar(&o.only, "only", "", "run only the steps whose names contain this `text`, and those that they need")
	flags.BoolVar(&o.keep, "keep", false, "leave the emulators running until interrupted")
	flags.BoolVar(&o.verbose, "v", false, "show what the functions print")
	flags.StringVar(&o.json, "json", "", "write the summary to this `file`")
	if err := flags.Parse(args); err != nil {
		return errors.Join(errUse, err)
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "localstack: unknown argument %q; -h lists the flags\n", flags.Arg(0))
		return errUse
	}
	set := emulators.Running()
	if set == nil {
		kit, err := emulators.Fetch(ctx, stdout)
		if err != nil || o.fetch {
			return err
		}
		root, err := emulators.Root()
		if err != nil {
			return err
		}
		begin := time.Now()
		if set, err = kit.Start(ctx, filepath.Join(root, ".cache", "localstack", "logs")); err != nil {
			return err
		}
		defer set.Close()
		fmt.Fprintf(stdout, "emulators started in %.1f s\n", time.Since(begin).Seconds())
	}
	switch {
	case o.bare:
		return up(ctx, set, stdout)
	case o.up:
		return serve(ctx, o, set, stdout)
	}
	err := play(ctx, o, set, stdout)
	if o.keep && ctx.Err() == nil {
		if err != nil {
			fmt.Fprintln(stderr, "localstack:", err)
		}
		err = errors.Join(err, up(ctx, set, stdout))
	}
	return err
}

// serve deploys and drives the functions for use by hand, until it is interrupted.
func serve(ctx context.Context, o options, set *emulators.Set, stdout io.Writer) error {
	w, err := newWorld(o, set, stdout)
	if err != nil {
		return err
	}
	defer w.close()
	if _, err := build(ctx, w); err != nil {
		return err
	}
	w.deployed.name = "orbweaver"
	functions, err := w.create(ctx)
	if err != nil {
		return err
	}
	if err := w.drive(ctx, functions); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "# the functions run; what they print is in %s\n", w.dir)
	fmt.Fprintf(stdout, "# the search page is %s\n", w.searchURL)
	fmt.Fprintf(stdout, "export ORBWEAVER_PLATFORM='%s'\n", w.deployed.platform)
	err = up(ctx, set, stdout)
	w.finish()
	w.show()
	return err
}

// up prints the environment of the emulators and waits for an interrupt.
func up(ctx context.Context, set *emulators.Set, stdout io.Writer) error {
	env := set.Environment()
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(stdout, "export %s=%s\n", name, env[name])
	}
	fmt.Fprintln(stdout, "# they run until you press Ctrl-C; paste the lines above into another shell")
	<-ctx.Done()
	return nil
}

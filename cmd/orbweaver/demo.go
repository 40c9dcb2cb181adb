package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

// The demo retries soon and seldom, so that it takes seconds and gives up early on servers that never
// answer.
const (
	demoWait     = 200 * time.Millisecond // before a second attempt, and the unit of back-off
	demoAttempts = 2
)

func newDemo() *cobra.Command {
	var data string
	var quiet bool
	cmd := command("demo", noArguments, func(cmd *cobra.Command, _ []string) error { return runDemo(cmd, data, quiet) })
	cmd.Flags().StringVar(&data, "data", "", "folder to keep the crawl in; without it nothing is kept")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "write only the result")
	return cmd
}

func runDemo(cmd *cobra.Command, data string, quiet bool) (err error) {
	dir := data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "orbweaver-demo-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	t := &target{data: dir}
	switch used, err := t.used(); {
	case err != nil:
		return err
	case used:
		return usagef("the folder %s is not empty; the demo needs a new one", dir)
	}
	rep := newReporter(&reportFlags{quiet: quiet}, cmd.OutOrStdout(), cmd.ErrOrStderr())
	ctx, release := interruptible(cmd.Context(), rep)
	defer release()
	web, stop, err := serveWeb(simweb.Demo())
	if err != nil {
		return err
	}
	defer stop()
	r, err := demoRun(t, web, rep)
	if err != nil {
		return err
	}
	diff := ""
	sum, err := r.do(ctx, func(ctx context.Context, sum *summary) (err error) {
		if sum.Status == exitStopped {
			return nil
		}
		diff, err = r.compare(ctx, web)
		return errors.Join(err, r.conclude(ctx, sum))
	})
	if err != nil {
		return err
	}
	if data == "" {
		sum.Archive, sum.Index, sum.Resume = "", "", ""
	}
	rep.ended(sum)
	switch {
	case sum.Status == exitStopped:
		return fail(exitStopped, nil)
	case diff != "":
		return fmt.Errorf("the crawl differs from the ground truth:\n%s", diff)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "equal to the ground truth: %s\n", plural(len(demoTruth(web).Pages), "URL"))
	return err
}

// serveWeb serves a generated web until stop is called.
func serveWeb(cfg simweb.Config) (web *simweb.Web, stop func(), err error) {
	if web, err = simweb.New(cfg); err != nil {
		return nil, nil, err
	}
	srv, err := simweb.Serve(context.Background(), web)
	if err != nil {
		return nil, nil, fmt.Errorf("%w\nThe demo needs the loopback addresses 127.1.0.0/16, which some systems must configure first", err)
	}
	return srv.Web(), srv.Close, nil
}

func demoRun(t *target, web *simweb.Web, rep *reporter) (*run, error) {
	r := &run{
		target: t, connections: engine.DefaultConnections, reporter: rep,
		retry: polite.Retry{Wait: demoWait, Backoff: demoWait, Attempts: demoAttempts},
	}
	r.resume = func(c blobschema.Crawl) (blobschema.Crawl, error) {
		return c, errors.New("the demo does not resume a crawl")
	}
	urls, err := readURLs(web.Seeds(), "", "", nil, nil)
	r.seeds = crawl.Seeds(urls)
	r.fresh = blobschema.Crawl{
		Slots: partition.DefaultSlots, Partitions: 4, // so that there is mail to see
		Settings: blobschema.Settings{
			Scope: blobschema.ScopeAny, MaxDepth: -1, MaxBody: 16 << 20, UserAgent: defaultAgent, Timeout: 10 * time.Second,
			AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		},
	}
	return r, err
}

// demoTruth is the ground truth for a crawl with the attempts of the demo.
func demoTruth(web *simweb.Web) simweb.Truth { return web.Truth(simweb.Scope{Attempts: demoAttempts}) }

// compare describes how the crawl differs from the ground truth; "" if it does not.
func (r *run) compare(ctx context.Context, web *simweb.Web) (string, error) {
	got := map[string]simweb.Got{}
	for p, err := range r.view.Pages(ctx, view.EveryRecord) {
		if err != nil {
			return "", err
		}
		if !p.Robots {
			got[p.URL] = simweb.GotOf(p)
		}
	}
	return simweb.Diff(demoTruth(web), got), nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

// The demo retries soon and seldom, so that it takes seconds and gives up early on servers that never
// answer.
const (
	demoWait     = 200 * time.Millisecond // before a second attempt, and the unit of back-off
	demoAttempts = 2
	demoLines    = 20 // differences that are printed
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
	t := folderTarget(dir)
	switch used, err := folder(dir).used(t); {
	case err != nil:
		return err
	case used:
		return usagef("the folder %s is not empty; the demo needs a new one", dir)
	}
	rep := newReporter(&reportFlags{quiet: quiet}, cmd.OutOrStdout(), cmd.ErrOrStderr())
	ctx, release := interruptible(cmd.Context(), rep)
	defer release()
	web, err := serveDemo()
	if err != nil {
		return err
	}
	defer web.close()
	r, err := demoRun(t, web.seed, rep)
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
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "equal to the ground truth: %s\n", plural(len(web.truth()), "URL"))
	return err
}

func demoRun(t *target, seed string, rep *reporter) (*run, error) {
	r := &run{
		target: t, connections: engine.DefaultConnections, reporter: rep,
		retry: polite.Retry{Wait: demoWait, Backoff: demoWait, Attempts: demoAttempts},
	}
	r.resume = func(c blobschema.Crawl) (blobschema.Crawl, error) {
		return c, errors.New("the demo does not resume a crawl")
	}
	urls, err := readURLs([]string{seed}, "", "", nil, nil)
	r.seeds = crawl.Seeds(urls)
	r.fresh = blobschema.Crawl{
		Slots: partition.DefaultSlots, Partitions: 4, // so that there is mail to see
		Settings: blobschema.Settings{
			Scope: blobschema.ScopeAny, MaxDepth: -1, MaxBody: 16 << 20, UserAgent: service.DefaultAgent, Timeout: 10 * time.Second,
			AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		},
	}
	return r, err
}

// compare describes how the crawl differs from the ground truth; "" if it does not.
func (r *run) compare(ctx context.Context, web *demoWeb) (string, error) {
	var lines []string
	found := map[string]bool{}
	for p, err := range r.view.Pages(ctx, view.EveryRecord) {
		if err != nil {
			return "", err
		}
		if p.Robots {
			continue
		}
		found[p.URL] = true
		if d := web.pages[p.URL].differs(&p); d != "" {
			lines = append(lines, p.URL+": "+d)
		}
	}
	for url := range web.truth() {
		if !found[url] {
			lines = append(lines, url+": is missing")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines[:min(len(lines), demoLines)], "\n"), nil
}

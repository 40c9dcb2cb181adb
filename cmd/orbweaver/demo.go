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
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// How the demo asks: often enough to be had in seconds, few enough times that what
// never answers is given up soon.
const (
	demoWait     = 200 * time.Millisecond // before a second attempt, and the unit of back-off
	demoAttempts = 2
)

func newDemo() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Crawl a made-up web on this machine, and check the result",
		Long: `Demo makes up a small web of a dozen hosts, with redirects, robots.txt files, servers
that fail, lie and cut their answers, traps, and a host that is down; serves it on
loopback addresses; crawls it; and compares what was stored with what is known of it.
It takes some seconds, needs no network, and leaves nothing behind unless --data
names a folder to keep the crawl in.`,
		Example: `  orbweaver demo

  # keep it, and look at it
  orbweaver demo --data demo
  orbweaver export --data demo --format warc --out demo-warc`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd, &f) },
	}
	cmd.Flags().StringVar(&f.data, "data", "", "folder to keep the crawl in; without it nothing is kept")
	cmd.Flags().BoolVar(&f.quiet, "quiet", false, "say nothing but the result")
	return cmd
}

func runDemo(cmd *cobra.Command, f *runFlags) (err error) {
	dir := f.data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "orbweaver-demo-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	switch what, err := lookAt(dir); {
	case err != nil:
		return err
	case what != folderEmpty:
		return usagef("the folder %s is not empty; the demo begins anew each time, so give a new one", dir)
	}
	rep := newReporter(f, cmd.OutOrStdout(), cmd.ErrOrStderr())
	ctx, release := interruptible(cmd.Context(), rep)
	defer release()
	web, stop, err := serveWeb(simweb.Demo())
	if err != nil {
		return err
	}
	defer stop()
	s, err := demoSession(dir, web, rep)
	if err != nil {
		return err
	}
	diff := ""
	sum, err := s.run(ctx, func(ctx context.Context, sum *summary) (err error) {
		if sum.Status == exitStopped {
			return nil
		}
		diff, err = s.compare(ctx, web)
		return errors.Join(err, s.conclude(ctx, sum))
	})
	if err != nil {
		return err
	}
	if f.data == "" {
		sum.Archive, sum.Index, sum.Resume = "", "", ""
	}
	rep.ended(sum)
	switch {
	case sum.Status == exitStopped:
		return stopped(exitStopped)
	case diff != "":
		return fmt.Errorf("the crawl differs from the ground truth:\n%s", diff)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "equal to the ground truth: %s\n", plural(int64(len(demoTruth(web).Pages)), "URL"))
	return err
}

// serveWeb serves a made-up web until stop is called.
func serveWeb(cfg simweb.Config) (web *simweb.Web, stop func(), err error) {
	if web, err = simweb.New(cfg); err != nil {
		return nil, nil, err
	}
	srv, err := simweb.Serve(context.Background(), web, simweb.ListenOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("%w\nThe demo needs the loopback addresses 127.1.0.0/16, which some systems must be told of first", err)
	}
	return srv.Web(), srv.Close, nil
}

func demoSession(dir string, web *simweb.Web, rep reporter) (*session, error) {
	s := &session{
		dir: dir, connections: 256, reporter: rep,
		retry: polite.Retry{Wait: demoWait, Backoff: demoWait, Attempts: demoAttempts},
		resume: func(c blobschema.Crawl) (blobschema.Crawl, error) {
			return c, errors.New("the demo does not go on with a crawl")
		},
	}
	for _, raw := range web.Seeds() {
		u, err := weburl.Parse(raw)
		if err != nil {
			return nil, err
		}
		s.seeds = append(s.seeds, crawl.Seed{URL: u})
	}
	var err error
	s.fresh, err = identify(blobschema.Crawl{
		Slots: partition.DefaultSlots, Partitions: 4, // so that there is mail to see
		Settings: blobschema.Settings{
			Scope: blobschema.ScopeAny, MaxDepth: -1, MaxBody: 16 << 20, UserAgent: defaultAgent, Timeout: 10 * time.Second,
			AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		},
	})
	return s, err
}

// demoTruth is what a crawl that tries as often as the demo's must find.
func demoTruth(web *simweb.Web) simweb.Truth { return web.Truth(simweb.Scope{Attempts: demoAttempts}) }

// compare says in words where the crawl differs from the truth; "" if nowhere.
func (s *session) compare(ctx context.Context, web *simweb.Web) (string, error) {
	got := map[string]simweb.Got{}
	for p, err := range s.view.Pages(ctx, view.EveryRecord) {
		if err != nil {
			return "", err
		}
		if !p.Robots {
			got[p.URL] = simweb.GotOf(p)
		}
	}
	return simweb.Diff(demoTruth(web), got), nil
}

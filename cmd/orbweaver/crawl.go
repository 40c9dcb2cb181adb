package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

func newCrawl() *cobra.Command {
	var f crawlFlags
	cmd := &cobra.Command{
		Use:   "crawl [flags] [URL...]",
		Short: "Crawl the web from some URLs, or go on with a crawl",
		Long: `Crawl follows links from the given URLs, asks each host at most once a second, its
robots.txt apart (or slower, if that says so), and keeps the answers in WARC files.

If the folder (--data) holds a crawl already, it goes on with that one, adds the URLs that
are new, and tries seeds again that could not be fetched. Stop it with Ctrl-C at any time: nothing that was answered is lost
or asked for again. A second Ctrl-C quits at once, which loses some seconds of work.

In a cloud (--platform) it begins the crawl, or goes on with it, and shows how far it is:
functions crawl, and go on doing so when this command ends. Ctrl-C leaves the crawl
running, --detach does not even look, 'orbweaver stop' ends it.

A crawl that was stopped or paused by an order is resumed. With --new another crawl
takes the place of the last one, where that is finished, at its limit or stopped.

A crawl of several topics is described by a crawl file, --file: each topic has seeds, a
scope, a priority and a share. All flags of the two lists below may stand in it too
(--host-rule as 'hosts'); those given beside it win. It can be changed, and given again:
what may change does, and what the crawl keeps is refused with its line. 'orbweaver help
crawl-file' prints one to begin with, 'orbweaver topics' shows how far each topic is.

Fixed when a crawl begins:
  what is followed   --scope, --include, --exclude, --max-depth, --sitemaps, --srcset
  what is kept       --max-body
  in which order     --policy: breadth-first; performance: most pages per second of
                     connection time; quality: the best pages; capability: most quality
                     per second. --quality says what is good
  at which pace      --partition-by: what --delay is between two requests to
  how it is divided  --slots; --partitions begins it with so many, 'orbweaver partitions'
                     changes that, while it runs too

Kept, but changed by giving them again:
  --max-pages, --delay, --timeout, --user-agent, --compress, --elastic
  per host           --host-rule: what its operator allows, several connections or another
                     delay; --queues: how its URLs are dealt to these
  once more          --recrawl: what is likely to have changed, so many pages an hour
  searchable         --index: 'orbweaver search' finds what is crawled; ranks are computed, and
                     are what --quality host-rank goes by where there is no --host-ranks
  inside networks    --allow-net, of a crawl in a folder: each is added to those kept, none drops them
  against traps      --max-host-urls, --max-domain-urls, --max-path-segments,
                     --max-repeats: what is beyond is counted, not asked for

Of one run in a folder only: --connections, --max-time, --costs. In a cloud the first two and
--allow-net are refused, --partitions is that of the deployment, unless others are asked for, and
calls and cost in the summary are those of the whole crawl.

Progress goes to standard error, the summary to standard output; with --json both go there.`,
		Example: `  # one site, and what it redirects to
  orbweaver crawl https://example.org/

  # stop it with Ctrl-C, and go on with it
  orbweaver crawl

  # a thousand pages of two domains, pictures left out
  orbweaver crawl --data two --scope domain --max-pages 1000 \
      --exclude '\.(png|jpe?g|gif)$' https://example.org/ https://example.net/

  # the limit was too low: go on with a higher one
  orbweaver crawl --data two --max-pages 5000

  # many seeds, from a file or a pipe; for ten minutes
  orbweaver crawl --data many --seeds urls.txt --max-time 10m
  grep -h ^http urls/* | orbweaver crawl --data many --seeds -

  # two topics, from a file
  orbweaver help crawl-file > crawl.yaml
  orbweaver crawl --data topics --file crawl.yaml

  # make it searchable as it goes
  orbweaver crawl --index https://example.org/
  orbweaver search "some words"

  # a server on this machine
  orbweaver crawl --data mine --allow-net 127.0.0.1 --delay 0s http://127.0.0.1:8080/

  # in a cloud: the profile is what 'make deploy' wrote
  orbweaver crawl --platform aws.json --max-pages 100000 --seeds urls.txt
  export ORBWEAVER_PLATFORM=aws.json
  orbweaver crawl --detach --new https://example.org/
  orbweaver status

  # for a program: one JSON object a line
  orbweaver crawl --json https://example.org/ | jq 'select(.event == "progress").pages'`,
		RunE: func(cmd *cobra.Command, args []string) error { return runCrawl(cmd, &f, args) },
	}
	f.register(cmd)
	return cmd
}

func runCrawl(cmd *cobra.Command, f *crawlFlags, args []string) (err error) {
	rep := newReporter(&f.runFlags, cmd.OutOrStdout(), cmd.ErrOrStderr())
	defer func() { tellFailure(rep, err) }()
	if err := f.readFile(); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	if err := f.refuseOthers(); err != nil {
		return err
	}
	var skip io.Writer
	if f.skipBad {
		skip = rep
	}
	urls, err := readURLs(args, "seeds", f.seeds, cmd.InOrStdin(), skip)
	if err != nil {
		return err
	}
	if err := f.readRanks(); err != nil {
		return err
	}
	seeds := f.allSeeds(crawl.Seeds(urls))
	if f.another && len(seeds) == 0 {
		return usagef("--new begins another crawl; give it a URL to begin with")
	}
	if f.inCloud() {
		return f.crawlInCloud(cmd.Context(), rep, seeds)
	}
	if err := checkFolder(f.data, len(seeds)); err != nil {
		return err
	}
	if what, err := lookAt(f.data); err == nil && (f.another || what == folderEmpty) {
		if err := f.checkQuality(); err != nil {
			return err
		}
	}
	s := &session{
		dir: f.data, seeds: seeds, another: f.another, resume: f.resume, connections: f.connections,
		maxTime: f.maxTime, retry: polite.Retry{Wait: 5 * time.Second}, perRun: f.perRun(), reporter: rep,
	}
	if s.fresh, err = identify(f.fresh()); err != nil {
		return err
	}
	s.ranks = f.ranks
	ctx, release := interruptible(cmd.Context(), rep)
	defer release()
	sum, err := s.run(ctx, s.conclude)
	if err != nil {
		return err
	}
	sum.costs = f.costs
	rep.ended(sum)
	if sum.Status == exitNothing {
		return fail(exitNothing, errors.New(seedsFailed(sum.Seeds, s.crawl.Settings.AllowNet)))
	}
	return stopped(sum.Status)
}

// readRanks reads the file of --host-ranks.
func (f *crawlFlags) readRanks() error {
	if f.hostRanks == "" {
		return nil
	}
	if f.set.Changed("quality") && f.quality != "host-rank" {
		return usagef("--host-ranks contradicts --quality %s", &f.quality)
	}
	data, err := os.ReadFile(f.hostRanks)
	if err != nil {
		return usagef("--host-ranks: %v", err)
	}
	if _, err := frontier.ParseHostRanks(data); err != nil {
		return usagef("--host-ranks %s: %v", f.hostRanks, err)
	}
	f.ranks, f.quality = data, "host-rank"
	return nil
}

// checkQuality refuses for a new crawl what makes no difference to it: a quality, and a
// policy that goes by none.
func (f *crawlFlags) checkQuality() error {
	p, err := frontier.PolicyByName(string(f.policy), string(f.quality))
	if _, rated := p.(frontier.Rated); err != nil || rated || f.quality == defaultQuality {
		return err
	}
	flag := "--quality " + f.quality.String()
	if f.hostRanks != "" {
		flag = "--host-ranks"
	}
	var rating []string
	for _, name := range frontier.PolicyNames() {
		if p, err := frontier.PolicyByName(name, ""); err == nil {
			if _, ok := p.(frontier.Rated); ok {
				rating = append(rating, name)
			}
		}
	}
	return usagef("%s makes no difference to --policy %s: only the policies %s go by it.\nGive --policy %s too, or leave it out",
		flag, &f.policy, strings.Join(rating, " and "), strings.Join(rating, " or --policy "))
}

// tellFailure reports an error, unless all has been said.
func tellFailure(rep reporter, err error) {
	if f := (*failure)(nil); err != nil && !(errors.As(err, &f) && f.err == nil) {
		rep.failed(err)
	}
}

// identify gives a new crawl its name and its key, which nobody can guess: a site must
// not be able to choose URLs that collide with another's.
func identify(c blobschema.Crawl) (blobschema.Crawl, error) {
	now := time.Now()
	c.ID, c.Created, c.HashKey = crawl.CrawlID(now), now.UTC().Truncate(time.Second), make([]byte, 16)
	_, err := rand.Read(c.HashKey)
	return c, err
}

// beginAnother begins a crawl in place of the last one. Some seconds help where the id,
// which is made of the second, is taken, and where a step is just ending.
func beginAnother(ctx context.Context, e *jobs.Jobs, want blobschema.Crawl, seeds []crawl.Seed) (blobschema.Crawl, error) {
	for try := 0; ; try++ {
		c, err := e.BeginAnother(ctx, want, seeds)
		if !errors.Is(err, actor.ErrConflict) && !errors.Is(err, crawl.ErrAtWork) || try == 5 || !wait(ctx, time.Second) {
			return c, err
		}
		if want, err = identify(want); err != nil {
			return c, err
		}
	}
}

// interruptible returns a context that ends with the first signal to stop; the second
// ends the process at once. release takes the signals back.
func interruptible(parent context.Context, w io.Writer) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup wants it ignored
		signals = append(signals, syscall.SIGHUP)
	}
	got, done, ended := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(got, signals...)
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-got:
			}
			if n > 0 {
				os.Exit(int(exitStopped)) // what is not committed will be asked for again
			}
			fmt.Fprintln(w, "stopping; once more quits at once")
			cancel()
		}
	}()
	return ctx, func() {
		signal.Stop(got)
		close(done)
		<-ended
		cancel()
	}
}

// conclude does what the end of a crawl asks for while its folder is still open.
func (s *session) conclude(ctx context.Context, sum *summary) error {
	if sum.Status == exitNothing {
		var err error
		if sum.Seeds, err = seedOutcomes(ctx, s.view); err != nil {
			return err
		}
	}
	if s.crawl.Settings.Index && !sum.idle {
		now, err := s.view.Status(context.WithoutCancel(ctx)) // a signal is no reason to say less
		if err != nil {
			return err
		}
		sum.Search = newIndexReport(&now)
	}
	return s.listCaptures(ctx, sum)
}

// listCaptures makes the capture index, at the end of a run that did all it could.
func (s *session) listCaptures(ctx context.Context, sum *summary) error {
	if sum.End == service.Stopped || sum.End == service.Halted || sum.idle {
		return nil
	}
	switch err := view.WriteCDXJ(ctx, s.platform, s.crawl.ID); {
	case ctx.Err() != nil:
		return nil // somebody has no time for it; export makes another
	case err != nil:
		return fmt.Errorf("the crawl is done, but its capture index is not: %w", err)
	}
	sum.Index = objectFile(s.dir, naming.CDXJIndex(s.crawl.ID))
	return nil
}

// seedOutcomes says what came of each seed.
func seedOutcomes(ctx context.Context, v *view.View) ([]seedOutcome, error) {
	var out []seedOutcome
	for p, err := range v.Pages(ctx, view.LatestRecord) {
		if err != nil {
			return nil, err
		}
		if p.Depth == 0 && !p.Robots && len(out) < maxSeedsTold {
			out = append(out, seedOutcome{URL: p.URL, Outcome: p.Outcome, Status: p.Status, Detail: p.Detail})
		}
	}
	return out, nil
}

const maxSeedsTold = 20

// seedsFailed says why a crawl found nothing.
func seedsFailed(seeds []seedOutcome, allow []netip.Prefix) string {
	var b strings.Builder
	b.WriteString("nothing could be fetched:")
	for i := range seeds {
		b.WriteString("\n  " + seeds[i].String())
		if h := hint(&seeds[i], allow); h != "" {
			b.WriteString("\n    " + h)
		}
	}
	if len(seeds) == maxSeedsTold {
		b.WriteString("\n  ... and perhaps more")
	}
	return b.String()
}

// hint says what may help against an outcome.
func hint(s *seedOutcome, allow []netip.Prefix) string {
	if addr, ok := addressOf(s.URL); ok && !fetch.Allowed(addr, allow) {
		return fmt.Sprintf("the address is not public; if you mean it, allow it with --allow-net %s", addr)
	}
	switch s.Outcome {
	case blobschema.OutcomeForbidden:
		return "the address is not public; if you mean it, allow its network with --allow-net"
	case blobschema.OutcomeDNS:
		return "check the name, and this machine's connection"
	case blobschema.OutcomeConnect, blobschema.OutcomeTimeout:
		return "check the address and the port, and that the server is up"
	case blobschema.OutcomeTLS:
		return "check the server's certificate, and the port"
	case blobschema.OutcomeScope:
		return "to widen the scope, give it to 'orbweaver crawl'"
	case blobschema.OutcomeRobots:
		return "the site does not want to be crawled"
	case blobschema.OutcomeRobotsGone:
		return "its robots.txt could not be fetched, and a site must not be crawled before it can: check that the server is up"
	}
	return ""
}

// addressOf is the IP address that a URL names its host by, if it does.
func addressOf(raw string) (netip.Addr, bool) {
	u, err := weburl.Parse(raw)
	if err != nil || !u.Host().IsIP() {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(u.Host().Name())
	return addr, err == nil
}

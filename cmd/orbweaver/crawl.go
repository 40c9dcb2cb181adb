package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/crawlfile"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

func newCrawl() *cobra.Command {
	var f crawlFlags
	cmd := reporting("crawl", nil, &f.reportFlags, f.run)
	f.register(cmd)
	return cmd
}

func (f *crawlFlags) run(cmd *cobra.Command, rep *reporter, args []string) (err error) {
	if err := f.read(); err != nil {
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
	fresh, seeds := f.describe(crawl.Seeds(urls))
	if f.another && len(seeds) == 0 {
		return usagef("--new creates another crawl; give a URL to start from")
	}
	used, err := f.location.check(&f.target, len(seeds))
	if err == nil && !used {
		err = f.checkQuality() // before the folder is made
	}
	if err != nil {
		return err
	}
	r := &run{
		target: &f.target, reporter: rep, fresh: fresh, seeds: seeds, ranks: f.ranks, another: f.another, resume: f.resume, prepare: f.prepare,
		inbound: f.inbound, detach: f.detach, connections: f.connections, maxTime: f.maxTime, every: f.every, retry: polite.Retry{Wait: 5 * time.Second},
	}
	ctx, release := f.signals(cmd.Context(), rep)
	defer release()
	sum, err := r.do(ctx, r.conclude)
	if err != nil || sum == nil {
		return err
	}
	return conclude(rep, sum, seedsFailed(sum.Seeds, r.earlier.Crawl.Settings.AllowNet))
}

// prepare adjusts the record of a new crawl to a deployment, and refuses a crawl that the deployment cannot have.
func (f *crawlFlags) prepare(o *opened, fresh *blobschema.Crawl) error {
	most := o.partitions()
	if o.platform != nil && f.given["partitions"] == nil && fresh.Settings.MostPartitions == 0 {
		if first := cmp.Or(o.platform.BeginWith, most); first > 0 {
			fresh.Partitions = min(first, fresh.Slots)
		}
	}
	if most > 0 {
		for name, n := range map[string]int{"elastic": fresh.Settings.MostPartitions, "partitions": fresh.Partitions} {
			if n > most {
				return usagef("--%s %s is too many: %s was deployed for %s (make deploy, variable mailboxes)",
					name, f.set.Lookup(name).Value, &f.target, plural(most, "partition"))
			}
		}
	}
	err := f.checkQuality()
	if err == nil || f.another {
		return err
	}
	if _, none := o.engine.Open(); errors.Is(none, crawl.ErrNoCrawl) {
		return err
	}
	return nil
}

// conclude reports a summary and returns the error that the command ends with. The text nothing is the
// error of a crawl that fetched nothing.
func conclude(rep *reporter, sum *summary, nothing string) error {
	rep.ended(sum)
	switch sum.Status {
	case exitOK:
		return nil
	case exitNothing:
		return fail(exitNothing, errors.New(nothing))
	}
	return fail(sum.Status, nil)
}

// checkQuality refuses a quality for a new crawl whose policy does not use it.
func (f *crawlFlags) checkQuality() error {
	set := &f.record.Settings
	p, err := schedule.PolicyByName(set.Policy, set.Quality)
	if _, rated := p.(schedule.Rated); err != nil || rated || set.Quality == crawlfile.Find("quality").Default {
		return err
	}
	flag := "--quality " + set.Quality
	if f.hostRanks != "" {
		flag = "--host-ranks"
	}
	return usagef("%s has no effect with --policy %s: only the policies quality and capability use it.\n"+
		"Give --policy quality or --policy capability too, or leave it out", flag, set.Policy)
}

// identify gives a new crawl its id and a random hash key, so that no site can choose URLs that collide
// with those of another site.
func identify(c blobschema.Crawl) (blobschema.Crawl, error) {
	now := time.Now()
	c.ID, c.Created, c.HashKey = crawl.CrawlID(now), now.UTC().Truncate(time.Second), make([]byte, 16)
	_, err := rand.Read(c.HashKey)
	return c, err
}

// urlOutcome is the outcome of a URL.
type urlOutcome struct {
	URL     string             `json:"url"`
	Outcome blobschema.Outcome `json:"outcome,omitzero"` // OutcomeNone without a record
	Status  uint16             `json:"status,omitempty"`
	Detail  string             `json:"detail,omitempty"`
}

func outcomeOf(p *blobschema.Page) urlOutcome {
	return urlOutcome{p.URL, p.Outcome, p.Status, p.Detail}
}

func (s *urlOutcome) String() string {
	t := s.URL + ": " + s.Outcome.String()
	if s.Status != 0 {
		t += fmt.Sprintf(" %d", s.Status)
	}
	if s.Detail != "" {
		t += " (" + s.Detail + ")"
	}
	return t
}

const maxSeedsTold = 20

// seedOutcomes returns the outcomes of some seeds.
func seedOutcomes(ctx context.Context, v *view.View) (out []urlOutcome, err error) {
	for p, err := range v.Pages(ctx, view.LatestRecord) {
		if err != nil {
			return nil, err
		}
		if p.Depth == 0 && !p.Robots && len(out) < maxSeedsTold {
			out = append(out, outcomeOf(&p))
		}
	}
	return out, nil
}

// seedsFailed says why a crawl fetched nothing.
func seedsFailed(seeds []urlOutcome, allow []netip.Prefix) string {
	var b strings.Builder
	b.WriteString("nothing could be fetched:")
	for i := range seeds {
		b.WriteString("\n  " + seeds[i].String())
		if h := seeds[i].hint(allow); h != "" {
			b.WriteString("\n    " + h)
		}
	}
	if len(seeds) == maxSeedsTold {
		b.WriteString("\n  ... and perhaps more")
	}
	return b.String()
}

// hints are suggestions by outcome.
var hints = map[blobschema.Outcome]string{
	blobschema.OutcomeForbidden:  "the address is not public; if you mean it, allow its network with --allow-net",
	blobschema.OutcomeDNS:        "check the name, and this machine's connection",
	blobschema.OutcomeConnect:    "check the address and the port, and that the server is up",
	blobschema.OutcomeTimeout:    "check the address and the port, and that the server is up",
	blobschema.OutcomeTLS:        "check the server's certificate, and the port",
	blobschema.OutcomeScope:      "to widen the scope, give it to 'orbweaver crawl'",
	blobschema.OutcomeRobots:     "the site does not want to be crawled",
	blobschema.OutcomeRobotsGone: "its robots.txt could not be fetched, and no page may be fetched before it: check that the server is up",
}

// hint returns a suggestion for the outcome of a URL, or "".
func (s *urlOutcome) hint(allow []netip.Prefix) string {
	if u, err := weburl.Parse(s.URL); err == nil && u.Host().IsIP() {
		if addr, err := netip.ParseAddr(u.Host().Name()); err == nil && !fetch.Allowed(addr, allow) {
			return fmt.Sprintf("the address is not public; if you mean it, allow it with --allow-net %s", addr)
		}
	}
	return hints[s.Outcome]
}

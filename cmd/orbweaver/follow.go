package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/view"
)

// A command does little for a crawl in a deployment: it creates the crawl, runs the coordinator once
// so that work starts at once, and follows. Functions do everything else.

// crawlInCloud is the crawl command for a deployment.
func (f *crawlFlags) crawlInCloud(ctx context.Context, rep *reporter, seeds []crawl.Seed) error {
	ctx, release := following(ctx)
	defer release()
	return f.enter(ctx, func(o *opened) error {
		b, err := f.beginInCloud(ctx, o, seeds)
		if err != nil {
			return err
		}
		rep.begun("started", b)
		if f.detach {
			rep.told("left", "departure", o.departure(b.Pages))
			return nil
		}
		w := follower{opened: o, every: f.every, reporter: rep}
		end, s, err := w.follow(ctx)
		if err != nil {
			return err
		}
		if end == service.Stopped {
			rep.told("left", "departure", o.departure(s.Totals.Pages))
			return nil
		}
		sum, err := w.summarize(ctx, end, s)
		if err != nil {
			return err
		}
		return conclude(rep, sum, seedsFailed(sum.Seeds, nil))
	})
}

// beginInCloud creates a crawl or resumes the present one, and starts work on it.
func (f *crawlFlags) beginInCloud(ctx context.Context, o *opened, seeds []crawl.Seed) (*beginning, error) {
	if most := o.partitions(); most > 0 {
		if f.given["partitions"] == nil && f.record.Settings.MostPartitions == 0 {
			f.record.Partitions = min(cmp.Or(o.platform.BeginWith, most), f.record.Slots)
		}
		for name, n := range map[string]int{"elastic": f.record.Settings.MostPartitions, "partitions": f.record.Partitions} {
			if n > most {
				return nil, usagef("--%s %s is too many: %s was deployed for %s (make deploy, variable mailboxes)",
					name, f.set.Lookup(name).Value, &f.target, plural(most, "partition"))
			}
		}
	}
	if err := f.checkQuality(); err != nil {
		if _, none := o.engine.Open(); f.another || errors.Is(none, crawl.ErrNoCrawl) {
			return nil, err
		}
	}
	fresh, err := identify(f.fresh())
	if err != nil {
		return nil, err
	}
	b, err := o.begin(ctx, &start{fresh: fresh, seeds: seeds, ranks: f.ranks, another: f.another, resume: f.resume}, nil)
	if err != nil {
		return nil, err
	}
	return b.work(ctx, cloudSeedRecords)
}

// departure describes a crawl that the command leaves running.
func (o *opened) departure(pages int64) *departure {
	return &departure{where: o.where(o.view.ID()), Pages: pages, Progress: o.command("status")}
}

// follower follows a crawl in a deployment until it ends.
type follower struct {
	*opened
	every    time.Duration
	reporter *reporter

	began  time.Time
	before blobschema.Totals
	meter  *meter
}

// maxPollsFailed is how many polls in a row may fail, because networks do.
const maxPollsFailed = 5

// poll calls read periodically until it returns true, fails too often, or ctx ends. It returns the error of
// a poll that returns true, and retries after other errors.
func poll(ctx context.Context, w io.Writer, every time.Duration, look func() (done bool, err error)) error {
	for failed := 0; ; {
		done, err := look()
		switch {
		case done:
			return err
		case ctx.Err() != nil:
		case err != nil && failed < maxPollsFailed:
			failed++
			warn(w, "cannot look at the crawl: %v; trying again", err)
		case err != nil:
			return err
		default:
			failed = 0
		}
		if !wait(ctx, every) {
			return nil
		}
	}
}

// follow polls until the crawl has ended: Finished, Limited or Halted. Stopped means that the context has
// ended and the crawl continues. Two polls must see the same end, because heads are not read at one moment.
func (w *follower) follow(ctx context.Context) (end service.End, last *view.Status, err error) {
	last = &view.Status{}
	seen := uint64(0) // commits at the last poll, if the crawl seemed to have ended
	err = poll(ctx, w.reporter, w.every, func() (bool, error) {
		now, err := w.view.Status(ctx)
		if err != nil {
			return false, err
		}
		last = &now
		f := w.figures(&now)
		w.reporter.progress(&f)
		commits := uint64(1)
		for i := range now.Heads {
			commits += now.Heads[i].Seq
		}
		end = map[view.State]service.End{view.Finished: service.Finished, view.Limited: service.Limited, view.Stopped: service.Halted}[now.State]
		if end == "" {
			seen = 0
			return false, nil
		}
		sure := seen == commits
		seen = commits
		return sure, nil
	})
	if err == nil && ctx.Err() != nil {
		end = service.Stopped
	}
	return end, last, err
}

func (w *follower) figures(s *view.Status) figures {
	now := time.Now()
	if w.meter == nil {
		w.began, w.before = now, s.Totals
		w.meter = newMeter(now, 0, s.Totals)
		w.meter.memory = cloudRateMemory
	}
	f := w.meter.read(now, &service.Snapshot{Crawl: s.Crawl, Progress: crawl.Progress{Totals: s.Totals}})
	f.Title, f.AtWork, f.Paused = "orbweaver "+w.view.ID(), &s.Leased, s.Desired.Pause
	if left := s.Due.Sub(now); s.Leased == 0 && left > quiet {
		f.Waiting = "waiting " + span(left.Seconds()) + ": no host may be requested sooner"
	}
	return f
}

// summarize reports the end of the crawl and its cost.
func (w *follower) summarize(ctx context.Context, end service.End, s *view.Status) (*summary, error) {
	sum, err := w.summary(end, s)
	if err != nil {
		return nil, err
	}
	sum.measure(&w.before, time.Since(w.began))
	sum.conclude(s.Crawl.Settings.MaxPages)
	if sum.Status == exitNothing {
		sum.Seeds, err = seedOutcomes(ctx, w.view)
	}
	return sum, err
}

// summary is the summary of a crawl in a deployment.
func (o *opened) summary(end service.End, s *view.Status) (*summary, error) {
	sum := &summary{where: o.where(o.view.ID()), End: end, Totals: s.Totals, Search: newIndexReport(s)}
	if s.Totals.Stored > 0 {
		sum.Archive = o.String() + ", objects " + naming.WARCPrefix(o.view.ID())
	}
	return sum, sum.price(s.Calls, 0)
}

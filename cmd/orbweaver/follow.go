package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/view"
)

// What a command does in a cloud is little: it begins the crawl, runs one tick so that
// work starts at once, and looks. All else is done by functions.

// following returns a context that ends with the first signal to stop, which is no reason
// for the crawl to end.
func following(parent context.Context) (ctx context.Context, release func()) {
	return signal.NotifyContext(parent, syscall.SIGINT, syscall.SIGTERM)
}

// crawlInCloud is the crawl command on a platform in a cloud.
func (f *crawlFlags) crawlInCloud(ctx context.Context, rep reporter, seeds []crawl.Seed) error {
	ctx, release := following(ctx)
	defer release()
	return f.enter(ctx, func(v *visit) error {
		b, err := f.begin(ctx, v, seeds)
		if err != nil {
			return err
		}
		rep.started(b)
		if f.detach {
			rep.told(v.departure(b.Pages))
			return nil
		}
		w := follower{visit: v, every: f.every, reporter: rep}
		end, s, err := w.follow(ctx)
		if err != nil {
			return err
		}
		if end == engine.Stopped {
			rep.told(v.departure(s.Totals.Pages))
			return nil
		}
		sum, err := w.summarize(ctx, end, s)
		if err != nil {
			return err
		}
		rep.ended(sum)
		if sum.Status == exitNothing {
			return fail(exitNothing, errors.New(seedsFailed(sum.Seeds, nil)))
		}
		return stopped(sum.Status)
	})
}

// begin begins a crawl or goes on with the one there is, and starts work on it.
func (f *crawlFlags) begin(ctx context.Context, v *visit, seeds []crawl.Seed) (*beginning, error) {
	if most := v.platform.Partitions; most > 0 {
		if !f.set.Changed("partitions") && f.elastic.most == 0 {
			f.partitions = min(cmp.Or(v.platform.BeginWith, most), f.slots)
		}
		if f.elastic.most > most {
			return nil, usagef("--elastic %s is too many: %s was deployed with %s (make deploy, variable mailboxes)",
				&f.elastic, f.place.String(), mailboxes(most))
		}
		if f.partitions > most {
			return nil, usagef("--partitions %d is too many: %s was deployed with %s (make deploy, variable mailboxes)",
				f.partitions, f.place.String(), mailboxes(most))
		}
	}
	if err := f.checkQuality(); err != nil {
		if _, none := v.engine.Open(); f.another || errors.Is(none, crawl.ErrNoCrawl) {
			return nil, err
		}
	}
	want, err := identify(f.fresh())
	if err != nil {
		return nil, err
	}
	if err := v.engine.PutRanks(ctx, &want, f.ranks); err != nil {
		return nil, err
	}
	b := &beginning{Cloud: f.cloud}
	var c blobschema.Crawl
	if f.another {
		b.Seeds = len(seeds)
		c, err = beginAnother(ctx, v.engine, want, seeds)
	} else {
		var created bool
		c, created, b.Seeds, err = v.engine.Begin(want, seeds, func(c *blobschema.Crawl) error {
			resumed, err := f.resume(*c)
			if err == nil {
				*c = resumed
			}
			return err
		})
		b.Resumed = !created
	}
	if err != nil {
		return nil, err
	}
	b.Crawl, b.Set = c.ID, c.Settings
	if err := v.see(ctx); err != nil {
		return nil, err
	}
	if b.Resumed {
		failed, err := v.view.FailedSeeds(ctx, cloudSeedRecords)
		if err != nil {
			return nil, err
		}
		if _, _, b.Retried, err = v.engine.Begin(blobschema.Crawl{}, failed, nil); err != nil {
			return nil, err
		}
	}
	s, err := v.view.Status(ctx)
	if err != nil {
		return nil, err
	}
	b.Pages = s.Totals.Pages
	if b.Resumed && (s.Wish.Stop || s.Wish.Pause) {
		if b.Ordered, err = v.engine.Command(crawl.OrderResume); err != nil {
			return nil, err
		}
	}
	_, err = v.engine.Tick()
	return b, err
}

func mailboxes(n int) string {
	if n == 1 {
		return "1 mailbox"
	}
	return count(int64(n)) + " mailboxes"
}

// departure tells of a crawl that is left to itself.
func (v *visit) departure(pages int64) *departure {
	return &departure{Crawl: v.view.ID(), Cloud: v.place.cloud, Pages: pages, Look: v.place.command("status")}
}

// follower looks at a crawl in a cloud until it ends.
type follower struct {
	*visit
	every    time.Duration
	reporter reporter

	began  time.Time
	before blobschema.Totals
	meter  *meter
}

// maxLooksFailed is how many looks in a row may fail: networks do.
const maxLooksFailed = 5

// follow looks until the crawl has ended: Finished, Limited or Halted. Stopped says that
// the context has ended and the crawl goes on. An end is one that two looks have seen: the
// heads are not read at one moment.
func (w *follower) follow(ctx context.Context) (end engine.End, s *view.Status, err error) {
	var last, seen *view.Status
	for failed := 0; ; {
		now, err := w.view.Status(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil && failed < maxLooksFailed:
			failed++
			warn(w.reporter, "cannot look at the crawl: %v; trying again", err)
		case err != nil:
			return "", nil, err
		default:
			failed, last = 0, &now
			w.tell(&now)
			if end := endOf(&now); end == "" {
				seen = nil
			} else if seen != nil && commits(seen) == commits(&now) {
				return end, &now, nil
			} else {
				seen = &now
			}
		}
		if !wait(ctx, w.every) {
			if last == nil {
				last = &view.Status{}
			}
			return engine.Stopped, last, nil
		}
	}
}

// wait waits, and reports whether ctx has not ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// endOf is how a crawl in a cloud has ended; "" if it has not.
func endOf(s *view.Status) engine.End {
	switch s.State {
	case view.Finished:
		return engine.Finished
	case view.Limited:
		return engine.Limited
	case view.Stopped:
		return engine.Halted
	}
	return ""
}

// commits counts the commits that heads name.
func commits(s *view.Status) (n uint64) {
	for i := range s.Heads {
		n += s.Heads[i].Seq
	}
	return n
}

// tell tells how far the crawl is.
func (w *follower) tell(s *view.Status) {
	f := w.figures(s)
	w.reporter.progress(&f)
}

func (w *follower) figures(s *view.Status) figures {
	now := time.Now()
	if w.meter == nil {
		w.began, w.before = now, s.Totals
		w.meter = newMeter(now, 0, s.Totals)
		w.meter.memory = cloudRateMemory
	}
	f := w.meter.read(now, &engine.Snapshot{Crawl: s.Crawl, Progress: crawl.Progress{Totals: s.Totals}})
	f.AtWork, f.Paused = &s.Leased, s.Wish.Pause
	if left := s.Due.Sub(now); s.Leased == 0 && left > quiet {
		f.Waiting = "waiting " + span(left.Seconds()) + ": no host may be requested sooner"
	}
	return f
}

// summarize says how the crawl ended, and what it cost.
func (w *follower) summarize(ctx context.Context, end engine.End, s *view.Status) (*summary, error) {
	sum, err := w.visit.summary(end, s)
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

// summary is what there is to say of a crawl in a cloud: its calls and their cost are
// those of all of it.
func (v *visit) summary(end engine.End, s *view.Status) (*summary, error) {
	sum := &summary{Crawl: v.view.ID(), Cloud: v.place.cloud, End: end, Totals: s.Totals, place: v.place, Search: newIndexReport(s)}
	if s.Totals.Stored > 0 {
		sum.Archive = v.place.String() + ", objects " + naming.WARCPrefix(v.view.ID())
	}
	return sum, sum.price(s.Calls, 0)
}

// warn writes a line that is no output.
func warn(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "orbweaver: "+format+"\n", args...)
}

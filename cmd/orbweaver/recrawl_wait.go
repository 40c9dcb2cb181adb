package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

// defaultPatience is how long recrawl waits for answers in a cloud unless told otherwise.
const defaultPatience = 10 * time.Minute

// settledLooks is how many looks in a row must find nothing of a request under way before
// URLs without a new record count as repeats: a part of it may still be in the intake queue.
const settledLooks = 6

// latency is how long answers took to come since the message was sent.
type latency struct {
	Median  float64 `json:"median_seconds"`
	Longest float64 `json:"longest_seconds"`
}

func (l *latency) String() string {
	return fmt.Sprintf("from the message until a URL was asked for: %s, at most %s", span(l.Median), span(l.Longest))
}

// recrawlInCloud sends the request to the intake queue, and waits for what comes of it.
func (f *recrawlFlags) recrawlInCloud(ctx context.Context, rep reporter, r *request) error {
	ctx, release := following(ctx)
	defer release()
	return f.visit(ctx, func(v *visit) error {
		w := waiting{follower: follower{visit: v, every: f.every, reporter: rep}, request: r, patience: defaultPatience}
		if f.set.Changed("max-time") {
			w.patience = f.maxTime
		}
		if err := w.look(ctx); err != nil {
			return err
		}
		if wish := w.earlier.Wish; !f.later && (wish.Stop || wish.Pause) {
			return heldBack(&f.place, &wish)
		}
		w.sent = time.Now()
		if err := r.submit(ctx, v.view.ID(), v.engine.Submit); err != nil {
			return err
		}
		if f.later {
			rep.told(&handed{Crawl: v.view.ID(), Cloud: f.cloud, URLs: len(r.urls), ID: r.id})
			return nil
		}
		why, err := w.wait(ctx)
		if err != nil {
			return err
		}
		sum, err := w.conclude(why)
		if err != nil {
			return err
		}
		return concluded(rep, sum)
	})
}

// waiting is a request that was sent to a crawl in a cloud.
type waiting struct {
	follower
	request  *request
	patience time.Duration // 0: for ever

	sent    time.Time
	earlier view.Status // as it was before
	now     view.Status
	asked   *view.View // as it was before, frozen
	seen    *view.View // frozen: whose records of the owners are taken into account
	owners  []partition.ID
	latest  map[string]*blobschema.Page // by URL; nil without a new record
	open    int                         // URLs without one
}

// look takes note of what is stored before the request.
func (w *waiting) look(ctx context.Context) (err error) {
	if w.asked, err = w.view.Freeze(ctx); err != nil {
		return err
	}
	w.seen, w.latest = w.asked, map[string]*blobschema.Page{}
	w.earlier, err = w.view.Status(ctx)
	for _, u := range w.request.urls {
		w.latest[u.String()] = nil
	}
	w.open = len(w.latest)
	return err
}

// waitEnd is why the waiting ended.
type waitEnd uint8

const (
	allSettled  waitEnd = iota // each URL has a new record, or the request did nothing for it
	outOfTime                  // or the page limit keeps them, or an order
	interrupted                // by a signal
)

// wait reads the records of new commits until all URLs have one.
func (w *waiting) wait(ctx context.Context) (waitEnd, error) {
	var deadline time.Time
	if w.patience > 0 {
		deadline = w.sent.Add(w.patience)
	}
	for failed, quiet := 0, 0; ; {
		err := w.read(ctx)
		switch {
		case ctx.Err() != nil:
			return interrupted, nil
		case err != nil && failed < maxLooksFailed:
			failed++
			warn(w.reporter, "cannot look at the crawl: %v; trying again", err)
		case err != nil:
			return 0, err
		case w.open == 0:
			return allSettled, nil
		default:
			failed = 0
			if quiet++; w.now.Requests == w.earlier.Requests || w.now.Unasked > 0 || w.now.Totals.Urgent+w.now.Totals.Unexamined > 0 {
				quiet = 0
			}
			if quiet == settledLooks {
				return allSettled, nil
			}
		}
		if !deadline.IsZero() && time.Now().After(deadline) {
			return outOfTime, nil
		}
		if !wait(ctx, w.every) {
			return interrupted, nil
		}
	}
}

// read looks at the crawl, and reads what was committed since the last time.
func (w *waiting) read(ctx context.Context) (err error) {
	if w.now, err = w.view.Status(ctx); err != nil {
		return err
	}
	next, err := w.view.Freeze(ctx)
	if err != nil {
		return err
	}
	owners, err := next.Owners(ctx, w.request.urls)
	if err != nil {
		return err
	}
	owners = slices.DeleteFunc(owners, func(p partition.ID) bool { return slices.Contains(w.owners, p) })
	for _, from := range []struct {
		owners []partition.ID
		before *view.View
	}{{w.owners, w.seen}, {owners, w.asked}} { // of those that the URLs have moved to: all since
		if len(from.owners) == 0 {
			continue
		}
		for pg, err := range next.PagesOfSince(ctx, from.owners, from.before) {
			if err != nil {
				return err // what was taken already is taken again: the same
			}
			if old, asked := w.latest[pg.URL]; asked && !pg.Robots && (old == nil || pg.Generation >= old.Generation) {
				w.latest[pg.URL] = &pg
			}
		}
	}
	w.owners = append(w.owners, owners...)
	w.seen, w.open = next, 0
	for _, pg := range w.latest {
		if pg == nil {
			w.open++
		}
	}
	w.tell(&w.now)
	return nil
}

func (w *waiting) tell(s *view.Status) {
	f := w.figures(s)
	f.Asked, f.Answered = len(w.latest), len(w.latest)-w.open
	w.reporter.progress(&f)
}

// conclude says what came of each URL.
func (w *waiting) conclude(why waitEnd) (*summary, error) {
	end := engine.Finished
	if why != allSettled {
		end = engine.Stopped
	}
	sum, err := w.summary(end, &w.now)
	if err != nil {
		return nil, err
	}
	sum.Seconds = time.Since(w.sent).Seconds()
	tally := sum.requestOutcomes(w.request, w.latest, why != allSettled, nil)
	var took []float64
	for _, pg := range w.latest {
		if pg != nil {
			took = append(took, max(0, pg.Time.Sub(w.sent).Seconds()))
		}
	}
	if len(took) > 0 {
		slices.Sort(took)
		sum.Latency = &latency{Median: took[len(took)/2], Longest: took[len(took)-1]}
	}
	all := plural(int64(len(w.latest)), "URL")
	switch {
	case why != allSettled:
		sum.Status = exitStopped
		sum.Reason = fmt.Sprintf("%s of %s answered so far", count(tally.answered), all)
		if why == outOfTime {
			sum.Reason += fmt.Sprintf(" after --max-time %s", w.patience)
		}
		sum.Reason += "; the request stands: see 'orbweaver explain'."
	default:
		tally.conclude(sum, all)
	}
	return sum, nil
}

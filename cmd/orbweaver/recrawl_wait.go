package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

// defaultPatience is how long recrawl waits for the outcomes in a deployment.
const defaultPatience = 10 * time.Minute

// settledLooks is how many looks in a row must find nothing of a request under way before URLs
// without a new record count as repeats: a part of the request may still be in the intake queue.
const settledLooks = 6

// latency is the time from the message to the answers.
type latency struct {
	Median  float64 `json:"median_seconds"`
	Longest float64 `json:"longest_seconds"`
}

func (l *latency) String() string {
	return fmt.Sprintf("from the message until a URL was asked for: %s, at most %s", span(l.Median), span(l.Longest))
}

// inDeployment sends the request to the intake queue, and waits for the outcomes.
func (f *recrawlFlags) inDeployment(ctx context.Context, rep *reporter, req *request) error {
	ctx, release := following(ctx)
	defer release()
	return f.own(ctx, func(o *opened) (err error) {
		w := waiting{follower: follower{opened: o, every: f.every, reporter: rep}, request: req, latest: req.latest(), patience: defaultPatience}
		if f.set.Changed("max-time") {
			w.patience = f.maxTime
		}
		if w.asked, err = w.view.Freeze(ctx); err != nil {
			return err
		}
		w.seen, w.open = w.asked, len(w.latest)
		if w.earlier, err = w.view.Status(ctx); err != nil {
			return err
		}
		if wish := w.earlier.Wish; !f.later && (wish.Stop || wish.Pause) {
			return heldBack(&f.target, &wish)
		}
		w.sent = time.Now()
		if err := req.submit(ctx, o.view.ID(), o); err != nil {
			return err
		}
		if f.later {
			rep.told("handed", &handed{where: f.where(o.view.ID()), URLs: len(req.urls), ID: req.id})
			return nil
		}
		sum, err := w.wait(ctx)
		if err != nil {
			return err
		}
		return conclude(rep, sum, noneAnswered)
	})
}

// waiting waits for the outcomes of a request in a deployment.
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
	latest  records
	open    int // URLs without a new record
}

// wait reads the records of new commits until all URLs have one, or the request did nothing for them.
func (w *waiting) wait(ctx context.Context) (*summary, error) {
	settled, outOfTime, still := false, false, 0
	err := w.poll(ctx, func() (bool, error) {
		if err := w.look(ctx); err != nil {
			return false, err
		}
		if still++; w.now.Requests == w.earlier.Requests || w.now.Unasked > 0 || w.now.Totals.Urgent+w.now.Totals.Unexamined > 0 {
			still = 0
		}
		settled = w.open == 0 || still == settledLooks
		outOfTime = !settled && w.patience > 0 && time.Since(w.sent) > w.patience
		return settled || outOfTime, nil
	})
	if err != nil {
		return nil, err
	}
	end := engine.Finished
	if !settled {
		end = engine.Stopped
	}
	sum, err := w.summary(end, &w.now)
	if err != nil {
		return nil, err
	}
	sum.Seconds = time.Since(w.sent).Seconds()
	n := sum.requestOutcomes(w.request, w.latest, !settled, nil)
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
	if settled {
		n.conclude(sum, all)
		return sum, nil
	}
	sum.Status = exitStopped
	sum.Reason = fmt.Sprintf("%s of %s answered so far", count(n.answered), all)
	if outOfTime {
		sum.Reason += fmt.Sprintf(" after --max-time %s", w.patience)
	}
	sum.Reason += "; the request stands: see 'orbweaver explain'."
	return sum, nil
}

// look reads what was committed since the last look.
func (w *waiting) look(ctx context.Context) (err error) {
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
	}{{w.owners, w.seen}, {owners, w.asked}} { // of partitions that the URLs have moved to: all since
		if len(from.owners) == 0 {
			continue
		}
		for pg, err := range next.PagesOfSince(ctx, from.owners, from.before) {
			if err != nil {
				return err // records that are read twice are the same
			}
			if !pg.Robots {
				w.latest.add(&pg)
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
	f := w.figures(&w.now)
	f.Asked, f.Answered = len(w.latest), len(w.latest)-w.open
	w.reporter.progress(&f)
	return nil
}

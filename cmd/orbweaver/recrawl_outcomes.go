package main

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/engine"
)

// requestOutcome is the outcome of a requested URL.
type requestOutcome struct {
	URL        string              `json:"url"`
	Outcome    *blobschema.Outcome `json:"outcome,omitempty"` // nil if there is no new record of it
	Status     uint16              `json:"status,omitempty"`
	Generation uint32              `json:"generation,omitempty"`
	Detail     string              `json:"detail,omitempty"`
	Redirect   string              `json:"redirect,omitempty"`
	Result     string              `json:"result,omitempty"` // of the list below
	Hint       string              `json:"hint,omitempty"`   // what may help
}

// The results of a requested URL.
const (
	resultChanged   = "changed"
	resultGone      = "gone"      // 404 or 410, where there was another answer before
	resultNew       = "new"       // the first answer
	resultFailed    = "failed"    // an error, or no answer
	resultUnchanged = "unchanged" // as before
	resultWaits     = "waits"     // not requested yet
	resultRepeat    = "repeat"    // the request was made before
)

// results lists the results in the order in which the summary counts them.
var results = [...]string{resultChanged, resultGone, resultNew, resultFailed, resultUnchanged}

func (r *requestOutcome) String() string {
	switch {
	case r.Result == resultWaits:
		return r.URL + ": not asked for yet"
	case r.Outcome == nil:
		return r.URL + ": nothing new: it was asked for before, under this --id"
	}
	s := (&seedOutcome{r.URL, *r.Outcome, r.Status, r.Detail}).String()
	if r.Redirect != "" {
		s += " to " + r.Redirect
	}
	if r.Generation > 0 {
		s += fmt.Sprintf(", generation %d", r.Generation)
	}
	if *r.Outcome != blobschema.OutcomeUnchanged && r.Result != resultFailed {
		s += ", " + r.Result
	}
	return s
}

// submitRequest submits the request of the run, and notes what is stored before it.
func (r *run) submitRequest(ctx context.Context) (err error) {
	if r.request == nil {
		return nil
	}
	if r.asked, err = r.view.Freeze(ctx); err != nil {
		return err
	}
	if r.earlier, err = r.view.Status(ctx); err != nil {
		return err
	}
	return r.request.submit(ctx, r.crawl.ID, control.Own{Engine: r.engine})
}

// concludeRequest reports the outcome of each URL of the request.
func (r *run) concludeRequest(ctx context.Context, sum *summary) error {
	latest := r.request.latest()
	told := context.WithoutCancel(ctx) // after a signal too
	for pg, err := range r.view.PagesSince(told, r.asked) {
		if err != nil {
			return err
		}
		latest.add(&pg)
	}
	now, err := r.view.Status(told)
	if err != nil {
		return err
	}
	// A request that is still in the queue has made no mail.
	waits := sum.End == engine.Stopped || sum.Totals.Urgent > 0 || now.Requests == r.earlier.Requests
	n := sum.requestOutcomes(r.request, latest, waits, r.crawl.Settings.AllowNet)
	if sum.Status != exitStopped && sum.Status != exitDeadLetters {
		n.conclude(sum, plural(int64(len(latest)), "URL"))
	}
	if n.waiting > 0 && sum.Status != exitStopped {
		sum.Reason += fmt.Sprintf(" Not asked for yet: %s.", count(n.waiting))
		sum.Resume = r.command("crawl", r.perRun...)
	}
	return r.listCaptures(ctx, sum)
}

// records are the latest new page records of requested URLs; nil without one.
type records map[string]*blobschema.Page

func (r *request) latest() records {
	latest := records{}
	for _, u := range r.urls {
		latest[u.String()] = nil
	}
	return latest
}

// add takes a record, if it is of a requested URL.
func (r records) add(pg *blobschema.Page) {
	if old, asked := r[pg.URL]; asked && (old == nil || pg.Generation >= old.Generation) {
		r[pg.URL] = pg
	}
}

// tally counts the outcomes of a request.
type tally struct {
	answered, refused, waiting int64
	results                    map[string]int64 // see results
}

// requestOutcomes lists the outcomes of a request. waits says that URLs without a new record may
// still be requested.
func (s *summary) requestOutcomes(req *request, latest records, waits bool, allow []netip.Prefix) (n tally) {
	n.results = map[string]int64{}
	for _, u := range req.urls {
		r := requestOutcome{URL: u.String(), Result: resultRepeat}
		switch pg := latest[r.URL]; {
		case pg != nil:
			r.of(pg, allow)
			n.results[r.Result]++
			if pg.Outcome.Answered() {
				n.answered++
			} else {
				n.refused++
			}
		case waits:
			r.Result = resultWaits
			n.waiting++
		}
		s.Requested = append(s.Requested, r)
	}
	s.Results = n.results
	return n
}

// conclude says how a request ended whose URLs could all be requested.
func (n *tally) conclude(s *summary, all string) {
	s.Resume = ""
	if n.answered == 0 && n.refused > 0 {
		s.Status, s.Reason = exitNothing, fmt.Sprintf("Finished: none of %s was answered.", all)
		return
	}
	var list []string
	for _, r := range results {
		if n.results[r] > 0 {
			list = append(list, count(n.results[r])+" "+r)
		}
	}
	s.Status, s.Reason = exitOK, fmt.Sprintf("Finished: %s of %s answered", count(n.answered), all)
	if list != nil {
		s.Reason += ": " + strings.Join(list, ", ")
	}
	s.Reason += "."
}

// of takes the outcome from the new record.
func (r *requestOutcome) of(pg *blobschema.Page, allow []netip.Prefix) {
	r.Outcome, r.Status, r.Generation, r.Detail, r.Redirect = &pg.Outcome, pg.Status, pg.Generation, pg.Detail, pg.Redirect
	failed := pg.Outcome == blobschema.OutcomeClientError || pg.Outcome == blobschema.OutcomeServerError
	switch {
	case !pg.Outcome.Answered():
		r.Result = resultFailed
		r.Hint = hint(&seedOutcome{URL: pg.URL, Outcome: pg.Outcome}, allow)
	case pg.Change == blobschema.PageSame:
		r.Result = resultUnchanged
	case failed && pg.Change != "" && (pg.Status == http.StatusNotFound || pg.Status == http.StatusGone):
		r.Result = resultGone
	case failed:
		r.Result = resultFailed
	case pg.Change == blobschema.PageChanged:
		r.Result = resultChanged
	default:
		r.Result = resultNew
	}
}

// maxRequestedTold is how many URLs of a request people are shown.
const maxRequestedTold = 20

// printRequested writes the outcome of each URL; of many it leaves out the unchanged ones.
func (s *summary) printRequested(out *output) {
	list := s.Requested
	if len(list) > maxRequestedTold {
		list = slices.DeleteFunc(slices.Clone(list), func(r requestOutcome) bool { return r.Result == resultUnchanged })
	}
	for i := range list[:min(len(list), maxRequestedTold)] {
		r := &list[i]
		out.line("  %s", r)
		if r.Hint != "" {
			out.line("    %s", r.Hint)
		}
	}
	if more := len(list) - maxRequestedTold; more > 0 {
		out.line("  … and %s more; --json lists all", count(more))
	}
}

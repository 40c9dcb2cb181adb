package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/engine"
)

// requestOutcome is what came of a URL that was asked for on purpose.
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

// What a request found of a URL.
const (
	resultChanged   = "changed"
	resultGone      = "gone"      // 404 or 410, where there was another answer before
	resultNew       = "new"       // the first answer
	resultFailed    = "failed"    // an error, or no answer
	resultUnchanged = "unchanged" // as before
	resultWaits     = "waits"     // not requested yet
	resultRepeat    = "repeat"    // the request was made before
)

// results lists the results of requested URLs in the order in which the summary counts them.
var results = [...]string{resultChanged, resultGone, resultNew, resultFailed, resultUnchanged}

func (r *requestOutcome) String() string {
	if r.Outcome == nil {
		return r.URL + ": " + map[string]string{
			resultWaits: "not asked for yet", resultRepeat: "nothing new: it was asked for before, under this --id",
		}[r.Result]
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

// submitRequest puts what recrawl was given into the queue, and takes note of what is
// stored before it.
func (s *session) submitRequest(ctx context.Context) (err error) {
	if s.request == nil {
		return nil
	}
	if s.asked, err = s.view.Freeze(ctx); err != nil {
		return err
	}
	if s.earlier, err = s.view.Status(ctx); err != nil {
		return err
	}
	return s.request.submit(ctx, s.crawl.ID, s.engine.Submit)
}

// concludeRequest says what came of the request, and how the command ends.
func (s *session) concludeRequest(ctx context.Context, sum *summary) error {
	latest := map[string]*blobschema.Page{}
	for _, u := range s.request.urls {
		latest[u.String()] = nil
	}
	told := context.WithoutCancel(ctx) // a signal is no reason to say less
	for pg, err := range s.view.PagesSince(told, s.asked) {
		if err != nil {
			return err
		}
		if old, asked := latest[pg.URL]; asked && (old == nil || pg.Generation >= old.Generation) {
			latest[pg.URL] = &pg
		}
	}
	now, err := s.view.Status(told)
	if err != nil {
		return err
	}
	// A request that is in the queue still has made no mail.
	waits := sum.End == engine.Stopped || sum.Totals.Urgent > 0 || now.Requests == s.earlier.Requests
	n := sum.requestOutcomes(s.request, latest, waits, s.crawl.Settings.AllowNet)
	if sum.Status != exitStopped && sum.Status != exitDeadLetters {
		n.conclude(sum, plural(int64(len(latest)), "URL"))
	}
	if n.waiting > 0 && sum.Status != exitStopped {
		sum.Reason += fmt.Sprintf(" Not asked for yet: %s.", count(n.waiting))
		sum.Resume = resumeCommand(s.dir, s.perRun...)
	}
	return s.listCaptures(ctx, sum)
}

// tally counts what came of the URLs of a request.
type tally struct {
	answered, refused, waiting int64
	results                    map[string]int64 // see results
}

// String lists the results: "2 changed, 1 gone, 38 unchanged".
func (n *tally) String() string {
	var list []string
	for _, r := range results {
		if n.results[r] > 0 {
			list = append(list, count(n.results[r])+" "+r)
		}
	}
	return strings.Join(list, ", ")
}

// requestOutcomes says what came of the URLs of a request, by their new records. waits says
// that those without one may still be asked for.
func (s *summary) requestOutcomes(req *request, latest map[string]*blobschema.Page, waits bool, allow []netip.Prefix) (n tally) {
	n.results = map[string]int64{}
	for _, u := range req.urls {
		r := requestOutcome{URL: u.String()}
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
		default:
			r.Result = resultRepeat
		}
		s.Requested = append(s.Requested, r)
	}
	s.Results = n.results
	return n
}

// conclude says how a request ended whose URLs all could be asked for.
func (n *tally) conclude(s *summary, all string) {
	if n.answered == 0 && n.refused > 0 {
		s.Status, s.Reason = exitNothing, fmt.Sprintf("Finished: none of %s was answered.", all)
		return
	}
	s.Status, s.Reason = exitOK, fmt.Sprintf("Finished: %s of %s answered", count(n.answered), all)
	if list := n.String(); list != "" {
		s.Reason += ": " + list
	}
	s.Reason += "."
}

// of takes what the new record says.
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

// maxRequestedTold is how many URLs of a request people are told of.
const maxRequestedTold = 20

// requested prints the result of each URL. If there are many, it leaves out the unchanged ones.
func (s *summary) requested(out io.Writer) {
	list := s.Requested
	if len(list) > maxRequestedTold {
		list = slices.DeleteFunc(slices.Clone(list), func(r requestOutcome) bool { return r.Result == resultUnchanged })
	}
	for i := range list[:min(len(list), maxRequestedTold)] {
		r := &list[i]
		fmt.Fprintf(out, "  %s\n", r)
		if r.Hint != "" {
			fmt.Fprintf(out, "    %s\n", r.Hint)
		}
	}
	if more := len(list) - maxRequestedTold; more > 0 {
		fmt.Fprintf(out, "  … and %s more; --json lists all\n", count(int64(more)))
	}
}

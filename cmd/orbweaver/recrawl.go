package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/crawlfile"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

type recrawlFlags struct {
	runFlags
	urls  string
	id    string
	later bool
}

func newRecrawl() *cobra.Command {
	var f recrawlFlags
	cmd := reporting("recrawl", nil, &f.reportFlags, f.run)
	fs := cmd.Flags()
	fs.StringVar(&f.urls, "urls", "", "file of URLs, one a line, # comments; - for standard input")
	fs.StringVar(&f.id, "id", "", "makes a repeat of the request do nothing, for 15 days; without it each counts")
	fs.BoolVar(&f.later, "later", false, "leave the request for the crawl that runs, or for the next one")
	f.settings.register(fs, func(s *crawlfile.Setting) bool { return s.Name == "allow-net" })
	f.runFlags.register(cmd)
	return cmd
}

func (f *recrawlFlags) run(cmd *cobra.Command, rep *reporter, args []string) error {
	if err := f.check("max-time"); err != nil {
		return err
	}
	if len(f.id) > blobschema.MaxRequestID {
		return usagef("--id must have at most %d bytes", blobschema.MaxRequestID)
	}
	urls, err := readURLs(args, "urls", f.urls, cmd.InOrStdin(), nil)
	if err != nil {
		return err
	}
	if len(urls) == 0 {
		return usagef("no URLs given: give them as arguments, or a file of them with --urls\nSee '%s --help'", cmd.CommandPath())
	}
	req := &request{urls: urls, id: f.id}
	if req.id == "" {
		req.id = "recrawl-" + strings.ToLower(rand.Text())
	}
	if f.inCloud() && !f.later {
		return f.inDeployment(cmd.Context(), rep, req)
	}
	if !f.inCloud() {
		if err := f.checkFolder(0); err != nil {
			return err
		}
	}
	ctx, release := interruptible(cmd.Context(), rep)
	defer release()
	if done, err := f.hand(ctx, rep, req); err != nil || done {
		return err
	}
	r := &run{
		target: &f.target, start: start{resume: func(stored blobschema.Crawl) (blobschema.Crawl, error) {
			return stored, f.apply(&stored, "allow-net")
		}},
		connections: f.connections, maxTime: f.maxTime, retry: polite.Retry{Wait: 5 * time.Second}, perRun: f.perRun(),
		reporter: rep, request: req,
	}
	sum, err := r.do(ctx, r.concludeRequest)
	if err != nil {
		return err
	}
	return conclude(rep, sum, noneAnswered)
}

const noneAnswered = "none of the URLs was answered"

// errNotOwned means that no process works on the folder, so this command does.
var errNotOwned = errors.New("nobody works on the folder")

// hand gives the request to the process that owns the folder, or leaves it in the queue of the folder or the deployment
// if --later is given; it returns false if this command has to crawl.
func (f *recrawlFlags) hand(ctx context.Context, rep *reporter, req *request) (done bool, err error) {
	told := handed{URLs: len(req.urls), ID: req.id}
	err = f.change(ctx, func(o *opened) error {
		if o.idle && !f.later {
			return errNotOwned
		}
		told.where, told.PID = f.where(o.view.ID()), o.pid
		if o.idle {
			told.Resume = f.command("crawl")
		}
		return req.submit(ctx, told.Crawl, o)
	})
	if errors.Is(err, errNotOwned) {
		return false, nil
	}
	if err == nil {
		rep.told("handed", "handed", &told)
	}
	return true, err
}

// request is a request for URLs.
type request struct {
	urls []weburl.URL
	id   string
}

// submit submits the request in as many messages as its URLs need. All have its id. The crawl recognises
// repeats by id and URL, so a repeat may be divided differently.
func (r *request) submit(ctx context.Context, crawl string, to control.Control) error {
	for _, m := range r.messages(crawl) {
		if err := to.Submit(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// messages divides the request into messages that fit the queue.
func (r *request) messages(crawl string) (out []blobschema.Request) {
	const rest = 6*blobschema.MaxRequestID + 1<<10 // most bytes of the other fields
	bytes := 0
	for _, u := range r.urls {
		raw := u.String()
		text, _ := json.Marshal(raw) // a string: it cannot fail
		need := len(text) + 1
		if n := len(out); n == 0 || len(out[n-1].Recrawl) == blobschema.MaxRequestURLs || bytes+need > blobschema.MaxMailBytes-rest {
			out = append(out, blobschema.Request{Version: 1, Crawl: crawl, ID: r.id})
			bytes = 0
		}
		m := &out[len(out)-1]
		m.Recrawl = append(m.Recrawl, raw)
		bytes += need
	}
	return out
}

// requestOutcome is the outcome of a requested URL.
type requestOutcome struct {
	URL        string              `json:"url"`
	Outcome    *blobschema.Outcome `json:"outcome,omitempty"` // nil if there is no new record of it
	Status     uint16              `json:"status,omitempty"`
	Generation uint32              `json:"generation,omitempty"`
	Detail     string              `json:"detail,omitempty"`
	Redirect   string              `json:"redirect,omitempty"`
	Result     string              `json:"result,omitempty"` // of the list below
	Hint       string              `json:"hint,omitempty"`   // suggestion
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

func (r requestOutcome) String() string {
	switch {
	case r.Result == resultWaits:
		return r.URL + ": not requested yet"
	case r.Outcome == nil:
		return r.URL + ": nothing new: it was requested before, under this --id"
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

// submitRequest submits the request of the run, and keeps the state before it.
func (r *run) submitRequest(ctx context.Context) (err error) {
	if r.request == nil {
		return nil
	}
	if r.frozen, err = r.view.Freeze(ctx); err != nil {
		return err
	}
	if r.earlier, err = r.view.Status(ctx); err != nil {
		return err
	}
	return r.request.submit(ctx, r.crawl.ID, r.opened)
}

// concludeRequest reports the outcome of each URL of the request.
func (r *run) concludeRequest(ctx context.Context, sum *summary) error {
	latest := r.request.latest()
	told := context.WithoutCancel(ctx) // after a signal too
	for pg, err := range r.view.PagesSince(told, nil, r.frozen) {
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
	waits := sum.End == service.Stopped || sum.Totals.Urgent > 0 || now.Requests == r.earlier.Requests
	n := sum.requestOutcomes(r.request, latest, waits, r.crawl.Settings.AllowNet)
	if sum.Status != exitStopped && sum.Status != exitDeadLetters {
		n.conclude(sum, plural(len(latest), "URL"))
	}
	if n.waiting > 0 && sum.Status != exitStopped {
		sum.Reason += fmt.Sprintf(" Not requested yet: %s.", count(n.waiting))
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

// conclude sets status and reason of a request if all its URLs could be requested.
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

// of sets the outcome from the new record.
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

// maxShown is how many URLs of a request people are shown.
const maxShown = 20

// Shown are the outcomes for people, and how many more there are; of many it leaves out the unchanged ones.
func (s *summary) Shown() []requestOutcome { return s.shown()[:min(len(s.shown()), maxShown)] }
func (s *summary) More() int               { return max(0, len(s.shown())-maxShown) }

func (s *summary) shown() []requestOutcome {
	if len(s.Requested) <= maxShown {
		return s.Requested
	}
	return slices.DeleteFunc(slices.Clone(s.Requested), func(r requestOutcome) bool { return r.Result == resultUnchanged })
}

// defaultPatience is how long recrawl waits for the outcomes in a deployment.
const defaultPatience = 10 * time.Minute

// settledPolls is how many polls in a row must find nothing under way before URLs without a new record count
// as repeats: a part of the request may still be in the intake queue.
const settledPolls = 6

// inDeployment sends the request to the intake queue, and waits for the outcomes.
func (f *recrawlFlags) inDeployment(ctx context.Context, rep *reporter, req *request) error {
	ctx, release := following(ctx)
	defer release()
	return f.own(ctx, func(o *opened) (err error) {
		w := waiting{follower: follower{opened: o, every: f.every, reporter: rep}, request: req, latest: req.latest(), patience: defaultPatience}
		if f.set.Changed("max-time") {
			w.patience = f.maxTime
		}
		if w.frozen, err = w.view.Freeze(ctx); err != nil {
			return err
		}
		w.seen, w.open = w.frozen, len(w.latest)
		if w.earlier, err = w.view.Status(ctx); err != nil {
			return err
		}
		if desired := w.earlier.Desired; desired.Stop || desired.Pause {
			return heldBack(&f.target, &desired)
		}
		w.sent = time.Now()
		if err := req.submit(ctx, o.view.ID(), o); err != nil {
			return err
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
	patience time.Duration // 0 for no limit

	sent    time.Time
	earlier view.Status // as it was before
	now     view.Status
	frozen  *view.View // frozen view from before the request
	seen    *view.View // frozen; the records of the owners up to it are known
	owners  []partition.ID
	latest  records
	open    int // URLs without a new record
}

// wait reads the records of new commits until all URLs have one, or the request did nothing for them.
func (w *waiting) wait(ctx context.Context) (*summary, error) {
	settled, outOfTime, still := false, false, 0
	err := poll(ctx, w.reporter, w.every, func() (bool, error) {
		if err := w.poll(ctx); err != nil {
			return false, err
		}
		if still++; w.now.Requests == w.earlier.Requests || w.now.Unapplied > 0 || w.now.Totals.Urgent+w.now.Totals.Unexamined > 0 {
			still = 0
		}
		settled = w.open == 0 || still == settledPolls
		outOfTime = !settled && w.patience > 0 && time.Since(w.sent) > w.patience
		return settled || outOfTime, nil
	})
	if err != nil {
		return nil, err
	}
	end := service.Finished
	if !settled {
		end = service.Stopped
	}
	sum, err := w.summary(end, &w.now)
	if err != nil {
		return nil, err
	}
	sum.Seconds = time.Since(w.sent).Seconds()
	n := sum.requestOutcomes(w.request, w.latest, !settled, nil)
	all := plural(len(w.latest), "URL")
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

// poll reads what was committed since the last poll.
func (w *waiting) poll(ctx context.Context) (err error) {
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
	since := w.seen
	if !slices.Equal(owners, w.owners) { // the URLs have moved: all since the request
		since = w.frozen
	}
	for pg, err := range next.PagesSince(ctx, owners, since) {
		if err != nil {
			return err // the next poll reads the records again
		}
		if !pg.Robots {
			w.latest.add(&pg)
		}
	}
	w.owners, w.seen, w.open = owners, next, 0
	for _, pg := range w.latest {
		if pg == nil {
			w.open++
		}
	}
	f := w.figures(&w.now)
	f.Requested, f.Answered = len(w.latest), len(w.latest)-w.open
	w.reporter.progress(&f)
	return nil
}

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/control"
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
	f.settings.register(fs, "allow-net")
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
	if _, err := f.location.check(&f.target, 0); err != nil {
		return err
	}
	ctx, release := f.signals(cmd.Context(), rep)
	defer release()
	if done, err := f.hand(ctx, rep, req); err != nil || done {
		return err
	}
	r := &run{
		target: &f.target, reporter: rep, request: req, resume: func(stored blobschema.Crawl) (blobschema.Crawl, error) {
			return stored, f.apply(&stored, "allow-net")
		},
		connections: f.connections, maxTime: f.maxTime, every: f.every, retry: polite.Retry{Wait: 5 * time.Second},
	}
	if !f.set.Changed("max-time") {
		r.maxTime = f.patience()
	}
	sum, err := r.do(ctx, r.concludeRequest)
	if err != nil {
		return err
	}
	return conclude(rep, sum, "none of the URLs was answered")
}

// hand gives the request to the process that owns the folder or, if --later is given, leaves it in the queue of the folder or the
// deployment. It returns false if this command has to see to the request.
func (f *recrawlFlags) hand(ctx context.Context, rep *reporter, req *request) (done bool, err error) {
	err = f.change(ctx, func(o *opened) error {
		if done = f.later || o.pid > 0; !done {
			return nil
		}
		told := handed{where: f.where(o.view.ID()), PID: o.pid, URLs: len(req.urls), ID: req.id}
		if o.here() {
			told.Resume = f.command("crawl")
		}
		err := req.submit(ctx, told.Crawl, o)
		if err == nil {
			rep.told("handed", "handed", &told)
		}
		return err
	})
	return done, err
}

// request is a request for URLs.
type request struct {
	urls []weburl.URL
	id   string

	// Set by send.
	frozen *view.View // from before the request
	seen   *view.View // frozen view; the records of the owners up to it are known
	owners []partition.ID
	latest map[string]*blobschema.Page // the latest new records of the URLs; nil without one
}

// send submits the request of a run, and keeps the state before it.
func (r *request) send(ctx context.Context, o *opened) (err error) {
	r.latest = map[string]*blobschema.Page{}
	for _, u := range r.urls {
		r.latest[u.String()] = nil
	}
	if r.frozen, err = o.view.Freeze(ctx); err != nil {
		return err
	}
	r.seen = r.frozen
	return r.submit(ctx, o.view.ID(), o)
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

// read reads the records of the URLs that were committed since the last call. It reads the commits of their owners
// only, because each commit is an object.
func (r *request) read(ctx context.Context, o *opened) error {
	next, err := o.view.Freeze(ctx)
	if err != nil {
		return err
	}
	owners, err := next.Owners(ctx, r.urls)
	if err != nil {
		return err
	}
	since := r.seen
	if !slices.Equal(owners, r.owners) { // the URLs have moved: all since the request
		since = r.frozen
	}
	for pg, err := range next.PagesSince(ctx, owners, since) {
		if err != nil {
			return err // the next call reads the records again
		}
		if old, asked := r.latest[pg.URL]; asked && !pg.Robots && (old == nil || pg.Generation >= old.Generation) {
			r.latest[pg.URL] = &pg
		}
	}
	r.owners, r.seen = owners, next
	return nil
}

// answered counts the URLs with a new record.
func (r *request) answered() (n int) {
	for _, pg := range r.latest {
		if pg != nil {
			n++
		}
	}
	return n
}

// messages divides the request into messages that fit the queue.
func (r *request) messages(crawl string) []blobschema.Request {
	m := blobschema.Request{Version: 1, Crawl: crawl, ID: r.id}
	for _, u := range r.urls {
		m.Recrawl = append(m.Recrawl, u.String())
	}
	return m.Split()
}

// requestOutcome is the outcome of a requested URL.
type requestOutcome struct {
	urlOutcome
	Generation uint32 `json:"generation,omitempty"`
	Redirect   string `json:"redirect,omitempty"`
	Result     string `json:"result,omitempty"` // of the list below
	Hint       string `json:"hint,omitempty"`   // suggestion
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
	case r.Outcome == blobschema.OutcomeNone:
		return r.URL + ": nothing new: it was requested before, under this --id"
	}
	s := r.urlOutcome.String()
	if r.Redirect != "" {
		s += " to " + r.Redirect
	}
	if r.Generation > 0 {
		s += fmt.Sprintf(", generation %d", r.Generation)
	}
	if r.Outcome != blobschema.OutcomeUnchanged && r.Result != resultFailed {
		s += ", " + r.Result
	}
	return s
}

// settledPolls is how many polls in a row must find nothing under way before URLs without a new record count
// as repeats: a part of the request may still be in the intake queue.
const settledPolls = 6

// await polls a deployment until all URLs of the request have a new record, or the request did nothing for the others.
func (r *run) await(ctx context.Context) (service.End, error) {
	still := 0
	end, err := r.look(ctx, func() (service.End, error) {
		if err := r.request.read(ctx, r.opened); err != nil {
			return "", err
		}
		f := r.figures()
		f.Requested, f.Answered = len(r.request.latest), r.request.answered()
		r.reporter.progress(&f)
		if still++; r.now.Requests == r.earlier.Requests || r.now.Unapplied > 0 || r.now.Totals.Urgent+r.now.Totals.Unexamined > 0 {
			still = 0
		}
		if f.Answered == f.Requested || still == settledPolls {
			return service.Finished, nil
		}
		return "", nil
	})
	return cmp.Or(end, service.Stopped), err
}

// concludeRequest reports the outcome of each URL of the request.
func (r *run) concludeRequest(ctx context.Context, sum *summary) error {
	if err := r.request.read(context.WithoutCancel(ctx), r.opened); err != nil { // after a signal too
		return err
	}
	// URLs without a new record may still be requested. A request that is still in the queue has made no mail.
	waits := sum.End == service.Stopped || sum.Totals.Urgent > 0 || r.now.Requests == r.earlier.Requests
	answered, refused, waiting := sum.requestOutcomes(r.request, waits, r.earlier.Crawl.Settings.AllowNet)
	all := plural(len(r.request.latest), "URL")
	switch {
	case sum.Status != exitStopped:
		sum.concludeRequest(answered, refused, all)
		if waiting > 0 {
			sum.Reason += fmt.Sprintf(" Not requested yet: %s.", count(waiting))
			sum.Resume = r.command("crawl")
		}
	case sum.End == service.Stopped:
		sum.Reason += fmt.Sprintf(" %s of %s answered so far; the request stands: see 'orbweaver explain'.", count(answered), all)
	}
	return r.listCaptures(ctx, sum)
}

// requestOutcomes lists the outcomes of a request and counts them. waits says that URLs without a new
// record may still be requested.
func (s *summary) requestOutcomes(req *request, waits bool, allow []netip.Prefix) (answered, refused, waiting int64) {
	s.Results = map[string]int64{}
	for _, u := range req.urls {
		r := requestOutcome{urlOutcome: urlOutcome{URL: u.String()}, Result: resultRepeat}
		switch pg := req.latest[r.URL]; {
		case pg != nil:
			r.of(pg, allow)
			s.Results[r.Result]++
			if pg.Outcome.Answered() {
				answered++
			} else {
				refused++
			}
		case waits:
			r.Result = resultWaits
			waiting++
		}
		s.Requested = append(s.Requested, r)
	}
	return answered, refused, waiting
}

// concludeRequest sets status and reason of a request if all its URLs could be requested.
func (s *summary) concludeRequest(answered, refused int64, all string) {
	s.Resume = ""
	if answered == 0 && refused > 0 {
		s.Status, s.Reason = exitNothing, fmt.Sprintf("Finished: none of %s was answered.", all)
		return
	}
	var list []string
	for _, r := range results {
		if s.Results[r] > 0 {
			list = append(list, count(s.Results[r])+" "+r)
		}
	}
	s.Status, s.Reason = exitOK, fmt.Sprintf("Finished: %s of %s answered", count(answered), all)
	if list != nil {
		s.Reason += ": " + strings.Join(list, ", ")
	}
	s.Reason += "."
}

// of sets the outcome from the new record.
func (r *requestOutcome) of(pg *blobschema.Page, allow []netip.Prefix) {
	r.urlOutcome, r.Generation, r.Redirect = outcomeOf(pg), pg.Generation, pg.Redirect
	failed := pg.Outcome == blobschema.OutcomeClientError || pg.Outcome == blobschema.OutcomeServerError
	switch {
	case !pg.Outcome.Answered():
		r.Result = resultFailed
		r.Hint = r.hint(allow)
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

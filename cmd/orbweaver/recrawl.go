package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

type recrawlFlags struct {
	runFlags
	urls  string
	id    string
	later bool
}

func newRecrawl() *cobra.Command {
	var f recrawlFlags
	cmd := &cobra.Command{
		Use:   "recrawl [flags] URL...",
		Short: "Ask for URLs once more",
		Long: `Recrawl asks for URLs of a crawl once more, or for the first time, before all others.
Hosts are told what is stored already: an answer that has not changed costs some
hundred bytes, and a payload that is stored already is not stored again.

If a process crawls in the folder (--data), it is given the URLs, and that is all.
Otherwise recrawl goes on with the crawl until nothing is left to do: with one that was
interrupted, that means everything that was still to be asked for, after these URLs; one
that 'orbweaver stop' or 'orbweaver pause' holds must be resumed first ('orbweaver resume').
With --later it only leaves a message, for the next 'orbweaver crawl'.

In a cloud (--platform) the request goes to the intake queue, and recrawl waits until each
URL has an outcome, for ten minutes unless --max-time says otherwise; with --later it
does not wait. Ctrl-C ends the waiting, not the request.

In the end it says how many URLs have changed, are gone (404 or 410), new (fetched for the
first time), failed or unchanged, and lists them; of more than 20 not the unchanged ones.

URLs out of the crawl's scope are not asked for: give them to 'orbweaver crawl'. The
limit of --max-pages does not count what is asked for here. With --id a repeat of the
same request does nothing, for 15 days, and as far as the last 1,000 URLs of each host.

The exit status is 0 if one of the URLs was answered, or if nothing was left to ask; 3 if
it ended before that was known of all.`,
		Example: `  orbweaver recrawl https://example.org/ https://example.org/news

  # everything that was found, from time to time
  orbweaver export --format urls --outcome ok,unchanged --out - | orbweaver recrawl --urls -

  # what came of each URL, and which have changed
  orbweaver recrawl --json --urls urls.txt | jq '.summary.requested[]?'
  orbweaver recrawl --json --urls urls.txt | jq -r '.summary.requested[]? | select(.result == "changed").url'

  # in a cloud
  orbweaver recrawl --platform aws.json --max-time 2m https://example.org/news

  # from a publishing system, which may say it twice
  orbweaver recrawl --later --id article-4711 https://example.org/articles/4711`,
		RunE: func(cmd *cobra.Command, args []string) error { return runRecrawl(cmd, &f, args) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.urls, "urls", "", "file of URLs, one a line, # comments; - for standard input")
	fs.StringVar(&f.id, "id", "", "makes a repeat of the request do nothing, for 15 days; without it each counts")
	fs.BoolVar(&f.later, "later", false, "leave the request for the crawl that runs, or for the next one")
	f.register(fs)
	return cmd
}

func runRecrawl(cmd *cobra.Command, f *recrawlFlags, args []string) (err error) {
	rep := newReporter(&f.runFlags, cmd.OutOrStdout(), cmd.ErrOrStderr())
	defer func() { tellFailure(rep, err) }()
	if err := f.check(); err != nil {
		return err
	}
	if err := f.refuseOthers("max-time"); err != nil {
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
		return usagef("which URLs? Give them as arguments, or a file of them with --urls\nSee '%s --help'", cmd.CommandPath())
	}
	r := request{urls: urls, id: f.id}
	if r.id == "" {
		r.id = "recrawl-" + strings.ToLower(rand.Text())
	}
	if f.inCloud() {
		return f.recrawlInCloud(cmd.Context(), rep, &r)
	}
	if err := checkFolder(f.data, 0); err != nil {
		return err
	}
	ctx, release := interruptible(cmd.Context(), rep)
	defer release()
	done, err := f.hand(ctx, &r, rep)
	if err != nil || done {
		return err
	}
	s := &session{
		dir: f.data, resume: func(stored blobschema.Crawl) (blobschema.Crawl, error) {
			stored.Settings.AllowNet = f.allowNet.with(stored.Settings.AllowNet)
			return stored, nil
		},
		connections: f.connections, maxTime: f.maxTime,
		retry: polite.Retry{Wait: 5 * time.Second}, perRun: f.perRun(), reporter: rep, request: &r,
	}
	sum, err := s.run(ctx, s.concludeRequest)
	if err != nil {
		return err
	}
	sum.costs = f.costs
	return concluded(rep, sum)
}

// concluded tells what came of a request.
func concluded(rep reporter, sum *summary) error {
	rep.ended(sum)
	if sum.Status == exitNothing {
		return fail(exitNothing, errors.New("none of the URLs was answered"))
	}
	return stopped(sum.Status)
}

// hand gives the request to the process that crawls, or leaves it in the queue if that
// is what --later asks for; done says that it did. A process that is just ending is
// waited for, for some seconds.
func (f *recrawlFlags) hand(ctx context.Context, r *request, rep reporter) (done bool, err error) {
	for try := 0; ; try++ {
		told := handed{Data: f.data, URLs: len(r.urls), ID: r.id}
		err := f.look(ctx, func(v *view.View) error {
			told.Crawl = v.ID()
			if live := v.Live(ctx); live != nil {
				told.PID = live.PID
			}
			return r.submit(ctx, v.ID(), v.Submit)
		})
		switch {
		case err == nil:
			rep.told(&told)
			return true, nil
		case !errors.Is(err, view.ErrNoOwner):
			return false, err
		case told.PID == 0 && !f.later:
			return false, nil
		case told.PID == 0:
			err := f.leave(ctx, told.Crawl, r)
			if err == nil {
				told.Resume = resumeCommand(f.data)
				rep.told(&told)
			}
			return true, f.explain(err)
		case try == 10:
			return false, fail(exitInUse, fmt.Errorf("the process that crawls in %s is ending and takes no more requests; try again soon", f.data))
		}
		select {
		case <-ctx.Done():
			return false, fail(exitStopped, errors.New("stopped; nothing was asked for"))
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// leave puts the request into the queue of a folder that nobody works on.
func (f *recrawlFlags) leave(ctx context.Context, crawl string, r *request) error {
	return f.enter(ctx, func(v *visit) error { return r.submit(ctx, crawl, v.engine.Submit) })
}

// request is what recrawl was asked for.
type request struct {
	urls []weburl.URL
	id   string
}

// submit submits the request in as many messages as its URLs need. All have its id:
// repeats are told by id and URL, so it does not matter if they are cut otherwise.
func (r *request) submit(ctx context.Context, crawl string, submit func(context.Context, blobschema.Request) error) error {
	for _, m := range r.messages(crawl) {
		if err := submit(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// messages cuts the request into messages that fit the queue.
func (r *request) messages(crawl string) []blobschema.Request {
	const rest = 6*blobschema.MaxRequestID + 1<<10 // bytes of the other fields, at most
	var out []blobschema.Request
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

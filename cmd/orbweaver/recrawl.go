package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/crawlfile"
	"github.com/orbweaver/orbweaver/internal/polite"
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
	cmd := command("recrawl", nil, func(cmd *cobra.Command, args []string) error {
		rep := newReporter(f.json, f.quiet, cmd.OutOrStdout(), cmd.ErrOrStderr())
		err := f.run(cmd, rep, args)
		rep.failed(err)
		return err
	})
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.urls, "urls", "", "file of URLs, one a line, # comments; - for standard input")
	fs.StringVar(&f.id, "id", "", "makes a repeat of the request do nothing, for 15 days; without it each counts")
	fs.BoolVar(&f.later, "later", false, "leave the request for the crawl that runs, or for the next one")
	f.settings.register(fs, func(s *crawlfile.Setting) bool { return s.Name == "allow-net" })
	f.runFlags.register(fs)
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
	if f.inCloud() {
		return f.inDeployment(cmd.Context(), rep, req)
	}
	if err := f.checkFolder(0); err != nil {
		return err
	}
	ctx, release := interruptible(cmd.Context(), rep)
	defer release()
	if done, err := f.hand(ctx, rep, req); err != nil || done {
		return err
	}
	r := &run{
		target: &f.target, resume: func(stored blobschema.Crawl) (blobschema.Crawl, error) {
			return stored, f.apply(&stored, "allow-net")
		},
		connections: f.connections, maxTime: f.maxTime, retry: polite.Retry{Wait: 5 * time.Second}, perRun: f.perRun(), costs: f.costs,
		reporter: rep, request: req,
	}
	sum, err := r.start(ctx, r.concludeRequest)
	if err != nil {
		return err
	}
	return conclude(rep, sum, noneAnswered)
}

const noneAnswered = "none of the URLs was answered"

// errNotOwned says that no process works on the folder, so the command does.
var errNotOwned = errors.New("nobody works on the folder")

// hand gives the request to the process that owns the folder, or leaves it in the queue if --later is
// given; it returns false if this command has to crawl.
func (f *recrawlFlags) hand(ctx context.Context, rep *reporter, req *request) (done bool, err error) {
	told := handed{URLs: len(req.urls), ID: req.id}
	err = f.change(ctx, func(o *opened) error {
		if o.pid == 0 && !f.later {
			return errNotOwned // the process has ended meanwhile
		}
		told.where, told.PID = f.where(o.view.ID()), o.pid
		if o.pid == 0 {
			told.Resume = f.command("crawl")
		}
		return req.submit(ctx, told.Crawl, o)
	})
	if errors.Is(err, errNotOwned) {
		return false, nil
	}
	if err == nil {
		rep.told("handed", &told)
	}
	return true, err
}

// request is a request for URLs.
type request struct {
	urls []weburl.URL
	id   string
}

// submit submits the request in as many messages as its URLs need. All have its id: repeats are
// recognised by id and URL, so they may be cut differently.
func (r *request) submit(ctx context.Context, crawl string, to control.Control) error {
	for _, m := range r.messages(crawl) {
		if err := to.Submit(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// messages cuts the request into messages that fit the queue.
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

// Package orbweaver crawls the web from a Go program, and reads what a crawl has stored.
//
// [Open] creates or resumes the crawl in a folder or on a platform, and [Crawl.Run] crawls until it is done. A crawl that was
// stopped or killed resumes where its last commit was. [OpenReader] reads a crawl that another process may be working on:
// its pages ([Reader.Pages]) and what has happened to them, in order ([Reader.Feed], [Reader.Follow]). The commands of
// cmd/orbweaver work on the same folders and platforms.
//
// The names of settings, of outcomes and of platforms are those of the commands: see docs/crawl-file.md,
// docs/formats.md and docs/howto. A platform with another driver is a value of package platform.
package orbweaver

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/crawlfile"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/feed"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/platform"
)

var (
	// ErrNoCrawl means that there is no crawl at a location, and no seed to create one with.
	ErrNoCrawl = errors.New("there is no crawl yet; give a seed to create one")
	// ErrInUse means that another process owns the folder. Only [OpenReader] opens it, while that process crawls.
	ErrInUse = errors.New("another process works on the folder")
)

// Options configure a crawl. The zero value resumes a crawl with the settings that it has.
type Options struct {
	// Seeds are the URLs to start from. Of a crawl that exists, those that are new are added.
	Seeds []string
	// Settings are values by the name of the setting, as in the crawl file: {"max-pages": {"100"}, "exclude": {`\.pdf$`, `/print/`}}.
	// Settings that a crawl keeps, such as its scope, cannot differ from those that it was created with.
	Settings map[string][]string
	// Filter reports whether to follow a link from a page to a URL, in addition to the scope; nil: all links in scope.
	// It is called concurrently, for redirects and sitemaps too, but not for seeds. It must be a pure function of its
	// arguments, and the same whenever the crawl is resumed and in each process that works on it; otherwise it depends on
	// crashes and on the order of answers which pages are crawled. A platform with functions has no filter.
	Filter func(page, link string) bool
	// OnPage is called during [Crawl.Run] for each change behind Since, also for those of earlier runs: when the change is visible,
	// one at a time, in the order of the feed, and once in this process. An error ends the run, and the next run repeats that
	// change. A program that keeps the cursor of the last change and sets Since to it after a crash misses none.
	OnPage func(Change) error
	// Since is the cursor behind which OnPage begins, "" for the beginning of the crawl, or "now".
	Since string
	// Connections is the limit of requests under way at once; 0 means 512.
	Connections int
	// Platform is an open platform to use instead of the location, for a driver of your own. Close does not close it.
	Platform *platform.Platform
	// Log gets warnings; nil: none.
	Log *slog.Logger
}

// Crawl is a crawl that this process may work on. Its methods are safe for concurrent use.
type Crawl struct {
	*Reader
	options  Options
	platform *platform.Platform
	folder   string           // "" for another location
	record   blobschema.Crawl // as the options made it
	filter   func(page, link weburl.URL) bool

	running sync.Mutex
	since   string // cursor behind the last change that OnPage took

	mu     sync.Mutex
	engine *jobs.Jobs // of the present run, or of the next one
}

// Open creates the crawl at a location, or opens the one that is there. A location is a folder, which this process owns until Close;
// the URL of a platform, such as postgres://…, which other processes may share; or mem://, for a crawl that ends with the
// process. The errors include [ErrNoCrawl] and [ErrInUse].
func Open(ctx context.Context, location string, o Options) (*Crawl, error) {
	wanted, err := o.crawl()
	if err != nil {
		return nil, err
	}
	var seeds []weburl.URL
	if seeds, err = parseURLs(o.Seeds); err != nil {
		return nil, err
	}
	c := &Crawl{options: o, platform: o.Platform, since: o.Since}
	closing := func() error { return nil }
	if c.platform == nil {
		if c.platform, err = open(ctx, location); err != nil {
			return nil, err
		}
		closing = c.platform.Close
		if !drivers.IsCloud(location) {
			c.folder = location
		}
	}
	c.Reader = &Reader{close: closing}
	if err = c.open(ctx, wanted, seeds); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// open opens the platform at a location.
func open(ctx context.Context, location string) (p *platform.Platform, err error) {
	if location == "mem://" {
		return drivers.Memory(nil)
	}
	p, err = drivers.Open(ctx, location, nil)
	if errors.Is(err, drivers.ErrInUse) {
		err = fmt.Errorf("%w: %w", ErrInUse, err)
	}
	return p, err
}

// crawl returns the record of a new crawl, without its identity.
func (o *Options) crawl() (blobschema.Crawl, error) {
	c := crawlfile.Defaults(service.DefaultAgent)
	c.Settings.Requisites = false
	for name, values := range o.Settings {
		s := crawlfile.Find(name)
		if s == nil {
			return c, fmt.Errorf("setting %q: there is no such setting; docs/crawl-file.md lists them", name)
		}
		if err := s.Replace(&c, values); err != nil {
			return c, fmt.Errorf("setting %s: %w", name, err)
		}
	}
	if least := c.Settings.LeastPartitions; least > 0 && o.Settings["partitions"] == nil {
		c.Partitions = least
	}
	name, err := crawlfile.Check(&c)
	if err != nil {
		err = fmt.Errorf("setting %s: %w", name, err)
	}
	return c, err
}

// resume applies the settings to the record of a crawl that exists.
func (o *Options) resume(stored, wanted *blobschema.Crawl) error {
	for name, values := range o.Settings {
		s := crawlfile.Find(name)
		if was, now := s.Get(stored), s.Get(wanted); s.Fixed && was != now {
			return fmt.Errorf("setting %s: the crawl was created with %s and keeps it; leave %s out", name, was, now)
		} else if s.Fixed {
			continue
		}
		if err := s.Replace(stored, values); err != nil {
			return fmt.Errorf("setting %s: %w", name, err)
		}
	}
	return nil
}

func parseURLs(list []string) (urls []weburl.URL, err error) {
	for _, raw := range list {
		u, err := weburl.Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("cannot use URL %.200q: %w%s", raw, err, crawlfile.Suggestion(raw))
		}
		urls = append(urls, u)
	}
	return urls, nil
}

// open creates or resumes the crawl on the platform.
func (c *Crawl) open(ctx context.Context, wanted blobschema.Crawl, seeds []weburl.URL) error {
	p := c.platform
	if f := c.options.Filter; f != nil {
		if p.Functions {
			return errors.New("functions work on this platform, and have no Filter; use the settings include and exclude")
		}
		c.filter = func(page, link weburl.URL) bool { return f(page.String(), link.String()) }
	}
	if first := cmp.Or(p.BeginWith, p.Partitions); first > 0 && c.options.Settings["partitions"] == nil && wanted.Settings.MostPartitions == 0 {
		wanted.Partitions = min(first, wanted.Slots)
	}
	e, err := jobs.Open(p, service.Config{Log: c.options.Log})
	if err != nil {
		return err
	}
	c.engine = e
	fresh, err := service.Identify(wanted)
	if err != nil {
		return err
	}
	record, _, _, err := e.Begin(fresh, crawl.Seeds(seeds), func(stored *blobschema.Crawl) error { return c.options.resume(stored, &wanted) })
	if errors.Is(err, crawl.ErrNoCrawl) {
		return ErrNoCrawl
	}
	if err != nil {
		return err
	}
	c.record = record
	if c.view, err = view.New(ctx, engine.Store{Platform: p}); err != nil {
		return err
	}
	if !p.Exclusive { // the record names the networks of a folder; each worker has its own
		c.record.Settings.AllowNet = wanted.Settings.AllowNet
	}
	return c.renew(ctx)
}

// renew makes the engine of the next run.
func (c *Crawl) renew(ctx context.Context) error {
	err := c.stop(ctx)
	if err != nil {
		return err
	}
	e, err := jobs.Open(c.platform, c.config())
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.engine = e
	_, err = e.Open()
	return err
}

// stop closes the engine.
func (c *Crawl) stop(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.engine == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return c.engine.Close(ctx)
}

// config is the configuration of an engine that fetches pages.
func (c *Crawl) config() service.Config {
	cfg := service.Config{
		Step:        crawl.StepConfig{Software: "orbweaver/" + service.Version, Retry: polite.Retry{Wait: 5 * time.Second}, Follow: c.filter},
		Connections: c.options.Connections, Log: c.options.Log,
	}
	cfg.Fetch.AllowNet = c.record.Settings.AllowNet
	return cfg.For(&c.record.Settings)
}

// Submit requests URLs before all others, once more if they were fetched before. They must be in the scope of the crawl, and the
// present run or the next one fetches them. It returns when the request is stored.
func (c *Crawl) Submit(ctx context.Context, urls ...string) error {
	list, err := parseURLs(urls)
	if err != nil {
		return err
	}
	c.mu.Lock()
	e := c.engine
	c.mu.Unlock()
	return control.Recrawl(ctx, control.Own{Engine: e}, c.record.ID, "submit-"+strings.ToLower(rand.Text()), list)
}

// Close ends the crawl's use of its location. It waits for a run that is ending, and does not end one.
func (c *Crawl) Close() error {
	c.running.Lock()
	defer c.running.Unlock()
	return errors.Join(c.stop(context.Background()), c.Reader.Close())
}

// Run crawls until nothing is left to do or the limit of pages is reached, and returns nil; with the setting recrawl only when ctx
// ends or an operator stops the crawl. If ctx ends, Run commits what it has and returns the context's error; the next
// Run, of this process or another, resumes the crawl. Where several processes share the platform, Run is one of its
// workers.
//
// While it runs in a folder, the commands status, explain, pause, stop and the others read and change the crawl, and so
// does OpenReader in another process.
func (c *Crawl) Run(ctx context.Context) error {
	if !c.running.TryLock() {
		return errors.New("the crawl runs already")
	}
	defer c.running.Unlock()
	if _, err := c.own().Order(ctx, crawl.OrderResume); err != nil {
		return err
	}
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	over, told := make(chan struct{}), make(chan error, 1)
	go func() {
		err := c.tell(run, over)
		if err != nil {
			stop(err)
		}
		told <- err
	}()
	err := c.work(run)
	close(over)
	err = cmp.Or(<-told, err, ctx.Err())
	err = errors.Join(err, c.renew(ctx))
	if err != nil {
		return err
	}
	if now, err := c.view.Desired(ctx); err != nil || now.Stop {
		return cmp.Or(err, errors.New("an operator stopped the crawl; the next run resumes it"))
	}
	return nil
}

func (c *Crawl) own() control.Control {
	own := control.Own{Engine: c.engine}
	if c.platform.Exclusive {
		return own
	}
	return control.Deployment{Own: own}
}

// work crawls until the crawl or ctx ends.
func (c *Crawl) work(ctx context.Context) error {
	if !c.platform.Exclusive {
		w, err := service.NewWorker(c.platform, service.WorkConfig{
			Config: c.config(), Prepare: func(s *service.Service) { jobs.New(s) }, Jobs: !c.platform.Functions, UntilOver: true,
		})
		if err != nil {
			return err
		}
		return w.Run(ctx)
	}
	failed, err := c.view.FailedSeeds(ctx, 1_000_000)
	if err != nil {
		return err
	}
	if _, _, _, err = c.engine.Begin(blobschema.Crawl{}, failed, nil); err != nil {
		return err
	}
	if c.folder != "" {
		end, err := control.Serve(ctx, c.folder, c.platform, control.Owner{
			Control: c.own(), Snapshot: func() any { return c.engine.Snapshot() }, Ended: func() bool { return ctx.Err() != nil },
		})
		if err != nil {
			return err
		}
		defer func() { _ = end() }() // the socket is all that it leaves
	}
	_, err = c.engine.Run(ctx)
	return err
}

// tell calls OnPage for each change, until the run is over and all of its changes are told, or ctx ends.
func (c *Crawl) tell(ctx context.Context, over <-chan struct{}) error {
	if c.options.OnPage == nil {
		return nil
	}
	r, err := feed.New(ctx, c.view, c.since)
	if err != nil {
		return err
	}
	every := 3 * time.Second // a read costs a call
	if c.platform.Exclusive {
		every = 200 * time.Millisecond
	}
	for last := false; ; {
		for ch, err := range c.changes(r.Batches(ctx, 0)) {
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			if err := c.options.OnPage(ch); err != nil {
				return err
			}
			c.since = ch.Cursor
		}
		if last || ctx.Err() != nil {
			return nil
		}
		select {
		case <-over:
			last = true
		case <-ctx.Done():
		case <-time.After(every):
		}
	}
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/platform"
)

// platformVariable names the environment variable with the default platform.
const platformVariable = "ORBWEAVER_PLATFORM"

// target is the crawl that a command works on. A command opens its target once, with read, change, own or
// enter, and then talks to a [view.View] and a [control.Control].
type target struct {
	location
	data  string // --data
	cloud string // --platform
	crawl string // --crawl; empty for the active crawl
	live  bool   // another process may be working on the crawl
	set   *pflag.FlagSet
}

// folderTarget returns the target of a crawl in a folder.
func folderTarget(dir string) *target { return &target{location: folder(dir), data: dir} }

// register adds the flags of the target to a command, which settles the target before it runs.
func (t *target) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	t.set = fs
	cmd.PreRunE = func(*cobra.Command, []string) error { return t.choose() }
	fs.StringVar(&t.data, "data", defaultData, "folder that holds the crawl")
	fs.StringVar(&t.cloud, "platform", "",
		"instead of a folder: URL of a platform, the profile file that 'make deploy' wrote, or mem:// for a crawl that leaves nothing (default: $"+platformVariable+")")
}

// registerCrawl adds the flag that selects another crawl than the active one.
func (t *target) registerCrawl(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.crawl, "crawl", "", "id of the crawl to read, as 'orbweaver crawls' lists them (default: the active one)")
}

// choose chooses between the folder and the platform.
func (t *target) choose() (err error) {
	switch {
	case t.set.Changed("data") && t.set.Changed("platform"):
		return usagef("--data and --platform exclude each other; give one of them")
	case t.set.Changed("platform"):
		return t.deployed("--platform", t.cloud, "--platform", t.cloud)
	}
	t.location = folder(t.data)
	if implied := os.Getenv(platformVariable); implied != "" && !t.set.Changed("data") {
		return t.deployed("$"+platformVariable, implied)
	}
	return nil
}

// deployed makes a deployment the target, by its URL or profile file. flags lead other commands to it.
func (t *target) deployed(from, given string, flags ...string) error {
	url, err := readLocation(given)
	if err != nil {
		return usagef("%s: %w", from, err)
	}
	if url == inMemory {
		t.location = memory{}
		return nil
	}
	t.location, t.live = deployment{url, flags}, true
	return nil
}

// readLocation returns the URL of a platform, which is given directly or by a profile file.
func readLocation(location string) (url string, err error) {
	if drivers.IsCloud(location) {
		return location, nil
	}
	if location == "" {
		return "", errors.New("it must be the URL of a platform, such as aws://NAME?bucket=BUCKET&partitions=N or postgres://USER@HOST/DATABASE?blobs=URL, or a profile file")
	}
	data, err := os.ReadFile(location)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no profile file %s; 'make deploy' writes one, or give the URL of the platform (aws://... or postgres://...)", location)
	}
	if err != nil {
		return "", err
	}
	var profile struct {
		Platform string `json:"platform"`
	}
	err = json.Unmarshal(data, &profile)
	switch {
	case err != nil:
		return "", fmt.Errorf("the profile file %s is not JSON: %w", location, err)
	case profile.Platform == "":
		return "", fmt.Errorf(`the profile file %s has no field "platform"; it should name one, as in `+
			`{"platform": "aws://NAME?bucket=BUCKET&partitions=N"}`, location)
	case !drivers.IsCloud(profile.Platform):
		return "", fmt.Errorf("the profile file %s names %q, which is not the URL of a platform", location, profile.Platform)
	}
	return profile.Platform, nil
}

// command is a command line that works on the same target.
func (t *target) command(verb string, args ...string) string {
	return shellescape.QuoteCommand(slices.Concat([]string{"orbweaver"}, strings.Fields(verb), t.flags(), args))
}

// checkFlags refuses flags that make no sense at the location, except some.
func (t *target) checkFlags(except ...string) error {
	flags := t.senseless()
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if t.set.Changed(name) && !slices.Contains(except, name) {
			return usagef("--%s makes no sense in %s: %s", name, t.words().kind, flags[name])
		}
	}
	return nil
}

// where is how reports name a crawl and its target.
type where struct {
	Crawl string `json:"crawl,omitempty"`
	Data  string `json:"data,omitempty"`
	Cloud string `json:"platform,omitempty"`
	at    *target
}

func (t *target) where(crawl string) where {
	w := where{Crawl: crawl, at: t}
	t.name(&w)
	return w
}

// Name is "crawl ID in TARGET".
func (w where) Name() string { return fmt.Sprintf("crawl %s in %s", w.Crawl, w.at) }

// Target names the folder or the deployment.
func (w where) Target() string { return w.at.String() }

// Deployed reports whether the target is a deployment.
func (w where) Deployed() bool { return w.Cloud != "" }

// Priced reports whether calls of the target have prices.
func (w where) Priced() bool { return drivers.Priced(w.Cloud) }

// Command is a command line that works on the same target.
func (w where) Command(verb string, args ...string) string { return w.at.command(verb, args...) }

// opener opens a platform, as drivers.Open does.
type opener func(ctx context.Context, location string, meter platform.Meter) (*platform.Platform, error)

// openerKey is the key of an opener in a context, for tests.
type openerKey struct{}

// opened is a target that a command has open to change it.
type opened struct {
	*target
	control.Control
	view     *view.View         // nil before there is a crawl
	platform *platform.Platform // nil if another process owns the folder
	engine   *jobs.Jobs         // likewise
	ledger   *ledger.Ledger
	pid      int // of the process that owns the folder; 0 for none
}

// here reports whether this process owns the crawl: no other process works on it.
func (o *opened) here() bool { return o.platform != nil && o.platform.Exclusive }

// partitions is how many partitions the target allows; 0 for any number.
func (o *opened) partitions() int {
	if o.platform == nil {
		return 0
	}
	return o.platform.Partitions
}

// enter opens the platform with an engine, calls f and closes both. There need not be a crawl.
func (t *target) enter(ctx context.Context, f func(o *opened) error) (err error) {
	led := &ledger.Ledger{}
	p, err := t.open(ctx, led)
	if err != nil {
		return t.explain(err)
	}
	// An error of closing says nothing new if f has failed.
	defer func() { err = cmp.Or(err, t.explain(p.Close())) }()
	e, err := jobs.Open(p, service.Config{Ledger: led})
	if err != nil {
		return t.explain(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = cmp.Or(err, t.explain(e.Close(ctx)))
	}()
	return t.explain(f(&opened{target: t, platform: p, engine: e, ledger: led, Control: t.control(control.Own{Engine: e})}))
}

// see opens the reader of the active crawl.
func (o *opened) see(ctx context.Context) (err error) {
	o.view, err = view.New(ctx, engine.Store{Platform: o.platform})
	return err
}

// own is enter for the active crawl.
func (t *target) own(ctx context.Context, f func(o *opened) error) error {
	return t.enter(ctx, func(o *opened) error {
		if err := o.see(ctx); err != nil {
			return err
		}
		if _, err := o.engine.Open(); err != nil {
			return err
		}
		return f(o)
	})
}

// read opens the active crawl for reading, or that of --crawl, calls f and closes it.
func (t *target) read(ctx context.Context, f func(v *view.View) error) (err error) {
	return t.explain(t.location.read(ctx, t, func(v *view.View) (err error) {
		if t.crawl != "" {
			if v, err = v.Of(ctx, t.crawl); err != nil {
				return err
			}
		}
		return f(v)
	}))
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

// explain adds advice and the exit status to an error.
func (t *target) explain(err error) error {
	if f := (*failure)(nil); err == nil || errors.As(err, &f) {
		return err
	}
	// A full disk comes first: it stops the database too.
	if told := cmp.Or(t.noRoom(err), t.damage(err)); told != nil {
		return told
	}
	switch {
	case errors.Is(err, crawl.ErrUnfinished):
		return usagef("%w.\nResume it with '%s', or abandon it with '%s' and run this command again", err, t.command("crawl"), t.command("stop"))
	case errors.Is(err, crawl.ErrAtWork):
		return fail(exitInUse, fmt.Errorf("%w.\nThey end within some minutes: try again then", err))
	case errors.Is(err, view.ErrUnknownCrawl):
		return usagef("%w\nSee '%s'", err, t.command("crawls"))
	case errors.Is(err, crawl.ErrNoCrawl), errors.Is(err, view.ErrNoCrawl), errors.Is(err, view.ErrNoFolder):
		return t.noCrawl()
	}
	return t.location.explain(err)
}

// noCrawl says that there is no crawl, and how to create one.
func (t *target) noCrawl() error {
	return usagef("there is no crawl in %s yet; give a URL to create one, as in '%s'", t, t.command("crawl", "https://example.org/"))
}

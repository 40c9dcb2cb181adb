package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
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

// target is where a crawl is: in a folder of this machine, or in a deployment. A command opens its
// target once, with read, change, own or enter, and then talks to a [view.View] and a [control.Control].
type target struct {
	data    string // the folder
	flag    string // --platform
	cloud   string // URL of the platform; "" for the folder
	implied bool   // the platform comes from the environment
	live    bool   // another process works on the folder
	set     *pflag.FlagSet
}

// register adds the flags of the target to a command, which settles the target before it runs.
func (t *target) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	t.set = fs
	cmd.PreRunE = func(*cobra.Command, []string) error { return t.choose() }
	fs.StringVar(&t.data, "data", defaultData, "folder that holds the crawl")
	fs.StringVar(&t.flag, "platform", "",
		"instead of a folder: URL of a platform in a cloud, or the profile file that 'make deploy' wrote (default: $"+platformVariable+")")
}

// choose chooses between the folder and the platform.
func (t *target) choose() (err error) {
	switch {
	case t.set.Changed("data") && t.set.Changed("platform"):
		return usagef("--data and --platform exclude each other; give one of them")
	case t.set.Changed("data"):
		return nil
	}
	from := "--platform"
	if !t.set.Changed("platform") {
		if t.flag, t.implied = os.Getenv(platformVariable), true; t.flag == "" {
			return nil
		}
		from = "$" + platformVariable
	}
	if t.cloud, err = readLocation(t.flag); err != nil {
		return usagef("%s: %w", from, err)
	}
	return nil
}

// readLocation returns the URL of a platform, which is given directly or by a profile file.
func readLocation(location string) (url string, err error) {
	if drivers.IsCloud(location) {
		return location, nil
	}
	if location == "" {
		return "", errors.New("it must be the URL of a platform, such as aws://NAME?bucket=BUCKET&partitions=N, or a profile file")
	}
	data, err := os.ReadFile(location)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no profile file %s; 'make deploy' writes one, or give the URL of the platform (aws://...)", location)
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

// inCloud reports whether the target is a deployment.
func (t *target) inCloud() bool { return t.cloud != "" }

// String names the target in a message.
func (t *target) String() string {
	if t.inCloud() {
		return drivers.ShortName(t.cloud)
	}
	return t.data
}

// object names an object in a report: its file in a folder.
func (t *target) object(name string) string {
	if t.inCloud() {
		return t.String() + ", objects " + name
	}
	return filepath.Join(t.data, naming.ObjectsFolder, filepath.FromSlash(name))
}

// command is a command line that works on the same target.
func (t *target) command(verb string, args ...string) string {
	return shellescape.QuoteCommand(slices.Concat([]string{"orbweaver"}, strings.Fields(verb), t.flags(), args))
}

// flags are the flags that lead a command to the target.
func (t *target) flags() []string {
	switch {
	case t.inCloud() && t.implied:
		return nil
	case t.inCloud():
		return []string{"--platform", t.flag}
	case t.data != defaultData || os.Getenv(platformVariable) != "":
		return []string{"--data", t.data}
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
	if t.inCloud() {
		return where{Crawl: crawl, Cloud: t.cloud, at: t}
	}
	return where{Crawl: crawl, Data: t.data, at: t}
}

// Name is "crawl ID in TARGET".
func (w where) Name() string { return fmt.Sprintf("crawl %s in %s", w.Crawl, w.at) }

// Target names the folder or the deployment.
func (w where) Target() string { return w.at.String() }

// Deployed reports whether the target is a deployment.
func (w where) Deployed() bool { return w.at.inCloud() }

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

// idle reports whether no process works on the crawl until another command does.
func (o *opened) idle() bool { return !o.inCloud() && o.pid == 0 }

// partitions is how many partitions the target allows; 0 for any number.
func (o *opened) partitions() int {
	if o.platform == nil {
		return 0
	}
	return o.platform.Partitions
}

// openPlatform opens the platform of the target.
func (t *target) openPlatform(ctx context.Context, led *ledger.Ledger) (*platform.Platform, error) {
	if !t.inCloud() {
		return drivers.Local(t.data, led)
	}
	if open, ok := ctx.Value(openerKey{}).(opener); ok {
		return open(ctx, t.cloud, led)
	}
	return drivers.Open(ctx, t.cloud, led)
}

// enter opens the platform with an engine, calls f and closes both. There need not be a crawl.
func (t *target) enter(ctx context.Context, f func(o *opened) error) (err error) {
	led := &ledger.Ledger{}
	p, err := t.openPlatform(ctx, led)
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
	o := &opened{target: t, platform: p, engine: e, ledger: led, Control: control.Own{Engine: e}}
	if t.inCloud() {
		o.Control = control.Deployment{Own: control.Own{Engine: e}}
	}
	return t.explain(f(o))
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

// read opens the active crawl for reading, calls f and closes it.
func (t *target) read(ctx context.Context, f func(v *view.View) error) (err error) {
	if t.inCloud() {
		return t.enter(ctx, func(o *opened) error {
			if err := o.see(ctx); err != nil {
				return err
			}
			return f(o.view)
		})
	}
	v, err := view.Open(ctx, t.data)
	if err != nil {
		return t.explain(err)
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if err = f(v); err != nil {
		t.live = v.Live(ctx) != nil
	}
	return t.explain(err)
}

// change opens the active crawl, calls f and closes it. If another process owns the folder, f talks
// to that process; if that process is just ending, change waits and calls f again.
func (t *target) change(ctx context.Context, f func(o *opened) error) error {
	if t.inCloud() {
		return t.own(ctx, f)
	}
	for try := 0; ; try++ {
		owned := false
		err := t.read(ctx, func(v *view.View) error {
			live := v.Live(ctx)
			if live == nil {
				return nil
			}
			owned = true
			return f(&opened{target: t, Control: control.Dial(t.data), view: v, pid: live.PID})
		})
		switch {
		case err == nil && !owned:
			return t.own(ctx, f)
		case !errors.Is(err, control.ErrNoOwner):
			return err
		case try == 10:
			return fail(exitInUse, fmt.Errorf("the process that crawls in %s is ending and changes nothing more; try again soon", t))
		}
		if !wait(ctx, 500*time.Millisecond) {
			return fail(exitStopped, errors.New("stopped; nothing was changed"))
		}
	}
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
	case errors.Is(err, crawl.ErrNoCrawl), errors.Is(err, view.ErrNoCrawl), errors.Is(err, view.ErrNoFolder):
		return t.noCrawl()
	case t.inCloud() && errors.Is(err, wire.ErrVersion):
		return fmt.Errorf("%s: the crawl there was not begun by this version: %w.\n"+
			"Use the version that began it, or deploy this version under another name", t, err)
	case t.inCloud() && !strings.Contains(err.Error(), t.String()):
		return fmt.Errorf("%s: %w", t, err)
	case t.inCloud():
		return err
	case errors.Is(err, drivers.ErrInUse):
		return fail(exitInUse, fmt.Errorf("the folder %s is in use: another process works on it.\n"+
			"Wait until it ends, or work in another folder (--data)", t.data))
	case errors.Is(err, drivers.ErrVersion), errors.Is(err, wire.ErrVersion):
		return fmt.Errorf("the folder %s was not written by this version: %w.\n"+
			"Use the version that wrote it, or begin another crawl in another folder (--data)", t.data, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fail(exitError, fmt.Errorf("the folder %s cannot be read or written: %w.\n"+
			"Change its permissions, or give another folder with --data", t.data, err))
	}
	return err
}

// noCrawl says that there is no crawl, and how to create one.
func (t *target) noCrawl() error {
	return usagef("there is no crawl in %s yet; give a URL to create one, as in '%s'", t, t.command("crawl", "https://example.org/"))
}

// used reports whether a crawl has used the folder, without changing it. A folder with other files is an error.
func (t *target) used() (bool, error) {
	entries, err := os.ReadDir(t.data)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return false, nil
	case errors.Is(err, syscall.ENOTDIR):
		return false, usagef("--data %s is not a folder; give another one", t.data)
	case err != nil:
		return false, t.explain(err)
	}
	if _, err := os.Stat(filepath.Join(t.data, naming.DatabaseFile)); err == nil {
		return true, nil
	}
	foreign := usagef("the folder %s holds other files and no crawl; give an empty or new one with --data", t.data)
	return false, cmp.Or(t.explain(drivers.CheckFolder(t.data)), foreign)
}

// checkFolder is used, and refuses a folder without a crawl if there are no seeds either.
func (t *target) checkFolder(seeds int) (used bool, err error) {
	if used, err = t.used(); err == nil && !used && seeds == 0 {
		err = t.noCrawl()
	}
	return used, err
}

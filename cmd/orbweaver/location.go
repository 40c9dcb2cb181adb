package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/platform"
)

// location is where a crawl is: a [folder] of this machine, or a [deployment] in a cloud. Everything that
// commands do differently for the two is here.
type location interface {
	fmt.Stringer // name in messages

	flags() []string                               // lead a command to the location
	name(w *where)                                 // names the location in a report
	object(name string) string                     // names an object in a report
	words() words                                  // of messages
	senseless() map[string]string                  // flags that make no sense there, with the reasons
	patience() time.Duration                       // default of recrawl's --max-time; 0 for no bound
	explain(err error) error                       // adds advice to errors of the location
	check(t *target, n int) (used bool, err error) // before anything is changed; n is the number of seeds

	// signals returns a context that ends with the first signal to stop.
	signals(parent context.Context, w io.Writer) (ctx context.Context, release func())
	open(ctx context.Context, led *ledger.Ledger) (*platform.Platform, error)
	control(own control.Own) control.Control
	read(ctx context.Context, t *target, f func(v *view.View) error) error
	// change opens the active crawl, calls f and closes it.
	change(ctx context.Context, t *target, f func(o *opened) error) error
	// collect makes dead letters of the messages that queues gave up.
	collect(ctx context.Context, t *target) error
}

// words are parts of messages that depend on the location.
type words struct {
	kind     string // "a folder"
	contents string // subject of messages about damage: "the folder crawl"
	restore  string // advice on damage, if there is a copy
	another  string // place for another crawl, if there is no copy
	archives string // suffix that names the WARC files; "" if a command must fetch them
	stopped  string // first word of the message after an interrupted run
}

// change opens the active crawl, calls f and closes it.
func (t *target) change(ctx context.Context, f func(o *opened) error) error {
	return t.location.change(ctx, t, f)
}

// folder is the path of a folder of this machine. Only one process at a time can own it.
type folder string

func (d folder) String() string { return string(d) }

func (d folder) flags() []string {
	if d == defaultData && os.Getenv(platformVariable) == "" {
		return nil
	}
	return []string{"--data", string(d)}
}

func (d folder) name(w *where) { w.Data = string(d) }

func (d folder) object(name string) string {
	return filepath.Join(string(d), naming.ObjectsFolder, filepath.FromSlash(name))
}

func (d folder) words() words {
	return words{
		kind: "a folder", contents: "the folder " + string(d),
		restore: "restore the folder from a copy, with both " + naming.DatabaseFile + " and " + naming.ObjectsFolder, another: "another folder (--data)",
		archives: ": " + d.object("*/warc"), stopped: "Stopped",
	}
}

func (d folder) senseless() map[string]string {
	return map[string]string{
		"every":  "a crawl in a folder runs in this process",
		"detach": "the work is done by this process, and ends with it",
	}
}

func (d folder) patience() time.Duration { return 0 }

func (d folder) explain(err error) error {
	switch {
	case errors.Is(err, drivers.ErrInUse):
		return fail(exitInUse, fmt.Errorf("the folder %s is in use: another process works on it.\n"+
			"Wait until it ends, or work in another folder (--data)", d))
	case errors.Is(err, drivers.ErrVersion), errors.Is(err, wire.ErrVersion):
		return fmt.Errorf("the folder %s was not written by this version: %w.\n"+
			"Use the version that wrote it, or begin another crawl in another folder (--data)", d, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fail(exitError, fmt.Errorf("the folder %s cannot be read or written: %w.\n"+
			"Change its permissions, or give another folder with --data", d, err))
	}
	return err
}

// check refuses a folder without a crawl if there are no seeds either.
func (d folder) check(t *target, seeds int) (used bool, err error) {
	if used, err = d.used(t); err == nil && !used && seeds == 0 {
		err = t.noCrawl()
	}
	return used, err
}

// used reports whether a crawl has used the folder, without changing it. A folder with other files is an error.
func (d folder) used(t *target) (bool, error) {
	entries, err := os.ReadDir(string(d))
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return false, nil
	case errors.Is(err, syscall.ENOTDIR):
		return false, usagef("--data %s is not a folder; give another one", d)
	case err != nil:
		return false, t.explain(err)
	}
	if _, err := os.Stat(filepath.Join(string(d), naming.DatabaseFile)); err == nil {
		return true, nil
	}
	foreign := usagef("the folder %s holds other files and no crawl; give an empty or new one with --data", d)
	return false, cmp.Or(t.explain(drivers.CheckFolder(string(d))), foreign)
}

// signals lets the first signal end the crawl, and the second one the process.
func (d folder) signals(parent context.Context, w io.Writer) (ctx context.Context, release func()) {
	return interruptible(parent, w)
}

func (d folder) open(_ context.Context, led *ledger.Ledger) (*platform.Platform, error) {
	return drivers.Local(string(d), led)
}

func (d folder) control(own control.Own) control.Control { return own }

// read needs no ownership: it also reads while another process crawls.
func (d folder) read(ctx context.Context, t *target, f func(v *view.View) error) (err error) {
	v, err := view.Open(ctx, string(d))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if err = f(v); err != nil {
		t.live = v.Live(ctx) != nil
	}
	return err
}

// change lets f talk to the process that owns the folder, if there is one. If that process is just ending, change waits
// and calls f again.
func (d folder) change(ctx context.Context, t *target, f func(o *opened) error) error {
	for try := 0; ; try++ {
		owned := false
		err := t.read(ctx, func(v *view.View) error {
			live := v.Live(ctx)
			if live == nil {
				return nil
			}
			owned = true
			return f(&opened{target: t, Control: control.Dial(string(d)), view: v, pid: live.PID})
		})
		switch {
		case err == nil && !owned:
			return t.own(ctx, f)
		case !errors.Is(err, control.ErrNoOwner):
			return err
		case try == 10:
			return fail(exitInUse, fmt.Errorf("the process that crawls in %s is ending and changes nothing more; try again soon", d))
		}
		if !wait(ctx, 500*time.Millisecond) {
			return fail(exitStopped, errors.New("stopped; nothing was changed"))
		}
	}
}

// collect has nothing to do: the queues of a folder never give up a message.
func (d folder) collect(context.Context, *target) error { return nil }

// inMemory names the platform in the memory of one command.
const inMemory = "mem://"

// memory is a crawl that ends with its command: to see what a site holds without storing it.
type memory struct{ folder }

func (memory) String() string       { return "memory" }
func (memory) flags() []string      { return []string{"--platform", inMemory} }
func (memory) name(w *where)        { w.Data = inMemory }
func (memory) object(string) string { return "" }
func (memory) explain(err error) error {
	return err
}

func (memory) words() words {
	return words{kind: "memory", contents: "the crawl in memory", another: "a folder (--data)", stopped: "Stopped"}
}

func (memory) check(_ *target, seeds int) (used bool, err error) {
	if seeds == 0 {
		err = usagef("in memory there is no earlier crawl; give 'orbweaver crawl' a URL")
	}
	return false, err
}

func (memory) open(_ context.Context, led *ledger.Ledger) (*platform.Platform, error) {
	return drivers.Memory(led)
}

// lost reports whether the crawl ends with its command.
func (t *target) lost() bool {
	_, ok := t.location.(memory)
	return ok
}

func (m memory) read(context.Context, *target, func(*view.View) error) error { return m.alone() }

func (m memory) change(context.Context, *target, func(*opened) error) error { return m.alone() }

func (memory) alone() error {
	return usagef("a crawl in memory ends with its command, so no other command finds it; crawl into a folder (--data)")
}

// deployment is a crawl that functions or workers carry out.
type deployment struct {
	url  string   // of the platform
	args []string // flags that lead to it; nil if the environment names it
}

func (d deployment) String() string  { return drivers.ShortName(d.url) }
func (d deployment) flags() []string { return d.args }
func (d deployment) name(w *where)   { w.Cloud = drivers.WithoutPassword(d.url) }

func (d deployment) object(name string) string { return d.String() + ", objects " + name }

func (d deployment) words() words {
	return words{
		kind: "a cloud", contents: "what is stored in " + d.String(),
		restore: "restore table and bucket as they were at one moment", another: "another deployment", stopped: "Stopped waiting",
	}
}

func (d deployment) senseless() map[string]string {
	return map[string]string{
		"connections": "a worker has its own limit ('orbweaver work --connections'), and a function's depends on its memory ('make deploy')",
		"allow-net":   "a worker has its own list ('orbweaver work --allow-net'), and functions have theirs ('make deploy')",
		"inbound":     "give it to a worker ('orbweaver work --inbound'), or deploy the function (infra/aws/inbound)",
		"verbose":     "functions or workers fetch the pages there, and have the logs",
		"max-time":    "the crawl runs by itself there: 'orbweaver stop' ends it, --max-pages bounds it",
	}
}

func (d deployment) patience() time.Duration { return 10 * time.Minute }

func (d deployment) explain(err error) error {
	switch {
	case errors.Is(err, wire.ErrVersion):
		return fmt.Errorf("%s: another version created the crawl there: %w.\n"+
			"Use the version that created it, or deploy this version under another name", d, err)
	case !strings.Contains(err.Error(), d.String()):
		return fmt.Errorf("%s: %w", d, err)
	}
	return err
}

// check leaves it to the engine to find out whether there is a crawl.
func (d deployment) check(*target, int) (used bool, err error) { return true, nil }

// signals lets a signal end the command, not the crawl.
func (d deployment) signals(parent context.Context, _ io.Writer) (ctx context.Context, release func()) {
	return following(parent)
}

func (d deployment) open(ctx context.Context, led *ledger.Ledger) (*platform.Platform, error) {
	if open, ok := ctx.Value(openerKey{}).(opener); ok {
		return open(ctx, d.url, led)
	}
	p, err := drivers.Open(ctx, d.url, led)
	if err == nil && p.Exclusive {
		return nil, errors.Join(usagef("%s is in the memory of this command, so no worker or function can share it; use a folder (--data)", d), p.Close())
	}
	return p, err
}

func (d deployment) control(own control.Own) control.Control { return control.Deployment{Own: own} }

func (d deployment) read(ctx context.Context, t *target, f func(v *view.View) error) error {
	return t.enter(ctx, func(o *opened) error {
		if err := o.see(ctx); err != nil {
			return err
		}
		return f(o.view)
	})
}

func (d deployment) change(ctx context.Context, t *target, f func(o *opened) error) error {
	return t.own(ctx, f)
}

func (d deployment) collect(ctx context.Context, t *target) error {
	return t.own(ctx, func(o *opened) error { return o.fetchGivenUp(ctx) })
}

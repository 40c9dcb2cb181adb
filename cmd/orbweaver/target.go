package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/platform"
	"github.com/orbweaver/orbweaver/internal/view"
)

// platformVariable names the platform that commands work on unless they are told where.
const platformVariable = "ORBWEAVER_PLATFORM"

// place is where a crawl is: in a folder of this machine, or on a platform in a cloud.
type place struct {
	data    string // the folder
	flag    string // --platform
	cloud   string // URL of the platform; "" for the folder
	implied bool   // by the environment, so that other commands need not be told
	live    bool   // another process is at work in the folder
	set     *pflag.FlagSet
}

func (p *place) register(fs *pflag.FlagSet) {
	p.set = fs
	fs.StringVar(&p.data, "data", defaultData, "folder that holds the crawl")
	fs.StringVar(&p.flag, "platform", "", "instead of a folder: URL of a platform in a cloud, or the profile file that 'make deploy' wrote (default: $"+platformVariable+")")
}

// settle decides between the folder and the platform; it comes before all other methods.
func (p *place) settle() error {
	switch {
	case p.set.Changed("data") && p.set.Changed("platform"):
		return usagef("--data and --platform are two places; give one of them")
	case p.set.Changed("data"):
		return nil
	case !p.set.Changed("platform"):
		p.flag, p.implied = os.Getenv(platformVariable), true
		if p.flag == "" {
			return nil
		}
	}
	from := "--platform"
	if p.implied {
		from = "$" + platformVariable
	}
	var err error
	if p.cloud, err = readLocation(p.flag); err != nil {
		return usagef("%s: %w", from, err)
	}
	return nil
}

const maxProfile = 1 << 20 // bytes

// readLocation returns the URL of a platform, given as such or by a profile file.
func readLocation(location string) (url string, err error) {
	if platform.IsCloud(location) {
		return location, nil
	}
	if location == "" {
		return "", errors.New("it must be the URL of a platform, such as aws://NAME?bucket=BUCKET&partitions=N, or a profile file")
	}
	f, err := os.Open(location)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no profile file %s; 'make deploy' writes one, or give the URL of the platform (aws://...)", location)
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxProfile))
	if err != nil {
		return "", err
	}
	var profile struct {
		Platform string `json:"platform"`
	}
	if err := json.Unmarshal(data, &profile); err != nil {
		return "", fmt.Errorf("the profile file %s is no JSON: %w", location, err)
	}
	if profile.Platform == "" {
		return "", fmt.Errorf(`the profile file %s has no field "platform"; it should name one, as in {"platform": "aws://NAME?bucket=BUCKET&partitions=N"}`, location)
	}
	if !platform.IsCloud(profile.Platform) {
		return "", fmt.Errorf("the profile file %s names %q, which is not the URL of a platform", location, profile.Platform)
	}
	return profile.Platform, nil
}

// inCloud reports whether the crawl is on a platform that is not this process's own.
func (p *place) inCloud() bool { return p.cloud != "" }

// String names the place in a message.
func (p *place) String() string {
	if p.inCloud() {
		return platform.ShortName(p.cloud)
	}
	return p.data
}

// folderPlace is the place of a folder.
func folderPlace(dir string) *place { return &place{data: dir} }

// command is a command line that works on the same place.
func (p *place) command(verb string, args ...string) string {
	return quotedWords(slices.Concat([]string{"orbweaver"}, strings.Fields(verb), p.flags(), args))
}

// flags are what leads a command to the place.
func (p *place) flags() []string {
	switch {
	case p.inCloud() && p.implied:
		return nil
	case p.inCloud():
		return []string{"--platform", p.flag}
	case p.data != defaultData || os.Getenv(platformVariable) != "":
		return []string{"--data", p.data}
	}
	return nil
}

// explain turns an error of opening or working on the place into one that says what to
// do, with the status to end with.
func (p *place) explain(err error) error {
	var f *failure
	if err == nil || errors.As(err, &f) {
		return err
	}
	// A full disk comes first: it stops the database too.
	if told := cmp.Or(p.noRoom(err), p.damage(err)); told != nil {
		return told
	}
	switch {
	case errors.Is(err, crawl.ErrUnfinished):
		return usagef("%w.\nGo on with it: '%s'. Or give it up for good: '%s', and then this again", err, p.command("crawl"), p.command("stop"))
	case errors.Is(err, crawl.ErrAtWork):
		return fail(exitInUse, fmt.Errorf("%w.\nThey end within some minutes: try again then", err))
	case !p.inCloud():
		return explainFolder(p.data, err)
	case errors.Is(err, crawl.ErrNoCrawl), errors.Is(err, view.ErrNoCrawl):
		return p.noCrawl()
	case errors.Is(err, wire.ErrVersion):
		return fmt.Errorf("%s: the crawl there was not begun by this version: %w.\nUse the version that began it, or deploy this version under another name", p, err)
	case strings.Contains(err.Error(), p.String()):
		return err
	}
	return fmt.Errorf("%s: %w", p, err)
}

// noCrawl says that there is no crawl at the place, and how to begin one.
func (p *place) noCrawl() error {
	return usagef("there is no crawl in %s yet; give a URL to begin one, as in '%s'", p, p.command("crawl", "https://example.org/"))
}

// opener opens a platform, as platform.Open does.
type opener func(ctx context.Context, location string, meter platform.Meter) (*platform.Platform, error)

// openerKey is where a context has how platforms in a cloud are opened, if not by platform.Open.
type openerKey struct{}

// open opens the platform of a place in a cloud.
func (p *place) open(ctx context.Context, led *ledger.Ledger) (*platform.Platform, error) {
	open, ok := ctx.Value(openerKey{}).(opener)
	if !ok {
		open = platform.Open
	}
	return open(ctx, p.cloud, led)
}

// look opens the crawl for reading, calls f, and closes it again.
func (p *place) look(ctx context.Context, f func(v *view.View) error) (err error) {
	if err := p.settle(); err != nil {
		return err
	}
	if p.inCloud() {
		return p.visit(ctx, func(v *visit) error { return f(v.view) })
	}
	v, err := view.Open(ctx, p.data)
	if errors.Is(err, view.ErrNoFolder) || errors.Is(err, view.ErrNoCrawl) {
		return p.noCrawl()
	}
	if err != nil {
		return p.explain(err)
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if err = f(v); err != nil {
		p.live = v.Live(ctx) != nil
	}
	return p.explain(err)
}

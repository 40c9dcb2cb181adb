package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

const (
	crawlID     = "bench"
	token       = "orbweaver-bench"
	connections = 512 // more than W2 has hosts
)

// crawlAll measures a crawl of a web from its seed. Afterwards it checks that the pages which its
// commits make visible are the web; that time does not count.
func crawlAll(ctx context.Context, j job, web *simweb.Web) (_ *figures, err error) {
	want := blobschema.Crawl{
		ID: crawlID, HashKey: make([]byte, 16), Slots: partition.DefaultSlots, Partitions: j.Partitions,
		Settings: blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: -1, UserAgent: userAgent, Requisites: j.Requisites},
	}
	seed, err := weburl.Parse(web.Seeds()[0])
	if err != nil {
		return nil, err
	}
	watch, err := start(j)
	if err != nil {
		return nil, err
	}
	led := &ledger.Ledger{}
	p, err := drivers.Local(j.Dir, led)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	e, err := newEngine(p, led, &j)
	if err != nil {
		return nil, err
	}
	if _, _, _, err := e.Begin(want, crawl.Seeds([]weburl.URL{seed}), nil); err != nil {
		return nil, err
	}
	end, err := e.Run(ctx)
	if err != nil {
		return nil, err
	}
	if end != service.Finished {
		return nil, fmt.Errorf("the crawl ended before it was finished: %s", end)
	}
	totals := e.Snapshot().Totals
	f, err := watch.stop(int(totals.Pages + totals.Requisites))
	if err != nil {
		return nil, err
	}
	ended := watch.began.Add(time.Duration(f.Seconds * float64(time.Second)))
	f.Calls, f.Connections = led.Counts(), totals.Connections
	if j.Fsck {
		began := time.Now()
		r, err := fsck.Check(ctx, engine.Store{Platform: p}, fsck.Options{Crawl: crawlID})
		if err != nil {
			return nil, fmt.Errorf("fsck: %w", err)
		}
		if !r.Clean() {
			return nil, fmt.Errorf("fsck finds %d violations", r.Found)
		}
		f.FsckSeconds = time.Since(began).Seconds()
	}
	v := visible{pages: map[string]simweb.Got{}}
	if err := v.read(ctx, p, j.Partitions); err != nil {
		return nil, err
	}
	if err := v.compare(web, simweb.Scope{SkipDigests: true, Requisites: j.Requisites}, f.Pages); err != nil {
		return nil, err
	}
	slices.SortFunc(v.times, time.Time.Compare)
	f.Tail, f.Commits, f.Steadiness = ended.Sub(v.times[len(v.times)-1]).Seconds(), v.commits, steadiness(v.times)
	return f, f.weigh(j.Dir)
}

// steadiness returns the rate of the last tenth of all requests, relative to the first tenth. The times ascend.
func steadiness(times []time.Time) float64 {
	n := len(times)
	first, last := times[n/10].Sub(times[0]), times[n-1].Sub(times[n-1-n/10])
	return first.Seconds() / last.Seconds()
}

func newEngine(p *platform.Platform, led *ledger.Ledger, j *job) (*service.Service, error) {
	cfg := service.Config{
		Ledger: led, Connections: connections, MemoryLimit: engine.LimitMemory(os.DirFS("/")), // as the command does
		Log:  slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Step: crawl.StepConfig{Token: token, Software: userAgent, Compressed: j.Compression != warc.None},
		Fetch: fetch.Config{
			UserAgent: userAgent, Token: token, Compression: j.Compression, Requisites: j.Requisites,
			AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		},
	}
	if j.Web.TLS {
		var err error
		if cfg.Fetch.Roots, err = j.roots(); err != nil {
			return nil, err
		}
	}
	if err := cfg.Fetch.Validate(); err != nil {
		return nil, err
	}
	return service.New(p, cfg)
}

// visible holds the pages of a crawl's commits.
type visible struct {
	pages   map[string]simweb.Got // without robots.txt files
	twice   []string              // URLs of more than one page record
	commits int
	times   []time.Time // of the requests
}

func (v *visible) read(ctx context.Context, p *platform.Platform, partitions int) error {
	keys := make([]string, partitions)
	for i := range keys {
		keys[i] = naming.HeadKey(crawlID, partition.ID(i))
	}
	recs, err := engine.ReadRecords(ctx, p, keys)
	if err != nil {
		return err
	}
	for i, rec := range recs {
		if !rec.Found {
			continue // the partition has no host
		}
		var h blobschema.Head
		if err := json.Unmarshal(rec.Value, &h); err != nil {
			return fmt.Errorf("read head %d: %w", i, err)
		}
		head, err := openCommit(ctx, p, h.Commit)
		if err != nil {
			return err
		}
		man, err := head.Manifest()
		if err != nil {
			return err
		}
		for name := range blobschema.CommitNames(&man) {
			if err := v.add(ctx, p, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *visible) add(ctx context.Context, p *platform.Platform, name string) error {
	c, err := openCommit(ctx, p, name)
	if err != nil {
		return err
	}
	pages, err := c.Pages()
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	v.commits++
	for i := range pages {
		pg := &pages[i]
		v.times = append(v.times, pg.Time)
		if pg.Robots {
			continue
		}
		if _, ok := v.pages[pg.URL]; ok {
			v.twice = append(v.twice, pg.URL)
		}
		got := simweb.GotOf(*pg)
		got.Digest = "" // generating all bodies again would take longer than the crawl
		v.pages[pg.URL] = got
	}
	return nil
}

func openCommit(ctx context.Context, p *platform.Platform, name string) (*blobschema.CommitReader, error) {
	data, err := engine.GetObject(ctx, p, actor.GetObject{Name: name, Length: -1})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return blobschema.OpenCommit(data)
}

// compare compares the visible pages with the web and with the number that the crawl reports.
func (v *visible) compare(web *simweb.Web, scope simweb.Scope, pages int) error {
	if len(v.twice) > 0 {
		return fmt.Errorf("%d pages are visible more than once, for example %s", len(v.twice), v.twice[0])
	}
	truth := web.Truth(scope)
	if d := simweb.Diff(truth, v.pages); d != "" {
		return fmt.Errorf("the crawl differs from the web:\n%s", d)
	}
	if pages != len(truth.Pages) || pages != web.Pages() && !scope.Requisites {
		return fmt.Errorf("the crawl counts %d pages, the truth %d, the web %d", pages, len(truth.Pages), web.Pages())
	}
	return nil
}

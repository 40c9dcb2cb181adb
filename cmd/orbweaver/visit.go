package main

import (
	"cmp"
	"context"
	"time"

	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/platform"
)

// visit is what a command has open to work on a crawl that it does not run itself: on a
// platform in a cloud, or in a folder that nobody works on.
type visit struct {
	place    *place
	platform *platform.Platform
	engine   *jobs.Jobs
	view     *view.View // nil before there is a crawl
}

// newVisit begins a visit of an open platform, which stays the caller's.
func newVisit(p *place, pl *platform.Platform, led *ledger.Ledger) (*visit, error) {
	e, err := jobs.Open(pl, service.Config{Ledger: led})
	if err != nil {
		return nil, err
	}
	return &visit{place: p, platform: pl, engine: e}, nil
}

// see opens the view of the active crawl.
func (v *visit) see(ctx context.Context) (err error) {
	v.view, err = view.New(ctx, view.OfPlatform(v.platform))
	return err
}

// close ends what the visit has under way: what was sent is out.
func (v *visit) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return v.engine.Close(ctx)
}

// enter opens the place's platform, calls f and closes it again.
func (p *place) enter(ctx context.Context, f func(v *visit) error) (err error) {
	led := &ledger.Ledger{}
	var pl *platform.Platform
	if p.inCloud() {
		pl, err = p.open(ctx, led)
	} else {
		pl, err = drivers.Local(p.data, led)
	}
	if err != nil {
		return p.explain(err)
	}
	// What fails while it closes says nothing new about a visit that failed.
	defer func() { err = cmp.Or(err, p.explain(pl.Close())) }()
	v, err := newVisit(p, pl, led)
	if err != nil {
		return p.explain(err)
	}
	defer func() { err = cmp.Or(err, p.explain(v.close())) }()
	return p.explain(f(v))
}

// visit is enter for the crawl that there is.
func (p *place) visit(ctx context.Context, f func(v *visit) error) error {
	return p.enter(ctx, func(v *visit) error {
		if err := v.see(ctx); err != nil {
			return err
		}
		return f(v)
	})
}

// work is visit for a command that gives the crawl something to do: the engine has it
// open too.
func (p *place) work(ctx context.Context, f func(v *visit) error) error {
	return p.visit(ctx, func(v *visit) error {
		if _, err := v.engine.Open(); err != nil {
			return err
		}
		return f(v)
	})
}

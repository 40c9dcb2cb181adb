package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/lab/measure"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// liveSet holds the four policies over sockets of this machine, and their simulation.
type liveSet struct {
	web       *simweb.Web
	real, sim *policySet
}

const (
	liveConnections = 8
	liveTolerance   = 0.1 // difference of shares
	liveLimit       = time.Minute
	liveAgent       = "orbweaver"
)

// newLiveSet makes a small web of hosts with different speeds, a third of which close the connection after each answer.
func newLiveSet(s policyScale) (*liveSet, error) {
	web, err := simweb.New(simweb.Config{
		Seed: s.seed, Hosts: s.liveHosts, Pages: simweb.Pages{Min: s.livePer / 2, Max: s.livePer * 3 / 2}, PageBytes: 1024, LinksPerPage: 8, Skew: 6,
		Connection: simweb.Connection{LatencyMin: 4 * time.Millisecond, LatencyMax: 80 * time.Millisecond, OneRequest: 0.3},
	})
	if err != nil {
		return nil, err
	}
	c, err := observe(s.seed, web, 0)
	if err != nil {
		return nil, err
	}
	for h := range web.Hosts() {
		f := web.Host(h)
		c.servers = append(c.servers, measure.Server{
			Connect: 300 * time.Microsecond, Response: f.Latency + 500*time.Microsecond, PerConnection: f.RequestsPerConnection,
		})
	}
	l := &liveSet{web: web, sim: newPolicySet(c, "PageRank", c.rank, false, nil), real: newPolicySet(c, "PageRank", c.rank, false, nil)}
	return l, nil
}

// run runs the simulations, and then all crawls over sockets at once, because they mostly wait.
func (l *liveSet) run(s policyScale) error {
	for _, t := range l.sim.trials {
		if err := t.run(s.seed, liveConnections); err != nil {
			return err
		}
		t.fromFirst()
	}
	errs := make([]error, len(l.real.trials))
	var wg sync.WaitGroup
	for i, t := range l.real.trials {
		wg.Go(func() { errs[i] = l.live(t) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// fromFirst makes times relative to the first page, because a process needs some time to start.
func (t *policyTrial) fromFirst() {
	t.finish()
	for i, first := 0, t.at[0]; i < len(t.at); i++ {
		t.at[i] -= first
	}
	t.finish()
}

// live crawls a web that this process serves.
func (l *liveSet) live(t *policyTrial) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), liveLimit)
	defer cancel()
	srv, err := simweb.Serve(ctx, l.web)
	if err != nil {
		return err
	}
	defer srv.Close()
	if t.campus, err = observe(0, srv.Web(), 0); err != nil { // the same web at another port
		return err
	}
	led := &ledger.Ledger{}
	p, err := drivers.Memory(led)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	want := blobschema.Crawl{
		ID: "live", HashKey: make([]byte, 16), Slots: 256, Partitions: 1,
		Settings: blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: -1, UserAgent: liveAgent},
	}
	policy, err := t.livePolicy(&want)
	if err != nil {
		return err
	}
	e, err := service.New(p, service.Config{
		Ledger: led, Log: slog.New(slog.DiscardHandler), Connections: liveConnections,
		Step:  crawl.StepConfig{Token: liveAgent, Software: liveAgent, Connections: liveConnections, Policy: policy},
		Tick:  crawl.TickConfig{Policy: policy},
		Fetch: fetch.Config{UserAgent: liveAgent, Token: liveAgent, AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	if err != nil {
		return err
	}
	if _, _, _, err := e.Begin(want, crawl.Seeds(t.roots), nil); err != nil {
		return err
	}
	if end, err := e.Run(ctx); err != nil || end != service.Finished {
		return errors.Join(fmt.Errorf("%v over sockets: it ended before it was finished: %s", t, end), err)
	}
	if err := t.read(ctx, p, want.ID); err != nil {
		return err
	}
	if len(t.order) != len(t.urls) {
		return fmt.Errorf("%v over sockets: %d of %d pages", t, len(t.order), len(t.urls))
	}
	t.fromFirst()
	return nil
}

func (t *policyTrial) livePolicy(c *blobschema.Crawl) (schedule.Policy, error) {
	hash, err := partition.NewHash([16]byte(c.HashKey), c.Slots)
	if err != nil {
		return nil, err
	}
	return t.withQuality(hash)
}

// read reads the pages and their times from the commits.
func (t *policyTrial) read(ctx context.Context, p *platform.Platform, id string) error {
	pages, err := storedPages(ctx, p, id, 0)
	for i := range pages {
		t.order = append(t.order, t.number[pages[i].URL])
		t.at = append(t.at, time.Duration(pages[i].Time.UnixNano()))
	}
	return err
}

// storedPages returns the pages in a partition's commits, without robots.txt.
func storedPages(ctx context.Context, p *platform.Platform, id string, part partition.ID) (out []blobschema.Page, err error) {
	recs, err := engine.ReadRecords(ctx, p, []string{naming.HeadKey(id, part)})
	if err != nil {
		return nil, err
	}
	var head blobschema.Head
	if err := json.Unmarshal(recs[0].Value, &head); err != nil {
		return nil, fmt.Errorf("read the head: %w", err)
	}
	open := func(name string) (*blobschema.CommitReader, error) {
		data, err := engine.GetObject(ctx, p, actor.GetObject{Name: name, Length: -1})
		if err != nil {
			return nil, err
		}
		return blobschema.OpenCommit(data)
	}
	last, err := open(head.Commit)
	if err != nil {
		return nil, err
	}
	man, err := last.Manifest()
	if err != nil {
		return nil, err
	}
	for name := range blobschema.CommitNames(&man) {
		c, err := open(name)
		if err != nil {
			return nil, err
		}
		pages, err := c.Pages()
		if err != nil {
			return nil, err
		}
		for i := range pages {
			if !pages[i].Robots {
				out = append(out, pages[i])
			}
		}
	}
	return out, nil
}

// halves returns the shares of pages and of PageRank that a trial has fetched at half time.
func (s *policySet) halves(t *policyTrial) [2]float64 {
	return [2]float64{t.share(t.pages, s.at(0.5)), t.share(t.rank, s.at(0.5))}
}

// worst returns the largest difference between a share over sockets and in the simulation.
func (l *liveSet) worst() (worst float64) {
	for i := range thePolicies {
		a, b := l.real.halves(l.real.trials[i]), l.sim.halves(l.sim.trials[i])
		for k := range a {
			worst = max(worst, math.Abs(a[k]-b[k]))
		}
	}
	return worst
}

// sameOrder reports whether any two policies that differ clearly in the simulation have the same order over sockets.
func (l *liveSet) sameOrder() bool {
	for i := range thePolicies {
		for j := range thePolicies {
			si, sj := l.sim.halves(l.sim.trials[i]), l.sim.halves(l.sim.trials[j])
			ri, rj := l.real.halves(l.real.trials[i]), l.real.halves(l.real.trials[j])
			for k := range si {
				if si[k] > sj[k]+liveTolerance && ri[k] <= rj[k] {
					return false
				}
			}
		}
	}
	return true
}

func (l *liveSet) section() Section {
	c := l.sim.trials[0].campus
	sec := Section{
		Title: "Over sockets", Breaks: "the service gives its steps no policy (`internal/service/launch.go`).",
		Text: fmt.Sprintf(`Is the simulation accurate? Here the whole crawler (engine, fetcher, commits) crawls %d pages on %d servers of this machine, which answer after 4 to 80 ms,
over %d connections. The same web is simulated. A third of the servers close each connection after one answer. Shares are of the pages, and of PageRank, at half of
breadth-first's time, counted from the first page. Real and simulated shares must be within %g of each other, and policies that differ by more in the simulation must be in the same order.
Real times vary, so this table differs a little each time.`, len(c.urls), l.web.Hosts(), liveConnections, liveTolerance),
	}
	tab := Table{Name: "live", Caption: "Shares at half time", Columns: []string{"policy", "pages", "simulated", "PageRank", "simulated", "end, s", "simulated"}}
	for i, p := range thePolicies {
		r, s := l.real.trials[i], l.sim.trials[i]
		a, b := l.real.halves(r), l.sim.halves(s)
		tab.Rows = append(tab.Rows, []any{p, a[0], b[0], a[1], b[1], r.end.Seconds(), s.end.Seconds()})
	}
	sec.Tables = []Table{tab}
	sec.Checks = []Check{
		{What: fmt.Sprintf("all shares are within %g of the simulation's", liveTolerance), OK: l.worst() <= liveTolerance},
		{What: "the policies are in the same order", OK: l.sameOrder()},
	}
	return sec
}

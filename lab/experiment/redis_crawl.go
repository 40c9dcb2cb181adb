package experiment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/lab/measure"
	"github.com/orbweaver/orbweaver/partition"
)

// The crawl of the paper. Its single slave fetches a page every 186 ms, so this is the time of an answer here.
const (
	redisPages  = 708
	redisKB     = 25_600
	redisHosts  = 236 // the paper does not mention hosts
	redisAnswer = 186 * time.Millisecond
	redisMany   = 16 // connections of a worker with more than the paper's
)

// redisCrawl is one crawl.
type redisCrawl struct {
	workers     int
	connections int // per worker
	times       int // size relative to the paper's
	live        bool
	answer      time.Duration

	pages int
	end   time.Duration // from the start to the last page
	most  time.Duration // from the start to three quarters of the pages
}

func (c *redisCrawl) String() string {
	s := fmt.Sprintf("crawl of %s pages, %d workers of %d connections", grouped(redisPages*c.times), c.workers, c.connections)
	if c.live {
		s += ", over sockets"
	}
	return s
}

// rate returns pages per second until the end.
func (c *redisCrawl) rate() float64 { return float64(c.pages) / c.end.Seconds() }

// steady returns pages per second while all workers are busy.
func (c *redisCrawl) steady() float64 { return 0.75 * float64(c.pages) / c.most.Seconds() }

// finish records the times of the pages.
func (c *redisCrawl) finish(at []time.Duration) error {
	slices.Sort(at)
	if c.pages = len(at); c.pages != redisPages*c.times {
		return fmt.Errorf("%v: %d pages", c, c.pages)
	}
	c.end, c.most = at[len(at)-1], at[(3*len(at)-1)/4]
	return nil
}

// web returns a web of the paper's size, or a multiple of it.
func (c *redisCrawl) web(seed uint64) (*simweb.Web, error) {
	return simweb.New(simweb.Config{
		Seed: seed, Hosts: redisHosts * c.times, Names: !c.live, Pages: simweb.Pages{Min: redisPages / redisHosts},
		PageBytes: redisKB * 1000 / redisPages, LinksPerPage: 20, Connection: simweb.Connection{LatencyMin: c.answer, LatencyMax: c.answer},
	})
}

func (c *redisCrawl) run(seed uint64) error {
	web, err := c.web(seed)
	if err != nil {
		return err
	}
	if c.live {
		return c.overSockets(web)
	}
	var at []time.Duration
	m, err := measure.Measure(measure.Lab{
		Seed: seed, Web: web, Partitions: c.workers, Slots: 4096, Connections: c.connections,
		Server:   func(string) measure.Server { return measure.Server{Response: c.answer} },
		Answered: func(t time.Duration, _ weburl.URL) { at = append(at, t) },
	})
	if err != nil {
		return fmt.Errorf("%v: %w", c, err)
	}
	if m.Twice > 0 {
		return fmt.Errorf("%v: %d pages twice", c, m.Twice)
	}
	return c.finish(at)
}

// overSockets crawls a web that this process serves.
func (c *redisCrawl) overSockets(web *simweb.Web) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	srv, err := simweb.Serve(ctx, web)
	if err != nil {
		return err
	}
	defer srv.Close()
	var roots []weburl.URL
	for h := range web.Hosts() {
		u, err := weburl.Parse(srv.Web().URL(h, 0))
		if err != nil {
			return err
		}
		roots = append(roots, u)
	}
	led := &ledger.Ledger{}
	p, err := drivers.Memory(led)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	e, err := service.New(p, service.Config{
		Ledger: led, Log: slog.New(slog.DiscardHandler),
		Step:  crawl.StepConfig{Token: liveAgent, Software: liveAgent, Connections: c.connections},
		Fetch: fetch.Config{UserAgent: liveAgent, Token: liveAgent, AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	if err != nil {
		return err
	}
	want := blobschema.Crawl{
		ID: "live", HashKey: make([]byte, 16), Slots: 4096, Partitions: c.workers,
		Settings: blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: -1, UserAgent: liveAgent},
	}
	if _, _, _, err := e.Begin(want, crawl.Seeds(roots), nil); err != nil {
		return err
	}
	began := time.Now()
	if end, err := e.Run(ctx); err != nil || end != service.Finished {
		return fmt.Errorf("%v: it ended because %s: %w", c, end, err)
	}
	var at []time.Duration
	for part := range partition.ID(c.workers) {
		pages, err := storedPages(ctx, p, want.ID, part)
		if err != nil {
			return err
		}
		for i := range pages {
			at = append(at, pages[i].Time.Sub(began)+c.answer)
		}
	}
	return c.finish(at)
}

// redisCrawls holds the crawls of the experiment by kind and number of workers.
type redisCrawls struct {
	small, large, many []*redisCrawl // simulated
	bound, free        []*redisCrawl // over sockets
}

func newRedisCrawls(s redisScale) *redisCrawls {
	r := &redisCrawls{}
	for _, n := range s.workers {
		r.small = append(r.small, &redisCrawl{workers: n, connections: 1, times: 1, answer: redisAnswer})
		r.large = append(r.large, &redisCrawl{workers: n, connections: 1, times: s.times, answer: redisAnswer})
		r.many = append(r.many, &redisCrawl{workers: n, connections: redisMany, times: s.times, answer: redisAnswer})
		r.bound = append(r.bound, &redisCrawl{workers: n, connections: 1, times: 1, answer: redisAnswer / time.Duration(s.faster), live: true})
		r.free = append(r.free, &redisCrawl{workers: n, connections: redisMany, times: s.times, live: true})
	}
	return r
}

// run runs the crawls: those bound by the processors alone, the others concurrently, because they mostly wait.
func (r *redisCrawls) run(seed uint64, log func(string, ...any)) error {
	one := func(c *redisCrawl) func() error {
		return func() error {
			err := c.run(seed)
			log("%v: %.1f pages/s", c, c.rate())
			return err
		}
	}
	for _, c := range r.free {
		if err := one(c)(); err != nil {
			return err
		}
	}
	errs := make([]error, len(r.bound))
	var wg sync.WaitGroup
	for i, c := range r.bound {
		wg.Go(func() { errs[i] = one(c)() })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var jobs []func() error
	for _, c := range slices.Concat(r.large, r.many, r.small) {
		jobs = append(jobs, one(c))
	}
	return parallel(jobs)
}

func (r *redisCrawls) section(s redisScale) Section {
	sec := Section{
		Title: "Crawl", Breaks: "the first map gives the last partition twice as many slots as others (`partition.NewMap`).",
		Text: fmt.Sprintf(redisCrawlText, redisPages, grouped(redisKB), redisAnswer.Milliseconds(), redisHosts, s.times, redisMany,
			float64(redisAnswer.Microseconds())/1000/float64(s.faster), s.faster, efficientRedis),
	}
	tab := Table{
		Name: "crawl", Caption: "Pages per second, and relative to one worker",
		Columns: []string{
			"workers", "paper", "times", "simulated, to the end", "times", "while all work", "times",
			fmt.Sprintf("%d times the web, to the end", s.times), "times", fmt.Sprintf("%d connections each", redisMany), "times",
		},
	}
	live := Table{
		Name: "crawl-live", Caption: "Pages per second over sockets of one machine, and relative to one worker",
		Columns: []string{"workers", "bound by latency", "times", "by the processors"},
	}
	plot := Plot{Name: "crawl", Title: "Crawl: speed-up over one worker", X: "workers", Y: "speed-up"}
	ideal, paper, small, large := map[int]float64{}, map[int]float64{}, map[int]float64{}, map[int]float64{}
	for i, n := range s.workers {
		a, b, c := r.small[i], r.large[i], r.many[i]
		up, all, upB, upC := a.rate()/r.small[0].rate(), a.steady()/r.small[0].steady(), b.rate()/r.large[0].rate(), c.rate()/r.many[0].rate()
		tab.Rows = append(tab.Rows, []any{n, redisPaperCrawl[n], redisPaperCrawl[n] / redisPaperCrawl[1], a.rate(), up, a.steady(), all, b.rate(), upB, c.rate(), upC})
		live.Rows = append(live.Rows, []any{n, r.bound[i].steady(), r.bound[i].steady() / r.bound[0].steady(), r.free[i].rate()})
		ideal[n], paper[n], small[n], large[n] = float64(n), redisPaperCrawl[n]/redisPaperCrawl[1], up, upB
		if n > 1 {
			sec.Checks = append(sec.Checks,
				Check{fmt.Sprintf("%d workers, while all work: at least %g times as fast", n, efficientRedis*float64(n)), all >= efficientRedis*float64(n)},
				Check{fmt.Sprintf("%d workers, a web %d times as large, to the end: at least %g times as fast", n, s.times, efficientRedis*float64(n)), upB >= efficientRedis*float64(n)})
		}
	}
	plot.Series = []Series{
		pairs("one to one", 6, true, ideal), pairs("paper", 1, true, paper), pairs("to the end", 0, false, small), pairs(fmt.Sprintf("%d times the web", s.times), 2, false, large),
	}
	sec.Tables, sec.Plots = []Table{tab, live}, []Plot{plot}
	return sec
}

const redisCrawlText = `The paper crawls %d pages of %s KB in all, to a depth of two links, with 1 to 4 slaves. The only figure for one slave is
5.385 pages per second. So here a worker has one connection, and an answer takes %d ms. The web has the same size, on %d hosts, and the crawl starts with all roots. One
partition owns a host, for politeness, so each host's robots.txt is requested too: one request in four, which the paper's slaves do not send.

In the simulation each worker has its own partition. On so small a web, chance gives some
workers more hosts than others, and the worker with most hosts ends last. So the table also shows the speed over the first three quarters of the pages, while all work,
and the speed on a web %d times as large. A worker may have more than one connection: the last columns are for the large web with %d each.

Over sockets, the whole crawler crawls a web that the same process serves: first with one connection per worker and answers that take %g ms, so that all is %d times as fast; then the large web with
more connections and immediate answers, where the workers share the processors, which are the bottleneck.

N workers must be at least %g N times as fast as one.`

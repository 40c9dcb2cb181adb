package experiment

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/lab/measure"
	"github.com/orbweaver/orbweaver/partition"
)

// The figures of WebGather 2.0 (Yan, Wang, Li, Guo), by number of controllers.
var (
	paperPages    = 761_129
	paperVariance = map[int][2]float64{ // in the first hour and in the tenth: Table 2
		2: {0.000221, 0.0000165}, 4: {0.0013, 0.0023}, 8: {0.000994, 0.000463}, 16: {0.00017, 0.000291},
	}
	paperSpeedUp    = map[int]float64{2: 1.71, 4: 3.36, 8: 5.97, 16: 11.72} // Table 3
	paperURLBytes   = 128
	paperHostBytes  = 147
	efficientEnough = 0.95 // speed-up relative to n
)

// scale is the size of the measurements.
type scale struct {
	seed        uint64
	pages       int
	slots       int
	connections int
	numbers     []int // of partitions
	most        int   // partitions in the experiments on moves
	livePages   int   // of the crawl whose number of partitions changes
}

func scaleOf(o Options) scale {
	s := scale{seed: o.Seed, pages: o.Pages, slots: partition.DefaultSlots, connections: 4, numbers: []int{1, 2, 4, 8, 16}, most: 16, livePages: 120_000}
	if s.pages == 0 {
		s.pages = paperPages
	}
	if o.Quick {
		s.pages, s.slots, s.numbers, s.most, s.livePages = 12_000, 1024, []int{1, 2, 4}, 2, 6_000
		if o.Pages != 0 {
			s.pages = o.Pages
		}
	}
	return s
}

// hostsFor returns the number of hosts of a web: 190 pages each on average.
func hostsFor(pages int) int { return max(60, min(pages/190, 60_000)) }

// Properties of the webs.
const (
	leastPages  = 5   // of a host
	zipf        = 0.8 // exponent of the hosts' sizes
	latencyMin  = 200 * time.Millisecond
	latencyMax  = 500 * time.Millisecond
	crawledPart = 0.5 // of the web, in a crawl bound by latency
	hours       = 10  // periods in which shares are counted
	plansPerRun = 60  // six per hour: one every ten minutes
)

// newWeb returns a web of about that many pages, with host sizes from a Zipf distribution.
func newWeb(seed uint64, pages int) (*simweb.Web, error) {
	hosts := hostsFor(pages)
	return simweb.New(simweb.Config{
		Seed: seed, Hosts: hosts, Names: true, Pages: simweb.Pages{Min: leastPages, Max: largestOf(hosts, pages, leastPages, zipf), Zipf: zipf}, PageBytes: 256, LinksPerPage: 8,
		Connection: simweb.Connection{LatencyMin: latencyMin, LatencyMax: latencyMax},
	})
}

// setting is what bounds the speed of a crawl.
type setting struct {
	name        string
	connections int
	delay       time.Duration
}

// trial is one crawl.
type trial struct {
	setting
	n     int
	start float64 // load from which planning starts, relative to the mean; 0: no planning

	hours [][]int // pages by hour and partition
	measure.Measured
}

func (t *trial) String() string {
	s := fmt.Sprintf("%s, %d partitions", t.name, t.n)
	if t.start > 0 {
		s += fmt.Sprintf(", planned above %g", t.start)
	}
	return s
}

// run carries out the trial.
func (t *trial) run(s scale, web *simweb.Web) (err error) {
	d := t.time(s)
	lab := measure.Lab{
		Seed: s.seed, Web: web, Partitions: t.n, Slots: s.slots, Connections: t.connections, Delay: t.delay, Duration: d,
		Watch: d / hours, OnSight: func(at measure.Sight) { t.hours = append(t.hours, at.Pages) },
	}
	if t.start > 0 {
		lab.PlanEvery = max(30*time.Second, d/plansPerRun)
		lab.Settings = blobschema.Settings{LeastPartitions: t.n, MostPartitions: t.n, Imbalance: t.start}
	}
	t.Measured, err = measure.Measure(lab)
	if err != nil {
		return fmt.Errorf("%v: %w", t, err)
	}
	return nil
}

// time returns the duration of the trial. If latency is the bound, it is long enough for most of the web with all connections
// busy; otherwise it is the shortest of these times.
func (t *trial) time(s scale) time.Duration {
	n := t.n
	if t.delay > 0 {
		n = slices.Max(s.numbers)
	}
	perConnection := float64((latencyMin + latencyMax) / 2)
	d := time.Duration(crawledPart * float64(s.pages) / float64(n*s.connections) * perConnection)
	return d.Round(10 * time.Second)
}

// variance returns the variance of the partitions' shares of an hour's pages.
func variance(pages []int) float64 {
	total, v := 0, 0.0
	for _, n := range pages {
		total += n
	}
	if total == 0 {
		return 0
	}
	for _, n := range pages {
		off := float64(n)/float64(total) - 1/float64(len(pages))
		v += off * off
	}
	return v / float64(len(pages))
}

// webgather repeats the measurements of the paper's tables, and measures its claims on moves.
func webgather(o Options) (*Report, error) {
	s, log := scaleOf(o), o.logger()
	web, err := newWeb(s.seed, s.pages)
	if err != nil {
		return nil, err
	}
	latency := setting{"bound by latency", s.connections, 0}
	polite := setting{"bound by politeness", 256, 30 * time.Second}
	var trials []*trial
	for _, n := range slices.Backward(s.numbers) { // the longest first
		trials = append(trials, &trial{setting: latency, n: n})
		if n == 1 {
			continue
		}
		trials = append(trials, &trial{setting: polite, n: n})
		for _, start := range starts {
			trials = append(trials, &trial{setting: polite, n: n, start: start})
		}
	}
	live := &liveTrial{}
	jobs := []func() error{func() error {
		defer log("a crawl from 1 partition to %d and back", s.most+1)
		return live.run(s)
	}}
	for _, t := range trials {
		jobs = append(jobs, func() error {
			err := t.run(s, web)
			log("%v: %s pages in %v of its time", t, grouped(t.Pages), t.Virtual)
			return err
		})
	}
	if err := parallel(jobs); err != nil {
		return nil, err
	}
	r := &Report{
		Name: "webgather", Title: "A crawl divided by a two-level map", Seed: s.seed, Pages: s.pages, Quick: o.Quick,
		Intro: fmt.Sprintf(intro, grouped(web.Pages()), grouped(web.Hosts()), zipf, latencyMin.Milliseconds(), latencyMax.Milliseconds(), grouped(s.slots)),
	}
	moves, err := moveSection(s, web, live)
	if err != nil {
		return nil, err
	}
	r.Sections = []Section{
		balanceSection(s, trials, polite), speedSection(s, trials, latency), trafficSection(trials, latency), moves,
	}
	return r, nil
}

// starts lists the loads, relative to the mean, from which planning moves slots: that of [partition.BalanceOptions] and a
// lower one.
var starts = []float64{1.25, 1.01}

// parallel does jobs, one per processor at a time, and returns the first error in their order.
func parallel(jobs []func() error) error {
	errs := make([]error, len(jobs))
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				errs[i] = jobs[i]()
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

const intro = `**Question.** WebGather 2.0 (Yan, Wang, Li, Guo) divides a crawl by a two-level map (host → slot → partition). It claims even
shares, a speed-up close to the number of partitions, little traffic between them, and that partitions can be added
and removed without a second fetch. Does our map give the same?

**How.** The crawler's own core (steps, coordinator runs, frontier, mail, commits, moves of slots) runs on a virtual clock. A read of the
table takes 5 ms, a message 10 ms and an object 40 ms, as in a cloud. There are no faults; the simulation tests those.
The web is generated: %s pages on %s hosts, whose sizes follow Zipf's law with exponent %g. Each host has
its own latency of %d to %d ms. A crawl has %s slots and starts with the root of every host. The paper's web had 761,129 pages.`

package experiment

import (
	"fmt"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/lab/measure"
)

// Properties of the crawls of a portal.
const (
	portalPages   = 100_000
	portalLatency = 200 * time.Millisecond
	portalTime    = 10 * time.Minute
	portalWatch   = 10 * time.Second
	portalPace    = 50 * time.Millisecond // in the crawls with a pace
	mixedHosts    = 200
	mixedPages    = 100 // pages of each host except the portal
	mixedDelay    = time.Second
	mixedLinks    = 64 // connections of the partition
	portals       = 5  // hosts that have a rule, the largest ones
)

// queueTrial is one crawl of a web whose first hosts are portals.
type queueTrial struct {
	by    blobschema.QueueBy
	k     int // number of connections that a portal allows, and of its queues
	delay time.Duration
	rest  time.Duration // delay of other hosts

	pages  []int     // by period of portalWatch
	active []float64 // requests under way
	bytes  []float64 // of bodies
	measure.Measured
}

func (t *queueTrial) String() string {
	s := fmt.Sprintf("%d connections, queues by %s", t.k, t.by)
	if t.delay > 0 {
		s += fmt.Sprintf(", %v apart", t.delay)
	}
	return s
}

func (t *queueTrial) run(seed uint64, web *simweb.Web, d time.Duration) (err error) {
	lab := measure.Lab{
		Seed: seed, Web: web, Partitions: 1, Slots: 64, Connections: mixedLinks, Delay: t.rest, Duration: d,
		Settings: blobschema.Settings{
			QueueBy: t.by, Queues: t.k,
		},
		Watch: portalWatch, OnSight: func(s measure.Sight) {
			t.pages, t.active, t.bytes = append(t.pages, s.Pages[0]), append(t.active, s.Active), append(t.bytes, float64(s.Bytes))
		},
	}
	for h := range min(portals, web.Hosts()) {
		lab.Settings.Hosts = append(lab.Settings.Hosts, blobschema.HostRule{Host: web.Host(h).Authority, Connections: t.k, Delay: &t.delay})
	}
	if t.Measured, err = measure.Measure(lab); err != nil {
		return fmt.Errorf("%v: %w", t, err)
	}
	return nil
}

// rates returns pages per second, by period.
func (t *queueTrial) rates() (out []float64) {
	for _, n := range t.pages {
		out = append(out, float64(n)/portalWatch.Seconds())
	}
	return out
}

// kbytes returns kilobytes per second, by period.
func (t *queueTrial) kbytes() (out []float64) {
	for _, n := range t.bytes {
		out = append(out, n/1000/portalWatch.Seconds())
	}
	return out
}

// late returns the mean of the second half, when the queues are long.
func late(values []float64) float64 {
	values = values[len(values)/2:]
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

// newPortal returns a web of one host, or of portals and other hosts.
func newPortal(seed uint64, pages, others int) (*simweb.Web, error) {
	c := simweb.Config{
		Seed: seed, Hosts: 1 + others, Names: true, Pages: simweb.Pages{Min: pages}, PageBytes: 2048, LinksPerPage: 10,
		Connection: simweb.Connection{LatencyMin: portalLatency, MaxRequests: 1 << 30},
	}
	if others > 0 {
		c.Pages = simweb.Pages{Min: mixedPages, Max: pages / 2, Zipf: 2} // a few hosts are large
	}
	return simweb.New(c)
}

// queueAssignment measures the gain from several queues for one large host.
func queueAssignment(o Options) (*Report, error) {
	log := o.logger()
	pages, ks, d := portalPages, []int{1, 2, 4, 8, 16, 32}, portalTime
	if o.Quick {
		pages, ks, d = 4_000, []int{1, 4}, 2*time.Minute
	}
	if o.Pages != 0 {
		pages = o.Pages
	}
	portal, err := newPortal(o.Seed, pages, 0)
	if err != nil {
		return nil, err
	}
	mixed, err := newPortal(o.Seed, pages, mixedHosts)
	if err != nil {
		return nil, err
	}
	var alone, paced, among []*queueTrial
	for _, k := range ks {
		for _, by := range []blobschema.QueueBy{blobschema.QueueByHost, blobschema.QueueBySURT, blobschema.QueueByBKDR} {
			alone = append(alone, &queueTrial{by: by, k: k})
		}
		paced = append(paced, &queueTrial{by: blobschema.QueueByBKDR, k: k, delay: portalPace})
		among = append(among, &queueTrial{by: blobschema.QueueByBKDR, k: k, rest: mixedDelay})
	}
	var jobs []func() error
	add := func(trials []*queueTrial, web *simweb.Web) {
		for _, t := range trials {
			jobs = append(jobs, func() error {
				err := t.run(o.Seed, web, d)
				log("%v: %s pages in %v of its time", t, grouped(t.Pages), t.Virtual)
				return err
			})
		}
	}
	add(alone, portal)
	add(paced, portal)
	add(among, mixed)
	if err := parallel(jobs); err != nil {
		return nil, err
	}
	deal, err := dealSection(o.Seed, portal, pages)
	if err != nil {
		return nil, err
	}
	return &Report{
		Name: "queue-assignment", Title: "One large host in several queues", Seed: o.Seed, Pages: pages, Quick: o.Quick,
		Intro: fmt.Sprintf(queuesIntro, grouped(pages), portalLatency, d, portalWatch, len(alone[0].pages)/2),
		Sections: []Section{
			deal, portalSection(alone), paceSection(paced), mixedSection(among, mixed),
		},
	}, nil
}

// portalSection reports on a portal alone.
func portalSection(trials []*queueTrial) Section {
	sec := Section{Title: "One portal without a delay", Text: portalText}
	tab := Table{
		Name: "portal", Caption: "Requests under way, and pages a second, when the queues are long",
		Columns: []string{"connections", "by host: active", "by SURT: active", "by BKDR: active", "by host: pages/s", "by SURT: pages/s", "by BKDR: pages/s", "times k = 1", "by host: kB/s", "by BKDR: kB/s"},
	}
	active := Plot{Name: "active", Title: "Requests under way over time", X: "seconds", Y: "requests"}
	bytes := Plot{Name: "bytes", Title: "Kilobytes a second over time", X: "seconds", Y: "kB/s"}
	rate := Plot{Name: "portal", Title: "Pages a second when the queues are long", X: "connections", Y: "pages a second", LogX: true}
	byRate := map[blobschema.QueueBy]map[int]float64{}
	for i := 0; i < len(trials); i += 3 {
		row := []any{trials[i].k}
		for _, t := range trials[i : i+3] {
			row = append(row, late(t.active))
		}
		for _, t := range trials[i : i+3] {
			r := late(t.rates())
			if byRate[t.by] == nil {
				byRate[t.by] = map[int]float64{}
			}
			byRate[t.by][t.k] = r
			row = append(row, r)
		}
		up := byRate[blobschema.QueueByBKDR][trials[i].k] / byRate[blobschema.QueueByBKDR][1]
		tab.Rows = append(tab.Rows, append(row, up, late(trials[i].kbytes()), late(trials[i+2].kbytes())))
		if k := trials[i].k; k > 1 {
			sec.Checks = append(sec.Checks,
				Check{What: fmt.Sprintf("%d connections, by BKDR: at least %g requests under way", k, busyEnough*float64(k)), OK: row[3].(float64) >= busyEnough*float64(k)},
				Check{What: fmt.Sprintf("%d connections, by BKDR: at least %g times the pages of one", k, busyEnough*float64(k)), OK: up >= busyEnough*float64(k)})
		}
	}
	most := trials[len(trials)-3:]
	for i, t := range most {
		active.Series = append(active.Series, overTime(string(t.by)+fmt.Sprintf(", k = %d", t.k), i, t.active))
		bytes.Series = append(bytes.Series, overTime(string(t.by)+fmt.Sprintf(", k = %d", t.k), i, t.kbytes()))
	}
	if len(trials) > 6 {
		middle := trials[len(trials)-9+2]
		active.Series = append(active.Series, overTime(string(middle.by)+fmt.Sprintf(", k = %d", middle.k), 3, middle.active))
	}
	for i, by := range []blobschema.QueueBy{blobschema.QueueByHost, blobschema.QueueBySURT, blobschema.QueueByBKDR} {
		rate.Series = append(rate.Series, pairs("by "+string(by), i, false, byRate[by]))
	}
	sec.Tables, sec.Plots = []Table{tab}, []Plot{active, bytes, rate}
	sec.Breaks = "`schedule.subQueue` puts all URLs of a host into one queue."
	return sec
}

// busyEnough is the share of the permitted connections that should be busy.
const busyEnough = 0.9

func overTime(name string, color int, values []float64) Series {
	s := Series{Name: name, Color: color}
	for i, v := range values {
		s.X, s.Y = append(s.X, float64(i+1)*portalWatch.Seconds()), append(s.Y, v)
	}
	return s
}

// paceSection reports on a portal with a pace.
func paceSection(trials []*queueTrial) Section {
	sec := Section{Title: "One portal with a delay", Text: fmt.Sprintf(paceText, portalPace, 1/portalPace.Seconds())}
	sec.Breaks = "`schedule.subQueue` puts all URLs of a host into one queue."
	tab := Table{Name: "pace", Caption: "By BKDR, when the queues are long", Columns: []string{"connections", "active", "pages/s", "bound by connections", "bound by delay"}}
	for _, t := range trials {
		byLinks, byPace := float64(t.k)/portalLatency.Seconds(), 1/portalPace.Seconds()
		r := late(t.rates())
		tab.Rows = append(tab.Rows, []any{t.k, late(t.active), r, byLinks, byPace})
		sec.Checks = append(sec.Checks, Check{
			What: fmt.Sprintf("%d connections: the lower bound is kept, and %g%% of it reached", t.k, 100*busyEnough),
			OK:   r <= min(byLinks, byPace)*1.001 && r >= busyEnough*min(byLinks, byPace),
		})
	}
	sec.Tables = []Table{tab}
	return sec
}

// mixedSection reports on a portal among other hosts.
func mixedSection(trials []*queueTrial, web *simweb.Web) Section {
	var sizes []string
	for h := range portals {
		sizes = append(sizes, grouped(web.Host(h).Pages))
	}
	sec := Section{Title: "Portals of several sizes among other hosts", Breaks: "`schedule.subQueue` puts all URLs of a host into one queue.", Text: fmt.Sprintf(mixedText, portals, strings.Join(sizes, ", "), web.Hosts()-portals, mixedDelay, mixedLinks)}
	tab := Table{Name: "mixed", Caption: "Pages of all hosts", Columns: []string{"connections to each portal", "pages", "of", "active at the end", "pages/s at the end", "times k = 1", "kB/s at the end"}}
	plot := Plot{Name: "mixed", Title: "Pages a second, of all hosts", X: "seconds", Y: "pages a second"}
	one := late(trials[0].rates())
	for i, t := range trials {
		r := late(t.rates())
		tab.Rows = append(tab.Rows, []any{t.k, t.Pages, web.Pages(), late(t.active), r, r / one, late(t.kbytes())})
		if i > 0 && t.Pages < web.Pages() {
			sec.Checks = append(sec.Checks, Check{What: fmt.Sprintf("%d connections to each portal: more pages than with %d", t.k, trials[i-1].k), OK: t.Pages > trials[i-1].Pages})
		}
		plot.Series = append(plot.Series, overTime(fmt.Sprintf("k = %d", t.k), i, t.rates()))
	}
	sec.Tables, sec.Plots = []Table{tab}, []Plot{plot}
	return sec
}

const queuesIntro = `**Question.** With one queue per host, most connections of a crawler are idle when a few huge hosts hold most of the URLs. Zhang and Wang
distribute the URLs of a Heritrix host over several queues by a string hash. They report more active threads and more
URLs per second once the queues are long. Does that hold here, how far, and with which hash?

**How.** The crawler's own core runs on a virtual clock, with one partition. The portal is a generated host of %s pages that
answers after %v and closes no connection. A host rule allows k requests under way at once. Its URLs are distributed over k queues, and each queue has
at most one request under way. Crawls start with the root, last %v, and are sampled every %v; "when the queues are long" is the
mean of the last %d samples.`

const portalText = `"Host" is one queue, whatever the host allows, as in Heritrix by default. With BKDR the speed is that of one connection times their number. With the SURT
prefix, the first segment of the path, a site has no more queues than sections. The generated portal has eight sections with consecutive numbers, which
share no queue from eight queues on. Other names may share a queue by chance, and a section larger than the others finishes
last. Each queue returns its best URL first, but the queues of a host have no order among each other.`

const paceText = `The same with %v between two requests to the host. The delay applies to the host, not to a queue: with any number of queues the
host gets at most one request in that time, or %g pages per second. Further connections only wait.`

const mixedText = `%d portals of %s pages among %d smaller hosts, which have no host rule and get one request every %v; the crawl
has %d connections. The small hosts are finished first, and then only the portals remain. With one queue each, the crawl uses as many connections as there are portals. This is the case of the
paper: a few huge hosts, and most threads waiting. "At the end" is the mean of the second half.`

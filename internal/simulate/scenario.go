package simulate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Scenario returns the scenario of a seed. Everything in it is drawn, and is the same on every machine. Each group of
// settings has its own random source, so that a new setting moves no other.
func Scenario(seed uint64) Config {
	cfg := firstScenario(seed)
	r := rand.New(rand.NewPCG(seed, 0xfa17))
	often := func(k Kind, chances ...float64) { cfg.Faults.Chances[k] = chances[r.IntN(len(chances))] }
	if cfg.Faults.Max > 0 {
		cfg.Faults.Max += 50 * r.IntN(4)
	}
	often(Throttle, 0, 0, 0.001, 0.005)
	often(SentInPart, 0, 0.05, 0.3)
	often(CrashReceived, 0, 0.01, 0.05)
	often(CrashAsking, 0, 0.002, 0.01)
	for _, k := range []Kind{MailDamaged, MailVersion, MailForeign, MailMisled, MailHuge, MailEmpty} {
		often(k, 0, 0.02, 0.1)
	}
	often(WakeDropped, 0, 0.05, 0.3)
	often(Skew, 0, 1)
	if cfg.Faults.Chances[Skew] > 0 {
		often(Jump, 0, 0.002, 0.01)
	}
	often(TwoTicks, 0, 0.05, 0.3)
	often(RequestJunk, 0, 0.3)
	often(HostDown, 0, 0.01, 0.03)
	often(HostSlow, 0, 0.01, 0.03)
	if cfg.Faults.Chances[HostDown]+cfg.Faults.Chances[HostSlow] > 0 {
		cfg.Attempts = 4 + maxSpoilt
	}
	if cfg.Scope == blobschema.ScopeAny {
		often(HostChanged, 0, 0, 0.02, 0.1)
	}
	r = rand.New(rand.NewPCG(seed, 0x10c6))
	cfg.CommitEvery = seconds(r, 0, 0, 5, 60, 300)
	cfg.SleepMax = seconds(r, 0, 0, 2, 600)
	cfg.Late = cfg.Late || r.IntN(4) == 0
	if r.IntN(2) == 0 {
		for range 1 + r.IntN(4) {
			o := MapOrder{Kind: []Kind{ScaleUp, ScaleUp, ScaleDown, MoveSlots, MoveSlots, RollBack, TwoMaps}[r.IntN(7)]}
			switch r.IntN(4) {
			case 0, 1:
				o.After = time.Duration(1 + r.Int64N(int64(20*time.Minute)))
			case 2:
				o.Pending = 1 + r.Int64N(30)
			}
			cfg.Maps = append(cfg.Maps, o)
		}
	}
	if r.IntN(4) == 0 && (!cfg.Local || r.IntN(2) == 0) { // long enough that a request that comes too early shows
		cfg.Delay = seconds(r, 5, 20)
	}
	if cfg.Elastic = !cfg.Local && cfg.Scope == blobschema.ScopeAny && r.IntN(8) == 0; cfg.Elastic { // with enough work to justify more partitions
		cfg.Web.Hosts, cfg.Web.Pages, cfg.Web.LinksPerPage = 20, simweb.Pages{Min: 30, Max: 50}, 30
		cfg.Delay = max(cfg.Delay, time.Second)
	}
	cfg.SweepEvery = seconds(r, 0, 60, 300)
	cfg.Checks = []int{0, 0, 1, 3}[r.IntN(4)]
	r = rand.New(rand.NewPCG(seed, 0x0f1007))
	if often(CrashMoving, 0, 1); cfg.Faults.Chances[CrashMoving] > 0 && r.IntN(2) == 0 {
		cfg.Delay = seconds(r, 5, 20) // longer than a takeover, so that leaving the last requested host alone shows
	}
	if r.IntN(3) == 0 { // small crawls merge seldom
		cfg.MergeFanIn = 2
	}
	r = rand.New(rand.NewPCG(seed, 0x1de8))
	if cfg.Index = r.IntN(3) == 0; cfg.Index {
		cfg.IndexGrace = seconds(r, 1, 60, 3600)
	}
	r = rand.New(rand.NewPCG(seed, 0x510e))
	cfg.SlowQueues = time.Duration([]int{0, 0, 100, 600, 6000}[r.IntN(5)]) * time.Millisecond // steps linger for 200 ms or 2 s
	r = rand.New(rand.NewPCG(seed, 0x90b11e))
	if cfg.Cold && r.IntN(3) == 0 {
		cfg.Queues = PortableQueues
	}
	r = rand.New(rand.NewPCG(seed, 0x4a75))
	if cfg.Queues == PlainQueues && r.IntN(3) == 0 {
		cfg.Queues = SecondQueues
	}
	often(MailHidden, 0, 0.01, 0.1)
	cfg.choose(seed)
	cfg.drawWeb(seed)
	return cfg
}

// Queues is the semantics of the queues of a platform.
type Queues uint8

// The semantics of queues.
const (
	PlainQueues    Queues = iota
	PortableQueues        // gocloud's portable types: no delays, and no counts of deliveries
	SecondQueues          // NATS: delays of whole seconds, rounded up
)

// delay returns the delay that a queue keeps.
func (q Queues) delay(d time.Duration) time.Duration {
	switch q {
	case PortableQueues:
		return 0
	case SecondQueues:
		return (d + time.Second - 1).Truncate(time.Second)
	}
	return d
}

func seconds(r *rand.Rand, list ...int) time.Duration {
	return time.Duration(list[r.IntN(len(list))]) * time.Second
}

// drawWeb makes some webs slow, gives some hosts answers of status 304 and sitemaps, and some pages requisites.
func (c *Config) drawWeb(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0x510e))
	if r.IntN(3) == 0 {
		k := &c.Web.Kinds
		k.Late, k.Steady, k.Busy, c.Web.Robots.Drip = 0.02, 0.02, []float64{0, 0.05}[r.IntN(2)], 0.1
		c.Web.SteadyBody, c.Web.LateBy = seconds(r, 70, 150, 300), seconds(r, 61, 90, 600)
	}
	r = rand.New(rand.NewPCG(seed, 0x304))
	c.Web.Validators = []float64{0, 0.5, 1}[r.IntN(3)]
	if c.Sitemaps = c.MaxPages == 0 && r.IntN(3) == 0; c.Sitemaps { // sitemaps count against the limit, and the truth has only pages
		c.Web.Sitemaps = simweb.Sitemaps{Hosts: 0.7, Index: 0.4, Unlinked: 0.1}
	}
	r = rand.New(rand.NewPCG(seed, 0x4e9))
	if c.Requisites = r.IntN(3) == 0; c.Requisites {
		c.Web.Requisites = 1 + r.IntN(6)
	}
}

// choose draws which URLs the crawl requests first.
func (c *Config) choose(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0x70b1c5))
	if r.IntN(2) == 0 {
		c.Policy = []string{"performance", "quality", "capability"}[r.IntN(3)]
		c.Quality = []string{"", "in-links", "opic", "zipf"}[r.IntN(4)]
	}
	if c.Scope == blobschema.ScopeAny && r.IntN(3) == 0 { // otherwise topics would change which pages are stored
		c.Topics = 1 + r.IntN(5)
	}
	if r.IntN(3) == 0 {
		c.Allowed = 2 + r.IntN(3)
		c.QueueBy = []blobschema.QueueBy{"", blobschema.QueueByBKDR, blobschema.QueueBySURT}[r.IntN(3)]
	}
	if r.IntN(3) == 0 { // nearly every slot is in parts
		c.MaxPart = []int{3, 10, 40}[r.IntN(3)]
	}
	r = rand.New(rand.NewPCG(seed, 0xf4e54))
	// Simulated hours are expensive where wakes are polled all the time.
	if r.IntN(5) == 0 && c.Scope == blobschema.ScopeAny && !c.Local {
		c.Concurrency = 0 // steps with revisits run until their deadline: if only a few could run at once, the others would wait for days
		c.PerHour = []float64{100, 300, 1000}[r.IntN(3)]
	}
}

// topics returns the topics to which the seeds are dealt.
func (c *Config) topics() (list []blobschema.Topic) {
	r := rand.New(rand.NewPCG(c.Seed, 0x70b1c6))
	for i := range c.Topics {
		t := blobschema.Topic{
			Name: fmt.Sprint("t", i), Scope: c.Scope, MaxDepth: c.MaxDepth, Requisites: c.Requisites,
			Priority: r.IntN(3), Slice: time.Duration(1+r.IntN(20)) * time.Second,
		}
		if r.IntN(2) == 0 {
			t.Minimum, t.Period = 1+r.Int64N(30), time.Duration(1+r.IntN(10))*time.Minute
		}
		list = append(list, t)
	}
	return list
}

// dealt deals seeds to topics in turn; the first seed of every round gets none.
func (c *Config) dealt(seeds []weburl.URL) []crawl.Seed {
	list := crawl.Seeds(seeds)
	for i := range list {
		list[i].Topic = uint8(i % (c.Topics + 1))
	}
	return list
}

// hostRules returns the rules of all hosts.
func (w *world) hostRules() (rules []blobschema.HostRule) {
	if w.cfg.Allowed == 0 {
		return nil
	}
	for i := range w.web.Hosts() {
		rules = append(rules, blobschema.HostRule{Host: w.web.Host(i).Authority, Connections: w.cfg.Allowed})
	}
	return rules
}

// firstScenario returns what was drawn before there were more kinds of fault. The seeds of TestOnceBroken refer to it.
func firstScenario(seed uint64) Config {
	r := newRand(seed)
	pick := func(list ...int) int { return list[r.IntN(len(list))] }
	cfg := Config{
		Seed: seed, Web: simweb.Small(seed), Partitions: pick(1, 2, 3, 4, 8), Slots: pick(16, 64, 256, 1024),
		Connections: pick(1, 4, 16, 64), MaxDepth: -1, Scope: blobschema.ScopeAny, Delay: time.Duration(pick(0, 200, 1000)) * time.Millisecond,
	}
	if r.IntN(3) == 0 {
		cfg.MaxResident = pick(30, 100, 300)
	}
	cfg.MailEvery = time.Duration(pick(20, 120, 600)) * time.Second
	cfg.Local = r.IntN(3) == 0
	if r.IntN(6) == 0 {
		cfg.MaxPages = int64(pick(1, 10, 37, 100, 100000))
	}
	p := func() float64 { return []float64{0, 0.001, 0.005, 0.02}[r.IntN(4)] }
	odds := map[Kind]float64{MailLate: 0.25, MailReordered: 1}
	odds[CrashBefore], odds[Lost], odds[Doubt], odds[MailRepeated], odds[MailDropped] = p(), p(), p(), p()*5, p()
	odds[Slow], odds[Freeze], odds[MailDamaged], odds[Stop] = p(), p()/4, p(), p()/4
	for _, k := range []Kind{CrashAfter, CrashReceived, CrashAsking} {
		odds[k] = odds[CrashBefore]
	}
	cfg.Faults = Faults{Chances: odds, Max: pick(0, 20, 100, 400)}
	if r.IntN(2) == 0 {
		cfg.Resend = 15 * time.Minute
	} else { // nothing replaces mail that the steps themselves lose
		odds[MailDropped], odds[MailDamaged] = 0, 0
	}
	if r.IntN(4) == 0 {
		cfg.Scope, cfg.Seeds = blobschema.ScopeHost, scopeSeeds(cfg.Web, r)
	}
	// These are drawn from another source, so that the rest stays the same.
	r = rand.New(rand.NewPCG(seed, 0x2ec))
	if r.IntN(2) == 0 {
		cfg.Recrawls = 1 + r.IntN(20)
	}
	if r.IntN(3) == 0 {
		cfg.Policy = "capability"
	}
	if cfg.Resend > 0 && r.IntN(3) == 0 { // also near the end, where nothing else keeps the crawl going
		odds[MailDropped] = 0.3
	}
	switch r.IntN(4) {
	case 0:
		cfg.PartitionBy = blobschema.ByDomain
	case 1:
		cfg.PartitionBy = blobschema.ByIP
	}
	r = rand.New(rand.NewPCG(seed, 0xc01d))
	if cfg.Cold = !cfg.Local && r.IntN(2) == 0; cfg.Cold {
		cfg.Concurrency = r.IntN(2 * cfg.Partitions)
		cfg.Late = r.IntN(2) == 0
	}
	return cfg
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x5ce)) }

// scopeSeeds draws seeds for a crawl within their hosts: a root, and some URLs that may redirect elsewhere.
func scopeSeeds(cfg simweb.Config, r *rand.Rand) []string {
	web, err := simweb.New(cfg)
	if err != nil {
		return nil
	}
	seeds := web.Seeds()
	for _, u := range web.Truth(simweb.Scope{Agent: agent, SkipDigests: true}).Reachable() {
		if strings.Contains(u, "/go/") && r.IntN(4) == 0 {
			seeds = append(seeds, u)
		}
	}
	return seeds
}

package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/simulate"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// given is a source of quality that knows all pages.
type given struct{ of map[uint64]float64 }

func (given) Name() string                      { return "given" }
func (g given) Of(c frontier.Candidate) float64 { return g.of[c.Fingerprint] }
func (given) Adds() bool                        { return false }

// policyTrial is one crawl of a campus.
type policyTrial struct {
	*campus
	policy  string
	source  string    // by name, or what given qualities are called
	quality []float64 // given
	known   bool      // all URLs, from the beginning

	order []int           // pages in the order in which they came
	at    []time.Duration // when
	end   time.Duration   // the last of it
}

func (t *policyTrial) String() string {
	s := t.policy
	if t.source != "" {
		s += " by " + t.source
	}
	if t.known {
		s += ", all URLs known"
	}
	return s
}

// lab is the crawl to be measured.
func (t *policyTrial) lab(seed uint64, connections int) (simulate.Lab, error) {
	lab := simulate.Lab{
		Seed: seed, Web: t.web, Partitions: 1, Slots: 1024, Connections: connections, Server: t.server, Known: t.roots,
		Answered: func(at time.Duration, u weburl.URL) {
			t.order, t.at = append(t.order, t.number[u.String()]), append(t.at, at)
		},
	}
	if t.known {
		lab.Known = t.urls
	}
	var err error
	lab.Policy, err = t.newPolicy(&lab)
	return lab, err
}

func (t *policyTrial) newPolicy(lab *simulate.Lab) (frontier.Policy, error) {
	if t.quality == nil {
		return frontier.PolicyByName(t.policy, t.source)
	}
	hash, err := lab.Hash()
	if err != nil {
		return nil, err
	}
	return t.withQuality(hash)
}

// withQuality is the policy by the qualities that are given, if there are any.
func (t *policyTrial) withQuality(hash partition.Hash) (frontier.Policy, error) {
	if t.quality == nil {
		return frontier.PolicyByName(t.policy, "")
	}
	g := given{of: make(map[uint64]float64, len(t.urls))}
	for i, u := range t.urls {
		g.of[hash.Fingerprint(u.String())] = t.quality[i]
	}
	return frontier.NewPolicy(t.policy, g)
}

func (t *policyTrial) run(seed uint64, connections int) error {
	lab, err := t.lab(seed, connections)
	if err != nil {
		return err
	}
	m, err := simulate.Measure(lab)
	if err != nil {
		return fmt.Errorf("%v: %w", t, err)
	}
	t.finish()
	if !m.Finished || len(t.order) != len(t.urls) || m.Twice > 0 {
		return fmt.Errorf("%v: %d of %d pages, %d of them twice", t, len(t.order), len(t.urls), m.Twice)
	}
	return nil
}

// finish puts the pages in the order in which they came.
func (t *policyTrial) finish() {
	index := make([]int, len(t.at))
	for i := range index {
		index[i] = i
	}
	slices.SortStableFunc(index, func(a, b int) int { return cmp.Compare(t.at[a], t.at[b]) })
	order, at := make([]int, len(index)), make([]time.Duration, len(index))
	for i, j := range index {
		order[i], at[i] = t.order[j], t.at[j]
	}
	t.order, t.at = order, at
	if len(at) > 0 {
		t.end = at[len(at)-1]
	}
}

// share is how much of a quality is had until a time.
func (t *policyTrial) share(quality []float64, until time.Duration) (sum float64) {
	for i, p := range t.order {
		if t.at[i] > until {
			break
		}
		sum += quality[p]
	}
	return sum
}

// area is that under the curve of share, up to a time, as a share of what it would be if all
// had come at once.
func (t *policyTrial) area(quality []float64, until time.Duration) (sum float64) {
	for i, p := range t.order {
		if t.at[i] <= until {
			sum += quality[p] * (until - t.at[i]).Seconds()
		}
	}
	return sum / until.Seconds()
}

// curve is the share at times, which are shares of whole.
func (t *policyTrial) curve(quality []float64, whole time.Duration) (x, y []float64) {
	const points = 100
	for i := range points + 1 {
		f := float64(i) / points
		x, y = append(x, f), append(y, t.share(quality, time.Duration(f*float64(whole))))
	}
	return x, y
}

// policyScale is how large the measurements are.
type policyScale struct {
	seed               uint64
	hosts, pages       int
	connections        int
	liveHosts, livePer int
}

func policyScaleOf(o Options) policyScale {
	s := policyScale{seed: o.Seed, hosts: 500, pages: 30_000, connections: 64, liveHosts: 32, livePer: 16}
	if o.Quick {
		s.hosts, s.pages, s.connections = 80, 2_400, 10
	}
	if o.Pages > 0 {
		s.hosts = max(16, s.hosts*o.Pages/s.pages)
		s.connections = max(2, s.connections*o.Pages/s.pages)
		s.pages = o.Pages
	}
	return s
}

// thePolicies in their order in tables and plots.
var thePolicies = []string{"breadth-first", "performance", "quality", "capability"}

// policySet are the four policies by one quality, with the order that knows all.
type policySet struct {
	title   string
	quality []float64
	trials  []*policyTrial // in the order of thePolicies
	best    *policyTrial
}

// find returns the trial of a policy.
func (s *policySet) find(policy string) *policyTrial {
	return s.trials[slices.Index(thePolicies, policy)]
}

// whole is the time that shares of time are of: that of breadth-first.
func (s *policySet) whole() time.Duration { return s.find("breadth-first").end }

// newPolicySet returns trials to be run, which share those that do not depend on qualities.
func newPolicySet(c *campus, title string, quality []float64, known bool, shared *policySet) *policySet {
	s := &policySet{title: title, quality: quality}
	for i, p := range thePolicies {
		t := &policyTrial{campus: c, policy: p, known: known}
		if i >= 2 {
			t.source, t.quality = title, quality
		} else if shared != nil {
			t = shared.trials[i]
		}
		s.trials = append(s.trials, t)
	}
	return s
}

// policies measures the experiment of Cao, Jiang and Singh.
func policies(o Options) (*Report, error) {
	s, log := policyScaleOf(o), o.logger()
	c, err := newCampus(s.seed, campusOptions{hosts: s.hosts, pages: s.pages, even: true})
	if err != nil {
		return nil, err
	}
	tail, err := newCampus(s.seed, campusOptions{hosts: s.hosts, pages: s.pages})
	if err != nil {
		return nil, err
	}
	var found, known, uneven [2]*policySet
	var online []*policyTrial
	var all []*policyTrial
	for i, title := range []string{"PageRank", "Zipf"} {
		prior := func(of [2]*policySet) *policySet {
			if i == 0 {
				return nil
			}
			return of[0]
		}
		found[i] = newPolicySet(c, title, [][]float64{c.rank, c.zipf}[i], false, prior(found))
		known[i] = newPolicySet(c, title, [][]float64{c.rank, c.zipf}[i], true, prior(known))
		uneven[i] = newPolicySet(tail, title, [][]float64{tail.rank, tail.zipf}[i], false, prior(uneven))
		for _, set := range []*policySet{found[i], known[i], uneven[i]} {
			all = append(all, set.trials[min(2*i, 2):]...)
		}
	}
	for _, source := range []string{"depth", "in-links", "opic"} {
		for _, policy := range thePolicies[2:] {
			online = append(online, &policyTrial{campus: c, policy: policy, source: source})
		}
	}
	all = append(all, online...)
	live, err := newLiveSet(s)
	if err != nil {
		return nil, err
	}
	if err := live.run(s); err != nil { // alone, for its time is real
		return nil, err
	}
	log("crawls over sockets: the greatest difference is %.3f", live.worst())
	jobs := []func() error{}
	for _, t := range all {
		jobs = append(jobs, func() error {
			err := t.run(s.seed, s.connections)
			log("%v: %s pages in %v of its time", t, grouped(len(t.order)), t.end.Round(time.Second))
			return err
		})
	}
	for _, sets := range [][2]*policySet{found, known, uneven} {
		for _, set := range sets {
			jobs = append(jobs, func() error {
				t := set.trials[0].campus
				set.best = t.omniscient(set.quality, s.connections)
				return nil
			})
		}
	}
	var fastest *policyTrial
	jobs = append(jobs, func() error {
		fastest = c.omniscient(c.pages, s.connections)
		return nil
	})
	if err := parallel(jobs); err != nil {
		return nil, err
	}
	return &Report{
		Name: "policies", Title: "Which server, and which URL, comes first", Seed: s.seed, Pages: s.pages, Quick: o.Quick,
		Intro: fmt.Sprintf(policiesIntro, grouped(len(c.urls)), grouped(s.hosts), grouped(c.web.Host(0).Pages), grouped(c.web.Host(s.hosts-1).Pages), s.connections,
			c.work.Seconds()/float64(s.connections), c.longest.Seconds()),
		Sections: []Section{
			pagesSection(c, found[0], fastest), qualitySection(found[0], 0), qualitySection(found[1], 1),
			knownSection(known), onlineSection(found[0], online), tailSection(tail, uneven, s.connections), live.section(),
		},
	}, nil
}

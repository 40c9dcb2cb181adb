package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/lab/measure"
	"github.com/orbweaver/orbweaver/partition"
)

// policyTrial is one crawl of a campus.
type policyTrial struct {
	*campus
	policy  string
	source  string         // name of the quality
	quality []float64      // given qualities
	known   bool           // all URLs are known from the start
	earlier *virtual.Store // after a crawl whose times of hosts are known; nil: none are

	order []int           // pages in the order of their arrival
	at    []time.Duration // time of each
	end   time.Duration   // time of the last one
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

// lab returns the crawl to measure.
func (t *policyTrial) lab(seed uint64, connections int) (measure.Lab, error) {
	lab := measure.Lab{
		Seed: seed, Web: t.web, Partitions: 1, Slots: 1024, Connections: connections, Server: t.server, Known: t.roots, Store: t.earlier,
		Answered: func(at time.Duration, u weburl.URL) {
			t.order, t.at = append(t.order, t.number[u.String()]), append(t.at, at)
		},
	}
	lab.Settings.Policy = t.policy // Policy decides; the setting says that times of hosts are of use
	if t.known {
		lab.Known = t.urls
	}
	var err error
	lab.Policy, err = t.newPolicy(&lab)
	return lab, err
}

func (t *policyTrial) newPolicy(lab *measure.Lab) (schedule.Policy, error) {
	if t.quality == nil {
		return schedule.PolicyByName(t.policy, t.source)
	}
	hash, err := lab.Hash()
	if err != nil {
		return nil, err
	}
	return t.withQuality(hash)
}

// withQuality returns the policy with the given qualities, if any.
func (t *policyTrial) withQuality(hash partition.Hash) (schedule.Policy, error) {
	if t.quality == nil {
		return schedule.PolicyByName(t.policy, "")
	}
	of := make(map[uint64]float64, len(t.urls))
	for i, u := range t.urls {
		of[hash.Fingerprint(u.String())] = t.quality[i]
	}
	return schedule.NewPolicy(t.policy, schedule.Quality{
		Name: "given", Of: func(c schedule.Candidate) float64 { return of[c.Fingerprint] },
	})
}

func (t *policyTrial) run(seed uint64, connections int) error {
	lab, err := t.lab(seed, connections)
	if err != nil {
		return err
	}
	m, err := measure.Measure(lab)
	if err != nil {
		return fmt.Errorf("%v: %w", t, err)
	}
	t.finish()
	if !m.Finished || len(t.order) != len(t.urls) || m.Twice > 0 {
		return fmt.Errorf("%v: %d of %d pages, %d of them twice", t, len(t.order), len(t.urls), m.Twice)
	}
	return nil
}

// finish sorts the pages by their arrival.
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

// share returns the share of a quality that the crawl has fetched until a time.
func (t *policyTrial) share(quality []float64, until time.Duration) (sum float64) {
	for i, p := range t.order {
		if t.at[i] > until {
			break
		}
		sum += quality[p]
	}
	return sum
}

// area returns the area under the curve of share until a time, relative to a crawl that fetches everything at once.
func (t *policyTrial) area(quality []float64, until time.Duration) (sum float64) {
	for i, p := range t.order {
		if t.at[i] <= until {
			sum += quality[p] * (until - t.at[i]).Seconds()
		}
	}
	return sum / until.Seconds()
}

// curve returns the shares at times, which are shares of whole.
func (t *policyTrial) curve(quality []float64, whole time.Duration) (x, y []float64) {
	const points = 100
	for i := range points + 1 {
		f := float64(i) / points
		x, y = append(x, f), append(y, t.share(quality, time.Duration(f*float64(whole))))
	}
	return x, y
}

// policyScale is the size of the measurements.
type policyScale struct {
	seed               uint64
	draws              int
	quick              bool
	hosts, pages       int
	connections        int
	liveHosts, livePer int
}

func policyScaleOf(o Options) policyScale {
	s := policyScale{seed: o.Seed, quick: o.Quick, draws: 5, hosts: 500, pages: 30_000, connections: 64, liveHosts: 32, livePer: 16}
	if o.Quick {
		s.draws, s.hosts, s.pages, s.connections = 2, 80, 2_400, 10
	}
	if o.Pages > 0 {
		s.hosts = max(16, s.hosts*o.Pages/s.pages)
		s.connections = max(2, s.connections*o.Pages/s.pages)
		s.pages = o.Pages
	}
	return s
}

// thePolicies lists the policies in the order of tables and plots.
var thePolicies = []string{"breadth-first", "performance", "quality", "capability"}

// policySet holds the trials of the four policies with one quality, and of the omniscient order.
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

// newPolicySet returns new trials. They share those that do not depend on qualities with another set.
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

// whole returns the time of breadth-first, on which shares of time are based.
func (s *policySet) whole() time.Duration { return s.find("breadth-first").end }

// policySetting is a campus whose URLs are known from the start or not, with all sets of policies.
type policySetting struct {
	rank *policySet
	zipf *policySet   // mean of sets
	sets []*policySet // one per draw of qualities
}

// newPolicySetting returns new trials.
func newPolicySetting(c *campus, known bool) *policySetting {
	s := &policySetting{rank: newPolicySet(c, "PageRank", c.rank, known, nil)}
	for _, q := range c.zipfs {
		s.sets = append(s.sets, newPolicySet(c, "Zipf", q, known, s.rank))
	}
	return s
}

// jobs returns the work before mean.
func (s *policySetting) jobs(connections int, run func(*policyTrial) error) (jobs []func() error) {
	for i, set := range append([]*policySet{s.rank}, s.sets...) {
		for k, t := range set.trials {
			if i == 0 || k >= 2 { // the others are shared
				jobs = append(jobs, func() error { return run(t) })
			}
		}
		jobs = append(jobs, func() error {
			set.best = set.trials[0].campus.omniscient(set.quality, connections)
			return nil
		})
	}
	return jobs
}

// mean combines all draws of qualities into one set.
func (s *policySetting) mean() {
	s.zipf = &policySet{title: "Zipf"}
	for _, set := range s.sets {
		s.zipf.quality = append(s.zipf.quality, set.quality...)
	}
	for i := range s.zipf.quality {
		s.zipf.quality[i] /= float64(len(s.sets))
	}
	for i := range thePolicies {
		s.zipf.trials = append(s.zipf.trials, meanTrial(s.sets, func(p *policySet) *policyTrial { return p.trials[i] }))
	}
	s.zipf.best = meanTrial(s.sets, func(p *policySet) *policyTrial { return p.best })
}

// meanTrial combines several trials, each with a copy of the web: page p of copy i has the number i*n+p.
func meanTrial(sets []*policySet, of func(*policySet) *policyTrial) *policyTrial {
	first := of(sets[0])
	c, n := *sets[0].trials[0].campus, len(sets[0].quality)
	t := &policyTrial{campus: &c, policy: first.policy, source: first.source, known: first.known}
	c.pages = nil
	for i, set := range sets {
		one := of(set)
		for k, p := range one.order {
			t.order, t.at = append(t.order, i*n+p), append(t.at, one.at[k])
			c.pages = append(c.pages, 1/float64(n*len(sets)))
		}
	}
	t.finish()
	return t
}

// otherCampus is a campus with other servers.
type otherCampus struct {
	name    string
	set     *policySet
	fastest *policyTrial
}

// newOtherCampuses returns campuses that show how much the results depend on the servers' times.
func newOtherCampuses(s policyScale) (all []*otherCampus, err error) {
	o := campusOptions{hosts: s.hosts, pages: s.pages, fair: true, bounded: true}
	mild, milder, alike := o, o, o
	mild.sigma, milder.sigma, alike.fair = 1.5, 1, false
	for _, v := range []struct {
		name    string
		seed    uint64
		options campusOptions
	}{
		{"as above", s.seed, o}, {"another seed", s.seed + 1, o}, {"a third seed", s.seed + 2, o},
		{"sigma 1.5", s.seed, mild}, {"sigma 1", s.seed, milder}, {"times independent of size", s.seed, alike},
	} {
		c, err := newCampus(v.seed, v.options)
		if err != nil {
			return nil, err
		}
		all = append(all, &otherCampus{name: v.name, set: newPolicySet(c, "PageRank", c.rank, false, nil)})
		if s.quick && len(all) == 2 {
			break
		}
	}
	return all, nil
}

func (o *otherCampus) jobs(connections int, run func(*policyTrial) error) (jobs []func() error) {
	for _, t := range o.set.trials {
		jobs = append(jobs, func() error { return run(t) })
	}
	return append(jobs, func() error {
		c := o.set.trials[0].campus
		o.fastest = c.omniscient(c.pages, connections)
		return nil
	})
}

// policies repeats the experiment of Cao, Jiang and Singh.
func policies(o Options) (*Report, error) {
	s, log := policyScaleOf(o), o.logger()
	options := campusOptions{hosts: s.hosts, pages: s.pages, draws: s.draws, fair: true, bounded: true}
	c, err := newCampus(s.seed, options)
	if err != nil {
		return nil, err
	}
	tail, err := newCampus(s.seed, campusOptions{hosts: s.hosts, pages: s.pages, draws: s.draws})
	if err != nil {
		return nil, err
	}
	live, err := newLiveSet(s)
	if err != nil {
		return nil, err
	}
	if err := live.run(s); err != nil { // alone, because it measures real time
		return nil, err
	}
	log("crawls over sockets: the greatest difference is %.3f", live.worst())
	run := func(t *policyTrial) error {
		err := t.run(s.seed, s.connections)
		log("%v: %s pages in %v of its time", t, grouped(len(t.order)), t.end.Round(time.Second))
		return err
	}
	settings := []*policySetting{newPolicySetting(c, false), newPolicySetting(c, true), newPolicySetting(tail, false)}
	var jobs []func() error
	for _, st := range settings {
		jobs = append(jobs, st.jobs(s.connections, run)...)
	}
	var online []*policyTrial
	for _, source := range []string{"depth", "in-links", "opic"} {
		for _, policy := range thePolicies[2:] {
			t := &policyTrial{campus: c, policy: policy, source: source}
			online = append(online, t)
			jobs = append(jobs, func() error { return run(t) })
		}
	}
	others, err := newOtherCampuses(s)
	if err != nil {
		return nil, err
	}
	for _, oc := range others {
		jobs = append(jobs, oc.jobs(s.connections, run)...)
	}
	again := newAgainTrials(c, s.seed, options)
	for _, t := range again {
		jobs = append(jobs, func() error {
			if err := t.prepare(s.seed, s.connections); err != nil {
				return err
			}
			return run(&t.policyTrial)
		})
	}
	var fastest *policyTrial
	jobs = append(jobs, func() error {
		fastest = c.omniscient(c.pages, s.connections)
		return nil
	})
	if err := parallel(jobs); err != nil {
		return nil, err
	}
	for _, st := range settings {
		st.mean()
	}
	found, known, uneven := settings[0], settings[1], settings[2]
	return &Report{
		Name: "policies", Title: "Which server, and which URL, comes first", Seed: s.seed, Pages: s.pages, Quick: o.Quick,
		Intro: fmt.Sprintf(policiesIntro, grouped(len(c.urls)), grouped(s.hosts), grouped(c.web.Host(s.hosts-1).Pages), grouped(c.web.Host(0).Pages), s.connections,
			c.work.Seconds()/float64(s.connections), c.longest.Seconds()),
		Sections: []Section{
			pagesSection(c, found.rank, fastest), rankSection(found.rank), zipfSection(found.zipf, known.zipf, s.draws),
			knownSection(known), onlineSection(found.rank, online), againSection(found.rank, again, fastest), otherSection(others), tailSection(tail, uneven, s.connections), live.section(),
		},
	}, nil
}

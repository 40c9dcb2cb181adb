package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/simulate"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// campus is a web of servers that differ in size and speed, with what only an observer knows
// of it: the whole graph, and what each page is worth.
type campus struct {
	web     *simweb.Web
	servers []simulate.Server // by host
	urls    []weburl.URL      // of all pages, in the order in which breadth-first search from the seeds finds them
	host    []int             // of each page
	number  map[string]int    // of each page
	links   [][]int32
	seeds   []weburl.URL
	rank    []float64 // PageRank; the sum is 1
	zipf    []float64 // drawn from Zipf's law; the sum is 1
}

// Properties of the campus. What servers allow per connection is the paper's; the times are
// drawn from log-normal distributions, as measured times are.
const (
	oneRequest    = 0.24 // share of the servers that allow 1 request per connection
	hundred       = 0.66 // that allow 100; the rest from 2 to 99
)
var (
	connectMedian = 60 * time.Millisecond
	connectSigma  = 0.8
	connectMost = 300*time.Millisecond
	replyMedian   = 150 * time.Millisecond
	replySigma    = 1.1
	replyMost     = 2 * time.Second
	campusZipf    = 0.4
	campusLeast   = 10
	campusSkew = 11
)

// newCampus makes a web of about so many pages on so many servers.
func newCampus(seed uint64, hosts, pages, seeds int) (*campus, error) {
	total := func(largest int) (n int) {
		for h := range hosts {
			n += max(campusLeast, int(float64(largest)/math.Pow(float64(h+1), campusZipf)))
		}
		return n
	}
	lo, hi := campusLeast, pages
	for lo < hi {
		if mid := (lo + hi + 1) / 2; total(mid) <= pages {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	web, err := simweb.New(simweb.Config{
		Seed: seed, Hosts: hosts, Names: true, HostsPerSite: 1, Pages: simweb.Pages{Min: campusLeast, Max: lo, Zipf: campusZipf},
		PageBytes: 256, LinksPerPage: 10, CrossHost: 0.15, Skew: campusSkew,
	})
	if err != nil {
		return nil, err
	}
	c := &campus{web: web, number: map[string]int{}}
	c.drawServers(seed)
	for h := range min(seeds, web.Hosts()) {
		u, err := weburl.Parse(web.URL(h, 0))
		if err != nil {
			return nil, err
		}
		c.seeds = append(c.seeds, u)
	}
	if err := c.explore(); err != nil {
		return nil, err
	}
	c.rank = pageRank(c.links)
	c.zipf = make([]float64, len(c.urls))
	rng := rand.New(rand.NewPCG(seed, 3))
	sum := 0.0
	for i, k := range rng.Perm(len(c.urls)) {
		c.zipf[i] = 1 / float64(k+1)
		sum += c.zipf[i]
	}
	for i := range c.zipf {
		c.zipf[i] /= sum
	}
	return c, nil
}

func (c *campus) drawServers(seed uint64) {
	n := c.web.Hosts()
	rng := rand.New(rand.NewPCG(seed, 1))
	draw := func(median time.Duration, sigma float64) time.Duration {
		return time.Duration(float64(median) * math.Exp(sigma*rng.NormFloat64())).Round(time.Millisecond)
	}
	sizes := make([]int, n)
	for h := range n {
		sizes[h] = max(campusLeast, int(float64(c.web.Config().Pages.Max)/math.Pow(float64(h+1), campusZipf)))
	}
	for h, at := range rng.Perm(n) {
		for {
			rtt := max(time.Millisecond, min(connectMost, draw(connectMedian, connectSigma)))
			s := simulate.Server{Connect: 3 * rtt, Response: rtt + max(time.Millisecond, min(replyMost, time.Duration(float64(draw(replyMedian, replySigma))*math.Pow(60/float64(sizes[h]),gamma))))}
			switch share := (float64(at) + 0.5) / float64(n); {
			case share < oneRequest:
				s.PerConnection = 1
			case share < oneRequest+hundred:
				s.PerConnection = 100
			default:
				s.PerConnection = 2 + rng.IntN(98)
			}
			if alone(s, sizes[h]) <= longest {
				c.servers = append(c.servers, s)
				break
			}
		}
	}
}

// longest bounds alone.
var gamma = 0.0
var longest = 1000*time.Second

// alone is how long a server would take for so many pages, if it were never left waiting.
func alone(s simulate.Server, pages int) time.Duration {
	return time.Duration(pages)*s.Response + time.Duration((pages+s.PerConnection-1)/s.PerConnection)*2*s.Connect
}

// explore finds all pages that links lead to.
func (c *campus) explore() error {
	add := func(u weburl.URL) int32 {
		text := u.String()
		i, ok := c.number[text]
		if !ok {
			i = len(c.urls)
			c.number[text] = i
			c.urls = append(c.urls, u)
			h, _ := c.web.HostOf(string(u.Host()))
			c.host = append(c.host, h)
		}
		return int32(i)
	}
	for _, u := range c.seeds {
		add(u)
	}
	for i := 0; i < len(c.urls); i++ {
		var links []int32
		for _, to := range c.web.Links(c.urls[i].String()) {
			u, err := weburl.Parse(to)
			if err != nil {
				return err
			}
			links = append(links, add(u))
		}
		c.links = append(c.links, links)
	}
	return nil
}

// server is what a host's connections take.
func (c *campus) server(host string) simulate.Server {
	h, _ := c.web.HostOf(host)
	return c.servers[h]
}

// pageRank is that of Page, Brin, Motwani and Winograd ("The PageRank citation ranking", 1998),
// with a damping of 0.85, in 50 rounds; what pages without links have is spread over all.
func pageRank(links [][]int32) []float64 {
	const damping = 0.85
	n := float64(len(links))
	rank, next := make([]float64, len(links)), make([]float64, len(links))
	for i := range rank {
		rank[i] = 1 / n
	}
	for range 50 {
		lost := 0.0
		clear(next)
		for i, to := range links {
			if len(to) == 0 {
				lost += rank[i]
			}
			for _, j := range to {
				next[j] += rank[i] / float64(len(to))
			}
		}
		for i := range next {
			next[i] = (1-damping)/n + damping*(next[i]+lost/n)
		}
		rank, next = next, rank
	}
	return rank
}

// given is a source of quality for a policy that knows all pages.
type given struct{ of map[uint64]float64 }

func (c *campus) given(lab *simulate.Lab, quality []float64) (frontier.Quality, error) {
	hash, err := lab.Hash()
	if err != nil {
		return nil, err
	}
	return makeGiven(c, hash, quality), nil
}

func makeGiven(c *campus, hash partition.Hash, quality []float64) given {
	g := given{of: make(map[uint64]float64, len(quality))}
	for i, q := range quality {
		g.of[hash.Fingerprint(c.urls[i].String())] = q
	}
	return g
}

func (given) Name() string                       { return "given" }
func (g given) Of(c frontier.Candidate) float64 { return g.of[c.Fingerprint] }
func (given) Adds() bool                         { return false }

// policyTrial is one crawl of a campus.
type policyTrial struct {
	policy, source string
	known          bool
	quality        []float64 // given, if source is ""
	order          []int     // pages in the order in which they came
	at             []time.Duration
	end            time.Duration
}

func (t *policyTrial) run(c *campus, seed uint64, connections int) error {
	lab := simulate.Lab{
		Seed: seed, Web: c.web, Partitions: 1, Slots: 1024, Connections: connections, Server: c.server, Known: c.seeds,
		Answered: func(at time.Duration, u weburl.URL) {
			t.order, t.at = append(t.order, c.number[u.String()]), append(t.at, at)
		},
	}
	if t.known {
		lab.Known = c.urls
	}
	source, err := frontier.QualityByName(t.source)
	if t.quality != nil {
		source, err = c.given(&lab, t.quality)
	}
	if err == nil {
		lab.Policy, err = frontier.NewPolicy(t.policy, source)
	}
	if err != nil {
		return err
	}
	m, err := simulate.Measure(lab)
	if err != nil {
		return fmt.Errorf("%s by %s: %w", t.policy, t.source, err)
	}
	if !m.Finished || len(slices.Compact(slices.Sorted(slices.Values(t.order)))) != len(c.urls) {
		return fmt.Errorf("%s by %s: %d of %d pages; finished: %v", t.policy, t.source, len(t.order), len(c.urls), m.Finished)
	}
	t.end = slices.Max(t.at)
	return nil
}

// share is how much of the quality is had until a time.
func (t *policyTrial) share(quality []float64, until time.Duration) (sum float64) {
	for i, p := range t.order {
		if t.at[i] <= until {
			sum += quality[p]
		}
	}
	return sum
}

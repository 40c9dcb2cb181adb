package experiment

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/lab/measure"
)

// campus is a web of servers of different sizes and speeds, with the knowledge of an observer: the whole graph and the
// quality of each page.
type campus struct {
	web     *simweb.Web
	servers []measure.Server // by host
	urls    []weburl.URL     // all pages, in the order of a breadth-first search from the roots
	host    []int            // host of each page
	number  map[string]int   // number of each page by URL
	links   [][]int32
	roots   []weburl.URL
	pages   []float64   // equal qualities; the sum is 1, as of rank and zipfs
	rank    []float64   // PageRank
	zipfs   [][]float64 // independent draws from Zipf's law
	work    time.Duration
	longest time.Duration // longest time that a single server needs
}

// Properties of the campus. The paper gives the shares of servers by requests per connection, but neither times nor sizes.
const (
	oneRequest = 0.24 // share of the servers that allow 1 request per connection
	hundred    = 0.66 // share that allows 100; the rest allows from 2 to 99
	campusZipf = 0.5  // exponent of the sizes
	campusSkew = 11   // skew of the numbers of links to pages

	roundTrip      = 10 * time.Millisecond // median; three make a connection, and two close it
	roundTripSigma = 1.0
	roundTripMost  = 100 * time.Millisecond
	reply          = 300 * time.Millisecond // median, on top of a round trip, of a server of mean size
	replySigma     = 2.0
	replyMost      = 5 * time.Second
	replySpread    = 0.5
	// alonePerPage bounds the time of a single server, relative to the mean number of pages.
	alonePerPage = time.Second * 2 / 3
)

// campusOptions are variations of a campus.
type campusOptions struct {
	hosts, pages int
	draws        int     // draws of qualities from Zipf's law; several, because the ten best pages have a quarter of the sum
	sigma        float64 // of the response times; 0: replySigma
	fair         bool    // larger servers are faster, so that all servers need the same time
	bounded      bool    // alonePerPage bounds the time of each server
}

func newCampus(seed uint64, o campusOptions) (*campus, error) {
	const least = 10
	web, err := simweb.New(simweb.Config{
		Seed: seed, Hosts: o.hosts, Names: true, HostsPerSite: 1,
		Pages:     simweb.Pages{Min: least, Max: largestOf(o.hosts, o.pages, least, campusZipf), Zipf: campusZipf},
		PageBytes: 256, LinksPerPage: 10, CrossHost: 0.15, Skew: campusSkew,
	})
	if err != nil {
		return nil, err
	}
	c, err := observe(seed, web, o.draws)
	if err != nil {
		return nil, err
	}
	c.drawServers(seed, o)
	return c, nil
}

// observe explores a web.
func observe(seed uint64, web *simweb.Web, draws int) (*campus, error) {
	c := &campus{web: web, number: map[string]int{}}
	for h := range web.Hosts() {
		u, err := weburl.Parse(web.URL(h, 0))
		if err != nil {
			return nil, err
		}
		c.roots = append(c.roots, u)
	}
	if err := c.explore(); err != nil {
		return nil, err
	}
	c.rank = pageRank(c.links)
	for range c.urls {
		c.pages = append(c.pages, 1/float64(len(c.urls)))
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	for range draws {
		zipf, sum := make([]float64, len(c.urls)), 0.0
		for i, k := range rng.Perm(len(c.urls)) {
			zipf[i] = 1 / float64(k+1)
			sum += zipf[i]
		}
		for i := range zipf {
			zipf[i] /= sum
		}
		c.zipfs = append(c.zipfs, zipf)
	}
	return c, nil
}

// largestOf returns the size of the largest host such that all hosts together have about that many pages.
func largestOf(hosts, pages, least int, zipf float64) int {
	total := func(largest int) (n int) {
		for h := range hosts {
			n += max(least, int(float64(largest)/math.Pow(float64(h+1), zipf)))
		}
		return n
	}
	lo, hi := least, pages
	for lo < hi {
		if mid := (lo + hi + 1) / 2; total(mid) <= pages {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// drawServers draws the times of connections to each server.
func (c *campus) drawServers(seed uint64, o campusOptions) {
	n := c.web.Hosts()
	rng := rand.New(rand.NewPCG(seed, 1))
	draw := func(median, most time.Duration, sigma float64) time.Duration {
		t := time.Duration(float64(median) * math.Exp(sigma*rng.NormFloat64()))
		return max(time.Millisecond, min(most, t)).Round(100 * time.Microsecond)
	}
	mean := float64(c.web.Pages()) / float64(n)
	bound := time.Duration(mean * float64(alonePerPage))
	for h, at := range rng.Perm(n) {
		pages := c.web.Host(h).Pages
		var s measure.Server
		for {
			median := reply
			if o.fair {
				median = time.Duration(float64(reply) * mean / float64(pages))
			}
			trip := draw(roundTrip, roundTripMost, roundTripSigma)
			s = measure.Server{
				Connect: 3 * trip, Close: 2 * trip, Response: trip + draw(median, replyMost, cmp.Or(o.sigma, replySigma)), Spread: replySpread,
			}
			switch share := (float64(at) + 0.5) / float64(n); {
			case share < oneRequest:
				s.PerConnection = 1
			case share < oneRequest+hundred:
				s.PerConnection = 100
			default:
				s.PerConnection = 2 + rng.IntN(98)
			}
			if !o.bounded || alone(s, pages) <= bound {
				break
			}
		}
		c.servers = append(c.servers, s)
		c.work += alone(s, pages)
		c.longest = max(c.longest, alone(s, pages))
	}
}

// alone returns the time that a server needs for a number of pages without pauses.
func alone(s measure.Server, pages int) time.Duration {
	connections := (pages + s.PerConnection - 1) / s.PerConnection
	return time.Duration(pages)*s.Response + time.Duration(connections)*(s.Connect+s.Close)
}

// explore finds all linked pages.
func (c *campus) explore() error {
	add := func(u weburl.URL) int32 {
		text := u.String()
		i, ok := c.number[text]
		if !ok {
			i = len(c.urls)
			c.number[text] = i
			h, _ := c.web.HostOf(string(u.Host())) // exists, because the link is the web's own
			c.urls, c.host = append(c.urls, u), append(c.host, h)
		}
		return int32(i)
	}
	for _, u := range c.roots {
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

// server returns the times of connections to a host.
func (c *campus) server(host string) measure.Server {
	h, _ := c.web.HostOf(host) // only links of the web are followed
	return c.servers[h]
}

// pageRank returns PageRank (Page, Brin, Motwani and Winograd, "The PageRank Citation Ranking: Bringing Order to the Web",
// 1999) with a damping of 0.85, after 50 rounds. The rank of pages without links is spread over all pages. The sum is 1.
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
			next[i] = (1-damping)/n + float64(damping*(next[i]+lost/n))
		}
		rank, next = next, rank
	}
	return rank
}

// omniscient returns a crawl in an order that knows all pages with their qualities and times from the start. A free
// connection goes to the server whose next pages have the most quality per second, and fetches just these. This is greedy
// and therefore not always the best order.
func (c *campus) omniscient(quality []float64, connections int) *policyTrial {
	hosts := make([]queue, len(c.servers))
	took := make([]time.Duration, len(c.urls))
	for p, u := range c.urls {
		s := c.servers[c.host[p]]
		took[p] = s.ResponseOf(u.String())
		hosts[c.host[p]].add(p, quality[p]/took[p].Seconds())
	}
	for h := range hosts {
		hosts[h].sort()
		hosts[h].plan(c.servers[h], quality, took)
	}
	t := &policyTrial{policy: "omniscient"}
	now := make([]time.Duration, connections) // time at which each connection is free
	for {
		at := earliest(now)
		best := -1
		for h := range hosts {
			q := &hosts[h]
			if len(q.pages) > 0 && q.free <= now[at] && (best < 0 || q.gain > hosts[best].gain) {
				best = h
			}
		}
		if best < 0 { // all other servers are connected
			next := time.Duration(math.MaxInt64)
			for h := range hosts {
				if len(hosts[h].pages) > 0 {
					next = min(next, hosts[h].free)
				}
			}
			if next == math.MaxInt64 {
				break
			}
			now[at] = next
			continue
		}
		q, s := &hosts[best], c.servers[best]
		end := now[at] + q.opening(s)
		for _, p := range q.pages[:q.batch] {
			end += took[p]
			t.order, t.at = append(t.order, p), append(t.at, end)
		}
		q.served = (q.served + q.batch) % s.PerConnection
		q.pages = q.pages[q.batch:]
		q.free, now[at] = end, end
		q.plan(s, quality, took)
	}
	t.finish()
	return t
}

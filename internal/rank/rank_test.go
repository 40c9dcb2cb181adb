package rank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/rank/made"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// exact returns the ranks by a second method: it solves the linear system by elimination. to[i] lists the
// nodes that node i links to, in any order, with repeats, and may contain i.
func exact(n int, to [][]int, v []float64, d float64) []float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n+1)
		m[i][i] = 1
		m[i][n] = (1 - d) * v[i]
	}
	for j, list := range to {
		set := map[int]bool{}
		for _, i := range list {
			if i != j {
				set[i] = true
			}
		}
		for i := range n {
			if set[i] {
				m[i][j] -= d / float64(len(set))
			}
			if len(set) == 0 {
				m[i][j] -= d * v[i]
			}
		}
	}
	for c := range n {
		best := c
		for i := c; i < n; i++ {
			if math.Abs(m[i][c]) > math.Abs(m[best][c]) {
				best = i
			}
		}
		m[c], m[best] = m[best], m[c]
		for i := range n {
			if f := m[i][c] / m[c][c]; i != c && f != 0 {
				for k := c; k <= n; k++ {
					m[i][k] -= f * m[c][k]
				}
			}
		}
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = m[i][n] / m[i][i]
	}
	return x
}

// newest returns the page of each URL that counts.
func newest(pages []made.Page) map[string]*made.Page {
	last := map[string]*made.Page{}
	for i := range pages {
		p := pages[i]
		if old := last[p.URL]; old != nil && old.Generation > p.Generation {
			continue
		}
		switch p.Outcome {
		case blobschema.OutcomeNone, blobschema.OutcomeRedirect:
			last[p.URL] = &p
		case blobschema.OutcomeUnchanged:
			if last[p.URL] == nil {
				last[p.URL] = &p
			}
		case blobschema.OutcomeClientError, blobschema.OutcomeRobots:
			delete(last, p.URL)
		}
	}
	return last
}

// truth returns the exact ranks of a web, by URL and by host.
func truth(t testing.TB, pages []made.Page, personal []ranks.Weight, d float64) (urls, hosts map[string]float64) {
	t.Helper()
	last := newest(pages)
	host := func(url string) string {
		u, err := weburl.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		return string(u.Host())
	}
	pg, hg := &graph{number: map[string]int{}}, &graph{number: map[string]int{}}
	for i := range pages {
		p := last[pages[i].URL]
		if p == nil {
			continue
		}
		from, fromHost := pg.node(p.URL), hg.node(host(p.URL))
		for _, l := range p.Links {
			if l.NoFollow {
				continue
			}
			to := hg.node(host(l.URL))
			hg.to[fromHost] = append(hg.to[fromHost], to)
			if !l.Outside {
				to := pg.node(l.URL)
				pg.to[from] = append(pg.to[from], to)
			}
		}
	}
	perHost := map[string]int{}
	for _, name := range pg.names {
		perHost[host(name)]++
	}
	pageWeight := func(name string) (w float64) {
		for _, p := range personal {
			if p.URL == name {
				w += p.Weight
			}
			if p.Host != "" && p.Host == host(name) {
				w += p.Weight / float64(perHost[p.Host])
			}
		}
		return w
	}
	hostWeight := func(name string) (w float64) {
		for _, p := range personal {
			if p.Host == name || p.URL != "" && host(p.URL) == name {
				w += p.Weight
			}
		}
		return w
	}
	if len(personal) == 0 {
		pageWeight = func(string) float64 { return 1 }
		hostWeight = pageWeight
	}
	return pg.solve(pageWeight, d), hg.solve(hostWeight, d)
}

// graph is a directed graph of named nodes.
type graph struct {
	number map[string]int
	names  []string
	to     [][]int
}

func (g *graph) node(name string) int {
	if _, ok := g.number[name]; !ok {
		g.number[name] = len(g.names)
		g.names, g.to = append(g.names, name), append(g.to, nil)
	}
	return g.number[name]
}

// solve returns the ranks of the graph. weight is the personalisation.
func (g *graph) solve(weight func(name string) float64, damping float64) map[string]float64 {
	v, sum := make([]float64, len(g.names)), 0.0
	for i, name := range g.names {
		v[i] = weight(name)
		sum += v[i]
	}
	for i := range v {
		v[i] /= sum
	}
	out := map[string]float64{}
	for i, x := range exact(len(g.names), g.to, v, damping) {
		out[g.names[i]] = x
	}
	return out
}

// links returns links to some URLs.
func links(to ...string) (out []made.Link) {
	for _, u := range to {
		out = append(out, made.Link{URL: u, Text: "to " + u})
	}
	return out
}

// webs returns small webs of many shapes.
func webs() map[string][]made.Page {
	a, b, c, d := "https://a.example/", "https://a.example/2", "https://b.example/", "https://c.example/x"
	out := map[string][]made.Page{
		"one":          {{URL: a}},
		"self":         {{URL: a, Links: links(a, b)}, {URL: b, Links: links(b)}},
		"dangling":     {{URL: a, Links: links(b, c)}, {URL: b, Links: links(a)}},
		"duplicates":   {{URL: a, Links: links(b, b, b, c)}, {URL: b, Links: links(c, c, a)}, {URL: c, Links: links(a)}},
		"disconnected": {{URL: a, Links: links(b)}, {URL: b, Links: links(a)}, {URL: c, Links: links(d)}, {URL: d, Links: links(c)}},
		"cycle":        {{URL: a, Links: links(b)}, {URL: b, Links: links(c)}, {URL: c, Links: links(d)}, {URL: d, Links: links(a)}},
		"nofollow":     {{URL: a, Links: []made.Link{{URL: b, NoFollow: true}, {URL: c}}}, {URL: c, Links: links(a)}},
		"outside":      {{URL: a, Links: []made.Link{{URL: c, Outside: true}, {URL: b}, {URL: "https://far.example/", Outside: true}}}, {URL: b}},
		"redirect":     {{URL: a, Outcome: blobschema.OutcomeRedirect, Links: links(c)}, {URL: c, Links: links(d)}},
		"gone":         {{URL: a, Links: links(b, c)}, {URL: b, Links: links(a)}, {URL: b, Generation: 1, Outcome: blobschema.OutcomeClientError}},
		"again":        {{URL: a, Links: links(b)}, {URL: b, Links: links(c)}, {URL: a, Generation: 1, Links: links(c)}, {URL: b, Generation: 1, Outcome: blobschema.OutcomeUnchanged}},
		"failed":       {{URL: a, Links: links(b)}, {URL: a, Generation: 1, Outcome: blobschema.OutcomeTimeout}},
		"twice":        {{URL: a}, {URL: c, Links: links(d)}, {URL: a, Generation: 1, Links: links(c, d)}},
	}
	var star []made.Page
	for i := range 12 {
		star = append(star, made.Page{URL: made.Site(i), Links: links(made.Site(20))})
	}
	out["star"] = append(star, made.Page{URL: made.Site(20), Links: links(made.Site(3))})
	out["sites"] = made.Sites(7, 60)
	out["random"] = random(11, 80)
	return out
}

// random returns a web of several pages per host, with failures, revisits, nofollow links and links out of scope.
func random(seed uint64, n int) []made.Page {
	r := rand.New(rand.NewPCG(seed, 3))
	url := func() string { return fmt.Sprintf("https://h%d.example/%d", r.IntN(1+n/8), r.IntN(8)) }
	var out []made.Page
	seen := map[string]uint32{}
	for range n {
		p := made.Page{URL: url()}
		p.Generation = seen[p.URL]
		seen[p.URL]++
		switch r.IntN(12) {
		case 0:
			p.Outcome = blobschema.OutcomeClientError
		case 1:
			p.Outcome = blobschema.OutcomeTimeout
		case 2:
			if p.Generation > 0 {
				p.Outcome = blobschema.OutcomeUnchanged
			}
		}
		if p.Outcome == blobschema.OutcomeNone {
			for range r.IntN(9) {
				p.Links = append(p.Links, made.Link{URL: url(), Text: fmt.Sprintf("text %d", r.IntN(3)), NoFollow: r.IntN(9) == 0, Outside: r.IntN(9) == 0})
			}
		}
		out = append(out, p)
	}
	return out
}

var precise = ranks.Params{Damping: 0.85, Tolerance: 1e-13, MaxRounds: 1000}

// made stores a web as a crawl in the world.
func (w *world) made(pages []made.Page, partitions int, by blobschema.PartitionBy) *made.Crawl {
	w.t.Helper()
	c, err := made.Begin(w, "c", 64, partitions, by)
	if err == nil {
		err = c.Commit(w, pages, 7)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// compute runs a job to its end.
func (w *world) compute(cfg StartConfig) {
	w.t.Helper()
	err := w.start(cfg)
	if err == nil {
		err = w.drain()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if j := w.job(); j.Done.IsZero() || j.Failed != "" {
		w.t.Fatalf("the job has not succeeded: %+v", j)
	}
}

// compare checks all ranks against the exact ones.
func (w *world) compare(c *made.Crawl, pages []made.Page, p ranks.Params, within float64) {
	w.t.Helper()
	urls, hosts := truth(w.t, pages, p.Personal, p.Damping)
	gotPages, gotHosts := w.ranks()
	if len(gotPages) != len(urls) || len(gotHosts) != len(hosts) {
		w.t.Fatalf("%d pages and %d hosts, want %d and %d", len(gotPages), len(gotHosts), len(urls), len(hosts))
	}
	for u, want := range urls {
		got, ok := gotPages[c.Fingerprint(u)]
		if !ok || math.Abs(got-want) > within {
			w.t.Errorf("page %s has rank %.12g, want %.12g", u, got, want)
		}
	}
	for h, want := range hosts {
		if got, ok := gotHosts[h]; !ok || math.Abs(got-want) > within {
			w.t.Errorf("host %s has rank %.12g, want %.12g", h, got, want)
		}
	}
}

func TestRanksAreTheSolution(t *testing.T) {
	for name, pages := range webs() {
		most := 3
		if name == "random" {
			most = 7
		}
		for partitions := 1; partitions <= most; partitions++ {
			t.Run(fmt.Sprintf("%s/%d", name, partitions), func(t *testing.T) {
				w := newWorld(t)
				c := w.made(pages, partitions, blobschema.ByHost)
				w.compute(StartConfig{Params: precise})
				w.compare(c, pages, precise, 1e-9)
				if o := w.orphans(); len(o) > 0 {
					t.Errorf("nothing names %q", o)
				}
			})
		}
	}
}

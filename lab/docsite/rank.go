package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A graph is the site's pages and the links between them, by the files.
type graph struct {
	keys []string  // of the nodes
	to   [][]int32 // by node: those it links to, each once, never itself
}

// graph reads the links of all that is served, and of redirects. What links lead to is a node,
// whatever it is answered with.
func (l *linker) graph(truth map[string]answer) (*graph, error) {
	g := &graph{}
	number := map[string]int32{}
	node := func(k string) int32 {
		n, ok := number[k]
		if !ok {
			n = int32(len(g.keys))
			number[k] = n
			g.keys, g.to = append(g.keys, k), append(g.to, nil)
		}
		return n
	}
	for _, k := range slices.Sorted(maps.Keys(truth)) {
		a := truth[k]
		if a.file == "" && a.to == "" {
			continue
		}
		targets, err := l.keys(k, a)
		if err != nil {
			return nil, err
		}
		n := node(k)
		for _, k := range targets {
			if to := node(k); to != n {
				g.to[n] = append(g.to[n], to)
			}
		}
		slices.Sort(g.to[n])
		g.to[n] = slices.Compact(g.to[n])
	}
	return g, nil
}

// A linker reads what URLs lead to, and again only where a file has another time.
type linker struct {
	site *site
	read map[string]linked // by key
}

type linked struct {
	time time.Time // of the file
	keys []string
}

// keys are those of what a URL leads to on the site, as often as it does.
func (l *linker) keys(k string, a answer) ([]string, error) {
	path, query, _ := strings.Cut(k, "?")
	self := *l.site.home
	self.Path, self.RawQuery = path, query
	if a.to != "" {
		return l.onSite(resolve(&self, []string{a.to})), nil
	}
	if !isDocument(a.file) {
		return nil, nil
	}
	info, err := os.Stat(a.file)
	if err != nil {
		return nil, err
	}
	if was, ok := l.read[k]; ok && was.time.Equal(info.ModTime()) {
		return was.keys, nil
	}
	doc, err := os.ReadFile(a.file)
	if err != nil {
		return nil, err
	}
	now := linked{info.ModTime(), l.onSite(links(doc, &self))}
	l.read[k] = now
	return now.keys, nil
}

func (l *linker) onSite(targets []*url.URL) (keys []string) {
	for _, u := range targets {
		if u.Scheme == l.site.home.Scheme && u.Host == l.site.home.Host {
			keys = append(keys, key(u))
		}
	}
	return keys
}

func (g *graph) links() (n int) {
	for _, to := range g.to {
		n += len(to)
	}
	return n
}

// ranks are the PageRanks of the nodes, times their number. Leaving out what pages without
// links give, and the sum, is a linear system, y = v + d A y, of which the ranks are a multiple
// (Langville and Meyer, "Deeper inside PageRank", 2004, section 5.2). It is solved in place,
// node by node (Gauss and Seidel), not by rounds.
func (g *graph) ranks(damping float64) map[string]float64 {
	n := len(g.keys)
	from := make([][]int32, n)
	for i, list := range g.to {
		for _, j := range list {
			from[j] = append(from[j], int32(i))
		}
	}
	y := make([]float64, n)
	for change := 1.0; change > 1e-14; {
		change = 0
		sum := 0.0
		for j := range y {
			x := 1.0
			for _, i := range from[j] {
				x += damping * y[i] / float64(len(g.to[i]))
			}
			change += math.Abs(x - y[j])
			y[j] = x
			sum += x
		}
		change /= sum
	}
	sum := 0.0
	for _, x := range y {
		sum += x
	}
	out := map[string]float64{}
	for i, k := range g.keys {
		out[k] = y[i] / sum * float64(n)
	}
	return out
}

// ranking is what rank --show says.
type ranking struct {
	Params struct {
		Damping float64 `json:"damping"`
	} `json:"params"`
	Totals struct {
		Pages   int `json:"pages"`
		Crawled int `json:"crawled"`
		Links   int `json:"links"`
	} `json:"totals"`
	Pages []ranked `json:"top_pages"`
}

// ranked is the rank of a page: 1 is the mean.
type ranked struct {
	URL  string  `json:"name"`
	Rank float64 `json:"rank"`
}

// ranks shows the best pages, and reads the table of all that are named.
func (c *crawler) ranks(ctx context.Context, best int) (r *ranking, table []ranked, err error) {
	show := []string{"rank", "--show", "--level", "pages", "--data", c.data}
	err = c.run(ctx, append(show, "--json", "--top", strconv.Itoa(best)), nil, func(out io.Reader) error {
		return json.NewDecoder(out).Decode(&r)
	})
	if err != nil {
		return nil, nil, err
	}
	err = c.run(ctx, append(show, "--out", "-"), nil, func(out io.Reader) error {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			name, number, _ := strings.Cut(lines.Text(), "\t")
			x, err := strconv.ParseFloat(number, 64)
			if err != nil {
				return err
			}
			table = append(table, ranked{name, x})
		}
		return lines.Err()
	})
	return r, table, err
}

// Ranks are printed with six digits, and are exact to the tolerance of the computation.
const (
	rankShare  = 1e-6 // of all the rank there is
	rankDigits = 2e-5 // of a page's own rank
	rankBest   = 20
)

// checkRanks holds ranks to those of the files, and returns the latter, by key.
func (t *trial) checkRanks(ctx context.Context) (check, map[string]float64, error) {
	c := check{Name: "ranks"}
	shown, table, err := t.crawler.ranks(ctx, rankBest)
	if err != nil {
		return c, nil, err
	}
	g, err := t.linker.graph(t.truth)
	if err != nil {
		return c, nil, err
	}
	want := g.ranks(shown.Params.Damping)
	served := 0
	var best []ranked // by the files
	for k, a := range t.truth {
		if a.status == http.StatusOK || a.status == http.StatusMovedPermanently {
			served++
			best = append(best, ranked{k, want[k]})
		}
	}
	slices.SortFunc(best, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.URL, b.URL)) })
	if s := shown.Totals; s.Pages != len(g.keys) || s.Crawled != served || s.Links != g.links() {
		c.wrongf("%d pages, %d of them answered, and %d links; by the files %d, %d and %d", s.Pages, s.Crawled, s.Links, len(g.keys), served, g.links())
	}
	if n := min(rankBest, len(best)); len(shown.Pages) != n || len(table) < n || !slices.Equal(shown.Pages, table[:n]) {
		c.wrongf("the best %d are %v, and in the table other ones", n, shown.Pages)
	}
	worst := 0.0
	for i, r := range table {
		u, err := url.Parse(r.URL)
		if err != nil {
			return c, nil, err
		}
		x := want[key(u)]
		worst = max(worst, math.Abs(r.Rank-x)/float64(len(g.keys)))
		switch {
		case i >= len(best):
			c.wrongf("%s is ranked, and should not be", r.URL)
		case math.Abs(r.Rank-x)/float64(len(g.keys)) > rankShare || math.Abs(r.Rank-x) > rankDigits*x:
			c.wrongf("%s has rank %g; by the files %g", r.URL, r.Rank, x)
		case key(u) != best[i].URL && math.Abs(best[i].Rank-x) > rankDigits*x: // no tie
			c.wrongf("%s is number %d; by the files that is %s", r.URL, i+1, best[i].URL)
		}
	}
	c.Fact = fmt.Sprintf("%d pages and %d links as in the files; of the best %d the ranks differ by %.1e of the whole at most", len(g.keys), g.links(), len(table), worst)
	return c, want, nil
}

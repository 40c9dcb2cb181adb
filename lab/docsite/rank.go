package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// rankDigits is the accuracy of a rank: the command prints six digits, and its computation
// ends at a tolerance.
const rankDigits = 2e-5

// A graph has the links between pages, each once, and none from a page to itself.
type graph map[string][]string

func (s *site) graph() (g graph, edges int) {
	g = graph{}
	for k, p := range s.pages {
		if p.status != http.StatusOK && p.status != http.StatusMovedPermanently {
			continue
		}
		to := slices.DeleteFunc(slices.Clone(p.links), func(l string) bool { return l == k })
		slices.Sort(to)
		g[k] = slices.Compact(to)
		edges += len(g[k])
	}
	for _, links := range maps.Clone(g) {
		for _, to := range links {
			if _, known := g[to]; !known {
				g[to] = nil // pages without links are nodes too
			}
		}
	}
	return g, edges
}

// ranks returns the PageRanks of the nodes, times their number. Without the shares of nodes that
// have no links, and without the norm, PageRank is a linear system, y = v + d A y, of which
// the ranks are a multiple (Langville and Meyer, "Deeper inside PageRank", 2004, section
// 5.2). Each round adds the part that arrives over one more link.
func (g graph) ranks(damping float64) map[string]float64 {
	keys := slices.Sorted(maps.Keys(g))
	y, part, sum := make([]float64, len(keys)), make([]float64, len(keys)), 0.0
	links := make([][]int, len(keys))
	for i, k := range keys {
		part[i] = 1
		for _, to := range g[k] {
			n, _ := slices.BinarySearch(keys, to)
			links[i] = append(links[i], n)
		}
	}
	for rest := 1.0; rest > 1e-9*sum; sum += rest {
		next := make([]float64, len(keys))
		rest = 0
		for i, x := range part {
			y[i] += x
			rest += x
			for _, to := range links[i] {
				next[to] += damping * x / float64(len(links[i]))
			}
		}
		part = next
	}
	ranks := map[string]float64{}
	for i, k := range keys {
		ranks[k] = y[i] / sum * float64(len(keys))
	}
	return ranks
}

// ranks compares the best pages, and the numbers of pages and links, with those of the files.
func (t *trial) ranks(ctx context.Context) error {
	show := []string{"rank", "--show", "--level", "pages"}
	out, err := t.orbweaver(ctx, "", append(show, "--json")...)
	if err != nil {
		return err
	}
	var shown struct {
		Params struct {
			Damping float64 `json:"damping"`
		} `json:"params"`
		Totals struct {
			Pages int `json:"pages"`
			Links int `json:"links"`
		} `json:"totals"`
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		return err
	}
	if out, err = t.orbweaver(ctx, "", append(show, "--out", "-")...); err != nil {
		return err
	}
	g, edges := t.site.graph()
	truth := g.ranks(shown.Params.Damping)
	got := table{"pages": strconv.Itoa(shown.Totals.Pages), "links": strconv.Itoa(shown.Totals.Links)}
	expected := table{"pages": strconv.Itoa(len(g)), "links": strconv.Itoa(edges)}
	best := slices.SortedFunc(maps.Keys(truth), func(a, b string) int { return cmp.Compare(truth[b], truth[a]) })
	best = slices.DeleteFunc(best, func(k string) bool { return t.site.pages[k].status >= 400 })
	lines := bufio.NewScanner(bytes.NewReader(out))
	for i := 0; lines.Scan() && i < len(best); i++ {
		name, number, _ := strings.Cut(lines.Text(), "\t")
		x, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return err
		}
		k, place := keyOf(name), fmt.Sprintf("number %d", i+1)
		got[k], expected[k] = near(x, truth[k]), fmt.Sprint(truth[k])
		got[place], expected[place] = near(x, truth[best[i]]), fmt.Sprint(truth[best[i]]) // pages of equal rank are in any order
	}
	t.compare("ranks", got, expected)
	return lines.Err()
}

// near returns the text of want if got is within rankDigits of it, else of got.
func near(got, want float64) string {
	if math.Abs(got-want) <= rankDigits*want {
		got = want
	}
	return fmt.Sprint(got)
}

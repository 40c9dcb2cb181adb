package search

import (
	"cmp"
	"context"
	"math/bits"
	"slices"

	"github.com/orbweaver/orbweaver/partition"
)

// Bounds on a page of results.
const (
	// maxDistance is the largest number of bits, of 64, in which the SimHashes of near-duplicates differ: Manku,
	// Jain and Das Sarma, "Detecting near-duplicates for web crawling" (2007).
	maxDistance = 3
	// Of ten results in a row at most perSite are of one site, if one of the next lookAhead hits is of another.
	window    = 10
	perSite   = 2
	lookAhead = 50
	// maxOthers bounds the near-duplicates listed for a result.
	maxOthers = 5
)

// group is a hit with its near-duplicates.
type group struct {
	found
	similar []found
}

// groups puts near-duplicates behind the best of them, and spreads sites.
func (e *evaluation) groups(best []found, req *Request) []group {
	if req.All {
		out := make([]group, len(best))
		for i, f := range best {
			out[i].found = f
		}
		return out
	}
	out := collapse(best)
	if len(e.q.sites) > 0 {
		return out
	}
	return spread(out)
}

// collapse puts each hit behind the first hit of which it is a near-duplicate. The groups do not depend on the
// number of hits, so pages of results fit together.
func collapse(best []found) (out []group) {
	var of []uint64 // by group
	for _, f := range best {
		like := -1
		if f.hash != 0 {
			like = slices.IndexFunc(of, func(h uint64) bool { return h != 0 && bits.OnesCount64(h^f.hash) <= maxDistance })
		}
		if like >= 0 {
			out[like].similar = append(out[like].similar, f)
			continue
		}
		out, of = append(out, group{found: f}), append(of, f.hash)
	}
	return out
}

// spread moves back the third result of a site among ten. A site is a slot here: two sites that share a slot are
// spread as one, which is harmless.
func spread(in []group) []group {
	out := make([]group, 0, len(in))
	used := make([]bool, len(in))
	first := 0 // the first that is not used yet
	for len(out) < len(in) {
		count := map[partition.Slot]int{}
		for range min(window, len(in)-len(out)) {
			for used[first] {
				first++
			}
			take := first
			for i := first; i < min(len(in), first+lookAhead); i++ {
				if !used[i] && count[in[i].Slot] < perSite {
					take = i
					break
				}
			}
			used[take] = true
			count[in[take].Slot]++
			out = append(out, in[take])
		}
	}
	return out
}

// results reads the documents of a page of results.
func (e *evaluation) results(groups []group, req *Request) ([]Result, error) {
	out := make([]Result, len(groups))
	h := e.highlighter()
	return out, parallel(parallelReads, groups, func(i int, g group) (err error) {
		out[i], err = e.result(&g, h)
		out[i].Place = req.Offset + i + 1
		return err
	})
}

func (e *evaluation) result(g *group, h *highlighter) (r Result, err error) {
	o := e.terms[g.seg].opened
	d, err := o.Document(g.doc)
	if err != nil {
		return r, bad(g.seg, err)
	}
	text, err := o.Text(g.doc)
	if err != nil {
		return r, bad(g.seg, err)
	}
	r = Result{
		URL: d.URL, Site: d.Host, Lang: d.Lang, Fetched: d.Time, Published: d.Published, Score: g.score, Similar: len(g.similar),
		Title: h.title(d.Title, d.Lang), Snippet: h.snippet(text, d.Lang),
	}
	for _, f := range g.similar[:min(len(g.similar), maxOthers)] {
		d, err := e.terms[f.seg].opened.Document(f.doc)
		if err != nil {
			return r, bad(f.seg, err)
		}
		r.Others = append(r.Others, Similar{d.URL, d.Title})
	}
	return r, nil
}

// explain scores results once more, and fills in the parts of each score.
func (e *evaluation) explain(ctx context.Context, groups []group, results []Result) error {
	by := map[*seg][]int{}
	for i := range groups {
		by[groups[i].seg] = append(by[groups[i].seg], i)
	}
	for seg, list := range by {
		// A scorer goes forward only.
		slices.SortFunc(list, func(a, b int) int { return cmp.Compare(groups[a].doc, groups[b].doc) })
		err := e.withScorer(ctx, seg, func(s *scorer) {
			for _, i := range list {
				results[i].Explain = &Explanation{}
				s.score(groups[i].doc, results[i].Explain)
			}
		})
		if err != nil {
			return bad(seg, err)
		}
	}
	return nil
}

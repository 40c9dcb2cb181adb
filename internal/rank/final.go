package rank

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/partition"
)

// Numbers of best pages listed with their URLs, by each partition and by the job.
const (
	bestOfPartition = 100
	bestOfJob       = 1000
)

// final makes the partition's tables.
func (s *Step) final(t *actor.Task) (*outcome, error) {
	// Find the best pages and their URLs.
	w := s.warm
	pages := w.levels[0]
	hosts := &ranks.Hosts{Names: w.layout.HostNames, Ranks: w.levels[1].x, Crawled: crawledHosts(w.layout)}
	best := bestNodes(w.layout, pages.x)
	var err error
	if hosts.URLs, err = s.urls(t, best); err != nil {
		return nil, err
	}
	// Encode and store the tables. The head will name them, and the layout is no longer needed.
	var objects [3][]byte
	_, err = t.Do(actor.Work{Do: func() (any, error) {
		for _, i := range best {
			hosts.Best = append(hosts.Best, pages.x[i])
		}
		if objects[0], objects[1], err = tables(w.layout, pages); err != nil {
			return nil, err
		}
		objects[2], err = ranks.EncodeHosts(hosts)
		return nil, err
	}})
	if err != nil {
		return nil, err
	}
	var names [3]string
	for i, what := range []string{"table", "rest", "hosts"} {
		if names[i], err = s.put(t, what, objects[i]); err != nil {
			return nil, err
		}
	}
	did := &outcome{final: true, state: ranks.EncodeValues(pages.past, w.levels[1].past), drop: []string{s.own().Next.Layout}}
	did.next = func(r *ranks.Result) {
		r.Layout, r.Table, r.Rest, r.Hosts = "", names[0], names[1], names[2]
	}
	return did, nil
}

// crawledHosts returns a bit for each host, which is set if a page of the host was answered.
func crawledHosts(l *ranks.Layout) []byte {
	out := make([]byte, (len(l.HostNames)+7)/8)
	for h := range l.HostNames {
		for i := l.First[h]; i < l.First[h+1]; i++ {
			if crawled(l, int(i)) {
				out[h/8] |= 1 << (h % 8)
				break
			}
		}
	}
	return out
}

// tables returns the encoded ranks of answered pages, and those of all other pages.
func tables(l *ranks.Layout, pages *level) (table, rest []byte, err error) {
	type entry struct {
		fp   uint64
		rank float64
	}
	var all [2][]entry
	for i, fp := range l.Nodes {
		kind := 1
		if crawled(l, i) {
			kind = 0
		}
		all[kind] = append(all[kind], entry{fp, pages.x[i]})
	}
	var out [2][]byte
	for kind, list := range all {
		slices.SortFunc(list, func(a, b entry) int { return cmp.Or(cmp.Compare(a.fp, b.fp), cmp.Compare(b.rank, a.rank)) })
		list = slices.CompactFunc(list, func(a, b entry) bool { return a.fp == b.fp }) // two hosts may have a page of the same fingerprint
		fps, values := make([]uint64, len(list)), make([]float64, len(list))
		for i, e := range list {
			fps[i], values[i] = e.fp, min(e.rank, 1)
		}
		if out[kind], err = ranks.EncodeTable(int64(pages.nodes), fps, values); err != nil {
			return nil, nil, err
		}
	}
	return out[0], out[1], nil
}

// bestNodes returns the best of the pages that were answered, best first.
func bestNodes(l *ranks.Layout, x []float64) (best []int) {
	order := func(a, b int) int { return cmp.Or(cmp.Compare(x[b], x[a]), cmp.Compare(l.Nodes[a], l.Nodes[b])) }
	for i := range l.Nodes {
		if !crawled(l, i) || len(best) == bestOfPartition && order(i, best[len(best)-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, i, order)
		best = slices.Insert(best, at, i)
		best = best[:min(len(best), bestOfPartition)]
	}
	return best
}

// urls finds the URLs of nodes in their page records.
func (s *Step) urls(t *actor.Task, nodes []int) ([]string, error) {
	if len(nodes) == 0 {
		return nil, nil
	}
	graph := s.warm.graph
	if graph == nil {
		var err error
		if graph, err = s.readGraph(t, s.own().Next.Graph); err != nil {
			return nil, err
		}
	}
	// The graph names the commits with the records of the pages.
	at := map[uint64]int{} // index in nodes
	for k, i := range nodes {
		at[s.warm.layout.Nodes[i]] = k
	}
	in := map[blobschema.RecordRef]bool{}
	for p := range allNodes(graph) {
		if _, ok := at[p.page().Fingerprint]; ok {
			in[p.page().Record] = true
		}
	}
	names, err := s.commitNames(t, in)
	if err != nil {
		return nil, err
	}
	urls := make([]string, len(nodes))
	return urls, eachCommit(t, names, func(_ string, data []byte) error { return s.findURLs(data, at, urls) })
}

// findURLs fills in the URLs of a commit's pages whose fingerprints are in at.
func (s *Step) findURLs(commit []byte, at map[uint64]int, urls []string) error {
	c, err := blobschema.OpenCommit(commit)
	if err != nil {
		return err
	}
	pages, err := c.Pages()
	if err != nil {
		return err
	}
	for i := range pages {
		if n, ok := at[s.hash.Fingerprint(pages[i].URL)]; ok && !pages[i].Robots {
			urls[n] = pages[i].URL
		}
	}
	return nil
}

// commitNames returns the commits of some page records, in order.
func (s *Step) commitNames(t *actor.Task, in map[blobschema.RecordRef]bool) ([]string, error) {
	before := map[partition.ID]uint64{} // the commit before the first of each partition
	for o := range in {
		if first, ok := before[o.Partition]; !ok || uint64(o.Seq) <= first {
			before[o.Partition] = uint64(o.Seq) - 1
		}
	}
	var names []string
	for _, p := range slices.Sorted(maps.Keys(before)) {
		if int(p) >= len(s.job.Inputs) {
			return nil, fmt.Errorf("graph: %w: page of partition %d", wire.ErrDamaged, p)
		}
		all, err := s.commits(t, s.job.Inputs[p], before[p])
		if err != nil {
			return nil, err
		}
		for _, name := range all {
			_, seq, _, err := naming.ParseCommit(name)
			if err != nil {
				return nil, err
			}
			if in[blobschema.RecordRef{Partition: p, Seq: uint32(seq)}] {
				names = append(names, name)
			}
		}
	}
	if len(names) < len(in) {
		return nil, fmt.Errorf("graph: %w: pages of %d commits, of which %d exist", wire.ErrDamaged, len(in), len(names))
	}
	return names, nil
}

// finish makes the tables of the job from the results of all partitions, and marks the job as done. If several steps do
// so, they make the same tables.
func (s *Step) finish(t *actor.Task) error {
	if err := s.prepare(t); err != nil {
		return err
	}
	// Read the residuals of all rounds, and sum up the sizes of the graphs.
	round := s.own().Round(s.job.Number)
	data, err := s.part(t, int(s.cfg.Partition), round, len(s.heads))
	if err != nil {
		return err
	}
	past, err := ranks.DecodeValues(data, 2)
	if err == nil && len(past[0]) != len(past[1]) {
		err = wire.ErrDamaged
	}
	if err != nil {
		return fmt.Errorf("residuals of rank job %d: %w", s.job.Number, err)
	}
	_, sizes, err := s.sums(round)
	if err != nil {
		return err
	}
	// Take the best hosts and pages of all partitions.
	hosts, pages := ranking{most: schedule.MaxHostRanks, scale: float64(sizes.Hosts)}, ranking{most: bestOfJob, scale: float64(sizes.Pages)}
	visited := ranking{most: bestOfJob, scale: hosts.scale}
	for q := range s.heads {
		h, err := read(t, s.heads[q].Next.Hosts, ranks.DecodeHosts)
		if err != nil {
			return err
		}
		hosts.add(h.Names, h.Ranks)
		visited.addCrawled(h)
		pages.add(h.URLs, h.Best)
	}
	// Store the tables, then mark the job as done. A crash in between leaves tables that the next try stores again, the same.
	var names [3]string
	for i, r := range []*ranking{&hosts, &pages, &visited} {
		text := r.text()
		names[i] = naming.Ranks(s.cfg.Crawl.ID, text)
		if err := t.Put(names[i], text); err != nil {
			return err
		}
	}
	now := t.Now().Wall.UTC()
	err = actor.Update(t, naming.RankKey(s.cfg.Crawl.ID), func(j *ranks.Job) bool {
		if j.Number != s.job.Number || !j.Done.IsZero() {
			return false
		}
		j.Done, j.Rounds, j.Totals, j.HostRanks, j.PageRanks, j.CrawledHosts = now, len(past[0]), sizes, names[0], names[1], names[2]
		j.Residuals = nil
		for i := max(0, len(past[0])-ranks.MaxRankResiduals); i < len(past[0]); i++ {
			j.Residuals = append(j.Residuals, ranks.Residual{Pages: past[0][i], Hosts: past[1][i]})
		}
		return true
	})
	if err != nil {
		return err
	}
	// Wake the others, which delete the objects of the rounds.
	others := slices.DeleteFunc(partition.All(len(s.heads)), func(p partition.ID) bool { return p == s.cfg.Partition })
	return send(t, s.cfg.Crawl.ID, others)
}

// ranking makes a text table of the names with the highest ranks.
type ranking struct {
	most  int
	scale float64 // makes the mean of ranks 1
	all   []ranked
}

type ranked struct {
	name string
	rank float64
}

func (r *ranking) add(names []string, ranks []float64) {
	for i, name := range names {
		r.all = append(r.all, ranked{name, ranks[i]})
	}
	if len(r.all) > 4*r.most {
		r.cut()
	}
}

// addCrawled adds the hosts that were crawled.
func (r *ranking) addCrawled(h *ranks.Hosts) {
	var names []string
	var values []float64
	for i, name := range h.Names {
		if h.HasCrawled(i) {
			names, values = append(names, name), append(values, h.Ranks[i])
		}
	}
	r.add(names, values)
}

func (r *ranking) cut() {
	slices.SortFunc(r.all, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.rank, a.rank), strings.Compare(a.name, b.name)) })
	r.all = slices.Clone(r.all[:min(len(r.all), r.most)])
}

func (r *ranking) text() []byte {
	r.cut()
	var out []byte
	for _, e := range r.all {
		next := ranks.AppendLine(out, e.name, e.rank*r.scale)
		if len(next) > schedule.MaxHostRankBytes {
			break
		}
		out = next
	}
	return out
}

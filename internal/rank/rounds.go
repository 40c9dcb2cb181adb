package rank

import (
	"fmt"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// commitsAtOnce bounds the commits in memory: they are read whole.
const commitsAtOnce = 2

// gather reads the commits that the last job did not have, and sorts their pages by owner. It also passes on pages
// that the last job kept here and whose slots have moved.
func (s *Step) gather(t *actor.Task) (*outcome, error) {
	// Pass on the pages of the last job whose slots have moved.
	owners := make([]builder, len(s.heads))
	kept, since, err := s.readKept(t, s.last())
	if err != nil {
		return nil, err
	}
	for p := range allNodes(kept) {
		if o := s.owner(p.host().Slot); o != s.cfg.Partition {
			owners[o].copy(p, p)
		}
	}
	// Add the pages of the commits since then.
	if in := s.job.Inputs[s.cfg.Partition]; in.Seq > since {
		names, err := s.commits(t, in, since)
		if err != nil {
			return nil, err
		}
		err = eachCommit(t, names, func(name string, data []byte) error { return s.addCommit(name, data, owners) })
		if err != nil {
			return nil, err
		}
	}
	// Encode them for their owners.
	did := &outcome{parts: make([][]byte, len(owners))}
	_, err = t.Do(actor.Work{Do: func() (any, error) {
		for p := range owners {
			if len(owners[p].pieces) > 0 {
				if did.parts[p], err = ranks.EncodeGraph(owners[p].pieces); err != nil {
					return nil, err
				}
			}
		}
		return nil, nil
	}})
	s.warm.kept = kept
	return did, err
}

// last returns the partition's results of the last finished job, if this job may use them.
func (s *Step) last() ranks.Result {
	if s.job.Previous == nil || s.job.Fresh {
		return ranks.Result{}
	}
	r, _ := s.own().Result(s.job.Previous.Number)
	return r
}

// readKept reads the graph that the last job kept, and returns the last commit in it.
func (s *Step) readKept(t *actor.Task, last ranks.Result) (kept []*ranks.Graph, since uint64, err error) {
	if last.Graph == "" {
		return nil, last.Seq, nil
	}
	kept, err = s.readGraph(t, last.Graph)
	return kept, last.Seq, err
}

func (s *Step) readGraph(t *actor.Task, name string) ([]*ranks.Graph, error) {
	return read(t, name, ranks.DecodeGraph)
}

// read reads and decodes a whole object.
func read[T any](t *actor.Task, name string, decode func([]byte) (T, error)) (v T, err error) {
	data, err := t.Object(name, 0, -1)
	if err != nil {
		return v, err
	}
	got, err := t.Do(actor.Work{Do: func() (any, error) { return decode(data) }})
	if err != nil {
		return v, fmt.Errorf("%s: %w", name, err)
	}
	return got.(T), nil
}

// commits returns the names of a partition's commits after one of them, oldest first.
func (s *Step) commits(t *actor.Task, in ranks.Input, since uint64) ([]string, error) {
	man, err := blobschema.ReadManifest(t.Object, in.Commit(s.cfg.Crawl.ID))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range blobschema.CommitsAfter(man, since) {
		names = append(names, name)
	}
	return names, nil
}

// eachCommit reads some commits and calls f for each, in their order.
func eachCommit(t *actor.Task, names []string, f func(name string, data []byte) error) error {
	for some := range slices.Chunk(names, commitsAtOnce) {
		gets := make([]actor.GetObject, len(some))
		for i, name := range some {
			gets[i] = actor.GetObject{Name: name, Length: -1}
		}
		data, err := getAll(t, len(gets), gets)
		if err != nil {
			return err
		}
		_, err = t.Do(actor.Work{Do: func() (any, error) {
			for i, name := range some {
				if err := f(name, data[i]); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
			}
			return nil, nil
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// addCommit adds the pages of a commit, with their links.
func (s *Step) addCommit(name string, data []byte, owners []builder) error {
	c, err := blobschema.OpenCommit(data)
	if err != nil {
		return err
	}
	pages, err := c.Pages()
	if err != nil {
		return err
	}
	links, err := c.Links()
	if err != nil {
		return err
	}
	p, seq, _, err := naming.ParseCommit(name)
	if err != nil {
		return err
	}
	// Find the links of each page by its fingerprint. A page may be in a commit twice; then its links are in the same order.
	of := make(map[uint64][]int, len(links))
	for i := range links {
		of[links[i].Source] = append(of[links[i].Source], i)
	}
	// Add every page whose answer affects its links.
	for i := range pages {
		page := &pages[i]
		kind, counts := kindOf(page)
		if page.Robots || !counts {
			continue
		}
		u, err := weburl.Parse(page.URL)
		if err != nil {
			return fmt.Errorf("%w: page of URL %.100q", wire.ErrDamaged, page.URL)
		}
		fp := s.hash.Fingerprint(page.URL)
		var own *blobschema.PageLinks
		if list := of[fp]; page.Links > 0 && len(list) > 0 {
			own, of[fp] = &links[list[0]], list[1:]
		}
		s.add(owners, string(u.Host()), fp, ranks.Page{
			Generation: page.Generation, Kind: kind, Record: blobschema.RecordRef{Partition: p, Seq: uint32(seq)},
		}, own)
	}
	return nil
}

// kindOf returns the effect of a page record on the page's links; counts is false if it has none.
func kindOf(p *blobschema.Page) (kind ranks.Kind, counts bool) {
	switch p.Outcome {
	case blobschema.OutcomeOK, blobschema.OutcomeRedirect:
		return ranks.Linked, true
	case blobschema.OutcomeUnchanged:
		return ranks.Same, true
	case blobschema.OutcomeClientError, blobschema.OutcomeRobots:
		return ranks.Gone, true
	}
	return 0, false
}

func (s *Step) add(owners []builder, host string, fp uint64, p ranks.Page, links *blobschema.PageLinks) {
	home := ranks.Host{Name: host, Slot: s.slot(host)}
	b := &owners[s.owner(home.Slot)]
	b.begin(fp, home, p)
	if links != nil && p.Kind == ranks.Linked {
		for i := range links.Targets {
			l := &links.Targets[i]
			switch {
			case l.NoFollow || l.Fingerprint == fp || l.Kind == 1+uint8(actor.LinkRequisite):
			case l.Followed:
				b.link(l.Fingerprint, ranks.Host{Name: l.Host, Slot: s.slot(l.Host)}, tidy(l.Anchor))
			case l.Host != host:
				b.out(ranks.Host{Name: l.Host, Slot: s.slot(l.Host)})
			}
		}
	}
	b.end()
}

// join takes the pages that the partition owns and merges the answers of each. It keeps the result as the graph for
// the next job, and sends each partition the list of its pages and hosts that are linked to.
func (s *Step) join(t *actor.Task) (*outcome, error) {
	parts, err := s.parts(t, ranks.Gather)
	if err != nil {
		return nil, err
	}
	// The graph that the last job kept is in memory, unless another process has done the round before.
	kept := s.warm.kept
	if s.warm.round != ranks.Gather {
		if kept, _, err = s.readKept(t, s.last()); err != nil {
			return nil, err
		}
	}
	// Join the pages, then find the targets of their links and encode them for their owners.
	did := &outcome{parts: make([][]byte, len(s.heads))}
	var graph []byte
	_, err = t.Do(actor.Work{Do: func() (any, error) {
		all := slices.Clone(kept)
		for q, part := range parts {
			if part == nil {
				continue
			}
			pieces, err := ranks.DecodeGraph(part)
			if err != nil {
				return nil, fmt.Errorf("what partition %d has gathered: %w", q, err)
			}
			all = append(all, pieces...)
		}
		s.warm.graph = join(all, func(slot partition.Slot) bool { return s.owner(slot) == s.cfg.Partition })
		s.warm.out = newTargets(s.warm.graph, s.owner, len(s.heads))
		for q, anchors := range s.warm.out.anchors(s.warm.graph, len(s.heads)) {
			to := s.warm.out.of(q)
			if to.Anchors = anchors; len(to.Hosts) == 0 {
				continue
			}
			if did.parts[q], err = ranks.EncodeTargets(to); err != nil {
				return nil, err
			}
		}
		graph, err = ranks.EncodeGraph(s.warm.graph)
		return nil, err
	}})
	if err != nil {
		return nil, err
	}
	name, err := s.put(t, "graph", graph)
	s.warm.kept = nil
	did.next = func(r *ranks.Result) { r.Graph = name }
	return did, err
}

// put stores an object of the job's results.
func (s *Step) put(t *actor.Task, what string, data []byte) (name string, err error) {
	name = naming.RankObject(s.cfg.Crawl.ID, s.cfg.Partition, s.job.Number, what, data)
	return name, t.Put(name, data)
}

// number numbers all nodes, joins the texts of links, and finds the previous ranks of the nodes.
func (s *Step) number(t *actor.Task) (*outcome, error) {
	// Read the targets of links to this partition, and the graph, unless it is in memory.
	parts, err := s.parts(t, ranks.Join)
	if err != nil {
		return nil, err
	}
	if s.warm.graph == nil {
		if s.warm.graph, err = s.readGraph(t, s.own().Next.Graph); err != nil {
			return nil, err
		}
		if !inOrder(s.warm.graph) {
			return nil, fmt.Errorf("%s: %w: pages are out of order", s.own().Next.Graph, wire.ErrDamaged)
		}
	}
	// Read the previous ranks, then make the layout, the texts of links and the first state.
	before, err := s.readRanks(t)
	if err != nil {
		return nil, err
	}
	did := &outcome{}
	var layout, anchors []byte
	_, err = t.Do(actor.Work{Do: func() (any, error) {
		in := make([]*ranks.Targets, len(parts))
		for q, part := range parts {
			if part != nil {
				if in[q], err = ranks.DecodeTargets(part); err != nil {
					return nil, fmt.Errorf("what partition %d links to: %w", q, err)
				}
			}
		}
		if s.warm.out == nil {
			s.warm.out = newTargets(s.warm.graph, s.owner, len(s.heads))
		}
		l := newLayout(s.warm.graph, s.warm.out, in)
		s.warm.layout, s.warm.out = l, nil
		texts := joinAnchors(l, in)
		sizes := totals(l)
		sizes.Anchors = int64(len(texts))
		did.totals = &sizes
		s.levels(l, before)
		did.sums = s.firstSums()
		if anchors, err = ranks.EncodeAnchors(texts); err != nil {
			return nil, err
		}
		layout = ranks.EncodeLayout(l)
		did.state = s.warm.levels.encode()
		return nil, nil
	}})
	if err != nil {
		return nil, err
	}
	// Store the results that the head will name.
	textsName, err := s.put(t, "anchors", anchors)
	if err != nil {
		return nil, err
	}
	layoutName, err := s.put(t, "layout", layout)
	if err != nil {
		return nil, err
	}
	did.next = func(r *ranks.Result) { r.Anchors, r.Layout = textsName, layoutName }
	return did, nil
}

// previousRanks holds the ranks of pages and hosts by the last job.
type previousRanks struct {
	tables []*ranks.Table
	hosts  *ranks.Hosts
}

func (s *Step) readRanks(t *actor.Task) (f previousRanks, err error) {
	last := s.last()
	if last.Job == 0 {
		return f, nil
	}
	for _, name := range []string{last.Table, last.Rest} {
		table, err := read(t, name, ranks.DecodeTable)
		if err != nil {
			return f, err
		}
		f.tables = append(f.tables, table)
	}
	f.hosts, err = read(t, last.Hosts, ranks.DecodeHosts)
	return f, err
}

// of returns the previous ranks of a layout's nodes; 0 for new ones.
func (f previousRanks) of(l *ranks.Layout) (pages, hosts []float64) {
	pages, hosts = make([]float64, len(l.Nodes)), make([]float64, len(l.HostNames))
	for i, fp := range l.Nodes {
		for _, t := range f.tables {
			if r, ok := t.Rank(fp); ok {
				pages[i] = r
			}
		}
	}
	if f.hosts != nil {
		for i, name := range f.hosts.Names {
			if h, ok := slices.BinarySearch(l.HostNames, name); ok {
				hosts[h] = f.hosts.Ranks[i]
			}
		}
	}
	return pages, hosts
}

// levels makes the two levels of a layout, with their previous ranks and their personalisation.
func (s *Step) levels(l *ranks.Layout, previous previousRanks) {
	s.warm.levels = newLevels(l)
	s.warm.levels[0].x, s.warm.levels[1].x = previous.of(l)
	if len(s.job.Params.Personal) == 0 {
		return
	}
	// A weight of a URL counts for its page and its host. A weight of a host is divided among the host's pages.
	pages, hosts := make([]float64, len(l.Nodes)), make([]float64, len(l.HostNames))
	for _, w := range s.job.Params.Personal {
		name := w.Host
		if u, err := weburl.Parse(w.URL); err == nil && w.URL != "" {
			name = string(u.Host())
		}
		h, ok := slices.BinarySearch(l.HostNames, name)
		if !ok {
			continue
		}
		hosts[h] += w.Weight
		of := l.Nodes[l.First[h]:l.First[h+1]]
		if w.URL != "" {
			if i, ok := slices.BinarySearch(of, s.hash.Fingerprint(w.URL)); ok {
				pages[int(l.First[h])+i] += w.Weight
			}
			continue
		}
		for i := range of {
			pages[int(l.First[h])+i] += w.Weight / float64(len(of))
		}
	}
	s.warm.levels[0].weight, s.warm.levels[1].weight = pages, hosts
}

// firstSums returns the sums by which all partitions scale the first ranks.
func (s *Step) firstSums() (sums ranks.Sums) {
	for k, l := range s.warm.levels {
		all, known, fresh := sums.Weight.Level(k), sums.Known.Level(k), sums.New.Level(k)
		for i, x := range l.x {
			weight := 1.0
			if l.weight != nil {
				weight = l.weight[i]
			}
			*all += weight
			if x == 0 {
				*fresh += weight
			}
			*known += x
		}
	}
	return sums
}

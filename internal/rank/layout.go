package rank

import (
	"cmp"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema/ranks"
)

// newLayout numbers the nodes of a partition: its pages, and the targets of links from all partitions. Both are in
// order of host and fingerprint.
func newLayout(pieces []*ranks.Graph, out *targets, in []*ranks.Targets) *ranks.Layout {
	l := &ranks.Layout{}
	// Number the hosts.
	for p := range allNodes(pieces) {
		l.HostNames = append(l.HostNames, p.host().Name)
	}
	l.HostNames = slices.Compact(l.HostNames)
	for _, t := range in {
		if t != nil {
			l.HostNames = append(l.HostNames, t.Hosts...)
		}
	}
	slices.Sort(l.HostNames)
	l.HostNames = slices.Clip(slices.Compact(l.HostNames))
	number := make(map[string]uint32, len(l.HostNames))
	for i, name := range l.HostNames {
		number[name] = uint32(i)
	}
	l.Hosts.InFirst = []uint32{0}
	// Collect the pages, then the targets that each partition sends, in its order.
	var nodes []ranks.Node
	for p := range allNodes(pieces) {
		nodes = append(nodes, ranks.Node{Fingerprint: p.page().Fingerprint, Host: number[p.host().Name]})
	}
	pages := len(nodes)
	l.Pages.InFirst = []uint32{0}
	for _, t := range in {
		if t != nil {
			at := 0
			for i, name := range t.Hosts {
				h := number[name]
				l.Hosts.In = append(l.Hosts.In, h)
				for range t.Counts[i] {
					nodes = append(nodes, ranks.Node{Fingerprint: t.Fingerprints[at], Host: h})
					at++
				}
			}
		}
		l.Hosts.InFirst = append(l.Hosts.InFirst, uint32(len(l.Hosts.In)))
		l.Pages.InFirst = append(l.Pages.InFirst, uint32(len(nodes)-pages))
	}
	// Number the nodes.
	sorted := slices.Clone(nodes)
	slices.SortFunc(sorted, compareNodes)
	sorted = slices.Compact(sorted)
	place := func(n ranks.Node) uint32 {
		i, _ := slices.BinarySearchFunc(sorted, n, compareNodes)
		return uint32(i)
	}
	l.Pages.In = make([]uint32, 0, len(nodes)-pages)
	for _, n := range nodes[pages:] {
		l.Pages.In = append(l.Pages.In, place(n))
	}
	l.Nodes = make([]uint64, len(sorted))
	for i, n := range sorted {
		l.Nodes[i] = n.Fingerprint
	}
	l.First = firsts(sorted, len(l.HostNames), func(n ranks.Node) int { return int(n.Host) })
	l.Crawled = make([]byte, (len(sorted)+7)/8)
	for _, n := range nodes[:pages] {
		i := place(n)
		l.Crawled[i/8] |= 1 << (i % 8)
	}
	outLinks(l, pieces, out)
	return l
}

// crawled reports whether a node was answered.
func crawled(l *ranks.Layout, i int) bool { return l.Crawled[i/8]&(1<<(i%8)) != 0 }

// outLinks fills in the targets of the nodes of a layout. The pages of the graph are in the order of the nodes.
func outLinks(l *ranks.Layout, pieces []*ranks.Graph, out *targets) {
	l.Pages.Targets, l.Hosts.Targets = out.first, out.hostFirst
	l.Pages.OutFirst, l.Hosts.OutFirst = make([]uint32, 1, len(l.Nodes)+1), make([]uint32, 1, len(l.HostNames)+1)
	// A host ends where a page of another host begins. Its links are those of all its pages, each once.
	host := 0
	var to []uint32 // hosts that the pages of a host link to
	endHost := func() {
		slices.Sort(to)
		to = slices.Compact(to)
		l.Hosts.Out = append(l.Hosts.Out, to...)
		l.Hosts.OutFirst = append(l.Hosts.OutFirst, uint32(len(l.Hosts.Out)))
		to, host = to[:0], host+1
	}
	for p := range allNodes(pieces) {
		// Find the page's node. Nodes before it that are not pages give nothing, nor do hosts without pages.
		for l.HostNames[host] != p.host().Name {
			endHost()
		}
		node, _ := slices.BinarySearch(l.Nodes[l.First[host]:l.First[host+1]], p.page().Fingerprint)
		node += int(l.First[host])
		for len(l.Pages.OutFirst) <= node {
			l.Pages.OutFirst = append(l.Pages.OutFirst, uint32(len(l.Pages.Out)))
		}
		// Collect the targets of the page, and the hosts that its host links to.
		begin := len(l.Pages.Out)
		hosts := len(to)
		add := func(h uint32) {
			t := out.ofHost[p.piece][h]
			if h != p.page().Host && (len(to) == hosts || to[len(to)-1] != t) {
				to = append(to, t)
			}
		}
		for _, k := range p.links() {
			l.Pages.Out = append(l.Pages.Out, out.ofNode[p.piece][k.Node])
			add(p.g.Nodes[k.Node].Host)
		}
		for _, h := range p.outs() {
			add(h)
		}
		// Count each target once. Compact the hosts now and then, because a host may have many pages.
		links := l.Pages.Out[begin:]
		slices.Sort(links)
		l.Pages.Out = l.Pages.Out[:begin+len(slices.Compact(links))]
		if len(to) > 1<<16 {
			slices.Sort(to)
			to = slices.Compact(to)
		}
		l.Pages.OutFirst = append(l.Pages.OutFirst, uint32(len(l.Pages.Out)))
	}
	// The hosts and nodes after the last page give nothing.
	for host < len(l.HostNames) {
		endHost()
	}
	for len(l.Pages.OutFirst) <= len(l.Nodes) {
		l.Pages.OutFirst = append(l.Pages.OutFirst, uint32(len(l.Pages.Out)))
	}
}

// totals returns the sizes of the partition's share of the graphs.
func totals(l *ranks.Layout) (t ranks.Totals) {
	t.Pages, t.Hosts = int64(len(l.Nodes)), int64(len(l.HostNames))
	t.Links, t.HostLinks = int64(len(l.Pages.Out)), int64(len(l.Hosts.Out))
	for i := range l.Nodes {
		if crawled(l, i) {
			t.Crawled++
		}
		if l.Pages.OutFirst[i] == l.Pages.OutFirst[i+1] {
			t.Dangling++
		}
	}
	for i := range l.HostNames {
		if l.Hosts.OutFirst[i] == l.Hosts.OutFirst[i+1] {
			t.DanglingHosts++
		}
	}
	return t
}

// joinAnchors joins the texts that partitions sent, for pages that were answered.
func joinAnchors(l *ranks.Layout, in []*ranks.Targets) []ranks.AnchorTarget {
	var all []ranks.AnchorTarget
	for _, t := range in {
		if t == nil {
			continue
		}
		for _, a := range t.Anchors {
			if h, ok := slices.BinarySearch(l.HostNames, a.Host); ok {
				first := int(l.First[h])
				if i, ok := slices.BinarySearch(l.Nodes[first:l.First[h+1]], a.Fingerprint); ok && crawled(l, first+i) {
					all = append(all, a)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b ranks.AnchorTarget) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), strings.Compare(a.Host, b.Host), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	var out []ranks.AnchorTarget
	for len(all) > 0 {
		a := all[0]
		n := 1
		for n < len(all) && all[n].Fingerprint == a.Fingerprint && all[n].Host == a.Host {
			n++
		}
		if n > 1 {
			a.Texts = addTexts(all[:n])
		}
		out, all = append(out, a), all[n:]
	}
	return out
}

// addTexts adds up the texts of one target. The hosts and pages of different senders differ.
func addTexts(parts []ranks.AnchorTarget) []ranks.AnchorText {
	var all []ranks.AnchorText
	for _, p := range parts {
		all = append(all, p.Texts...)
	}
	slices.SortStableFunc(all, func(a, b ranks.AnchorText) int { return strings.Compare(a.Text, b.Text) })
	sums := all[:0]
	for _, t := range all {
		if n := len(sums); n > 0 && sums[n-1].Text == t.Text {
			sums[n-1].Pages += t.Pages
			sums[n-1].Hosts += t.Hosts
		} else {
			sums = append(sums, t)
		}
	}
	return bestTexts(sums)
}

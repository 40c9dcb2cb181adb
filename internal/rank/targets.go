package rank

import (
	"cmp"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/partition"
)

// targets are the pages and hosts that the pages of a graph link to, numbered in order of owner, host and
// fingerprint.
type targets struct {
	hosts     []ranks.Host
	hostFirst []uint32     // per partition
	nodes     []ranks.Node // Host is a number in hosts
	first     []uint32     // per partition
	ofHost    [][]uint32   // by piece and host there
	ofNode    [][]uint32   // by piece and node there
}

// none marks a host of a piece that nothing links to.
const none = 1<<32 - 1

func newTargets(pieces []*ranks.Graph, owner func(partition.Slot) partition.ID, partitions int) *targets {
	t := &targets{ofHost: make([][]uint32, len(pieces)), ofNode: make([][]uint32, len(pieces))}
	// Collect the hosts that are linked to.
	for i, g := range pieces {
		t.ofHost[i] = slices.Repeat([]uint32{none}, len(g.Hosts))
		mark := func(h uint32) {
			if t.ofHost[i][h] == none {
				t.ofHost[i][h] = 0
				t.hosts = append(t.hosts, g.Hosts[h])
			}
		}
		for _, n := range g.Nodes {
			mark(n.Host)
		}
		for _, h := range g.Outs {
			mark(h)
		}
	}
	// Number the hosts, then the pages.
	order := func(a, b ranks.Host) int {
		return cmp.Or(cmp.Compare(owner(a.Slot), owner(b.Slot)), strings.Compare(a.Name, b.Name))
	}
	slices.SortFunc(t.hosts, order)
	t.hosts = slices.CompactFunc(t.hosts, func(a, b ranks.Host) bool { return a.Name == b.Name })
	for i, g := range pieces {
		for h, n := range t.ofHost[i] {
			if n != none {
				at, _ := slices.BinarySearchFunc(t.hosts, g.Hosts[h], order)
				t.ofHost[i][h] = uint32(at)
			}
		}
		for _, n := range g.Nodes {
			t.nodes = append(t.nodes, ranks.Node{Fingerprint: n.Fingerprint, Host: t.ofHost[i][n.Host]})
		}
	}
	slices.SortFunc(t.nodes, compareNodes)
	t.nodes = slices.Compact(t.nodes)
	for i, g := range pieces {
		t.ofNode[i] = make([]uint32, len(g.Nodes))
		for k, n := range g.Nodes {
			at, _ := slices.BinarySearchFunc(t.nodes, ranks.Node{Fingerprint: n.Fingerprint, Host: t.ofHost[i][n.Host]}, compareNodes)
			t.ofNode[i][k] = uint32(at)
		}
	}
	t.hostFirst = firsts(t.hosts, partitions, func(h ranks.Host) int { return int(owner(h.Slot)) })
	t.first = firsts(t.nodes, partitions, func(n ranks.Node) int { return int(owner(t.hosts[n.Host].Slot)) })
	return t
}

// firsts returns the index at which each of n groups begins in a list ordered by group, and the length of the list.
func firsts[T any](list []T, n int, group func(T) int) []uint32 {
	out := make([]uint32, n+1)
	for _, v := range list {
		out[group(v)+1]++
	}
	for i := range n {
		out[i+1] += out[i]
	}
	return out
}

func compareNodes(a, b ranks.Node) int {
	return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Fingerprint, b.Fingerprint))
}

// of returns the targets of a partition.
func (t *targets) of(p int) *ranks.Targets {
	out := &ranks.Targets{}
	first := t.hostFirst[p]
	for _, h := range t.hosts[first:t.hostFirst[p+1]] {
		out.Hosts = append(out.Hosts, h.Name)
	}
	out.Counts = make([]uint32, len(out.Hosts))
	for _, n := range t.nodes[t.first[p]:t.first[p+1]] {
		out.Counts[n.Host-first]++
		out.Fingerprints = append(out.Fingerprints, n.Fingerprint)
	}
	return out
}

// text is a link with a text from a host to a target.
type text struct{ target, text, host uint32 }

// anchors returns the texts of the links to each target, by the partitions that own the targets.
func (t *targets) anchors(pieces []*ranks.Graph, partitions int) [][]ranks.AnchorTarget {
	// Number the texts of all pieces.
	names := map[string]uint32{}
	var list []string
	ofText := make([][]uint32, len(pieces))
	for i, g := range pieces {
		for _, s := range g.Texts {
			n, ok := names[s]
			if !ok {
				n = uint32(len(list))
				list, names[s] = append(list, s), n
			}
			ofText[i] = append(ofText[i], n)
		}
	}
	// Collect all links with a text. Hosts are numbered in order of pages, which are in order of host.
	var all []text
	host, hosts := "", uint32(0)
	for p := range allNodes(pieces) {
		if name := p.host().Name; name != host {
			host, hosts = name, hosts+1
		}
		for _, l := range p.links() {
			if p.g.Texts[l.Text] != "" {
				all = append(all, text{t.ofNode[p.piece][l.Node], ofText[p.piece][l.Text], hosts})
			}
		}
	}
	// Count the pages and hosts of each text, target by target.
	slices.SortFunc(all, func(a, b text) int {
		return cmp.Or(cmp.Compare(a.target, b.target), cmp.Compare(a.text, b.text), cmp.Compare(a.host, b.host))
	})
	out := make([][]ranks.AnchorTarget, partitions)
	p := 0
	for len(all) > 0 {
		n := t.nodes[all[0].target]
		for all[0].target >= t.first[p+1] {
			p++
		}
		a := ranks.AnchorTarget{Fingerprint: n.Fingerprint, Slot: t.hosts[n.Host].Slot, Host: t.hosts[n.Host].Name}
		for target := all[0].target; len(all) > 0 && all[0].target == target; {
			x := ranks.AnchorText{Text: list[all[0].text]}
			for id, host := all[0].text, uint32(none); len(all) > 0 && all[0].target == target && all[0].text == id; all = all[1:] {
				x.Pages++
				if all[0].host != host {
					x.Hosts, host = x.Hosts+1, all[0].host
				}
			}
			a.Texts = append(a.Texts, x)
		}
		a.Texts = bestTexts(a.Texts)
		out[p] = append(out[p], a)
	}
	return out
}

// bestTexts returns the texts used by the most hosts, within the bounds of a target.
func bestTexts(texts []ranks.AnchorText) []ranks.AnchorText {
	slices.SortFunc(texts, func(a, b ranks.AnchorText) int {
		return cmp.Or(cmp.Compare(b.Hosts, a.Hosts), cmp.Compare(b.Pages, a.Pages), strings.Compare(a.Text, b.Text))
	})
	size := 0
	for i := range texts {
		if size += len(texts[i].Text); i >= ranks.MaxAnchorTexts || size > ranks.MaxAnchorBytes {
			return slices.Clone(texts[:i])
		}
	}
	return texts
}

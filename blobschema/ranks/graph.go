package ranks

import (
	"fmt"
	"math"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// Graph is a piece of the link graph: pages and their links. A job collects many pieces, and keeps one for the next job.
type Graph struct {
	Hosts []Host
	Nodes []Node   // targets of followed links, in the order of their first link
	Texts []string // of links; the first is empty
	Pages []Page
	Links []Link   // grouped by page; each pair of node and text once per page
	Outs  []uint32 // hosts out of scope that pages link to, grouped by page; each host once per page
}

// Host is an authority with the slot of its politeness key.
type Host struct {
	Name string
	Slot partition.Slot
}

// Node is a URL.
type Node struct {
	Fingerprint uint64
	Host        uint32 // in Hosts
}

// Link is a link to one of Nodes, with one of Texts.
type Link struct{ Node, Text uint32 }

// Page is a page after one answer.
type Page struct {
	Node
	Generation uint32
	Kind       Kind
	Record     blobschema.RecordRef // of the page record
	Links      uint32               // number of its Graph.Links
	Outs       uint32               // number of its Graph.Outs
}

// Kind is what an answer means for the links of its page.
type Kind uint8

// Kinds of answers.
const (
	Linked Kind = iota // a page or a redirect, with its current links
	Same               // unchanged: the page keeps its links
	Gone               // the page is gone
)

const (
	sectionGraph   = "graph" // and a number
	sectionTargets = "targets"
	maxPieces      = 60
)

// EncodeGraph encodes pieces of a graph. It does not check the bounds that DecodeGraph demands: no text is longer than
// [MaxAnchorText], and links name nodes in the order of their numbers.
func EncodeGraph(pieces []*Graph) (_ []byte, err error) {
	defer name(&err, "encode rank graph")
	if len(pieces) > maxPieces {
		return nil, fmt.Errorf("%d pieces, more than %d: the crawl needs more partitions", len(pieces), maxPieces)
	}
	var sections []wire.Section
	for i, g := range pieces {
		s, err := packSection(fmt.Sprint(sectionGraph, i), g.code)
		if err != nil {
			return nil, err
		}
		sections = append(sections, s)
	}
	return wire.Append(nil, sections), nil
}

// code codes a piece, each part as a column:
//
//	hosts: number, lengths, names; slots
//	number of nodes; for each: fingerprint, host
//	number of texts; lengths; the texts
//	number of pages; for each: fingerprint, host, generation, kind, origin, number of links and outs
//	for each link: node (0: the next one without a link so far; otherwise its index + 1), text
//	for each out: host
func (g *Graph) code(x *coder) {
	texts(x, &g.Hosts, wire.MaxHost, func(h *Host) *string { return &h.Name })
	column(x, g.Hosts, partition.MaxSlots-1, func(h *Host) *partition.Slot { return &h.Slot })
	fingerprints(x, &g.Nodes, func(n *Node) *uint64 { return &n.Fingerprint })
	places(x, g.Nodes, len(g.Hosts), func(n *Node) *uint32 { return &n.Host })
	texts(x, &g.Texts, MaxAnchorText, self)
	fingerprints(x, &g.Pages, func(p *Page) *uint64 { return &p.Fingerprint })
	places(x, g.Pages, len(g.Hosts), func(p *Page) *uint32 { return &p.Host })
	column(x, g.Pages, math.MaxUint32, func(p *Page) *uint32 { return &p.Generation })
	column(x, g.Pages, uint64(Gone), func(p *Page) *Kind { return &p.Kind })
	column(x, g.Pages, partition.MaxPartitions-1, func(p *Page) *partition.ID { return &p.Record.Partition })
	column(x, g.Pages, math.MaxUint32, func(p *Page) *uint32 { return &p.Record.Seq })
	column(x, g.Pages, math.MaxUint32, func(p *Page) *uint32 { return &p.Links })
	column(x, g.Pages, math.MaxUint32, func(p *Page) *uint32 { return &p.Outs })
	if x.in != nil {
		g.makeLinks(x.in)
	}
	g.codeNodes(x)
	places(x, g.Links, len(g.Texts), func(l *Link) *uint32 { return &l.Text })
	if x.in == nil {
		x.out = wire.AppendValues(x.out, len(g.Outs), func(i int) uint64 { return uint64(g.Outs[i]) })
		return
	}
	x.in.Values(len(g.Outs), uint64(max(len(g.Hosts), 1)-1), func(i int, v uint64) { g.Outs[i] = uint32(v) })
}

// makeLinks makes room for the links and outs of all pages, each of which takes a byte or more.
func (g *Graph) makeLinks(c *wire.Cursor) {
	links, outs := uint64(0), uint64(0)
	for i := range g.Pages {
		links, outs = links+uint64(g.Pages[i].Links), outs+uint64(g.Pages[i].Outs)
	}
	if left := uint64(len(c.Rest)); links > left || outs > left || outs > 0 && len(g.Hosts) == 0 {
		c.Fail("%d links and %d outs in %d bytes", links, outs, left)
		return
	}
	g.Links, g.Outs = make([]Link, links), make([]uint32, outs)
}

// codeNodes codes the nodes of the links. Most links name the next node, which takes no bits after compression.
func (g *Graph) codeNodes(x *coder) {
	next := uint32(0)
	if x.in == nil {
		x.out = wire.AppendValues(x.out, len(g.Links), func(i int) uint64 {
			if g.Links[i].Node == next {
				next++
				return 0
			}
			return uint64(g.Links[i].Node) + 1
		})
		return
	}
	x.in.Values(len(g.Links), uint64(len(g.Nodes)), func(i int, ref uint64) {
		if ref == 0 {
			next++
			ref = uint64(next)
		}
		if ref > uint64(next) || int(next) > len(g.Nodes) {
			x.in.Fail("link %d to a node not seen yet", i)
			return
		}
		g.Links[i].Node = uint32(ref - 1)
	})
}

// DecodeGraph decodes the pieces of a graph. The errors are [wire.ErrDamaged] and [wire.ErrVersion].
func DecodeGraph(data []byte) (pieces []*Graph, err error) {
	defer name(&err, "decode rank graph")
	p, err := wire.Open(data)
	if err != nil {
		return nil, err
	}
	for section := range numbered(p, sectionGraph) {
		g := &Graph{}
		if err := readSection(p, section, g.code); err != nil {
			return nil, err
		}
		pieces = append(pieces, g)
	}
	if len(pieces) != len(p.Names()) {
		return nil, wire.Damaged("%d sections, %d of a graph", len(p.Names()), len(pieces))
	}
	return pieces, nil
}

// Targets are the hosts of one partition that the pages of another link to, with the fingerprints of their pages.
// Contributions to ranks are sent in this order.
type Targets struct {
	Hosts        []string // ascending
	Counts       []uint32 // of Fingerprints, by host
	Fingerprints []uint64 // ascending within a host
	Anchors      []AnchorTarget
}

// EncodeTargets encodes targets with their anchor texts.
func EncodeTargets(t *Targets) (_ []byte, err error) {
	defer name(&err, "encode rank targets")
	sections, err := anchorSections(t.Anchors)
	if err != nil {
		return nil, err
	}
	s, err := packSection(sectionTargets, t.code)
	if err != nil {
		return nil, err
	}
	return wire.Append(nil, append(sections, s)), nil
}

func (t *Targets) code(x *coder) {
	texts(x, &t.Hosts, wire.MaxHost, self)
	if x.in != nil {
		t.Counts = make([]uint32, len(t.Hosts))
	}
	column(x, t.Counts, math.MaxUint32, self)
	fingerprints(x, &t.Fingerprints, self)
}

// DecodeTargets decodes the result of EncodeTargets. The errors are [wire.ErrDamaged] and [wire.ErrVersion].
func DecodeTargets(data []byte) (_ *Targets, err error) {
	defer name(&err, "decode rank targets")
	p, err := wire.Open(data)
	if err != nil {
		return nil, err
	}
	t := &Targets{}
	if err := readSection(p, sectionTargets, t.code); err != nil {
		return nil, err
	}
	total := 0
	for _, n := range t.Counts {
		total += int(n)
	}
	if total != len(t.Fingerprints) {
		return nil, wire.Damaged("%d fingerprints where %d were promised", len(t.Fingerprints), total)
	}
	at := 0
	for i, n := range t.Counts {
		if i > 0 && t.Hosts[i] <= t.Hosts[i-1] {
			return nil, wire.Damaged("hosts out of order")
		}
		for j := range int(n) {
			if j > 0 && t.Fingerprints[at+j] <= t.Fingerprints[at+j-1] {
				return nil, wire.Damaged("fingerprints out of order")
			}
		}
		at += int(n)
	}
	if t.Anchors, err = readAnchors(p); err != nil {
		return nil, err
	}
	return t, nil
}

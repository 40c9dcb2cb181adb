package ranks

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// Graph is a piece of the link graph: pages and their links. A job gathers lists of pieces, and keeps one for the
// next job.
type Graph struct {
	Hosts []Host
	Nodes []Node   // targets of followed links, in the order of their first link
	Texts []string // of links; the first is empty
	Pages []Page
	Links []Link   // of all pages, page after page; a page has each pair of node and text once
	Outs  []uint32 // hosts out of scope that pages link to, page after page; a page has each host once
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
	Origin     blobschema.Origin // of the page record
	Links      uint32            // number of its Graph.Links
	Outs       uint32            // number of its Graph.Outs
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

// EncodeGraph encodes pieces of a graph.
func EncodeGraph(pieces []*Graph) (_ []byte, err error) {
	defer name(&err, "encode rank graph")
	if len(pieces) > maxPieces {
		return nil, fmt.Errorf("%d pieces, more than %d: the crawl needs more partitions", len(pieces), maxPieces)
	}
	var sections []wire.Section
	for i, g := range pieces {
		raw, err := g.encode()
		if err != nil {
			return nil, err
		}
		if len(raw) > wire.MaxSection {
			return nil, fmt.Errorf("a piece of %d bytes", len(raw))
		}
		sections = append(sections, wire.Section{Name: fmt.Sprint(sectionGraph, i), Data: wire.AppendPacked(nil, raw)})
	}
	return wire.Append(nil, sections), nil
}

// encode encodes a piece, each part as a column:
//
//	hosts: number, lengths, names; slots
//	number of nodes; for each: fingerprint, host
//	number of texts; lengths; the texts
//	number of pages; for each: fingerprint, host, generation, kind, origin, number of links and outs
//	for each link: node (0: the next one without a link so far; otherwise its index + 1), text
//	for each out: host
func (g *Graph) encode() ([]byte, error) {
	for _, h := range g.Hosts {
		if len(h.Name) > wire.MaxHost || h.Slot > partition.MaxSlots-1 {
			return nil, fmt.Errorf("host of %d bytes, slot %d", len(h.Name), h.Slot)
		}
	}
	raw := wire.AppendTexts(nil, len(g.Hosts), func(i int) string { return g.Hosts[i].Name })
	raw = wire.AppendColumn(raw, len(g.Hosts), func(i int) uint64 { return uint64(g.Hosts[i].Slot) })
	raw = binary.AppendUvarint(raw, uint64(len(g.Nodes)))
	for _, n := range g.Nodes {
		raw = binary.LittleEndian.AppendUint64(raw, n.Fingerprint)
	}
	raw = wire.AppendColumn(raw, len(g.Nodes), func(i int) uint64 { return uint64(g.Nodes[i].Host) })
	for _, t := range g.Texts {
		if len(t) > MaxAnchorText {
			return nil, fmt.Errorf("text of %d bytes", len(t))
		}
	}
	raw = wire.AppendTexts(raw, len(g.Texts), func(i int) string { return g.Texts[i] })
	raw = binary.AppendUvarint(raw, uint64(len(g.Pages)))
	for i := range g.Pages {
		raw = binary.LittleEndian.AppendUint64(raw, g.Pages[i].Fingerprint)
	}
	for _, field := range []func(p *Page) uint64{
		func(p *Page) uint64 { return uint64(p.Host) },
		func(p *Page) uint64 { return uint64(p.Generation) },
		func(p *Page) uint64 { return uint64(p.Kind) },
		func(p *Page) uint64 { return uint64(p.Origin.Partition) },
		func(p *Page) uint64 { return uint64(p.Origin.Seq) },
		func(p *Page) uint64 { return uint64(p.Links) },
		func(p *Page) uint64 { return uint64(p.Outs) },
	} {
		raw = wire.AppendColumn(raw, len(g.Pages), func(i int) uint64 { return field(&g.Pages[i]) })
	}
	next := uint32(0)
	for _, l := range g.Links {
		switch {
		case l.Node > next:
			return nil, fmt.Errorf("link to node %d before %d", l.Node, next)
		case l.Node == next:
			raw = append(raw, 0)
			next++
		default:
			raw = binary.AppendUvarint(raw, uint64(l.Node)+1)
		}
	}
	raw = wire.AppendColumn(raw, len(g.Links), func(i int) uint64 { return uint64(g.Links[i].Text) })
	return wire.AppendValues(raw, len(g.Outs), func(i int) uint64 { return uint64(g.Outs[i]) }), nil
}

// DecodeGraph decodes the pieces of a graph. The errors are [wire.ErrDamaged] and [wire.ErrVersion].
func DecodeGraph(data []byte) (pieces []*Graph, err error) {
	defer name(&err, "decode rank graph")
	p, err := wire.Open(data)
	if err != nil {
		return nil, err
	}
	for c, err := range numbered(p, sectionGraph) {
		if err != nil {
			return nil, err
		}
		g, err := decodeGraph(c)
		if err != nil {
			return nil, err
		}
		pieces = append(pieces, g)
	}
	if len(pieces) != len(p.Names()) {
		return nil, wire.Damaged("%d sections, %d of a graph", len(p.Names()), len(pieces))
	}
	return pieces, nil
}

// decodeGraph decodes a piece.
func decodeGraph(c *wire.Cursor) (*Graph, error) {
	size := uint64(len(c.Rest))
	g := &Graph{}
	names := c.Texts(wire.MaxHost)
	g.Hosts = make([]Host, len(names))
	for i, name := range names {
		g.Hosts[i].Name = name
	}
	c.Column(len(names), partition.MaxSlots-1, func(i int, v uint64) { g.Hosts[i].Slot = partition.Slot(v) })
	host := func(v uint64) uint32 {
		if v >= uint64(len(names)) {
			c.Fail("host %d of %d", v, len(names))
		}
		return uint32(v)
	}
	g.Nodes = make([]Node, c.Count(8))
	for i := range g.Nodes {
		g.Nodes[i].Fingerprint = c.Uint64()
	}
	c.Column(len(g.Nodes), math.MaxUint32, func(i int, v uint64) { g.Nodes[i].Host = host(v) })
	g.Texts = c.Texts(MaxAnchorText)
	g.Pages = make([]Page, c.Count(8))
	for i := range g.Pages {
		g.Pages[i].Fingerprint = c.Uint64()
	}
	links, outs := uint64(0), uint64(0)
	for _, f := range []struct {
		limit uint64
		set   func(p *Page, v uint64)
	}{
		{math.MaxUint32, func(p *Page, v uint64) { p.Host = host(v) }},
		{math.MaxUint32, func(p *Page, v uint64) { p.Generation = uint32(v) }},
		{uint64(Gone), func(p *Page, v uint64) { p.Kind = Kind(v) }},
		{partition.MaxPartitions - 1, func(p *Page, v uint64) { p.Origin.Partition = partition.ID(v) }},
		{math.MaxUint32, func(p *Page, v uint64) { p.Origin.Seq = uint32(v) }},
		{size, func(p *Page, v uint64) { p.Links = uint32(v); links += v }},
		{size, func(p *Page, v uint64) { p.Outs = uint32(v); outs += v }},
	} {
		c.Column(len(g.Pages), f.limit, func(i int, v uint64) { f.set(&g.Pages[i], v) })
	}
	if left := uint64(len(c.Rest)); links > left || outs > left { // at least a byte each
		c.Fail("%d links and %d outs in %d bytes", links, outs, left)
	}
	if c.Err != nil {
		return nil, c.Err
	}
	g.Links, g.Outs = make([]Link, links), make([]uint32, outs)
	next := uint64(0)
	c.Values(len(g.Links), uint64(len(g.Nodes)), func(i int, ref uint64) {
		if ref == 0 {
			next++
			ref = next
		}
		if ref > next || next > uint64(len(g.Nodes)) {
			c.Fail("link %d to a node not seen yet", i)
			return
		}
		g.Links[i].Node = uint32(ref - 1)
	})
	c.Column(len(g.Links), math.MaxUint32, func(i int, v uint64) {
		if v >= uint64(len(g.Texts)) {
			c.Fail("text %d of %d", v, len(g.Texts))
			return
		}
		g.Links[i].Text = uint32(v)
	})
	c.Values(len(g.Outs), math.MaxUint32, func(i int, v uint64) { g.Outs[i] = host(v) })
	if err := c.End(); err != nil {
		return nil, err
	}
	return g, nil
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
	raw := wire.AppendTexts(nil, len(t.Hosts), func(i int) string { return t.Hosts[i] })
	raw = wire.AppendColumn(raw, len(t.Hosts), func(i int) uint64 { return uint64(t.Counts[i]) })
	raw = binary.AppendUvarint(raw, uint64(len(t.Fingerprints)))
	for _, fp := range t.Fingerprints {
		raw = binary.LittleEndian.AppendUint64(raw, fp)
	}
	if len(raw) > wire.MaxSection {
		return nil, fmt.Errorf("%d bytes are above the bound of %d", len(raw), wire.MaxSection)
	}
	anchors, err := anchorSections(t.Anchors)
	if err != nil {
		return nil, err
	}
	return wire.Append(nil, append(anchors, wire.Section{Name: sectionTargets, Data: wire.AppendPacked(nil, raw)})), nil
}

// DecodeTargets decodes what EncodeTargets wrote. The errors are [wire.ErrDamaged] and [wire.ErrVersion].
func DecodeTargets(data []byte) (_ *Targets, err error) {
	defer name(&err, "decode rank targets")
	p, err := wire.Open(data)
	if err != nil {
		return nil, err
	}
	c, err := openSection(p, sectionTargets)
	if err != nil {
		return nil, err
	}
	t := &Targets{Hosts: c.Texts(wire.MaxHost)}
	t.Counts = make([]uint32, len(t.Hosts))
	total := uint64(0)
	c.Column(len(t.Hosts), math.MaxUint32, func(i int, v uint64) { t.Counts[i] = uint32(v); total += v })
	t.Fingerprints = make([]uint64, c.Count(8))
	if total != uint64(len(t.Fingerprints)) {
		c.Fail("%d fingerprints where %d were promised", len(t.Fingerprints), total)
	}
	for i := range t.Fingerprints {
		t.Fingerprints[i] = c.Uint64()
	}
	if err := c.End(); err != nil {
		return nil, err
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

package blobschema

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/orbweaver/orbweaver/partition"
)

// RankGraph is a piece of the link graph: pages and what they link to. What a job gathers, and what it
// keeps for the next one, are lists of pieces.
type RankGraph struct {
	Hosts []RankHost
	Nodes []RankNode // linked to by followed links, in the order in which Links name them first
	Texts []string   // of links; the first is empty
	Pages []RankPage
	Links []RankLink // of the pages, one after another: each pair of node and text once a page
	Outs  []uint32   // hosts that pages link to out of scope, one after another: each once a page
}

// RankHost is an authority and the slot of its unit.
type RankHost struct {
	Name string
	Slot partition.Slot
}

// RankNode is a URL.
type RankNode struct {
	Fingerprint uint64
	Host        uint32 // in Hosts
}

// RankLink is a link to one of Nodes, with one of Texts.
type RankLink struct{ Node, Text uint32 }

// RankPage is a page as one answer left it.
type RankPage struct {
	RankNode
	Generation uint32
	Kind       RankKind
	Origin     Origin // of the page record
	Links      uint32 // how many of RankGraph.Links are its
	Outs       uint32 // and of Outs
}

// RankKind says what an answer means for a page's links.
type RankKind uint8

// The kinds.
const (
	RankLinked RankKind = iota // a page or a redirect: its links are those it has now
	RankSame                   // unchanged: its links are those it had
	RankGone                   // it is no page any more
)

const (
	sectionGraph   = "graph" // and a number
	sectionTargets = "targets"
	maxPieces      = 60
)

// EncodeRankGraph encodes pieces of a graph.
func EncodeRankGraph(pieces []*RankGraph) ([]byte, error) {
	if len(pieces) > maxPieces {
		return nil, fmt.Errorf("encode rank graph: %d pieces, more than %d: the crawl needs more partitions", len(pieces), maxPieces)
	}
	var sections []Section
	for i, g := range pieces {
		raw, err := g.append(nil)
		if err == nil && len(raw) > maxSection {
			err = fmt.Errorf("a piece of %d bytes", len(raw))
		}
		if err != nil {
			return nil, fmt.Errorf("encode rank graph: %w", err)
		}
		sections = append(sections, Section{fmt.Sprint(sectionGraph, i), appendPacked(nil, raw)})
	}
	return AppendPack(nil, sections), nil
}

// append writes a piece:
//
//	hosts: number, lengths, names; slots
//	number of nodes; of each: fingerprint, host
//	number of texts; lengths; the texts
//	number of pages; of each: fingerprint, host, generation, kind, origin, number of links and outs
//	of each link: node (0: the next that no link had yet; else its index + 1), text
//	of each out: host
//
// Each is a column.
func (g *RankGraph) append(raw []byte) ([]byte, error) {
	names := hostTable{names: make([]string, len(g.Hosts))}
	for i, h := range g.Hosts {
		if len(h.Name) > maxHost || h.Slot > maxSlot {
			return nil, fmt.Errorf("host of %d bytes, slot %d", len(h.Name), h.Slot)
		}
		names.names[i] = h.Name
	}
	raw = names.append(raw)
	raw = appendColumn(raw, len(g.Hosts), func(i int) uint64 { return uint64(g.Hosts[i].Slot) })
	raw = binary.AppendUvarint(raw, uint64(len(g.Nodes)))
	for _, n := range g.Nodes {
		raw = binary.LittleEndian.AppendUint64(raw, n.Fingerprint)
	}
	raw = appendColumn(raw, len(g.Nodes), func(i int) uint64 { return uint64(g.Nodes[i].Host) })
	raw = binary.AppendUvarint(raw, uint64(len(g.Texts)))
	raw = appendValues(raw, len(g.Texts), func(i int) uint64 { return uint64(len(g.Texts[i])) })
	for _, t := range g.Texts {
		if len(t) > MaxAnchorText {
			return nil, fmt.Errorf("text of %d bytes", len(t))
		}
		raw = append(raw, t...)
	}
	raw = binary.AppendUvarint(raw, uint64(len(g.Pages)))
	for i := range g.Pages {
		raw = binary.LittleEndian.AppendUint64(raw, g.Pages[i].Fingerprint)
	}
	for _, field := range []func(p *RankPage) uint64{
		func(p *RankPage) uint64 { return uint64(p.Host) },
		func(p *RankPage) uint64 { return uint64(p.Generation) },
		func(p *RankPage) uint64 { return uint64(p.Kind) },
		func(p *RankPage) uint64 { return uint64(p.Origin.Partition) },
		func(p *RankPage) uint64 { return uint64(p.Origin.Seq) },
		func(p *RankPage) uint64 { return uint64(p.Links) },
		func(p *RankPage) uint64 { return uint64(p.Outs) },
	} {
		raw = appendColumn(raw, len(g.Pages), func(i int) uint64 { return field(&g.Pages[i]) })
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
	raw = appendColumn(raw, len(g.Links), func(i int) uint64 { return uint64(g.Links[i].Text) })
	return appendValues(raw, len(g.Outs), func(i int) uint64 { return uint64(g.Outs[i]) }), nil
}

// DecodeRankGraph decodes the pieces of a graph. The errors are [ErrDamaged] and [ErrVersion].
func DecodeRankGraph(data []byte) ([]*RankGraph, error) {
	p, err := OpenPack(data)
	if err != nil {
		return nil, fmt.Errorf("decode rank graph: %w", err)
	}
	var pieces []*RankGraph
	for i := 0; p.find(fmt.Sprint(sectionGraph, i)) != nil; i++ {
		b, err := p.Section(fmt.Sprint(sectionGraph, i))
		if err == nil {
			b, err = unpack(b, maxSection)
		}
		var g *RankGraph
		if err == nil {
			g, err = decodeRankPiece(b)
		}
		if err != nil {
			return nil, fmt.Errorf("decode rank graph: %w", err)
		}
		pieces = append(pieces, g)
	}
	if len(pieces) != len(p.sections) {
		return nil, fmt.Errorf("decode rank graph: %w", damaged("%d sections, %d of a graph", len(p.sections), len(pieces)))
	}
	return pieces, nil
}

func decodeRankPiece(raw []byte) (*RankGraph, error) {
	c := cursor{b: raw}
	g := &RankGraph{}
	names := c.hostNames()
	g.Hosts = make([]RankHost, len(names))
	for i, name := range names {
		g.Hosts[i].Name = name
	}
	c.column(len(names), maxSlot, func(i int, v uint64) { g.Hosts[i].Slot = partition.Slot(v) })
	host := func(v uint64) uint32 {
		if v >= uint64(len(names)) {
			c.fail("host %d of %d", v, len(names))
		}
		return uint32(v)
	}
	g.Nodes = make([]RankNode, c.count(8))
	for i := range g.Nodes {
		g.Nodes[i].Fingerprint = c.uint64()
	}
	c.column(len(g.Nodes), math.MaxUint32, func(i int, v uint64) { g.Nodes[i].Host = host(v) })
	g.Texts = c.texts()
	g.Pages = make([]RankPage, c.count(8))
	for i := range g.Pages {
		g.Pages[i].Fingerprint = c.uint64()
	}
	links, outs := uint64(0), uint64(0)
	for _, f := range []struct {
		limit uint64
		set   func(p *RankPage, v uint64)
	}{
		{math.MaxUint32, func(p *RankPage, v uint64) { p.Host = host(v) }},
		{math.MaxUint32, func(p *RankPage, v uint64) { p.Generation = uint32(v) }},
		{uint64(RankGone), func(p *RankPage, v uint64) { p.Kind = RankKind(v) }},
		{partition.MaxPartitions - 1, func(p *RankPage, v uint64) { p.Origin.Partition = partition.ID(v) }},
		{math.MaxUint32, func(p *RankPage, v uint64) { p.Origin.Seq = uint32(v) }},
		{uint64(len(raw)), func(p *RankPage, v uint64) { p.Links = uint32(v); links += v }},
		{uint64(len(raw)), func(p *RankPage, v uint64) { p.Outs = uint32(v); outs += v }},
	} {
		c.column(len(g.Pages), f.limit, func(i int, v uint64) { f.set(&g.Pages[i], v) })
	}
	if left := uint64(len(c.b)); links > left || outs > left { // at least a byte each
		c.fail("%d links and %d outs in %d bytes", links, outs, left)
	}
	if c.err != nil {
		return nil, c.err
	}
	g.Links, g.Outs = make([]RankLink, links), make([]uint32, outs)
	next := uint64(0)
	c.values(len(g.Links), uint64(len(g.Nodes)), func(i int, ref uint64) {
		if ref == 0 {
			next++
			ref = next
		}
		if ref > next || next > uint64(len(g.Nodes)) {
			c.fail("link %d to a node not seen yet", i)
			return
		}
		g.Links[i].Node = uint32(ref - 1)
	})
	c.column(len(g.Links), math.MaxUint32, func(i int, v uint64) {
		if v >= uint64(len(g.Texts)) {
			c.fail("text %d of %d", v, len(g.Texts))
			return
		}
		g.Links[i].Text = uint32(v)
	})
	c.values(len(g.Outs), math.MaxUint32, func(i int, v uint64) { g.Outs[i] = host(v) })
	if err := c.end(); err != nil {
		return nil, err
	}
	return g, nil
}

// texts reads a number of texts, their lengths, and them, as parts of one string.
func (c *cursor) texts() []string {
	out := make([]string, c.count(1))
	lengths, total := make([]int, len(out)), 0
	c.values(len(out), MaxAnchorText, func(i int, v uint64) { lengths[i] = int(v); total += int(v) })
	text := string(c.take(uint64(total)))
	if c.err != nil {
		return nil
	}
	for i, n := range lengths {
		out[i], text = text[:n], text[n:]
	}
	return out
}

// RankTargets is what the pages of one partition link to at another: hosts, and of each the
// fingerprints of its pages. Contributions to ranks are sent in this order.
type RankTargets struct {
	Hosts        []string // ascending
	Counts       []uint32 // of Fingerprints, by host
	Fingerprints []uint64 // ascending within a host
	Anchors      []AnchorTarget
}

// EncodeRankTargets encodes the targets, and the anchor texts beside them.
func EncodeRankTargets(t *RankTargets) ([]byte, error) {
	names := hostTable{names: t.Hosts}
	raw := names.append(nil)
	raw = appendColumn(raw, len(t.Hosts), func(i int) uint64 { return uint64(t.Counts[i]) })
	raw = binary.AppendUvarint(raw, uint64(len(t.Fingerprints)))
	for _, fp := range t.Fingerprints {
		raw = binary.LittleEndian.AppendUint64(raw, fp)
	}
	if len(raw) > maxSection {
		return nil, fmt.Errorf("encode rank targets: %d bytes are above the bound of %d", len(raw), maxSection)
	}
	anchors, err := anchorSections(t.Anchors)
	if err != nil {
		return nil, fmt.Errorf("encode rank targets: %w", err)
	}
	return AppendPack(nil, append(anchors, Section{sectionTargets, appendPacked(nil, raw)})), nil
}

// DecodeRankTargets decodes what EncodeRankTargets wrote; without the texts, if they are not
// wanted. The errors are [ErrDamaged] and [ErrVersion].
func DecodeRankTargets(data []byte, anchors bool) (*RankTargets, error) {
	t, err := decodeRankTargets(data)
	if err == nil && anchors {
		t.Anchors, err = DecodeAnchors(data)
	}
	if err != nil {
		return nil, fmt.Errorf("decode rank targets: %w", err)
	}
	return t, nil
}

func decodeRankTargets(data []byte) (*RankTargets, error) {
	raw, err := openSection(data, sectionTargets)
	if err != nil {
		return nil, err
	}
	c := cursor{b: raw}
	t := &RankTargets{Hosts: c.hostNames()}
	t.Counts = make([]uint32, len(t.Hosts))
	total := uint64(0)
	c.column(len(t.Hosts), math.MaxUint32, func(i int, v uint64) { t.Counts[i] = uint32(v); total += v })
	t.Fingerprints = make([]uint64, c.count(8))
	if total != uint64(len(t.Fingerprints)) {
		c.fail("%d fingerprints where %d were promised", len(t.Fingerprints), total)
	}
	for i := range t.Fingerprints {
		t.Fingerprints[i] = c.uint64()
	}
	if err := c.end(); err != nil {
		return nil, err
	}
	at := 0
	for i, n := range t.Counts {
		if i > 0 && t.Hosts[i] <= t.Hosts[i-1] {
			return nil, damaged("hosts out of order")
		}
		for j := range int(n) {
			if j > 0 && t.Fingerprints[at+j] <= t.Fingerprints[at+j-1] {
				return nil, damaged("fingerprints out of order")
			}
		}
		at += int(n)
	}
	return t, nil
}

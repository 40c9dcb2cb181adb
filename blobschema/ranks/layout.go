package ranks

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// Layout is a partition's share of the two graphs of pages and hosts, in the form that is multiplied. It stays the
// same while a job iterates.
//
// Nodes are numbered in order of host and fingerprint. A node gives to targets, which are numbered too: first
// those of partition 0, in the order of the [Targets] that it was sent. What other partitions give comes in the
// order of their Targets.
type Layout struct {
	HostNames []string // ascending
	First     []uint32 // by host: its first node; last: number of nodes
	Nodes     []uint64 // fingerprints
	Crawled   []byte   // a bit per node: it was answered with 2xx or a redirect
	Pages     Level
	Hosts     Level
}

// Level is the graph of one level: of pages, or of hosts.
type Level struct {
	OutFirst []uint32 // by node: the first of its Out; last: number of Out
	Out      []uint32 // targets
	Targets  []uint32 // by partition: its first target; last: number of targets
	InFirst  []uint32 // by partition: the first of its In; last: number of In
	In       []uint32 // nodes
}

// EncodeLayout encodes a layout. Lists have the same form as in memory.
func EncodeLayout(l *Layout) []byte {
	names := wire.AppendTexts(nil, len(l.HostNames), func(i int) string { return l.HostNames[i] })
	sections := []wire.Section{
		{Name: "names", Data: wire.AppendPacked(nil, names)},
		{Name: "first", Data: appendNumbers(l.First)},
		{Name: "nodes", Data: make([]byte, 0, 8*len(l.Nodes))},
		{Name: "crawled", Data: l.Crawled},
	}
	for _, fp := range l.Nodes {
		sections[2].Data = binary.LittleEndian.AppendUint64(sections[2].Data, fp)
	}
	for _, v := range []struct {
		name string
		of   *Level
	}{{"pages", &l.Pages}, {"hosts", &l.Hosts}} {
		for i, list := range v.of.lists() {
			sections = append(sections, wire.Section{Name: fmt.Sprint(v.name, i), Data: appendNumbers(*list)})
		}
	}
	return wire.Append(nil, sections)
}

func (l *Level) lists() []*[]uint32 {
	return []*[]uint32{&l.OutFirst, &l.Out, &l.Targets, &l.InFirst, &l.In}
}

func appendNumbers(list []uint32) []byte {
	dst := make([]byte, 0, 4*len(list))
	for _, v := range list {
		dst = binary.LittleEndian.AppendUint32(dst, v)
	}
	return dst
}

// DecodeLayout decodes a layout for a number of partitions. The errors are [wire.ErrDamaged] and
// [wire.ErrVersion].
func DecodeLayout(data []byte, partitions int) (_ *Layout, err error) {
	defer name(&err, "decode rank layout")
	p, err := wire.Open(data)
	if err != nil {
		return nil, err
	}
	l := &Layout{}
	c, err := openSection(p, "names")
	if err != nil {
		return nil, err
	}
	l.HostNames = c.Texts(wire.MaxHost)
	if err := c.End(); err != nil {
		return nil, err
	}
	if l.First, err = readNumbers(p, "first"); err != nil {
		return nil, err
	}
	nodes, err := p.Section("nodes")
	if err != nil {
		return nil, err
	}
	l.Nodes = make([]uint64, len(nodes)/8)
	for i := range l.Nodes {
		l.Nodes[i] = binary.LittleEndian.Uint64(nodes[8*i:])
	}
	if l.Crawled, err = p.Section("crawled"); err != nil {
		return nil, err
	}
	if len(nodes)%8 != 0 || len(l.Crawled) != (len(l.Nodes)+7)/8 || !ascends(l.First, len(l.HostNames), len(l.Nodes)) {
		return nil, wire.Damaged("nodes of hosts")
	}
	for _, v := range []struct {
		name string
		of   *Level
		n    int
	}{{"pages", &l.Pages, len(l.Nodes)}, {"hosts", &l.Hosts, len(l.HostNames)}} {
		for i, list := range v.of.lists() {
			if *list, err = readNumbers(p, fmt.Sprint(v.name, i)); err != nil {
				return nil, err
			}
		}
		if !v.of.fits(v.n, partitions) {
			return nil, wire.Damaged("level of %s", v.name)
		}
	}
	return l, nil
}

// fits reports whether all of a level of n nodes is within its bounds.
func (l *Level) fits(n, partitions int) bool {
	if len(l.Targets) == 0 || !ascends(l.OutFirst, n, len(l.Out)) || !ascends(l.InFirst, partitions, len(l.In)) ||
		!ascends(l.Targets, partitions, int(l.Targets[len(l.Targets)-1])) {
		return false
	}
	targets := l.Targets[partitions]
	for _, t := range l.Out {
		if t >= targets {
			return false
		}
	}
	for _, i := range l.In {
		if i >= uint32(n) {
			return false
		}
	}
	return true
}

// ascends reports whether a list has the beginning of each of n pieces of another list, and its end.
func ascends(first []uint32, n, end int) bool {
	if len(first) != n+1 || first[0] != 0 || first[n] != uint32(end) {
		return false
	}
	for i := range n {
		if first[i] > first[i+1] {
			return false
		}
	}
	return true
}

func readNumbers(p *wire.Pack, section string) ([]uint32, error) {
	b, err := p.Section(section)
	if err != nil {
		return nil, err
	}
	if len(b)%4 != 0 {
		return nil, wire.Damaged("section %s of %d bytes", section, len(b))
	}
	list := make([]uint32, len(b)/4)
	for i := range list {
		list[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return list, nil
}

// EncodeValues encodes lists of numbers that are finite and not negative: 8 bytes each.
func EncodeValues(lists ...[]float64) []byte {
	var sections []wire.Section
	for i, list := range lists {
		b := make([]byte, 0, 8*len(list))
		for _, v := range list {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		sections = append(sections, wire.Section{Name: fmt.Sprint(i), Data: b})
	}
	return wire.Append(nil, sections)
}

// DecodeValues decodes that many lists. The errors are [wire.ErrDamaged] and [wire.ErrVersion].
func DecodeValues(data []byte, lists int) (_ [][]float64, err error) {
	defer name(&err, "decode rank values")
	p, err := wire.Open(data)
	if err != nil {
		return nil, err
	}
	out := make([][]float64, lists)
	for i := range out {
		b, err := p.Section(fmt.Sprint(i))
		if err != nil {
			return nil, err
		}
		if len(b)%8 != 0 {
			return nil, wire.Damaged("%d bytes", len(b))
		}
		out[i] = make([]float64, len(b)/8)
		for j := range out[i] {
			v := math.Float64frombits(binary.LittleEndian.Uint64(b[8*j:]))
			if !(v >= 0 && v <= math.MaxFloat64) {
				return nil, wire.Damaged("value %g", v)
			}
			out[i][j] = v
		}
	}
	return out, nil
}

// Hosts are the ranks of a partition's hosts, and its best pages.
type Hosts struct {
	Names []string // ascending
	Ranks []float64
	// Crawled has a bit for each host: a page of it was answered. It is nil if that is unknown, as in objects of
	// earlier versions.
	Crawled []byte
	URLs    []string // best first
	Best    []float64
}

// HasCrawled reports whether a page of host i is known to have been answered.
func (h *Hosts) HasCrawled(i int) bool { return h.Crawled == nil || h.Crawled[i/8]&(1<<(i%8)) != 0 }

// EncodeHosts encodes the ranks of hosts.
func EncodeHosts(h *Hosts) (_ []byte, err error) {
	defer name(&err, "encode ranks of hosts")
	if len(h.Names) != len(h.Ranks) || len(h.URLs) != len(h.Best) || h.Crawled != nil && len(h.Crawled) != (len(h.Names)+7)/8 {
		return nil, fmt.Errorf("%d names, %d ranks", len(h.Names), len(h.Ranks))
	}
	raw := wire.AppendTexts(nil, len(h.Names), func(i int) string { return h.Names[i] })
	raw = binary.AppendUvarint(raw, uint64(len(h.URLs)))
	for _, u := range h.URLs {
		if len(u) > wire.MaxURL {
			return nil, fmt.Errorf("URL of %d bytes", len(u))
		}
		raw = wire.AppendPrefixed(raw, u)
	}
	if len(raw) > wire.MaxSection {
		return nil, fmt.Errorf("%d bytes are above the bound of %d", len(raw), wire.MaxSection)
	}
	values := EncodeValues(h.Ranks, h.Best)
	sections := []wire.Section{{Name: "names", Data: wire.AppendPacked(nil, raw)}, {Name: "values", Data: values}}
	if h.Crawled != nil {
		sections = append(sections, wire.Section{Name: "crawled", Data: h.Crawled})
	}
	return wire.Append(nil, sections), nil
}

// DecodeHosts decodes the ranks of hosts. The errors are [wire.ErrDamaged] and [wire.ErrVersion].
func DecodeHosts(data []byte) (_ *Hosts, err error) {
	defer name(&err, "decode ranks of hosts")
	p, err := wire.Open(data)
	if err != nil {
		return nil, err
	}
	c, err := openSection(p, "names")
	if err != nil {
		return nil, err
	}
	h := &Hosts{Names: c.Texts(wire.MaxHost)}
	h.URLs = make([]string, c.Count(1))
	for i := range h.URLs {
		h.URLs[i] = string(c.Prefixed(wire.MaxURL))
	}
	if err := c.End(); err != nil {
		return nil, err
	}
	b, err := p.Section("values")
	if err != nil {
		return nil, err
	}
	values, err := DecodeValues(b, 2)
	if err != nil {
		return nil, err
	}
	if h.Ranks, h.Best = values[0], values[1]; len(h.Ranks) != len(h.Names) || len(h.Best) != len(h.URLs) {
		return nil, wire.Damaged("%d hosts, %d ranks; %d URLs, %d ranks", len(h.Names), len(h.Ranks), len(h.URLs), len(h.Best))
	}
	if p.Has("crawled") {
		if h.Crawled, err = p.Section("crawled"); err == nil && len(h.Crawled) != (len(h.Names)+7)/8 {
			err = wire.Damaged("%d hosts, %d bytes that say which were crawled", len(h.Names), len(h.Crawled))
		}
	}
	return h, err
}

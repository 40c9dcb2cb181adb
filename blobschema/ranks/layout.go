package ranks

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// Layout is a partition's share of the graphs of pages and hosts, in the form that the iterations of a job read. They do
// not change it.
// Nodes are numbered in order of host and fingerprint. The targets that receive rank are numbered too: first those of
// partition 0, in the order of the [Targets] sent to it. Rank from other partitions comes in the order of their Targets.
type Layout struct {
	HostNames []string // ascending
	First     []uint32 // by host: its first node; then the number of nodes
	Nodes     []uint64 // fingerprints
	Crawled   []byte   // a bit per node: the answer was 2xx or a redirect
	Pages     Level
	Hosts     Level
}

// Level is the graph of one level: of pages, or of hosts.
type Level struct {
	OutFirst []uint32 // by node: the first of its Out; then the number of Out
	Out      []uint32 // targets
	Targets  []uint32 // by partition: its first target; then the number of targets
	InFirst  []uint32 // by partition: the first of its In; then the number of In
	In       []uint32 // nodes
}

// EncodeLayout encodes a layout. Lists have the same form as in memory.
func EncodeLayout(l *Layout) []byte {
	var names coder
	texts(&names, &l.HostNames, wire.MaxHost, self)
	sections := []wire.Section{{Name: "names", Data: wire.AppendPacked(nil, names.out)}}
	for name, list := range l.lists {
		sections = append(sections, wire.Section{Name: name, Data: appendNumbers(nil, *list)})
	}
	sections = slices.Insert(sections, 2, wire.Section{Name: "nodes", Data: appendNumbers(nil, l.Nodes)}, wire.Section{Name: "crawled", Data: l.Crawled})
	return wire.Append(nil, sections)
}

// lists yields the lists of places, with the names of their sections.
func (l *Layout) lists(yield func(section string, list *[]uint32) bool) {
	p, h := &l.Pages, &l.Hosts
	names := [...]string{"first", "pages0", "pages1", "pages2", "pages3", "pages4", "hosts0", "hosts1", "hosts2", "hosts3", "hosts4"}
	for i, list := range [...]*[]uint32{
		&l.First, &p.OutFirst, &p.Out, &p.Targets, &p.InFirst, &p.In, &h.OutFirst, &h.Out, &h.Targets, &h.InFirst, &h.In,
	} {
		if !yield(names[i], list) {
			return
		}
	}
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
	if err := readSection(p, "names", func(x *coder) { texts(x, &l.HostNames, wire.MaxHost, self) }); err != nil {
		return nil, err
	}
	if l.Nodes, err = sectionNumbers[uint64](p, "nodes"); err != nil {
		return nil, err
	}
	if l.Crawled, err = p.Section("crawled"); err != nil {
		return nil, err
	}
	for name, list := range l.lists {
		if *list, err = sectionNumbers[uint32](p, name); err != nil {
			return nil, err
		}
	}
	if len(l.Crawled) != (len(l.Nodes)+7)/8 || !ascends(l.First, len(l.HostNames), len(l.Nodes)) ||
		!l.Pages.fits(len(l.Nodes), partitions) || !l.Hosts.fits(len(l.HostNames), partitions) {
		return nil, wire.Damaged("lists that do not fit together")
	}
	return l, nil
}

// fits reports whether all numbers of a level of n nodes are within bounds.
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

// ascends reports whether first holds the ascending starts of n pieces of a list, and its end.
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

// EncodeValues encodes lists of numbers that are finite and not negative, in 8 bytes each.
func EncodeValues(lists ...[]float64) []byte {
	var sections []wire.Section
	for i, list := range lists {
		sections = append(sections, wire.Section{Name: fmt.Sprint(i), Data: appendNumbers(nil, list)})
	}
	return wire.Append(nil, sections)
}

// DecodeValues decodes a number of lists. The errors are [wire.ErrDamaged] and [wire.ErrVersion].
func DecodeValues(data []byte, lists int) (_ [][]float64, err error) {
	defer name(&err, "decode rank values")
	p, err := wire.Open(data)
	if err != nil {
		return nil, err
	}
	out := make([][]float64, lists)
	for i := range out {
		if out[i], err = sectionNumbers[float64](p, fmt.Sprint(i)); err != nil {
			return nil, err
		}
		for _, v := range out[i] {
			if !(v >= 0 && v <= math.MaxFloat64) {
				return nil, wire.Damaged("value %g", v)
			}
		}
	}
	return out, nil
}

// Hosts are the ranks of a partition's hosts, and its best pages.
type Hosts struct {
	Names []string // ascending
	Ranks []float64
	// Crawled has a bit for each host: a page of it was answered. It is nil if unknown, as in objects of earlier
	// versions.
	Crawled []byte
	URLs    []string // best first
	Best    []float64
}

// HasCrawled reports whether a page of host i is known to have been answered.
func (h *Hosts) HasCrawled(i int) bool { return h.Crawled == nil || h.Crawled[i/8]&(1<<(i%8)) != 0 }

// EncodeHosts encodes the ranks of hosts.
func EncodeHosts(h *Hosts) (_ []byte, err error) {
	defer name(&err, "encode ranks of hosts")
	names, err := packSection("names", h.code)
	if err != nil {
		return nil, err
	}
	sections := []wire.Section{names, {Name: "values", Data: EncodeValues(h.Ranks, h.Best)}}
	if h.Crawled != nil {
		sections = append(sections, wire.Section{Name: "crawled", Data: h.Crawled})
	}
	return wire.Append(nil, sections), nil
}

// code codes the names: of hosts as texts, of pages one after another.
func (h *Hosts) code(x *coder) {
	texts(x, &h.Names, wire.MaxHost, self)
	if x.in == nil {
		x.out = binary.AppendUvarint(x.out, uint64(len(h.URLs)))
		for _, u := range h.URLs {
			x.out = wire.AppendPrefixed(x.out, u)
		}
		return
	}
	h.URLs = make([]string, x.in.Count(1))
	for i := range h.URLs {
		h.URLs[i] = string(x.in.Prefixed(wire.MaxURL))
	}
}

// DecodeHosts decodes the ranks of hosts. The errors are [wire.ErrDamaged] and [wire.ErrVersion].
func DecodeHosts(data []byte) (_ *Hosts, err error) {
	defer name(&err, "decode ranks of hosts")
	p, err := wire.Open(data)
	if err != nil {
		return nil, err
	}
	h := &Hosts{}
	if err := readSection(p, "names", h.code); err != nil {
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

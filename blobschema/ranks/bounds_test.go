package ranks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// sections returns the sections of a pack.
func sections(t *testing.T, pack []byte) (all []wire.Section) {
	t.Helper()
	p, err := wire.Open(pack)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range p.Names() {
		b, err := p.Section(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, wire.Section{Name: name, Data: b})
	}
	return all
}

// reseal replaces the bytes of one section of a pack, compressed if the old ones were.
func reseal(t *testing.T, pack []byte, section string, change func(raw []byte) []byte) []byte {
	t.Helper()
	all := sections(t, pack)
	i := slices.IndexFunc(all, func(s wire.Section) bool { return s.Name == section })
	if i < 0 {
		t.Fatalf("no section %s", section)
	}
	if raw, err := wire.Unpack(all[i].Data, wire.MaxSection); err == nil {
		all[i].Data = wire.AppendPacked(nil, change(raw))
	} else {
		all[i].Data = change(bytes.Clone(all[i].Data))
	}
	return wire.Append(nil, all)
}

// TestRankObjectsThatLie damages the content below the checksums of each kind of object. Cuts are refused, and an object
// that is accepted is accepted again after encoding.
func TestRankObjectsThatLie(t *testing.T) {
	for kind, o := range rankObjects(t) {
		refused := func(what string, b []byte) {
			if v, _, err := o.decode(b); v != nil || !errors.Is(err, wire.ErrDamaged) {
				t.Errorf("%s, %s: %v", kind, what, err)
			}
		}
		for i, s := range sections(t, o.data) {
			size := 0
			reseal(t, o.data, s.Name, func(raw []byte) []byte { size = len(raw); return raw })
			for n := range size {
				if kind != "values" || n%8 != 0 { // the object does not contain their number
					refused(s.Name+" cut", reseal(t, o.data, s.Name, func(raw []byte) []byte { return raw[:n] }))
				}
				for _, x := range []byte{0x01, 0x80} {
					b := reseal(t, o.data, s.Name, func(raw []byte) []byte { raw[n] ^= x; return raw })
					v, again, err := o.decode(b)
					if err != nil && v == nil && !isRefusal(err) {
						t.Errorf("%s, %s changed: %v", kind, s.Name, err)
					}
					if err != nil {
						continue
					}
					if w, _, err := o.decode(again); err != nil || !reflect.DeepEqual(v, w) {
						t.Errorf("%s, %s changed, is not itself again: %v", kind, s.Name, err)
					}
				}
			}
			refused(s.Name+" longer", reseal(t, o.data, s.Name, func(raw []byte) []byte { return append(raw, 0) }))
			if less := slices.Delete(sections(t, o.data), i, i+1); len(less) > 0 && s.Name != "anchors0" && s.Name != "graph1" {
				refused("without "+s.Name, wire.Append(nil, less))
			}
			other := sections(t, o.data)
			other[i].Data = []byte{0xff, 0xff, 0xff}
			refused(s.Name+" of nonsense", wire.Append(nil, other))
		}
	}
}

// smallGraph has two pages, of which the first links to two nodes and out to a host.
func smallGraph() *Graph {
	return &Graph{
		Hosts: []Host{{"a.example", partition.MaxSlots - 1}, {strings.Repeat("b", wire.MaxHost), 0}},
		Nodes: []Node{{math.MaxUint64, 1}, {0, 0}},
		Texts: []string{"", strings.Repeat("x", MaxAnchorText)},
		Pages: []Page{
			{Node: Node{5, 1}, Generation: math.MaxUint32, Record: blobschema.RecordRef{Partition: partition.MaxPartitions - 1, Seq: math.MaxUint32}, Links: 3, Outs: 2},
			{Node: Node{4, 0}, Kind: Gone},
		},
		Links: []Link{{0, 1}, {1, 0}, {0, 0}},
		Outs:  []uint32{1, 0},
	}
}

func TestGraphBounds(t *testing.T) {
	for name, change := range map[string]func(g *Graph){
		"host name":          func(g *Graph) { g.Hosts[1].Name += "b" },
		"slot":               func(g *Graph) { g.Hosts[0].Slot++ },
		"text":               func(g *Graph) { g.Texts[1] += "x" },
		"link before it":     func(g *Graph) { g.Links[0].Node = 1 },
		"host of a node":     func(g *Graph) { g.Nodes[0].Host = 2 },
		"host of a page":     func(g *Graph) { g.Pages[0].Host = 2 },
		"kind":               func(g *Graph) { g.Pages[1].Kind = Gone + 1 },
		"partition":          func(g *Graph) { g.Pages[0].Record.Partition++ },
		"more links":         func(g *Graph) { g.Pages[1].Links = 1 },
		"many more links":    func(g *Graph) { g.Pages[1].Links = math.MaxUint32 },
		"fewer links":        func(g *Graph) { g.Pages[0].Links-- },
		"more outs":          func(g *Graph) { g.Pages[1].Outs = 1 },
		"many more outs":     func(g *Graph) { g.Pages[1].Outs = 40 },
		"fewer outs":         func(g *Graph) { g.Pages[0].Outs-- },
		"link to no node":    func(g *Graph) { g.Nodes = g.Nodes[:1] },
		"text of a link":     func(g *Graph) { g.Links[2].Text = 2 },
		"text of every link": func(g *Graph) { g.Texts = nil },
		"host of an out":     func(g *Graph) { g.Outs[0] = 2 },
	} {
		g := smallGraph()
		change(g)
		b, err := EncodeGraph([]*Graph{{}, g})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeGraph(b); got != nil || !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	pieces := slices.Repeat([]*Graph{smallGraph()}, maxPieces)
	b, err := EncodeGraph(pieces)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeGraph(b); err != nil || !reflect.DeepEqual(got, pieces) {
		t.Errorf("at the bounds: %v", err)
	}
	if _, err := EncodeGraph(append(pieces, &Graph{})); err == nil {
		t.Error("too many pieces are encoded")
	}
	if got, err := DecodeGraph(wire.Append(nil, append(sections(t, b)[:1], wire.Section{Name: "other"}))); got != nil || !errors.Is(err, wire.ErrDamaged) {
		t.Errorf("a foreign section: %v", err)
	}
}

// TestLinksInOrder checks that a link names a node that an earlier link has named, or the next one.
func TestLinksInOrder(t *testing.T) {
	g := &Graph{Hosts: []Host{{"a", 0}}, Nodes: []Node{{1, 0}, {2, 0}}, Texts: []string{""}, Pages: []Page{{Links: 2}}, Links: []Link{{0, 0}, {1, 0}}}
	b, err := EncodeGraph([]*Graph{g})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		refs string
		want []Link
	}{
		{"\x00\x00", g.Links},
		{"\x00\x01", []Link{{0, 0}, {0, 0}}},
		{"\x01\x00", nil},
		{"\x00\x02", nil},
		{"\x00\x03", nil},
	} {
		got, err := DecodeGraph(reseal(t, b, "graph0", func(raw []byte) []byte {
			return append(append(raw[:len(raw)-4], c.refs...), 0, 0) // and the texts: all the first
		}))
		if c.want == nil && !errors.Is(err, wire.ErrDamaged) || c.want != nil && (err != nil || !slices.Equal(got[0].Links, c.want)) {
			t.Errorf("links %x: %v", c.refs, err)
		}
	}
}

func TestAnchorBounds(t *testing.T) {
	most := func() []AnchorTarget {
		texts := slices.Repeat([]AnchorText{{"", math.MaxUint32, math.MaxUint32}}, MaxAnchorTexts)
		texts[0].Text = strings.Repeat("x", MaxAnchorText)
		return []AnchorTarget{{Fingerprint: 1, Slot: partition.MaxSlots - 1, Host: strings.Repeat("a", wire.MaxHost), Texts: texts}}
	}
	for name, change := range map[string]func(a *AnchorTarget){
		"slot":       func(a *AnchorTarget) { a.Slot++ },
		"host":       func(a *AnchorTarget) { a.Host += "a" },
		"text":       func(a *AnchorTarget) { a.Texts[0].Text += "x" },
		"many texts": func(a *AnchorTarget) { a.Texts = append(a.Texts, AnchorText{}) },
	} {
		a := most()
		change(&a[0])
		b, err := EncodeAnchors(a)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeAnchors(b); got != nil || !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if b, err = EncodeTargets(&Targets{Anchors: a}); err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeTargets(b); got != nil || !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%s, with targets: %v", name, err)
		}
	}
	// Too many for one section.
	many := append(make([]AnchorTarget, anchorsAtOnce), most()...)
	for i := range many {
		many[i].Fingerprint = uint64(i)
	}
	b, err := EncodeAnchors(many)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeAnchors(b)
	if err != nil || len(got) != len(many) || !reflect.DeepEqual(got[anchorsAtOnce:], many[anchorsAtOnce:]) || len(sections(t, b)) != 2 {
		t.Errorf("%d of %d targets, %v", len(got), len(many), err)
	}
	// Another number of texts than targets.
	a := []AnchorTarget{{Host: "h", Texts: []AnchorText{{Text: "t"}, {Text: "u"}}}}
	if b, err = EncodeAnchors(a); err != nil {
		t.Fatal(err)
	}
	for _, n := range []byte{1, 3, MaxAnchorTexts + 1} {
		bad := reseal(t, b, "anchors0", func(raw []byte) []byte {
			raw[3+1+8+2+2+1] = n // a constant, after hosts, number, fingerprint, slot and host
			return raw
		})
		if got, err := DecodeAnchors(bad); got != nil || !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%d texts: %v", n, err)
		}
	}
}

func TestTargetBounds(t *testing.T) {
	whole := func() *Targets {
		return &Targets{
			Hosts: []string{"a", "b", strings.Repeat("c", wire.MaxHost)}, Counts: []uint32{2, 1, 2}, Fingerprints: []uint64{3, 4, 1, 1, 9},
			Anchors: []AnchorTarget{{Host: "a", Texts: []AnchorText{{Text: "t"}}}},
		}
	}
	for name, c := range map[string]struct {
		change func(t *Targets)
		want   error
	}{
		"at the bounds":               {func(*Targets) {}, nil},
		"long host":                   {func(t *Targets) { t.Hosts[2] += "c" }, wire.ErrDamaged},
		"first hosts":                 {func(t *Targets) { t.Hosts[0] = "bb" }, wire.ErrDamaged},
		"last hosts":                  {func(t *Targets) { t.Hosts[2] = "aa" }, wire.ErrDamaged},
		"a host twice":                {func(t *Targets) { t.Hosts[1] = "a" }, wire.ErrDamaged},
		"first fingerprints":          {func(t *Targets) { t.Fingerprints[0] = 5 }, wire.ErrDamaged},
		"last fingerprints":           {func(t *Targets) { t.Fingerprints[4] = 0 }, wire.ErrDamaged},
		"a fingerprint twice":         {func(t *Targets) { t.Fingerprints[4] = 1 }, wire.ErrDamaged},
		"more fingerprints":           {func(t *Targets) { t.Fingerprints = append(t.Fingerprints, 10) }, wire.ErrDamaged},
		"fewer fingerprints":          {func(t *Targets) { t.Fingerprints = t.Fingerprints[:4] }, wire.ErrDamaged},
		"many fewer than are counted": {func(t *Targets) { t.Counts[0] = math.MaxUint32 }, wire.ErrDamaged},
	} {
		want := whole()
		c.change(want)
		b, err := EncodeTargets(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeTargets(b)
		if !errors.Is(err, c.want) || c.want == nil && !reflect.DeepEqual(got, want) || c.want != nil && got != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	// Texts that are not wanted are neither read nor checked.
	b, err := EncodeTargets(whole())
	if err != nil {
		t.Fatal(err)
	}
	bad := reseal(t, b, "anchors0", func([]byte) []byte { return nil })
	if got, err := DecodeTargets(bad); got != nil || !errors.Is(err, wire.ErrDamaged) {
		t.Errorf("texts that are damaged: %v", err)
	}
}

func TestLayoutBounds(t *testing.T) {
	whole := func() *Layout {
		return &Layout{
			HostNames: []string{"a", strings.Repeat("b", wire.MaxHost)}, First: []uint32{0, 1, 3}, Nodes: []uint64{1, 5, 4}, Crawled: []byte{5},
			Pages: Level{OutFirst: []uint32{0, 2, 2, 3}, Out: []uint32{0, 2, 1}, Targets: []uint32{0, 1, 3}, InFirst: []uint32{0, 1, 2}, In: []uint32{2, 0}},
			Hosts: Level{OutFirst: []uint32{0, 1, 1}, Out: []uint32{0}, Targets: []uint32{0, 0, 1}, InFirst: []uint32{0, 0, 2}, In: []uint32{1, 0}},
		}
	}
	for name, c := range map[string]struct {
		change func(l *Layout)
		want   error
	}{
		"at the bounds":         {func(*Layout) {}, nil},
		"long host":             {func(l *Layout) { l.HostNames[1] += "b" }, wire.ErrDamaged},
		"a host more":           {func(l *Layout) { l.HostNames = append(l.HostNames, "c") }, wire.ErrDamaged},
		"a node more":           {func(l *Layout) { l.Nodes = append(l.Nodes, 7) }, wire.ErrDamaged},
		"first of the first":    {func(l *Layout) { l.First[0] = 1 }, wire.ErrDamaged},
		"first of nothing":      {func(l *Layout) { l.First = nil }, wire.ErrDamaged},
		"first goes down":       {func(l *Layout) { l.First[1] = 4 }, wire.ErrDamaged},
		"first does not end":    {func(l *Layout) { l.First[2] = 2 }, wire.ErrDamaged},
		"more bits":             {func(l *Layout) { l.Crawled = append(l.Crawled, 0) }, wire.ErrDamaged},
		"no bits":               {func(l *Layout) { l.Crawled = nil }, wire.ErrDamaged},
		"out goes down":         {func(l *Layout) { l.Pages.OutFirst[1] = 3 }, wire.ErrDamaged},
		"out of fewer nodes":    {func(l *Layout) { l.Pages.OutFirst = []uint32{0, 2, 3} }, wire.ErrDamaged},
		"fewer outs":            {func(l *Layout) { l.Pages.Out = l.Pages.Out[:2] }, wire.ErrDamaged},
		"out to no target":      {func(l *Layout) { l.Pages.Out[0] = 3 }, wire.ErrDamaged},
		"out to no host":        {func(l *Layout) { l.Hosts.Out[0] = 1 }, wire.ErrDamaged},
		"no targets":            {func(l *Layout) { l.Pages.Targets = nil }, wire.ErrDamaged},
		"targets go down":       {func(l *Layout) { l.Pages.Targets[1] = 4 }, wire.ErrDamaged},
		"targets of the first":  {func(l *Layout) { l.Pages.Targets[0] = 1 }, wire.ErrDamaged},
		"of a partition more":   {func(l *Layout) { l.Pages.Targets = append(l.Pages.Targets, 3) }, wire.ErrDamaged},
		"of a partition less":   {func(l *Layout) { l.Pages.Targets = l.Pages.Targets[:1] }, wire.ErrDamaged},
		"from a partition more": {func(l *Layout) { l.Hosts.InFirst = append(l.Hosts.InFirst, 2) }, wire.ErrDamaged},
		"in goes down":          {func(l *Layout) { l.Pages.InFirst[1] = 3 }, wire.ErrDamaged},
		"in of no node":         {func(l *Layout) { l.Pages.In[0] = 3 }, wire.ErrDamaged},
		"in of no host":         {func(l *Layout) { l.Hosts.In[1] = 2 }, wire.ErrDamaged},
		"more in":               {func(l *Layout) { l.Hosts.In = append(l.Hosts.In, 0) }, wire.ErrDamaged},
	} {
		want := whole()
		c.change(want)
		got, err := DecodeLayout(EncodeLayout(want), 2)
		if !errors.Is(err, c.want) || c.want == nil && !reflect.DeepEqual(got, want) || c.want != nil && got != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	// Bits fill whole bytes.
	for _, n := range []int{0, 8, 9, 16} {
		l := whole()
		l.HostNames, l.First, l.Nodes, l.Crawled = []string{"a"}, []uint32{0, uint32(n)}, make([]uint64, n), make([]byte, (n+7)/8)
		l.Pages = Level{OutFirst: make([]uint32, n+1), Targets: []uint32{0, 0}, InFirst: []uint32{0, 0}}
		l.Hosts = Level{OutFirst: []uint32{0, 0}, Targets: []uint32{0, 0}, InFirst: []uint32{0, 0}}
		if _, err := DecodeLayout(EncodeLayout(l), 1); err != nil {
			t.Errorf("%d nodes: %v", n, err)
		}
	}
}

func TestValueBounds(t *testing.T) {
	for _, v := range []float64{0, math.SmallestNonzeroFloat64, 1, math.MaxFloat64} {
		if got, err := DecodeValues(EncodeValues(nil, []float64{1, v}), 2); err != nil || !reflect.DeepEqual(got, [][]float64{{}, {1, v}}) {
			t.Errorf("%g: %v, %v", v, got, err)
		}
	}
	for _, v := range []float64{-1, -math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN()} {
		if got, err := DecodeValues(EncodeValues(nil, []float64{1, v}), 2); got != nil || !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%g: %v, %v", v, got, err)
		}
	}
	if got, err := DecodeValues(EncodeValues(nil), 2); got != nil || !errors.Is(err, wire.ErrDamaged) {
		t.Errorf("a list less: %v, %v", got, err)
	}
}

func TestHostRankBounds(t *testing.T) {
	whole := func() *Hosts {
		return &Hosts{Names: []string{"a", strings.Repeat("b", wire.MaxHost)}, Ranks: []float64{1, 2}, URLs: []string{strings.Repeat("u", wire.MaxURL)}, Best: []float64{3}}
	}
	b, err := EncodeHosts(whole())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeHosts(b); err != nil || !reflect.DeepEqual(got, whole()) {
		t.Errorf("at the bounds: %v", err)
	}
	for name, change := range map[string]func(h *Hosts){
		"long URL":    func(h *Hosts) { h.URLs[0] += "u" },
		"fewer ranks": func(h *Hosts) { h.Ranks = h.Ranks[:1] },
		"fewer best":  func(h *Hosts) { h.Best = nil },
		"crawled":     func(h *Hosts) { h.Crawled = []byte{1, 2} },
	} {
		h := whole()
		change(h)
		b, err := EncodeHosts(h)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeHosts(b); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, values := range map[string][]byte{
		"fewer ranks": EncodeValues([]float64{1}, []float64{3}),
		"more best":   EncodeValues([]float64{1, 2}, []float64{3, 4}),
		"below 0":     EncodeValues([]float64{1, -2}, []float64{3}),
		"one list":    EncodeValues([]float64{1, 2}),
	} {
		if got, err := DecodeHosts(reseal(t, b, "values", func([]byte) []byte { return values })); got != nil || !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h := whole()
	h.Crawled = []byte{2}
	if b, err := EncodeHosts(h); err != nil {
		t.Fatal(err)
	} else if got, err := DecodeHosts(b); err != nil || got.HasCrawled(0) || !got.HasCrawled(1) {
		t.Errorf("crawled hosts: %+v, %v", got, err)
	} else if got, err := DecodeHosts(reseal(t, b, "crawled", func([]byte) []byte { return []byte{1, 2} })); !errors.Is(err, wire.ErrDamaged) {
		t.Errorf("crawled hosts of another number: %+v, %v", got, err)
	}
	h = whole()
	h.Names[1] += "b"
	if b, err = EncodeHosts(h); err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeHosts(b); got != nil || !errors.Is(err, wire.ErrDamaged) {
		t.Errorf("long host: %v", err)
	}
}

func TestTableBounds(t *testing.T) {
	for name, c := range map[string]struct {
		nodes uint64
		fps   []uint64
		ranks []float32
		want  error
	}{
		"at the bounds":     {2, []uint64{0, math.MaxUint64}, []float32{1, 0}, nil},
		"of nothing":        {0, nil, nil, nil},
		"more than of all":  {1, []uint64{3, 5}, []float32{1, 0}, wire.ErrDamaged},
		"many nodes":        {math.MaxInt64, []uint64{3}, []float32{1}, nil},
		"too many nodes":    {math.MaxInt64 + 1, []uint64{3}, []float32{1}, wire.ErrDamaged},
		"out of order":      {9, []uint64{5, 3, 7}, []float32{1, 0, 0}, wire.ErrDamaged},
		"last out of order": {9, []uint64{3, 7, 5}, []float32{1, 0, 0}, wire.ErrDamaged},
		"twice":             {9, []uint64{3, 5, 5}, []float32{1, 0, 0}, wire.ErrDamaged},
		"above 1":           {9, []uint64{3, 5}, []float32{1.01, 0}, wire.ErrDamaged},
		"below 0":           {9, []uint64{3, 5}, []float32{0, -0.1}, wire.ErrDamaged},
		"NaN":               {9, []uint64{3}, []float32{float32(math.NaN())}, wire.ErrDamaged},
		"fewer ranks":       {9, []uint64{3, 5}, []float32{0}, wire.ErrDamaged},
		"more ranks":        {9, []uint64{3}, []float32{0, 0}, wire.ErrDamaged},
	} {
		raw := binary.AppendUvarint(nil, c.nodes)
		raw = binary.AppendUvarint(raw, uint64(len(c.fps)))
		for _, fp := range c.fps {
			raw = binary.LittleEndian.AppendUint64(raw, fp)
		}
		for _, r := range c.ranks {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(r))
		}
		table, err := DecodeTable(wire.Append(nil, []wire.Section{{Name: "table", Data: raw}}))
		if !errors.Is(err, c.want) || (table == nil) != (c.want != nil) {
			t.Errorf("%s: %v", name, err)
		}
		for i := range c.fps {
			if table == nil {
				break
			}
			if r, ok := table.Rank(c.fps[i]); !ok || r != float64(c.ranks[i]) {
				t.Errorf("%s: rank of %d is %g, %v", name, c.fps[i], r, ok)
			}
		}
	}
	if _, err := EncodeTable(1, []uint64{3}, []float64{1}); err != nil {
		t.Errorf("a table of all nodes: %v", err)
	}
}

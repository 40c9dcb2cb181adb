package rank

import (
	"cmp"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/partition"
)

// pieceLinks and pieceNodes bound a piece of a graph.
const (
	pieceLinks = 2 << 20
	pieceNodes = 1 << 19
)

// builder makes a graph, page by page. It starts a new piece when the last one is full.
type builder struct {
	pieces []*ranks.Graph
	hosts  map[string]uint32 // of the last piece
	nodes  map[uint64]uint32
	texts  map[string]uint32
	last   string // the last host, and its number
	number uint32
}

func (b *builder) piece() *ranks.Graph { return b.pieces[len(b.pieces)-1] }

// begin begins a page.
func (b *builder) begin(fp uint64, host ranks.Host, p ranks.Page) {
	if n := len(b.pieces); n == 0 || len(b.piece().Links)+len(b.piece().Outs) >= pieceLinks ||
		max(len(b.piece().Nodes), len(b.piece().Texts), len(b.piece().Pages)) >= pieceNodes {
		b.pieces = append(b.pieces, &ranks.Graph{Texts: []string{""}})
		b.hosts, b.nodes, b.texts, b.last = map[string]uint32{}, map[uint64]uint32{}, map[string]uint32{"": 0}, ""
	}
	g := b.piece()
	p.Fingerprint, p.Host, p.Links, p.Outs = fp, b.host(host), 0, 0
	g.Pages = append(g.Pages, p)
}

func (b *builder) host(h ranks.Host) uint32 {
	if h.Name == b.last && len(b.hosts) > 0 {
		return b.number
	}
	n, ok := b.hosts[h.Name]
	if !ok {
		g := b.piece()
		n = uint32(len(g.Hosts))
		g.Hosts, b.hosts[h.Name] = append(g.Hosts, h), n
	}
	b.last, b.number = h.Name, n
	return n
}

// link adds a link of the current page.
func (b *builder) link(fp uint64, host ranks.Host, text string) {
	g := b.piece()
	n, ok := b.nodes[fp]
	if !ok {
		n = uint32(len(g.Nodes))
		g.Nodes, b.nodes[fp] = append(g.Nodes, ranks.Node{Fingerprint: fp, Host: b.host(host)}), n
	}
	t, ok := b.texts[text]
	if !ok {
		t = uint32(len(g.Texts))
		g.Texts, b.texts[text] = append(g.Texts, text), t
	}
	g.Links = append(g.Links, ranks.Link{Node: n, Text: t})
	g.Pages[len(g.Pages)-1].Links++
}

// out adds a link of the current page to a host out of scope.
func (b *builder) out(host ranks.Host) {
	g := b.piece()
	g.Outs = append(g.Outs, b.host(host))
	g.Pages[len(g.Pages)-1].Outs++
}

// end ends the page and removes duplicate links. New nodes have the highest numbers, so sorted links name them in
// the order of their numbers.
func (b *builder) end() {
	g := b.piece()
	p := &g.Pages[len(g.Pages)-1]
	links := g.Links[len(g.Links)-int(p.Links):]
	slices.SortFunc(links, func(a, b ranks.Link) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Text, b.Text))
	})
	n := len(slices.Compact(links))
	g.Links, p.Links = g.Links[:len(g.Links)-int(p.Links)+n], uint32(n)
	outs := g.Outs[len(g.Outs)-int(p.Outs):]
	slices.Sort(outs)
	n = len(slices.Compact(outs))
	g.Outs, p.Outs = g.Outs[:len(g.Outs)-int(p.Outs)+n], uint32(n)
}

// copy adds a page of another graph, with the links that from has there.
func (b *builder) copy(page, from node) {
	p := &page.g.Pages[page.i]
	b.begin(p.Fingerprint, page.g.Hosts[p.Host], *p)
	if from.g != nil {
		for _, l := range from.links() {
			n := from.g.Nodes[l.Node]
			b.link(n.Fingerprint, from.g.Hosts[n.Host], from.g.Texts[l.Text])
		}
		for _, h := range from.outs() {
			b.out(from.g.Hosts[h])
		}
	}
	b.end()
}

// node is a page of a graph and the place of its links.
type node struct {
	g          *ranks.Graph
	piece, i   int    // the number of g, and of the page in it
	link, outI uint32 // its first link and out
}

func (p node) page() *ranks.Page   { return &p.g.Pages[p.i] }
func (p node) host() ranks.Host    { return p.g.Hosts[p.page().Host] }
func (p node) links() []ranks.Link { return p.g.Links[p.link:][:p.page().Links] }
func (p node) outs() []uint32      { return p.g.Outs[p.outI:][:p.page().Outs] }

// allNodes yields all pages of some pieces.
func allNodes(pieces []*ranks.Graph) func(yield func(node) bool) {
	return func(yield func(node) bool) {
		for piece, g := range pieces {
			p := node{g: g, piece: piece}
			for i := range g.Pages {
				p.i = i
				if !yield(p) {
					return
				}
				p.link, p.outI = p.link+g.Pages[i].Links, p.outI+g.Pages[i].Outs
			}
		}
	}
}

// tidy normalizes the text of a link: each run of white space becomes one space, and long texts are cut.
func tidy(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(text[:min(len(text), ranks.MaxAnchorText)], "")
}

// join merges the answers of each page in the slots of this partition. The highest generation decides, and of
// equal ones the last in the given order. The result is in order of host and fingerprint.
func join(pieces []*ranks.Graph, ours func(partition.Slot) bool) []*ranks.Graph {
	var all []node
	for p := range allNodes(pieces) {
		if ours(p.host().Slot) {
			all = append(all, p)
		}
	}
	// Fold the answers of each page, oldest first.
	slices.SortStableFunc(all, func(a, b node) int {
		x, y := a.page(), b.page()
		return cmp.Or(cmp.Compare(x.Fingerprint, y.Fingerprint), cmp.Compare(x.Generation, y.Generation))
	})
	type folded struct{ page, from node }
	var pages []folded
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].page().Fingerprint == all[0].page().Fingerprint {
			n++
		}
		var f folded
		for _, p := range all[:n] {
			switch p.page().Kind {
			case ranks.Linked:
				f = folded{p, p}
			case ranks.Same:
				f.page = p
			case ranks.Gone:
				f = folded{}
			}
		}
		if f.page.g != nil {
			pages = append(pages, f)
		}
		all = all[n:]
	}
	// Write the pages in order.
	slices.SortFunc(pages, func(a, b folded) int {
		return cmp.Or(strings.Compare(a.page.host().Name, b.page.host().Name), cmp.Compare(a.page.page().Fingerprint, b.page.page().Fingerprint))
	})
	var out builder
	for _, f := range pages {
		out.copy(f.page, f.from)
	}
	for _, g := range out.pieces {
		for i := range g.Pages {
			g.Pages[i].Kind = ranks.Linked
		}
	}
	return out.pieces
}

// inOrder reports whether the pages of a graph are in order of host and fingerprint, each once.
func inOrder(pieces []*ranks.Graph) bool {
	var last node
	for p := range allNodes(pieces) {
		if last.g != nil && cmp.Or(strings.Compare(last.host().Name, p.host().Name), cmp.Compare(last.page().Fingerprint, p.page().Fingerprint)) >= 0 {
			return false
		}
		last = p
	}
	return true
}

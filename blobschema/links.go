package blobschema

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// PageLinks are the links of one page: an edge list of the crawl's graph.
type PageLinks struct {
	Source  uint64         // fingerprint of the page's URL
	Slot    partition.Slot // of the page's host
	Host    string         // authority of the page's URL
	Targets []Target
}

// Target is what a page links to.
type Target struct {
	Fingerprint uint64
	Slot        partition.Slot
	Host        string // authority of the URL
	NoFollow    bool
	Followed    bool   // in scope and sent to its owner
	Anchor      string // visible text of the link
	Requisite   bool   // the page needs it to be displayed
	Kind        uint8  // 1 + its actor.LinkKind; 0: the commit does not say
	URL         string // of a link that was dropped: no other section holds it; may be missing
}

const (
	targetNoFollow = 1 << iota
	targetFollowed
	targetRequisite
	targetKind  = 4 // bit where Kind begins
	maxKind     = 1<<4 - 1
	targetFlags = targetNoFollow | targetFollowed | targetRequisite | maxKind<<targetKind
)

// maxDropped bounds the texts of the dropped links in a commit, in bytes. The others have none.
const maxDropped = 16 << 20

// node identifies a URL of the graph.
type node struct {
	fp   uint64
	slot partition.Slot
}

// encodeLinks encodes links. Pages of a site share most of their links, so each target
// is stored once, in order of appearance, and links refer to it:
//
//	number of hosts; the bytes of each; the hosts
//	number of pages; of each: fingerprint, slot, host, number of links
//	number of targets; of each: fingerprint, slot, host
//	of each link: target (0: the next new target; otherwise its index + 1), flags, bytes of anchor
//	the anchors
//	optional: number of targets with a URL; the index of each; the URLs
//
// Each line is a column. A menu becomes a repeated sequence of references and texts,
// which compresses well.
func encodeLinks(c *Commit) ([]byte, error) {
	pages := c.Links
	total, text := 0, 0
	for i := range pages {
		total += len(pages[i].Targets)
	}
	nodes := make([]node, 0, total/2)
	refs := make([]uint64, 0, total)
	targets := make([]*Target, 0, total)
	known := newNodeTable(total)
	var hosts wire.HostTable
	var of []uint32 // host of each node
	var dropped []int
	var urls wire.TextPacker
	for i := range pages {
		if pages[i].Slot > maxSlot || len(pages[i].Host) > wire.MaxHost {
			return nil, fmt.Errorf("page of slot %d, of a host of %d bytes", pages[i].Slot, len(pages[i].Host))
		}
		hosts.Add(pages[i].Host)
		for j := range pages[i].Targets {
			t := &pages[i].Targets[j]
			if len(t.Anchor) > maxAnchor || t.Slot > maxSlot || len(t.Host) > wire.MaxHost || len(t.URL) > wire.MaxURL || t.Kind > maxKind {
				return nil, fmt.Errorf("link to slot %d with an anchor of %d bytes, to a host of %d", t.Slot, len(t.Anchor), len(t.Host))
			}
			n := node{t.Fingerprint, t.Slot}
			place := known.find(nodes, n)
			refs, targets = append(refs, uint64(*place)), append(targets, t)
			if *place == 0 {
				nodes, of = append(nodes, n), append(of, hosts.Add(t.Host))
				*place = uint32(len(nodes))
				if _, whole := urls.Size(); t.URL != "" && whole+len(t.URL) <= maxDropped {
					dropped = append(dropped, len(nodes)-1)
					urls.Add(t.URL)
				}
			}
			text += len(t.Anchor)
		}
	}
	dst := hosts.Append(make([]byte, 0, 16*len(pages)+14*len(nodes)+5*total+text))
	dst = binary.AppendUvarint(dst, uint64(len(pages)))
	for i := range pages {
		dst = binary.LittleEndian.AppendUint64(dst, pages[i].Source)
	}
	dst = wire.AppendColumn(dst, len(pages), func(i int) uint64 { return uint64(pages[i].Slot) })
	dst = wire.AppendColumn(dst, len(pages), func(i int) uint64 { return uint64(hosts.Add(pages[i].Host)) })
	dst = wire.AppendColumn(dst, len(pages), func(i int) uint64 { return uint64(len(pages[i].Targets)) })
	dst = binary.AppendUvarint(dst, uint64(len(nodes)))
	for _, n := range nodes {
		dst = binary.LittleEndian.AppendUint64(dst, n.fp)
	}
	dst = wire.AppendColumn(dst, len(nodes), func(i int) uint64 { return uint64(nodes[i].slot) })
	dst = wire.AppendColumn(dst, len(nodes), func(i int) uint64 { return uint64(of[i]) })
	dst = wire.AppendValues(dst, len(refs), func(i int) uint64 { return refs[i] })
	dst = wire.AppendColumn(dst, len(targets), func(i int) uint64 { return targets[i].flags() })
	dst = wire.AppendColumn(dst, len(targets), func(i int) uint64 { return uint64(len(targets[i].Anchor)) })
	for _, t := range targets {
		dst = append(dst, t.Anchor...)
	}
	if len(dropped) > 0 {
		dst = binary.AppendUvarint(dst, uint64(len(dropped)))
		dst = wire.AppendColumn(dst, len(dropped), func(i int) uint64 { return uint64(dropped[i]) })
		dst = urls.Append(dst)
	}
	return dst, nil
}

// nodeTable finds nodes by linear probing, in a quarter of the time of a map:
// fingerprints are hashes under a key that no site knows.
type nodeTable []uint32 // index + 1 in a list of nodes, or 0

func newNodeTable(n int) nodeTable { return make(nodeTable, 1<<bits.Len(uint(2*n))) }

// find returns the place of n in the table. It holds 0 if n is not in the list yet.
func (t nodeTable) find(nodes []node, n node) *uint32 {
	mask := uint64(len(t) - 1)
	for i := n.fp & mask; ; i = (i + 1) & mask {
		if t[i] == 0 || nodes[t[i]-1] == n {
			return &t[i]
		}
	}
}

func (t *Target) flags() (f uint64) {
	if t.NoFollow {
		f |= targetNoFollow
	}
	if t.Followed {
		f |= targetFollowed
	}
	if t.Requisite {
		f |= targetRequisite
	}
	return f | uint64(t.Kind)<<targetKind
}

func decodeLinks(raw []byte) ([]PageLinks, error) {
	c := &wire.Cursor{Rest: raw}
	hosts := c.Texts(wire.MaxHost)
	pages := make([]PageLinks, c.Count(8))
	for i := range pages {
		pages[i].Source = c.Uint64()
	}
	c.Column(len(pages), maxSlot, func(i int, v uint64) { pages[i].Slot = partition.Slot(v) })
	wire.ReadHostColumn(c, len(pages), hosts, func(i int, host string) { pages[i].Host = host })
	counts := make([]int, len(pages))
	total := 0 // at most one per byte of the input
	c.Column(len(pages), uint64(len(raw)), func(i int, v uint64) { counts[i] = int(v); total += int(v) })
	nodes := make([]node, c.Count(8))
	hostOf := make([]string, len(nodes))
	for i := range nodes {
		nodes[i].fp = c.Uint64()
	}
	c.Column(len(nodes), maxSlot, func(i int, v uint64) { nodes[i].slot = partition.Slot(v) })
	wire.ReadHostColumn(c, len(nodes), hosts, func(i int, host string) { hostOf[i] = host })
	if total > len(c.Rest) {
		c.Fail("%d links in %d bytes", total, len(c.Rest))
	}
	if c.Err != nil {
		return nil, c.Err
	}
	targets := make([]Target, total)
	next := 0
	c.Values(total, uint64(len(nodes)), func(i int, ref uint64) {
		if ref == 0 {
			next++
			ref = uint64(next)
		}
		if ref > uint64(next) || next > len(nodes) {
			c.Fail("link %d to a target not seen yet", i)
			return
		}
		targets[i].Fingerprint, targets[i].Slot, targets[i].Host = nodes[ref-1].fp, nodes[ref-1].slot, hostOf[ref-1]
	})
	c.Column(total, targetFlags, func(i int, f uint64) {
		t := &targets[i]
		t.NoFollow, t.Followed, t.Requisite = f&targetNoFollow != 0, f&targetFollowed != 0, f&targetRequisite != 0
		t.Kind = uint8(f >> targetKind)
	})
	readAnchors(c, targets)
	readDropped(c, nodes, targets)
	if err := c.End(); err != nil {
		return nil, err
	}
	for i := range pages {
		if n := counts[i]; n > 0 {
			pages[i].Targets, targets = targets[:n:n], targets[n:]
		}
	}
	return pages, nil
}

// readAnchors reads the texts of links as parts of one string.
func readAnchors(c *wire.Cursor, targets []Target) {
	lengths := make([]int, len(targets))
	total := 0
	c.Column(len(targets), maxAnchor, func(i int, v uint64) { lengths[i] = int(v); total += int(v) })
	text := string(c.Take(uint64(total)))
	if c.Err != nil {
		return
	}
	for i, n := range lengths {
		targets[i].Anchor, text = text[:n], text[n:]
	}
}

// readDropped reads the URLs of dropped links, if any. Each is the URL of all links to its target.
func readDropped(c *wire.Cursor, nodes []node, targets []Target) {
	if len(c.Rest) == 0 || c.Err != nil {
		return
	}
	index := make([]int, c.Count(1))
	c.Column(len(index), uint64(max(len(nodes), 1)-1), func(i int, v uint64) { index[i] = int(v) })
	var u wire.TextUnpacker
	u.Read(c, len(index), wire.MaxURL, maxDropped)
	urls := make(map[node]string, len(index))
	for i := 0; i < len(index) && c.Err == nil && len(nodes) > 0; i++ {
		urls[nodes[index[i]]] = u.Next(c)
	}
	for i := range targets {
		targets[i].URL = urls[node{targets[i].Fingerprint, targets[i].Slot}]
	}
}

// maxAnchor bounds a link's text, in bytes.
const maxAnchor = 1 << 10

package ranks

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// AnchorTarget is a page with the texts of links to it, the most frequent first.
type AnchorTarget struct {
	Fingerprint uint64
	Slot        partition.Slot // of the page's politeness key
	Host        string         // authority of the page's URL
	Texts       []AnchorText
}

// AnchorText is the text of links to one page.
type AnchorText struct {
	Text  string
	Pages uint32 // number of pages with such a link
	Hosts uint32 // number of hosts of these pages
}

// Bounds of the texts of one target.
const (
	MaxAnchorTexts = 50
	MaxAnchorBytes = 2 << 10 // of all texts together
	MaxAnchorText  = 256     // of one text
)

// Anchors are encoded in sections of at most anchorsAtOnce targets: at 2 KiB each they fit the bound of a section.
const (
	sectionAnchors = "anchors" // and a number
	anchorsAtOnce  = 1 << 16
)

// EncodeAnchors encodes the anchor texts of targets, in their order.
func EncodeAnchors(targets []AnchorTarget) (_ []byte, err error) {
	defer name(&err, "encode anchors")
	sections, err := anchorSections(targets)
	if err != nil {
		return nil, err
	}
	return wire.Append(nil, sections), nil
}

func anchorSections(targets []AnchorTarget) (sections []wire.Section, err error) {
	if len(targets) > maxPieces*anchorsAtOnce {
		return nil, fmt.Errorf("%d targets with texts, more than %d: the crawl needs more partitions", len(targets), maxPieces*anchorsAtOnce)
	}
	for some := range slices.Chunk(targets, anchorsAtOnce) {
		raw, err := encodeAnchorTargets(some)
		if err != nil {
			return nil, err
		}
		sections = append(sections, wire.Section{Name: fmt.Sprint(sectionAnchors, len(sections)), Data: wire.AppendPacked(nil, raw)})
	}
	return sections, nil
}

// encodeAnchorTargets encodes targets, each part as a column:
//
//	hosts: number, lengths, names
//	number of targets; for each: fingerprint, slot, host, number of texts
//	number of texts; lengths; the texts; for each: pages, hosts
func encodeAnchorTargets(targets []AnchorTarget) ([]byte, error) {
	var hosts wire.HostTable
	var of []uint32
	var texts []*AnchorText
	for i := range targets {
		t := &targets[i]
		if t.Slot > partition.MaxSlots-1 || len(t.Host) > wire.MaxHost || len(t.Texts) > MaxAnchorTexts {
			return nil, fmt.Errorf("target of slot %d, of a host of %d bytes, with %d texts", t.Slot, len(t.Host), len(t.Texts))
		}
		of = append(of, hosts.Add(t.Host))
		for j := range t.Texts {
			if len(t.Texts[j].Text) > MaxAnchorText {
				return nil, fmt.Errorf("text of %d bytes", len(t.Texts[j].Text))
			}
			texts = append(texts, &t.Texts[j])
		}
	}
	raw := hosts.Append(nil)
	raw = binary.AppendUvarint(raw, uint64(len(targets)))
	for i := range targets {
		raw = binary.LittleEndian.AppendUint64(raw, targets[i].Fingerprint)
	}
	raw = wire.AppendColumn(raw, len(targets), func(i int) uint64 { return uint64(targets[i].Slot) })
	raw = wire.AppendColumn(raw, len(targets), func(i int) uint64 { return uint64(of[i]) })
	raw = wire.AppendColumn(raw, len(targets), func(i int) uint64 { return uint64(len(targets[i].Texts)) })
	raw = wire.AppendTexts(raw, len(texts), func(i int) string { return texts[i].Text })
	raw = wire.AppendColumn(raw, len(texts), func(i int) uint64 { return uint64(texts[i].Pages) })
	return wire.AppendColumn(raw, len(texts), func(i int) uint64 { return uint64(texts[i].Hosts) }), nil
}

// DecodeAnchors decodes what EncodeAnchors wrote. The errors are [wire.ErrDamaged] and [wire.ErrVersion].
func DecodeAnchors(data []byte) (targets []AnchorTarget, err error) {
	defer name(&err, "decode anchors")
	p, err := wire.Open(data)
	if err != nil {
		return nil, err
	}
	return readAnchors(p)
}

func readAnchors(p *wire.Pack) (targets []AnchorTarget, err error) {
	for c, err := range numbered(p, sectionAnchors) {
		if err != nil {
			return nil, err
		}
		some, err := decodeAnchors(c)
		if err != nil {
			return nil, err
		}
		targets = append(targets, some...)
	}
	return targets, nil
}

func decodeAnchors(c *wire.Cursor) ([]AnchorTarget, error) {
	hosts := c.Texts(wire.MaxHost)
	targets := make([]AnchorTarget, c.Count(8))
	for i := range targets {
		targets[i].Fingerprint = c.Uint64()
	}
	c.Column(len(targets), partition.MaxSlots-1, func(i int, v uint64) { targets[i].Slot = partition.Slot(v) })
	wire.ReadHostColumn(c, len(targets), hosts, func(i int, host string) { targets[i].Host = host })
	counts, total := make([]int, len(targets)), 0
	c.Column(len(targets), MaxAnchorTexts, func(i int, v uint64) { counts[i] = int(v); total += int(v) })
	list := c.Texts(MaxAnchorText)
	if len(list) != total {
		c.Fail("%d texts where %d were promised", len(list), total)
	}
	texts := make([]AnchorText, len(list))
	for i, t := range list {
		texts[i].Text = t
	}
	c.Column(len(texts), 1<<32-1, func(i int, v uint64) { texts[i].Pages = uint32(v) })
	c.Column(len(texts), 1<<32-1, func(i int, v uint64) { texts[i].Hosts = uint32(v) })
	if err := c.End(); err != nil {
		return nil, err
	}
	for i, n := range counts {
		targets[i].Texts, texts = texts[:n:n], texts[n:]
	}
	return targets, nil
}

// openSection inflates a section.
func openSection(p *wire.Pack, section string) (*wire.Cursor, error) {
	b, err := p.Section(section)
	if err != nil {
		return nil, err
	}
	raw, err := wire.Unpack(b, wire.MaxSection)
	return &wire.Cursor{Rest: raw}, err
}

// numbered inflates the sections of a name with the numbers 0, 1 and so on.
func numbered(p *wire.Pack, section string) iter.Seq2[*wire.Cursor, error] {
	return func(yield func(*wire.Cursor, error) bool) {
		for i := 0; p.Has(fmt.Sprint(section, i)); i++ {
			if !yield(openSection(p, fmt.Sprint(section, i))) {
				return
			}
		}
	}
}

// name wraps an error, unless it is nil, with what failed.
func name(err *error, what string) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", what, *err)
	}
}

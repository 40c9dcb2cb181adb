package blobschema

import (
	"encoding/binary"
	"fmt"

	"github.com/orbweaver/orbweaver/partition"
)

// AnchorTarget is a page with the texts of links to it, the most frequent first.
type AnchorTarget struct {
	Fingerprint uint64
	Slot        partition.Slot // of the page's unit
	Host        string         // authority of the page's URL
	Texts       []AnchorText
}

// AnchorText is the text of links to one page.
type AnchorText struct {
	Text  string
	Pages uint32 // that have such a link; one with several counts once
	Hosts uint32 // of those pages
}

// Bounds of the texts of one target.
const (
	MaxAnchorTexts = 50
	MaxAnchorBytes = 2 << 10 // all together
	MaxAnchorText  = 256     // one of them
)

const sectionAnchors = "anchors"

// EncodeAnchors encodes the anchor texts of targets, in order of slot, host and fingerprint.
//
//	hosts: number, lengths, names
//	number of targets; of each: fingerprint, slot, host, number of texts
//	number of texts; of each: bytes, pages, hosts; the texts
//
// Each is a column.
func EncodeAnchors(targets []AnchorTarget) ([]byte, error) {
	var hosts hostTable
	var texts []*AnchorText
	for i := range targets {
		t := &targets[i]
		if t.Slot > maxSlot || len(t.Host) > maxHost || len(t.Texts) > MaxAnchorTexts {
			return nil, fmt.Errorf("encode anchors: target of slot %d, of a host of %d bytes, with %d texts", t.Slot, len(t.Host), len(t.Texts))
		}
		hosts.of = append(hosts.of, hosts.add(t.Host))
		for j := range t.Texts {
			if len(t.Texts[j].Text) > MaxAnchorText {
				return nil, fmt.Errorf("encode anchors: text of %d bytes", len(t.Texts[j].Text))
			}
			texts = append(texts, &t.Texts[j])
		}
	}
	raw := hosts.append(nil)
	raw = binary.AppendUvarint(raw, uint64(len(targets)))
	for i := range targets {
		raw = binary.LittleEndian.AppendUint64(raw, targets[i].Fingerprint)
	}
	raw = appendColumn(raw, len(targets), func(i int) uint64 { return uint64(targets[i].Slot) })
	raw = appendColumn(raw, len(targets), func(i int) uint64 { return uint64(hosts.of[i]) })
	raw = appendColumn(raw, len(targets), func(i int) uint64 { return uint64(len(targets[i].Texts)) })
	raw = binary.AppendUvarint(raw, uint64(len(texts)))
	raw = appendValues(raw, len(texts), func(i int) uint64 { return uint64(len(texts[i].Text)) })
	raw = appendColumn(raw, len(texts), func(i int) uint64 { return uint64(texts[i].Pages) })
	raw = appendColumn(raw, len(texts), func(i int) uint64 { return uint64(texts[i].Hosts) })
	for _, t := range texts {
		raw = append(raw, t.Text...)
	}
	if len(raw) > maxSection {
		return nil, fmt.Errorf("encode anchors: %d bytes are above the bound of %d", len(raw), maxSection)
	}
	return AppendPack(nil, []Section{{sectionAnchors, appendPacked(nil, raw)}}), nil
}

// DecodeAnchors decodes what EncodeAnchors wrote. The errors are [ErrDamaged] and [ErrVersion].
func DecodeAnchors(data []byte) ([]AnchorTarget, error) {
	raw, err := openSection(data, sectionAnchors)
	if err != nil {
		return nil, fmt.Errorf("decode anchors: %w", err)
	}
	c := cursor{b: raw}
	hosts := c.hostNames()
	targets := make([]AnchorTarget, c.count(8))
	for i := range targets {
		targets[i].Fingerprint = c.uint64()
	}
	c.column(len(targets), maxSlot, func(i int, v uint64) { targets[i].Slot = partition.Slot(v) })
	c.hostColumn(len(targets), hosts, func(i int, host string) { targets[i].Host = host })
	counts, total := make([]int, len(targets)), 0
	c.column(len(targets), MaxAnchorTexts, func(i int, v uint64) { counts[i] = int(v); total += int(v) })
	texts := make([]AnchorText, c.count(1))
	if len(texts) != total {
		c.fail("%d texts where %d were promised", len(texts), total)
	}
	lengths, size := make([]int, len(texts)), 0
	c.values(len(texts), MaxAnchorText, func(i int, v uint64) { lengths[i] = int(v); size += int(v) })
	c.column(len(texts), 1<<32-1, func(i int, v uint64) { texts[i].Pages = uint32(v) })
	c.column(len(texts), 1<<32-1, func(i int, v uint64) { texts[i].Hosts = uint32(v) })
	text := string(c.take(uint64(size)))
	if err := c.end(); err != nil {
		return nil, fmt.Errorf("decode anchors: %w", err)
	}
	for i, n := range lengths {
		texts[i].Text, text = text[:n], text[n:]
	}
	for i, n := range counts {
		targets[i].Texts, texts = texts[:n:n], texts[n:]
	}
	return targets, nil
}

// openSection inflates a pack's section.
func openSection(data []byte, section string) ([]byte, error) {
	p, err := OpenPack(data)
	if err != nil {
		return nil, err
	}
	b, err := p.Section(section)
	if err != nil {
		return nil, err
	}
	return unpack(b, maxSection)
}

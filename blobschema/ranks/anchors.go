package ranks

import (
	"fmt"
	"math"
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

// A section of anchors holds at most anchorsAtOnce targets: at 2 KiB each they fit the bound of a section.
const (
	sectionAnchors = "anchors" // and a number
	anchorsAtOnce  = 1 << 16
)

// EncodeAnchors encodes the anchor texts of targets, in their order. It does not check the bounds that DecodeAnchors
// demands.
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
		s, err := packSection(fmt.Sprint(sectionAnchors, len(sections)), func(x *coder) { codeAnchors(x, &some) })
		if err != nil {
			return nil, err
		}
		sections = append(sections, s)
	}
	return sections, nil
}

// codeAnchors codes targets, each part as a column:
//
//	hosts: number, lengths, names
//	number of targets; for each: fingerprint, slot, host, number of texts
//	number of texts; lengths; the texts; for each: pages, hosts
func codeAnchors(x *coder, targets *[]AnchorTarget) {
	type row struct{ host, texts uint32 }
	var table wire.HostTable
	rows := make([]row, len(*targets))
	var all []AnchorText
	for i, t := range *targets {
		rows[i] = row{table.Add(t.Host), uint32(len(t.Texts))}
		all = append(all, t.Texts...)
	}
	hosts := table.Names()
	texts(x, &hosts, wire.MaxHost, self)
	fingerprints(x, targets, func(t *AnchorTarget) *uint64 { return &t.Fingerprint })
	if x.in != nil {
		rows = make([]row, len(*targets))
	}
	column(x, *targets, partition.MaxSlots-1, func(t *AnchorTarget) *partition.Slot { return &t.Slot })
	places(x, rows, len(hosts), func(r *row) *uint32 { return &r.host })
	column(x, rows, MaxAnchorTexts, func(r *row) *uint32 { return &r.texts })
	texts(x, &all, MaxAnchorText, func(t *AnchorText) *string { return &t.Text })
	column(x, all, math.MaxUint32, func(t *AnchorText) *uint32 { return &t.Pages })
	column(x, all, math.MaxUint32, func(t *AnchorText) *uint32 { return &t.Hosts })
	if x.in == nil {
		return
	}
	for i, r := range rows {
		if x.in.Err != nil || int(r.texts) > len(all) {
			x.in.Fail("%d texts where more were promised", len(all))
			return
		}
		t := &(*targets)[i]
		t.Host, t.Texts, all = hosts[r.host], all[:r.texts:r.texts], all[r.texts:]
	}
	if len(all) > 0 {
		x.in.Fail("%d texts too many", len(all))
	}
}

// DecodeAnchors decodes the result of EncodeAnchors. The errors are [wire.ErrDamaged] and [wire.ErrVersion].
func DecodeAnchors(data []byte) (targets []AnchorTarget, err error) {
	defer name(&err, "decode anchors")
	p, err := wire.Open(data)
	if err != nil {
		return nil, err
	}
	return readAnchors(p)
}

func readAnchors(p *wire.Pack) (targets []AnchorTarget, err error) {
	for section := range numbered(p, sectionAnchors) {
		var some []AnchorTarget
		if err := readSection(p, section, func(x *coder) { codeAnchors(x, &some) }); err != nil {
			return nil, err
		}
		targets = append(targets, some...)
	}
	return targets, nil
}

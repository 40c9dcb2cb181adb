package blobschema

import (
	"encoding/binary"
	"fmt"
	"math"
	"sort"
	"strings"
)

// RankTable holds the ranks of pages of one partition, by fingerprint. Ranks of all nodes of all
// partitions add up to 1. It is a view of an object's bytes, 12 a page, and safe for concurrent use.
type RankTable struct {
	nodes      int64 // of the whole graph
	fps, ranks []byte
}

// The sections of the objects that rank jobs make.
const (
	sectionTable = "table"
)

// EncodeRankTable encodes the ranks of pages. Fingerprints ascend; nodes is their number in the whole
// graph, of all partitions, so that rank times nodes has a mean of 1.
//
//	nodes, number of pages; fingerprints, 8 bytes each; ranks as float32, 4 bytes each
func EncodeRankTable(nodes int64, fps []uint64, ranks []float64) ([]byte, error) {
	if len(fps) != len(ranks) || nodes < int64(len(fps)) {
		return nil, fmt.Errorf("encode rank table: %d pages of %d, %d ranks", len(fps), nodes, len(ranks))
	}
	raw := make([]byte, 0, 20+12*len(fps))
	raw = binary.AppendUvarint(raw, uint64(nodes))
	raw = binary.AppendUvarint(raw, uint64(len(fps)))
	for i, fp := range fps {
		if i > 0 && fp <= fps[i-1] {
			return nil, fmt.Errorf("encode rank table: fingerprint %x after %x", fp, fps[i-1])
		}
		raw = binary.LittleEndian.AppendUint64(raw, fp)
	}
	for _, r := range ranks {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(r)))
	}
	return AppendPack(nil, []Section{{sectionTable, raw}}), nil
}

// DecodeRankTable opens a table. It keeps data, which must not change any more. The errors are
// [ErrDamaged] and [ErrVersion].
func DecodeRankTable(data []byte) (*RankTable, error) {
	p, err := OpenPack(data)
	if err != nil {
		return nil, fmt.Errorf("decode rank table: %w", err)
	}
	b, err := p.Section(sectionTable)
	if err != nil {
		return nil, fmt.Errorf("decode rank table: %w", err)
	}
	c := cursor{b: b}
	t := &RankTable{nodes: int64(c.uvarint(math.MaxInt64))}
	n := c.count(12)
	t.fps, t.ranks = c.take(uint64(8*n)), c.take(uint64(4*n))
	if c.err == nil && int64(n) > t.nodes {
		c.fail("%d pages of %d", n, t.nodes)
	}
	for i := 0; i < n && c.err == nil; i++ {
		if fp, r := t.At(i); i > 0 && fp <= binary.LittleEndian.Uint64(t.fps[8*i-8:]) || !(r >= 0 && r <= 1) {
			c.fail("fingerprint %x of rank %g out of order or bounds", fp, r)
		}
	}
	if err := c.end(); err != nil {
		return nil, fmt.Errorf("decode rank table: %w", err)
	}
	return t, nil
}

// Nodes is the number of nodes of the whole graph: a rank times it has a mean of 1.
func (t *RankTable) Nodes() int64 { return t.nodes }

// Len is the number of pages in the table.
func (t *RankTable) Len() int { return len(t.fps) / 8 }

// At is the i-th page, by fingerprint, and its rank.
func (t *RankTable) At(i int) (fp uint64, rank float64) {
	return binary.LittleEndian.Uint64(t.fps[8*i:]), float64(math.Float32frombits(binary.LittleEndian.Uint32(t.ranks[4*i:])))
}

// Rank finds the rank of a page, 0 to 1; not ok if the table does not have it.
func (t *RankTable) Rank(fp uint64) (rank float64, ok bool) {
	i := sort.Search(t.Len(), func(i int) bool { return binary.LittleEndian.Uint64(t.fps[8*i:]) >= fp })
	if i == t.Len() {
		return 0, false
	}
	at, rank := t.At(i)
	if at != fp {
		return 0, false
	}
	return rank, true
}

// AppendRankLine appends a line of a text table of ranks: name, tab, number. Numbers are cut to
// what frontier.ParseHostRanks takes, 1e-6 to 1e6.
func AppendRankLine(dst []byte, name string, rank float64) []byte {
	return fmt.Appendf(dst, "%s\t%.6g\n", strings.Map(oneLine, name), math.Max(1e-6, math.Min(rank, 1e6)))
}

func oneLine(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

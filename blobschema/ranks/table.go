package ranks

import (
	"encoding/binary"
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// Table holds the ranks of the pages of one partition, by fingerprint. The ranks of all nodes of all partitions sum to
// 1. A table is a view of an object's bytes, 12 for each page, and safe for concurrent use.
type Table struct {
	nodes      int64 // of the whole graph
	fps, ranks []byte
}

const sectionTable = "table"

// EncodeTable encodes the ranks of pages. Fingerprints ascend; nodes is their number in the whole
// graph, of all partitions, so that rank times nodes has a mean of 1.
//
//	nodes, number of pages; fingerprints, 8 bytes each; ranks as float32, 4 bytes each
func EncodeTable(nodes int64, fps []uint64, ranks []float64) ([]byte, error) {
	if len(fps) != len(ranks) || nodes < int64(len(fps)) {
		return nil, fmt.Errorf("encode rank table: %d pages of %d, %d ranks", len(fps), nodes, len(ranks))
	}
	values := make([]float32, len(ranks))
	for i, fp := range fps {
		if i > 0 && fp <= fps[i-1] {
			return nil, fmt.Errorf("encode rank table: fingerprint %x after %x", fp, fps[i-1])
		}
		values[i] = float32(ranks[i])
	}
	raw := binary.AppendUvarint(nil, uint64(nodes))
	raw = binary.AppendUvarint(raw, uint64(len(fps)))
	raw = appendNumbers(appendNumbers(raw, fps), values)
	return wire.Append(nil, []wire.Section{{Name: sectionTable, Data: raw}}), nil
}

// DecodeTable opens a table. It keeps data, which must not change afterwards. The errors are [wire.ErrDamaged] and
// [wire.ErrVersion].
func DecodeTable(data []byte) (_ *Table, err error) {
	defer name(&err, "decode rank table")
	p, err := wire.Open(data)
	if err != nil {
		return nil, err
	}
	b, err := p.Section(sectionTable)
	if err != nil {
		return nil, err
	}
	c := &wire.Cursor{Rest: b}
	t := &Table{nodes: int64(c.Uvarint(math.MaxInt64))}
	n := c.Count(12)
	t.fps, t.ranks = c.Take(uint64(8*n)), c.Take(uint64(4*n))
	if c.Err == nil && int64(n) > t.nodes {
		c.Fail("%d pages of %d", n, t.nodes)
	}
	for i := 0; i < n && c.Err == nil; i++ {
		if fp, r := t.At(i); i > 0 && fp <= binary.LittleEndian.Uint64(t.fps[8*i-8:]) || !(r >= 0 && r <= 1) {
			c.Fail("fingerprint %x of rank %g out of order or bounds", fp, r)
		}
	}
	if err := c.End(); err != nil {
		return nil, err
	}
	return t, nil
}

// Nodes returns the number of nodes of the whole graph. A rank times this number has a mean of 1.
func (t *Table) Nodes() int64 { return t.nodes }

// Len returns the number of pages in the table.
func (t *Table) Len() int { return len(t.fps) / 8 }

// At returns the fingerprint and rank of the i-th page.
func (t *Table) At(i int) (fp uint64, rank float64) {
	return binary.LittleEndian.Uint64(t.fps[8*i:]), float64(math.Float32frombits(binary.LittleEndian.Uint32(t.ranks[4*i:])))
}

// Rank returns the rank of a page, 0 to 1; ok is false if the page is not in the table.
func (t *Table) Rank(fp uint64) (rank float64, ok bool) {
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

// AppendLine appends a line of a text table of ranks: name, tab, number. It clamps the number to the range of
// frontier.ParseHostRanks, 1e-6 to 1e6.
func AppendLine(dst []byte, name string, rank float64) []byte {
	return fmt.Appendf(dst, "%s\t%.6g\n", strings.Map(oneLine, name), math.Max(1e-6, math.Min(rank, 1e6)))
}

func oneLine(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

package frontier

// kind says where a fingerprint was found.
type kind uint8

const (
	absent kind = iota
	inItems
	inMarks
)

// index maps fingerprints to places in the pool and in marks, by open addressing with linear probing.
// Fingerprints are keyed hashes, so nobody can make them collide. Entries are never removed, because
// a known URL stays known.
type index struct {
	cells []uint32 // place<<1 | settled, plus 1; 0 is empty
	tags  []uint8  // low byte of the fingerprint; it saves most comparisons of whole fingerprints
	n     int      // entries
}

// home returns the first cell to probe. It uses bits that neither the prefix of a part nor the tag uses.
func (x *index) home(fp uint64) int { return int(uint64(uint32(fp>>8)) * uint64(len(x.cells)) >> 32) }

// cell finds the cell of a fingerprint, or the empty one where it belongs.
func (p *part) cell(fp uint64) int {
	x, tag := &p.index, uint8(fp)
	for i := x.home(fp); ; {
		c := x.cells[i]
		if c == 0 || x.tags[i] == tag && p.fingerprint(c) == fp {
			return i
		}
		if i++; i == len(x.cells) {
			i = 0
		}
	}
}

func (p *part) fingerprint(cell uint32) uint64 {
	if v := cell - 1; v&1 == 0 {
		return p.Fingerprint(v >> 1)
	} else {
		return p.marks[v>>1].fp
	}
}

// find returns the place of a URL.
func (p *part) find(fp uint64) (place uint32, k kind) {
	if p.index.n == 0 {
		return 0, absent
	}
	switch c := p.index.cells[p.cell(fp)]; {
	case c == 0:
		return 0, absent
	case (c-1)&1 == 0:
		return (c - 1) >> 1, inItems
	default:
		return (c - 1) >> 1, inMarks
	}
}

// insert records the place of a URL. The item or mark must exist already, unless the URL has a cell.
func (p *part) insert(fp uint64, at uint32, k kind) {
	p.reserve(p.index.n + 1)
	c := p.cell(fp)
	if p.index.cells[c] == 0 {
		p.index.n++
	}
	p.index.tags[c], p.index.cells[c] = uint8(fp), at<<1+1
	if k == inMarks {
		p.index.cells[c]++
	}
}

// reserve makes room for n URLs in the index: at most four fifths of it are in use.
func (p *part) reserve(n int) {
	old := p.index.cells
	if n*5 <= len(old)*4 {
		return
	}
	size := max(n*5/4+2, len(old)*3/2, 8)
	p.index.cells, p.index.tags = make([]uint32, size), make([]uint8, size)
	for _, c := range old {
		if c != 0 {
			fp := p.fingerprint(c)
			at := p.cell(fp)
			p.index.cells[at], p.index.tags[at] = c, uint8(fp)
		}
	}
}

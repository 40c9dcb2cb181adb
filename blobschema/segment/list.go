package segment

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// A list has the documents of a term in one field. It is two pieces, so that only phrases read the positions:
//
//	postings:  for each full block of 128 documents: difference of its last document to that
//	           of the previous block, bytes of its postings, bytes of its positions;
//	           the blocks: a group of differences of documents, less 1, and one of
//	           frequencies, less 1;
//	           the rest of the documents: twice the difference, less 1, plus 1 if the
//	           frequency is 1, otherwise the frequency less 2 follows
//	positions: for each block, and for the rest: differences of positions, from 0 for
//	           each document, 128 to a group, and what is left as varints
//
// Each piece ends with its CRC-32C. The dictionary has lists that are short enough, both pieces together and
// without checksums.
const inlineList = 32 // bytes

// list locates a list: inline, or in the object.
type list struct {
	inline    []byte
	postings  int64 // offset
	size      int64 // with the checksum
	positions int64 // offset
	length    int64 // of the positions, with the checksum
}

// listEncoder encodes lists. It reuses its buffers.
type listEncoder struct {
	docs, freqs, places      []uint32 // of the list: documents, the frequency in each, and all positions
	heads, blocks, positions []byte
}

// split splits tokens, one for each occurrence, into documents, frequencies and positions. A token is a document above
// 32 bits of position. Documents count from first.
func (e *listEncoder) split(tokens []uint64, first uint32) {
	e.docs, e.freqs, e.places = e.docs[:0], e.freqs[:0], e.places[:0]
	for _, t := range tokens {
		doc := uint32(t>>32) - first
		if n := len(e.docs); n == 0 || e.docs[n-1] != doc {
			e.docs, e.freqs = append(e.docs, doc), append(e.freqs, 0)
		}
		e.freqs[len(e.freqs)-1]++
		e.places = append(e.places, uint32(t))
	}
}

// encode encodes ascending tokens; see split. It returns the number of documents, and both pieces without checksums,
// which are valid until the next call.
func (e *listEncoder) encode(tokens []uint64, first uint32) (documents int, postings, positions []byte) {
	e.split(tokens, first)
	e.heads, e.blocks, e.positions = e.heads[:0], e.blocks[:0], e.positions[:0]
	docs, freqs, rest := e.docs, e.freqs, e.places
	next := uint32(0) // the lowest document that may follow
	var v [group]uint32
	// Pack full blocks. The head of each tells where the next one begins.
	for ; len(docs) >= group; docs, freqs = docs[group:], freqs[group:] {
		base, block, pos := next, len(e.blocks), len(e.positions)
		count := 0
		for i, d := range docs[:group] {
			v[i] = d - next
			next = d + 1
			count += int(freqs[i])
		}
		e.blocks = appendGroup(e.blocks, &v)
		for i, f := range freqs[:group] {
			v[i] = f - 1
		}
		e.blocks = appendGroup(e.blocks, &v)
		e.positions = appendPositions(e.positions, freqs[:group], rest[:count])
		rest = rest[count:]
		e.heads = binary.AppendUvarint(e.heads, uint64(next-base))
		e.heads = binary.AppendUvarint(e.heads, uint64(len(e.blocks)-block))
		e.heads = binary.AppendUvarint(e.heads, uint64(len(e.positions)-pos))
	}
	// The rest takes varints.
	for i, d := range docs {
		v := uint64(d-next) << 1
		next = d + 1
		if freqs[i] == 1 {
			e.blocks = binary.AppendUvarint(e.blocks, v|1)
		} else {
			e.blocks = binary.AppendUvarint(binary.AppendUvarint(e.blocks, v), uint64(freqs[i]-2))
		}
	}
	e.positions = appendPositions(e.positions, freqs, rest)
	e.heads = append(e.heads, e.blocks...)
	return len(e.docs), e.heads, e.positions
}

func appendPositions(dst []byte, freqs, positions []uint32) []byte {
	at := 0
	for _, f := range freqs {
		before := uint32(0)
		for i := range positions[at : at+int(f)] {
			p := positions[at+i]
			positions[at+i] = p - before
			before = p
		}
		at += int(f)
	}
	for len(positions) >= group {
		dst = appendGroup(dst, (*[group]uint32)(positions))
		positions = positions[group:]
	}
	for _, d := range positions {
		dst = binary.AppendUvarint(dst, uint64(d))
	}
	return dst
}

// noDocument is the value of Doc after the last document.
const noDocument = 1<<32 - 1

// Postings iterates over the documents of a term in one field, in order. It starts before the first. It is for one
// goroutine.
type Postings struct {
	documents uint32 // of the segment
	count     int    // of the list
	blocks    []block
	block     int    // the unpacked one
	rest      []byte // of the postings, followed by the positions of an inline list
	positions []byte // nil if not read
	inline    bool
	err       error

	i, n   int // the current document in docs, and their number
	docs   [group]uint32
	freqs  [group]uint32
	packed []byte // freqs, if they are not unpacked yet

	at positionCursor
}

// block is a full block, as the head of a list describes it.
type block struct {
	base, last uint32 // least document that may be in the block, and its last document
	data       []byte
	positions  int // offset
}

// open starts a list. positions is nil if they were not requested.
func (p *Postings) open(info *TermInfo, documents int, postings, positions []byte) error {
	*p = Postings{documents: uint32(documents), count: info.Documents, blocks: p.blocks[:0], block: -1, i: -1, positions: positions}
	p.inline = info.list.inline != nil
	full := info.Documents / group
	if full > len(postings) || full > 0 && p.inline {
		return wire.Damaged("%d documents in %d bytes", info.Documents, len(postings))
	}
	c := &wire.Cursor{Rest: postings}
	p.blocks = slices.Grow(p.blocks, full)
	var next, off uint64
	sizes := make([]int, full)
	for i := range full {
		b := block{base: uint32(next), positions: int(off)}
		next += c.Uvarint(uint64(documents))
		b.last = uint32(next - 1)
		sizes[i] = int(c.Uvarint(uint64(len(postings))))
		off += c.Uvarint(1 << 32)
		if next > uint64(documents) || next < uint64(b.base)+group || p.positions != nil && off > uint64(len(positions)) {
			c.Fail("head of a block")
		}
		if c.Err != nil {
			return c.Err
		}
		p.blocks = append(p.blocks, b)
	}
	for i := range p.blocks {
		p.blocks[i].data = c.Take(uint64(sizes[i]))
	}
	p.rest = c.Rest
	// The rest is a block as well, to the end of the positions.
	p.blocks = append(p.blocks, block{base: uint32(next), last: noDocument, positions: int(off)})
	return c.Err
}

// Err returns the error that ended the list early, if any.
func (p *Postings) Err() error { return p.err }

// Doc returns the current document, 1<<32-1 after the last.
func (p *Postings) Doc() uint32 { return p.docs[p.i&(group-1)] }

// Next advances to the next document and reports whether it exists.
func (p *Postings) Next() bool {
	if p.i++; p.i < p.n {
		return true
	}
	return p.load(p.block + 1)
}

// Advance advances to the first document that is not before to, and reports whether it exists. It may stay where it is,
// and never goes back.
func (p *Postings) Advance(to uint32) bool {
	b := max(p.block, 0)
	if b < len(p.blocks) && p.blocks[b].last < to {
		rest := p.blocks[b+1 : len(p.blocks)-1]
		b += 1 + sort.Search(len(rest), func(i int) bool { return rest[i].last >= to })
	}
	if b != p.block && !p.load(b) {
		return false
	}
	from := max(p.i, 0)
	i, _ := slices.BinarySearch(p.docs[from:max(p.n, from)], to)
	if p.i = from + i; p.i < p.n {
		return true
	}
	return p.load(p.block + 1)
}

// finish ends the list.
func (p *Postings) finish(err error) bool {
	if p.err == nil {
		p.err = err
	}
	p.block, p.i, p.n = len(p.blocks), 0, 0
	p.docs[0], p.packed = noDocument, nil
	return false
}

// load unpacks the documents of a block and advances to the first.
func (p *Postings) load(b int) bool {
	if b >= len(p.blocks) {
		return p.finish(nil)
	}
	p.block, p.i = b, 0
	p.at.begun = false
	if b == len(p.blocks)-1 {
		return p.loadRest(p.blocks[b].base)
	}
	block := &p.blocks[b]
	if p.packed = unpackGroup(&p.docs, block.data); p.packed == nil {
		return p.finish(wire.Damaged("block of documents"))
	}
	next := uint64(block.base)
	for i, d := range p.docs {
		next += uint64(d)
		p.docs[i] = uint32(next)
		next++
	}
	if next != uint64(block.last)+1 {
		return p.finish(wire.Damaged("last document of a block"))
	}
	p.n = group
	return true
}

// loadRest reads the documents after the last full block.
func (p *Postings) loadRest(base uint32) bool {
	c := &wire.Cursor{Rest: p.rest}
	p.n = p.count % group
	next := uint64(base)
	for i := range p.n {
		v := c.Uvarint(1 << 33)
		p.freqs[i] = 1
		if v&1 == 0 {
			p.freqs[i] = uint32(c.Uvarint(MaxTokens)) + 2
		}
		next += v >> 1
		p.docs[i] = uint32(next)
		next++
	}
	if next > uint64(p.documents) {
		c.Fail("document %d of %d", next-1, p.documents)
	}
	if p.inline {
		p.positions = c.Rest
	} else if err := c.End(); err != nil {
		return p.finish(err)
	}
	if c.Err != nil {
		return p.finish(c.Err)
	}
	p.packed = nil
	if p.n == 0 {
		return p.finish(nil)
	}
	return true
}

// Freq returns how often the current document has the term in the field, at least 1.
func (p *Postings) Freq() int {
	if p.packed != nil {
		p.unpackFreqs()
	}
	return int(p.freqs[p.i&(group-1)])
}

func (p *Postings) unpackFreqs() {
	rest := unpackGroup(&p.freqs, p.packed)
	p.packed = nil
	bad := rest == nil || len(rest) > 0
	for i, f := range p.freqs {
		bad = bad || f > MaxTokens
		p.freqs[i] = f + 1
	}
	if bad { // the documents are valid; Err reports the damage
		for i := range p.freqs {
			p.freqs[i] = 1
		}
		p.err = wire.Damaged("block of frequencies")
	}
}

// Positions appends the positions of the term in the current document, ascending. It appends nothing if they were
// not requested.
func (p *Postings) Positions(buf []int32) []int32 {
	if p.positions == nil || p.n == 0 {
		return buf
	}
	n := p.Freq()
	if !p.at.begun || p.at.doc > p.i { // the first call for this block, or a second one for a document
		p.beginPositions()
	}
	for ; p.at.doc < p.i; p.at.doc++ {
		p.at.skip(int(p.freqs[p.at.doc]))
	}
	at, start := uint64(0), len(buf)
	for n > 0 {
		if p.at.i == p.at.n && !p.at.fill() {
			p.err = wire.Damaged("positions cut short")
			return buf[:start]
		}
		now := p.at.v[p.at.i:min(p.at.n, p.at.i+n)]
		for _, d := range now {
			at += uint64(d)
			buf = append(buf, int32(at))
		}
		if at > MaxPosition {
			p.err = wire.Damaged("position %d", at)
			return buf[:start]
		}
		p.at.i, n = p.at.i+len(now), n-len(now)
	}
	p.at.doc++
	return buf
}

// beginPositions goes to the positions of the first document of the block.
func (p *Postings) beginPositions() {
	end := len(p.positions)
	if p.block+1 < len(p.blocks) {
		end = p.blocks[p.block+1].positions
	}
	at := &p.at
	at.begun, at.doc, at.i, at.n, at.left = true, 0, 0, 0, 0
	at.b = p.positions[p.blocks[p.block].positions:end]
	for _, f := range p.freqs[:p.n] {
		at.left += int(f)
	}
}

// positionCursor reads the positions of a block, by differences.
type positionCursor struct {
	begun bool
	doc   int    // document of the block whose positions are next
	b     []byte // bytes not unpacked yet
	left  int    // numbers in b
	i, n  int    // of v
	v     [group]uint32
}

// fill unpacks the next group, or the rest after the last group.
func (c *positionCursor) fill() bool {
	c.i, c.n = 0, 0
	if c.left >= group {
		if c.b = unpackGroup(&c.v, c.b); c.b == nil {
			c.left = 0
			return false
		}
		c.left, c.n = c.left-group, group
		return true
	}
	r := wire.Cursor{Rest: c.b}
	for i := range c.left {
		c.v[i] = uint32(r.Uvarint(MaxPosition))
	}
	if r.Err != nil || c.left == 0 {
		c.left = 0
		return false
	}
	c.b, c.n, c.left = r.Rest, c.left, 0
	return true
}

// skip skips n differences. It does not unpack whole groups of them.
func (c *positionCursor) skip(n int) {
	k := min(n, c.n-c.i)
	c.i, n = c.i+k, n-k
	for n >= group && c.left >= group {
		size := groupSize(c.b)
		if size == 0 {
			c.left = 0
			return
		}
		c.b, c.left, n = c.b[size:], c.left-group, n-group
	}
	if n > 0 && c.fill() {
		c.skip(n)
	}
}

// checked returns a piece of a list without its checksum, after checking it.
func checked(b []byte) ([]byte, error) {
	n := len(b) - 4
	if n < 0 || wire.Checksum(b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		return nil, wire.Damaged("checksum of a list")
	}
	return b[:n:n], nil
}

func appendChecked(dst, b []byte) []byte {
	return binary.LittleEndian.AppendUint32(append(dst, b...), wire.Checksum(b))
}

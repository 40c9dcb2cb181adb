package segment

import (
	"bytes"
	"encoding/binary"
	"sort"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// The dictionary has the terms of all fields in order, so one read finds the lists of a term in all fields, which
// are neighbours as well. It is cut into blocks; the index has the first term of each. A block has for each term:
//
//	bytes shared with the previous term, the rest with its length,
//	a bit for each field that has it, and for each such field:
//	documents, doubled, plus 1 if the list is inline; occurrences minus documents;
//	inline: length and bytes; otherwise: lengths of both pieces of the list
//
// The lists of a term have the postings of all its fields first, then the positions.
const (
	dictBlock = 8 << 10 // raw bytes after which a block ends
	// maxDictBlock bounds a block with the longest entry at its end.
	maxDictBlock = dictBlock + MaxTerm + 16 + int64(NumFields)*(inlineList+32)
)

// dictRef is the entry of a block in the index.
type dictRef struct {
	first string
	piece piece
	lists int64 // offset of the lists of the block's terms
	end   int64 // end of these lists
}

// dictWriter writes the dictionary and the lists.
type dictWriter struct {
	enc    listEncoder
	first  uint32 // number of the first document in tokens
	lists  []byte
	dict   []byte
	refs   []dictRef // offsets within lists and dict
	block  []byte
	later  []byte // scratch: positions of a term
	before string
	terms  int
	tokens [NumFields]int64
}

// add appends a term, which must be higher than the previous one, with its tokens in each field; see
// listEncoder.split. A field without tokens does not have the term.
func (w *dictWriter) add(term string, lists *[NumFields][]uint64) {
	if len(w.block) >= dictBlock {
		w.flush()
	}
	if len(w.block) == 0 {
		w.refs = append(w.refs, dictRef{first: term, lists: int64(len(w.lists))})
		w.before = ""
	}
	w.terms++
	b := appendShared(w.block, w.before, term)
	w.before = term
	form := strings.HasSuffix(term, FormMark)
	mask, at := byte(0), len(b)
	b = append(b, 0)
	later := w.later[:0]
	for f := range NumFields {
		if len(lists[f]) == 0 {
			continue
		}
		mask |= 1 << f
		if !form {
			w.tokens[f] += int64(len(lists[f]))
		}
		documents, post, pos := w.enc.encode(lists[f], w.first)
		inline := len(post)+len(pos) <= inlineList && documents < group
		head := uint64(documents) << 1
		if inline {
			head |= 1
		}
		b = binary.AppendUvarint(b, head)
		b = binary.AppendUvarint(b, uint64(len(lists[f])-documents))
		if inline {
			b = binary.AppendUvarint(b, uint64(len(post)+len(pos)))
			b = append(append(b, post...), pos...)
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(post)+4))
		b = binary.AppendUvarint(b, uint64(len(pos)+4))
		w.lists = appendChecked(w.lists, post)
		later = appendChecked(later, pos)
	}
	w.lists, w.later = append(w.lists, later...), later
	b[at] = mask
	w.block = b
}

func (w *dictWriter) flush() {
	if len(w.block) == 0 {
		return
	}
	ref := &w.refs[len(w.refs)-1]
	w.dict, ref.piece = appendPiece(w.dict, w.block)
	ref.end = int64(len(w.lists))
	w.block = w.block[:0]
}

// dictCursor iterates over the terms of a block.
type dictCursor struct {
	c         wire.Cursor
	documents int
	lists     int64
	end       int64
	term      []byte
	infos     [NumFields]TermInfo // inline lists are views of the block
}

func (ref *dictRef) open(raw []byte, documents int) *dictCursor {
	return &dictCursor{c: wire.Cursor{Rest: raw}, documents: documents, lists: ref.lists, end: ref.end}
}

// next advances to the next term. It returns false at the end of the block, or if it is damaged: see c.Err.
func (d *dictCursor) next() bool {
	c := &d.c
	if len(c.Rest) == 0 {
		if c.Err == nil && d.lists != d.end {
			c.Fail("lists of %d bytes too many", d.end-d.lists)
		}
		return false
	}
	d.term = readShared(c, d.term, MaxTerm)
	mask := c.Uvarint(1<<NumFields - 1)
	if mask == 0 || len(d.term) == 0 {
		c.Fail("term in no field, or none")
	}
	for f := range NumFields {
		d.infos[f] = TermInfo{}
		if mask&(1<<f) == 0 {
			continue
		}
		info := &d.infos[f]
		head := c.Uvarint(uint64(d.documents)<<1 | 1)
		info.Documents = int(head >> 1)
		info.Occurrences = int64(head>>1) + int64(c.Uvarint(1<<40))
		if info.Documents == 0 {
			c.Fail("term in no document")
		}
		if head&1 != 0 {
			info.list.inline = c.Prefixed(inlineList)
			continue
		}
		info.list.size = int64(c.Uvarint(uint64(max(d.end-d.lists, 0))))
		info.list.length = int64(c.Uvarint(uint64(max(d.end-d.lists, 0))))
		info.list.postings = d.lists
		d.lists += info.list.size
	}
	for f := range NumFields {
		if l := &d.infos[f].list; l.size > 0 {
			l.positions = d.lists
			d.lists += l.length
		}
	}
	if d.lists > d.end {
		c.Fail("lists of a term beyond those of its block")
	}
	return c.Err == nil
}

// kept returns the current infos without references to the block.
func (d *dictCursor) kept() [NumFields]TermInfo {
	infos := d.infos
	for f := range infos {
		infos[f].list.inline = bytes.Clone(infos[f].list.inline)
	}
	return infos
}

// blockOf returns the only block of the dictionary that may have the term, or -1 if the term is before all blocks.
func (x *index) blockOf(term string) int {
	return sort.Search(len(x.dict), func(i int) bool { return x.dict[i].first > term }) - 1
}

// Lookup looks a term up in all fields: Documents is 0 in fields without it. It reads one range, or none if the term is
// before all others.
func (r *Reader) Lookup(term string) (infos [NumFields]TermInfo, err error) {
	b := r.x.blockOf(term)
	if b < 0 || len(term) > MaxTerm {
		return infos, nil
	}
	err = r.eachTerm(b, func(d *dictCursor) bool {
		if string(d.term) == term {
			infos = d.kept()
		}
		return string(d.term) < term
	})
	return infos, err
}

// Terms calls f for each term that begins with prefix, in order, except forms ([FormMark]). It reads one range for each
// block of the dictionary (some thousand terms), at most the given number of blocks; cut reports that more blocks may have
// such terms.
func (r *Reader) Terms(prefix string, blocks int, f func(term string, infos [NumFields]TermInfo)) (cut bool, err error) {
	first, n := r.blocks(prefix)
	for b := first; b < first+min(n, blocks) && err == nil; b++ {
		err = r.eachTerm(b, func(d *dictCursor) bool {
			begins := bytes.HasPrefix(d.term, []byte(prefix))
			if begins && !bytes.HasSuffix(d.term, []byte(FormMark)) {
				f(string(d.term), d.kept())
			}
			return begins || string(d.term) < prefix
		})
	}
	return n > blocks, err
}

// Blocks returns how many blocks of the dictionary may have terms that begin with prefix. It reads nothing.
func (r *Reader) Blocks(prefix string) int {
	_, n := r.blocks(prefix)
	return n
}

// blocks returns the blocks of the dictionary that may have terms that begin with prefix.
func (r *Reader) blocks(prefix string) (first, n int) {
	first = max(r.x.blockOf(prefix), 0)
	return first, sort.Search(len(r.x.dict)-first, func(i int) bool {
		term := r.x.dict[first+i].first
		return term > prefix && !strings.HasPrefix(term, prefix)
	})
}

// eachTerm reads a block of the dictionary and calls f for each of its terms, until f returns false.
func (r *Reader) eachTerm(block int, f func(*dictCursor) bool) error {
	ref := &r.x.dict[block]
	err := r.inflate(ref.piece, func(raw []byte) error {
		d := ref.open(raw, r.x.summary.Documents)
		for d.next() {
			if !f(d) {
				return nil
			}
		}
		return d.c.Err
	})
	if err != nil {
		return readError("dictionary", err)
	}
	return nil
}

// Bytes returns the size of the term's list.
func (t *TermInfo) Bytes(withPositions bool) int64 {
	n := int64(len(t.list.inline)) + t.list.size
	if withPositions {
		n += t.list.length
	}
	return n
}

// Postings reads the list of a term, with the positions if requested. It reads one range, or two if many bytes lie
// in between; none if the list is short, because the dictionary has it.
func (r *Reader) Postings(info TermInfo, withPositions bool) (*Postings, error) {
	p := &Postings{}
	if err := r.postings(p, &info, withPositions); err != nil {
		return nil, readError("postings", err) // without the term, because logs must not contain the words of queries
	}
	return p, nil
}

// nearby bounds the unused bytes that are read to save a second read.
const nearby = 32 << 10

func (r *Reader) postings(p *Postings, info *TermInfo, withPositions bool) error {
	l := &info.list
	if info.Documents == 0 || l.inline != nil {
		return p.open(info, r.x.summary.Documents, l.inline, nil)
	}
	size := l.size
	joined := withPositions && l.positions-(l.postings+l.size) <= nearby
	if joined {
		size = l.positions + l.length - l.postings
	}
	b, err := r.read(l.postings, size)
	if err != nil {
		return err
	}
	var positions []byte
	switch {
	case joined:
		positions = b[l.positions-l.postings:]
	case withPositions:
		if positions, err = r.read(l.positions, l.length); err != nil {
			return err
		}
	}
	postings, err := checked(b[:l.size])
	if err == nil && withPositions {
		positions, err = checked(positions)
	}
	if err != nil {
		return err
	}
	return p.open(info, r.x.summary.Documents, postings, positions)
}

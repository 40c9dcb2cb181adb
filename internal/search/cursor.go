package search

import (
	"context"
	"math"
	"slices"
	"sort"

	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/internal/token"
)

// end is where a cursor is that has no more documents.
const end = math.MaxUint32

// cursor goes through the documents that have something in one field. It begins at the first.
type cursor interface {
	// at is the document, or end.
	at() uint32
	// seek goes to the first document from to on; it never goes back.
	seek(to uint32)
	// freq is how often the document has it.
	freq() int
	// positions appends where it begins there, ascending. Only cursors made with positions
	// know.
	positions(buf []int32) []int32
}

// meter bounds what is looked at of the lists of a segment: when it is used up, or whoever asked gave
// up, they all end.
type meter struct {
	ctx  context.Context
	left int64 // places in lists
	out  bool  // it is used up
	err  error // of ctx
}

// look counts n places, and reports whether they may be looked at.
func (m *meter) look(n int64) bool {
	const often = 1 << 12
	if m.left/often != (m.left-n)/often && m.err == nil {
		m.err = m.ctx.Err()
	}
	m.left -= n
	m.out = m.out || m.left < 0 || m.err != nil
	return !m.out
}

// listCursor goes through the postings of one term.
type listCursor struct {
	p     *segment.Postings
	meter *meter
	doc   uint32
}

func newList(p *segment.Postings, m *meter) *listCursor {
	c := &listCursor{p: p, meter: m, doc: end}
	if p.Next() {
		c.doc = p.Doc()
	}
	return c
}

func (c *listCursor) at() uint32 { return c.doc }

func (c *listCursor) seek(to uint32) {
	if c.doc >= to {
		return
	}
	more := c.meter.look(1)
	switch {
	case !more:
	case to == c.doc+1:
		more = c.p.Next()
	default:
		more = c.p.Advance(to)
	}
	if c.doc = end; more {
		c.doc = c.p.Doc()
	}
}

func (c *listCursor) freq() int { return c.p.Freq() }

func (c *listCursor) positions(buf []int32) []int32 {
	c.meter.look(int64(c.p.Freq() / 16)) // they are read fast
	return c.p.Positions(buf)
}

// anyCursor goes through what any of several cursors has. If they are spellings of one word, as
// Chinese words and their characters by twos, they may be in the same place: the most frequent
// counts. Else all do.
type anyCursor struct {
	of  []cursor
	all bool
	doc uint32
}

// newAny joins cursors; nil if there are none.
func newAny(of []cursor, all bool) cursor {
	switch len(of) {
	case 0:
		return nil
	case 1:
		return of[0]
	}
	c := &anyCursor{of: of, all: all}
	c.least()
	return c
}

func (c *anyCursor) least() {
	c.doc = end
	for _, o := range c.of {
		c.doc = min(c.doc, o.at())
	}
}

func (c *anyCursor) at() uint32 { return c.doc }

func (c *anyCursor) seek(to uint32) {
	if c.doc >= to {
		return
	}
	for _, o := range c.of {
		o.seek(to)
	}
	c.least()
}

func (c *anyCursor) freq() (n int) {
	for _, o := range c.of {
		switch {
		case o.at() != c.doc:
		case c.all:
			n += o.freq()
		default:
			n = max(n, o.freq())
		}
	}
	return n
}

func (c *anyCursor) positions(buf []int32) []int32 {
	from := len(buf)
	for _, o := range c.of {
		if o.at() == c.doc {
			buf = o.positions(buf)
		}
	}
	slices.Sort(buf[from:])
	return buf[:from+len(slices.Compact(buf[from:]))]
}

// rowCursor goes through what several cursors have in a row, each so far after the first.
type rowCursor struct {
	of      []cursor
	offsets []int32
	doc     uint32
	starts  []int32 // in the document
	scratch [2][]int32
}

func newRow(of []cursor, offsets []int32) cursor {
	if len(of) == 1 {
		return of[0]
	}
	c := &rowCursor{of: of, offsets: offsets}
	c.find(0)
	return c
}

func (c *rowCursor) at() uint32 { return c.doc }

func (c *rowCursor) seek(to uint32) {
	if c.doc < to {
		c.find(to)
	}
}

func (c *rowCursor) find(to uint32) {
	for {
		for i := 0; i < len(c.of); i++ {
			c.of[i].seek(to)
			if d := c.of[i].at(); d > to {
				if to = d; to == end {
					c.doc = end
					return
				}
				i = -1 // all of them once more
			}
		}
		if c.doc = to; to == end || c.match() {
			return
		}
		to++
	}
}

// match finds where the row begins in the document that all are at.
func (c *rowCursor) match() bool {
	c.starts = c.of[0].positions(c.starts[:0])
	for i := 1; i < len(c.of) && len(c.starts) > 0; i++ {
		next := c.of[i].positions(c.scratch[0][:0])
		c.scratch[0] = next
		kept, j := c.starts[:0], 0
		for _, p := range c.starts {
			want := p + c.offsets[i] - c.offsets[0]
			for j < len(next) && next[j] < want {
				j++
			}
			if j < len(next) && next[j] == want {
				kept = append(kept, p)
			}
		}
		c.starts = kept
	}
	return len(c.starts) > 0
}

func (c *rowCursor) freq() int                     { return len(c.starts) }
func (c *rowCursor) positions(buf []int32) []int32 { return append(buf, c.starts...) }

// hit is a document that an anchor text is of.
type hit struct {
	doc    uint32
	freq   int32
	length int32 // of all its anchor texts, in tokens
}

// hitsCursor goes through documents that were found elsewhere. It knows no positions.
type hitsCursor struct {
	hits []hit // by document
	i    int
}

func (c *hitsCursor) at() uint32 {
	if c.i == len(c.hits) {
		return end
	}
	return c.hits[c.i].doc
}

func (c *hitsCursor) seek(to uint32) {
	c.i += sort.Search(len(c.hits)-c.i, func(i int) bool { return c.hits[c.i+i].doc >= to })
}

func (c *hitsCursor) freq() int                     { return int(c.hits[c.i].freq) }
func (c *hitsCursor) positions(buf []int32) []int32 { return buf }

// lister makes cursors of the lists of a segment: nil if a term is not there.
type lister func(term string, f segment.Field, positions bool) (cursor, error)

// words makes the cursor of words in a row in one field: nil if it cannot be there.
func words(list []token.Word, f segment.Field, lists lister) (cursor, error) {
	var row []cursor
	var offsets []int32
	for _, w := range list {
		c, err := word(w, f, len(list) > 1, lists)
		if c == nil || err != nil {
			return nil, err
		}
		row, offsets = append(row, c), append(offsets, w.Position)
	}
	return newRow(row, offsets), nil
}

// word makes the cursor of what a word may be.
func word(w token.Word, f segment.Field, positions bool, lists lister) (cursor, error) {
	var of []cursor
	for _, alt := range w.Alternatives {
		var row []cursor
		var offsets []int32
		for _, t := range alt {
			c, err := lists(t.Text, f, positions || len(alt) > 1)
			if err != nil {
				return nil, err
			}
			if c == nil {
				break
			}
			row, offsets = append(row, c), append(offsets, t.Offset)
		}
		if len(row) == len(alt) {
			of = append(of, newRow(row, offsets))
		}
	}
	return newAny(of, false), nil
}

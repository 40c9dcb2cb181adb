package search

import (
	"cmp"
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
	// freq returns how often the document has it, in any form, and as it was written.
	freq() (n, exact int)
	// places appends where it begins there, ascending. Only cursors made with positions know.
	places(buf []place) []place
	// matched calls f with the terms that the document has.
	matched(f func(term string))
}

// place is a position, doubled, plus 1 if what is there is as it was written.
type place int32

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
	term  string
	p     *segment.Postings
	buf   []int32 // scratch
	meter *meter
	doc   uint32
}

func newList(term string, p *segment.Postings, m *meter) *listCursor {
	c := &listCursor{term: term, p: p, meter: m, doc: end}
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

func (c *listCursor) freq() (n, exact int) { return c.p.Freq(), c.p.Freq() }

func (c *listCursor) matched(f func(string)) { f(c.term) }

func (c *listCursor) places(buf []place) []place {
	c.meter.look(int64(c.p.Freq() / 16)) // they are read fast
	c.buf = c.p.Positions(c.buf[:0])
	for _, p := range c.buf {
		buf = append(buf, place(p)<<1|1)
	}
	return buf
}

// formCursor goes through what another cursor has in documents of some languages: forms of the word
// that was written, not itself.
type formCursor struct {
	cursor
	in func(doc uint32) bool // reports whether a document is in these languages; nil: all are
}

func newForm(c cursor, in func(doc uint32) bool) cursor {
	f := &formCursor{c, in}
	f.seek(0)
	return f
}

func (c *formCursor) seek(to uint32) {
	c.cursor.seek(to)
	for doc := c.at(); c.in != nil && doc != end && !c.in(doc); doc = c.at() {
		c.cursor.seek(doc + 1)
	}
}

func (c *formCursor) freq() (n, exact int) {
	n, _ = c.cursor.freq()
	return n, 0
}

func (c *formCursor) places(buf []place) []place {
	from := len(buf)
	buf = c.cursor.places(buf)
	for i := range buf[from:] {
		buf[from+i] &^= 1
	}
	return buf
}

// anyCursor goes through what any of several cursors has. If they are alternatives of one word, as
// the word and its forms, or a Chinese word and its characters by twos, they may be in the same place:
// the most frequent one counts. Otherwise all of them count.
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

func (c *anyCursor) freq() (n, exact int) {
	for _, o := range c.of {
		if o.at() != c.doc {
			continue
		}
		switch m, e := o.freq(); {
		case c.all:
			n, exact = n+m, exact+e
		default:
			n, exact = max(n, m), max(exact, e)
		}
	}
	return n, exact
}

func (c *anyCursor) places(buf []place) []place {
	from := len(buf)
	for _, o := range c.of {
		if o.at() == c.doc {
			buf = o.places(buf)
		}
	}
	// Of the same position the exact one comes first, and stays.
	slices.SortFunc(buf[from:], func(a, b place) int { return cmp.Compare(a^1, b^1) })
	same := func(a, b place) bool { return a>>1 == b>>1 }
	return buf[:from+len(slices.CompactFunc(buf[from:], same))]
}

func (c *anyCursor) matched(f func(string)) {
	for _, o := range c.of {
		if o.at() == c.doc {
			o.matched(f)
		}
	}
}

// rowCursor goes through what several cursors have in a row, each so far after the first.
type rowCursor struct {
	of      []cursor
	offsets []int32
	doc     uint32
	starts  []place // in the document
	next    []place // scratch
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
	c.starts = c.of[0].places(c.starts[:0])
	for i := 1; i < len(c.of) && len(c.starts) > 0; i++ {
		next := c.of[i].places(c.next[:0])
		c.next = next
		kept, j := c.starts[:0], 0
		for _, p := range c.starts {
			want := p>>1 + place(c.offsets[i]-c.offsets[0])
			for j < len(next) && next[j]>>1 < want {
				j++
			}
			if j < len(next) && next[j]>>1 == want {
				kept = append(kept, p&(next[j]|^1)) // exact only if both are
			}
		}
		c.starts = kept
	}
	return len(c.starts) > 0
}

func (c *rowCursor) freq() (n, exact int) {
	for _, p := range c.starts {
		exact += int(p & 1)
	}
	return len(c.starts), exact
}

func (c *rowCursor) places(buf []place) []place { return append(buf, c.starts...) }

func (c *rowCursor) matched(f func(string)) {
	for _, o := range c.of {
		o.matched(f)
	}
}

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

func (c *hitsCursor) freq() (n, exact int)       { return int(c.hits[c.i].freq), int(c.hits[c.i].freq) }
func (c *hitsCursor) places(buf []place) []place { return buf }
func (c *hitsCursor) matched(func(string))       {}

// lister makes cursors of the lists of a segment.
type lister struct {
	list func(term string, f segment.Field, positions bool) (cursor, error) // nil if the term is not there
	of   *terms                                                             // knows the languages of documents
}

// words makes the cursor of words in a row in one field: nil if it cannot be there.
func words(list []token.Word, f segment.Field, from lister) (cursor, error) {
	var row []cursor
	var offsets []int32
	for _, w := range list {
		c, err := from.word(w, f, len(list) > 1)
		if c == nil || err != nil {
			return nil, err
		}
		row, offsets = append(row, c), append(offsets, w.Position)
	}
	return newRow(row, offsets), nil
}

// word makes the cursor of what a word may be.
func (l lister) word(w token.Word, f segment.Field, positions bool) (cursor, error) {
	var of []cursor
	for i := range w.Alternatives {
		c, err := l.alternative(&w.Alternatives[i], f, positions)
		if err != nil {
			return nil, err
		}
		if c != nil {
			of = append(of, c)
		}
	}
	return newAny(of, false), nil
}

// alternative makes the cursor of one thing that a word may be.
func (l lister) alternative(alt *token.Alternative, f segment.Field, positions bool) (cursor, error) {
	if l.of.documents(alt) == 0 {
		return nil, nil
	}
	var row []cursor
	var offsets []int32
	for _, t := range alt.Terms {
		var of []cursor
		for _, term := range t.Any {
			c, err := l.list(term, f, positions || len(alt.Terms) > 1)
			if err != nil {
				return nil, err
			}
			if c != nil {
				of = append(of, c)
			}
		}
		if len(of) == 0 {
			return nil, nil
		}
		row, offsets = append(row, newAny(of, true)), append(offsets, t.Offset)
	}
	c := newRow(row, offsets)
	if !alt.Exact() {
		c = l.of.form(c, alt)
	}
	return c, nil
}

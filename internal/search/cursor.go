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

// end is the position of a cursor without further documents.
const end = math.MaxUint32

// A cursor iterates over the documents that contain one thing in one field: a word, a phrase or alternatives. It
// is before the first document until the first call of seek.
type cursor interface {
	// at returns the document, or end.
	at() uint32
	// seek goes to the first document that is not before to. It never goes back.
	seek(to uint32)
	// freq returns how often the document contains it, in any form and exactly as the query has it.
	freq() (n, exact int)
	// appendPositions appends the positions where it begins, ascending; none if the cursor was made without positions.
	appendPositions(buf []position) []position
}

// position is twice the number of a token, plus 1 if the token is exactly the word of the query.
type position int32

// meter bounds the work of a query on a segment. When it is used up, or the query is cancelled, all cursors end.
type meter struct {
	ctx  context.Context
	left int64 // entries of lists
	out  bool  // it is used up
	err  error // of ctx
}

// spend counts n entries of lists, and reports whether they may be read.
func (m *meter) spend(n int64) bool {
	const often = 1 << 12
	if m.left/often != (m.left-n)/often && m.err == nil {
		m.err = m.ctx.Err()
	}
	m.left -= n
	m.out = m.out || m.left < 0 || m.err != nil
	return !m.out
}

// listCursor goes through the postings of one term. They are nil until lister.read.
type listCursor struct {
	info      segment.TermInfo
	positions bool
	p         *segment.Postings
	meter     *meter
	begun     bool
	doc       uint32
	buf       []int32 // scratch
}

func (c *listCursor) at() uint32 { return c.doc }

func (c *listCursor) seek(to uint32) {
	if !c.begun {
		c.begun = true
		c.move(c.p.Next())
	}
	if c.doc >= to {
		return
	}
	switch {
	case !c.meter.spend(1):
		c.doc = end
	case to == c.doc+1:
		c.move(c.p.Next())
	default:
		c.move(c.p.Advance(to))
	}
}

func (c *listCursor) move(more bool) {
	if c.doc = end; more {
		c.doc = c.p.Doc()
	}
}

func (c *listCursor) freq() (n, exact int) { return c.p.Freq(), c.p.Freq() }

func (c *listCursor) appendPositions(buf []position) []position {
	c.meter.spend(int64(c.p.Freq() / 16)) // positions are read faster than documents
	c.buf = c.p.Positions(c.buf[:0])
	for _, p := range c.buf {
		buf = append(buf, position(p)<<1|1)
	}
	return buf
}

// formCursor goes through the documents of another cursor that are in some languages: they have a form of the word,
// not the word as it was written.
type formCursor struct {
	cursor
	terms *terms
	alt   *token.Alternative
	in    func(doc uint32) bool // reports whether a document is in the languages; set by the first seek
}

func (c *formCursor) seek(to uint32) {
	if c.in == nil {
		c.in = c.terms.cols.InLangs(func(lang string) bool { return token.LangOf(lang)&c.alt.Langs != 0 })
	}
	c.cursor.seek(to)
	for doc := c.at(); doc != end && !c.in(doc); doc = c.at() {
		c.cursor.seek(doc + 1)
	}
}

func (c *formCursor) freq() (n, exact int) {
	n, _ = c.cursor.freq()
	return n, 0
}

func (c *formCursor) appendPositions(buf []position) []position {
	from := len(buf)
	buf = c.cursor.appendPositions(buf)
	for i := range buf[from:] {
		buf[from+i] &^= 1
	}
	return buf
}

// anyCursor iterates over the documents of several cursors. Alternatives of one word, such as its forms, or a
// Chinese word and its pairs of characters, may be at the same position, so only the most frequent one counts.
// If all is set, the cursors are of different words, and all count.
type anyCursor struct {
	of  []cursor
	all bool
	doc uint32
}

// newAny joins cursors; it returns nil if there are none.
func newAny(of []cursor, all bool) cursor {
	switch len(of) {
	case 0:
		return nil
	case 1:
		return of[0]
	}
	return &anyCursor{of: of, all: all}
}

func (c *anyCursor) at() uint32 { return c.doc }

func (c *anyCursor) seek(to uint32) {
	c.doc = end
	for _, o := range c.of {
		o.seek(to)
		c.doc = min(c.doc, o.at())
	}
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

func (c *anyCursor) appendPositions(buf []position) []position {
	from := len(buf)
	for _, o := range c.of {
		if o.at() == c.doc {
			buf = o.appendPositions(buf)
		}
	}
	// Of equal positions, the exact one comes first and stays.
	slices.SortFunc(buf[from:], func(a, b position) int { return cmp.Compare(a^1, b^1) })
	same := func(a, b position) bool { return a>>1 == b>>1 }
	return buf[:from+len(slices.CompactFunc(buf[from:], same))]
}

// rowCursor iterates over the documents that contain a sequence, each element at its offset from the first.
type rowCursor struct {
	of      []cursor
	offsets []int32
	begun   bool
	doc     uint32
	starts  []position // in the document
	next    []position // scratch
}

func newRow(of []cursor, offsets []int32) cursor {
	if len(of) == 1 {
		return of[0]
	}
	return &rowCursor{of: of, offsets: offsets}
}

func (c *rowCursor) at() uint32 { return c.doc }

func (c *rowCursor) seek(to uint32) {
	if !c.begun || c.doc < to {
		c.begun = true
		c.find(to)
	}
}

func (c *rowCursor) find(to uint32) {
	for {
		// Go to the first document that all cursors have.
		for i := 0; i < len(c.of); i++ {
			c.of[i].seek(to)
			if d := c.of[i].at(); d > to {
				if to = d; to == end {
					c.doc = end
					return
				}
				i = -1 // check all of them again
			}
		}
		// It matches if the row begins somewhere in it.
		if c.doc = to; to == end || c.match() {
			return
		}
		to++
	}
}

// match finds the beginnings of the row in the document that all cursors are at.
func (c *rowCursor) match() bool {
	c.starts = c.of[0].appendPositions(c.starts[:0])
	for i := 1; i < len(c.of) && len(c.starts) > 0; i++ {
		// Keep the beginnings that the i-th cursor continues at its offset.
		next := c.of[i].appendPositions(c.next[:0])
		c.next = next
		kept, j := c.starts[:0], 0
		for _, p := range c.starts {
			want := p>>1 + position(c.offsets[i]-c.offsets[0])
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

func (c *rowCursor) appendPositions(buf []position) []position { return append(buf, c.starts...) }

// hit is a document that an anchor text belongs to.
type hit struct {
	doc    uint32
	freq   int32
	length int32 // of all its anchor texts, in tokens
}

// hitsCursor goes through the documents of anchor texts. It has no positions.
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

func (c *hitsCursor) freq() (n, exact int)                      { return int(c.hits[c.i].freq), int(c.hits[c.i].freq) }
func (c *hitsCursor) appendPositions(buf []position) []position { return buf }

// A lister makes the cursors of a segment for one use. Making them reads nothing, so that all lists can be read together
// afterwards, and none if no document can match.
type lister struct {
	*terms
	meter *meter
	lists []*listCursor // of all cursors made
}

// leaf returns the cursor of a leaf in one field, or nil if the field lacks it.
func (l *lister) leaf(x *leaf, f segment.Field) cursor {
	if !x.fields.has(f) {
		return nil
	}
	if x.prefix == "" {
		return l.words(x.words, f)
	}
	var of []cursor
	for _, info := range l.prefixes[x][f] {
		of = append(of, l.list(info, false))
	}
	return newAny(of, true)
}

func (l *lister) list(info segment.TermInfo, positions bool) cursor {
	c := &listCursor{info: info, positions: positions, meter: l.meter}
	l.lists = append(l.lists, c)
	return c
}

// words returns the cursor of words in a row in one field, nil if the field lacks one of them.
func (l *lister) words(list []token.Word, f segment.Field) cursor {
	made := len(l.lists)
	var row []cursor
	var offsets []int32
	for _, w := range list {
		var of []cursor
		for i := range w.Alternatives {
			if c := l.alternative(&w.Alternatives[i], f, len(list) > 1); c != nil {
				of = append(of, c)
			}
		}
		if len(of) == 0 {
			l.lists = l.lists[:made]
			return nil
		}
		row, offsets = append(row, newAny(of, false)), append(offsets, w.Position)
	}
	return newRow(row, offsets)
}

// alternative returns the cursor of an alternative in one field, nil if the field lacks one of its terms.
func (l *lister) alternative(alt *token.Alternative, f segment.Field, positions bool) cursor {
	missing := func(at token.Term) bool { return l.have(at, f) == 0 }
	if l.documents(alt) == 0 || slices.ContainsFunc(alt.Terms, missing) {
		return nil
	}
	var row []cursor
	var offsets []int32
	for _, at := range alt.Terms {
		var of []cursor
		for _, term := range at.Any {
			if info := l.infos[term][f]; info.Documents > 0 {
				of = append(of, l.list(info, positions || len(alt.Terms) > 1))
			}
		}
		row, offsets = append(row, newAny(of, true)), append(offsets, at.Offset)
	}
	c := newRow(row, offsets)
	if !alt.Exact() {
		c = &formCursor{cursor: c, terms: l.terms, alt: alt}
	}
	return c
}

// size returns the bytes of all lists.
func (l *lister) size() (n int64) {
	for _, c := range l.lists {
		n += c.info.Bytes(c.positions)
	}
	return n
}

// read reads all lists in parallel: one after another, each would wait for the store.
func (l *lister) read() error {
	return parallel(parallelReads/parallelSegments, l.lists, func(_ int, c *listCursor) (err error) {
		c.p, err = l.opened.Postings(c.info, c.positions)
		return err
	})
}

// err returns the first error of going through the lists.
func (l *lister) err() error {
	if l.meter.err != nil {
		return l.meter.err
	}
	for _, c := range l.lists {
		if err := c.p.Err(); err != nil {
			return err
		}
	}
	return nil
}

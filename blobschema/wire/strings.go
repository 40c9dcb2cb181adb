package wire

import (
	"slices"
	"strings"
)

// TextPacker collects strings, most of which begin like the previous one. It keeps the number of
// bytes that a string shares with the previous one, and the rest.
type TextPacker struct {
	prev         string
	shared, tail []uint32
	text         []byte
	expanded     int // bytes of all strings, whole
}

// Add adds a string.
func (p *TextPacker) Add(s string) {
	n := 0
	for n < len(s) && n < len(p.prev) && s[n] == p.prev[n] {
		n++
	}
	p.shared = append(p.shared, uint32(n))
	p.tail = append(p.tail, uint32(len(s)-n))
	p.text = append(p.text, s[n:]...)
	p.expanded += len(s)
	p.prev = s
}

// Size returns the size of the text that Append writes, and that of all whole strings, in bytes.
func (p *TextPacker) Size() (packed, whole int) { return len(p.text), p.expanded }

// After replaces the previous string.
func (p *TextPacker) After(s string) { p.prev = s }

// Reset drops all strings.
func (p *TextPacker) Reset() {
	*p = TextPacker{shared: p.shared[:0], tail: p.tail[:0], text: p.text[:0]}
}

// Append appends the strings: two columns and the text.
func (p *TextPacker) Append(dst []byte) []byte {
	n := len(p.shared)
	dst = AppendColumn(dst, n, func(i int) uint64 { return uint64(p.shared[i]) })
	dst = AppendValues(dst, n, func(i int) uint64 { return uint64(p.tail[i]) })
	return append(dst, p.text...)
}

// textChunk is the size, in bytes, of an allocation that decoded strings share. A string
// keeps its chunk in memory, so this is also the memory that one URL can retain.
const textChunk = 4 << 10

// TextUnpacker reads the strings of a TextPacker.
type TextUnpacker struct {
	prev         string
	shared, tail []uint32
	text         []byte
	i            int
	left         int // bytes of strings still to come
	chunk        strings.Builder
}

// Read reads n strings of at most each bytes, and whole bytes in total, for Next. It checks all
// lengths before any string is expanded.
func (u *TextUnpacker) Read(c *Cursor, n, each, whole int) {
	u.prev, u.i, u.left = "", 0, 0
	u.shared, u.tail = slices.Grow(u.shared[:0], n)[:n], slices.Grow(u.tail[:0], n)[:n]
	c.Column(n, uint64(each), func(i int, v uint64) { u.shared[i] = uint32(v) })
	var tails int
	c.Values(n, uint64(each), func(i int, v uint64) { u.tail[i] = uint32(v); tails += int(v) })
	if c.Err != nil {
		return
	}
	for i, s := range u.shared {
		length := int(s + u.tail[i])
		if length > each {
			c.Fail("text of %d bytes", length)
			return
		}
		u.left += length
	}
	if u.left > whole {
		c.Fail("texts of %d bytes", u.left)
		return
	}
	u.text = c.Take(uint64(tails))
}

// After replaces the previous string, as in the packer.
func (u *TextUnpacker) After(s string) { u.prev = s }

// Next returns the next string.
func (u *TextUnpacker) Next(c *Cursor) string {
	shared, tail := int(u.shared[u.i]), int(u.tail[u.i])
	u.i++
	if shared > len(u.prev) {
		c.Fail("%d bytes shared with a text of %d", shared, len(u.prev))
		return ""
	}
	n := shared + tail
	if u.chunk.Cap()-u.chunk.Len() < n {
		u.chunk = strings.Builder{}
		u.chunk.Grow(max(n, min(textChunk, u.left)))
	}
	u.left -= n
	start := u.chunk.Len()
	u.chunk.WriteString(u.prev[:shared])
	u.chunk.Write(u.text[:tail])
	u.text = u.text[tail:]
	u.prev = u.chunk.String()[start:]
	return u.prev
}

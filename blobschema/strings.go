package blobschema

import (
	"encoding/binary"
	"slices"
	"strings"
)

// textPacker collects strings that mostly begin like the one before. Each is kept
// as the number of bytes it shares with it and the rest.
type textPacker struct {
	prev         string
	shared, tail []uint32
	text         []byte
	expanded     int // bytes of all strings, whole
}

func (p *textPacker) add(s string) {
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

func (p *textPacker) reset() {
	*p = textPacker{shared: p.shared[:0], tail: p.tail[:0], text: p.text[:0]}
}

// append writes the strings: two columns and the text.
func (p *textPacker) append(dst []byte) []byte {
	n := len(p.shared)
	dst = appendColumn(dst, n, func(i int) uint64 { return uint64(p.shared[i]) })
	dst = appendValues(dst, n, func(i int) uint64 { return uint64(p.tail[i]) })
	return append(dst, p.text...)
}

// textChunk is how much text decoded strings share one allocation of. A string
// that is kept keeps its chunk, so this is also what one URL can hold on to.
const textChunk = 4 << 10

// textUnpacker gives back what a textPacker wrote.
type textUnpacker struct {
	prev         string
	shared, tail []uint32
	text         []byte
	i            int
	left         int // bytes of strings still to come
	chunk        strings.Builder
}

// read reads n strings of at most each bytes, whole bytes in all, and is ready to
// give them out. Nothing is expanded before all lengths are found in bounds.
func (u *textUnpacker) read(c *cursor, n, each, whole int) {
	u.prev, u.i, u.left = "", 0, 0
	u.shared, u.tail = slices.Grow(u.shared[:0], n)[:n], slices.Grow(u.tail[:0], n)[:n]
	c.column(n, uint64(each), func(i int, v uint64) { u.shared[i] = uint32(v) })
	var tails int
	c.values(n, uint64(each), func(i int, v uint64) { u.tail[i] = uint32(v); tails += int(v) })
	if c.err != nil {
		return
	}
	for i, s := range u.shared {
		length := int(s + u.tail[i])
		if length > each {
			c.fail("text of %d bytes", length)
			return
		}
		u.left += length
	}
	if u.left > whole {
		c.fail("texts of %d bytes", u.left)
		return
	}
	u.text = c.take(uint64(tails))
}

// next returns the next string. Its prefix comes from u.prev, which the caller may
// set between calls as the packer's caller did.
func (u *textUnpacker) next(c *cursor) string {
	shared, tail := int(u.shared[u.i]), int(u.tail[u.i])
	u.i++
	if shared > len(u.prev) {
		c.fail("%d bytes shared with a text of %d", shared, len(u.prev))
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

// appendURLs writes what travels of a list of URLs: URL, Depth, Generation, Flags,
// Rank and Topic, Host of those that are placed, and Ask of those with FlagAgain. The caller has them sorted by URL, so
// that prefixes are shared.
func appendURLs(dst []byte, urls []Queued) []byte {
	n := len(urls)
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = appendColumn(dst, n, func(i int) uint64 { return uint64(urls[i].Depth) })
	dst = appendColumn(dst, n, func(i int) uint64 { return uint64(urls[i].Generation) })
	dst = appendColumn(dst, n, func(i int) uint64 { return uint64(urls[i].Flags) })
	dst = appendColumn(dst, n, func(i int) uint64 { return uint64(urls[i].Rank) })
	dst = appendColumn(dst, n, func(i int) uint64 { return uint64(urls[i].Topic) })
	var p textPacker
	for i := range urls {
		p.add(urls[i].URL)
	}
	dst = p.append(dst)
	for i := range urls {
		if urls[i].Flags&FlagPlaced != 0 {
			dst = appendPrefixed(dst, urls[i].Host)
		}
		if urls[i].Flags&FlagAgain != 0 {
			dst = binary.AppendUvarint(dst, urls[i].Ask)
		}
	}
	return dst
}

// urls reads what appendURLs wrote, at most most URLs of whole bytes in all.
func (c *cursor) urls(most, whole int) []Queued {
	n := c.count(1)
	if n > most {
		c.fail("%d URLs", n)
	}
	if n == 0 || c.err != nil {
		return nil
	}
	urls := make([]Queued, n)
	c.column(n, 1<<16-1, func(i int, v uint64) { urls[i].Depth = uint16(v) })
	c.column(n, 1<<32-1, func(i int, v uint64) { urls[i].Generation = uint32(v) })
	c.column(n, 1<<8-1, func(i int, v uint64) { urls[i].Flags = QueuedFlags(v) })
	c.column(n, 1<<32-1, func(i int, v uint64) { urls[i].Rank = uint32(v) })
	c.column(n, 1<<8-1, func(i int, v uint64) { urls[i].Topic = uint8(v) })
	var u textUnpacker
	u.read(c, n, maxURL, whole)
	for i := 0; i < n && c.err == nil; i++ {
		urls[i].URL = u.next(c)
	}
	for i := 0; i < n && c.err == nil; i++ {
		if urls[i].Flags&FlagPlaced != 0 {
			urls[i].Host = string(c.prefixed(maxHost))
		}
		if urls[i].Flags&FlagAgain != 0 {
			urls[i].Ask = c.uvarint(1<<64 - 1)
		}
	}
	return urls
}

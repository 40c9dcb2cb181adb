package blobschema

import (
	"encoding/binary"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// encodeURLs encodes the fields of URLs that are part of mail: URL, Depth, Generation, Flags, Rank and Topic, Key with
// FlagPlaced, and Ask with FlagAgain. The caller sorts them by URL, so that neighbours share prefixes.
func encodeURLs(urls []Queued) []byte {
	n := len(urls)
	dst := binary.AppendUvarint(nil, uint64(n))
	dst = wire.AppendColumn(dst, n, func(i int) uint64 { return uint64(urls[i].Depth) })
	dst = wire.AppendColumn(dst, n, func(i int) uint64 { return uint64(urls[i].Generation) })
	dst = wire.AppendColumn(dst, n, func(i int) uint64 { return uint64(urls[i].Flags) })
	dst = wire.AppendColumn(dst, n, func(i int) uint64 { return uint64(urls[i].Rank) })
	dst = wire.AppendColumn(dst, n, func(i int) uint64 { return uint64(urls[i].Topic) })
	var p wire.TextPacker
	for i := range urls {
		p.Add(urls[i].URL)
	}
	dst = p.Append(dst)
	for i := range urls {
		if urls[i].Flags&FlagPlaced != 0 {
			dst = wire.AppendPrefixed(dst, urls[i].Key)
		}
		if urls[i].Flags&FlagAgain != 0 {
			dst = binary.AppendUvarint(dst, urls[i].Ask)
		}
	}
	return dst
}

// readURLs decodes the result of encodeURLs: at most most URLs with whole bytes in total.
func readURLs(c *wire.Cursor, most, whole int) []Queued {
	n := c.Count(1)
	if n > most {
		c.Fail("%d URLs", n)
	}
	if n == 0 || c.Err != nil {
		return nil
	}
	urls := make([]Queued, n)
	c.Column(n, 1<<16-1, func(i int, v uint64) { urls[i].Depth = uint16(v) })
	c.Column(n, 1<<32-1, func(i int, v uint64) { urls[i].Generation = uint32(v) })
	c.Column(n, flagBits, func(i int, v uint64) { urls[i].Flags = QueuedFlags(v) })
	c.Column(n, 1<<32-1, func(i int, v uint64) { urls[i].Rank = uint32(v) })
	c.Column(n, 1<<8-1, func(i int, v uint64) { urls[i].Topic = uint8(v) })
	var u wire.TextUnpacker
	u.Read(c, n, wire.MaxURL, whole)
	for i := 0; i < n && c.Err == nil; i++ {
		urls[i].URL = u.Next(c)
	}
	for i := 0; i < n && c.Err == nil; i++ {
		if urls[i].Flags&FlagPlaced != 0 {
			urls[i].Key = string(c.Prefixed(wire.MaxHost))
		}
		if urls[i].Flags&FlagAgain != 0 {
			urls[i].Ask = c.Uvarint(1<<64 - 1)
		}
	}
	return urls
}

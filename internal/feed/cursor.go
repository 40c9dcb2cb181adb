package feed

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// Now names the position behind all commits that are visible when a reader begins.
const Now = "now"

// ErrCursor means that a reader cannot begin or go on at a cursor. The message says where it can.
var ErrCursor = errors.New("the cursor cannot be used")

// Cursor is a position in the feed of a crawl: for each partition the last commit whose records were all read, and for one of them how
// many records of the next commit. Its text takes some 30 bytes and 1 to 3 for each partition.
type Cursor struct {
	crawl string
	done  []uint64 // by partition; a missing number is 0
	part  partition.ID
	read  int
}

const (
	cursorVersion = 1
	maxRead       = 1 << 20   // page records of a commit
	maxCursor     = 256 << 10 // bytes of a text
)

// String returns the text of a cursor:
//
//	base64url(version, length of the crawl's id, id, varints: part, read, done..., CRC-32C)
func (c Cursor) String() string {
	b := append([]byte{cursorVersion, byte(len(c.crawl))}, c.crawl...)
	b = binary.AppendUvarint(b, uint64(c.part))
	b = binary.AppendUvarint(b, uint64(c.read))
	for _, seq := range c.done {
		b = binary.AppendUvarint(b, seq)
	}
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(b, wire.Checksum(b)))
}

// Parse parses the text of a cursor. The error is [ErrCursor].
func Parse(text string) (c Cursor, err error) {
	bad := fmt.Errorf("%w: %.40q is not the whole text of a cursor", ErrCursor, text)
	if len(text) > maxCursor {
		return c, bad
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 6 {
		return c, bad
	}
	end := len(b) - 4
	if binary.BigEndian.Uint32(b[end:]) != wire.Checksum(b[:end]) {
		return c, bad
	}
	if b[0] != cursorVersion {
		return c, fmt.Errorf("%w: another version wrote it (%d)", ErrCursor, b[0])
	}
	n := 2 + int(b[1])
	if n > end {
		return c, bad
	}
	c.crawl = string(b[2:n])
	var list []uint64
	for b = b[n:end]; len(b) > 0; b = b[n:] {
		var v uint64
		if v, n = binary.Uvarint(b); n <= 0 {
			return c, bad
		}
		list = append(list, v)
	}
	if len(list) < 2 || list[0] >= partition.MaxPartitions || list[1] > maxRead || len(list)-2 > partition.MaxPartitions || naming.CheckCrawlID(c.crawl) != nil {
		return c, bad
	}
	c.part, c.read, c.done = partition.ID(list[0]), int(list[1]), list[2:]
	return c, nil
}

// after returns the last commit of a partition whose records were all read.
func (c *Cursor) after(p partition.ID) uint64 {
	if int(p) < len(c.done) {
		return c.done[p]
	}
	return 0
}

// next counts the next of n records of the commit that is read, and returns false if there is none. Another
// partition begins at its first record.
func (c *Cursor) next(p partition.ID, n int) bool {
	if c.part != p {
		c.part, c.read = p, 0
	}
	if c.read >= n {
		return false
	}
	c.read++
	return true
}

// finish records that all of a commit was read.
func (c *Cursor) finish(p partition.ID, seq uint64) {
	if int(p) >= len(c.done) {
		c.done = append(c.done, make([]uint64, int(p)+1-len(c.done))...)
	}
	c.done[p] = seq
	c.part, c.read = 0, 0
}

func (c *Cursor) clone() Cursor {
	d := *c
	d.done = slices.Clone(c.done)
	return d
}

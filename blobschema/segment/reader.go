package segment

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// A segment is
//
//	"OWSG" version, blocks of documents, lists, blocks of the dictionary, columns,
//	index,
//	tail: length of the index inflated, its length, CRC-32C of the index and of the tail up to
//	here and the version, version, "GSWO"
//
// The index stores the lengths of all other parts, from which their offsets follow.
const (
	// version is that of segments only: version 5 had no [Aside], no forms and no Summary.Langs.
	version  = 6
	magic    = "OWSG"
	magicEnd = "GSWO"
	header   = len(magic) + 1
	tailSize = 4 + 4 + 4 + 1 + len(magicEnd)
	// openRead is the number of bytes that Open reads from the end.
	openRead = 64 << 10
	maxIndex = 64 << 20 // bytes, inflated
	// indexRatio bounds the compression of an index: a fifth of it are checksums.
	indexRatio = 64
	// maxDocuments of a segment. A document, a field and a position fit 64 bits.
	maxDocuments = 1 << 24
	// perByte bounds the documents per byte of the object, before memory is allocated for them. A document takes at
	// least two to four bytes.
	perByte = 8
)

// scratch holds buffers for inflated pieces.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// index is the index of a segment. It is immutable.
type index struct {
	summary Summary
	docs    []docsRef
	dict    []dictRef
	columns [numColumns]piece
}

// Reader reads a segment by ranges. It keeps only the index, and is safe for concurrent use if its source is. Its
// errors wrap wire.ErrDamaged, or are those of the source.
type Reader struct {
	src  Source
	size int64
	x    *index
}

func readError(what string, err error) error {
	return fmt.Errorf("read %s of a segment: %w", what, err)
}

// Open reads the index of a segment of size bytes: the last 64 KiB, and the rest of a larger index. Errors wrap
// wire.ErrDamaged or wire.ErrVersion, or are those of the source.
func Open(src Source, size int64) (*Reader, error) {
	x, err := readIndex(src, size)
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	return &Reader{src, size, x}, nil
}

// InMemory returns the source of a segment's bytes.
func InMemory(data []byte) Source {
	return func(off, length int64) ([]byte, error) {
		if off < 0 || length < 0 || off > int64(len(data))-length {
			return nil, wire.Damaged("%d bytes at %d of %d", length, off, len(data))
		}
		return data[off : off+length : off+length], nil
	}
}

// With returns a reader of the same segment through another source, such as that of another
// query with its own context.
func (r *Reader) With(src Source) *Reader { return &Reader{src, r.size, r.x} }

// Documents returns the number of documents. They are numbered from 0.
func (r *Reader) Documents() int { return r.x.summary.Documents }

// Summary returns the summary that the segment was made with.
func (r *Reader) Summary() Summary { return r.x.summary }

func (r *Reader) read(off, length int64) ([]byte, error) {
	if off < 0 || length < 0 || off > r.size-length {
		return nil, wire.Damaged("%d bytes at %d of %d", length, off, r.size)
	}
	if length == 0 {
		return nil, nil
	}
	b, err := r.src(off, length)
	if err == nil && int64(len(b)) != length {
		err = wire.Damaged("%d bytes, not %d", len(b), length)
	}
	return b, err
}

// inflate reads a piece and calls f with its content, which is valid until f returns.
func (r *Reader) inflate(p piece, f func(raw []byte) error) error {
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	raw, err := p.read(r.src, *buf)
	if err != nil {
		return err
	}
	if p.raw != p.length { // otherwise the bytes belong to the source
		*buf = raw
	}
	return f(raw)
}

func readIndex(src Source, size int64) (*index, error) {
	if size < int64(header+tailSize) {
		return nil, wire.Damaged("no segment of %d bytes", size)
	}
	r := Reader{src: src, size: size}
	end, err := r.read(max(size-openRead, 0), min(size, openRead))
	if err != nil {
		return nil, err
	}
	tail := end[len(end)-tailSize:]
	if string(tail[tailSize-len(magicEnd):]) != magicEnd {
		return nil, wire.Damaged("tail")
	}
	if v := tail[tailSize-len(magicEnd)-1]; v != version {
		return nil, fmt.Errorf("%w: %d", wire.ErrVersion, v)
	}
	c := &wire.Cursor{Rest: tail}
	raw, length, sum := int64(c.Uint32()), int64(c.Uint32()), c.Uint32()
	at := size - int64(tailSize) - length
	if at < int64(header) || raw > min(maxIndex, length*indexRatio) || raw < length {
		return nil, wire.Damaged("index of %d bytes, %d inflated", length, raw)
	}
	if missing := length + int64(tailSize) - int64(len(end)); missing > 0 {
		b, err := r.read(at, missing)
		if err != nil {
			return nil, err
		}
		end = append(b[:len(b):len(b)], end...)
	}
	b := end[len(end)-tailSize-int(length) : len(end)-tailSize]
	if indexSum(b, tail) != sum {
		return nil, wire.Damaged("checksum of the index")
	}
	p := piece{length: length, raw: raw, sum: wire.Checksum(b)}
	if b, err = p.open(b, nil); err != nil {
		return nil, err
	}
	return decodeIndex(b, at, size)
}

// indexSum returns the checksum of the index and of the lengths in the tail.
func indexSum(b, tail []byte) uint32 {
	return wire.Checksum(fmt.Appendf(nil, "%08x %x", wire.Checksum(b), tail[:8]))
}

// append appends the index. lists is the length of all lists.
func (x *index) append(dst []byte, lists int64) []byte {
	s := &x.summary
	for _, v := range []int64{int64(s.Documents), int64(s.Terms), s.TextBytes, s.BodyBytes, int64(s.First), int64(s.Last)} {
		dst = binary.AppendUvarint(dst, uint64(v))
	}
	for _, v := range s.Lengths {
		dst = binary.AppendUvarint(dst, uint64(v))
	}
	dst = binary.AppendUvarint(dst, uint64(len(s.Langs)))
	for _, l := range s.Langs {
		dst = wire.AppendPrefixed(dst, l.Lang)
		dst = binary.AppendUvarint(dst, uint64(l.Documents))
	}
	slot, host := partition.Slot(0), ""
	for _, d := range x.docs {
		dst = binary.AppendUvarint(dst, uint64(d.piece.off-d.texts))
		dst = d.piece.append(dst)
		dst = binary.AppendUvarint(dst, uint64(d.first.slot-slot))
		dst = appendShared(dst, host, d.first.host)
		slot, host = d.first.slot, d.first.host
	}
	dst = binary.AppendUvarint(dst, uint64(lists))
	dst = binary.AppendUvarint(dst, uint64(len(x.dict)))
	first := ""
	for _, d := range x.dict {
		dst = d.piece.append(dst)
		dst = binary.AppendUvarint(dst, uint64(d.end-d.lists))
		dst = appendShared(dst, first, d.first)
		first = d.first
	}
	for _, p := range x.columns {
		dst = p.append(dst)
	}
	return dst
}

// decodeIndex decodes the result of append. The index begins at the given offset.
func decodeIndex(b []byte, at, size int64) (*index, error) {
	x := &index{}
	c := &wire.Cursor{Rest: b}
	s := &x.summary
	s.Bytes = size
	s.Documents = int(c.Uvarint(uint64(min(maxDocuments, size*perByte))))
	s.Terms = int(c.Uvarint(1 << 40))
	s.TextBytes, s.BodyBytes = int64(c.Uvarint(1<<62)), int64(c.Uvarint(1<<62))
	s.First, s.Last = partition.Slot(c.Uvarint(partition.MaxSlots-1)), partition.Slot(c.Uvarint(partition.MaxSlots-1))
	for f := range s.Lengths {
		s.Lengths[f] = int64(c.Uvarint(1 << 62))
	}
	for range c.Uvarint(maxLangs) {
		s.Langs = append(s.Langs, LangCount{string(c.Prefixed(MaxLang)), int(c.Uvarint(uint64(s.Documents)))})
	}
	off := int64(header)
	slot, host := uint64(0), []byte(nil)
	for range (s.Documents + docsBlock - 1) / docsBlock {
		d := docsRef{texts: off}
		off += int64(c.Uvarint(uint64(max(at-off, 0))))
		d.piece = readPiece(c, &off, at, maxDocsRaw)
		if slot += c.Uvarint(partition.MaxSlots); slot >= partition.MaxSlots {
			c.Fail("slot %d", slot)
		}
		host = readShared(c, host, MaxHost+1)
		d.first = sortKey{partition.Slot(slot), string(host)}
		if c.Err != nil {
			return nil, c.Err
		}
		x.docs = append(x.docs, d)
	}
	x.decodeDict(c, &off, at)
	for i := range x.columns {
		x.columns[i] = readPiece(c, &off, at, maxColumn(i, s.Documents))
	}
	if off != at {
		c.Fail("%d bytes between the parts", at-off)
	}
	return x, c.End()
}

func (x *index) decodeDict(c *wire.Cursor, off *int64, at int64) {
	lists := *off
	*off += int64(c.Uvarint(uint64(max(at-lists, 0))))
	end := *off
	var first []byte
	for range c.Uvarint(1 << 32) {
		d := dictRef{piece: readPiece(c, off, at, maxDictBlock), lists: lists}
		lists += int64(c.Uvarint(uint64(max(end-lists, 0))))
		first = readShared(c, first, MaxTerm)
		d.end, d.first = lists, string(first)
		if c.Err != nil {
			return
		}
		x.dict = append(x.dict, d)
	}
	if lists != end {
		c.Fail("%d bytes of lists of no term", end-lists)
	}
}

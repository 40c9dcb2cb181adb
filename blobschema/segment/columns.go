package segment

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// The document table has one piece for each column, and one for the lengths of each field. A column
// holds numbers of a fixed width, the low bytes of all numbers first.
const (
	columnLangs = int(NumFields) + iota
	columnSlots
	columnTimes
	columnPublished
	columnFingerprints
	columnSimHashes
	columnGenerations
	numColumns
)

// maxLangs bounds the languages in the table of a segment. Documents in more languages have none there.
const maxLangs = 255

// columnWidth returns the bytes of a number in a column.
func columnWidth(i int) int {
	switch i {
	case columnFingerprints, columnSimHashes:
		return 8
	case columnSlots, columnTimes, columnPublished, columnGenerations:
		return 4
	}
	return 1
}

// maxColumn returns the largest size of a column, inflated.
func maxColumn(i, documents int) int64 {
	n := int64(columnWidth(i)) * int64(documents)
	if i == columnLangs {
		n += maxLangs*(MaxLang+1) + 2
	}
	return n
}

// packLength makes a byte of a length: exact below 32, with five significant bits above.
func packLength(n int) uint8 {
	if n < 32 {
		return uint8(max(n, 0))
	}
	shift := bits.Len(uint(n)) - 5
	return uint8(min(16+16*shift+n>>shift-16, 255))
}

func unpackLength(code uint8) int {
	if code < 32 {
		return int(code)
	}
	shift := int(code)/16 - 1
	return (16 + int(code)%16) << shift
}

// unixColumn returns the seconds of a time in four bytes: 0 for the zero time, otherwise at least 1.
func unixColumn(t time.Time) uint32 {
	if t.IsZero() {
		return 0
	}
	return uint32(max(min(t.Unix(), 1<<32-1), 1))
}

// Columns is the document table in memory. It is immutable. A method panics if the document does not exist.
type Columns struct {
	lengths [NumFields][]byte
	langs   []string // by code; the first is "", for no language
	lang    []byte
	words   [numColumns][]uint32 // columns of four bytes
	longs   [numColumns][]uint64 // columns of eight bytes
}

// add adds a document to a table that is built.
func (c *Columns) add(s *stored) {
	for f, n := range s.lengths {
		c.lengths[f] = append(c.lengths[f], n)
	}
	code := slices.Index(c.langs, s.Lang)
	if code < 0 && len(c.langs) <= maxLangs {
		code, c.langs = len(c.langs), append(c.langs, s.Lang)
	}
	c.lang = append(c.lang, byte(max(code, 0)))
	word := func(i int, v uint32) { c.words[i] = append(c.words[i], v) }
	word(columnSlots, uint32(s.Slot))
	word(columnTimes, unixColumn(s.Time))
	word(columnPublished, unixColumn(s.Published))
	word(columnGenerations, s.Generation)
	c.longs[columnFingerprints] = append(c.longs[columnFingerprints], s.Fingerprint)
	c.longs[columnSimHashes] = append(c.longs[columnSimHashes], s.SimHash)
}

// count returns Summary.Langs.
func (c *Columns) count() (out []LangCount) {
	var by [maxLangs + 1]int
	for _, code := range c.lang {
		by[code]++
	}
	for i, l := range c.langs[1:] {
		out = append(out, LangCount{l, by[i+1]})
	}
	slices.SortFunc(out, func(a, b LangCount) int { return strings.Compare(a.Lang, b.Lang) })
	return out
}

// append appends the pieces of all columns.
func (c *Columns) append(dst []byte) ([]byte, [numColumns]piece) {
	var out [numColumns]piece
	for i := range numColumns {
		var raw []byte
		switch width := columnWidth(i); {
		case i == columnLangs:
			raw = binary.AppendUvarint(raw, uint64(len(c.langs)-1))
			for _, l := range c.langs[1:] {
				raw = wire.AppendPrefixed(raw, l)
			}
			raw = append(raw, c.lang...)
		case width == 4:
			raw = appendPlanes(raw, width, c.words[i])
		case width == 8:
			raw = appendPlanes(raw, width, c.longs[i])
		default:
			raw = c.lengths[i]
		}
		dst, out[i] = appendPiece(dst, raw)
	}
	return dst, out
}

// Columns loads the document table, which is one range. The reader does not keep it.
func (r *Reader) Columns() (*Columns, error) {
	c := &Columns{}
	first, last := r.x.columns[0], r.x.columns[numColumns-1]
	b, err := r.read(first.off, last.off+last.length-first.off)
	for i, p := range r.x.columns {
		if err != nil {
			break
		}
		var raw []byte
		if raw, err = p.open(b[:p.length], nil); err == nil {
			err = c.load(i, raw, r.x.summary.Documents)
		}
		b = b[p.length:]
	}
	if err != nil {
		return nil, readError("document table", err)
	}
	return c, nil
}

// Bytes returns the memory of the columns.
func (c *Columns) Bytes() (n int64) {
	for i := range numColumns {
		n += int64(columnWidth(i)) * int64(len(c.lang))
	}
	return n
}

// load keeps a column of n documents.
func (c *Columns) load(i int, raw []byte, n int) error {
	if i == columnLangs {
		return c.loadLangs(raw, n)
	}
	if int64(len(raw)) != maxColumn(i, n) {
		return wire.Damaged("column of %d bytes for %d documents", len(raw), n)
	}
	switch width := columnWidth(i); width {
	case 4:
		c.words[i] = planes[uint32](raw, width)
	case 8:
		c.longs[i] = planes[uint64](raw, width)
	default:
		c.lengths[i] = slices.Clone(raw) // raw may be part of a larger read
	}
	return nil
}

func (c *Columns) loadLangs(raw []byte, n int) error {
	cur := &wire.Cursor{Rest: raw}
	langs := []string{""}
	for range cur.Uvarint(maxLangs) {
		langs = append(langs, string(cur.Prefixed(MaxLang)))
	}
	codes := cur.Take(uint64(n))
	if err := cur.End(); err != nil {
		return err
	}
	for _, code := range codes {
		if int(code) >= len(langs) {
			return wire.Damaged("language %d of %d", code, len(langs))
		}
	}
	c.langs, c.lang = langs, slices.Clone(codes)
	return nil
}

// Length returns the number of words in a field of a document: exact below 32, otherwise at most a
// sixteenth too small, and at most half a million.
func (c *Columns) Length(f Field, doc uint32) int { return unpackLength(c.lengths[f][doc]) }

// Lang returns Document.Lang.
func (c *Columns) Lang(doc uint32) string { return c.langs[c.lang[doc]] }

// InLangs returns a function that reports whether f accepts the language of a document.
func (c *Columns) InLangs(f func(lang string) bool) func(doc uint32) bool {
	var in [maxLangs + 1]bool
	for code, l := range c.langs {
		in[code] = f(l)
	}
	return func(doc uint32) bool { return in[c.lang[doc]] }
}

// Slot returns Document.Slot.
func (c *Columns) Slot(doc uint32) partition.Slot { return partition.Slot(c.words[columnSlots][doc]) }

// Time returns Document.Time in Unix seconds: 0 for the zero time, otherwise from 1 to 1<<32-1.
func (c *Columns) Time(doc uint32) int64 { return int64(c.words[columnTimes][doc]) }

// Published returns Document.Published in the same way: 0 if unknown, 1 before 1970.
func (c *Columns) Published(doc uint32) int64 { return int64(c.words[columnPublished][doc]) }

// Fingerprint returns Document.Fingerprint.
func (c *Columns) Fingerprint(doc uint32) uint64 { return c.longs[columnFingerprints][doc] }

// ID returns the identity of a document.
func (c *Columns) ID(doc uint32) ID { return ID{c.Slot(doc), c.Fingerprint(doc)} }

// SimHash returns Document.SimHash.
func (c *Columns) SimHash(doc uint32) uint64 { return c.longs[columnSimHashes][doc] }

// Generation returns Document.Generation.
func (c *Columns) Generation(doc uint32) uint32 { return c.words[columnGenerations][doc] }

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

// The document table has a piece per column, of each field's lengths too: numbers of
// fixed width, the low bytes of all first.
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

// maxLangs is how many languages a segment tells apart in its table; more have none.
const maxLangs = 255

// columnBit is the name of a column.
func columnBit(i int) Column {
	return Lengths << max(0, i-columnLangs+1)
}

// maxColumn is how many bytes a column has at most, inflated.
func maxColumn(i, documents int) int64 {
	n := int64(documents)
	switch i {
	case columnLangs:
		return n + maxLangs*(MaxLang+1) + 2
	case columnFingerprints, columnSimHashes:
		return 8 * n
	case columnSlots, columnTimes, columnPublished, columnGenerations:
		return 4 * n
	}
	return n
}

// Lengths are kept in a byte: below 32 as they are, above with five bits.
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

// unixColumn are seconds of a time in four bytes: 0 if it is zero, else at least 1.
func unixColumn(t time.Time) uint32 {
	if t.IsZero() {
		return 0
	}
	return uint32(max(min(t.Unix(), 1<<32-1), 1))
}

// columnsWriter gathers the document table.
type columnsWriter struct {
	lengths             [NumFields][]byte
	langs               []string
	lang                []byte
	codes               map[string]byte
	slots, times        []uint32
	published           []uint32
	generations         []uint32
	fingerprints, simha []uint64
}

func (w *columnsWriter) add(s *stored) {
	for f, n := range s.lengths {
		w.lengths[f] = append(w.lengths[f], n)
	}
	code, ok := w.codes[s.Lang]
	if !ok && s.Lang != "" && len(w.langs) < maxLangs {
		if w.codes == nil {
			w.codes = map[string]byte{}
		}
		w.langs = append(w.langs, s.Lang)
		code = byte(len(w.langs))
		w.codes[s.Lang] = code
	}
	w.lang = append(w.lang, code)
	w.slots = append(w.slots, uint32(s.Slot))
	w.times = append(w.times, unixColumn(s.Time))
	w.published = append(w.published, unixColumn(s.Published))
	w.generations = append(w.generations, s.Generation)
	w.fingerprints = append(w.fingerprints, s.Fingerprint)
	w.simha = append(w.simha, s.SimHash)
}

// count is Summary.Langs.
func (w *columnsWriter) count() []LangCount { return countLangs(w.langs, w.lang) }

func countLangs(langs []string, codes []byte) (out []LangCount) {
	var by [maxLangs + 1]int
	for _, code := range codes {
		by[code]++
	}
	for i, l := range langs {
		out = append(out, LangCount{l, by[i+1]})
	}
	slices.SortFunc(out, func(a, b LangCount) int { return strings.Compare(a.Lang, b.Lang) })
	return out
}

// append appends the pieces of all columns.
func (w *columnsWriter) append(dst []byte) ([]byte, [numColumns]piece) {
	var out [numColumns]piece
	for i := range numColumns {
		var raw []byte
		switch i {
		case columnLangs:
			raw = binary.AppendUvarint(raw, uint64(len(w.langs)))
			for _, l := range w.langs {
				raw = wire.AppendPrefixed(raw, l)
			}
			raw = append(raw, w.lang...)
		case columnSlots:
			raw = appendPlanes(raw, 4, w.slots)
		case columnTimes:
			raw = appendPlanes(raw, 4, w.times)
		case columnPublished:
			raw = appendPlanes(raw, 4, w.published)
		case columnFingerprints:
			raw = appendPlanes(raw, 8, w.fingerprints)
		case columnSimHashes:
			raw = appendPlanes(raw, 8, w.simha)
		case columnGenerations:
			raw = appendPlanes(raw, 4, w.generations)
		default:
			raw = w.lengths[i]
		}
		dst, out[i] = appendPiece(dst, raw)
	}
	return dst, out
}

// Columns are columns of the document table in memory. They are immutable. A method
// whose column was not loaded panics, as it does for a document that is not there.
type Columns struct {
	lengths                              [NumFields][]byte
	langs                                []string // by code; the first is none
	lang                                 []byte
	slots, times, published, generations []uint32
	fingerprints, simHashes              []uint64
}

// Columns loads columns of the document table; those that lie side by side, in the order
// of their constants, as one range. They are the caller's to keep: the reader does not.
func (r *Reader) Columns(want Column) (*Columns, error) {
	c := &Columns{}
	for i := 0; i < numColumns; {
		if want&columnBit(i) == 0 {
			i++
			continue
		}
		end := i + 1
		for end < numColumns && want&columnBit(end) != 0 {
			end++
		}
		first, last := r.x.columns[i], r.x.columns[end-1]
		b, err := r.read(first.off, last.off+last.length-first.off)
		for ; i < end && err == nil; i++ {
			p := r.x.columns[i]
			var raw []byte
			if raw, err = p.open(b[:p.length], nil); err == nil {
				err = c.load(i, raw, r.x.summary.Documents)
			}
			b = b[p.length:]
		}
		if err != nil {
			return nil, readError("document table", err)
		}
	}
	return c, nil
}

// Bytes is how much memory the columns take.
func (c *Columns) Bytes() int64 {
	n := len(c.lang) + 4*(len(c.slots)+len(c.times)+len(c.published)+len(c.generations)) + 8*(len(c.fingerprints)+len(c.simHashes))
	for _, l := range c.lengths {
		n += len(l)
	}
	return int64(n)
}

// load keeps a column of n documents.
func (c *Columns) load(i int, raw []byte, n int) error {
	if i == columnLangs {
		return c.loadLangs(raw, n)
	}
	if int64(len(raw)) != maxColumn(i, n) {
		return wire.Damaged("column of %d bytes for %d documents", len(raw), n)
	}
	switch i {
	case columnSlots:
		c.slots = planes[uint32](raw, 4)
	case columnTimes:
		c.times = planes[uint32](raw, 4)
	case columnPublished:
		c.published = planes[uint32](raw, 4)
	case columnFingerprints:
		c.fingerprints = planes[uint64](raw, 8)
	case columnSimHashes:
		c.simHashes = planes[uint64](raw, 8)
	case columnGenerations:
		c.generations = planes[uint32](raw, 4)
	default:
		c.lengths[i] = slices.Clone(raw) // not all that was read with it
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

// Length is how many tokens a field of a document has: exact below 32, else at most a
// sixteenth less than it is, and at most half a million.
func (c *Columns) Length(f Field, doc uint32) int { return unpackLength(c.lengths[f][doc]) }

// Lang is Document.Lang.
func (c *Columns) Lang(doc uint32) string { return c.langs[c.lang[doc]] }

// InLangs returns a function that reports whether a document's language is one that f accepts.
func (c *Columns) InLangs(f func(lang string) bool) func(doc uint32) bool {
	var in [maxLangs + 1]bool
	for code, l := range c.langs {
		in[code] = f(l)
	}
	return func(doc uint32) bool { return in[c.lang[doc]] }
}

func (c *Columns) count() []LangCount { return countLangs(c.langs[1:], c.lang) }

// Slot is Document.Slot.
func (c *Columns) Slot(doc uint32) partition.Slot { return partition.Slot(c.slots[doc]) }

// Time is Document.Time in Unix seconds: 0 if that is zero, else from 1 to 1<<32-1.
func (c *Columns) Time(doc uint32) int64 { return int64(c.times[doc]) }

// Published is Document.Published in the same way: 0 if unknown, 1 before 1970.
func (c *Columns) Published(doc uint32) int64 { return int64(c.published[doc]) }

// Fingerprint is Document.Fingerprint.
func (c *Columns) Fingerprint(doc uint32) uint64 { return c.fingerprints[doc] }

// SimHash is Document.SimHash.
func (c *Columns) SimHash(doc uint32) uint64 { return c.simHashes[doc] }

// Generation is Document.Generation.
func (c *Columns) Generation(doc uint32) uint32 { return c.generations[doc] }

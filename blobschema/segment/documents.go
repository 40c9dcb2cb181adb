package segment

import (
	"cmp"
	"encoding/binary"
	"sort"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// Documents are stored in blocks of 64: first their texts, in pieces of about 64 KiB with the texts of several
// documents, then one piece with the rest:
//
//	texts: number of pieces; for each: number of documents, and the piece
//	columns of slot (differences), fingerprint, generation, time, published, SimHash,
//	body bytes, text bytes; then for each: host and URL by the difference to the previous
//	ones, language, title
const (
	docsBlock   = 64
	textPiece   = 64 << 10 // raw bytes after which a piece of text ends
	maxDocsRaw  = docsBlock * (MaxURL + MaxHost + MaxTitle + MaxLang + 128)
	maxTextRaw  = textPiece + MaxText
	maxUnixTime = 1 << 38 // seconds: the year 10,680
)

// docsRef is the entry of a block in the index: its place, and the sort key of its first document.
type docsRef struct {
	texts int64 // offset
	piece piece
	first sortKey
}

// sortKey orders documents, except for their URLs.
type sortKey struct {
	slot partition.Slot
	host string // as hostKey makes it
}

func (p sortKey) compare(q sortKey) int {
	return cmp.Or(cmp.Compare(p.slot, q.slot), strings.Compare(p.host, q.host))
}

// hostKey returns a host's labels in reverse order, each with a comma behind it, so that the names below a name
// follow it in order. A comma sorts before all characters of a label.
func hostKey(host string) string {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name, port = host[:i], host[i:]
	}
	b := make([]byte, 0, len(host)+1)
	if strings.HasPrefix(name, "[") {
		b = append(b, name...)
		name = ""
	}
	for name != "" {
		i := strings.LastIndexByte(name, '.')
		b = append(append(b, name[i+1:]...), ',')
		name = name[:max(i, 0)]
	}
	return string(append(b, port...))
}

// stored is a document with everything that its segment stores.
type stored struct {
	Document
	host    string           // hostKey(Host)
	lengths [NumFields]uint8 // codes
	text    textRef          // reference to the text of a document that was read
}

func (s *stored) sortKey() sortKey { return sortKey{s.Slot, s.host} }

// compare compares documents in their order.
func (s *stored) compare(t *stored) int {
	return cmp.Or(cmp.Compare(s.Slot, t.Slot), strings.Compare(s.host, t.host), strings.Compare(s.URL, t.URL),
		cmp.Compare(s.Fingerprint, t.Fingerprint))
}

// version compares versions of a document: the higher one stays.
func (s *stored) version(t *stored) int {
	return cmp.Or(cmp.Compare(s.Generation, t.Generation), s.Time.Compare(t.Time))
}

// textRef is where a document's text is.
type textRef struct {
	piece    piece
	from, to int // in the piece, inflated
}

// docsWriter writes the blocks of documents.
type docsWriter struct {
	data  []byte // the object so far
	refs  []docsRef
	block []stored // without their texts
	texts []byte   // raw texts of the current piece
	from  int      // index in block of the first document of the current piece
	table []byte   // descriptions of the block's pieces
	count int      // pieces in table
	start int      // offset of the block in data
	raw   []byte
}

// add appends the next document in order.
func (w *docsWriter) add(s stored) {
	if len(w.block) == 0 {
		w.start = len(w.data)
	}
	w.texts = append(w.texts, s.Text...)
	s.text = textRef{to: len(s.Text)}
	s.Text = ""
	w.block = append(w.block, s)
	if len(w.texts) >= textPiece {
		w.endText()
	}
	if len(w.block) == docsBlock {
		w.flush()
	}
}

func (w *docsWriter) endText() {
	var p piece
	w.data, p = appendPiece(w.data, w.texts)
	w.table = p.append(binary.AppendUvarint(w.table, uint64(len(w.block)-w.from)))
	w.count++
	w.texts, w.from = w.texts[:0], len(w.block)
}

func (w *docsWriter) flush() {
	if len(w.block) == 0 {
		return
	}
	if w.from < len(w.block) {
		w.endText()
	}
	d, n := w.block, len(w.block)
	raw := append(binary.AppendUvarint(w.raw[:0], uint64(w.count)), w.table...)
	slot := partition.Slot(0)
	raw = wire.AppendValues(raw, n, func(i int) uint64 {
		diff := d[i].Slot - slot
		slot = d[i].Slot
		return uint64(diff)
	})
	for i := range d {
		raw = binary.LittleEndian.AppendUint64(raw, d[i].Fingerprint)
	}
	raw = wire.AppendValues(raw, n, func(i int) uint64 { return uint64(d[i].Generation) })
	raw = wire.AppendValues(raw, n, func(i int) uint64 { return packTime(d[i].Time) })
	raw = wire.AppendValues(raw, n, func(i int) uint64 { return packTime(d[i].Published) })
	for i := range d {
		raw = binary.LittleEndian.AppendUint64(raw, d[i].SimHash)
	}
	raw = wire.AppendValues(raw, n, func(i int) uint64 { return uint64(d[i].BodyBytes) })
	raw = wire.AppendValues(raw, n, func(i int) uint64 { return uint64(d[i].text.to) })
	host, url := "", ""
	for i := range d {
		raw = appendShared(raw, host, d[i].Host)
		raw = appendShared(raw, url, d[i].URL)
		raw = wire.AppendPrefixed(raw, d[i].Lang)
		raw = wire.AppendPrefixed(raw, d[i].Title)
		host, url = d[i].Host, d[i].URL
	}
	ref := docsRef{texts: int64(w.start), first: d[0].sortKey()}
	w.data, ref.piece = appendPiece(w.data, raw)
	w.refs = append(w.refs, ref)
	w.raw, w.block, w.table = raw, w.block[:0], w.table[:0]
	w.count, w.from = 0, 0
}

// packTime encodes seconds; 0 is the zero time.
func packTime(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	v := max(min(t.Unix(), maxUnixTime), -maxUnixTime)
	return uint64(v<<1^v>>63) + 1
}

func unpackTime(v uint64) time.Time {
	if v == 0 {
		return time.Time{}
	}
	v--
	return time.Unix(int64(v>>1)^-int64(v&1), 0).UTC()
}

// docsDecoder decodes blocks of documents.
type docsDecoder struct {
	docs      [docsBlock]stored
	host, url []byte
}

// decode decodes the piece of a block of n documents, which are valid until the next call.
func (d *docsDecoder) decode(raw []byte, ref *docsRef, n int) ([]stored, error) {
	c := &wire.Cursor{Rest: raw}
	docs := d.docs[:n]
	off := ref.texts
	begun := 0
	for count := c.Uvarint(docsBlock); count > 0 && c.Err == nil; count-- {
		k := int(c.Uvarint(uint64(n - begun)))
		t := textRef{piece: readPiece(c, &off, ref.piece.off, maxTextRaw)}
		for i := range k {
			docs[begun+i] = stored{text: t}
		}
		begun += k
	}
	if begun < n {
		c.Fail("%d of %d documents have a text", begun, n)
	}
	slot := uint64(0)
	c.Values(n, partition.MaxSlots, func(i int, v uint64) {
		if slot += v; slot >= partition.MaxSlots {
			c.Fail("slot %d", slot)
		}
		docs[i].Slot = partition.Slot(slot)
	})
	for i := range docs {
		docs[i].Fingerprint = c.Uint64()
	}
	c.Values(n, 1<<32-1, func(i int, v uint64) { docs[i].Generation = uint32(v) })
	c.Values(n, maxUnixTime<<1+1, func(i int, v uint64) { docs[i].Time = unpackTime(v) })
	c.Values(n, maxUnixTime<<1+1, func(i int, v uint64) { docs[i].Published = unpackTime(v) })
	for i := range docs {
		docs[i].SimHash = c.Uint64()
	}
	c.Values(n, 1<<62, func(i int, v uint64) { docs[i].BodyBytes = int64(v) })
	at := 0
	c.Values(n, MaxText, func(i int, v uint64) {
		if i == 0 || docs[i].text.piece.off != docs[i-1].text.piece.off {
			at = 0
		}
		t := &docs[i].text
		t.from, t.to = at, at+int(v)
		if at = t.to; int64(at) > t.piece.raw {
			c.Fail("texts of %d bytes in %d", at, t.piece.raw)
		}
	})
	d.strings(c, docs)
	if err := c.End(); err != nil {
		return nil, err
	}
	return docs, nil
}

func (d *docsDecoder) strings(c *wire.Cursor, docs []stored) {
	d.host, d.url = d.host[:0], d.url[:0]
	for i := range docs {
		if c.Err != nil {
			return
		}
		d.host = readShared(c, d.host, MaxHost)
		d.url = readShared(c, d.url, MaxURL)
		s := &docs[i]
		s.Lang, s.Title, s.URL = string(c.Prefixed(MaxLang)), string(c.Prefixed(MaxTitle)), string(d.url)
		if i > 0 && docs[i-1].Host == string(d.host) {
			s.Host, s.host = docs[i-1].Host, docs[i-1].host
		} else {
			s.Host = string(d.host)
			s.host = hostKey(s.Host)
		}
	}
}

// block reads the block of documents that has doc, and returns the place of doc in it.
func (r *Reader) block(doc uint32) (docs []stored, i int, err error) {
	if int64(doc) >= int64(r.x.summary.Documents) {
		return nil, 0, wire.Damaged("document %d of %d", doc, r.x.summary.Documents)
	}
	i = int(doc % docsBlock)
	docs, err = r.docs(&docsDecoder{}, int(doc/docsBlock))
	return docs, i, err
}

// docs reads a block of documents; see docsDecoder.decode.
func (r *Reader) docs(d *docsDecoder, block int) (docs []stored, err error) {
	ref := &r.x.docs[block]
	err = r.inflate(ref.piece, func(raw []byte) (err error) {
		docs, err = d.decode(raw, ref, min(docsBlock, r.x.summary.Documents-block*docsBlock))
		return err
	})
	return docs, err
}

// Document returns a stored document without its text. It reads one range.
func (r *Reader) Document(doc uint32) (Document, error) {
	docs, i, err := r.block(doc)
	if err != nil {
		return Document{}, readError("document", err)
	}
	return docs[i].Document, nil
}

// Text returns Document.Text. It reads two ranges: that of Document, and the text.
func (r *Reader) Text(doc uint32) (text string, err error) {
	docs, i, err := r.block(doc)
	if err != nil {
		return "", readError("document", err)
	}
	t := docs[i].text
	if t.from == t.to {
		return "", nil
	}
	err = r.inflate(t.piece, func(raw []byte) error {
		text = string(raw[t.from:t.to])
		return nil
	})
	if err != nil {
		return "", readError("text", err)
	}
	return text, nil
}

// Site returns the documents of a host, first to end-1; the two are equal if there are none. It reads at most two
// ranges.
func (r *Reader) Site(host string, slot partition.Slot) (first, end uint32, err error) {
	return r.span(sortKey{slot, hostKey(host)}, func(p, at sortKey) bool { return p == at })
}

// Domain returns the documents of a name and of all names below it in a slot. These are all if the slot is that of
// the registrable domain and that is the crawl's politeness key; otherwise other slots may have more. It reads at
// most two ranges.
func (r *Reader) Domain(domain string, slot partition.Slot) (first, end uint32, err error) {
	return r.span(sortKey{slot, hostKey(domain)}, func(p, at sortKey) bool {
		return p.slot == at.slot && strings.HasPrefix(p.host, at.host)
	})
}

// span returns the documents, from the first at or after a sort key, for which in holds.
func (r *Reader) span(at sortKey, in func(p, at sortKey) bool) (first, end uint32, err error) {
	first, err = r.first(func(p sortKey) bool { return p.compare(at) >= 0 })
	if err == nil {
		end, err = r.first(func(p sortKey) bool { return p.compare(at) >= 0 && !in(p, at) })
	}
	if err != nil {
		return 0, 0, readError("documents of a site", err)
	}
	return first, max(first, end), nil
}

// first returns the first document for which past holds, or the number of documents.
func (r *Reader) first(past func(sortKey) bool) (uint32, error) {
	b := sort.Search(len(r.x.docs), func(i int) bool { return past(r.x.docs[i].first) }) - 1
	if b < 0 {
		return 0, nil
	}
	docs, err := r.docs(&docsDecoder{}, b)
	if err != nil {
		return 0, err
	}
	i := sort.Search(len(docs), func(i int) bool { return past(docs[i].sortKey()) })
	return uint32(b*docsBlock + i), nil
}

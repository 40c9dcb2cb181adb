package blobschema

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// runEncoder makes the blocks of a run. The offsets of blocks are offsets in data until
// layOut orders them.
type runEncoder struct {
	blocks []BlockRef
	data   []byte
	raw    []byte
	texts  wire.TextPacker
	starts []bool // for each queued entry of a block: it begins a host
}

// add ends a block, whose bytes are in raw. It does not compress a block that would not shrink.
func (e *runEncoder) add(b BlockRef) {
	start := len(e.data)
	e.data = wire.AppendCompressed(e.data, e.raw)
	if len(e.data)-start >= len(e.raw) {
		e.data = append(e.data[:start], e.raw...)
	}
	b.Offset, b.Length, b.Raw = int64(start), int64(len(e.data)-start), int64(len(e.raw))
	b.Sum = wire.Checksum(e.data[start:])
	e.blocks = append(e.blocks, b)
	e.raw = e.raw[:0]
}

// settled makes blocks of settled URLs: the number of URLs in each slot, the
// differences of fingerprints, then generations, states and record references. The differences are stored
// in planes, first the high byte of each, then the next byte. If a slot holds
// many URLs, the high bytes are zeros, and nothing else of a fingerprint compresses.
func (e *runEncoder) settled(all []Settled) {
	for len(all) > 0 {
		s := all[:min(len(all), settledPerBlock)]
		all = all[len(s):]
		raw := binary.AppendUvarint(e.raw, uint64(len(s)))
		raw = appendSlots(raw, len(s), func(i int) partition.Slot { return s[i].Slot })
		at := len(raw)
		raw = append(raw, make([]byte, settledPlanes*len(s))...)
		planes := raw[at:]
		for i := range s {
			d := s[i].Fingerprint
			if i > 0 {
				d -= s[i-1].Fingerprint // wraps around at the end of a slot; the decoder wraps it back
			}
			for p := range settledPlanes {
				planes[p*len(s)+i] = byte(d >> (56 - 8*p))
			}
		}
		raw = wire.AppendColumn(raw, len(s), func(i int) uint64 { return uint64(s[i].Generation) })
		raw = wire.AppendColumn(raw, len(s), func(i int) uint64 { return uint64(s[i].State) })
		e.raw = appendRefs(raw, len(s), func(i int) RecordRef { return s[i].Record })
		e.add(BlockRef{Kind: SettledBlock, First: s[0].Slot, Last: s[len(s)-1].Slot, Entries: int64(len(s))})
	}
}

// appendRefs appends a column of partitions and a column of commit numbers.
func appendRefs(dst []byte, n int, at func(i int) RecordRef) []byte {
	dst = wire.AppendColumn(dst, n, func(i int) uint64 { return uint64(at(i).Partition) })
	return wire.AppendColumn(dst, n, func(i int) uint64 { return uint64(at(i).Seq) })
}

// readRefs reads the columns of appendRefs.
func readRefs(c *wire.Cursor, n int, at func(i int) *RecordRef) {
	c.Column(n, partition.MaxPartitions-1, func(i int, v uint64) { at(i).Partition = partition.ID(v) })
	c.Column(n, 1<<32-1, func(i int, v uint64) { at(i).Seq = uint32(v) })
}

// appendSlots appends a sorted column of slots as runs of a difference and a count.
func appendSlots(dst []byte, n int, at func(i int) partition.Slot) []byte {
	var prev partition.Slot
	for i := 0; i < n; {
		j := i + 1
		for j < n && at(j) == at(i) {
			j++
		}
		dst = binary.AppendUvarint(dst, uint64(at(i)-prev))
		dst = binary.AppendUvarint(dst, uint64(j-i))
		prev, i = at(i), j
	}
	return dst
}

// readSlots reads the column of appendSlots. All slots must be those of ref.
func readSlots(c *wire.Cursor, n int, ref BlockRef, set func(i int, s partition.Slot)) {
	var slot uint64
	for i := 0; i < n && c.Err == nil; {
		slot += c.Uvarint(uint64(ref.Last) - slot)
		count := int(c.Uvarint(uint64(n - i)))
		if slot < uint64(ref.First) || count == 0 {
			c.Fail("slot %d", slot)
			return
		}
		for ; count > 0; count-- {
			set(i, partition.Slot(slot))
			i++
		}
	}
}

// keyPrefix returns the string with which the first URL of a politeness key shares its prefix, in place of a previous URL.
func keyPrefix(key string) string { return "https://" + key + "/" }

// queued makes blocks of pending URLs: the politeness keys, each with its number of URLs,
// then a column for each field, then the URLs.
func (e *runEncoder) queued(all []Queued) {
	for len(all) > 0 {
		q := all[:e.fill(all)]
		all = all[len(q):]
		raw := binary.AppendUvarint(e.raw, uint64(len(q)))
		raw = appendSlots(raw, len(q), func(i int) partition.Slot { return q[i].Slot })
		for i := 0; i < len(q); {
			j := i + 1
			for j < len(q) && !e.starts[j] {
				j++
			}
			raw = binary.AppendUvarint(raw, uint64(j-i))
			raw = wire.AppendPrefixed(raw, q[i].Key)
			i = j
		}
		raw = wire.AppendColumn(raw, len(q), func(i int) uint64 {
			if e.starts[i] {
				return uint64(q[i].Rank)
			}
			return uint64(q[i].Rank - q[i-1].Rank)
		})
		raw = wire.AppendColumn(raw, len(q), func(i int) uint64 { return uint64(q[i].Generation) })
		raw = wire.AppendColumn(raw, len(q), func(i int) uint64 { return uint64(q[i].Depth) })
		raw = wire.AppendColumn(raw, len(q), func(i int) uint64 { return uint64(q[i].Attempts) })
		raw = wire.AppendColumn(raw, len(q), func(i int) uint64 { return uint64(q[i].Flags) })
		raw = wire.AppendColumn(raw, len(q), func(i int) uint64 { return zigzag(q[i].NotBefore) })
		raw = appendRefs(raw, len(q), func(i int) RecordRef { return q[i].Previous })
		raw = wire.AppendColumn(raw, len(q), func(i int) uint64 { return uint64(q[i].Topic) })
		raw = wire.AppendColumn(raw, len(q), func(i int) uint64 { return uint64(math.Float32bits(q[i].Change.Shape)) })
		raw = wire.AppendColumn(raw, len(q), func(i int) uint64 { return uint64(math.Float32bits(q[i].Change.Hours)) })
		e.raw = e.texts.Append(raw)
		e.add(BlockRef{Kind: QueuedBlock, First: q[0].Slot, Last: q[len(q)-1].Slot, Entries: int64(len(q)),
			Key: q[0].Key, Rank: q[0].Rank})
	}
}

// readAmount decodes a finite number that is not negative from its bits.
func readAmount(c *wire.Cursor, bits uint64) float32 {
	v := math.Float32frombits(uint32(bits))
	if !(v >= 0 && v <= math.MaxFloat32) || bits == 1<<31 {
		c.Fail("amount %x", bits)
		return 0
	}
	return v
}

// startsKey reports whether q[i] is the first URL of a politeness key.
func startsKey(q []Queued, i int) bool {
	return i == 0 || q[i].Slot != q[i-1].Slot || q[i].Key != q[i-1].Key
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// fill packs the URLs of the next block until it is full, and returns their number. It counts
// five bytes for the other fields of an entry.
func (e *runEncoder) fill(q []Queued) int {
	e.texts.Reset()
	e.starts = e.starts[:0]
	size, n := 0, 0
	for n < len(q) && n < blockEntries {
		if packed, whole := e.texts.Size(); size+5*n+packed >= blockTarget || whole >= blockText {
			break
		}
		e.starts = append(e.starts, startsKey(q, n))
		if e.starts[n] {
			size += len(q[n].Key) + 4
			e.texts.After(keyPrefix(q[n].Key))
		}
		e.texts.Add(q[n].URL)
		n++
	}
	return n
}

// keys makes blocks of key states.
func (e *runEncoder) keys(all []KeyState) {
	for len(all) > 0 {
		n, size := 0, 0
		for n < len(all) && n < blockEntries && size < blockTarget {
			size += len(all[n].Key) + len(all[n].Data) + 8
			n++
		}
		s := all[:n]
		all = all[n:]
		raw := binary.AppendUvarint(e.raw, uint64(n))
		raw = appendSlots(raw, n, func(i int) partition.Slot { return s[i].Slot })
		raw = wire.AppendColumn(raw, n, func(i int) uint64 { return s[i].Version })
		raw = wire.AppendValues(raw, n, func(i int) uint64 { return uint64(len(s[i].Key)) })
		raw = wire.AppendColumn(raw, n, func(i int) uint64 { return uint64(len(s[i].Data)) })
		for i := range s {
			raw = append(raw, s[i].Key...)
		}
		for i := range s {
			raw = append(raw, s[i].Data...)
		}
		e.raw = raw
		e.add(BlockRef{Kind: KeyBlock, First: s[0].Slot, Last: s[n-1].Slot, Entries: int64(n)})
	}
}

// blockDecoder decodes blocks one after another and reuses its buffers.
type blockDecoder struct {
	buf   []byte
	texts wire.TextUnpacker
}

func (d *blockDecoder) decode(data []byte, ref BlockRef, into *Run, first, last partition.Slot) error {
	if int64(len(data)) != ref.Length || ref.Raw < ref.Length || ref.Raw > maxBlock || ref.Last > maxSlot {
		return wire.Damaged("block of %d bytes where %d are %d", len(data), ref.Length, ref.Raw)
	}
	if wire.Checksum(data) != ref.Sum {
		return wire.Damaged("checksum of a block")
	}
	raw := data
	if ref.Raw != ref.Length {
		var err error
		if raw, err = wire.Decompress(d.buf, data, int(ref.Raw)); err != nil {
			return err
		}
		d.buf = raw
	}
	c := &wire.Cursor{Rest: raw}
	n := c.Count(1)
	if int64(n) != ref.Entries || n > blockEntries || n == 0 {
		return wire.Damaged("%d entries where %d were promised", n, ref.Entries)
	}
	before := *into
	switch ref.Kind {
	case SettledBlock:
		d.settled(c, n, ref, into)
	case QueuedBlock:
		d.queued(c, n, ref, into)
	case KeyBlock:
		d.keys(c, n, ref, into)
	default:
		c.Fail("kind %d of a block", ref.Kind)
	}
	if err := c.End(); err != nil {
		*into = before
		return err
	}
	if ref.First < first || ref.Last > last {
		s, q, k := len(before.Settled), len(before.Queued), len(before.Keys)
		added := Run{into.Settled[s:], into.Queued[q:], into.Keys[k:]}
		added.Only(func(s partition.Slot) bool { return first <= s && s <= last })
		into.Settled = into.Settled[:s+len(added.Settled)]
		into.Queued = into.Queued[:q+len(added.Queued)]
		into.Keys = into.Keys[:k+len(added.Keys)]
	}
	return nil
}

func (d *blockDecoder) settled(c *wire.Cursor, n int, ref BlockRef, into *Run) {
	if n > len(c.Rest)/settledPlanes {
		c.Fail("%d fingerprints in %d bytes", n, len(c.Rest))
		return
	}
	at := len(into.Settled)
	into.Settled = slices.Grow(into.Settled, n)[:at+n]
	s := into.Settled[at:]
	readSlots(c, n, ref, func(i int, slot partition.Slot) { s[i].Slot = slot })
	planes := c.Take(uint64(settledPlanes * n))
	if c.Err != nil {
		return
	}
	var fp uint64
	for i := range s {
		var diff uint64
		for p := range settledPlanes {
			diff = diff<<8 | uint64(planes[p*n+i])
		}
		fp += diff
		s[i].Fingerprint = fp
	}
	c.Column(n, 1<<32-1, func(i int, v uint64) { s[i].Generation = uint32(v) })
	c.Column(n, uint64(Forwarded), func(i int, v uint64) {
		if s[i].State = State(v); s[i].State == Pending {
			c.Fail("settled URL that is pending")
		}
	})
	readRefs(c, n, func(i int) *RecordRef { return &s[i].Record })
}

func (d *blockDecoder) queued(c *wire.Cursor, n int, ref BlockRef, into *Run) {
	at := len(into.Queued)
	into.Queued = slices.Grow(into.Queued, n)[:at+n]
	q := into.Queued[at:]
	clear(q)
	readSlots(c, n, ref, func(i int, slot partition.Slot) { q[i].Slot = slot })
	for i := 0; i < n && c.Err == nil; {
		count := int(c.Uvarint(uint64(n - i)))
		host := string(c.Prefixed(wire.MaxHost))
		if count == 0 {
			c.Fail("host of no URLs")
			return
		}
		for ; count > 0; count-- {
			q[i].Key = host
			i++
		}
	}
	c.Column(n, 1<<32-1, func(i int, v uint64) {
		if startsKey(q, i) {
			q[i].Rank = uint32(v)
		} else if q[i].Rank = q[i-1].Rank + uint32(v); q[i].Rank < q[i-1].Rank {
			c.Fail("rank above its bound")
		}
	})
	c.Column(n, 1<<32-1, func(i int, v uint64) { q[i].Generation = uint32(v) })
	c.Column(n, 1<<16-1, func(i int, v uint64) { q[i].Depth = uint16(v) })
	c.Column(n, 1<<8-1, func(i int, v uint64) { q[i].Attempts = uint8(v) })
	c.Column(n, flagBits, func(i int, v uint64) { q[i].Flags = QueuedFlags(v) })
	c.Column(n, 1<<64-1, func(i int, v uint64) { q[i].NotBefore = unzigzag(v) })
	readRefs(c, n, func(i int) *RecordRef { return &q[i].Previous })
	c.Column(n, 1<<8-1, func(i int, v uint64) { q[i].Topic = uint8(v) })
	c.Column(n, 1<<32-1, func(i int, v uint64) { q[i].Change.Shape = readAmount(c, v) })
	c.Column(n, 1<<32-1, func(i int, v uint64) { q[i].Change.Hours = readAmount(c, v) })
	d.texts.Read(c, n, wire.MaxURL, maxBlockText)
	for i := 0; i < n && c.Err == nil; i++ {
		if startsKey(q, i) {
			d.texts.After(keyPrefix(q[i].Key))
		}
		q[i].URL = d.texts.Next(c)
	}
}

func (d *blockDecoder) keys(c *wire.Cursor, n int, ref BlockRef, into *Run) {
	at := len(into.Keys)
	into.Keys = slices.Grow(into.Keys, n)[:at+n]
	s := into.Keys[at:]
	clear(s)
	readSlots(c, n, ref, func(i int, slot partition.Slot) { s[i].Slot = slot })
	c.Column(n, 1<<64-1, func(i int, v uint64) { s[i].Version = v })
	lengths := make([]uint64, 2*n)
	c.Values(n, wire.MaxHost, func(i int, v uint64) { lengths[i] = v })
	c.Column(n, maxKeyData, func(i int, v uint64) { lengths[n+i] = v })
	for i := 0; i < n && c.Err == nil; i++ {
		s[i].Key = string(c.Take(lengths[i]))
	}
	for i := 0; i < n && c.Err == nil; i++ {
		s[i].Data = append([]byte(nil), c.Take(lengths[n+i])...)
	}
}

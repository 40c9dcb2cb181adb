package blobschema

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// Run is a part of a partition's state in memory. Decoders append to it, [Join]
// reduces it to one entry per URL, and [EncodeRun] stores it. The zero value is empty.
type Run struct {
	Settled []Settled
	Queued  []Queued
	Keys    []KeyState
}

// Len returns the number of entries of all kinds.
func (r *Run) Len() int { return len(r.Settled) + len(r.Queued) + len(r.Keys) }

// Sort puts the entries into their stored order: Settled by slot and fingerprint; Queued by slot, key, rank and URL;
// Keys by slot and key.
func (r *Run) Sort() {
	sortPieces(r.Settled, compareSettled)
	sortPieces(r.Queued, compareQueued)
	sortPieces(r.Keys, compareKeys)
}

// Only drops, in place, the entries of slots that are not wanted. If wanted is nil, all slots are.
func (r *Run) Only(wanted func(partition.Slot) bool) *Run {
	if wanted != nil {
		r.Settled = slices.DeleteFunc(r.Settled, func(e Settled) bool { return !wanted(e.Slot) })
		r.Queued = slices.DeleteFunc(r.Queued, func(e Queued) bool { return !wanted(e.Slot) })
		r.Keys = slices.DeleteFunc(r.Keys, func(e KeyState) bool { return !wanted(e.Slot) })
	}
	return r
}

// Check returns an error if the run cannot be stored: a slot, URL, key or key state is out of bounds, or a settled URL
// has the state Pending. EncodeRun accepts only runs that pass. Every decoded run does.
func (r *Run) Check() error {
	for i := range r.Settled {
		if s := &r.Settled[i]; s.Slot >= partition.MaxSlots || s.State == Pending || s.State > Forwarded || s.Record.Partition >= partition.MaxPartitions {
			return fmt.Errorf("check run: settled entry of slot %d is %s, of partition %d", s.Slot, s.State, s.Record.Partition)
		}
	}
	for i := range r.Queued {
		if q := &r.Queued[i]; q.Slot >= partition.MaxSlots || len(q.URL) > wire.MaxURL || len(q.Key) > wire.MaxHost || q.Previous.Partition >= partition.MaxPartitions {
			return fmt.Errorf("check run: slot %d, URL of %d bytes or host of %d", q.Slot, len(q.URL), len(q.Key))
		}
	}
	for i := range r.Keys {
		if s := &r.Keys[i]; s.Slot >= partition.MaxSlots || len(s.Key) > wire.MaxHost || len(s.Data) > maxKeyData {
			return fmt.Errorf("check run: slot %d, host of %d bytes or its state of %d", s.Slot, len(s.Key), len(s.Data))
		}
	}
	return nil
}

// BlockKind is the kind of the entries in a block.
type BlockKind uint8

// The kinds of block.
const (
	SettledBlock BlockKind = 1
	QueuedBlock  BlockKind = 2
	KeyBlock     BlockKind = 3
)

// BlockRef describes a block of a run: entries of one kind, of one or more slots.
type BlockRef struct {
	Kind        BlockKind
	First, Last partition.Slot
	Offset      int64 // from the start of the run
	Length      int64 // bytes stored
	Raw         int64 // bytes decompressed; equal to Length if the block is not compressed
	Entries     int64
	Sum         uint32 // CRC-32C of the stored bytes
	// Key and Rank are those of the first entry of a QueuedBlock. They allow a reader to
	// read the URLs of one host block by block, the best first.
	Key  string
	Rank uint32
}

// A run is
//
//	blocks, in order of their first slot
//	index: count, then per block: kind, first slot, last slot - first, length, raw length, entries,
//	       CRC-32C, and for QueuedBlock rank and key
//	filter: number of 64-bit words, number of hashes, words
//	tail: offset of the index (8 bytes), CRC-32C of index, filter and that offset, version, "OWR"
const (
	runEnd  = "OWR"
	runTail = 8 + 4 + 1 + len(runEnd)

	blockTarget     = 64 << 10                  // bytes of a block, raw
	blockText       = 1 << 20                   // bytes of its URLs, expanded
	blockEntries    = 1 << 14                   // most entries of a block
	maxBlock        = blockTarget + 4<<20       // a block ends after the entry that fills it
	maxBlockText    = blockText + 2*wire.MaxURL //
	filterBits      = 10                        // per key: with 7 hashes 0.8 % false positives
	filterHashes    = 7                         //
	maxHashes       = 16                        // most hash functions that a reader accepts
	settledPerBlock = blockTarget / 8           //
	settledPlanes   = 8                         // bytes of a fingerprint
	maxSlot         = partition.MaxSlots - 1
)

// EncodeRun sorts a run in place and encodes it. ref describes the result, without
// Object, Tier and Offset. An empty run has no bytes and the zero ref.
func EncodeRun(run *Run, h partition.Hash) (data []byte, ref RunRef) {
	if run.Len() == 0 {
		return nil, RunRef{}
	}
	run.Sort()
	e := runEncoder{}
	e.settled(run.Settled)
	e.queued(run.Queued)
	e.keys(run.Keys)
	data, ref = e.layOut(len(run.Settled) + len(run.Queued))
	ref.Entries = int64(run.Len())
	ref.Index = int64(len(data))
	data = appendIndex(data, e.blocks)
	data = appendFilter(data, run, h)
	data = appendTail(data, ref.Index)
	ref.Length = int64(len(data))
	return data, ref
}

// layOut concatenates the blocks in order of their first slot, so that the blocks of a range
// of slots are nearly one range of bytes.
func (e *runEncoder) layOut(keys int) (data []byte, ref RunRef) {
	slices.SortStableFunc(e.blocks, func(a, b BlockRef) int { return cmp.Compare(a.First, b.First) })
	data = make([]byte, 0, len(e.data)+keys*filterBits/8+len(e.blocks)*64+64)
	ref.First = e.blocks[0].First
	for i := range e.blocks {
		b := &e.blocks[i]
		stored := e.data[b.Offset : b.Offset+b.Length]
		b.Offset = int64(len(data))
		data = append(data, stored...)
		ref.Last = max(ref.Last, b.Last)
	}
	return data, ref
}

// appendTail appends the tail of a run whose index begins at the given offset of dst.
func appendTail(dst []byte, index int64) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(index))
	dst = binary.LittleEndian.AppendUint32(dst, wire.Checksum(dst[index:]))
	return append(append(dst, wire.Version), runEnd...)
}

func appendIndex(dst []byte, blocks []BlockRef) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(blocks)))
	for i := range blocks {
		b := &blocks[i]
		dst = append(dst, byte(b.Kind))
		dst = binary.AppendUvarint(dst, uint64(b.First))
		dst = binary.AppendUvarint(dst, uint64(b.Last-b.First))
		dst = binary.AppendUvarint(dst, uint64(b.Length))
		dst = binary.AppendUvarint(dst, uint64(b.Raw))
		dst = binary.AppendUvarint(dst, uint64(b.Entries))
		dst = binary.LittleEndian.AppendUint32(dst, b.Sum)
		if b.Kind == QueuedBlock {
			dst = binary.AppendUvarint(dst, uint64(b.Rank))
			dst = wire.AppendPrefixed(dst, b.Key)
		}
	}
	return dst
}

// indexEntry is the size of the smallest description of a block, in bytes.
const indexEntry = 10

func appendFilter(dst []byte, run *Run, h partition.Hash) []byte {
	words := (uint(len(run.Settled)+len(run.Queued))*filterBits + 63) / 64
	f := bloom.New(max(words, 1)*64, filterHashes)
	var key [8]byte
	for i := range run.Settled {
		f.Add(filterKey(&key, run.Settled[i].Fingerprint))
	}
	for i := range run.Queued {
		f.Add(filterKey(&key, h.Fingerprint(run.Queued[i].URL)))
	}
	dst = binary.AppendUvarint(dst, uint64(f.Cap()/64))
	dst = append(dst, filterHashes)
	for _, w := range f.BitSet().Words() {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	return dst
}

func filterKey(key *[8]byte, fp uint64) []byte {
	binary.LittleEndian.PutUint64(key[:], fp)
	return key[:]
}

// RunIndex is the index and the filter of a run. It is immutable
// and safe for concurrent use.
type RunIndex struct {
	blocks []BlockRef
	filter *bloom.BloomFilter
}

// OpenRun reads a run's index and filter: the bytes from ref.Index to the end.
func OpenRun(index []byte, ref RunRef) (*RunIndex, error) {
	if len(index) < runTail || ref.Index < 0 || ref.Index+int64(len(index)) != ref.Length {
		return nil, fmt.Errorf("open run: %w", wire.Damaged("index of %d bytes at %d in %d", len(index), ref.Index, ref.Length))
	}
	body := index[:len(index)-runTail]
	tail := &wire.Cursor{Rest: index[len(body):]}
	at, sum := tail.Uint64(), tail.Uint32()
	if v := tail.Rest[0]; string(tail.Rest[1:]) == runEnd && v != wire.Version {
		return nil, fmt.Errorf("open run: %w: %d", wire.ErrVersion, v)
	}
	if string(tail.Rest[1:]) != runEnd || at != uint64(ref.Index) || wire.Checksum(index[:len(body)+8]) != sum {
		return nil, fmt.Errorf("open run: %w", wire.Damaged("tail or checksum of the index"))
	}
	c := &wire.Cursor{Rest: body}
	x := &RunIndex{blocks: readIndex(c, ref)}
	x.filter = readFilter(c)
	if err := c.End(); err != nil {
		return nil, fmt.Errorf("open run: %w", err)
	}
	return x, nil
}

func readIndex(c *wire.Cursor, ref RunRef) []BlockRef {
	n := c.Count(indexEntry)
	blocks := make([]BlockRef, 0, n)
	var off, entries int64
	for i := 0; i < n && c.Err == nil; i++ {
		b := BlockRef{Kind: BlockKind(c.Uvarint(uint64(KeyBlock))), Offset: off}
		b.First = partition.Slot(c.Uvarint(maxSlot))
		b.Last = b.First + partition.Slot(c.Uvarint(maxSlot-uint64(b.First)))
		b.Length = int64(c.Uvarint(uint64(ref.Index - off)))
		b.Raw = int64(c.Uvarint(maxBlock))
		b.Entries = int64(c.Uvarint(min(blockEntries, uint64(b.Raw))))
		b.Sum = c.Uint32()
		if b.Kind == QueuedBlock {
			b.Rank = uint32(c.Uvarint(1<<32 - 1))
			b.Key = string(c.Prefixed(wire.MaxHost))
		}
		ordered := i == 0 || blocks[i-1].First <= b.First
		if b.Kind == 0 || b.First < ref.First || b.Last > ref.Last || b.Length > b.Raw || !ordered {
			c.Fail("block %d of the index", i)
		}
		off, entries = off+b.Length, entries+b.Entries
		blocks = append(blocks, b)
	}
	if off != ref.Index || entries != ref.Entries {
		c.Fail("blocks of %d bytes and %d entries, not %d and %d", off, entries, ref.Index, ref.Entries)
	}
	return blocks
}

// readFilter makes checks that the library lacks: a filter without bits makes it divide by zero, and a filter without
// hashes matches everything.
func readFilter(c *wire.Cursor) *bloom.BloomFilter {
	n := c.Uvarint(uint64(len(c.Rest) / 8))
	hashes := c.Uvarint(maxHashes)
	b := c.Take(n * 8)
	if n == 0 || hashes == 0 || c.Err != nil {
		c.Fail("filter of %d words and %d hashes", n, hashes)
		return nil
	}
	words := make([]uint64, n)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return bloom.FromWithM(words, uint(n)*64, uint(hashes))
}

// Blocks returns the blocks with entries of the slots first to last, in their stored
// order.
func (x *RunIndex) Blocks(first, last partition.Slot) []BlockRef {
	var out []BlockRef
	for _, b := range x.blocks {
		if b.First <= last && b.Last >= first {
			out = append(out, b)
		}
	}
	return out
}

// Range returns a range of the run's bytes with all blocks of the slots
// first to last, and little else. It is empty if the run has no entry of them.
func (x *RunIndex) Range(first, last partition.Slot) (off, length int64) {
	blocks := x.Blocks(first, last)
	if len(blocks) == 0 {
		return 0, 0
	}
	end := blocks[len(blocks)-1]
	return blocks[0].Offset, end.Offset + end.Length - blocks[0].Offset
}

// MayContain reports whether a URL may be in the run, settled or queued. False is
// certain; true is wrong for fewer than 1 in 100 of the URLs that are not in the run.
func (x *RunIndex) MayContain(fp uint64) bool {
	var key [8]byte
	return x.filter.Test(filterKey(&key, fp))
}

// DecodeBlock appends the entries of a block for the slots first to last to into. data
// are the block's bytes, which are not kept. After an error into is unchanged.
func DecodeBlock(data []byte, ref BlockRef, into *Run, first, last partition.Slot) error {
	var d blockDecoder
	if err := d.decode(data, ref, into, first, last); err != nil {
		return fmt.Errorf("decode block: %w", err)
	}
	return nil
}

// DecodeRun appends all entries of a run to into. data are the run's bytes, which
// are not kept. After an error into is unchanged.
func DecodeRun(data []byte, ref RunRef, into *Run) error {
	if ref.Index < 0 || ref.Index > int64(len(data)) {
		return fmt.Errorf("decode run: %w", wire.Damaged("index at %d of %d bytes", ref.Index, len(data)))
	}
	x, err := OpenRun(data[ref.Index:], ref)
	if err != nil {
		return fmt.Errorf("decode run: %w", err)
	}
	before := *into
	x.grow(into, len(data))
	var d blockDecoder
	for _, b := range x.blocks {
		if err := d.decode(data[b.Offset:b.Offset+b.Length], b, into, 0, maxSlot); err != nil {
			*into = before
			return fmt.Errorf("decode run: block at %d: %w", b.Offset, err)
		}
	}
	return nil
}

// grow allocates room for all entries at once. It trusts the counts of the index up to
// one entry per byte.
func (x *RunIndex) grow(into *Run, believed int) {
	var n [KeyBlock + 1]int
	for _, b := range x.blocks {
		n[b.Kind] = min(n[b.Kind]+int(b.Entries), believed)
	}
	into.Settled = slices.Grow(into.Settled, n[SettledBlock])
	into.Queued = slices.Grow(into.Queued, n[QueuedBlock])
	into.Keys = slices.Grow(into.Keys, n[KeyBlock])
}

// maxKeyData bounds KeyState.Data, in bytes.
const maxKeyData = 1 << 20

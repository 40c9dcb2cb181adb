package blobschema

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// cloneRun copies a run, for functions that sort theirs.
func cloneRun(r *Run) *Run {
	return &Run{Settled: slices.Clone(r.Settled), Queued: slices.Clone(r.Queued), Keys: slices.Clone(r.Keys)}
}

func sorted(r *Run) *Run {
	r = cloneRun(r)
	r.Sort()
	return r
}

// diffRuns compares two runs in order of storage.
func diffRuns(want, got *Run) string {
	want, got = sorted(want), sorted(got)
	if reflect.DeepEqual(want, got) {
		return "" // cmp is slow
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}

// inSlots returns the entries of a run in the slots first to last.
func inSlots(r *Run, first, last partition.Slot) *Run {
	return cloneRun(r).Only(func(s partition.Slot) bool { return first <= s && s <= last })
}

func TestRunRoundTrip(t *testing.T) {
	h := testHash(t)
	extreme := &Run{
		Settled: []Settled{
			{Slot: 0, Fingerprint: 0, Generation: 0, State: Fetched},
			{Slot: maxSlot, Fingerprint: 1<<64 - 1, Generation: 1<<32 - 1, State: Refused},
		},
		Queued: []Queued{
			{},
			{URL: "no prefix at all", Key: "h"},
			{Slot: maxSlot, Key: string(bytes.Repeat([]byte("h"), wire.MaxHost)), Rank: 1<<32 - 1,
				URL: string(bytes.Repeat([]byte("u"), wire.MaxURL)), Generation: 1<<32 - 1, Depth: 1<<16 - 1, Attempts: 255, Flags: 255, NotBefore: -1 << 63},
			{Slot: maxSlot, NotBefore: 1<<63 - 1},
		},
		Keys: []KeyState{{Version: 1<<64 - 1}, {Slot: maxSlot, Key: "h", Data: make([]byte, maxKeyData)}},
	}
	w := newWeb(t, 1)
	for name, run := range map[string]*Run{
		"one settled":  w.run(1, 0, 0),
		"one queued":   w.run(0, 1, 0),
		"one host":     w.run(0, 0, 1),
		"extremes":     extreme,
		"few of all":   w.run(10, 10, 10),
		"block of all": w.run(settledPerBlock, 2000, 500),
		"many blocks":  w.run(3*settledPerBlock+1, 15_000, 3000),
	} {
		t.Run(name, func(t *testing.T) {
			if err := run.Check(); err != nil {
				t.Fatal(err)
			}
			data, ref := EncodeRun(cloneRun(run), h)
			all := sorted(run)
			var slots []partition.Slot
			for _, s := range all.Settled {
				slots = append(slots, s.Slot)
			}
			for _, q := range all.Queued {
				slots = append(slots, q.Slot)
			}
			for _, s := range all.Keys {
				slots = append(slots, s.Slot)
			}
			want := RunRef{Length: int64(len(data)), Index: ref.Index, First: slices.Min(slots), Last: slices.Max(slots), Entries: int64(run.Len())}
			if diff := cmp.Diff(want, ref); diff != "" {
				t.Errorf("ref differs (-want +got):\n%s", diff)
			}
			got := &Run{Settled: []Settled{{Fingerprint: 5, State: Fetched}}}
			if err := DecodeRun(data, ref, got); err != nil {
				t.Fatal(err)
			}
			if got.Settled[0].Fingerprint != 5 {
				t.Error("DecodeRun did not append")
			}
			got.Settled = got.Settled[1:]
			if diff := diffRuns(run, got); diff != "" {
				t.Errorf("run differs (-want +got):\n%.2000s", diff)
			}
			again, _ := EncodeRun(got, h)
			if !bytes.Equal(data, again) {
				t.Error("what was decoded is encoded differently")
			}
		})
	}
}

func TestRunEmpty(t *testing.T) {
	if data, ref := EncodeRun(&Run{}, testHash(t)); len(data) != 0 || ref != (RunRef{}) {
		t.Errorf("empty run is %d bytes, %+v", len(data), ref)
	}
}

// TestRunSizes pins the stored size of the state.
func TestRunSizes(t *testing.T) {
	h, w := testHash(t), newWeb(t, 1)
	for _, tt := range []struct {
		name  string
		run   *Run
		bound float64 // bytes per entry in blocks and index
	}{
		{"settled, one partition of a large crawl", w.run(100_000, 0, 0), 8.8},
		{"settled, as a commit adds them", w.run(2_000, 0, 0), 9.5},
		{"queued, one partition of a large crawl", w.run(0, 50_000, 0), 17},
		{"queued, as a commit adds them", w.run(0, 28_000, 0), 18},
	} {
		data, ref := EncodeRun(tt.run, h)
		n := float64(tt.run.Len())
		perEntry, filter := float64(ref.Index)/n, float64(ref.Length-ref.Index)/n
		t.Logf("%s: %.2f bytes an entry, and %.2f of index and filter", tt.name, perEntry, filter)
		if perEntry > tt.bound || filter > 1.5 || len(data) != int(ref.Length) {
			t.Errorf("%s: %.2f and %.2f bytes an entry are above %.2f and 1.5", tt.name, perEntry, filter, tt.bound)
		}
	}
}

func TestRunSlots(t *testing.T) {
	h := testHash(t)
	run := newWeb(t, 2).run(30_000, 20_000, 2_000)
	data, ref := EncodeRun(run, h)
	x, err := OpenRun(data[ref.Index:], ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]partition.Slot{{0, maxSlot}, {0, 0}, {1024, 1024}, {3072, 6144}, {1, 1023}, {5000, 5200}, {maxSlot, maxSlot}, {7, 3}} {
		got := &Run{}
		off, length := x.Range(r[0], r[1])
		part := data[off : off+length]
		for _, b := range x.Blocks(r[0], r[1]) {
			if err := DecodeBlock(part[b.Offset-off:][:b.Length], b, got, r[0], r[1]); err != nil {
				t.Fatal(err)
			}
		}
		want := inSlots(run, r[0], r[1])
		if diff := diffRuns(want, got); diff != "" {
			t.Errorf("slots %d to %d differ (-want +got):\n%.2000s", r[0], r[1], diff)
		}
		// Five blocks of each kind may be read without success.
		if n := want.Len(); r[0] <= r[1] && length > int64(n*20+10*blockTarget) {
			t.Errorf("slots %d to %d: %d bytes are read for %d entries", r[0], r[1], length, n)
		}
	}
}

// TestRunGiantHost reads the best URLs of a host that spans blocks, and only them.
func TestRunGiantHost(t *testing.T) {
	h, r := testHash(t), newRand(3)
	run := &Run{}
	for i := range 30_000 {
		run.Queued = append(run.Queued, Queued{Slot: 7, Key: "big.example", URL: fmt.Sprintf("https://big.example/%d/%d", r.Uint64(), i), Rank: uint32(r.IntN(1000))})
	}
	data, ref := EncodeRun(run, h)
	x, err := OpenRun(data[ref.Index:], ref)
	if err != nil {
		t.Fatal(err)
	}
	blocks := x.Blocks(7, 7)
	if len(blocks) < 4 {
		t.Fatalf("%d blocks only", len(blocks))
	}
	before := uint32(0)
	for i, b := range blocks {
		var got Run
		if err := DecodeBlock(data[b.Offset:][:b.Length], b, &got, 7, 7); err != nil {
			t.Fatal(err)
		}
		if b.Kind != QueuedBlock || b.Key != "big.example" || b.Rank != got.Queued[0].Rank || b.Rank < before {
			t.Errorf("block %d begins with host %s and rank %d after %d", i, b.Key, b.Rank, before)
		}
		before = got.Queued[len(got.Queued)-1].Rank
	}
	if b := blocks[0]; b.Entries > 5000 || b.Rank != 0 {
		t.Errorf("first block has %d entries from rank %d", b.Entries, b.Rank)
	}
}

func TestRunFilter(t *testing.T) {
	h, w := testHash(t), newWeb(t, 4)
	run := w.run(10_000, 10_000, 0)
	data, ref := EncodeRun(run, h)
	x, err := OpenRun(data[ref.Index:], ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range run.Settled {
		if !x.MayContain(s.Fingerprint) {
			t.Fatalf("settled fingerprint %x is denied", s.Fingerprint)
		}
	}
	for _, q := range run.Queued {
		if !x.MayContain(h.Fingerprint(q.URL)) {
			t.Fatalf("queued URL %s is denied", q.URL)
		}
	}
	wrong := 0
	for range 100_000 {
		if x.MayContain(w.r.Uint64()) {
			wrong++
		}
	}
	t.Logf("%.2f %% wrong", float64(wrong)/1000)
	if wrong > 1000 {
		t.Errorf("%d of 100000 unknown fingerprints are thought known", wrong)
	}
	onlyHosts, ref := EncodeRun(w.run(0, 0, 5), h)
	if x, err = OpenRun(onlyHosts[ref.Index:], ref); err != nil || x.MayContain(1) {
		t.Errorf("run without URLs may contain one, or: %v", err)
	}
}

// goldenRun is a run in this version of the format; later versions must read it.
const goldenRun = "AgMBAgEB/gL9A/wE+wX6BvkH+QgBAQACAQECAQADAQCsAgIFAgIJYS5leGFtcGxlAQQCAAABAQIBAAEBAAEBANAPAQABAQACAQAD" +
	"AQCAgID+AwEAgICAjgQAEgEBeHkBBQEABwkABWEuZXhhbXBsZXN0YXRlAwEDAiIiAmXkPhQCBQA9PQIPn3JbBAlhLmV4YW1wbGUDBQAWFgF84N6RAQcVAFTEQBV0FHUAAAAAAAAAuqgciQVPV1I="

func TestRunGolden(t *testing.T) {
	h := testHash(t)
	run := &Run{
		Settled: []Settled{{Slot: 3, Fingerprint: 0x0102030405060708, State: Fetched}, {Slot: 5, Fingerprint: 9, Generation: 2, State: Refused, Record: RecordRef{3, 300}}},
		Queued:  []Queued{{Slot: 5, Key: "a.example", Rank: 4, URL: "https://a.example/x", Depth: 1}, {Slot: 5, Key: "a.example", Rank: 6, URL: "https://a.example/y", Depth: 2, Attempts: 1, NotBefore: 1000, Flags: FlagSeed, Previous: RecordRef{1, 2}, Topic: 3, Change: Change{Shape: 1.5, Hours: 24}}},
		Keys:    []KeyState{{Slot: 5, Key: "a.example", Version: 7, Data: []byte("state")}},
	}
	data, err := base64.StdEncoding.DecodeString(goldenRun)
	if err != nil {
		t.Fatal(err)
	}
	var got Run
	if err := DecodeRun(data, RunRef{Length: 185, Index: 117, First: 3, Last: 5, Entries: 5}, &got); err != nil {
		now, ref := EncodeRun(run, h)
		t.Fatalf("%v\nnow it is %s\n%+v", err, base64.StdEncoding.EncodeToString(now), ref)
	}
	if diff := diffRuns(run, &got); diff != "" {
		t.Errorf("run differs (-want +got):\n%s", diff)
	}
}

func TestRunDamage(t *testing.T) {
	h, w := testHash(t), newWeb(t, 5)
	data, ref := EncodeRun(w.run(20, 20, 5), h)
	into := &Run{Settled: []Settled{{Fingerprint: 1, State: Fetched}}}
	eachDamage(data, func(what string, b []byte) {
		if err := DecodeRun(b, ref, into); !isRefusal(err) {
			t.Errorf("%s: error %v", what, err)
		}
		if into.Len() != 1 {
			t.Fatalf("%s: %d entries were added", what, into.Len()-1)
		}
	})
	for name, change := range map[string]func(r *RunRef){
		"entries": func(r *RunRef) { r.Entries++ },
		"index":   func(r *RunRef) { r.Index-- },
		"before":  func(r *RunRef) { r.Index = -1 },
		"behind":  func(r *RunRef) { r.Index = 1 << 40 },
		"length":  func(r *RunRef) { r.Length++ },
		"first":   func(r *RunRef) { r.First++ },
		"last":    func(r *RunRef) { r.Last-- },
		"huge":    func(r *RunRef) { r.Index, r.Length = 1<<63-1, -1<<63 },
	} {
		other := ref
		change(&other)
		if err := DecodeRun(data, other, into); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("ref with another %s: error %v", name, err)
		}
	}
	x, err := OpenRun(data[ref.Index:], ref)
	if err != nil {
		t.Fatal(err)
	}
	b := x.Blocks(0, maxSlot)[0]
	stored := data[:b.Length]
	for name, change := range map[string]func(r *BlockRef){
		"entries": func(r *BlockRef) { r.Entries++ },
		"kind":    func(r *BlockRef) { r.Kind = 9 },
		"first":   func(r *BlockRef) { r.First++ },
		"last":    func(r *BlockRef) { r.Last -= 1024 },
		"raw":     func(r *BlockRef) { r.Raw++ },
		"big raw": func(r *BlockRef) { r.Raw = 1 << 50 },
		"no raw":  func(r *BlockRef) { r.Raw = -1 },
		"length":  func(r *BlockRef) { r.Length++ },
	} {
		other := b
		change(&other)
		if err := DecodeBlock(stored, other, into, 0, maxSlot); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("block ref with another %s: error %v", name, err)
		}
	}
	data[len(data)-len(runEnd)-1]++
	if err := DecodeRun(data, ref, into); !errors.Is(err, wire.ErrVersion) {
		t.Errorf("run of another version: %v", err)
	}
}

func TestRunCheck(t *testing.T) {
	for name, run := range map[string]Run{
		"pending settled": {Settled: []Settled{{State: Pending}}},
		"settled state":   {Settled: []Settled{{State: 4}}},
		"settled origin":  {Settled: []Settled{{State: Fetched, Record: RecordRef{Partition: partition.MaxPartitions}}}},
		"queued former":   {Queued: []Queued{{Previous: RecordRef{Partition: partition.MaxPartitions}}}},
		"settled slot":    {Settled: []Settled{{State: Fetched, Slot: maxSlot + 1}}},
		"queued slot":     {Queued: []Queued{{Slot: maxSlot + 1}}},
		"queued URL":      {Queued: []Queued{{URL: string(make([]byte, wire.MaxURL+1))}}},
		"queued host":     {Queued: []Queued{{Key: string(make([]byte, wire.MaxHost+1))}}},
		"host slot":       {Keys: []KeyState{{Slot: maxSlot + 1}}},
		"host host":       {Keys: []KeyState{{Key: string(make([]byte, wire.MaxHost+1))}}},
		"host data":       {Keys: []KeyState{{Data: make([]byte, maxKeyData+1)}}},
	} {
		if run.Check() == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// FuzzBlock fuzzes the content below the checksum of a block, as a foreign or faulty writer could write it.
func FuzzBlock(f *testing.F) {
	h := testHash(f)
	for _, run := range []*Run{newWeb(f, 1).run(5, 0, 0), newWeb(f, 1).run(0, 5, 0), newWeb(f, 1).run(0, 0, 5)} {
		data, ref := EncodeRun(run, h)
		x, err := OpenRun(data[ref.Index:], ref)
		if err != nil {
			f.Fatal(err)
		}
		b := x.Blocks(0, maxSlot)[0]
		raw := data[:b.Length]
		if b.Raw != b.Length {
			if raw, err = wire.Decompress(nil, raw, int(b.Raw)); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(raw, byte(b.Kind), b.Entries, uint32(b.First), uint32(b.Last))
	}
	f.Fuzz(func(t *testing.T, raw []byte, kind byte, entries int64, first, last uint32) {
		ref := BlockRef{Kind: BlockKind(kind), First: partition.Slot(first), Last: partition.Slot(last), Entries: entries,
			Length: int64(len(raw)), Raw: int64(len(raw)), Sum: wire.Checksum(raw)}
		got := &Run{}
		if err := DecodeBlock(raw, ref, got, 0, maxSlot); err != nil {
			if !isRefusal(err) || got.Len() != 0 {
				t.Fatalf("%d entries and error %v", got.Len(), err)
			}
			return
		}
		if got.Len() != int(entries) || got.Check() != nil {
			t.Fatalf("%d entries, not %d, %v", got.Len(), entries, got.Check())
		}
		again := &Run{}
		data, runRef := EncodeRun(cloneRun(got), h)
		if err := DecodeRun(data, runRef, again); err != nil {
			t.Fatal(err)
		}
		if diff := diffRuns(got, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzIndex does the same for index and filter.
func FuzzIndex(f *testing.F) {
	h := testHash(f)
	data, ref := EncodeRun(newWeb(f, 1).run(5, 5, 5), h)
	f.Add(data[ref.Index:len(data)-runTail], ref.Index, ref.Entries)
	f.Add([]byte{0, 0, 0}, int64(0), int64(0)) // a filter of no bits and no hashes
	f.Add([]byte{0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1}, int64(0), int64(0))
	f.Fuzz(func(t *testing.T, body []byte, index, entries int64) {
		tail := binary.LittleEndian.AppendUint64(bytes.Clone(body), uint64(index))
		tail = binary.LittleEndian.AppendUint32(tail, wire.Checksum(tail))
		tail = append(append(tail, wire.Version), runEnd...)
		ref := RunRef{Index: index, Length: index + int64(len(tail)), Last: maxSlot, Entries: entries}
		x, err := OpenRun(tail, ref)
		if err != nil {
			if !isRefusal(err) {
				t.Fatal(err)
			}
			return
		}
		x.MayContain(1)
		if off, n := x.Range(0, maxSlot); off < 0 || n < 0 || off+n > index {
			t.Fatalf("blocks from %d, %d bytes, of %d", off, n, index)
		}
	})
}

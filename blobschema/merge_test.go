package blobschema

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/orbweaver/orbweaver/partition"
)

func TestMergeRules(t *testing.T) {
	h := testHash(t)
	const url = "https://a.example/"
	fp := h.Fingerprint(url)
	settled := func(generation uint32, s State) *Run {
		return &Run{Settled: []Settled{{Slot: 1, Fingerprint: fp, Generation: generation, State: s}}}
	}
	queued := func(q Queued) *Run {
		q.Slot, q.Key, q.URL = 1, "a.example", url
		return &Run{Queued: []Queued{q}}
	}
	host := func(version uint64, data string) *Run {
		return &Run{Keys: []KeyState{{Slot: 1, Key: "a.example", Version: version, Data: []byte(data)}}}
	}
	for _, tt := range []struct {
		name       string
		a, b, want *Run
	}{
		{"refused above fetched", settled(1, Fetched), settled(1, Refused), settled(1, Refused)},
		{"generation above state", settled(1, Refused), settled(2, Fetched), settled(2, Fetched)},
		{"settled drops pending", settled(1, Fetched), queued(Queued{Generation: 1}), settled(1, Fetched)},
		{"settled drops older pending", settled(2, Fetched), queued(Queued{Generation: 1}), settled(2, Fetched)},
		{"requested again", settled(1, Refused), queued(Queued{Generation: 2}), queued(Queued{Generation: 2})},
		{"settled but pending is no reason to drop", settled(1, Pending), queued(Queued{Generation: 1}), queued(Queued{Generation: 1})},
		{"newer pending", queued(Queued{Generation: 2, Rank: 9, Depth: 9}), queued(Queued{Generation: 1}), queued(Queued{Generation: 2, Rank: 9, Depth: 9})},
		{"fields of pending", queued(Queued{Rank: 5, Depth: 1, Flags: 1, Attempts: 2, NotBefore: 10}),
			queued(Queued{Rank: 4, Depth: 3, Flags: 2, Attempts: 1, NotBefore: 99}),
			queued(Queued{Rank: 4, Depth: 1, Flags: 3, Attempts: 2, NotBefore: 10})},
		{"topic and change", queued(Queued{Topic: 2, Change: Change{1, 5}}), queued(Queued{Topic: 1, Change: Change{2, 4}}),
			queued(Queued{Topic: 1, Change: Change{1, 5}})},
		{"not before, of equal attempts", queued(Queued{Attempts: 2, NotBefore: 10}), queued(Queued{Attempts: 2, NotBefore: 11}),
			queued(Queued{Attempts: 2, NotBefore: 11})},
		{"host versions", host(2, "a"), host(1, "b"), host(2, "a")},
		{"host data", host(2, "a"), host(2, "b"), host(2, "b")},
	} {
		for _, runs := range [][]*Run{{tt.a, tt.b}, {tt.b, tt.a}, {tt.a, tt.b, tt.a}} {
			if diff := diffRuns(tt.want, MergeRuns(h, runs)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.name, diff)
			}
		}
	}
	other := settled(1, Fetched)
	other.Settled[0].Slot = 2
	if got := MergeRuns(h, []*Run{other, queued(Queued{})}); got.Len() != 2 {
		t.Error("a URL is dropped for one of another slot")
	}
}

// smallRun returns an unsorted run of few URLs, so that runs often share URLs.
func smallRun(r *rand.Rand, h partition.Hash) *Run {
	urls := []string{"https://a.example/1", "https://a.example/2", "https://b.example/1", "https://b.example/2", "https://c.example/"}
	run := &Run{}
	for range r.IntN(6) {
		run.Settled = append(run.Settled, Settled{Slot: partition.Slot(r.IntN(2)), Fingerprint: h.Fingerprint(urls[r.IntN(len(urls))]),
			Generation: uint32(r.IntN(3)), State: State(1 + r.IntN(3)), Record: someRef(r)})
	}
	for range r.IntN(8) {
		q := Queued{Slot: partition.Slot(r.IntN(2)), Rank: uint32(r.IntN(3)), URL: urls[r.IntN(len(urls))], Generation: uint32(r.IntN(3)),
			Depth: uint16(r.IntN(3)), Attempts: uint8(r.IntN(3)), Flags: QueuedFlags(r.IntN(4)), NotBefore: int64(r.IntN(3)), Previous: someRef(r),
			Topic: uint8(r.IntN(3)), Change: Change{float32(r.IntN(2)), float32(r.IntN(2))}}
		if r.IntN(3) == 0 {
			q.Flags = FlagRequisite | q.Flags<<4
		}
		q.Key = q.URL[8:17]
		if r.IntN(10) == 0 {
			q.Key = "other.example"
		}
		run.Queued = append(run.Queued, q)
	}
	for range r.IntN(4) {
		run.Keys = append(run.Keys, KeyState{Slot: partition.Slot(r.IntN(2)), Key: string(rune('a' + r.IntN(2))),
			Version: uint64(r.IntN(3)), Data: []byte{byte(r.IntN(3))}})
	}
	return run
}

func someRef(r *rand.Rand) RecordRef {
	return RecordRef{Partition: partition.ID(r.IntN(2)), Seq: uint32(r.IntN(3))}
}

// mergeSlowly defines a merge, entry by entry.
func mergeSlowly(h partition.Hash, runs []*Run) *Run {
	type key struct {
		slot partition.Slot
		fp   uint64
	}
	type entry struct {
		generation uint32
		state      State
		record     RecordRef
		queued     Queued
	}
	type hostKey struct {
		slot partition.Slot
		key  string
	}
	urls := make(map[key]entry)
	hosts := make(map[hostKey]KeyState)
	put := func(k key, e entry) {
		old, known := urls[k]
		switch c := cmp.Or(cmp.Compare(e.generation, old.generation), cmp.Compare(e.state, old.state), e.record.Compare(old.record)); {
		case !known || c > 0:
			urls[k] = e
		case c == 0 && e.state == Pending:
			q, o := e.queued, old.queued
			if o.Attempts > q.Attempts || o.Attempts == q.Attempts && o.NotBefore > q.NotBefore {
				q.Attempts, q.NotBefore = o.Attempts, o.NotBefore
			}
			switch {
			case q.Flags.Requisite() && !o.Flags.Requisite():
				q.Rank, q.Depth, q.Topic = o.Rank, o.Depth, o.Topic
			case q.Flags.Requisite() == o.Flags.Requisite():
				q.Rank, q.Depth, q.Topic = min(q.Rank, o.Rank), min(q.Depth, o.Depth), min(q.Topic, o.Topic)
			}
			q.Flags = q.Flags.Join(o.Flags)
			q.Key, q.URL = min(q.Key, o.Key), min(q.URL, o.URL)
			if o.Previous.Compare(q.Previous) > 0 {
				q.Previous = o.Previous
			}
			if o.Change.Compare(q.Change) > 0 {
				q.Change = o.Change
			}
			urls[k] = entry{generation: e.generation, queued: q}
		}
	}
	for _, r := range runs {
		for _, s := range r.Settled {
			put(key{s.Slot, s.Fingerprint}, entry{generation: s.Generation, state: s.State, record: s.Record})
		}
		for _, q := range r.Queued {
			put(key{q.Slot, h.Fingerprint(q.URL)}, entry{generation: q.Generation, queued: q})
		}
		for _, s := range r.Keys {
			k := hostKey{s.Slot, s.Key}
			if old, known := hosts[k]; !known || s.Version > old.Version || s.Version == old.Version && bytes.Compare(s.Data, old.Data) > 0 {
				hosts[k] = s
			}
		}
	}
	out := &Run{}
	for k, e := range urls {
		if e.state == Pending {
			out.Queued = append(out.Queued, e.queued)
		} else {
			out.Settled = append(out.Settled, Settled{k.slot, k.fp, e.generation, e.state, e.record})
		}
	}
	for _, s := range hosts {
		out.Keys = append(out.Keys, s)
	}
	return out
}

// TestMergeProperties checks that a merge is a join: its result does not depend on order and grouping.
func TestMergeProperties(t *testing.T) {
	h, r := testHash(t), newRand(6)
	for i := range 5000 {
		a, b, c := smallRun(r, h), smallRun(r, h), smallRun(r, h)
		before := []*Run{cloneRun(a), cloneRun(b), cloneRun(c)}
		abc := MergeRuns(h, []*Run{a, b, c})
		for name, other := range map[string]*Run{
			"one by one":    mergeSlowly(h, []*Run{a, b, c}),
			"commutative":   MergeRuns(h, []*Run{c, a, b}),
			"associative":   MergeRuns(h, []*Run{a, MergeRuns(h, []*Run{b, c})}),
			"associative 2": MergeRuns(h, []*Run{MergeRuns(h, []*Run{a, b}), c}),
			"idempotent":    MergeRuns(h, []*Run{abc, a, abc, c}),
		} {
			if diff := diffRuns(abc, other); diff != "" {
				t.Fatalf("round %d: not %s (-abc +other):\n%s", i, name, diff)
			}
		}
		if !slices.IsSortedFunc(abc.Settled, compareSettled) || !slices.IsSortedFunc(abc.Queued, compareQueued) || !slices.IsSortedFunc(abc.Keys, compareKeys) {
			t.Fatalf("round %d: the merge is not sorted", i)
		}
		for j, run := range []*Run{a, b, c} {
			if diff := diffRuns(before[j], run); diff != "" {
				t.Fatalf("round %d: merging changed a run:\n%s", i, diff)
			}
		}
	}
}

// TestMergeLarge merges sorted runs that share half of their URLs, and an unsorted one.
func TestMergeLarge(t *testing.T) {
	h := testHash(t)
	var runs []*Run
	for i := range 5 {
		r := newWeb(t, uint64(i/2)).run(3000, 3000, 100)
		for j := range r.Queued {
			r.Queued[j].Rank += uint32(i * j % 7)
		}
		for j := range r.Settled[:1000] {
			r.Settled[j].Slot, r.Settled[j].Fingerprint = r.Queued[j].Slot, h.Fingerprint(r.Queued[j].URL)
			r.Settled[j].Generation = uint32(j % 2)
			r.Queued[j].Generation = uint32(j % 3)
		}
		if i < 4 {
			r.Sort()
		}
		runs = append(runs, r)
	}
	got := MergeRuns(h, runs)
	if diff := diffRuns(mergeSlowly(h, runs), got); diff != "" {
		t.Errorf("merge differs (-want +got):\n%.2000s", diff)
	}
	if !slices.IsSortedFunc(got.Queued, compareQueued) {
		t.Error("the merge is not sorted")
	}
}

func TestSortPieces(t *testing.T) {
	r := newRand(7)
	for range 2000 {
		var s []int
		for range r.IntN(40) { // also more pieces than one merge takes
			piece := make([]int, r.IntN(5))
			for i := range piece {
				piece[i] = r.IntN(20)
			}
			slices.Sort(piece)
			s = append(s, piece...)
		}
		want := slices.Sorted(slices.Values(s))
		sortPieces(s, cmp.Compare[int])
		if !slices.Equal(s, want) {
			t.Fatalf("sorted to %v, want %v", s, want)
		}
	}
}

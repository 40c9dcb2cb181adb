package blobschema

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/partition"
)

func compareSettled(a, b Settled) int {
	if a.Slot != b.Slot {
		return cmp.Compare(a.Slot, b.Slot)
	}
	if a.Fingerprint != b.Fingerprint {
		return cmp.Compare(a.Fingerprint, b.Fingerprint)
	}
	if a.Generation != b.Generation {
		return cmp.Compare(a.Generation, b.Generation)
	}
	if a.State != b.State {
		return cmp.Compare(a.State, b.State)
	}
	return a.Record.Compare(b.Record)
}

func compareQueued(a, b Queued) int {
	if a.Slot != b.Slot {
		return cmp.Compare(a.Slot, b.Slot)
	}
	if c := strings.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	if a.Rank != b.Rank {
		return cmp.Compare(a.Rank, b.Rank)
	}
	return strings.Compare(a.URL, b.URL)
}

func compareKeys(a, b KeyState) int {
	if a.Slot != b.Slot {
		return cmp.Compare(a.Slot, b.Slot)
	}
	return strings.Compare(a.Key, b.Key)
}

// MergeRuns joins runs into a new one, as [Join] does, and does not change them.
func MergeRuns(h partition.Hash, runs []*Run) *Run {
	var settled, queued, hosts int
	for _, r := range runs {
		settled, queued, hosts = settled+len(r.Settled), queued+len(r.Queued), hosts+len(r.Keys)
	}
	out := &Run{
		Settled: make([]Settled, 0, settled),
		Queued:  make([]Queued, 0, queued),
		Keys:    make([]KeyState, 0, hosts),
	}
	for _, r := range runs {
		out.Settled = append(out.Settled, r.Settled...)
		out.Queued = append(out.Queued, r.Queued...)
		out.Keys = append(out.Keys, r.Keys...)
	}
	Join(h, out)
	return out
}

// Join replaces the entries of run by their join, sorted: one entry per URL
// and one per politeness key. To merge several runs, decode them into one Run and join
// it. For each slot and fingerprint
//
//   - the highest (Generation, State) wins, where a Queued entry has the state
//     Pending. A URL that is requested again is thus only pending. The page records keep
//     the results of lower generations.
//   - Queued entries of the same generation become one, with the lowest Rank, Depth and
//     Topic, the joined Flags, the greatest Previous and Change, the most Attempts and, among entries with those, the
//     latest NotBefore (the newest failed attempt knows best when to retry). The Rank, Depth and Topic of a requisite
//     count only if all entries are requisites.
//   - Of the states of a politeness key the higher Version wins, then the greater Data.
//
// Every rule takes the greater value in some order, of a field or of an entry. Joining
// is thus commutative, associative and idempotent: runs merge in any order and any
// number of times (invariants I7, I8). Stored runs are sorted, so they join in linear time,
// except for a sort of the pending fingerprints.
func Join(h partition.Hash, run *Run) {
	run.Keys = joinKeys(run.Keys)
	run.Settled = joinSettled(run.Settled)
	if joinQueued(h, run) {
		slices.SortFunc(run.Queued, compareQueued)
	} else {
		sortPieces(run.Queued, compareQueued)
	}
}

func joinKeys(hosts []KeyState) []KeyState {
	sortPieces(hosts, compareKeys)
	n := 0
	for i, s := range hosts {
		if n == 0 || compareKeys(hosts[n-1], s) != 0 {
			hosts[n] = s
			n++
		} else if last := &hosts[n-1]; s.Version > last.Version ||
			s.Version == last.Version && bytes.Compare(s.Data, last.Data) > 0 {
			hosts[n-1] = hosts[i]
		}
	}
	clear(hosts[n:])
	return hosts[:n]
}

// joinSettled keeps the last entry of each fingerprint, which is the highest.
func joinSettled(settled []Settled) []Settled {
	sortPieces(settled, compareSettled)
	n := 0
	for _, s := range settled {
		if n > 0 && settled[n-1].Slot == s.Slot && settled[n-1].Fingerprint == s.Fingerprint {
			n--
		}
		settled[n] = s
		n++
	}
	return settled[:n]
}

// queuedKey places a Queued entry among the fingerprints.
type queuedKey struct {
	fp   uint64
	slot partition.Slot
	at   uint32 // in Run.Queued
}

// joinQueued joins the pending URLs with each other and with the settled ones. The remaining
// URLs keep their order, unless it returns true.
func joinQueued(h partition.Hash, run *Run) (unordered bool) {
	keys := make([]queuedKey, len(run.Queued))
	for i := range run.Queued {
		q := &run.Queued[i]
		keys[i] = queuedKey{fp: h.Fingerprint(q.URL), slot: q.Slot, at: uint32(i)}
	}
	slices.SortFunc(keys, func(a, b queuedKey) int {
		if a.slot != b.slot {
			return cmp.Compare(a.slot, b.slot)
		}
		if a.fp != b.fp {
			return cmp.Compare(a.fp, b.fp)
		}
		return cmp.Compare(a.at, b.at)
	})
	dropped := make([]bool, len(run.Queued))
	settled, kept := run.Settled, run.Settled[:0]
	for i := 0; i < len(keys); {
		k := keys[i]
		best := k.at
		for i++; i < len(keys) && keys[i].slot == k.slot && keys[i].fp == k.fp; i++ {
			winner, loser, moved := joinPair(run.Queued, best, keys[i].at)
			best, dropped[loser], unordered = winner, true, unordered || moved
		}
		for len(settled) > 0 && (settled[0].Slot < k.slot || settled[0].Slot == k.slot && settled[0].Fingerprint < k.fp) {
			kept = append(kept, settled[0])
			settled = settled[1:]
		}
		if len(settled) == 0 || settled[0].Slot != k.slot || settled[0].Fingerprint != k.fp {
			continue
		}
		if s := settled[0]; s.State == Pending && s.Generation == run.Queued[best].Generation ||
			s.Generation < run.Queued[best].Generation {
			settled = settled[1:] // requested again
		} else {
			dropped[best] = true
		}
	}
	run.Settled = append(kept, settled...)
	n := 0
	for i := range run.Queued {
		if !dropped[i] {
			run.Queued[n] = run.Queued[i]
			n++
		}
	}
	clear(run.Queued[n:])
	run.Queued = run.Queued[:n]
	return unordered
}

// joinPair joins q[a] and q[b], two entries of one URL, into the winner: the
// entry with the place of the join in the order. moved is true if neither entry has
// that place, because they have different keys.
func joinPair(q []Queued, a, b uint32) (winner, loser uint32, moved bool) {
	if q[a].Generation < q[b].Generation {
		return b, a, false
	}
	if q[a].Generation > q[b].Generation {
		return a, b, false
	}
	j := q[a]
	winner, loser = a, b
	o := &q[b]
	oneSided := j.Flags.Requisite() != o.Flags.Requisite()
	if c := cmp.Compare(j.Rank, o.Rank); oneSided && j.Flags.Requisite() || !oneSided && (c > 0 || c == 0 && compareQueued(j, *o) > 0) {
		winner, loser = b, a
	}
	if o.Attempts > j.Attempts || o.Attempts == j.Attempts && o.NotBefore > j.NotBefore {
		j.Attempts, j.NotBefore = o.Attempts, o.NotBefore
	}
	switch {
	case !oneSided:
		j.Rank, j.Depth, j.Topic = min(j.Rank, o.Rank), min(j.Depth, o.Depth), min(j.Topic, o.Topic)
	case winner == b:
		j.Rank, j.Depth, j.Topic = o.Rank, o.Depth, o.Topic
	}
	j.Flags = j.Flags.Join(o.Flags)
	j.Key, j.URL = min(j.Key, o.Key), min(j.URL, o.URL)
	if o.Previous.Compare(j.Previous) > 0 {
		j.Previous = o.Previous
	}
	if o.Change.Compare(j.Change) > 0 {
		j.Change = o.Change
	}
	moved = compareQueued(j, q[winner]) != 0
	q[winner] = j
	return winner, loser, moved
}

// sortPieces sorts a list of few sorted pieces, such as concatenated runs, in
// linear time, and any other list like slices.SortFunc.
func sortPieces[T any](s []T, compare func(a, b T) int) {
	var ends []int // of the sorted pieces
	for i := 1; i < len(s); i++ {
		if compare(s[i-1], s[i]) > 0 {
			ends = append(ends, i)
			if len(ends) > 32 { // merging more pieces costs as much as sorting
				slices.SortFunc(s, compare)
				return
			}
		}
	}
	if len(ends) == 0 {
		return
	}
	ends = append(ends, len(s))
	var left []T
	for len(ends) > 1 {
		n, start := 0, 0
		for i := 0; i < len(ends); i += 2 { // the last of an odd number of pieces waits
			end := ends[min(i+1, len(ends)-1)]
			left = mergeTwo(s[start:end], ends[i]-start, left, compare)
			start, ends[n] = end, end
			n++
		}
		ends = ends[:n]
	}
}

// mergeTwo merges s[:mid] and s[mid:]. It moves the first half to scratch,
// which it returns for the next call.
func mergeTwo[T any](s []T, mid int, scratch []T, compare func(a, b T) int) []T {
	left, right := append(scratch[:0], s[:mid]...), s[mid:]
	scratch = left
	n := 0
	for len(left) > 0 && len(right) > 0 {
		if compare(left[0], right[0]) <= 0 {
			s[n], left = left[0], left[1:]
		} else {
			s[n], right = right[0], right[1:]
		}
		n++
	}
	copy(s[n:], left)
	return scratch
}

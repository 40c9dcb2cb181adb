package crawl

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// TestMarks checks that numbers may come in any order and repeatedly. All of them are kept, and only those above a gap
// singly.
func TestMarks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		n := 1 + rng.IntN(30)
		var m blobschema.Marks
		have := map[uint64]bool{0: true} // number 0 does not exist
		for range rng.IntN(60) {
			k := uint64(1 + rng.IntN(n))
			if m.Has(k) != have[k] {
				t.Fatalf("has(%d) is %v of %v", k, m.Has(k), have)
			}
			m.Add(k)
			have[k] = true
		}
		want := blobschema.Marks{}
		for have[want.Low+1] {
			want.Low++
		}
		for k := want.Low + 1; k <= uint64(n); k++ {
			if have[k] {
				want.Above = append(want.Above, k)
			}
		}
		if d := cmp.Diff(want, m, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("%v (-want +got):\n%s", have, d)
		}
		if uint64(len(want.Above))+want.Low != uint64(len(have)-1) {
			t.Fatalf("%d numbers became %+v", len(have)-1, want)
		}
		for k := range uint64(n + 2) {
			if m.Has(k) != have[k] {
				t.Fatalf("has(%d) is %v of %v", k, m.Has(k), have)
			}
		}
	}
	var m blobschema.Marks
	for _, n := range []uint64{0, 3, 2, 3, 1, 1<<64 - 1} {
		m.Add(n)
	}
	if d := cmp.Diff(blobschema.Marks{Low: 3, Above: []uint64{1<<64 - 1}}, m, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestSentFilter checks that the filter is exact, like a plain map, while it holds at most half its limit. A lower depth
// always passes.
func TestSentFilter(t *testing.T) {
	const limit = 200
	rng := rand.New(rand.NewPCG(2, 2))
	f, model := newSentFilter(limit, nil), map[uint64]uint16{}
	for range 5000 {
		fp, depth := uint64(rng.IntN(limit/2)), uint16(rng.IntN(10))
		old, known := model[fp]
		want := !known || depth < old
		if want {
			model[fp] = depth
		}
		if got := adds(f, fp, depth); got != want {
			t.Fatalf("%d at depth %d: got %v, want %v (it was sent at %d: %v)", fp, depth, got, want, old, known)
		}
	}
}

// TestSentFilterIsBounded checks that the filter never exceeds its limit, always knows the last half of it, and never
// reports an unsent link as sent.
func TestSentFilterIsBounded(t *testing.T) {
	const limit = 100
	rng := rand.New(rand.NewPCG(3, 3))
	f, sent := newSentFilter(limit, nil), map[uint64]uint16{}
	for i := range uint64(10_000) {
		fp, depth := i, uint16(0)
		if rng.IntN(2) == 0 {
			fp, depth = uint64(rng.IntN(2000)), uint16(rng.IntN(4))
		}
		old, known := sent[fp]
		if adds(f, fp, depth) {
			sent[fp] = depth
		} else if !known || depth < old {
			t.Fatalf("%d was taken for sent at depth %d", fp, depth)
		}
		if n := len(f.young) + len(f.old); n > limit {
			t.Fatalf("%d links are held, the limit is %d", n, limit)
		}
	}
	for i := range uint64(limit / 2) {
		adds(f, 1_000_000+i, 5)
	}
	for i := range uint64(limit / 2) {
		if adds(f, 1_000_000+i, 5) {
			t.Fatalf("link %d of the last %d is forgotten", i, limit/2)
		}
	}
	zero := newSentFilter(0, nil) // holds next to nothing, and does no harm
	if !adds(zero, 1, 1) || !adds(zero, 2, 1) || !adds(zero, 1, 0) || len(zero.young)+len(zero.old) > 2 {
		t.Error("a filter without room")
	}
}

// adds is add without ranks.
func adds(f *sentFilter, fp uint64, depth uint16) bool {
	_, news := f.add(&frontier.Link{Fingerprint: fp, Depth: depth, Rank: 1})
	return news
}

// TestSentFilterAdds checks policies that add up finds: the owner of a link hears of it when the unsent part equals what it
// knows. So it knows at least half, and hears seldom.
func TestSentFilterAdds(t *testing.T) {
	for _, source := range []string{"in-links", "opic"} {
		p, err := schedule.PolicyByName("quality", source)
		if err != nil {
			t.Fatal(err)
		}
		rated := p.(schedule.Rated)
		rng := rand.New(rand.NewPCG(4, 4))
		f := newSentFilter(100, p)
		found, told, tellings := 0.0, 0.0, 0
		depth := uint16(9)
		for i := range 1000 {
			c := schedule.Candidate{Depth: 9, Cash: rng.Float64()}
			if i == 500 {
				depth--
			}
			rank := p.URLRank(c)
			found += rated.Quality(rank)
			send, news := f.add(&frontier.Link{Fingerprint: 7, Depth: depth, Rank: rank})
			if news {
				tellings++
				told += rated.Quality(send)
			} else if i == 0 || i == 500 {
				t.Errorf("%s: find %d is not told", source, i)
			}
			if told > found*1.01 || told < found*0.49 {
				t.Fatalf("%s: %g was told of %g found", source, told, found)
			}
		}
		if tellings > 14 {
			t.Errorf("%s: told %d times of 1000", source, tellings)
		}
	}
}

// TestCash checks that the quality of a page goes to the links that are followed, if the policy adds up finds.
func TestCash(t *testing.T) {
	links := []actor.Link{{}, {NoFollow: true}, {}, {}, {}}
	for source, want := range map[string]float64{"opic": 0.25, "in-links": 0.25, "depth": 0, "zipf": 0} {
		p, err := schedule.PolicyByName("capability", source)
		if err != nil {
			t.Fatal(err)
		}
		s := &state{policy: p}
		if got := s.cash(schedule.Task{}, links); got != want {
			t.Errorf("%s: each link of a seed brings %g, want %g", source, got, want)
		}
	}
	breadth, err := schedule.NewPolicy("breadth-first", schedule.Quality{})
	if err != nil {
		t.Fatal(err)
	}
	s := &state{policy: breadth}
	if got := s.cash(schedule.Task{}, links); got != 0 {
		t.Errorf("breadth-first: each link brings %g", got)
	}
}

func parseURL(t testing.TB, raw string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestScopeHosts uses the seeds https://www.example.co.uk/ and http://192.0.2.1:8080/.
func TestScopeHosts(t *testing.T) {
	urls := []string{
		"https://www.example.co.uk/x", "http://www.example.co.uk/", "https://www.example.co.uk:8443/", "https://example.co.uk/",
		"https://a.b.example.co.uk/", "https://other.co.uk/", "https://notexample.co.uk/", "https://example.co.uk.evil.example/",
		"http://192.0.2.1:8080/", "http://192.0.2.1/", "http://192.0.2.2:8080/",
	}
	for kind, want := range map[blobschema.Scope]string{
		blobschema.ScopeHost:   "++------+--",
		blobschema.ScopeDomain: "+++++---++-",
		blobschema.ScopeAny:    "+++++++++++",
	} {
		sc, err := newScope(kind, nil, nil, -1)
		if err != nil {
			t.Fatal(err)
		}
		for _, seed := range []string{"https://www.example.co.uk/", "http://192.0.2.1:8080/"} {
			h := parseURL(t, seed).Host()
			if news := sc.add(h); news != (kind != blobschema.ScopeAny) {
				t.Errorf("%s: adding %s is news: %v", kind, h, news)
			}
			if sc.add(h) {
				t.Errorf("%s: adding %s again is news", kind, h)
			}
		}
		got := ""
		for _, u := range urls {
			if sc.host(parseURL(t, u).Host()) {
				got += "+"
			} else {
				got += "-"
			}
		}
		if got != want {
			t.Errorf("%s: got %s, want %s of %v", kind, got, want, urls)
		}
	}
}

func TestScopePatterns(t *testing.T) {
	for _, c := range []struct {
		include, exclude []string
		url              string
		want             bool
	}{
		{nil, nil, "https://a.example/x", true},
		{[]string{"/docs/"}, nil, "https://a.example/docs/1", true},
		{[]string{"/docs/"}, nil, "https://a.example/blog/1", false},
		{[]string{"/docs/", "/blog/"}, nil, "https://a.example/blog/1", true},
		{nil, []string{`\.pdf$`}, "https://a.example/x.pdf", false},
		{nil, []string{`\.pdf$`}, "https://a.example/x.pdf?1", true},
		{[]string{"/docs/"}, []string{`\.pdf$`}, "https://a.example/docs/x.pdf", false}, // both match
		{nil, []string{"a", "^https://b"}, "https://b.example/", false},
		{nil, []string{"^b.example"}, "https://b.example/", true}, // the whole URL is matched
	} {
		sc, err := newScope(blobschema.ScopeAny, c.include, c.exclude, -1)
		if err != nil {
			t.Fatal(err)
		}
		if got := sc.patterns(parseURL(t, c.url)); got != c.want {
			t.Errorf("%s with %q without %q: got %v", c.url, c.include, c.exclude, got)
		}
	}
	for _, s := range []blobschema.Settings{{Include: []string{"("}}, {Exclude: []string{"x", "[z-a]"}}} {
		if _, err := newScopes(&s); err == nil {
			t.Errorf("%+v is a scope", s)
		}
	}
}

func TestScopeDepth(t *testing.T) {
	for _, c := range []struct {
		most, depth int
		want        bool
	}{{-1, 0, true}, {-1, 1 << 16, true}, {0, 0, true}, {0, 1, false}, {3, 3, true}, {3, 4, false}} {
		sc, err := newScope(blobschema.ScopeAny, nil, nil, c.most)
		if err != nil {
			t.Fatal(err)
		}
		if got := sc.depth(c.depth); got != c.want {
			t.Errorf("depth %d of %d: got %v", c.depth, c.most, got)
		}
	}
}

// TestAppendCommit checks that the ranges name exactly the commits before the next one, each with its fence, and that there
// are as many ranges as fences.
func TestAppendCommit(t *testing.T) {
	type seqFence struct{ seq, fence uint64 }
	rng := rand.New(rand.NewPCG(4, 4))
	for range 100 {
		var ranges []blobschema.CommitRange
		var want, got []seqFence
		fences := 0
		fence, last := uint64(1), uint64(0) // last is the fence of commit seq-1
		for seq := uint64(1); seq <= 30; seq++ {
			before := slices.Clone(ranges)
			next := appendCommit(ranges, last, seq-1)
			if !slices.Equal(before, ranges) {
				t.Fatal("the ranges of an older manifest changed")
			}
			ranges = next
			if seq > 1 {
				want = append(want, seqFence{seq - 1, last})
			}
			if rng.IntN(4) == 0 {
				fence += uint64(1 + rng.IntN(3)) // another step
			}
			if fence != last {
				fences++
			}
			last = fence
		}
		for _, r := range ranges {
			for seq := r.From; seq <= r.To; seq++ {
				got = append(got, seqFence{seq, r.Fence})
			}
		}
		if !slices.Equal(got, want) || len(ranges) > fences {
			t.Fatalf("ranges %v (%d fences) name %v, want %v", ranges, fences, got, want)
		}
	}
	if got := appendCommit(nil, 0, 0); got != nil {
		t.Errorf("before the first commit there is %v", got)
	}
}

// TestHostPacks checks that the number of packs is a power of two, so that a host moves to one of two packs when they
// double, and that no pack exceeds a table item.
func TestHostPacks(t *testing.T) {
	for hosts, want := range map[int64]int{-1: 1, 0: 1, 1: 1, 1000: 1, 1001: 2, 2000: 2, 2001: 4, 4000: 4, 4001: 8, 1_000_000: 1024} {
		if got := HostPacks(hosts); got != want {
			t.Errorf("%d hosts: %d packs, want %d", hosts, got, want)
		}
	}
}

// TestMergedReplace checks that the new run takes the place of the first merged one, and that the other runs, also newer
// ones, keep their order. Only objects that hold nothing but runs are dropped.
func TestMergedReplace(t *testing.T) {
	runs := func(spec ...string) (out []blobschema.RunRef) {
		for _, s := range spec {
			ref := blobschema.RunRef{}
			if _, err := fmt.Sscanf(s, "%1s%d", &ref.Object, &ref.Tier); err != nil {
				t.Fatal(err)
			}
			out = append(out, ref)
		}
		return out
	}
	for _, c := range []struct {
		name             string
		runs, from, want []blobschema.RunRef
		to               string
		dropped          []string
	}{
		{"commits", runs("a0", "b0", "c0"), runs("a0", "b0"), runs("m1", "c0"), "m1", nil},
		{"runs", runs("a1", "b1", "c0"), runs("a1", "b1"), runs("m2", "c0"), "m2", []string{"a", "b"}},
		{"among others", runs("x2", "a0", "y1", "b0", "z0"), runs("a0", "b0"), runs("x2", "m1", "y1", "z0"), "m1", nil},
		{"all", runs("a0"), runs("a0"), runs("m1"), "m1", nil},
	} {
		m := &merged{from: c.from, to: runs(c.to)[0]}
		before := slices.Clone(c.runs)
		got, dropped := m.replace(c.runs)
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		if d := cmp.Diff(c.dropped, dropped); d != "" {
			t.Errorf("%s: dropped (-want +got):\n%s", c.name, d)
		}
		if d := cmp.Diff(before, c.runs); d != "" {
			t.Errorf("%s: the runs of the last manifest changed:\n%s", c.name, d)
		}
	}
}

// TestMergeable checks that the lowest full tier is merged completely, up to the bound on memory.
func TestMergeable(t *testing.T) {
	for _, c := range []struct {
		name  string
		tiers string // one digit per run
		size  int64  // of each run
		want  string // positions of the merged runs
	}{
		{"nothing", "", 1, ""},
		{"none is full", "1111111" + "0000000", 1, ""},
		{"the lower of two", "11111111" + "00000000", 1, "[8 9 10 11 12 13 14 15]"},
		{"the higher", "11111111" + "0000000", 1, "[0 1 2 3 4 5 6 7]"},
		{"mixed", "1010101010101010", 1, "[1 3 5 7 9 11 13 15]"},
		{"more than full", "0000000000", 1, "[0 1 2 3 4 5 6 7 8 9]"},
		{"large ones", "0000000000", mergeBytes, "[0 1 2 3 4 5 6 7]"},
		{"some more", "000000000000", mergeBytes / 10, "[0 1 2 3 4 5 6 7 8 9]"},
	} {
		var runs []blobschema.RunRef
		for i, tier := range c.tiers {
			runs = append(runs, blobschema.RunRef{Object: fmt.Sprint(i), Tier: uint8(tier - '0'), Length: c.size})
		}
		var got []string
		for _, r := range mergeable(runs, mergeFanIn) {
			got = append(got, r.Object)
		}
		if s := fmt.Sprint(got); s != c.want && (c.want != "" || len(got) > 0) {
			t.Errorf("%s: got %s, want %s", c.name, s, c.want)
		}
	}
}

// TestForgetIndexes checks that a partition that runs forever keeps only the indexes of its current runs.
func TestForgetIndexes(t *testing.T) {
	st := state{indexes: map[string]*blobschema.RunIndex{}}
	for i := range 100 {
		st.man.Runs = append(st.man.Runs, blobschema.RunRef{Object: fmt.Sprint(i)})
		st.indexes[fmt.Sprint(i)] = &blobschema.RunIndex{}
		st.man.Runs = st.man.Runs[max(0, len(st.man.Runs)-5):]
		st.forgetIndexes()
		for _, r := range st.man.Runs {
			if st.indexes[r.Object] == nil {
				t.Fatalf("the index of %s is forgotten", r.Object)
			}
		}
		if len(st.indexes) > 5 {
			t.Fatalf("%d indexes of %d runs", len(st.indexes), len(st.man.Runs))
		}
	}
}

// TestWantedPieces checks that exactly the blocks of the wanted slots are read, neighbours together, and that the parts are
// separated.
func TestWantedPieces(t *testing.T) {
	const slots, each = 20, 2000
	h, err := partition.NewHash([16]byte{}, slots)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	run := &blobschema.Run{}
	for slot := range partition.Slot(slots) {
		for n := range each {
			url := fmt.Sprintf("https://h%d.example/%x/%x/%d", slot, rng.Uint64(), rng.Uint64(), n)
			run.Queued = append(run.Queued, blobschema.Queued{Slot: slot, Key: fmt.Sprintf("h%d.example", slot), URL: url})
		}
	}
	data, ref := blobschema.EncodeRun(run, h)
	ix, err := blobschema.OpenRun(data[ref.Index:], ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, wanted := range [][]partition.Slot{{0}, {slots - 1}, {3, 4, 5}, {0, slots - 1}, {1, 9, 10, 15}} {
		pieces := wantedPieces(ix, wanted)
		var read int64
		for i := range pieces {
			pieces[i].data = data[pieces[i].at:][:pieces[i].length]
			read += pieces[i].length
		}
		var ids []frontier.PartID
		for _, s := range wanted { // all of the even slots, and two quarters of the odd ones
			if s%2 == 0 {
				ids = append(ids, frontier.PartID{Slot: s})
				continue
			}
			ids = append(ids, frontier.PartID{Slot: s, Part: blobschema.Part{Depth: 2, Prefix: 1}}, frontier.PartID{Slot: s, Part: blobschema.Part{Depth: 2, Prefix: 2}})
		}
		got, err := joinParts(h, ids, pieces)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			want := 0
			for _, q := range run.Queued {
				if q.Slot == id.Slot && id.Part.Has(h.Fingerprint(q.URL)) {
					want++
				}
			}
			if got[id] == nil || len(got[id].Queued) != want || want == 0 {
				t.Errorf("slots %v: part %+v has %d URLs, want %d", wanted, id, len(got[id].Queued), want)
			}
		}
		if most := int64(len(data)) * int64(2*len(wanted)+1) / slots; read > most {
			t.Errorf("slots %v: %d of %d bytes are read", wanted, read, len(data))
		}
		if len(wanted) == 3 && len(pieces) != 1 {
			t.Errorf("slots %v: %d reads", wanted, len(pieces))
		}
	}
	short := wantedPieces(ix, []partition.Slot{5})
	short[0].data = data[short[0].at:][:short[0].length-1]
	if _, err := joinParts(h, []frontier.PartID{{Slot: 5}}, short); err == nil {
		t.Error("a piece that is cut short is taken")
	}
}

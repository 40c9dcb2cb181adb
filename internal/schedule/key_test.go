package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// TestBest checks that the best URLs of a politeness key's queues are those that sorting finds.
func TestBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	r := newRig(t, Config{})
	var ranks []uint32
	for i := range 500 {
		rank := 1 + rng.Uint32N(300)
		ranks = append(ranks, rank)
		r.add(r.pools[i%2], fmt.Sprintf("https://h%d.a.example/%d", rng.IntN(20), i), blobschema.Queued{Key: "a.example", Rank: rank})
	}
	slices.Sort(ranks)
	for _, n := range []int{0, 1, 2, 50, 499, 500, 501} {
		var got []uint32
		for _, w := range (&KeyView{topicQueues: r.s.keys["a.example"].topicQueues}).Best(n) {
			got = append(got, w.Rank)
		}
		if want := ranks[:min(n, 500)]; !slices.Equal(got, want) {
			t.Errorf("the best %d are %v, want %v", n, got, want)
		}
	}
}

// BenchmarkLane fills a queue of URLs and empties it, best first.
func BenchmarkLane(b *testing.B) {
	for _, n := range []int{16, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rnd := rand.New(rand.NewPCG(1, 2))
			p := &Pool{items: make([]item, n)}
			for i := range p.items {
				p.items[i].rank, p.items[i].seq = uint32(rnd.IntN(1000)), uint32(i)
			}
			for b.Loop() {
				l := &lane{pool: p}
				for i := range p.items {
					l.push(uint32(i))
				}
				for len(l.queue) > 0 {
					l.pop()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/item")
		})
	}
}
func TestAddress(t *testing.T) {
	for key, want := range map[string]string{
		"[192.0.2.1]": "192.0.2.1", "[::1]": "::1", "192.0.2.1": "", "[192.0.2.1": "", "192.0.2.1]": "", "x192.0.2.1]": "", "[192.0.2.1x": "",
		"": "", "[": "", "[]": "", "[a.example]": "", "[192.0.2.1]:81": "",
	} {
		a, ok := address(key)
		if ok != (want != "") || ok && a.String() != want {
			t.Errorf("%q: %v, %v", key, a, ok)
		}
	}
	cfg := Config{Resolve: true, Hosts: map[string]HostRule{"a.example": {Connections: 3, Delay: time.Second}, "[192.0.2.1]": {Connections: 3, Delay: time.Second}}}
	r := newRig(t, cfg)
	r.add(r.pools[0], "https://a.example/", blobschema.Queued{Key: "a.example"})
	r.add(r.pools[1], "https://a.example/1", blobschema.Queued{Key: "[192.0.2.1]", Flags: blobschema.FlagPlaced})
	if name, placed := r.s.keys["a.example"], r.s.keys["[192.0.2.1]"]; name.allowed != 1 || placed.allowed != 3 || name.Address() != "[invalid IP]" || placed.Address() != placed.name {
		t.Errorf("a name allows %d requests at once, its address %d", name.allowed, placed.allowed)
	}
}

// TestRevisitsComeTogether checks that revisits come in few groups, none before its time or much after it.
func TestRevisitsComeTogether(t *testing.T) {
	s := New(Config{Partition: 5})
	moments := map[int64]int{}
	for i := range 1000 {
		wait := time.Duration(i+1) * 5 * time.Minute
		now := epoch.Add(time.Duration(i*7919%86400) * time.Second)
		at := s.revisits.at(now, wait)
		if late := at.Sub(now.Add(wait)); late < 0 || late > wait/grid {
			t.Fatalf("a revisit after %v is %v late", wait, late)
		}
		moments[at.Unix()]++
	}
	if len(moments) > 700 {
		t.Errorf("1,000 revisits come at %d moments", len(moments))
	}
}

// TestRestAdds checks that a sum of reports has the earliest time of those with waiting keys.
func TestRestAdds(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	var sum Rest
	for _, r := range []Rest{{}, {Until: late, Keys: 3, Failed: 1}, {Until: early, Keys: 2, Silent: 1}, {Until: late, Keys: 1, Failed: 2, Silent: 4}, {Until: time.Unix(0, 0)}} {
		sum.Add(&r)
	}
	if want := (Rest{Until: early, Keys: 6, Failed: 3, Silent: 5}); sum != want {
		t.Errorf("the sum is %+v, want %+v", sum, want)
	}
}

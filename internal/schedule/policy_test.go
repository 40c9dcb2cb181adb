package schedule

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// TestPolicies checks how each policy ranks two politeness keys and two URLs.
func TestPolicies(t *testing.T) {
	const ms = time.Millisecond
	// near has the better URLs, quick the shorter times, and many the most requests per second.
	near := ranked{conn: 100 * ms, resp: 400 * ms, per: 10, depths: []uint16{0, 1, 1}}
	quick := ranked{conn: 100 * ms, resp: 100 * ms, per: 10, depths: []uint16{9, 9, 1}}
	many := ranked{conn: 100 * ms, resp: 100 * ms, per: 10, depths: []uint16{9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}}
	rows := map[string]bool{}
	for _, c := range []struct {
		name  string
		near  float64 // rank of the politeness key
		quick float64
		many  float64
		order []Candidate // best first
	}{
		{"breadth-first", 0, 0, 0, []Candidate{{}, {Depth: 2, Relevant: true}, {Depth: 2}, {Depth: 2, Priority: 5}, {Depth: 3}}},
		{"performance", 3 / 1.4, 3 / 0.5, 10 / 1.2, []Candidate{{}, {Depth: 1}, {Depth: 2}, {Depth: 2, Priority: 5}, {Depth: 3}}},
		{"quality", 6. / 11, 3. / 11, 0.6 / 11, []Candidate{{Depth: 1, Relevant: true}, {}, {Depth: 3, Relevant: true}, {Depth: 2, Priority: 5}, {Depth: 1}, {Depth: 3}}},
		{
			"capability", (6. + 3 + 3) / 11 / 1.4, (3 + 0.6 + 0.6) / 11 / 0.5, 6. / 11 / 1.2,
			[]Candidate{{Priority: 5}, {}, {Depth: 2, Priority: 5}, {Depth: 1}, {Depth: 2}},
		},
	} {
		rows[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			policy := byName(t, c.name, Quality{})
			for _, u := range []struct {
				name string
				of   ranked
				want float64
			}{{"near", near, c.near}, {"quick", quick, c.quick}, {"many", many, c.many}} {
				if got := u.of.rank(t, policy); math.Abs(got-u.want) > u.want/5000 {
					t.Errorf("the politeness key %s has rank %g, want %g", u.name, got, u.want)
				}
			}
			for i := range c.order[1:] {
				a, b := policy.URLRank(c.order[i]), policy.URLRank(c.order[i+1])
				if a == 0 || a > b {
					t.Errorf("%+v has rank %d, %+v after it %d", c.order[i], a, c.order[i+1], b)
				}
			}
		})
	}
	for _, p := range policies(sources[0]) {
		if !rows[p.Name()] {
			t.Errorf("%s has no test case", p.Name())
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for range 1000 {
			a, b := p.URLRank(Candidate{Depth: uint16(rng.IntN(50))}), p.URLRank(Candidate{Depth: uint16(rng.IntN(50))})
			if f := p.Found(a, b); f != min(a, b) || p.Found(a, 0) != 0 || p.Found(0, b) != 0 {
				t.Fatalf("%s: ranks %d and %d combine to %d", p.Name(), a, b, f)
			}
		}
	}
}

func byName(t *testing.T, name string, source Quality) Policy {
	t.Helper()
	p, err := NewPolicy(name, source)
	if err != nil || p.Name() != name {
		t.Fatalf("by name: %v, %v", p, err)
	}
	return p
}

// ranked is a politeness key to rank.
type ranked struct {
	conn, resp time.Duration
	per        float64
	depths     []uint16 // of its URLs
}

func (r ranked) rank(t *testing.T, p Policy) float64 {
	t.Helper()
	rig := newRig(t, Config{Policy: p})
	for i, d := range r.depths {
		rank := p.URLRank(Candidate{Depth: d})
		rig.add(rig.pools[0], "https://a.example/"+string(rune('a'+i)), blobschema.Queued{Key: "a.example", Depth: d, Rank: rank})
	}
	pace := polite.Pace{ConnTime: r.conn, RespTime: r.resp, PerConnection: r.per}
	return p.KeyRank(&KeyView{Pending: len(r.depths), Pace: &pace, topicQueues: rig.s.keys["a.example"].topicQueues})
}

// TestConnectionsOfAHost checks that over HTTP/2 several requests share a connection.
func TestConnectionsOfAHost(t *testing.T) {
	pace := polite.Pace{ConnTime: 100 * time.Millisecond, RespTime: 100 * time.Millisecond, PerConnection: 8}
	view := KeyView{Pending: 100, Allowed: 4, Pace: &pace}
	policy := byName(t, "performance", Quality{})
	one := policy.KeyRank(&view)
	pace.ObserveProtocol(true)
	if many := policy.KeyRank(&view); one != 8 || many != 20 {
		t.Errorf("ranks are %g and %g", one, many)
	}
}

func TestPolicyByName(t *testing.T) {
	for _, quality := range []string{"", "depth", "in-links", "opic", "zipf"} {
		for name, adds := range map[string]bool{"quality": quality == "in-links" || quality == "opic", "capability": quality == "in-links" || quality == "opic"} {
			p, err := PolicyByName(name, quality)
			if err != nil {
				t.Fatal(err)
			}
			if r, ok := p.(Rated); !ok || r.Adds() != adds || p.Name() != name {
				t.Errorf("%s by %q is %v", name, quality, p)
			}
		}
	}
	for _, name := range []string{"", "breadth-first", "performance"} {
		if p, err := PolicyByName(name, "opic"); err != nil || name != "" && p.Name() != name || name == "" && p.Name() != "breadth-first" {
			t.Errorf("%q: %v, %v", name, p, err)
		}
	}
	if _, err := PolicyByName("depth-first", ""); err == nil || !strings.Contains(err.Error(), `"performance"`) {
		t.Errorf("the error is %v", err)
	}
	if _, err := PolicyByName("", "beauty"); err == nil || !strings.Contains(err.Error(), `"opic"`) {
		t.Errorf("the error is %v", err)
	}
}

// TestRanks checks that ranks fall as quality rises, are from 1 to 2^21-1, and can be converted back to the quality.
func TestRanks(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 100_000 {
		q := math.Exp(rng.Float64()*160 - 120)
		rank := rankOf(q)
		if got := qualityOf(rank); rank < 1 || rank >= 1<<21 || math.Abs(got-q) > q/8192/2*1.0001 || rankOf(got) != rank {
			t.Fatalf("%g has rank %d, which is %g", q, rank, got)
		}
		if other := q * (1 + rng.Float64()); rankOf(other) > rank {
			t.Fatalf("%g has rank %d, %g %d", q, rank, other, rankOf(other))
		}
	}
	for _, c := range []struct {
		quality float64
		rank    uint32
	}{
		{math.Inf(1), 1}, {math.MaxFloat64, 1}, {1 << 65, 1}, {0x1.fffffp64, 1}, {0x1.fffp64, 2}, {1, 65 << 13},
		{0x1p-190, mostRank}, {0x1p-191, mostRank}, {math.SmallestNonzeroFloat64, mostRank}, {0, mostRank}, {-1, mostRank}, {math.NaN(), mostRank},
	} {
		if got := rankOf(c.quality); got != c.rank {
			t.Errorf("%g has rank %d, want %d", c.quality, got, c.rank)
		}
	}
	for rank := uint32(1); rank <= mostRank; rank++ {
		if got := rankOf(qualityOf(rank)); got != rank {
			t.Fatalf("rank %d comes back as %d", rank, got)
		}
	}
	if qualityOf(0) != qualityOf(1) || qualityOf(math.MaxUint32) != qualityOf(mostRank) {
		t.Error("ranks out of range do not have the quality of the nearest rank")
	}
}

// TestSources checks the quality that each source gives a few URLs.
func TestSources(t *testing.T) {
	table, err := ParseHostRanks([]byte("a.example\t5\n"))
	if err != nil {
		t.Fatal(err)
	}
	depth, inLinks, opic, zipf := named(t, "depth"), named(t, "in-links"), named(t, "opic"), named(t, "zipf")
	rows := map[string]bool{}
	for _, c := range []struct {
		source Quality
		of     Candidate
		want   float64
	}{
		{depth, Candidate{}, 6. / 11}, {depth, Candidate{Priority: 9}, 1}, {depth, Candidate{Depth: 4, Priority: -5}, 1. / 55},
		{inLinks, Candidate{Depth: 3}, 1},
		{opic, Candidate{Cash: 3}, 1}, {opic, Candidate{Depth: 1, Cash: 0.25}, 0.25},
		{zipf, Candidate{}, 1}, {zipf, Candidate{Fingerprint: 1 << 48}, 0.5}, {zipf, Candidate{Fingerprint: math.MaxUint64}, 1. / 65536},
		{table, Candidate{Host: "a.example", Depth: 1}, 15. / 11}, {table, Candidate{Host: "b.example", Depth: 1}, 3. / 11},
	} {
		rows[c.source.Name] = true
		if got := c.source.Of(c.of); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s of %+v is %g, want %g", c.source.Name, c.of, got, c.want)
		}
	}
	for _, s := range sources {
		if !rows[s.Name] {
			t.Errorf("%s has no test case", s.Name)
		}
		p := byName(t, "capability", s).(Rated)
		a, b := p.URLRank(Candidate{Depth: 1, Cash: 2}), p.URLRank(Candidate{Depth: 1, Cash: 6})
		sum, best := p.Quality(a)+p.Quality(b), max(p.Quality(a), p.Quality(b))
		want := best
		if s.Adds {
			want = sum
		}
		if got := p.Quality(p.Found(a, b)); math.Abs(got-want) > want/8000 {
			t.Errorf("%s: %g and %g combine to %g", s.Name, p.Quality(a), p.Quality(b), got)
		}
		if got := p.Quality(p.URLRank(Candidate{Depth: 1, Cash: 2, Relevant: true})); math.Abs(got-relevantFactor*p.Quality(a)) > got/4000 {
			t.Errorf("%s: a relevant URL has quality %g, another one %g", s.Name, got, p.Quality(a))
		}
	}
}

func named(t *testing.T, name string) Quality {
	t.Helper()
	q, err := QualityByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestZipf checks that one in n URLs with random fingerprints has quality 1/n or better.
func TestZipf(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	zipf := named(t, "zipf")
	const urls = 100_000
	for _, n := range []float64{10, 100, 1000} {
		good := 0
		for range urls {
			if zipf.Of(Candidate{Fingerprint: rng.Uint64()}) >= n/65536 {
				good++
			}
		}
		if want := urls / n; math.Abs(float64(good)-want) > 5*math.Sqrt(want)+1 {
			t.Errorf("%d of %d are worth %g, want %g", good, urls, n/65536, want)
		}
	}
}

func TestParseHostRanks(t *testing.T) {
	got, err := parseHostRanks([]byte("# made today\r\n\na.example\t2\nB.example\t0.5\r\na.example\t3e0\n[2001:DB8::1]:8080\t4"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"a.example": 3, "b.example": 0.5, "[2001:db8::1]:8080": 4}
	for host, v := range want {
		if got[host] != v {
			t.Errorf("%s is %g, want %g", host, got[host], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("the table is %v", got)
	}
	for text, want := range map[string]string{
		"a.example 2": "line 1: it has no tab", "\n\nx\ty": `line 3: "y" is not a number`, "a\t0": "is not a number from",
		"a\t-1": "is not a number from", "a\tNaN": "is not a number from", "a\t1e7": "is not a number from", "a/b\t1": "is not a host", "\t1": "is not a host",
		strings.Repeat("a", 400) + "\t1": "is not a host",
	} {
		if _, err := ParseHostRanks([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := ParseHostRanks(make([]byte, MaxHostRankBytes+1)); err == nil {
		t.Error("a table that is too large was read")
	}
}

func FuzzParseHostRanks(f *testing.F) {
	f.Add([]byte("a.example\t2\n# no\n\n[::1]:8\t1e-3"))
	f.Add([]byte("a\tb\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseHostRanks(data)
		if err != nil {
			if r != nil {
				t.Error("both a table and an error were returned")
			}
			return
		}
		for host, v := range r {
			if u, err := weburl.Parse("https://" + host + "/"); err != nil || string(u.Host()) != host {
				t.Errorf("%q was accepted as a host", host)
			}
			if !(v >= 1e-6 && v <= 1e6) || hostRanks(r).Of(Candidate{Host: host}) <= 0 {
				t.Errorf("%q is worth %g", host, v)
			}
		}
	})
}

package schedule

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

func storedKey(t testing.TB) *Key {
	t.Helper()
	next, err := weburl.Parse("https://www.example.org/robots.txt")
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(1_700_000_000_000)
	u := &Key{pace: polite.NewPace(), requests: 7, failures: 2, addr: netip.MustParseAddr("192.0.2.1"), hold: at}
	u.own = site{key: u, settled: 5, capped: 3}
	u.pace.Start(at, time.Second)
	d := &u.own.origins
	d[0].Rules, d[0].Until = polite.ParseRobots([]byte("User-agent: *\nDisallow: /private/\n"), "bot"), at.Add(time.Hour)
	d[1].Next, d[1].hops, d[1].Attempts, d[1].Retry = next, 1, 3, at.Add(time.Minute)
	return u
}

// TestDecodeHost reads what a run stores of a host.
func TestDecodeHost(t *testing.T) {
	h := storedKey(t)
	got, err := DecodeHost(h.encode())
	if err != nil {
		t.Fatal(err)
	}
	if ok, rule := got.HTTP.Rules.Allowed("/private/x"); ok || rule.Line != 2 {
		t.Errorf("the rule is %+v", rule)
	}
	got.HTTP.Rules = nil
	want := HostInfo{
		Pace: h.pace, Requests: 7, Failures: 2, HTTP: RobotsInfo{Until: h.own.origins[0].Until},
		HTTPS:   RobotsInfo{Next: h.own.origins[1].Next, Attempts: 3, Retry: h.own.origins[1].Retry},
		Settled: 5, Capped: 3, Addr: h.addr, Hold: h.hold,
	}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b weburl.URL) bool { return a == b })); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, err := DecodeHost([]byte("nothing")); err == nil {
		t.Error("invalid data was decoded as a host")
	}
}

func FuzzDecodeHost(f *testing.F) {
	f.Add(storedKey(f).encode())
	f.Add([]byte{0xa0})
	f.Fuzz(func(t *testing.T, data []byte) {
		info, err := DecodeHost(data)
		if err == nil && info.HTTP.Rules != nil {
			info.HTTP.Rules.Allowed("/")
		}
	})
}

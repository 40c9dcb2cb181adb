package frontier

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

func storedHost(t testing.TB) *host {
	t.Helper()
	next, err := weburl.Parse("https://www.example.org/robots.txt")
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(1_700_000_000_000)
	h := &host{pace: polite.NewPace(), requests: 7, failures: 2}
	h.pace.Start(at, time.Second)
	h.robots[0] = robots{rules: polite.ParseRobots([]byte("User-agent: *\nDisallow: /private/\n"), "bot"), until: at.Add(time.Hour)}
	h.robots[1] = robots{next: next, hops: 1, attempts: 3, retry: at.Add(time.Minute)}
	return h
}

// TestDecodeHost reads what a run stores of a host.
func TestDecodeHost(t *testing.T) {
	h := storedHost(t)
	got, err := DecodeHost(h.encode())
	if err != nil {
		t.Fatal(err)
	}
	if ok, rule := got.HTTP.Rules.Allowed("/private/x"); ok || rule.Line != 2 {
		t.Errorf("the rule is %+v", rule)
	}
	got.HTTP.Rules = nil
	want := HostInfo{
		Pace: h.pace, Requests: 7, Failures: 2, HTTP: RobotsInfo{Until: h.robots[0].until},
		HTTPS: RobotsInfo{Next: "https://www.example.org/robots.txt", Attempts: 3, Retry: h.robots[1].retry},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, err := DecodeHost([]byte("nothing")); err == nil {
		t.Error("nothing is a host")
	}
}

func FuzzDecodeHost(f *testing.F) {
	f.Add(storedHost(f).encode())
	f.Add([]byte{0xa0})
	f.Fuzz(func(t *testing.T, data []byte) {
		info, err := DecodeHost(data)
		if err == nil && info.HTTP.Rules != nil {
			info.HTTP.Rules.Allowed("/")
		}
	})
}

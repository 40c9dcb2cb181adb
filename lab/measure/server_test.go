package measure

import (
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// TestServer checks the times of a server's connections, request by request.
func TestServer(t *testing.T) {
	const ms = time.Millisecond
	type request struct {
		at     time.Duration
		took   time.Duration
		reused bool
		closed bool
	}
	for _, c := range []struct {
		name     string
		server   Server
		requests []request
	}{
		{"two a connection", Server{Connect: 10 * ms, Close: 5 * ms, Response: 20 * ms, PerConnection: 2}, []request{
			{0, 35 * ms, false, false}, {100 * ms, 20 * ms, true, true}, {200 * ms, 35 * ms, false, false},
		}},
		{"one a connection", Server{Connect: 10 * ms, Response: 20 * ms, PerConnection: 1}, []request{
			{0, 30 * ms, false, true}, {100 * ms, 30 * ms, false, true},
		}},
		{"idle", Server{Connect: 10 * ms, Response: 20 * ms, IdleTimeout: time.Second}, []request{
			{0, 30 * ms, false, false}, {time.Second, 20 * ms, true, false}, {3 * time.Second, 30 * ms, false, false},
		}},
		{"at once", Server{Connect: 10 * ms, Response: 20 * ms}, []request{
			{0, 30 * ms, false, false}, {0, 30 * ms, false, false},
		}},
		{"at once over HTTP/2", Server{Connect: 10 * ms, Response: 20 * ms, HTTP2: true}, []request{
			{0, 30 * ms, false, false}, {0, 20 * ms, true, false},
		}},
	} {
		l := &lab{cfg: Lab{Server: func(string) Server { return c.server }}, servers: map[weburl.Host]*server{}}
		var under []exchange
		last := time.Duration(0)
		for i, r := range c.requests {
			if r.at > last {
				for k := range under {
					under[k].end(last + under[k].took)
				}
				under, last = nil, r.at
			}
			e := l.server("a.example").ask(r.at, "https://a.example/")
			under = append(under, e)
			var o actor.Outcome
			e.observe(&o)
			if e.took != r.took || o.Reused != r.reused || o.Closed != r.closed || o.Response != 20*ms || (o.Connect == 10*ms) == r.reused || o.HTTP2 != c.server.HTTP2 {
				t.Errorf("%s: request %d takes %v: %+v; want %+v", c.name, i, e.took, o, r)
			}
		}
	}
}

// TestServerSpread checks that times are within their bounds, differ by URL and stay the same.
func TestServerSpread(t *testing.T) {
	s := Server{Response: time.Second, Spread: 0.5}
	seen, sum := map[time.Duration]bool{}, time.Duration(0)
	for i := range 1000 {
		url := "https://a.example/" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		d := s.ResponseOf(url)
		if d < 500*time.Millisecond || d > 1500*time.Millisecond || d != s.ResponseOf(url) {
			t.Fatalf("%s takes %v", url, d)
		}
		seen[d], sum = true, sum+d
	}
	if mean := sum / 1000; len(seen) < 990 || mean < 950*time.Millisecond || mean > 1050*time.Millisecond {
		t.Errorf("%d different times, %v on average", len(seen), mean)
	}
}

package service_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// TestCrawlsSlowWeb crawls servers that are slower than the timeout. Each URL gets its number of attempts and
// no more. A body that arrives steadily is stored after one attempt, although it takes longer than timeout and
// lease.
func TestCrawlsSlowWeb(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for timeouts")
	}
	const timeout, attempts = time.Second, 2
	for _, c := range []struct {
		name   string
		steady time.Duration
	}{
		{"steady bodies come whole", 2500 * time.Millisecond},
		{"steady bodies are cut", 15 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv, err := simweb.Start(t.Context(), simweb.Config{
				Seed: 5, Hosts: 9, Pages: simweb.Pages{Min: 7}, SteadyBody: c.steady, LateBy: time.Minute,
				Kinds: simweb.PageShares{Late: 0.06, Steady: 0.06}, Robots: simweb.RobotsShares{Drip: 0.1},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			p, err := drivers.Memory(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			e, err := service.New(p, service.Config{
				Step: crawl.StepConfig{
					Retry: polite.Retry{Attempts: attempts, Wait: 200 * time.Millisecond, Backoff: 100 * time.Millisecond},
					Token: "orbweaver", Software: "orbweaver", Compressed: true, Lease: 2 * time.Second, Margin: 100 * time.Millisecond,
				},
				Fetch: fetch.Config{
					UserAgent: "orbweaver", Token: "orbweaver", AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Timeout: timeout,
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			var seeds []weburl.URL
			for _, s := range srv.Web().Seeds() {
				u, err := weburl.Parse(s)
				if err != nil {
					t.Fatal(err)
				}
				seeds = append(seeds, u)
			}
			want := blobschema.Crawl{ID: "test", HashKey: make([]byte, 16), Slots: 1024, Partitions: 4, Settings: blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: -1}}
			if _, _, _, err := e.Begin(want, crawl.Seeds(seeds), nil); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if end, err := e.Run(ctx); err != nil || end != service.Finished {
				t.Fatalf("the crawl %s: %v", end, err)
			}
			truth, got := srv.Web().Truth(simweb.Scope{Attempts: attempts}), pages(t, p)
			if d := simweb.Diff(truth, got); d != "" {
				t.Error(d)
			}
			late, steady, drip := 0, 0, 0
			for url, n := range srv.Requests() {
				most := 1
				switch e := truth.Pages[url]; {
				case strings.HasSuffix(url, "/robots.txt") && n > 1:
					drip, most = drip+1, attempts
				case e.Outcome == blobschema.OutcomeTimeout:
					late, most = late+1, attempts
				case e.Outcome == blobschema.OutcomeOK && got[url].Digest == "":
					steady++
				}
				if n > most {
					t.Errorf("%s was requested %d times", url, n)
				}
			}
			if late == 0 || drip == 0 || (steady == 0) != (c.steady < 4*timeout) {
				t.Errorf("%d late pages, %d steady ones that were cut, %d dripping robots.txt", late, steady, drip)
			}
		})
	}
}

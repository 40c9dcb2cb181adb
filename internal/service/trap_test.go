package service_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/platform"
)

// traps serves endless webs, each on its own names, and a site of good pages. All links lead to pages of status
// 200.
func traps(w http.ResponseWriter, r *http.Request) {
	name, port, _ := strings.Cut(r.Host, ":")
	h := fnv.New32a()
	_, _ = h.Write([]byte(r.Host + r.RequestURI))
	n := h.Sum32()
	var links []string
	switch _, zone, _ := strings.Cut(name, "."); {
	case r.URL.Path == "/robots.txt":
		http.NotFound(w, r)
		return
	case name == "honest.example":
		if r.URL.Path == "/" {
			for i := range honestPages {
				links = append(links, fmt.Sprintf("/%d", i))
			}
			for _, trap := range []string{"calendar.example", "session.example", "deep.example", "echo.example", "farm0.farm.example", "w.wild.example"} {
				links = append(links, "http://"+trap+":"+port+"/")
			}
		}
	case name == "calendar.example": // next month, last month
		var month int
		_, _ = fmt.Sscanf(r.URL.RawQuery, "month=%d", &month)
		links = append(links, fmt.Sprintf("/?month=%d", month+1), fmt.Sprintf("/?month=%d", month-1))
	case name == "session.example": // every page under a new id each time
		for i := range 5 {
			links = append(links, fmt.Sprintf("/page%d;jsessionid=%08X", i, n+uint32(i)))
		}
	case name == "deep.example": // a folder deeper
		links = append(links, fmt.Sprintf("%sd%d/", r.URL.Path, strings.Count(r.URL.Path, "/")))
	case name == "echo.example": // a relative link that should be absolute
		links = append(links, "docs/manual/")
	case zone == "farm.example": // thousands of pages that link to each other
		for i := range uint32(20) {
			links = append(links, fmt.Sprintf("http://farm%d.farm.example:%s/%d", (n+i)%5, port, (n+i*7919)%100000))
		}
	case zone == "wild.example": // any name is a host
		for i := range uint32(10) {
			links = append(links, fmt.Sprintf("http://w%x.wild.example:%s/", n+i, port))
		}
	}
	w.Header().Set("Content-Type", "text/html")
	for _, l := range links {
		fmt.Fprintf(w, "<a href=%q>%d</a>\n", l, n)
	}
}

const honestPages = 60

// TestTraps crawls endless webs and a good site on few connections. The crawl must end, caps must hold, and
// refused URLs must be counted. The good pages must be stored long before the traps are exhausted.
func TestTraps(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(traps))
	defer srv.Close()
	port := srv.URL[strings.LastIndexByte(srv.URL, ':')+1:]
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	defer p.Table.Close()
	loopback := netip.MustParseAddr("127.0.0.1")
	e, err := service.New(p, service.Config{
		Step: crawl.StepConfig{Token: "orbweaver", Software: "orbweaver", Compressed: true, Connections: 4},
		Fetch: fetch.Config{
			UserAgent: "orbweaver", Token: "orbweaver", AllowNet: []netip.Prefix{netip.PrefixFrom(loopback, 32)},
			Lookup: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{loopback}, nil },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	const perHost, perDomain, partitions = 150, 400, 2
	want := blobschema.Crawl{
		ID: "test", Created: time.Now().UTC(), HashKey: make([]byte, 16), Slots: 256, Partitions: partitions,
		Settings: blobschema.Settings{
			Scope: blobschema.ScopeAny, MaxDepth: -1, UserAgent: "orbweaver", Delay: time.Millisecond,
			MaxHostURLs: perHost, MaxDomainURLs: perDomain, MaxSegments: 20, MaxRepeats: 3,
		},
	}
	seed, err := weburl.Parse("http://honest.example:" + port + "/")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := e.Begin(want, crawl.Seeds([]weburl.URL{seed}), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	end, err := e.Run(ctx)
	if err != nil || end != service.Finished {
		t.Fatalf("the crawl %s: %v", end, err)
	}
	checkTraps(t, p, e.Snapshot().Totals, perHost, partitions, perDomain)
	rep, err := fsck.Check(t.Context(), engine.Store{Platform: p}, fsck.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range rep.Violations {
		t.Error(v)
	}
}

// checkTraps checks the stored pages and the counts of refused URLs.
func checkTraps(t *testing.T, p *platform.Platform, totals blobschema.Totals, perHost, partitions, perDomain int) {
	t.Helper()
	hosts, domains := map[string]int{}, map[string]int{}
	var last, lastHonest time.Time
	for u, pg := range records(t, p) {
		host := weburl.Host(strings.Split(u, "/")[2])
		hosts[host.Name()]++
		domains[host.RegistrableDomain()]++
		if pg.Time.After(last) {
			last = pg.Time
		}
		if host.Name() == "honest.example" && pg.Time.After(lastHonest) {
			lastHonest = pg.Time
		}
		if pg.Outcome != blobschema.OutcomeOK {
			t.Errorf("%s: %v %s", u, pg.Outcome, pg.Detail)
		}
	}
	t.Logf("%d pages, %d capped, %d trapped; the last honest page %v before the end", totals.Pages, totals.Capped, totals.Trapped, last.Sub(lastHonest))
	if hosts["honest.example"] != 1+honestPages {
		t.Errorf("%d honest pages", hosts["honest.example"])
	}
	for host, most := range map[string]int{
		"calendar.example": perHost, "session.example": perHost, "farm0.farm.example": perHost,
		"deep.example": 21, "echo.example": 7,
	} {
		if n := hosts[host]; n > most || n < most/2 {
			t.Errorf("%d pages of %s, where %d are allowed", n, host, most)
		}
	}
	// A domain's partitions learn of each other only from ticks, so each may store its own share.
	for _, d := range []string{"farm.example", "wild.example"} {
		if n := domains[d]; n > partitions*perDomain || n < perDomain/2 {
			t.Errorf("%d pages of %s, where about %d are allowed", n, d, perDomain)
		}
	}
	if totals.Capped == 0 || totals.Trapped == 0 {
		t.Errorf("%d links are counted as capped, %d as trapped", totals.Capped, totals.Trapped)
	}
	if first := last.Sub(lastHonest); first < 0 || len(hosts) < 100 {
		t.Errorf("the honest pages came last, or few of the wild hosts: %d", len(hosts))
	}
}

package frontier

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// TestSitesOfAKey checks that the sites of a politeness key share one pace and have one robots.txt each. A site whose
// robots.txt cannot be fetched does not delay the others.
func TestSitesOfAKey(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second, Retry: polite.Retry{Wait: time.Minute}})
	for i, u := range []string{"https://www.a.example/1", "https://dead.a.example/2", "https://a.example/3", "http://a.example/4", "https://www.a.example/5"} {
		r.queue(u, blobschema.Queued{Key: "a.example", Depth: uint16(i)})
	}
	r.took = 0
	r.run(answers{
		"https://www.a.example/robots.txt":  {{body: "User-agent: *\nDisallow: /5\n"}},
		"https://dead.a.example/robots.txt": {{status: 503, retryAfter: time.Second}, {}},
		"https://a.example/robots.txt":      {{body: "User-agent: *\nCrawl-delay: 3\n"}},
	})
	wantLog(t, r.log,
		"0s https://www.a.example/robots.txt", "1s https://www.a.example/1", // no page right after robots.txt: there are more sites
		"2s https://dead.a.example/robots.txt", "4s https://a.example/robots.txt", // the politeness key's back-off
		"7s https://a.example/3",
		"10s http://a.example/robots.txt", "10s http://a.example/4",
		"1m2s https://dead.a.example/robots.txt", "1m3s https://dead.a.example/2")
	if got := r.refused(); len(got) != 1 || !strings.HasPrefix(got[0], "https://www.a.example/5 robots:") {
		t.Errorf("refused %v", got)
	}
	if n := r.f.Counts(); n.Keys != 1 || n.Pending != 0 {
		t.Errorf("counts are %+v", n)
	}
}

// TestGivenUpSite checks that a dead site of a politeness key does not affect the others.
func TestGivenUpSite(t *testing.T) {
	r := newRig(t, Config{Retry: polite.Retry{Attempts: 9, Wait: time.Hour}})
	web := answers{}
	for i := range 20 {
		u := fmt.Sprintf("https://dead.a.example/%d", i)
		web[u] = []answer{{outcome: blobschema.OutcomeTimeout}}
		r.queue(u, blobschema.Queued{Key: "a.example"})
	}
	r.queue("https://www.a.example/", blobschema.Queued{Key: "a.example", Depth: 3})
	r.run(web)
	if n := len(r.refused()); n != 20 || r.hits["https://www.a.example/"] != 1 {
		t.Errorf("%d URLs refused, requests %v", n, r.hits)
	}
}

// TestSitesAreStored checks that each site has its own state, which is written only if it changed.
func TestSitesAreStored(t *testing.T) {
	p := newProcess(t, Config{Delay: time.Second})
	add := func(u string) { p.queue(u, blobschema.Queued{Key: "a.example"}) }
	for _, u := range []string{"https://a.example/1", "https://b.a.example/1", "https://c.a.example/1"} {
		add(u)
	}
	web := answers{"https://b.a.example/robots.txt": {{body: "User-agent: *\nDisallow: /2\n"}}}
	p.run(web)
	q := p.stored()
	var hosts []string
	for _, h := range q.runs[0].Keys {
		hosts = append(hosts, h.Key)
	}
	slices.Sort(hosts)
	if d := cmp.Diff([]string{"a.example", "a.example b.a.example", "a.example c.a.example"}, hosts); d != "" {
		t.Errorf("states (-want +got):\n%s", d)
	}
	for _, u := range []string{"https://b.a.example/2", "https://b.a.example/3"} {
		q.queue(u, blobschema.Queued{Key: "a.example"})
	}
	q.run(web)
	if d := cmp.Diff([]string{"https://b.a.example/3"}, q.urls()); d != "" {
		t.Errorf("then requested (-want +got):\n%s", d)
	}
	run, _ := q.f.Delta(9)
	for _, h := range run.Keys {
		info, err := schedule.DecodeHost(h.Data)
		if err != nil || strings.Contains(h.Key, "c.a.example") || strings.Contains(h.Key, "b.a.example") && info.Settled != 3 {
			t.Errorf("state of %s: %+v, %v", h.Key, info, err)
		}
	}
	if unit, site := schedule.SplitSite("a.example b.a.example:8080"); unit != "a.example" || site != "b.a.example:8080" {
		t.Errorf("split into %q and %q", unit, site)
	}
}

// TestTurnsByDomain checks that a domain with a hundred names gets as many turns as one with a single name.
func TestTurnsByDomain(t *testing.T) {
	r := newRig(t, Config{})
	for i := range 100 {
		r.add(0, fmt.Sprintf("https://n%d.wild.com/", i))
	}
	for i := range 20 {
		r.add(0, fmt.Sprintf("https://a.com/%d", i), fmt.Sprintf("https://b.org/%d", i))
	}
	r.run(nil)
	counts := map[string]int{}
	for _, u := range r.urls()[:60] {
		domain := u[strings.Index(u, ".")-1:]
		if strings.Contains(u, "wild") {
			domain = "wild"
		}
		counts[domain[:4]]++
	}
	if counts["wild"] < 18 || counts["wild"] > 22 {
		t.Errorf("first requests by domain: %v", counts)
	}
	if len(r.log) != 2*100+2*21 {
		t.Errorf("%d requests", len(r.log))
	}
	if n := peek(r.f.schedule, "domains").Len(); n != 3 {
		t.Errorf("%d domains", n)
	}
}

// TestNoCreditForWaiting checks that a domain that is added late gets no more turns than the others.
func TestNoCreditForWaiting(t *testing.T) {
	r := newRig(t, Config{})
	add := func(host string, n int) {
		for i := range n {
			r.add(0, fmt.Sprintf("https://%s/%d", host, i))
		}
	}
	add("a.com", 100)
	for r.f.Counts().Pending > 50 {
		task, _ := r.f.Next(r.now, false)
		r.f.Done(r.now, task, r.hit(nil, task.Request).reply(task, r.now, 0))
	}
	add("b.com", 100)
	r.run(nil)
	if n := strings.Count(strings.Join(r.urls()[:40], " "), "b.com"); n < 19 || n > 21 {
		t.Errorf("%d of the next 40 requests go to the late domain", n)
	}
}

// TestCaps checks that URLs above a cap are counted and dropped, except seeds and requested URLs.
func TestCaps(t *testing.T) {
	type q = blobschema.Queued
	seed, listed := q{Flags: blobschema.FlagSeed}, q{Flags: blobschema.FlagListed}
	for _, c := range []struct {
		name   string
		cfg    Config
		full   []string
		urls   []string
		q      q
		known  int64
		capped int64
	}{
		{"none", Config{}, nil, []string{"https://a.com/1", "https://a.com/2", "https://b.a.com/"}, q{}, 3, 0},
		{"site", Config{MaxHostURLs: 2}, nil, []string{"https://a.com/1", "https://a.com/2", "https://a.com/3", "https://a.com/3", "https://a.com/1", "https://b.a.com/"}, q{}, 3, 2},
		{"seeds", Config{MaxHostURLs: 1, MaxDomainURLs: 1}, []string{"a.com"}, []string{"https://a.com/1", "https://a.com/2"}, seed, 2, 0},
		{"domain", Config{MaxDomainURLs: 2}, nil, []string{"https://a.com/1", "https://b.a.com/", "https://c.a.com/", "https://a.com/2", "https://b.com/"}, q{}, 3, 2},
		{"domain filled elsewhere", Config{}, []string{"a.com"}, []string{"https://a.com/1", "https://b.a.com/", "https://b.com/"}, q{}, 1, 2},
		{"site, from sitemaps", Config{MaxHostURLs: 4}, nil, []string{"https://a.com/1", "https://a.com/2", "https://a.com/3"}, listed, 2, 1},
		{"domain, from sitemaps", Config{MaxDomainURLs: 5}, nil, []string{"https://a.com/1", "https://b.a.com/2", "https://a.com/3"}, listed, 2, 1},
		{"domain half filled elsewhere, from sitemaps", Config{}, []string{"a.com"}, []string{"https://a.com/1", "https://b.com/"}, listed, 1, 1},
		{"placed", Config{MaxDomainURLs: 1, Resolve: true}, nil, []string{"https://a.com/1", "https://a.com/2"}, q{Key: "[192.0.2.1]", Flags: blobschema.FlagPlaced}, 2, 0},
	} {
		r := newRig(t, c.cfg)
		r.f.CapDomains(nil, c.full)
		if c.q != listed {
			r.f.CapDomains(c.full, c.full)
		}
		for _, u := range c.urls {
			r.queue(u, c.q)
			r.check()
		}
		if n := r.f.Counts(); n.Known != c.known || n.Capped != c.capped {
			t.Errorf("%s: counts are %+v", c.name, n)
		}
		if got := r.again(c.urls[0]+"?again", 0); got != Fresh {
			t.Errorf("%s: requested: %d", c.name, got)
		}
	}
}

// TestRoomForLinks checks that URLs from sitemaps leave half of a cap to links, including links to URLs that did not fit.
func TestRoomForLinks(t *testing.T) {
	r := newRig(t, Config{MaxHostURLs: 4})
	for _, k := range []struct {
		path  string
		flags blobschema.QueuedFlags
		want  Added
	}{
		{"1", blobschema.FlagListed, Fresh}, {"2", blobschema.FlagListed, Fresh}, {"3", blobschema.FlagListed, Capped},
		{"3", 0, Fresh}, {"4", blobschema.FlagListed, Capped}, {"5", 1 << 4, Fresh}, {"6", 0, Capped},
	} {
		if got := r.queue("https://a.example/"+k.path, blobschema.Queued{Depth: 1, Flags: k.flags}); got != k.want {
			t.Errorf("%s with the flags %08b: %d, want %d", k.path, k.flags, got, k.want)
		}
		r.check()
	}
}

// TestCapsAreStored checks that a site's number of known URLs is exact after it was stored. URLs appended meanwhile are
// examined then, and stay known.
func TestCapsAreStored(t *testing.T) {
	p := newProcess(t, Config{MaxHostURLs: 4})
	p.rig.add(0, "https://a.example/1", "https://a.example/2", "https://a.example/3")
	p.run(nil)
	p.rig.add(0, "https://a.example/4", "https://a.example/5") // the second exceeds the cap
	p.restart(false)
	for _, u := range []string{"https://a.example/6", "https://a.example/1", "https://a.example/7"} {
		if got := p.queue(u, blobschema.Queued{}); got != Deferred {
			t.Errorf("%s: got %d", u, got)
		}
	}
	p.beginCommit()
	p.endCommit()
	p.want()
	p.load(0)
	p.check()
	if n := p.f.Counts(); n.Known != 6 || n.Pending != 1 || n.Capped != 2 {
		t.Errorf("counts are %+v", n)
	}
	if got := p.next.settled; len(got) != 2 || got[0].url != "https://a.example/6" || got[0].outcome != blobschema.OutcomeScope {
		t.Errorf("refused %v", got)
	}
	if got := p.queue("https://a.example/8", blobschema.Queued{}); got != Capped {
		t.Errorf("one more: %d", got)
	}
	p.run(nil)
	if got := p.queue("https://a.example/6", blobschema.Queued{}); got != Known {
		t.Errorf("a refused URL: %d", got)
	}
	if n := p.info("a.example").Capped; n != 4 {
		t.Errorf("%d capped", n)
	}
}

// TestNewsOfDomains checks that new links for an unloaded part count for their domain when the part is loaded.
func TestNewsOfDomains(t *testing.T) {
	p := newProcess(t, Config{MaxDomainURLs: 100})
	p.rig.add(0, "https://a.example/1", "https://a.example/2")
	p.run(nil)
	p.restart(false)
	p.f.RestoreDomains(map[string]int64{"a.example": 2})
	p.rig.add(0, "https://a.example/2", "https://a.example/3", "https://a.example/4")
	p.commit()
	p.loadAll()
	if d := cmp.Diff(map[string]int64{"a.example": 4}, p.f.Domains(1)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestDomains checks that known URLs are counted per domain, restored ones included. If there are too many domains, the
// smallest are forgotten.
func TestDomains(t *testing.T) {
	r := newRig(t, Config{MaxDomainURLs: 12})
	r.f.RestoreDomains(map[string]int64{"a.com": 10})
	r.add(0, "https://a.com/", "https://x.a.com/", "https://a.com/3", "https://b.com/")
	if d := cmp.Diff(map[string]int64{"a.com": 12}, r.f.Domains(2)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	sizes := domainSizes{"large.com": 1 << 30}
	for i := range maxDomainSizes + 10 {
		sizes.add(fmt.Sprint(i), 1)
	}
	if len(sizes) > maxDomainSizes || len(sizes) < maxDomainSizes/2 || sizes["large.com"] != 1<<30 {
		t.Errorf("%d domains are counted", len(sizes))
	}
}

func TestThresholdAtFirst(t *testing.T) {
	if got := newRig(t, Config{Revisits: true, Threshold: 3}).f.Threshold(); got != 3 {
		t.Errorf("the threshold is %v, want 3", got)
	}
	day := newRig(t, Config{Revisits: true}).f.Threshold()
	if got := schedule.Interval(blobschema.Change{}, day).Round(time.Minute); got != 24*time.Hour {
		t.Errorf("without a threshold unknown pages are revisited after %v", got)
	}
}

// TestPlacements checks that the URLs of a name wait until its address is resolved, once. They and all later ones are then
// forwarded.
func TestPlacements(t *testing.T) {
	p := newProcess(t, Config{Resolve: true, Delay: time.Second, Retry: polite.Retry{Wait: time.Minute}})
	p.rig.add(2, "https://a.example/2")
	p.rig.add(0, "http://a.example/0")
	p.queue("https://a.example/9", blobschema.Queued{NotBefore: p.now.Add(time.Hour).UnixMilli()})
	resolve := func(addr string) {
		t.Helper()
		task := p.mustNext("http://a.example/0")
		if !task.Request.Resolve || task.Request.Key != "a.example" || task.Fingerprint() != 0 {
			t.Fatalf("the request is %+v", task.Request)
		}
		p.mustIdle()
		o := answer{outcome: blobschema.OutcomeDNS}.reply(task, p.now, 0)
		if addr != "" {
			o = answer{}.reply(task, p.now, 0)
			o.Addr = netip.MustParseAddr(addr)
		}
		p.f.Done(p.now, task, o)
		p.check()
	}
	placed := func() (out []string) {
		for _, x := range p.f.Placements() {
			if x.Slot != p.hash.Slot(x.Key) || x.Fingerprint != p.hash.Fingerprint(x.URL.String()) || x.Flags&blobschema.FlagPlaced == 0 {
				t.Errorf("a placement is %+v", x)
			}
			out = append(out, fmt.Sprintf("%s generation %d, rank %d: %s", x.Key, x.Generation, x.Rank, x.URL))
		}
		return out
	}
	resolve("")
	p.mustIdle()
	if pace := p.info("a.example").Pace; pace.Failures != 1 || !pace.BackoffUntil.After(p.now) {
		t.Errorf("a name without an address is not paused: %+v", pace)
	}
	p.now = p.f.NextAt()
	if got := p.now.Sub(epoch); got != time.Minute {
		t.Errorf("the second attempt is after %v", got)
	}
	resolve("::ffff:192.0.2.1")
	wantState(t, "placements", placed(), "[192.0.2.1] generation 0, rank 1: http://a.example/0",
		"[192.0.2.1] generation 0, rank 1: https://a.example/9", "[192.0.2.1] generation 0, rank 3: https://a.example/2")
	p.mustIdle()
	if got := p.queue("https://a.example/0", blobschema.Queued{Depth: 4}); got != Fresh {
		t.Errorf("a new URL: %d", got)
	}
	wantState(t, "later", placed(), "[192.0.2.1] generation 0, rank 5: https://a.example/0")
	for url, want := range map[string]bool{"https://a.example/0": true, "https://a.example/none": false, "https://b.example/": false} {
		u := mustParse(t, url)
		l := p.link(u, blobschema.Queued{Key: string(u.Host())})
		sent, ok := p.f.SentOn(l)
		if address := sent.Key == "[192.0.2.1]" && sent.Slot == p.hash.Slot("[192.0.2.1]"); ok != want || address != want {
			t.Errorf("%s was forwarded: %v, as %+v", url, ok, sent)
		}
	}
	p = p.stored()
	if n := p.f.Counts(); n.Known != 4 || n.Pending != 0 {
		t.Errorf("counts are %+v", n)
	}
	if e := p.runs[0].Settled[0]; e.State != blobschema.Forwarded || e.Record != (blobschema.RecordRef{}) {
		t.Errorf("settled as %+v", e)
	}
	for _, c := range []struct {
		got, want Added
	}{
		{p.queue("https://a.example/0", blobschema.Queued{}), Known},
		{p.again("https://a.example/0", 5), Fresh},
		{p.again("https://a.example/0", 5), Known},
		{p.queue("https://a.example/new", blobschema.Queued{}), Fresh},
	} {
		if c.got != c.want {
			t.Errorf("got %d, want %d", c.got, c.want)
		}
	}
	p.check()
	wantState(t, "after it was stored", placed(), "[192.0.2.1] generation 1, rank 0: https://a.example/0", "[192.0.2.1] generation 0, rank 1: https://a.example/new")
	wantState(t, "state", p.state(2), "forwarded 1 at 0", "forwarded 0 at 0")
}

// TestNoAddress checks that the URLs of a name without an address are refused, and that later URLs are tried again.
func TestNoAddress(t *testing.T) {
	r := newRig(t, Config{Resolve: true, Delay: time.Second})
	r.add(0, urlX, "http://a.example/y")
	r.run(answers{urlX: {{outcome: blobschema.OutcomeDNS}, {outcome: blobschema.OutcomeAborted}, {outcome: blobschema.OutcomeDNS}}})
	if r.hits[urlX] != 3 {
		t.Errorf("requests %v", r.hits)
	}
	wantState(t, "refused", r.refused(), urlX+" dns: as the test wants", "http://a.example/y dns: as the test wants")
	r.add(0, "https://a.example/z")
	if task := r.mustLater("https://a.example/z"); !task.Request.Resolve {
		t.Errorf("the request is %+v", task.Request)
	}
}

// mustLater moves the clock to the next task and calls mustNext.
func (r *rig) mustLater(url string) schedule.Task {
	if at := r.f.NextAt(); at.After(r.now) {
		r.now = at
	}
	return r.mustNext(url)
}

// TestPlacedKey checks that an address gets the requests for the sites of all its names at one pace, and that its requests go
// nowhere else.
func TestPlacedKey(t *testing.T) {
	r := newRig(t, Config{Resolve: true, Delay: time.Second})
	for _, u := range []string{"https://a.example/", "https://b.example/", "https://[2001:db8::1]/"} {
		r.queue(u, blobschema.Queued{Key: "[2001:db8::1]", Flags: blobschema.FlagPlaced})
	}
	want := netip.MustParseAddr("2001:db8::1")
	task := r.mustNext("https://a.example/robots.txt")
	if task.Request.Addr != want || task.KeyName() != "[2001:db8::1]" {
		t.Errorf("the request is %+v", task.Request)
	}
	r.mustIdle()
	r.done(task, answer{status: 301, location: "https://b.example/r"})
	task = r.mustLater("https://b.example/r")
	if task.Request.Addr.IsValid() {
		t.Errorf("a redirect is requested at %v", task.Request.Addr)
	}
	r.done(task, answer{status: 404})
	if task = r.mustLater("https://a.example/"); task.Request.Addr != want {
		t.Errorf("the request is %+v", task.Request)
	}
}

// TestSitemapFlag checks that the request for a sitemap is marked as such.
func TestSitemapFlag(t *testing.T) {
	r := begun(t, Config{}, urlY)
	r.queue(urlX, blobschema.Queued{Flags: blobschema.FlagSitemap})
	if task := r.mustNext(urlX); !task.Request.Sitemap || task.Flags != blobschema.FlagSitemap {
		t.Errorf("the task is %+v", task)
	}
}

// TestCapabilityOrder checks that of two ready hosts the one with more quality per second is requested first, for a whole
// visit.
func TestCapabilityOrder(t *testing.T) {
	r := newRig(t, Config{Policy: policyNamed(t, "capability")})
	r.add(5, "https://far.example/1", "https://far.example/2")
	r.add(1, "https://near.example/1", "https://near.example/2", "https://near.example/3")
	web := answers{}
	for _, u := range []string{"robots.txt", "1", "2", "3"} {
		web["https://near.example/"+u] = []answer{{keep: true}}
		web["https://far.example/"+u] = []answer{{keep: true}}
	}
	r.run(web)
	if d := cmp.Diff([]string{"n 4", "f 3"}, visits(r.urls())); d != "" {
		t.Errorf("visits (-want +got):\n%s", d)
	}
}

// TestSlotShrinks checks that the texts of requested URLs are freed while the others stay the same, and that places are
// reused.
func TestSlotShrinks(t *testing.T) {
	r := begun(t, Config{}, "https://a.example/first")
	first := r.mustNext("https://a.example/first")
	r.f.Done(r.now, first, answer{}.reply(first, r.now, 0))
	long := strings.Repeat("x", 60)
	url := func(i int) string { return fmt.Sprintf("https://a.example/%s/%d", long, i) }
	const n = 2000
	for i := range n {
		r.queue(url(i), blobschema.Queued{Rank: uint32(i + 1)})
	}
	s := r.f.slots.partOf(r.hash.Slot("a.example"), 0)
	before, places := textOf(s), peek(&s.Pool, "items").Len()
	for i := range n - 100 {
		task := r.mustNext(url(i))
		r.f.Done(r.now, task, answer{}.reply(task, r.now, 0))
		if i%100 == 0 {
			r.check()
		}
	}
	r.check()
	if queue := peek(&s.Pool, "lanes").Index(0).Elem().FieldByName("queue").Cap(); textOf(s) > before/2 || queue > n/2 {
		t.Errorf("%d bytes of text of %d, a queue of %d", textOf(s), before, queue)
	}
	for i := range n - 100 {
		r.queue(url(n+i), blobschema.Queued{Rank: uint32(n + i + 1)})
	}
	if n := peek(&s.Pool, "items").Len(); n > places {
		t.Errorf("%d places for %d URLs", n, s.Len())
	}
	r.check()
	for i := n - 100; i < n+10; i++ {
		task := r.mustNext(url(i))
		r.f.Done(r.now, task, answer{}.reply(task, r.now, 0))
	}
}

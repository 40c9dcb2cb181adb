package crawl

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// crawlOn alternates coordinator runs and the steps they wake until nothing is left to do.
func (w *world) crawlOn(cfg StepConfig) {
	w.t.Helper()
	for range 60 {
		report, _ := w.tick(cfg.Crawl.ID)
		if report.Finished {
			return
		}
		for _, p := range report.Woken {
			cfg.Partition = p
			w.step(cfg, nil)
		}
		w.Mono += 10 * time.Second
	}
	w.t.Fatal("it has no end")
}

// TestSeedAfterAll checks that a URL that was settled as a found URL can become a seed. Its redirect is in scope then,
// whichever partition owns the target or has the URL's page record. Patterns still exclude it, and the URL must have been
// answered.
func TestSeedAfterAll(t *testing.T) {
	for _, k := range []struct {
		name     string
		to       func(c blobschema.Crawl) string // where the URL redirects to
		exclude  string
		meantime func(w *world, c blobschema.Crawl, slot partition.Slot) // runs before the seed arrives
		asked    bool
	}{
		{name: "to the same partition", to: func(c blobschema.Crawl) string { return "https://go." + ofPartition(t, c, 0) + "/x" }, asked: true},
		{name: "to another partition", to: func(c blobschema.Crawl) string { return "https://" + ofPartition(t, c, 1) + "/x" }, asked: true},
		{name: "nowhere"},
		{name: "to an excluded URL", to: func(c blobschema.Crawl) string { return "https://" + ofPartition(t, c, 1) + "/x" }, exclude: "/x$"},
		{name: "to no URL", to: func(blobschema.Crawl) string { return "mailto:a@b.example" }},
		{
			name: "its slot has moved since", to: func(c blobschema.Crawl) string { return "https://go." + ofPartition(t, c, 0) + "/x" }, asked: true,
			meantime: func(w *world, c blobschema.Crawl, slot partition.Slot) {
				w.give(c.ID, 1, slot)
				w.crawlOn(StepConfig{Crawl: c, Process: "p"})
			},
		},
		{
			name: "its slot is on the move", to: func(c blobschema.Crawl) string { return "https://" + ofPartition(t, c, 1) + "/x" }, asked: true,
			meantime: func(w *world, c blobschema.Crawl, slot partition.Slot) { w.give(c.ID, 1, slot) },
		},
	} {
		t.Run(k.name, func(t *testing.T) {
			c, w := newCrawl(2), newWorld(t)
			c.Settings.Scope = blobschema.ScopeHost
			if k.exclude != "" {
				c.Settings.Exclude = []string{k.exclude}
			}
			at := "https://" + ofPartition(t, c, 0)
			web, to := answers{at + "/": linking(t, actor.LinkAnchor, at+"/go", at+"/1")}, ""
			if k.to != nil {
				to = k.to(c)
				web[at+"/go"] = func(o *actor.Outcome) {
					o.Page.Outcome, o.Page.Status, o.Page.Redirect = blobschema.OutcomeRedirect, 301, to
					if !strings.HasPrefix(to, "mailto:") {
						o.Links = []actor.Link{{URL: parseURL(t, to), Kind: actor.LinkRedirect}}
					}
				}
				if next := strings.TrimSuffix(to, "x"); next != to {
					web[to] = linking(t, actor.LinkAnchor, next+"y")
				}
			}
			requests := w.serve(web)
			c = w.begin(c, at+"/")
			cfg := StepConfig{Crawl: c, Process: "p"}
			w.crawlOn(cfg)
			if _, ok := depths(*requests)[to]; ok || len(depths(*requests)) != 3 {
				t.Fatalf("at first requested %v", depths(*requests))
			}
			slot := hashOf(t, cfg.Crawl).Slot(ofPartition(t, c, 0))
			if k.meantime != nil {
				k.meantime(w, c, slot)
			}
			*requests = nil
			if _, err := w.run(NewBegin(blobschema.Crawl{}, Seeds(urls(t, at+"/go")), nil)); err != nil {
				t.Fatal(err)
			}
			w.record(naming.CrawlKey(c.ID), &cfg.Crawl)
			w.crawlOn(cfg)
			got := depths(*requests)
			want := map[string]int{}
			if k.asked { // as a seed's redirect it has the depth of the seed, and its host is in scope
				want[to], want[strings.TrimSuffix(to, "x")+"y"] = 1, 2
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("requested, by depth (-want +got):\n%s", d)
			}
		})
	}
}

// TestSeedJustSettled checks the same within one step: the page record of a settled URL comes with the next commit, and a
// pending URL becomes a seed before it is requested.
func TestSeedJustSettled(t *testing.T) {
	const at, to = "https://www.example", "https://to.example/x"
	for _, place := range []int{2, 25} { // mail is received after 20 s, and a page is requested every second
		c, w := newCrawl(1), newWorld(t)
		c.Settings.Scope = blobschema.ScopeHost
		var links []string
		for i := range 30 {
			links = append(links, fmt.Sprintf("%s/%d", at, i))
		}
		links[place] = at + "/go"
		requests := w.serve(answers{at + "/": linking(t, actor.LinkAnchor, links...), at + "/go": linking(t, actor.LinkRedirect, to)})
		c = w.begin(c, at+"/")
		serve := w.web
		w.web = func(r actor.Request) *actor.Outcome {
			if r.URL.String() == at+"/" {
				w.aside(func() { w.request(c.ID, blobschema.Request{ID: "s", Seeds: []string{at + "/go"}}) })
			}
			return serve(r)
		}
		w.step(StepConfig{Crawl: c, Process: "p", CommitEvery: time.Hour, Linger: 3 * time.Second}, nil)
		if got := depths(*requests); len(got) != 32 { // the first page, its thirty links, and the redirect of one of them
			t.Errorf("place %d: requested %v", place, got)
		}
	}
}

// TestLateSeedOfARecrawl checks that a URL that was requested again can become a seed, before that request or during it.
// Its redirect is in scope then.
func TestLateSeedOfARecrawl(t *testing.T) {
	const at, to = "https://www.example", "https://to.example/x"
	for _, during := range []bool{false, true} {
		c, w := newCrawl(1), newWorld(t)
		c.Settings.Scope = blobschema.ScopeHost
		requests := w.serve(answers{at + "/": linking(t, actor.LinkAnchor, at+"/go"), at + "/go": linking(t, actor.LinkRedirect, to)})
		c = w.begin(c, at+"/")
		cfg := StepConfig{Crawl: c, Process: "p"}
		w.crawlOn(cfg)
		if got := depths(*requests); len(got) != 2 {
			t.Fatalf("at first requested: %v", got)
		}
		seed := func() { w.request(c.ID, blobschema.Request{ID: "s", Seeds: []string{at + "/go"}}) }
		w.slow = func(r actor.Request) time.Duration {
			if r.Generation == 1 && during {
				w.aside(seed)
				return 30 * time.Second // longer than a receive waits
			}
			return fetchTime
		}
		w.request(c.ID, blobschema.Request{ID: "r", Recrawl: []string{at + "/go"}})
		if !during {
			seed()
		}
		w.crawlOn(cfg)
		if _, ok := depths(*requests)[to]; !ok {
			t.Errorf("during the request %v: requested %v", during, depths(*requests))
		}
	}
}

// TestRecrawlOfUnloaded checks that requests for pages of many slots reach each page once, although few slots fit into
// memory and steps run in different processes. A request for a slot that has moved is forwarded.
func TestRecrawlOfUnloaded(t *testing.T) {
	c, w := newCrawl(2), newWorld(t)
	var seeds []string
	for i := range 24 {
		seeds = append(seeds, fmt.Sprintf("https://h%d.example/", i))
	}
	requests := w.serve(nil)
	c = w.begin(c, seeds...)
	cfg := StepConfig{Crawl: c, Process: "p", MaxResident: 3}
	w.crawlOn(cfg)
	*requests = nil
	h := hashOf(t, cfg.Crawl)
	w.request(c.ID, blobschema.Request{ID: "r", Recrawl: append(seeds, "https://new.example/")})
	w.give(c.ID, 1, h.Slot("h0.example"), h.Slot("h2.example"))
	w.give(c.ID, 0, h.Slot("h1.example"), h.Slot("h3.example"))
	w.crawlOn(cfg)
	got, want := map[string]int{}, map[string]int{"https://new.example/ 0": 1}
	for _, r := range *requests {
		if !r.Robots {
			got[fmt.Sprint(r.URL, " ", r.Generation)]++
		}
	}
	for _, url := range seeds {
		want[url+" 1"] = 1
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("requested, by generation (-want +got):\n%s", d)
	}
	*requests = nil
	w.request(c.ID, blobschema.Request{ID: "r", Recrawl: seeds}) // the same request again
	w.crawlOn(cfg)
	if n := len(*requests); n > 0 {
		t.Errorf("a request that comes again has %d requested URLs", n)
	}
}

// TestPlaced checks a crawl partitioned by address: URLs of a name go to the slot of its address, whichever partition owns
// it, and are requested once there. The same holds for requests for them and for the redirect of a late seed.
func TestPlaced(t *testing.T) {
	c, w := newCrawl(2), newWorld(t)
	c.Settings.PartitionBy, c.Settings.Scope = blobschema.ByIP, blobschema.ScopeHost
	at, to := "https://a.example", "https://c.example/x"
	addresses := map[string]string{"a.example": "192.0.2.1", "b.example": "192.0.2.1", "c.example": "192.0.2.7", "d.example": "192.0.2.8"}
	requests := w.serve(answers{
		at + "/":             linking(t, actor.LinkAnchor, at+"/go", at+"/1", "https://b.example/1", "https://d.example/1"),
		at + "/go":           linking(t, actor.LinkRedirect, to),
		"https://d.example/": linking(t, actor.LinkAnchor, at+"/1", at+"/2"),
	})
	serve, last := w.web, map[netip.Addr]time.Duration{}
	w.web = func(r actor.Request) *actor.Outcome {
		ip := netip.MustParseAddr(addresses[string(r.URL.Host())])
		if r.Resolve {
			o := actor.Aborted(r, w.Now().Wall)
			o.Addr, o.Temporary = ip, false
			return o
		}
		if r.Addr != ip {
			t.Errorf("%s is requested at %v", r.URL, r.Addr)
		}
		if before, ok := last[ip]; ok && !r.Robots && w.Mono-before < c.Settings.Delay {
			t.Errorf("I9: %v is asked after %v", ip, w.Mono-before)
		}
		if !r.Robots {
			last[ip] = w.Mono
		}
		return serve(r)
	}
	c = w.begin(c, at+"/", "https://b.example/", "https://d.example/")
	cfg := StepConfig{Crawl: c, Process: "p"}
	w.crawlOn(cfg)
	want := map[string]int{
		at + "/": 0, at + "/go": 1, at + "/1": 1, at + "/2": 1, "https://b.example/": 0, "https://b.example/1": 1, "https://d.example/": 0, "https://d.example/1": 1,
	}
	if d := cmp.Diff(want, depths(*requests)); d != "" {
		t.Errorf("requested, by depth (-want +got):\n%s", d)
	}
	forwarded := w.head(c.ID, 0).Totals.Forwarded + w.head(c.ID, 1).Totals.Forwarded
	if forwarded == 0 || forwarded > int64(len(want)) {
		t.Errorf("%d URLs of %d were sent on", forwarded, len(want))
	}
	pages := map[string]int{}
	for p := range partition.ID(2) {
		for url, n := range w.visible(c.ID, p) {
			pages[url] += n
		}
	}
	for url := range want {
		if pages[url] != 1 {
			t.Errorf("%s has %d records", url, pages[url])
		}
	}
	*requests = nil
	w.request(c.ID, blobschema.Request{ID: "r", Recrawl: []string{at + "/1", "https://192.0.2.9/"}, Seeds: []string{at + "/go"}})
	addresses["192.0.2.9"] = "192.0.2.9"
	w.crawlOn(cfg)
	if d := cmp.Diff(map[string]int{at + "/1": 1, to: 1}, depths(*requests)); d != "" {
		t.Errorf("requested later, by depth (-want +got):\n%s", d)
	}
}

// TestPlacedBesideARevisit checks, in a crawl partitioned by address, that a URL that waits for a revisit in the slot of its
// address is requested at once after a request reaches the slot of its name.
func TestPlacedBesideARevisit(t *testing.T) {
	const gone, address = "https://a.example/gone", "192.0.2.1"
	for _, parts := range []int{1, 2} { // with two partitions, the slots have different owners
		c, w := newCrawl(parts), newWorld(t)
		c.Settings.PartitionBy, c.Settings.RecrawlPerHour = blobschema.ByIP, 1
		requests := w.serve(nil)
		serve := w.web
		w.web = func(r actor.Request) *actor.Outcome {
			if r.Resolve {
				o := actor.Aborted(r, w.Now().Wall)
				o.Addr, o.Temporary = netip.MustParseAddr(address), false
				return o
			}
			return serve(r)
		}
		c = w.begin(c, gone)
		cfg := StepConfig{Crawl: c, Process: "p", SleepMax: time.Second}
		rounds := func() (times int) {
			*requests = nil
			for range 20 {
				report, _ := w.tick(c.ID)
				for _, p := range report.Woken {
					cfg.Partition = p
					w.step(cfg, nil)
				}
				w.Mono += 10 * time.Second
			}
			for _, r := range *requests {
				if !r.Robots && !r.Resolve {
					times++
				}
			}
			return times
		}
		if n := rounds(); n != 1 {
			t.Fatalf("%d partitions: requested %d times at first", parts, n)
		}
		w.request(c.ID, blobschema.Request{ID: "r", Recrawl: []string{gone}})
		if n := rounds(); n != 1 {
			t.Errorf("%d partitions: requested %d times later", parts, n)
		}
	}
}

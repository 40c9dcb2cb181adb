package crawl

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/partition"
)

// request turns a message into mail, as intake does.
func (w *world) request(crawl string, r blobschema.Request) map[string]int {
	w.t.Helper()
	body, err := blobschema.EncodeRequest(r)
	if err != nil {
		w.t.Fatal(err)
	}
	counts, err := w.run(NewIntake(IntakeConfig{Crawl: crawl}, []actor.Message{{ID: "m", Body: body}}))
	if err != nil {
		w.t.Fatal(err)
	}
	return counts
}

// records returns the page records of a URL, in the order of their commits.
func (w *world) records(crawl string, p partition.ID, url string) (out []blobschema.Page) {
	w.t.Helper()
	for _, c := range w.commits(crawl, p) {
		pages, err := c.Pages()
		if err != nil {
			w.t.Fatal(err)
		}
		for _, pg := range pages {
			if pg.URL == url {
				out = append(out, pg)
			}
		}
	}
	return out
}

// changing is a site whose pages may be requested again. It records the requests.
func changing(host string, requests *[]actor.Request) func(actor.Request) *actor.Outcome {
	return func(req actor.Request) *actor.Outcome {
		*requests = append(*requests, req)
		o := actor.Aborted(req, time.Time{})
		o.Temporary, o.Page.Outcome, o.Page.Status, o.Page.ETag = false, blobschema.OutcomeOK, 200, `"v1"`
		o.Record, o.Page.Length = []byte("record"), 6
		o.Page.Digest, o.Page.BodyBytes = fmt.Sprint("sha1:", req.URL.Path()), 10
		if req.Robots {
			o.Page.Outcome, o.Page.Status = blobschema.OutcomeClientError, 404
		}
		return o
	}
}

// TestRecrawl checks that a request for a page of a finished crawl makes its next generation, with the record of the
// previous one. The same request sent twice counts once.
func TestRecrawl(t *testing.T) {
	c, host := newCrawl(2), ""
	host = ofPartition(t, c, 1)
	w := newWorld(t)
	var requests []actor.Request
	w.web = changing(host, &requests)
	c = w.begin(c, all(host)[:5]...)
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	w.step(StepConfig{Crawl: c, Process: "p", Partition: 1}, nil)
	if n := len(requests); n != 6 {
		t.Fatalf("%d requests", n)
	}
	for i := range 3 { // the third has another id
		id := "r1"
		if i == 2 {
			id = "r2"
		}
		requests = nil
		counts := w.request(c.ID, blobschema.Request{ID: id, Recrawl: all(host)[3:4]})
		want := map[string]int{
			"ReadRecords": 2, "WriteRecord": 1, // the crawl; the record that numbers the mail
			"PutObject": 1, // the URLs
			"Send":      2, // mail and a wake
		}
		if i == 1 { // it has its number already
			delete(want, "WriteRecord")
		}
		if d := cmp.Diff(want, counts); d != "" {
			t.Errorf("the intake (-want +got):\n%s", d)
		}
		if i != 1 {
			if rep, _ := w.tick(c.ID); rep.Quiet {
				t.Error("the crawl counts as finished, with a request on its way")
			}
		}
		w.step(StepConfig{Crawl: c, Process: "p", Partition: 1}, nil)
		wantAsked := []int{1, 0, 1}[i]
		if len(requests) != wantAsked {
			t.Fatalf("request %d: requested %v", i, requests)
		}
		if wantAsked == 1 && (requests[0].Generation != uint32(1+i/2) || requests[0].Previous == nil || requests[0].Previous.ETag != `"v1"`) {
			t.Errorf("request %d: requested generation %d, former %+v", i, requests[0].Generation, requests[0].Previous)
		}
	}
	got := w.records(c.ID, 1, all(host)[3])
	if len(got) != 3 || got[0].Change != "" || got[1].Change != blobschema.PageSame || got[1].Generation != 1 || got[2].Generation != 2 {
		t.Errorf("records: %+v", got)
	}
	w.tick(c.ID)
	if rep, _ := w.tick(c.ID); !rep.Finished || len(rep.Requests.Outbox) != 0 || rep.Totals.Urgent != 0 {
		t.Errorf("in the end: finished %v, %d urgent, requests %+v", rep.Finished, rep.Totals.Urgent, rep.Requests)
	}
}

// TestRecrawlBesideLimit checks that a requested page is fetched although the page limit is reached, and does not count
// against it.
func TestRecrawlBesideLimit(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	c.Settings.MaxPages = 2
	w := newWorld(t)
	var requests []actor.Request
	w.web = changing(host, &requests)
	c = w.begin(c, all(host)[:5]...)
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	if rep, _ := w.tick(c.ID); !rep.Limited || len(requests) != 3 {
		t.Fatalf("limited %v after %d requests", rep.Limited, len(requests))
	}
	first := requests[1].URL.String()
	w.request(c.ID, blobschema.Request{ID: "r", Recrawl: []string{first, "https://" + host + "/new"}})
	if rep, _ := w.tick(c.ID); rep.Limited {
		t.Error("the crawl is over, with a request on its way")
	}
	requests = nil
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	if len(requests) != 2 {
		t.Errorf("requested %v", requests)
	}
	if h := w.head(c.ID, 0); h.Totals.Pages != 2 || h.Totals.Pending != 3 || h.Totals.Known != 6 {
		t.Errorf("totals %+v", h.Totals)
	}
	if rep, _ := w.tick(c.ID); !rep.Limited {
		t.Error("the crawl goes on beyond its limit")
	}
}

// TestRecrawlBesideBusyStep checks that a step soon fetches a requested page of a host that is not in memory, although another
// host keeps all connections busy.
func TestRecrawlBesideBusyStep(t *testing.T) {
	c := newCrawl(1)
	c.Settings.Delay = 0
	w := newWorld(t)
	asked, fetched := "https://quiet.example/", 0
	var pages []string
	for i := range 2000 {
		pages = append(pages, fmt.Sprintf("https://busy.example/%d", i))
	}
	var requests []actor.Request
	web := changing("", &requests)
	w.web = func(req actor.Request) *actor.Outcome {
		switch n := len(requests); {
		case fetched == 0 && req.URL.String() == asked:
			fetched = n
		case n == 20 && fetched == 0:
			w.request(c.ID, blobschema.Request{ID: "r", Recrawl: []string{asked}})
		}
		return web(req)
	}
	c = w.begin(c, append([]string{asked}, pages...)...)
	w.step(StepConfig{Crawl: c, Process: "p", Deadline: 20 * time.Second, Connections: 1}, nil)
	if fetched == 0 || len(requests) >= len(pages) {
		t.Fatalf("the first step requested %d pages", len(requests))
	}
	requests, fetched = nil, 0
	w.step(StepConfig{Crawl: c, Process: "p", Deadline: time.Minute, Connections: 1}, nil)
	if len(requests) < 500 || fetched == 0 || fetched > 250 { // a receive takes 20 s here, the time of 200 requests
		t.Errorf("of %[2]d requests, number %[1]d is for the page that was requested from outside after number 20", fetched, len(requests))
	}
}

// TestRecrawlOutside checks the outcome of a request out of scope or for a text that is no URL.
func TestRecrawlOutside(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	c.Settings.Scope = blobschema.ScopeHost
	w := newWorld(t)
	var requests []actor.Request
	w.web = changing(host, &requests)
	c = w.begin(c, all(host)[0])
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	outside := "https://elsewhere.example/"
	w.request(c.ID, blobschema.Request{Recrawl: []string{outside, "mailto:a@b.example", "http://"}})
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	got := w.records(c.ID, 0, outside)
	if tot := w.head(c.ID, 0).Totals; len(got) != 1 || got[0].Outcome != blobschema.OutcomeScope || got[0].Detail == "" || tot.Outcomes["out-of-scope"] != 1 || tot.Pages != 1 {
		t.Errorf("records: %+v; %+v", got, tot)
	}
	var r blobschema.Requests
	w.record(naming.RequestsKey(c.ID), &r)
	if r.Dead != 2 {
		t.Errorf("%d URLs put aside", r.Dead)
	}
	for _, body := range []string{"", "{", `{"recrawl":[]}`, `{"recrawls":["https://www.example/"]}`, `{"crawl":"other","recrawl":["https://www.example/"]}`, `{"version":2,"recrawl":["a"]}`} {
		counts, err := w.run(NewIntake(IntakeConfig{Crawl: c.ID}, []actor.Message{{ID: "x", Body: []byte(body)}}))
		if err != nil || counts["PutObject"] != 1 || counts["Send"] != 0 {
			t.Errorf("message %q: %v, %v", body, counts, err)
		}
	}
}

// TestSitemapSaysChanged checks that a sitemap that is read again causes requests for exactly the pages that it lists as
// changed since.
func TestSitemapSaysChanged(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	w := newWorld(t)
	var requests []actor.Request
	plain := changing(host, &requests)
	sitemap := "https://" + host + "/sitemap.xml"
	changed := map[string]int64{}
	w.web = func(req actor.Request) *actor.Outcome {
		o := plain(req)
		o.Page.Time = virtual.Epoch.Add(w.Mono)
		if req.URL.String() == sitemap {
			for _, u := range urls(t, all(host)[:4]...) {
				o.Links = append(o.Links, actor.Link{URL: u, Kind: actor.LinkListed, Modified: changed[u.String()]})
			}
		}
		return o
	}
	c = w.begin(c, sitemap)
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	w.Mono += 48 * time.Hour
	changed[all(host)[2]] = virtual.Epoch.Add(w.Mono - time.Hour).Unix()
	changed[all(host)[3]] = virtual.Epoch.Add(-100 * time.Hour).Unix()
	requests = nil
	w.request(c.ID, blobschema.Request{ID: "r", Recrawl: []string{sitemap}})
	for range 3 { // the sitemap; its requests come as mail
		w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	}
	var got []string
	for _, r := range requests {
		if !r.Robots {
			got = append(got, fmt.Sprint(r.URL, " ", r.Generation))
		}
	}
	if d := cmp.Diff([]string{sitemap + " 1", all(host)[2] + " 1"}, got); d != "" {
		t.Errorf("requested (-want +got):\n%s", d)
	}
}

// TestTrap checks Trap and its reasons.
func TestTrap(t *testing.T) {
	s := &blobschema.Settings{MaxSegments: 6, MaxRepeats: 2}
	many := "https://a.example"
	for i := range 64 {
		many += fmt.Sprint("/", i)
	}
	for url, why := range map[string]string{
		"https://a.example/":              "",
		"https://a.example/1/2/3/4/5/6":   "",
		"https://a.example/1/2/3/4/5/6/7": "7 segments",
		"https://a.example/x/y/x/y":       "",
		"https://a.example/x/y/x/y/x":     `"x"`,
		"https://a.example/x/x":           "",
		"https://a.example/x/x/x":         `"x"`,
		"https://a.example////":           `"/"`,
		"https://a.example/a?x/x/x/x/x/x": "",
	} {
		if got := Trap(s, parseURL(t, url)); (got != "") != (why != "") || !strings.Contains(got, why) {
			t.Errorf("%s: %q", url, got)
		}
		if got := Trap(&blobschema.Settings{}, parseURL(t, url)); got != "" {
			t.Errorf("%s without caps: %q", url, got)
		}
	}
	s = &blobschema.Settings{MaxRepeats: 1}
	for url, trapped := range map[string]bool{"https://a.example/x": false, "https://a.example/x/x": true, many: false, many + "/63": true, many + "/64/64": false} {
		if got := Trap(s, parseURL(t, url)); (got != "") != trapped {
			t.Errorf("each segment once: %s: %q", url, got)
		}
	}
}

// TestRecrawlForbidden checks that a page that robots.txt now forbids is refused in its next generation, with the rule. The
// stored page stays.
func TestRecrawlForbidden(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	w := newWorld(t)
	var requests []actor.Request
	plain, rules := changing(host, &requests), ""
	w.web = func(req actor.Request) *actor.Outcome {
		o := plain(req)
		if req.Robots && rules != "" {
			o.Page.Outcome, o.Page.Status, o.Body = blobschema.OutcomeOK, 200, []byte(rules)
		}
		return o
	}
	c = w.begin(c, all(host)[:3]...)
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	w.Mono += 25 * time.Hour // robots.txt is read again
	rules = "User-agent: *\nDisallow: /1\n"
	w.request(c.ID, blobschema.Request{ID: "r", Recrawl: all(host)[:2]})
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	for i, want := range []blobschema.Outcome{blobschema.OutcomeOK, blobschema.OutcomeRobots} {
		got := w.records(c.ID, 0, all(host)[i])
		if len(got) != 2 || got[0].Outcome != blobschema.OutcomeOK || got[1].Outcome != want || got[1].Generation != 1 {
			t.Errorf("records of %s: %+v", all(host)[i], got)
		}
	}
	if d := w.records(c.ID, 0, all(host)[1])[1].Detail; d != "robots.txt line 2: Disallow: /1" {
		t.Errorf("refused because %q", d)
	}
}

// TestSeedTriedAgain checks that a seed whose host could not be reached is fetched when it is given again, and counts as a
// page.
func TestSeedTriedAgain(t *testing.T) {
	c := newCrawl(1)
	c.Settings.MaxPages = 1
	w := newWorld(t)
	var requests []actor.Request
	up, site := false, changing("www.example", &requests)
	w.web = func(req actor.Request) *actor.Outcome {
		o := site(req)
		if !up {
			o = actor.Aborted(req, time.Time{})
			o.Temporary, o.Page.Outcome, o.Page.Detail = false, blobschema.OutcomeDNS, "no such host"
		}
		return o
	}
	const seed = "https://www.example/0"
	c = w.begin(c, seed)
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	got := w.records(c.ID, 0, seed)
	if len(got) != 1 || got[0].Outcome != blobschema.OutcomeDNS || got[0].Detail != "robots.txt: no such host" {
		t.Fatalf("records: %+v", got)
	}
	up = true
	for range 2 { // the second time the page limit is reached
		b := NewBegin(blobschema.Crawl{}, []Seed{{URL: urls(t, seed)[0], Retry: true}}, nil)
		if _, err := w.run(b); err != nil {
			t.Fatal(err)
		}
		c2, created, added := b.Crawl()
		if created || added != 1 {
			t.Errorf("created %v, %d added", created, added)
		}
		w.tick(c.ID)
		w.step(StepConfig{Crawl: c2, Process: "p"}, nil)
	}
	got = w.records(c.ID, 0, seed)
	if len(got) != 2 || got[1].Outcome != blobschema.OutcomeOK || got[1].Generation != 1 {
		t.Errorf("records: %+v", got)
	}
	if rep, _ := w.tick(c.ID); rep.Totals.Pages != 1 || rep.Totals.Urgent != 0 {
		t.Errorf("%d pages, %d urgent", rep.Totals.Pages, rep.Totals.Urgent)
	}
}

// TestRecrawlKeepsDepth checks that the links of a page that is fetched again keep their depth, so that --max-depth holds.
func TestRecrawlKeepsDepth(t *testing.T) {
	c := newCrawl(1)
	c.Settings.MaxDepth = 2
	w := newWorld(t)
	var requests []actor.Request
	site := changing("www.example", &requests)
	w.web = func(req actor.Request) *actor.Outcome { // each page links to the next
		o, n := site(req), 0
		if _, err := fmt.Sscanf(req.URL.String(), "https://www.example/%d", &n); err == nil {
			o.Links = []actor.Link{{URL: urls(t, fmt.Sprintf("https://www.example/%d", n+1))[0]}}
		}
		return o
	}
	c = w.begin(c, "https://www.example/0")
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	requests = nil
	w.request(c.ID, blobschema.Request{ID: "r", Recrawl: []string{"https://www.example/2"}})
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	got := w.records(c.ID, 0, "https://www.example/2")
	if len(got) != 2 || got[0].Depth != 2 || got[1].Depth != 2 {
		t.Errorf("records: %+v", got)
	}
	if len(requests) != 1 {
		t.Errorf("fetched: %v", requests)
	}
}

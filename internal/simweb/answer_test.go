package simweb

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/temoto/robotstxt"

	"github.com/orbweaver/orbweaver/blobschema"
)

// only returns a web of two hosts with mostly pages of one kind, and such a page of host 0.
func only(t *testing.T, k kind, set func(*Config)) (*Web, int) {
	t.Helper()
	c := Config{Seed: 3, Hosts: 2, Pages: Pages{Min: 30}, LinksPerPage: 10}
	set(&c)
	w := mustNew(t, c)
	for p, got := range w.hosts[0].kinds {
		if got == k && p > 5 {
			return w, p
		}
	}
	t.Fatalf("no page of kind %d", k)
	return nil, 0
}

func TestKinds(t *testing.T) {
	cases := map[string]struct {
		kind    kind
		set     func(*Config)
		outcome blobschema.Outcome
		check   func(r Response) bool
	}{
		"redirect": {redirect, func(c *Config) { c.Kinds.Redirect = 0.7 }, blobschema.OutcomeRedirect, func(r Response) bool {
			return r.Status >= 301 && r.Status <= 308 && r.Get("Location") != ""
		}},
		"loop": {loop, func(c *Config) { c.Kinds.Loop = 0.7 }, blobschema.OutcomeRedirect, func(r Response) bool {
			return r.Status >= 301 && strings.Contains(r.Get("Location"), "/go/")
		}},
		"broken": {broken, func(c *Config) { c.Kinds.Broken = 0.7 }, blobschema.OutcomeServerError, func(r Response) bool {
			return r.Status >= 500
		}},
		"slow": {slow, func(c *Config) { c.Kinds.Slow, c.SlowBody = 0.7, time.Minute }, blobschema.OutcomeOK, func(r Response) bool {
			return r.Status == 200 && r.BodyTime == time.Minute
		}},
		"cut": {cut, func(c *Config) { c.Kinds.Cut = 0.7 }, blobschema.OutcomeCut, func(r Response) bool {
			return r.Status == 200 && r.Fault == FaultCut && r.CutAt > 0 && r.CutAt < len(r.Body) && r.Close
		}},
		"reset": {reset, func(c *Config) { c.Kinds.Reset = 0.7 }, blobschema.OutcomeCut, func(r Response) bool {
			return r.Status == 0 && r.Fault == FaultReset
		}},
		"silent": {silent, func(c *Config) { c.Kinds.Silent = 0.7 }, blobschema.OutcomeTimeout, func(r Response) bool {
			return r.Status == 0 && r.Fault == FaultSilent
		}},
		"garbage": {garbage, func(c *Config) { c.Kinds.Garbage = 0.7 }, blobschema.OutcomeProtocol, func(r Response) bool {
			return r.Status == 0 && r.Fault == FaultGarbage && len(r.Body) > 0
		}},
		"surplus": {surplus, func(c *Config) { c.Kinds.Surplus = 0.7 }, blobschema.OutcomeOK, func(r Response) bool {
			return r.Status == 200 && r.Fault == FaultSurplus && !bytes.Contains(r.Body, []byte("<a "))
		}},
		"media": {media, func(c *Config) { c.Kinds.Media = 0.7 }, blobschema.OutcomeOK, func(r Response) bool {
			return r.Status == 200 && !strings.Contains(r.Get("Content-Type"), "html") && bytes.Contains(r.Body, []byte("decoy"))
		}},
		"nofollow": {noFollow, func(c *Config) { c.Kinds.NoFollow = 0.7 }, blobschema.OutcomeOK, func(r Response) bool {
			return bytes.Contains(r.Body, []byte(`<meta name="robots" content="NoFollow">`))
		}},
		"noindex": {noIndex, func(c *Config) { c.Kinds.NoIndex = 0.7 }, blobschema.OutcomeOK, func(r Response) bool {
			return bytes.Contains(r.Body, []byte("noindex, follow"))
		}},
		"base": {based, func(c *Config) { c.Kinds.Base = 0.7 }, blobschema.OutcomeOK, func(r Response) bool {
			return bytes.Contains(r.Body, []byte(`<base href="/base/of/all/`)) && bytes.Contains(r.Body, []byte(`="../../../`))
		}},
		"refresh": {refresh, func(c *Config) { c.Kinds.Refresh = 0.7 }, blobschema.OutcomeOK, func(r Response) bool {
			return bytes.Count(r.Body, []byte("http-equiv")) == 1
		}},
		"late": {late, func(c *Config) { c.Kinds.Late, c.LateBy = 0.7, time.Minute }, blobschema.OutcomeTimeout, func(r Response) bool {
			return r.Delay >= time.Minute
		}},
		"steady": {steady, func(c *Config) { c.Kinds.Steady, c.SteadyBody = 0.7, 10*time.Second }, blobschema.OutcomeOK, func(r Response) bool {
			return r.Status == 200 && r.BodyTime == 10*time.Second && len(r.Body) >= 40_000 && bytes.Contains(r.Body[:8000], []byte("<a "))
		}},
		"busy": {busy, func(c *Config) { c.Kinds.Busy = 0.7 }, blobschema.OutcomeServerError, func(r Response) bool {
			return r.Status >= 502 && r.Status <= 504
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, p := only(t, tc.kind, tc.set)
			r := w.Answer(Request{URL: w.URL(0, p)})
			if !tc.check(r) {
				t.Errorf("answer %+v\n%s", r, r.Body)
			}
			e, ok := w.Truth(Scope{}).Pages[w.URL(0, p)]
			if !ok || e.Outcome != tc.outcome || r.Status != e.Status && tc.kind != late {
				t.Errorf("truth %+v (%v), want outcome %d and status %d", e, ok, tc.outcome, r.Status)
			}
			if e.NoIndex != (tc.kind == noIndex) {
				t.Errorf("noindex is %v", e.NoIndex)
			}
		})
	}
}

func TestGone(t *testing.T) {
	w, _ := only(t, gone, func(c *Config) { c.Kinds.Gone = 0.8; c.Pages.Min = 200 })
	seen := make(map[int]bool)
	for p, k := range w.hosts[0].kinds {
		r := w.Answer(Request{URL: w.URL(0, p)})
		if k == gone {
			seen[r.Status] = true
		}
		if r.Status == 302 && r.Get("Location") != "" {
			t.Errorf("page %d: a 302 that was to have no Location has %s", p, r.Get("Location"))
		}
	}
	for _, s := range []int{302, 403, 404, 410, 451} {
		if !seen[s] {
			t.Errorf("no status %d", s)
		}
	}
}

func TestFlakyPagesComeInTheEnd(t *testing.T) {
	w, _ := only(t, flaky, func(c *Config) { c.Kinds.Flaky, c.FlakyMax, c.Pages.Min = 0.7, 3, 200 })
	whole := w.Truth(Scope{}).Pages
	ways := make(map[int]bool)
	for p, k := range w.hosts[0].kinds {
		if k != flaky {
			continue
		}
		url, f := w.URL(0, p), w.flakiness(0, p)
		ways[f.status] = true
		for attempt := range 5 {
			r := w.Answer(Request{URL: url, Attempt: attempt})
			failed := r.Status != 200 || r.Fault != FaultNone
			if failed != (attempt < f.times) {
				t.Errorf("%s fails %d times; attempt %d has status %d, fault %v", url, f.times, attempt, r.Status, r.Fault)
			}
			if (r.Status == 429 || r.Status == 503) && r.Get("Retry-After") != "1" {
				t.Errorf("%s: Retry-After %q", url, r.Get("Retry-After"))
			}
			if !failed && digestOf(r.Body) != whole[url].Digest {
				t.Errorf("%s: another body than the truth's", url)
			}
		}
		if e := w.Truth(Scope{Attempts: f.times, SkipDigests: true}).Pages[url]; e.Outcome == blobschema.OutcomeOK || e.Status != f.status {
			t.Errorf("%s fails %d times and succeeds in as many attempts: %+v", url, f.times, e)
		}
	}
	if len(ways) != 5 {
		t.Errorf("ways to fail: %v", ways)
	}
}

func TestDuplicates(t *testing.T) {
	w, p := only(t, duplicate, func(c *Config) { c.Kinds.Duplicate = 0.5; c.Links.Odd = 0.2 })
	q := w.original(0, p)
	a, b := w.Answer(Request{URL: w.URL(0, p)}), w.Answer(Request{URL: w.URL(0, q)})
	if p == q || !bytes.Equal(a.Body, b.Body) {
		t.Errorf("page %d is not byte for byte page %d", p, q)
	}
	if pages := w.Truth(Scope{}).Pages; pages[w.URL(0, p)].Digest != pages[w.URL(0, q)].Digest {
		t.Error("duplicates differ in the truth")
	}
}

func TestHiddenPages(t *testing.T) {
	w, _ := only(t, hidden, func(c *Config) { c.Kinds.Hidden, c.Pages.Min = 0.3, 200 })
	pages := w.Truth(Scope{SkipDigests: true}).Pages
	count := make(map[manner]int)
	for p, k := range w.hosts[0].kinds {
		if k != hidden {
			continue
		}
		url := w.URL(0, p)
		count[w.hiding(0, p)]++
		if _, ok := pages[url]; ok {
			t.Errorf("%s is found", url)
		}
		if r := w.Answer(Request{URL: url}); r.Status != 200 {
			t.Errorf("%s: status %d, a crawler would not be caught", url, r.Status)
		}
	}
	if count[byNoFollow] == 0 || count[byComment] == 0 || count[byScript] == 0 {
		t.Errorf("manners of hiding: %v", count)
	}
}

func TestTraps(t *testing.T) {
	cfg := Config{Hosts: 2, Pages: Pages{Min: 5}, Trap: Trap{Hosts: 0.5, Days: 12}}
	w := mustNew(t, cfg)
	if n := len(w.Truth(Scope{SkipDigests: true}).Pages); n != 22 {
		t.Errorf("%d pages with a calendar of 12 days", n)
	}
	few, more := w.Truth(Scope{MaxDepth: 2, SkipDigests: true}), w.Truth(Scope{MaxDepth: 3, SkipDigests: true})
	if len(few.Pages) <= 10 || len(more.Pages) <= len(few.Pages) {
		t.Errorf("%d pages to depth 2, %d to depth 3", len(few.Pages), len(more.Pages))
	}
	cfg.Robots.Sections = 0.5
	cfg.Trap.Hosts = 1
	denied := mustNew(t, cfg)
	entry := denied.URL(1, denied.hosts[1].pages)
	if e := denied.Truth(Scope{SkipDigests: true}).Pages[entry]; e.Outcome != blobschema.OutcomeRobots {
		t.Errorf("calendar that robots.txt forbids: %+v", e)
	}
}

// TestRobotsTextAgreesWithTable checks that the table that the truth uses agrees with the text that crawlers
// get.
func TestRobotsTextAgreesWithTable(t *testing.T) {
	cfg := Config{Seed: 5, Hosts: 10, Pages: Pages{Min: 100}, Trap: Trap{Hosts: 1},
		Robots: RobotsShares{Sections: 0.4, Huge: 0.3, Redirect: 0.2, Delay: 1500 * time.Millisecond}}
	w := mustNew(t, cfg)
	counts := make(map[bool]int)
	own := make(map[bool]int)
	for h := range w.hosts {
		x := &w.hosts[h]
		if !x.robots.rules() {
			continue
		}
		own[x.ownGroup]++
		text := w.robotsText(h)
		if huge := x.robots == robotsHuge; huge != (len(text) > 1<<20) || huge && bytes.Index(text, []byte("/private/")) < 480<<10 {
			t.Errorf("%v: %d bytes", x.robots, len(text))
		}
		d, err := robotstxt.FromBytes(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, agent := range []string{"orbweaver", "Orbweaver", "other", "badbot"} {
			if got := d.FindGroup(agent).CrawlDelay; agent != "badbot" && got != cfg.Robots.Delay {
				t.Errorf("host %d, %s: delay %v", h, agent, got)
			}
			for p := range x.pages + 3 {
				path := string(w.appendPath(nil, h, p))
				want := w.denied(h, w.section(h, p), agent)
				counts[want]++
				if got := !d.TestAgent(path, agent); got != want {
					t.Errorf("host %d (own group %v), %s, %s: denied by the text %v, by the table %v", h, x.ownGroup, agent, path, got, want)
				}
			}
		}
	}
	if counts[true] == 0 || counts[false] == 0 || own[true] == 0 || own[false] == 0 {
		t.Errorf("denied %v, own groups %v", counts, own)
	}
}

func TestRobotsKinds(t *testing.T) {
	w := mustNew(t, Config{Hosts: 16, Robots: RobotsShares{AllowAll: 0.12, Sections: 0.12, Forbidden: 0.12, Error: 0.12,
		Redirect: 0.12, Huge: 0.12, Soft404: 0.12, Drip: 0.1}})
	want := map[robotsKind]int{robotsNone: 404, robotsAllowAll: 200, robotsSections: 200, robotsForbidden: 403,
		robotsError: 503, robotsHuge: 200, robotsSoft404: 200, robotsDrip: 200}
	seen := make(map[robotsKind]bool)
	for h := range w.hosts {
		k := w.hosts[h].robots
		seen[k] = true
		url := "http://" + w.authority[h]
		r := w.Answer(Request{URL: url + "/robots.txt"})
		hops := 0
		for ; r.Status == 301 || r.Status == 302; hops++ {
			r = w.Answer(Request{URL: url + r.Get("Location")})
		}
		if k == robotsRedirect {
			if hops < 1 || hops > 3 || r.Status != 200 || !bytes.Contains(r.Body, []byte("/private/")) {
				t.Errorf("after %d redirects: %d\n%s", hops, r.Status, r.Body)
			}
			continue
		}
		if (r.BodyTime > 0) != (k == robotsDrip) {
			t.Errorf("%v: its body takes %v", k, r.BodyTime)
		}
		if r.Status != want[k] || hops != 0 {
			t.Errorf("%v: status %d, want %d", k, r.Status, want[k])
		}
	}
	if len(seen) != 9 {
		t.Errorf("kinds of robots.txt: %v", seen)
	}
}

func TestGzip(t *testing.T) {
	w := mustNew(t, Config{Hosts: 2, Connection: Connection{Gzip: 1}})
	url := w.URL(1, 3)
	plainly, zipped := w.Answer(Request{URL: url}), w.Answer(Request{URL: url, AcceptGzip: true})
	again := w.Answer(Request{URL: url, AcceptGzip: true})
	if plainly.Get("Content-Encoding") != "" || zipped.Get("Content-Encoding") != "gzip" {
		t.Errorf("encodings %q and %q", plainly.Get("Content-Encoding"), zipped.Get("Content-Encoding"))
	}
	if !bytes.Equal(unzip(zipped.Body), plainly.Body) || !bytes.Equal(zipped.Body, again.Body) {
		t.Error("bodies differ")
	}
	if len(zipped.Body) > len(plainly.Body)/2 || &again.Body[0] != &zipped.Body[0] {
		t.Errorf("%d bytes of %d, kept: %v", len(zipped.Body), len(plainly.Body), &again.Body[0] == &zipped.Body[0])
	}
	e := w.Truth(Scope{}).Pages[url]
	if e.Digest != digestOf(plainly.Body) || e.Encoded != digestOf(zipped.Body) || e.Digest == e.Encoded {
		t.Errorf("%+v", e)
	}
}

func TestConnectionsEnd(t *testing.T) {
	w := mustNew(t, Config{Hosts: 1, Connection: Connection{MaxRequests: 3}})
	for answered, want := range []bool{false, false, true, true} {
		r := w.Answer(Request{URL: w.URL(0, 1), Answered: answered})
		if r.Close != want || (r.Get("Connection") == "close") != want {
			t.Errorf("after %d answers: close %v, header %q", answered, r.Close, r.Get("Connection"))
		}
	}
}

func TestScope(t *testing.T) {
	w := mustNew(t, faultless())
	all := w.Truth(Scope{}).Pages
	near := w.Truth(Scope{MaxDepth: 1}).Pages
	for url, e := range all {
		if _, ok := near[url]; ok != (e.Depth <= 1) {
			t.Errorf("%s at depth %d, in the truth to depth 1: %v", url, e.Depth, ok)
		}
	}
	root := w.URL(3, 0)
	for url := range w.Truth(Scope{Seeds: []string{root}, Within: func(u string) bool { return strings.HasPrefix(u, root) }}).Pages {
		if !strings.HasPrefix(url, root) {
			t.Errorf("%s is outside", url)
		}
	}
	odd := w.Truth(Scope{Seeds: []string{"http://nowhere.example/", root + "none"}}).Pages
	if odd["http://nowhere.example/"].Outcome != blobschema.OutcomeDNS || odd[root+"none"].Status != 404 || len(odd) != 2 {
		t.Errorf("%+v", odd)
	}
	if got := w.Links(root); len(got) != all[root].Links || len(got) == 0 {
		t.Errorf("%d links, the truth has %d", len(got), all[root].Links)
	}
	if w.Links(root+"none") != nil || w.Links("x") != nil {
		t.Error("links of nothing")
	}
}

func TestDiff(t *testing.T) {
	truth := Truth{Pages: map[string]Expect{
		"http://a/1": {Kind: KindPage, Outcome: blobschema.OutcomeOK, Status: 200, Digest: "sha1:A", Encoded: "sha1:B"},
		"http://a/2": {Kind: KindRedirect, Outcome: blobschema.OutcomeRedirect, Status: 301, Redirect: "http://a/1"},
		"http://a/3": {Kind: KindError, Outcome: blobschema.OutcomeConnect, Or: blobschema.OutcomeRobotsGone},
	}}
	good := func() map[string]Got {
		return map[string]Got{
			"http://a/1": {Outcome: blobschema.OutcomeOK, Status: 200, Digest: "sha1:B"},
			"http://a/2": GotOf(blobschema.Page{Outcome: blobschema.OutcomeRedirect, Status: 301, Redirect: "http://a/1"}),
			"http://a/3": {Outcome: blobschema.OutcomeRobotsGone},
		}
	}
	if d := Diff(truth, good()); d != "" {
		t.Errorf("no difference reported as\n%s", d)
	}
	for want, change := range map[string]func(map[string]Got){
		"1 missing (of 3 expected, 2 got):\n  http://a/2 (redirect, outcome 2, status 301, depth 0)\n": func(g map[string]Got) {
			delete(g, "http://a/2")
		},
		"1 extra (of 3 expected, 4 got):\n  http://b/ (outcome 1, status 200)\n": func(g map[string]Got) {
			g["http://b/"] = Got{Outcome: blobschema.OutcomeOK, Status: 200}
		},
		"http://a/1 (page): outcome 3, expected 1; status 404, expected 200; digest sha1:C, expected sha1:A\n": func(g map[string]Got) {
			g["http://a/1"] = Got{Outcome: blobschema.OutcomeClientError, Status: 404, Digest: "sha1:C"}
		},
		"http://a/2 (redirect): redirect to http://b/, expected \"http://a/1\"\n": func(g map[string]Got) {
			g["http://a/2"] = Got{Outcome: blobschema.OutcomeRedirect, Redirect: "http://b/"}
		},
		"http://a/3 (error): outcome 0, expected 14\n": func(g map[string]Got) { g["http://a/3"] = Got{} },
	} {
		g := good()
		change(g)
		if d := Diff(truth, g); !strings.HasSuffix(d, want) {
			t.Errorf("report:\n%s\nwant at its end:\n%s", d, want)
		}
	}
	if d := Diff(Truth{Pages: make(map[string]Expect)}, mustManyGot(30)); strings.Count(d, "\n") != 22 || !strings.Contains(d, "10 more") {
		t.Errorf("report of 30:\n%s", d)
	}
}

func mustManyGot(n int) map[string]Got {
	g := make(map[string]Got)
	for i := range n {
		g[strings.Repeat("x", i)] = Got{}
	}
	return g
}

func FuzzAnswer(f *testing.F) {
	w, err := New(everything())
	if err != nil {
		f.Fatal(err)
	}
	for _, p := range []int{0, 1, 7, 18} {
		f.Add(w.URL(0, p), 0, 0)
	}
	f.Add("http://h0.site0.example/robots.txt", 3, 9)
	f.Add("http://h1.site0.example/calendar/99999999999", 0, 0)
	f.Fuzz(func(t *testing.T, url string, attempt, answered int) {
		r := w.Answer(Request{URL: url, Attempt: attempt, Answered: answered, AcceptGzip: true})
		if r.Fault == FaultNone && (r.Status < 200 || r.Status > 599) {
			t.Errorf("status %d", r.Status)
		}
		if r.CutAt > len(r.Body) {
			t.Errorf("cut at %d of %d", r.CutAt, len(r.Body))
		}
		w.Links(url)
	})
}

package frontier

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

const noRobots = "0s https://a.example/robots.txt"

func wantLog(t *testing.T, got []string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
}

// TestBreadthFirst checks that robots.txt comes first and the first page right after it, then one page per pace, by depth,
// then by arrival.
func TestBreadthFirst(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second})
	r.add(2, "https://a.example/2")
	r.add(1, "https://a.example/1", "https://a.example/1b")
	r.add(0, "https://a.example/")
	r.add(1, "https://a.example/1a")
	wantLog(t, r.run(nil), noRobots, "100ms https://a.example/", "1.1s https://a.example/1", "2.1s https://a.example/1b",
		"3.1s https://a.example/1a", "4.1s https://a.example/2")
	r.mustIdle()
}

// TestPolicyRanks checks that a custom policy orders the URLs of a host and the hosts.
func TestPolicyRanks(t *testing.T) {
	r := newRig(t, Config{Policy: deepFirst{}})
	r.add(1, "https://a.example/1")
	r.add(3, "https://a.example/3")
	r.add(9, "https://b.example/9")
	r.run(nil)
	want := []string{"https://b.example/robots.txt", "https://b.example/9", "https://a.example/robots.txt", "https://a.example/3", "https://a.example/1"}
	wantLog(t, r.urls(), want...)
}

type deepFirst struct{}

func (deepFirst) Name() string                        { return "deep-first" }
func (deepFirst) URLRank(c schedule.Candidate) uint32 { return 1000 - uint32(c.Depth) }
func (deepFirst) Found(a, b uint32) uint32            { return min(a, b) }
func (deepFirst) KeyRank(h *schedule.KeyView) float64 { return -float64(h.Best(1)[0].Rank) }

// TestHostsTakeTurns checks that a host that was requested comes after the other hosts.
func TestHostsTakeTurns(t *testing.T) {
	r := newRig(t, Config{})
	for _, h := range []string{"c", "a", "b"} {
		r.add(0, "https://"+h+".example/1", "https://"+h+".example/2")
	}
	var want []string
	for _, path := range []string{"robots.txt", "1", "2"} {
		for _, h := range []string{"c", "a", "b"} {
			want = append(want, "https://"+h+".example/"+path)
		}
	}
	r.run(nil)
	wantLog(t, r.urls(), want...)
}

// TestOneRequestPerHost checks that a host has one request at a time, however many URLs wait and however short the pace.
// Different ports and names of a machine are different hosts.
func TestOneRequestPerHost(t *testing.T) {
	r := newRig(t, Config{})
	r.add(0, "https://a.example/1", "https://a.example/2", "http://a.example/3", "https://a.example:8443/")
	first := r.mustNext("https://a.example/robots.txt")
	r.mustNext("https://a.example:8443/robots.txt")
	r.mustIdle()
	r.now = r.now.Add(time.Hour)
	r.mustIdle()
	r.add(0, "https://a.example/0")
	r.mustIdle()
	r.f.Done(r.now, first, answer{status: 404}.reply(first, epoch, time.Hour))
	r.mustNext("https://a.example/1")
	r.mustIdle()
}

// TestConnectedHostKeepsItsTurn checks that requests use an open connection until the host has had a whole visit; then the
// next host has its turn.
func TestConnectedHostKeepsItsTurn(t *testing.T) {
	r := newRig(t, Config{})
	web := answers{}
	for _, h := range []string{"a", "b"} {
		web["https://"+h+".example/robots.txt"] = []answer{{status: 404, keep: true}}
		for i := range 2 * polite.NewPerConnection {
			u := fmt.Sprintf("https://%s.example/%d", h, i)
			r.add(0, u)
			web[u] = []answer{{keep: true}}
		}
	}
	r.run(web)
	const visit = polite.NewPerConnection
	want := []string{"a 50", "b 50", "a 50", "b 50", "a 1", "b 1"} // the first visits include robots.txt
	if d := cmp.Diff(want, visits(r.urls())); d != "" {
		t.Errorf("visits of %d (-want +got):\n%s", visit, d)
	}
}

// TestClosedConnectionEndsVisit checks that a server that serves three requests per connection gets visits of three.
func TestClosedConnectionEndsVisit(t *testing.T) {
	r := newRig(t, Config{})
	web := answers{}
	for _, h := range []string{"a", "b"} {
		web["https://"+h+".example/robots.txt"] = []answer{{status: 404, keep: true}}
		for i := range 8 {
			u := fmt.Sprintf("https://%s.example/%d", h, i)
			r.add(0, u)
			web[u] = []answer{{keep: i != 1, closed: i == 1}} // once; later it would continue
		}
	}
	r.run(web)
	if d := cmp.Diff([]string{"a 3", "b 3", "a 3", "b 3", "a 3", "b 3"}, visits(r.urls())); d != "" {
		t.Errorf("visits (-want +got):\n%s", d)
	}
}

// visits counts consecutive requests to one host.
func visits(urls []string) (out []string) {
	n := 0
	for i, u := range urls {
		n++
		host := u[len("https://"):][:1]
		if i+1 == len(urls) || urls[i+1][len("https://"):][:1] != host {
			out, n = append(out, fmt.Sprintf("%s %d", host, n)), 0
		}
	}
	return out
}

// TestDepthLoweredInQueue checks that a queued page found again at a lower depth moves forward.
func TestDepthLoweredInQueue(t *testing.T) {
	r := newRig(t, Config{})
	r.add(3, "https://a.example/x", "https://a.example/y", "https://a.example/z")
	r.add(2, "https://a.example/z")
	r.add(1, "https://a.example/y")
	r.run(nil)
	wantLog(t, r.urls(), "https://a.example/robots.txt", "https://a.example/y", "https://a.example/z", "https://a.example/x")
}

// TestCrawlDelay checks that the longer of the configured pace and the host's own counts, the latter from its robots.txt
// on.
func TestCrawlDelay(t *testing.T) {
	for _, c := range []struct {
		lines      string
		configured time.Duration
		want       []time.Duration // of the two pages
	}{
		{"", time.Second, []time.Duration{100, 1100}},
		{"Crawl-delay: 5", time.Second, []time.Duration{5000, 10000}},
		{"Crawl-delay: 0.5", time.Second, []time.Duration{1000, 2000}},
		{"Crawl-delay: 5", 7 * time.Second, []time.Duration{7000, 14000}},
		{"Crawl-delay: 2", 0, []time.Duration{2000, 4000}},
		{"Crawl-delay: 99999", time.Second, []time.Duration{120_000, 240_000}},
	} {
		r := newRig(t, Config{Delay: c.configured})
		r.add(0, "https://a.example/1", "https://a.example/2")
		web := answers{"https://a.example/robots.txt": {{body: "User-agent: *\n" + c.lines + "\n"}}}
		want := []string{noRobots}
		for i, ms := range c.want {
			want = append(want, fmt.Sprintf("%v https://a.example/%d", ms*time.Millisecond, i+1))
		}
		if d := cmp.Diff(want, r.run(web)); d != "" {
			t.Errorf("%q, configured %v (-want +got):\n%s", c.lines, c.configured, d)
		}
	}
}

// TestLateStart checks that the pace counts from the actual start of a request, if the executor starts it late.
func TestLateStart(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second})
	r.add(0, "https://a.example/1", "https://a.example/2")
	robots := r.mustNext("https://a.example/robots.txt")
	r.f.Done(r.now, robots, answer{status: 404}.reply(robots, r.now, 0))
	one := r.mustNext("https://a.example/1")
	began := r.now.Add(700 * time.Millisecond)
	r.now = began.Add(100 * time.Millisecond)
	r.f.Done(r.now, one, answer{}.reply(one, began, 0))
	r.now = began.Add(time.Second - 1)
	r.mustIdle()
	r.now = began.Add(time.Second)
	r.mustNext("https://a.example/2")
}

// TestNextOfHost checks that a request carries the time of the next one to its host, if one is queued.
func TestNextOfHost(t *testing.T) {
	r := newRig(t, Config{Delay: time.Minute})
	r.add(0, "https://a.example/1", "https://a.example/2")
	robots := r.mustNext("https://a.example/robots.txt")
	r.done(robots, answer{status: 404})
	one := r.mustNext("https://a.example/1")
	r.done(one, answer{})
	r.now = r.now.Add(time.Minute)
	two := r.mustNext("https://a.example/2")
	if got := one.Request.Next; !robots.Request.Next.Equal(got.Add(-time.Minute)) || !got.Equal(r.now) || !two.Request.Next.IsZero() {
		t.Errorf("next after robots.txt %v, after the first page %v, after the last %v; it is %v", robots.Request.Next, got, two.Request.Next, r.now)
	}
}

// TestNotStarted checks that the pace after a request that never began counts from the time of its task.
func TestNotStarted(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second})
	r.add(0, "https://a.example/1")
	robots := r.mustNext("https://a.example/robots.txt")
	r.f.Done(r.now, robots, answer{body: "User-agent: *\nCrawl-delay: 3\n"}.reply(robots, r.now, 0))
	r.now = epoch.Add(3 * time.Second)
	page1 := r.mustNext("https://a.example/1")
	o := actor.Aborted(page1.Request, r.now)
	r.f.Done(r.now, page1, o)
	r.now = epoch.Add(6*time.Second - 1)
	r.mustIdle()
	r.now = epoch.Add(6 * time.Second)
	r.mustNext("https://a.example/1")
}

// TestWaitIsCounted checks the count of the time in which hosts wait for nothing but their pace.
func TestWaitIsCounted(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second})
	r.add(0, "https://a.example/1", "https://a.example/2", "https://a.example/3")
	r.run(nil) // pages at 0.1 s, 1.1 s and 2.1 s, each takes 0.1 s
	if got, want := r.f.Counts().WaitMillis, int64(900+900); got != want {
		t.Errorf("hosts waited for %d ms, want %d", got, want)
	}
}

// TestFailingPages checks that pages which always fail do not stop their host: the next request is for another page.
func TestFailingPages(t *testing.T) {
	for _, first := range []int{0, 50, 97} { // place of the failing pages among the others
		r := newRig(t, Config{Delay: time.Second})
		web := answers{}
		for i := range 100 {
			url := fmt.Sprintf("https://a.example/%03d", i)
			if i >= first && i < first+3 {
				web[url] = []answer{{status: 502 + i - first}}
			}
			r.add(0, url)
		}
		r.run(web)
		if took := r.now.Sub(epoch); took > 8*time.Minute || len(r.log) != 1+97+3*3 {
			t.Errorf("failing pages from %d on: %d requests in %v", first, len(r.log), took)
		}
		if n := r.f.Counts(); n.Pending != 0 {
			t.Errorf("failing pages from %d on: counts are %+v", first, n)
		}
	}
}

// TestSlowBodies checks that a host which answers, but too slowly, is not given up as silent.
func TestSlowBodies(t *testing.T) {
	r := newRig(t, Config{Retry: polite.Retry{Attempts: 2, Wait: time.Hour}})
	web := answers{}
	for i := range 20 {
		url := fmt.Sprintf("https://a.example/%d", i)
		web[url] = []answer{{outcome: blobschema.OutcomeTimeout, status: 200}}
		r.add(0, url)
	}
	r.run(web)
	if refused := r.refused(); len(refused) != 0 || len(r.log) != 1+2*20 {
		t.Errorf("%d URLs are refused after %d requests", len(refused), len(r.log))
	}
}

// TestFailingHost checks that a host whose pages all fail is requested more and more rarely.
func TestFailingHost(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second, Retry: polite.Retry{Attempts: 1}})
	web := answers{}
	for i := range 9 {
		url := fmt.Sprintf("https://a.example/%d", i)
		web[url] = []answer{{status: 503}}
		r.add(0, url)
	}
	r.run(web)
	if took := r.now.Sub(epoch); took < 40*time.Minute {
		t.Errorf("nine requests in %v", took)
	}
}

// TestRetryAfter checks that a host is left alone for its Retry-After, and that another page is requested first then.
func TestRetryAfter(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second, Retry: polite.Retry{Wait: time.Second}})
	r.add(0, "https://a.example/1", "https://a.example/2")
	r.run(answers{"https://a.example/1": {{status: 429, retryAfter: time.Minute}, {}}})
	wantLog(t, r.log, noRobots, "100ms https://a.example/1", "1m0.2s https://a.example/2", "1m2.2s https://a.example/1")
}

// TestRefusalKeepsOrder checks that the order of a host's URLs stays the same when some of them are refused.
func TestRefusalKeepsOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 10 {
		r := newRig(t, Config{Delay: time.Second})
		want := []string{"https://a.example/robots.txt", "http://a.example/robots.txt"}
		for i := range 20 {
			want = append(want, fmt.Sprintf("http://a.example/%d", i+1))
		}
		r.add(0, "https://a.example/0")
		for _, n := range rng.Perm(40) {
			scheme := []string{"http", "https"}[n%2]
			r.add(uint16(n/2+1), fmt.Sprintf("%s://a.example/%d", scheme, n/2+1))
		}
		r.run(answers{"https://a.example/robots.txt": {{status: 501}}})
		wantLog(t, r.urls(), want...)
		if n := len(r.refused()); n != 21 {
			t.Errorf("%d URLs were refused", n)
		}
	}
}

// TestObservesConnections checks that the first request of a connection shows the time to connect, and the last one shows how
// many requests the server allows.
func TestObservesConnections(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second})
	r.add(0, "https://a.example/1", "https://a.example/2", "https://a.example/3")
	for i, o := range []struct {
		url            string
		connect        time.Duration
		reused, closed bool
		wantTime       time.Duration
		wantPerConnect float64
	}{
		{"robots.txt", 80 * time.Millisecond, false, false, 80 * time.Millisecond, polite.NewPerConnection},
		{"1", 40 * time.Millisecond, true, false, 80 * time.Millisecond, polite.NewPerConnection},
		{"2", 0, false, false, 80 * time.Millisecond, polite.NewPerConnection},
		{"3", 0, true, true, 80 * time.Millisecond, 4},
	} {
		task := r.mustNext("https://a.example/" + o.url)
		out := answer{keep: !o.closed, closed: o.closed, status: map[bool]int{true: 404, false: 200}[i == 0]}.reply(task, r.now, 100*time.Millisecond)
		out.Connect, out.Reused = o.connect, o.reused
		r.f.Done(r.now, task, out)
		if pace := r.info("a.example").Pace; pace.ConnTime != o.wantTime || pace.PerConnection != o.wantPerConnect || pace.RespTime != 100*time.Millisecond {
			t.Errorf("after %s: %+v", o.url, pace)
		}
		r.now = r.now.Add(time.Second)
	}
}

// TestAsksAfterGivingUp checks that later URLs of a host that was given up are requested, and that one more failure does not end this.
func TestAsksAfterGivingUp(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second, Retry: polite.Retry{Attempts: 1, HostFailures: 3}})
	web := answers{}
	for i := range 12 {
		web[fmt.Sprintf("https://a.example/%d", i)] = []answer{{outcome: blobschema.OutcomeTimeout}}
	}
	asked := func(from, to int) (n int) {
		for i := from; i < to; i++ {
			r.add(0, fmt.Sprintf("https://a.example/%d", i))
		}
		r.run(web)
		for i := from; i < to; i++ {
			n += r.hits[fmt.Sprintf("https://a.example/%d", i)]
		}
		return n
	}
	if n := asked(0, 6); n != 3 {
		t.Errorf("%d of six were requested", n)
	}
	if n := asked(6, 8); n != 2 {
		t.Errorf("%d of two later URLs were requested", n)
	}
}

// TestRetries checks that a page with temporary failures has a bounded number of attempts, at growing intervals. A request
// that the step aborts is no attempt.
func TestRetries(t *testing.T) {
	abort, cut := answer{outcome: blobschema.OutcomeAborted}, answer{outcome: blobschema.OutcomeCut}
	for _, c := range []struct {
		name     string
		answers  []answer
		want     string // verdicts
		attempts uint8
		state    blobschema.State
	}{
		{"at once", []answer{{}}, "final", 0, blobschema.Fetched},
		{"not found", []answer{{status: 404}}, "final", 0, blobschema.Fetched},
		{"always cut", []answer{cut}, "again again final", 3, blobschema.Refused},
		{"third attempt", []answer{cut, cut, {}}, "again again final", 2, blobschema.Fetched},
		{"server error", []answer{{status: 500}}, "again again final", 3, blobschema.Fetched},
		{"final failure", []answer{{outcome: blobschema.OutcomeCut, final: true}}, "final", 0, blobschema.Refused},
		{"no such name", []answer{{outcome: blobschema.OutcomeDNS}}, "again final", 2, blobschema.Refused},
		{"aborted", []answer{abort, abort, abort, abort, abort, cut, abort, cut, abort, cut}, "again again again again again again again again again final", 3, blobschema.Refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Config{Retry: polite.Retry{Wait: time.Second}})
			const url = "https://a.example/1"
			r.add(0, url)
			robots := r.mustNext("https://a.example/robots.txt")
			r.f.Done(r.now, robots, answer{status: 404}.reply(robots, r.now, 0))
			var got []string
			var o *actor.Outcome
			for len(got) == 0 || got[len(got)-1] == "again" {
				if at := r.f.NextAt(); at.After(r.now) {
					r.now = at
				}
				task := r.mustNext(url)
				o = r.hit(answers{url: c.answers}, task.Request).reply(task, r.now, 0)
				got = append(got, map[schedule.Verdict]string{schedule.Final: "final", schedule.Again: "again"}[r.f.Done(r.now, task, o)])
				r.check()
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("verdicts are %q, want %q", s, c.want)
			}
			if o.Page.Attempts != c.attempts {
				t.Errorf("%d attempts in the page record, want %d", o.Page.Attempts, c.attempts)
			}
			run, _ := r.f.Delta(1)
			if len(run.Settled) != 1 || run.Settled[0].State != c.state || len(run.Queued) != 0 {
				t.Errorf("the delta holds %+v %+v", run.Settled, run.Queued)
			}
			if r.queue(url, blobschema.Queued{}) != Known {
				t.Error("a settled URL is new")
			}
		})
	}
}

// TestRetryWaits checks that other pages are requested while one page waits for its next attempt.
func TestRetryWaits(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second, Retry: polite.Retry{Wait: 10 * time.Second}})
	r.add(0, "https://a.example/1", "https://a.example/2", "https://a.example/3")
	r.run(answers{"https://a.example/1": {{status: 500}}})
	wantLog(t, r.log, noRobots, "100ms https://a.example/1", "1.1s https://a.example/2", "2.1s https://a.example/3",
		"10.2s https://a.example/1", "50.3s https://a.example/1")
}

// TestGivenUp checks that a host is given up after the first requests of ten different URLs in a row had no answer. All its
// queued URLs are then refused.
func TestGivenUp(t *testing.T) {
	for _, c := range []struct {
		name   string
		pages  int
		good   int  // number of the URL that answers; -1 for none
		silent bool // the host is given up
	}{
		{"nine", 9, -1, false},
		{"ten", 10, -1, true},
		{"many", 40, -1, true},
		{"one of many answers", 14, 7, false},
		{"few", 3, -1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Config{Delay: time.Second, Retry: polite.Retry{Attempts: 6, Wait: time.Hour}})
			web := answers{}
			for i := range c.pages {
				u := fmt.Sprintf("https://a.example/%d", i)
				r.add(0, u)
				if i != c.good {
					web[u] = []answer{{outcome: blobschema.OutcomeTimeout}}
				}
			}
			r.add(0, "https://b.example/") // another host is not affected
			r.run(web)
			if r.hits["https://b.example/"] != 1 {
				t.Error("another host was not requested")
			}
			given := 0
			seen := map[string]bool{}
			for _, x := range r.f.Refusals() {
				if seen[x.URL.String()] || x.Detail != "the host stopped answering" || x.Outcome != blobschema.OutcomeTimeout {
					t.Errorf("refused %+v", x)
				}
				seen[x.URL.String()] = true
				given++
			}
			switch {
			case c.silent && (given != c.pages || r.f.Counts().Pending != 0):
				t.Errorf("%d of %d URLs were refused, %d are pending", given, c.pages, r.f.Counts().Pending)
			case !c.silent && given > 0:
				t.Errorf("%d URLs were refused", given)
			}
			others := 3 // both robots.txt, and the page of the other host
			if asked := len(r.hits) - others; c.silent && asked != 10 {
				t.Errorf("%d URLs were requested before the host was given up", asked)
			}
			if c.silent { // later links are tried like the URLs of a new host
				r.add(0, "https://a.example/later")
				r.run(nil)
				if r.hits["https://a.example/later"] != 1 {
					t.Error("a host that is given up is never requested again")
				}
			}
		})
	}
}

// TestFloor checks that after a takeover every host is left alone for its pace, also hosts that become known later (I9).
func TestFloor(t *testing.T) {
	r := newRig(t, Config{Delay: 2 * time.Second})
	r.f.Floor(epoch)
	r.add(0, "https://a.example/1", "https://a.example/2", "https://b.example/1")
	r.mustIdle()
	r.run(nil)
	wantLog(t, r.log, "2s https://a.example/robots.txt", "2.1s https://b.example/robots.txt", "2.2s https://a.example/1",
		"2.3s https://b.example/1", "4.2s https://a.example/2")
}

package frontier

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// TestRobotsRefuses checks that a URL that robots.txt forbids is never requested, and that its refusal quotes the rule.
func TestRobotsRefuses(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second})
	r.add(0, "https://a.example/private/1", "https://a.example/", "https://a.example/private/2?q", "https://a.example/x.pdf", "https://b.example/private/")
	web := answers{"https://a.example/robots.txt": {{body: "User-agent: other\nDisallow: /\n\nUser-agent: bot\nDisallow: /private/\nDisallow: /*.pdf$\n"}}}
	r.run(web)
	wantLog(t, r.log, noRobots, "100ms https://b.example/robots.txt", "200ms https://a.example/", "300ms https://b.example/private/")
	want := []string{
		"https://a.example/private/1 robots: robots.txt line 5: Disallow: /private/",
		"https://a.example/private/2?q robots: robots.txt line 5: Disallow: /private/",
		"https://a.example/x.pdf robots: robots.txt line 6: Disallow: /*.pdf$",
	}
	if d := cmp.Diff(want, r.refused()); d != "" {
		t.Errorf("refused (-want +got):\n%s", d)
	}
	if got := r.queue("https://a.example/private/1", blobschema.Queued{}); got != Known {
		t.Errorf("a refused URL is %v", got)
	}
	if n := r.f.Counts(); n.Pending != 0 || n.Known != 5 {
		t.Errorf("counts are %+v", n)
	}
}

// TestRobotsPerScheme checks that http and https have separate robots.txt files (RFC 9309 section 2.3).
func TestRobotsPerScheme(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second})
	r.add(0, "http://a.example/x")
	r.add(1, "https://a.example/x", "http://a.example/y")
	web := answers{
		"http://a.example/robots.txt":  {{body: "User-agent: *\nDisallow: /y\n"}},
		"https://a.example/robots.txt": {{body: "User-agent: *\nDisallow: /x\n"}},
	}
	r.run(web)
	wantLog(t, r.urls(), "http://a.example/robots.txt", "http://a.example/x", "https://a.example/robots.txt")
	want := []string{
		"https://a.example/x robots: robots.txt line 2: Disallow: /x",
		"http://a.example/y robots: robots.txt line 2: Disallow: /y",
	}
	if d := cmp.Diff(want, r.refused()); d != "" {
		t.Errorf("refused (-want +got):\n%s", d)
	}
}

// TestRobotsRedirects checks that up to five redirects of robots.txt are followed, also to other hosts, at the pace of the
// host whose rules they are. After one more, or one without a target, there are no rules (RFC 9309 section 2.3.1.2).
func TestRobotsRedirects(t *testing.T) {
	hop := func(n int) string {
		if n == 0 {
			return "https://a.example/robots.txt"
		}
		return fmt.Sprintf("https://h%d.example/r", n)
	}
	const rules = "User-agent: *\nDisallow: /no\n"
	const most = 5
	for hops := range 8 {
		web := answers{}
		for i := range hops {
			web[hop(i)] = []answer{{status: 301, location: hop(i + 1)}}
		}
		web[hop(hops)] = []answer{{body: rules}}
		r := newRig(t, Config{Delay: time.Second})
		r.add(0, "https://a.example/no")
		r.run(web)
		var want []string
		asked := min(hops, most)
		for i := range asked + 1 {
			want = append(want, fmt.Sprintf("%v %s", time.Duration(i)*time.Second, hop(i)))
		}
		if hops > most {
			want = append(want, fmt.Sprintf("%v https://a.example/no", time.Duration(asked)*time.Second+100*time.Millisecond))
		}
		if d := cmp.Diff(want, r.log); d != "" {
			t.Errorf("%d hops (-want +got):\n%s", hops, d)
		}
		if n := len(r.refused()); n != 1 && hops <= most || n != 0 && hops > most {
			t.Errorf("%d hops: %d URLs refused", hops, n)
		}
	}
	r := newRig(t, Config{Delay: time.Second})
	r.add(0, "https://a.example/no")
	wantLog(t, r.run(answers{hop(0): {{status: 302, location: "ftp://a.example/robots.txt"}}}), noRobots, "100ms https://a.example/no")
}

// TestRobotsHopsCountToHost checks that the request for a redirected robots.txt counts for the host whose rules it is.
func TestRobotsHopsCountToHost(t *testing.T) {
	r := newRig(t, Config{})
	r.add(0, "https://a.example/")
	first := r.mustNext("https://a.example/robots.txt")
	r.f.Done(r.now, first, answer{status: 301, location: "https://b.example/r"}.reply(first, r.now, 0))
	second := r.mustNext("https://b.example/r")
	if !second.Request.Robots || second.Request.Key != "a.example" || second.KeyName() != "a.example" || second.Fingerprint() != 0 {
		t.Errorf("the request is %+v", second.Request)
	}
}

// TestRobotsUnreachable checks that nothing is requested while robots.txt cannot be fetched (RFC 9309 section 2.3.1.4). It has
// its own attempts; after them everything is refused, with the reason.
func TestRobotsUnreachable(t *testing.T) {
	for _, c := range []struct {
		name     string
		answer   answer
		attempts int
		reason   string // with the outcome
	}{
		{"server error", answer{status: 500}, 3, "robots-gone: robots.txt: status 500"},
		{"too many requests", answer{status: 429}, 3, "robots-gone: robots.txt: status 429"},
		{"not implemented", answer{status: 501}, 1, "robots-gone: robots.txt: status 501"},
		{"no answer", answer{outcome: blobschema.OutcomeTimeout}, 3, "robots-gone: robots.txt: timeout: as the test wants"},
		{"no connection", answer{outcome: blobschema.OutcomeConnect}, 3, "connect: robots.txt: as the test wants"},
		{"no such name", answer{outcome: blobschema.OutcomeDNS}, 2, "dns: robots.txt: as the test wants"},
		{"no such name, final", answer{outcome: blobschema.OutcomeDNS, final: true}, 1, "dns: robots.txt: as the test wants"},
		{"own network", answer{outcome: blobschema.OutcomeForbidden, final: true}, 1, "forbidden: robots.txt: as the test wants"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Config{Delay: time.Second})
			r.add(0, "https://a.example/1", "https://a.example/2", "http://a.example/3")
			web := answers{"https://a.example/robots.txt": {c.answer}}
			r.run(web)
			if got := r.hits["https://a.example/robots.txt"]; got != c.attempts {
				t.Errorf("robots.txt was requested %d times, not %d", got, c.attempts)
			}
			if r.hits["http://a.example/3"] != 1 || r.hits["https://a.example/1"]+r.hits["https://a.example/2"] > 0 {
				t.Errorf("requests were %v", r.hits)
			}
			want := []string{"https://a.example/1 " + c.reason, "https://a.example/2 " + c.reason}
			if d := cmp.Diff(want, r.refused()); d != "" {
				t.Errorf("refused (-want +got):\n%s", d)
			}
			r.add(0, "https://a.example/4") // the same holds for later links
			r.run(web)
			if d := cmp.Diff([]string{"https://a.example/4 " + c.reason}, r.refused()); d != "" {
				t.Errorf("refused later (-want +got):\n%s", d)
			}
		})
	}
}

// TestRobotsComesBack checks that a temporary failure costs time and no URL.
func TestRobotsComesBack(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second, Retry: polite.Retry{Wait: 30 * time.Second}})
	r.add(0, "https://a.example/")
	r.run(answers{"https://a.example/robots.txt": {{outcome: blobschema.OutcomeConnect}, {outcome: blobschema.OutcomeAborted}, {}}})
	wantLog(t, r.log, noRobots, "30.1s https://a.example/robots.txt", "31.1s https://a.example/robots.txt", "31.2s https://a.example/")
	if x := r.refused(); x != nil {
		t.Errorf("refused %v", x)
	}
}

// TestRobotsAborted checks that a request that the step aborts is no attempt and no observation.
func TestRobotsAborted(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second})
	r.add(0, "https://a.example/")
	for range 20 {
		task := r.mustNext("https://a.example/robots.txt")
		if task.Request.Attempt != 0 || task.Rank() != 0 {
			t.Fatalf("attempt %d at robots.txt, rank %d", task.Request.Attempt, task.Rank())
		}
		if v := r.f.Done(r.now, task, answer{outcome: blobschema.OutcomeAborted}.reply(task, r.now, 0)); v != schedule.Again {
			t.Fatalf("the verdict is %d", v)
		}
		r.check()
		r.now = r.f.NextAt()
	}
	task := r.mustNext("https://a.example/robots.txt")
	if v := r.f.Done(r.now, task, answer{status: 404}.reply(task, r.now, 0)); v != schedule.Final {
		t.Errorf("the verdict of an answer is %d", v)
	}
	if task := r.mustNext("https://a.example/"); task.Rank() != 1 {
		t.Errorf("a seed has rank %d", task.Rank())
	}
}

// TestRobotsAgainNextDay checks that rules are fetched again after a day (RFC 9309 section 2.4).
func TestRobotsAgainNextDay(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second})
	r.add(0, "https://a.example/1")
	r.run(nil)
	r.now = epoch.Add(24 * time.Hour)
	r.add(0, "https://a.example/2")
	r.run(nil)
	r.now = epoch.Add(25 * time.Hour)
	r.add(0, "https://a.example/3")
	web := answers{"https://a.example/robots.txt": {{body: "User-agent: *\nDisallow: /\n"}}}
	r.run(web)
	wantLog(t, r.log, noRobots, "100ms https://a.example/1", "24h0m0s https://a.example/2", "25h0m0s https://a.example/robots.txt")
	if d := cmp.Diff([]string{"https://a.example/3 robots: robots.txt line 2: Disallow: /"}, r.refused()); d != "" {
		t.Errorf("refused (-want +got):\n%s", d)
	}
}

package frontier

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/page"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const testSlots = 16

// rig drives a frontier by hand: its clock stands still but when told to move.
type rig struct {
	t    testing.TB
	f    *Frontier
	hash partition.Hash
	now  time.Time
	took time.Duration // by each request that run makes
	log  []string      // what run asked for: time since the epoch, URL
	hits map[string]int
}

func newRig(t testing.TB, cfg Config) *rig {
	t.Helper()
	h, err := partition.NewHash([16]byte{1}, testSlots)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Hash = h
	if cfg.Token == "" {
		cfg.Token = "bot"
	}
	return &rig{t: t, f: New(cfg), hash: h, now: epoch, took: 100 * time.Millisecond, hits: map[string]int{}}
}

func mustParse(t testing.TB, raw string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// add adds URLs of one depth.
func (r *rig) add(depth uint16, urls ...string) {
	r.t.Helper()
	for _, u := range urls {
		r.queue(u, blobschema.Queued{Depth: depth})
	}
}

func (r *rig) queue(raw string, q blobschema.Queued) Added {
	r.t.Helper()
	u := mustParse(r.t, raw)
	return r.f.Add(r.now, u, r.hash.Fingerprint(u.String()), q)
}

// mustNext returns the next task, which must ask for a URL.
func (r *rig) mustNext(url string) Task {
	r.t.Helper()
	task, ok := r.f.Next(r.now)
	if !ok {
		r.t.Fatalf("nothing to ask for, expected %s", url)
	}
	if got := task.Request.URL.String(); got != url {
		r.t.Fatalf("asked for %s, expected %s", got, url)
	}
	return task
}

func (r *rig) mustIdle() {
	r.t.Helper()
	if task, ok := r.f.Next(r.now); ok {
		r.t.Fatalf("asked for %s at %v", task.Request.URL, r.now.Sub(epoch))
	}
}

// answer is what a test's web says to one request. The zero value is an empty page.
type answer struct {
	status     int                // 0: 200, or none if outcome is set
	outcome    blobschema.Outcome // for what is no answer
	final      bool               // another attempt would bring nothing else
	body       string
	location   string
	keep       bool // the connection stays open
	closed     bool // by the server
	retryAfter time.Duration
}

// answers are what a URL says to the first request, the second, and so on; the last
// answer is for all that follow.
type answers map[string][]answer

// reply makes of an answer what the fetcher would.
func (a answer) reply(task Task, started time.Time, took time.Duration) *page.Outcome {
	req := task.Request
	o := page.Aborted(req, started)
	o.Started, o.Ended, o.RetryAfter = started, started.Add(took), a.retryAfter
	if a.outcome != 0 {
		o.Page.Outcome, o.Temporary, o.Page.Detail = a.outcome, !a.final, "as the test wants"
		return &o
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	o.Temporary, o.Page.Status = false, uint16(a.status)
	switch {
	case a.status < 300:
		o.Page.Outcome = blobschema.OutcomeOK
	case a.status < 400:
		o.Page.Outcome, o.Page.Redirect = blobschema.OutcomeRedirect, a.location
	case a.status < 500:
		o.Page.Outcome = blobschema.OutcomeClientError
		o.Temporary = a.status == http.StatusTooManyRequests
	default:
		o.Page.Outcome, o.Temporary = blobschema.OutcomeServerError, true
	}
	if req.Robots {
		o.Body = []byte(a.body)
	}
	if a.keep || a.closed {
		o.Response, o.Closed = max(took, time.Millisecond), a.closed
	}
	return &o
}

// hit returns the answer to the next request for a URL. robots.txt files that are not
// spoken of do not exist.
func (r *rig) hit(web answers, req page.Request) answer {
	url := req.URL.String()
	n := r.hits[url]
	r.hits[url]++
	switch list := web[url]; {
	case len(list) > 0:
		return list[min(n, len(list)-1)]
	case req.Robots:
		return answer{status: http.StatusNotFound}
	}
	return answer{}
}

// run asks for everything, one request after another, until nothing is left but what
// waits for longer than a day. It adds to the log and returns it.
func (r *rig) run(web answers) []string {
	r.t.Helper()
	for end := r.now.Add(20 * time.Hour); ; {
		task, ok := r.f.Next(r.now)
		if !ok {
			next := r.f.NextAt()
			if next.IsZero() || next.After(end) {
				return r.log
			}
			if !next.After(r.now) {
				r.t.Fatalf("nothing to ask for at %v, but there should be since %v", r.now.Sub(epoch), next.Sub(epoch))
			}
			r.now = next
			continue
		}
		r.log = append(r.log, fmt.Sprintf("%v %s", r.now.Sub(epoch), task.Request.URL))
		if len(r.log) > 10_000 {
			r.t.Fatal("no end of requests")
		}
		o := r.hit(web, task.Request).reply(task, r.now, r.took)
		r.now = r.now.Add(r.took)
		r.f.Done(r.now, task, o)
		r.check()
	}
}

// urls returns the log without its times.
func (r *rig) urls() []string {
	var out []string
	for _, line := range r.log {
		var d, u string
		if _, err := fmt.Sscan(line, &d, &u); err != nil {
			r.t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

// refused empties the list of refusals: URL, outcome, words.
func (r *rig) refused() (out []string) {
	for _, x := range r.f.Refusals() {
		out = append(out, fmt.Sprintf("%s %s: %s", x.URL, x.Outcome, x.Detail))
	}
	return out
}

// check works out all that the frontier keeps count of, and compares.
func (r *rig) check() {
	r.t.Helper()
	f := r.f
	var want Counts
	resident, unloaded := 0, 0
	for id, s := range f.slots {
		if s.id != id {
			r.t.Errorf("slot %d is called %d", id, s.id)
		}
		if !s.loaded {
			unloaded++
			resident += len(s.fresh) + len(s.taken)
			want.Known += int64(s.known)
			want.Pending += int64(s.npending)
			want.Unexamined += int64(s.unexamined)
			continue
		}
		resident += len(s.pending) + len(s.settled)
		want.Known += int64(len(s.pending) + len(s.settled))
		want.Pending += int64(len(s.pending))
		want.Hosts += int64(len(s.hosts))
		asked := r.checkSlot(s)
		if asked != s.asked {
			r.t.Errorf("slot %d has %d requests under way, and counts %d", id, asked, s.asked)
		}
		want.Asked += int64(asked)
	}
	want.WaitMillis = f.counts.WaitMillis
	if want != f.counts {
		r.t.Errorf("counts are %+v, should be %+v", f.counts, want)
	}
	if resident != f.resident || unloaded != f.unloaded {
		r.t.Errorf("%d entries resident, %d slots unloaded; counted %d, %d", resident, unloaded, f.resident, f.unloaded)
	}
	if len(f.hosts) != int(want.Hosts) {
		r.t.Errorf("%d hosts, %d of them in slots", len(f.hosts), want.Hosts)
	}
	for i, h := range f.ready {
		if h.place != ready || h.index != i || f.hosts[h.name] != h {
			r.t.Errorf("ready host %d (%s) stands in %d at %d", i, h.name, h.place, h.index)
		}
	}
	for i, h := range f.timers {
		if h.place != waiting || h.index != i || f.hosts[h.name] != h {
			r.t.Errorf("waiting host %d (%s) stands in %d at %d", i, h.name, h.place, h.index)
		}
	}
	if r.t.Failed() {
		r.t.FailNow()
	}
}

// checkSlot looks at the hosts of a loaded slot and returns how many are busy.
func (r *rig) checkSlot(s *slot) (busyHosts int) {
	r.t.Helper()
	waits, asked := 0, 0
	for _, h := range s.hosts {
		if h.slot != s || r.f.hosts[h.name] != h {
			r.t.Errorf("host %s is not the one of slot %d", h.name, s.id)
		}
		for _, it := range append(h.queue[:len(h.queue):len(h.queue)], h.later...) {
			waits++
			if it.asked || it.settled || s.pending[it.fp] != it || s.settled[it.fp] != 0 {
				r.t.Errorf("%s waits, but should not", it.url)
			}
		}
		if h.place == busy {
			busyHosts++
		}
		if h.place == idle && h.pending() > 0 {
			r.t.Errorf("host %s has URLs and stands nowhere", h.name)
		}
	}
	for _, it := range s.pending {
		if it.asked {
			asked++
		}
	}
	if waits+asked != len(s.pending) {
		r.t.Errorf("slot %d: %d URLs wait, %d are under way, %d are pending", s.id, waits, asked, len(s.pending))
	}
	return busyHosts
}

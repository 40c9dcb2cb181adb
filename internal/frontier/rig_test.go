package frontier

import (
	"fmt"
	"net/http"
	"slices"
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
	if q.Host == "" {
		q.Host = string(u.Host())
	}
	if q.Rank == 0 {
		q.Rank = r.f.cfg.Policy.URLRank(Candidate{Depth: q.Depth})
	}
	return r.f.Add(r.now, u, r.hash.Fingerprint(u.String()), q)
}

// mustNext returns the next task, which must ask for a URL.
func (r *rig) mustNext(url string) Task {
	r.t.Helper()
	task, ok := r.f.Next(r.now, false)
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
	if task, ok := r.f.Next(r.now, false); ok {
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
		task, ok := r.f.Next(r.now, false)
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
	resident, unloaded, units, further := 0, 0, 0, 0
	for id, s := range f.slots {
		if s.id != id {
			r.t.Errorf("slot %d is called %d", id, s.id)
		}
		want.Urgent += int64(s.urgent)
		if !s.loaded {
			unloaded++
			resident += len(s.fresh) + len(s.taken)
			want.Known += int64(s.known)
			want.Pending += int64(s.npending)
			want.Unexamined += int64(s.unexamined)
			continue
		}
		r.checkIndex(s)
		resident += s.resident()
		want.Known += int64(s.resident())
		want.Pending += int64(s.npend)
		want.Hosts += int64(len(s.units))
		further += len(s.further)
		asked := r.checkSlot(s)
		if asked != s.asked {
			r.t.Errorf("slot %d has %d requests under way, and counts %d", id, asked, s.asked)
		}
		want.Asked += int64(asked)
	}
	want.WaitMillis, want.Capped = f.counts.WaitMillis, f.counts.Capped
	if want != f.counts {
		r.t.Errorf("counts are %+v, should be %+v", f.counts, want)
	}
	if resident != f.resident || unloaded != f.unloaded {
		r.t.Errorf("%d entries resident, %d slots unloaded; counted %d, %d", resident, unloaded, f.resident, f.unloaded)
	}
	for _, d := range f.domains {
		units += d.units
	}
	if len(f.units) != int(want.Hosts) || units != len(f.units) || further != len(f.sites) {
		r.t.Errorf("%d units, %d of them in slots, %d in domains; %d further sites, %d in slots", len(f.units), want.Hosts, units, len(f.sites), further)
	}
	for i, u := range f.ready {
		if u.place != ready || u.index != i || f.units[u.key] != u || u.urgent != u.hasUrgent() || u.readyAt().After(r.now) {
			r.t.Errorf("ready unit %d (%s) stands in %d at %d", i, u.key, u.place, u.index)
		}
	}
	for i, u := range f.timers {
		if u.place != waiting || u.index != i || f.units[u.key] != u || !u.at.Equal(u.readyAt()) {
			r.t.Errorf("waiting unit %d (%s) stands in %d at %d", i, u.key, u.place, u.index)
		}
	}
	if r.t.Failed() {
		r.t.FailNow()
	}
}

// checkIndex looks for each URL of a slot.
func (r *rig) checkIndex(s *slot) {
	r.t.Helper()
	spare, text := 0, 0
	for i := s.spare; i > 0; i = s.items[i-1].pos {
		spare++
	}
	for i := range s.items {
		it := &s.items[i]
		if text += int(it.length); it.length == 0 {
			continue
		}
		u := s.url(it)
		if at, k := s.find(it.fp); k != inItems || at != uint32(i) || it.fp != r.hash.Fingerprint(u.String()) {
			r.t.Errorf("%s is item %d, but found at %d (%d)", u, i, at, k)
		}
		if _, ok := s.rare[uint32(i)]; ok != (it.bits&isRare != 0) {
			r.t.Errorf("%s is rare: %v", u, ok)
		}
		if _, ok := s.wishes[uint32(i)]; ok && it.bits&isAsked == 0 {
			r.t.Errorf("%s is not asked for, but wished for again", u)
		}
	}
	for i := range s.marks {
		if at, k := s.find(s.marks[i].fp); k != inMarks || at != uint32(i) {
			r.t.Errorf("mark %d is found at %d (%d)", i, at, k)
		}
	}
	if len(s.items)-spare != s.npend || s.resident() != s.index.n || text != len(s.text)-s.dead {
		r.t.Errorf("slot %d: %d items, %d of them spare, %d pending, %d in the index of %d; %d bytes of text", s.id, len(s.items), spare, s.npend, s.index.n, s.resident(), text)
	}
}

// checkSlot looks at the units of a loaded slot and returns how many are busy.
func (r *rig) checkSlot(s *slot) (busyUnits int) {
	r.t.Helper()
	waits, asked, urgent := 0, 0, 0
	pending := map[*site]int{}
	for i := range s.items {
		if it := &s.items[i]; it.length > 0 {
			pending[s.lanes[it.lane].site]++
			if it.bits&isAsked != 0 {
				asked++
			}
			if it.rank == 0 {
				urgent++
			}
		}
	}
	sites := slices.Clone(s.further)
	for _, u := range s.units {
		sites = append(sites, &u.own)
		if u.slot != s || r.f.units[u.key] != u || r.f.domains[u.domain.name] != u.domain {
			r.t.Errorf("unit %s is not the one of slot %d", u.key, s.id)
		}
		if u.place == busy {
			busyUnits++
		}
		if u.place == idle && u.waits() {
			r.t.Errorf("unit %s has URLs and stands nowhere", u.key)
		}
		for i, l := range u.lanes {
			if l.where != open || l.index != i || l.site.unit != u || len(l.queue) == 0 || i > 0 && u.lanes.Less(i, (i-1)/2) {
				r.t.Errorf("lane %d of %s is out of place", i, u.key)
			}
		}
		for i, l := range u.blocked {
			if l.where != held || l.index != i || l.site.unit != u || len(l.queue) == 0 {
				r.t.Errorf("blocked lane %d of %s is out of place", i, u.key)
			}
		}
		for _, d := range u.later {
			if s.rareOf(d.item).notBefore != d.at || s.items[d.item].bits&isAsked != 0 {
				r.t.Errorf("%s waits for %d", s.url(&s.items[d.item]), d.at)
			}
		}
		waits += len(u.later)
	}
	settled := 0
	known := map[*unit][2]uint64{}
	for _, st := range sites {
		settled += int(st.settled)
		k := known[st.unit]
		known[st.unit] = [2]uint64{k[0] + st.settled, k[1] + uint64(st.pending)}
		if st.pending != pending[st] {
			r.t.Errorf("%s has %d pending URLs, and counts %d", st.name, pending[st], st.pending)
		}
		for i := range st.lanes {
			l := &st.lanes[i]
			if l.where == nowhere && len(l.queue) > 0 {
				r.t.Errorf("a lane of %s has URLs and is nowhere", st.name)
			}
			for pos, i := range l.queue {
				waits++
				it := &s.items[i]
				if it.bits&isAsked != 0 || int(it.pos) != pos || s.lanes[it.lane] != l || pos > 0 && s.less(i, l.queue[(pos-1)/2]) {
					r.t.Errorf("%s waits, but should not, or elsewhere", s.url(it))
				}
			}
		}
	}
	for u, k := range known {
		if k != [2]uint64{u.settled, uint64(u.pending)} {
			r.t.Errorf("%s counts %d settled and %d pending URLs, its sites %d", u.key, u.settled, u.pending, k)
		}
	}
	if waits+asked != s.npend || urgent != s.urgent || settled != len(s.marks) {
		r.t.Errorf("slot %d: %d URLs wait, %d are under way, %d are pending; %d urgent ones, %d counted; %d settled, %d counted",
			s.id, waits, asked, s.npend, urgent, s.urgent, len(s.marks), settled)
	}
	return busyUnits
}

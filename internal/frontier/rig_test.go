package frontier

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const testSlots = 16

// rig drives a frontier by hand; the test moves its clock.
type rig struct {
	t      testing.TB
	f      *Frontier
	hash   partition.Hash
	policy schedule.Policy
	now    time.Time
	took   time.Duration // duration of each request of run
	log    []string      // requests of run: time since the epoch, URL
	hits   map[string]int
}

func newRig(t testing.TB, cfg Config) *rig {
	t.Helper()
	h, err := partition.NewHash([16]byte{1}, testSlots)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Hash, cfg.Began = h, epoch
	if cfg.Token == "" {
		cfg.Token = "bot"
	}
	policy := cfg.Policy
	if policy == nil {
		policy = policyNamed(t, "breadth-first")
	}
	return &rig{t: t, policy: policy, f: New(cfg), hash: h, now: epoch, took: 100 * time.Millisecond, hits: map[string]int{}}
}

func policyNamed(t testing.TB, name string) schedule.Policy {
	t.Helper()
	p, err := schedule.NewPolicy(name, schedule.Quality{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustParse(t testing.TB, raw string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// add adds URLs with one depth.
func (r *rig) add(depth uint16, urls ...string) {
	r.t.Helper()
	for _, u := range urls {
		r.queue(u, blobschema.Queued{Depth: depth})
	}
}

func (r *rig) queue(raw string, q blobschema.Queued) Added {
	r.t.Helper()
	u := mustParse(r.t, raw)
	if q.Key == "" {
		q.Key = string(u.Host())
	}
	if q.Rank == 0 {
		q.Rank = r.policy.URLRank(schedule.Candidate{Depth: q.Depth})
	}
	l := r.link(u, q)
	if q.Attempts > 0 || q.NotBefore > 0 || q.Previous != (blobschema.RecordRef{}) || q.Change != (blobschema.Change{}) { // links lack these
		return r.f.add(r.now, r.f.slots.open(l.Slot).of(l.Fingerprint), r.f.schedule.Find(l.Key), u, l.Fingerprint, &q, schedule.Outside)
	}
	return r.f.Add(r.now, l)
}

// link returns the link of a URL and its stored form.
func (r *rig) link(u weburl.URL, q blobschema.Queued) Link { return linkOf(r.hash, u, q) }

func linkOf(h partition.Hash, u weburl.URL, q blobschema.Queued) Link {
	return Link{
		URL: u, Key: q.Key, Slot: h.Slot(q.Key), Fingerprint: h.Fingerprint(u.String()), Rank: q.Rank,
		Generation: q.Generation, Depth: q.Depth, Topic: q.Topic, Flags: q.Flags,
	}
}

// mustNext returns the next task, which must be for the given URL.
func (r *rig) mustNext(url string) schedule.Task {
	r.t.Helper()
	task, ok := r.f.Next(r.now, false)
	if !ok {
		r.t.Fatalf("no request is possible, expected %s", url)
	}
	if got := task.Request.URL.String(); got != url {
		r.t.Fatalf("requested %s, expected %s", got, url)
	}
	return task
}

func (r *rig) mustIdle() {
	r.t.Helper()
	if task, ok := r.f.Next(r.now, false); ok {
		r.t.Fatalf("requested %s at %v", task.Request.URL, r.now.Sub(epoch))
	}
}

// answer is the response of a test's web to one request. The zero value is an empty page.
type answer struct {
	status     int                // 0: 200, or none if outcome is set
	outcome    blobschema.Outcome // if there is no answer
	final      bool               // a retry would have the same result
	body       string
	location   string
	keep       bool // the connection stays open
	closed     bool // by the server
	retryAfter time.Duration
}

// answers maps each URL to its responses in order; the last one is repeated.
type answers map[string][]answer

// reply returns the outcome that the fetcher would make of an answer.
func (a answer) reply(task schedule.Task, started time.Time, took time.Duration) *actor.Outcome {
	req := task.Request
	o := actor.Aborted(req, started)
	o.Started, o.Ended, o.RetryAfter = started, started.Add(took), a.retryAfter
	if a.outcome != 0 {
		o.Page.Outcome, o.Temporary, o.Page.Detail = a.outcome, !a.final, "as the test wants"
		o.Page.Status = uint16(a.status)
		return o
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
	return o
}

// hit returns the answer to the next request for a URL. robots.txt files that the test does not mention do not exist.
func (r *rig) hit(web answers, req actor.Request) answer {
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

// run makes all possible requests of the next 20 hours, one after another. It adds to the log and returns it.
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
				r.t.Fatalf("no request at %v, though one is due since %v", r.now.Sub(epoch), next.Sub(epoch))
			}
			r.now = next
			continue
		}
		r.log = append(r.log, fmt.Sprintf("%v %s", r.now.Sub(epoch), task.Request.URL))
		if len(r.log) > 10_000 {
			r.t.Fatal("more than 10,000 requests")
		}
		o := r.hit(web, task.Request).reply(task, r.now, r.took)
		r.now = r.now.Add(r.took)
		r.f.Done(r.now, task, o)
		r.check()
	}
}

// urls returns the log without times.
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

// refused empties and returns the list of refusals: URL, outcome, reason.
func (r *rig) refused() (out []string) {
	for _, x := range r.f.Refusals() {
		out = append(out, fmt.Sprintf("%s %s: %s", x.URL, x.Outcome, x.Detail))
	}
	return out
}

// check recomputes all counts that the frontier keeps, and compares. Package schedule has its own check.
func (r *rig) check() {
	r.t.Helper()
	f := r.f
	var known, unloadedPending, pending, unexamined, urgent, asked int64
	resident, unloaded, fresh := 0, 0, 0
	for id, s := range f.slots.byID {
		if s.id != id || s.keys.Slot != id {
			r.t.Errorf("slot %d has id %d", id, s.id)
		}
		r.checkDirectory(s)
		loaded, keys, settled := 0, 0, 0
		for p := range s.parts {
			unexamined += int64(p.unexamined)
			urgent += int64(p.Urgent())
			asked += int64(p.InFlight())
			resident += len(p.fresh) + len(p.taken)
			fresh += len(p.fresh)
			if !p.loaded {
				unloaded++
				known += int64(p.known)
				unloadedPending += int64(p.npending)
				settled += int(p.known) - int(p.npending)
				if p.Len()+len(p.marks)+p.InFlight() > 0 || p.Full() {
					r.t.Errorf("part %+v of slot %d is not loaded, but has URLs in memory", p.is, id)
				}
				continue
			}
			loaded++
			r.checkPart(p)
			settled += len(p.marks)
			resident += p.resident()
			known += int64(p.resident())
			pending += int64(p.Len())
		}
		for range s.keys.Keys {
			keys++
		}
		if loaded != s.loaded || loaded == 0 && keys > 0 {
			r.t.Errorf("slot %d has %d loaded parts, %d counted, and %d keys", id, loaded, s.loaded, keys)
		}
		if counted := r.settledOf(s); keys > 0 && settled != counted {
			r.t.Errorf("slot %d: %d settled, %d counted", id, settled, counted)
		}
	}
	n := f.Counts()
	if got := [5]int64{n.Known, n.Pending, n.Unexamined, n.Urgent, n.InFlight}; got != [5]int64{known, pending + unloadedPending, unexamined, urgent, asked} {
		r.t.Errorf("counts are %+v, should be %d known, %d pending, %d unexamined, %d urgent, %d asked", n, known, pending+unloadedPending, unexamined, urgent, asked)
	}
	if resident != f.slots.resident || unloaded != f.slots.unloaded || fresh != f.slots.fresh {
		r.t.Errorf("%d entries resident, %d parts unloaded, %d entries fresh; counted %d, %d, %d", resident, unloaded, fresh, f.slots.resident, f.slots.unloaded, f.slots.fresh)
	}
	for _, p := range f.full {
		if !p.Full() && p.loaded {
			r.t.Errorf("part %+v of slot %d waits to be halved, but is not full", p.is, p.slot.id)
		}
	}
	if r.t.Failed() {
		r.t.FailNow()
	}
}

// settledOf returns the sum of the settled URLs that the keys of a slot count.
func (r *rig) settledOf(s *slot) (n int) {
	for k := range s.keys.Keys {
		n += int(peek(k, "settled").Uint())
	}
	return n
}

// checkDirectory checks that every fingerprint leads to the one part that it belongs to.
func (r *rig) checkDirectory(s *slot) {
	r.t.Helper()
	if len(s.dir) != 1<<s.depth() {
		r.t.Fatalf("the directory of slot %d has %d entries", s.id, len(s.dir))
	}
	for i, p := range s.dir {
		if p == nil || p.slot != s || int(p.is.Depth) > s.depth() {
			r.t.Fatalf("entry %d in the directory of slot %d (depth %d) is wrong: %+v", i, s.id, s.depth(), p)
		}
		first := uint64(0)
		if s.depth() > 0 {
			first = uint64(i) << (64 - s.depth())
		}
		if last := first + ^uint64(0)>>s.depth(); s.of(first) != p || s.of(last) != p || !p.is.Has(first) || !p.is.Has(last) {
			r.t.Fatalf("entry %d in the directory of slot %d (depth %d) points to part %+v", i, s.id, s.depth(), p.is)
		}
	}
	next := uint64(0)
	for p := range s.parts {
		if uint64(p.is.Prefix)<<(uint(s.depth())-uint(p.is.Depth)) != next {
			r.t.Fatalf("slot %d has part %+v where %b should begin", s.id, p.is, next)
		}
		next += 1 << (s.depth() - int(p.is.Depth))
	}
	if next != uint64(len(s.dir)) {
		r.t.Fatalf("the parts of slot %d end at %d of %d", s.id, next, len(s.dir))
	}
}

// checkPart checks the index and the counts of a loaded part.
func (r *rig) checkPart(p *part) {
	r.t.Helper()
	urgent, pending := 0, 0
	for fp, isUrgent := range p.Fingerprints {
		pending++
		if isUrgent {
			urgent++
		}
		if i, k := p.find(fp); k != inItems || p.Fingerprint(i) != fp || !p.is.Has(fp) {
			r.t.Errorf("item %x is found at %d (%d)", fp, i, k)
		}
	}
	for i := range p.marks {
		if at, k := p.find(p.marks[i].fp); k != inMarks || at != uint32(i) || !p.is.Has(p.marks[i].fp) {
			r.t.Errorf("mark %d is found at %d (%d)", i, at, k)
		}
	}
	if pending != p.Len() || p.resident() != p.index.n {
		r.t.Errorf("slot %d: %d pending, %d counted, %d in the index of %d", p.slot.id, pending, p.Len(), p.index.n, p.resident())
	}
	for _, q := range slices.Concat(p.fresh, p.taken) {
		if q.Urgent() {
			urgent++
		}
	}
	// Committed entries that were appended to a full part are no longer in memory.
	if gone := int(p.unexamined) - len(p.fresh) - len(p.taken); urgent > p.Urgent() || p.Urgent()-urgent > max(0, gone) || gone < 0 {
		r.t.Errorf("part %+v of slot %d: %d urgent URLs, %d counted, %d not in memory", p.is, p.slot.id, urgent, p.Urgent(), gone)
	}
	if r.f.overflows(p, p.resident()) && !p.Full() {
		r.t.Errorf("part %+v of slot %d has %d URLs, but is not full", p.is, p.slot.id, p.resident())
	}
}

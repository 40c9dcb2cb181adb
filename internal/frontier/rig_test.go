package frontier

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
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
	cfg.Hash, cfg.Began = h, epoch
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
	l := r.link(u, q)
	if q.Attempts > 0 || q.NotBefore > 0 || q.Former != (blobschema.Origin{}) || q.Change != (blobschema.Change{}) { // no link has these
		return r.f.add(r.now, r.f.slot(l.Slot).of(l.Fingerprint), r.f.units[l.Key], u, l.Fingerprint, &q, fromOutside)
	}
	return r.f.Add(r.now, l)
}

// link returns the link that a URL and what is stored of it make.
func (r *rig) link(u weburl.URL, q blobschema.Queued) Link { return linkOf(r.hash, u, q) }

func linkOf(h partition.Hash, u weburl.URL, q blobschema.Queued) Link {
	return Link{
		URL: u, Key: q.Host, Slot: h.Slot(q.Host), Fingerprint: h.Fingerprint(u.String()), Rank: q.Rank,
		Generation: q.Generation, Depth: q.Depth, Topic: q.Topic, Flags: q.Flags,
	}
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
func (a answer) reply(task Task, started time.Time, took time.Duration) *actor.Outcome {
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

// hit returns the answer to the next request for a URL. robots.txt files that are not
// spoken of do not exist.
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
	var pending [256]int64
	resident, unloaded, fresh, units, further := 0, 0, 0, 0, 0
	for id, s := range f.slots {
		if s.id != id {
			r.t.Errorf("slot %d is called %d", id, s.id)
		}
		r.checkDirectory(s)
		want.Hosts += int64(len(s.units))
		further += len(s.further)
		loaded := 0
		for p := range s.parts {
			want.Urgent += int64(p.urgent)
			want.Unexamined += int64(p.unexamined)
			resident += len(p.fresh) + len(p.taken)
			fresh += len(p.fresh)
			if !p.loaded {
				unloaded++
				want.Known += int64(p.known)
				want.Pending += int64(p.npending)
				continue
			}
			loaded++
			r.checkIndex(p)
			for i := range p.items {
				it := &p.items[i]
				if it.length == 0 {
					continue
				}
				if pending[it.topic]++; f.cfg.Looks && it.rank == lookRank {
					want.Looks++
				}
			}
			if f.overflows(p, p.resident()) && !p.full {
				r.t.Errorf("part %+v of slot %d has %d URLs, and is not full", p.is, id, p.resident())
			}
			resident += p.resident()
			want.Known += int64(p.resident())
			want.Pending += int64(p.npend)
		}
		if loaded != s.loaded || loaded == 0 && len(s.units)+len(s.further) > 0 {
			r.t.Errorf("slot %d has %d loaded parts, counts %d, and has %d units", id, loaded, s.loaded, len(s.units))
		}
		want.Asked += int64(r.checkSlot(s))
	}
	want.WaitMillis, want.Capped = f.counts.WaitMillis, f.counts.Capped
	want.Hits, want.Misses, want.Halved = f.counts.Hits, f.counts.Misses, f.counts.Halved
	if want != f.counts {
		r.t.Errorf("counts are %+v, should be %+v", f.counts, want)
	}
	if resident != f.resident || unloaded != f.unloaded || fresh != f.fresh {
		r.t.Errorf("%d entries resident, %d parts unloaded, %d entries fresh; counted %d, %d, %d", resident, unloaded, fresh, f.resident, f.unloaded, f.fresh)
	}
	for _, d := range f.domains {
		units += d.units
	}
	if len(f.units) != int(want.Hosts) || units != len(f.units) || further != len(f.sites) {
		r.t.Errorf("%d units, %d of them in slots, %d in domains; %d further sites, %d in slots", len(f.units), want.Hosts, units, len(f.sites), further)
	}
	if pending != f.pending {
		r.t.Errorf("pending by topic: %v, should be %v", f.pending, pending)
	}
	r.checkQueues()
	if r.t.Failed() {
		r.t.FailNow()
	}
}

// checkQueues looks at what is ready, what waits and what is to be halved.
func (r *rig) checkQueues() {
	r.t.Helper()
	f := r.f
	for k, h := range slices.Concat(f.ready.heaps, f.ready.looks) {
		topic, looks := k%len(f.ready.heaps), k >= len(f.ready.heaps)
		for i, st := range h {
			u := st.unit
			if u.place != ready || st.index != i || int(st.topic) != topic || (st.urgent == looked) != looks || f.units[u.key] != u || st.urgent != st.urgency() || u.readyAt().After(r.now) ||
				len(st.lanes) == 0 || i > 0 && h.Less(i, (i-1)/2) {
				r.t.Errorf("ready stand %d of topic %d (%s) stands in %d at %d", i, topic, u.key, u.place, st.index)
			}
		}
	}
	for i, u := range f.timers {
		if u.place != waiting || u.index != i || f.units[u.key] != u || !u.at.Equal(u.readyAt()) || i > 0 && f.timers.Less(i, (i-1)/2) {
			r.t.Errorf("waiting unit %d (%s) stands in %d at %d", i, u.key, u.place, u.index)
		}
	}
	for _, p := range f.full {
		if !p.full && p.loaded {
			r.t.Errorf("part %+v of slot %d is to be halved, and is not full", p.is, p.slot.id)
		}
	}
}

// checkDirectory: every fingerprint reaches the one part that it belongs to.
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
			r.t.Fatalf("entry %d in the directory of slot %d (depth %d) names part %+v", i, s.id, s.depth(), p.is)
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

// checkIndex looks for each URL of a part.
func (r *rig) checkIndex(p *part) {
	r.t.Helper()
	spare, text := 0, 0
	for i := p.spare; i > 0; i = p.items[i-1].pos {
		spare++
	}
	for i := range p.items {
		it := &p.items[i]
		if text += int(it.length); it.length == 0 {
			continue
		}
		u := p.url(it)
		if at, k := p.find(it.fp); k != inItems || at != uint32(i) || it.fp != r.hash.Fingerprint(u.String()) || !p.is.Has(it.fp) {
			r.t.Errorf("%s is item %d, but found at %d (%d)", u, i, at, k)
		}
		if _, ok := p.rare[uint32(i)]; ok != (it.bits&isRare != 0) {
			r.t.Errorf("%s is rare: %v", u, ok)
		}
		if _, ok := p.wishes[uint32(i)]; ok && it.bits&isAsked == 0 {
			r.t.Errorf("%s is not asked for, but wished for again", u)
		}
	}
	for i := range p.marks {
		if at, k := p.find(p.marks[i].fp); k != inMarks || at != uint32(i) || !p.is.Has(p.marks[i].fp) {
			r.t.Errorf("mark %d is found at %d (%d)", i, at, k)
		}
	}
	if len(p.items)-spare != p.npend || p.resident() != p.index.n || text != len(p.text)-p.dead {
		r.t.Errorf("slot %d: %d items, %d of them spare, %d pending, %d in the index of %d; %d bytes of text", p.slot.id, len(p.items), spare, p.npend, p.index.n, p.resident(), text)
	}
}

// checkSlot looks at the units of a slot and returns how many requests are under way.
func (r *rig) checkSlot(s *slot) (requests int) {
	r.t.Helper()
	pending := map[*site]int{}
	tried := map[*part]int{} // URLs that wait to be tried again
	settled := 0             // of parts
	for p := range s.parts {
		if !p.loaded {
			settled += int(p.known) - int(p.npending)
			continue
		}
		settled += len(p.marks)
		for i := range p.items {
			if it := &p.items[i]; it.length > 0 {
				pending[p.lanes[it.lane].door.site]++
			}
		}
	}
	sites := slices.Clone(s.further)
	for _, u := range s.units {
		sites = append(sites, &u.own)
		if u.slot != s || r.f.units[u.key] != u || r.f.domains[u.domain.name] != u.domain {
			r.t.Errorf("unit %s is not the one of slot %d", u.key, s.id)
		}
		requests += u.asked
		r.checkUnit(u, r.f.frozen[s.id])
		for i, d := range u.later {
			tried[d.part]++
			if it := &d.part.items[d.item]; !d.part.loaded || d.part.rareOf(d.item).notBefore != d.at || it.bits&isAsked != 0 || i > 0 && u.later.Less(i, (i-1)/2) {
				r.t.Errorf("%s waits for %d", d.part.url(it), d.at)
			}
		}
	}
	byUnit, bySite, asking, byPart := map[*unit]int{}, 0, map[*unit]int{}, map[*part]int{}
	known := map[*unit][2]uint64{}
	for _, st := range sites {
		bySite += int(st.settled)
		k := known[st.unit]
		known[st.unit] = [2]uint64{k[0] + st.settled, k[1] + uint64(st.pending)}
		if st.pending != pending[st] {
			r.t.Errorf("%s has %d pending URLs, and counts %d", st.name, pending[st], st.pending)
		}
		asking[st.unit] += r.checkDoors(s, st)
	}
	for p := range s.parts {
		if p.loaded {
			byPart[p] += r.checkLanes(p, tried[p], byUnit)
		} else if len(p.items)+len(p.marks)+len(p.lanes)+p.asked > 0 || p.full {
			r.t.Errorf("part %+v of slot %d is not loaded, and not empty", p.is, s.id)
		}
	}
	for u, k := range known {
		if k != [2]uint64{u.settled, uint64(u.pending)} {
			r.t.Errorf("%s counts %d settled and %d pending URLs, its sites %d", u.key, u.settled, u.pending, k)
		}
		resolving := 0 // a name that is resolved has no URL under way, and asks for no robots.txt
		if r.f.cfg.Resolve && !u.placed {
			resolving = u.asked
		}
		if byUnit[u]+asking[u]+resolving != u.asked {
			r.t.Errorf("%s has %d URLs and %d robots.txt files under way, and counts %d", u.key, byUnit[u], asking[u], u.asked)
		}
	}
	byParts := 0
	for p := range s.parts {
		byParts += p.asked
		if p.asked < byPart[p] {
			r.t.Errorf("part %+v of slot %d has %d URLs under way, and counts %d", p.is, s.id, byPart[p], p.asked)
		}
	}
	if byParts != requests {
		r.t.Errorf("slot %d: the units have %d requests under way, the parts %d", s.id, requests, byParts)
	}
	if len(s.units) > 0 && settled != bySite {
		r.t.Errorf("slot %d: %d settled, %d counted", s.id, settled, bySite)
	}
	return requests
}

// checkUnit looks at a unit's stands and lanes.
func (r *rig) checkUnit(u *unit, frozen bool) {
	r.t.Helper()
	if u.asked < 0 || u.asked > u.allowed || (u.place == busy) != (u.asked == u.allowed || u.starting != nil) || u.starting != nil && u.asked == 0 {
		r.t.Errorf("unit %s has %d of %d requests under way, and stands in %d", u.key, u.asked, u.allowed, u.place)
	}
	if u.place == idle && u.waits() && !frozen {
		r.t.Errorf("unit %s has URLs and stands nowhere", u.key)
	}
	topics := map[uint8]bool{}
	for _, st := range u.stands {
		if st.unit != u || topics[st.topic] {
			r.t.Errorf("a stand of %s is not its own, or there twice", u.key)
		}
		topics[st.topic] = true
		if queued := u.place == ready && len(st.lanes) > 0; queued != (st.index >= 0) {
			r.t.Errorf("the stand of %s in topic %d is at %d, with %d lanes", u.key, st.topic, st.index, len(st.lanes))
		}
		for i, l := range st.lanes {
			if l.where != open || l.index != i || l.stand != st || l.topic != st.topic || l.door.site.unit != u || len(l.queue) == 0 || i > 0 && st.lanes.Less(i, (i-1)/2) {
				r.t.Errorf("lane %d of %s is out of place", i, u.key)
			}
		}
	}
	for i, l := range u.blocked {
		if l.where != held || l.index != i || l.door.site.unit != u || len(l.queue) == 0 || i > 0 && u.blocked.Less(i, (i-1)/2) {
			r.t.Errorf("blocked lane %d of %s is out of place", i, u.key)
		}
	}
}

// checkDoors looks at a site's doors and their lanes, and counts the robots.txt files under way.
func (r *rig) checkDoors(s *slot, st *site) (asking int) {
	r.t.Helper()
	for i := range st.doors {
		d := &st.doors[i]
		if d.site != st || d.https != (i == 1) {
			r.t.Errorf("a door of %s is another's", st.name)
		}
		if d.asking {
			asking++
		}
		for _, l := range d.lanes {
			if l.door != d || !l.part.loaded || l.part.slot != s || l.part.lanes[l.number] != l || l.stand.unit != st.unit {
				r.t.Errorf("a lane of %s is another's", st.name)
			}
			closed := len(l.queue) == 0 || l.asked || d.asking || l.part.full
			if (l.where == nowhere) != closed {
				r.t.Errorf("a lane of %s has %d URLs and is in %d", st.name, len(l.queue), l.where)
			}
		}
	}
	return asking
}

// checkLanes looks at the queues of a loaded part and returns how many of its URLs are under way.
func (r *rig) checkLanes(p *part, tried int, byUnit map[*unit]int) int {
	r.t.Helper()
	waits, asked, urgent := tried, 0, 0
	for i := range p.items {
		if it := &p.items[i]; it.length > 0 {
			if it.bits&isAsked != 0 {
				asked++
				byUnit[p.lanes[it.lane].door.site.unit]++
			}
			if it.rank == 0 {
				urgent++
			}
		}
	}
	for _, q := range slices.Concat(p.fresh, p.taken) {
		if q.Rank == 0 {
			urgent++
		}
	}
	busyLanes := 0
	for n, l := range p.lanes {
		if l.part != p || int(l.number) != n || !slices.Contains(l.door.lanes, l) {
			r.t.Errorf("lane %d of part %+v of slot %d is another's", n, p.is, p.slot.id)
		}
		if l.asked {
			busyLanes++
		}
		for pos, i := range l.queue {
			waits++
			it := &p.items[i]
			if it.bits&isAsked != 0 || int(it.pos) != pos || p.lanes[it.lane] != l || it.topic != l.topic || pos > 0 && p.less(i, l.queue[(pos-1)/2]) {
				r.t.Errorf("%s waits, but should not, or elsewhere", p.url(it))
			}
		}
	}
	if busyLanes != asked {
		r.t.Errorf("slot %d: %d URLs are under way, of %d lanes", p.slot.id, asked, busyLanes)
	}
	// What was appended to a full part and is committed is not in memory any more.
	if gone := int(p.unexamined) - len(p.fresh) - len(p.taken); waits+asked != p.npend || urgent > p.urgent || p.urgent-urgent > max(0, gone) || gone < 0 {
		r.t.Errorf("part %+v of slot %d: %d URLs wait, %d are under way, %d are pending; %d urgent ones, %d counted, %d not in memory",
			p.is, p.slot.id, waits, asked, p.npend, urgent, p.urgent, gone)
	}
	return asked
}

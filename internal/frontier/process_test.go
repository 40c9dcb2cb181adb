package frontier

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// process is a frontier with everything that a step and the commits of its partition add to it: requests, loads and a commit
// under way, and the committed state. It checks the pace of every host as the host sees it, across restarts.
type process struct {
	*rig
	cfg     Config
	flights []flight
	loads   []loading
	asked   map[string]flight // the last request, by host
	calm    time.Time         // earliest end of a process that took over

	runs  []*blobschema.Run // committed
	slots []blobschema.SlotSummary
	under *commit // a commit under way
	next  commit  // contents of the next commit

	settled map[string]string // URL, and generation if not 0, to outcome, as committed
	unloads int
	deltas  uint64
	ops     int // number of events

	keyOf   func(weburl.URL) string // nil: the authority
	todo    []asking                // requests from outside that are not made yet
	heard   map[string]int          // URL to when it was last requested
	visible map[string][]record     // URL to its page records, as committed
	pinned  map[string]string       // name to its address, as committed
	seqs    map[uint32]bool         // of commits
	capped  int64                   // as counted by previous processes
	topics  map[string]uint64       // URL to the topics that it was found in, as bits
	away    *away                   // slots on the move
	hurry   bool                    // moves are as short as possible
	halved  int64                   // parts, by previous processes
}

// away holds the slots that move to another partition and come back.
type away struct {
	slots []partition.Slot
	given bool                     // in a commit
	state []blobschema.SlotSummary // of the given slots
}

// asking is a request from outside for one URL.
type asking struct {
	url     string
	request uint64
}

// record is a page record.
type record struct {
	url     string
	gen     uint32
	outcome blobschema.Outcome
	began   int // event at which its request or refusal began
	seq     uint32
}

func (r record) key() string {
	if r.gen == 0 {
		return r.url
	}
	return fmt.Sprintf("%s#%d", r.url, r.gen)
}

func (p *process) seq() uint64 {
	p.deltas++
	return p.deltas
}

type flight struct {
	task    schedule.Task
	started time.Time
	began   int
	told    bool // Begun was called
}

// loading is a part that is being loaded, with the runs that were named when its loading began.
type loading struct {
	id   PartID
	runs []*blobschema.Run
}

type commit struct {
	run     *blobschema.Run
	seq     uint32
	slots   []blobschema.SlotSummary
	added   []blobschema.Queued // delivered again if this commit is lost, like mail
	asked   []asking            // likewise
	settled []record
	placed  []Link
	gives   bool // gives slots away
	state   []blobschema.SlotSummary
	takes   bool // receives them
}

func newProcess(t testing.TB, cfg Config) *process {
	p := &process{rig: newRig(t, cfg), cfg: cfg, asked: map[string]flight{}, settled: map[string]string{}, heard: map[string]int{},
		visible: map[string][]record{}, pinned: map[string]string{}, seqs: map[uint32]bool{}, topics: map[string]uint64{}}
	p.f.SetThreshold(p.now, 0) // revisits as often as possible
	return p
}

func (p *process) add(q blobschema.Queued) {
	p.t.Helper()
	p.next.added = append(p.next.added, q)
	p.topics[q.URL] |= 1 << q.Topic
	if p.keyOf != nil && q.Key == "" {
		q.Key = p.keyOf(mustParse(p.t, q.URL))
	}
	p.queue(q.URL, q)
	p.placements()
}

// ask makes the requests from outside whose slots are loaded, and wants the other slots.
func (p *process) ask() {
	p.t.Helper()
	todo := p.todo
	p.todo = nil
	for _, a := range todo {
		u := mustParse(p.t, a.url)
		unit := string(u.Host())
		if p.keyOf != nil {
			unit = p.keyOf(u)
		}
		slot, fp := p.hash.Slot(unit), p.hash.Fingerprint(a.url)
		if !p.f.Loaded(slot, fp) {
			p.f.Want(slot, fp)
			p.todo = append(p.todo, a)
			continue
		}
		p.ops++
		p.topics[a.url] |= 1
		switch got := p.f.Again(p.now, p.link(u, blobschema.Queued{Key: unit}), a.request); got {
		case Fresh, Lowered:
			p.heard[a.url] = p.ops
		case Known:
		default:
			p.t.Fatalf("%s: Again returned %d", a.url, got)
		}
		p.next.asked = append(p.next.asked, a)
		p.placements()
	}
}

// placements adds the forwarded URLs of resolved names to this same frontier.
func (p *process) placements() {
	for _, x := range p.f.Placements() {
		p.next.placed = append(p.next.placed, x)
		if x.Rank == 0 { // a request for the name is a request for the address
			p.heard[x.URL.String()] = p.ops
		}
		p.f.Add(p.now, x)
	}
}

// start begins the next request, late after the frontier has returned it.
func (p *process) start(late time.Duration) bool {
	p.t.Helper()
	p.tell()
	task, ok := p.f.Next(p.now, false)
	p.refusals()
	if !ok {
		return false
	}
	p.ops++
	host, allowed, delay := task.KeyName(), 1, p.cfg.Delay
	if rule, ok := p.cfg.Hosts[host]; ok {
		allowed, delay = rule.Connections, rule.Delay
	}
	fl := flight{task: task, started: p.now.Add(late), began: p.ops}
	p.checkPrevious(task)
	if found := p.topics[task.Request.URL.String()]; found>>task.Topic&1 == 0 && found > 0 {
		p.t.Fatalf("%s is requested in topic %d, and was found in %b", task.Request.URL, task.Topic, found)
	}
	for _, other := range p.flights {
		if other.task.KeyName() != host {
			continue
		}
		if allowed--; allowed < 1 || laneOf(other.task) == laneOf(task) {
			p.t.Fatalf("%s and %s at once", other.task.Request.URL, task.Request.URL)
		}
	}
	if task.Request.Resolve {
		p.flights = append(p.flights, fl)
		return true
	}
	if last, ok := p.asked[host]; ok && !last.task.Request.Robots && fl.started.Sub(last.started) < delay {
		p.t.Fatalf("%s got a request for %s %v after %s", host, task.Request.URL, fl.started.Sub(last.started), last.task.Request.URL)
	}
	p.asked[host] = fl
	p.flights = append(p.flights, fl)
	return true
}

// tell reports all requests that have begun since the last call.
func (p *process) tell() {
	for i := range p.flights {
		if fl := &p.flights[i]; !fl.told && !fl.started.After(p.now) {
			fl.told = true
			p.f.Begun(fl.started, fl.task)
		}
	}
}

// checkPrevious checks that a task names the last page record that is visible or about to be.
func (p *process) checkPrevious(task schedule.Task) {
	p.t.Helper()
	previous, url := task.Previous(), task.Request.URL.String()
	if previous != (blobschema.RecordRef{}) && !p.seqs[previous.Seq] && (p.under == nil || p.under.seq != previous.Seq) {
		p.t.Fatalf("the previous record of %s is in commit %d, which does not exist", url, previous.Seq)
	}
	if task.Request.Robots || task.Request.Resolve {
		return
	}
	for _, r := range p.visible[url] {
		if r.gen >= task.Request.Generation {
			p.t.Fatalf("%s is requested in generation %d after %d", url, task.Request.Generation, r.gen)
		}
		// A URL forwarded to an address may have its previous answer only in the runs, whose join does not keep the
		// record's place.
		if previous.Seq < r.seq && (previous.Seq > 0 || !p.cfg.Resolve) {
			p.t.Fatalf("the previous record of %s in generation %d is in commit %d, but there is %+v", url, task.Request.Generation, previous.Seq, r)
		}
	}
}

// finish ends the i-th request. Its result depends only on the URL and the number of the attempt.
func (p *process) finish(i int) {
	p.t.Helper()
	fl := p.flights[i]
	p.flights = append(p.flights[:i], p.flights[i+1:]...)
	if fl.started.After(p.now) {
		p.now = fl.started
	}
	if !fl.told && fl.began%2 == 0 { // the end of a request reports its begin too
		p.f.Begun(fl.started, fl.task)
	}
	req := fl.task.Request
	a := answer{}
	switch url := req.URL.String(); {
	case req.Resolve && strings.Contains(url, "//h9"):
		a.outcome = blobschema.OutcomeDNS
	case req.Resolve:
	case req.Robots:
		a.body = "User-agent: *\nDisallow: /robots-says-no\n"
	case strings.Contains(url, "/never"):
		a.outcome = blobschema.OutcomeCut
	case strings.Contains(url, "/second") && req.Attempt == 0:
		a.status = 500
	}
	o := a.reply(fl.task, fl.started, p.now.Sub(fl.started))
	if req.Resolve && a.outcome == 0 { // a different one each time
		o.Addr = netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + p.ops%3)})
	}
	if p.f.Done(p.now, fl.task, o) == schedule.Final && !req.Robots && !req.Resolve {
		p.next.settled = append(p.next.settled, record{url: req.URL.String(), gen: req.Generation, outcome: o.Page.Outcome, began: fl.began})
	}
	p.refusals()
	p.placements()
}

func (p *process) refusals() {
	p.ops++
	for _, x := range p.f.Refusals() {
		p.next.settled = append(p.next.settled, record{url: x.URL.String(), gen: x.Generation, outcome: x.Outcome, began: p.ops})
	}
}

// beginCommit and endCommit begin and end a commit; the world continues in between.
func (p *process) beginCommit() {
	if p.under != nil {
		return
	}
	c := p.next
	p.next = commit{}
	c.seq = uint32(p.seq())
	c.run, _ = p.f.Delta(uint64(c.seq))
	p.move(&c)
	c.slots = p.f.Summaries()
	if err := c.run.Check(); err != nil {
		p.t.Fatal(err)
	}
	p.under = &c
}

// move gives or receives the slots that are away with a commit, when it is time.
func (p *process) move(c *commit) {
	a := p.away
	switch {
	case a == nil || !p.hurry && p.ops%3 > 0:
	case !a.given:
		for _, id := range a.slots {
			if !p.f.Still(id) {
				return
			}
		}
		c.gives, c.state = true, p.f.Release(a.slots)
		p.f.Await(a.slots)
	default:
		p.f.Take(a.state)
		c.takes = true
	}
}

func (p *process) endCommit() {
	p.t.Helper()
	c := p.under
	if c == nil {
		return
	}
	p.under = nil
	p.runs, p.slots = append(p.runs[:len(p.runs):len(p.runs)], c.run), c.slots
	if len(p.runs) > 6 {
		p.runs = []*blobschema.Run{blobschema.MergeRuns(p.hash, p.runs)}
	}
	p.seqs[c.seq] = true
	for _, r := range c.settled {
		r.seq = c.seq
		if old, ok := p.settled[r.key()]; ok {
			p.t.Fatalf("%s ended with %s after it had ended with %s", r.key(), r.outcome, old)
		}
		p.settled[r.key()] = r.outcome.String()
		p.visible[r.url] = append(p.visible[r.url], r)
	}
	for _, x := range c.placed {
		name := string(x.URL.Host())
		if old, ok := p.pinned[name]; ok && old != x.Key {
			p.t.Fatalf("%s was forwarded to %s, but its name to %s", x.URL, x.Key, old)
		}
		p.pinned[name] = x.Key
	}
	p.f.Committed()
	switch {
	case c.gives:
		p.away.given, p.away.state = true, c.state
	case c.takes:
		p.f.Open(p.away.slots)
		p.away = nil
	}
}

// freeze begins to move some slots.
func (p *process) freeze(rng *rand.Rand) {
	if p.away != nil || p.under != nil {
		return
	}
	p.away = &away{}
	for range 1 + rng.IntN(4) {
		id := partition.Slot(rng.IntN(testSlots))
		if !slices.Contains(p.away.slots, id) {
			p.away.slots = append(p.away.slots, id)
		}
	}
	p.f.Freeze(p.away.slots)
}

// want begins to load the parts that the frontier wants.
func (p *process) want() {
	for _, id := range p.f.Wanted(p.now, false) {
		p.loads = append(p.loads, loading{id, p.runs})
	}
}

// load ends the i-th load.
func (p *process) load(i int) {
	p.t.Helper()
	l := p.loads[i]
	p.loads = append(p.loads[:i], p.loads[i+1:]...)
	if err := p.f.Load(p.now, l.id, p.restricted(l)); err != nil {
		p.t.Fatal(err)
	}
	p.refusals()
	p.placements()
	p.ask()
}

// restricted returns the join of the runs for one part; the host states are those of its slot.
func (p *process) restricted(l loading) *blobschema.Run {
	all, out := blobschema.MergeRuns(p.hash, l.runs), &blobschema.Run{}
	for _, e := range all.Settled {
		if e.Slot == l.id.Slot && l.id.Part.Has(e.Fingerprint) {
			out.Settled = append(out.Settled, e)
		}
	}
	for _, e := range all.Queued {
		if e.Slot == l.id.Slot && l.id.Part.Has(p.hash.Fingerprint(e.URL)) {
			out.Queued = append(out.Queued, e)
		}
	}
	for _, e := range all.Keys {
		if e.Slot == l.id.Slot {
			out.Keys = append(out.Keys, e)
		}
	}
	return out
}

// restart continues in a new process, with the committed state only. A crashed process may have requested anything since its
// last commit.
func (p *process) restart(crashed bool) {
	p.t.Helper()
	if !crashed {
		if p.now.Before(p.calm) {
			p.now = p.calm
		}
		for len(p.flights) > 0 {
			p.finish(0)
		}
		p.endCommit()
		p.beginCommit()
		p.endCommit()
	}
	p.capped += p.f.Counts().Capped
	p.halved += p.f.Counts().Halved
	var lost []blobschema.Queued
	if p.under != nil {
		lost = p.under.added
	}
	lost = append(lost, p.next.added...)
	if p.under != nil {
		p.todo = append(p.todo, p.under.asked...)
	}
	p.todo = append(p.todo, p.next.asked...)
	p.flights, p.loads, p.under, p.next = nil, nil, nil, commit{}
	p.f = New(p.f.cfg)
	p.f.SetThreshold(p.now, 0)
	if crashed {
		for _, last := range p.asked { // later requests are unknown
			if last.started.After(p.now) {
				p.now = last.started
			}
		}
		p.f.Floor(p.now)
		p.calm = p.now.Add(p.cfg.Delay)
	}
	p.f.Restore(p.slots)
	if p.away != nil && !p.away.given {
		p.away = nil
	} else if p.away != nil {
		p.f.Await(p.away.slots)
	}
	for _, q := range lost {
		p.add(q)
	}
}

// drain continues without random events until nothing is pending.
func (p *process) drain() {
	p.t.Helper()
	p.hurry = true
	for turn := 0; ; turn++ {
		if turn > 20_000 {
			p.t.Fatalf("the frontier stands still: %+v, %d resident, next at %v", p.f.Counts(), p.f.slots.resident, p.f.NextAt().Sub(p.now))
		}
		for p.start(0) {
		}
		for len(p.flights) > 0 {
			p.finish(0)
		}
		p.endCommit()
		p.beginCommit()
		p.endCommit()
		p.check()
		if p.f.Dirty() && len(p.loads) == 0 {
			p.t.Fatalf("something is uncommitted: %d full parts", len(p.f.full))
		}
		p.ask()
		p.want()
		for len(p.loads) > 0 {
			p.load(0)
		}
		if n := p.f.Counts(); (n.Pending+n.Unexamined == 0 || p.onlyRevisits()) && !p.f.Dirty() && len(p.todo) == 0 && p.away == nil {
			return
		}
		p.now = p.now.Add(500 * time.Millisecond)
	}
}

// onlyRevisits reports whether all pending URLs wait for a revisit.
func (p *process) onlyRevisits() bool {
	if !p.cfg.Revisits || p.f.Counts().Urgent > 0 {
		return false
	}
	for url := range p.topics {
		if len(p.visible[url]) == 0 {
			return false
		}
	}
	for url, heard := range p.heard {
		if !slices.ContainsFunc(p.visible[url], func(r record) bool { return r.began > heard }) {
			return false
		}
	}
	return true
}

// someURL returns one of a few hundred URLs on about forty hosts.
func someURL(rng *rand.Rand) blobschema.Queued {
	kind := []string{"page", "page", "page", "page", "second", "never", "robots-says-no"}[rng.IntN(7)]
	scheme := []string{"https", "https", "http"}[rng.IntN(3)]
	return blobschema.Queued{URL: fmt.Sprintf("%s://h%d.example/%s/%d", scheme, rng.IntN(40), kind, rng.IntN(4)), Depth: uint16(rng.IntN(5))}
}

// expected returns the final outcome of a URL.
func expected(url string) string {
	switch {
	case strings.Contains(url, "/never"):
		return blobschema.OutcomeCut.String()
	case strings.Contains(url, "/robots-says-no"):
		return blobschema.OutcomeRobots.String()
	}
	return blobschema.OutcomeOK.String()
}

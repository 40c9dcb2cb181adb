package frontier

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// process is a frontier with all that a step and its partition's commits add to it:
// requests under way, loads under way, a commit under way, and what is committed. It
// checks the pace of every host as the host sees it, whatever is restarted.
type process struct {
	*rig
	cfg     Config
	flights []flight
	loads   []loading
	asked   map[string]flight // the last request, by host
	calm    time.Time         // a process that took over lasts until then at least

	runs  []*blobschema.Run // committed
	slots []blobschema.SlotSummary
	under *commit // a commit under way
	next  commit  // what the one after it will hold

	settled map[string]string // URL, and generation if not 0, to outcome, as committed
	unloads int
	deltas  uint64
	ops     int // things that happened

	unitOf  func(weburl.URL) string // nil: the authority
	todo    []asking                // requests from outside that were not made yet
	heard   map[string]int          // URL to when it was last asked for on purpose
	visible map[string][]record     // URL to its page records, as committed
	pinned  map[string]string       // name to its address, as committed
	seqs    map[uint32]bool         // of commits
	capped  int64                   // as counted by former processes
	topics  map[string]uint64       // URL to the topics that it was found in, as bits
	away    *away                   // slots on the move
	hurry   bool                    // moves take no longer than they must
	halved  int64                   // parts, by former processes
	both    int                     // times that a unit had several requests under way
}

// away are slots that go to another partition and come back.
type away struct {
	slots []partition.Slot
	given bool                     // in a commit
	state []blobschema.SlotSummary // of what was given
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
	began   int // when its request, or its refusal, did
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
	task    Task
	started time.Time
	began   int
	told    bool // the frontier knows that it has begun
}

// loading is a part of a slot on its way into memory, with the runs that were named when
// its loading began.
type loading struct {
	id   PartID
	runs []*blobschema.Run
}

type commit struct {
	run     *blobschema.Run
	seq     uint32
	slots   []blobschema.SlotSummary
	added   []blobschema.Queued // to be told of again if this is lost, as mail would be
	asked   []asking            // likewise
	settled []record
	placed  []Placement
	gives   bool // slots away go with it
	state   []blobschema.SlotSummary
	takes   bool // they come with it
}

func newProcess(t testing.TB, cfg Config) *process {
	p := &process{rig: newRig(t, cfg), cfg: cfg, asked: map[string]flight{}, settled: map[string]string{}, heard: map[string]int{},
		visible: map[string][]record{}, pinned: map[string]string{}, seqs: map[uint32]bool{}, topics: map[string]uint64{}}
	p.f.SetThreshold(0) // looks, where there are any, as often as may be
	return p
}

func (p *process) add(q blobschema.Queued) {
	p.t.Helper()
	p.next.added = append(p.next.added, q)
	p.topics[q.URL] |= 1 << q.Topic
	if p.unitOf != nil && q.Host == "" {
		q.Host = p.unitOf(mustParse(p.t, q.URL))
	}
	p.queue(q.URL, q)
	p.placements()
}

// ask makes the requests from outside whose slots are loaded, and wants the others.
func (p *process) ask() {
	p.t.Helper()
	todo := p.todo
	p.todo = nil
	for _, a := range todo {
		u := mustParse(p.t, a.url)
		unit := string(u.Host())
		if p.unitOf != nil {
			unit = p.unitOf(u)
		}
		slot, fp := p.hash.Slot(unit), p.hash.Fingerprint(a.url)
		if !p.f.Loaded(slot, fp) {
			p.f.Want(slot, fp)
			p.todo = append(p.todo, a)
			continue
		}
		p.ops++
		p.topics[a.url] |= 1
		switch got := p.f.Again(p.now, u, fp, blobschema.Queued{Host: unit}, a.request); got {
		case Fresh, Lowered:
			p.heard[a.url] = p.ops
		case Known:
		default:
			p.t.Fatalf("%s was asked for again: %d", a.url, got)
		}
		p.next.asked = append(p.next.asked, a)
		p.placements()
	}
}

// placements takes what was sent on to its address, in this very frontier.
func (p *process) placements() {
	for _, x := range p.f.Placements() {
		p.next.placed = append(p.next.placed, x)
		if x.Rank == 0 { // what was wished for the name is to be had from the address
			p.heard[x.URL.String()] = p.ops
		}
		p.f.Add(p.now, x.URL, x.Fingerprint, x.Queued)
	}
}

// start makes the next request, some time after the frontier was asked for it.
func (p *process) start(late time.Duration) bool {
	p.t.Helper()
	p.tell()
	task, ok := p.f.Next(p.now, false)
	p.refusals()
	if !ok {
		return false
	}
	p.ops++
	host, allowed, delay := task.Host(), 1, p.cfg.Delay
	if rule, ok := p.cfg.Hosts[host]; ok {
		allowed, delay = rule.Connections, rule.Delay
	}
	fl := flight{task: task, started: p.now.Add(late), began: p.ops}
	p.checkFormer(task)
	if found := p.topics[task.Request.URL.String()]; found>>task.Topic&1 == 0 && found > 0 {
		p.t.Fatalf("%s is asked for in topic %d, and was found in %b", task.Request.URL, task.Topic, found)
	}
	for _, other := range p.flights {
		if other.task.Host() != host {
			continue
		}
		p.both++
		if allowed--; allowed < 1 || other.task.lane == task.lane {
			p.t.Fatalf("%s and %s at once", other.task.Request.URL, task.Request.URL)
		}
	}
	if task.Request.Resolve {
		p.flights = append(p.flights, fl)
		return true
	}
	if last, ok := p.asked[host]; ok && !last.task.Request.Robots && fl.started.Sub(last.started) < delay {
		p.t.Fatalf("%s was asked for %s %v after %s", host, task.Request.URL, fl.started.Sub(last.started), last.task.Request.URL)
	}
	p.asked[host] = fl
	p.flights = append(p.flights, fl)
	return true
}

// tell says of all requests that have begun since that they have.
func (p *process) tell() {
	for i := range p.flights {
		if fl := &p.flights[i]; !fl.told && !fl.started.After(p.now) {
			fl.told = true
			p.f.Begun(fl.started, fl.task)
		}
	}
}

// checkFormer: a task knows the last page record that is visible, or about to be.
func (p *process) checkFormer(task Task) {
	p.t.Helper()
	former, url := task.Former(), task.Request.URL.String()
	if former != (blobschema.Origin{}) && !p.seqs[former.Seq] && (p.under == nil || p.under.seq != former.Seq) {
		p.t.Fatalf("the former of %s is in commit %d, which there is not", url, former.Seq)
	}
	if task.Request.Robots || task.Request.Resolve {
		return
	}
	for _, r := range p.visible[url] {
		if r.gen >= task.Request.Generation {
			p.t.Fatalf("%s is asked for in generation %d after %d", url, task.Request.Generation, r.gen)
		}
		// What is sent on to an address may meet its former answer in the runs only, whose join
		// does not keep where that is.
		if former.Seq < r.seq && (former.Seq > 0 || !p.cfg.Resolve) {
			p.t.Fatalf("the former of %s in generation %d is in %d, though there is %+v", url, task.Request.Generation, former.Seq, r)
		}
	}
}

// finish ends the i-th request. What comes of it depends on the URL and the number of
// the attempt alone.
func (p *process) finish(i int) {
	p.t.Helper()
	fl := p.flights[i]
	p.flights = append(p.flights[:i], p.flights[i+1:]...)
	if fl.started.After(p.now) {
		p.now = fl.started
	}
	if !fl.told && fl.began%2 == 0 { // the end of a request says that it has begun, too
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
	if req.Resolve && a.outcome == 0 { // other ones each time
		o.Addr = netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + p.ops%3)})
	}
	if p.f.Done(p.now, fl.task, o) == Final && !req.Robots && !req.Resolve {
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

// beginCommit and endCommit are the two ends of a commit: in between the world goes on.
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

// move lets slots that are away go or come with a commit, as far as it is time for that.
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
			p.t.Fatalf("%s came to %s after it came to %s", r.key(), r.outcome, old)
		}
		p.settled[r.key()] = r.outcome.String()
		p.visible[r.url] = append(p.visible[r.url], r)
	}
	for _, x := range c.placed {
		name := string(x.URL.Host())
		if old, ok := p.pinned[name]; ok && old != x.Host {
			p.t.Fatalf("%s was sent on to %s, its name to %s", x.URL, x.Host, old)
		}
		p.pinned[name] = x.Host
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

// want begins to load what the frontier wants.
func (p *process) want() {
	for _, id := range p.f.Wanted(p.now) {
		p.loads = append(p.loads, loading{id, p.runs})
	}
}

// load ends the i-th loading.
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

// restricted is the join of the runs, of one part only; host states are those of its slot.
func (p *process) restricted(l loading) *blobschema.Run {
	all, out := blobschema.MergeRuns(p.hash, l.runs), &blobschema.Run{}
	for _, e := range all.Seen {
		if e.Slot == l.id.Slot && l.id.Part.Has(e.Fingerprint) {
			out.Seen = append(out.Seen, e)
		}
	}
	for _, e := range all.Queued {
		if e.Slot == l.id.Slot && l.id.Part.Has(p.hash.Fingerprint(e.URL)) {
			out.Queued = append(out.Queued, e)
		}
	}
	for _, e := range all.Hosts {
		if e.Slot == l.id.Slot {
			out.Hosts = append(out.Hosts, e)
		}
	}
	return out
}

// restart goes on in a new process, with what is committed and nothing else. A process
// that crashed may have asked anything since its last commit.
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
	p.f.SetThreshold(0)
	if crashed {
		for _, last := range p.asked { // nothing is known of what began later than now
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

// drain goes on without chance until nothing is pending.
func (p *process) drain() {
	p.t.Helper()
	p.hurry = true
	for turn := 0; ; turn++ {
		if turn > 20_000 {
			p.t.Fatalf("the frontier stands still: %+v, %d resident, next at %v", p.f.Counts(), p.f.resident, p.f.NextAt().Sub(p.now))
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
			p.t.Fatalf("something is left to be committed: %d full parts", len(p.f.full))
		}
		p.ask()
		p.want()
		for len(p.loads) > 0 {
			p.load(0)
		}
		if n := p.f.Counts(); (n.Pending+n.Unexamined == 0 || p.onlyLooks()) && !p.f.Dirty() && len(p.todo) == 0 && p.away == nil {
			return
		}
		p.now = p.now.Add(500 * time.Millisecond)
	}
}

// onlyLooks reports whether what is pending waits for a look, and for nothing else.
func (p *process) onlyLooks() bool {
	if !p.cfg.Looks || p.f.Counts().Urgent > 0 {
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

// someURL is one of a few hundred, of some forty hosts.
func someURL(rng *rand.Rand) blobschema.Queued {
	kind := []string{"page", "page", "page", "page", "second", "never", "robots-says-no"}[rng.IntN(7)]
	scheme := []string{"https", "https", "http"}[rng.IntN(3)]
	return blobschema.Queued{URL: fmt.Sprintf("%s://h%d.example/%s/%d", scheme, rng.IntN(40), kind, rng.IntN(4)), Depth: uint16(rng.IntN(5))}
}

// expected is what a URL comes to.
func expected(url string) string {
	switch {
	case strings.Contains(url, "/never"):
		return blobschema.OutcomeCut.String()
	case strings.Contains(url, "/robots-says-no"):
		return blobschema.OutcomeRobots.String()
	}
	return blobschema.OutcomeOK.String()
}

// TestBoundedAsUnbounded: a frontier that holds 30 URLs in memory, and is restarted now
// and then, asks for the same URLs as one that holds them all, each of them once as far
// as commits show (I7, I8), and never sooner than its host's pace allows (I9).
func TestBoundedAsUnbounded(t *testing.T) {
	unloads, halved := 0, 0
	for seed := range uint64(20) {
		cfg := Config{Delay: time.Second, Retry: polite.Retry{Wait: time.Second, Backoff: time.Second}}
		whole := newProcess(t, cfg)
		rng := rand.New(rand.NewPCG(seed, 7))
		cfg.MaxResident, cfg.MaxPart = []int{30, 12, 20}[rng.IntN(3)], []int{0, 5, 10}[seed%3]
		bounded := newProcess(t, cfg)
		added := map[string]string{}
		w := someWeights(rng)
		steady := w
		steady.stop, steady.crash, steady.move = 0, 0, 0
		for i := range 600 {
			if rng.IntN(100) < w.add {
				q := someURL(rng)
				added[q.URL] = expected(q.URL)
				whole.add(q)
				bounded.add(q)
			}
			whole.act(rng, steady)
			bounded.act(rng, w)
			if i%5 == 0 {
				whole.check()
				bounded.check()
			}
		}
		whole.drain()
		bounded.drain()
		for name, p := range map[string]*process{"unbounded": whole, "bounded": bounded} {
			if d := cmp.Diff(added, p.settled); d != "" {
				t.Errorf("seed %d, %s: what URLs came to (-want +got):\n%s", seed, name, d)
			}
			all := blobschema.MergeRuns(p.hash, p.runs)
			if len(all.Queued) != 0 || len(all.Seen) != len(added) {
				t.Errorf("seed %d, %s: runs hold %d settled URLs and %d pending ones", seed, name, len(all.Seen), len(all.Queued))
			}
		}
		unloads += bounded.unloads
		halved += int(bounded.halved + bounded.f.Counts().Halved)
	}
	if halved < 100 {
		t.Errorf("%d parts were halved", halved)
	}
	if unloads < 100 {
		t.Errorf("slots were unloaded %d times: the bound was not put to the test", unloads)
	}
}

// weights say how likely each thing is that may happen to a process.
type weights struct{ add, start, finish, begin, end, want, load, wait, stop, crash, move int }

// someWeights are other ones each time, so that some worlds see few commits, others many
// crashes, and so on.
func someWeights(rng *rand.Rand) weights {
	w := func(most int) int { return 1 + rng.IntN(most) }
	return weights{add: w(40), start: w(30), finish: w(30), begin: w(15), end: w(15), want: w(20), load: w(30), wait: w(15), stop: rng.IntN(2), crash: rng.IntN(3), move: rng.IntN(3)}
}

// act does one thing, drawn by lot.
func (p *process) act(rng *rand.Rand, w weights) {
	p.t.Helper()
	p.ops++
	n := rng.IntN(w.start + w.finish + w.begin + w.end + w.want + w.load + w.wait + w.stop + w.crash + w.move)
	drawn := func(weight int) bool {
		n -= weight
		return n < 0
	}
	switch {
	case drawn(w.start):
		p.start(time.Duration(rng.IntN(300)) * time.Millisecond)
	case drawn(w.finish):
		if len(p.flights) > 0 {
			p.finish(rng.IntN(len(p.flights)))
		}
	case drawn(w.begin):
		p.beginCommit()
	case drawn(w.end):
		p.endCommit()
	case drawn(w.want):
		before := p.f.unloaded
		p.want()
		p.unloads += max(0, p.f.unloaded-before)
	case drawn(w.load):
		if len(p.loads) > 0 {
			p.load(rng.IntN(len(p.loads)))
		}
	case drawn(w.wait):
		p.now = p.now.Add(time.Duration(rng.IntN(1000)) * time.Millisecond)
		if p.cfg.Looks && p.ops%7 == 0 {
			p.now = p.now.Add(time.Minute)
		}
	case drawn(w.stop):
		p.restart(false)
	case drawn(w.crash):
		p.restart(true)
	case drawn(w.move):
		p.freeze(rng)
	}
}

// TestWorlds: whatever is found, asked for on purpose, capped, pinned, unloaded, stopped and
// crashed: each URL is visible once per generation (I8); none is lost but what is over a
// cap, which is counted (I7); what is asked for on purpose is asked for after that, and its
// request knows where the former answer is; a name has one address.
func TestWorlds(t *testing.T) {
	byDomain := func(u weburl.URL) string { return u.Host().RegistrableDomain() }
	for name, c := range map[string]struct {
		cfg    Config
		unitOf func(weburl.URL) string
	}{
		"hosts":          {},
		"bounded":        {cfg: Config{MaxResident: 30}},
		"parts":          {cfg: Config{MaxPart: 5}},
		"parts, bounded": {cfg: Config{MaxPart: 5, MaxResident: 30}},
		"few parts":      {cfg: Config{MaxPart: 20, MaxResident: 40}, unitOf: byDomain},
		"connections":    {cfg: Config{Hosts: severalOf("h%d.example", 20), QueueBy: blobschema.QueueByBKDR, Queues: 4}},
		"all":            {cfg: Config{MaxPart: 5, MaxResident: 30, Topics: threeTopics, Hosts: severalOf("h%d.example", 20), QueueBy: blobschema.QueueByBKDR, Queues: 4}},
		"topics":         {cfg: Config{Topics: threeTopics}},
		"topics, too":    {cfg: Config{Topics: threeTopics, MaxPart: 20, MaxResident: 40, Policy: Capability{}, Hosts: map[string]HostRule{"a.example": {3, 500 * time.Millisecond}}}, unitOf: byDomain},
		"looks":          {cfg: Config{Looks: true, Partition: 5}},
		"looks in parts": {cfg: Config{Looks: true, Topics: threeTopics, MaxPart: 5, MaxResident: 30, Hosts: severalOf("h%d.example", 20), QueueBy: blobschema.QueueByBKDR, Queues: 4}},
		"parts of names": {cfg: Config{Resolve: true, MaxPart: 5, MaxResident: 30, Hosts: severalOf("[192.0.2.%d]", 4)}},
		"parts and caps": {cfg: Config{MaxHostURLs: 5, MaxDomainURLs: 12, MaxPart: 5, MaxResident: 30}, unitOf: byDomain},
		"domains":        {cfg: Config{MaxResident: 40}, unitOf: byDomain},
		"capability":     {cfg: Config{MaxResident: 40, Policy: Capability{}}, unitOf: byDomain},
		"addresses":      {cfg: Config{Resolve: true}},
		"addresses, too": {cfg: Config{Resolve: true, MaxResident: 30}},
		"caps":           {cfg: Config{MaxHostURLs: 5, MaxDomainURLs: 12}},
		"caps, too":      {cfg: Config{MaxHostURLs: 5, MaxDomainURLs: 12, MaxResident: 30}, unitOf: byDomain},
	} {
		c.cfg.Delay, c.cfg.Retry = time.Second, polite.Retry{Wait: time.Second, Backoff: time.Second}
		for seed := range uint64(7) {
			t.Run(fmt.Sprintf("%s %d", name, seed), func(t *testing.T) {
				p := newProcess(t, c.cfg)
				p.unitOf = c.unitOf
				world(t, p, rand.New(rand.NewPCG(seed, 11)))
			})
		}
	}
}

// severalOf are rules for some units that allow three requests at once.
func severalOf(format string, n int) map[string]HostRule {
	rules := map[string]HostRule{}
	for i := range n {
		rules[fmt.Sprintf(format, i)] = HostRule{Connections: 3, Delay: 500 * time.Millisecond}
	}
	return rules
}

var threeTopics = []Topic{{}, {Priority: 1, Slice: time.Second}, {Priority: 1}}

func world(t *testing.T, p *process, rng *rand.Rand) {
	added := map[string]bool{}
	w := someWeights(rng)
	draw := func() blobschema.Queued {
		q := someURL(rng)
		if len(p.cfg.Topics) > 0 {
			q.Topic = uint8(rng.IntN(4)) // one more than is known
		}
		q.URL = strings.Replace(q.URL, ".example", []string{".a.example", ".b.example", ".example"}[rng.IntN(3)], 1)
		return q
	}
	asks := rng.IntN(20)
	for i := range 500 {
		if rng.IntN(100) < w.add {
			q := draw()
			added[q.URL] = true
			p.add(q)
		}
		if rng.IntN(100) < asks {
			q := draw()
			if known := slices.Sorted(maps.Keys(p.visible)); len(known) > 0 && rng.IntN(3) > 0 {
				q.URL = known[rng.IntN(len(known))] // one that is settled
			}
			added[q.URL] = true
			p.todo = append(p.todo, asking{q.URL, 1 + uint64(rng.IntN(300))})
			p.ask()
		}
		p.act(rng, w)
		if i%5 == 0 {
			p.check()
		}
	}
	p.drain()
	all := blobschema.MergeRuns(p.hash, p.runs)
	final := map[uint64]blobschema.Seen{}
	for _, e := range all.Seen {
		if e.State != blobschema.Forwarded {
			final[e.Fingerprint] = e
		}
	}
	if len(all.Queued) > 0 && !p.cfg.Looks {
		t.Fatalf("%d URLs are pending in the runs", len(all.Queued))
	}
	for _, q := range all.Queued { // as if it had been settled like its last record
		final[p.hash.Fingerprint(q.URL)] = blobschema.Seen{Origin: q.Former}
	}
	capped := 0
	for url := range added {
		records := p.visible[url]
		if len(records) == 0 {
			capped++
			if p.cfg.MaxHostURLs == 0 {
				for _, e := range all.Seen {
					if e.Fingerprint == p.hash.Fingerprint(url) {
						t.Errorf("nothing came of %s: %+v", url, e)
					}
				}
			}
			continue
		}
		last := slices.MaxFunc(records, func(a, b record) int { return int(a.gen) - int(b.gen) })
		if e := final[p.hash.Fingerprint(url)]; e.Generation != last.gen && !p.cfg.Looks || e.Origin.Seq != last.seq {
			t.Fatalf("%s is settled as %+v, its last record is %+v", url, e, last)
		}
		if heard, ok := p.heard[url]; ok && last.began <= heard {
			t.Fatalf("%s was asked for on purpose at %d, its last record is %+v", url, heard, last)
		}
	}
	caps := p.cfg.MaxHostURLs > 0
	if capped > 0 && !caps || len(final) != len(p.visible) {
		t.Fatalf("%d URLs are nowhere; %d are settled, %d have records", capped, len(final), len(p.visible))
	}
	if n := p.capped + p.f.Counts().Capped; n < int64(capped) || !caps && n > 0 {
		t.Fatalf("%d URLs are left out, %d counted", capped, n)
	}
}

// TestWantedRespectsBound: what is loaded for being due never makes more resident than
// the bound, unless one slot alone is larger.
func TestWantedRespectsBound(t *testing.T) {
	p := newProcess(t, Config{Delay: time.Second})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 400 {
		p.add(someURL(rng))
	}
	p.beginCommit()
	p.endCommit()
	for _, bound := range []int{10, 60, 200} {
		p.f.cfg.MaxResident = bound
		p.restart(false)
		largest := 0
		for _, s := range p.slots {
			largest = max(largest, int(s.Known))
		}
		first := p.f.Wanted(p.now)
		p.loads = nil
		for _, id := range first {
			p.loads = append(p.loads, loading{id, p.runs})
		}
		for len(p.loads) > 0 {
			p.load(0)
		}
		p.check()
		if len(first) == 0 || p.f.resident > max(bound, largest) || p.f.resident > bound && len(first) > 1 {
			t.Errorf("bound %d: slots %v were loaded, %d URLs are resident, the largest slot has %d", bound, first, p.f.resident, largest)
		}
		if more := p.f.Wanted(p.now); len(more) > 0 && p.f.resident+int(p.f.slots[more[0].Slot].of(0).known) > bound {
			t.Errorf("bound %d: %v is wanted on top of %d", bound, more, p.f.resident)
		}
	}
}

// TestPace draws requests, lengths, delays and failures by lot; hosts ask for paces of
// their own. No two requests to a host start closer than its pace, but for the first
// page behind a robots.txt, and the pace is not longer than need be.
func TestPace(t *testing.T) {
	const configured = time.Second
	delays := []time.Duration{-1, 0, 500 * time.Millisecond, 3 * time.Second} // asked for by robots.txt; -1 for none
	exact := 0
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 3))
		r := newRig(t, Config{Delay: configured, Retry: polite.Retry{Wait: 100 * time.Millisecond, Backoff: time.Second}})
		last, until := map[string]flight{}, map[string]time.Time{}
		rules := map[string]time.Duration{} // by host, once its robots.txt was read
		var flights []flight
		for i := range 120 {
			r.add(uint16(rng.IntN(3)), fmt.Sprintf("https://h%d.example/%d", i%6, i))
		}
		for step := 0; r.f.Counts().Pending > 0; step++ {
			if step > 20_000 {
				t.Fatalf("seed %d: no end: %+v", seed, r.f.Counts())
			}
			r.now = r.now.Add(time.Duration(rng.IntN(200)) * time.Millisecond)
			if len(flights) > 0 && rng.IntN(2) == 0 {
				fl := flights[0]
				flights = flights[1:]
				if r.now.Before(fl.started) {
					r.now = fl.started
				}
				host, a := fl.task.Host(), someAnswer(rng)
				if fl.task.Request.Robots {
					a = answer{}
					rules[host] = delays[int(host[1]-'0')%len(delays)]
					if d := rules[host]; d >= 0 {
						a.body = fmt.Sprintf("User-agent: *\nCrawl-delay: %g\n", d.Seconds())
					}
				}
				until[host] = r.now.Add(a.retryAfter)
				r.f.Done(r.now, fl.task, a.reply(fl.task, fl.started, r.now.Sub(fl.started)))
				r.check()
			}
			task, ok := r.f.Next(r.now, false)
			if !ok {
				continue
			}
			host := task.Host()
			fl := flight{task: task, started: r.now.Add(time.Duration(rng.IntN(2)*rng.IntN(900)) * time.Millisecond)}
			pace := max(configured, rules[host])
			if last[host].task.Request.Robots && rules[host] < 0 {
				pace = 0
			}
			if before, ok := last[host]; ok {
				if gap := fl.started.Sub(before.started); gap < pace || fl.started.Before(until[host]) {
					t.Fatalf("seed %d: %s was asked for %s %v after the request before, its pace is %v", seed, host, task.Request.URL, gap, pace)
				} else if gap < pace+200*time.Millisecond {
					exact++
				}
			}
			last[host] = fl
			flights = append(flights, fl)
		}
	}
	if exact < 200 {
		t.Errorf("only %d requests came as soon as they might", exact)
	}
}

func someAnswer(rng *rand.Rand) answer {
	switch rng.IntN(12) {
	case 0:
		return answer{status: 503, retryAfter: time.Duration(rng.IntN(20)) * time.Second}
	case 1:
		return answer{outcome: blobschema.OutcomeCut}
	case 2:
		return answer{outcome: blobschema.OutcomeAborted}
	case 3:
		return answer{status: 200, retryAfter: 5 * time.Second}
	case 4, 5, 6:
		return answer{keep: true}
	}
	return answer{}
}

// TestSummariesAgree: what the summaries of a commit say of a slot is what loading it
// from the runs finds.
func TestSummariesAgree(t *testing.T) {
	p := newProcess(t, Config{Delay: time.Second, Retry: polite.Retry{Wait: time.Second}})
	rng := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		p.add(someURL(rng))
		p.act(rng, weights{start: 25, finish: 25, begin: 5, end: 5, want: 5, load: 5, wait: 5})
		p.check()
	}
	p.restart(false)
	want := maps.Collect(bySlot(p.slots))
	if d := cmp.Diff(p.slots, p.f.Summaries(), cmp.AllowUnexported(blobschema.SlotSummary{})); d != "" {
		t.Errorf("summaries after Restore (-want +got):\n%s", d)
	}
	p.now = p.now.Add(time.Hour)
	for _, id := range p.f.Wanted(p.now) {
		p.loads = append(p.loads, loading{id, p.runs})
	}
	loaded := 0
	for ; len(p.loads) > 0; loaded++ {
		p.load(0)
	}
	p.check()
	got := maps.Collect(bySlot(p.f.Summaries()))
	if d := cmp.Diff(want, got, cmp.AllowUnexported(blobschema.SlotSummary{})); d != "" {
		t.Errorf("summaries of loaded slots (-want +got):\n%s", d)
	}
	if loaded < 10 {
		t.Errorf("%d slots were loaded", loaded)
	}
}

func bySlot(list []blobschema.SlotSummary) func(func(partition.Slot, blobschema.SlotSummary) bool) {
	return func(yield func(partition.Slot, blobschema.SlotSummary) bool) {
		for _, s := range list {
			if !yield(s.Slot, s) {
				return
			}
		}
	}
}

// TestFreshFrontierIsBounded: the memory bound holds from the first commit on, also
// where nothing was ever unloaded before.
func TestFreshFrontierIsBounded(t *testing.T) {
	p := newProcess(t, Config{Delay: time.Second, MaxResident: 30})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 400 {
		p.add(someURL(rng))
	}
	p.beginCommit()
	p.endCommit()
	for range 10 {
		p.want()
	}
	if p.f.resident > 30 || p.f.unloaded == 0 {
		t.Errorf("%d resident, %d slots unloaded", p.f.resident, p.f.unloaded)
	}
}

package simulate

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/page"
	"github.com/orbweaver/orbweaver/internal/platform/embedded"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Lab is a crawl to be measured: the real core on a virtual clock, as in [Run], but in a
// world without faults that takes the time that clouds take, and large. It is
// deterministic.
type Lab struct {
	Seed        uint64
	Web         *simweb.Web
	Seeds       int      // as many hosts' roots; 0: all
	Regions     []Region // in place of Web and Seeds
	Partitions  int      // that own the slots at first
	Most        int      // that may ever own any; 0: Partitions
	Slots       int
	Connections int                 // of each partition
	Delay       time.Duration       // between two requests to a host
	Duration    time.Duration       // 0: until the crawl is finished
	Settings    blobschema.Settings // of the crawl, but for scope, depth, delay, timeout and user agent
	Policy      frontier.Policy     // nil: what Settings names
	Known       []weburl.URL        // what the crawl is begun with; nil: roots, as Seeds has it
	// Server says what connections to a host take; nil: none takes any time, and answers take what
	// Web says. It is asked once for each host.
	Server func(host string) Server
	// Answered, if it is not nil, is told of each answer, robots.txt apart, when it is here.
	Answered func(at time.Duration, url weburl.URL)
	// Watch, if it is not 0, is how often Look is called, with what happened since.
	Watch time.Duration
	Look  func(Sight)
	// Asked, if it is not nil, is told of every request for a page before the web answers it: it
	// may change the web.
	Asked func(url string, at time.Duration)
	// PlanEvery, if it is not 0, is how often Plan is asked which partitions should own the
	// slots: given the pages that were had of each slot since it was asked last, and the map that is
	// wanted so far. It returns nil for no change. It is not asked while slots are on the move.
	PlanEvery time.Duration
	Plan      func(pages []float64, m *partition.Map) (*partition.Map, error)
	Asks      []Ask
}

// Sight is what happened in a stretch of time.
type Sight struct {
	At    time.Duration // its end, from when the crawl was begun
	Pages []int         // answered, robots.txt apart, by partition
	// Regions are the same pages by region.
	Regions []int
}

// Measured is what came of a [Lab].
type Measured struct {
	Virtual  time.Duration
	Pages    int // answered, robots.txt apart
	Twice    int // of them, of URLs that were answered before
	Requests int // with those for robots.txt
	Mail     MailCount
	Steps    int
	Ticks    int
	Puts     int // of objects: commits, runs and WARCs
	Gets     int // of objects
	Finished bool
	Epoch    partition.Epoch // of the map, at the end
	Pauses   []Pause         // of slots that moved, in the order in which they came
	// Served are how long the Asks of the Lab took, in their order, until the page was had; 0:
	// it was not.
	Served []time.Duration
}

// Pause is how long nothing could be asked of a slot because it moved: from when its owner's
// step learnt of it until the new owner's head named the commit that took it over.
type Pause struct {
	Epoch  partition.Epoch
	Length time.Duration
}

// MailCount counts what partitions send each other.
type MailCount struct {
	Messages int
	URLs     int
	Bytes    int64 // compressed, as sent
	Text     int64 // of the URLs themselves
}

// What calls take in the world of a [Lab]: about what they take in a cloud.
const (
	tableTime = 5 * time.Millisecond
	queueTime = 10 * time.Millisecond
	getTime   = 20 * time.Millisecond
	putTime   = 40 * time.Millisecond
	startTime = 200 * time.Millisecond // from a wake to the step
	tickEvery = time.Minute
)

// lab is the state of one measurement.
type lab struct {
	cfg     Lab
	now     time.Duration
	seq     uint64
	heap    events
	queues  *embedded.Queues
	table   *embedded.Table
	objects map[string][]byte
	scratch *fetch.Scratch
	crawl   blobschema.Crawl
	hash    partition.Hash
	memory  *crawl.TickMemory
	warm    map[partition.ID]*crawl.Warm
	steps   map[partition.ID]*labActor
	waiting map[string]*poll // by queue: who waits for messages
	seen    map[uint64]struct{}
	servers map[weburl.Host]*server
	sight   Sight
	load    []float64 // pages by slot, since Plan was asked last
	asleep  map[partition.Slot]stopped
	began   time.Duration
	result  Measured
	actors  int
	asked   map[string][]int // Asks under way, by URL
	ticking bool
	done    bool
	err     error
}

// stopped is when a slot's owner learnt that it is to go, by the map of an epoch.
type stopped struct {
	epoch partition.Epoch
	at    time.Duration
	over  bool // it was taken over
}

// poll is a receiver that waits.
type poll struct {
	a    *labActor
	id   uint64
	max  int
	done bool
}

// labActor is an actor at work.
type labActor struct {
	*lab
	actor.Actor
	part     partition.ID
	isStep   bool
	commit   string // that the head names, if it is a step
	ended    bool
	fetching map[uint64]page.Request
	onEnd    func(error)
}

// Measure crawls until the time is over, or nothing is left to do.
func Measure(cfg Lab) (Measured, error) {
	l, err := newLab(cfg)
	if err != nil {
		return Measured{}, err
	}
	if err := l.begin(); err != nil {
		return Measured{}, err
	}
	l.began = l.now
	l.at(0, l.tick)
	if cfg.Watch > 0 {
		l.at(cfg.Watch, l.look)
	}
	if cfg.PlanEvery > 0 {
		l.at(cfg.PlanEvery, l.plan)
	}
	l.schedule()
	for !l.done && l.err == nil {
		if len(l.heap) == 0 {
			return l.result, errors.New("the crawl stands still: no event is left")
		}
		if end := l.began + cfg.Duration; cfg.Duration > 0 && l.heap[0].at > end {
			l.now = end
			break
		}
		l.next()
	}
	l.result.Virtual, l.result.Finished = l.now-l.began, l.done
	return l.result, l.err
}

func newLab(cfg Lab) (*lab, error) {
	cfg.Most = max(cfg.Most, cfg.Partitions)
	if len(cfg.Regions) == 0 {
		cfg.Regions = []Region{{Web: cfg.Web, Seeds: cfg.Seeds}}
	}
	l := &lab{
		cfg: cfg, queues: embedded.NewQueues(nil), table: embedded.NewTable(nil), objects: map[string][]byte{},
		scratch: fetch.NewScratch(fetch.Config{UserAgent: agent, Token: agent, Compression: warc.None}),
		memory:  &crawl.TickMemory{}, warm: map[partition.ID]*crawl.Warm{}, steps: map[partition.ID]*labActor{},
		waiting: map[string]*poll{}, seen: map[uint64]struct{}{}, servers: map[weburl.Host]*server{}, asleep: map[partition.Slot]stopped{},
		load: make([]float64, cfg.Slots), asked: map[string][]int{},
	}
	l.sight = l.nothing()
	l.result.Served = make([]time.Duration, len(cfg.Asks))
	names := []string{naming.WakesQueue, naming.IntakeQueue}
	for p := range partition.ID(cfg.Most) {
		names = append(names, naming.MailboxQueue(p))
	}
	for _, q := range names {
		if err := l.queues.Create(q, embedded.QueueConfig{Visibility: 6 * time.Minute}); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// begin creates the crawl.
func (l *lab) begin() error {
	seeds, err := l.seeds(0)
	if err != nil {
		return err
	}
	settings := l.cfg.Settings
	settings.Scope, settings.MaxDepth, settings.Delay = blobschema.ScopeAny, -1, l.cfg.Delay
	settings.Timeout, settings.UserAgent, settings.Plain = timeout, agent, true
	b := crawl.NewBegin(blobschema.Crawl{
		ID: "lab", HashKey: l.cfg.hashKey(), Created: epoch,
		Slots: l.cfg.Slots, Partitions: l.cfg.Partitions, Settings: settings,
	}, seeds, nil)
	a := l.start(b, 0, nil)
	for !a.ended && l.err == nil {
		l.next()
	}
	if l.err != nil {
		return l.err
	}
	if _, err := b.Ended(); err != nil {
		return err
	}
	l.crawl, _, _ = b.Crawl()
	l.hash, err = crawl.NewHash(&l.crawl)
	return err
}

func (cfg *Lab) hashKey() []byte { return binary.BigEndian.AppendUint64(make([]byte, 8), cfg.Seed) }

// Hash is that of the crawl: what its fingerprints are made with.
func (cfg *Lab) Hash() (partition.Hash, error) {
	return partition.NewHash([16]byte(cfg.hashKey()), cfg.Slots)
}

func (l *lab) next() {
	e := l.heap.pop()
	l.now = e.at
	e.do()
}

func (l *lab) at(d time.Duration, do func()) {
	l.seq++
	l.heap.push(event{at: l.now + d, seq: l.seq, do: do})
}

func (l *lab) wall() time.Time  { return epoch.Add(l.now) }
func (l *lab) clock() actor.Now { return actor.Now{Wall: l.wall(), Mono: l.now} }

func (l *lab) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// look shows what happened since the last time.
func (l *lab) look() {
	l.at(l.cfg.Watch, l.look)
	l.sight.At = l.now - l.began
	l.cfg.Look(l.sight)
	l.sight = l.nothing()
}

// plan asks who should own the slots, and has them moved.
func (l *lab) plan() {
	l.at(l.cfg.PlanEvery, l.plan)
	load := l.load
	l.load = make([]float64, l.cfg.Slots)
	r := crawl.NewRepartition(l.crawl.ID, func(p crawl.Partitioning) (*partition.Map, error) {
		if len(p.Record.Moving) > 0 || p.Record.Target != "" {
			return nil, nil
		}
		return l.cfg.Plan(load, p.Map)
	})
	l.start(r, 0, func(err error) {
		if err != nil {
			l.fail(fmt.Errorf("plan at %v: %w", l.now, err))
			return
		}
		_, after := r.Result()
		l.result.Epoch = after.Record.Epoch
	})
}

// tick runs the coordinator, now and every minute.
func (l *lab) tick() {
	l.at(tickEvery, l.tick)
	l.tickNow()
}

func (l *lab) tickNow() {
	if l.ticking {
		return
	}
	l.ticking = true
	l.result.Ticks++
	k := crawl.NewTick(crawl.TickConfig{Crawl: l.crawl.ID, Process: "tick", WakeAgain: time.Minute, Policy: l.cfg.Policy}, l.memory)
	l.start(k, 0, func(err error) {
		l.ticking = false
		switch {
		case err != nil:
			l.fail(fmt.Errorf("tick at %v: %w", l.now, err))
		case k.Report().Finished:
			l.done = l.allGiven()
		}
	})
}

// wakes starts the steps that are asked for.
func (l *lab) wakes() {
	got, err := l.queues.Receive(l.wall(), naming.WakesQueue, 10)
	if err != nil {
		l.fail(err)
		return
	}
	for _, d := range got {
		_, p, err := blobschema.DecodeWake(d.Body)
		if err == nil {
			err = l.queues.Ack(l.wall(), naming.WakesQueue, d.Receipt)
		}
		if err != nil {
			l.fail(err)
			return
		}
		l.at(startTime, func() { l.startStep(p) })
	}
	if len(got) > 0 {
		l.wakes()
	}
}

func (l *lab) startStep(p partition.ID) {
	if l.steps[p] != nil {
		return
	}
	l.result.Steps++
	s, err := crawl.NewStep(crawl.StepConfig{
		Crawl: l.crawl, Partition: p, Process: fmt.Sprintf("step%d", l.actors), Connections: l.cfg.Connections,
		SendsWakes: true, SleepMax: 3 * time.Second, Retry: polite.Retry{}, Policy: l.cfg.Policy, Token: agent, Software: agent,
	}, l.warm[p])
	if err != nil {
		l.fail(err)
		return
	}
	l.steps[p] = &labActor{} // until it has started: it may end at once
	l.steps[p] = l.start(s, p, func(err error) {
		delete(l.steps, p)
		delete(l.warm, p)
		if err != nil {
			l.fail(fmt.Errorf("step of partition %d at %v: %w", p, l.now, err))
			return
		}
		l.warm[p] = s.Warm()
	})
	if l.steps[p].ended {
		delete(l.steps, p)
	}
}

func (l *lab) start(begun actor.Actor, p partition.ID, onEnd func(error)) *labActor {
	l.actors++
	_, step := begun.(*crawl.Step)
	a := &labActor{lab: l, Actor: begun, part: p, isStep: step, fetching: map[uint64]page.Request{}, onEnd: onEnd}
	a.took(begun.Start(l.clock()))
	return a
}

// took carries out what the actor asked for, and sees whether it has ended.
func (a *labActor) took(issues []actor.Issue) {
	for _, is := range issues {
		a.issue(is)
	}
	if ended, err := a.Ended(); ended && !a.ended {
		a.ended = true
		if a.onEnd != nil {
			a.onEnd(err)
		}
	}
}

func (a *labActor) reply(id uint64, v any, err error) {
	if !a.ended {
		a.took(a.Handle(a.clock(), actor.Reply{ID: id, Value: v, Err: err}))
	}
}

// issue has an effect happen at once, and its reply come when it would have ended.
func (a *labActor) issue(is actor.Issue) {
	after := func(d time.Duration, v any, err error) { a.at(d, func() { a.reply(is.ID, v, err) }) }
	switch e := is.Effect.(type) {
	case actor.Sleep:
		after(max(0, e.For), nil, nil)
	case actor.Work:
		v, err := e.Do()
		after(0, v, err)
	case actor.Fetch:
		a.fetch(is.ID, e.Request)
	case actor.CancelFetches:
		for _, id := range sortedIDs(a.fetching) {
			o := page.Aborted(a.fetching[id], a.wall())
			delete(a.fetching, id)
			a.at(0, func() { a.reply(id, o, nil) })
		}
		after(0, nil, nil)
	case actor.Receive:
		a.receive(is.ID, e)
	case actor.Send:
		after(queueTime, nil, a.send(e))
	case actor.Acknowledge:
		var err error
		for _, r := range e.Receipts {
			err = errors.Join(err, a.queues.Ack(a.wall(), e.Queue, r.(embedded.Receipt)))
		}
		after(queueTime, nil, err)
	case actor.GetObject:
		a.result.Gets++
		b, ok := a.objects[e.Name]
		if !ok {
			after(getTime, nil, fmt.Errorf("%w: %s", actor.ErrNotFound, e.Name))
			return
		}
		b = b[min(e.Offset, int64(len(b))):]
		if e.Length >= 0 {
			b = b[:min(e.Length, int64(len(b)))]
		}
		after(getTime, b, nil)
	case actor.DeleteObject:
		delete(a.objects, e.Name)
		after(putTime, nil, nil)
	case actor.PutObject:
		a.result.Puts++
		if !strings.HasPrefix(e.Name, naming.WARCPrefix(a.crawl.ID)) { // nobody reads those here
			a.objects[e.Name] = bytes.Join(e.Parts, nil)
		}
		after(putTime, nil, nil)
	case actor.ReadRecords:
		recs := make([]actor.Record, len(e.Keys))
		for i, k := range e.Keys {
			if v, rev, ok := a.table.Get(k); ok {
				recs[i] = actor.Record{Value: v, Revision: rev, Found: true}
			}
		}
		a.learnt(e.Keys, recs)
		after(tableTime, recs, nil)
	case actor.WriteRecord:
		rev, err := a.write(e)
		if err == nil {
			a.taken(e)
		}
		after(tableTime, rev, err)
	default:
		a.fail(fmt.Errorf("effect %T is unknown here", e))
	}
}

func (a *labActor) write(e actor.WriteRecord) (any, error) {
	var rev uint64
	var err error
	if e.Revision == nil {
		rev, err = a.table.Create(e.Key, e.Value)
	} else {
		rev, err = a.table.Replace(e.Key, e.Value, e.Revision.(uint64))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", actor.ErrConflict, err)
	}
	return rev, nil
}

// learnt takes note of a step that reads which slots it must give.
func (a *labActor) learnt(keys []string, recs []actor.Record) {
	i := slices.Index(keys, naming.MapKey(a.crawl.ID))
	if i < 0 || !recs[i].Found || !a.isStep {
		return
	}
	var m blobschema.MapRecord
	if err := json.Unmarshal(recs[i].Value, &m); err != nil {
		a.fail(err)
		return
	}
	for _, mv := range m.Moving {
		if mv.From != a.part {
			continue
		}
		for _, s := range mv.Slots {
			if a.asleep[s].epoch < mv.Epoch {
				a.asleep[s] = stopped{epoch: mv.Epoch, at: a.now + tableTime}
			}
		}
	}
}

// taken takes note of a commit with slots that have come.
func (a *labActor) taken(e actor.WriteRecord) {
	if len(a.asleep) == 0 || !a.isStep || e.Key != naming.HeadKey(a.crawl.ID, a.part) {
		return
	}
	var h blobschema.Head
	if err := json.Unmarshal(e.Value, &h); err != nil {
		a.fail(err)
		return
	}
	if h.Commit == "" || h.Commit == a.commit {
		return
	}
	a.commit = h.Commit
	r, err := blobschema.OpenCommit(a.objects[h.Commit])
	if err != nil {
		a.fail(err)
		return
	}
	man, err := r.Manifest()
	if err != nil {
		a.fail(err)
		return
	}
	for _, m := range man.Moved {
		for _, s := range m.Slots {
			if was, ok := a.asleep[s]; ok && m.Held && was.epoch == m.Epoch && !was.over {
				a.result.Pauses = append(a.result.Pauses, Pause{m.Epoch, a.now + tableTime - was.at})
				was.over = true
				a.asleep[s] = was
			}
		}
	}
}

func (a *labActor) send(e actor.Send) error {
	for _, body := range e.Bodies {
		if _, err := a.queues.Send(a.wall(), e.Queue, body, nil, e.Delay); err != nil {
			return err
		}
		if strings.HasPrefix(e.Queue, mailboxPrefix) {
			if err := a.count(body); err != nil {
				return err
			}
		}
	}
	if e.Queue == naming.WakesQueue {
		a.at(e.Delay, a.wakes)
	}
	if p := a.waiting[e.Queue]; p != nil {
		a.at(queueTime, func() { a.hand(p, e.Queue) })
	}
	return nil
}

// mailboxPrefix begins the names of all mailboxes.
var mailboxPrefix = strings.TrimRight(naming.MailboxQueue(0), "0")

// count takes note of mail from one partition to another.
func (a *labActor) count(body []byte) error {
	m, err := blobschema.DecodeMail(body)
	if err != nil || m.From == partition.Intake || m.From == partition.Requests {
		return err
	}
	c := &a.result.Mail
	c.Messages++
	c.URLs += len(m.URLs)
	c.Bytes += int64(len(body))
	for i := range m.URLs {
		c.Text += int64(len(m.URLs[i].URL))
	}
	return nil
}

// receive waits until there is mail or time is up.
func (a *labActor) receive(id uint64, e actor.Receive) {
	p := &poll{a: a, id: id, max: e.Max}
	a.waiting[e.Queue] = p
	a.at(queueTime, func() { a.hand(p, e.Queue) })
	a.at(queueTime+e.Wait, func() {
		a.hand(p, e.Queue)
		p.answer(a.waiting, e.Queue, nil, nil)
	})
}

// hand gives a receiver what has come.
func (l *lab) hand(p *poll, queue string) {
	if p.done || p.a.ended {
		return
	}
	got, err := l.queues.Receive(l.wall(), queue, p.max)
	if err == nil && len(got) == 0 {
		return
	}
	msgs := make([]actor.Message, len(got))
	for i, d := range got {
		msgs[i] = actor.Message{Body: d.Body, Receipt: d.Receipt, Receives: d.Receives}
	}
	p.answer(l.waiting, queue, msgs, err)
}

func (p *poll) answer(waiting map[string]*poll, queue string, msgs []actor.Message, err error) {
	if p.done {
		return
	}
	p.done = true
	if waiting[queue] == p {
		delete(waiting, queue)
	}
	p.a.reply(p.id, msgs, err)
}

// fetch asks the generated web, which here has neither faults nor names to resolve.
func (a *labActor) fetch(id uint64, req page.Request) {
	url, started := req.URL.String(), a.wall()
	if a.cfg.Asked != nil && !req.Robots {
		a.cfg.Asked(url, a.now-a.began)
	}
	resp := a.regionOf(req.URL).Web.Answer(simweb.Request{URL: url, Now: started})
	took := resp.Delay + resp.BodyTime + time.Millisecond
	if resp.Fault != simweb.FaultNone || req.Resolve {
		a.fail(fmt.Errorf("%s: the web of a measurement has no faults and no addresses", url))
		return
	}
	var over exchange
	if a.cfg.Server != nil {
		over = a.server(req.URL.Host()).ask(a.now, url)
		took = over.took
	}
	a.fetching[id] = req
	a.at(took, func() {
		over.end(a.now)
		if _, ok := a.fetching[id]; !ok || a.ended {
			return // cancelled
		}
		delete(a.fetching, id)
		r := fetch.Response{
			Status: resp.Status, Proto: "HTTP/1.1", Body: resp.Body, Addr: "192.0.2.1", Started: started, Ended: a.wall(),
			RequestHead: []byte("GET " + req.URL.RequestURI() + " HTTP/1.1\r\nHost: " + string(req.URL.Host()) + "\r\n\r\n"),
		}
		for _, h := range resp.Header {
			r.Header = append(r.Header, warc.HeaderField{Name: h.Name, Value: h.Value})
		}
		slices.SortFunc(r.Header, func(a, b warc.HeaderField) int { return strings.Compare(a.Name, b.Name) })
		out := fetch.Assemble(a.scratch, req, r)
		out.Response, out.Closed, out.Wire = took, resp.Close, int64(len(resp.Body))
		if a.cfg.Server != nil {
			over.observe(out)
		}
		a.answered(&req, url)
		a.reply(id, out, nil)
	})
}

// answered takes note of an answer.
func (a *labActor) answered(req *page.Request, url string) {
	a.result.Requests++
	if req.Robots {
		return
	}
	a.result.Pages++
	if a.cfg.Answered != nil {
		a.cfg.Answered(a.now-a.began, req.URL)
	}
	a.sight.Pages[a.part]++
	a.sight.Regions[a.region(req.URL)]++
	a.served(url)
	a.load[a.hash.Slot(req.Host)]++
	f := a.hash.Fingerprint(url)
	if _, ok := a.seen[f]; ok {
		a.result.Twice++
	}
	a.seen[f] = struct{}{}
}

package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/page"
	"github.com/orbweaver/orbweaver/internal/platform/embedded"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/partition"
)

const timeout = time.Minute // of a request

var errInjected = errors.New("injected fault")

// proc is a process that carries one actor.
type proc struct {
	w        *world
	actor    crawl.Actor
	step     *crawl.Step // if the actor is one
	part     partition.ID
	kind     string
	id       int
	kindly   bool // no faults befall it
	dead     bool
	ended    bool
	frozen   time.Duration // until then
	fetching map[uint64]page.Request
	onEnd    func(error)
	learnt   map[string]time.Duration // pace that robots.txt files asked for, by host
}

func (p *proc) now() crawl.Now { return crawl.Now{Wall: p.w.wall(), Mono: p.w.now} }

func (p *proc) start() {
	p.fetching, p.learnt = map[uint64]page.Request{}, map[string]time.Duration{}
	p.w.procs++
	p.id = p.w.procs
	p.w.live = append(p.w.live, p)
	p.w.note(p.name(), "start")
	p.took(p.actor.Start(p.now()))
}

// took carries out what the actor asked for and sees whether it has ended.
func (p *proc) took(issues []crawl.Issue) {
	for _, is := range issues {
		if p.dead {
			return
		}
		p.issue(is)
	}
	if ended, err := p.actor.Ended(); ended && !p.ended {
		p.ended = true
		p.w.left(p)
		p.w.note(p.name(), "end", fmt.Sprint(err))
		if p.onEnd != nil {
			p.onEnd(err)
		}
	}
}

// crash ends the process between two instructions: nothing of it runs again.
func (p *proc) crash() {
	w := p.w
	w.crashes++
	if !w.cfg.Local {
		p.die()
		return
	}
	for _, q := range slices.Clone(w.live) {
		q.die()
	}
	w.process++
	w.memory = &crawl.TickMemory{}
	clear(w.warm)
	w.queues.EndVisibility() // whoever opens the folder next finds all mail visible
	w.at(w.between(0, 300*time.Millisecond), w.startTick)
}

func (p *proc) die() {
	p.dead, p.ended = true, true
	p.w.left(p)
	p.w.note(p.name(), "crash")
	if p.onEnd != nil {
		p.onEnd(nil)
	}
}

func (w *world) left(p *proc) {
	w.live = slices.DeleteFunc(w.live, func(q *proc) bool { return q == p })
}

// reply delivers a reply, now or when the process thaws.
func (p *proc) reply(r crawl.Reply) {
	if p.ended {
		return
	}
	if p.frozen > p.w.now {
		p.w.at(p.frozen-p.w.now, func() { p.reply(r) })
		return
	}
	f := &p.w.cfg.Faults
	if !p.kindly && p.step != nil {
		switch {
		case p.w.chance("freeze", f.Freeze):
			p.frozen = p.w.now + p.w.between(time.Minute, 6*time.Minute)
			p.w.at(p.frozen-p.w.now, func() { p.reply(r) })
			return
		case p.w.chance("stop", f.Stop):
			p.took(p.step.Signal(p.now(), crawl.Stop{}))
		}
		if p.ended {
			return
		}
	}
	p.took(p.actor.Handle(p.now(), r))
}

func (p *proc) name() string { return fmt.Sprintf("%s %d/%d", p.kind, p.part, p.id) }

// issue splits an effect into apply and reply, and lets it fail in between.
func (p *proc) issue(is crawl.Issue) {
	w, f := p.w, &p.w.cfg.Faults
	w.note(p.name(), effectName(is.Effect))
	switch e := is.Effect.(type) {
	case crawl.Sleep:
		w.at(max(0, e.For), func() { p.reply(crawl.Reply{ID: is.ID}) })
		return
	case crawl.Fetch:
		p.fetch(is.ID, e)
		return
	case crawl.CancelFetches:
		for _, id := range sortedIDs(p.fetching) {
			o := page.Aborted(p.fetching[id], w.wall())
			delete(p.fetching, id)
			w.at(w.between(0, 50*time.Millisecond), func() { p.reply(crawl.Reply{ID: id, Value: &o}) })
		}
		w.at(0, func() { p.reply(crawl.Reply{ID: is.ID}) })
		return
	case crawl.Receive:
		w.at(w.between(time.Millisecond, 30*time.Millisecond), func() { p.receive(is.ID, e, w.now+e.Wait) })
		return
	}
	before, after := w.between(time.Millisecond, 40*time.Millisecond), w.between(time.Millisecond, 40*time.Millisecond)
	_, work := is.Effect.(crawl.Work)
	if !p.kindly && !work && w.chance("slow", f.Slow) {
		before = w.between(time.Second, 4*time.Minute)
	}
	w.at(before, func() {
		if p.dead && w.rng.IntN(2) == 0 {
			return // it never left the process
		}
		if !p.kindly && !p.dead && w.chance("crash", f.Crash) {
			p.crash()
			return
		}
		if !p.kindly && !work && w.chance("lost", f.Lost) {
			w.at(after, func() { p.reply(crawl.Reply{ID: is.ID, Err: errInjected}) })
			return
		}
		v, err := p.apply(is.Effect)
		if !p.kindly && !p.dead && w.chance("crash", f.Crash) {
			p.crash()
			return
		}
		if !p.kindly && !work && err == nil && w.chance("doubt", f.Doubt) {
			v, err = nil, errInjected
		}
		w.at(after, func() { p.reply(crawl.Reply{ID: is.ID, Value: v, Err: err}) })
	})
}

func sortedIDs(m map[uint64]page.Request) []uint64 {
	ids := make([]uint64, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func effectName(e crawl.Effect) string {
	switch e := e.(type) {
	case crawl.Fetch:
		return "fetch " + e.Request.URL.String()
	case crawl.GetObject:
		return "get " + e.Name
	case crawl.PutObject:
		return "put " + e.Name
	case crawl.WriteRecord:
		return "write " + e.Key
	case crawl.Send:
		return "send " + e.Queue
	}
	return fmt.Sprintf("%T", e)
}

// apply carries out an effect on the world.
func (p *proc) apply(effect crawl.Effect) (any, error) {
	w := p.w
	switch e := effect.(type) {
	case crawl.Work:
		return e.Do()
	case crawl.GetObject:
		b, ok := w.blobs[e.Name]
		if !ok {
			return nil, fmt.Errorf("%w: %s", crawl.ErrNotFound, e.Name)
		}
		if e.Length < 0 {
			return b[min(e.Offset, int64(len(b))):], nil
		}
		b = b[min(e.Offset, int64(len(b))):]
		return b[:min(e.Length, int64(len(b)))], nil
	case crawl.PutObject:
		data := bytes.Join(e.Parts, nil)
		if old, ok := w.blobs[e.Name]; ok && !bytes.Equal(old, data) {
			w.fail(fmt.Errorf("I6 broken: object %s would change", e.Name))
		}
		w.blobs[e.Name] = data
		return nil, nil
	case crawl.ReadRecords:
		recs := make([]crawl.Record, len(e.Keys))
		for i, k := range e.Keys {
			if v, rev, ok := w.table.Get(k); ok {
				recs[i] = crawl.Record{Value: v, Revision: rev, Found: true}
			}
		}
		return recs, nil
	case crawl.WriteRecord:
		return p.write(e)
	case crawl.Send:
		return nil, p.send(e)
	case crawl.Acknowledge:
		for _, r := range e.Receipts {
			if err := p.mayAcknowledge(r.(embedded.Receipt)); err != nil {
				w.fail(err)
			}
			if err := w.queues.Ack(w.wall(), e.Queue, r.(embedded.Receipt)); err != nil && !errors.Is(err, embedded.ErrNotYours) {
				return nil, err
			}
		}
		return nil, nil
	}
	return nil, fmt.Errorf("effect %T is unknown here", effect)
}

func (p *proc) write(e crawl.WriteRecord) (any, error) {
	var rev uint64
	var err error
	if e.Revision == nil {
		rev, err = p.w.table.Create(e.Key, e.Value)
	} else {
		rev, err = p.w.table.Replace(e.Key, e.Value, e.Revision.(uint64))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", crawl.ErrConflict, err)
	}
	return rev, nil
}

func (p *proc) send(e crawl.Send) error {
	w, f := p.w, &p.w.cfg.Faults
	for _, body := range e.Bodies {
		n := 1
		switch {
		case p.kindly:
		case w.chance("drop", f.Drop):
			n = 0
		case w.chance("repeat", f.Repeat):
			n = 2
		case w.chance("damage", f.Damage) && e.Queue != blobschema.WakesQueue:
			bad := bytes.Clone(body)
			bad[w.rng.IntN(len(bad))] ^= 1 << w.rng.IntN(8)
			if _, err := w.queues.Send(w.wall(), e.Queue, bad, nil, 0); err != nil {
				return err
			}
		}
		for range n {
			delay := e.Delay
			if w.rng.IntN(4) == 0 {
				delay += w.between(0, 20*time.Second)
			}
			if _, err := w.queues.Send(w.wall(), e.Queue, body, nil, delay); err != nil {
				return err
			}
		}
	}
	return nil
}

// receive polls a queue until something is there or time is up.
func (p *proc) receive(id uint64, e crawl.Receive, until time.Duration) {
	if p.ended {
		return
	}
	w := p.w
	got, err := w.queues.Receive(w.wall(), e.Queue, 1+w.rng.IntN(e.Max))
	if err == nil && len(got) == 0 && w.now < until {
		w.at(w.between(100*time.Millisecond, 700*time.Millisecond), func() { p.receive(id, e, until) })
		return
	}
	w.rng.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	msgs := make([]crawl.Message, len(got))
	for i, d := range got {
		w.bodies[d.Receipt] = d.Body
		msgs[i] = crawl.Message{Body: d.Body, Receipt: d.Receipt, Receives: d.Receives}
	}
	if len(msgs) > 0 && w.chance("crash", w.cfg.Faults.Crash) {
		p.crash()
		return
	}
	w.at(w.between(time.Millisecond, 30*time.Millisecond), func() { p.reply(crawl.Reply{ID: id, Value: msgs, Err: err}) })
}

// fetch asks the generated web. The request reaches the host at once, so that the
// pace is checked as the host sees it (I9).
func (p *proc) fetch(id uint64, e crawl.Fetch) {
	w := p.w
	req := e.Request
	if !p.kindly && w.chance("crash", w.cfg.Faults.Crash) {
		p.crash()
		return
	}
	url := req.URL.String()
	if url == w.cfg.Killer {
		p.crash()
		return
	}
	if req.Resolve {
		p.resolve(id, req)
		return
	}
	host, unit := string(req.URL.Host()), req.Host
	if last, ok := w.asked[unit]; ok {
		pace := max(w.pace[last.host], p.learnt[last.host])
		if !last.robots {
			pace = max(pace, w.cfg.Delay)
		}
		if w.now-last.at < pace {
			w.fail(fmt.Errorf("I9 broken: %s was asked %v after the last request, its pace is %v (partition %d)", unit, w.now-last.at, pace, p.part))
		}
	}
	if w.cfg.PartitionBy == blobschema.ByIP {
		w.checkPin(host, req.Addr)
	}
	w.asked[unit] = asked{at: w.now, host: paced(req), robots: req.Robots}
	if req.Deadline.Before(w.wall()) {
		w.fail(fmt.Errorf("a request for %s begins after its deadline", url))
	}
	resp := w.web.Answer(simweb.Request{URL: url, Attempt: w.hits[url], AcceptGzip: true, Now: w.wall()})
	w.hits[url]++
	o, took := w.outcome(req, &resp)
	p.fetching[id] = req
	w.at(took, func() {
		if _, ok := p.fetching[id]; !ok {
			return // cancelled
		}
		delete(p.fetching, id)
		if req.Robots && o.Page.Outcome == blobschema.OutcomeOK {
			p.learnPace(paced(req), o.Body)
		}
		w.note(p.name(), "answer", url, o.Page.Outcome.String())
		p.reply(crawl.Reply{ID: id, Value: o})
	})
}

// paced is the host that the pace of a request is learnt for, at its unit: a robots.txt
// that another host redirects to is that one's.
func paced(req page.Request) string {
	if req.Robots && req.Site != "" {
		return req.Host + " " + req.Site
	}
	return req.Host + " " + string(req.URL.Host())
}

// resolve asks for a name's address.
func (p *proc) resolve(id uint64, req page.Request) {
	w := p.w
	resp := w.web.Answer(simweb.Request{URL: req.URL.String(), Now: w.wall()})
	o, took := w.outcome(req, &simweb.Response{Fault: resp.Fault, Delay: 20 * time.Millisecond})
	if resp.Fault != simweb.FaultDNS {
		out := page.Aborted(req, w.wall())
		out.Page.Outcome, out.Temporary, out.Started, out.Addr = blobschema.OutcomeOK, false, w.wall(), w.resolve(string(req.URL.Host()))
		o = &out
	}
	p.fetching[id] = req
	w.at(took, func() {
		if _, ok := p.fetching[id]; !ok {
			return
		}
		delete(p.fetching, id)
		p.reply(crawl.Reply{ID: id, Value: o})
	})
}

// outcome is what the fetcher would make of a response, and how long it would take.
func (w *world) outcome(req page.Request, resp *simweb.Response) (*page.Outcome, time.Duration) {
	started := w.wall()
	took := resp.Delay + resp.BodyTime + time.Millisecond
	limit := req.Deadline.Sub(started)
	refuse := func(o blobschema.Outcome, temporary bool) (*page.Outcome, time.Duration) {
		out := page.Aborted(req, started)
		out.Page.Outcome, out.Temporary, out.Started = o, temporary, started
		return &out, min(took, limit)
	}
	late := func() (*page.Outcome, time.Duration) {
		if limit < timeout {
			return refuse(blobschema.OutcomeAborted, true) // the lease ended it, not the host
		}
		return refuse(blobschema.OutcomeTimeout, true)
	}
	switch resp.Fault {
	case simweb.FaultDNS:
		return refuse(blobschema.OutcomeDNS, false)
	case simweb.FaultRefused:
		return refuse(blobschema.OutcomeConnect, true)
	case simweb.FaultSilent:
		took = limit
		return late()
	case simweb.FaultReset, simweb.FaultCut:
		return refuse(blobschema.OutcomeCut, true)
	case simweb.FaultGarbage:
		return refuse(blobschema.OutcomeProtocol, false)
	}
	if took > limit {
		return late()
	}
	r := fetch.Response{
		Status: resp.Status, Proto: "HTTP/1.1", Body: resp.Body, Addr: "192.0.2.1", Started: started, Ended: started.Add(took),
		RequestHead: []byte("GET " + req.URL.RequestURI() + " HTTP/1.1\r\nHost: " + string(req.URL.Host()) + "\r\n\r\n"),
	}
	if req.Addr.IsValid() {
		r.Addr = req.Addr.String()
	}
	for _, h := range resp.Header {
		r.Header = append(r.Header, blobschema.HeaderField{Name: h.Name, Value: h.Value})
	}
	slices.SortStableFunc(r.Header, func(a, b blobschema.HeaderField) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	out := fetch.Assemble(w.scratch, req, r)
	out.Response, out.Closed, out.Wire = took, resp.Close, int64(len(resp.Body))
	return &out, took
}

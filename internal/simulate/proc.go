package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/partition"
)

var errInjected = errors.New("injected fault")

// proc is a process that runs one actor.
type proc struct {
	identity
	virtual.Process
	w        *world
	step     *crawl.Step // the actor, if it is a step
	part     partition.ID
	kind     string
	on       machine
	clock    *clock
	ahead    time.Duration // error of its clock when it began, which the actor's times keep
	kindly   bool          // no faults happen to it
	dead     bool
	frozen   time.Duration // end of the freeze
	fetching map[uint64]actor.Request
	onEnd    func(error)              // called when the actor has ended or crashed
	learnt   map[string]time.Duration // pace requested by robots.txt files, by host
}

// clock is the wall clock of a machine.
type clock struct{ ahead time.Duration } // error of the clock

func (p *proc) wall() time.Time { return p.w.Wall().Add(p.clock.ahead) }

func (p *proc) now() actor.Now { return actor.Now{Wall: p.wall(), Mono: p.w.Mono} }

func (p *proc) start() {
	w := p.w
	if w.cfg.Local {
		p.on = machine{}
	}
	if p.clock = w.clocks[p.on]; p.clock == nil {
		p.clock = &clock{}
		w.clocks[p.on] = p.clock
		if !p.kindly && w.fault(&p.identity, Skew) {
			p.clock.ahead = between(p.detail(Skew), -maxSkew, maxSkew)
		}
	}
	p.ahead = p.clock.ahead
	p.fetching, p.learnt = map[uint64]actor.Request{}, map[string]time.Duration{}
	w.live = append(w.live, p)
	w.note(p.name, "start")
	p.Start()
}

func (p *proc) end(err error) {
	p.w.left(p)
	p.w.note(p.name, "end", fmt.Sprint(err))
	if p.onEnd != nil {
		p.onEnd(err)
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
	w.queues.EndVisibility() // the next owner of the folder finds all mail visible
	w.After(p.between(0, 300*time.Millisecond), w.startTick)
}

func (p *proc) die() {
	p.dead = true
	p.Kill()
	p.w.left(p)
	p.w.note(p.name, "crash")
	if p.onEnd != nil {
		p.onEnd(nil)
	}
}

func (w *world) left(p *proc) {
	w.live = slices.DeleteFunc(w.live, func(q *proc) bool { return q == p })
}

// reply delivers a reply, now or when the freeze ends.
func (p *proc) reply(r actor.Reply) {
	if p.Ended() {
		return
	}
	if p.frozen > p.w.Mono {
		p.w.After(p.frozen-p.w.Mono, func() { p.reply(r) })
		return
	}
	if !p.kindly {
		w := p.w
		if w.fault(&p.identity, Freeze) {
			p.frozen = w.Mono + between(p.detail(Freeze), time.Minute, 6*time.Minute)
			w.After(p.frozen-w.Mono, func() { p.reply(r) })
			if w.ticking == p && !w.cfg.Local { // no process waits for it
				w.ticking = nil
			}
			return
		}
		if w.fault(&p.identity, Jump) {
			p.clock.ahead = between(p.detail(Jump), -maxSkew, maxSkew)
		}
		if p.step != nil && w.fault(&p.identity, Stop) {
			p.Take(p.step.Signal(p.now(), crawl.Stop{}))
		}
	}
	p.Reply(r.ID, r.Value, r.Err)
}

// issue splits an effect into issue, apply and reply, with faults in between.
func (p *proc) issue(is actor.Issue) {
	w := p.w
	w.note(p.name, effectName(is.Effect))
	switch e := is.Effect.(type) {
	case actor.Sleep:
		w.After(max(0, e.For), func() { p.reply(actor.Reply{ID: is.ID}) })
		return
	case actor.Fetch:
		p.fetch(is.ID, e)
		return
	case actor.CancelFetches:
		for _, id := range slices.Sorted(maps.Keys(p.fetching)) {
			o := actor.Aborted(p.fetching[id], p.wall())
			delete(p.fetching, id)
			w.After(p.between(0, 50*time.Millisecond), func() { p.reply(actor.Reply{ID: id, Value: o}) })
		}
		w.After(0, func() { p.reply(actor.Reply{ID: is.ID}) })
		return
	case actor.ExtendFetches:
		p.extend(e.Deadline)
		w.After(0, func() { p.reply(actor.Reply{ID: is.ID}) })
		return
	case actor.Receive:
		after := p.between(time.Millisecond, 30*time.Millisecond)
		if slow := w.cfg.SlowQueues; slow > 0 {
			after = p.between(slow/2, slow)
		}
		w.After(after, func() { p.receive(is.ID, e, w.Mono+e.Wait) })
		return
	}
	before, after := p.between(time.Millisecond, 40*time.Millisecond), p.between(time.Millisecond, 40*time.Millisecond)
	_, work := is.Effect.(actor.Work)
	if p.suffers(Slow) && !work {
		before = between(p.detail(Slow), time.Second, 4*time.Minute)
	}
	w.After(before, func() {
		if p.dead && p.rng.IntN(2) == 0 {
			return // it never left the process
		}
		if p.suffers(CrashBefore) {
			p.crash()
			return
		}
		if !work && (p.throttled(is.Effect) || p.suffers(Lost)) {
			w.After(after, func() { p.reply(actor.Reply{ID: is.ID, Err: errInjected}) })
			return
		}
		v, err := p.apply(is.Effect)
		if p.suffers(CrashAfter) {
			p.crash()
			return
		}
		if err == nil && !work && p.suffers(Doubt) {
			v, err = nil, errInjected
		}
		w.After(after, func() { p.reply(actor.Reply{ID: is.ID, Value: v, Err: err}) })
	})
}

// suffers decides whether a fault of a kind happens to an effect of the process now.
func (p *proc) suffers(k Kind) bool { return !p.kindly && !p.dead && p.w.fault(&p.identity, k) }

// service groups the effects that are throttled together.
type service uint8

const (
	onTable service = iota
	onQueues
	onObjects
	services
)

func serviceOf(e actor.Effect) service {
	switch e.(type) {
	case actor.ReadRecords, actor.WriteRecord:
		return onTable
	case actor.GetObject, actor.PutObject, actor.DeleteObject:
		return onObjects
	}
	return onQueues
}

// throttled reports whether an effect fails because its service is throttled.
func (p *proc) throttled(e actor.Effect) bool {
	if p.kindly {
		return false
	}
	w, s := p.w, serviceOf(e)
	if w.failing[s] <= w.Mono && p.suffers(Throttle) {
		w.failing[s] = w.Mono + between(p.detail(Throttle), time.Second, 20*time.Second)
	}
	return w.failing[s] > w.Mono
}

func effectName(e actor.Effect) string {
	switch e := e.(type) {
	case actor.Fetch:
		return "fetch " + e.Request.URL.String()
	case actor.GetObject:
		return "get " + e.Name
	case actor.PutObject:
		return "put " + e.Name
	case actor.DeleteObject:
		return "delete " + e.Name
	case actor.WriteRecord:
		return "write " + e.Key
	case actor.Send:
		return "send " + e.Queue
	}
	return fmt.Sprintf("%T", e)
}

// apply applies an effect to the world, and checks that it is allowed.
func (p *proc) apply(effect actor.Effect) (any, error) {
	w := p.w
	switch e := effect.(type) {
	case actor.DeleteObject:
		if err := w.mayDelete(e.Name); err != nil {
			w.fail(err)
		}
	case actor.Send:
		return nil, p.send(e)
	case actor.Acknowledge:
		return nil, p.acknowledge(e)
	}
	v, ok, err := w.Apply(effect)
	switch {
	case !ok:
		return nil, fmt.Errorf("effect %T is unknown here", effect)
	case errors.Is(err, virtual.ErrChanged):
		w.fail(broken("I6", "%v", err))
	case err != nil:
		return nil, err
	}
	if e, ok := effect.(actor.WriteRecord); ok {
		p.wrote(e)
	}
	return v, nil
}

// wrote checks a record that has just been written.
func (p *proc) wrote(e actor.WriteRecord) {
	var err error
	switch {
	case p.step != nil && e.Key == naming.HeadKey(p.w.crawl.ID, p.part):
		err = p.wroteHead(e.Value)
	case e.Key == naming.MapKey(p.w.crawl.ID):
		err = p.wroteMap(e.Value)
	}
	if err != nil {
		p.w.fail(err)
	}
}

func (p *proc) acknowledge(e actor.Acknowledge) error {
	w := p.w
	for _, r := range e.Receipts {
		if err := p.mayAcknowledge(r.(embedded.Receipt)); err != nil {
			w.fail(err)
		}
		delete(w.bodies, r.(embedded.Receipt))
		if err := w.queues.Ack(w.Wall(), e.Queue, r.(embedded.Receipt)); err != nil {
			return err
		}
	}
	return nil
}

func (p *proc) send(e actor.Send) error {
	upTo := len(e.Bodies)
	if upTo > 1 && p.suffers(SentInPart) {
		upTo = p.detail(SentInPart).IntN(upTo)
	}
	for _, body := range e.Bodies[:upTo] {
		if err := p.sendOne(e, body); err != nil {
			return err
		}
	}
	if upTo < len(e.Bodies) {
		return errInjected
	}
	return nil
}

// sendOne sends a message, subject to faults.
func (p *proc) sendOne(e actor.Send, body []byte) error {
	w, n := p.w, 1
	drop := MailDropped
	if !mailed(e.Queue) {
		drop = WakeDropped
	}
	switch {
	case p.suffers(drop):
		n = 0
	case p.suffers(MailRepeated):
		n = 2
	}
	for range n {
		delay := w.cfg.Queues.delay(e.Delay)
		if p.suffers(MailLate) {
			delay += between(p.detail(MailLate), 0, 20*time.Second)
		}
		if _, err := w.queues.Send(w.Wall(), e.Queue, body, nil, delay); err != nil {
			return err
		}
	}
	if !mailed(e.Queue) {
		return nil
	}
	for _, k := range []Kind{MailDamaged, MailVersion, MailForeign, MailMisled, MailHuge, MailEmpty} {
		if !p.suffers(k) {
			continue
		}
		queue, bad, err := w.poison(k, p.detail(k), e.Queue, body)
		if err == nil {
			_, err = w.queues.Send(w.Wall(), queue, bad, nil, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mailed reports whether the messages of a queue carry data; the others are hints.
func mailed(queue string) bool {
	return queue != naming.WakesQueue && queue != naming.IndexQueue && queue != naming.RankQueue
}

// poison returns a copy of a mail that its receiver cannot use, and the queue for it.
func (w *world) poison(k Kind, r *rand.Rand, queue string, body []byte) (string, []byte, error) {
	bad := bytes.Clone(body)
	switch k {
	case MailVersion:
		bad[1]++
	case MailForeign:
		m, err := blobschema.DecodeMail(body)
		if err != nil {
			return "", nil, err
		}
		m.Crawl = "another"
		bad, err = blobschema.EncodeMail(m)
		return queue, bad, err
	case MailMisled:
		queue = naming.MailboxQueue(partition.ID(r.IntN(w.cfg.Partitions)))
	case MailHuge:
		bad = bytes.Repeat(body, 256<<10/len(body)+1)[:256<<10]
	case MailEmpty:
		bad = nil
	default:
		bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
	}
	return queue, bad, nil
}

// message returns a delivery as an actor gets it.
func (w *world) message(d embedded.Delivery) actor.Message {
	if w.cfg.Queues == PortableQueues {
		d.Receives = math.MaxInt
	}
	return actor.Message{ID: fmt.Sprint(d.ID), Body: d.Body, Receipt: d.Receipt, Receives: d.Receives}
}

// receive polls a queue until a message is there or time is up.
func (p *proc) receive(id uint64, e actor.Receive, until time.Duration) {
	if p.Ended() {
		return
	}
	w := p.w
	if p.throttled(e) || p.suffers(Lost) {
		w.After(p.between(time.Millisecond, 30*time.Millisecond), func() { p.reply(actor.Reply{ID: id, Err: errInjected}) })
		return
	}
	got, err := w.queues.Receive(w.Wall(), e.Queue, 1+p.rng.IntN(e.Max))
	if err == nil && len(got) == 0 && w.Mono < until {
		w.After(p.between(100*time.Millisecond, 700*time.Millisecond), func() { p.receive(id, e, until) })
		return
	}
	if len(got) > 1 && p.suffers(MailReordered) {
		p.detail(MailReordered).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	}
	msgs := make([]actor.Message, len(got))
	for i, d := range got {
		w.bodies[d.Receipt] = d.Body
		msgs[i] = w.message(d)
	}
	if len(msgs) > 0 && p.suffers(MailHidden) {
		msgs, err = nil, errInjected
	}
	if len(msgs) > 0 && p.suffers(CrashReceived) {
		p.crash()
		return
	}
	w.After(p.between(time.Millisecond, 30*time.Millisecond), func() { p.reply(actor.Reply{ID: id, Value: msgs, Err: err}) })
}

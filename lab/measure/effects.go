package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/partition"
)

// issue carries out an effect at once, and delivers its reply after the time that it takes.
func (a *labActor) issue(is actor.Issue) {
	after := func(d time.Duration, v any, err error) { a.After(d, func() { a.Reply(is.ID, v, err) }) }
	switch e := is.Effect.(type) {
	case actor.Sleep:
		after(max(0, e.For), nil, nil)
	case actor.ExtendFetches: // no request here takes that long
		after(0, nil, nil)
	case actor.Fetch:
		a.fetch(is.ID, e.Request)
	case actor.CancelFetches:
		for _, id := range slices.Sorted(maps.Keys(a.fetching)) {
			o := actor.Aborted(a.fetching[id], a.Wall())
			delete(a.fetching, id)
			a.After(0, func() { a.Reply(id, o, nil) })
		}
		after(0, nil, nil)
	case actor.Receive:
		a.receive(is.ID, e)
	case actor.Send:
		after(queueTime, nil, a.send(e))
	case actor.Acknowledge:
		var err error
		for _, r := range e.Receipts {
			delete(a.received, r.(embedded.Receipt))
			err = errors.Join(err, a.queues.Ack(a.Wall(), e.Queue, r.(embedded.Receipt)))
		}
		a.queueCalls(make([][]byte, len(e.Receipts)))
		after(queueTime, nil, err)
	default:
		a.store(e, after)
	}
}

// store carries out an effect on objects or records, and counts the call.
func (a *labActor) store(effect actor.Effect, after func(d time.Duration, v any, err error)) {
	v, ok, err := a.Apply(effect)
	switch e := effect.(type) {
	case actor.Work:
		after(0, v, err)
	case actor.GetObject:
		data, _ := v.([]byte)
		a.ledger.BlobGet(len(data))
		after(getTime, v, err)
	case actor.PutObject:
		size := 0
		for _, part := range e.Parts {
			size += len(part)
		}
		a.ledger.BlobPut(size)
		if strings.HasPrefix(e.Name, naming.WARCPrefix(a.crawl.ID)) { // nothing reads them here
			delete(a.Objects, e.Name)
		}
		after(putTime, nil, err)
	case actor.DeleteObject:
		after(putTime, nil, err)
	case actor.ReadRecords:
		records := v.([]actor.Record)
		for _, r := range records {
			a.ledger.KVRead(len(r.Value))
		}
		a.learnt(e.Keys, records)
		after(tableTime, records, nil)
	case actor.WriteRecord:
		a.ledger.KVWrite(len(e.Value))
		if err == nil {
			a.taken(e)
		}
		after(tableTime, v, err)
	}
	if !ok {
		a.fail(fmt.Errorf("effect %T is unknown here", effect))
	}
}

// learnt records when a step reads that it must give slots.
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
				a.asleep[s] = stopped{epoch: mv.Epoch, at: a.Mono + tableTime}
			}
		}
	}
}

// taken records the pauses of the slots that a commit has received.
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
	r, err := blobschema.OpenCommit(a.Objects[h.Commit])
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
			if was, ok := a.asleep[s]; ok && m.Received && was.epoch == m.Epoch && !was.over {
				a.result.Pauses = append(a.result.Pauses, Pause{m.Epoch, a.Mono + tableTime - was.at})
				was.over = true
				a.asleep[s] = was
			}
		}
	}
}

// queueBatch is the largest number of messages in one call of a queue.
const queueBatch = 10

// queueCalls counts the calls of a queue that a number of messages takes.
func (l *lab) queueCalls(bodies [][]byte) {
	for batch := range slices.Chunk(bodies, queueBatch) {
		n := 0
		for _, b := range batch {
			n += len(b)
		}
		l.ledger.QueueRequest("", n)
	}
}

func (a *labActor) send(e actor.Send) error {
	a.queueCalls(e.Bodies)
	for _, body := range e.Bodies {
		if _, err := a.queues.Send(a.Wall(), e.Queue, body, nil, e.Delay); err != nil {
			return err
		}
		if strings.HasPrefix(e.Queue, mailboxPrefix) {
			if err := a.count(body); err != nil {
				return err
			}
		}
	}
	if e.Queue == naming.WakesQueue {
		a.After(e.Delay, a.wakes)
	}
	if p := a.waiting[e.Queue]; p != nil {
		a.After(queueTime, func() { a.hand(p, e.Queue) })
	}
	return nil
}

// mailboxPrefix is the common prefix of the names of all mailboxes.
var mailboxPrefix = strings.TrimRight(naming.MailboxQueue(0), "0")

// count counts mail from one partition to another.
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

// receive waits for messages until its time is up.
func (a *labActor) receive(id uint64, e actor.Receive) {
	p := &poll{a: a, id: id, max: e.Max}
	a.waiting[e.Queue] = p
	a.After(queueTime, func() { a.hand(p, e.Queue) })
	a.After(queueTime+e.Wait, func() {
		a.hand(p, e.Queue)
		p.answer(a.waiting, e.Queue, nil, nil)
	})
}

// giveBack makes the messages that an actor leaves behind visible again, as the engine does.
func (a *labActor) giveBack() {
	for r, queue := range a.received {
		if err := a.queues.Nack(a.Wall(), queue, r); err != nil {
			a.fail(err)
		}
	}
	a.queueCalls(make([][]byte, len(a.received)))
	clear(a.received)
}

// hand gives a receiver the available messages.
func (l *lab) hand(p *poll, queue string) {
	if p.done || p.a.Ended() {
		return
	}
	got, err := l.queues.Receive(l.Wall(), queue, p.max)
	if err == nil && len(got) == 0 {
		return
	}
	msgs := make([]actor.Message, len(got))
	for i, d := range got {
		p.a.received[d.Receipt] = queue
		msgs[i] = actor.Message{Body: d.Body, Receipt: d.Receipt, Receives: d.Receives}
	}
	p.answer(l.waiting, queue, msgs, err)
}

func (p *poll) answer(waiting map[string]*poll, queue string, msgs []actor.Message, err error) {
	if p.done {
		return
	}
	p.done = true
	bodies := make([][]byte, max(1, len(msgs))) // a call without messages counts too
	for i, m := range msgs {
		bodies[i] = m.Body
	}
	p.a.queueCalls(bodies)
	if waiting[queue] == p {
		delete(waiting, queue)
	}
	p.a.Reply(p.id, msgs, err)
}

// fetch requests a page of the generated web, which has no faults here and no names to resolve.
func (a *labActor) fetch(id uint64, req actor.Request) {
	url, started := req.URL.String(), a.Wall()
	if a.cfg.Asked != nil && !req.Robots {
		a.cfg.Asked(url, a.Mono-a.began)
	}
	resp := a.regionOf(req.URL).Web.Answer(simweb.Request{URL: url, Now: started})
	took := resp.Delay + resp.BodyTime + time.Millisecond
	if resp.Fault != simweb.FaultNone || req.Resolve {
		a.fail(fmt.Errorf("%s: the web of a measurement has no faults and no addresses", url))
		return
	}
	var over exchange
	if a.cfg.Server != nil {
		over = a.server(req.URL.Host()).ask(a.Mono, url)
		took = over.took
	}
	a.fetching[id] = req
	a.underWay(1)
	a.After(took, func() {
		over.end(a.Mono)
		a.underWay(-1)
		if _, ok := a.fetching[id]; !ok || a.Ended() {
			return // cancelled
		}
		delete(a.fetching, id)
		r := fetch.Response{
			Status: resp.Status, Proto: "HTTP/1.1", Body: resp.Body, Addr: "192.0.2.1", Started: started, Ended: a.Wall(),
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
		a.answered(&req, url, out.Wire)
		for i := range out.Links {
			a.find(out.Links[i].URL)
		}
		a.Reply(id, out, nil)
	})
}

// answered counts an answer.
func (a *labActor) answered(req *actor.Request, url string, bytes int64) {
	a.result.Requests++
	if req.Robots {
		return
	}
	a.result.Pages++
	if a.cfg.Answered != nil {
		a.cfg.Answered(a.Mono-a.began, req.URL)
	}
	a.sight.Pages[a.part]++
	a.sight.Regions[a.region(req.URL)]++
	a.sight.Bytes += bytes
	a.served(url)
	f := a.hash.Fingerprint(url)
	if _, ok := a.seen[f]; ok {
		a.result.Twice++
	}
	a.seen[f] = struct{}{}
}

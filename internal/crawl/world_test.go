package crawl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// What effects take here. Nothing else passes time, so every run is the same.
const (
	callTime  = 10 * time.Millisecond
	fetchTime = 100 * time.Millisecond
)

// world carries out the effects of actors, one actor after another: a table, objects and
// queues in maps, a web of functions, and a clock that jumps to the next reply. It checks
// what every executor may rely on: objects never change (I6), and mail is acknowledged
// only when a head names the commit with its effect (I5).
type world struct {
	t      *testing.T
	now    time.Duration
	table  map[string]actor.Record
	blobs  map[string][]byte
	queues map[string][]actor.Message
	web    func(actor.Request) *actor.Outcome

	memory   TickMemory
	revision int
	receipts int
	mail     map[actor.Receipt][]byte
	counts   map[string]int // effects, by kind
	written  []string       // keys of records, in order
	put      []string       // names of objects, in order
	wakes    []wakeSent     // by steps, ticks and intake
	// slow says how long a request takes; nil: each takes fetchTime.
	slow        func(actor.Request) time.Duration
	receiveTime time.Duration // least time that a receive takes
	// fault has an effect fail, before it took place or after; nil: none does.
	fault func(actor.Effect) (before, after error)
}

type wakeSent struct {
	p     partition.ID
	delay time.Duration
}

func newWorld(t *testing.T) *world {
	return &world{
		t: t, table: map[string]actor.Record{}, blobs: map[string][]byte{}, queues: map[string][]actor.Message{},
		mail: map[actor.Receipt][]byte{}, counts: map[string]int{},
	}
}

func (w *world) clocks() actor.Now { return actor.Now{Wall: epoch.Add(w.now), Mono: w.now} }

// pending is a reply that is due.
type pending struct {
	at    time.Duration
	issue actor.Issue
}

// run carries an actor to its end and returns the effects that took, by kind.
func (w *world) run(a actor.Actor) (map[string]int, error) {
	w.t.Helper()
	w.counts, w.written, w.put = map[string]int{}, nil, nil
	var due []pending
	add := func(issues []actor.Issue) {
		for _, is := range issues {
			w.counts[strings.TrimPrefix(fmt.Sprintf("%T", is.Effect), "actor.")]++
			due = append(due, pending{w.now + w.takes(is.Effect), is})
		}
	}
	add(a.Start(w.clocks()))
	for events := 0; ; events++ {
		if ended, err := a.Ended(); ended {
			return w.counts, err
		}
		if len(due) == 0 || events > 100_000 {
			w.t.Fatalf("the actor stands still or has no end: %d replies due, %v", len(due), w.counts)
		}
		next := 0
		for i := range due {
			if due[i].at < due[next].at { // of equals the one issued first
				next = i
			}
		}
		p := due[next]
		due = slices.Delete(due, next, next+1)
		w.now = p.at
		v, err := w.try(p.issue.Effect)
		add(a.Handle(w.clocks(), actor.Reply{ID: p.issue.ID, Value: v, Err: err}))
	}
}

// takes says when an effect is answered.
func (w *world) takes(e actor.Effect) time.Duration {
	switch e := e.(type) {
	case actor.Sleep:
		return max(0, e.For)
	case actor.Fetch:
		if w.slow != nil {
			return w.slow(e.Request)
		}
		return fetchTime
	case actor.Receive:
		if len(w.queues[e.Queue]) == 0 {
			return max(e.Wait, w.receiveTime)
		}
		return max(callTime, w.receiveTime)
	}
	return callTime
}

func (w *world) try(effect actor.Effect) (any, error) {
	var before, after error
	if w.fault != nil {
		before, after = w.fault(effect)
	}
	if before != nil {
		return nil, before
	}
	v, err := w.apply(effect)
	if err == nil && after != nil {
		return nil, after
	}
	return v, err
}

func (w *world) apply(effect actor.Effect) (any, error) {
	switch e := effect.(type) {
	case actor.Sleep, actor.CancelFetches, actor.ExtendFetches:
		return nil, nil
	case actor.Work:
		return e.Do()
	case actor.Fetch:
		o := w.web(e.Request)
		o.Started, o.Ended = epoch.Add(w.now-fetchTime), epoch.Add(w.now)
		return o, nil
	case actor.GetObject:
		b, ok := w.blobs[e.Name]
		if !ok {
			return nil, fmt.Errorf("%w: %s", actor.ErrNotFound, e.Name)
		}
		if e.Length < 0 {
			return b[e.Offset:], nil
		}
		b = b[min(e.Offset, int64(len(b))):]
		return b[:min(e.Length, int64(len(b)))], nil
	case actor.PutObject:
		data := bytes.Join(e.Parts, nil)
		if old, ok := w.blobs[e.Name]; ok && !bytes.Equal(old, data) {
			w.t.Errorf("I6: object %s would change", e.Name)
		}
		w.blobs[e.Name] = data
		w.put = append(w.put, e.Name)
		return nil, nil
	case actor.DeleteObject:
		delete(w.blobs, e.Name)
		return nil, nil
	case actor.ReadRecords:
		recs := make([]actor.Record, len(e.Keys))
		for i, k := range e.Keys {
			recs[i] = w.table[k]
		}
		return recs, nil
	case actor.WriteRecord:
		return w.write(e)
	case actor.Send:
		if e.Queue == naming.WakesQueue {
			for _, body := range e.Bodies {
				_, p, err := blobschema.DecodeWake(body)
				if err != nil {
					return nil, err
				}
				w.wakes = append(w.wakes, wakeSent{p, e.Delay})
			}
		}
		for _, body := range e.Bodies {
			w.receipts++
			w.queues[e.Queue] = append(w.queues[e.Queue], actor.Message{Body: body, Receipt: w.receipts, Receives: 1})
			w.mail[w.receipts] = body
		}
		return nil, nil
	case actor.Receive:
		got := w.queues[e.Queue]
		got = got[:min(e.Max, len(got))]
		w.queues[e.Queue] = w.queues[e.Queue][len(got):]
		return slices.Clone(got), nil
	case actor.Acknowledge:
		for _, r := range e.Receipts {
			w.acknowledge(e.Queue, r)
		}
		return nil, nil
	}
	return nil, fmt.Errorf("effect %T is unknown here", effect)
}

func (w *world) write(e actor.WriteRecord) (any, error) {
	old := w.table[e.Key]
	if e.Revision == nil && old.Found || e.Revision != nil && (!old.Found || old.Revision != e.Revision) {
		return nil, actor.ErrConflict
	}
	w.revision++
	w.table[e.Key] = actor.Record{Value: slices.Clone(e.Value), Revision: w.revision, Found: true}
	w.written = append(w.written, e.Key)
	return w.revision, nil
}

// acknowledge checks I5 as the receiver's head and its manifest show it.
func (w *world) acknowledge(queue string, r actor.Receipt) {
	m, err := blobschema.DecodeMail(w.mail[r])
	if err != nil {
		w.t.Errorf("acknowledged what is no mail: %v", err)
		return
	}
	if queue != naming.MailboxQueue(m.To) {
		w.t.Errorf("mail to %d acknowledged in %s", m.To, queue)
	}
	if m.Number > 0 { // else it is a nudge
		if applied := w.manifest(m.Crawl, m.To).Applied[m.From]; missing(applied, m.Number) {
			w.t.Errorf("I5: mail %d from %d is acknowledged, the head's commit has %+v", m.Number, m.From, applied)
		}
	}
	delete(w.mail, r)
}

func (w *world) head(crawl string, p partition.ID) (h blobschema.Head) {
	w.record(naming.HeadKey(crawl, p), &h)
	return h
}

func (w *world) record(key string, v any) {
	w.t.Helper()
	rec := w.table[key]
	if !rec.Found {
		w.t.Fatalf("there is no record %s", key)
	}
	if err := json.Unmarshal(rec.Value, v); err != nil {
		w.t.Fatalf("record %s: %v", key, err)
	}
}

// commits opens all that a partition's head makes visible, oldest first.
func (w *world) commits(crawl string, p partition.ID) (out []*blobschema.CommitReader) {
	w.t.Helper()
	man := w.manifest(crawl, p)
	for name := range blobschema.CommitNames(&man) {
		out = append(out, w.open(name))
	}
	return out
}

func (w *world) manifest(crawl string, p partition.ID) blobschema.Manifest {
	w.t.Helper()
	man, err := w.open(w.head(crawl, p).Commit).Manifest()
	if err != nil {
		w.t.Fatal(err)
	}
	return man
}

func (w *world) open(name string) *blobschema.CommitReader {
	w.t.Helper()
	c, err := blobschema.OpenCommit(w.blobs[name])
	if err != nil {
		w.t.Fatalf("open %q: %v", name, err)
	}
	return c
}

// visible are the URLs of the pages that the head shows, robots.txt apart, and how often.
func (w *world) visible(crawl string, p partition.ID) map[string]int {
	w.t.Helper()
	out := map[string]int{}
	for _, c := range w.commits(crawl, p) {
		pages, err := c.Pages()
		if err != nil {
			w.t.Fatal(err)
		}
		for _, pg := range pages {
			if !pg.Robots {
				out[pg.URL]++
			}
		}
	}
	return out
}

// begin creates a crawl and sends its seeds.
func (w *world) begin(want blobschema.Crawl, seeds ...string) blobschema.Crawl {
	w.t.Helper()
	b := NewBegin(want, Seeds(urls(w.t, seeds...)), nil)
	if _, err := w.run(b); err != nil {
		w.t.Fatal(err)
	}
	w.tick(want.ID)
	c, _, _ := b.Crawl()
	return c
}

func (w *world) tick(crawl string) (Report, map[string]int) {
	w.t.Helper()
	k := NewTick(TickConfig{Crawl: crawl}, &w.memory)
	counts, err := w.run(k)
	if err != nil {
		w.t.Fatal(err)
	}
	return k.Report(), counts
}

// step runs a step to its end.
func (w *world) step(cfg StepConfig, warm *Warm) (*Step, map[string]int) {
	w.t.Helper()
	s, err := NewStep(cfg, warm)
	if err != nil {
		w.t.Fatal(err)
	}
	counts, err := w.run(s)
	if err != nil && !errors.Is(err, ErrLeaseTaken) {
		w.t.Fatal(err)
	}
	return s, counts
}

// site is a web of pages 0 to n-1 on one host, each with the links that a function gives
// it. There is no robots.txt.
func site(t *testing.T, host string, n int, links func(i int) []string) func(actor.Request) *actor.Outcome {
	hits := map[string]int{}
	return func(req actor.Request) *actor.Outcome {
		url := req.URL.String()
		if hits[url]++; hits[url] > 1 {
			t.Errorf("%s was asked for again", url)
		}
		o := actor.Aborted(req, time.Time{})
		o.Temporary = false
		o.Page.Outcome, o.Page.Status, o.Page.Time = blobschema.OutcomeClientError, 404, epoch
		o.Response = fetchTime
		o.Record = []byte("a request, and a response that nobody reads here: " + url)
		o.ResponseAt, o.Page.Length = 10, int64(len(o.Record)-10)
		var i int
		if _, err := fmt.Sscanf(url, "https://"+host+"/%d", &i); err == nil && i < n {
			o.Page.Outcome, o.Page.Status = blobschema.OutcomeOK, 200
			for _, u := range urls(t, links(i)...) {
				o.Links = append(o.Links, actor.Link{URL: u})
			}
		}
		return o
	}
}

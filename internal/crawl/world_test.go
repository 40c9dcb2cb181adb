package crawl

import (
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
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/partition"
)

// These are the durations of effects. Nothing else passes time, so every run is the same.
const (
	callTime  = 10 * time.Millisecond
	fetchTime = 100 * time.Millisecond
)

// world carries out the effects of actors, one actor after another: table, objects and queues in maps, a web of functions,
// and a clock that jumps to the next reply. It checks what every executor guarantees: objects never change (I6), and mail
// is acknowledged only when a head names the commit with its effect (I5).
type world struct {
	virtual.Clock
	virtual.Store
	t      *testing.T
	queues map[string][]actor.Message
	web    func(actor.Request) *actor.Outcome

	memory   TickMemory
	receipts int
	mail     map[actor.Receipt][]byte
	counts   map[string]int // number of effects, by kind
	written  []string       // keys of records, in order
	put      []string       // names of objects, in order
	wakes    []wakeSent     // wakes sent by steps, runs and intake
	// slow returns the duration of a request; nil: fetchTime for each.
	slow        func(actor.Request) time.Duration
	receiveTime time.Duration // least time that a receive takes
	// fault makes an effect fail, before or after it is applied; nil: none fails.
	fault func(actor.Effect) (before, after error)
}

type wakeSent struct {
	p     partition.ID
	delay time.Duration
}

func newWorld(t *testing.T) *world {
	return &world{
		t: t, Store: virtual.NewStore(), queues: map[string][]actor.Message{},
		mail: map[actor.Receipt][]byte{}, counts: map[string]int{},
	}
}

// run runs an actor to its end and returns the number of its effects, by kind.
func (w *world) run(a actor.Actor) (map[string]int, error) {
	w.t.Helper()
	w.counts, w.written, w.put = map[string]int{}, nil, nil
	outer := w.Clock // another actor may be running
	w.Clock = virtual.Clock{Mono: w.Mono}
	defer func() {
		outer.Mono = w.Mono
		w.Clock = outer
	}()
	w.process(a).Start()
	for events := 0; ; events++ {
		if ended, err := a.Ended(); ended {
			return w.counts, err
		}
		if events > 100_000 || !w.Next() {
			w.t.Fatalf("the actor stands still or has no end: %v", w.counts)
		}
	}
}

// process returns a process whose effects take their time and are counted.
func (w *world) process(a actor.Actor) *virtual.Process {
	p := &virtual.Process{Actor: a, Now: w.Now}
	p.Carry = func(is actor.Issue) {
		w.counts[strings.TrimPrefix(fmt.Sprintf("%T", is.Effect), "actor.")]++
		w.After(w.takes(is.Effect), func() {
			v, err := w.try(is.Effect)
			p.Reply(is.ID, v, err)
		})
	}
	return p
}

// takes returns the duration of an effect.
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
	case actor.Fetch:
		o := w.web(e.Request)
		o.Started, o.Ended = virtual.Epoch.Add(w.Mono-fetchTime), virtual.Epoch.Add(w.Mono)
		return o, nil
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
	v, ok, err := w.Apply(effect)
	switch e := effect.(type) {
	case actor.PutObject:
		w.put = append(w.put, e.Name)
	case actor.WriteRecord:
		if err == nil {
			w.written = append(w.written, e.Key)
		}
	}
	switch {
	case !ok:
		return nil, fmt.Errorf("effect %T is unknown here", effect)
	case errors.Is(err, virtual.ErrChanged):
		w.t.Error(err)
	}
	return v, err
}

// acknowledge checks I5 by the receiver's head and its manifest.
func (w *world) acknowledge(queue string, r actor.Receipt) {
	m, err := blobschema.DecodeMail(w.mail[r])
	if err != nil {
		w.t.Errorf("acknowledged a message that is not mail: %v", err)
		return
	}
	if queue != naming.MailboxQueue(m.To) {
		w.t.Errorf("mail to %d acknowledged in %s", m.To, queue)
	}
	if m.Number > 0 { // a nudge has no number
		if applied := w.manifest(m.Crawl, m.To).Applied[m.From]; !applied.Has(m.Number) {
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
	rec := w.Table[key]
	if !rec.Found {
		w.t.Fatalf("there is no record %s", key)
	}
	if err := json.Unmarshal(rec.Value, v); err != nil {
		w.t.Fatalf("record %s: %v", key, err)
	}
}

// commits opens the commits that a partition's head makes visible, oldest first.
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
	c, err := blobschema.OpenCommit(w.Objects[name])
	if err != nil {
		w.t.Fatalf("open %q: %v", name, err)
	}
	return c
}

// visible returns the URLs of the pages that the head shows and how often, without robots.txt.
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

// site is a web of pages 0 to n-1 on one host, each with the links that a function returns. It has no robots.txt.
func site(t *testing.T, host string, n int, links func(i int) []string) func(actor.Request) *actor.Outcome {
	hits := map[string]int{}
	return func(req actor.Request) *actor.Outcome {
		url := req.URL.String()
		if hits[url]++; hits[url] > 1 {
			t.Errorf("%s was requested again", url)
		}
		o := actor.Aborted(req, time.Time{})
		o.Temporary = false
		o.Page.Outcome, o.Page.Status, o.Page.Time = blobschema.OutcomeClientError, 404, virtual.Epoch
		o.Response = fetchTime
		o.Record = []byte("a request, and a response that is not read here: " + url)
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

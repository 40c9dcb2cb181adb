package crawl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// clone returns a copy of the world.
func (w *world) clone() *world {
	c := *w
	c.Store, c.mail, c.queues = w.Clone(), maps.Clone(w.mail), map[string][]actor.Message{}
	for name, q := range w.queues {
		c.queues[name] = slices.Clone(q)
	}
	c.fault = nil
	return &c
}

// failing runs actors in copies of w, each with one operation that always fails, and passes on the result.
func (w *world) failing(begin func(*world) actor.Actor, then func(w *world, op string, err error)) {
	w.t.Helper()
	probe := w.clone()
	for _, op := range probe.operations(begin(probe)) {
		try := w.clone()
		try.fault = unable(op)
		a := begin(try)
		_, err := try.run(a)
		a.Drop()
		then(try, op, err)
	}
}

// troubled is a partition with everything that a step may have to read: buffered links and unsent mail of a crashed step,
// state in several runs, new seeds, slots that arrive and leave, and requests.
func troubled(t *testing.T) (*world, StepConfig) {
	c, w := newCrawl(2), newWorld(t)
	c.Settings.Scope = blobschema.ScopeHost
	here, there := ofPartition(t, c, 0), ofPartition(t, c, 1)
	var links []string
	for i := range 30 {
		links = append(links, fmt.Sprintf("https://%s/%d", here, i), fmt.Sprintf("https://%s/%d", there, i), fmt.Sprintf("https://late.%s/%d", there, i))
	}
	deadly := here + "/25"
	w.web = func(r actor.Request) *actor.Outcome {
		if strings.HasSuffix(r.URL.String(), deadly) {
			panic(dies{})
		}
		return site(t, string(r.URL.Host()), 30, func(i int) []string { return links[3*i : min(3*i+12, len(links))] })(r)
	}
	c = w.begin(c, "https://"+here+"/0", "https://"+there+"/0")
	cfg := StepConfig{Crawl: c, Process: "p", CommitPages: 4, MailEvery: 16 * time.Second, MergeFanIn: 100}
	w.fault = func(e actor.Effect) (before, after error) {
		if s, ok := e.(actor.Send); ok && s.Queue == naming.MailboxQueue(1) {
			return errLost, nil
		}
		return nil, nil
	}
	if w.live(stepOf(t, cfg, nil)) {
		t.Fatal("it did not crash")
	}
	w.fault, deadly = nil, "nothing more"
	other := StepConfig{Crawl: c, Partition: 1, Process: "p"}
	w.step(other, nil)
	if _, err := w.run(NewBegin(blobschema.Crawl{}, Seeds(urls(t, "https://late."+there+"/0")), nil)); err != nil {
		t.Fatal(err)
	}
	w.tick(c.ID)
	hash := hashOf(t, cfg.Crawl)
	w.give(c.ID, 0, hash.Slot(there))
	w.step(other, nil)
	w.request(c.ID, blobschema.Request{ID: "r", Recrawl: []string{"https://" + here + "/3", "https://" + there + "/0"}})
	w.record(naming.CrawlKey(c.ID), &cfg.Crawl)
	man := w.manifest(c.ID, 0)
	if len(man.Unsent) == 0 || len(man.BufferedFrom) == 0 || len(man.Runs) < 4 || len(w.queues[naming.MailboxQueue(0)]) == 0 {
		t.Fatalf("nothing is troubled: unsent %v, held from %v, %d runs", man.Unsent, man.BufferedFrom, len(man.Runs))
	}
	cfg.Deadline, cfg.MergeFanIn = 12*time.Second, 3
	return w, cfg
}

// TestReadsThatFail checks that a step that cannot read what it needs ends with an error that says what. Nothing is lost,
// and the next step continues.
func TestReadsThatFail(t *testing.T) {
	w, cfg := troubled(t)
	before := w.visible(cfg.Crawl.ID, 0)
	fails := 0
	w.failing(func(w *world) actor.Actor { return stepOf(t, cfg, nil) }, func(w *world, op string, err error) {
		kind, name, _ := strings.Cut(op, " ")
		if kind != "get" && kind != "read" {
			return
		}
		if fails++; err == nil && strings.Contains(name, "00001") {
			return // slots from other partitions can wait while there is other work
		}
		if !errors.Is(err, errLost) || !strings.Contains(err.Error(), strings.Fields(name)[0]) {
			t.Errorf("%s: %v", op, err)
		}
		w.fault = nil
		w.Mono += 3 * time.Minute
		w.redeliver()
		w.step(cfg, nil)
		after := w.visible(cfg.Crawl.ID, 0)
		for url, n := range after {
			if again := strings.HasSuffix(url, "/3") || strings.HasSuffix(url, "/0"); n > 1 && !again {
				t.Errorf("%s: %d records of %s", op, n, url)
			}
		}
		for url := range before {
			if after[url] == 0 {
				t.Errorf("%s: %s is lost", op, url)
			}
		}
	})
	if fails < 15 {
		t.Errorf("only %d targets", fails)
	}
}

// TestDamage checks that a damaged record or object ends the step that reads it with an error.
func TestDamage(t *testing.T) {
	w, cfg := troubled(t)
	var names []string
	probe := w.clone()
	probe.fault = func(e actor.Effect) (before, after error) {
		if kind, name, _ := strings.Cut(operation(e), " "); kind == "get" || kind == "read" {
			for _, n := range strings.Fields(name) {
				if (w.Objects[n] != nil || w.Table[n].Found) && !slices.Contains(names, n) {
					names = append(names, n)
				}
			}
		}
		return nil, nil
	}
	probe.step(cfg, nil)
	for _, name := range names {
		for style, damage := range map[string]func([]byte) []byte{
			"cut off": func(b []byte) []byte { return b[:len(b)/2] },
			"altered": func(b []byte) []byte {
				for i := range b[:len(b)/2] {
					b[i] ^= 0x55
				}
				return b
			},
		} {
			try := w.clone()
			if rec := try.Table[name]; rec.Found {
				rec.Value = damage(slices.Clone(rec.Value))
				try.Table[name] = rec
			} else {
				try.Objects[name] = damage(slices.Clone(try.Objects[name]))
			}
			s := stepOf(t, cfg, nil)
			if _, err := try.run(s); err == nil && (style == "altered" || !strings.Contains(name, "/p00001/")) { // only the front of it is needed
				t.Errorf("%s is %s, and no error reports it", name, style)
			}
			s.Drop()
		}
	}
}

// TestIntakeFails checks that intake ends with an error if it cannot read or write something, so that the messages come
// again.
func TestIntakeFails(t *testing.T) {
	w := newWorld(t)
	w.begin(newCrawl(2), "https://www.example/")
	msgs := append(w.lists(1, 20, "https://www%d.example/%d"), actor.Message{ID: "m", Body: []byte(`{"recrawl":["https://www.example/1","no"]}`)})
	w.Objects["lists/recrawl/long"] = []byte(strings.Repeat("https://www.example/\n", blobschema.MaxListURLs+1))
	w.Objects["lists/recrawl/large"] = make([]byte, blobschema.MaxListBytes+1)
	notify := func(bucket, name string, size int) actor.Message {
		return actor.Message{Body: fmt.Appendf(nil, `{"Records":[{"eventSource":"aws:s3","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":%q},"object":{"key":%q,"size":%d,"sequencer":"1"}}}]}`, bucket, name, size)}
	}
	for _, k := range []struct {
		msgs    []actor.Message
		targets int // least number of operations
	}{
		{msgs, 8},
		{[]actor.Message{{Body: []byte("{")}}, 3},
		{[]actor.Message{{Body: []byte(`{"crawl":"other","recrawl":["https://www.example/"]}`)}}, 3},
		{[]actor.Message{notify("c", "lists/recrawl/long", 9)}, 3},
		{[]actor.Message{notify("b", "elsewhere/long", 9)}, 3},
		{[]actor.Message{notify("b", "lists/recrawl/huge", 1<<30)}, 3},
		{[]actor.Message{notify("b", "lists/recrawl/gone", 9)}, 4},
		{[]actor.Message{notify("b", "lists/recrawl/large", 9)}, 4},
		{[]actor.Message{notify("b", "lists/recrawl/long", 9)}, 4},
	} {
		n := 0
		w.failing(func(*world) actor.Actor { return NewIntake(IntakeConfig{Crawl: "test", Bucket: "b"}, k.msgs) }, func(_ *world, op string, err error) {
			if n++; !errors.Is(err, errLost) {
				t.Errorf("%s: %s failed: %v", k.msgs[0].Body, op, err)
			}
		})
		if n < k.targets {
			t.Errorf("%s: only %d targets", k.msgs[0].Body, n)
		}
	}
	for _, key := range []string{naming.CrawlKey("test"), naming.MapKey("test"), naming.RequestsKey("test")} {
		try := w.clone()
		try.Table[key] = actor.Record{Found: true, Value: []byte("{"), Revision: -1}
		if _, err := try.run(NewIntake(IntakeConfig{Crawl: "test", Bucket: "b"}, msgs)); err == nil {
			t.Errorf("%s is damaged, and no error reports it", key)
		}
	}
	if _, err := w.run(NewIntake(IntakeConfig{Crawl: "none"}, msgs)); err == nil {
		t.Error("requests for no crawl")
	}
}

// TestIntakeCrashes checks that each URL is requested once, wherever intake dies and whatever the map is when the messages
// come again.
func TestIntakeCrashes(t *testing.T) {
	for _, moves := range []bool{false, true} {
		c, w := newCrawl(2), newWorld(t)
		requests := w.serve(nil)
		c = w.begin(c, "https://www.example/")
		cfg := StepConfig{Crawl: c, Process: "p"}
		w.crawlOn(cfg)
		var list []string
		for p := range partition.ID(2) {
			list = append(list, "https://"+ofPartition(t, c, p)+"/new")
		}
		body, err := blobschema.EncodeRequest(blobschema.Request{ID: "r", Recrawl: append(list, "no URL")})
		if err != nil {
			t.Fatal(err)
		}
		intake := func() *Intake {
			return NewIntake(IntakeConfig{Crawl: c.ID}, []actor.Message{{ID: "m", Body: body}})
		}
		for at := 1; ; at++ {
			*requests = nil
			try := w.clone()
			try.web = w.web
			effects := 0
			try.fault = func(e actor.Effect) (before, after error) {
				if effects++; effects == at {
					panic(dies{})
				}
				return nil, nil
			}
			ended := try.live(intake())
			try.fault = nil
			if moves {
				h := hashOf(t, cfg.Crawl)
				try.give(c.ID, 1, h.Slot(ofPartition(t, c, 0)))
				try.crawlOn(cfg)
			}
			if !ended && !try.live(intake()) {
				t.Fatal("it dies again")
			}
			try.crawlOn(cfg)
			got := depths(*requests)
			if n := len(*requests); len(got) != 2 || n > 4 {
				t.Errorf("moves %v, death at effect %d: %d requests: %v", moves, at, n, got)
			}
			if r := try.requests(); len(r.Outbox) > 0 || r.Dead == 0 {
				t.Errorf("moves %v, death at effect %d: %+v is left", moves, at, r)
			}
			if ended {
				break
			}
		}
	}
}

// TestLimitFails checks that a step ends with an error if it cannot read or change the grants, or write anything.
func TestLimitFails(t *testing.T) {
	c, w := newCrawl(1), newWorld(t)
	c.Settings.MaxPages, c.Settings.RecrawlPerHour = 100, 1
	w.serve(answers{"https://www.example/": func(*actor.Outcome) {}})
	c = w.begin(c, "https://www.example/")
	n := 0
	w.failing(func(*world) actor.Actor {
		return stepOf(t, StepConfig{Crawl: c, Process: "p", Deadline: time.Minute}, nil)
	}, func(_ *world, op string, err error) {
		if n++; !errors.Is(err, errLost) {
			t.Errorf("%s failed: %v", op, err)
		}
	})
	if n < 7 {
		t.Errorf("only %d targets", n)
	}
}

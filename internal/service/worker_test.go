package service

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// TestShareTellsEachCallOnce checks that concurrent steps count each call of a shared ledger once.
func TestShareTellsEachCallOnce(t *testing.T) {
	led := &ledger.Ledger{}
	s := &share{ledger: led}
	a, b := s.spent(), s.spent()
	led.BlobGet(1)
	if got := a().BlobGets; got != 1 {
		t.Errorf("the first one got %d calls", got)
	}
	led.BlobGet(1)
	if got := b().BlobGets; got != 1 {
		t.Errorf("the second one got %d calls", got)
	}
	led.BlobPut(5)
	if got := a(); got.BlobGets != 1 || got.BlobPuts != 1 || got.BlobPutBytes != 5 {
		t.Errorf("the first one got %+v", got)
	}
	if got := b().BlobPuts; got != 0 {
		t.Errorf("the second one got %d puts of the first", got)
	}
}

// sharedQueue delivers each message to one receiver, until it is released.
type sharedQueue struct {
	mu           sync.Mutex
	bodies       [][]byte // nil where a message was deleted
	hidden       []bool
	acknowledged int
}

func (q *sharedQueue) Send(_ context.Context, bodies [][]byte, _ time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range bodies {
		q.bodies, q.hidden = append(q.bodies, b), append(q.hidden, false)
	}
	return nil
}

func (q *sharedQueue) Receive(ctx context.Context, limit int, _ time.Duration) (out []platform.Delivery, _ error) {
	sleep(ctx, time.Millisecond)
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, b := range q.bodies {
		if len(out) < limit && b != nil && !q.hidden[i] {
			q.hidden[i] = true
			out = append(out, platform.Delivery{Body: b, Receives: 1, Receipt: i})
		}
	}
	return out, nil
}

func (q *sharedQueue) Acknowledge(_ context.Context, receipts []platform.Receipt) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range receipts {
		q.bodies[r.(int)] = nil
		q.acknowledged++
	}
	return nil
}

func (q *sharedQueue) Release(_ context.Context, receipts []platform.Receipt) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range receipts {
		q.hidden[r.(int)] = false
	}
	return nil
}

func (q *sharedQueue) Close(context.Context) error { return nil }

// waiting returns the number of messages that can be received.
func (q *sharedQueue) waiting() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, b := range q.bodies {
		if b != nil && !q.hidden[i] {
			n++
		}
	}
	return n
}

// shared returns a platform that several processes may share, and its queue of wakes.
func shared(t *testing.T) (*platform.Platform, *sharedQueue) {
	t.Helper()
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	queues := map[string]*sharedQueue{naming.WakesQueue: {}}
	var mu sync.Mutex
	p.Exclusive = false
	p.Queue = func(name string) (platform.Queue, error) {
		mu.Lock()
		defer mu.Unlock()
		if queues[name] == nil {
			queues[name] = &sharedQueue{}
		}
		return queues[name], nil
	}
	return p, queues[naming.WakesQueue]
}

// start begins a crawl of a host that cannot be requested.
func start(t *testing.T, p *platform.Platform, id string) blobschema.Crawl {
	t.Helper()
	e, err := New(p, Config{})
	if err != nil {
		t.Fatal(err)
	}
	u, err := weburl.Parse("http://127.0.0.1:1/")
	if err != nil {
		t.Fatal(err)
	}
	want := blobschema.Crawl{ID: id, HashKey: make([]byte, 16), Slots: 16, Partitions: 3, Settings: blobschema.Settings{UserAgent: "test"}}
	if _, err := e.Open(); err == nil {
		c, err := e.BeginAnother(t.Context(), want, crawl.Seeds([]weburl.URL{u}))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c, _, _, err := e.Begin(want, crawl.Seeds([]weburl.URL{u}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWakes checks the handling of each kind of wake.
func TestWakes(t *testing.T) {
	p, wakes := shared(t)
	c := start(t, p, "first")
	var log bytes.Buffer
	w, err := NewWorker(p, WorkConfig{Config: Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, Steps: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.newSession(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	s.end = end
	next := func(body string) bool {
		t.Helper()
		if err := wakes.Send(ctx, [][]byte{[]byte(body)}, 0); err != nil {
			t.Fatal(err)
		}
		m, ok := s.nextWake(ctx)
		if !ok || string(m.Body) != body {
			t.Fatalf("received %q, %v", m.Body, ok)
		}
		return s.begin(ctx, m)
	}
	for i, body := range []string{
		"not a wake",
		string(blobschema.EncodeWake("another", 1)),
		string(blobschema.EncodeWake("first", partition.MaxPartitions)), // no such partition
	} {
		if next(body) || wakes.acknowledged != i+1 {
			t.Errorf("%q: a step, or not acknowledged", body)
		}
	}
	if !strings.Contains(log.String(), "cannot be read is dropped") {
		t.Errorf("log: %s", &log)
	}
	// A wake for a partition with a running step here is sent again when that step ends.
	s.room <- struct{}{}
	if !next(string(blobschema.EncodeWake("first", 1))) || next(string(blobschema.EncodeWake("first", 1))) || wakes.acknowledged != 5 {
		t.Error("the second wake of a partition starts another step, or is not acknowledged")
	}
	s.steps.Wait()
	if n := wakes.waiting(); n != 1 {
		t.Errorf("%d wakes wait", n)
	}
	m, _ := s.nextWake(ctx)
	s.Acknowledge(ctx, naming.WakesQueue, []actor.Message{m})
	// A wake of a newer crawl is released, and ends the session.
	e, err := New(p, Config{})
	if err != nil {
		t.Fatal(err)
	}
	e.Use(c)
	if _, err := e.Command(crawl.OrderStop); err != nil {
		t.Fatal(err)
	}
	start(t, p, "second")
	if next(string(blobschema.EncodeWake("second", 0))) || context.Cause(ctx) != errChanged || wakes.waiting() != 1 {
		t.Errorf("a wake of another crawl: %v, %d wakes wait", context.Cause(ctx), wakes.waiting())
	}
	if _, ok := s.nextWake(ctx); ok {
		t.Error("a wake after the end")
	}
}

// TestWarm checks that a worker keeps the states of as many partitions as it may run steps, the newest ones.
func TestWarm(t *testing.T) {
	p, _ := shared(t)
	w, err := NewWorker(p, WorkConfig{Steps: 2})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.newSession(start(t, p, "crawl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []partition.ID{1, 2, 1, 3, 1} {
		s.keepWarm(part, &crawl.Warm{}, 2)
	}
	s.keepWarm(2, nil, 2)
	if len(s.warm) != 2 || s.warm[1] == nil || s.warm[3] == nil || !slices.Equal(s.warmed, []partition.ID{3, 1}) {
		t.Errorf("%v, in the order %v", s.warm, s.warmed)
	}
}

// TestWorkersCounted checks that each process ticks less often if more processes hold leases.
func TestWorkersCounted(t *testing.T) {
	s := &session{Service: &Service{Engine: &engine.Engine{Process: "me"}}}
	soon, past := time.Now().Add(time.Minute), time.Now().Add(-time.Minute)
	rep := crawl.Report{Heads: []blobschema.Head{
		{Owner: "me/1", LeaseUntil: soon}, {Owner: "a/1", LeaseUntil: soon}, {Owner: "a/2", LeaseUntil: soon}, {Owner: "b/1", LeaseUntil: past}, {},
	}}
	if n := s.workers(&rep); n != 2 {
		t.Errorf("%d workers", n)
	}
	if n := s.workers(&crawl.Report{}); n != 1 {
		t.Errorf("%d workers of an idle crawl", n)
	}
}

func TestNewWorkerRefuses(t *testing.T) {
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := NewWorker(p, WorkConfig{}); err == nil || !strings.Contains(err.Error(), "single owner") {
		t.Errorf("an exclusive platform: %v", err)
	}
	p.Exclusive = false
	if _, err := NewWorker(p, WorkConfig{StepsOnly: true, UntilOver: true}); err == nil {
		t.Error("a worker that would never learn of the end")
	}
}

// TestFailedWorker checks that a worker that cannot store objects logs this and still ends. Another worker gets
// its partition when the lease ends.
func TestFailedWorker(t *testing.T) {
	p, _ := shared(t)
	start(t, p, "crawl")
	var log bytes.Buffer
	cfg := WorkConfig{
		Config:    Config{Step: crawl.StepConfig{Lease: 2 * time.Second, Margin: 200 * time.Millisecond, Linger: 50 * time.Millisecond}},
		TickEvery: 100 * time.Millisecond, UntilOver: true,
	}
	broken := *p
	broken.Put = func(context.Context, string, [][]byte) error { return errors.New("the disk is full") }
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	w, err := NewWorker(&broken, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	go func() { // once it has begun a step
		for len(w.Snapshot().AtWork) == 0 && sleep(ctx, time.Millisecond) {
		}
		sleep(ctx, 200*time.Millisecond)
		leave()
	}()
	if err := w.Run(ctx); err != nil {
		t.Error(err)
	}
	if did := w.Snapshot(); did.Failed == 0 || did.Pages > 0 || !strings.Contains(log.String(), "the disk is full") {
		t.Errorf("%+v, log %s", did.Worked, &log)
	}
	cfg.Log = nil
	if w, err = NewWorker(p, cfg); err != nil {
		t.Fatal(err)
	}
	limit, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := w.Run(limit); err != nil || limit.Err() != nil {
		t.Errorf("%v, %v", err, limit.Err())
	}
	e, err := New(p, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Open(); err != nil {
		t.Fatal(err)
	}
	rep, err := e.Tick()
	if err != nil || !rep.Finished || w.Snapshot().Steps == 0 || w.Snapshot().Failed > 0 {
		t.Errorf("%v, finished %v, %+v", err, rep.Finished, w.Snapshot().Worked)
	}
}

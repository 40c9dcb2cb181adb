package embedded

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

// at returns the time s seconds into the test.
func at(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }

func newQueues(t *testing.T, visibility time.Duration) *Queues {
	t.Helper()
	q := NewQueues(nil)
	if err := q.Create("q", visibility); err != nil {
		t.Fatal(err)
	}
	return q
}

func send(t *testing.T, q *Queues, now time.Time, name, body string, delay time.Duration) uint64 {
	t.Helper()
	id, err := q.Send(now, name, []byte(body), nil, delay)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func receive(t *testing.T, q *Queues, now time.Time, name string, n int) []Delivery {
	t.Helper()
	ds, err := q.Receive(now, name, n)
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

func bodies(ds []Delivery) []string {
	var out []string
	for _, d := range ds {
		out = append(out, fmt.Sprintf("%s/%d", d.Body, d.Receives))
	}
	return out
}

func wantBodies(t *testing.T, got []Delivery, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, bodies(got)); diff != "" {
		t.Fatalf("deliveries (-want +got):\n%s", diff)
	}
}

func wantDepth(t *testing.T, q *Queues, now time.Time, name string, want ...int) {
	t.Helper()
	v, f, d, err := q.Depth(now, name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, []int{v, f, d}); diff != "" {
		t.Fatalf("depth of %s (-want +got):\n%s", name, diff)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDeliveryIsWhole(t *testing.T) {
	q := newQueues(t, 30*time.Second)
	body, attrs := []byte("body"), map[string]string{"b": "2", "a": "1", "": ""}
	id, err := q.Send(at(1), "q", body, attrs, 0)
	ok(t, err)
	body[0], attrs["a"] = 'X', "X" // the sender may change its slices
	want := Delivery{ID: id, Receipt: 1, Body: []byte("body"), Attrs: map[string]string{"b": "2", "a": "1", "": ""}, Receives: 1}
	got := receive(t, q, at(2), "q", 1)
	if diff := cmp.Diff([]Delivery{want}, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	got[0].Body[0], got[0].Attrs["a"] = 'Y', "Y" // and so may the receiver
	want.Receipt, want.Receives = 2, 2
	if diff := cmp.Diff([]Delivery{want}, receive(t, q, at(60), "q", 1)); diff != "" {
		t.Fatalf("again (-want +got):\n%s", diff)
	}
}

func TestVisibility(t *testing.T) {
	q := newQueues(t, 10*time.Second)
	for _, b := range []string{"a", "b", "c"} {
		send(t, q, at(0), "q", b, 0)
	}
	wantBodies(t, receive(t, q, at(0), "q", 2), "a/1", "b/1")
	wantDepth(t, q, at(0), "q", 1, 2, 0)
	wantBodies(t, receive(t, q, at(5), "q", 2), "c/1")
	if next, has := q.NextVisible("q"); !has || !next.Equal(at(10)) {
		t.Fatalf("next visible at %v, %v", next, has)
	}
	wantBodies(t, receive(t, q, at(9.999), "q", 9))
	wantBodies(t, receive(t, q, at(10), "q", 9), "a/2", "b/2")
	wantBodies(t, receive(t, q, at(15), "q", 9), "c/2")
}

func TestDelay(t *testing.T) {
	q := newQueues(t, 30*time.Second)
	send(t, q, at(0), "q", "late", 20*time.Second)
	send(t, q, at(0), "q", "soon", 10*time.Second)
	wantDepth(t, q, at(9), "q", 0, 0, 2)
	wantBodies(t, receive(t, q, at(9), "q", 9))
	if next, _ := q.NextVisible("q"); !next.Equal(at(10)) {
		t.Fatalf("next visible at %v", next)
	}
	wantBodies(t, receive(t, q, at(10), "q", 9), "soon/1")
	wantDepth(t, q, at(10), "q", 0, 1, 1)
	wantBodies(t, receive(t, q, at(20), "q", 9), "late/1")
}

func TestAck(t *testing.T) {
	q := newQueues(t, 10*time.Second)
	send(t, q, at(0), "q", "a", 0)
	first := receive(t, q, at(0), "q", 1)[0].Receipt
	second := receive(t, q, at(10), "q", 1)[0].Receipt

	ok(t, q.Ack(at(11), "q", first)) // stale: delivered again since
	wantDepth(t, q, at(11), "q", 0, 1, 0)
	wantDepth(t, q, at(20), "q", 1, 0, 0)
	ok(t, q.Ack(at(21), "q", second)) // late, but nobody else has it
	wantDepth(t, q, at(21), "q", 0, 0, 0)
	ok(t, q.Ack(at(22), "q", second)) // twice
	ok(t, q.Ack(at(22), "q", 999))    // never given
	wantBodies(t, receive(t, q, at(99), "q", 9))
	if _, has := q.NextVisible("q"); has {
		t.Fatal("something left")
	}
}

func TestNack(t *testing.T) {
	q := newQueues(t, 30*time.Second)
	send(t, q, at(0), "q", "a", 0)
	r := receive(t, q, at(0), "q", 1)[0].Receipt
	wantBodies(t, receive(t, q, at(29), "q", 1))
	ok(t, q.Nack(at(29), "q", r))
	ds := receive(t, q, at(29), "q", 1)
	wantBodies(t, ds, "a/2")
	ok(t, q.Nack(at(29), "q", r)) // stale: does not take it from the other
	wantDepth(t, q, at(29), "q", 0, 1, 0)
	ok(t, q.Nack(at(30), "q", ds[0].Receipt))
	ok(t, q.Nack(at(30), "q", ds[0].Receipt))
	wantBodies(t, receive(t, q, at(30), "q", 9), "a/3")
}

func TestEndVisibility(t *testing.T) {
	q := newQueues(t, time.Hour)
	send(t, q, at(0), "q", "a", 0)
	send(t, q, at(0), "q", "b", time.Hour)
	r := receive(t, q, at(0), "q", 1)[0].Receipt
	q.EndVisibility()
	ok(t, q.Ack(at(1), "q", r)) // of before: void
	wantDepth(t, q, at(1), "q", 1, 0, 1)
	wantBodies(t, receive(t, q, at(1), "q", 9), "a/2")
}

func TestCreate(t *testing.T) {
	log := NewLog()
	q := NewQueues(log)
	ok(t, q.Create("q", time.Hour))
	ok(t, q.Create("d", time.Second))
	if diff := cmp.Diff([]string{"d", "q"}, q.Names()); diff != "" {
		t.Fatal(diff)
	}
	log.Drain()
	ok(t, q.Create("q", time.Hour))
	if log.Len() != 0 {
		t.Fatal("the same again was recorded")
	}
	send(t, q, at(0), "q", "kept", 0)
	ok(t, q.Create("q", time.Minute))
	wantBodies(t, receive(t, q, at(0), "q", 1), "kept/1")
	wantBodies(t, receive(t, q, at(60), "q", 1), "kept/2")
	for name, err := range map[string]error{
		"receive": second(q.Receive(at(0), "none", 1)), "send": second(q.Send(at(0), "none", nil, nil, 0)),
		"ack": q.Ack(at(0), "none", 1), "nack": q.Nack(at(0), "none", 1),
	} {
		if !errors.Is(err, ErrNoQueue) {
			t.Errorf("%s of no queue: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// disk is what a driver makes durable.
type disk map[Bucket]map[string]string

func newDisk() disk { return disk{} }

func (d disk) apply(ms []Mutation) {
	for _, m := range ms {
		if d[m.Bucket] == nil {
			d[m.Bucket] = map[string]string{}
		}
		if m.Value == nil {
			delete(d[m.Bucket], string(m.Key))
		} else {
			d[m.Bucket][string(m.Key)] = string(m.Value)
		}
	}
}

func (d disk) load(t *testing.T, log *Log) (*Queues, *Table) {
	t.Helper()
	q, tb := NewQueues(log), NewTable(log)
	for _, b := range Buckets() {
		for _, k := range slices.Sorted(maps.Keys(d[b])) {
			if err := Load(q, tb, Mutation{b, []byte(k), []byte(d[b][k])}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return q, tb
}

// TestQueuesAgainstModel makes random calls and crashes with Queues and a trivial model. After each step it
// checks that every message is where the model says, so that a crash loses and repeats nothing.
func TestQueuesAgainstModel(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runQueueModel(t, seed) })
	}
}

type modelMessage struct {
	receives int
	until    time.Time
	receipt  Receipt
	inFlight bool
}

func runQueueModel(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	log, d := NewLog(), newDisk()
	q := NewQueues(log)
	const visibility = 10 * time.Second
	ok(t, q.Create("q", visibility))
	model := map[uint64]*modelMessage{}
	var receipts []Receipt
	now := epoch
	settle := func() { settleModel(model, now) }
	for range 400 {
		settle()
		switch rng.IntN(8) {
		case 0, 1:
			delay := time.Duration(rng.IntN(3)-1) * 7 * time.Second
			id := send(t, q, now, "q", "m", delay)
			model[id] = &modelMessage{until: now.Add(delay)}
		case 2, 3:
			for _, dl := range receive(t, q, now, "q", 1+rng.IntN(4)) {
				m := model[dl.ID]
				if m == nil || m.until.After(now) {
					t.Fatalf("delivered %d, which the model has as %+v", dl.ID, m)
				}
				m.receives++
				if dl.Receives != m.receives {
					t.Fatalf("message %d: delivery %d, model %d", dl.ID, dl.Receives, m.receives)
				}
				m.until, m.receipt, m.inFlight = now.Add(visibility), dl.Receipt, true
				receipts = append(receipts, dl.Receipt)
			}
		case 4, 5:
			if len(receipts) == 0 {
				continue
			}
			r := receipts[rng.IntN(len(receipts))]
			nack := rng.IntN(3) == 0
			if nack {
				ok(t, q.Nack(now, "q", r))
			} else {
				ok(t, q.Ack(now, "q", r))
			}
			for id, m := range model {
				if m.receipt != r {
					continue
				}
				if !nack {
					delete(model, id)
				} else if m.inFlight {
					m.until = now
					settle()
				}
			}
		case 6:
			now = now.Add(time.Duration(rng.IntN(6)) * time.Second)
		case 7:
			if rng.IntN(5) > 0 {
				continue
			}
			d.apply(log.Drain())
			q, _ = d.load(t, log) // crash with everything drained
			for _, m := range model {
				m.receives = 0 // not stored
				if m.receipt != 0 {
					m.until, m.receipt = time.Time{}, 0
				}
			}
			receipts = nil
		}
		settle()
		wantModel(t, q, model, now)
	}
}

// settleModel advances the time of the model.
func settleModel(model map[uint64]*modelMessage, now time.Time) {
	for _, m := range model {
		if !m.until.After(now) {
			m.inFlight = false
		}
	}
}

// wantModel checks that every message is where the model says.
func wantModel(t *testing.T, q *Queues, model map[uint64]*modelMessage, now time.Time) {
	t.Helper()
	var visible, flying, delayed int
	for _, m := range model {
		switch {
		case !m.until.After(now):
			visible++
		case m.inFlight:
			flying++
		default:
			delayed++
		}
	}
	wantDepth(t, q, now, "q", visible, flying, delayed)
}

// TestCrashWithoutDrain checks that a crash undoes changes that were not drained.
func TestCrashWithoutDrain(t *testing.T) {
	log, d := NewLog(), newDisk()
	q := NewQueues(log)
	ok(t, q.Create("q", 30*time.Second))
	send(t, q, at(0), "q", "a", 0)
	send(t, q, at(0), "q", "delayed", time.Hour)
	d.apply(log.Drain())
	send(t, q, at(0), "q", "lost", 0)
	ok(t, q.Ack(at(0), "q", receive(t, q, at(0), "q", 1)[0].Receipt))
	log.Drain() // lost in the crash

	log = NewLog()
	q, _ = d.load(t, log)
	// Even if the clock was set back by a day, only delayed messages wait.
	wantBodies(t, receive(t, q, at(-86400), "q", 9), "a/1")
	if id := send(t, q, at(0), "q", "b", 0); id != 3 {
		t.Fatalf("id %d after a reload, want 3", id)
	}
	wantBodies(t, receive(t, q, at(3600), "q", 9), "a/2", "delayed/1", "b/1")
}

func TestIDsGoOnAfterReload(t *testing.T) {
	log, d := NewLog(), newDisk()
	q := NewQueues(log)
	ok(t, q.Create("q", 30*time.Second))
	send(t, q, at(0), "q", "a", 0)
	ok(t, q.Ack(at(0), "q", receive(t, q, at(0), "q", 1)[0].Receipt))
	d.apply(log.Drain())
	q, _ = d.load(t, log)
	if id := send(t, q, at(0), "q", "b", 0); id != 2 {
		t.Fatalf("id %d, want 2", id)
	}
}

func TestLogCoalesces(t *testing.T) {
	log := NewLog()
	q := NewQueues(log)
	ok(t, q.Create("q", 30*time.Second))
	log.Drain()
	for range 10 {
		send(t, q, at(0), "q", "a", 0)
	}
	if n := log.Len(); n != 11 {
		t.Fatalf("10 sends are %d mutations, want 10 and the counter", n)
	}
	receive(t, q, at(0), "q", 10)
	if n := log.Len(); n != 11 {
		t.Fatalf("receiving wrote %d mutations", n-11)
	}
}

func TestLoadRefusesDamage(t *testing.T) {
	good := encodeMessage(at(0), at(0), map[string]string{"k": "v"}, []byte("body"))
	for name, m := range map[string]Mutation{
		"bucket":         {"nope", []byte("k"), []byte("v")},
		"counter":        {bucketCounter, []byte("message"), []byte("short")},
		"counter name":   {bucketCounter, []byte("other"), encodeUint64(1)},
		"config":         {bucketQueue, []byte("x"), []byte("{")},
		"config field":   {bucketQueue, []byte("x"), []byte(`{"visibility":1,"more":1}`)},
		"config value":   {bucketQueue, []byte("x"), []byte(`{"visibility":0}`)},
		"message key":    {bucketMessage, []byte("q"), good},
		"message queue":  {bucketMessage, []byte(messageKey("none", 1)), good},
		"message format": {bucketMessage, []byte(messageKey("q", 1)), append([]byte{9}, good[1:]...)},
		"message short":  {bucketMessage, []byte(messageKey("q", 1)), good[:len(good)-7]},
		"message empty":  {bucketMessage, []byte(messageKey("q", 1)), []byte{}},
		"receives":       {bucketReceives, []byte(messageKey("q", 1)), []byte{1}},
		"table":          {bucketTable, []byte("k"), []byte("short")},
		"table revision": {bucketTable, []byte("k"), make([]byte, 8)},
	} {
		q := newQueues(t, 30*time.Second)
		if err := Load(q, NewTable(nil), m); !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("message", "q\x00\x00\x00\x00\x00\x00\x00\x00\x01", encodeMessage(at(0), at(1), map[string]string{"k": "v"}, []byte("body")))
	f.Add("queue", "p", []byte(`{"visibility":1}`))
	f.Add("table", "k", append(encodeUint64(1), "v"...))
	f.Add("counter", "revision", encodeUint64(1<<63))
	f.Fuzz(func(t *testing.T, bucket, key string, value []byte) {
		q := NewQueues(NewLog())
		ok(t, q.Create("q", time.Second))
		if Load(q, NewTable(nil), Mutation{Bucket(bucket), []byte(key), value}) != nil {
			return
		}
		for _, name := range q.Names() { // loaded queues must be usable
			for range 4 {
				for _, d := range receive(t, q, at(0), name, 9) {
					ok(t, q.Nack(at(0), name, d.Receipt))
				}
			}
		}
	})
}

func FuzzMessage(f *testing.F) {
	f.Add("k", "v", []byte("body"), int64(1), int64(2))
	f.Fuzz(func(t *testing.T, k, v string, body []byte, sent, due int64) {
		attrs := map[string]string{k: v, "x": "y"}
		d, err := decodeMessage(encodeMessage(time.Unix(0, sent), time.Unix(0, due), attrs, body))
		ok(t, err)
		if diff := cmp.Diff(attrs, d.attrs); diff != "" || string(d.body) != string(body) ||
			d.sent.UnixNano() != sent || d.due.UnixNano() != due {
			t.Fatalf("round trip changed it: %+v\n%s", d, diff)
		}
	})
}

func BenchmarkSendReceiveAck(b *testing.B) {
	for _, backlog := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("backlog=%d", backlog), func(b *testing.B) {
			q := NewQueues(nil)
			if err := q.Create("q", 30*time.Second); err != nil {
				b.Fatal(err)
			}
			body := make([]byte, 1000)
			for range backlog {
				_, _ = q.Send(epoch, "q", body, nil, 0)
			}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = q.Send(epoch, "q", body, nil, 0)
				ds, _ := q.Receive(epoch, "q", 1)
				_ = q.Ack(epoch, "q", ds[0].Receipt)
			}
		})
	}
}

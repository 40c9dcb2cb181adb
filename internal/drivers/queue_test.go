package drivers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"gocloud.dev/pubsub"

	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
)

// calls is a Meter that remembers, and can hold a kind of call up.
type calls struct {
	mu   sync.Mutex
	list []string
	hold func(op string)
}

func (c *calls) add(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, s)
}

func (c *calls) QueueRequest(op string, bytes int) {
	c.add(fmt.Sprint(op, " ", bytes))
	if c.hold != nil {
		c.hold(op)
	}
}
func (c *calls) KVRead(bytes int)  { c.add("read") }
func (c *calls) KVWrite(bytes int) { c.add("write") }

// take returns and forgets the calls so far.
func (c *calls) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.list
	c.list = nil
	return l
}

func (c *calls) count(op string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, s := range c.list {
		if strings.HasPrefix(s, op) {
			n++
		}
	}
	return n
}

type queueTest struct {
	*testing.T
	store *Store
	topic *pubsub.Topic
	calls *calls
	start time.Time
}

// inQueue runs f in a bubble, where time passes when all wait, with queue "q".
func inQueue(t *testing.T, c embedded.QueueConfig, f func(*queueTest)) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &calls{}
				s := open(t, Options{Meter: m})
				must(t, s.CreateQueue(t.Context(), "q", c))
				q := &queueTest{T: t, store: s, topic: s.Topic("q"), calls: m, start: time.Now()}
				f(q)
				must(t, q.topic.Shutdown(t.Context()))
			})
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (q *queueTest) send(body string, delay time.Duration) {
	q.Helper()
	m := &pubsub.Message{Body: []byte(body), BeforeSend: func(as func(any) bool) error {
		var s *Sending
		if !as(&s) {
			return errors.New("BeforeSend does not know Sending")
		}
		s.Delay = delay
		return nil
	}}
	must(q, q.topic.Send(q.Context(), m))
}

func (q *queueTest) receive(sub *pubsub.Subscription) *pubsub.Message {
	q.Helper()
	m, err := sub.Receive(q.Context())
	must(q, err)
	return m
}

// wantAt checks that a message with this body and count came at this time.
func (q *queueTest) wantAt(m *pubsub.Message, body string, receives int, at time.Duration) {
	q.Helper()
	n, _ := Receives(m)
	got := fmt.Sprintf("%s/%d at %v", m.Body, n, time.Since(q.start))
	if want := fmt.Sprintf("%s/%d at %v", body, receives, at); got != want {
		q.Fatalf("received %s, want %s", got, want)
	}
}

func (q *queueTest) subscription(name string, opts SubscriptionOptions) *pubsub.Subscription {
	sub := q.store.Subscription(name, opts)
	q.Cleanup(func() {
		if err := sub.Shutdown(context.Background()); err != nil {
			q.Error(err)
		}
	})
	return sub
}

// TestWaiting: a receiver is woken the moment there is something, by a send, by
// the end of a delay and by the end of a visibility, and calls no more often than
// it was told to.
func TestWaiting(t *testing.T) {
	inQueue(t, embedded.QueueConfig{Visibility: 45 * time.Second}, func(q *queueTest) {
		sub := q.subscription("q", SubscriptionOptions{})
		go func() {
			time.Sleep(50 * time.Second)
			q.send("sent", 0)
			q.send("delayed", 90*time.Second)
		}()
		m := q.receive(sub)
		q.wantAt(m, "sent", 1, 50*time.Second)
		if n := q.calls.count(OpReceive); n != 3 {
			q.Fatalf("%d receives in 50 s, want 2 empty ones and one", n)
		}
		q.wantAt(q.receive(sub), "sent", 2, 95*time.Second)
		m.Ack() // stale: the message came again
		m = q.receive(sub)
		q.wantAt(m, "sent", 3, 140*time.Second) // the oldest first
		m.Ack()
		m = q.receive(sub)
		q.wantAt(m, "delayed", 1, 140*time.Second)
		m.Ack()
		ctx, cancel := context.WithTimeout(q.Context(), 24*time.Hour)
		defer cancel()
		if _, err := sub.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
			q.Fatal(err)
		}
	})
}

func TestCompetingConsumers(t *testing.T) {
	inQueue(t, embedded.QueueConfig{Visibility: time.Hour}, func(q *queueTest) {
		var wg sync.WaitGroup
		got := make(chan string, 1000)
		for range 4 {
			sub := q.subscription("q", SubscriptionOptions{})
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(q.Context(), time.Minute)
				defer cancel()
				for {
					m, err := sub.Receive(ctx)
					if err != nil {
						return
					}
					got <- string(m.Body)
					m.Ack()
				}
			})
		}
		for i := range 200 {
			q.send(fmt.Sprint(i), 0)
		}
		wg.Wait()
		close(got)
		seen := map[string]bool{}
		for body := range got {
			if seen[body] {
				q.Errorf("%s came twice", body)
			}
			seen[body] = true
		}
		if len(seen) != 200 {
			q.Errorf("%d of 200 came", len(seen))
		}
	})
}

// depth counts a queue's messages.
func (q *queueTest) depth(name string) (visible, inFlight int, err error) {
	must(q, q.store.lock())
	defer q.store.unlockAndRing()
	visible, inFlight, _, err = q.store.queues.Depth(time.Now(), name)
	return visible, inFlight, err
}

func TestNack(t *testing.T) {
	inQueue(t, embedded.QueueConfig{Visibility: time.Minute}, func(q *queueTest) {
		q.send("a", 0)
		one, two := q.subscription("q", SubscriptionOptions{}), q.subscription("q", SubscriptionOptions{})
		m := q.receive(one)
		second := q.receive(two)
		q.wantAt(second, "a", 2, time.Minute)
		m.Nack() // stale: does not take it from the other
		second.Nack()
		q.wantAt(q.receive(one), "a", 3, time.Minute)
	})
}

func TestDeadLetterWakesItsReceiver(t *testing.T) {
	inQueue(t, embedded.QueueConfig{Visibility: time.Minute, MaxReceives: 2, DeadLetter: "dead"}, func(q *queueTest) {
		q.send("poison", 0)
		done := make(chan struct{})
		go func() {
			defer close(done)
			m := q.receive(q.subscription("dead", SubscriptionOptions{Wait: time.Hour}))
			q.wantAt(m, "poison", 1, 2*time.Minute)
			want := map[string]string{
				embedded.AttrDeadQueue: "q", embedded.AttrDeadReceives: "2",
				embedded.AttrDeadReason: "delivered 2 times without being acknowledged",
			}
			if diff := cmp.Diff(want, m.Metadata); diff != "" {
				q.Errorf("(-want +got):\n%s", diff)
			}
			m.Ack()
		}()
		sub := q.subscription("q", SubscriptionOptions{})
		q.receive(sub)
		q.wantAt(q.receive(sub), "poison", 2, time.Minute)
		ctx, cancel := context.WithTimeout(q.Context(), 10*time.Minute)
		defer cancel()
		if m, err := sub.Receive(ctx); err == nil {
			q.Fatalf("delivered once more: %s", m.Body)
		}
		<-done
	})
}

// TestCallsArePacked: what is sent and received at once shares calls, and nothing
// is received ahead of need beyond the ten of a call.
func TestCallsArePacked(t *testing.T) {
	inQueue(t, embedded.QueueConfig{Visibility: time.Hour}, func(q *queueTest) {
		release := make(chan struct{})
		q.calls.hold = func(op string) {
			if op == OpSend {
				<-release
			}
		}
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() { q.send(fmt.Sprint(i%10), 0) })
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		want := []string{"send 1", "send 10", "send 10", "send 10", "send 10", "send 10", "send 10", "send 10", "send 10", "send 10", "send 9"}
		if diff := cmp.Diff(want, q.calls.take()); diff != "" {
			q.Fatalf("calls of 100 concurrent sends (-want +got):\n%s", diff)
		}
		sub := q.subscription("q", SubscriptionOptions{})
		for i := range 35 {
			m := q.receive(sub)
			synctest.Wait()
			_, flying, err := q.depth("q")
			must(q, err)
			if flying > i+1+10 {
				q.Fatalf("%d in flight after %d were handed out", flying, i+1)
			}
			q.Cleanup(m.Ack)
		}
		if n := q.calls.count(OpReceive); n != 4 {
			q.Fatalf("%d receives for 35 messages, want 4", n)
		}
	})
}

// TestShutdownWhileSending: a topic that is shut down sends what it has, and ends.
func TestShutdownWhileSending(t *testing.T) {
	inQueue(t, embedded.QueueConfig{}, func(q *queueTest) {
		topic := q.store.Topic("q")
		release := make(chan struct{})
		q.calls.hold = func(op string) {
			if op == OpSend {
				<-release
			}
		}
		var wg sync.WaitGroup
		for range 11 {
			wg.Go(func() { must(q, topic.Send(q.Context(), &pubsub.Message{})) })
		}
		synctest.Wait()
		wg.Go(func() { must(q, topic.Shutdown(q.Context())) })
		synctest.Wait()
		close(release)
		wg.Wait()
		visible, _, err := q.depth("q")
		must(q, err)
		if n := q.calls.count(OpSend); visible != 11 || n != 2 {
			q.Fatalf("%d messages in %d calls, want 11 in 2", visible, n)
		}
	})
}

// TestShutdownGivesBack: what a subscription holds is free when it ends.
func TestShutdownGivesBack(t *testing.T) {
	inQueue(t, embedded.QueueConfig{Visibility: time.Hour}, func(q *queueTest) {
		for i := range 12 {
			q.send(fmt.Sprint(i), 0)
		}
		sub := q.store.Subscription("q", SubscriptionOptions{})
		q.receive(sub).Ack()
		q.receive(sub)
		must(q, sub.Shutdown(q.Context()))
		visible, flying, err := q.depth("q")
		must(q, err)
		if visible != 11 || flying != 0 {
			q.Fatalf("%d visible, %d in flight, want 11, 0", visible, flying)
		}
	})
}

func TestSendBounds(t *testing.T) {
	inQueue(t, embedded.QueueConfig{}, func(q *queueTest) {
		delayed := func(d time.Duration) *pubsub.Message {
			return &pubsub.Message{BeforeSend: func(as func(any) bool) error {
				var s *Sending
				as(&s)
				s.Delay = d
				return nil
			}}
		}
		for name, m := range map[string]*pubsub.Message{
			"body":           {Body: make([]byte, maxMessageBytes+1)},
			"attributes":     {Body: make([]byte, maxMessageBytes-4), Metadata: map[string]string{"key": "va"}},
			"long delay":     delayed(MaxDelay + 1),
			"negative delay": delayed(-1),
		} {
			if err := q.topic.Send(q.Context(), m); err == nil {
				q.Errorf("%s was accepted", name)
			}
		}
		must(q, q.topic.Send(q.Context(), &pubsub.Message{Body: make([]byte, maxMessageBytes-5), Metadata: map[string]string{"key": "va"}}))
		must(q, q.topic.Send(q.Context(), delayed(MaxDelay)))
	})
}

func TestClosedStore(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, Options{})
				must(t, s.CreateQueue(t.Context(), "q", embedded.QueueConfig{}))
				topic, sub, coll := s.Topic("q"), s.Subscription("q", SubscriptionOptions{}), collectionOf(t, s, "c", "k")
				must(t, topic.Send(t.Context(), &pubsub.Message{}))
				m, err := sub.Receive(t.Context())
				must(t, err)
				waiting := make(chan error)
				go func() {
					_, err := sub.Receive(context.Background())
					waiting <- err
				}()
				synctest.Wait()
				must(t, s.Close())
				must(t, s.Close())
				m.Ack()
				for name, err := range map[string]error{
					"waiting":    <-waiting,
					"send":       topic.Send(t.Context(), &pubsub.Message{}),
					"put":        coll.Put(t.Context(), map[string]any{"k": "k"}),
					"get":        coll.Get(t.Context(), map[string]any{"k": "k"}),
					"create":     s.CreateQueue(t.Context(), "p", embedded.QueueConfig{}),
					"sync blobs": func() error { _, err := s.Bucket(); return err }(),
				} {
					if !errors.Is(err, ErrClosed) {
						t.Errorf("%s on a closed store: %v", name, err)
					}
				}
				_ = sub.Shutdown(t.Context()) // returns the error of the ack
				must(t, topic.Shutdown(t.Context()))
			})
		})
	}
}

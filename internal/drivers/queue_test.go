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
	"github.com/orbweaver/orbweaver/platform"
)

// calls is a Meter that records calls, and can block one kind of call.
type calls struct {
	platform.NoMeter
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
	store *store
	topic *pubsub.Topic
	calls *calls
	start time.Time
}

// inQueue runs f with the queue "q" in a synctest bubble, where time passes when all goroutines wait.
func inQueue(t *testing.T, visibility time.Duration, f func(*queueTest)) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &calls{}
				s := open(t, options{meter: m})
				must(t, s.createQueues(t.Context(), visibility, "q"))
				q := &queueTest{T: t, store: s, topic: s.openTopic("q"), calls: m, start: time.Now()}
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
		var s *sending
		if !as(&s) {
			return errors.New("BeforeSend does not know sending")
		}
		s.delay = delay
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

// wantAt checks the body, the number of deliveries and the time of a message.
func (q *queueTest) wantAt(m *pubsub.Message, body string, receives int, at time.Duration) {
	q.Helper()
	var d embedded.Delivery
	m.As(&d)
	got := fmt.Sprintf("%s/%d at %v", m.Body, d.Receives, time.Since(q.start))
	if want := fmt.Sprintf("%s/%d at %v", body, receives, at); got != want {
		q.Fatalf("received %s, want %s", got, want)
	}
}

func (q *queueTest) subscription(name string) *pubsub.Subscription {
	sub := q.store.openSubscription(name, pollTime)
	q.Cleanup(func() {
		if err := sub.Shutdown(context.Background()); err != nil {
			q.Error(err)
		}
	})
	return sub
}

// TestWaiting checks that a send, the end of a delay and the end of a visibility wake a receiver at once, and
// that it makes no more calls than necessary.
func TestWaiting(t *testing.T) {
	inQueue(t, 45*time.Second, func(q *queueTest) {
		sub := q.subscription("q")
		go func() {
			time.Sleep(50 * time.Second)
			q.send("sent", 0)
			q.send("delayed", 90*time.Second)
		}()
		m := q.receive(sub)
		q.wantAt(m, "sent", 1, 50*time.Second)
		if n := q.calls.count(opReceive); n != 3 {
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
	inQueue(t, time.Hour, func(q *queueTest) {
		var wg sync.WaitGroup
		got := make(chan string, 1000)
		for range 4 {
			sub := q.subscription("q")
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
	defer q.store.unlock()
	visible, inFlight, _, err = q.store.queues.Depth(time.Now(), name)
	return visible, inFlight, err
}

func TestNack(t *testing.T) {
	inQueue(t, time.Minute, func(q *queueTest) {
		q.send("a", 0)
		one, two := q.subscription("q"), q.subscription("q")
		m := q.receive(one)
		second := q.receive(two)
		q.wantAt(second, "a", 2, time.Minute)
		m.Nack() // stale: does not take it from the other
		second.Nack()
		q.wantAt(q.receive(one), "a", 3, time.Minute)
	})
}

// TestCallsArePacked checks that concurrent sends and receives share calls, and that nothing is prefetched
// beyond the ten messages of a call.
func TestCallsArePacked(t *testing.T) {
	inQueue(t, time.Hour, func(q *queueTest) {
		release := make(chan struct{})
		q.calls.hold = func(op string) {
			if op == opSend {
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
		sub := q.subscription("q")
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
		if n := q.calls.count(opReceive); n != 4 {
			q.Fatalf("%d receives for 35 messages, want 4", n)
		}
	})
}

// TestShutdownWhileSending checks that a topic that is shut down sends its messages and ends.
func TestShutdownWhileSending(t *testing.T) {
	inQueue(t, time.Minute, func(q *queueTest) {
		topic := q.store.openTopic("q")
		release := make(chan struct{})
		q.calls.hold = func(op string) {
			if op == opSend {
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
		if n := q.calls.count(opSend); visible != 11 || n != 2 {
			q.Fatalf("%d messages in %d calls, want 11 in 2", visible, n)
		}
	})
}

// TestShutdownGivesBack checks that the messages of a subscription become visible when it ends.
func TestShutdownGivesBack(t *testing.T) {
	inQueue(t, time.Hour, func(q *queueTest) {
		for i := range 12 {
			q.send(fmt.Sprint(i), 0)
		}
		sub := q.store.openSubscription("q", pollTime)
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
	inQueue(t, time.Minute, func(q *queueTest) {
		delayed := func(d time.Duration) *pubsub.Message {
			return &pubsub.Message{BeforeSend: func(as func(any) bool) error {
				var s *sending
				as(&s)
				s.delay = d
				return nil
			}}
		}
		for name, m := range map[string]*pubsub.Message{
			"body":           {Body: make([]byte, maxMessageBytes+1)},
			"attributes":     {Body: make([]byte, maxMessageBytes-4), Metadata: map[string]string{"key": "va"}},
			"long delay":     delayed(maxDelay + 1),
			"negative delay": delayed(-1),
		} {
			if err := q.topic.Send(q.Context(), m); err == nil {
				q.Errorf("%s was accepted", name)
			}
		}
		must(q, q.topic.Send(q.Context(), &pubsub.Message{Body: make([]byte, maxMessageBytes-5), Metadata: map[string]string{"key": "va"}}))
		must(q, q.topic.Send(q.Context(), delayed(maxDelay)))
	})
}

func TestClosedStore(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, options{})
				must(t, s.createQueues(t.Context(), time.Minute, "q"))
				topic, sub, p := s.openTopic("q"), s.openSubscription("q", pollTime), s.platform()
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
					"waiting": <-waiting,
					"send":    topic.Send(t.Context(), &pubsub.Message{}),
					"write":   second(p.WriteRecord(t.Context(), "k", nil, nil)),
					"read":    second(p.ReadRecords(t.Context(), []string{"k"})),
					"create":  s.createQueues(t.Context(), time.Minute, "p"),
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

func second[T any](_ T, err error) error { return err }

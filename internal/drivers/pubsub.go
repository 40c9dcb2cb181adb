package drivers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gocloud.dev/gcerrors"
	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/batcher"
	"gocloud.dev/pubsub/driver"

	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
)

// Bounds of clouds, which hold in a folder too.
const (
	maxMessageBytes = 256 << 10 // body and attributes
	maxDelay        = 15 * time.Minute
	maxBatch        = 10               // messages of a call
	pollTime        = 20 * time.Second // longest wait of a call, which is billed if it returns nothing
)

// Operations of queues for the meter.
const (
	opSend    = "send"
	opReceive = "receive"
	opAck     = "ack"
	opNack    = "nack"
)

// createQueues makes queues, or gives existing ones this visibility. One transaction makes them durable before
// it returns. Topics and subscriptions of other queues fail with code NotFound.
func (s *store) createQueues(_ context.Context, visibility time.Duration, names ...string) (err error) {
	if err := s.lock(); err != nil {
		return err
	}
	for _, name := range names {
		err = errors.Join(err, s.queues.Create(name, visibility))
	}
	change := s.change()
	s.mu.Unlock()
	return errors.Join(err, s.flush(change))
}

// sending holds the properties of a message that BeforeSend can change.
type sending struct {
	delay time.Duration // until the message is visible, at most maxDelay
}

// errBadMessage says that a message exceeds a bound.
var errBadMessage = errors.New("bad message")

// openTopic returns the sending side of a queue. Concurrent sends share calls. The caller shuts it down.
func (s *store) openTopic(name string) *pubsub.Topic {
	// MaxBatchByteSize is not set: with it the batcher of gocloud.dev v0.47.0 never ends when it is shut
	// down while a batch is under way.
	return pubsub.NewTopic(&topic{s, name}, &batcher.Options{MaxHandlers: 1, MaxBatchSize: maxBatch})
}

// topic implements driver.Topic.
type topic struct {
	store *store
	name  string
}

// SendBatch makes all messages durable before it returns.
func (t *topic) SendBatch(_ context.Context, ms []*driver.Message) error {
	if len(ms) == 0 { // the batcher may pass none when it is shut down
		return nil
	}
	delays := make([]time.Duration, len(ms))
	for i, m := range ms {
		var err error
		if delays[i], err = prepare(m); err != nil {
			return fmt.Errorf("send to %s: %w", t.name, err)
		}
	}
	bytes := 0
	for _, m := range ms {
		bytes += messageBytes(m.Body, m.Metadata)
	}
	s := t.store
	s.meter.QueueRequest(opSend, bytes)
	if err := s.lock(); err != nil {
		return err
	}
	now := time.Now()
	var err error
	for i, m := range ms {
		if _, err = s.queues.Send(now, t.name, m.Body, m.Metadata, delays[i]); err != nil {
			break // there is no such queue: the first send fails
		}
	}
	s.ring(t.name)
	change := s.change()
	s.mu.Unlock()
	if err == nil {
		// After a crash here the messages may or may not be sent. The sender resends them.
		err = s.flush(change)
	}
	if err != nil {
		return fmt.Errorf("send to %s: %w", t.name, err)
	}
	for _, m := range ms {
		if m.AfterSend != nil {
			if err := m.AfterSend(func(any) bool { return false }); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare calls BeforeSend, and checks the message.
func prepare(m *driver.Message) (delay time.Duration, err error) {
	how := &sending{}
	if m.BeforeSend != nil {
		err := m.BeforeSend(func(i any) bool {
			p, ok := i.(**sending)
			if ok {
				*p = how
			}
			return ok
		})
		if err != nil {
			return 0, err
		}
	}
	if how.delay < 0 || how.delay > maxDelay {
		return 0, fmt.Errorf("%w: a delay of %v, want at most %v", errBadMessage, how.delay, maxDelay)
	}
	if n := messageBytes(m.Body, m.Metadata); n > maxMessageBytes {
		return 0, fmt.Errorf("%w: %d bytes, want at most %d", errBadMessage, n, maxMessageBytes)
	}
	return how.delay, nil
}

func messageBytes(body []byte, attrs map[string]string) int {
	n := len(body)
	for k, v := range attrs {
		n += len(k) + len(v)
	}
	return n
}

// IsRetryable returns false: a failed store does not recover.
func (*topic) IsRetryable(error) bool { return false }

func (*topic) As(any) bool                            { return false }
func (*topic) ErrorAs(error, any) bool                { return false }
func (*topic) ErrorCode(err error) gcerrors.ErrorCode { return errorCode(err) }
func (*topic) Close() error                           { return nil }

// openSubscription returns a receiving side of a queue. All subscriptions of a queue share its
// messages. One call receives up to ten messages, and no other call is made before they are taken. The
// caller shuts it down: messages that are not acknowledged by then are visible again at once.
//
// Message.As knows *embedded.Delivery.
func (s *store) openSubscription(name string, poll time.Duration) *pubsub.Subscription {
	// If batches may be larger, the portable layer prefetches for two seconds of work, which may be thousands
	// of messages whose visibility runs out. So it requests one message at a time, and the driver buffers the
	// rest of its call.
	return pubsub.NewSubscription(newSubscription(s, name, poll),
		&batcher.Options{MaxHandlers: 1, MaxBatchSize: 1},
		&batcher.Options{MaxHandlers: 1, MaxBatchSize: maxBatch})
}

func newSubscription(s *store, name string, poll time.Duration) *subscription {
	return &subscription{store: s, name: name, poll: poll, inFlight: map[embedded.Receipt]struct{}{}}
}

// subscription implements driver.Subscription.
type subscription struct {
	store *store
	name  string
	poll  time.Duration // longest wait of a call

	// mu of the store guards these.
	inFlight map[embedded.Receipt]struct{} // received and not acknowledged yet
	buffer   []*driver.Message             // those of inFlight that were not taken yet
	closed   bool
}

// ReceiveBatch waits for a message until its poll ends. Sends and the ends of delays and visibilities
// wake it. gocloud expects a wait of about a second, but each shorter wait is one more billed call.
func (r *subscription) ReceiveBatch(ctx context.Context, limit int) ([]*driver.Message, error) {
	s := r.store
	end := time.Now().Add(r.poll)
	for {
		ms, rung, next, err := r.tryReceive(limit)
		if err != nil {
			return nil, fmt.Errorf("receive from %s: %w", r.name, err)
		}
		if len(ms) > 0 {
			return ms, nil
		}
		if next.IsZero() || next.After(end) {
			next = end
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-time.After(time.Until(next)):
			if time.Now().Before(end) {
				continue
			}
		case <-rung:
			continue
		case <-s.stop:
			continue
		}
		s.meter.QueueRequest(opReceive, 0)
		return nil, err
	}
}

// tryReceive receives without waiting. If there is no message, rung is closed when one may have come,
// and next is when a hidden message becomes visible, zero for never.
func (r *subscription) tryReceive(limit int) (ms []*driver.Message, rung <-chan struct{}, next time.Time, err error) {
	s := r.store
	if err := s.lock(); err != nil {
		return nil, nil, time.Time{}, err
	}
	defer s.unlock()
	if r.closed {
		return nil, nil, time.Time{}, context.Canceled
	}
	if len(r.buffer) > 0 {
		return r.unbuffer(limit), nil, time.Time{}, nil
	}
	ds, err := s.queues.Receive(time.Now(), r.name, maxBatch)
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	if len(ds) == 0 {
		next, _ = s.queues.NextVisible(r.name)
		return nil, s.bell(r.name), next, nil
	}
	bytes := 0
	for _, d := range ds {
		r.inFlight[d.Receipt] = struct{}{}
		bytes += messageBytes(d.Body, d.Attrs)
		r.buffer = append(r.buffer, &driver.Message{
			LoggableID: fmt.Sprintf("%s#%d", r.name, d.ID),
			Body:       d.Body,
			Metadata:   d.Attrs,
			AckID:      d.Receipt,
			AsFunc: func(i any) bool {
				p, ok := i.(*embedded.Delivery)
				if ok {
					*p = d
				}
				return ok
			},
		})
	}
	s.meter.QueueRequest(opReceive, bytes)
	return r.unbuffer(limit), nil, time.Time{}, nil
}

// unbuffer takes up to limit messages from the buffer. mu of the store is held.
func (r *subscription) unbuffer(limit int) []*driver.Message {
	n := min(limit, len(r.buffer))
	ms := r.buffer[:n:n]
	r.buffer = r.buffer[n:]
	return ms
}

// SendAcks takes effect at once, and is durable within options.lazySync: a crash before that means one
// more delivery.
func (r *subscription) SendAcks(_ context.Context, ids []driver.AckID) error {
	return r.finish(opAck, ids, r.store.queues.Ack)
}

func (*subscription) CanNack() bool { return true }

// SendNacks makes the messages visible at once.
func (r *subscription) SendNacks(_ context.Context, ids []driver.AckID) error {
	return r.finish(opNack, ids, r.store.queues.Nack)
}

func (r *subscription) finish(op string, ids []driver.AckID, f func(time.Time, string, embedded.Receipt) error) error {
	s := r.store
	s.meter.QueueRequest(op, 0)
	if err := s.lock(); err != nil {
		return err
	}
	defer s.unlock()
	now := time.Now()
	for _, id := range ids {
		receipt, _ := id.(embedded.Receipt) // no message has another id
		delete(r.inFlight, receipt)
		if err := f(now, r.name, receipt); err != nil {
			return fmt.Errorf("%s on %s: %w", op, r.name, err)
		}
	}
	if op == opNack {
		s.ring(r.name)
	}
	return nil
}

func (*subscription) IsRetryable(error) bool                 { return false }
func (*subscription) As(any) bool                            { return false }
func (*subscription) ErrorAs(error, any) bool                { return false }
func (*subscription) ErrorCode(err error) gcerrors.ErrorCode { return errorCode(err) }

// Close makes the subscription's messages visible, because nobody can acknowledge them any more.
func (r *subscription) Close() error {
	s := r.store
	s.mu.Lock()
	defer s.unlock()
	if r.closed || s.err != nil {
		return nil
	}
	r.closed = true
	now := time.Now()
	for receipt := range r.inFlight {
		if err := s.queues.Nack(now, r.name, receipt); err != nil {
			return err
		}
	}
	r.inFlight, r.buffer = nil, nil
	s.ring(r.name)
	return nil
}

// bell returns the channel that ring closes for the queue. s.mu is held.
func (s *store) bell(queue string) <-chan struct{} {
	c := s.waiting[queue]
	if c == nil {
		c = make(chan struct{})
		s.waiting[queue] = c
	}
	return c
}

// ring wakes the receivers that wait for the queue. s.mu is held.
func (s *store) ring(queue string) {
	if c := s.waiting[queue]; c != nil {
		close(c)
		delete(s.waiting, queue)
	}
}

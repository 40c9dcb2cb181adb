package drivers

import (
	"context"
	"fmt"
	"time"

	"gocloud.dev/gcerrors"
	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/batcher"
	"gocloud.dev/pubsub/driver"

	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
)

// The bounds that clouds set are kept here too, so that what would fail there
// fails at once.
const (
	// maxMessageBytes bounds a message's body and attributes together.
	maxMessageBytes = 256 << 10
	// MaxDelay is how long a message may be delayed, as in SQS.
	MaxDelay = 15 * time.Minute
	// maxBatch is how many messages one call of a queue may have.
	maxBatch = 10
	// defaultWait is how long SQS lets a receive wait at most.
	defaultWait = 20 * time.Second
)

// CreateQueue makes a queue, or gives an existing one this configuration. It is
// durable on return. Topics and subscriptions of a queue that was not created
// fail with code NotFound.
func (s *Store) CreateQueue(ctx context.Context, name string, c embedded.QueueConfig) error {
	if err := s.lock(); err != nil {
		return err
	}
	err := s.queues.Create(name, c)
	commit := s.soon()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.wait(ctx, commit)
}

// Sending is what a message's BeforeSend can change of it:
//
//	m.BeforeSend = func(as func(any) bool) error {
//		var s *Sending
//		if as(&s) {
//			s.Delay = time.Minute
//		}
//		return nil
//	}
//
// One BeforeSend can ask for this and for another cloud's type in turn.
type Sending struct {
	// Delay is how long the message stays invisible, at most [MaxDelay].
	Delay time.Duration
}

// Receives returns how often a received message has been delivered, this time
// included. It is false for a message of another driver.
func Receives(m *pubsub.Message) (int, bool) {
	var d embedded.Delivery
	if !m.As(&d) {
		return 0, false
	}
	return d.Receives, true
}

// Topic returns the sending side of a queue. Concurrent sends share calls of up
// to ten messages. The caller shuts it down.
func (s *Store) Topic(name string) *pubsub.Topic {
	// No MaxBatchByteSize: with it the batcher spins for ever when it is shut down
	// while a batch is under way (seen in gocloud.dev v0.47.0: nextBatch never
	// returns nil then).
	return pubsub.NewTopic(&topic{s, name}, &batcher.Options{MaxHandlers: 1, MaxBatchSize: maxBatch})
}

type topic struct {
	store *Store
	name  string
}

// SendBatch implements driver.Topic: all messages are durable on return.
func (t *topic) SendBatch(ctx context.Context, ms []*driver.Message) error {
	if len(ms) == 0 { // as the batcher may do when it is shut down
		return nil
	}
	delays := make([]time.Duration, len(ms))
	for i, m := range ms {
		var err error
		if delays[i], err = prepare(m); err != nil {
			return fmt.Errorf("send to %s: %w", t.name, err)
		}
	}
	s := t.store
	s.meterSends(ms)
	if err := s.lock(); err != nil {
		return err
	}
	now := time.Now()
	var err error
	for i, m := range ms {
		if _, err = s.queues.Send(now, t.name, m.Body, m.Metadata, delays[i]); err != nil {
			break // no such queue: so already for the first
		}
	}
	s.ring(t.name)
	commit := s.soon()
	s.mu.Unlock()
	if err == nil {
		// A crash before this returns may leave the messages sent or not: the
		// sender does not know either, and sends again.
		err = s.wait(ctx, commit)
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

// prepare lets the sender change the message, and checks it.
func prepare(m *driver.Message) (delay time.Duration, err error) {
	sending := &Sending{}
	if m.BeforeSend != nil {
		err := m.BeforeSend(func(i any) bool {
			p, ok := i.(**Sending)
			if ok {
				*p = sending
			}
			return ok
		})
		if err != nil {
			return 0, err
		}
	}
	if sending.Delay < 0 || sending.Delay > MaxDelay {
		return 0, fmt.Errorf("%w: a delay of %v, want at most %v", errArgument, sending.Delay, MaxDelay)
	}
	if n := messageBytes(m.Body, m.Metadata); n > maxMessageBytes {
		return 0, fmt.Errorf("%w: a message of %d bytes, want at most %d", errArgument, n, maxMessageBytes)
	}
	return sending.Delay, nil
}

func messageBytes(body []byte, attrs map[string]string) int {
	n := len(body)
	for k, v := range attrs {
		n += len(k) + len(v)
	}
	return n
}

func (s *Store) meterSends(ms []*driver.Message) {
	for len(ms) > 0 {
		n, bytes := min(len(ms), maxBatch), 0
		for _, m := range ms[:n] {
			bytes += messageBytes(m.Body, m.Metadata)
		}
		s.meter.QueueRequest(OpSend, bytes)
		ms = ms[n:]
	}
}

// IsRetryable implements driver.Topic: a Store that fails stays so.
func (*topic) IsRetryable(error) bool { return false }

// As implements driver.Topic.
func (*topic) As(any) bool { return false }

// ErrorAs implements driver.Topic; errors.Is and errors.As see all errors anyway.
func (*topic) ErrorAs(error, any) bool { return false }

// ErrorCode implements driver.Topic.
func (*topic) ErrorCode(err error) gcerrors.ErrorCode { return errorCode(err) }

// Close implements driver.Topic.
func (*topic) Close() error { return nil }

// SubscriptionOptions configures [Store.Subscription].
type SubscriptionOptions struct {
	// Wait is how long one call waits for a message before it comes back empty
	// and is counted; 0 stands for 20 s, the longest that SQS allows.
	Wait time.Duration
}

// Subscription returns a receiving side of a queue. All of a queue's
// subscriptions share its messages. One call receives up to ten messages, and no
// further call is made before they are handed out. The caller shuts it down: what
// it received and did not acknowledge is then visible again at once, and counts
// as delivered, whether or not it was handed out.
//
// Message.As knows *embedded.Delivery; see also [Receives].
func (s *Store) Subscription(name string, opts SubscriptionOptions) *pubsub.Subscription {
	// Asked for more than one, the portable layer prefetches for two seconds of
	// work, which may be thousands of messages whose visibility runs. So it asks
	// for one, and the driver keeps the rest of the ten that the call is billed for.
	return pubsub.NewSubscription(newSubscription(s, name, opts),
		&batcher.Options{MaxHandlers: 1, MaxBatchSize: 1},
		&batcher.Options{MaxHandlers: 1, MaxBatchSize: maxBatch})
}

func newSubscription(s *Store, name string, opts SubscriptionOptions) *subscription {
	if opts.Wait == 0 {
		opts.Wait = defaultWait
	}
	return &subscription{store: s, name: name, wait: opts.Wait, held: map[embedded.Receipt]struct{}{}}
}

type subscription struct {
	store *Store
	name  string
	wait  time.Duration

	// Under store.mu.
	held   map[embedded.Receipt]struct{} // received and not yet acknowledged
	buffer []*driver.Message             // of them, those not yet handed out
	closed bool
}

// ReceiveBatch implements driver.Subscription. It waits for a message for as long
// as the options say (its contract speaks of about a second, but every shorter
// wait is a billed call more), and is woken by sends and by the end of delays and
// visibilities.
func (r *subscription) ReceiveBatch(ctx context.Context, limit int) ([]*driver.Message, error) {
	s := r.store
	timeout := time.NewTimer(r.wait)
	defer timeout.Stop()
	var visible *time.Timer // for the next message that becomes visible
	defer func() {
		if visible != nil {
			visible.Stop()
		}
	}()
	for {
		ms, rung, next, err := r.tryReceive(limit)
		if err != nil {
			return nil, fmt.Errorf("receive from %s: %w", r.name, err)
		}
		if len(ms) > 0 {
			return ms, nil
		}
		var due <-chan time.Time
		if !next.IsZero() {
			if visible == nil {
				visible = time.NewTimer(time.Until(next))
			} else {
				visible.Reset(time.Until(next))
			}
			due = visible.C
		}
		select {
		case <-ctx.Done():
			s.meter.QueueRequest(OpReceive, 0)
			return nil, ctx.Err()
		case <-timeout.C:
			s.meter.QueueRequest(OpReceive, 0)
			return nil, nil
		case <-rung:
		case <-due:
		case <-s.stop:
		}
	}
}

// tryReceive receives without waiting. If there is nothing, rung will be closed
// when something may have come, and next is when a hidden message becomes
// visible, zero for never.
func (r *subscription) tryReceive(limit int) (ms []*driver.Message, rung <-chan struct{}, next time.Time, err error) {
	s := r.store
	if err := s.lock(); err != nil {
		return nil, nil, time.Time{}, err
	}
	defer s.unlockAndRing()
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
		r.held[d.Receipt] = struct{}{}
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
	s.meter.QueueRequest(OpReceive, bytes)
	return r.unbuffer(limit), nil, time.Time{}, nil
}

// unbuffer takes up to limit messages from the buffer. The Store's lock is held.
func (r *subscription) unbuffer(limit int) []*driver.Message {
	n := min(limit, len(r.buffer))
	ms := r.buffer[:n:n]
	r.buffer = r.buffer[n:]
	return ms
}

// SendAcks implements driver.Subscription. Acknowledgements take effect at once
// and are durable within Options.LazySync; one lost in a crash is one more
// delivery.
func (r *subscription) SendAcks(_ context.Context, ids []driver.AckID) error {
	return r.finish(OpAck, ids, r.store.queues.Ack)
}

// CanNack implements driver.Subscription.
func (*subscription) CanNack() bool { return true }

// SendNacks implements driver.Subscription: the messages are visible at once.
func (r *subscription) SendNacks(_ context.Context, ids []driver.AckID) error {
	return r.finish(OpNack, ids, r.store.queues.Nack)
}

func (r *subscription) finish(op string, ids []driver.AckID, f func(time.Time, string, embedded.Receipt) error) error {
	s := r.store
	for range (len(ids) + maxBatch - 1) / maxBatch {
		s.meter.QueueRequest(op, 0)
	}
	if err := s.lock(); err != nil {
		return err
	}
	defer s.unlockAndRing()
	now := time.Now()
	for _, id := range ids {
		receipt, _ := id.(embedded.Receipt) // nothing else is ever given out
		delete(r.held, receipt)
		if err := f(now, r.name, receipt); err != nil {
			return fmt.Errorf("%s on %s: %w", op, r.name, err)
		}
	}
	if op == OpNack {
		s.ring(r.name)
	}
	return nil
}

// IsRetryable implements driver.Subscription: a Store that fails stays so.
func (*subscription) IsRetryable(error) bool { return false }

// As implements driver.Subscription.
func (*subscription) As(any) bool { return false }

// ErrorAs implements driver.Subscription, see topic.
func (*subscription) ErrorAs(error, any) bool { return false }

// ErrorCode implements driver.Subscription.
func (*subscription) ErrorCode(err error) gcerrors.ErrorCode { return errorCode(err) }

// Close implements driver.Subscription. Nothing can be acknowledged any more, so
// whatever is still held goes back at once rather than when its visibility ends.
func (r *subscription) Close() error {
	s := r.store
	s.mu.Lock()
	defer s.unlockAndRing()
	if r.closed || s.err != nil {
		return nil
	}
	r.closed = true
	now := time.Now()
	for receipt := range r.held {
		if err := s.queues.Nack(now, r.name, receipt); err != nil {
			return err
		}
	}
	r.held, r.buffer = nil, nil
	s.ring(r.name)
	return nil
}

// bell returns the channel that ring closes for the queue. s.mu is held.
func (s *Store) bell(queue string) <-chan struct{} {
	c := s.waiting[queue]
	if c == nil {
		c = make(chan struct{})
		s.waiting[queue] = c
	}
	return c
}

// ring wakes whoever waits for the queue. s.mu is held.
func (s *Store) ring(queue string) {
	if c := s.waiting[queue]; c != nil {
		close(c)
		delete(s.waiting, queue)
	}
}

// unlockAndRing ends what nobody waits for to be durable: acknowledgements,
// delivery counts, moves to dead-letter queues, whose receivers it wakes.
func (s *Store) unlockAndRing() {
	s.later()
	for _, queue := range s.queues.Woken() {
		s.ring(queue)
	}
	s.mu.Unlock()
}

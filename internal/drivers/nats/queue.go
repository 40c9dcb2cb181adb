package nats

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/orbweaver/orbweaver/platform"
)

// Bounds of the time that one pull waits for a message. The end of a context does not end a pull, because its messages would
// stay hidden.
const (
	shortestPull = time.Millisecond
	longestPull  = time.Second
)

// queue implements platform.Queue. A receipt is the subject that acknowledges one delivery.
type queue struct {
	*deployment
	name  string
	found atomic.Pointer[jetstream.Consumer]
}

// consumer finds the consumer of the queue. The stream would keep messages to a queue that does not exist.
func (q *queue) consumer(ctx context.Context) (jetstream.Consumer, error) {
	if c := q.found.Load(); c != nil {
		return *c, nil
	}
	var c jetstream.Consumer
	err := repeat(ctx, passing, func(ctx context.Context) (err error) {
		c, err = q.mail.Consumer(ctx, q.name)
		return err
	})
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		err = fmt.Errorf("there is no queue %s; a crawl creates the queues of its partitions", q.name)
	}
	if err == nil {
		q.found.Store(&c)
	}
	return c, err
}

// Send publishes each message. The server has whole seconds for delays, so they are rounded up.
func (q *queue) Send(ctx context.Context, bodies [][]byte, delay time.Duration) error {
	_, err := q.consumer(ctx)
	if err != nil {
		return fmt.Errorf("send to %s: %w", q.name, err)
	}
	at := time.Now().Add(delay + time.Second - 1).Truncate(time.Second)
	err = each(ctx, len(bodies), func(ctx context.Context, i int) error {
		if delay <= 0 {
			_, err := q.streams.Publish(ctx, q.subject(q.name), bodies[i])
			return err
		}
		_, err := q.streams.Publish(ctx, q.later(rand.Text()), bodies[i], jetstream.WithScheduleAt(at), jetstream.WithScheduleTarget(q.subject(q.name)))
		return err
	})
	if err != nil {
		return fmt.Errorf("send to %s: %w", q.name, err)
	}
	return nil
}

// Receive waits by one pull after another. It releases what comes after the end of ctx.
func (q *queue) Receive(ctx context.Context, limit int, wait time.Duration) ([]platform.Delivery, error) {
	end := time.Now().Add(wait)
	c, err := q.consumer(ctx)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("receive from %s: %w", q.name, err)
	}
	var got []platform.Delivery
	for pause := time.Duration(0); err == nil && len(got) == 0 && ctx.Err() == nil; {
		err = repeat(ctx, passing, func(context.Context) error {
			got, err = pull(c, limit, pause)
			return err
		})
		if pause = min(time.Until(end), longestPull); pause < shortestPull {
			break
		}
	}
	if ctx.Err() != nil {
		receipts := make([]platform.Receipt, len(got))
		for i := range got {
			receipts[i] = got[i].Receipt
		}
		return nil, q.Release(context.WithoutCancel(ctx), receipts)
	}
	if err != nil {
		return nil, fmt.Errorf("receive from %s: %w", q.name, err)
	}
	return got, nil
}

// pull returns the messages that are there, or waits for one. An error after some messages will come again.
func pull(c jetstream.Consumer, limit int, wait time.Duration) (got []platform.Delivery, err error) {
	var batch jetstream.MessageBatch
	if wait > 0 {
		batch, err = c.Fetch(1, jetstream.FetchMaxWait(wait)) // with a larger number it would wait for all
	} else {
		batch, err = c.FetchNoWait(limit)
	}
	if err != nil {
		return nil, err
	}
	for m := range batch.Messages() {
		about, err := m.Metadata()
		if err != nil {
			return got, err
		}
		got = append(got, platform.Delivery{
			ID: strconv.FormatUint(about.Sequence.Stream, 10), Body: m.Data(), Receives: int(about.NumDelivered), Receipt: m.Reply(), //nolint:gosec // small
		})
	}
	if len(got) > 0 {
		return got, nil
	}
	return nil, batch.Error()
}

// Acknowledge waits until the servers have confirmed it. An acknowledgement by an old receipt deletes the message too.
func (q *queue) Acknowledge(ctx context.Context, receipts []platform.Receipt) error {
	return q.settle(ctx, "acknowledge messages of", "+ACK", receipts)
}

func (q *queue) Release(ctx context.Context, receipts []platform.Receipt) error {
	return q.settle(ctx, "release messages of", "-NAK", receipts)
}

// settle answers deliveries. The servers ignore answers for messages that were deleted.
func (q *queue) settle(ctx context.Context, what, answer string, receipts []platform.Receipt) error {
	err := each(ctx, len(receipts), func(ctx context.Context, i int) error {
		_, err := q.conn.RequestMsgWithContext(ctx, &nats.Msg{Subject: receipts[i].(string), Data: []byte(answer)})
		return err
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, q.name, err)
	}
	return nil
}

// Close does nothing: no call outlives its method.
func (*queue) Close(context.Context) error { return nil }

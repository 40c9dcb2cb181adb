//go:build gcp

package gcp

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/platform"
)

// Settings of a subscription: the longest times that Pub/Sub takes, so that a crawl may rest for a month.
const (
	visibility = 10 * time.Minute
	retention  = 31 * 24 * time.Hour
)

// Bounds of a request: Pub/Sub takes 1,000 messages of 10 MB together, and 512 KB of receipts of about 200 bytes.
const (
	maxMessages = 1000
	maxBytes    = 9 << 20
)

// Times of a receive. A pull that is given up hides its messages for the whole visibility, so each pull returns at
// once, and the driver pauses between them.
const (
	firstPause  = 50 * time.Millisecond
	maxPause    = time.Second
	pullTimeout = 20 * time.Second // then the server is gone
)

// concurrentCreates bounds the queues that are created at once.
const concurrentCreates = 8

// notBefore is the attribute of a delayed message: the time when it is due, in RFC 3339.
const notBefore = "not-before"

// queue returns a queue of the platform.
func (c *cloud) queue(name string) platform.Queue {
	if c.service != "" && served[name] != "" {
		return &tasks{cloud: c, name: name}
	}
	return &queue{cloud: c, name: name}
}

// checkQueue checks a queue that functions serve. Open creates the other queues that it may be called with.
func (c *cloud) checkQueue(ctx context.Context, name string) error {
	if q, ok := c.queue(name).(*tasks); ok {
		return q.check(ctx)
	}
	return nil
}

// createQueues creates the queues that do not exist yet, and leaves others as they are. Those of functions are deployed.
func (c *cloud) createQueues(ctx context.Context, partitions int) error {
	if c.service != "" {
		if partitions > c.mailboxes {
			return fmt.Errorf("%d partitions are requested, and %s has %d mailboxes: request fewer, or deploy it with more", partitions, c.name, c.mailboxes)
		}
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(concurrentCreates)
	for _, name := range append(naming.Queues(partitions), naming.DeadLettersQueue) {
		q := &queue{cloud: c, name: name}
		g.Go(func() error {
			_, err := c.topics.CreateTopic(ctx, &pubsubpb.Topic{Name: q.topic()})
			if err == nil || status.Code(err) == codes.AlreadyExists {
				_, err = c.subscriptions.CreateSubscription(ctx, &pubsubpb.Subscription{
					Name: q.subscription(), Topic: q.topic(), AckDeadlineSeconds: seconds(visibility),
					MessageRetentionDuration: durationpb.New(retention),
					ExpirationPolicy:         &pubsubpb.ExpirationPolicy{}, // never; the default deletes idle mailboxes after 31 days
				})
			}
			if err != nil && status.Code(err) != codes.AlreadyExists {
				return fmt.Errorf("create queue %s: %w", name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// seconds rounds up, so that no message comes early, to what Pub/Sub takes.
func seconds(d time.Duration) int32 {
	return int32(math.Ceil(min(max(d, 0), visibility).Seconds()))
}

// queue implements platform.Queue.
type queue struct {
	*cloud
	name string
}

// receipt is Pub/Sub's name of one delivery.
type receipt string

func (q *queue) topic() string {
	return "projects/" + q.project + "/topics/" + q.cloud.name + "-" + q.name
}

func (q *queue) subscription() string {
	return "projects/" + q.project + "/subscriptions/" + q.cloud.name + "-" + q.name
}

// failed describes the error of a call.
func (q *queue) failed(what string, err error) error {
	if status.Code(err) == codes.NotFound {
		err = fmt.Errorf("there is no such queue in project %s; a crawl creates the queues of its partitions, except those of functions, which are deployed: %w", q.project, err)
	}
	return fmt.Errorf("%s %s: %w", what, q.name, explain(err))
}

func (q *queue) Send(ctx context.Context, bodies [][]byte, delay time.Duration) error {
	var attributes map[string]string
	if delay > 0 {
		attributes = map[string]string{notBefore: time.Now().Add(delay).UTC().Format(time.RFC3339Nano)}
	}
	for len(bodies) > 0 {
		request := &pubsubpb.PublishRequest{Topic: q.topic()}
		for size := 0; len(bodies) > 0 && len(request.Messages) < maxMessages; bodies = bodies[1:] {
			if size += len(bodies[0]); size > maxBytes && len(request.Messages) > 0 {
				break
			}
			request.Messages = append(request.Messages, &pubsubpb.PubsubMessage{Data: bodies[0], Attributes: attributes})
		}
		if _, err := q.topics.Publish(ctx, request); err != nil {
			return q.failed("send to", err)
		}
	}
	return nil
}

// Receive pulls with growing pauses until a message comes. A pull may return nothing although there are messages.
func (q *queue) Receive(ctx context.Context, limit int, wait time.Duration) ([]platform.Delivery, error) {
	end := time.Now().Add(wait)
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		got, early, err := q.pull(context.WithoutCancel(ctx), limit)
		if err != nil {
			return nil, q.failed("receive from", err)
		}
		if len(got) > 0 {
			return got, nil
		}
		if early { // messages that are due may stand behind them
			pause = firstPause
			continue
		}
		left := time.Until(end)
		if left <= 0 {
			return nil, nil
		}
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
		}
	}
	return nil, nil
}

// pull returns the messages that are due, and hides those that are early, at most for the visibility.
func (q *queue) pull(ctx context.Context, limit int) (got []platform.Delivery, early bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	r, err := q.subscriptions.Pull(ctx, &pubsubpb.PullRequest{
		Subscription: q.subscription(), MaxMessages: int32(max(1, min(limit, maxMessages))),
		ReturnImmediately: true, //nolint:staticcheck // deprecated, but without it Pub/Sub decides how long it waits
	})
	if err != nil {
		return nil, false, err
	}
	hide := map[int32][]platform.Receipt{} // by seconds
	for _, m := range r.ReceivedMessages {
		// A message without a time, or with one that nobody can read, is due.
		if due, err := time.Parse(time.RFC3339Nano, m.Message.Attributes[notBefore]); err == nil && time.Now().Before(due) {
			s := seconds(time.Until(due))
			hide[s] = append(hide[s], receipt(m.AckId))
			continue
		}
		got = append(got, platform.Delivery{
			ID: m.Message.MessageId, Body: m.Message.Data, Receipt: receipt(m.AckId),
			Receives: 2, // Pub/Sub counts deliveries only under a dead-letter policy
		})
	}
	for s, receipts := range hide {
		if err := q.deadline(ctx, receipts, s); err != nil && len(got) == 0 { // they stay hidden for the visibility
			return nil, false, err
		}
	}
	return got, len(hide) > 0, nil
}

// Acknowledge deletes messages. Pub/Sub ignores receipts of messages that are deleted or were delivered again.
func (q *queue) Acknowledge(ctx context.Context, receipts []platform.Receipt) error {
	for part := range slices.Chunk(receipts, maxMessages) {
		if err := q.subscriptions.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: q.subscription(), AckIds: ids(part)}); err != nil {
			return q.failed("acknowledge messages of", err)
		}
	}
	return nil
}

func (q *queue) Release(ctx context.Context, receipts []platform.Receipt) error {
	if err := q.deadline(ctx, receipts, 0); err != nil {
		return q.failed("release messages of", err)
	}
	return nil
}

// deadline makes messages visible after some seconds.
func (q *queue) deadline(ctx context.Context, receipts []platform.Receipt, seconds int32) error {
	for part := range slices.Chunk(receipts, maxMessages) {
		err := q.subscriptions.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{
			Subscription: q.subscription(), AckIds: ids(part), AckDeadlineSeconds: seconds,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func ids(receipts []platform.Receipt) []string {
	out := make([]string, len(receipts))
	for i, r := range receipts {
		out[i] = string(r.(receipt))
	}
	return out
}

// Close does nothing: no call outlives its method.
func (*queue) Close(context.Context) error { return nil }

package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gocloud.dev/pubsub"
	_ "gocloud.dev/pubsub/awssnssqs"    // opens awssns:// and awssqs://
	_ "gocloud.dev/pubsub/mempubsub"    // opens mem://, for tests
	_ "gocloud.dev/pubsub/rabbitpubsub" // opens rabbit://
	"golang.org/x/sync/errgroup"
)

// Target receives events: a [Webhook] or a [Queue].
type Target interface {
	// send sends a batch, which is not empty. An error may come although the batch has arrived. It is errFinal if another
	// attempt would not help.
	send(ctx context.Context, events []Event) error
}

var errFinal = errors.New("cannot deliver")

// The waits between two attempts to send a batch.
const (
	firstWait = time.Second
	maxWait   = 5 * time.Minute
)

// Deliver sends a batch, and tries again until it succeeds, ctx ends or another attempt is useless. failed is called with each
// error before the wait.
func Deliver(ctx context.Context, to Target, events []Event, failed func(err error, wait time.Duration)) error {
	if len(events) == 0 {
		return nil
	}
	for pause := firstWait; ; pause = min(2*pause, maxWait) {
		err := to.send(ctx, events)
		if err == nil || errors.Is(err, errFinal) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failed(err, pause)
		if !wait(ctx, pause) {
			return ctx.Err()
		}
	}
}

// Queue sends each event as one message, the JSON of the event, to a topic or queue of another system.
type Queue struct{ topic *pubsub.Topic }

// OpenQueue opens the queue at a URL of gocloud's drivers, such as awssqs://… or rabbit://EXCHANGE. The caller closes it.
func OpenQueue(ctx context.Context, url string) (*Queue, error) {
	t, err := pubsub.OpenTopic(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	return &Queue{t}, nil
}

// Close closes the connection.
func (q *Queue) Close(ctx context.Context) error { return q.topic.Shutdown(ctx) }

// send sends the events at once, and gocloud makes batches of them.
func (q *Queue) send(ctx context.Context, events []Event) error {
	g, ctx := errgroup.WithContext(ctx)
	for i := range events {
		g.Go(func() error {
			body, err := json.Marshal(&events[i])
			if err != nil {
				return fmt.Errorf("%w: %w", errFinal, err)
			}
			return q.topic.Send(ctx, &pubsub.Message{Body: body})
		})
	}
	return g.Wait()
}
